"""Exercises of chapter 6."""

from __future__ import annotations

from typing import Any

from companion.grading import Exercise, close, compare_number, read_number


def _grade_shortcut(answer: Any) -> str | None:
    wrong = (
        (24, "So many each path loses alone. A direction that one of them keeps is kept."),
        (0, "In a window the block sees two numbers, the mean and the first pixel, of four."),
        (48, "A direction is not lost twice: it is lost where both paths lose it."),
    )
    return compare_number(answer, 16, 1e-9, wrong)


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
        "How many of 32 directions a block of an average and a shortcut loses.",
        _grade_shortcut,
        (
            "What does G₁ + G₂ lose, where both are positive semidefinite?",
            "Take one window of four pixels: which directions of it does each path keep?",
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
