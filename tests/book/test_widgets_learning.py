"""The explorer of mixtures of NADs, driven from Python."""

import math

import pytest
import torch
from companion.chapter_05 import mixture_explorer
from companion.explorer import StaticNotice

from nadtools.directions import fourier_basis
from nadtools.nads import NADs


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("NADTOOLS_STATIC", raising=False)


@pytest.fixture
def nads():
    return NADs.from_vectors(fourier_basis((8, 8)), torch.linspace(2.0, 0.0, 64, dtype=torch.float64))


@pytest.fixture
def explorer(nads):
    made = mixture_explorer(nads, device="cpu", num_samples=300)
    yield made
    made.stop()
    assert made.wait(60)


@pytest.mark.parametrize(("control", "value"), [("first", 5), ("second", 7), ("angle", 60)])
def test_every_control_changes_the_direction_and_its_pictures(explorer, control, value):
    explorer.angle.value = 30
    before = explorer.direction_image.value, explorer.samples_image.value, explorer.status.value
    getattr(explorer, control).value = value
    after = explorer.direction_image.value, explorer.samples_image.value, explorer.status.value
    assert all(old != new for old, new in zip(before, after, strict=True))


def test_the_direction_lies_between_the_two(explorer, nads):
    explorer.first.value, explorer.second.value, explorer.angle.value = 3, 40, 60
    v = explorer.direction()
    assert float((v * nads.vectors[3]).sum()) == pytest.approx(0.5, abs=1e-6)
    assert float((v * nads.vectors[40]).sum()) == pytest.approx(math.sqrt(0.75), abs=1e-6)
    # The mean eigenvalue is 1.
    expected = 0.25 * float(nads.eigenvalues[3]) + 0.75 * float(nads.eigenvalues[40])
    assert explorer.alignment == pytest.approx(expected, abs=1e-6)
    assert f"{expected:.2g} times" in explorer.status.value


def test_a_nad_with_itself_is_that_nad(explorer, nads):
    explorer.first.value, explorer.second.value, explorer.angle.value = 6, 6, 45
    torch.testing.assert_close(explorer.direction(), nads.vectors[6])


def test_it_trains_on_the_mixture_and_locks_its_controls(explorer):
    locked = []
    explorer.architecture.value, explorer.epochs.value, explorer.sigma.value = "logreg", 4, 0.5
    explorer.curve_image.observe(lambda _: locked.append(explorer.angle.disabled), "value")
    explorer.train_button.click()
    assert explorer.wait(60)
    assert len(explorer.history) == 4 and locked == [True] * 4
    assert explorer.result.test_accuracy > 0.8  # a noise-free coordinate, as in the explorer of waves
    assert not explorer.angle.disabled


def test_the_sliders_of_waves_are_not_shown(explorer):
    shown = explorer.ui.children[0].children
    assert explorer.first in shown and explorer.frequency_i not in shown and explorer.phase not in shown


def test_bad_nads_and_static_pages(nads, monkeypatch):
    with pytest.raises(TypeError, match="NADs"):
        mixture_explorer(nads.vectors)
    colour = NADs.from_vectors(fourier_basis((8, 6)).reshape(48, 3, 4, 4), nads.eigenvalues[:48])
    with pytest.raises(ValueError, match="one channel"):
        mixture_explorer(colour)
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    assert isinstance(mixture_explorer(nads), StaticNotice)
