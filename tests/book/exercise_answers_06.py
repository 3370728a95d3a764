"""Right and wrong answers to the exercises of chapter 6."""

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


SOLUTIONS = {"06-1": through_convolution, "06-2": 8, "06-3": 3}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("06-1", any_offsets, "uncorrelated"),
    ("06-1", lambda G, kernel, size: through_convolution(G, kernel, size) / kernel, "not their mean"),
    ("06-1", lambda G, kernel, size: G, "shape"),
    ("06-1", lambda G, kernel, size: torch.zeros(size, size), "Hint"),
    ("06-1", lambda G, kernel, size: None, "returns nothing yet"),
    ("06-2", 5, "window"),
    ("06-2", 4, "whole periods"),
    ("06-2", 7, "Hint"),
    ("06-3", 183 / 32, "either factor"),
    ("06-3", 183**0.5, "either factor"),
    ("06-3", 29, "are kept"),
    ("06-3", 5, "Hint"),
]
