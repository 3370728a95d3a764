"""Exercises of chapter 1."""

from __future__ import annotations

import math
from typing import Any

import torch
from scipy.stats import norm

from companion.grading import (
    Exercise,
    UnexpectedAnswer,
    call,
    choices,
    close,
    compare,
    describe,
    read_number,
)
from nadtools.directions import fourier_atom


def _grade_accuracy_off_direction(answer: Any) -> str | None:
    value = read_number(answer)
    epsilon, sigma, angle, tolerance = 1.0, 3.0, math.pi / 4, 1e-3
    expected = float(norm.cdf(epsilon * math.cos(angle) / (sigma * math.sin(angle))))
    if close(value, expected, tolerance):
        return None
    if close(value, float(norm.cdf(epsilon * math.cos(angle) / sigma)), tolerance):
        return "This has noise of full size σ along r, but the noise lies only in the orthogonal complement of v."
    if close(value, 1 - expected, tolerance):
        return "This is the error rate; the question asks for the accuracy."
    if close(value, 100 * expected, 100 * tolerance):
        return "This is in per cent; give a number between 0 and 1."
    if close(value, epsilon * math.cos(angle) / (sigma * math.sin(angle)), tolerance):
        return "This is the argument of Φ; the distribution function has still to be applied."
    if not 0 <= value <= 1:
        return "An accuracy lies between 0 and 1."
    return ""


_SAMPLE_SIGNATURE = "sample(v, n, epsilon, sigma, generator)"


def _draw(answer: Any, v: torch.Tensor, n: int, epsilon: float, sigma: float) -> tuple[torch.Tensor, torch.Tensor]:
    """One draw of the reader's sampler, in float64, with its form checked."""
    drawn = call(
        answer, _SAMPLE_SIGNATURE, "a pair (x, y)", v.clone(), n, epsilon, sigma, torch.Generator().manual_seed(7)
    )
    if not (isinstance(drawn, tuple | list) and len(drawn) == 2):
        raise UnexpectedAnswer(f"Expected the function to return a pair (x, y), but got {describe(drawn)}.")
    x, y = drawn
    if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
        raise UnexpectedAnswer(f"Expected two tensors, but got {describe(x)} and {describe(y)}.")
    if tuple(x.shape) != (n, v.numel()) or tuple(y.shape) != (n,):
        raise UnexpectedAnswer(
            f"Expected x of shape (n, D) = ({n}, {v.numel()}) and y of shape (n,) = ({n},), "
            f"but got {tuple(x.shape)} and {tuple(y.shape)}."
        )
    if x.is_complex() or y.is_complex():
        raise UnexpectedAnswer("Expected real tensors, but got complex ones.")
    return x.detach().cpu().double(), y.detach().cpu().double()


def _grade_sampler(answer: Any) -> str | None:
    # A direction that is no coordinate axis, and an epsilon and a sigma that differ from their squares and halves.
    dimension, n, epsilon, sigma = 16, 4000, 2.0, 0.5
    v = torch.randn(dimension, generator=torch.Generator().manual_seed(3))
    v = v / v.norm()
    x, y = _draw(answer, v, n, epsilon, sigma)
    if not torch.isfinite(x).all():
        return "Some entries of x are not finite."
    labels = set(y.unique().tolist())
    if labels <= {-1.0, 1.0} and -1.0 in labels:
        return "The labels are −1 and 1; expected 0 and 1, where the sign is 2y − 1."
    if not labels <= {0.0, 1.0}:
        return f"Expected labels 0 and 1, but found {sorted(labels)[:4]}."
    # Five standard errors of a share of n fair coins.
    if abs(y.mean().item() - 0.5) > 5 * 0.5 / math.sqrt(n):
        return f"The two labels should be equally likely, but {y.mean().item():.0%} of them are 1."

    direction = v.double()
    along, sign = x @ direction, 2 * y - 1
    # The rounding of float32 stays a factor of five below 1e-5 at this size.
    if (along - epsilon * sign).abs().max() > 1e-5:
        if (along + epsilon * sign).abs().max() <= 1e-5:
            return "The sign is the wrong way round: label 1 belongs to +εv and label 0 to −εv."
        if (along - epsilon / 2 * sign).abs().max() <= 1e-5:
            return "The classes lie at ±(ε/2) v; expected ±ε v."
        if (along - along.mean()).abs().max() <= 1e-5:
            return "Every sample has the same coordinate along v; it should be ε for label 1 and −ε for label 0."
        return "⟨x, v⟩ should be exactly ε(2y − 1), without noise: has the noise been projected onto v's complement?"

    noise = x - along[:, None] * direction
    total_variance = noise.square().sum(1).mean().item() / (dimension - 1)
    # Five standard errors of a variance that is averaged over n (D − 1) independent normal coordinates.
    relative_tolerance = 5 * math.sqrt(2 / (n * (dimension - 1)))
    for candidate, remark in (
        (sigma**2, None),
        (sigma**4, "The noise seems to be scaled by σ²; a standard normal has to be scaled by σ."),
        (sigma, "The noise seems to be scaled by √σ; a standard normal has to be scaled by σ."),
        (1.0, "The noise has variance 1: σ seems to be unused."),
        (0.0, "There is no noise in the directions orthogonal to v."),
    ):
        if abs(total_variance - candidate) <= relative_tolerance * candidate + 1e-12:
            if remark is not None:
                return remark
            break
    else:
        return f"The noise has variance {total_variance:.3g} per orthogonal direction; expected σ² = {sigma**2:.3g}."

    covariance = noise.T @ noise / n
    expected = sigma**2 * (torch.eye(dimension, dtype=torch.float64) - direction[:, None] * direction)
    # An entry of a normal sample covariance has a standard error of at most σ² √(2/n); six of them for 136 entries.
    if (covariance - expected).abs().max() > 6 * sigma**2 * math.sqrt(2 / n):
        return "The noise has the right size, but it is not independent and equal in all directions orthogonal to v."
    if noise.mean(0).abs().max() > 6 * sigma / math.sqrt(n):
        return "The noise should have mean zero."
    if (noise.T @ sign / n).abs().max() > 6 * sigma / math.sqrt(n):
        return "The noise depends on the label; it should not."
    again, _ = _draw(answer, v, n, epsilon, sigma)
    if not torch.equal(again, x):
        return "Two calls with equal generators differ: pass generator=generator to every random function."
    return None


