"""Right and wrong answers to the exercises of chapter 9."""

import math

import torch


def circles(order):
    """The lengths of the circles, from the powers of the permutation: circles of length n stay in the n-th power."""
    power, found = torch.arange(len(order)), torch.zeros(len(order), dtype=torch.int64)
    for n in range(1, len(order) + 1):
        power = order[power]
        found[(power == torch.arange(len(order))) & (found == 0)] = n
    return [n for n in set(found.tolist()) for _ in range(int((found == n).sum()) // n)]


def paired_interval(here, original):
    difference = here.double() - original.double()
    half = 1.96 * float(difference.std()) / len(difference) ** 0.5
    return float(difference.mean()) - half, float(difference.mean()) + half


def one_standard_error(here, original):
    low, high = paired_interval(here, original)
    middle, half = (low + high) / 2, (high - low) / 2 / 1.96
    return middle - half, middle + half


def as_if_independent(here, original):
    shares = [float(one.double().mean()) for one in (here, original)]
    half = 1.96 * sum(share * (1 - share) / len(here) for share in shares) ** 0.5
    return shares[0] - shares[1] - half, shares[0] - shares[1] + half


def of_single_images(here, original):
    difference = here.double() - original.double()
    return float(difference.mean() - 1.96 * difference.std()), float(difference.mean() + 1.96 * difference.std())


SOLUTIONS = {
    "09-1": lambda order: math.lcm(*circles(order)),
    "09-2": paired_interval,
    "09-3": lambda x, vectors: x - 2 * x @ vectors[::2].T @ vectors[::2],
}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("09-1", lambda order: 2, "reverse order"),
    ("09-1", lambda order: max(circles(order)), "longest circle"),
    ("09-1", lambda order: math.prod(circles(order)), "so earlier"),
    ("09-1", len, "all places"),
    ("09-1", lambda order: len(circles(order)), "how many circles"),
    ("09-1", lambda order: 7, "Hint"),
    ("09-1", lambda order: None, "returns nothing yet"),
    ("09-2", lambda here, original: paired_interval(original, here), "here minus original"),
    ("09-2", one_standard_error, "one standard error"),
    ("09-2", as_if_independent, "same images"),
    ("09-2", of_single_images, "single images"),
    ("09-2", lambda here, original: (0.0, 1.0), "Hint"),
    ("09-2", lambda here, original: 0.1, "2 numbers"),
    ("09-2", lambda here, original: None, "returns nothing yet"),
    ("09-3", lambda x, vectors: x @ vectors.T @ vectors.flip(0), "A changes"),
    ("09-3", lambda x, vectors: x.flip(1), "A changes"),
    ("09-3", lambda x, vectors: x, "most of each pixel"),
    ("09-3", lambda x, vectors: -x, "most of each pixel"),
    ("09-3", lambda x, vectors: x @ vectors.T * 2 @ vectors, "not orthogonal"),
    ("09-3", lambda x, vectors: x @ vectors[::2].T @ vectors[::2], "not orthogonal"),
    ("09-3", lambda x, vectors: x[:1], "shape of x"),
    ("09-3", lambda x, vectors: None, "returns nothing yet"),
]
