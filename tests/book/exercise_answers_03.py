"""Right and wrong answers to the exercises of chapter 3."""

SOLUTIONS = {"03-1": 0.975, "03-2": 4 / 9, "03-3": 3**-0.5}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("03-1", 0.95, "proportional to m"),
    ("03-1", 0.9**0.25, "exponent"),
    ("03-1", 0.9**0.5, "exponent"),
    ("03-1", 0.225, "more slowly"),
    ("03-1", 0.45, "more slowly"),
    ("03-1", 0.6, "flatter, not steeper"),
    ("03-1", 0.025, "removes"),
    ("03-1", 0.975**2, "excess loss"),
    ("03-1", 0.9, "no part"),
    ("03-1", 0.9756, "Hint"),  # off by twice the tolerance
    ("03-2", 1 / 9, "1/S"),
    ("03-2", 2 / 9, "one step is exact"),
    ("03-2", 1.6, "along ℓ alone"),
    ("03-2", 16.0, "signal's curvature"),
    ("03-2", 4 / 9.25, "do not add"),
    ("03-2", 0.4, "where the response is 1/2"),
    ("03-2", 4 / 3, "variance"),
    ("03-2", 4.5, "curvature itself"),
    ("03-2", 4 / (64 * 9 + 63 * 2.25 + 2.5), "trace"),
    ("03-2", 0.4464, "Hint"),  # off by more than twice the tolerance
    ("03-3", 0.5, "along ℓ"),
    ("03-3", 1 / 3, "asks for σ"),
    ("03-3", 3**0.5, "over"),
    ("03-3", 1.0, "square"),
    ("03-3", 0.6, "Hint"),
]
