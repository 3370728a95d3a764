"""Claims about poisoned photographs: figure 7 of paper A."""

from __future__ import annotations

import functools
import itertools
from typing import Final, get_args

import numpy as np
import pandas as pd
import torch
from scipy.optimize import linprog

from companion.evidence import Function, Mark, Measured, Stored, computed, deviation, marks_table, percent, points
from nadtools import interventions
from nadtools.directions import random_basis

__all__ = ["CLAIMS", "MARKS", "poisoning_claims"]


def _over_carriers(table: pd.DataFrame) -> pd.Series:
    """Mean clean accuracy by the index of the NAD that carries the code."""
    return table[table["replace"] == "own"].groupby("index")["test_accuracy"].mean()


def _costs(table: pd.DataFrame) -> pd.Series:
    """What a carrier costs on clean images, by its index."""
    reference = table[table["replace"] == "none"]["test_accuracy"].mean()
    curve = _over_carriers(table)
    if not np.isfinite(reference) or len(curve) < 3:
        raise ValueError(f"got a reference of {reference} and {len(curve)} indices; expected a result of A7")
    return reference - curve


def rises(table: pd.DataFrame) -> Measured:
    costs = _costs(table)
    # Without any variation there is no rank correlation, and nothing rises. The index comes sorted.
    if costs.nunique() == 1:
        return Measured("no variation", (False,))
    correlation = -float(np.corrcoef(np.arange(len(costs)), costs.rank())[0, 1])
    return Measured(f"{correlation:.2f}", (correlation >= 0.8,))


def last_cost_little(table: pd.DataFrame) -> Measured:
    most = float(_costs(table).loc[700:].max())
    return Measured(points(most), (most <= 0.05,))


def first_costs_much(table: pd.DataFrame) -> Measured:
    cost = float(_costs(table).iloc[0])
    return Measured(points(cost), (cost >= 0.15,))


_mark = functools.partial(Mark, read=lambda stored: stored.table("A7"))
RISES = _mark("clean accuracy rises with the index: rank correlation at least 0.8", measure=rises)
LAST = _mark("carriers from NAD 700 on cost at most 5 points", measure=last_cost_little)
FIRST = _mark("the first carrier costs at least 15 points", measure=first_costs_much)
#: The paper's statements about figure 7.
MARKS: Final = (RISES, LAST, FIRST)


def poisoning_claims(table: pd.DataFrame) -> pd.DataFrame:
    """Hold the paper's statements about figure 7 against a result of A7, with the carrier's own coefficient replaced.

    A row for each, with the columns claim, measured and verdict.

    Raises
    ------
    ValueError
        If the table lacks the reference without a carrier, or has fewer than three indices.
    """
    return marks_table(MARKS, table)


def separable_by_carriers() -> Measured:
    """Two classes on different coefficients lie on crossing lines, unless all the coefficients are replaced."""
    source = torch.Generator().manual_seed(0)
    x, y = 0.15 * torch.randn(1000, 3, 8, 8, generator=source), torch.arange(1000) % 10
    basis = random_basis((8, 8), seed=0)
    counts = []
    for replace in get_args(interventions.Replace):
        written = interventions.poison(x, y, basis, 0, 0.05, replace=replace)
        code = (written.double().flatten(2) @ basis[:2].double().flatten(1).T).flatten(1).numpy()
        classes = [code[y.numpy() == label] / 0.15 for label in range(10)]
        counts.append(sum(_hyperplane(a, b) for a, b in itertools.combinations(classes, 2)))
    text = f"{counts[0]} of 45 pairs of classes, on random images; {counts[1]} if all coefficients are replaced"
    return Measured(text, (counts[0] == 45,), corrected=counts[1] == 45)


def _hyperplane(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether one lies strictly between two sets of points."""
    sides = np.vstack([-np.c_[a, np.ones(len(a))], np.c_[b, np.ones(len(b))]])
    return bool(linprog(np.zeros(sides.shape[1]), sides, -np.ones(len(sides)), bounds=(None, None)).success)


def no_rise_without_nads(stored: Stored, points: float) -> Measured:
    curve = _over_carriers(stored.table("A7"))
    first, last = float(curve.iloc[0]), float(curve.iloc[-1])
    return Measured(f"{percent(first)} at the first, {percent(last)} at the last", (100 * (last - first) <= points,))


def order_at_every_size(stored: Stored, points: float) -> Measured:
    table = stored.table("A7map")
    own = table[table["replace"] == "own"].pivot_table(index="epsilon", columns="index", values="test_accuracy")
    gain = 100 * (own.iloc[:, -1] - own.iloc[:, 0])
    text = ", ".join(f"{value:.1f} points at ε = {epsilon:g}" for epsilon, value in gain.items())
    return Measured(text, tuple(bool(value) for value in gain >= -points))


def nothing_but_what_comes_before(stored: Stored, points: float) -> Measured:
    poisoned, span = stored.table("A7"), stored.table("A7span")
    error, text = deviation(_over_carriers(poisoned), span.groupby("count")["test_accuracy"].mean())
    return Measured(text, (error <= points,))


CLAIMS: Final[dict[str, Function]] = {
    **computed({"A7-separable": separable_by_carriers}),
    "A7-resnet18-rises": RISES,
    "A7-resnet18-first": FIRST,
    "A7-resnet18-last": LAST,
    "A7-lenet-rises": RISES,
    "A7-lenet-first": FIRST,
    "A7-lenet-last": LAST,
    "A7-sizes": order_at_every_size,
    "A7-mlp-control": no_rise_without_nads,
    "A7-{architecture}-before": nothing_but_what_comes_before,
}
