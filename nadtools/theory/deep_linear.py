r"""Pooling and optimisation: closed forms of an idealised deep linear model.

Seen in the frequency domain, linear pooling multiplies a signal of D frequencies by the response m of its prefilter
and folds it onto M = D/S frequencies, with :math:`A = [I_M \cdots I_M] / \sqrt{S}` (:mod:`nadtools.theory.pooling`).
With a filter :math:`\phi` before it, in place of a stack of convolutions, and a linear layer :math:`\theta` after it,
that is the deep linear model

.. math:: f_{\theta,\phi}(x) = \theta^T A (m \odot \phi \odot x)
          = \frac{1}{\sqrt S} \sum_{i=0}^{D-1} \theta[i \bmod M]\, m[i]\, \phi[i]\, x[i].

All its weights are independent, with mean zero and variances :math:`\sigma_\theta^2` and :math:`\sigma_\phi^2`.
:class:`DeepLinearModel` describes the arguments ``prefilter``, ``stride``, ``sigma_theta`` and ``sigma_phi`` of all
functions. ``epsilon`` and ``sigma`` are half the distance between the classes and the standard deviation of the noise,
in units of the input, zero or positive. Results are float64 tensors with one entry for each of the D frequencies.

Source: *Neural Anisotropy Directions*, sections 2.2 and 3. Where a formula as printed there differs from what follows
from the model, the functions return the latter, and ``as_printed=True`` returns the former.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from nadtools import checks
from nadtools.checks import nonnegative_number
from nadtools.device import generator, stream
from nadtools.theory.pooling import ArrayLike, check_stride

__all__ = [
    "DeepLinearModel", "WeightLaw", "condition_number", "curvature_ratio", "expected_hessian",
    "expected_hessian_theta", "gradient_covariance", "mixed_second_moment",
]  # fmt: skip

WeightLaw = Literal["normal", "rademacher"]


class DeepLinearModel(nn.Module):
    r"""The deep linear model of pooling, :math:`f(x) = \theta^T A (m \odot \phi \odot x)`.

    Args:
        prefilter: m, shape (D,), real: the response of the pooling prefilter at each frequency.
        stride: S, the subsampling factor; it must divide D.
        sigma_theta, sigma_phi: Standard deviations of the weights, zero or positive.
        weights: Law of the weights. ``"normal"`` is the paper's. ``"rademacher"`` draws ±sigma with equal probability:
            the same first and second moments, hence the same closed forms, but with the same :math:`(\partial f /
            \partial x[i])^2` for all networks.
        seed: None draws from PyTorch's global generator, as :func:`nadtools.estimate_nads` wants it. An int leaves it
            alone.

    Its parameters are theta, (M,) with M = D/S, and phi, (D,); float32, as PyTorch's layers. m, (D,), is a buffer.

    Examples:
        >>> import nadtools as nt
        >>> m = [1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05]
        >>> model = lambda: nt.theory.deep_linear.DeepLinearModel(m, stride=2)
        >>> nads = nt.estimate_nads(model, image_size=(1, 8), average_output_layer=False)
    """

    m: Tensor

    def __init__(
        self,
        prefilter: ArrayLike,
        stride: int,
        sigma_theta: float = 1.0,
        sigma_phi: float = 1.0,
        *,
        weights: WeightLaw = "normal",
        seed: int | None = None,
    ) -> None:
        super().__init__()
        m, self.stride, sigmas = check_model(prefilter, stride, sigma_theta=sigma_theta, sigma_phi=sigma_phi)
        checks.choice("weights", weights, get_args(WeightLaw))
        source = None if seed is None else generator(torch.device("cpu"), stream(seed, "deep linear weights"))
        self.theta = nn.Parameter(_draw(len(m) // self.stride, sigmas[0], weights, source))
        self.phi = nn.Parameter(_draw(len(m), sigmas[1], weights, source))
        self.register_buffer("m", m.to(self.phi.dtype))

    def forward(self, x: Tensor) -> Tensor:
        """f(x), shape (n, 1), for x of shape (n, D) or images of D pixels, such as (n, 1, 1, D), read row by row."""
        dimension = len(self.m)
        checks.instance("x", x, Tensor, "a batch of samples")
        if x.ndim < 2 or math.prod(x.shape[1:]) != dimension:
            expected = f"a batch of samples of {dimension} entries, (n, {dimension}) or (n, 1, 1, {dimension})"
            raise ValueError(f"got x of shape {tuple(x.shape)}; expected {expected}")
        filtered = self.m * self.phi * x.flatten(1)
        # Entry kM + t is in row k, column t: the sum over rows is the multiplication by [I_M ... I_M].
        folded = filtered.unflatten(1, (self.stride, -1)).sum(1) / math.sqrt(self.stride)
        return (folded @ self.theta).unsqueeze(1)


def gradient_covariance(
    prefilter: ArrayLike, stride: int, sigma_theta: float = 1.0, sigma_phi: float = 1.0, *, as_printed: bool = False
) -> Tensor:
    r"""Diagonal of :math:`E[\nabla_x f\, \nabla_x f^T]`: entry i is :math:`E[(\partial f / \partial x[i])^2]`.

    .. math:: E[\nabla_x f\, \nabla_x f^T] = \frac{\sigma_\theta^2 \sigma_\phi^2}{S}\, \mathrm{diag}(m^2)

    Derivation: the gradient has the entries :math:`g_i = \theta[i \bmod M]\, m[i]\, \phi[i] / \sqrt S`, so
    :math:`E[g_i g_j] = \frac1S m[i] m[j]\, E[\theta[i \bmod M]\, \theta[j \bmod M]]\, E[\phi[i] \phi[j]]`. The last
    factor is :math:`\sigma_\phi^2` for i = j and zero otherwise; for i = j the one before is :math:`\sigma_\theta^2`.

    As printed, equation (4) lacks the factor 1/S.
    """
    m, stride, (sigma_theta, sigma_phi) = check_model(prefilter, stride, sigma_theta=sigma_theta, sigma_phi=sigma_phi)
    checks.flags(as_printed=as_printed)
    return sigma_theta**2 * sigma_phi**2 / (1 if as_printed else stride) * m.square()


def mixed_second_moment(
    prefilter: ArrayLike, stride: int, sigma_theta: float = 1.0, sigma_phi: float = 1.0, *, as_printed: bool = False
) -> Tensor:
    r"""Diagonal of :math:`E[H^T H]`, :math:`H = \nabla^2_{(\theta,\phi),x} f` of shape (M + D, D); the rest is zero.

    .. math:: E[H^T H] = \frac{\sigma_\theta^2 + \sigma_\phi^2}{S}\, \mathrm{diag}(m^2)

    Derivation: the rows of H that belong to :math:`\phi` have one entry, :math:`\theta[i \bmod M]\, m[i] / \sqrt S`,
    and those of :math:`\theta` have S, :math:`\phi[i]\, m[i] / \sqrt S`, whose products average to zero for i ≠ j.

    As printed, equation (5) is :math:`(\sigma_\theta^2 + \sigma_\phi^2 / S)\, m^2`.
    """
    m, stride, (sigma_theta, sigma_phi) = check_model(prefilter, stride, sigma_theta=sigma_theta, sigma_phi=sigma_phi)
    checks.flags(as_printed=as_printed)
    return (sigma_theta**2 / (1 if as_printed else stride) + sigma_phi**2 / stride) * m.square()


def expected_hessian(
    frequency: int,
    prefilter: ArrayLike,
    stride: int,
    sigma_theta: float = 1.0,
    epsilon: float = 1.0,
    sigma: float = 3.0,
    *,
    as_printed: bool = False,
) -> Tensor:
    r"""Diagonal of the mean Hessian of the quadratic loss with respect to :math:`\phi`; the rest of it is zero.

    The loss is :math:`J = (y - f(x))^2`, the data are :math:`x = \epsilon y e_\ell + w` with
    :math:`w \sim N(0, \sigma^2 I_D)` and y = ±1, equally likely, and the mean is over weights and data:

    .. math:: E[\nabla_\phi^2 J]
              = \frac{2 \sigma_\theta^2}{S} \left( \epsilon^2 m[\ell]^2\, e_\ell e_\ell^T
              + \sigma^2\, \mathrm{diag}(m^2) \right)

    The proof is in chapter 3 of the book. The ``frequency`` is :math:`\ell`, between 0 and D - 1. As printed, Lemma 1
    lacks the factor 1/S.
    """
    m, stride, (sigma_theta,) = check_model(prefilter, stride, sigma_theta=sigma_theta)
    checks.flags(as_printed=as_printed)
    second_moment = _input_second_moment(frequency, m, epsilon, sigma)
    return 2 * sigma_theta**2 / (1 if as_printed else stride) * m.square() * second_moment


def expected_hessian_theta(
    frequency: int, prefilter: ArrayLike, stride: int, sigma_phi: float = 1.0, epsilon: float = 1.0, sigma: float = 3.0
) -> Tensor:
    r"""Diagonal of the mean Hessian of the quadratic loss with respect to :math:`\theta`; the rest of it is zero.

    Loss and data are those of :func:`expected_hessian`. Entry t, of M, is

    .. math:: \frac{2 \sigma_\phi^2}{S} \left( \epsilon^2 m[\ell]^2\, [t = \ell \bmod M]
              + \sigma^2 \sum_{k=0}^{S-1} m[kM + t]^2 \right)

    Derivation: :math:`f = \theta^T u` with :math:`u = A (m \odot \phi \odot x)`, so
    :math:`\nabla_\theta^2 J = 2 u u^T`. In :math:`E[u_t u_{t'}]` the product :math:`\phi[i] \phi[j]` leaves only the
    terms with i = j, which need t = t': :math:`\frac{\sigma_\phi^2}{S} \sum_{i \equiv t} m[i]^2 E[x_i^2]`. So
    :math:`\theta` sees the curvature of a bin as a whole, where :math:`\phi` sees that of each frequency.
    """
    m, stride, (sigma_phi,) = check_model(prefilter, stride, sigma_phi=sigma_phi)
    curvature = m.square() * _input_second_moment(frequency, m, epsilon, sigma)
    return 2 * sigma_phi**2 / stride * curvature.unflatten(0, (stride, -1)).sum(0)


def curvature_ratio(prefilter: ArrayLike, epsilon: float = 1.0, sigma: float = 3.0) -> Tensor:
    r"""Curvature of the signal over the largest curvature of the noise, for every frequency.

    .. math:: \zeta(\ell) = \frac{\epsilon^2 m[\ell]^2}{\sigma^2 \max_i m[i]^2}

    It is the ratio of the two terms of Lemma 1 (:func:`expected_hessian`), in which S and the weights cancel: zero
    where there is no signal (:math:`\epsilon m[\ell] = 0`), and else infinite for :math:`\sigma = 0`. See section 2.2.
    """
    signal = nonnegative_number("epsilon", epsilon) * _relative_response(prefilter)
    return torch.where(signal > 0, (signal / nonnegative_number("sigma", sigma)).square(), 0.0)


def condition_number(prefilter: ArrayLike, epsilon: float = 1.0, sigma: float = 3.0) -> Tensor:
    r"""Largest curvature of the problem at :math:`\ell` over the curvature along :math:`\ell`, for every frequency.

    .. math:: \kappa(\ell) = \max\!\left( 1,\;
              \frac{\sigma^2 \max_i m[i]^2}{(\epsilon^2 + \sigma^2)\, m[\ell]^2} \right)
              = \max\!\left( 1,\; \frac{1}{(1 + \sigma^2 / \epsilon^2)\, \zeta(\ell)} \right)

    Both curvatures are those of :func:`expected_hessian`, in which S and the weights cancel. A learning rate at which
    gradient descent in :math:`\phi` does not diverge is below 2 over the largest curvature, so it takes about
    :math:`\kappa` steps to learn. It is infinite where nothing curves the loss along :math:`\ell`, as for
    :math:`m[\ell] = 0`.
    """
    epsilon, sigma = nonnegative_number("epsilon", epsilon), nonnegative_number("sigma", sigma)
    own = (epsilon**2 + sigma**2) * _relative_response(prefilter).square()
    return torch.where(own > 0, (sigma**2 / own).clamp(min=1.0), math.inf)


def _draw(size: int, sigma: float, weights: WeightLaw, source: torch.Generator | None) -> Tensor:
    if weights == "normal":
        return sigma * torch.randn(size, generator=source)
    return sigma * (2.0 * torch.randint(2, (size,), generator=source) - 1)


def _input_second_moment(frequency: int, m: Tensor, epsilon: float, sigma: float) -> Tensor:
    """Diagonal of E[x xᵀ] for the data of Lemma 1."""
    most = len(m) - 1
    frequency = checks.integer("frequency", frequency, 0, most, f"an index between 0 and D - 1 = {most}")
    second_moment = torch.full_like(m, nonnegative_number("sigma", sigma) ** 2)
    second_moment[frequency] += nonnegative_number("epsilon", epsilon) ** 2
    return second_moment


def check_model(prefilter: ArrayLike, stride: int, **scales: float) -> tuple[Tensor, int, list[float]]:
    """The prefilter, the stride, and numbers that may not be negative."""
    m = _check_prefilter(prefilter)
    return m, check_stride(stride, len(m)), [nonnegative_number(name, value) for name, value in scales.items()]


def _check_prefilter(prefilter: ArrayLike) -> Tensor:
    m = checks.as_real("prefilter", prefilter)
    if m.ndim != 1 or not len(m) or float(m.abs().max()) > checks.LARGE:
        raise ValueError(f"got a prefilter of shape {tuple(m.shape)}; expected (D,): its response, up to 1e30")
    return m


def _relative_response(prefilter: ArrayLike) -> Tensor:
    """|m| over its largest value."""
    m = _check_prefilter(prefilter).abs()
    if not bool(m.any()):
        raise ValueError("got a prefilter that is zero everywhere; expected at least one frequency that passes")
    return m / m.max()
