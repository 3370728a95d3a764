r"""Covariances over the positions of a feature map, and what linear layers do to them.

The covariance :math:`G(p, p')` of one channel's signal at positions p = (row, column) is kept as a Kronecker product
:math:`c\,G_1 \otimes G_2 \otimes \dots`, one factor for each axis, as long as it is one: all operations here act on one
axis at a time, so only sums of different products end that. Then it is an array with two entries for each axis.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from nadtools.device import available_memory

__all__ = ["Covariance", "Shift"]

Shift = tuple[slice, slice]  # entries of one axis, and the entries of another that they go to

_SAME = 1e-13  # relative difference below which two factors count as one: a hundred times the rounding of a layer
_COPIES = 3  # dense arrays that an operation holds at a time


@dataclasses.dataclass(frozen=True, eq=False)
class Covariance:
    """A covariance over positions, float64.

    Attributes
    ----------
    sizes : tuple of int
        Of the axes of positions; () for a single number.
    scale : float
        Multiplies all that follows.
    factors : tuple of Tensor, or None
        One (n, n) matrix for each axis, if the covariance is a Kronecker product.
    array : Tensor or None
        Otherwise: shape (n₁, n₁, n₂, n₂, ...).
    """

    sizes: tuple[int, ...]
    scale: float = 1.0
    factors: tuple[Tensor, ...] | None = None
    array: Tensor | None = None

    @classmethod
    def product(cls, factors: Sequence[Tensor], scale: float = 1.0) -> Covariance:
        """The Kronecker product of these matrices."""
        return cls(tuple(len(factor) for factor in factors), scale, tuple(f.to(torch.float64) for f in factors))

    @classmethod
    def identity(cls, sizes: Sequence[int], scale: float = 1.0) -> Covariance:
        """Uncorrelated positions."""
        return cls.product([torch.eye(size, dtype=torch.float64) for size in sizes], scale)

    @classmethod
    def constant(cls, sizes: Sequence[int], scale: float = 1.0) -> Covariance:
        """The same signal at all positions."""
        return cls.product([torch.ones(size, size, dtype=torch.float64) for size in sizes], scale)

    @classmethod
    def from_matrix(cls, matrix: Tensor, sizes: Sequence[int]) -> Covariance:
        """From a (P, P) matrix; a Kronecker product of two factors is recognised."""
        sizes, order = tuple(sizes), _interleaved(len(sizes))
        return cls(sizes, 1.0, None, matrix.reshape(*sizes, *sizes).permute(order))._separated()

    @property
    def is_product(self) -> bool:
        """Whether it is kept as a Kronecker product."""
        return self.factors is not None

    def dense(self) -> Tensor:
        """As an array of shape (n₁, n₁, n₂, n₂, ...)."""
        if self.array is not None:
            return self.array * self.scale if self.scale != 1 else self.array
        self._check_memory()
        assert self.factors is not None
        result = torch.full((), self.scale, dtype=torch.float64)
        for factor in self.factors:
            result = result[..., None, None] * factor
        return result

    def matrix(self) -> Tensor:
        """As a matrix of shape (P, P), positions row by row."""
        order, count = _interleaved(len(self.sizes)), math.prod(self.sizes)
        back = sorted(range(len(order)), key=order.__getitem__)
        return self.dense().permute(back).reshape(count, count)

    def diagonal(self) -> Tensor:
        """The variances, of shape ``sizes``."""
        if self.factors is None:
            return self.matrix().diagonal().reshape(self.sizes)
        result = torch.full((), self.scale, dtype=torch.float64)
        for factor in self.factors:
            result = result[..., None] * factor.diagonal()
        return result

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
        if self.scale == 0 or other.scale == 0:
            return other if self.scale == 0 else self
        if self.factors is not None and other.factors is not None:
            ratios = [_ratio(a, b) for a, b in zip(self.factors, other.factors, strict=True)]
            different = [axis for axis, ratio in enumerate(ratios) if ratio is None]
            common = other.scale / self.scale * math.prod(ratio for ratio in ratios if ratio is not None)
            if not different:
                return self.scaled(1 + common)
            if len(different) == 1:
                axis = different[0]
                return self._with_factor(axis, self.factors[axis] + common * other.factors[axis])
        return Covariance(self.sizes, 1.0, None, self.dense() + other.dense())

    def congruent(self, axis: int, matrix: Tensor) -> Covariance:
        """The covariance of Mᵀ applied to the signal along an axis; M has shape (n, m) and the axis becomes m long."""
        if self.factors is not None:
            return self._with_factor(axis, matrix.T @ self.factors[axis] @ matrix)

        def apply(array: Tensor) -> Tensor:
            half = torch.einsum("lqtr,qp->lptr", array, matrix)
            return torch.einsum("lptr,ts->lpsr", half, matrix)

        return self._on_axis(axis, apply, matrix.shape[1])

    def shifted(self, axis: int, shifts: Sequence[Shift], size: int) -> Covariance:
        """The sum, over shifts, of the signal's covariance moved along an axis: both ends by the same shift."""

        def apply(array: Tensor) -> Tensor:
            result = array.new_zeros(array.shape[0], size, size, array.shape[3])
            for source, target in shifts:
                result[:, target, target] += array[:, source, source]
            return result

        if self.factors is not None:
            return self._with_factor(axis, apply(self.factors[axis][None, :, :, None])[0, :, :, 0])
        return self._on_axis(axis, apply, size)

    def whitened(self, axis: int, size: int) -> Covariance:
        """The trace over an axis, times the identity on a new axis of this size in its place."""
        eye = torch.eye(size, dtype=torch.float64)
        if self.factors is not None:
            return self._with_factor(axis, self.factors[axis].trace() * eye)
        return self._on_axis(axis, lambda a: torch.einsum("lppr,st->lstr", a, eye), size)

    def permuted(self, order: Sequence[int]) -> Covariance:
        """With its axes in another order."""
        sizes = tuple(self.sizes[axis] for axis in order)
        if self.factors is not None:
            return dataclasses.replace(self, sizes=sizes, factors=tuple(self.factors[axis] for axis in order))
        assert self.array is not None
        pairs = [entry for axis in order for entry in (2 * axis, 2 * axis + 1)]
        return dataclasses.replace(self, sizes=sizes, array=self.array.permute(pairs))

    def reshaped(self, sizes: Sequence[int]) -> Covariance:
        """With its axes merged or split, positions in the same order."""
        sizes = tuple(sizes)
        if sizes == self.sizes:
            return self
        ours, theirs = ([n for n in shape if n > 1] for shape in (self.sizes, sizes))
        if self.factors is not None and ours == theirs:
            left = iter(factor for factor in self.factors if len(factor) > 1)
            ones = math.prod(float(factor) for factor in self.factors if len(factor) == 1)
            single = torch.ones(1, 1, dtype=torch.float64)
            return Covariance.product([next(left) if n > 1 else single for n in sizes], self.scale * ones)
        return Covariance.from_matrix(self.matrix(), sizes)

    def map(self, function: Callable[[Tensor], Tensor]) -> Covariance:
        """A function of the (P, P) matrix."""
        return Covariance.from_matrix(function(self.matrix()), self.sizes)

    def times(self, other: Covariance) -> Covariance:
        """The product entry by entry."""
        if self.factors is not None and other.factors is not None:
            factors = [a * b for a, b in zip(self.factors, other.factors, strict=True)]
            return Covariance.product(factors, self.scale * other.scale)
        return Covariance(self.sizes, 1.0, None, self.dense() * other.dense())

    def _with_factor(self, axis: int, factor: Tensor) -> Covariance:
        assert self.factors is not None
        factors = (*self.factors[:axis], factor, *self.factors[axis + 1 :])
        sizes = (*self.sizes[:axis], len(factor), *self.sizes[axis + 1 :])
        return Covariance(sizes, self.scale, factors)

    def _on_axis(self, axis: int, apply: Callable[[Tensor], Tensor], size: int) -> Covariance:
        """Apply a function of arrays (left, n, n, right) to an axis of a dense array."""
        assert self.array is not None
        sizes = (*self.sizes[:axis], size, *self.sizes[axis + 1 :])
        grown = Covariance(sizes)
        grown._check_memory()
        left = math.prod(self.sizes[:axis]) ** 2
        result = apply(self.array.reshape(left, self.sizes[axis], self.sizes[axis], -1))
        return Covariance(sizes, self.scale, None, result.reshape([n for n in sizes for _ in range(2)]))

    def _separated(self) -> Covariance:
        """A dense array of two axes as a Kronecker product if it is one; of one axis always."""
        assert self.array is not None
        if len(self.sizes) < 2:
            return Covariance.product([self.array] if self.sizes else [], 1.0 if self.sizes else float(self.array))
        if len(self.sizes) > 2:
            return self
        first, second = (n**2 for n in self.sizes)
        table = self.array.reshape(first, second)
        largest = int(table.abs().argmax())
        row, column = divmod(largest, second)
        pivot = float(table[row, column])
        if pivot == 0:
            return Covariance.constant(self.sizes, 0.0)
        left, right = table[:, column] / pivot, table[row]
        if float((table - left[:, None] * right).abs().max()) > _SAME * abs(pivot):
            return self
        return Covariance.product([left.view([self.sizes[0]] * 2), right.view([self.sizes[1]] * 2)])

    def _check_memory(self) -> None:
        needed, free = 8 * _COPIES * math.prod(self.sizes) ** 2, available_memory(torch.device("cpu"))
        if free is not None and needed > free:
            raise MemoryError(
                f"the covariance of a map of {'x'.join(map(str, self.sizes))} positions, which is no Kronecker "
                f"product, needs about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free; use a smaller "
                "image_size (networks without shortcuts or branches need no such array)"
            )


def _interleaved(count: int) -> list[int]:
    """The order of axes that takes (n₁, n₂, ..., n₁, n₂, ...) to (n₁, n₁, n₂, n₂, ...)."""
    return [entry for axis in range(count) for entry in (axis, count + axis)]


def _ratio(a: Tensor, b: Tensor) -> float | None:
    """The number c of b = c a, up to rounding, or None."""
    position = int(a.abs().argmax())
    pivot = float(a.flatten()[position])
    ratio = float(b.flatten()[position]) / pivot if pivot else 0.0
    return ratio if ratio and float((b - ratio * a).abs().max()) <= _SAME * abs(ratio * pivot) else None
