"""Claims about trainings along waves, without pooling, and along random directions (paper A, figures 1 to 3)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pandas as pd

from companion.evidence import Function, Measured, Stored, mean_waves, percent, rank_correlation
from companion.waves import noise_ceiling
from nadtools import architectures

__all__ = ["CLAIMS"]


def learned_everywhere(stored: Stored, least: float) -> Measured:
    accuracy = mean_waves(stored.waves("A1"))
    text = f"at least {percent(accuracy.min())} on {len(accuracy)} waves"
    return Measured(text, (100 * accuracy.min() >= least,))


def depends_on_direction(stored: Stored, best: float, worst: float) -> Measured:
    accuracy = mean_waves(stored.waves("A1"))
    holds = 100 * accuracy.max() >= best and 100 * accuracy.min() <= worst
    return Measured(f"{percent(accuracy.min())} to {percent(accuracy.max())}", (holds,))


def fits_training_set(stored: Stored, least: float) -> Measured:
    lowest = float(stored.waves("A1")["train_accuracy"].min())
    return Measured(f"at least {percent(lowest)}", (100 * lowest >= least,))


def does_not_fit(stored: Stored, least: float) -> Measured:
    lowest = float(stored.waves("A1")["train_accuracy"].min())
    return Measured(f"down to {percent(lowest)}", (100 * lowest < least,))


def learns_few(stored: Stored, learned: float, share: float) -> Measured:
    ours = 100 * mean_waves(stored.waves("A1")) >= learned
    theirs = 100 * stored.published_accuracies("fourier", "frequency_i", "frequency_j") >= learned
    same = bool((ours == theirs.reindex(ours.index)).all())
    # Ours are chosen from smooth to rough, so a share of them says nothing.
    text = f"{ours.sum()} of {len(ours)} chosen waves, {'the same' if same else 'others'} as the authors, "
    text += f"who have {percent(theirs.mean())} of {len(theirs)}"
    return Measured(text, (same, 100 * float(theirs.mean()) <= share))


def memorises(stored: Stored, train: float, test: float) -> Measured:
    table = stored.waves("A1")
    count = int(((100 * table.train_accuracy >= train) & (100 * table.test_accuracy <= test)).sum())
    return Measured(f"on {count} of {len(table)} waves", (count > 0,))


def not_monotone_in_frequency(stored: Stored, points: float) -> Measured:
    accuracy = mean_waves(stored.waves("A1"))
    order = np.argsort([math.hypot(i, j) for i, j in accuracy.index], kind="stable")
    values = accuracy.to_numpy()[order]
    rise = 100 * float((values - np.minimum.accumulate(values)).max())
    return Measured(f"up to {rise:.1f} points better than on a smoother wave", (rise >= points,))


def _on_common_waves(a: pd.Series, b: pd.Series) -> tuple[float, int]:
    """Rank correlation over the waves that both have, and their number."""
    both = pd.concat([a, b.reindex(a.index)], axis=1).dropna()
    return rank_correlation(both.iloc[:, 0], both.iloc[:, 1]), len(both)


def patterns_differ(stored: Stored, most: float) -> Measured:
    lenet, other = stored.waves("A1", architecture="lenet"), stored.waves("A1")
    rho, count = _on_common_waves(mean_waves(lenet), mean_waves(other))
    return Measured(f"{rho:.2f} on {count} waves", (rho <= most,))


def map_agrees(stored: Stored, below: float) -> Measured:
    ours = mean_waves(stored.waves("A1"))
    theirs = stored.published_accuracies("fourier", "frequency_i", "frequency_j")
    rho, _ = _on_common_waves(ours, theirs)
    ceiling = noise_ceiling(theirs)
    return Measured(f"rank correlation {rho:.2f}, ceiling {ceiling:.2f}", (rho >= ceiling - below,))


def speed_depends(stored: Stored, ratio: float) -> Measured:
    steps = stored.waves("A2")["steps"].fillna(math.inf)
    reached = steps[np.isfinite(steps)]
    late = int(np.isinf(steps).sum())
    if not len(reached):
        return Measured(f"none of {late} waves gets there", (False,))
    text = f"{reached.min():.0f} to {reached.max():.0f} steps; {late} of {len(steps)} waves do not get there"
    return Measured(text, (bool(late) or float(reached.max() / reached.min()) >= ratio,))


def speed_follows_accuracy(stored: Stored, most: float) -> Measured:
    speed, accuracy = stored.waves("A2"), stored.waves("A1")
    steps = mean_waves(speed.fillna({"steps": math.inf}), "steps")
    rho, count = _on_common_waves(steps, mean_waves(accuracy))
    return Measured(f"{rho:.2f} on {count} waves", (rho <= most,))


def _with_and_without_pooling(stored: Stored) -> tuple[pd.Series, pd.Series]:
    without, pooled = (mean_waves(stored.waves(name)) for name in ("A3", "A1"))
    return pooled.reindex(without.index), without


def equalised_without_pooling(stored: Stored, ratio: float, points: float, fits: float) -> Measured:
    pooled, without = _with_and_without_pooling(stored)
    off = without.index[100 * (without - without.median()).abs() > points]
    text = f"{100 * pooled.std():.1f} points with pooling, {100 * without.std():.1f} points without"
    # Networks that learn nothing are alike, too.
    trained = 100 * float(stored.waves("A3")["train_accuracy"].min())
    if trained < fits:
        text += f"; without, the training accuracy is {trained:.1f} % on some wave"
    if len(off):
        text += f"; not equal at {', '.join(f'({i:.0f}, {j:.0f})' for i, j in off)}"
    holds = (bool(without.std() <= ratio * pooled.std()), not len(off))
    return Measured(text, tuple(trained >= fits and one for one in holds))


def better_without_pooling(stored: Stored, points: float) -> Measured:
    pooled, without = _with_and_without_pooling(stored)
    text = f"{percent(pooled.mean())} with pooling, {percent(without.mean())} without"
    return Measured(text, (100 * float(without.mean() - pooled.mean()) >= points,))


def larger_without_pooling(_: Stored) -> Measured:
    counts = []
    for is_pooled in (True, False):
        network = architectures.build("lenet", 1, 2, image_size=(32, 32), pooling=is_pooled, seed=0)
        counts.append(sum(weights.numel() for weights in network.parameters()))
    return Measured(f"{counts[0]:,} weights with pooling, {counts[1]:,} without", (counts[1] > counts[0],))


def random_directions_alike(stored: Stored, points: float) -> Measured:
    accuracy = stored.table("random").test_accuracy
    spread = 100 * float(accuracy.std())
    text = f"{percent(accuracy.mean())} on average over {len(accuracy)}, standard deviation {spread:.1f} points"
    return Measured(text, (spread <= points,))


CLAIMS: Final[dict[str, Function]] = {
    "A1-logreg": learned_everywhere,
    "A1-{architecture}-direction": depends_on_direction,
    "A1-{architecture}-train": fits_training_set,
    "A1-lenet-train": does_not_fit,
    "A1-densenet121-few": learns_few,
    "A1-patterns": patterns_differ,
    "A1-{architecture}-frequency": not_monotone_in_frequency,
    "A1-{architecture}-map": map_agrees,
    "A1-memorise": memorises,
    "A2-{architecture}-speed": speed_depends,
    "A2-order": speed_follows_accuracy,
    "A3-{architecture}-equal": equalised_without_pooling,
    "A3-{architecture}-better": better_without_pooling,
    "A3-capacity": larger_without_pooling,
    "A-random-{architecture}": random_directions_alike,
}
