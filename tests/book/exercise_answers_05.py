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


SOLUTIONS = {"05-1": 0.997, "05-2": best, "05-3": half_by_luck(), "05-4": 0.9402}
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
    ("05-3", 1, "luck"),
    ("05-3", 0.5, "agreement, too"),
    ("05-3", 0.75, "both halves"),
    ("05-3", 0, "all waves are lost"),
    ("05-3", 0.6, "Hint"),
    ("05-4", 0.9156, "chooses n"),
    ("05-4", 0.8022, "would the cut allow"),
    ("05-4", 0.788, "cut of the text"),
    ("05-4", 94.02, "per cent"),
    ("05-4", 366, "constant image"),
    ("05-4", 0.6, "Hint"),
]
