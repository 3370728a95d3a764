"""Right and wrong answers to the exercises of chapter 10."""

import math

from scipy.stats import norm


def one_channel(a, s, epsilon, sigma):
    return norm.cdf(a * epsilon / (sigma * s))


def angle_to_first(w, d1, d2):
    return math.atan2(abs(w @ d1), abs(w @ d2))


SOLUTIONS = {
    "10-1": 90 - math.degrees(math.atan(0.5)),
    "10-3": one_channel,
    "10-2": angle_to_first,
}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("10-1", math.degrees(math.atan(0.5)), "perpendicular to its normal"),
    ("10-1", math.atan(2), "radians"),
    ("10-1", 45, "one size"),
    ("10-1", 90, "not be used"),
    ("10-1", 90 + math.degrees(math.atan(0.5)), "at most 90"),
    ("10-1", 60, "Hint"),
    ("10-3", lambda a, s, e, g: 1 - one_channel(a, s, e, g), "share of errors"),
    ("10-3", lambda a, s, e, g: a * e / (g * s), "argument of Φ"),
    ("10-3", lambda a, s, e, g: norm.cdf(a * e / (g * s**2)), "σs²"),
    ("10-3", lambda a, s, e, g: norm.cdf(a * e / (g**2 * s)), "σ²s"),
    ("10-3", lambda a, s, e, g: norm.cdf(a * e / s), "σ is missing"),
    ("10-3", lambda a, s, e, g: norm.cdf(a / (g * s)), "ε is missing"),
    ("10-3", lambda a, s, e, g: norm.cdf(a * e / g), "s is missing"),
    ("10-3", lambda a, s, e, g: norm.cdf(e / (g * s)), "a is missing"),
    ("10-3", lambda a, s, e, g: norm.cdf(a * e / (g * math.hypot(a, s))), "no noise along v"),
    ("10-3", lambda a, s, e, g: 0.5, "Hint"),
    ("10-3", lambda a, s, e, g: None, "returns nothing yet"),
    ("10-2", lambda w, d1, d2: math.atan2(abs(w @ d2), abs(w @ d1)), "second direction"),
    ("10-2", lambda w, d1, d2: math.degrees(angle_to_first(w, d1, d2)), "degrees"),
    ("10-2", lambda w, d1, d2: math.atan2(w @ d1, w @ d2), "at most π/2"),
    ("10-2", lambda w, d1, d2: math.asin(abs(w @ d1) / w.norm()), "not the norm of all"),
    ("10-2", lambda w, d1, d2: 0.3, "Hint"),
    ("10-2", lambda w, d1, d2: ..., "returns nothing yet"),
]
