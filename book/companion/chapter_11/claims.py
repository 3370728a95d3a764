"""Claims about photographs beside a direction: figure 3 of paper B."""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
import pandas as pd

from companion.chapter_11.experiments import load_transition
from companion.evidence import Function, Mark, Measured, Stored, marks_table, percent, points, share
from companion.two_features import fits_every_run, means_over_seeds, slower

__all__ = ["CLAIMS", "concatenation_claims", "marks_of"]

_IMAGES, _DIRECTION = "test_accuracy_images", "test_accuracy_direction"


def _means(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, float]:
    """With the images alone and with D(v) alone, by index; and of trainings on the images alone."""
    means = means_over_seeds(table[table["part"] == "both"], ["index"], [_IMAGES, _DIRECTION])
    reference = float(table[table["part"] == "images"]["test_accuracy"].mean())
    if len(means) < 2 or not np.isfinite(reference):
        raise ValueError(f"got {len(means)} indices and a reference of {reference}; expected a result of B3")
    return means[_IMAGES].to_numpy(), means[_DIRECTION].to_numpy(), reference


def _at_least(accuracy: float, mark: float) -> Measured:
    return Measured(share(accuracy), (bool(accuracy >= mark),))


def _at_most(accuracy: float, mark: float) -> Measured:
    return Measured(share(accuracy), (bool(accuracy <= mark),))


def direction_always(table: pd.DataFrame) -> Measured:
    return _at_least(_means(table)[1].min(), 0.9)


def images_never(table: pd.DataFrame) -> Measured:
    return _at_most(_means(table)[0].max(), 0.6)


def direction_first(table: pd.DataFrame) -> Measured:
    return _at_least(_means(table)[1][0], 0.9)


def images_not_first(table: pd.DataFrame) -> Measured:
    return _at_most(_means(table)[0][0], 0.6)


def direction_not_last(table: pd.DataFrame) -> Measured:
    return _at_most(_means(table)[1][-1], 0.55)


def images_last(table: pd.DataFrame) -> Measured:
    images, _, reference = _means(table)
    lost = reference - float(images[-1])
    return Measured(points(lost), (lost <= 0.05,))


def fits_both_parts(table: pd.DataFrame) -> Measured:
    return fits_every_run(table[table["part"] == "both"])


def _read(stored: Stored) -> pd.DataFrame:
    return stored.load("B3", load_transition)


_mark = functools.partial(Mark, read=_read, aside=slower)
ALWAYS = _mark("D(v) alone: at least 90 % at every index", measure=direction_always)
NEVER = _mark("images alone: at most 60 % at every index", measure=images_never)
EARLY = _mark("first index: at least 90 % with D(v) alone", measure=direction_first)
EARLY_IMAGES = _mark("first index: at most 60 % with the images alone", measure=images_not_first)
LATE = _mark("last index: at most 55 % with D(v) alone", measure=direction_not_last)
LATE_IMAGES = _mark(
    "last index: the images alone lose at most 5 points on a training without D(v)", measure=images_last
)
LOSS = _mark("training loss at most 0.01 in every run", measure=fits_both_parts)


def marks_of(isotropic: bool) -> tuple[Mark, ...]:
    """What the paper says of networks that prefer no direction, and of others."""
    return (ALWAYS, NEVER, LOSS) if isotropic else (EARLY, EARLY_IMAGES, LATE, LATE_IMAGES, LOSS)


def concatenation_claims(table: pd.DataFrame, isotropic: bool) -> pd.DataFrame:
    """Hold figure 3 against trainings, as :func:`load_transition` gives them; the mean over seeds counts.

    It is a ValueError if there are fewer than two indices, or no training on images alone.
    """
    return marks_table(marks_of(isotropic), table)


def learned_along_nads(stored: Stored, least: float) -> Measured:
    mean = stored.along_nads()
    return Measured(f"at least {percent(mean.min())} on {len(mean)} NADs", (100 * mean.min() >= least,))


def costs_accuracy(stored: Stored, points: float) -> Measured:
    table = _read(stored)
    mean = table[table["part"] == "both"].groupby("index")["test_accuracy"].mean()
    lost = 100 * float(mean.iloc[0] - mean.iloc[-1])
    text = f"{percent(mean.iloc[0])} at NAD {mean.index[0]:.0f}, {percent(mean.iloc[-1])} at NAD {mean.index[-1]:.0f}"
    return Measured(text, (lost >= points,))


def either_or(stored: Stored, used: float, indices: float) -> Measured:
    table = _read(stored)
    mean = table[table["part"] == "both"].groupby("index")[[_IMAGES, _DIRECTION]].mean()
    count = int((100 * mean.min(axis=1) > used).sum())
    return Measured(f"both are used at {count} of {len(mean)} indices", (count <= indices,))


_CONVOLUTIONAL: Final[dict[str, Function]] = {
    "early": EARLY,
    "early-images": EARLY_IMAGES,
    "late": LATE,
    "late-images": LATE_IMAGES,
    "cost": costs_accuracy,
    "either": either_or,
    "loss": LOSS,
}
CLAIMS: Final[dict[str, Function]] = {
    "B3-linear": learned_along_nads,
    "B3-mlp-direction": ALWAYS,
    "B3-mlp-images": NEVER,
    "B3-mlp-loss": LOSS,
    **{f"B3-{name}-{word}": one for name in ("lenet", "resnet18") for word, one in _CONVOLUTIONAL.items()},
}
