"""What networks choose in images: poisoned, flipped, two features at once (paper A, figures 7 and 8; paper B)."""

from __future__ import annotations

import itertools
from typing import get_args

import numpy as np
import pandas as pd
import torch
from scipy.optimize import linprog

from companion import experiments
from companion.chapter_06.experiments import poisoning_claims
from companion.chapter_07.experiments import flipping_claims
from companion.chapter_08.experiments import load_pairs, pair_claims
from companion.chapter_09.experiments import concatenation_claims
from companion.claims.evidence import Found, Where, deviation, evaluator, percent, photographs, points, sources
from companion.claims.model import Claim
from nadtools import interventions
from nadtools.directions import random_basis


def _is_isotropic(claim: Claim) -> bool:
    return claim.selectors["architecture"] in ("logreg", "mlp")


def _row(claim: Claim, rows: pd.DataFrame) -> tuple[str, bool]:
    """The row of an experiment's own table of claims whose words are the tolerance."""
    row = rows[rows["claim"] == claim.tolerance]
    if len(row) != 1:
        raise ValueError(f"{claim.id}: no row {claim.tolerance!r}; there are {', '.join(map(repr, rows['claim']))}")
    return str(row["measured"].iloc[0]), row["verdict"].iloc[0] == "holds"


@evaluator
def _separable_by_carriers(claim: Claim, where: Where) -> Found:
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
    return Found(text, (counts[0] == 45,), corrected=counts[1] == 45)


