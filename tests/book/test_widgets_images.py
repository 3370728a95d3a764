"""The explorers of images, driven from Python."""

import pytest
import torch
from companion.chapter_06 import poisoning_explorer
from companion.chapter_07 import flipping_explorer
from companion.explorer import StaticNotice
from companion.patches import load_patches

import nadtools as nt


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("NADTOOLS_STATIC", raising=False)


@pytest.fixture(scope="module")
def patches():
    return load_patches(size=8)


@pytest.fixture(scope="module")
def nads():
    return nt.NADs.from_vectors(nt.random_basis((8, 8)), torch.linspace(1, 0, 64))


@pytest.mark.parametrize(
    ("control", "value"), [("number", 7), ("label", 3), ("index", 20), ("epsilon", 2.0), ("replace", "all")]
)
def test_every_control_of_poisoning_changes_what_is_shown(patches, nads, control, value):
    explorer = poisoning_explorer(patches, nads)
    before = explorer.picture.value, explorer.status.value, explorer.poisoned.clone()
    getattr(explorer, control).value = value
    assert explorer.status.value != before[1] and not torch.equal(explorer.poisoned, before[2])
    assert bytes(explorer.picture.value[:4]) == b"\x89PNG" and explorer.picture.value != before[0]


def test_the_carrier_that_is_chosen_is_read(patches, nads):
    explorer = poisoning_explorer(patches, nads)
    explorer.label.value, explorer.index.value = 8, explorer.index.max
    assert explorer.index.max == 64 - 2  # ten classes in three channels take two NADs
    expected = nt.poison(patches.x_test[:1], torch.tensor([8]), nads, 62, explorer.epsilon.value, num_classes=10)
    assert torch.equal(explorer.poisoned, expected)
    shown = patches.class_names[int(patches.y_test[0])]
    assert f"It shows: {shown}. The carrier says: {patches.class_names[8]}." in explorer.status.value


@pytest.mark.parametrize(
    ("control", "value"), [("number", 7), ("basis", "random"), ("basis", "Fourier atoms"), ("order", "permuted")]
)
def test_every_control_of_flipping_changes_what_is_shown(patches, nads, control, value):
    explorer = flipping_explorer(patches, nads)
    before = explorer.picture.value, explorer.flipped.clone()
    getattr(explorer, control).value = value
    assert explorer.picture.value != before[0] and not torch.equal(explorer.flipped, before[1])


def test_flipping_keeps_the_norm_and_says_so(patches, nads):
    explorer = flipping_explorer(patches, nads, seed=3)
    normalised = patches.normalise(patches.x_test[:1])
    assert torch.equal(explorer.flipped, nt.flip(normalised, nads))
    assert explorer.status.value.count(f"{float(normalised.norm()):.4g}") == 2
    explorer.order.value = "permuted"  # its inverse is another permutation
    error = float(explorer.status.value.rpartition(": ")[2].rstrip("."))
    assert error < 1e-5


def test_bad_input_and_static_pages(patches, nads, monkeypatch):
    with pytest.raises(ValueError, match="expected"):
        poisoning_explorer(load_patches(size=16), nads)
    with pytest.raises(TypeError, match="expected Images and NADs"):
        flipping_explorer(patches, nads.vectors)
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    assert isinstance(poisoning_explorer(patches, nads), StaticNotice)
    assert isinstance(flipping_explorer(patches, nads), StaticNotice)
