"""Exercises of chapter 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from companion.chapter_09.experiments import paired_interval
from companion.grading import Exercise, UnexpectedAnswer, call, close, describe, read_number, read_numbers
from nadtools.directions import random_basis

_FLIP_SIGNATURE = "flip(x, U)"


def _grade_flip(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(7)
    remarks = set()
    for height, width in ((1, 5), (2, 3), (4, 4)):
        columns = random_basis((height, width), 1, dtype=torch.float64).flatten(1).T
        x = torch.randn(height * width, generator=generator, dtype=torch.float64)
        returned = call(answer, _FLIP_SIGNATURE, "the flipped image, of the shape of x", x.clone(), columns.clone())
        if isinstance(returned, np.ndarray):
            returned = torch.from_numpy(returned.copy())
        if not isinstance(returned, Tensor) or returned.shape != x.shape:
            shape = f" of shape {tuple(returned.shape)}" if isinstance(returned, Tensor) else ""
            raise UnexpectedAnswer(
                f"Expected a tensor of the shape of x, {tuple(x.shape)}, but got {describe(returned)}{shape}."
            )
        result = returned.detach().to(torch.float64)
        if torch.allclose(result, columns @ (columns.T @ x).flip(0), rtol=0, atol=1e-5):
            continue
        remarks.add(_remark_on_flip(result, x, columns))
    return None if not remarks else "" if len(remarks) > 1 else remarks.pop()


def _remark_on_flip(result: Tensor, x: Tensor, columns: Tensor) -> str:
    for wrong, remark in (
        ((columns.T @ x).flip(0), "These are the flipped coefficients; the images that they belong to come after U."),
        (columns.T @ x, "These are the coefficients: they still have to be flipped, and led back to pixels."),
        (x.flip(0), "This flips the pixels; flip the coefficients Uᵀx."),
        (columns.T @ (columns @ x).flip(0), "Here the rows of U are taken for the NADs; they are its columns."),
        (columns @ x.flip(0), "The coefficients of x are Uᵀx, not x."),
        (columns @ (-(columns.T @ x)), "This changes the sign of the coefficients, not their order."),
        (x, "This is x itself: the order of the coefficients has not changed."),
    ):
        if torch.allclose(result, wrong, rtol=0, atol=1e-5):
            return remark
    return ""


def _grade_fixed(answer: Any) -> str | None:
    value = read_number(answer)
    if close(value, 512, 1e-9):
        return None
    if close(value, 0, 1e-9):
        return "Some images stay: what has equal coefficients at u_0 and u_1023?"
    if close(value, 1, 1e-9):
        return "There is more than one: think of every pair of coefficients that change places."
    if close(value, 2, 1e-9):
        return "The map has two eigenvalues, but each has many eigenvectors."
    if close(value, 1024, 1e-9):
        return "Then flipping would change nothing at all."
    return ""


_INTERVAL_SIGNATURE = "paired_interval(here, original)"


def _grade_interval(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(8)
    remarks = set()
    for count, chance_here, chance_original in ((400, 0.7, 0.5), (10_000, 0.3, 0.31), (150, 0.9, 0.2)):
        common = torch.rand(count, generator=generator)
        here = common + 0.2 * torch.rand(count, generator=generator) < chance_here
        original = common + 0.2 * torch.rand(count, generator=generator) < chance_original
        returned = call(answer, _INTERVAL_SIGNATURE, "the two ends of the interval", here.clone(), original.clone())
        try:
            low, high = read_numbers(returned, 2, "(-0.01, 0.02)")
        except UnexpectedAnswer as error:
            raise UnexpectedAnswer(f"About what your function returns: {error}") from None
        only_here, only_original = int((here & ~original).sum()), int((original & ~here).sum())
        expected = paired_interval(only_here, only_original, count)
        # 1.96 or its further digits, with n or n - 1 below the variance.
        tolerance = 0.02 * (expected[1] - expected[0])
        if close(low, expected[0], tolerance) and close(high, expected[1], tolerance):
            continue
        remarks.add(_remark_on_interval(low, high, expected, here, original))
    return None if not remarks else "" if len(remarks) > 1 else remarks.pop()


def _remark_on_interval(low: float, high: float, expected: tuple[float, float], here: Tensor, original: Tensor) -> str:
    difference, half = sum(expected) / 2, (expected[1] - expected[0]) / 2
    shares = [float(one.double().mean()) for one in (here, original)]
    apart = 1.96 * sum(share * (1 - share) / len(here) for share in shares) ** 0.5
    for (wrong_low, wrong_high), remark in (
        ((-expected[1], -expected[0]), "The sign: it is here minus original."),
        ((difference - half / 1.96, difference + half / 1.96), "This is one standard error; 95 % takes 1.96 of them."),
        (
            (difference - apart, difference + apart),
            "This takes the two accuracies for independent. They are of the same images: take the differences.",
        ),
        (
            (difference - half * len(here) ** 0.5, difference + half * len(here) ** 0.5),
            "This is the spread of single images; a mean of n varies √n times less.",
        ),
    ):
        tolerance = 0.02 * (wrong_high - wrong_low)
        if close(low, wrong_low, tolerance) and close(high, wrong_high, tolerance):
            return remark
    return ""


EXERCISES = (
    Exercise(
        id="09-1",
        summary="Write flip(x, U) for a flat image x and a matrix U with the NADs as columns.",
        grade=_grade_flip,
        hints=(
            "The coefficients of x are its products with the columns of U. How does one write them all at once?",
            "They are Uᵀx, as U.T @ x. Reverse them; torch.flip or .flip(0) does that.",
            "U @ (U.T @ x).flip(0).",
        ),
        praise="That is right. Call it twice, and you have x again.",
    ),
    Exercise(
        id="09-2",
        summary="Of 1,024 dimensions, how large is the space of images that flipping leaves as they are?",
        grade=_grade_fixed,
        hints=(
            "Flipping exchanges coefficient k and coefficient 1023 − k. When does such an exchange change nothing?",
            "When the two are equal. So u_0 + u_1023 stays as it is, and so does u_1 + u_1022.",
            "There is one such image for each pair of coefficients, and there are 1024 / 2 pairs.",
        ),
        praise="That is right. The other half, u_0 − u_1023 and so on, only changes its sign.",
    ),
    Exercise(
        id="09-3",
        summary="Write paired_interval(here, original): the 95 % interval of a difference of two accuracies.",
        grade=_grade_interval,
        hints=(
            "Each test image gives a difference, here minus original: 1, 0 or −1. You want the interval of its mean.",
            "The mean of n numbers has the standard error: standard deviation of the numbers, divided by √n.",
            "d = here.double() − original.double(); d.mean() ± 1.96 · d.std() / √n.",
        ),
        praise="That is right. Images that both have right or both have wrong cancel: that is what pairing buys.",
    ),
)
