"""Right and wrong answers to the exercises of chapter 10."""

import math


def angle_to_first(w, d1, d2):
    return math.atan2(abs(w @ d1), abs(w @ d2))


SOLUTIONS = {
    "10-1": 1 / math.sqrt(5),
    "10-3": math.sqrt(8) - 2,
    "10-2": angle_to_first,
}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("10-1", 0.5, "margin that is left"),
    ("10-1", 2 / math.sqrt(5), "ignores the smaller"),
    ("10-1", 1 - 1 / math.sqrt(5), "share that is lost"),
    ("10-1", 1 / 5, "not its square"),
    ("10-1", 1 / 3, "right angle"),
    ("10-1", 0.7, "Hint"),
    ("10-3", math.sqrt(2) - 1, "one size"),
    ("10-3", (math.sqrt(2) - 1) / 2, "smaller one"),
    ("10-3", 0, "noise"),
    ("10-3", 2, "may be less"),
    ("10-3", 1.2071, "a₁/a₂"),
    ("10-3", math.sqrt(8), "stands in the sum"),
    ("10-3", 1, "Hint"),
    ("10-2", lambda w, d1, d2: math.atan2(abs(w @ d2), abs(w @ d1)), "second direction"),
    ("10-2", lambda w, d1, d2: math.degrees(angle_to_first(w, d1, d2)), "degrees"),
    ("10-2", lambda w, d1, d2: math.atan2(w @ d1, w @ d2), "at most π/2"),
    ("10-2", lambda w, d1, d2: math.asin(abs(w @ d1) / w.norm()), "not the norm of all"),
    ("10-2", lambda w, d1, d2: 0.3, "Hint"),
    ("10-2", lambda w, d1, d2: ..., "returns nothing yet"),
]
