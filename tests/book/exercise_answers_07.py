"""Right and wrong answers to the exercises of chapter 7."""

import numpy as np


def not_negated():
    """The frequencies from 1 to 5 whose wave over six patches no shift by whole patches turns into its negative."""
    x = np.arange(48)
    waves = {i: np.cos(2 * np.pi * i * x / 48 + 0.3) for i in range(1, 6)}
    return [i for i, wave in waves.items() if not any(np.allclose(np.roll(wave, 8 * a), -wave) for a in range(6))]


SOLUTIONS = {"07-1": not_negated(), "07-2": 16, "07-3": "CADB"}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("07-1", (2, 3), "one patch"),
    ("07-1", (1, 5), "half of the image"),
    ("07-1", (2, 6), "Hint"),
    ("07-1", 2, "Expected 2 numbers"),
    ("07-2", 8, "one and a half"),
    ("07-2", 4, "half a period"),
    ("07-2", 32, "smaller"),
    ("07-2", 12, "divide"),
    ("07-2", 2, "Hint"),
    ("07-3", "CABD", "without structure"),
    ("07-3", "DACB", "reads rows"),
    ("07-3", ("A", "C", "D", "B"), "hardly knows"),
    ("07-3", "ABC", "Expected the four letters"),
    ("07-3", 4, "Expected the four letters"),
]
