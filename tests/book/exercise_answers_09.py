"""Right and wrong answers to the exercises of chapter 9."""

import torch


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


def signs(kernel):
    return torch.tensor([[(-1.0) ** (a + b) for b in range(kernel.shape[1])] for a in range(kernel.shape[0])])


SOLUTIONS = {
    "09-1": paired_interval,
    "09-2": lambda x, vectors: x - 2 * x @ vectors[::2].T @ vectors[::2],
    "09-3": lambda kernel: -kernel * signs(kernel),
}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("09-1", lambda here, original: paired_interval(original, here), "here minus original"),
    ("09-1", one_standard_error, "one standard error"),
    ("09-1", as_if_independent, "same images"),
    ("09-1", of_single_images, "single images"),
    ("09-1", lambda here, original: (0.0, 1.0), "Hint"),
    ("09-1", lambda here, original: 0.1, "2 numbers"),
    ("09-1", lambda here, original: None, "returns nothing yet"),
    ("09-2", lambda x, vectors: x @ vectors.T @ vectors.flip(0), "A changes"),
    ("09-2", lambda x, vectors: x.flip(1), "A changes"),
    ("09-2", lambda x, vectors: x, "most of each pixel"),
    ("09-2", lambda x, vectors: -x, "most of each pixel"),
    ("09-2", lambda x, vectors: x @ vectors.T * 2 @ vectors, "not orthogonal"),
    ("09-2", lambda x, vectors: x @ vectors[::2].T @ vectors[::2], "not orthogonal"),
    ("09-2", lambda x, vectors: x[:1], "shape of x"),
    ("09-2", lambda x, vectors: None, "returns nothing yet"),
    ("09-3", lambda kernel: kernel, "as it was"),
    ("09-3", lambda kernel: 0 * kernel, "other sizes"),
    ("09-3", lambda kernel: kernel.flip(0), "other sizes"),
    ("09-3", lambda kernel: kernel * signs(kernel)[:1], "Hint"),
    ("09-3", lambda kernel: None, "returns nothing yet"),
]
