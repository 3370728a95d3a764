"""Right and wrong answers to the exercises of chapter 4."""

import math


def alignment(covariance, v):
    v = v / v.norm()
    return v @ covariance @ v


def shuffled(nads, order):
    moved = nads.clone()
    moved[:, order] = nads
    return moved


def clear(values, errors, combine=math.hypot, factor=2):
    """Behind which NADs the gap is clear."""
    pairs = zip(values.tolist(), values.tolist()[1:], errors.tolist(), errors.tolist()[1:], strict=False)
    return [k for k, (one, next_one, a, b) in enumerate(pairs) if one - next_one > factor * combine(a, b)]


def named(values, errors, **changed):
    behind = clear(values, errors, **changed)
    last = len(values) - 1
    return [k for k in range(len(values)) if (k == 0 or k - 1 in behind) and (k == last or k in behind)]


def fails_below(slopes, norms):
    return (slopes * norms).mean() / (slopes.square().mean() * norms.square().mean()).sqrt()


SOLUTIONS = {
    "04-1": (0.5, 0.5),
    "04-2": shuffled,
    "04-3": (1024, 13, 2),
    "04-4": alignment,
    "04-5": named,
    "04-6": lambda q: 1 - (1 - q) / 4,
    "04-7": fails_below,
}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("04-1", (1, 0), "x_1 wins"),
    ("04-1", (0, 1), "x_2 wins"),
    ("04-1", (1, 1), "one side"),
    ("04-1", (0, 0), "equal"),
    ("04-1", (0.5, 0), "alike"),
    ("04-1", (-0.5, -0.5), "sign"),
    ("04-1", (0.502, 0.5), "Hint"),  # off by twice the tolerance
    ("04-2", lambda nads, order: nads[:, order], "the other way"),
    ("04-2", lambda nads, order: nads[order], "order of the NADs"),
    ("04-2", lambda nads, order: nads[order][:, order], "both"),
    ("04-2", lambda nads, order: nads, "Nothing"),
    ("04-2", lambda nads, order: nads.flip(1), "Hint"),
    ("04-2", lambda nads, order: nads[:2], "shape"),
    ("04-2", lambda nads, order: "nads", "Expected a tensor"),
    ("04-3", (1000, 13, 2), "rank 1"),
    ("04-3", (1024, 12, 2), "missing"),
    ("04-3", (1024, 84, 2), "each feature"),
    ("04-3", (1024, 13, 1), "672"),
    ("04-3", (1024, 13, 13), "mirrored"),
    ("04-4", lambda c, v: v @ c @ v, "unit norm"),
    ("04-4", lambda c, v: v @ c @ v / v.norm(), "twice"),
    ("04-4", lambda c, v: (c @ v).norm() / v.norm(), "‖Cv‖"),
    ("04-4", lambda c, v: (v @ c @ v).sqrt() / v.norm(), "square root"),
    ("04-4", lambda c, v: c.trace(), "Hint"),
    ("04-5", lambda v, e: named(v, e, factor=1), "*twice*"),
    ("04-5", lambda v, e: named(v, e, combine=lambda a, b: a + b), "as squares"),
    ("04-5", lambda v, e: named(v, e, combine=lambda a, b: a), "neighbour's"),
    ("04-5", lambda v, e: named(v, e, combine=lambda a, b: a * a + b * b), "take its root"),
    ("04-5", lambda v, e: [k for k in named(v, e) if 0 < k < len(v) - 1], "no other to fear"),
    ("04-5", lambda v, e: [*clear(v, e), len(v) - 1], "one before it"),
    ("04-5", lambda v, e: [0] + [k + 1 for k in clear(v, e)], "one behind it"),
    ("04-5", lambda v, e: {0, len(v) - 1} | {k + i for k in clear(v, e) for i in (0, 1)}, "both have to be clear"),
    ("04-5", lambda v, e: [0], "Hint"),
    ("04-5", lambda v, e: 0, "the numbers of NADs"),
    ("04-5", lambda v, e: [0.5], "not whole"),
    ("04-6", lambda q: q, "twice the networks"),
    ("04-6", lambda q: (1 + q) / 2, "beside the truth."),
    ("04-6", lambda q: q**0.5, "nearly"),
    ("04-6", lambda q: (1 - q) / 4, "take it from 1"),
    ("04-6", lambda q: q**2, "Hint"),
    ("04-7", lambda s, n: 1.0, "below the left-hand side"),
    ("04-7", lambda s, n: 1 / fails_below(s, n), "other way round"),
    ("04-7", lambda s, n: fails_below(s, n) ** 0.5, "divide both sides"),
    ("04-7", lambda s, n: s.mean() * n.mean() / (s.square().mean() * n.square().mean()).sqrt(), "same network"),
    ("04-7", lambda s, n: (s * n).mean(), "missing"),
    ("04-7", lambda s, n: 0.5, "Hint"),
]
