"""Exercises of chapter 4."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from companion.grading import (
    Exercise,
    UnexpectedAnswer,
    call,
    call_on,
    close,
    compare,
    compare_number,
    describe,
    read_number,
    read_numbers,
)


def _grade_logistic_covariance(answer: Any) -> str | None:
    # nn.Linear draws its weights uniformly from [−a, a] with a = 1/√(fan in); such a weight has variance a²/3.
    fan_in = 32 * 32
    bound = 1 / math.sqrt(fan_in)
    expected = bound**2 / 3
    return compare_number(
        answer,
        expected,
        2e-3 * expected,
        (
            (bound**2, "This is the square of the uniform distribution's bound; its variance is smaller."),
            (bound, "This is the uniform distribution's bound; its variance is asked for."),
            (math.sqrt(expected), "This is the standard deviation of a weight; a covariance holds its square."),
            (fan_in * expected, "This is the trace of the covariance, the sum of all D eigenvalues."),
            (32**-1 / 3, "D is the number of pixels, 32 × 32, not the image's side."),
        ),
    )


_ALIGNMENT_SIGNATURE = "alignment(covariance, v)"


def _grade_alignment(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(11)
    # What each mistake would return, in the order in which they are tried.
    mistakes: list[tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], str]] = [
        (lambda c, v: v @ c @ v, "v is not always of unit norm: normalise it first."),
        (
            lambda c, v: v @ c @ v / v.norm(),
            "v occurs twice in vᵀCv, so its norm has to be divided out twice: α has the square of v in it.",
        ),
        (lambda c, v: (c @ v).norm() / v.norm(), "This is ‖Cv‖: take the component of Cv along v, not its length."),
        (lambda c, v: (c @ v).norm(), "This is ‖Cv‖: take the component of Cv along v, not its length."),
        (lambda c, v: (v @ c @ v).sqrt() / v.norm(), "This is the square root of α(v)."),
        (lambda c, v: (v @ c @ c @ v) / v.dot(v), "This is vᵀC²v: the covariance occurs once."),
    ]
    values: list[float] = []
    cases: list[tuple[torch.Tensor, torch.Tensor]] = []
    for dimension, length in ((6, 1.0), (6, 2.5), (12, 0.2), (3, 1.0)):
        factor = torch.randn(dimension, dimension, generator=generator, dtype=torch.float64)
        covariance = factor @ factor.T / dimension
        v = torch.randn(dimension, generator=generator, dtype=torch.float64)
        v = length * v / v.norm()
        returned = call(answer, _ALIGNMENT_SIGNATURE, "one number, α(v)", covariance.clone(), v.clone())
        try:
            values.append(read_number(returned))
        except UnexpectedAnswer as error:
            raise UnexpectedAnswer(f"About what your function returns: {error}") from None
        cases.append((covariance, v))

    def agrees(formula: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> bool:
        # Loose enough for an answer that works in float32.
        return all(math.isclose(a, formula(c, v).item(), rel_tol=1e-4) for a, (c, v) in zip(values, cases, strict=True))

    if agrees(lambda c, v: v @ c @ v / v.dot(v)):
        return None
    return next((remark for formula, remark in mistakes if agrees(formula)), "")


def _grade_secant_of_maximum(answer: Any) -> str | None:
    value = read_numbers(answer, 2, "(0.25, 0.75)")
    scale = 2.0  # any other gives the same

    def near(*candidate: float) -> bool:
        return all(close(entry, other, 1e-3) for entry, other in zip(value, candidate, strict=True))

    # At (±s, 0), and by symmetry at (0, ±s).
    above, below = max(scale, 0.0), max(-scale, 0.0)
    expected = (above - below) / (2 * scale)
    if near(expected, expected):
        return None
    if near(1, 0) or near(0, 1):
        winner = "x_1" if near(1, 0) else "x_2"
        return f"That is the gradient at a point where {winner} wins; at x0 = 0 neither does."
    if near(above / scale, above / scale):
        return "This steps to one side only, or divides by s: the secant goes from x0 − s e_i to x0 + s e_i."
    if near(0, 0):
        return "This would be right if f(s e_i) and f(−s e_i) were equal: is max(−s, 0) the same as max(s, 0)?"
    if near(expected, 0) or near(0, expected):
        return "f treats both coordinates alike, and so does x0 = 0."
    if near(-expected, -expected):
        return "The sign is the wrong way round: f grows with either coordinate."
    return ""


_AVERAGE_SIGNATURE = "averaged_covariance(J, variance)"


def _grade_averaged_covariance(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(12)
    # What each mistake would return, in the order in which they are tried.
    mistakes: list[tuple[Callable[[torch.Tensor, float], torch.Tensor], str]] = [
        (
            lambda jacobian, variance: variance * jacobian @ jacobian.T,
            "This is s² J Jᵀ, of shape (k, k); a covariance of input gradients has shape (D, D).",
        ),
        (
            lambda jacobian, variance: jacobian @ jacobian.T,
            "This is J Jᵀ: the order is the other one, and s² is missing.",
        ),
        (lambda jacobian, variance: jacobian.T @ jacobian, "The variance of the output weights is missing."),
        (
            lambda jacobian, variance: variance * jacobian.T @ jacobian / len(jacobian),
            "This is divided by k: the covariance is a sum over the k features, not a mean.",
        ),
        (
            lambda jacobian, variance: jacobian.T @ jacobian / len(jacobian),
            "This is divided by k, and the variance of the output weights is missing.",
        ),
        (
            lambda jacobian, variance: variance**2 * jacobian.T @ jacobian,
            "The argument is the variance s² already; it is not squared again.",
        ),
        (
            lambda jacobian, variance: variance**0.5 * jacobian.T @ jacobian,
            "This has the standard deviation s in it; the covariance has the variance s².",
        ),
    ]
    cases: list[tuple[torch.Tensor, float]] = []
    values: list[torch.Tensor] = []
    for num_features, dimension, variance in ((3, 5, 0.25), (6, 4, 2.0), (4, 4, 0.01)):
        jacobian = torch.randn(num_features, dimension, generator=generator, dtype=torch.float64)
        returned = call(answer, _AVERAGE_SIGNATURE, "a matrix of shape (D, D)", jacobian.clone(), variance)
        if not isinstance(returned, torch.Tensor | np.ndarray):
            raise UnexpectedAnswer(f"Expected the function to return a tensor, but got {describe(returned)}.")
        matrix = torch.as_tensor(returned).detach().cpu()
        if matrix.is_complex():
            raise UnexpectedAnswer("Expected a real matrix, but got a complex one.")
        if tuple(matrix.shape) not in {(dimension, dimension), (num_features, num_features)}:
            raise UnexpectedAnswer(
                f"Expected a matrix of shape (D, D) = ({dimension}, {dimension}) for J of shape "
                f"({num_features}, {dimension}), but got {tuple(matrix.shape)}."
            )
        cases.append((jacobian, variance))
        values.append(matrix.double())

    def agrees(formula: Callable[[torch.Tensor, float], torch.Tensor]) -> bool:
        # Loose enough for an answer that works in float32.
        expected = [formula(*case) for case in cases]
        return all(
            value.shape == other.shape and torch.allclose(value, other, rtol=1e-4, atol=1e-5 * float(other.abs().max()))
            for value, other in zip(values, expected, strict=True)
        )

    if agrees(lambda jacobian, variance: variance * jacobian.T @ jacobian):
        return None
    return next((remark for formula, remark in mistakes if agrees(formula)), "")


def _grade_networks_for(answer: Any) -> str | None:
    cases = [(1.21, 1024), (4.0, 256), (2.0, 3072)]
    mistakes = [
        (lambda s, d: d / (s - 1) ** 2, "The edge is a square: (1 + √(D/n))². Take the root of the spread first."),
        (
            lambda s, d: d * (math.sqrt(s) - 1) ** 2,
            "The other way round: for a narrower band more networks are needed.",
        ),
        (lambda s, d: d / (math.sqrt(s) - 1), "√(D/n) is what equals √spread − 1. Square both sides."),
        (lambda s, d: d / (1 - 1 / math.sqrt(s)) ** 2, "This is the lower edge, (1 − √(D/n))²."),
    ]

    def right(spread: float, pixels: int) -> float:
        return pixels / (math.sqrt(spread) - 1) ** 2

    return compare(call_on(answer, "networks_for(spread, pixels)", cases), cases, right, mistakes)


def _grade_whole(answer: Any) -> str | None:
    cases = [(0.9,), (0.5,), (1.0,)]
    mistakes = [
        (lambda q: q, "This is one half beside the other; the whole has twice the networks, and the truth no error."),
        (lambda q: (1 + q) / 2, "This is one half beside the truth. The whole has twice as many networks."),
        (lambda q: math.sqrt(q), "This is one half beside the truth, nearly. The whole has twice as many networks."),
        (lambda q: (1 - q) / 4, "This is what the whole lacks: take it from 1."),
    ]
    return compare(call_on(answer, "whole(q)", cases), cases, lambda q: 1 - (1 - q) / 4, mistakes)


EXERCISES = (
    Exercise(
        id="04-1",
        summary="The secant of f(x) = max(x_1, x_2) at x0 = 0 with scale s: what is (g_1, g_2)?",
        grade=_grade_secant_of_maximum,
        hints=(
            "The secant along x_i is g_i = (f(x0 + s e_i) − f(x0 − s e_i)) / (2s).",
            "Along x_1 the other coordinate stays 0: f(s, 0) = max(s, 0) and f(−s, 0) = max(−s, 0).",
            "For s > 0 these are s and 0. Divide their difference by 2s; x_2 gives the same.",
        ),
        praise="That is right, for any s > 0. There is no gradient at 0; the secant takes both sides alike.",
    ),
    Exercise(
        id="04-2",
        summary="The gradient covariance of logistic regression on 1,024 pixels is c I. What is c?",
        grade=_grade_logistic_covariance,
        hints=(
            "The gradient of a linear model with respect to its input is its weight vector.",
            "So c is the variance of one weight. How does torch.nn.Linear initialise its weights?",
            "They are uniform on [−a, a] with a = 1/√D, and such a variable has variance a²/3.",
        ),
        praise="That is right. Logistic regression prefers no direction at all.",
    ),
    Exercise(
        id="04-3",
        summary="Write averaged_covariance(J, variance): E[g gᵀ] over output weights, for a J of shape (k, D).",
        grade=_grade_averaged_covariance,
        hints=(
            "With output weights w the gradient is g = Jᵀ w, a sum of the rows of J with random coefficients.",
            "E[g gᵀ] = Jᵀ E[w wᵀ] J, since J does not depend on w.",
            "The weights are independent with mean zero: E[w wᵀ] is the variance s² times the identity.",
        ),
        praise="That is right. One network now counts for all its possible output layers at once.",
    ),
    Exercise(
        id="04-4",
        summary="Write alignment(covariance, v), which returns α(v/‖v‖): the alignment of the direction of v.",
        grade=_grade_alignment,
        hints=(
            "α(v) is the second moment of the gradient's component along v, and v is a unit vector there.",
            "For a unit vector v, α(v) is the quadratic form v @ covariance @ v.",
            "Divide by v @ v to allow for a v that is not of unit norm.",
        ),
        praise="That is right. α(v) is a weighted mean of the eigenvalues.",
    ),
    Exercise(
        id="04-5",
        summary="Write whole(q): the overlap of an estimate with the truth, from that of its two halves.",
        grade=_grade_whole,
        hints=(
            "Let the whole lack δ of the overlap 1. How much does a half lack, which has half the networks?",
            "A half lacks 2δ. The errors of two halves are independent: their expected squares add up.",
            "Two halves lack 4δ of each other, and that is 1 − q.",
        ),
        praise="That is right, for q near 1: halves at 0.9 make a whole at 0.975.",
    ),
    Exercise(
        id="04-6",
        summary="Write networks_for(spread, pixels): how many gradients keep noise below spread times the mean.",
        grade=_grade_networks_for,
        hints=(
            "The upper edge of the band, over the true eigenvalue, is (1 + √(D/n))².",
            "Set it equal to the spread, and solve for n.",
            "√(D/n) = √spread − 1, so n = D / (√spread − 1)².",
        ),
        praise="That is right. For 32 × 32 pixels and a tenth more than the mean these are 430,000 single gradients.",
    ),
)
