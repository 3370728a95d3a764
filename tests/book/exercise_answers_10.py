"""Right and wrong answers to the exercises of chapter 10."""

import math

from scipy.stats import norm


def angle_to_first(w, d1, d2):
    return math.atan2(abs(w @ d1), abs(w @ d2))


T = float(norm.ppf(0.997))
BOTH, SECOND = 0.99243, 0.75398  # from a table of the normal distribution
SOLUTIONS = {
    "10-2": math.sqrt(8) - 2,
    "10-1": angle_to_first,
    "10-3": (BOTH, SECOND),
}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("10-2", math.sqrt(2) - 1, "one size"),
    ("10-2", (math.sqrt(2) - 1) / 2, "smaller one"),
    ("10-2", 0, "noise"),
    ("10-2", 2, "may be less"),
    ("10-2", 1.2071, "a₁/a₂"),
    ("10-2", math.sqrt(8), "stands in the sum"),
    ("10-2", 1, "Hint"),
    ("10-1", lambda w, d1, d2: math.atan2(abs(w @ d2), abs(w @ d1)), "second direction"),
    ("10-1", lambda w, d1, d2: math.degrees(angle_to_first(w, d1, d2)), "degrees"),
    ("10-1", lambda w, d1, d2: math.atan2(w @ d1, w @ d2), "at most π/2"),
    ("10-1", lambda w, d1, d2: math.asin(abs(w @ d1) / w.norm()), "not the norm of all"),
    ("10-1", lambda w, d1, d2: 0.3, "Hint"),
    ("10-1", lambda w, d1, d2: ..., "returns nothing yet"),
    ("10-3", (norm.cdf(1.25 * T), SECOND), "s₁ and s₂"),
    ("10-3", (BOTH, norm.cdf(T / 2)), "half the feature"),
    ("10-3", (norm.cdf(1.5 * T / math.sqrt(2)), norm.cdf(T / 2)), "ε₂"),
    ("10-3", (SECOND, BOTH), "other way round"),
    ("10-3", (0.9, 0.9), "Hint"),
    ("10-3", 0.992, "2 numbers"),
]
