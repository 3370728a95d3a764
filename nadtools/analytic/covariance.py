r"""Covariances over the positions of a feature map, and what linear layers do to them.

The covariance :math:`G(p, p')` of one channel's signal at positions p = (row, column) is kept as a Kronecker product
:math:`c\,G_1 \otimes G_2`, one factor for each axis, as long as it is one: all linear layers act on one axis at a time,
so only sums of different products end that. Then it is an array with two entries for each axis.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from nadtools.device import require_memory

__all__ = ["AxisMap", "Covariance", "fixed", "kernel", "mixing"]

Change = Callable[[Tensor], Tensor]  # of arrays (left, n, n, right)

_SAME = 1e-13  # relative deviation up to which an array counts as a product: a hundred times the rounding of a layer


@dataclasses.dataclass(frozen=True)
class AxisMap:
    """What a layer does to covariances along an axis: of the signal that comes back, and of the one that goes ahead."""

    back: Change
    ahead: Change


def fixed(matrix: Tensor) -> AxisMap:
    r"""A linear map A, of shape (out, in): :math:`A^T G A`, and :math:`A K A^T` ahead."""

    def through(a: Tensor) -> Change:
        return lambda g: torch.einsum("lqsr,qp,st->lptr", g, a, a)

    return AxisMap(through(matrix.double()), through(matrix.double().T))


def kernel(size: int, out: int, width: int, stride: int, padding: int, dilation: int) -> AxisMap:
    """Independent weights for the offsets of a kernel: the sum over offsets, which move both ends alike."""
    moves = []
    for offset in (number * dilation - padding for number in range(width)):
        first, last = max(0, -(offset // stride)), min(out - 1, (size - 1 - offset) // stride)
        if first <= last:
            entries = slice(first, last + 1)  # of the result, and what they see:
            moves.append((entries, slice(first * stride + offset, last * stride + offset + 1, stride)))

    def summed(g: Tensor, moves: Iterable[tuple[slice, slice]], size: int) -> Tensor:
        result = g.new_zeros(g.shape[0], size, size, g.shape[3])
        for source, target in moves:
            result[:, target, target] += g[:, source, source]
        return result

    return AxisMap(lambda g: summed(g, moves, size), lambda k: summed(k, [move[::-1] for move in moves], out))


def mixing(size: int, out: int) -> AxisMap:
    r"""Independent weights W between positions of an axis: :math:`E[W^T G W] = \mathrm{Var}(w)\,\mathrm{tr}G\,I`."""

    def traced(n: int) -> Change:
        return lambda g: torch.einsum("lqqr,pt->lptr", g, torch.eye(n, dtype=g.dtype))

    return AxisMap(traced(size), traced(out))


@dataclasses.dataclass(frozen=True, eq=False)
class Covariance:
    """A covariance over positions, float64."""

    sizes: tuple[int, ...]  #: of the axes of positions; () for a single number
    scale: float = 1.0  #: multiplies all that follows
    factors: tuple[Tensor, ...] | None = None  #: one (n, n) matrix for each axis, for a Kronecker product
    array: Tensor | None = None  #: otherwise: shape (n₁, n₁, n₂, n₂)

    @classmethod
    def product(cls, factors: Sequence[Tensor], scale: float = 1.0) -> Covariance:
        """The Kronecker product of these matrices."""
        return cls(tuple(len(factor) for factor in factors), scale, tuple(f.to(torch.float64) for f in factors))

    @classmethod
    def constant(cls, sizes: Sequence[int], scale: float = 1.0) -> Covariance:
        """The same signal at all positions."""
        return cls.product([torch.ones(size, size) for size in sizes], scale)

    @classmethod
    def from_matrix(cls, matrix: Tensor, sizes: Sequence[int]) -> Covariance:
        """From a (P, P) matrix; a Kronecker product of two factors is recognised."""
        if len(sizes) < 2:
            return cls.product([matrix] if sizes else [], 1.0 if sizes else float(matrix))
        rows, columns = sizes
        array = matrix.reshape(rows, columns, rows, columns).transpose(1, 2)
        table = array.reshape(rows**2, columns**2)
        row, column = divmod(int(table.abs().argmax()), columns**2)
        pivot = float(table[row, column])
        if pivot == 0:
            return cls.constant(sizes, 0.0)
        left, right = table[:, column] / pivot, table[row]
        if float((table - left[:, None] * right).abs().max()) > _SAME * abs(pivot):
            return cls((rows, columns), 1.0, None, array)
        return cls.product([left.view(rows, rows), right.view(columns, columns)])

    @property
    def is_product(self) -> bool:
        """Whether it is kept as a Kronecker product."""
        return self.factors is not None

    def dense(self) -> Tensor:
        """As an array of shape (n₁, n₁, n₂, n₂)."""
        if self.factors is None:
            assert self.array is not None
            return self.array * self.scale if self.scale != 1 else self.array
        _check_memory(self.sizes)
        start = torch.tensor(self.scale, dtype=torch.float64)
        return functools.reduce(lambda array, factor: array[..., None, None] * factor, self.factors, start)

    def matrix(self) -> Tensor:
        """As a matrix of shape (P, P), positions row by row."""
        count, axes = math.prod(self.sizes), range(2 * len(self.sizes))
        return self.dense().permute([*axes[::2], *axes[1::2]]).reshape(count, count)

    def diagonal(self) -> Tensor:
        """The variances, of shape ``sizes``."""
        if self.factors is None:
            return self.matrix().diagonal().reshape(self.sizes)
        start = torch.tensor(self.scale, dtype=torch.float64)
        return functools.reduce(lambda array, factor: array[..., None] * factor.diagonal(), self.factors, start)

    def quadratic(self, v: Tensor) -> float:
        r""":math:`v^T G v` for a v of shape ``sizes``, at any size for a Kronecker product."""
        v = v.detach().to("cpu", torch.float64)
        if self.factors is None:
            return float(v.flatten() @ self.matrix() @ v.flatten())
        moved = v
        for axis, factor in enumerate(self.factors):
            moved = torch.tensordot(factor, moved, dims=([1], [axis])).movedim(0, axis)
        return self.scale * float((moved * v).sum())

    def scaled(self, gain: float) -> Covariance:
        """Times a number."""
        return dataclasses.replace(self, scale=self.scale * gain)

    def __add__(self, other: Covariance) -> Covariance:
        if self.is_product and other.is_product:
            return Covariance.from_matrix(self.matrix() + other.matrix(), self.sizes)
        return Covariance(self.sizes, 1.0, None, self.dense() + other.dense())

    def through(self, changes: Iterable[Change]) -> Covariance:
        """Changed along one axis after the other."""
        if self.factors is not None:
            changed = [change(f[None, ..., None])[0, ..., 0] for change, f in zip(changes, self.factors, strict=True)]
            return Covariance.product(changed, self.scale)
        array, sizes = self.array, list(self.sizes)
        assert array is not None
        for axis, change in enumerate(changes):
            left, size = math.prod(sizes[:axis]) ** 2, sizes[axis]
            sizes[axis] = change(array.new_empty(1, size, size, 0)).shape[1]  # before it takes memory
            _check_memory(sizes)
            array = change(array.reshape(left, size, size, -1)).reshape([n for n in sizes for _ in range(2)])
        return Covariance(tuple(sizes), self.scale, None, array)

    def map(self, function: Callable[[Tensor], Tensor]) -> Covariance:
        """A function of the (P, P) matrix."""
        return Covariance.from_matrix(function(self.matrix()), self.sizes)


def _check_memory(sizes: Sequence[int]) -> None:
    what = f"covariances of a map of {'x'.join(map(str, sizes))} positions, which are no Kronecker product,"
    advice = "use a smaller image_size (networks without shortcuts or branches need no such array)"
    require_memory(3 * 8 * math.prod(sizes) ** 2, what, advice)  # for three such arrays at a time
