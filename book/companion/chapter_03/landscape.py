"""The loss of the deep linear model over two weights, and the way that gradient descent takes through it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from companion.chapter_03.descent import steps_to_loss
from nadtools import checks
from nadtools.theory.pooling import ArrayLike

__all__ = ["Landscape", "two_weight_landscape", "two_weight_loss"]


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
    epsilon, sigma = checks.nonnegative_number("epsilon", epsilon), checks.nonnegative_number("sigma", sigma)
    product = gain * checks.as_real("theta", theta) * checks.as_real("phi", phi)
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
    epsilon, sigma = checks.nonnegative_number("epsilon", epsilon), checks.nonnegative_number("sigma", sigma)
    m, rate = checks.number("m", m), checks.nonnegative_number("learning_rate", learning_rate)
    steps = checks.integer("steps", steps, 0, expected="zero or more")
    resolution = checks.integer("resolution", resolution, 2, 2**14, "at least 2")
    low, high = [checks.number("extent", end) for end in checks.pair("extent", extent, "two finite numbers")]
    weights = checks.as_real(
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
