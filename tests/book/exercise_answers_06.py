"""Right and wrong answers to the exercises of chapter 6."""

import torch


def put(x, u, value):
    return x + (value - x @ u) * u


def inside(place, values):
    return bool(values.min() <= place <= values.max())


def separable(s, t, a, b):
    return not (inside(b, s) and inside(a, t))


SOLUTIONS = {"06-1": put, "06-3": separable, "06-2": 17}
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
    ("06-2", 34, "serves two classes"),
    ("06-2", 50, "each of the three"),
    ("06-2", 16, "not a multiple"),
    ("06-2", 100, "several classes"),
    ("06-2", 6, "Hint"),
]
