"""Claims about flipped photographs: figure 8 of paper A."""

from __future__ import annotations

import dataclasses
import functools
from typing import Final

import numpy as np
import pandas as pd
import torch

from companion.chapter_09.experiments import paired_interval
from companion.evidence import Function, Mark, Measured, Stored, computed, percent
from nadtools import interventions
from nadtools.directions import random_basis

__all__ = ["CLAIMS", "flipping_claims"]


@dataclasses.dataclass(frozen=True)
class _Difference:
    """Accuracy of one arm minus that on the originals: the mean over seeds, and each seed's paired 95 % interval."""

    mean: float
    ends: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, table: pd.DataFrame, arm: str) -> _Difference:
        part = table[table["arm"] == arm].dropna(subset=["only_here"])
        counts = zip(part["only_here"], part["only_original"], part["num_test"], strict=True)
        ends = tuple(paired_interval(here, original, int(count)) for here, original, count in counts)
        return cls(float(((part["only_here"] - part["only_original"]) / part["num_test"]).mean()), ends)

    @property
    def low(self) -> float:
        return min((low for low, _ in self.ends), default=np.nan)

    @property
    def high(self) -> float:
        return max((high for _, high in self.ends), default=np.nan)

    def measured(self, holds: bool) -> Measured:
        text = f"{100 * self.mean:+.1f} points ({100 * self.low:+.1f} to {100 * self.high:+.1f})"
        return Measured(text, (holds,))


def changes_little(table: pd.DataFrame, arm: str = "flipped") -> Measured:
    """The interval of each seed holds a difference below 2 points."""
    found = _Difference.of(table, arm)
    return found.measured(bool(found.ends) and all(low < 0.02 and high > -0.02 for low, high in found.ends))


def costs_much(table: pd.DataFrame, arm: str = "flipped") -> Measured:
    found = _Difference.of(table, arm)
    return found.measured(found.mean <= -0.1)


_mark = functools.partial(Mark, read=lambda stored: stored.table("A8"))
LITTLE = _mark("changes less than 2 points", measure=changes_little)
MUCH = _mark("costs at least 10 points", measure=costs_much)


def flipping_claims(table: pd.DataFrame, isotropic: bool) -> pd.DataFrame:
    """Hold the paper's statements about figure 8 against a result of A8.

    Parameters
    ----------
    table
        As :func:`companion.experiments.load_table` gives it.
    isotropic
        Whether the architecture prefers no direction, as logistic regression and the MLP.

    Returns
    -------
    pandas.DataFrame
        A row for each arm but the original, with the columns arm, difference and low, high (in accuracy, the mean over
        seeds and the ends of the paired 95 % intervals of all seeds), claim and verdict. The paper says nothing about
        the controls: there both are empty, unless the architecture is isotropic.
    """
    rows = []
    for arm in [name for name in dict.fromkeys(table["arm"]) if name != "original"]:
        found, claim, verdict = _Difference.of(table, arm), "", ""
        if isotropic or arm == "flipped":
            mark, measure = (LITTLE, changes_little) if isotropic else (MUCH, costs_much)
            claim, verdict = mark.text, "holds" if all(measure(table, arm).holds) else "does not hold"
        rows.append((arm, found.mean, found.low, found.high, claim, verdict))
    return pd.DataFrame(rows, columns=["arm", "difference", "low", "high", "claim", "verdict"])


def flip_is_a_rotation(deviation: float) -> Measured:
    basis = random_basis((8, 8), seed=0, dtype=torch.float64)
    matrix = interventions.flip(torch.eye(64, dtype=torch.float64).view(64, 1, 8, 8), basis).flatten(1)
    error = float((matrix @ matrix.T - torch.eye(64, dtype=torch.float64)).abs().max())
    sign = float(torch.linalg.det(matrix))
    text = f"orthogonal up to {error:.0e}, determinant {sign:.3f}"
    return Measured(text, (error <= deviation and abs(sign - 1) <= deviation,))


def flipped_fits(stored: Stored, most: float) -> Measured:
    accuracy = stored.table("A8").groupby("arm")["train_accuracy"].min()[["original", "flipped"]]
    text = f"training error {percent(1 - accuracy.iloc[0])} on the originals, {percent(1 - accuracy.iloc[1])} flipped"
    return Measured(text, tuple(bool(100 * (1 - value) <= most) for value in accuracy))


CLAIMS: Final[dict[str, Function]] = {
    **computed({"A8-rotation": flip_is_a_rotation}),
    "A8-{architecture}-control": LITTLE,
    "A8-{architecture}-flip": MUCH,
    "A8-{architecture}-train": flipped_fits,
}
