"""Exercises that check themselves: :func:`check` says whether an answer is right, or gives the next hint.

Each exercise is an :class:`Exercise`: its question in one line, a grader and a few hints. A grader computes the
solution when it is asked, and compares; it returns ``None`` for a right answer, and otherwise what it noticed.
"""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch

from nadtools.exercises import (
    chapter_01,
    chapter_02,
    chapter_03,
    chapter_04,
    chapter_05,
    chapter_06,
    chapter_07,
    chapter_08,
    chapter_09,
)
from nadtools.exercises.grading import Exercise, UnexpectedAnswer

__all__ = ["Exercise", "Verdict", "available", "check", "reset"]


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


_CHAPTERS = (
    chapter_01,
    chapter_02,
    chapter_03,
    chapter_04,
    chapter_05,
    chapter_06,
    chapter_07,
    chapter_08,
    chapter_09,
)
_EXERCISES: dict[str, Exercise] = {exercise.id: exercise for chapter in _CHAPTERS for exercise in chapter.EXERCISES}
_wrong_answers: Counter[str] = Counter()


def available() -> tuple[str, ...]:
    """Return the ids of all exercises."""
    return tuple(_EXERCISES)


def _find(exercise: str) -> Exercise:
    if not isinstance(exercise, str) or exercise not in _EXERCISES:
        raise ValueError(f"Unknown exercise {exercise!r}. Known exercises: {', '.join(_EXERCISES)}.")
    return _EXERCISES[exercise]


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
