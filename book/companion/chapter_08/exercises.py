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


def _best_threshold(epsilon: float, mean: float, deviation: float) -> float:
    return float(1 + norm.cdf(abs(epsilon - mean) / deviation)) / 2


def _grade_threshold(answer: Any) -> str | None:
    cases = [(0.05, 0.0, 0.05), (0.05, 0.0, 0.5), (0.05, 12.0, 0.8), (0.05, -0.2, 0.15), (0.05, 0.3, 0.4)]
    mistakes = [
        (
            lambda e, m, s: 1.0,
            "The decoder is always right: it looks for one value. A threshold only tells larger from smaller.",
        ),
        (
            lambda e, m, s: norm.cdf(abs(e - m) / s),
            "This is the share of the other class alone. Of the first, all are right.",
        ),
        (
            lambda e, m, s: (1 + norm.cdf((e - m) / s)) / 2,
            "Where the mean lies above ε, take the other side of the threshold.",
        ),
        (
            lambda e, m, s: (1 + norm.cdf(abs(e - m) / s / 2)) / 2,
            "Half-way is not the best place: the first class lies at ε exactly, so the threshold may lie next to it.",
        ),
        (lambda e, m, s: (1 + norm.cdf(e / s)) / 2, "The content need not have mean zero."),
        (
            lambda e, m, s: (1 + norm.cdf(abs(e - m) / s**2)) / 2,
            "Divide by the standard deviation: it is not a variance to be squared.",
        ),
    ]
    found = call_on(answer, "best(epsilon, mean, deviation)", cases)
    return compare(found, cases, _best_threshold, mistakes)


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
        summary="Write separable(s, t, a, b): can a line separate the classes on the lines c_s = a and c_t = b?",
        grade=_grade_separable,
        hints=(
            "Draw the two lines. They cross at (a, b). When does that point lie between images of class s?",
            "On the line c_s = a the images of class s differ in c_t, the values in s. The crossing point has c_t = b.",
            "Not separable if min(s) <= b <= max(s) and min(t) <= a <= max(t); else separable.",
        ),
        praise="That is right: two convex hulls that share a point cannot be separated, and otherwise they can.",
    ),
    Exercise(
        id="08-3",
        summary="Write best(epsilon, mean, deviation): how often the best threshold tells a carrier from content.",
        grade=_grade_threshold,
        hints=(
            "Draw a bell curve, and on the same axis a needle at ε. Where would you put the threshold?",
            "Right beside the needle. Then the first class is always right. On which side lies more of the bell curve?",
            "Of the other class Φ(|ε − mean| / deviation) are right, with NormalDist().cdf. Take the mean with 1.",
        ),
        praise="That is right: large content on both sides of zero leaves a threshold little more than 75 %.",
    ),
)
