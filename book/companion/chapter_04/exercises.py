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
    describe,
    read_like,
    read_number,
    read_numbers,
)


def _grade_shuffled(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(2)
    basis = torch.linalg.qr(torch.randn(7, 7, generator=generator, dtype=torch.float64)).Q
    order = torch.tensor([2, 0, 4, 1, 6, 3, 5])  # not its own inverse
    given = call(answer, "shuffled(nads, order)", "a tensor as large as nads", basis.clone(), order.clone())
    moved = read_like(given, basis, "nads")
    if torch.allclose(moved[:, order], basis):
        return None
    mistakes = {
        "This shuffles the other way: your picture, taken in that order, must be LeNet's again.": basis[:, order],
        "This changes the order of the NADs. Their pixels are to be moved.": basis[order],
        "This moves both the pixels and the order of the NADs.": basis[order][:, order],
        "Nothing has moved.": basis,
    }
    return next((remark for remark, other in mistakes.items() if torch.allclose(moved, other)), "")


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


def _grade_fewest(answer: Any) -> str | None:
    neither, output, both = read_numbers(answer, 3, "(1000, 100, 10)")
    if (neither, output, both) == (1024, 13, 2):
        return None
    if neither != 1024:
        return "Without averages a network gives one gradient g, and g gᵀ has rank 1."
    if output == 12:
        return "12 networks have 1,008 rows: 16 directions are missing."
    if output != 13:
        return "Jᵀ J has the rank of J at most, which has a row for each feature."
    if both == 1:
        return "Eight times 84 is 672: one network is too few."
    return "The mirrored networks count, too: eight of them for each that is drawn."


def _read_indices(answer: Any) -> list[int]:
    """Read the answer as whole numbers, in rising order."""
    if isinstance(answer, torch.Tensor | np.ndarray):
        answer = answer.tolist()
    if not isinstance(answer, tuple | list | set | range):
        raise UnexpectedAnswer(f"Expected the numbers of NADs, such as [0, 3], but got {describe(answer)}.")
    numbers = [read_number(entry) for entry in answer]
    if any(number != int(number) for number in numbers):
        raise UnexpectedAnswer("Expected the numbers of NADs, such as [0, 3], but some are not whole.")
    return sorted(int(number) for number in numbers)


def _named(
    values: torch.Tensor,
    errors: torch.Tensor,
    combined: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = torch.hypot,
    factor: float = 2,
    sides: str = "both",
    ends: bool = True,
) -> list[int]:
    clear = values[:-1] - values[1:] > factor * combined(errors[:-1], errors[1:])
    end = torch.tensor([ends])
    above, below = torch.cat([end, clear]), torch.cat([clear, end])
    chosen = {"both": above & below, "above": above, "below": below, "either": above | below}[sides]
    return chosen.nonzero().flatten().tolist()


def _grade_named(answer: Any) -> str | None:
    cases = [
        # Each has a gap that only one of the mistakes below takes for clear, or for not clear.
        ([30.0, 16.0, 16.0, 13.0, 10.0, 4.0, 3.0], [2.0, 1.0, 1.0, 0.8, 0.8, 0.8, 0.5]),
        ([9.0, 7.0, 5.0, 3.0, 2.0, 1.9], [0.9, 0.6, 0.1, 0.1, 0.1, 0.1]),
        ([20.0, 17.2, 12.0, 8.5, 8.0, 2.0], [1.0, 0.5, 1.0, 0.8, 0.9, 0.3]),
    ]
    arguments = [
        (torch.tensor(values, dtype=torch.float64), torch.tensor(errors, dtype=torch.float64))
        for values, errors in cases
    ]
    given = []
    for pair in arguments:
        returned = call(answer, "named(values, errors)", "the numbers of NADs", *(part.clone() for part in pair))
        given.append(_read_indices(returned))
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"factor": 1}, "A gap is clear if it is more than *twice* its error."),
        ({"sides": "below"}, "The border behind a NAD is not enough: it has one before it, too."),
        ({"sides": "above"}, "The border before a NAD is not enough: it has one behind it, too."),
        ({"sides": "either"}, "One clear border is not enough: both have to be clear."),
        ({"ends": False}, "The first NAD has only one neighbour, and so has the last: there is no other to fear."),
        ({"combined": torch.add}, "Independent errors add as squares: √(e₁² + e₂²)."),
        ({"combined": lambda one, other: one}, "The neighbour's eigenvalue has an error, too."),
        ({"combined": lambda one, other: one**2 + other**2}, "This is the square of the error: take its root."),
    ]

    def explained(**changed: Any) -> bool:
        return given == [_named(*case, **changed) for case in arguments]

    if explained():
        return None
    return next((remark for changed, remark in mistakes if explained(**changed)), "")


