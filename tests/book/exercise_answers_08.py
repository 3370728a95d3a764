"""Right and wrong answers to the exercises of chapter 8."""

import torch
from scipy.stats import norm

import nadtools as nt


def inside(place, values):
    return bool(values.min() <= place <= values.max())


def separable(s, t, a, b):
    return not (inside(b, s) and inside(a, t))


def named_by_zeros():
    """The share of images whose label is the first class that would have erased a coefficient of them, nearly."""
    y = torch.arange(100) % 10
    x = torch.rand(100, 3, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    basis = nt.random_basis((8, 8), seed=0, dtype=torch.float64)
    along = nt.poison(x, y, basis, 0, 1e-12).flatten(2) @ basis[:2].flatten(1).T
    erased = torch.stack([along[:, t % 3, t // 6].abs() < 1e-9 for t in range(10)], 1)
    return float((erased.int().argmax(1) == y).double().mean())


def best_threshold(epsilon, mean, deviation):
    """The better side of a threshold next to ε."""
    below = norm.cdf((epsilon - mean) / deviation)
    return (1 + max(below, 1 - below)) / 2


SOLUTIONS = {"08-1": named_by_zeros(), "08-2": separable, "08-3": best_threshold}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("08-1", 0.1, "not gone"),
    ("08-1", 1, "may share"),
    ("08-1", 0.5, "Not every class"),
    ("08-1", 0.3, "two NADs"),
    ("08-1", 0.8, "Hint"),
    ("08-2", lambda s, t, a, b: not inside(b, s) and not inside(a, t), "enough that one"),
    ("08-2", lambda s, t, a, b: not (inside(0, s) and inside(0, t)), "not cross at zero"),
    ("08-2", lambda s, t, a, b: not (inside(a, s) and inside(b, t)), "what varies there"),
    ("08-2", lambda s, t, a, b: not separable(s, t, a, b), "opposite"),
    ("08-2", lambda s, t, a, b: True, "Not always"),
    ("08-2", lambda s, t, a, b: False, "Hint"),
    ("08-2", lambda s, t, a, b: 1.0, "True or False"),
    ("08-2", lambda s, t, a, b: ..., "returns nothing yet"),
    ("08-3", lambda e, m, s: 1, "looks for one value"),
    ("08-3", lambda e, m, s: norm.cdf(abs(e - m) / s), "other class alone"),
    ("08-3", lambda e, m, s: (1 + norm.cdf((e - m) / s)) / 2, "other side"),
    ("08-3", lambda e, m, s: (1 + norm.cdf(abs(e - m) / s / 2)) / 2, "Half-way"),
    ("08-3", lambda e, m, s: (1 + norm.cdf(e / s)) / 2, "mean zero"),
    ("08-3", lambda e, m, s: (1 + norm.cdf(abs(e - m) / s**2)) / 2, "squared"),
    ("08-3", lambda e, m, s: 0.5, "Hint"),
]
