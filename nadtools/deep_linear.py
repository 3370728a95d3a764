r"""Pooling and optimisation: closed forms and training of an idealised deep linear model.

Seen in the frequency domain, linear pooling multiplies a signal of D frequencies by the response m of its prefilter
and folds it onto M = D/S frequencies: the S frequencies t, M + t, 2M + t, ... share bin t. The matrix of the folding
is :math:`A = [I_M \cdots I_M] / \sqrt{S}`. With a filter :math:`\phi` before it, in place of a stack of convolutions,
and a linear layer :math:`\theta` after it, that is the deep linear model

.. math:: f_{\theta,\phi}(x) = \theta^T A (m \odot \phi \odot x)
          = \frac{1}{\sqrt S} \sum_{i=0}^{D-1} \theta[i \bmod M]\, m[i]\, \phi[i]\, x[i].

All its weights are independent, with mean zero and variances :math:`\sigma_\theta^2` and :math:`\sigma_\phi^2`.

Source: *Neural Anisotropy Directions*, sections 2.2 and 3. Where a formula as printed there differs from what follows
from the model, the functions return the latter, and ``as_printed=True`` returns the former.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from nadtools import checks
from nadtools.checks import as_real, nonnegative_number
from nadtools.device import generator, stream, unaffected_by_context

__all__ = [
    "DeepLinearModel",
    "Landscape",
    "Layers",
    "WeightLaw",
    "condition_number",
    "critical_learning_rate",
    "curvature_ratio",
    "dipole_gradient_bound",
    "dipole_probability",
    "expected_hessian",
    "expected_hessian_theta",
    "gradient_covariance",
    "mixed_second_moment",
    "steps_to_fraction",
    "steps_to_loss",
    "train_deep_linear",
    "two_weight_landscape",
    "two_weight_loss",
]

WeightLaw = Literal["normal", "rademacher"]
Layers = Literal["both", "phi"]
ArrayLike = Tensor | np.ndarray[Any, Any] | Sequence[float] | float


class DeepLinearModel(nn.Module):
    r"""The deep linear model of pooling, :math:`f(x) = \theta^T A (m \odot \phi \odot x)`.

    Source: *Neural Anisotropy Directions*, section 2.2.

    Parameters
    ----------
    prefilter : array-like
        m, shape (D,), real: the response of the pooling prefilter at each frequency.
    stride : int
        S, the subsampling factor; it must divide D.
    sigma_theta, sigma_phi : float
        Standard deviations of the weights, zero or positive.
    weights : {"normal", "rademacher"}
        Law of the weights. ``"normal"`` is the paper's. ``"rademacher"`` draws ±sigma with equal probability: the
        same first and second moments, hence the same closed forms, but now every
        :math:`(\partial f / \partial x[i])^2` is the same number for all networks, and the inequalities (3) and (6)
        of the paper hold with equality along the canonical directions.
    seed : int, optional
        None draws from PyTorch's global generator, as PyTorch's layers do, and as
        :func:`nadtools.estimate_nads` wants it. An int leaves the global generator alone.

    Attributes
    ----------
    theta : nn.Parameter
        Shape (M,), with M = D/S; float32, as PyTorch's layers.
    phi : nn.Parameter
        Shape (D,).
    m : Tensor
        Shape (D,); a buffer.

    Raises
    ------
    TypeError, ValueError
        If the prefilter is no real vector, the stride does not divide its length, a standard deviation is negative
        or not finite, or the law is unknown.

    Examples
    --------
    >>> import nadtools as nt
    >>> from nadtools.pooling import DeepLinearModel
    >>> m = [1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05]
    >>> nads = nt.estimate_nads(
    ...     lambda: DeepLinearModel(m, stride=2), image_size=(1, 8), average_output_layer=False, progress=False
    ... )
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
        m = _check_prefilter(prefilter)
        self.stride = check_stride(stride, len(m))
        sigma_theta, sigma_phi = (
            nonnegative_number("sigma_theta", sigma_theta),
            nonnegative_number("sigma_phi", sigma_phi),
        )
        checks.choice("weights", weights, get_args(WeightLaw))
        source = None if seed is None else generator(torch.device("cpu"), stream(seed, "deep linear weights"))
        self.theta = nn.Parameter(_draw(len(m) // self.stride, sigma_theta, weights, source))
        self.phi = nn.Parameter(_draw(len(m), sigma_phi, weights, source))
        self.register_buffer("m", m.to(self.phi.dtype))

    def forward(self, x: Tensor) -> Tensor:
        """f(x).

        Parameters
        ----------
        x : Tensor
            Shape (n, D), or images of D pixels, such as (n, 1, 1, D); they are read row by row.

        Returns
        -------
        Tensor
            Shape (n, 1).

        Raises
        ------
        ValueError
            If a sample does not have D entries.
        """
        dimension = len(self.m)
        checks.instance("x", x, Tensor, "a batch of samples")
        if x.ndim < 2 or math.prod(x.shape[1:]) != dimension:
            raise ValueError(
                f"got x of shape {tuple(x.shape)}; expected a batch of samples with {dimension} entries each, "
                f"(n, {dimension}) or (n, 1, 1, {dimension})"
            )
        filtered = self.m * self.phi * x.flatten(1)
        # Entry kM + t is in row k, column t: the sum over rows is the multiplication by [I_M ... I_M].
        folded = filtered.unflatten(1, (self.stride, -1)).sum(1) / math.sqrt(self.stride)
        return (folded @ self.theta).unsqueeze(1)

    def extra_repr(self) -> str:
        """D and S, for ``print(model)``."""
        return f"dimension={len(self.m)}, stride={self.stride}"


def gradient_covariance(
    prefilter: ArrayLike,
    stride: int,
    sigma_theta: float = 1.0,
    sigma_phi: float = 1.0,
    *,
    as_printed: bool = False,
) -> Tensor:
    r"""Diagonal of :math:`E[\nabla_x f\, \nabla_x f^T]` for the deep linear model; off the diagonal it is zero.

    .. math:: E[\nabla_x f\, \nabla_x f^T] = \frac{\sigma_\theta^2 \sigma_\phi^2}{S}\, \mathrm{diag}(m^2)

    Derivation: the gradient has the entries :math:`g_i = \theta[i \bmod M]\, m[i]\, \phi[i] / \sqrt S`, so
    :math:`E[g_i g_j] = \frac1S m[i] m[j]\, E[\theta[i \bmod M]\, \theta[j \bmod M]]\, E[\phi[i] \phi[j]]`. The last
    factor is :math:`\sigma_\phi^2` for i = j and zero otherwise; for i = j the one before is :math:`\sigma_\theta^2`.

    Parameters
    ----------
    prefilter : array-like
        m, shape (D,), real.
    stride : int
        S; it must divide D.
    sigma_theta, sigma_phi : float
        Standard deviations of the weights, zero or positive.
    as_printed : bool
        True returns equation (4) of *Neural Anisotropy Directions* as printed, without the factor 1/S.

    Returns
    -------
    Tensor
        Shape (D,), float64, in squared units of output per unit of input. Entry i is
        :math:`\alpha(e_i) = E[(\partial f / \partial x[i])^2]`.

    Raises
    ------
    TypeError, ValueError
        As :class:`DeepLinearModel`.
    """
    m, stride = _check_model(prefilter, stride)
    checks.flags(as_printed=as_printed)
    sigma_theta, sigma_phi = nonnegative_number("sigma_theta", sigma_theta), nonnegative_number("sigma_phi", sigma_phi)
    return sigma_theta**2 * sigma_phi**2 / (1 if as_printed else stride) * m.square()


def mixed_second_moment(
    prefilter: ArrayLike,
    stride: int,
    sigma_theta: float = 1.0,
    sigma_phi: float = 1.0,
    *,
    as_printed: bool = False,
) -> Tensor:
    r"""Diagonal of :math:`E[H^T H]`, with :math:`H = \nabla^2_{(\theta,\phi),x} f` of shape (M + D, D).

    .. math:: E[H^T H] = \frac{\sigma_\theta^2 + \sigma_\phi^2}{S}\, \mathrm{diag}(m^2)

    Derivation: the rows of H that belong to :math:`\phi` have one entry each,
    :math:`\partial^2 f / \partial \phi[i] \partial x[i] = \theta[i \bmod M]\, m[i] / \sqrt S`, and those of
    :math:`\theta` have S, :math:`\partial^2 f / \partial \theta[t] \partial x[i] = \phi[i]\, m[i] / \sqrt S` for
    :math:`i \equiv t \pmod M`. The first give :math:`\frac1S \theta[i \bmod M]^2 m[i]^2` on the diagonal of
    :math:`H^T H`. The second give :math:`\frac1S \phi[i] \phi[j] m[i] m[j]` wherever :math:`i \equiv j \pmod M`, which
    averages to zero off the diagonal. So both variances are divided by S.

    Parameters
    ----------
    prefilter : array-like
        m, shape (D,), real.
    stride : int
        S; it must divide D.
    sigma_theta, sigma_phi : float
        Standard deviations of the weights, zero or positive.
    as_printed : bool
        True returns equation (5) of *Neural Anisotropy Directions* as printed:
        :math:`(\sigma_\theta^2 + \sigma_\phi^2 / S)\, m^2`.

    Returns
    -------
    Tensor
        Shape (D,), float64; off the diagonal the matrix is zero. Entry i is :math:`E\|H e_i\|^2`.

    Raises
    ------
    TypeError, ValueError
        As :class:`DeepLinearModel`.
    """
    m, stride = _check_model(prefilter, stride)
    checks.flags(as_printed=as_printed)
    sigma_theta, sigma_phi = nonnegative_number("sigma_theta", sigma_theta), nonnegative_number("sigma_phi", sigma_phi)
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

    Derivation: f is linear in :math:`\phi`, :math:`f = b^T \phi` with
    :math:`b_i = \theta[i \bmod M]\, m[i]\, x[i] / \sqrt S`. So :math:`\nabla_\phi^2 J = 2 b b^T`, whatever
    :math:`\phi` is, and :math:`E[b_i b_j] = \frac1S m[i] m[j]\, E[\theta[i \bmod M]\, \theta[j \bmod M]]\, E[x_i x_j]`
    with :math:`E[x x^T] = \epsilon^2 e_\ell e_\ell^T + \sigma^2 I`, which is diagonal.

    Parameters
    ----------
    frequency : int
        :math:`\ell`, the index of the discriminative feature, between 0 and D - 1.
    prefilter : array-like
        m, shape (D,), real.
    stride : int
        S; it must divide D.
    sigma_theta : float
        Standard deviation of :math:`\theta`, zero or positive. That of :math:`\phi` plays no part.
    epsilon : float
        Half the distance between the classes, in units of the input; zero or positive.
    sigma : float
        Standard deviation of the noise, in units of the input; zero or positive.
    as_printed : bool
        True returns Lemma 1 of *Neural Anisotropy Directions* as printed, without the factor 1/S.

    Returns
    -------
    Tensor
        Shape (D,), float64, in units of the loss per squared unit of :math:`\phi`.

    Raises
    ------
    TypeError, ValueError
        As :class:`DeepLinearModel`; also if the frequency is not an index, or epsilon or sigma is negative.
    """
    m, stride = _check_model(prefilter, stride)
    checks.flags(as_printed=as_printed)
    sigma_theta = nonnegative_number("sigma_theta", sigma_theta)
    second_moment = _input_second_moment(frequency, m, epsilon, sigma)
    return 2 * sigma_theta**2 / (1 if as_printed else stride) * m.square() * second_moment


def expected_hessian_theta(
    frequency: int,
    prefilter: ArrayLike,
    stride: int,
    sigma_phi: float = 1.0,
    epsilon: float = 1.0,
    sigma: float = 3.0,
) -> Tensor:
    r"""Diagonal of the mean Hessian of the quadratic loss with respect to :math:`\theta`; the rest of it is zero.

    Loss and data are those of :func:`expected_hessian`. Entry t is

    .. math:: \frac{2 \sigma_\phi^2}{S} \left( \epsilon^2 m[\ell]^2\, [t = \ell \bmod M]
              + \sigma^2 \sum_{k=0}^{S-1} m[kM + t]^2 \right)

    Derivation: :math:`f = \theta^T u` with :math:`u = A (m \odot \phi \odot x)`, so
    :math:`\nabla_\theta^2 J = 2 u u^T`. In :math:`E[u_t u_{t'}]` the product :math:`\phi[i] \phi[j]` leaves only the
    terms with i = j, which need t = t': :math:`\frac{\sigma_\phi^2}{S} \sum_{i \equiv t} m[i]^2 E[x_i^2]`. So
    :math:`\theta` sees the curvature of a bin as a whole, where :math:`\phi` sees that of each frequency.

    Parameters
    ----------
    frequency, prefilter, stride, epsilon, sigma
        As in :func:`expected_hessian`.
    sigma_phi : float
        Standard deviation of :math:`\phi`, zero or positive. That of :math:`\theta` plays no part.

    Returns
    -------
    Tensor
        Shape (M,), float64, in units of the loss per squared unit of :math:`\theta`.

    Raises
    ------
    TypeError, ValueError
        As :func:`expected_hessian`.
    """
    m, stride = _check_model(prefilter, stride)
    sigma_phi = nonnegative_number("sigma_phi", sigma_phi)
    curvature = m.square() * _input_second_moment(frequency, m, epsilon, sigma)
    return 2 * sigma_phi**2 / stride * curvature.unflatten(0, (stride, -1)).sum(0)


def curvature_ratio(prefilter: ArrayLike, epsilon: float = 1.0, sigma: float = 3.0) -> Tensor:
    r"""Curvature of the signal over the largest curvature of the noise, for every frequency.

    .. math:: \zeta(\ell) = \frac{\epsilon^2 m[\ell]^2}{\sigma^2 \max_i m[i]^2}

    It is the ratio of the two terms of Lemma 1 (:func:`expected_hessian`), in which S and the weights cancel. Source:
    *Neural Anisotropy Directions*, section 2.2.

    Parameters
    ----------
    prefilter : array-like
        m, shape (D,), real, not zero everywhere.
    epsilon, sigma : float
        As in :func:`expected_hessian`.

    Returns
    -------
    Tensor
        Shape (D,), float64. Zero where there is no signal (:math:`\epsilon m[\ell] = 0`); else infinite for
        :math:`\sigma = 0`.

    Raises
    ------
    TypeError, ValueError
        If the prefilter is no real vector or zero everywhere, or epsilon or sigma is negative.
    """
    m = _check_prefilter(prefilter)
    if not bool(m.any()):
        raise ValueError("got a prefilter that is zero everywhere; expected at least one frequency that passes")
    signal = nonnegative_number("epsilon", epsilon) * (m / m.abs().max()).abs()
    return torch.where(signal > 0, (signal / nonnegative_number("sigma", sigma)).square(), 0.0)


def condition_number(prefilter: ArrayLike, epsilon: float = 1.0, sigma: float = 3.0) -> Tensor:
    r"""Largest curvature of the problem at :math:`\ell` over the curvature along :math:`\ell`, for every frequency.

    .. math:: \kappa(\ell) = \max\!\left( 1,\;
              \frac{\sigma^2 \max_i m[i]^2}{(\epsilon^2 + \sigma^2)\, m[\ell]^2} \right)
              = \max\!\left( 1,\; \frac{1}{(1 + \sigma^2 / \epsilon^2)\, \zeta(\ell)} \right)

    Both curvatures are those of :func:`expected_hessian`, in which S and the weights cancel. A learning rate
    :math:`\eta` at which gradient descent in :math:`\phi` does not diverge is below 2 over the largest curvature, so it
    takes about :math:`\kappa` steps to learn: see :func:`steps_to_fraction`.

    Parameters
    ----------
    prefilter, epsilon, sigma
        As in :func:`curvature_ratio`.

    Returns
    -------
    Tensor
        Shape (D,), float64, at least 1; infinite where :math:`m[\ell] = 0` or there is nothing to curve the loss along
        :math:`\ell`.

    Raises
    ------
    TypeError, ValueError
        As :func:`curvature_ratio`.
    """
    m = _check_prefilter(prefilter)
    if not bool(m.any()):
        raise ValueError("got a prefilter that is zero everywhere; expected at least one frequency that passes")
    epsilon, sigma = nonnegative_number("epsilon", epsilon), nonnegative_number("sigma", sigma)
    gain = (m / m.abs().max()).square()
    own = (epsilon**2 + sigma**2) * gain
    return torch.where(own > 0, (sigma**2 / own).clamp(min=1.0), math.inf)


def critical_learning_rate(
    prefilter: ArrayLike, stride: int, sigma_theta: float = 1.0, epsilon: float = 1.0, sigma: float = 3.0
) -> Tensor:
    r"""Learning rate above which gradient descent in :math:`\phi` diverges, for the problem at every frequency.

    .. math:: \eta(\ell) = \frac{2}{\max_i h_i}, \qquad \max_i h_i = \frac{2 \sigma_\theta^2}{S}
              \max\!\left( \sigma^2 \max_i m[i]^2,\; (\epsilon^2 + \sigma^2)\, m[\ell]^2 \right)

    with the curvatures h of :func:`expected_hessian`. Those are means over :math:`\theta`. For a network they are exact
    where :math:`\theta[t]^2 = \sigma_\theta^2` for all t (Rademacher weights); with normal weights the largest
    :math:`\theta[t]^2` counts, and the network diverges earlier.

    Parameters
    ----------
    prefilter, stride, sigma_theta, epsilon, sigma
        As in :func:`expected_hessian`.

    Returns
    -------
    Tensor
        Shape (D,), float64; infinite where nothing curves the loss.

    Raises
    ------
    TypeError, ValueError
        As :func:`expected_hessian`.
    """
    m, stride = _check_model(prefilter, stride)
    scale = 2 * nonnegative_number("sigma_theta", sigma_theta) ** 2 / stride
    epsilon, sigma = nonnegative_number("epsilon", epsilon), nonnegative_number("sigma", sigma)
    gain = m.square()
    return 2 / (scale * torch.maximum(sigma**2 * gain.max(), (epsilon**2 + sigma**2) * gain))


def steps_to_fraction(curvature: ArrayLike, learning_rate: ArrayLike, fraction: ArrayLike = 0.1) -> Tensor:
    r"""Number of steps of gradient descent until the excess loss along one direction has fallen to a fraction.

    Along an eigenvector of the Hessian with eigenvalue h the distance to the minimum is multiplied by
    :math:`1 - \eta h` at each step, and the excess loss by its square, so

    .. math:: t = \left\lceil \frac{\ln r}{2 \ln |1 - \eta h|} \right\rceil .

    Parameters
    ----------
    curvature : float or array-like
        h, second derivative of the loss along the direction; zero or positive.
    learning_rate : float or array-like
        :math:`\eta`, zero or positive.
    fraction : float or array-like
        r, of the excess loss at the start; zero or positive.

    Returns
    -------
    Tensor
        float64, of the shape to which the arguments broadcast. Zero for :math:`r \ge 1`; else infinite where the loss
        does not fall (:math:`\eta h = 0` or :math:`\eta h \ge 2`), and 1 for :math:`\eta h = 1`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not real, is negative or not finite, or the shapes do not fit.
    """
    h, rate, goal = broadcast(curvature=curvature, learning_rate=learning_rate, fraction=fraction)
    factor = (1 - rate * h).abs()
    steps = (goal.log() / (2 * factor.log())).ceil()
    steps = torch.where(factor == 0, 1.0, torch.where(factor < 1, steps, math.inf))
    return torch.where(goal >= 1, 0.0, steps)


@unaffected_by_context()
def train_deep_linear(
    prefilter: ArrayLike,
    stride: int,
    frequencies: Sequence[int] | Tensor | np.ndarray[Any, Any] | None = None,
    *,
    learning_rate: ArrayLike,
    steps: int,
    epsilon: float = 1.0,
    sigma: float = 3.0,
    sigma_theta: float = 1.0,
    sigma_phi: float = 1.0,
    weights: WeightLaw = "normal",
    learn: Layers = "both",
    batch_size: int | None = None,
    seed: int = 0,
) -> Tensor:
    r"""Loss curves of the deep linear model under gradient descent, for many frequencies at once.

    One model for each frequency :math:`\ell` is trained on :math:`x = \epsilon y e_\ell + w`,
    :math:`w \sim N(0, \sigma^2 I_D)`, with the quadratic loss. All models start from the same weights, those of
    ``DeepLinearModel(..., seed=seed)``, and see the same noise and labels. With
    :math:`a[i] = \theta[i \bmod M]\, m[i]\, \phi[i] / \sqrt S`, so that :math:`f(x) = a^T x`, the expected loss is

    .. math:: E[(y - f(x))^2] = (1 - \epsilon\, a[\ell])^2 + \sigma^2 \|a\|^2,

    with the least value :math:`\sigma^2 / (\epsilon^2 + \sigma^2)` wherever :math:`m[\ell] \neq 0`: no frequency has
    lost information. Gradients are in closed form: with :math:`g = \nabla_a` of the loss,
    :math:`\partial\phi[i] = g[i]\, \theta[i \bmod M]\, m[i] / \sqrt S` and
    :math:`\partial\theta[t] = \sum_{i \equiv t} g[i]\, m[i]\, \phi[i] / \sqrt S`.

    Parameters
    ----------
    prefilter, stride, sigma_theta, sigma_phi, weights
        As in :class:`DeepLinearModel`.
    frequencies : sequence of L ints, optional
        The frequencies :math:`\ell`; all D by default. One may occur several times, with different learning rates.
    learning_rate : float or sequence of L floats
        Constant during a training; one for all, or one for each. Zero or positive.
    steps : int
        Number of updates, zero or more.
    epsilon, sigma : float
        Of the data, as in :func:`expected_hessian`.
    learn : {"both", "phi"}
        Which weights learn. With ``"phi"`` alone :math:`\theta` keeps its initial values: the loss is then quadratic,
        and for Rademacher weights its Hessian is that of Lemma 1 (:func:`expected_hessian`) exactly.
    batch_size : int, optional
        None descends the expected loss itself. An int draws so many new samples at each step.
    seed : int
        Of the initial weights and, apart from them, of the samples.

    Returns
    -------
    Tensor
        Shape (steps + 1, L), float64: the expected loss after 0, 1, ..., ``steps`` updates. Once a training has
        diverged beyond what a number can hold, its loss is infinite.

    Raises
    ------
    TypeError, ValueError
        As :class:`DeepLinearModel`; also for frequencies out of range, negative steps or an empty batch.
    """
    m, stride = _check_model(prefilter, stride)
    dimension = len(m)
    indices = f"indices between 0 and D - 1 = {dimension - 1}"
    given = range(dimension) if frequencies is None else frequencies
    chosen = checks.integers("frequencies", given, 0, dimension - 1, indices)
    rate = _check_rates(learning_rate, len(chosen))
    epsilon, sigma = nonnegative_number("epsilon", epsilon), nonnegative_number("sigma", sigma)
    steps = checks.integer("steps", steps, 0, expected="zero or more")
    checks.choice("learn", learn, get_args(Layers))
    if batch_size is not None:
        batch_size = checks.positive_int("batch_size", batch_size)
    initial = DeepLinearModel(m, stride, sigma_theta, sigma_phi, weights=weights, seed=seed)
    source = generator(torch.device("cpu"), stream(seed, "deep linear samples"))

    runs, column = torch.arange(len(chosen)), torch.tensor(chosen, dtype=torch.int64)
    theta = initial.theta.detach().double().expand(len(chosen), 1, -1).clone()
    phi = initial.phi.detach().double().view(stride, -1).expand(len(chosen), -1, -1).clone()
    gain = m.view(stride, -1) / math.sqrt(stride)
    losses = torch.empty(steps + 1, len(chosen), dtype=torch.float64)
    for step in range(steps + 1):
        a = (theta * gain * phi).flatten(1)
        along = a[runs, column]
        losses[step] = (1 - epsilon * along).square() + sigma**2 * a.square().sum(1)
        if step == steps:
            break
        if batch_size is None:
            slope = 2 * sigma**2 * a
            slope[runs, column] -= 2 * epsilon * (1 - epsilon * along)
        else:
            y = 2.0 * torch.randint(2, (batch_size,), generator=source).double() - 1
            noise = sigma * torch.randn(batch_size, dimension, dtype=torch.float64, generator=source)
            residual = y - a @ noise.T - epsilon * along[:, None] * y
            slope = -2 / batch_size * residual @ noise
            slope[runs, column] -= 2 / batch_size * epsilon * (residual @ y)
        slope = slope.view_as(phi) * gain
        theta, phi = (
            theta - rate * (slope * phi).sum(1, keepdim=True) if learn == "both" else theta,
            phi - rate * slope * theta,
        )
    return losses.nan_to_num(nan=math.inf, posinf=math.inf)


def steps_to_loss(losses: Tensor, level: float, *, settle: bool = False) -> Tensor:
    """Number of updates after which a loss first is at or below a level, or from which on it stays there.

    Parameters
    ----------
    losses : Tensor
        Shape (steps + 1, ...): of :func:`train_deep_linear`, the first row before any update.
    level : float
        Of the loss. That of the model can be no less than sigma² / (epsilon² + sigma²).
    settle : bool
        True counts up to the update from which on the loss stays at or below the level until the end. A training that
        meets the level by chance on its way to divergence does not count.

    Returns
    -------
    Tensor
        The shape of a row, float64; infinite where the level is never reached, or not kept.

    Raises
    ------
    TypeError, ValueError
        If the losses are not real, there are none, or the level is negative or not finite.
    """
    level, curves = nonnegative_number("level", level), as_real("losses", losses, finite=False)
    checks.flags(settle=settle)
    if curves.ndim < 1 or not len(curves) or bool(curves.isnan().any()):
        raise ValueError(f"got losses of shape {tuple(curves.shape)}; expected (steps + 1, ...) without NaN")
    reached = curves <= level
    if settle:
        reached = reached.flip(0).to(torch.uint8).cummin(0).values.flip(0).bool()
    return torch.where(reached.any(0), reached.to(torch.uint8).argmax(0).double(), math.inf)


def two_weight_loss(theta: ArrayLike, phi: ArrayLike, m: float, epsilon: float = 1.0, sigma: float = 3.0) -> Tensor:
    r"""Expected quadratic loss of the model with one frequency, :math:`f(x) = \theta\, m\, \phi\, x`.

    .. math:: E[(y - f(x))^2] = (1 - \epsilon p)^2 + \sigma^2 p^2, \qquad p = \theta\, m\, \phi

    for :math:`x = \epsilon y + w`, :math:`w \sim N(0, \sigma^2)`. It is the deep linear model with D = S = 1. The least
    value is :math:`\sigma^2 / (\epsilon^2 + \sigma^2)`, at :math:`p = \epsilon / (\epsilon^2 + \sigma^2)`, whatever
    :math:`m \neq 0` is; the second derivatives are :math:`2 (\epsilon^2 + \sigma^2)\, m^2 \theta^2` along
    :math:`\phi` and :math:`2 (\epsilon^2 + \sigma^2)\, m^2 \phi^2` along :math:`\theta`.

    Parameters
    ----------
    theta, phi : float or array-like
        The weights, real; they are broadcast.
    m : float
        Response of the prefilter, finite.
    epsilon, sigma : float
        Of the data, zero or positive.

    Returns
    -------
    Tensor
        float64, of the shape to which the weights broadcast.

    Raises
    ------
    TypeError, ValueError
        If an argument is not real, m is not finite, epsilon or sigma is negative, or the shapes do not fit.
    """
    gain = checks.number("m", m)
    epsilon, sigma = nonnegative_number("epsilon", epsilon), nonnegative_number("sigma", sigma)
    product = gain * as_real("theta", theta) * as_real("phi", phi)
    return (1 - epsilon * product).square() + sigma**2 * product.square()


@dataclass(frozen=True)
class Landscape:
    """The expected loss over two weights, and the way that gradient descent takes through it.

    Attributes
    ----------
    theta : Tensor
        Shape (n,), float64: the grid along theta.
    phi : Tensor
        Shape (n,): the grid along phi.
    losses : Tensor
        Shape (n, n): row i, column j belongs to ``phi[i]`` and ``theta[j]``, as pictures are drawn.
    path : Tensor
        Shape (steps + 1, 2): theta and phi after each step. Where descent diverges it ends before it leaves what a
        number can hold.
    path_losses : Tensor
        Shape (steps + 1,).
    least : float
        The least loss there is.
    m, learning_rate, epsilon, sigma : float
        As they were given.
    """

    theta: Tensor
    phi: Tensor
    losses: Tensor
    path: Tensor
    path_losses: Tensor
    least: float
    m: float
    learning_rate: float
    epsilon: float
    sigma: float

    @property
    def steps_to_learn(self) -> float:
        """Steps after which nine tenths of the way from 1, the loss of the answer 0, to the least loss are done.

        Infinite where the path does not get there, or leaves it again.
        """
        return float(steps_to_loss(self.path_losses, self.least + 0.1 * (1 - self.least), settle=True))


def two_weight_landscape(
    m: float,
    *,
    learning_rate: float,
    steps: int,
    start: tuple[float, float] = (1.0, 0.1),
    epsilon: float = 1.0,
    sigma: float = 0.3,
    extent: tuple[float, float] = (-0.5, 4.0),
    resolution: int = 61,
) -> Landscape:
    r"""Compute :func:`two_weight_loss` on a grid, and gradient descent from a start.

    The gradient is :math:`2\,((\epsilon^2 + \sigma^2)\, p - \epsilon)\, m\, (\phi, \theta)` for the weights
    :math:`(\theta, \phi)`.

    Parameters
    ----------
    m, epsilon, sigma : float
        As in :func:`two_weight_loss`; epsilon and sigma not both zero.
    learning_rate : float
        Constant; zero or positive.
    steps : int
        Number of updates, zero or more.
    start : (float, float)
        Initial theta and phi.
    extent : (float, float)
        Ends of the grid, for both weights.
    resolution : int
        n, number of points along each weight; at least 2.

    Returns
    -------
    Landscape

    Raises
    ------
    TypeError, ValueError
        If a number is negative or not finite, the extent is empty, or there are too few points.
    """
    epsilon, sigma = nonnegative_number("epsilon", epsilon), nonnegative_number("sigma", sigma)
    m, rate = checks.number("m", m), nonnegative_number("learning_rate", learning_rate)
    steps = checks.integer("steps", steps, 0, expected="zero or more")
    resolution = checks.integer("resolution", resolution, 2, 2**14, "at least 2")
    low, high = [checks.number("extent", end) for end in checks.pair("extent", extent, "two finite numbers")]
    weights = as_real(
        "start", [checks.number("start", one) for one in checks.pair("start", start, "two finite numbers")]
    )
    if epsilon == sigma == 0:
        raise ValueError("got epsilon = sigma = 0: all inputs are zero; expected at least one positive")
    if low >= high:
        raise ValueError(f"got extent={extent!r}; expected its lower end first")
    axis = torch.linspace(low, high, resolution, dtype=torch.float64)
    losses = two_weight_loss(axis[None, :], axis[:, None], m, epsilon, sigma)
    second_moment, path = epsilon**2 + sigma**2, [weights]
    for _ in range(steps):
        slope = 2 * (second_moment * m * weights.prod() - epsilon) * m
        weights = weights - rate * slope * weights.flip(0)
        if not float(weights.abs().max()) < 1e60:  # its loss, a fourth power, is still a number
            break
        path.append(weights)
    way = torch.stack(path)
    path_losses = two_weight_loss(way[:, 0], way[:, 1], m, epsilon, sigma)
    least = sigma**2 / second_moment if m else 1.0
    return Landscape(axis, axis, losses, way, path_losses, least, float(m), rate, epsilon, sigma)


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
    alpha, beta = nonnegative_number("alpha", alpha), nonnegative_number("beta", beta)
    gradient, rms, mean = broadcast(rms_gradient=rms_gradient, rms_mixed=rms_mixed, mean_mixed=mean_mixed)
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
    threshold, variance = broadcast(eta=eta, gradient_variance=gradient_variance)
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


def _check_model(prefilter: ArrayLike, stride: int) -> tuple[Tensor, int]:
    m = _check_prefilter(prefilter)
    return m, check_stride(stride, len(m))


def _check_prefilter(prefilter: ArrayLike) -> Tensor:
    m = as_real("prefilter", prefilter)
    if m.ndim != 1 or not len(m) or float(m.abs().max()) > checks.LARGE:
        raise ValueError(f"got a prefilter of shape {tuple(m.shape)}; expected (D,): its response, up to 1e30")
    return m


def _check_rates(learning_rate: ArrayLike, number: int) -> Tensor:
    """Learning rates in the shape in which they multiply the weights: for one training, or for each of them."""
    rates = as_real("learning_rate", learning_rate)
    if rates.ndim == 0:
        return torch.tensor(nonnegative_number("learning_rate", float(rates)), dtype=torch.float64)
    if rates.shape != (number,):
        raise ValueError(
            f"got learning_rate of shape {tuple(rates.shape)} for {number} frequencies; expected one number, or one "
            "for each frequency"
        )
    if not bool((rates >= 0).all()):
        raise ValueError("got learning_rate with negative values; expected zero or positive numbers")
    return rates.view(-1, 1, 1)


def check_stride(stride: int, dimension: int, name: str = "prefilter") -> int:
    """Return ``stride`` as an int, or say why it does not divide the dimension."""
    stride = checks.integer("stride", stride)
    if stride < 1 or dimension % stride:
        raise ValueError(
            f"got stride={stride} for {name} of D = {dimension}; expected a positive divisor of D, because only then "
            "does subsampling fold the spectrum onto itself, as S blocks of D/S frequencies"
        )
    return stride


def broadcast(**values: ArrayLike) -> tuple[Tensor, ...]:
    """Check that the values are not negative, and broadcast them to a common shape."""
    tensors = {name: as_real(name, value) for name, value in values.items()}
    for name, tensor in tensors.items():
        if not bool((tensor >= 0).all()):
            raise ValueError(f"got {name} with negative values; expected zero or positive numbers")
    try:
        return torch.broadcast_tensors(*tensors.values())
    except RuntimeError:
        shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items())
        raise ValueError(f"got shapes that do not fit: {shapes}; expected ones that broadcast") from None
