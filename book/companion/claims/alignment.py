"""NADs of untrained networks, and how trainings on linear problems follow them (paper A, figures 5 and 6)."""

from __future__ import annotations

import itertools
import math
from typing import Final

import pandas as pd
import torch

from companion import published
from companion.claims.evidence import (
    Found,
    Where,
    along_nads,
    at_hand,
    atlas,
    deviation,
    evaluator,
    mean_waves,
    percent,
    points,
    published_accuracies,
    rank_correlation,
    sources,
    waves,
)
from companion.claims.model import Claim
from nadtools.directions import fourier_atom, fourier_energy
from nadtools.nads import NADs, subspace_overlap

_NETWORKS: Final = ("lenet", "vgg11", "resnet18", "densenet121")


@evaluator
def _signatures(claim: Claim, where: Where) -> Found:
    nads = {name: atlas(where, name) for name in _NETWORKS}
    others = max(
        subspace_overlap(nads[a].vectors, nads[b].vectors, 10) for a, b in itertools.combinations(_NETWORKS, 2)
    )
    own = min(float(one.split_half_overlap[9]) for one in nads.values())
    text = f"at most {others:.2f} between two architectures, at least {own:.2f} between halves of one"
    holds = others <= claim.limits["most"] and own > others
    return Found(text, (holds,), sources(*nads.values()))


@evaluator
def _support_is_easy(claim: Claim, where: Where) -> Found:
    nads, table = atlas(where, **claim.selectors), waves("A1", where, **claim.selectors)
    accuracy = mean_waves(table)
    both = {}
    for (i, j), value in zip(accuracy.index, accuracy, strict=True):
        for sign in (1, -1):
            both[sign * int(i) % 32, sign * int(j) % 32] = value
    places = [((i + 16) % 32, (j + 16) % 32) for i, j in both]
    energy = fourier_energy(nads.vectors[:3]).double()
    weights = torch.stack([energy[:, i, j] for i, j in places], 1)
    values = torch.tensor(list(both.values()), dtype=torch.float64)
    weighted = float(((weights @ values) / weights.sum(1)).min())
    text = f"at least {percent(weighted)} where they have their energy, {percent(float(values.mean()))} on the grid"
    holds = 100 * (weighted - float(values.mean())) >= claim.limits["points"]
    return Found(text, (holds,), sources(nads, table))


@evaluator
def _combs(claim: Claim, where: Where) -> Found:
    nads = atlas(where, **claim.selectors)
    energy = fourier_energy(nads.vectors[:10]).double()
    number = float((1 / energy.square().sum((1, 2))).mean())
    axis = torch.arange(-16, 16) % 4 == 0
    share = float(energy[:, axis][:, :, axis].sum((1, 2)).mean())
    text = f"{number:.0f} frequencies on average; {percent(share)} of the energy at multiples of four cycles"
    limits = claim.limits
    return Found(text, (number >= limits["number"] and 100 * share >= limits["share"],), sources(nads))


@evaluator
def _no_order_of_frequencies(claim: Claim, where: Where) -> Found:
    nads = atlas(where, **claim.selectors)
    axis = torch.arange(-16.0, 16.0, dtype=torch.float64)
    radius = torch.hypot(axis[:, None], axis[None, :])
    frequency = (fourier_energy(nads.vectors[:200]).double() * radius).sum((1, 2))
    rho = rank_correlation(frequency, range(200))
    return Found(f"rank correlation {rho:.2f}", (rho <= claim.limits["most"],), sources(nads))


@evaluator
def _meets_published_nads(claim: Claim, where: Where) -> Found:
    nads = atlas(where, **claim.selectors)
    at_hand(claim.selectors["architecture"])
    theirs = published.load_nads(claim.selectors["architecture"])
    overlap = subspace_overlap(nads.vectors, theirs.vectors, 10)
    text = f"overlap {overlap:.2f}, by chance 0.01"
    return Found(text, (overlap >= claim.limits["least"],), sources(nads))


@evaluator
def _not_stored(claim: Claim, where: Where) -> Found:
    raise FileNotFoundError('make it with: nadtools.estimate_nads(architecture, num_networks, estimator="mixed")')


@evaluator
def _falls_along_nads(claim: Claim, where: Where) -> Found:
    mean, table = along_nads(where, **claim.selectors)
    rho, rise = rank_correlation(mean.index, mean), float(mean.diff().max())
    text = f"rank correlation {rho:.2f}; largest rise from one index to the next {points(rise)}"
    holds = (rho <= claim.limits["correlation"], 100 * rise <= claim.limits["points"])
    return Found(text, holds, sources(table))


@evaluator
def _meets_published_points(claim: Claim, where: Where) -> Found:
    mean, table = along_nads(where, **claim.selectors)
    error, text = deviation(mean, published_accuracies("nads", claim.selectors["architecture"], "index"))
    return Found(text, (error <= claim.limits["points"],), sources(table))


