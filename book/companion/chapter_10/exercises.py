"""Exercises of chapter 10."""

from __future__ import annotations

import math
from typing import Any

import torch

from companion.grading import Exercise, call, close, compare_number, read_number


def _grade_share(answer: Any) -> str | None:
    return compare_number(
        answer,
        0.5 / math.hypot(1.0, 0.5),
        0.001,
        (
            (0.5, "This is the margin that is left. What share is it of the widest one?"),
            (1 / math.hypot(1.0, 0.5), "This is what is left to the stump that ignores the smaller feature."),
            (1 - 0.5 / math.hypot(1.0, 0.5), "This is the share that is lost."),
            (0.2, "A margin is a length, not its square."),
            (1 / 3, "The two sizes stand at a right angle: they add up as the sides of a triangle do."),
        ),
    )


def _grade_ratio(answer: Any) -> str | None:
    return compare_number(
        answer,
        2 * (math.sqrt(2) - 1),
        0.001,
        (
            (math.sqrt(2) - 1, "This would be so if both features were of one size."),
            ((math.sqrt(2) - 1) / 2, "Which of the two features is the smaller one? It needs the larger weight."),
            (0, "A little weight on a channel brings in its noise. What does the second channel bring here?"),
            (2, "There a₂ε₂ is as large as a₁ε₁. It may be less."),
            (1 / (2 * (math.sqrt(2) - 1)), "This is a₁/a₂."),
            (2 * math.sqrt(2), "The first channel's a₁ε₁ stands in the sum, too."),
        ),
    )


_LEAN_SIGNATURE = "angle_to_first(w, d1, d2)"


def _grade_lean(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(8)
    remarks: list[set[str] | None] = []
    for size in (2, 7, 40):
        w = torch.randn(size, generator=generator, dtype=torch.float64)
        d1, d2 = torch.linalg.qr(torch.randn(size, 2, generator=generator, dtype=torch.float64))[0].T
        for sign in (1.0, -1.0):
            returned = call(answer, _LEAN_SIGNATURE, "an angle in radians", sign * w, d1.clone(), d2.clone())
            value = read_number(returned)
            one, other = float(sign * w @ d1), float(sign * w @ d2)
            remarks.append(_remarks_on_lean(value, one, other, float(w.norm())))
    if all(found is None for found in remarks):
        return None
    common = set.intersection(*(found if found is not None else set(_LEAN_REMARKS) for found in remarks))
    return next((remark for remark in _LEAN_REMARKS if remark in common), "")


_LEAN_REMARKS = (
    "This is the angle to the second direction, or that of the normal to the first.",
    "This is in degrees; radians are asked for.",
    "The sign of a weight does not matter: the angle between two lines is at most π/2.",
    "Only what w has in the plane of d1 and d2 counts, not the norm of all of w.",
)


def _remarks_on_lean(value: float, one: float, other: float, length: float) -> set[str] | None:
    """None for a right answer, else all mistakes that would give this one."""
    right = math.atan2(abs(one), abs(other))
    if close(value, right, 1e-6):
        return None
    wrong = (
        (math.pi / 2 - right,),
        (math.degrees(right),),
        (math.atan2(one, other), math.atan(one / other)),
        (math.asin(abs(one) / length), math.acos(abs(other) / length), math.acos(abs(one) / length)),
    )
    return {
        remark
        for remark, values in zip(_LEAN_REMARKS, wrong, strict=True)
        if any(close(value, one_value, 1e-6) for one_value in values)
    }


EXERCISES = (
    Exercise(
        id="10-1",
        summary="What share of the widest margin is left to a stump along the smaller feature (ε₁ = 1, ε₂ = 0.5)?",
        grade=_grade_share,
        hints=(
            "The two classes are the points (1, 0.5) and (−1, −0.5). How far is each from the stump's boundary?",
            "The boundary is the line along v₁: the distance is 0.5. How wide is the widest margin?",
            "It is √(1 + 0.25).",
        ),
        praise="That is right: more than half of the margin is given up, and no test on clean samples notices.",
    ),
    Exercise(
        id="10-2",
        summary="Write angle_to_first(w, d1, d2): between the boundary of a linear network and the direction d1.",
        grade=_grade_lean,
        hints=(
            "In the plane of d1 and d2 the boundary is a line. What is its normal?",
            "The normal is (w·d1, w·d2). A line along d1 has the normal (0, 1), and then the angle is 0.",
            "atan2(|w·d1|, |w·d2|), with absolute values, since lines have no sign.",
        ),
        praise="That is right: 0 means that d1 is ignored, and π/2 that nothing but d1 counts in this plane.",
    ),
    Exercise(
        id="10-3",
        summary="From which a₂/a₁ on does the second channel help a linear rule, with s₁ = s₂ and ε₂ = ε₁/2?",
        grade=_grade_ratio,
        hints=(
            "Φ grows with its argument. So compare the two arguments: with both channels, and with the first alone.",
            "(a₁ε₁ + a₂ε₂) / √2 against a₁ε₁, with s and σ on both sides.",
            "a₂ε₂ = (√2 − 1) a₁ε₁, and ε₂ is half of ε₁.",
        ),
        praise="That is right. With less weight on it, a channel that is never wrong makes the whole rule worse.",
    ),
)
