"""Right and wrong answers to the exercises of chapter 8."""

import math

from scipy.stats import norm


def one_channel(a, s, epsilon, sigma):
    return norm.cdf(a * epsilon / (sigma * s))


def angle_to_first(w, d1, d2):
    return math.atan2(abs(w @ d1), abs(w @ d2))


SOLUTIONS = {
    "08-1": 90 - math.degrees(math.atan(0.5)),
    "08-3": one_channel,
    "08-2": angle_to_first,
}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("08-1", math.degrees(math.atan(0.5)), "perpendicular to its normal"),
    ("08-1", math.atan(2), "radians"),
    ("08-1", 45, "one size"),
    ("08-1", 90, "not be used"),
    ("08-1", 90 + math.degrees(math.atan(0.5)), "at most 90"),
    ("08-1", 60, "Hint"),
    ("08-3", lambda a, s, e, g: 1 - one_channel(a, s, e, g), "share of errors"),
    ("08-3", lambda a, s, e, g: a * e / (g * s), "argument of Φ"),
    ("08-3", lambda a, s, e, g: norm.cdf(a * e / (g * s**2)), "σs²"),
    ("08-3", lambda a, s, e, g: norm.cdf(a * e / (g**2 * s)), "σ²s"),
    ("08-3", lambda a, s, e, g: norm.cdf(a * e / s), "σ is missing"),
    ("08-3", lambda a, s, e, g: norm.cdf(a / (g * s)), "ε is missing"),
    ("08-3", lambda a, s, e, g: norm.cdf(a * e / g), "s is missing"),
    ("08-3", lambda a, s, e, g: norm.cdf(e / (g * s)), "a is missing"),
    ("08-3", lambda a, s, e, g: norm.cdf(a * e / (g * math.hypot(a, s))), "no noise along v"),
    ("08-3", lambda a, s, e, g: 0.5, "Hint"),
    ("08-3", lambda a, s, e, g: None, "returns nothing yet"),
    ("08-2", lambda w, d1, d2: math.atan2(abs(w @ d2), abs(w @ d1)), "second direction"),
    ("08-2", lambda w, d1, d2: math.degrees(angle_to_first(w, d1, d2)), "degrees"),
    ("08-2", lambda w, d1, d2: math.atan2(w @ d1, w @ d2), "at most π/2"),
    ("08-2", lambda w, d1, d2: math.asin(abs(w @ d1) / w.norm()), "not the norm of all"),
    ("08-2", lambda w, d1, d2: 0.3, "Hint"),
    ("08-2", lambda w, d1, d2: ..., "returns nothing yet"),
]
