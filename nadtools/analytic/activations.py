r"""Activations in expectation: the gain :math:`E[\varphi'(z)^2]`, and what wide networks make of a covariance.

For normal z, z' with covariance K the limit of infinite width needs :math:`\Lambda = E[\varphi(z) \varphi(z')]` and
:math:`\dot\Lambda = E[\varphi'(z) \varphi'(z')]` at every pair of positions. For ReLU both are closed forms (the
arc-cosine kernels of Cho and Saul, 2009). For others :math:`\varphi(\sqrt q\,u) = \sum_k c_k(q)\,h_k(u)` in normalised
Hermite polynomials, and then :math:`\Lambda = \sum_k c_k(q)\,c_k(q')\,\rho^k` with the correlation ρ.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["Function", "derivative", "mean_squared_slope", "wide_covariances"]

Function = Callable[[Tensor], Tensor]

_GRID = 20_000  # points of the midpoint rule
_RANGE = 9.0  # standard deviations; beyond them a normal variable has a mass of 1e-19
_TERMS = 60  # of the Hermite series


def derivative(function: Function, z: Tensor) -> Tensor:
    """φ' at every entry."""
    z = z.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(function(z * 1.0).sum(), z)
    return slope.detach()


def mean_squared_slope(function: Function, variance: float) -> float:
    r""":math:`E[\varphi'(z)^2]` for z ~ N(0, variance)."""
    u, weights = _grid()
    return float(weights @ derivative(function, variance**0.5 * u).square())


def wide_covariances(function: Function, covariance: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\Lambda` and :math:`\dot\Lambda` of a (P, P) covariance."""
    deviations = covariance.diagonal().clamp_min(0).sqrt()
    scale = deviations[:, None] * deviations
    correlation = torch.where(scale > 0, covariance / scale.clamp_min(1e-300), torch.zeros(())).clamp(-1, 1)
    correlation.diagonal()[deviations > 0] = 1.0
    if _is_relu(function):
        angle = correlation.arccos()
        slopes = (math.pi - angle) / (2 * math.pi)
        sine = (1 - correlation.square()).clamp_min(0).sqrt()
        values = scale * (sine / (2 * math.pi) + correlation * slopes)
        return values, slopes
    return _series(function, deviations, correlation), _series(
        lambda z: derivative(function, z), deviations, correlation
    )


def _is_relu(function: Function) -> bool:
    probe = torch.tensor([-100.0, -1.0, -0.1, 0.0, 0.1, 1.0, 100.0], dtype=torch.float64)
    return torch.equal(function(probe.clone()), probe.clamp_min(0))


def _series(function: Function, deviations: Tensor, correlation: Tensor) -> Tensor:
    u, weights = _grid()
    # Maps have few different variances: borders and corners.
    different, which = torch.unique((deviations * 1e12).round() / 1e12, return_inverse=True)
    values = torch.stack([function(deviation * u) for deviation in different]) * weights
    before, polynomial = torch.zeros_like(u), torch.ones_like(u)
    power, result = torch.ones_like(correlation), torch.zeros_like(correlation)
    for k in range(_TERMS):
        coefficients = (values @ polynomial)[which]
        result += coefficients[:, None] * coefficients * power
        power = power * correlation
        before, polynomial = polynomial, (u * polynomial - k**0.5 * before) / (k + 1) ** 0.5
    return result


@functools.cache
def _grid() -> tuple[Tensor, Tensor]:
    """Points and weights of a standard normal variable; symmetric, and 0 is not among them."""
    u = (torch.arange(_GRID, dtype=torch.float64) + 0.5) / _GRID * 2 * _RANGE - _RANGE
    weights = torch.exp(-u.square() / 2)
    return u, weights / weights.sum()
