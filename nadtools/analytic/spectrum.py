"""Eigenvectors of a closed form, in the basis that estimates use: adapted to the symmetries of the image."""

from __future__ import annotations

import math
from typing import get_args

import torch
from torch import Tensor

from nadtools.analytic.covariance import Covariance
from nadtools.moments import GradientMoments, fix_signs
from nadtools.symmetries import SymmetryGroup, apply_symmetry, symmetries_of

__all__ = ["decompose"]

_SYMMETRIC = 1e-12  # relative deviation up to which a covariance counts as invariant
_EPS = torch.finfo(torch.float64).eps


def decompose(covariance: Covariance, shape: tuple[int, int, int], count: int) -> tuple[Tensor, Tensor]:
    """Eigenvalues, descending, and eigenvectors, float32, of an image whose channels all have this covariance.

    Eigenvalues below the rounding error of their computation, n ε times the largest of n, are 0. ``shape`` is that of
    the image, (channels, h, w), and ``count`` says how many. One channel has no axis of its own.
    """
    channels, *size = shape
    solve = _product if covariance.is_product else _dense
    values, vectors = solve(covariance, (size[0], size[1]), math.ceil(count / channels))
    images = torch.zeros(len(values), channels, *shape)
    for channel in range(channels):
        images[:, channel, channel] = vectors.float()
    return values.repeat_interleave(channels)[:count], images.flatten(0, 1)[:count].squeeze(1)


def _dense(part: Covariance, size: tuple[int, int], count: int) -> tuple[Tensor, Tensor]:
    """As an estimate whose sums are exact."""
    matrix = part.matrix()
    matrix = (matrix + matrix.T) / 2
    moments = GradientMoments((1, *size), _largest_group(matrix, size), num_blocks=1)
    moments.counts += 1
    for sector, sums in zip(moments.sectors, moments.sums, strict=True):
        sums[0] = sector.bases[0].T @ (sector.bases[0].T @ matrix).T
    found = moments.eigendecomposition()
    values, images = _without_rounding(found.values), found.vectors.reshape(-1, *size)
    # Eigenvalues that rounding cannot tell apart: first those whose images are equal to their transposes.
    ties = [0, *(values.diff() < -len(values) * _EPS * values[0]).cumsum(0).tolist()]
    turned = (images * images.mT).sum((1, 2)).round().tolist() if size[0] == size[1] else values.tolist()
    order = sorted(range(len(values)), key=lambda i: (ties[i], -turned[i]))[:count]
    return values[order].cummin(0).values, images[order]


def _largest_group(matrix: Tensor, size: tuple[int, int]) -> SymmetryGroup:
    """The largest group of symmetries that leave a covariance as it is."""
    best: SymmetryGroup = "none"
    indices = torch.arange(len(matrix)).view(*size)
    for group in get_args(SymmetryGroup):
        if group in ("transpose", "square") and size[0] != size[1]:
            continue
        moves = [apply_symmetry(indices, symmetry).flatten() for symmetry in symmetries_of(group)[1:]]
        if all(_same(matrix[move][:, move], matrix) for move in moves):
            best = group
    return best


def _product(part: Covariance, size: tuple[int, int], count: int) -> tuple[Tensor, Tensor]:
    """Of a Kronecker product: products of the eigenvectors of rows and of columns.

    If both are the same matrix, products u_i u_j and u_j u_i share an eigenvalue; their sum and difference are taken,
    or, where u_i is even and u_j odd in an image of full symmetry, the two themselves, the odd columns first.
    """
    assert part.factors is not None
    first, second = (factor / factor.abs().max() for factor in part.factors)
    same = size[0] == size[1] and _same(first, second)
    (values, down), (others, across) = _axis(first), _axis(first if same else second)
    scale = part.scale * math.prod(float(factor.abs().max()) for factor in part.factors)
    products = scale * (values[:, None] * others)
    order = products.flatten().argsort(descending=True, stable=True)[:count]
    parity = (across * across.flip(0)).sum(0).round(decimals=6)  # of even and odd vectors 1 and -1
    images = torch.empty(len(order), *size, dtype=torch.float64)
    for rank, (i, j) in enumerate(divmod(entry, size[1]) for entry in order.tolist()):
        image = torch.outer(down[:, i], across[:, j])
        if same and i != j and parity[i] * parity[j] == -1:
            image = image if (i < j) == bool(parity[j] == -1) else image.T
        elif same and i != j:
            image = (image + image.T if i < j else image - image.T) / math.sqrt(2)
        images[rank] = image
    return products.flatten()[order], fix_signs(images.flatten(1)).reshape(-1, *size)


def _axis(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues of one factor, descending, and its eigenvectors in columns."""
    values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    return _without_rounding(values.flip(0)), vectors.flip(1)


def _without_rounding(values: Tensor) -> Tensor:
    return torch.where(values > len(values) * _EPS * values.max(), values, 0.0)


def _same(one: Tensor, other: Tensor) -> bool:
    return float((one - other).abs().max()) <= _SYMMETRIC * float(other.abs().max())
