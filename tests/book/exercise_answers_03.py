"""Right and wrong answers to the exercises of chapter 3."""

import math

import torch


def steps_needed(curvature, learning_rate, fraction):
    factor = abs(1 - learning_rate * curvature)
    if factor >= 1:
        return math.inf
    return math.ceil(math.log(fraction) / (2 * math.log(factor)))


def steps_of(power=2, absolute=True, rounding=math.ceil, beyond=math.inf):
    def steps(curvature, learning_rate, fraction):
        factor = 1 - learning_rate * curvature
        factor = abs(factor) if absolute else factor
        if not 0 < factor < 1:
            return beyond
        return rounding(math.log(fraction) / (power * math.log(factor)))

    return steps


SOLUTIONS = {"03-1": 0.975, "03-2": 4 / 9, "03-3": steps_needed}
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
    ("03-3", steps_of(power=1), "its square"),
    ("03-3", steps_of(power=1, rounding=float), "its square"),
    ("03-3", steps_of(rounding=float), "whole"),
    ("03-3", steps_of(rounding=math.floor), "round up"),
    ("03-3", steps_of(rounding=round), "round up"),
    ("03-3", steps_of(absolute=False), "past the minimum"),
    ("03-3", steps_of(beyond=0), "math.inf"),
    ("03-3", steps_of(beyond=1_000_000), "math.inf"),
    ("03-3", lambda h, rate, r: math.ceil(math.log(r) / (-2 * rate * h)), "small steps only"),
    ("03-3", lambda h, rate, r: 10, "Hint"),
    ("03-3", lambda h, rate, r: torch.tensor(math.inf), "Hint"),
]
