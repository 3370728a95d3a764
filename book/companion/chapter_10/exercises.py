"""Exercises of chapter 10."""

from __future__ import annotations

import math
from typing import Any

import torch
from scipy.stats import norm

from companion.grading import Exercise, call, close, read_number


def _grade_angle(answer: Any) -> str | None:
    value = read_number(answer)
    right = math.degrees(math.atan2(1.0, 0.5))
    if close(value, right, 0.06):
        return None
    if close(value, 90 - right, 0.06):
        return "This is the angle to v₂, or that of the normal to v₁. The boundary is perpendicular to its normal."
    if close(value, math.radians(right), 0.002):
        return "This is the right angle in radians; degrees are asked for."
    if close(value, 45, 0.06):
        return "This would be so if both features were of one size."
    if close(value, 90, 0.06):
        return "Then the second feature would not be used at all, and its part of the margin would be lost."
    if close(value, 180 - right, 0.06):
        return "The angle between two lines is at most 90 degrees."
    return ""


_ALONE_SIGNATURE = "one_channel(a, s, epsilon, sigma)"


def _grade_alone(answer: Any) -> str | None:
    cases = [(1.0, 1.0, 1.0, 1.0), (0.4, 0.9, 0.5, 1.0), (2.0, 1.5, 1.0, 3.0), (0.7, 2.0, 0.3, 0.5)]
    values = []
    for case in cases:
        returned = call(answer, _ALONE_SIGNATURE, "an accuracy, a number from 0 to 1", *case)
        values.append(read_number(returned))
    rules: dict[str, Any] = {
        "": lambda a, s, e, g: norm.cdf(a * e / (g * s)),
        "This is the share of errors; the accuracy is the rest.": lambda a, s, e, g: norm.cdf(-a * e / (g * s)),
        "This is the argument of Φ, not yet a probability.": lambda a, s, e, g: a * e / (g * s),
        "Dividing by σs² takes a variance for a deviation.": lambda a, s, e, g: norm.cdf(a * e / (g * s**2)),
        "Dividing by σ²s takes a variance for a deviation.": lambda a, s, e, g: norm.cdf(a * e / (g**2 * s)),
        "σ is missing: it scales the noise.": lambda a, s, e, g: norm.cdf(a * e / s),
        "ε is missing: it is what the weight a is multiplied with.": lambda a, s, e, g: norm.cdf(a / (g * s)),
        "s is missing: more weight on noise makes it worse.": lambda a, s, e, g: norm.cdf(a * e / g),
        "a is missing: without weight on the feature there is nothing to read.": lambda a, s, e, g: norm.cdf(
            e / (g * s)
        ),
        "There is no noise along v itself: a does not belong under the root.": lambda a, s, e, g: norm.cdf(
            a * e / (g * math.hypot(a, s))
        ),
    }
    for remark, rule in rules.items():
        if all(close(value, rule(*case), 1e-6) for value, case in zip(values, cases, strict=True)):
            return remark or None
    return ""


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
        summary="At which angle to v₁, in degrees, does the boundary of maximum margin lie (ε₁ = 1, ε₂ = 0.5)?",
        grade=_grade_angle,
        hints=(
            "In the plane of v₁ and v₂ the two classes are two points. Which line is as far as possible from both?",
            "The line through the middle, perpendicular to the segment from (−1, −0.5) to (1, 0.5).",
            "The segment rises at arctan(0.5/1) from v₁; the boundary is perpendicular to it: 90° − 26.6°.",
        ),
        praise="That is right: 63.4°. The boundary leans away from v₁, so v₁ counts for more, but both count.",
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
        summary="Write one_channel(a, s, epsilon, sigma): the accuracy of a linear rule on one channel alone.",
        grade=_grade_alone,
        hints=(
            "The rule sums up two things: what the feature gives, and what the noise gives. How large is each?",
            "The feature gives ±aε. The noise is Gaussian with deviation σs. When does it not turn the sign?",
            "Φ(aε/(σs)): scipy.stats.norm.cdf is Φ.",
        ),
        praise="That is right. The weights on the other channel have nothing to say when it is switched off.",
    ),
)
