"""Right and wrong answers to the exercises of chapter 6."""

import torch
from scipy.stats import norm


def put(x, u, value):
    return x + (value - x @ u) * u


def inside(place, values):
    return bool(values.min() <= place <= values.max())


def separable(s, t, a, b):
    return not (inside(b, s) and inside(a, t))


SOLUTIONS = {"06-1": put, "06-3": separable, "06-2": lambda epsilon, content: norm.cdf(epsilon / content)}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("06-1", lambda x, u, value: x + value * u, "adds the value"),
    ("06-1", lambda x, u, value: x - (x @ u) * u, "in its place"),
    ("06-1", lambda x, u, value: x + (value + x @ u) * u, "mind the sign"),
    ("06-1", lambda x, u, value: x + (x @ u - value) * u, "wrong sign"),
    ("06-1", lambda x, u, value: value * u, "carrier alone"),
    ("06-1", lambda x, u, value: x + (value * (x @ u).sign() - x @ u) * u, "the value's own"),
    ("06-1", lambda x, u, value: torch.zeros_like(x), "Hint"),
    ("06-1", lambda x, u, value: x @ u, "shape"),
    ("06-1", lambda x, u, value: None, "returns nothing yet"),
    ("06-3", lambda s, t, a, b: not inside(b, s) and not inside(a, t), "enough that one"),
    ("06-3", lambda s, t, a, b: not (inside(0, s) and inside(0, t)), "not cross at zero"),
    ("06-3", lambda s, t, a, b: not (inside(a, s) and inside(b, t)), "what varies there"),
    ("06-3", lambda s, t, a, b: not separable(s, t, a, b), "opposite"),
    ("06-3", lambda s, t, a, b: True, "Not always"),
    ("06-3", lambda s, t, a, b: False, "Hint"),
    ("06-3", lambda s, t, a, b: 1.0, "True or False"),
    ("06-3", lambda s, t, a, b: ..., "returns nothing yet"),
    ("06-2", lambda e, c: 1, "takes the place"),
    ("06-2", lambda e, c: norm.cdf(2 * e / c), "2ε apart"),
    ("06-2", lambda e, c: norm.cdf(e / c**2), "squared"),
    ("06-2", lambda e, c: norm.cdf(-e / c), "error"),
    ("06-2", lambda e, c: norm.cdf(c / e), "above it"),
    ("06-2", lambda e, c: e / c, "argument"),
    ("06-2", lambda e, c: 0.5, "Hint"),
]
