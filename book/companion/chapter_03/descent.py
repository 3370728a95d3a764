"""How long gradient descent on the deep linear model takes: by formula, and by training it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from nadtools import checks
from nadtools.device import generator, stream, unaffected_by_context
from nadtools.theory.deep_linear import DeepLinearModel, WeightLaw, check_model
from nadtools.theory.pooling import ArrayLike

__all__ = ["Layers", "critical_learning_rate", "steps_to_fraction", "steps_to_loss", "train_deep_linear"]

Layers = Literal["both", "phi"]


def critical_learning_rate(
    prefilter: ArrayLike, stride: int, sigma_theta: float = 1.0, epsilon: float = 1.0, sigma: float = 3.0
) -> Tensor:
    r"""Learning rate above which gradient descent in :math:`\phi` diverges, for the problem at every frequency.

    .. math:: \eta(\ell) = \frac{2}{\max_i h_i}, \qquad \max_i h_i = \frac{2 \sigma_\theta^2}{S}
              \max\!\left( \sigma^2 \max_i m[i]^2,\; (\epsilon^2 + \sigma^2)\, m[\ell]^2 \right)

    with the curvatures h of ``expected_hessian``. Those are means over :math:`\theta`. For a network they are exact
    where :math:`\theta[t]^2 = \sigma_\theta^2` for all t (Rademacher weights); with normal weights the largest
    :math:`\theta[t]^2` counts, and the network diverges earlier.

    Parameters
    ----------
    prefilter, stride, sigma_theta, epsilon, sigma
        As in ``expected_hessian``.

    Returns
    -------
    Tensor
        Shape (D,), float64; infinite where nothing curves the loss.

    Raises
    ------
    TypeError, ValueError
        As ``expected_hessian``.
    """
    m, stride, (sigma_theta, epsilon, sigma) = check_model(
        prefilter, stride, sigma_theta=sigma_theta, epsilon=epsilon, sigma=sigma
    )
    gain, scale = m.square(), 2 * sigma_theta**2 / stride
    return 2 / (scale * torch.maximum(sigma**2 * gain.max(), (epsilon**2 + sigma**2) * gain))


def steps_to_fraction(curvature: ArrayLike, learning_rate: ArrayLike, fraction: ArrayLike = 0.1) -> Tensor:
    r"""Number of steps of gradient descent until the excess loss along one direction has fallen to a fraction.

    Along an eigenvector of the Hessian with eigenvalue h the distance to the minimum is multiplied by
    :math:`1 - \eta h` at each step, and the excess loss by its square, so

    .. math:: t = \left\lceil \frac{\ln r}{2 \ln |1 - \eta h|} \right\rceil .

    Parameters
    ----------
    curvature, learning_rate, fraction : float or array-like
        h, the second derivative of the loss along the direction, :math:`\eta`, and r, of the excess loss at the start;
        zero or positive.

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
    h, rate, goal = checks.broadcast(curvature=curvature, learning_rate=learning_rate, fraction=fraction)
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

    One model for each frequency :math:`\ell` is trained, with the loss and the data of ``expected_hessian``. All
    start from the weights of ``DeepLinearModel(..., seed=seed)``, and see the same noise and labels. With
    :math:`a[i] = \theta[i \bmod M]\, m[i]\, \phi[i] / \sqrt S`, so that :math:`f(x) = a^T x`, the expected loss is

    .. math:: E[(y - f(x))^2] = (1 - \epsilon\, a[\ell])^2 + \sigma^2 \|a\|^2,

    with the least value :math:`\sigma^2 / (\epsilon^2 + \sigma^2)` wherever :math:`m[\ell] \neq 0`: no frequency has
    lost information. Gradients are in closed form: with :math:`g = \nabla_a` of the loss,
    :math:`\partial\phi[i] = g[i]\, \theta[i \bmod M]\, m[i] / \sqrt S` and
    :math:`\partial\theta[t] = \sum_{i \equiv t} g[i]\, m[i]\, \phi[i] / \sqrt S`.

    Parameters
    ----------
    prefilter, stride, sigma_theta, sigma_phi, weights
        As in ``DeepLinearModel``.
    frequencies : sequence of L ints, optional
        The frequencies :math:`\ell`; all D by default. One may occur several times, with different learning rates.
    learning_rate : float or sequence of L floats
        Constant during a training; one for all, or one for each. Zero or positive.
    steps : int
        Number of updates, zero or more.
    epsilon, sigma
        As in ``expected_hessian``.
    learn : {"both", "phi"}
        Which weights learn. With ``"phi"`` alone the loss is quadratic, and for Rademacher weights its Hessian is that
        of Lemma 1 (``expected_hessian``) exactly.
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
        As ``DeepLinearModel``; also for frequencies out of range, negative steps or an empty batch.
    """
    m, stride, (epsilon, sigma) = check_model(prefilter, stride, epsilon=epsilon, sigma=sigma)
    dimension = len(m)
    indices = f"indices between 0 and D - 1 = {dimension - 1}"
    given = range(dimension) if frequencies is None else frequencies
    chosen = checks.integers("frequencies", given, 0, dimension - 1, indices)
    rate = _check_rates(learning_rate, len(chosen))
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
    level, curves = checks.nonnegative_number("level", level), checks.as_real("losses", losses, finite=False)
    checks.flags(settle=settle)
    if curves.ndim < 1 or not len(curves) or bool(curves.isnan().any()):
        raise ValueError(f"got losses of shape {tuple(curves.shape)}; expected (steps + 1, ...) without NaN")
    reached = curves <= level
    if settle:
        reached = reached.flip(0).to(torch.uint8).cummin(0).values.flip(0).bool()
    return torch.where(reached.any(0), reached.to(torch.uint8).argmax(0).double(), math.inf)


def _check_rates(learning_rate: ArrayLike, number: int) -> Tensor:
    """Learning rates in the shape in which they multiply the weights: for one training, or for each of them."""
    rates = checks.as_real("learning_rate", learning_rate)
    if rates.ndim == 0:
        return torch.tensor(checks.nonnegative_number("learning_rate", float(rates)), dtype=torch.float64)
    if rates.shape != (number,):
        raise ValueError(
            f"got learning_rate of shape {tuple(rates.shape)} for {number} frequencies; expected one number, or one "
            "for each frequency"
        )
    if not bool((rates >= 0).all()):
        raise ValueError("got learning_rate with negative values; expected zero or positive numbers")
    return rates.view(-1, 1, 1)
