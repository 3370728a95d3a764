"""What chapter 2 computes for its figures: responses, accuracies and kept shares, by formula and by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from companion import experiments
from nadtools.directions import fourier_atom
from nadtools.distributions import LinearlySeparable
from nadtools.theory import pooling

__all__ = [
    "PREFILTERS",
    "after_one_layer",
    "beside_lenet",
    "both_signs",
    "compared",
    "kept_by_frequency",
    "kept_in_total",
    "over_phases",
]

PREFILTERS: tuple[pooling.PrefilterName, ...] = ("average", "binomial", "gaussian", "ideal", "identity")
Curve = tuple[Tensor, Tensor]


def compared(
    size: int, frequencies: Sequence[int], num_samples: int, seed: int
) -> dict[str, dict[str, dict[str, Curve]]]:
    """Accuracies as printed, exact, and of the optimal rule on samples: by layer, by margin, by kind.

    Parameters
    ----------
    size
        D, samples of a signal.
    frequencies
        Where samples are drawn.
    num_samples
        For each point.
    """
    half = torch.arange(size // 2 + 1)
    some = torch.tensor(list(frequencies))
    atoms = torch.cos(2 * math.pi * some[:, None] * torch.arange(size, dtype=torch.float64) / size)
    found: dict[str, dict[str, dict[str, Curve]]] = {}
    for stride in (4, 2, 8):
        for prefilter in (PREFILTERS[0], PREFILTERS[2], PREFILTERS[4]):
            matrix = pooling.pooling_matrix(prefilter, stride, size)
            response = pooling.spectral_response(prefilter, size, stride)
            found[f"S = {stride}, {prefilter}"] = {
                f"{epsilon:g}": {
                    "printed in the paper": (half, pooling.theorem1_accuracy(half, response, stride, epsilon, 1.0)),
                    "exact": (half, pooling.fourier_accuracies(prefilter, stride, epsilon, 1.0, size=size)[half]),
                    "Monte Carlo": (
                        some,
                        torch.tensor(
                            [pooling.monte_carlo_accuracy(v, matrix, epsilon, 1.0, num_samples, seed) for v in atoms]
                        ),
                    ),
                }
                for epsilon in (0.25, 0.5, 1.0, 2.0)
            }
    return found


def over_phases(size: int, frequencies: Sequence[int]) -> dict[str, dict[str, Curve]]:
    """Best accuracy after average pooling with S = 4 (ε = σ) over the phase, by frequency: exact and as printed."""
    phases = torch.linspace(0, math.pi, 241, dtype=torch.float64)
    matrix = pooling.pooling_matrix("average", 4, size)
    response = pooling.spectral_response("average", size, 4)
    positions = torch.arange(size, dtype=torch.float64)
    found = {}
    for ell in frequencies:
        waves = torch.cos(2 * math.pi * ell * positions / size - phases[:, None])
        printed = pooling.theorem1_accuracy(torch.tensor([ell, ell]), response, 4, 1.0, 1.0)
        exact = pooling.bayes_accuracy(waves, matrix, 1.0, 1.0)
        found[str(ell)] = {"exact": (phases, exact), "printed in the paper": (phases[[0, -1]], printed)}
    return found


def _shares(prefilter: pooling.PrefilterName, stride: int, size: int) -> Tensor:
    """cos² ϑ at each frequency, the mean of cosine and sine."""
    both = [pooling.kept_shares(prefilter, stride, size=size, phase=phase) for phase in (0.0, math.pi / 2)]
    return torch.stack(both).mean(0)


def kept_by_frequency(size: int) -> dict[str, dict[str, Curve]]:
    """The share of each wave that a layer keeps, by stride and prefilter."""
    half = torch.arange(size // 2 + 1)
    return {
        str(stride): {prefilter: (half, _shares(prefilter, stride, size)[half]) for prefilter in PREFILTERS}
        for stride in (2, 4, 8)
    }


def beside_lenet() -> pd.DataFrame:
    """Over the waves of the stored trainings (ε = 1, σ = 3): what two layers of average pooling leave, and LeNet's."""
    stored = experiments.load_table("A1", architecture="lenet")
    places = [(int(i), int(j)) for i, j in zip(stored["frequency_i"], stored["frequency_j"], strict=True)]
    exact = pooling.fourier_accuracies("average", 4, 1.0, 3.0, size=(32, 32), phase=math.pi / 2)
    left = [float(exact[place]) for place in places]
    columns = {"two averages": left, "LeNet, trained": stored["test_accuracy"].to_numpy()}
    table = pd.DataFrame(columns, pd.MultiIndex.from_tuples(places))
    table.attrs = stored.attrs
    return table


def both_signs(table: pd.DataFrame) -> pd.DataFrame:
    """A table by frequency, with rows for the negative ones, too, which belong to the same waves."""
    negative = [((16 - i) % 32 - 16, (16 - j) % 32 - 16) for i, j in table.index]
    both = pd.concat([table, table.set_axis(pd.MultiIndex.from_tuples(negative))])
    return both[~both.index.duplicated()]


def kept_in_total(size: int, stride: int) -> pd.DataFrame:
    """Sums of the shares, over all D waves and over those below M/2, by prefilter."""
    low = torch.fft.fftfreq(size, 1 / size).abs() < size / stride / 2
    shares = {prefilter: _shares(prefilter, stride, size) for prefilter in PREFILTERS}
    return pd.DataFrame(
        {
            "all waves": {name: float(share.sum()) for name, share in shares.items()},
            "below M/2": {name: float(share[low].sum()) for name, share in shares.items()},
        }
    )


def after_one_layer(frequency: tuple[int, int], num_images: int, seed: int) -> dict[str, float]:
    """Accuracy of a linear rule that is fitted after one 2 × 2 layer (ε = σ), an average and a maximum.

    Parameters
    ----------
    frequency
        Of the wave v, on 32 × 32 pixels: a sine, where there is one.
    num_images
        To fit the rule by least squares, and as many to test it.
    """
    phase = math.pi / 2 if any(f % 16 for f in frequency) else 0.0
    problem = LinearlySeparable(fourier_atom((32, 32), frequency, phase), epsilon=1.0, sigma=1.0)
    train, test = (problem.sample(num_images, seed=seed + k, device="cpu") for k in (0, 1))
    row = {}
    for name, pool in (("average", functional.avg_pool2d), ("maximum", functional.max_pool2d)):
        known, new = (functional.pad(pool(x, 2).flatten(1).double(), (0, 1), value=1.0) for x, _ in (train, test))
        rule = torch.linalg.lstsq(known, 2 * train[1][:, None].double() - 1).solution[:, 0]
        row[name] = float(((new @ rule > 0) == (test[1] == 1)).double().mean())
    return row
