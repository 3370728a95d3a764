"""Maps of single axes: what PyTorch's own layers make of unit vectors, and the shifts of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nadtools.analytic.covariance import Shift
from nadtools.analytic.operations import Call, Operation, Place

__all__ = ["as_tuple", "chained", "shifts_of", "spatial", "unit_vectors"]


def unit_vectors(size: int, function: Callable[[Tensor], Tensor]) -> Tensor:
    """The (out, in) matrix of a linear map of signals of shape (n, 1, size)."""
    return function(torch.eye(size, dtype=torch.float64)[:, None])[:, 0].T


def as_tuple(value: Any, count: int) -> tuple[Any, ...]:
    """One value for each of so many axes."""
    return tuple(value) if isinstance(value, tuple | list) else (value,) * count


def spatial(call: Call, count: int) -> Place:
    """The place of a layer's input, which must be a map with so many axes."""
    place = call.inputs[0]
    if place.kinds != "c" + "p" * count:
        call.refuse(f"it expects channels and {count} axes of positions, and got axes of the kinds {place.kinds!r}")
    return place


def shifts_of(size: int, out: int, kernel: int, stride: int, padding: int, dilation: int) -> list[Shift]:
    """For each offset of a kernel: entries of the result, and the entries of the input that they see."""
    found = []
    for offset in range(kernel):
        position = offset * dilation - padding
        first = max(0, -(position // stride))
        last = min(out - 1, (size - 1 - position) // stride)
        if first <= last:
            start = first * stride + position
            source = slice(first, last + 1)
            found.append((source, slice(start, last * stride + position + 1, stride)))
    return found


def chained(first: Operation, second: Operation) -> Operation:
    """One operation after the other."""
    assert first.forward is not None and second.forward is not None
    ahead, further = first.forward, second.forward
    return Operation(
        second.kinds,
        lambda signal, inputs: first.backward(second.backward(signal, inputs)[0], inputs),  # type: ignore[arg-type]
        lambda inputs: further([ahead(inputs)]),
        first.note or second.note,
    )
