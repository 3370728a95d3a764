"""Exercises of chapter 5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from scipy.stats import norm
from torch import Tensor

from companion.grading import Exercise, call_on, compare, compare_number


def _best(coefficients: Tensor, n: int, epsilon: float, sigma: float) -> float:
    energy = coefficients.square()
    return float(norm.cdf(epsilon / sigma * float(energy[:n].sum() / energy[n:].sum()) ** 0.5))


def _grade_best_of_first(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(5)
    cases = []
    for size, n, epsilon, sigma in ((2, 1, 1.0, 1.0), (5, 2, 1.0, 3.0), (9, 6, 0.5, 0.4)):
        coefficients = 2 * torch.randn(size, generator=generator, dtype=torch.float64)
        cases.append((coefficients, n, epsilon, sigma))
    values = call_on(answer, "best(coefficients, n, epsilon, sigma)", cases)

    def of(share: Callable[[Tensor, int], Any]) -> Callable[..., float]:
        return lambda c, n, e, s: float(norm.cdf(e / s * float(share(c.square(), n))))

    mistakes = [
        (of(lambda c, n: c[:n].sum() / c[n:].sum()), "This is the ratio of energies; that of lengths is its root."),
        (
            of(lambda c, n: (c[:n].sum() / c.sum()).sqrt()),
            "The noise is missing: along the visible part of v it has the share that cannot be seen.",
        ),
        (of(lambda c, n: c[:n].sum().sqrt()), "Does this know that the coefficients need not have Σ c² = 1?"),
        (
            of(lambda c, n: (c[:n].sum() / (1 - c[:n].sum()).abs()).sqrt()),
            "This holds for Σ c² = 1 only: divide by the energy of the other coefficients.",
        ),
        (of(lambda c, n: (c[n:].sum() / c[:n].sum()).sqrt()), "The other way round: the first n are seen."),
        (lambda c, n, e, s: _best(c, n, s, e), "More noise must make it worse: ε stands above σ."),
        (lambda c, n, e, s: norm.ppf(_best(c, n, e, s)), "This is the argument of Φ. The accuracy is Φ of it."),
    ]
    return compare(values, cases, _best, mistakes)


def _grade_half_lost(answer: Any) -> str | None:
    return compare_number(
        answer,
        7 / 8,
        0.01,
        (
            (1.0, "Among the lost waves the order of the accuracies is luck."),
            (0.5, "The lost waves all stand below the others, in both orders. That is agreement, too."),
            (0.75, "This lets the order in both halves be luck. In the upper one it is right."),
            (0.0, "That is so where all waves are lost."),
        ),
    )


def _grade_cut(answer: Any) -> str | None:
    return compare_number(
        answer,
        0.94,
        0.005,
        (
            (0.916, "This is what LeNet reaches on (0, 2), and chooses n. The question is for the constant image."),
            (0.802, "This is what LeNet reaches on the constant image. What would the cut allow?"),
            (0.788, "This is the cut of the text, at 100. It allows 74 % on (0, 2), and LeNet reaches more."),
            (94.0, "Give a share between 0 and 1, not per cent."),
            (366, "So many NADs it takes. What do they allow on the constant image?"),
        ),
    )


EXERCISES = (
    Exercise(
        id="05-1",
        summary="Write best(coefficients, n, epsilon, sigma): the best accuracy on D(v) of who sees n NADs only.",
        grade=_grade_best_of_first,
        hints=(
            "Split v into the part that is seen and the rest. How long is either, for a v of unit norm?",
            "Along what is seen, the label has the size ε‖seen‖ and the noise σ‖rest‖, as it is orthogonal to v.",
            "Φ(ε/σ · ‖seen‖ / ‖rest‖), with the squared norms Σ c² over the first n coefficients and over the others.",
        ),
        praise="That is right. For two coefficients it is the curve of the figure, with cot t = c₀ / c₁.",
    ),
    Exercise(
        id="05-2",
        summary="Half of the waves are lost. Which ρ can a prediction reach that orders the others perfectly?",
        grade=_grade_half_lost,
        hints=(
            "In the upper half all d are zero. In the lower one two orders of n/2 waves are unrelated.",
            "For two unrelated orders of m waves ρ is 0 on average. So what is Σ d² there?",
            "Σ d² = m³/6 with m = n/2, for large n. Put it into the formula, with n.",
        ),
        praise="That is right. So a ρ below one can be the fault of the accuracies, and not of the prediction.",
    ),
    Exercise(
        id="05-3",
        summary="The cut that fits LeNet's accuracy on (0, 2): what does it allow on the constant image?",
        grade=_grade_cut,
        hints=(
            "Exercise 05-1 has the best accuracy of a classifier that sees n NADs. Its coefficients are uₖᵀv.",
            "Raise n until the best accuracy on (0, 2) is at least LeNet's. Mind σ = 3.",
            "best(U @ constant, n, 1, 3), where U has a NAD in each row and n is some hundreds.",
        ),
        praise="That is right. LeNet reaches 80 % there, so the one cut does not fit both.",
    ),
)
