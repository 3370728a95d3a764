"""Right and wrong answers to the exercises of chapter 11."""

import math

from scipy.stats import norm


def turn(indices, images, direction):
    return next((i for i, x, d in zip(indices, images, direction, strict=True) if x > d), math.inf)


def contradict(x, v):
    return x - 2 * (x @ v)[:, None] * v


def last_that_loses(indices, images, direction):
    losing = [i for i, x, d in zip(indices, images, direction, strict=True) if x <= d]
    return losing[-1] if losing else -math.inf


def last_that_wins(indices, images, direction):
    return turn(indices[::-1], images[::-1], direction[::-1])


def position(indices, images, direction):
    return turn(range(len(indices)), images, direction)


def zero_if_none(indices, images, direction):
    found = turn(indices, images, direction)
    return found if math.isfinite(found) else 0


Z = float(norm.ppf(0.9))
SOLUTIONS = {"11-2": turn, "11-1": contradict, "11-3": (9 * Z) ** 2 * 1023}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("11-2", position, "position in the list"),
    ("11-2", last_that_loses, "still wins"),
    ("11-2", last_that_wins, "first one is asked"),
    ("11-2", lambda i, x, d: turn(i, d, x), "where the images do"),
    ("11-2", zero_if_none, "math.inf"),
    ("11-2", lambda i, x, d: 1, "Hint"),
    ("11-2", lambda i, x, d: None, "returns nothing yet"),
    ("11-1", lambda x, v: x - (x @ v)[:, None] * v, "takes the feature away"),
    ("11-1", lambda x, v: -x, "noise round as well"),
    ("11-1", lambda x, v: x - 2 * v, "depends on the sample"),
    ("11-1", lambda x, v: x + 2 * (x @ v)[:, None] * v, "mind the sign"),
    ("11-1", lambda x, v: -(x @ v)[:, None] * v, "noise must stay"),
    ("11-1", lambda x, v: 2 * (x @ v)[:, None] * v - x, "negative of the right answer"),
    ("11-1", lambda x, v: 0 * x, "Hint"),
    ("11-1", lambda x, v: x @ v, "shape"),
    ("11-1", lambda x, v: ..., "returns nothing yet"),
    ("11-3", 9 * Z * math.sqrt(1023), "This is √n"),
    ("11-3", (3 * Z) ** 2 * 1023, "n has σ⁴"),
    ("11-3", 8.1**2 * 1023, "which argument"),
    ("11-3", (9 * Z) ** 2, "directions of noise"),
    ("11-3", 9 * Z * 1023, "under a root"),
    ("11-3", 50_000, "Hint"),
]
