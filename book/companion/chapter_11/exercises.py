"""Exercises of chapter 11."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from companion.grading import Exercise, UnexpectedAnswer, call, describe, read_number

_TURN_SIGNATURE = "turn(indices, images, direction)"


def _grade_turn(answer: Any) -> str | None:
    cases: list[tuple[list[int], list[float], list[float]]] = [
        ([0, 10, 60, 400], [0.5, 0.5, 0.7, 0.8], [1.0, 0.98, 0.6, 0.5]),
        ([3, 5, 90], [0.9, 0.8, 0.7], [0.5, 0.6, 0.5]),  # from the beginning
        ([0, 20, 30, 800], [0.5, 0.55, 0.6, 0.62], [1.0, 0.9, 0.8, 0.61]),  # only at the end
        ([0, 20, 30], [0.5, 0.55, 0.6], [1.0, 0.99, 0.98]),  # never
        ([0, 7, 9, 11, 70], [0.5, 0.7, 0.5, 0.7, 0.8], [1.0, 0.6, 0.9, 0.6, 0.5]),  # back and forth
    ]
    values = []
    for indices, images, direction in cases:
        returned = call(
            answer, _TURN_SIGNATURE, "an index, or math.inf for none", list(indices), list(images), list(direction)
        )
        if isinstance(returned, float | np.floating) and math.isinf(returned):
            values.append(float(returned))
        else:
            values.append(read_number(returned))

    def crossings(images: Sequence[float], direction: Sequence[float]) -> list[int]:
        return [k for k, pair in enumerate(zip(images, direction, strict=True)) if pair[0] > pair[1]]

    def last(indices: Sequence[int], images: Sequence[float], direction: Sequence[float]) -> float:
        below = [k for k in range(len(indices)) if images[k] <= direction[k]]
        return indices[below[-1]] if below else -math.inf

    rules: dict[str, Any] = {
        "": lambda i, x, d: next((i[k] for k in crossings(x, d)), math.inf),
        "This is the position in the list; the index of the NAD that stands there is asked for.": lambda i, x, d: next(
            iter(crossings(x, d)), math.inf
        ),
        "This is the last index at which D(v) still wins.": last,
        "This is the last index at which the images win; the first one is asked for.": lambda i, x, d: next(
            (i[k] for k in reversed(crossings(x, d))), math.inf
        ),
        "Here D(v) wins; it is asked where the images do.": lambda i, x, d: next(
            (i[k] for k in range(len(i)) if d[k] > x[k]), math.inf
        ),
    }
    for remark, rule in rules.items():
        if all(value == rule(*case) for value, case in zip(values, cases, strict=True)):
            return remark or None
    right = [rules[""](*case) for case in cases]
    if all(value == one for value, one in zip(values, right, strict=True) if math.isfinite(one)):
        return "Where the images never win the answer is math.inf."
    return ""


_CONTRADICT_SIGNATURE = "contradict(x, v)"


def _grade_contradict(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(9)
    remarks = set()
    for number, size in ((1, 6), (5, 30), (40, 9)):
        x = torch.randn(number, size, generator=generator, dtype=torch.float64)
        v = torch.randn(size, generator=generator, dtype=torch.float64)
        v /= v.norm()
        returned = call(answer, _CONTRADICT_SIGNATURE, "changed samples, of x's shape", x.clone(), v.clone())
        if isinstance(returned, np.ndarray):
            returned = torch.from_numpy(returned)
        if not isinstance(returned, Tensor) or returned.shape != x.shape:
            shape = f" of shape {tuple(returned.shape)}" if isinstance(returned, Tensor) else ""
            raise UnexpectedAnswer(
                f"Expected a tensor of the shape of x, {tuple(x.shape)}, but got {describe(returned)}{shape}."
            )
        result = returned.detach().to(torch.float64)
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
    value = read_number(answer)
    z, directions = float(norm.ppf(0.9)), 1023
    right = (9 * z) ** 2 * directions
    for other, remark in (
        (right, None),
        (math.sqrt(right), "This is √n."),
        ((3 * z) ** 2 * directions, "The noise counts twice, in the weights and in the sample, so n has σ⁴."),
        ((9 * 0.9) ** 2 * directions, "0.9 is the value of Φ; which argument has it?"),
        ((9 * z) ** 2, "D − 1 directions of noise are missing."),
        (9 * z * directions, "Square both sides: n stands under a root."),
    ):
        if math.isclose(value, other, rel_tol=0.01):
            return remark
    return ""


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
        summary="Write turn(indices, images, direction): the first index at which the images alone beat D(v) alone.",
        grade=_grade_turn,
        hints=(
            "Go through the three lists side by side. What is to be true at the index that you return?",
            "zip(indices, images, direction) gives one index and its two accuracies at a time.",
            "next((i for i, x, d in zip(indices, images, direction) if x > d), math.inf)",
        ),
        praise="That is right. One number for the transition, and infinity for a network that has none.",
    ),
    Exercise(
        id="11-3",
        summary="How many samples does the mean difference need to be 90 % right, with D = 1024, ε = 1 and σ = 3?",
        grade=_grade_enough_samples,
        hints=(
            "The formula stands above the exercise. What is Φ's argument where Φ is 0.9?",
            "It is norm.ppf(0.9) = 1.28, and it equals ε²√n / (σ²√(D − 1)).",
            "√n = 1.28 · 9 · √1023. Square it.",
        ),
        praise="That is right: nearly three times what the paper has. The noise enters with its fourth power.",
    ),
)
