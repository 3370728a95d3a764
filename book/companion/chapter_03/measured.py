"""What chapter 3 trains and differentiates for its figures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import norm
from torch import Tensor

from companion.chapter_03.descent import (
    critical_learning_rate,
    steps_to_fraction,
    steps_to_loss,
    train_deep_linear,
)
from nadtools.theory import deep_linear, pooling

__all__ = [
    "at_one_ninth",
    "breaking_rates",
    "draws",
    "fewest_steps",
    "mean_curvatures",
    "prefilter",
    "slow_frequencies",
]

_SIZE, _STRIDE = 128, 4  # as in the paper's figure 4
_START: dict[str, Any] = {"sigma_phi": 0.01, "weights": "rademacher"}  # θ = ±1, φ near 0


def prefilter(weakest: float) -> Tensor:
    """A response that falls from 1 at frequency 0 to 1/`weakest` at the highest one, shape (128,)."""
    return float(weakest) ** -(2 * torch.fft.fftfreq(_SIZE, dtype=torch.float64)).square()


def draws(number: int, size: int, stride: int, frequency: int, sigma: float, seed: int) -> tuple[Tensor, ...]:
    """Random φ, θ, samples x and labels y (ε = 1), `number` of each."""
    source = torch.Generator().manual_seed(seed)
    theta = torch.randn(number, size // stride, dtype=torch.float64, generator=source)
    phi = torch.randn(number, size, dtype=torch.float64, generator=source)
    y = 2.0 * torch.randint(2, (number,), generator=source) - 1
    x = sigma * torch.randn(number, size, dtype=torch.float64, generator=source)
    x[:, frequency] += y
    return phi, theta, x, y


def mean_curvatures(number: int, seed: int) -> pd.DataFrame:
    """Mean second derivatives of the loss of one sample, over the formulas, for several strides S."""
    size, frequency, sigma = 16, 5, 0.5
    m = torch.linspace(1.0, 0.2, size, dtype=torch.float64)
    rows = {}
    for stride in (1, 2, 4, 8, 16):
        fold = pooling.aliasing_matrix(size, stride)

        def loss(phi: Tensor, theta: Tensor, x: Tensor, y: Tensor, fold: Tensor = fold) -> Tensor:
            return (y - theta @ fold @ (m * phi * x)) ** 2

        given = draws(number, size, stride, frequency, sigma, seed)
        along = []
        for argument in (0, 1):
            hessian = torch.func.jacrev(torch.func.grad(loss, argument), argument)
            along.append(torch.vmap(hessian)(*given).mean(0).diagonal())
        problem = (frequency, m, stride, 1.0, 1.0, sigma)
        printed = deep_linear.expected_hessian(*problem, as_printed=True)
        rows[stride] = {
            "φ: measured / lemma": float((along[0] / deep_linear.expected_hessian(*problem)).mean()),
            "φ: measured / as printed": float((along[0] / printed).mean()),
            "θ: measured / formula": float((along[1] / deep_linear.expected_hessian_theta(*problem)).mean()),
        }
    return pd.DataFrame(rows).T.rename_axis("S")


def breaking_rates(m: Tensor, frequency: int, steps: int, seed: int) -> tuple[Tensor, dict[str, Tensor], float]:
    """Learning rates over the predicted limit, the losses where trainings with them end, and where normal θ break."""
    limit = float(critical_learning_rate(m, _STRIDE, epsilon=1.0, sigma=1.0)[frequency])
    multiples = torch.logspace(-1.5, 0.5, 81)
    kinds: dict[str, dict[str, Any]] = {
        "θ = ±1": {"learn": "phi", "weights": "rademacher"},
        "normal θ": {"learn": "phi"},
        "normal θ learns": {"learn": "both"},
        "in batches": {"learn": "phi", "weights": "rademacher", "batch_size": 32},
    }
    setting: dict[str, Any] = {"steps": steps, "sigma": 1.0, "sigma_phi": 0.1, "seed": seed}
    ends = {
        name: train_deep_linear(m, _STRIDE, [frequency] * 81, learning_rate=multiples * limit, **setting, **kind)[-1]
        for name, kind in kinds.items()
    }
    theta = deep_linear.DeepLinearModel(m, _STRIDE, seed=seed).theta.detach().double().repeat(_STRIDE)
    largest = (deep_linear.expected_hessian(frequency, m, _STRIDE, 1.0, 1.0, 1.0) * theta.square()).max()
    return multiples, ends, 2 / float(largest) / limit


def fewest_steps(
    m: Tensor, frequencies: Sequence[int], sigmas: Sequence[float], *, steps: int, num_seeds: int, seed: int
) -> pd.DataFrame:
    """The fewest steps to learn each frequency, over nine learning rates; a row for each training, σ and frequency.

    Columns ``training``, ``sigma``, ``response``, ``kappa``, ``zeta`` and ``steps``, the median over seeds.
    """
    places = list(frequencies)
    fractions = 0.95 * 2.0 ** -torch.arange(9.0, dtype=torch.float64)  # of the predicted limit
    tried = [f for f in places for _ in fractions]
    kinds: dict[str, dict[str, Any]] = {
        "φ alone": {"learn": "phi"},
        "φ and θ": {},
        "batches of 32": {"learn": "phi", "batch_size": 32},
    }
    tables = []
    for (name, kind), sigma in itertools.product(kinds.items(), sigmas):
        limits = critical_learning_rate(m, _STRIDE, epsilon=1.0, sigma=sigma)[places]
        rates = (limits[:, None] * fractions).flatten()
        least, found = sigma**2 / (1 + sigma**2), []
        for k in range(seed, seed + num_seeds):
            options = {"learning_rate": rates, "steps": steps, "sigma": sigma, "seed": k, **_START, **kind}
            losses = train_deep_linear(m, _STRIDE, tried, **options)
            counts = steps_to_loss(losses, least + 0.1 * (1 - least), settle=True)
            found.append(counts.view(len(places), -1).amin(1))
        columns = {
            "training": name,
            "sigma": sigma,
            "response": m[places],
            "kappa": deep_linear.condition_number(m, 1.0, sigma)[places],
            "zeta": deep_linear.curvature_ratio(m, 1.0, sigma)[places],
            "steps": torch.stack(found).median(0).values,
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def at_one_ninth(table: pd.DataFrame) -> pd.DataFrame:
    """Steps at ζ = 1/9, by training and σ: on straight lines between the points, on logarithmic axes."""

    def between(rows: pd.DataFrame) -> float:
        rows = rows.sort_values("zeta")
        return math.exp(np.interp(math.log(1 / 9), np.log(rows.zeta), np.log(rows.steps)))

    steps = table.groupby(["training", "sigma"], sort=False)[["zeta", "steps"]].apply(between).unstack()
    return steps.rename(columns="σ = {:g}".format).rename_axis("steps at ζ = 1/9").rename_axis(None, axis=1)


def slow_frequencies(
    frequencies: Sequence[int], *, steps: int, seed: int
) -> tuple[dict[str, tuple[dict[str, Tensor], dict[str, Tensor]]], pd.Series]:
    """Best accuracies, responses and steps behind invertible prefilters (S = 1, ε = σ = 1), by their weakest response.

    Also, for the weakest of them, the power of the response by which the steps grow, where it is below one half.
    """
    places = list(frequencies)
    choices: dict[str, tuple[dict[str, Tensor], dict[str, Tensor]]] = {}
    powers = {}
    for weakest in (3, 10, 30, 100):
        m = prefilter(weakest)
        # All can be undone; ε = σ, with noise along the signal.
        assert int(torch.linalg.matrix_rank(m.diag())) == _SIZE
        accuracy = torch.full((len(places),), norm.cdf(1.0), dtype=torch.float64)
        options = {"learning_rate": 0.1, "steps": steps, "sigma": 1.0, "seed": seed, **_START}
        losses = train_deep_linear(m, 1, places, **options)
        counts = {
            "φ and θ learn": steps_to_loss(losses, 0.55),  # the least loss is 1/2
            "φ alone, formula": steps_to_fraction(4 * m[places].square(), 0.1),  # the curvature for ε = σ = S = 1
        }
        choices[f"1/{weakest}"] = {"best accuracy": accuracy, "response m[ℓ]": m[places]}, counts
    for name, count in counts.items():
        counted = (m[places] < 0.5) & torch.isfinite(count)
        x, y = m[places][counted].log().numpy(), count[counted].log().numpy()
        powers[name] = float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else math.nan
    return choices, pd.Series(powers)
