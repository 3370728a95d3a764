"""Claims about the NADs of untrained networks: lemma 2, equations (4) to (6) and figure 5 of paper A."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Final

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from companion.chapter_04.dipoles import dipole_gradient_bound, dipole_probability
from companion.evidence import (
    Function,
    Measured,
    Stored,
    computed,
    mean_waves,
    percent,
    printed_and_corrected,
    rank_correlation,
)
from nadtools.directions import fourier_energy
from nadtools.nads import subspace_overlap
from nadtools.theory import deep_linear

__all__ = ["CLAIMS", "agreement"]

_NETWORKS: Final = ("lenet", "vgg11", "resnet18", "densenet121")
_RESPONSE = (1.0, 0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1)


def lemma_2() -> Measured:
    network = deep_linear.DeepLinearModel([1.0] * 8, 4, weights="rademacher", seed=0)
    x = torch.zeros(1, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    parts = torch.autograd.grad(gradient[0, 2].square() / 4, list(network.parameters()))
    left = float(torch.cat(parts).norm())
    rms, mixed = (
        function([1.0] * 8, 4)[2].sqrt()
        for function in (deep_linear.gradient_covariance, deep_linear.mixed_second_moment)
    )
    printed, bound = (float(dipole_gradient_bound(0.5, 0.0, rms, mixed, mixed, as_printed=p)) for p in (True, False))
    text = f"left side {left:.4f}; the bound is {printed:.4f} as printed, {bound:.4f} with α for α²"
    return Measured(text, (left <= printed,), corrected=left <= bound * (1 + 1e-6))


def _squares(mixed: bool) -> Tensor:
    """Diagonal of the second moment of input gradients, or of mixed derivatives, by automatic differentiation."""
    model = deep_linear.DeepLinearModel(_RESPONSE, 2, weights="rademacher", seed=0).double()
    x = torch.zeros(1, len(_RESPONSE), dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    if not mixed:
        return gradient[0].detach().square()
    rows = [torch.autograd.grad(entry, list(model.parameters()), retain_graph=True) for entry in gradient[0]]
    return torch.stack([torch.cat(row).square().sum() for row in rows])


def equation_4() -> Measured:
    formula = functools.partial(deep_linear.gradient_covariance, _RESPONSE, 2)
    return printed_and_corrected(_squares(mixed=False), formula, "for S = 2 the covariance")


def equation_5() -> Measured:
    formula = functools.partial(deep_linear.mixed_second_moment, _RESPONSE, 2)
    return printed_and_corrected(_squares(mixed=True), formula, "for S = 2 the moment")


def same_basis() -> Measured:
    orders = [_squares(mixed).argsort(descending=True) for mixed in (False, True)]
    response = torch.tensor(_RESPONSE).square().argsort(descending=True)
    holds = all(bool((order == response).all()) for order in orders)
    return Measured("both in the order of m²" if holds else "in different orders", (holds,))


def markov() -> Measured:
    threshold = torch.logspace(-3, 3, 121, dtype=torch.float64)
    normal, signs = (
        float((dipole_probability(threshold, 1.0, weights=weights) * threshold).max())
        for weights in ("normal", "rademacher")
    )
    text = f"probability over bound: at most {normal:.2f} for normal weights, {signs:.2f} for ±1"
    return Measured(text, (max(normal, signs) <= 1 + 1e-9,))


def agreement(table: pd.DataFrame) -> tuple[float, float, float]:
    """The correlation of both covariances without the noise of sampling; and of each the share that is no noise.

    That share is of one block of networks.
    """
    means = {}
    for (one, other), rows in table.groupby(["first_is_mixed", "second_is_mixed"]):
        different = (one != other) | (rows["first_block"] != rows["second_block"])
        means[one, other] = rows["product"][different].mean()
        if one == other:
            means[one, "itself"] = rows["product"][~different].mean()
    signals = [max(means[one, one], 0.0) for one in (0, 1)]
    shares = [signal / means[one, "itself"] for one, signal in enumerate(signals)]
    scale = math.sqrt(math.prod(signals))
    return (means[0, 1] / scale if scale else math.nan), shares[0], shares[1]


def same_directions(stored: Stored, least: float) -> Measured:
    table = stored.table("mixed")
    correlation, _, _ = agreement(table)
    blocks = sorted(table["first_block"].unique())
    without = [
        agreement(table[(table["first_block"] != block) & (table["second_block"] != block)])[0] for block in blocks
    ]
    error = math.sqrt((len(blocks) - 1) * np.var(without))  # jackknife
    return Measured(
        f"correlation {correlation:.3f} ± {error:.3f} without the noise of sampling", (correlation >= least,)
    )


def steadier_gradients(stored: Stored) -> Measured:
    table = stored.table("mixed")
    _, gradient, mixed = agreement(table)
    count = table.attrs["parameters"]["num_networks"]
    text = f"of {count} networks' covariance no noise are {gradient:.0%} by gradients, {mixed:.0%} by mixed derivatives"
    return Measured(text, (gradient > mixed,))


def signatures(stored: Stored, most: float) -> Measured:
    nads = {name: stored.nads(name) for name in _NETWORKS}
    others = max(
        subspace_overlap(nads[a].vectors, nads[b].vectors, 10) for a, b in itertools.combinations(_NETWORKS, 2)
    )
    own = min(float(one.split_half_overlap[9]) for one in nads.values())
    text = f"at most {others:.2f} between two architectures, at least {own:.2f} between halves of one"
    return Measured(text, (others <= most and own > others,))


def support_is_easy(stored: Stored, points: float) -> Measured:
    nads, accuracy = stored.nads(), mean_waves(stored.waves("A1"))
    both = {}
    for (i, j), value in zip(accuracy.index, accuracy, strict=True):
        for sign in (1, -1):
            both[sign * int(i) % 32, sign * int(j) % 32] = value
    places = [((i + 16) % 32, (j + 16) % 32) for i, j in both]
    energy = fourier_energy(nads.vectors[:3]).double()
    weights = torch.stack([energy[:, i, j] for i, j in places], 1)
    values = torch.tensor(list(both.values()), dtype=torch.float64)
    weighted, mean = float(((weights @ values) / weights.sum(1)).min()), float(values.mean())
    text = f"at least {percent(weighted)} where they have their energy, {percent(mean)} on the grid"
    return Measured(text, (100 * (weighted - mean) >= points,))


def combs(stored: Stored, number: float, share: float) -> Measured:
    energy = fourier_energy(stored.nads().vectors[:10]).double()
    spread = float((1 / energy.square().sum((1, 2))).mean())
    axis = torch.arange(-16, 16) % 4 == 0
    part = float(energy[:, axis][:, :, axis].sum((1, 2)).mean())
    text = f"{spread:.0f} frequencies on average; {percent(part)} of the energy at multiples of four cycles"
    return Measured(text, (spread >= number and 100 * part >= share,))


def no_order_of_frequencies(stored: Stored, most: float) -> Measured:
    axis = torch.arange(-16.0, 16.0, dtype=torch.float64)
    radius = torch.hypot(axis[:, None], axis[None, :])
    frequency = (fourier_energy(stored.nads().vectors[:200]).double() * radius).sum((1, 2))
    rho = rank_correlation(frequency, range(200))
    return Measured(f"rank correlation {rho:.2f}", (rho <= most,))


def meets_published_nads(stored: Stored, least: float) -> Measured:
    overlap = subspace_overlap(stored.nads().vectors, stored.published_nads().vectors, 10)
    return Measured(f"overlap {overlap:.2f}, by chance 0.01", (overlap >= least,))


CLAIMS: Final[dict[str, Function]] = {
    **computed(
        {
            "A-lemma2": lemma_2,
            "A-eq4": equation_4,
            "A-eq5": equation_5,
            "A-same-basis": same_basis,
            "A-eq6": markov,
        }
    ),
    "A-mixed-similar": same_directions,
    "A-mixed-stable": steadier_gradients,
    "A5-signature": signatures,
    "A5-{architecture}-support": support_is_easy,
    "A5-combs": combs,
    "A5-order": no_order_of_frequencies,
    "A5-{architecture}-published": meets_published_nads,
}
