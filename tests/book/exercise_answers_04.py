"""Right and wrong answers to the exercises of chapter 4."""


def alignment(covariance, v):
    v = v / v.norm()
    return v @ covariance @ v


def shuffled(nads, order):
    moved = nads.clone()
    moved[:, order] = nads
    return moved


SOLUTIONS = {
    "04-1": (0.5, 0.5),
    "04-2": shuffled,
    "04-3": (1024, 13, 2),
    "04-4": alignment,
    "04-6": lambda spread, pixels: pixels / (spread**0.5 - 1) ** 2,
    "04-5": lambda q: 1 - (1 - q) / 4,
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
    ("04-6", lambda s, d: d / (s - 1) ** 2, "root of the spread"),
    ("04-6", lambda s, d: d * (s**0.5 - 1) ** 2, "narrower"),
    ("04-6", lambda s, d: d / (s**0.5 - 1), "both sides"),
    ("04-6", lambda s, d: d / (1 - s**-0.5) ** 2, "lower edge"),
    ("04-6", lambda s, d: d, "Hint"),
    ("04-5", lambda q: q, "twice the networks"),
    ("04-5", lambda q: (1 + q) / 2, "beside the truth."),
    ("04-5", lambda q: q**0.5, "nearly"),
    ("04-5", lambda q: (1 - q) / 4, "take it from 1"),
    ("04-5", lambda q: q**2, "Hint"),
]
