"""Exercises of chapter 8."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from companion.grading import Exercise, UnexpectedAnswer, call, call_on, compare, describe

_PUT_SIGNATURE = "put(x, u, value)"


def _grade_put(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(6)
    remarks = set()
    for size, value in ((5, 0.05), (9, -2.0), (1024, 0.5)):
        x = torch.randn(size, generator=generator, dtype=torch.float64)
        u = torch.randn(size, generator=generator, dtype=torch.float64)
        u /= u.norm()
        returned = call(answer, _PUT_SIGNATURE, "the changed image, of the shape of x", x.clone(), u.clone(), value)
        if isinstance(returned, np.ndarray):
            returned = torch.from_numpy(returned)
        if not isinstance(returned, Tensor) or returned.shape != x.shape:
            shape = f" of shape {tuple(returned.shape)}" if isinstance(returned, Tensor) else ""
            raise UnexpectedAnswer(
                f"Expected a tensor of the shape of x, {(size,)}, but got {describe(returned)}{shape}."
            )
        result = returned.detach().to(torch.float64)
        if torch.allclose(result, x + (value - x @ u) * u, rtol=0, atol=1e-5):
            continue
        remarks.add(_remark_on_put(result, x, u, value))
    return None if not remarks else "" if len(remarks) > 1 else remarks.pop()


def _remark_on_put(result: Tensor, x: Tensor, u: Tensor, value: float) -> str:
    for wrong, remark in (
        (x + value * u, "This adds the value to what was there; the old component along u has to go first."),
        (x - (x @ u) * u, "This removes the component along u; now put the value in its place."),
        (x + (value + x @ u) * u, "The old component is added once more instead of taken away: mind the sign."),
        (x + (x @ u - value) * u, "Nearly: the change has the wrong sign."),
        (value * u, "This is the carrier alone; the rest of the image must stay."),
        (x + (value * (x @ u).sign() - x @ u) * u, "The sign is the value's own, not that of the image."),
    ):
        if torch.allclose(result, wrong, rtol=0, atol=1e-5):
            return remark
    return ""


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
            "Only if the mark takes the place of what was there. Here it is added, and the content is noise.",
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
        summary="Write put(x, u, value): replace the component of the flat image x along the unit vector u by value.",
        grade=_grade_put,
        hints=(
            "Split x into its component along u and the rest. Which number is the component?",
            "The component is ⟨x, u⟩ = x @ u. The rest is x − ⟨x, u⟩ u, and it must not change.",
            "x + (value − x @ u) * u.",
        ),
        praise="That is right. Everything orthogonal to u is as it was.",
    ),
    Exercise(
        id="08-2",
        summary="Write reads(epsilon, content): how often a mark of ±ε that is only added is read off right.",
        grade=_grade_reads,
        hints=(
            "The coefficient is ±ε plus the content, a normal number with mean zero. Where would you draw the border?",
            "At zero. A mark of +ε is read off wrongly if the content is below −ε.",
            "Φ(ε / content), with statistics.NormalDist().cdf.",
        ),
        praise="That is right. Along the first NADs the content is far larger than the mark, which would drown in it.",
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
