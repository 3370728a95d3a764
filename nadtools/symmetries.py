r"""Symmetries of the image, and the sectors into which they split a covariance.

If a network's law at initialisation does not change when the image is moved by g, its gradient covariance commutes
with g. A matrix that commutes with a whole group is block-diagonal in a basis adapted to the group: the *sectors*
here. Averaging a covariance over the group is then the same as keeping its sector blocks and dropping the rest, and
the eigenvectors of the average are found block by block.

The eight symmetries of the square have one two-dimensional representation, so about half of all eigenvalues come in
exactly equal pairs. Inside such a pair only the plane is defined. We take in it the vector u that is odd under the
left-right mirror image and even under the up-down one, followed by its transpose.

Symmetries of one's own are permutations of the inputs. To average C over the group that they generate is to take the
mean over each orbit of the pairs (i, j) -> (g(i), g(j)); the group itself need not be listed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy import sparse, special
from torch import Tensor

from nadtools import checks

__all__ = [
    "Sector", "SymmetryGroup", "apply_symmetry", "check_group", "check_permutations", "contradicted_symmetry",
    "orbits_of_pairs", "permutations_of", "sectors", "symmetries_of",
]  # fmt: skip

SymmetryGroup = Literal["none", "transpose", "reflections", "square"]

_MOST_PERMUTED = 3072  # inputs: their pairs take half a gigabyte

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
# By what the symmetries multiply the images of a sector.
_SIGNS: dict[SymmetryGroup, tuple[dict[str, int], ...]] = {
    "none": ({},),
    "transpose": ({"transpose": 1}, {"transpose": -1}),
    "reflections": tuple({"up-down": row, "left-right": column} for row in (1, -1) for column in (1, -1)),
    "square": tuple(
        {"up-down": sign, "left-right": sign, "transpose": turned} for sign in (1, -1) for turned in (1, -1)
    ),
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
    check_group(group, image_shape)
    found: list[tuple[Tensor, ...]] = [(_with_signs(image_shape, signs),) for signs in _SIGNS[group]]
    if group == "square":
        # A vector of the first basis, as an image, is the transpose of one of the second.
        first = _with_signs(image_shape, {"up-down": 1, "left-right": -1})
        found.append((first, first.T.reshape(-1, *image_shape).mT.flatten(1).T))
    return [Sector(bases) for bases in found if bases[0].shape[1]]


def _with_signs(image_shape: tuple[int, int, int], signs: Mapping[str, int]) -> Tensor:
    """An orthonormal basis, in columns, of the images that some symmetries multiply by signs."""
    dimension = math.prod(image_shape)
    images = torch.eye(dimension, dtype=torch.float64).reshape(-1, *image_shape)
    for symmetry, sign in signs.items():
        images = images + sign * apply_symmetry(images, symmetry)
    rows = images.flatten(1)
    # Pixels that symmetries exchange give the same image up to its sign: the first of them stands for all.
    first = (rows != 0).to(torch.uint8).argmax(1) == torch.arange(dimension)
    rows = rows[first & rows.any(1)]
    return (rows / rows.norm(dim=1, keepdim=True)).T.contiguous()


def check_permutations(permutations: Any, image_shape: tuple[int, int, int]) -> tuple[Tensor, ...]:
    """Permutations of the pixels of each channel, (h, w), or of all inputs, (channels, h, w): each as one of (D,)."""
    checks.instance("symmetries", permutations, Sequence, "the name of a group, or a sequence of permutations")
    (channels, *size), dimension, checked = image_shape, math.prod(image_shape), []
    if not permutations or dimension > _MOST_PERMUTED:
        got = f"{len(permutations)} permutations of {dimension:,} inputs"
        raise ValueError(f"got symmetries={got}; expected at least one, of at most {_MOST_PERMUTED:,}")
    for number, given in enumerate(permutations):
        name = f"symmetries[{number}]"
        moved = checks.tensor(name, given, checks.INTEGERS, "a tensor of integers").cpu().long()
        if list(moved.shape) == size:
            moved = moved + math.prod(size) * torch.arange(channels)[:, None, None]
        if moved.shape != image_shape:
            raise ValueError(f"got {name} of shape {tuple(moved.shape)}; expected {tuple(size)} or {image_shape}")
        checked.append(checks.permutation(name, moved.flatten(), dimension))
    return tuple(checked)


def orbits_of_pairs(permutations: Sequence[Tensor]) -> Tensor:
    """A number for each pair of D inputs, (D * D,), equal where the generated group takes one pair to the other."""
    pairs = len(permutations[0]) ** 2
    targets = torch.stack([(len(g) * g[:, None] + g).flatten() for g in permutations], dim=1)
    starts = np.arange(0, targets.numel() + 1, len(permutations))
    graph = sparse.csr_array((np.ones(targets.numel(), np.int8), targets.flatten().numpy(), starts), (pairs, pairs))
    # Permutations lead in circles, so that what is connected is strongly connected.
    return torch.from_numpy(sparse.csgraph.connected_components(graph, connection="strong")[1])


def permutations_of(group: SymmetryGroup, image_shape: tuple[int, int, int]) -> dict[str, Tensor]:
    """The elements of a group but the identity, by name, as permutations (D,) of the inputs."""
    inputs = torch.arange(math.prod(image_shape)).reshape(image_shape)
    elements = symmetries_of(group)[1:]
    return {f"the symmetry {one!r} of the group {group!r}": apply_symmetry(inputs, one).flatten() for one in elements}


def contradicted_symmetry(jacobians: Sequence[Tensor], permutations: Mapping[str, Tensor]) -> str | None:
    """Test symmetries that are not proven, by name, against networks; what they contradict, in words, or None.

    Directions u are taken from half of the Jacobians J, of shape (D, k), where they prefer most; on the other half
    (u^T g)² is compared with the same for the moved direction, by a paired t-test for each u and symmetry, with
    Bonferroni's correction.
    """
    chosen, tested = jacobians[0::2], [jacobian.double() for jacobian in jacobians[1::2]]
    if len(tested) < 3:
        return None
    stacked = torch.cat(list(chosen), dim=1).double()
    directions = torch.linalg.svd(stacked, full_matrices=False).U.T[:16]
    threshold = -float(special.stdtrit(len(tested) - 1, 0.5e-3 / (len(directions) * len(permutations))))

    def energies(vectors: Tensor) -> Tensor:
        return torch.stack([(vectors @ jacobian).square().sum(1) for jacobian in tested])

    original = energies(directions)
    for name, permutation in permutations.items():
        difference = original - energies(directions[:, permutation])
        errors = difference.std(0) / len(tested) ** 0.5
        # Rounding alone must not count as evidence.
        largest = float((difference.mean(0).abs() / (errors + 1e-6 * original.mean())).max())
        if largest > threshold:
            return f"the networks contradict {name}: along some direction they differ by {largest:.1f} standard errors"
    return None
