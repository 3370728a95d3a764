"""Bounds: of Lemma 2 and of Markov on the dipole metric, and of Marchenko and Pastur on eigenvalues of noise."""

from __future__ import annotations

import math
from typing import get_args

import torch
from torch import Tensor

from nadtools import checks
from nadtools.theory.deep_linear import WeightLaw
from nadtools.theory.pooling import ArrayLike

__all__ = ["dipole_gradient_bound", "dipole_probability", "marchenko_pastur_band"]


def dipole_gradient_bound(
    alpha: float,
    beta: float,
    rms_gradient: ArrayLike,
    rms_mixed: ArrayLike,
    mean_mixed: ArrayLike,
    *,
    as_printed: bool = False,
) -> Tensor:
    r"""Upper bound on :math:`E\|\nabla_\theta q_\theta(v)\|`, how fast training can change the dipole metric.

    For :math:`q_\theta(v) = g(|v^T \nabla_x f|)`, with g increasing and :math:`|g'(t)| \le \alpha t + \beta` for t > 0,

    .. math:: E\|\nabla_\theta q_\theta(v)\| \le
              \alpha \sqrt{E|v^T \nabla_x f|^2} \sqrt{E\|\nabla^2_{\theta,x} f\, v\|^2}
              + \beta\, E\|\nabla^2_{\theta,x} f\, v\|.

    Derivation: the chain rule gives :math:`\|\nabla_\theta q\| = |g'(|s|)|\, \|Hv\| \le (\alpha |s| + \beta) \|Hv\|`
    with :math:`s = v^T \nabla_x f` and :math:`H = \nabla^2_{\theta,x} f`, and the inequality of Cauchy and Schwarz
    :math:`E[|s| \|Hv\|] \le \sqrt{E s^2} \sqrt{E\|Hv\|^2}`. Nothing squares :math:`\alpha`.

    Lemma 2 of *Neural Anisotropy Directions*, equation (3), has :math:`\alpha^2` in the place of :math:`\alpha`. That
    is correct but looser for :math:`\alpha > 1`, and can fail for :math:`\alpha < 1`. An example is
    :math:`g(t) = a t^2 / 2` (:math:`\alpha = a`, :math:`\beta = 0`) on the deep linear model along :math:`v = e_i`:
    with Rademacher weights :math:`|s|` and :math:`\|Hv\|` are constants, so the bound with :math:`\alpha` is an
    equality and the printed one fails for every a < 1. With normal weights of :math:`\sigma_\theta = \sigma_\phi`
    the left-hand side is :math:`3/(2\sqrt\pi) = 0.846` of the bound, and the printed one fails for every a below it.

    Parameters
    ----------
    alpha, beta : float
        Constants of the growth condition on g', zero or positive.
    rms_gradient : float or Tensor
        :math:`\sqrt{E|v^T \nabla_x f|^2}`; for the deep linear model and :math:`v = e_i` the square root of
        :func:`gradient_covariance`.
    rms_mixed : float or Tensor
        :math:`\sqrt{E\|\nabla^2_{\theta,x} f\, v\|^2}`; there the square root of :func:`mixed_second_moment`.
    mean_mixed : float or Tensor
        :math:`E\|\nabla^2_{\theta,x} f\, v\|`; it matters only where beta > 0, and is at most ``rms_mixed``.
    as_printed : bool
        True returns the right-hand side of equation (3) as printed, with :math:`\alpha^2`.

    Returns
    -------
    Tensor
        float64, of the shape to which the last three arguments broadcast (no dimension for floats).

    Raises
    ------
    TypeError, ValueError
        If an argument is not real, is negative or not finite, or the shapes do not fit each other.
    """
    checks.flags(as_printed=as_printed)
    alpha, beta = checks.nonnegative_number("alpha", alpha), checks.nonnegative_number("beta", beta)
    gradient, rms, mean = checks.broadcast(rms_gradient=rms_gradient, rms_mixed=rms_mixed, mean_mixed=mean_mixed)
    return (alpha**2 if as_printed else alpha) * gradient * rms + beta * mean


