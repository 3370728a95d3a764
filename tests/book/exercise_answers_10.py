"""Right and wrong answers to the exercises of chapter 10."""

import torch


def through_convolution(G, kernel, size):
    total = torch.zeros(size, size, dtype=G.dtype)
    for offset in range(kernel):
        total[offset : offset + len(G), offset : offset + len(G)] += G
    return total


def any_offsets(G, kernel, size):
    total = torch.zeros(size, size, dtype=G.dtype)
    for one in range(kernel):
        for other in range(kernel):
            total[one : one + len(G), other : other + len(G)] += G
    return total


def alpha(R, K, v):
    return ((R @ v @ K.T) * v).sum()


SOLUTIONS = {"10-1": through_convolution, "10-2": 8, "10-3": alpha}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("10-1", any_offsets, "uncorrelated"),
    ("10-1", lambda G, kernel, size: through_convolution(G, kernel, size) / kernel, "not their mean"),
    ("10-1", lambda G, kernel, size: G, "shape"),
    ("10-1", lambda G, kernel, size: torch.zeros(size, size), "Hint"),
    ("10-1", lambda G, kernel, size: None, "returns nothing yet"),
    ("10-2", 5, "window"),
    ("10-2", 4, "whole periods"),
    ("10-2", 7, "Hint"),
    (
        "10-3",
        lambda R, K, v: ((K @ v.T @ R) * v.T).sum() if v.shape[0] != v.shape[1] else alpha(K, R, v),
        "from the left",
    ),
    ("10-3", lambda R, K, v: v.sum(), "Hint"),
]