@evaluator
def _nads_say_all(claim: Claim, where: Where) -> Found:
    (ours, table), (theirs, other) = (along_nads(where, "lenet", nads) for nads in ("ours", "published"))
    apart, limits = (ours - theirs).abs().dropna(), claim.limits
    text = f"{points(apart.mean())} on average, {points(apart.max())} at NAD {apart.idxmax():.0f}"
    holds = (100 * apart.mean() <= limits["mean"], 100 * apart.max() <= limits["most"])
    return Found(text, holds, sources(table, other))


def _effective_number(nads: NADs) -> float:
    return float(nads.eigenvalues.sum() ** 2 / nads.eigenvalues.square().sum())


@evaluator
def _fastest_decay(claim: Claim, where: Where) -> Found:
    nads = {name: atlas(where, name) for name in _NETWORKS}
    numbers = {name: _effective_number(one) for name, one in nads.items()}
    ranked = sorted(numbers, key=lambda name: numbers[name])
    text = "effective numbers: " + ", ".join(f"{name} {numbers[name]:.1f}" for name in ranked)
    return Found(text, (set(ranked[:2]) == {"resnet18", "densenet121"},), sources(*nads.values()))


def _drops_and_decays(
    claim: Claim, nads: dict[str, NADs], curves: dict[str, pd.Series]
) -> tuple[str, tuple[bool, ...]]:
    learned = {name: float(mean.index[100 * mean >= claim.limits["learned"]].max()) for name, mean in curves.items()}
    rho = rank_correlation([_effective_number(nads[name]) for name in _NETWORKS], [learned[name] for name in _NETWORKS])
    text = "last NAD learned: " + ", ".join(f"{name} {learned[name]:.0f}" for name in _NETWORKS)
    rounding = 1e-9
    return f"{text}; {rho:.2f}", (rho >= claim.limits["least"] - rounding, rho >= 1 - rounding)


@evaluator
def _drop_follows_decay(claim: Claim, where: Where) -> Found:
    curves = {name: along_nads(where, name) for name in _NETWORKS}
    nads = {name: atlas(where, name) for name in _NETWORKS}
    text, holds = _drops_and_decays(claim, nads, {name: mean for name, (mean, _) in curves.items()})
    return Found(text, holds, sources(*(table for _, table in curves.values())))


@evaluator
def _published_drop_follows_decay(claim: Claim, where: Where) -> Found:
    nads = {name: atlas(where, name) for name in _NETWORKS}
    curves = {name: published_accuracies("nads", name, "index") for name in _NETWORKS}
    return Found(*_drops_and_decays(claim, nads, curves), sources(*nads.values()))


def _biases(curves: dict[str, pd.Series]) -> tuple[str, tuple[bool, ...]]:
    common = pd.concat(curves, axis=1).dropna().mean()
    text = "mean accuracy: " + ", ".join(f"{name} {percent(common[name])}" for name in _NETWORKS)
    return text, (bool(common[["resnet18", "densenet121"]].max() < common[["lenet", "vgg11"]].min()),)


@evaluator
def _strongest_bias(claim: Claim, where: Where) -> Found:
    curves = {name: along_nads(where, name) for name in _NETWORKS}
    text, holds = _biases({name: mean for name, (mean, _) in curves.items()})
    return Found(text, holds, sources(*(table for _, table in curves.values())))


@evaluator
def _published_strongest_bias(claim: Claim, where: Where) -> Found:
    return Found(*_biases({name: published_accuracies("nads", name, "index") for name in _NETWORKS}))


@evaluator
def _alignment_ranks(claim: Claim, where: Where) -> Found:
    """Rank correlation of α(v) with the accuracy over Fourier atoms."""
    table, limits = waves("A1", where, architecture=claim.selectors["architecture"]), claim.limits
    nads = atlas(where, **claim.selectors)
    accuracy = mean_waves(table)
    own_mirror = [i % 16 == 0 and j % 16 == 0 for i, j in accuracy.index]
    atoms = torch.stack(
        [
            fourier_atom((32, 32), (int(i), int(j)), 0.0 if mirror else math.pi / 2)
            for (i, j), mirror in zip(accuracy.index, own_mirror, strict=True)
        ]
    )
    rho = rank_correlation(nads.alignments(atoms), accuracy)
    return Found(f"{rho:.2f}", (rho >= limits["clear"], rho >= limits["monotone"]), sources(table, nads))


@evaluator
def _only_first_nads(claim: Claim, where: Where) -> Found:
    mean, table = along_nads(where, **claim.selectors)
    first, last = float(mean.iloc[0]), float(mean.iloc[-1])
    text = f"{percent(first)} at NAD {mean.index[0]:.0f}, {percent(last)} at NAD {mean.index[-1]:.0f}"
    holds = (100 * first >= claim.limits["first"], 100 * last <= claim.limits["last"])
    return Found(text, holds, sources(table))


@evaluator
def _learned_along_nads(claim: Claim, where: Where) -> Found:
    mean, table = along_nads(where, **claim.selectors)
    text = f"at least {percent(mean.min())} on {len(mean)} NADs"
    return Found(text, (100 * mean.min() >= claim.limits["least"],), sources(table))
