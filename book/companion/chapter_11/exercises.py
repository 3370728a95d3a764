"""Exercises of chapter 11."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from companion.grading import Exercise, call, call_on, compare, read_like, read_number

_RELIABILITY_CASES = ((1.0, 0.0, 0.74), (0.97, 0.03, 0.74), (0.75, 0.61, 0.72), (0.9, 0.3, 0.5))


def _grade_reliability(answer: Any) -> str | None:
    return compare(
        call_on(answer, "reliability(both, contradicted, images)", _RELIABILITY_CASES),
        _RELIABILITY_CASES,
        lambda both, contradicted, images: (images - contradicted) / (both - contradicted),
        (
            (lambda b, c, i: (b - i) / (b - c), "This is how often the hint may lie."),
            (lambda b, c, i: i, "That is so for a network that never follows the picture. Others do now and then."),
            (
                lambda b, c, i: i / b,
                "Where the hint lies, some answers are right all the same.",
            ),
            (
                lambda b, c, i: (i - c) / b,
                "One accuracy where the hint is right, another where it lies: mix the two.",
            ),
        ),
    )


_CONTRADICT_SIGNATURE = "contradict(x, v)"


def _grade_contradict(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(9)
    remarks = set()
    for number, size in ((1, 6), (5, 30), (40, 9)):
        x = torch.randn(number, size, generator=generator, dtype=torch.float64)
        v = torch.randn(size, generator=generator, dtype=torch.float64)
        v /= v.norm()
        returned = call(answer, _CONTRADICT_SIGNATURE, "changed samples, of x's shape", x.clone(), v.clone())
        result = read_like(returned, x)
        along = (x @ v)[:, None] * v
        if torch.allclose(result, x - 2 * along, rtol=0, atol=1e-5):
            continue
        remarks.add(_remark_on_contradict(result, x, v, along))
    return None if not remarks else "" if len(remarks) > 1 else remarks.pop()


def _remark_on_contradict(result: Tensor, x: Tensor, v: Tensor, along: Tensor) -> str:
    for wrong, remark in (
        (x - along, "This takes the feature away; it has to say the other class: subtract its part twice."),
        (-x, "This turns the noise round as well; only the part along v may change."),
        (x - 2 * v, "How far to go depends on the sample: on ⟨x, v⟩, which has the sign of the class."),
        (x + 2 * along, "This makes the feature larger: mind the sign."),
        (-along, "The noise must stay."),
        (2 * along - x, "Nearly: this is the negative of the right answer. The noise must stay, and the feature turn."),
    ):
        if torch.allclose(result, wrong, rtol=0, atol=1e-5):
            return remark
    return ""


def _grade_enough_samples(answer: Any) -> str | None:
    remarks = {
        1023: "Nearly: 1,023 equations for 1,024 numbers leave one of them free.",
        1025: "One fewer is enough.",
        136_126: "This is what the mean difference needs, for nine hints of ten.",
    }
    value = read_number(answer)
    return None if value == 1024 else remarks.get(round(value), "")


EXERCISES = (
    Exercise(
        id="11-1",
        summary="Write contradict(x, v): samples whose feature says the other class, while the rest stays.",
        grade=_grade_contradict,
        hints=(
            "The class is in the sign of ⟨x, v⟩, and in nothing else. What has to become of it?",
            "Split x into ⟨x, v⟩ v and the rest. Change the sign of the first, and keep the second.",
            "x − 2⟨x, v⟩ v: for rows, x - 2 * (x @ v)[:, None] * v.",
        ),
        praise="That is right: a reflection. It keeps all lengths, and doing it twice undoes it.",
    ),
    Exercise(
        id="11-2",
        summary="Write reliability(both, contradicted, images): how often the hint must be right to be worth it.",
        grade=_grade_reliability,
        hints=(
            "Say that the hint is right with probability p. What is the accuracy on the samples where it is right?",
            "The accuracy is p · both + (1 − p) · contradicted. Where is it equal to images?",
            "p = (images − contradicted) / (both − contradicted).",
        ),
        praise="That is right. Below it, the network that never saw a hint is the better one.",
    ),
    Exercise(
        id="11-3",
        summary="From how many samples on does least squares find v exactly, with D = 1024 and σ = 3?",
        grade=_grade_enough_samples,
        hints=(
            "Does w = v/ε solve all the equations? Look for the noise along v.",
            "There is none, so it does, whatever σ. When is it the only solution?",
            "When the samples span all D dimensions. How many samples does that take?",
        ),
        praise="That is right. The noise has to be cancelled in D − 1 directions, and its size does not matter.",
    ),
)