def _hyperplane(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether one lies strictly between two sets of points."""
    sides = np.vstack([-np.c_[a, np.ones(len(a))], np.c_[b, np.ones(len(b))]])
    return bool(linprog(np.zeros(sides.shape[1]), sides, -np.ones(len(sides)), bounds=(None, None)).success)


@evaluator
def _poisoning(claim: Claim, where: Where) -> Found:
    table = photographs("A7", where, **claim.selectors)
    text, holds = _row(claim, poisoning_claims(table))
    return Found(text, (holds,), sources(table))


def _over_carriers(table: pd.DataFrame) -> pd.Series:
    """Mean clean accuracy by the index of the NAD that carries the code."""
    return table[table["replace"] == "own"].groupby("index")["test_accuracy"].mean()


@evaluator
def _no_rise_without_nads(claim: Claim, where: Where) -> Found:
    table = photographs("A7", where, **claim.selectors)
    curve = _over_carriers(table)
    gain = float(curve.iloc[-1] - curve.iloc[0])
    text = f"{percent(curve.iloc[0])} at the first, {percent(curve.iloc[-1])} at the last"
    return Found(text, (100 * gain <= claim.limits["points"],), sources(table))


@evaluator
def _order_at_every_size(claim: Claim, where: Where) -> Found:
    table = photographs("A7map", where, **claim.selectors)
    own = table[table["replace"] == "own"].pivot_table(index="epsilon", columns="index", values="test_accuracy")
    gain = own.iloc[:, -1] - own.iloc[:, 0]
    text = ", ".join(f"{points(value)} at ε = {epsilon:g}" for epsilon, value in gain.items())
    return Found(text, tuple(bool(value) for value in 100 * gain >= -claim.limits["points"]), sources(table))


@evaluator
def _nothing_but_what_comes_before(claim: Claim, where: Where) -> Found:
    poisoned, span = (photographs(name, where, **claim.selectors) for name in ("A7", "A7span"))
    error, text = deviation(_over_carriers(poisoned), span.groupby("count")["test_accuracy"].mean())
    return Found(text, (error <= claim.limits["points"],), sources(poisoned, span))


@evaluator
def _flip_is_a_rotation(claim: Claim, where: Where) -> Found:
    basis = random_basis((8, 8), seed=0, dtype=torch.float64)
    matrix = interventions.flip(torch.eye(64, dtype=torch.float64).view(64, 1, 8, 8), basis).flatten(1)
    error = float((matrix @ matrix.T - torch.eye(64, dtype=torch.float64)).abs().max())
    sign = float(torch.linalg.det(matrix))
    text = f"orthogonal up to {error:.0e}, determinant {sign:.3f}"
    return Found(text, (error <= claim.limits["deviation"] and abs(sign - 1) <= claim.limits["deviation"],))


@evaluator
def _flipping(claim: Claim, where: Where) -> Found:
    table = photographs("A8", where, **claim.selectors)
    rows = flipping_claims(table, isotropic=_is_isotropic(claim))
    row = rows[(rows["arm"] == "flipped") & (rows["claim"] == claim.tolerance)].iloc[0]
    text = f"{100 * row['difference']:+.1f} points ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"
    return Found(text, (row["verdict"] == "holds",), sources(table))


@evaluator
def _flipped_fits(claim: Claim, where: Where) -> Found:
    table = photographs("A8", where, **claim.selectors)
    accuracy = table.groupby("arm")["train_accuracy"].min()[["original", "flipped"]]
    text = f"training error {percent(1 - accuracy.iloc[0])} on the originals, {percent(1 - accuracy.iloc[1])} flipped"
    holds = tuple(bool(100 * (1 - value) <= claim.limits["most"]) for value in accuracy)
    return Found(text, holds, sources(table))


def _slower(table: pd.DataFrame) -> str:
    """How many trainings had to be repeated with a smaller learning rate than the paper's."""
    count = int((table["max_lr"] < table.attrs["parameters"]["config"]["max_lr"]).sum())
    return f"; {count} of {len(table)} trainings with a smaller learning rate" if count else ""


def _pair_table(claim: Claim, where: Where) -> pd.DataFrame:
    try:
        return load_pairs(**claim.selectors, results_dir=where).table
    except FileNotFoundError:
        experiments.load("B2", scale="paper", results_dir=where, **claim.selectors)  # says how it is made
        raise


@evaluator
def _pairs(claim: Claim, where: Where) -> Found:
    table = _pair_table(claim, where)
    text, holds = _row(claim, pair_claims(table, isotropic=_is_isotropic(claim)))
    return Found(f"{text}{_slower(table)}", (holds,), sources(table))


@evaluator
def _early_margin(claim: Claim, where: Where) -> Found:
    """How far boundaries are from the one of maximum margin, at equal indices and at different ones."""
    table = _pair_table(claim, where)
    early = table[table[["first", "second"]].max(axis=1) <= claim.limits["early"]]
    pairs = early.groupby(["first", "second"])["angle_first"].agg(lambda one: one.mean(skipna=False)).reset_index()
    first, second, angle = pairs.to_numpy().T
    away = np.abs(np.degrees(angle) - np.degrees(np.arctan2(1.0, 0.5)))  # the second feature is half as large
    text = ", ".join(f"{value:.1f}° at ({i:.0f}, {j:.0f})" for i, j, value in zip(first, second, away, strict=True))
    parts = [part <= claim.limits["most"] for part in (away[first == second], away[first != second]) if len(part)]
    return Found(f"{text}{_slower(table)}", tuple(bool(part.all()) for part in parts), sources(table))


@evaluator
def _concatenation(claim: Claim, where: Where) -> Found:
    table = photographs("B3", where, **claim.selectors)
    text, holds = _row(claim, concatenation_claims(table, isotropic=_is_isotropic(claim)))
    return Found(f"{text}{_slower(table)}", (holds,), sources(table))


@evaluator
def _costs_accuracy(claim: Claim, where: Where) -> Found:
    table = photographs("B3", where, **claim.selectors)
    mean = table[table["part"] == "both"].groupby("index")["test_accuracy"].mean()
    lost = float(mean.iloc[0] - mean.iloc[-1])
    text = f"{percent(mean.iloc[0])} at NAD {mean.index[0]:.0f}, {percent(mean.iloc[-1])} at NAD {mean.index[-1]:.0f}"
    return Found(text, (100 * lost >= claim.limits["points"],), sources(table))


@evaluator
def _either_or(claim: Claim, where: Where) -> Found:
    table = photographs("B3", where, **claim.selectors)
    names = ["test_accuracy_images", "test_accuracy_direction"]
    mean = table[table["part"] == "both"].groupby("index")[names].mean()
    count = int((100 * mean.min(axis=1) > claim.limits["used"]).sum())
    return Found(
        f"both are used at {count} of {len(mean)} indices", (count <= claim.limits["indices"],), sources(table)
    )
