"""The explorers of two features, driven from Python."""

import math

import pytest
import torch
from companion.chapter_08 import pair_explorer
from companion.chapter_09 import concatenation_explorer
from companion.explorer import StaticNotice
from companion.patches import load_patches

import nadtools as nt


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("NADTOOLS_STATIC", raising=False)


@pytest.fixture(scope="module")
def nads():
    return nt.NADs.from_vectors(nt.fourier_basis((8, 8)), torch.linspace(2.0, 0.0, 64, dtype=torch.float64))


@pytest.fixture(scope="module")
def patches():
    return load_patches(size=8, per_class=30, test_per_class=10)


@pytest.fixture
def pair(nads):
    made = pair_explorer(nads, device="cpu", num_samples=400)
    made.architecture.value, made.epochs.value = "logreg", 3
    yield made
    made.stop()
    assert made.wait(60)


@pytest.fixture
def concatenation(patches, nads):
    made = concatenation_explorer(patches, nads, device="cpu")
    made.architecture.value, made.epochs.value = "logreg", 3
    yield made
    made.stop()
    assert made.wait(60)


def test_the_controls_set_the_problem(pair, nads):
    pair.first.value, pair.second.value, pair.epsilon_first.value, pair.epsilon_second.value = 5, 9, 2.0, 1.5
    problem, same = pair.problems()
    assert problem is same
    assert [part.epsilon for part in problem.parts] == [2.0, 1.5]
    for part, index in zip(problem.parts, (5, 9), strict=True):
        torch.testing.assert_close(part.v, nads.vectors[index])


def test_it_trains_shows_the_boundary_and_says_its_angle(pair):
    pictures, locked = [], []

    def note(change):
        pictures.append(bytes(change["new"]))
        locked.append(pair.first.disabled)

    pair.picture.observe(note, "value")
    pair.epochs.value = 12
    pair.train_button.click()
    assert pair.wait(120)
    shown = [picture for picture in pictures if picture]
    assert len(shown) >= 12 and all(picture[:4] == b"\x89PNG" for picture in shown) and len(set(shown)) > 1
    assert any(locked) and not pair.first.disabled and pair.stop_button.disabled
    assert len(pair.history) == 12 and list(pair.history[0]) == ["both", "only the first", "only the second"]
    assert pair.result is not None and pair.result.test_accuracy == pair.history[-1]["both"]
    # On a small, easy problem logistic regression comes close to the maximum margin: 63 degrees.
    said = int(pair.status.value.partition("at ")[2].partition("°")[0])
    assert abs(said - math.degrees(math.atan2(1.0, 0.5))) < 10 and "have it at 63°" in pair.status.value


def test_the_stop_button_ends_a_training(pair):
    pair.epochs.value = 60
    pair.picture.observe(lambda _: pair.stop_button.click(), "value")
    pair.start()
    assert pair.wait(120)
    assert "Stopped after" in pair.status.value and len(pair.history) < 60


def test_images_beside_a_direction(concatenation, patches, nads):
    concatenation.index.value, concatenation.sigma.value = 7, 0.5
    problem, test_problem = concatenation.problems()
    torch.testing.assert_close(problem.parts[1].v, nads.vectors[7])
    assert problem.parts[1].sigma == 0.5
    assert torch.equal(test_problem.parts[0].y, (patches.y_test >= 5).long())
    concatenation.train_button.click()
    assert concatenation.wait(120)
    assert list(concatenation.history[-1]) == ["both", "images alone", "D(v) alone"]
    assert concatenation.status.value.startswith("Done: 3 epochs.")
    assert bytes(concatenation.picture.value[:4]) == b"\x89PNG"
    views = [test_problem.only(part) for part in (0, 1)]
    x, y = test_problem.sample(100, nt.device.derive_seed(0, 2), device="cpu")
    for view, name in zip(views, ("images alone", "D(v) alone"), strict=True):
        expected = nt.evaluate(concatenation.network, (view(x), y)).accuracy
        assert concatenation.history[-1][name] == pytest.approx(expected)


def test_bad_input_and_static_pages(patches, nads, monkeypatch):
    with pytest.raises(TypeError, match="expected NADs"):
        pair_explorer(nads.vectors)
    with pytest.raises(ValueError, match="at least 2"):
        pair_explorer(nads, num_samples=1)
    with pytest.raises(TypeError, match="expected Images"):
        concatenation_explorer(patches.x_train, nads)
    with pytest.raises(ValueError, match="one size"):
        concatenation_explorer(load_patches(size=16), nads)
    colour = nt.NADs.from_vectors(nt.random_basis((3, 4, 4)), torch.linspace(1, 0, 48))
    with pytest.raises(ValueError, match="one channel"):
        pair_explorer(colour)
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    larger = nt.NADs.from_vectors(nt.random_basis((16, 16)), torch.linspace(1, 0, 256))
    images = load_patches(size=16, per_class=30, test_per_class=10)
    for notice in (pair_explorer(larger, num_samples=300), concatenation_explorer(images, larger)):
        assert isinstance(notice, StaticNotice)
        assert len(notice.pictures) == 1 and notice.status.startswith("Done")
