"""Exercises of chapter 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from scipy.stats import kendalltau, pearsonr, spearmanr
from torch import Tensor

from companion.grading import Exercise, UnexpectedAnswer, call, close, read_number


def _grade_logistic_regression(answer: Any) -> str | None:
    value = read_number(answer)
    # The problem is separable, and 10,000 or 3,000 samples find the hyperplane: between 99 % and 100 %.
    if 0.98 <= value <= 1:
        return None
    if 1 < value <= 100:
        return "Give a share between 0 and 1, not per cent."
    if close(value, 0.5, 0.03):
        return "This is LeNet's accuracy there. u₁₀₀₀ is LeNet's last choice; has logistic regression a last choice?"
    if not 0 <= value <= 1:
        return "An accuracy is a share between 0 and 1."
    return ""


Case = tuple[Tensor, Tensor]


def _numbers(answer: Any, signature: str, cases: Sequence[Case]) -> list[float]:
    """What the reader's function returns for each case."""
    values = []
    for first, second in cases:
        returned = call(answer, signature, "one number", first.clone(), second.clone())
        try:
            values.append(read_number(returned))
        except UnexpectedAnswer as error:
            raise UnexpectedAnswer(f"About what your function returns: {error}") from None
    return values


def _compare(
    values: list[float], cases: Sequence[Case], right: Callable[..., float], mistakes: Sequence[tuple[Any, str]]
) -> str | None:
    """None if all values are right, else the remark on the first mistake that explains them all."""

    def explained(formula: Callable[[Tensor, Tensor], float]) -> bool:
        return all(close(value, float(formula(*case)), 1e-6) for value, case in zip(values, cases, strict=True))

    if explained(right):
        return None
    return next((remark for formula, remark in mistakes if explained(formula)), "")


def _mixture(eigenvalues: Tensor, coefficients: Tensor) -> float:
    weights = coefficients.square()
    return float((weights * eigenvalues).sum() / weights.sum())


def _grade_mixture_alignment(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(5)
    cases = []
    for size in (2, 5, 9):
        eigenvalues = torch.rand(size, generator=generator, dtype=torch.float64).sort(descending=True).values
        cases.append((eigenvalues, 2 * torch.randn(size, generator=generator, dtype=torch.float64)))
    values = _numbers(answer, "mixture_alignment(eigenvalues, coefficients)", cases)
    mistakes = [
        (lambda e, c: (c.square() * e).sum(), "This holds for Σ c² = 1 only. Scale v to unit norm first."),
        (lambda e, c: (c.square() * e).sum() / c.norm(), "Divide by ‖v‖², not by ‖v‖: v stands on both sides of C."),
        (lambda e, c: (c.abs() * e).sum() / c.abs().sum(), "The weights are c², not |c|."),
        (lambda e, c: (c / c.norm() * e).sum(), "The weights are c², not c: α is a quadratic form."),
        (lambda e, c: (c * e).square().sum() / c.square().sum(), "The eigenvalue enters once, not squared: vᵀCv."),
        (lambda e, c: e.mean(), "This is the mean over all directions. The mean for this v is weighted, by c²."),
        (lambda e, c: (c.square() * e).sum().sqrt() / c.norm(), "This is the square root of α(v)."),
    ]
    return _compare(values, cases, _mixture, mistakes)


def _ranks(x: Tensor) -> Tensor:
    return x.argsort().argsort().to(torch.float64)


def _grade_rank_correlation(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(6)
    cases = []
    for size in (5, 8, 20):
        x = torch.randn(size, generator=generator, dtype=torch.float64)
        cases.append((x, (x + torch.randn(size, generator=generator, dtype=torch.float64)).exp()))
    values = _numbers(answer, "rank_correlation(x, y)", cases)

    def right(x: Tensor, y: Tensor) -> float:
        return float(spearmanr(x.numpy(), y.numpy()).statistic)

    def without(factor: Callable[[int], float]) -> Callable[[Tensor, Tensor], float]:
        return lambda x, y: 1 - float((_ranks(x) - _ranks(y)).square().sum()) * factor(len(x))

    mistakes = [
        (lambda x, y: pearsonr(x.numpy(), y.numpy()).statistic, "This is Pearson's correlation: take ranks first."),
        (
            lambda x, y: pearsonr(x.argsort().numpy(), y.argsort().numpy()).statistic,
            "argsort gives who stands at each place, not the place of each. Apply it twice.",
        ),
        (lambda x, y: kendalltau(x.numpy(), y.numpy()).statistic, "This is Kendall's τ; Spearman's ρ is asked for."),
        (lambda x, y: -right(x, y), "The sign is wrong: both have to be ranked in the same order."),
        (without(lambda n: 6 / n**3), "The denominator is n(n² − 1), not n³."),
        (without(lambda n: 1 / (n * (n**2 - 1))), "The factor 6 is missing."),
        (lambda x, y: right(x, y) ** 2, "This is ρ²."),
    ]
    return _compare(values, cases, right, mistakes)


EXERCISES = (
    Exercise(
        id="05-1",
        summary="Which test accuracy does logistic regression reach on D(u₁₀₀₀), with LeNet's u₁₀₀₀?",
        grade=_grade_logistic_regression,
        hints=(
            "The NADs are LeNet's. What does logistic regression know of them?",
            "Chapter 1: a classifier that treats all directions alike does equally well on every D(v).",
            "On every direction of chapter 1 it was right nearly always.",
        ),
        praise="That is right. The direction is hard for LeNet, not in itself.",
    ),
    Exercise(
        id="05-2",
        summary="Write mixture_alignment(eigenvalues, coefficients): α(v) of v = Σ c_k u_k, for a v of any length.",
        grade=_grade_mixture_alignment,
        hints=(
            "C u_k = λ_k u_k, and the u_k are orthonormal: what is left of vᵀCv?",
            "For a unit vector it is Σ c_k² λ_k.",
            "For any length divide by ‖v‖² = Σ c_k².",
        ),
        praise="That is right: a mean of the eigenvalues, weighted by the energy of v along each NAD.",
    ),
    Exercise(
        id="05-3",
        summary="Write rank_correlation(x, y): Spearman's ρ of two vectors without ties.",
        grade=_grade_rank_correlation,
        hints=(
            "Replace each number by its place in the order, from the smallest to the largest.",
            "x.argsort().argsort() gives the places.",
            "With differences d of the places, ρ = 1 − 6 Σ d² / (n (n² − 1)).",
        ),
        praise="That is right. It asks for the order only, so it is the same for α and for log α.",
    ),
)
