r"""Symmetries of the image, and the sectors into which they split a covariance.

If a network's law at initialisation does not change when the image is moved by g, its gradient covariance commutes
with g. A matrix that commutes with a whole group is block-diagonal in a basis adapted to the group: the *sectors*
here. Averaging a covariance over the group is then the same as keeping its sector blocks and dropping the rest, and
the eigenvectors of the average are found block by block.

The eight symmetries of the square have one two-dimensional representation, so about half of all eigenvalues come in
exactly equal pairs. Inside such a pair only the plane is defined. We take in it the vector u that is odd under the
left-right mirror image and even under the up-down one, followed by its transpose.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from scipy import special
from torch import Tensor

from nadtools import checks

__all__ = [
    "Sector", "SymmetryGroup", "apply_symmetry", "check_group", "contradicted_symmetry", "sectors", "symmetries_of",
]  # fmt: skip

SymmetryGroup = Literal["none", "transpose", "reflections", "square"]

# Whether a symmetry transposes, and which axes it then reverses.
_MOVES: dict[str, tuple[bool, tuple[int, ...]]] = {
    "identity": (False, ()), "left-right": (False, (-1,)), "up-down": (False, (-2,)), "half turn": (False, (-2, -1)),
    "transpose": (True, ()), "quarter turn": (True, (-2,)), "three-quarter turn": (True, (-1,)),
    "anti-transpose": (True, (-2, -1)),
}  # fmt: skip
_ELEMENTS: dict[SymmetryGroup, tuple[str, ...]] = {
    "none": ("identity",),
    "transpose": ("identity", "transpose"),
    "reflections": ("identity", "left-right", "up-down", "half turn"),
    "square": tuple(_MOVES),
}


@dataclasses.dataclass(frozen=True)
class Sector:
    """Orthonormal bases of one sector: one, or two that a symmetry exchanges, each of shape (D, d), float64.

    On a matrix C that commutes with the group, B.T @ C @ B is the same for all.
    """

    bases: tuple[Tensor, ...]

    @property
    def dimension(self) -> int:
        """d, the size of the block."""
        return self.bases[0].shape[1]


def symmetries_of(group: SymmetryGroup) -> tuple[str, ...]:
    """The names of the group's elements, for :func:`apply_symmetry`."""
    return _ELEMENTS[group]


def apply_symmetry(images: Tensor, symmetry: str) -> Tensor:
    """Move images of shape (..., h, w) by a symmetry that :func:`symmetries_of` names."""
    if symmetry not in _MOVES:
        raise ValueError(f"unknown symmetry {symmetry!r}; known are {', '.join(map(repr, _MOVES))}")
    transposes, axes = _MOVES[symmetry]
    moved = images.transpose(-2, -1) if transposes else images
    return moved.flip(axes) if axes else moved


def check_group(group: str, image_shape: tuple[int, ...]) -> SymmetryGroup:
    """Return a group that acts on images of this shape, or say why it does not."""
    known: SymmetryGroup = checks.choice("group", group, get_args(SymmetryGroup))
    if known in ("transpose", "square") and image_shape[-2] != image_shape[-1]:
        raise ValueError(f"the group {group!r} transposes images, and images of shape {image_shape} are not square")
    return known


def sectors(image_shape: tuple[int, int, int], group: SymmetryGroup) -> list[Sector]:
    """The sectors of images of shape (channels, h, w) under a group that moves pixels and leaves channels alone.

    Their dimensions, each counted as often as it has bases, add up to channels * h * w.
    """
    channels, height, width = image_shape
    check_group(group, image_shape)
    if group == "none":
        return [Sector((torch.eye(channels * height * width, dtype=torch.float64),))]
    if group == "transpose":
        eye = torch.eye(height, dtype=torch.float64)
        return [Sector((_all_channels(block, channels),)) for block in _symmetric_and_antisymmetric(eye)]
    even_rows, odd_rows = _even_and_odd(height)
    even_columns, odd_columns = _even_and_odd(width)
    if group == "reflections":
        blocks = [torch.kron(r, c) for r in (even_rows, odd_rows) for c in (even_columns, odd_columns)]
        return [Sector((_all_channels(block, channels),)) for block in blocks if block.shape[1]]
    blocks = [*_symmetric_and_antisymmetric(even_rows), *_symmetric_and_antisymmetric(odd_rows)]
    found = [Sector((_all_channels(block, channels),)) for block in blocks if block.shape[1]]
    if odd_rows.shape[1]:
        # Column (r, c) of the first basis, as an image, is the transpose of column (r, c) of the second.
        first = torch.kron(even_rows, odd_rows)
        second = first.view(height, width, -1).transpose(0, 1).reshape(height * width, -1)
        found.append(Sector((_all_channels(first, channels), _all_channels(second, channels))))
    return found


def _even_and_odd(size: int) -> tuple[Tensor, Tensor]:
    """Orthonormal bases of the vectors that are even, and odd, under reversal, in columns."""
    eye = torch.eye(size, dtype=torch.float64)
    half, middle = size // 2, size - size // 2
    even = eye[:, :middle] + eye.flip(0)[:, :middle]
    odd = eye[:, :half] - eye.flip(0)[:, :half]
    return even / even.norm(dim=0), odd / math.sqrt(2)


def _symmetric_and_antisymmetric(basis: Tensor) -> list[Tensor]:
    """Split the span of b_i b_j^T into its symmetric and antisymmetric matrices; each (size * size, number)."""
    size, number = basis.shape
    i, j = torch.triu_indices(number, number)
    products = torch.einsum("rk,ck->rck", basis[:, i], basis[:, j])
    symmetric = (products + products.transpose(0, 1)).reshape(size * size, -1)
    antisymmetric = (products - products.transpose(0, 1)).reshape(size * size, -1)[:, i != j]
    return [symmetric / symmetric.norm(dim=0), antisymmetric / math.sqrt(2)]


def _all_channels(basis: Tensor, channels: int) -> Tensor:
    return torch.kron(torch.eye(channels, dtype=torch.float64), basis)


def contradicted_symmetry(
    jacobians: Sequence[Tensor], group: SymmetryGroup, image_shape: tuple[int, int, int]
) -> str | None:
    """Test a group that was named without proof against networks; what they contradict, in words, or None.

    Directions u are taken from half of the Jacobians J, of shape (D, k), where they prefer most; on the other half
    (u^T g)² is compared with the same for the moved direction, by a paired t-test for each u and symmetry, with
    Bonferroni's correction.
    """
    chosen, tested = jacobians[0::2], [jacobian.double() for jacobian in jacobians[1::2]]
    if len(tested) < 3:
        return None
    stacked = torch.cat(list(chosen), dim=1).double()
    directions = torch.linalg.svd(stacked, full_matrices=False).U.T[:16].reshape(-1, *image_shape)
    moves = symmetries_of(group)[1:]
    threshold = -float(special.stdtrit(len(tested) - 1, 0.5e-3 / (len(directions) * len(moves))))

    def energies(vectors: Tensor) -> Tensor:
        return torch.stack([(vectors.flatten(1) @ jacobian).square().sum(1) for jacobian in tested])

    original = energies(directions)
    for symmetry in moves:
        difference = original - energies(apply_symmetry(directions, symmetry))
        errors = difference.std(0) / len(tested) ** 0.5
        # Rounding alone must not count as evidence.
        largest = float((difference.mean(0).abs() / (errors + 1e-6 * original.mean())).max())
        if largest > threshold:
            return (
                f"the networks contradict the symmetry {symmetry!r} of the group {group!r}: along some direction they "
                f"differ by {largest:.1f} standard errors"
            )
    return None
