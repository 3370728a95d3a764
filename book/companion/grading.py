"""Exercises that check themselves: :func:`check` says whether an answer is right, or gives the next hint.

Each exercise is an :class:`Exercise`: its question in one line, a grader and a few hints. A grader computes the
solution when it is asked, and compares; it returns ``None`` for a right answer, and otherwise what it noticed.
"""

from __future__ import annotations

import functools
import html
import importlib
import math
import numbers
from collections import Counter
from collections.abc import Callable, Sequence
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


def call(function: Any, signature: str, expected: str, *arguments: Any) -> Any:
    """Call the reader's function; any failure inside it becomes a message, and so does a blank answer."""
    if not callable(function):
        raise UnexpectedAnswer(f"Expected a function {signature}, without calling it, but got {describe(function)}.")
    try:
        returned = function(*arguments)
    except Exception as error:  # it is the reader's code: whatever it raises is reported, not re-raised
        raise UnexpectedAnswer(
            f"Your function raised {type(error).__name__}: {error}. It is called as {signature}."
        ) from None
    if returned is None or returned is ...:
        raise UnexpectedAnswer(f"Your function returns nothing yet; expected {expected}.")
    return returned


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


def read_like(answer: Any, x: torch.Tensor, name: str = "x") -> torch.Tensor:
    """Read the answer as a float64 tensor of the shape of x, or raise UnexpectedAnswer."""
    if isinstance(answer, np.ndarray):
        answer = torch.from_numpy(answer)
    if not isinstance(answer, torch.Tensor) or answer.shape != x.shape:
        shape = f" of shape {tuple(answer.shape)}" if isinstance(answer, torch.Tensor) else ""
        raise UnexpectedAnswer(
            f"Expected a tensor of the shape of {name}, {tuple(x.shape)}, but got {describe(answer)}{shape}."
        )
    return answer.detach().to(torch.float64)


def call_on(function: Any, signature: str, cases: Sequence[tuple[Any, ...]]) -> list[float]:
    """What the reader's function, of one number, returns for the arguments of each case."""
    values = []
    for case in cases:
        arguments = (one.clone() if isinstance(one, torch.Tensor) else one for one in case)
        returned = call(function, signature, "one number", *arguments)
        try:
            values.append(read_number(returned))
        except UnexpectedAnswer as error:
            raise UnexpectedAnswer(f"About what your function returns: {error}") from None
    return values


def choices(function: Any, signature: str, cases: Sequence[tuple[Any, ...]]) -> list[bool]:
    """Whether the reader's function chooses each case."""
    values = []
    for case in cases:
        value = call(function, signature, "True or False", *case)
        if not isinstance(value, bool):
            raise UnexpectedAnswer(f"Expected True or False, but got {describe(value)}.")
        values.append(value)
    return values


def compare(
    values: Sequence[float],
    cases: Sequence[tuple[Any, ...]],
    right: Callable[..., float],
    mistakes: Sequence[tuple[Callable[..., Any], str]],
) -> str | None:
    """None if all values are right, else the remark on the first mistake that explains them all."""

    def explained(formula: Callable[..., Any]) -> bool:
        return all(close(value, float(formula(*case)), 1e-6) for value, case in zip(values, cases, strict=True))

    if explained(right):
        return None
    return next((remark for formula, remark in mistakes if explained(formula)), "")


def compare_number(answer: Any, right: float, tolerance: float, mistakes: Sequence[tuple[float, str]]) -> str | None:
    """None if the answer is the right number, else the remark on the mistake that gives this one.

    A mistake's number has the same relative tolerance as the right one.
    """
    value = read_number(answer)
    if close(value, right, tolerance):
        return None
    share = tolerance / abs(right)
    return next((remark for wrong, remark in mistakes if close(value, wrong, share * abs(wrong))), "")


@dataclass(frozen=True)
class Verdict:
    """What :func:`check` says about an answer; true in a boolean context when the answer is right.

    Attributes
    ----------
    exercise
        The exercise's id, for example ``"01-1"``.
    correct
        Whether the answer is right.
    message
        A sentence for the reader: praise, or what was noticed and the next hint.
    """

    exercise: str
    correct: bool
    message: str

    def __bool__(self) -> bool:
        return self.correct

    def __repr__(self) -> str:
        return f"{'✓' if self.correct else '✗'} Exercise {self.exercise}: {self.message}"

    def _repr_html_(self) -> str:
        # The mark carries the meaning. No text is coloured: it has to read on a light and on a dark page.
        mark, word, colour = ("✓", "Right", "#2e8b57") if self.correct else ("✗", "Not yet", "#d2691e")
        return (
            f'<div role="status" style="border-left: 4px solid {colour}; padding: 0.3em 0.8em; margin: 0.4em 0">'
            f"<strong>{mark} {word}</strong> "
            f"(exercise {html.escape(self.exercise)}). {html.escape(self.message)}</div>"
        )


_CHAPTERS = 11
_wrong_answers: Counter[str] = Counter()


@functools.cache
def _exercises() -> dict[str, Exercise]:
    """All exercises by id. The chapters' files use this one, so they are imported when somebody asks."""
    chapters = (
        importlib.import_module(f"companion.chapter_{number:02d}.exercises") for number in range(1, _CHAPTERS + 1)
    )
    return {exercise.id: exercise for chapter in chapters for exercise in chapter.EXERCISES}


def available() -> tuple[str, ...]:
    """Return the ids of all exercises."""
    return tuple(_exercises())


def _find(exercise: str) -> Exercise:
    if not isinstance(exercise, str) or exercise not in _exercises():
        raise ValueError(f"Unknown exercise {exercise!r}. Known exercises: {', '.join(_exercises())}.")
    return _exercises()[exercise]


def reset(exercise: str | None = None) -> None:
    """Begin again with the first hint, for one exercise or for all of them.

    Raises
    ------
    ValueError
        If the exercise is unknown.
    """
    if exercise is None:
        _wrong_answers.clear()
    else:
        del _wrong_answers[_find(exercise).id]


def check(exercise: str, answer: Any) -> Verdict:
    """Say whether an answer is right; after a wrong one, give the next hint.

    Each wrong answer moves to the next hint, up to the last. A blank answer (None or ``...``) and one of the wrong
    kind do not.

    Parameters
    ----------
    exercise
        The exercise's id, for example ``"01-1"``.
    answer
        A number, several numbers or a function, as the exercise asks.

    Returns
    -------
    Verdict
        True in a boolean context when the answer is right.

    Raises
    ------
    ValueError
        If the exercise is unknown; the message lists the known ones.
    """
    task = _find(exercise)
    if answer is None or answer is ...:
        return Verdict(task.id, False, f"There is no answer yet. {_hint(task, 0)}")
    try:
        # A reader's function may draw from the global generator; the notebook's own random numbers stay as they were.
        with torch.random.fork_rng(devices=[]):
            remark = task.grade(answer)
    except UnexpectedAnswer as error:
        return Verdict(task.id, False, str(error))
    if remark is None:
        del _wrong_answers[task.id]
        return Verdict(task.id, True, task.praise)
    hint = _hint(task, _wrong_answers[task.id])
    _wrong_answers[task.id] += 1
    return Verdict(task.id, False, f"{remark} {hint}".strip())


def _hint(task: Exercise, number: int) -> str:
    number = min(number, len(task.hints) - 1)
    return f"Hint {number + 1} of {len(task.hints)}: {task.hints[number]}"
