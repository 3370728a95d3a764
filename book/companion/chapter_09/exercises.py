"""Exercises of chapter 9."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from companion.chapter_09.experiments import paired_interval
from companion.grading import Exercise, UnexpectedAnswer, call, close, read_like, read_numbers

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


def _grade_disguise(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(9)
    size = 64
    vectors = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))[0]
    variances, eigenvalues = torch.rand(2, size, generator=generator, dtype=torch.float64) ** 4
    x = torch.eye(size, dtype=torch.float64)
    returned = call(answer, "disguise(x, vectors)", "changed images, of x's shape", x.clone(), vectors.clone())
    changed = read_like(returned, x)  # of unit vectors, so this is the matrix
    if float((changed @ changed.T - x).abs().max()) > 1e-4:
        return "This is not orthogonal: lengths or angles change."
    # Images whose content lies along the NADs but for a part that lies anywhere.
    spread = torch.randn(size, size, generator=generator, dtype=torch.float64) / size
    images = variances.sqrt()[:, None] * (vectors + spread)
    before, after = (float(((z @ vectors.T) ** 2 @ eigenvalues).sum()) for z in (images, images @ changed))
    if not close(after, before, 1e-4 * before):
        return f"A changes, by a factor of {after / before:.2f} in our test."
    if float(changed.diagonal().square().mean()) > 0.25:
        return "A stays, but so does most of each pixel: one would know the picture again, or its negative."
    return None


def _grade_checkered(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(10)
    for side in (3, 5, 2):
        kernel = torch.randn(side, side, generator=generator, dtype=torch.float64)
        returned = call(answer, "checkered(kernel)", "a kernel of the same shape", kernel.clone())
        found = read_like(returned, kernel, "the kernel")
        signs = 1 - 2 * ((torch.arange(side)[:, None] + torch.arange(side)) % 2)
        if not torch.allclose(found.abs(), kernel.abs(), rtol=1e-4, atol=1e-6):
            return "Its weights have other sizes. The signs of the pixels are all that has changed."
        if torch.allclose(found.abs(), found * kernel.sign(), rtol=1e-4, atol=1e-6):
            return "This is the kernel as it was. On a checkered constant image it adds what it used to subtract."
        if not any(torch.allclose(found, sign * signs * kernel, rtol=1e-4, atol=1e-6) for sign in (1, -1)):
            return ""
    return None


EXERCISES = (
    Exercise(
        id="09-1",
        summary="Write paired_interval(here, original): the 95 % interval of a difference of two accuracies.",
        grade=_grade_interval,
        hints=(
            "Each test image gives a difference, here minus original: 1, 0 or −1. You want the interval of its mean.",
            "The mean of n numbers has the standard error: standard deviation of the numbers, divided by √n.",
            "d = here.double() − original.double(); d.mean() ± 1.96 · d.std() / √n.",
        ),
        praise="That is right. Images that both have right or both have wrong cancel: that is what pairing buys.",
    ),
    Exercise(
        id="09-2",
        summary="Write disguise(x, vectors): an orthogonal change that leaves A as it is, and no pixel in its place.",
        grade=_grade_disguise,
        hints=(
            "A asks how much variance lies along each NAD. So every coefficient has to stay with its NAD.",
            "A coefficient can change without changing its square.",
            "Turn the signs of about half of the coefficients, chosen at random: x @ vectors.T * signs @ vectors.",
        ),
        praise="That is right: for these NADs nothing has changed, and no eye and no convolution knows the picture.",
    ),
    Exercise(
        id="09-3",
        summary="Write checkered(kernel): the kernel that gives its old response on checkered images, but for signs.",
        grade=_grade_checkered,
        hints=(
            "Neighbouring pixels of a checkered image have opposite signs. What if neighbouring weights had, too?",
            "The sum runs over offsets (a, b), and the checkered pixel there has the sign (−1)^(i + j + a + b).",
            "Multiply the weight at (a, b) by (−1)^(a + b).",
        ),
        praise="That is right: in each sum the signs of weights and pixels cancel, but for one sign in front of it.",
    ),
)
