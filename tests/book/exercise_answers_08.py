"""Right and wrong answers to the exercises of chapter 8."""

from scipy.stats import norm


def inside(place, values):
    return bool(values.min() <= place <= values.max())


def separable(s, t, a, b):
    return not (inside(b, s) and inside(a, t))


SOLUTIONS = {"08-1": 6 / 10, "08-3": separable, "08-2": lambda epsilon, content: norm.cdf(epsilon / content)}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("08-1", 0.1, "not gone"),
    ("08-1", 1, "may share"),
    ("08-1", 0.5, "Not every class"),
    ("08-1", 0.3, "two NADs"),
    ("08-1", 0.8, "Hint"),
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