def dipole_probability(eta: ArrayLike, gradient_variance: ArrayLike, *, weights: WeightLaw = "normal") -> Tensor:
    r"""Probability that a random deep linear model tells a dipole along :math:`e_\ell` apart: :math:`P(q \ge \eta)`.

    Here :math:`q = (\partial f / \partial x[\ell])^2 = (\theta[\ell \bmod M]\, m[\ell]\, \phi[\ell])^2 / S`, the dipole
    metric for g(t) = t², and :math:`c^2 = E[q]` is entry :math:`\ell` of :func:`gradient_covariance`. The paper bounds
    this probability by Markov's inequality, :math:`P(q \ge \eta) \le c^2 / \eta`: equation (6) of *Neural Anisotropy
    Directions*.

    With normal weights :math:`\sqrt q / c` is the modulus of a product of two independent standard normal variables.
    Its density is :math:`\frac2\pi K_0(u)`, with the modified Bessel function
    :math:`K_0(u) = \int_0^\infty e^{-u \cosh s} ds`. Integrating over u first,

    .. math:: P(q \ge \eta) = \frac2\pi \int_0^\infty \frac{e^{-u \cosh s}}{\cosh s}\, ds, \qquad u = \sqrt\eta / c.

    The ratio of this to Markov's bound is at most 0.255, at :math:`\eta = 2.79 c^2`: a gap by which a wrong factor in
    the covariance passes unnoticed. With Rademacher weights q is the constant :math:`c^2`, and at
    :math:`\eta = c^2` the bound is attained: both sides are 1.
    For both laws, as for any, :math:`\int_0^\infty P(q \ge \eta)\, d\eta = c^2`.

    Parameters
    ----------
    eta : float or Tensor
        Threshold of the metric, in the units of the variance; zero or positive.
    gradient_variance : float or Tensor
        c², zero or positive.
    weights : {"normal", "rademacher"}
        Law of the weights, as in :class:`DeepLinearModel`.

    Returns
    -------
    Tensor
        float64, of the shape to which the arguments broadcast (no dimension for floats).

    Raises
    ------
    TypeError, ValueError
        If an argument is not real, is negative or not finite, the shapes do not fit, or the law is unknown.
    """
    checks.choice("weights", weights, get_args(WeightLaw))
    threshold, variance = checks.broadcast(eta=eta, gradient_variance=gradient_variance)
    if weights == "rademacher":
        return (threshold <= variance).to(torch.float64)
    u = (threshold / variance).sqrt()
    # Where the integrand has fallen by exp(-40) or the hyperbolic secant alone has, nothing is left to integrate.
    end = torch.acosh(1 + 40 / u).clamp(max=40)
    s = end.unsqueeze(-1) * torch.linspace(0, 1, 201, dtype=torch.float64)
    cosh = s.cosh()
    # The integrand is even and analytic and vanishes at the end, so the trapezoidal rule converges geometrically.
    probability = 2 / math.pi * torch.trapezoid(torch.exp(-u.unsqueeze(-1) * cosh) / cosh, s)
    return torch.where(threshold == 0, 1.0, probability)


def marchenko_pastur_band(dimension: int, num_samples: int, variance: float = 1.0) -> tuple[float, float]:
    """Where the eigenvalues of a sample covariance lie if the true one is white: variance * (1 ∓ sqrt(D / n))².

    This is the null hypothesis of anisotropy. It applies to n >= D independent vectors, both large, with D independent
    entries of this variance: single gradients of logistic regression, one for each network, with nothing averaged out.
    Averages over an output layer or over symmetries have other laws.
    """
    dimension = checks.positive_int("dimension", dimension)
    num_samples = checks.positive_int("num_samples", num_samples)
    variance = checks.positive_number("variance", variance)
    if dimension > num_samples:
        raise ValueError(f"got num_samples={num_samples}; expected at least as many as dimension={dimension}")
    ratio = math.sqrt(dimension / num_samples)
    return variance * (1 - ratio) ** 2, variance * (1 + ratio) ** 2
