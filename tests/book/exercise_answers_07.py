"""Right and wrong answers to the exercises of chapter 7."""

import numpy as np


def on_lattice(i, j, patch, size):
    return i * patch % size == 0 and j * patch % size == 0


def not_negated():
    """The frequencies from 1 to 5 whose wave over six patches no shift by whole patches turns into its negative."""
    x = np.arange(48)
    waves = {i: np.cos(2 * np.pi * i * x / 48 + 0.3) for i in range(1, 6)}
    return [i for i, wave in waves.items() if not any(np.allclose(np.roll(wave, 8 * a), -wave) for a in range(6))]


LOST = 32 * 32 - sum(on_lattice(i, j, 8, 32) for i in range(32) for j in range(32))
SOLUTIONS = {"07-2": on_lattice, "07-1": not_negated(), "07-3": LOST}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("07-2", lambda i, j, patch, size: i % patch == 0 and j % patch == 0, "one patch"),
    ("07-2", lambda i, j, patch, size: i * patch % size == 0, "left to right"),
    ("07-2", lambda i, j, patch, size: True, "Hint"),
    ("07-2", lambda i, j, patch, size: 1, "True or False"),
    ("07-1", (2, 3), "one patch"),
    ("07-1", (1, 5), "half of the image"),
    ("07-1", (2, 6), "Hint"),
    ("07-1", 2, "Expected 2 numbers"),
    ("07-3", 64, "on the lattice"),
    ("07-3", 1023, "constant image"),
    ("07-3", 1008, "64 pixels"),
    ("07-3", 512, "Hint"),
]
