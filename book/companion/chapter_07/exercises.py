"""Exercises of chapter 7."""

from __future__ import annotations

from typing import Any

from companion.grading import Exercise, UnexpectedAnswer, call, describe, read_numbers

_SPACES_SIGNATURE = "eigenspaces(size, patch, channels)"


def _grade_spaces(answer: Any) -> str | None:
    for size, patch, channels in ((32, 8, 1), (32, 4, 3), (48, 8, 2)):
        returned = call(answer, _SPACES_SIGNATURE, "two numbers", size, patch, channels)
        given = read_numbers(returned, 2, "(64, 960)")
        first, everything, tokens = channels * patch**2, channels * size**2, (size // patch) ** 2
        if given == [first, everything - first]:
            continue
        if given == [patch**2, size**2 - patch**2]:
            return "Each channel of a patch has weights of its own."
        if given == [channels * tokens, everything - channels * tokens]:
            return "This counts patches. How many numbers are in one of them?"
        if given == [first, everything]:
            return "The two spaces together have as many dimensions as the image."
        return ""
    return None


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


EXERCISES = (
    Exercise(
        "07-1",
        "The dimensions of both eigenspaces of a vision transformer.",
        _grade_spaces,
        (
            "An image that repeats with the patch is known as soon as one patch of it is.",
            "A patch has channels · patch² numbers; the whole image has channels · size².",
        ),
    ),
    Exercise(
        "07-2",
        "The two waves of six patches that no shift turns into their negatives.",
        _grade_not_lost,
        ("By how much of a period does one patch shift the wave?", "i a / 6 has to be a whole number and a half."),
    ),
    Exercise(
        "07-3",
        "Which waves repeat with the patch?",
        _grade_lattice,
        ("Each patch has to hold whole periods.", "Frequency i has i · patch / size periods in a patch."),
    ),
)
