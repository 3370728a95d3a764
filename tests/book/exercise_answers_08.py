"""Right and wrong answers to the exercises of chapter 8."""

import torch
from scipy.stats import norm


def put(x, u, value):
    return x + (value - x @ u) * u


def inside(place, values):
    return bool(values.min() <= place <= values.max())


def separable(s, t, a, b):
    return not (inside(b, s) and inside(a, t))


SOLUTIONS = {"08-1": put, "08-3": separable, "08-2": lambda epsilon, content: norm.cdf(epsilon / content)}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("08-1", lambda x, u, value: x + value * u, "adds the value"),
    ("08-1", lambda x, u, value: x - (x @ u) * u, "in its place"),
    ("08-1", lambda x, u, value: x + (value + x @ u) * u, "mind the sign"),
    ("08-1", lambda x, u, value: x + (x @ u - value) * u, "wrong sign"),
    ("08-1", lambda x, u, value: value * u, "carrier alone"),
    ("08-1", lambda x, u, value: x + (value * (x @ u).sign() - x @ u) * u, "the value's own"),
    ("08-1", lambda x, u, value: torch.zeros_like(x), "Hint"),
    ("08-1", lambda x, u, value: x @ u, "shape"),
    ("08-1", lambda x, u, value: None, "returns nothing yet"),
    ("08-3", lambda s, t, a, b: not inside(b, s) and not inside(a, t), "enough that one"),
    ("08-3", lambda s, t, a, b: not (inside(0, s) and inside(0, t)), "not cross at zero"),
    ("08-3", lambda s, t, a, b: not (inside(a, s) and inside(b, t)), "what varies there"),
    ("08-3", lambda s, t, a, b: not separable(s, t, a, b), "opposite"),
    ("08-3", lambda s, t, a, b: True, "Not always"),
    ("08-3", lambda s, t, a, b: False, "Hint"),
    ("08-3", lambda s, t, a, b: 1.0, "True or False"),
    ("08-3", lambda s, t, a, b: ..., "returns nothing yet"),
    ("08-2", lambda e, c: 1, "takes the place"),
    ("08-2", lambda e, c: norm.cdf(2 * e / c), "2ε apart"),
    ("08-2", lambda e, c: norm.cdf(e / c**2), "squared"),
    ("08-2", lambda e, c: norm.cdf(-e / c), "error"),
    ("08-2", lambda e, c: norm.cdf(c / e), "above it"),
    ("08-2", lambda e, c: e / c, "argument"),
    ("08-2", lambda e, c: 0.5, "Hint"),
]
