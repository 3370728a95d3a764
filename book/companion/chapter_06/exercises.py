"""Exercises of chapter 6."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from companion.grading import Exercise, UnexpectedAnswer, call, close, compare_number, describe, read_number


def _draw(*shape: int, seed: int = 10) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


_LAYER_SIGNATURE = "through_convolution(G, kernel, size)"


def _grade_layer(answer: Any) -> str | None:
    remarks = []
    for kernel, size in ((3, 8), (2, 5), (5, 7)):
        out = size - kernel + 1
        root = _draw(out, out)
        G = root @ root.T
        returned = call(answer, _LAYER_SIGNATURE, f"a matrix of {size} by {size}", G.clone(), kernel, size)
        if not isinstance(returned, Tensor) or returned.shape != (size, size):
            shape = tuple(returned.shape) if isinstance(returned, Tensor) else describe(returned)
            raise UnexpectedAnswer(f"Expected a tensor of shape {(size, size)} for kernel={kernel}, but got {shape}.")
        # Each weight of the kernel places the output at its own offset.
        places = torch.stack([torch.eye(size, dtype=G.dtype)[offset : offset + out] for offset in range(kernel)])
        right = torch.einsum("oqp,qr,ors->ps", places, G, places)
        mixed = torch.einsum("oqp,qr,urs->ps", places, G, places)
        if torch.allclose(returned.to(G.dtype), right):
            remarks.append("")
        elif torch.allclose(returned.to(G.dtype), mixed):
            remarks.append("These offsets are chosen for each position by itself. Different weights are uncorrelated.")
        elif torch.allclose(returned.to(G.dtype), right / kernel):
            remarks.append("It is the sum over offsets, not their mean.")
        else:
            return ""
    return next(filter(None, remarks), None)


def _grade_wave(answer: Any) -> str | None:
    value = read_number(answer)
    if close(value, 8, 1e-9):
        return None
    if close(value, 5, 1e-9):
        return "This is the window. The frequency counts periods in all 40 rows."
    return "Every window has to hold whole periods." if value > 0 and 40 % value == 0 else ""


def _grade_lost(answer: Any) -> str | None:
    product = "A direction of the image is lost if either factor loses it. Count those that both keep."
    return compare_number(answer, 3, 1e-9, ((183 / 32, product), (183**0.5, product), (29, "So many are kept.")))


EXERCISES = (
    Exercise(
        "06-1",
        "One convolution of the recursion, in one dimension.",
        _grade_layer,
        (
            "The weight at offset o takes output q to the input position q + o.",
            "For each offset add G, moved by the offset along both axes, to a matrix of zeros.",
        ),
    ),
    Exercise(
        "06-2",
        "The lowest vertical frequency that an average over five rows loses, of 40 rows.",
        _grade_wave,
        ("How long, in rows, is one period of frequency i?", "40 / i rows have to divide 5."),
    ),
    Exercise(
        "06-3",
        "How many of 32 directions each factor of LeNet's covariance loses, where 183 of 1,024 are lost.",
        _grade_lost,
        ("What does a product of two keep?", "With n lost of 32, (32 − n)² are kept."),
    ),
)
