"""Rules of layers without random weights: averages, resizing, padding, activations and normalisation.

Max pooling is taken as the average over its windows: its best linear approximation, since it treats the pixels of a
window alike.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nadtools.analytic.covariance import Covariance, fixed
from nadtools.analytic.operations import Call, Operation, passed

__all__ = ["activation", "average", "batch_norm", "linear_map", "max_pooling", "normalisation"]


def linear_map(call: Call) -> Operation:
    """A map A of rows and a map B of columns, the same for all channels: average pooling, resizing, padding."""
    rows, columns = _responses(call)
    columns = columns / rows.sum(1).abs().max()
    image = torch.randn(call.place.positions, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    if not torch.allclose(_run(call, image), rows @ image @ columns.T):
        call.refuse("it is no linear map that treats rows and columns apart and channels alike")
    return _along_axes(call, rows, columns)


def max_pooling(call: Call) -> Operation:
    """The response to a line is 1 at the windows that meet it."""
    windows = [line / line.sum(1, keepdim=True) for line in _responses(call)]
    note = "max pooling as the average over its windows"
    return dataclasses.replace(_along_axes(call, *windows), forward=None, note=note)


def _run(call: Call, image: Tensor) -> Tensor:
    return call.run(image[None, None])[0, 0]


def _responses(call: Call) -> tuple[Tensor, Tensor]:
    """For each row of ones a column of the result, and for each column of ones a row of it.

    For maps A and B these are A times an entry of B 1, and B times an entry of A 1, the largest ones.
    """
    if call.place.kinds != "cpp" or len(call.shape) != 3 or call.shape[0] != call.place.shape[0]:
        call.refuse("it expects a map of rows and columns, and leaves the channels as they are")
    height, width = call.place.positions
    ones = torch.ones(height, width, dtype=torch.float64)
    whole = _run(call, ones)
    i, j = divmod(int(whole.abs().argmax()), whole.shape[1])
    rows = [_run(call, line[:, None] * ones)[:, j] for line in torch.eye(height)]
    columns = [_run(call, line * ones)[i] for line in torch.eye(width)]
    return torch.stack(rows, dim=1), torch.stack(columns, dim=1)


def _along_axes(call: Call, *matrices: Tensor) -> Operation:
    maps = [fixed(matrix) for matrix in matrices]
    return Operation(
        call.place.kinds,
        lambda g, _: [g.through(one.back for one in maps)],
        lambda inputs: inputs[0].through(one.ahead for one in maps),
    )


def average(call: Call) -> Operation:
    """Over all positions."""
    axes = call.argument(1, "dim", ())
    chosen = {axis % (len(call.place.shape) + 1) - 1 for axis in (axes if isinstance(axes, tuple | list) else [axes])}
    if chosen != {axis for axis, kind in enumerate(call.place.kinds) if kind == "p"}:
        call.refuse("it averages over more or less than all positions")
    spread = Covariance.constant(call.place.positions, 1 / math.prod(call.place.positions) ** 2)
    kinds = call.place.kinds if len(call.shape) > 1 else "c"
    return Operation(kinds, lambda g, _: [spread.scaled(float(g.diagonal().sum()))])


def activation(call: Call) -> Operation:
    r"""A gain; at infinite width G times :math:`\dot\Lambda`, entry by entry, for ReLU and LeakyReLU."""
    gain = mean_squared_slope(call.run, call.signal_variance)
    probe = torch.linspace(-100, 100, 41, dtype=torch.float64)
    slope = -float(call.run(-torch.ones(1, dtype=torch.float64)))
    if not torch.allclose(call.run(probe.clone()), torch.where(probe > 0, probe, slope * probe), rtol=1e-12):
        found = passed(call, gain, note=f"{call.kind} as its gain for a signal of variance {call.signal_variance:g}")
        return dataclasses.replace(found, level=float(call.run(torch.zeros(1, dtype=torch.float64))))

    def backward(g: Covariance, ahead: Covariance | None) -> list[Covariance]:
        if ahead is None:
            return [g.scaled(gain)]
        return [g.map(lambda matrix: matrix * wide_covariances(slope, ahead.matrix())[1])]

    return Operation(call.place.kinds, backward, lambda inputs: inputs[0].map(lambda k: wide_covariances(slope, k)[0]))


def mean_squared_slope(function: Callable[[Tensor], Tensor], variance: float) -> float:
    r""":math:`E[\varphi'(z)^2]` for z ~ N(0, variance)."""
    # A normal variable has a mass of 1e-19 beyond, and the kinks of activations are not among the points.
    u = 9 * (torch.arange(-10_000, 10_000, dtype=torch.float64) + 0.5) / 10_000
    weights = torch.exp(-u.square() / 2)
    z = (variance**0.5 * u).requires_grad_(True)
    with torch.enable_grad():
        (slopes,) = torch.autograd.grad(function(z * 1.0).sum(), z)
    return float(weights @ slopes.square() / weights.sum())


def wide_covariances(slope: float, covariance: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\Lambda = E[\varphi(z) \varphi(z')]` and :math:`\dot\Lambda = E[\varphi'(z) \varphi'(z')]`.

    For normal z of this (P, P) covariance and the function max(z, s z): the arc-cosine kernels of Cho and Saul (2009).
    """
    deviations = covariance.diagonal().clamp_min(0).sqrt()
    scale = deviations[:, None] * deviations
    correlation = torch.where(scale > 0, covariance / scale.clamp_min(1e-300), 0.0).clamp(-1, 1)
    correlation.diagonal()[deviations > 0] = 1.0
    slopes = (math.pi - correlation.arccos()) / (2 * math.pi)
    values = scale * ((1 - correlation.square()).sqrt() / (2 * math.pi) + correlation * slopes)
    # φ is s times the identity and (1 - s) times ReLU.
    return slope * covariance + (1 - slope) ** 2 * values, slope + (1 - slope) ** 2 * slopes


def batch_norm(call: Call) -> Operation:
    """In evaluation mode a factor for each channel: at initialisation the identity."""
    layer: Any = call.module
    if layer.running_var is None:
        call.refuse("without running statistics it joins the images of a batch")
    gain = 1 / (layer.running_var.double() + layer.eps)
    return passed(call, float((gain * _squares(layer.weight)).mean()))


def normalisation(call: Call) -> Operation:
    """Layer and group normalisation divide by the standard deviation, which is the same for all large networks."""
    weight = call.module.weight if call.module is not None else call.argument(2, "weight")
    gain = float(_squares(weight).mean()) / call.signal_variance
    return passed(call, gain, note="normalisation as a factor; the means that it subtracts are left out")


def _squares(weight: Any) -> Tensor:
    return torch.ones(1) if weight is None else weight.detach().double().square()
