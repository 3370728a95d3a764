"""Checks of arguments: what was got, what is expected, and the argument's name, before anything is computed.

Each function returns the value that it has checked, in the form in which it is computed with.
"""

from __future__ import annotations

import inspect
import math
import numbers
import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "as_numbers", "as_real", "broadcast", "check_seed", "check_shape", "choice", "file_path", "flags",
    "floating_dtype", "function", "images", "instance", "integer", "integers", "labels", "nonnegative_number", "number",
    "number_of_jobs", "pair", "permutation", "positive_int", "positive_number", "tensor",
]  # fmt: skip

T = TypeVar("T", bound=str)

FLOATING = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
LARGEST = 2**31 - 1  # no size is larger
LARGE = 1e30  # no number is larger: single precision holds it, and double precision what the formulas make of it


def _refuse(name: str, value: Any, expected: str) -> ValueError:
    return ValueError(f"got {name}={_shown(value)}; expected {expected}")


def _refuse_type(name: str, value: Any, expected: str) -> TypeError:
    return TypeError(f"got {name}={_shown(value)} of type {type(value).__name__}; expected {expected}")


def _shown(value: Any) -> str:
    """A value in a message, short whatever it is."""
    if isinstance(value, Tensor | np.ndarray) and value.ndim:
        return f"{value.dtype} {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _item(value: Any) -> Any:
    """A number out of an array without dimensions; anything else as it is. Bools are no numbers here."""
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 0 and getattr(value, "is_meta", False) is False:
        value = value.item()
    return None if isinstance(value, bool | np.bool_) else value


def integer(name: str, value: Any, least: int = -LARGEST, most: int = LARGEST, expected: str = "an int") -> int:
    """Return an int between bounds."""
    try:
        found = operator.index(_item(value))
    except TypeError:
        raise _refuse_type(name, value, expected) from None
    if not least <= found <= most:
        raise _refuse(name, found, f"{expected} up to {most:,}" if found > most == LARGEST else expected)
    return found


def positive_int(name: str, value: Any, most: int = LARGEST) -> int:
    """Return an int of at least 1."""
    return integer(name, value, 1, most, "a positive int")


def check_seed(seed: Any, name: str = "seed") -> int:
    """Return a non-negative int of any size."""
    found = integer(name, seed, 0, 2**4096, "a non-negative int")
    return seed if isinstance(seed, int) else found  # a derived seed stays one


def number_of_jobs(num_jobs: Any) -> int | None:
    """Return a number of processes, -1 for one on each core, or None."""
    expected = "a positive int, -1 for one on each core, or None"
    if num_jobs is not None and integer("num_jobs", num_jobs, -1, 4096, expected) == 0:
        raise _refuse("num_jobs", num_jobs, expected)
    return num_jobs if num_jobs is None else operator.index(num_jobs)


def number(
    name: str, value: Any, least: float = -LARGE, most: float = LARGE, expected: str = "a finite number"
) -> float:
    """Return a float between bounds; texts and bools are no numbers."""
    item = _item(value)
    if not isinstance(item, numbers.Real):
        raise _refuse_type(name, value, expected)
    try:
        found = float(item)
    except OverflowError:  # an int
        found = math.inf
    if not least <= found <= most:  # false for NaN, too
        raise _refuse(name, found, f"{expected} up to {most:g}" if most < found < math.inf else expected)
    return found


def positive_number(name: str, value: Any, most: float = LARGE) -> float:
    """Return a float above zero; not so small that single precision would make it zero."""
    return number(name, value, 1 / LARGE, most, "a positive number")


def nonnegative_number(name: str, value: Any) -> float:
    """Return a float of at least zero."""
    return number(name, value, 0.0, expected="zero or a positive number")


def pair(name: str, value: Any, expected: str = "two values") -> tuple[Any, Any]:
    """Return the two entries of a tuple or list."""
    if not isinstance(value, tuple | list):
        raise _refuse_type(name, value, expected)
    if len(value) != 2:
        raise _refuse(name, value, expected)
    return value[0], value[1]


def integers(name: str, values: Any, least: int = 0, most: int = LARGEST, expected: str = "ints") -> list[int]:
    """Return the ints of a sequence, array or other iterable."""
    if isinstance(values, str | bytes | dict) or not hasattr(values, "__iter__") or getattr(values, "ndim", 1) != 1:
        raise _refuse_type(name, values, f"a sequence of {expected}")
    return [integer(f"{name}[{number}]", value, least, most, expected) for number, value in enumerate(values)]


def check_shape(name: str, shape: Any, dimensions: Sequence[int] = (2,)) -> tuple[int, ...]:
    """Return a shape as a tuple of positive ints."""
    expected = f"a tuple of {' or '.join(map(str, dimensions))} positive sizes, for instance (32, 32)"
    if not isinstance(shape, Sequence) or isinstance(shape, str | bytes):
        raise _refuse_type(name, shape, expected)
    try:
        sizes = tuple(positive_int(name, size) for size in shape)
    except (TypeError, ValueError) as error:
        raise type(error)(f"got {name}={_shown(shape)}; expected {expected}") from None
    if len(sizes) not in dimensions or math.prod(sizes) > LARGEST:
        raise _refuse(name, shape, expected)
    return sizes


def choice(name: str, value: Any, known: Sequence[T]) -> T:
    """Return one of several texts."""
    if not isinstance(value, str) or value not in known:
        raise _refuse(name, value, f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}")
    return next(one for one in known if one == value)


def flags(**values: Any) -> None:
    """Refuse what is neither True nor False."""
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise _refuse_type(name, value, "True or False")


