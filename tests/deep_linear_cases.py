"""The deep linear models that several tests draw, and how a sample is compared with a formula.

Tolerances are five standard errors, measured on the same sample. The seeds are fixed, so nothing is flaky; for a normal
law one comparison in two million would fail by chance.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.func import functional_call

from nadtools.theory.deep_linear import DeepLinearModel

SIGMA_THETA, SIGMA_PHI = 0.7, 1.3  # unequal, so that a mix-up shows
NUM_NETWORKS = 20_000

# A stride of 2 alone could hide factors such as sqrt(S/2); M = D/S is not always S, so a transposed A shows too.
CASES = [(8, 2, 0), (8, 4, 1), (12, 4, 2), (16, 8, 3), (6, 1, 4)]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def prefilter(dimension: int, seed: int) -> Tensor:
    """Alternates between a Gaussian low-pass and a signed random response that is bounded away from zero."""
    frequencies = torch.fft.fftfreq(dimension, dtype=torch.float64)
    if seed % 2:
        signs = 2.0 * torch.randint(2, (dimension,), generator=generator(seed)) - 1
        return signs * (0.3 + torch.rand(dimension, dtype=torch.float64, generator=generator(seed)))
    return torch.exp(-4 * frequencies.square())


def model(dimension: int, stride: int, seed: int) -> DeepLinearModel:
    return DeepLinearModel(prefilter(dimension, seed), stride, seed=0).double()


def draw_weights(dimension: int, stride: int, seed: int, number: int = NUM_NETWORKS) -> dict[str, Tensor]:
    source = generator(seed)
    theta = torch.randn(number, dimension // stride, dtype=torch.float64, generator=source)
    phi = torch.randn(number, dimension, dtype=torch.float64, generator=source)
    return {"theta": SIGMA_THETA * theta, "phi": SIGMA_PHI * phi}


def output(network: DeepLinearModel, weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """f(x) of one sample for given weights; autograd goes through the module itself."""
    return functional_call(network, weights, (x[None],)).squeeze()


def check_mean(samples: Tensor, expected: Tensor) -> None:
    """The mean over the first axis is within five standard errors of what is expected, entry by entry."""
    standard_error = samples.std(0) / math.sqrt(len(samples))
    assert ((samples.mean(0) - expected).abs() <= 5 * standard_error + 1e-12).all()


def check_mean_differs(samples: Tensor, wrong: Tensor) -> None:
    """Every entry of the mean is more than five standard errors away."""
    standard_error = samples.std(0) / math.sqrt(len(samples))
    assert ((samples.mean(0) - wrong).abs() > 5 * standard_error).all()
