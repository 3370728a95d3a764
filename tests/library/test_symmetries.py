from __future__ import annotations

import warnings
from typing import get_args

import pytest
import torch
from small_networks import Network, estimate

import nadtools as nt
from nadtools.moments import GradientMoments
from nadtools.symmetries import (
    SymmetryGroup,
    apply_symmetry,
    check_group,
    check_permutations,
    orbits_of_pairs,
    sectors,
    symmetries_of,
)

GROUPS = get_args(SymmetryGroup)
SHAPES = [(1, 6, 6), (2, 5, 5), (1, 1, 1), (3, 4, 6), (1, 5, 2)]


def _pairs():
    for group in GROUPS:
        for shape in SHAPES:
            if group in ("none", "reflections") or shape[1] == shape[2]:
                yield group, shape


@pytest.mark.parametrize(("group", "shape"), list(_pairs()))
def test_sectors_are_an_orthonormal_basis_that_diagonalises_every_average(group, shape):
    found = sectors(shape, group)
    basis = torch.cat([b for sector in found for b in sector.bases], dim=1)
    dimension = basis.shape[0]
    torch.testing.assert_close(basis.T @ basis, torch.eye(dimension, dtype=torch.float64), atol=1e-12, rtol=0)

    # The dense oracle: average a random covariance over the group, image by image.
    factor = torch.randn(dimension, dimension, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    moved = [apply_symmetry(factor.T.reshape(-1, *shape), g).reshape(dimension, -1).T for g in symmetries_of(group)]
    average = sum(m @ m.T for m in moved) / len(moved)
    ours = torch.zeros_like(average)
    for sector in found:
        block = sum(b.T @ factor @ factor.T @ b for b in sector.bases) / len(sector.bases)
        for b in sector.bases:
            ours += b @ block @ b.T
    torch.testing.assert_close(ours, average, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("group", GROUPS)
def test_the_named_elements_form_a_group(group):
    x = torch.arange(9.0).reshape(3, 3)
    images = [apply_symmetry(x, g) for g in symmetries_of(group)]
    assert len({tuple(i.flatten().tolist()) for i in images}) == len(images)
    for g in symmetries_of(group):
        for image in images:
            assert any(torch.equal(apply_symmetry(image, g), other) for other in images)


def test_exchanged_bases_are_transposes_of_each_other():
    pair = sectors((1, 6, 6), "square")[-1]
    first, second = (basis.T.reshape(-1, 6, 6) for basis in pair.bases)
    assert torch.equal(first.transpose(1, 2), second)
    assert torch.equal(first.flip(-1), -first) and torch.equal(first.flip(-2), first)


def test_bad_input():
    with pytest.raises(ValueError, match="group='all'; expected 'none'"):
        check_group("all", (1, 4, 4))
    with pytest.raises(ValueError, match="not square"):
        check_group("square", (1, 4, 5))
    with pytest.raises(ValueError, match="unknown symmetry 'up'"):
        apply_symmetry(torch.zeros(2, 2), "up")


# Symmetries of one's own.


def _in_patches(change, size: int = 16, patch: int = 4) -> torch.Tensor:
    """A permutation of the pixels of an image, from one of its patches (number, pixels)."""
    count = size // patch
    patches = torch.arange(size * size).reshape(count, patch, count, patch).transpose(1, 2).reshape(-1, patch**2)
    return change(patches).reshape(count, count, patch, patch).transpose(1, 2).reshape(size, size)


def _swapped(number: int) -> list[int]:
    return [1, 0, *range(2, number)]


# A swap and a shift generate all permutations.
AMONG_PATCHES = [_in_patches(lambda p: p[_swapped(16)]), _in_patches(lambda p: p.roll(1, 0))]
WITHIN_PATCHES = [_in_patches(lambda p: p[:, _swapped(16)]), _in_patches(lambda p: p.roll(1, 1))]


def test_orbits_of_pairs_average_over_the_group_without_listing_it():
    rows, columns = torch.arange(12).reshape(3, 4).roll(1, 0), torch.arange(12).reshape(3, 4).roll(1, 1)
    given = check_permutations([rows, columns], (1, 3, 4))
    moments = GradientMoments((1, 3, 4), num_blocks=1)
    jacobian = torch.randn(12, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    moments.add(0, jacobian)
    moments.average_over(orbits_of_pairs(given))
    images = jacobian.T.reshape(5, 3, 4)
    moved = [images.roll((i, j), (1, 2)).flatten(1) for i in range(3) for j in range(4)]
    torch.testing.assert_close(moments.covariance(), sum(m.T @ m for m in moved) / 12)


def test_permutations_of_one_channel_move_all_alike():
    columns = torch.arange(6).reshape(2, 3).roll(1, 1)
    (moved,) = check_permutations([columns], (2, 2, 3))
    x = torch.randn(2, 2, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(x.flatten()[moved].reshape(2, 2, 3), x.roll(1, 2))


def test_a_vision_transformer_with_all_permutations_of_patches_and_of_pixels_in_them_has_four_eigenvalues():
    """Pairs of pixels are in the same patch or not, at the same place in it or not: four orbits, from two networks.

    The first two eigenvalues are those of images that repeat with the patch, and tell themselves from the others.
    """

    def network() -> torch.nn.Module:
        return nt.build(
            "vit", num_classes=1, image_size=(16, 16), patch_size=4, depth=1, seed=int(torch.randint(9**9, ()))
        )

    nads = nt.estimate_nads(
        network, 2, "gradient", image_size=(16, 16), device="cpu", progress=False,
        symmetries=[*AMONG_PATCHES, *WITHIN_PATCHES],
    )  # fmt: skip
    values = nads.eigenvalues
    steps = (values.diff() < -1e-9 * values[0]).nonzero().flatten() + 1
    sizes = torch.tensor([0, *steps.tolist(), 256]).diff().tolist()
    assert sorted(sizes) == [1, 15, 15, 225]
    assert nads.eigenspaces == (range(16), range(16, 256)) and float(values[15]) > 10 * float(values[16])
    repeating = nads[:16].reshape(16, 4, 4, 4, 4)
    torch.testing.assert_close(repeating, repeating.mean((1, 3), keepdim=True).expand_as(repeating), rtol=0, atol=1e-4)
    assert nads.metadata["symmetries"] == "4 permutations"


def test_permutations_that_the_networks_contradict_are_reported_and_others_are_not():
    def columns() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.AvgPool2d((1, 4)), torch.nn.Flatten(), torch.nn.Linear(16, 1))

    inside = torch.arange(64).reshape(8, 8)[:, [1, 2, 3, 0, *range(4, 8)]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate(columns, 12, symmetries=[inside])
    half = torch.arange(64).reshape(8, 8).roll(4, 0)

    def top() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.ZeroPad2d((0, 0, 0, -4)), torch.nn.Flatten(), torch.nn.Linear(32, 1))

    with pytest.warns(UserWarning, match=r"contradict the permutation symmetries\[0\]"):
        estimate(top, 12, symmetries=[half])


def test_a_checkpoint_knows_its_permutations(tmp_path):
    def linear() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 1))

    rows, columns = (torch.arange(64).reshape(8, 8).roll(1, axis) for axis in (0, 1))
    given = {"average_output_layer": False, "checkpoint": tmp_path / "c.npz"}
    estimate(linear, 2, symmetries=[rows], **given)
    more = estimate(linear, 4, symmetries=[rows], **given)
    whole = estimate(linear, 4, symmetries=[rows], average_output_layer=False)
    torch.testing.assert_close(more.eigenvalues, whole.eigenvalues)
    with pytest.raises(ValueError, match="belongs to another computation"):
        estimate(linear, 4, symmetries=[columns], **given)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([], ValueError, "expected at least one"),
        (3, TypeError, "the name of a group, or a sequence of permutations"),
        ("all", ValueError, "symmetries='all'; expected 'auto'"),
        ([torch.zeros(8, 8)], TypeError, "a tensor of integers"),
        ([torch.zeros(8, 8, dtype=torch.int64)], ValueError, "each of 0 to 63 once"),
        ([torch.arange(64)], ValueError, r"of shape \(64,\); expected \(8, 8\) or \(1, 8, 8\)"),
    ],
)
def test_bad_symmetries(given, error, message):
    with pytest.raises(error, match=message):
        estimate(Network, 2, symmetries=given)


def test_permutations_of_many_inputs_are_refused():
    with pytest.raises(ValueError, match="1 permutations of 4,096 inputs; expected at least one, of at most 3,072"):
        check_permutations([torch.arange(4096).reshape(64, 64)], (1, 64, 64))
