"""Right and wrong answers to the exercises of chapter 5."""

import torch
from scipy.stats import kendalltau, norm


def best(coefficients, n, epsilon, sigma):
    return norm.cdf(epsilon * float(coefficients[:n].norm() / coefficients[n:].norm()) / sigma)


def by_share(share):
    """Φ(ε/σ · share(c², n)), another share than the right one."""
    return lambda c, n, e, s: norm.cdf(e / s * float(share(c**2, n)))


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


SOLUTIONS = {"05-1": 0.997, "05-2": best, "05-3": rank_correlation}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("05-1", 0.506, "LeNet"),
    ("05-1", 99.7, "per cent"),
    ("05-1", -0.2, "between 0 and 1"),
    ("05-1", 0.75, "Hint"),
    ("05-2", by_share(lambda c, n: c[:n].sum() / c[n:].sum()), "root"),
    ("05-2", by_share(lambda c, n: (c[:n].sum() / c.sum()).sqrt()), "noise is missing"),
    ("05-2", by_share(lambda c, n: c[:n].sum().sqrt()), "need not have"),
    ("05-2", by_share(lambda c, n: (c[:n].sum() / (1 - c[:n].sum()).abs()).sqrt()), "holds for"),
    ("05-2", by_share(lambda c, n: (c[n:].sum() / c[:n].sum()).sqrt()), "other way round"),
    ("05-2", lambda c, n, e, s: best(c, n, s, e), "above σ"),
    ("05-2", lambda c, n, e, s: norm.ppf(best(c, n, e, s)), "argument"),
    ("05-2", lambda c, n, e, s: 0.75, "Hint"),
    ("05-2", lambda c, n, e, s: c, "one number"),
    ("05-3", correlation, "Pearson"),
    ("05-3", lambda x, y: correlation(x.argsort(), y.argsort()), "twice"),
    ("05-3", lambda x, y: kendalltau(x, y).statistic, "Kendall"),
    ("05-3", lambda x, y: -rank_correlation(x, y), "sign"),
    ("05-3", scaled(lambda n: 6 / n**3), "not n³"),
    ("05-3", scaled(lambda n: 1 / (n**3 - n)), "factor 6"),
    ("05-3", lambda x, y: rank_correlation(x, y) ** 2, "ρ²"),
    ("05-3", lambda x, y: 0.5, "Hint"),
]
