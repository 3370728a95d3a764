"""Exercises of chapter 7."""

from __future__ import annotations

from typing import Any

from companion.grading import Exercise, UnexpectedAnswer, call, compare_number, describe, read_numbers

_LATTICE_SIGNATURE = "on_lattice(i, j, patch, size)"


def _grade_lattice(answer: Any) -> str | None:
    asked = [(4, 0, 8, 32), (1, 0, 8, 32), (12, -8, 8, 32), (8, 0, 16, 32), (4, 4, 4, 32), (8, 3, 8, 32), (0, 0, 8, 32),
             (2, 0, 16, 32), (6, 0, 8, 48), (8, 0, 8, 48)]  # fmt: skip
    returned = {}
    for wave in asked:
        value = call(answer, _LATTICE_SIGNATURE, "True or False", *wave)
        if not isinstance(value, bool):
            raise UnexpectedAnswer(f"Expected True or False, but got {describe(value)}.")
        returned[wave] = value
    if returned == {(i, j, p, n): i * p % n == 0 and j * p % n == 0 for i, j, p, n in asked}:
        return None
    if returned == {(i, j, p, n): i % p == 0 and j % p == 0 for i, j, p, n in asked}:
        return "The frequency counts periods in the whole image. How many are there in one patch?"
    if returned == {(i, j, p, n): i * p % n == 0 for i, j, p, n in asked}:
        return "It has to repeat from left to right, too."
    return ""


def _grade_not_lost(answer: Any) -> str | None:
    given = sorted(read_numbers(answer, 2, "(1, 3)"))
    if given == [2, 4]:
        return None
    if 3 in given:
        return "Shift (3, 0) by one patch: half a period."
    if {1, 5} & set(given):
        return "Three patches are half of the image."
    return ""


def _grade_lost(answer: Any) -> str | None:
    mistakes = (
        (64, "These are the waves on the lattice, which are not lost."),
        (1023, "The lattice holds more than the constant image."),
        (1008, "A patch of 8 x 8 has 64 pixels; how many waves repeat with it?"),
    )
    return compare_number(answer, 960, 1e-6, mistakes)


EXERCISES = (
    Exercise(
        "07-1",
        "The two waves of six patches that no shift turns into their negatives.",
        _grade_not_lost,
        ("By how much of a period does one patch shift the wave?", "i a / 6 has to be a whole number and a half."),
    ),
    Exercise(
        "07-2",
        "Which waves repeat with the patch?",
        _grade_lattice,
        ("Each patch has to hold whole periods.", "Frequency i has i · patch / size periods in a patch."),
    ),
    Exercise(
        "07-3",
        "How many of 1,024 waves a vision transformer without positions loses.",
        _grade_lost,
        ("Which waves are not turned into their negatives by any shift?", "Those on the lattice: how many are they?"),
    ),
)
