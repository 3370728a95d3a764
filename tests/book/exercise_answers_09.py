"""Right and wrong answers to the exercises of chapter 9."""

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


ARGUMENT = math.sqrt(50_000) / (9 * math.sqrt(1023))
SOLUTIONS = {"09-2": turn, "09-1": contradict, "09-3": float(norm.cdf(ARGUMENT))}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("09-2", position, "position in the list"),
    ("09-2", last_that_loses, "still wins"),
    ("09-2", last_that_wins, "first one is asked"),
    ("09-2", lambda i, x, d: turn(i, d, x), "where the images do"),
    ("09-2", zero_if_none, "math.inf"),
    ("09-2", lambda i, x, d: 1, "Hint"),
    ("09-2", lambda i, x, d: None, "returns nothing yet"),
    ("09-1", lambda x, v: x - (x @ v)[:, None] * v, "takes the feature away"),
    ("09-1", lambda x, v: -x, "noise round as well"),
    ("09-1", lambda x, v: x - 2 * v, "depends on the sample"),
    ("09-1", lambda x, v: x + 2 * (x @ v)[:, None] * v, "mind the sign"),
    ("09-1", lambda x, v: -(x @ v)[:, None] * v, "noise must stay"),
    ("09-1", lambda x, v: 2 * (x @ v)[:, None] * v - x, "negative of the right answer"),
    ("09-1", lambda x, v: 0 * x, "Hint"),
    ("09-1", lambda x, v: x @ v, "shape"),
    ("09-1", lambda x, v: ..., "returns nothing yet"),
    ("09-3", 1 - float(norm.cdf(ARGUMENT)), "error rate"),
    ("09-3", 100 * float(norm.cdf(ARGUMENT)), "per cent"),
    ("09-3", ARGUMENT, "argument of Φ"),
    ("09-3", float(norm.cdf(3 * ARGUMENT)), "σ², not σ"),
    ("09-3", float(norm.cdf(ARGUMENT / math.sqrt(10))), "5,000"),
    ("09-3", 0.5, "Hint"),
]
