"""Right and wrong answers to the exercises of chapter 5."""

import numpy as np
from scipy.stats import norm, spearmanr


def best(coefficients, n, epsilon, sigma):
    return norm.cdf(epsilon * float(coefficients[:n].norm() / coefficients[n:].norm()) / sigma)


def by_share(share):
    """Φ(ε/σ · share(c², n)), another share than the right one."""
    return lambda c, n, e, s: norm.cdf(e / s * float(share(c**2, n)))


def half_by_luck(number=20_000):
    """The rank correlation of a perfect prediction with accuracies of which the lower half is noise."""
    place = np.arange(number)
    accuracy = np.where(place < number // 2, np.random.default_rng(0).permutation(number) / number, 1 + place)
    return spearmanr(place, accuracy).statistic


SOLUTIONS = {"05-1": best, "05-2": half_by_luck(), "05-3": 0.9402}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("05-1", by_share(lambda c, n: c[:n].sum() / c[n:].sum()), "root"),
    ("05-1", by_share(lambda c, n: (c[:n].sum() / c.sum()).sqrt()), "noise is missing"),
    ("05-1", by_share(lambda c, n: c[:n].sum().sqrt()), "need not have"),
    ("05-1", by_share(lambda c, n: (c[:n].sum() / (1 - c[:n].sum()).abs()).sqrt()), "holds for"),
    ("05-1", by_share(lambda c, n: (c[n:].sum() / c[:n].sum()).sqrt()), "other way round"),
    ("05-1", lambda c, n, e, s: best(c, n, s, e), "above σ"),
    ("05-1", lambda c, n, e, s: norm.ppf(best(c, n, e, s)), "argument"),
    ("05-1", lambda c, n, e, s: 0.75, "Hint"),
    ("05-1", lambda c, n, e, s: c, "one number"),
    ("05-2", 1, "luck"),
    ("05-2", 0.5, "agreement, too"),
    ("05-2", 0.75, "both halves"),
    ("05-2", 0, "all waves are lost"),
    ("05-2", 0.6, "Hint"),
    ("05-3", 0.9156, "chooses n"),
    ("05-3", 0.8022, "would the cut allow"),
    ("05-3", 0.788, "cut of the text"),
    ("05-3", 94.02, "per cent"),
    ("05-3", 366, "constant image"),
    ("05-3", 0.6, "Hint"),
]
