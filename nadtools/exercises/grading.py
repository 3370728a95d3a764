"""What exercises are made of, and how their answers are read."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch


class UnexpectedAnswer(Exception):
    """The answer is not of the kind that the exercise asks for; the message says what is."""


@dataclass(frozen=True)
class Exercise:
    """A question with a grader and hints.

    Attributes
    ----------
    id
        ``"CHAPTER-NUMBER"``, for example ``"01-1"``.
    summary
        The question in one sentence.
    grade
        Takes an answer; returns None when it is right, else a remark on this answer (empty if there is none).
    hints
        From a nudge to nearly the solution.
    praise
        What a right answer is told.
    """

    id: str
    summary: str
    grade: Callable[[Any], str | None] = field(repr=False)
    hints: tuple[str, ...] = field(repr=False)
    praise: str = field(default="That is right.", repr=False)


def describe(answer: Any) -> str:
    """What kind of thing an answer is."""
    return f"a {type(answer).__name__}"


def read_number(answer: Any) -> float:
    """Read the answer as a finite float, or raise UnexpectedAnswer."""
    if isinstance(answer, torch.Tensor | np.ndarray) and math.prod(answer.shape) == 1:
        answer = answer.item()
    if isinstance(answer, bool | np.bool_) or not isinstance(answer, numbers.Real):
        raise UnexpectedAnswer(f"Expected one number, such as 0.75, but got {describe(answer)}.")
    try:
        value = float(answer)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise UnexpectedAnswer(f"Expected a finite number, but got {value}.")
    return value


def call(function: Any, signature: str, *arguments: Any) -> Any:
    """Call the reader's function; any failure inside it becomes a message."""
    if not callable(function):
        raise UnexpectedAnswer(f"Expected a function {signature}, without calling it, but got {describe(function)}.")
    try:
        return function(*arguments)
    except Exception as error:  # it is the reader's code: whatever it raises is reported, not re-raised
        raise UnexpectedAnswer(
            f"Your function raised {type(error).__name__}: {error}. It is called as {signature}."
        ) from None


def close(value: float, expected: float, tolerance: float) -> bool:
    """Whether two numbers differ by at most the tolerance."""
    return abs(value - expected) <= tolerance


def read_numbers(answer: Any, size: int, example: str) -> list[float]:
    """Read the answer as a vector of finite floats, or raise UnexpectedAnswer."""
    expected = f"Expected {size} numbers, such as {example}, but got "
    if isinstance(answer, torch.Tensor):
        answer = answer.detach().cpu().tolist()
    elif isinstance(answer, np.ndarray):
        answer = answer.tolist()
    if not isinstance(answer, tuple | list):
        raise UnexpectedAnswer(f"{expected}{describe(answer)}.")
    if len(answer) != size:
        raise UnexpectedAnswer(f"{expected}{len(answer)}.")
    return [read_number(entry) for entry in answer]
