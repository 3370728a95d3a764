"""Exercises of chapter 7."""

from __future__ import annotations

from typing import Any

from companion.grading import Exercise, UnexpectedAnswer, compare_number, describe, read_numbers


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


def _grade_spectra(answer: Any) -> str | None:
    letters = (
        "".join(answer) if isinstance(answer, tuple | list) and all(isinstance(a, str) for a in answer) else answer
    )
    if not isinstance(letters, str) or sorted(letters.upper()) != list("ABCD"):
        raise UnexpectedAnswer(f'Expected the four letters A to D, such as "ABCD", but got {describe(answer)}.')
    wrong = {right for given, right in zip(letters.upper(), "CADB", strict=True) if given != right}
    return next((remark for letter, remark in _WRONG_SPECTRA.items() if letter in wrong), None)


_WRONG_SPECTRA = {
    "B": "In B all directions are worth the same. Which network sees its image through a matrix without structure?",
    "D": "D falls again and again, after each 16 directions. Which network reads rows?",
    "A": "A and C fall once, at 16. Which of the two networks hardly knows where its patches are?",
}


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
        "The panels of the ViT, the Mixer, the LSTM and the MLP, in this order.",
        _grade_spectra,
        (
            "At which index does each of them fall, and how often?",
            "How far did the Mixer fall in the figure above, and the ViT?",
        ),
    ),
)
