"""Right and wrong answers to the exercises of chapter 2."""

import cmath
import math

import numpy as np
import torch
from scipy.stats import norm


def eraser(frequency, size):
    """From the polynomial whose roots are the wave and its mirror image."""
    root = cmath.exp(2j * math.pi * frequency / size)
    return np.poly([root, root.conjugate()]).real


def one_row(v, matrix):
    """By an orthonormal basis of the row space."""
    basis = torch.linalg.qr(matrix.T).Q
    return -2 * basis @ (basis.T @ v)


def is_erased(i, j):
    """By averaging both phases of the wave over blocks of 4 × 4."""
    pixels = torch.arange(32, dtype=torch.float64)
    wave = torch.exp(2j * math.pi * (i * pixels[:, None] + j * pixels) / 32)
    return bool(wave.unflatten(0, (8, 4)).unflatten(2, (8, 4)).mean((1, 3)).abs().max() < 1e-9)


SOLUTIONS = {"02-3": float(norm.cdf(1)), "02-1": eraser, "02-2": one_row, "02-4": is_erased}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("02-3", 1.0, "alias"),
    ("02-3", 0.5, "still there"),
    ("02-3", float(norm.cdf(math.sqrt(2))), "√2"),
    ("02-3", float(norm.cdf(math.sqrt(0.5))), "noise in each bin"),
    ("02-3", float(norm.cdf(1 / 3)), "not 3"),
    ("02-3", 84.13, "Hint"),
    ("02-1", lambda f, d: (0, 0, 0), "every wave"),
    ("02-1", lambda f, d: (1, 2 * math.cos(2 * math.pi * f / d), 1), "D/2 − ℓ"),
    ("02-1", lambda f, d: (math.cos(2 * math.pi * f / d), -1, 0), "not the sine"),
    ("02-1", lambda f, d: (1, -2, 1), "constant"),
    ("02-1", lambda f, d: (1, 2, 1), "Hint"),
    ("02-1", lambda f, d: 1, "3 numbers"),
    ("02-1", lambda f, d: None, "returns nothing yet"),
    ("02-2", lambda v, p: v, "has not measured"),
    ("02-2", lambda v, p: p.T @ p @ v, "alike"),
    ("02-2", lambda v, p: p[(p @ v).abs().argmax()], "the others"),
    ("02-2", lambda v, p: p[0], "Hint"),
    ("02-2", lambda v, p: 0 * v, "nothing"),
    ("02-2", lambda v, p: p @ v, "shape"),
    ("02-4", lambda i, j: i % 8 == 0 or j % 8 == 0, "constant image"),
    ("02-4", lambda i, j: i % 8 == j % 8 == 0, "rows"),
    ("02-4", lambda i, j: i % 8 == j % 8 == 0 and (i, j) != (0, 0), "(8, 1)"),
    ("02-4", lambda i, j: abs(i) == 8 or abs(j) == 8, "frequency 16"),
    ("02-4", lambda i, j: abs(i) == 16 or abs(j) == 16, "first of the two"),
    ("02-4", lambda i, j: i in (8, -16) or j in (8, -16), "same wave"),
    ("02-4", lambda i, j: not is_erased(i, j), "other way round"),
    ("02-4", lambda i, j: False, "Hint"),
    ("02-4", lambda i, j: 0, "True or False"),
]
