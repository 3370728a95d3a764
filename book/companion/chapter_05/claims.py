"""Claims about how trainings follow the NADs: figure 6 of paper A, and what paper B says of alignment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import pandas as pd
import torch

from companion.evidence import Function, Measured, Stored, deviation, mean_waves, percent, points, rank_correlation
from nadtools.directions import fourier_atom
from nadtools.nads import NADs

__all__ = ["CLAIMS"]

_NETWORKS: Final = ("lenet", "vgg11", "resnet18", "densenet121")


def falls_along_nads(stored: Stored, correlation: float, points: float) -> Measured:
    mean = stored.along_nads()
    rho, rise = rank_correlation(mean.index, mean), 100 * float(mean.diff().max())
    text = f"rank correlation {rho:.2f}; largest rise from one index to the next {rise:.1f} points"
    return Measured(text, (rho <= correlation, rise <= points))


def meets_published_points(stored: Stored, points: float) -> Measured:
    error, text = deviation(stored.along_nads(), stored.published_accuracies("nads", "index"))
    return Measured(text, (error <= points,))


def nads_say_all(stored: Stored, mean: float, most: float) -> Measured:
    ours, theirs = (stored.along_nads(nads=nads) for nads in ("ours", "published"))
    apart = (ours - theirs).abs().dropna()
    text = f"{points(apart.mean())} on average, {points(apart.max())} at NAD {apart.idxmax():.0f}"
    return Measured(text, (100 * apart.mean() <= mean, 100 * apart.max() <= most))


def _effective_number(nads: NADs) -> float:
    return float(nads.eigenvalues.sum() ** 2 / nads.eigenvalues.square().sum())


def fastest_decay(stored: Stored) -> Measured:
    numbers = {name: _effective_number(stored.nads(name)) for name in _NETWORKS}
    ranked = sorted(numbers, key=lambda name: numbers[name])
    text = "effective numbers: " + ", ".join(f"{name} {numbers[name]:.1f}" for name in ranked)
    return Measured(text, (set(ranked[:2]) == {"resnet18", "densenet121"},))


def _drops_and_decays(
    nads: Mapping[str, NADs], curves: Mapping[str, pd.Series], learned: float, least: float
) -> Measured:
    last = {name: float(mean.index[100 * mean >= learned].max()) for name, mean in curves.items()}
    rho = rank_correlation([_effective_number(nads[name]) for name in _NETWORKS], [last[name] for name in _NETWORKS])
    text = "last NAD learned: " + ", ".join(f"{name} {last[name]:.0f}" for name in _NETWORKS)
    rounding = 1e-9
    return Measured(f"{text}; {rho:.2f}", (rho >= least - rounding, rho >= 1 - rounding))


def _curves(stored: Stored) -> dict[str, pd.Series]:
    return {name: stored.along_nads(architecture=name) for name in _NETWORKS}


def _published_curves(stored: Stored) -> dict[str, pd.Series]:
    return {name: stored.published_accuracies("nads", "index", architecture=name) for name in _NETWORKS}


def drop_follows_decay(stored: Stored, learned: float, least: float) -> Measured:
    curves = _curves(stored)
    return _drops_and_decays({name: stored.nads(name, noted=False) for name in _NETWORKS}, curves, learned, least)


def published_drop_follows_decay(stored: Stored, learned: float, least: float) -> Measured:
    nads = {name: stored.nads(name) for name in _NETWORKS}
    return _drops_and_decays(nads, _published_curves(stored), learned, least)


def _biases(curves: Mapping[str, pd.Series]) -> Measured:
    common = pd.concat(curves, axis=1).dropna().mean()
    text = "mean accuracy: " + ", ".join(f"{name} {percent(common[name])}" for name in _NETWORKS)
    return Measured(text, (bool(common[["resnet18", "densenet121"]].max() < common[["lenet", "vgg11"]].min()),))


def strongest_bias(stored: Stored) -> Measured:
    return _biases(_curves(stored))


def published_strongest_bias(stored: Stored) -> Measured:
    return _biases(_published_curves(stored))


def alignment_ranks(stored: Stored, clear: float, monotone: float) -> Measured:
    """Rank correlation of α(v) with the accuracy over Fourier atoms."""
    accuracy = mean_waves(stored.waves("A1"))
    own_mirror = [i % 16 == 0 and j % 16 == 0 for i, j in accuracy.index]
    atoms = torch.stack(
        [
            fourier_atom((32, 32), (int(i), int(j)), 0.0 if mirror else math.pi / 2)
            for (i, j), mirror in zip(accuracy.index, own_mirror, strict=True)
        ]
    )
    rho = rank_correlation(stored.nads().alignments(atoms), accuracy)
    return Measured(f"{rho:.2f}", (rho >= clear, rho >= monotone))


def only_first_nads(stored: Stored, first: float, last: float) -> Measured:
    mean = stored.along_nads()
    start, end = float(mean.iloc[0]), float(mean.iloc[-1])
    text = f"{percent(start)} at NAD {mean.index[0]:.0f}, {percent(end)} at NAD {mean.index[-1]:.0f}"
    return Measured(text, (100 * start >= first, 100 * end <= last))


CLAIMS: Final[dict[str, Function]] = {
    "A6-{architecture}-falls": falls_along_nads,
    "A6-{architecture}-points": meets_published_points,
    "A6-complete": nads_say_all,
    "A6-spectra": fastest_decay,
    "A6-decay": drop_follows_decay,
    "A6-decay-published": published_drop_follows_decay,
    "A6-strongest": strongest_bias,
    "A6-strongest-published": published_strongest_bias,
    "B-alpha-lenet-gradient": alignment_ranks,
    "B-alpha-lenet-secant": alignment_ranks,
    "B-alpha-resnet18-gradient": alignment_ranks,
    "B-alpha-resnet18-secant": alignment_ranks,
    "B-only-first-{architecture}": only_first_nads,
}
