"""Exercises of chapter 2."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import torch
from scipy.stats import norm
from torch import Tensor
from torch.nn import functional

from companion.grading import Exercise, call, choices, compare, compare_number, read_like, read_numbers


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


_ERASER_SIGNATURE = "eraser(frequency, size)"


def _grade_eraser(answer: Any) -> str | None:
    remarks = []
    for frequency, size in ((41, 128), (5, 24), (1, 16), (8, 32), (7, 32)):
        returned = call(answer, _ERASER_SIGNATURE, "three taps, such as (1, 2, 1)", frequency, size)
        taps = torch.tensor(read_numbers(returned, 3, "(1, 2, 1)"), dtype=torch.float64)
        if float(taps.abs().max()) < 1e-6:
            return "These taps erase every wave."
        angle = 2 * math.pi * frequency / size

        def response(at: float, taps: torch.Tensor = taps) -> float:
            return abs(sum(float(tap) * cmath.exp(1j * at * k) for k, tap in enumerate(taps)))

        if response(angle) < 1e-6 * float(taps.abs().max()):
            continue
        if response(math.pi - angle) < 1e-6 * float(taps.abs().max()):
            remarks.append("These taps erase the frequency D/2 − ℓ. Turn one sign.")
        elif response(0.0) < 1e-6:
            remarks.append("This erases the constant.")
        elif abs(float(taps[0]) + float(taps[1]) * math.cos(angle) + float(taps[2]) * math.cos(2 * angle)) < 1e-6:
            remarks.append("This erases the cosine where it begins, and not the sine. All phases have to go.")
        else:
            remarks.append("")
    return None if not remarks else remarks[0] if len(set(remarks)) == 1 else ""


def _grade_one_row(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(21)
    mistakes: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "v itself would tell all, but the layer has not measured it: r must be a sum of rows of P.": lambda v, P: v,
        "PᵀPv is a sum of rows of P. But rows that are long, or alike, weigh too much in it.": lambda v, P: P.T @ P @ v,
        "One of the rows is not enough: the others know something of v, too.": lambda v, P: P[(P @ v).abs().argmax()],
    }
    explained = dict.fromkeys(["right", *mistakes], True)
    for rows, columns in ((3, 8), (2, 4), (5, 9)):
        matrix = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
        v = functional.normalize(torch.randn(columns, generator=generator, dtype=torch.float64), dim=0)
        row = read_like(call(answer, "one_row(v, P)", "a tensor like v", v.clone(), matrix.clone()), v, "v")
        if not float(row.norm()) > 1e-9:
            return "A row of zeros measures nothing."
        for remark, formula in {"right": _projection, **mistakes}.items():
            cosine = functional.cosine_similarity(row, formula(v, matrix), dim=0).abs()
            explained[remark] &= bool(cosine > 1 - 1e-9)
    agreeing = [remark for remark, holds in explained.items() if holds]
    return "" if not agreeing else None if agreeing[0] == "right" else agreeing[0]


def _projection(v: Tensor, matrix: Tensor) -> Tensor:
    return torch.linalg.pinv(matrix) @ matrix @ v


_PLANE = tuple((i, j) for i in range(-16, 16) for j in range(-16, 16))


def _is_erased(i: int, j: int) -> bool:
    return any(f % 8 == 0 and f != 0 for f in (i, j))


def _grade_erased(answer: Any) -> str | None:
    mistakes = (
        (lambda i, j: i % 8 == 0 or j % 8 == 0, "(0, 0) is among these, and no average erases a constant image."),
        (lambda i, j: i % 8 == j % 8 == 0, "One axis is enough: if all rows have the mean 0, the block has it, too."),
        (lambda i, j: i % 8 == j % 8 == 0 and (i, j) != (0, 0), "One axis is enough: (8, 1) is erased, too."),
        (lambda i, j: 8 in (abs(i), abs(j)), "Nearly: what is the mean of 1, −1, 1, −1, the wave of frequency 16?"),
        (lambda i, j: -16 in (i, j), "These are erased by the first of the two layers. The second one erases more."),
        (lambda i, j: 8 in (i, j) or -16 in (i, j), "(8, 0) and (−8, 0) are the same wave."),
        (lambda i, j: not _is_erased(i, j), "The other way round: of these something is left."),
    )
    return compare(choices(answer, "is_erased(i, j)", _PLANE), _PLANE, _is_erased, mistakes)


EXERCISES = (
    Exercise(
        id="02-1",
        summary="Write eraser(frequency, size): three taps that erase all waves of a frequency, whatever their phase.",
        grade=_grade_eraser,
        hints=(
            "A filter with the taps 1, −c, 1 gives x[n − 1] − c x[n] + x[n + 1]. What is that for a cosine?",
            "cos(a − b) + cos(a + b) = 2 cos(a) cos(b).",
            "So c = 2 cos(2πℓ/D) erases the wave, at every phase.",
        ),
        praise="That is right. For one frequency three taps are enough; each layer chooses what it forgets.",
    ),
    Exercise(
        id="02-2",
        summary="Write one_row(v, P): a sum of rows of P that alone tells the label as well as the whole layer.",
        grade=_grade_one_row,
        hints=(
            "The proof splits v into two parts. Along which direction of the row space is there any signal?",
            "Along a, the projection of v on the row space. The other directions there hold noise, and no hint of a's.",
            "torch.linalg.pinv(P) @ P projects on the row space.",
        ),
        praise="That is right. The layer's other values are noise, and do not even help to cancel some.",
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
    Exercise(
        id="02-4",
        summary="Write is_erased(i, j): whether two layers of average pooling leave nothing of a wave, at any phase.",
        grade=_grade_erased,
        hints=(
            "Two averages over 2 × 2 pixels are one over 4 × 4. When is the mean of a wave over such a block zero?",
            "Take one axis first. Four pixels hold i/8 periods; the mean over whole periods is zero.",
            "i = ±8 and i = −16 are erased, i = 0 is not. The same holds for j, and one of the two is enough.",
        ),
        praise="That is right. In the map below these are the black belts.",
    ),
)
