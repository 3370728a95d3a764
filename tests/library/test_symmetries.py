from __future__ import annotations

from typing import get_args

import pytest
import torch

from nadtools.symmetries import SymmetryGroup, apply_symmetry, check_group, sectors, symmetries_of

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
