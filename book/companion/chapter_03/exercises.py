"""Exercises of chapter 3."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from companion.chapter_03.descent import steps_to_fraction
from companion.grading import Exercise, UnexpectedAnswer, call, compare_number, read_number
from nadtools.theory.deep_linear import expected_hessian


def _grade_factor_at_half_the_response(answer: Any) -> str | None:
    # The factor is 1 − ηh with a curvature h proportional to m².
    before, m = 0.9, 0.5
    expected = 1 - (1 - before) * m**2
    power = "Close: but a step multiplies the distance by 1 − ηh, and it is h that changes, not an exponent."
    faster = "This shrinks faster than before. A flatter valley shrinks the distance more slowly."
    return compare_number(
        answer,
        expected,
        3e-4,  # the mistake 0.9^(1/4) = 0.97400 lies 0.001 away
        (
            (1 - (1 - before) * m, "This takes the curvature as proportional to m; look again at how m enters it."),
            (before ** (m**2), power),
            (before**m, power),
            (before * m**2, faster),
            (before * m, faster),
            (1 - (1 - before) / m**2, "A smaller m makes the valley flatter, not steeper."),
            (
                (1 - before) * m**2,
                "This is the share that a step removes; the question asks for the factor that is left.",
            ),
            (expected**2, "This is the factor of the excess loss; the question asks for that of the distance."),
            (before, "This would be right if m played no part in the curvature."),
        ),
    )


def _grade_critical_learning_rate(answer: Any) -> str | None:
    stride, epsilon, sigma, own = 4, 1.0, 3.0, 0.5

    def critical(curvature: float) -> float:
        return 2 / curvature

    m = torch.tensor([1.0, own] * 64)
    hessian = expected_hessian(1, m, stride, 1.0, epsilon, sigma)
    signal = expected_hessian(1, m, stride, 1.0, epsilon, 0.0)
    noise = expected_hessian(1, m, stride, 1.0, 0.0, sigma)
    largest, along = float(hessian.max()), float(hessian[1])

    mistakes = (
        (critical(stride * largest), "This is Lemma 1 as printed: the factor 1/S is missing."),
        (1 / largest, "At this learning rate one step is exact; the distance begins to grow at another one."),
        (critical(along), "This is the limit along ℓ alone. Is that the most curved direction?"),
        (critical(float(signal[1])), "This is the signal's curvature alone; the noise curves the loss, too."),
        (
            critical(float(noise.max() + signal.max())),
            "Signal and noise at different frequencies are different directions: their curvatures do not add.",
        ),
        (
            critical(float(noise.max()) * (epsilon**2 + sigma**2) / sigma**2),
            "The signal curves the loss along ℓ only, where the response is 1/2.",
        ),
        (critical(float(hessian.sum())), "This is the trace of the Hessian; its largest entry is asked for."),
        (critical(largest / sigma), "The noise enters by its variance σ², not by σ."),
        (largest, "This is the largest curvature itself."),
    )
    return compare_number(answer, critical(largest), 2e-3 * critical(largest), mistakes)


_STEPS_SIGNATURE = "steps_needed(curvature, learning_rate, fraction)"


def _read_steps(returned: Any) -> float:
    if isinstance(returned, torch.Tensor | np.ndarray) and math.prod(returned.shape) == 1:
        returned = returned.item()
    if isinstance(returned, float) and returned == math.inf:
        return math.inf
    try:
        return read_number(returned)
    except UnexpectedAnswer as error:
        raise UnexpectedAnswer(f"About what your function returns: {error}") from None


def _grade_steps_needed(answer: Any) -> str | None:
    # In the fourth case 1 − ηh is negative; in the last one the distance grows.
    converging = [(0.5, 0.2, 0.1), (2.0, 0.3, 0.5), (0.05, 1.0, 1e-3), (1.0, 1.7, 0.01)]
    diverging = (3.0, 1.0, 0.1)
    values = [_read_steps(call(answer, _STEPS_SIGNATURE, "a number of steps", *case)) for case in converging]
    expected = [float(steps_to_fraction(*case)) for case in converging]

    def agrees(formula: Callable[[float, float, float], float], cases: int = 4) -> bool:
        pairs = zip(values[:cases], converging[:cases], strict=True)
        return all(math.isclose(value, formula(*case), rel_tol=1e-6) for value, case in pairs)

    if values == expected:
        last = _read_steps(call(answer, _STEPS_SIGNATURE, "a number of steps", *diverging))
        if last == math.inf:
            return None
        return "At a learning rate above 2/h the loss grows. Return math.inf there."

    def exact(h: float, rate: float, fraction: float) -> float:
        return math.log(fraction) / (2 * math.log(abs(1 - rate * h)))

    for formula, remark in (
        (lambda *case: math.ceil(2 * exact(*case)), "This waits until the distance has fallen that far; the loss is"),
        (lambda *case: 2 * exact(*case), "This waits until the distance has fallen that far; the loss is"),
    ):
        if agrees(formula):
            return f"{remark} its square, and falls twice as fast."
    if agrees(exact):
        return "Nearly: the number of steps is whole, the first at which the loss is low enough."
    if agrees(lambda *case: math.floor(exact(*case))) or agrees(lambda *case: round(exact(*case))):
        return "Nearly: round up. One step fewer does not get there."
    if agrees(lambda h, rate, fraction: math.ceil(math.log(fraction) / (-2 * rate * h)), 3):
        return "This takes ln(1 − ηh) to be −ηh, which holds for small steps only."
    if values[:3] == expected[:3]:
        return "Between 1/h and 2/h a step goes past the minimum, but the distance still shrinks: only its size counts."
    return ""


EXERCISES = (
    Exercise(
        id="03-1",
        summary="At m = 1 a step in φ multiplies the distance to the minimum by 0.9. By what at m = 1/2?",
        grade=_grade_factor_at_half_the_response,
        hints=(
            "A step changes φ by the learning rate times the slope, and the slope grows with the distance.",
            "The factor is 1 − ηh, where h is the curvature along φ. At m = 1 it says that ηh = 0.1.",
            "The curvature is proportional to m².",
        ),
        praise="That is right. At m = 1/2 a step removes a quarter of what it removed before.",
    ),
    Exercise(
        id="03-2",
        summary="S = 4, ε = 1, σ = 3, σ_θ = 1, largest response 1, m[ℓ] = 1/2: where does descent in φ diverge?",
        grade=_grade_critical_learning_rate,
        hints=(
            "Along a direction of curvature h the distance is multiplied by 1 − ηh. When does it grow?",
            "The most curved direction decides. Lemma 1 gives the curvature along every frequency.",
            "Compare the curvature along ℓ with the one along the frequency where the response is 1.",
        ),
        praise="That is right. A frequency that says nothing about the label sets the pace.",
    ),
    Exercise(
        id="03-3",
        summary="Write steps_needed(curvature, learning_rate, fraction): steps until the excess loss is down to that.",
        grade=_grade_steps_needed,
        hints=(
            "After t steps the distance to the minimum is |1 − ηh|^t of what it was.",
            "The excess loss is a parabola in the distance.",
            "Solve for t with logarithms, and round up. What if |1 − ηh| is 1 or more?",
        ),
        praise="That is right. For small ηh it is about ln(1/r) / (2ηh): twice as flat, twice as long.",
    ),
)
