"""Eigenvectors of a closed form, in the basis that estimates use: adapted to the symmetries of the image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

import torch
from torch import Tensor

from nadtools.analytic.covariance import Covariance
from nadtools.device import available_memory
from nadtools.moments import fix_signs
from nadtools.symmetries import SymmetryGroup, apply_symmetry, sectors, symmetries_of

__all__ = ["check_memory", "decompose"]

_SYMMETRIC = 1e-12  # relative deviation up to which a covariance counts as invariant


def check_memory(dimension: int, count: int | None) -> None:
    """Refuse a basis that would not fit, before anything is computed."""
    number = dimension if count is None else count
    needed, free = 12 * dimension * number, available_memory(torch.device("cpu"))
    if free is not None and needed > free:
        raise MemoryError(
            f"{number} eigenvectors of {dimension} pixels need about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB "
            "are free; ask for the first ones by num_directions=... (networks without shortcuts or branches), or use "
            "a smaller image_size"
        )


def decompose(channels: Sequence[Covariance], shape: tuple[int, int, int], count: int | None) -> tuple[Tensor, Tensor]:
    """Eigenvalues, descending, and eigenvectors, float32, of an image whose channels are uncorrelated.

    Eigenvalues below the rounding error of their computation, n ε times the largest of n, are 0.

    Parameters
    ----------
    channels : sequence of Covariance
        One for each channel.
    shape : (int, int, int)
        (channels, h, w).
    count : int or None
        How many; None for all.
    """
    number = math.prod(shape) if count is None else count
    product = all(part.is_product for part in channels)
    values, images = [], []
    solved: list[tuple[Covariance, tuple[Tensor, Tensor]]] = []
    for channel, part in enumerate(channels):
        # Channels mostly share one covariance.
        found = next((result for other, result in solved if other is part), None)
        if found is None:
            found = _product(part, shape[1:], min(number, math.prod(shape[1:]))) if product else _dense(part, shape[1:])
            solved.append((part, found))
        some = found[0][:number]
        image = torch.zeros(len(some), *shape)
        image[:, channel] = found[1][:number].to(torch.float32)
        values.append(some)
        images.append(image)
    if len(channels) == 1:
        return values[0], images[0][:, 0]
    order = torch.cat(values).argsort(descending=True, stable=True)[:number]
    return torch.cat(values)[order], torch.cat(images)[order]


def _dense(part: Covariance, size: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    matrix = part.matrix()
    matrix = (matrix + matrix.T) / 2
    values, vectors, keys = [], [], []
    for number, sector in enumerate(sectors((1, size[0], size[1]), _largest_group(matrix, size))):
        block = sector.bases[0].T @ matrix @ sector.bases[0]
        block_values, block_vectors = torch.linalg.eigh(block)
        for copy, basis in enumerate(sector.bases):
            values.append(block_values)
            vectors.append(basis @ block_vectors)
            keys += [(number, -rank, copy) for rank in range(len(block_values))]
    listed = torch.cat(values)
    rounding = len(matrix) * torch.finfo(torch.float64).eps * float(listed.max())
    listed = torch.where(listed > rounding, listed, 0.0)
    # Eigenvalues that rounding cannot tell apart are in the order of their sectors.
    falling = listed.argsort(descending=True)
    ties = (listed[falling].diff() < -rounding).cumsum(0).tolist()
    place = dict(zip(falling.tolist(), [0, *ties], strict=True))
    order = sorted(range(len(keys)), key=lambda i: (place[i], keys[i]))
    # So that they descend all the same:
    ordered = listed[order].cummin(0).values
    return ordered, fix_signs(torch.cat(vectors, dim=1).T[order]).reshape(-1, *size)


def _largest_group(matrix: Tensor, size: tuple[int, ...]) -> SymmetryGroup:
    """The largest group of symmetries that leave a covariance as it is."""
    tolerance = _SYMMETRIC * float(matrix.abs().max())
    best: SymmetryGroup = "none"
    indices = torch.arange(len(matrix)).view(*size)
    for group in get_args(SymmetryGroup):
        if group in ("transpose", "square") and size[0] != size[1]:
            continue
        moves = [apply_symmetry(indices, symmetry).flatten() for symmetry in symmetries_of(group)[1:]]
        if all(float((matrix[move][:, move] - matrix).abs().max()) <= tolerance for move in moves):
            best = group
    return best


def _product(part: Covariance, size: tuple[int, ...], count: int) -> tuple[Tensor, Tensor]:
    """Of a Kronecker product: products of the eigenvectors of rows and of columns.

    If both are the same matrix, products u_i u_j and u_j u_i share an eigenvalue; their sum and difference are taken,
    or, where u_i is even and u_j odd in an image of full symmetry, the two themselves, the odd columns first.
    """
    assert part.factors is not None
    rows, columns = (_axis(factor) for factor in part.factors)
    same = size[0] == size[1] and bool(
        (part.factors[0] / part.factors[0].abs().max() - part.factors[1] / part.factors[1].abs().max()).abs().max()
        <= _SYMMETRIC
    )
    if same:
        columns = columns[0], *rows[1:]
    values = rows[0][:, None] * columns[0] * part.scale
    if same:
        values = (values + values.T) / 2
    order = values.flatten().argsort(descending=True, stable=True)[:count].tolist()
    images = torch.empty(len(order), *size, dtype=torch.float64)
    for rank, entry in enumerate(order):
        i, j = divmod(entry, size[1])
        image = torch.outer(rows[1][:, i], columns[1][:, j])
        if same and i != j:
            odd_i, odd_j = bool(rows[2][i]), bool(columns[2][j])
            first = i < j
            if odd_i != odd_j and rows[3]:
                image = image if first == odd_j else image.T
            else:
                image = (image + image.T if first else image - image.T) / math.sqrt(2)
        images[rank] = image
    return values.flatten()[order], fix_signs(images.flatten(1)).reshape(-1, *size)


def _axis(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor, bool]:
    """Eigenvalues, descending and without rounding, eigenvectors, which are odd, and whether reversal is a symmetry."""
    matrix = (matrix + matrix.T) / 2
    mirrored = bool((matrix - matrix.flip(0, 1)).abs().max() <= _SYMMETRIC * matrix.abs().max())
    size = len(matrix)
    if mirrored:
        eye = torch.eye(size, dtype=torch.float64)
        signs = enumerate((eye + eye.flip(1), eye - eye.flip(1)))
        bases = [torch.linalg.qr(basis[:, : (size + 1 - k) // 2]).Q for k, basis in signs]
        solved = [torch.linalg.eigh(basis.T @ matrix @ basis) for basis in bases]
        values = torch.cat([found.eigenvalues for found in solved])
        vectors = torch.cat([b @ found.eigenvectors for b, found in zip(bases, solved, strict=True)], dim=1)
        odd = torch.cat([torch.full((len(f.eigenvalues),), k == 1) for k, f in enumerate(solved)])
    else:
        values, vectors = torch.linalg.eigh(matrix)
        odd = torch.zeros(size, dtype=torch.bool)
    values = torch.where(values > size * torch.finfo(torch.float64).eps * values.max(), values, 0.0)
    order = values.argsort(descending=True, stable=True)
    return values[order], vectors[:, order], odd[order], mirrored
