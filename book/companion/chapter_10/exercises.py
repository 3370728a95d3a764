"""Exercises of chapter 10."""

from __future__ import annotations

import math
from typing import Any

import torch
from scipy.stats import norm

from companion.grading import Exercise, call, close, compare_number, read_number, read_numbers


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


def _grade_foretold(answer: Any) -> str | None:
    t = norm.ppf(0.997)
    both, second = norm.cdf(1.25 * t / math.sqrt(2)), norm.cdf(t / 4)
    mistakes = {
        (norm.cdf(1.25 * t), second): "Both channels bring noise: the denominator has s₁ and s₂ in it.",
        (both, norm.cdf(t / 2)): "The second channel has half the weight, and half the feature as well.",
        (norm.cdf(1.5 * t / math.sqrt(2)), norm.cdf(t / 2)): "The smaller feature is half as large, too: ε₂ = ε₁/2.",
        (second, both): "The other way round: with both channels first.",
    }
    found = read_numbers(answer, 2, "(0.99, 0.75)")
    for (first, other), remark in {(both, second): None, **mistakes}.items():
        if close(found[0], first, 1e-3) and close(found[1], other, 1e-3):
            return remark
    return ""


EXERCISES = (
    Exercise(
        id="10-1",
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
        id="10-2",
        summary="From which a₂/a₁ on does the second channel help a linear rule, with s₁ = s₂ and ε₂ = ε₁/2?",
        grade=_grade_ratio,
        hints=(
            "Φ grows with its argument. So compare the two arguments: with both channels, and with the first alone.",
            "(a₁ε₁ + a₂ε₂) / √2 against a₁ε₁, with s and σ on both sides.",
            "a₂ε₂ = (√2 − 1) a₁ε₁, and ε₂ is half of ε₁.",
        ),
        praise="That is right. With less weight on it, a channel that is never wrong makes the whole rule worse.",
    ),
    Exercise(
        id="10-3",
        summary="Foretell an MLP at the maximum margin that is right on 99.7 % with the first of two channels alone.",
        grade=_grade_foretold,
        hints=(
            "The first channel alone gives t = a₁ε₁/(σs₁): which t has Φ(t) = 0.997?",
            "t = 2.75. The second channel has half the weight and half the feature: a₂ε₂ = a₁ε₁/4.",
            "Φ(1.25 t/√2) with both, and Φ(t/4) with the second alone.",
        ),
        praise="That is right. One number of the table gives the other two, on any pair of directions.",
    ),
)