_WAVE_SIGNATURE = "wave(N, i, j, phase)"


def _plain_wave(size: int, i: int, j: int, phase: float) -> torch.Tensor:
    """The wave before it is scaled, in float64."""
    pixels = torch.arange(size, dtype=torch.float64)
    return torch.cos(2 * math.pi * (i * pixels[:, None] + j * pixels) / size - phase)


def _grade_wave(answer: Any) -> str | None:
    # Frequencies with and without a partner, and phases that are neither even nor odd.
    cases = [(8, 1, 3, 0.4), (8, 0, 2, math.pi / 2), (8, 4, 4, 0.0), (6, 0, 0, 0.0), (8, 4, 0, 0.3), (6, -2, 1, 1.0)]
    drawn = []
    for case in cases:
        value = call(answer, _WAVE_SIGNATURE, "a tensor of shape (N, N)", *case)
        if not isinstance(value, torch.Tensor) or value.is_complex():
            raise UnexpectedAnswer(f"Expected a real tensor of shape (N, N), but got {describe(value)}.")
        if tuple(value.shape) != case[:1] * 2:
            raise UnexpectedAnswer(f"Expected shape (N, N) = {case[:1] * 2}, but got {tuple(value.shape)}.")
        drawn.append(value.detach().cpu().double())

    def agrees(expected: list[torch.Tensor]) -> bool:
        # A wave in float32 is off by a few 1e-7; the phases of the largest angles by ten times that.
        return all(torch.allclose(one, other, atol=1e-5) for one, other in zip(drawn, expected, strict=True))

    right = [fourier_atom((size, size), (i, j), phase, dtype=torch.float64) for size, i, j, phase in cases]
    if agrees(right):
        return None
    plain = [_plain_wave(*case) for case in cases]
    mistakes = (
        (plain, "The form is right, but the norm is not 1."),
        (
            [math.sqrt(2) / len(one) * one for one in plain],
            "√2/N scales most waves, but not all: try (0, 0).",
        ),
        ([one / len(one) for one in plain], "1/N is the scale of the constant image alone; most waves need more."),
        ([one / one.square().sum() for one in plain], "This divides by the square of the norm."),
        ([one.T for one in right], "Rows and columns are exchanged: i counts the periods from top to bottom."),
        (
            [fourier_atom((size, size), (i, j), -phase, dtype=torch.float64) for size, i, j, phase in cases],
            "The phase has the opposite sign: it is subtracted from the angle.",
        ),
    )
    return next((remark for expected, remark in mistakes if agrees(expected)), "")


_LATTICE = tuple((i, j) for i in range(-16, 16, 2) for j in range(-16, 16, 2))


