"""Right and wrong answers to the exercises of chapter 5."""

import torch
from scipy.stats import kendalltau


def mixture_alignment(eigenvalues, coefficients):
    return (coefficients**2 @ eigenvalues) / coefficients.norm() ** 2


def ranks(x):
    return torch.argsort(torch.argsort(x)).double()


def rank_correlation(x, y):
    d, n = ranks(x) - ranks(y), len(x)
    return 1 - 6 * d @ d / (n * (n**2 - 1))


def correlation(x, y):
    return torch.corrcoef(torch.stack([x.double(), y.double()]))[0, 1]


def scaled(factor):
    """Spearman's formula with another factor before the sum of squares."""
    return lambda x, y: 1 - factor(len(x)) * (ranks(x) - ranks(y)) @ (ranks(x) - ranks(y))


SOLUTIONS = {"05-1": 0.997, "05-2": mixture_alignment, "05-3": rank_correlation}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("05-1", 0.506, "LeNet"),
    ("05-1", 99.7, "per cent"),
    ("05-1", -0.2, "between 0 and 1"),
    ("05-1", 0.75, "Hint"),
    ("05-2", lambda e, c: c**2 @ e, "unit norm"),
    ("05-2", lambda e, c: c**2 @ e / c.norm(), "both sides"),
    ("05-2", lambda e, c: c.abs() @ e / c.abs().sum(), "|c|"),
    ("05-2", lambda e, c: c / c.norm() @ e, "quadratic"),
    ("05-2", lambda e, c: (c * e).norm() ** 2 / c.norm() ** 2, "squared"),
    ("05-2", lambda e, c: e.mean(), "weighted"),
    ("05-2", lambda e, c: (c**2 @ e).sqrt() / c.norm(), "square root"),
    ("05-2", lambda e, c: e.max(), "Hint"),
    ("05-3", correlation, "Pearson"),
    ("05-3", lambda x, y: correlation(x.argsort(), y.argsort()), "twice"),
    ("05-3", lambda x, y: kendalltau(x, y).statistic, "Kendall"),
    ("05-3", lambda x, y: -rank_correlation(x, y), "sign"),
    ("05-3", scaled(lambda n: 6 / n**3), "not n³"),
    ("05-3", scaled(lambda n: 1 / (n**3 - n)), "factor 6"),
    ("05-3", lambda x, y: rank_correlation(x, y) ** 2, "ρ²"),
    ("05-3", lambda x, y: 0.5, "Hint"),
]
