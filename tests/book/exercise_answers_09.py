"""Right and wrong answers to the exercises of chapter 9."""

import torch


def flip(x, columns):
    return columns @ (columns.T @ x).flip(0)


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


SOLUTIONS = {"09-1": flip, "09-2": 512, "09-3": paired_interval}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("09-1", lambda x, u: (u.T @ x).flip(0), "come after U"),
    ("09-1", lambda x, u: u.T @ x, "still have to be flipped"),
    ("09-1", lambda x, u: x.flip(0), "flips the pixels"),
    ("09-1", lambda x, u: u.T @ (u @ x).flip(0), "its columns"),
    ("09-1", lambda x, u: u @ x.flip(0), "not x"),
    ("09-1", lambda x, u: -x, "not their order"),
    ("09-1", lambda x, u: x, "x itself"),
    ("09-1", lambda x, u: torch.zeros_like(x), "Hint"),
    ("09-1", lambda x, u: u, "shape"),
    ("09-1", lambda x, u: None, "returns nothing yet"),
    ("09-2", 0, "Some images stay"),
    ("09-2", 1, "more than one"),
    ("09-2", 2, "two eigenvalues"),
    ("09-2", 1024, "change nothing at all"),
    ("09-2", 511, "Hint"),
    ("09-3", lambda here, original: paired_interval(original, here), "here minus original"),
    ("09-3", one_standard_error, "one standard error"),
    ("09-3", as_if_independent, "same images"),
    ("09-3", of_single_images, "single images"),
    ("09-3", lambda here, original: (0.0, 1.0), "Hint"),
    ("09-3", lambda here, original: 0.1, "2 numbers"),
    ("09-3", lambda here, original: None, "returns nothing yet"),
]