def _grade_lattice(answer: Any) -> str | None:
    mistakes = (
        (lambda i, j: i % 4 == 2 or j % 4 == 2, "Both, not one of them: (2, 0) is learned."),
        (lambda i, j: i % 4 == 0 and j % 4 == 0, "These are learned. Look two cells further."),
        (lambda i, j: i % 4 != 2 or j % 4 != 2, "The other way round: these are the waves that it learns."),
        (lambda i, j: (i + j) % 4 == 0, "(4, 0) is among these, and it is learned."),
        (lambda i, j: i == j, "Not only on the diagonal: point at (2, 6)."),
    )
    chosen = choices(answer, "is_lost(i, j)", _LATTICE)
    return compare(chosen, _LATTICE, lambda i, j: i % 4 == 2 and j % 4 == 2, mistakes)


_COARSE = tuple((i, j) for i in range(-16, 16, 4) for j in range(-16, 16, 4))


def _stays_a_coin(i: int, j: int) -> bool:
    return 8 in (abs(i), abs(j)) and 4 not in (abs(i), abs(j))


def _grade_coins(answer: Any) -> str | None:
    mistakes = (
        (lambda i, j: 8 in (abs(i), abs(j)), "Nearly: (4, 8) has an 8, too, and is being learned."),
        (lambda i, j: i % 8 == j % 8 == 0, "(16, 0) and (0, 0) are learned, and (12, 8) is not."),
        (lambda i, j: i % 8 == 0 or j % 8 == 0, "(4, 0) is among these, and it is learned."),
        (lambda i, j: 8 in (i, j) and 4 not in (abs(i), abs(j)), "(8, 0) and (−8, 0) are the same wave."),
        (lambda i, j: not _stays_a_coin(i, j), "The other way round: these are the waves that it learns, if slowly."),
    )
    return compare(choices(answer, "stays_a_coin(i, j)", _COARSE), _COARSE, _stays_a_coin, mistakes)


EXERCISES = (
    Exercise(
        id="01-1",
        summary="Which accuracy does a linear classifier along r reach, at 45 degrees to v, with ε = 1 and σ = 3?",
        grade=_grade_accuracy_off_direction,
        hints=(
            "Write r = cos(angle) v + sin(angle) u with a unit vector u orthogonal to v. What is ⟨x, r⟩?",
            "Given the label, ⟨x, r⟩ is normal with mean ±ε cos(angle) and standard deviation σ sin(angle).",
            "The accuracy is Φ(mean / standard deviation); Φ is scipy.stats.norm.cdf.",
        ),
        praise="That is right. The noise lies only in the complement of v, so r sees σ sin(angle) of it.",
    ),
    Exercise(
        id="01-2",
        summary="Write sample(v, n, epsilon, sigma, generator) -> (x, y), which draws from D(v) for a flat v.",
        grade=_grade_sampler,
        hints=(
            "Draw fair labels y in {0, 1} and standard normal noise of shape (n, D), both with the generator.",
            "Remove from each noise vector its component along v: noise − (noise @ v)[:, None] * v.",
            "Then x = ε (2y − 1) v + σ times the projected noise; unsqueeze y so that it broadcasts against v.",
        ),
        praise="That is right. Only v carries the label, and v carries no noise.",
    ),
    Exercise(
        id="01-3",
        summary="Write wave(N, i, j, phase): the Fourier atom of frequency (i, j), a tensor of shape (N, N) of norm 1.",
        grade=_grade_wave,
        hints=(
            "The angle of pixel (r, c) is 2π (i r + j c) / N − phase. A column of row numbers and a row of column "
            "numbers broadcast to all pixels.",
            "Most waves have the norm N/√2 before they are scaled. Which have another? Think of (0, 0).",
            "Divide the cosine of the angles by its own norm, which is right for every wave.",
        ),
        praise="That is right, also where (i, j) and (−i, −j) are one and the same frequency.",
    ),
    Exercise(
        id="01-4",
        summary="Write is_lost(i, j): whether ResNet-18 tosses a coin on the wave of the even frequencies (i, j).",
        grade=_grade_lattice,
        hints=(
            "Choose ResNet-18 in the map, and write down the dark frequencies i along one column.",
            "They are −14, −10, −6, −2, 2, 6, 10, 14, in every second column.",
            "2 more than a multiple of 4: i % 4 == 2, and the same for j.",
        ),
        praise="That is right: a lattice, and whether a wave is smooth or rough plays no part in it.",
    ),
    Exercise(
        id="01-5",
        summary="Write stays_a_coin(i, j): whether LeNet tosses a coin on this wave, even with little noise.",
        grade=_grade_coins,
        hints=(
            "Point at the crosses at the top of the figure, and write down their frequencies.",
            "They are (8, 0), (0, 8), (8, ±8), (8, ±12), (12, ±8), (8, 16) and (16, 8). Which number do all have?",
            "All have an 8. But (4, 8) and (8, 4) are no crosses: which number does no cross have?",
        ),
        praise="That is right. Each has an 8, and none has a 4.",
    ),
)
