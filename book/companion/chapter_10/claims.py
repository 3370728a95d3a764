"""Claims about pairs of directions: figures 2 and 4 to 8 of paper B."""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
import pandas as pd

from companion.chapter_10.experiments import load_pairs
from companion.evidence import Function, Mark, Measured, Stored, known, marks_table, points, share
from companion.two_features import fits_every_run, means_over_seeds, slower

__all__ = ["CLAIMS", "marks_of", "pair_claims"]

# Boundaries of maximum margin: the second feature is half as large as the first.
_MAXIMUM_MARGIN: Final = float(np.degrees(np.arctan2(1.0, 0.5)))


def _means(table: pd.DataFrame) -> tuple[pd.DataFrame, int, int]:
    """By the pair of indices, with the angle in degrees; the smallest index, and the largest.

    A pair with a diverged training has no average, and no claim about it holds.
    """
    names = ["test_accuracy", "test_accuracy_first", "test_accuracy_second", "angle_first"]
    means = means_over_seeds(table, ["first", "second"], names)
    firsts, seconds = (sorted(set(table[part])) for part in ("first", "second"))
    if len(firsts) < 2 or firsts != seconds or len(means) != len(firsts) ** 2:
        raise ValueError(
            f"got {len(means)} pairs of the indices {firsts} and {seconds}; expected all pairs of at least two"
        )
    return means.assign(angle=np.degrees(means["angle_first"])), firsts[0], firsts[-1]


def _range(values: pd.Series) -> float:
    """Not a number if one of them is not known."""
    return float(np.ptp(values.to_numpy()))


def _degrees(angle: float) -> str:
    return known(angle, f"{angle:.1f}°")


def solved_everywhere(table: pd.DataFrame) -> Measured:
    least = float(_means(table)[0]["test_accuracy"].min(skipna=False))
    return Measured(share(least), (least >= 0.98,))


def channels_alike(table: pd.DataFrame) -> Measured:
    means, _, _ = _means(table)
    spread = float(np.max([_range(means[f"test_accuracy_{part}"]) for part in ("first", "second")]))
    return Measured(points(spread), (spread <= 0.05,))


def first_is_better(table: pd.DataFrame) -> Measured:
    means, _, _ = _means(table)
    least = float((means["test_accuracy_first"] - means["test_accuracy_second"]).min(skipna=False))
    return Measured(points(least), (least > 0,))


def one_angle(table: pd.DataFrame) -> Measured:
    spread = _range(_means(table)[0]["angle"])
    return Measured(_degrees(spread), (spread <= 10,))


def late_pair_costs(table: pd.DataFrame) -> Measured:
    means, early, late = _means(table)
    fall = float(means["test_accuracy"][early, early] - means["test_accuracy"][late, late])
    return Measured(points(fall), (fall >= 0.2,))


def late_channel_is_neglected(table: pd.DataFrame) -> Measured:
    means, early, late = _means(table)
    alone = [means["test_accuracy_second"][early, late], means["test_accuracy_first"][late, early]]
    most = float(np.max(np.abs(np.array(alone) - 0.5)))
    return Measured(points(most), (most <= 0.05,))


def boundary_is_parallel(table: pd.DataFrame) -> Measured:
    means, early, late = _means(table)
    # The two directions are orthogonal, so the angles add up to 90 degrees.
    angles = [90 - float(means["angle"][early, late]), float(means["angle"][late, early])]
    return Measured(" and ".join(map(_degrees, angles)), (bool(np.max(angles) <= 15),))


def near_the_maximum_margin(table: pd.DataFrame) -> Measured:
    means, early, _ = _means(table)
    away = abs(float(means["angle"][early, early]) - _MAXIMUM_MARGIN)
    return Measured(_degrees(away), (away <= 15,))


def _read(stored: Stored) -> pd.DataFrame:
    return stored.load("B2", lambda **where: load_pairs(**where).table)


_mark = functools.partial(Mark, read=_read, aside=slower)
BOTH = _mark("both channels: at least 98 % at every pair", measure=solved_everywhere)
UNIFORM = _mark("one channel: pairs differ by at most 5 points", measure=channels_alike)
FIRST = _mark("the first channel alone is better at every pair; the least difference", measure=first_is_better)
TILT = _mark("the boundary's angle differs by at most 10°", measure=one_angle)
LATE = _mark("both channels: two late directions cost at least 20 points", measure=late_pair_costs)
NEGLECTS = _mark("a late channel beside an early one: within 5 points of chance", measure=late_channel_is_neglected)
PARALLEL = _mark("and the boundary is parallel to its direction, to within 15°", measure=boundary_is_parallel)
MARGIN = _mark(
    "one early direction in both channels: at most 15° away from the maximum margin", measure=near_the_maximum_margin
)
LOSS = _mark("training loss at most 0.01 in every run", measure=fits_every_run)


def marks_of(isotropic: bool) -> tuple[Mark, ...]:
    """What the paper says of networks that prefer no direction (figures 4 and 5), and of others (2, 6, 7 and 8)."""
    return (BOTH, UNIFORM, FIRST, TILT, LOSS) if isotropic else (LATE, NEGLECTS, PARALLEL, MARGIN, LOSS)


def pair_claims(table: pd.DataFrame, isotropic: bool) -> pd.DataFrame:
    """Hold figures 2 and 4 to 8 against trainings on pairs, as in :class:`Pairs`; the mean over seeds counts.

    It is a ValueError if a pair is missing, or there are fewer than two indices.
    """
    return marks_table(marks_of(isotropic), table)


def early_margin(stored: Stored, early: float, most: float) -> Measured:
    """How far boundaries are from the one of maximum margin, at equal indices and at different ones."""
    table = _read(stored)
    chosen = table[table[["first", "second"]].max(axis=1) <= early]
    pairs = chosen.groupby(["first", "second"])["angle_first"].agg(lambda one: one.mean(skipna=False)).reset_index()
    first, second, angle = pairs.to_numpy().T
    away = np.abs(np.degrees(angle) - _MAXIMUM_MARGIN)
    text = ", ".join(f"{value:.1f}° at ({i:.0f}, {j:.0f})" for i, j, value in zip(first, second, away, strict=True))
    parts = [part <= most for part in (away[first == second], away[first != second]) if len(part)]
    return Measured(f"{text}{slower(table)}", tuple(bool(part.all()) for part in parts))


_CONVOLUTIONAL: Final[dict[str, Function]] = {
    "late": LATE,
    "neglects": NEGLECTS,
    "tilt": PARALLEL,
    "margin": early_margin,
    "loss": LOSS,
}
CLAIMS: Final[dict[str, Function]] = {
    **{f"B2-{name}-{word}": one for name in ("resnet18", "lenet") for word, one in _CONVOLUTIONAL.items()},
    "B4-mlp-both": BOTH,
    "B4-mlp-uniform": UNIFORM,
    "B4-mlp-first": FIRST,
    "B5-mlp-tilt": TILT,
    "B4-mlp-loss": LOSS,
}
