"""Exercises of chapter 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.stats import norm

from companion.grading import Exercise, UnexpectedAnswer, call, close, compare_number, describe, read_number
from nadtools.theory.pooling import bayes_accuracy


def _grade_plain_subsampling(answer: Any) -> str | None:
    # One of S = 2 samples is kept without a filter: signal and one alias of equal weight, so the angle is 45 degrees.
    return compare_number(
        answer,
        float(norm.cdf(1.0)),
        1e-3,
        (
            (1.0, "Half of the samples are gone: each bin holds one alias beside the signal, and the alias is noise."),
            (0.5, "Half of the signal is still there; only its bin is shared."),
            (
                float(norm.cdf(math.sqrt(2))),
                "This has one √2 too many: with no prefilter, the signal and its alias come through equally.",
            ),
            (
                float(norm.cdf(1 / math.sqrt(2))),
                "Subsampling halves the signal's energy, and that of the noise in each bin as well.",
            ),
            (float(norm.cdf(1 / 3)), "Here σ is 1, not 3."),
        ),
    )


_ALIASES_SIGNATURE = "aliases(frequency, stride, size)"


def _grade_aliases(answer: Any) -> str | None:
    remark = ""
    for frequency, stride, size in ((9, 4, 128), (40, 4, 128), (0, 2, 16), (7, 8, 64), (23, 3, 24), (5, 1, 12)):
        returned = call(answer, _ALIASES_SIGNATURE, "the frequencies, such as {41, 73, 105}", frequency, stride, size)
        if isinstance(returned, torch.Tensor | np.ndarray):
            returned = returned.tolist()
        if not isinstance(returned, set | frozenset | list | tuple | range):
            raise UnexpectedAnswer(f"Expected the function to return a set or a list, but got {describe(returned)}.")
        try:
            found = {int(entry) for entry in returned}
        except (TypeError, ValueError):
            raise UnexpectedAnswer("Expected whole numbers in what your function returns.") from None
        bins = size // stride
        expected = {(frequency + k * bins) % size for k in range(1, stride)}
        if found == expected:
            continue
        if found == expected | {frequency}:
            remark = "This holds the frequency itself; the question is who shares its bin."
        elif found == {frequency + k * bins for k in range(1, stride)}:
            remark = "Frequencies live on a circle: those beyond D − 1 come back at the beginning."
        elif found == {(frequency + k * stride) % size for k in range(1, stride)}:
            remark = "The distance between aliases is M = D/S, not S."
        return remark
    return None


_BAYES_SIGNATURE = "best_accuracy(v, P, epsilon, sigma)"


def _grade_best_accuracy(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(21)
    # What each mistake would return, in the order in which they are tried.
    mistakes: list[tuple[Callable[[torch.Tensor, torch.Tensor, float, float], float], str]] = [
        (
            lambda v, P, e, s: float(norm.cdf(e * float((P @ v).norm()) / s)),
            "This is ε‖Pv‖/σ: the noise goes through P, too, so its covariance is σ² P (I − vvᵀ) Pᵀ.",
        ),
        (
            lambda v, P, e, s: _textbook(v, P, e, s, noise_everywhere=True),
            "This has noise along v as well: its covariance is σ² (I − vvᵀ) before the layer.",
        ),
        (
            lambda v, P, e, s: float(norm.cdf(_argument(v, P, e, s) ** 2)),
            "This is Φ(μᵀΣ⁺μ); the square root is missing.",
        ),
    ]
    cases: list[tuple[torch.Tensor, torch.Tensor, float, float]] = []
    values: list[float] = []
    for rows, columns, epsilon, sigma in ((3, 8, 1.0, 3.0), (2, 4, 0.5, 1.0), (5, 9, 1.0, 0.7)):
        matrix = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
        v = torch.randn(columns, generator=generator, dtype=torch.float64)
        cases.append((v / v.norm(), matrix, epsilon, sigma))
    # The two ends: a layer that stops v, and one that can be inverted.
    stopped = torch.eye(4, dtype=torch.float64)
    cases.append((stopped[0], stopped[1:], 1.0, 1.0))
    cases.append((stopped[0], torch.diag(torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)), 1.0, 1.0))
    for v, matrix, epsilon, sigma in cases:
        returned = call(
            answer, _BAYES_SIGNATURE, "one number, the best accuracy", v.clone(), matrix.clone(), epsilon, sigma
        )
        try:
            values.append(read_number(returned))
        except UnexpectedAnswer as error:
            raise UnexpectedAnswer(f"About what your function returns: {error}") from None
    right = [close(value, float(bayes_accuracy(*case)), 1e-6) for value, case in zip(values, cases, strict=True)]
    if all(right):
        return None
    for formula, remark in mistakes:
        if all(close(value, formula(*case), 1e-6) for value, case in zip(values[:3], cases[:3], strict=True)):
            return remark
    if all(right[:3]) and not right[3]:
        return "Nearly: a layer that stops v (P v = 0) must leave 1/2."
    if all(right[:4]):
        return (
            "Nearly: an invertible layer loses nothing, so the answer there is 1. Then μ leaves the range of Σ, and "
            "a pseudo-inverse of Σ drops the part that gives the label away. The angle to the row space does not."
        )
    return ""


def _argument(
    v: torch.Tensor, matrix: torch.Tensor, epsilon: float, sigma: float, noise_everywhere: bool = False
) -> float:
    mean = epsilon * matrix @ v
    noise = torch.eye(len(v), dtype=v.dtype) - (0 if noise_everywhere else torch.outer(v, v))
    covariance = sigma**2 * matrix @ noise @ matrix.T
    return math.sqrt(max(float(mean @ torch.linalg.pinv(covariance, hermitian=True) @ mean), 0))


def _textbook(
    v: torch.Tensor, matrix: torch.Tensor, epsilon: float, sigma: float, noise_everywhere: bool = False
) -> float:
    return float(norm.cdf(_argument(v, matrix, epsilon, sigma, noise_everywhere)))


EXERCISES = (
    Exercise(
        id="02-1",
        summary="Write aliases(frequency, stride, size): the other frequencies that share its bin after subsampling.",
        grade=_grade_aliases,
        hints=(
            "After subsampling there are M = D/S bins, and frequency ℓ goes to bin ℓ mod M.",
            "So the aliases of ℓ lie at distances M, 2M, ..., (S − 1) M from it.",
            "Take them modulo D: {(frequency + k * M) % size for k in 1, ..., S − 1}.",
        ),
        praise="That is right. The slider of the first figure draws exactly these.",
    ),
    Exercise(
        id="02-2",
        summary="Write best_accuracy(v, P, epsilon, sigma) for any matrix P, also where P v = 0 or P is invertible.",
        grade=_grade_best_accuracy,
        hints=(
            "Only the angle between v and the row space of P matters. An orthonormal basis of the row space gives it.",
            "torch.linalg.pinv(P) @ P projects on the row space: q = vᵀP⁺Pv is the squared cosine of the angle.",
            "The accuracy is Φ((ε/σ) √(q / (1 − q))): treat q = 0 (1/2) and q = 1, up to rounding, (1) with care.",
        ),
        praise="That is right, for any linear layer there is.",
    ),
    Exercise(
        id="02-3",
        summary="Keep every second sample, with no filter and ε = σ = 1: what is the best accuracy at nearly all ℓ?",
        grade=_grade_plain_subsampling,
        hints=(
            "Without a filter the response is 1 everywhere. How many aliases does ℓ have for S = 2?",
            "The bin holds the signal and one alias, both with weight 1. Which angle does v make with its row of P?",
            "That angle is 45°, and the accuracy is Φ((ε/σ) cot 45°).",
        ),
        praise="That is right. A sample thrown away is one alias gained, and here it is as loud as the signal.",
    ),
)
