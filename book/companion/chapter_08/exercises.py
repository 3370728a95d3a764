"""Exercises of chapter 8."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from companion.grading import Exercise, UnexpectedAnswer, call, call_on, compare, compare_number, describe


def _grade_nothing_written(answer: Any) -> str | None:
    return compare_number(
        answer,
        0.6,
        0.001,
        (
            (0.1, "The label is not gone: of the coefficients in question one is exactly zero."),
            (1.0, "Two classes may share a coefficient. Without a sign nothing tells them apart."),
            (0.5, "Not every class shares its coefficient with another one."),
            (0.3, "Ten classes need two NADs, not one."),
        ),
    )


_SEPARABLE_SIGNATURE = "separable(s, t, a, b)"


def _grade_separable(answer: Any) -> str | None:
    cases: list[tuple[list[float], list[float], float, float]] = [
        ([-1.0, 2.0], [-1.0, 1.0], -0.05, 0.05),  # both classes on both sides of the crossing: no
        ([0.5, 2.0], [-1.0, 1.0], -0.05, 0.05),  # one class on one side: yes
        ([-1.0, 2.0], [0.3, 1.0], -0.05, 0.05),
        ([-3.0, -2.0], [-0.4, -0.3], -0.05, 0.05),
        ([-0.02, 0.02], [-1.0, 1.0], -0.05, 0.05),  # on both sides of zero, but not of b
        ([-1.0, 1.0], [-0.02, 0.04], -0.05, 0.05),
        ([0.0, 3.0, -3.0], [5.0, -5.0], 1.0, -1.0),
        ([0.0, 3.0], [5.0, -5.0], 1.0, -1.0),
    ]
    verdicts = []
    for s, t, a, b in cases:
        returned = call(answer, _SEPARABLE_SIGNATURE, "True or False", torch.tensor(s), torch.tensor(t), a, b)
        if isinstance(returned, Tensor | np.ndarray) and returned.shape in ((), (1,)):
            returned = returned.item()
        if not isinstance(returned, bool | np.bool_):
            raise UnexpectedAnswer(f"Expected the function to return True or False, but got {describe(returned)}.")
        verdicts.append(bool(returned))
    rules = {
        "right": lambda s, t, a, b: not (_inside(b, s) and _inside(a, t)),
        "both": lambda s, t, a, b: not _inside(b, s) and not _inside(a, t),
        "zero": lambda s, t, a, b: not (_inside(0, s) and _inside(0, t)),
        "swapped": lambda s, t, a, b: not (_inside(a, s) and _inside(b, t)),
        "negated": lambda s, t, a, b: _inside(b, s) and _inside(a, t),
        "always": lambda s, t, a, b: True,
    }
    agreeing = [name for name, rule in rules.items() if verdicts == [rule(*case) for case in cases]]
    remarks = {
        "both": "It is enough that one of the two classes lies on one side of the crossing point.",
        "zero": "The lines do not cross at zero, but at (a, b).",
        "swapped": "Class s lives at c_s = a: what varies there is c_t, and the crossing point has c_t = b.",
        "negated": "This is the opposite: such classes can not be separated.",
        "always": "Not always: think of two crossing lines with points on all four arms.",
    }
    return None if "right" in agreeing else remarks[agreeing[0]] if agreeing else ""


def _inside(place: float, values: list[float]) -> bool:
    return min(values) <= place <= max(values)


def _grade_reads(answer: Any) -> str | None:
    cases = [(0.05, 0.05), (0.05, 0.4), (1.0, 0.7)]
    mistakes = [
        (
            lambda e, c: 1.0,
            "Only if the carrier takes the place of what was there. Here it is added, and the content is noise.",
        ),
        (lambda e, c: norm.cdf(2 * e / c), "The two means lie 2ε apart, so each lies ε from the border between them."),
        (lambda e, c: norm.cdf(e / c**2), "The content is a standard deviation already, not a variance to be squared."),
        (lambda e, c: norm.cdf(-e / c), "This is the error. The accuracy is what is missing to 1."),
        (lambda e, c: norm.cdf(c / e), "More content must make reading harder: ε stands above it."),
        (lambda e, c: e / c, "This is the argument of Φ. The accuracy is Φ of it."),
    ]
    return compare(call_on(answer, "reads(epsilon, content)", cases), cases, lambda e, c: norm.cdf(e / c), mistakes)


EXERCISES = (
    Exercise(
        id="08-1",
        summary="With ε = 0, and ten equally frequent classes, how often can the absence alone tell the class?",
        grade=_grade_nothing_written,
        hints=(
            "Which coefficient does each class erase? Write down NAD and channel for t = 0, …, 9.",
            "Classes 0 and 3 erase the same coefficient. Who else shares one?",
            "There are six different places, and at each one class can be named right.",
        ),
        praise="That is right: silence says much. It is what a network can notice of a faint carrier.",
    ),
    Exercise(
        id="08-2",
        summary="Write reads(epsilon, content): how often a carrier of ±ε that is only added is read off right.",
        grade=_grade_reads,
        hints=(
            "The coefficient is ±ε plus the content, a normal number with mean zero. Where would you draw the border?",
            "At zero. A sign + is read off wrongly if the content is below −ε.",
            "Φ(ε / content), with statistics.NormalDist().cdf.",
        ),
        praise="That is right. Along the first NADs the content is far larger than ε, which would drown in it.",
    ),
    Exercise(
        id="08-3",
        summary="Write separable(s, t, a, b): can a line separate the classes on the lines c_s = a and c_t = b?",
        grade=_grade_separable,
        hints=(
            "Draw the two lines. They cross at (a, b). When does that point lie between images of class s?",
            "On the line c_s = a the images of class s differ in c_t, the values in s. The crossing point has c_t = b.",
            "Not separable if min(s) <= b <= max(s) and min(t) <= a <= max(t); else separable.",
        ),
        praise="That is right: two convex hulls that share a point cannot be separated, and otherwise they can.",
    ),
)