def instance(name: str, value: Any, kind: type | tuple[type, ...], expected: str) -> None:
    """Refuse values of another type."""
    if not isinstance(value, kind):
        raise TypeError(f"got {name} of type {type(value).__name__}; expected {expected}")


def function(name: str, value: Any, expected: str, num_arguments: int) -> None:
    """Refuse what cannot be called with so many arguments."""
    if not callable(value):
        raise _refuse_type(name, value, expected)
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return  # written in C, for instance
    try:
        signature.bind(*range(num_arguments))
    except TypeError as error:
        raise TypeError(f"got {name}={_shown(value)}, to be called with {num_arguments} arguments: {error}") from None


def file_path(name: str, value: Any) -> Path:
    """Return the path of a file or a folder."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise _refuse_type(name, value, "a path")
    if not text or "\0" in text or text == ":memory:":
        raise _refuse(name, value, "the path of a file")
    return Path(value)


def floating_dtype(dtype: Any) -> torch.dtype:
    """Return a floating-point dtype."""
    if not isinstance(dtype, torch.dtype) or dtype not in FLOATING:
        raise _refuse_type("dtype", dtype, f"one of {', '.join(map(str, FLOATING))}")
    return dtype


def tensor(
    name: str,
    value: Any,
    dtypes: Sequence[torch.dtype] = FLOATING,
    expected: str = "a floating-point tensor",
    *,
    finite: bool = True,
) -> Tensor:
    """Return a dense tensor of finite numbers, detached."""
    if not isinstance(value, Tensor) or value.dtype not in dtypes:
        kind = f"dtype {value.dtype}" if isinstance(value, Tensor) else f"type {type(value).__name__}"
        raise TypeError(f"got {name} of {kind}; expected {expected}")
    if value.layout != torch.strided or value.is_meta:
        kind = "on the device 'meta', without numbers" if value.is_meta else f"with layout {value.layout}"
        raise TypeError(f"got {name} {kind}; expected {expected}, dense")
    value = value.detach()
    # The extremes are NaN or infinite if any entry is; nothing of the size of the tensor is held beside it.
    parts = torch.view_as_real(value) if value.is_complex() else value
    if finite and value.numel() and not all(math.isfinite(float(extreme)) for extreme in torch.aminmax(parts)):
        raise ValueError(f"got {name} with NaN or infinite entries; expected finite numbers")
    return value


def images(name: str, value: Any, dtypes: Sequence[torch.dtype] = FLOATING, *, finite: bool = True) -> Tensor:
    """Return a batch of images, at least one: shape (n, channels, h, w)."""
    kinds = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
    value = tensor(name, value, dtypes, f"a tensor of {kinds}: x.float() / 255 converts uint8", finite=finite)
    if value.ndim != 4 or not value.numel():
        raise ValueError(f"got {name} of shape {tuple(value.shape)}; expected (n, channels, height, width), n >= 1")
    return value


def labels(name: str, value: Any, count: int | None = None, num_classes: int = LARGEST) -> Tensor:
    """Return labels from 0, int64; as many as are expected, all below the number of classes."""
    value = tensor(name, value, INTEGERS, "a tensor of integers")
    if value.ndim != 1 or (count is not None and len(value) != count):
        raise ValueError(f"got {name} of shape {tuple(value.shape)}; expected ({'n' if count is None else count},)")
    low, high = map(int, torch.aminmax(value)) if len(value) else (0, 0)
    if low < 0 or high >= num_classes:
        most = f" to {num_classes - 1}" if num_classes < LARGEST else ""
        raise ValueError(f"got {name} from {low} to {high}; expected labels from 0{most}")
    return value.to(torch.int64)


def permutation(name: str, value: Any, count: int) -> Tensor:
    """Return each of 0 to count - 1 once, int64."""
    value = tensor(name, value, INTEGERS, "a tensor of integers, as torch.randperm makes").to(torch.int64)
    if value.shape != (count,) or not torch.equal(value.cpu().sort().values, torch.arange(count)):
        raise ValueError(f"got {name} of shape {tuple(value.shape)}; expected each of 0 to {count - 1} once")
    return value


def as_real(name: str, value: Any, expected: str = "real numbers", *, finite: bool = True) -> Tensor:
    """Return an array of real numbers, or a number, as a float64 tensor on the CPU."""
    kinds = (*FLOATING, *INTEGERS, torch.bool)
    return as_numbers(name, value, kinds, expected, finite=finite).to(torch.float64)


def as_numbers(name: str, value: Any, dtypes: Sequence[torch.dtype], expected: str, *, finite: bool = True) -> Tensor:
    """Return an array, a list or a number as a tensor on the CPU."""
    try:
        # By way of NumPy, numbers and lists of them become float64; PyTorch alone would round them to float32.
        found = value if isinstance(value, Tensor) else torch.as_tensor(np.array(value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"got {name} of type {type(value).__name__} ({error}); expected {expected}") from None
    return tensor(name, found, dtypes, expected, finite=finite).cpu()


def broadcast(**values: Any) -> tuple[Tensor, ...]:
    """Check that the values are not negative, and broadcast them to a common shape."""
    found = {name: as_real(name, value) for name, value in values.items()}
    for name, entries in found.items():
        if not bool((entries >= 0).all()):
            raise ValueError(f"got {name} with negative values; expected zero or positive numbers")
    try:
        return torch.broadcast_tensors(*found.values())
    except RuntimeError:
        shapes = ", ".join(f"{name} {tuple(entries.shape)}" for name, entries in found.items())
        raise ValueError(f"got shapes that do not fit: {shapes}; expected ones that broadcast") from None
