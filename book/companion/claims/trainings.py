"""Trainings on linear problems: along waves, without pooling, and along random directions (paper A, figures 1 to 3)."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from companion.claims.evidence import (
    Found,
    Source,
    Where,
    evaluator,
    mean_waves,
    percent,
    points,
    published_accuracies,
    rank_correlation,
    sources,
    stored_table,
    waves,
)
from companion.claims.model import Claim
from nadtools import architectures


@evaluator
def _learned_everywhere(claim: Claim, where: Where) -> Found:
    table = waves("A1", where, **claim.selectors)
    accuracy = mean_waves(table)
    text = f"at least {percent(accuracy.min())} on {len(accuracy)} waves"
    return Found(text, (100 * accuracy.min() >= claim.limits["least"],), sources(table))


@evaluator
def _depends_on_direction(claim: Claim, where: Where) -> Found:
    table = waves("A1", where, **claim.selectors)
    accuracy, limits = mean_waves(table), claim.limits
    holds = (100 * accuracy.max() >= limits["best"] and 100 * accuracy.min() <= limits["worst"],)
    return Found(f"{percent(accuracy.min())} to {percent(accuracy.max())}", holds, sources(table))


@evaluator
def _learns_few(claim: Claim, where: Where) -> Found:
    table = waves("A1", where, **claim.selectors)
    share = float((100 * mean_waves(table) >= claim.limits["learned"]).mean())
    return Found(f"{percent(share)} of the waves", (100 * share <= claim.limits["share"],), sources(table))


@evaluator
def _fits_training_set(claim: Claim, where: Where) -> Found:
    table = waves("A1", where, **claim.selectors)
    least = float(table["train_accuracy"].min())
    return Found(f"at least {percent(least)}", (100 * least >= claim.limits["least"],), sources(table))


@evaluator
def _does_not_fit(claim: Claim, where: Where) -> Found:
    table = waves("A1", where, **claim.selectors)
    least = float(table["train_accuracy"].min())
    return Found(f"down to {percent(least)}", (100 * least < claim.limits["least"],), sources(table))


@evaluator
def _memorises(claim: Claim, where: Where) -> Found:
    table, limits = waves("A1", where, **claim.selectors), claim.limits
    count = int(((100 * table.train_accuracy >= limits["train"]) & (100 * table.test_accuracy <= limits["test"])).sum())
    return Found(f"on {count} of {len(table)} waves", (count > 0,), sources(table))


@evaluator
def _not_monotone_in_frequency(claim: Claim, where: Where) -> Found:
    table = waves("A1", where, **claim.selectors)
    accuracy = mean_waves(table)
    order = np.argsort([math.hypot(i, j) for i, j in accuracy.index], kind="stable")
    values = accuracy.to_numpy()[order]
    rise = float((values - np.minimum.accumulate(values)).max())
    text = f"up to {points(rise)} better than on a smoother wave"
    return Found(text, (100 * rise >= claim.limits["points"],), sources(table))


def _on_common_waves(a: pd.Series, b: pd.Series) -> tuple[float, int]:
    """Rank correlation over the waves that both have, and their number."""
    both = pd.concat([a, b.reindex(a.index)], axis=1).dropna()
    return rank_correlation(both.iloc[:, 0], both.iloc[:, 1]), len(both)


@evaluator
def _patterns_differ(claim: Claim, where: Where) -> Found:
    tables = [waves("A1", where, architecture=name) for name in ("lenet", claim.selectors["architecture"])]
    rho, count = _on_common_waves(*(mean_waves(table) for table in tables))
    return Found(f"{rho:.2f} on {count} waves", (rho <= claim.limits["most"],), sources(*tables))


@evaluator
def _map_agrees(claim: Claim, where: Where) -> Found:
    table = waves("A1", where, **claim.selectors)
    theirs = published_accuracies("fourier", claim.selectors["architecture"], "frequency_i", "frequency_j")
    rho, _ = _on_common_waves(mean_waves(table), theirs)
    mirrored = pd.Series([theirs.get((i, -j), math.nan) for i, j in theirs.index], theirs.index)
    ceiling = float(theirs.corr(mirrored, "spearman"))
    text = f"rank correlation {rho:.2f}, ceiling {ceiling:.2f}"
    return Found(text, (rho >= ceiling - claim.limits["below"],), sources(table))


@evaluator
def _speed_depends(claim: Claim, where: Where) -> Found:
    table = waves("A2", where, **claim.selectors)
    steps = table["steps"].fillna(math.inf)
    reached = steps[np.isfinite(steps)]
    late = int(np.isinf(steps).sum())
    if not len(reached):
        return Found(f"none of {late} waves gets there", (False,), sources(table))
    ratio = math.inf if late else float(reached.max() / reached.min())
    text = f"{reached.min():.0f} to {reached.max():.0f} steps; {late} of {len(steps)} waves do not get there"
    return Found(text, (ratio >= claim.limits["ratio"],), sources(table))


@evaluator
def _speed_follows_accuracy(claim: Claim, where: Where) -> Found:
    speed, accuracy = (waves(name, where, **claim.selectors) for name in ("A2", "A1"))
    steps = mean_waves(speed.fillna({"steps": math.inf}), "steps")
    rho, count = _on_common_waves(steps, mean_waves(accuracy))
    return Found(f"{rho:.2f} on {count} waves", (rho <= claim.limits["most"],), sources(speed, accuracy))


def _with_and_without_pooling(claim: Claim, where: Where) -> tuple[pd.Series, pd.Series, tuple[Source, ...]]:
    without, pooled = (waves(name, where, **claim.selectors) for name in ("A3", "A1"))
    accuracy = mean_waves(without)
    return mean_waves(pooled).reindex(accuracy.index), accuracy, sources(without, pooled)


@evaluator
def _equalised_without_pooling(claim: Claim, where: Where) -> Found:
    pooled, accuracy, read = _with_and_without_pooling(claim, where)
    is_smaller = bool(accuracy.std() <= claim.limits["ratio"] * pooled.std())
    off = accuracy.index[100 * (accuracy - accuracy.median()).abs() > claim.limits["points"]]
    text = f"{points(pooled.std())} with pooling, {points(accuracy.std())} without"
    if len(off):
        text += f"; not equal at {', '.join(f'({i:.0f}, {j:.0f})' for i, j in off)}"
    return Found(text, (is_smaller, not len(off)), read)


@evaluator
def _better_without_pooling(claim: Claim, where: Where) -> Found:
    pooled, accuracy, read = _with_and_without_pooling(claim, where)
    gain = float(accuracy.mean() - pooled.mean())
    text = f"{percent(pooled.mean())} with pooling, {percent(accuracy.mean())} without"
    return Found(text, (100 * gain >= claim.limits["points"],), read)


@evaluator
def _larger_without_pooling(claim: Claim, where: Where) -> Found:
    counts = []
    for is_pooled in (True, False):
        network = architectures.build("lenet", 1, 2, image_size=(32, 32), pooling=is_pooled, seed=0)
        counts.append(sum(weights.numel() for weights in network.parameters()))
    return Found(f"{counts[0]:,} weights with pooling, {counts[1]:,} without", (counts[1] > counts[0],))


@evaluator
def _random_directions_alike(claim: Claim, where: Where) -> Found:
    table = stored_table("random", where, **claim.selectors)
    spread = float(table.test_accuracy.std())
    text = f"{percent(table.test_accuracy.mean())} on average, standard deviation {points(spread)}"
    return Found(text, (100 * spread <= claim.limits["points"],), sources(table))
