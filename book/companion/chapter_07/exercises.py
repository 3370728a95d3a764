"""Exercises of chapter 7."""

from __future__ import annotations

from typing import Any

from companion.grading import Exercise, compare_number, read_numbers


def _grade_patch(answer: Any) -> str | None:
    mistakes = (
        (8, "Patches of 8 hold one period of (4, 0), but one and a half of (0, 6)."),
        (4, "In a patch of 4 the wave (4, 0) has half a period."),
        (32, "It would do, but a smaller one does as well."),
        (12, "12 does not divide 32."),
    )
    return compare_number(answer, 16, 1e-6, mistakes)


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
        (2240, "These are all that are off the lattice. Some of them no shift turns into their negatives."),
        (2304, "Some waves survive: the constant image does."),
        (64, "These are the waves on the lattice, which are not lost."),
        (576, "These are the waves that are *not* lost."),
        (1152, "A wave with one odd frequency is lost, whatever the other is."),
    )
    return compare_number(answer, 1728, 1e-6, mistakes)


EXERCISES = (
    Exercise(
        "07-1",
        "The two waves of six patches that no shift turns into their negatives.",
        _grade_not_lost,
        ("By how much of a period does one patch shift the wave?", "i a / 6 has to be a whole number and a half."),
    ),
    Exercise(
        "07-2",
        "The smallest patch whose lattice holds (4, 0) and (0, 6).",
        _grade_patch,
        ("Each patch has to hold whole periods.", "Frequency i has i · patch / 32 periods in a patch."),
    ),
    Exercise(
        "07-3",
        "How many of 48 × 48 waves a vision transformer without positions loses.",
        _grade_lost,
        (
            "A shift by a and b patches moves the wave (i, j) by (i a + j b) / 6 periods.",
            "i a + j b leaves 3 when divided by 6: what if i and j are both even, and what if not?",
        ),
    ),
)