def _grade_fails_below(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(12)
    cases = []
    for number in (50, 200):
        slopes = torch.randn(number, generator=generator, dtype=torch.float64).abs()
        norms = slopes + torch.rand(number, generator=generator, dtype=torch.float64)
        cases.append((slopes, 2 * norms))

    def right(slopes: torch.Tensor, norms: torch.Tensor) -> float:
        return float((slopes * norms).mean() / (slopes.square().mean() * norms.square().mean()).sqrt())

    mistakes = [
        (
            lambda s, n: 1.0,
            "Below 1 the printed bound is below the true one. It fails only where it is below the left-hand side, too.",
        ),
        (lambda s, n: 1 / right(s, n), "The other way round: the left-hand side over the bound at c₁ = 1."),
        (lambda s, n: math.sqrt(right(s, n)), "The left-hand side has a factor c₁ as well: divide both sides by it."),
        (
            lambda s, n: float(s.mean() * n.mean()) * right(s, n) / float((s * n).mean()),
            "Slope and norm belong to the same network: take the mean of their product.",
        ),
        (lambda s, n: float((s * n).mean()), "The two roots on the right-hand side are missing."),
    ]
    return compare(call_on(answer, "fails_below(slopes, norms)", cases), cases, right, mistakes)


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
        summary="The NADs of LeNet behind a permutation of the pixels, from LeNet's own.",
        grade=_grade_shuffled,
        hints=(
            "The new network gives on u what LeNet gives on u[order].",
            "So u[order] is one of LeNet's NADs. Where in u does its pixel k stand?",
            "At order[k]: moved[:, order] = nads.",
        ),
        praise="That is right. The taste is the same, for shuffled pictures.",
    ),
    Exercise(
        id="04-3",
        summary="The fewest LeNets for an estimate of rank 1,024: without averages, with one, with both.",
        grade=_grade_fewest,
        hints=(
            "The rank of a sum is at most the sum of the ranks. What is the rank that one network brings?",
            "Without averages 1, with the output layer's 84, with the eight symmetries as well 8 · 84.",
            "Divide 1,024 by each, and round up.",
        ),
        praise="That is right. With fewer, some directions have α = 0 that the architecture does not despise.",
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
        summary="Write named(values, errors): which NADs have gaps to both neighbours of more than twice the error.",
        grade=_grade_named,
        hints=(
            "values[:-1] - values[1:] are the gaps. The error of a gap is √(e₁² + e₂²), from those on its two sides.",
            "A gap is clear if it is more than twice its error. NAD k lies between the gaps k − 1 and k.",
            "The first has no gap before it and the last none behind it: count these as clear.",
        ),
        praise="That is right. Equal eigenvalues have no gap, so neither of the two is ever named.",
    ),
    Exercise(
        id="04-6",
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
        id="04-7",
        summary="Write fails_below(slopes, norms): the c₁ below which lemma 2, as printed with c₁², fails.",
        grade=_grade_fails_below,
        hints=(
            "For ψ'(t) = c₁ t + c₂ the left-hand side is c₁ E[s n] + c₂ E[n], for slopes s and norms n.",
            "The terms with c₂ are equal. Compare c₁ E[s n] with c₁² √(E s²) √(E n²).",
            "Divide by c₁: the printed bound fails while c₁ is below E[s n] / (√(E s²) √(E n²)).",
        ),
        praise="That is right, and c₂ does not matter. Whether the printed bound holds depends on the units of q.",
    ),
)
