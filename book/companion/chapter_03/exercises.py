"""Exercises of chapter 3."""

from __future__ import annotations

import math
from typing import Any

import torch

from companion.grading import Exercise, compare_number
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


def _grade_unhurt(answer: Any) -> str | None:
    # κ = 1 as long as σ² ≤ (1 + σ²) m².
    m = 0.5
    right = m / math.sqrt(1 - m**2)
    mistakes = (
        (m, "This is ζ = 1, which forgets that the noise along ℓ curves the loss, too."),
        (right**2, "This is σ²; the question asks for σ."),
        (1 / right, "Turn it over: κ is 1 where σ² · 1 is the *smaller* curvature."),
        (math.sqrt(m / (1 - m)), "The response enters the curvature by its square."),
    )
    return compare_number(answer, right, 2e-3 * right, mistakes)


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
        summary="ε = 1, largest response 1, m[ℓ] = 1/2: up to which σ is κ(ℓ) = 1?",
        grade=_grade_unhurt,
        hints=(
            "κ(ℓ) is the larger of 1 and a ratio. When does the ratio pass 1?",
            "Solve σ² · 1 = (1 + σ²) / 4 for σ.",
        ),
        praise="That is right. With less noise than that, the signal itself is what curves the loss most.",
    ),
)
