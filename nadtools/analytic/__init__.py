r"""NADs without networks: a closed form from the architecture's layers alone.

**Theorem.** Let f be a network of linear layers whose weights are independent, with mean zero and one variance for each
layer. Then :math:`C = E[\nabla f\,\nabla f^T]` obeys a recursion from the output to the image. Let
:math:`G(p, p')` be the covariance of the signal that comes back to a channel at positions p and p'. All channels are
uncorrelated, and

* a linear output layer on a flattened map starts it with :math:`G = I`, a global average with
  :math:`G = 11^T / (h w)^2`;
* a convolution to n channels with stride s gives
  :math:`G_{in}(p, p') = n\,\mathrm{Var}(w) \sum_o G(q, q')` over the offsets o with p = s q + o and p' = s q' + o;
* a linear map A of positions (average pooling, resizing, padding) gives :math:`A^T G A`;
* where branches with weights of their own meet, their covariances add.

The proof is in chapter 6 of the book. Without shortcuts every step acts on rows and columns separately: C is a
Kronecker product.

**With nonlinearities** (``nonlinearity="infinite-width"``) each activation multiplies G entry by entry by
:math:`\dot\Lambda(p, p') = E[\varphi'(z_p) \varphi'(z_{p'})]`, where the z are normal with the covariance that the same
kind of recursion carries forward. In the limit of infinite width f is a Gaussian process with a kernel K, and
:math:`C = \partial_x \partial_{x'} K(x, x')` at x = x' = x₀. **The recursion is exact there at x₀ = 0 only**, where the
first derivatives of K vanish, because K(x, 0) is even in x; elsewhere it leaves the terms with them out.

``nonlinearity="linear"`` takes :math:`\dot\Lambda = E[\varphi'^2]` everywhere: the limit at x₀ = 0 for convolutions
without padding, where all positions have the same z, and an approximation else.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from nadtools import checks, storage
from nadtools.analytic.covariance import Covariance
from nadtools.analytic.graph import Network, trace
from nadtools.analytic.operations import NoRuleError
from nadtools.analytic.spectrum import decompose
from nadtools.device import derive_seed, generator, require_memory, stream, unaffected_by_context
from nadtools.nads import NADs
from nadtools.networks import network_source

__all__ = ["Covariance", "NoRuleError", "analytic_nads", "covariances"]

Nonlinearity = Literal["linear", "infinite-width"]
EvaluationPoint = Literal["zero", "normal"] | Tensor


@unaffected_by_context()
def analytic_nads(
    architecture: str | nn.Module | Callable[[], nn.Module],
    image_size: tuple[int, int] = (32, 32),
    *,
    in_channels: int = 1,
    nonlinearity: Nonlinearity = "linear",
    evaluation_point: EvaluationPoint = "zero",
    num_points: int = 8,
    signal_variance: float = 1.0,
    weight_variances: Mapping[str, float] | None = None,
    num_directions: int | None = None,
    seed: int = 0,
    **build_options: Any,
) -> NADs:
    r"""NADs of an architecture in closed form: no network is sampled.

    The eigenvalues are those of one output (of several, their mean); exactly 0 where the linear network is blind.
    Errors are 0, the overlap of halves is NaN: nothing is sampled. ``metadata["approximations"]`` has what is inexact.

    Args:
        architecture: A name that :func:`nadtools.build` knows; a network that torch.fx can trace, of layers that have a
            rule (see :mod:`nadtools.analytic.rules`); or a callable without arguments that returns one. One network is
            looked at, for its layers and the variances of its weights, which must be initial ones.
        nonlinearity: See the head of this module, also for what is exact.
        evaluation_point: For ``"infinite-width"``. ``"zero"``: x₀ = 0 (only biases then reach the activations);
            ``"normal"``: x₀ ~ N(0, I), averaged over ``num_points`` draws; or an image of shape (channels, h, w).
        signal_variance: Of what activations and normalisations get. The gain of ReLU does not depend on it.
        weight_variances: Var(w) by the qualified name of a layer, in place of what its weights say: 1/(3 fan_in) if
            they follow PyTorch's default, else their mean square.
        num_directions: Only the first so many, for images too large for a complete basis; for networks without
            shortcuts or branches.
        seed: Of the network that is looked at, and of the points.
        **build_options: For a named architecture, passed on to :func:`nadtools.build`: ``width``, ``pooling``...

    Raises:
        NoRuleError, TypeError, ValueError, MemoryError: If a layer has no rule (the message names it), an argument is
            not as described, torch.fx cannot trace the network, or the images are too large for a complete basis or for
            a covariance that is no Kronecker product.
    """
    shape = _shape(image_size, in_channels)
    checks.choice("nonlinearity", nonlinearity, get_args(Nonlinearity))
    points = _points(evaluation_point, shape, checks.positive_int("num_points", num_points, 10_000), seed)
    dimension = math.prod(shape)
    count = dimension if num_directions is None else checks.positive_int("num_directions", num_directions, dimension)
    advice = "ask for the first ones by num_directions=..., or use a smaller image_size"
    require_memory(12 * dimension * count, f"{count} eigenvectors of {dimension} pixels", advice)
    network, name = _network(architecture, shape, signal_variance, weight_variances, seed, build_options)
    wide = nonlinearity == "infinite-width"
    images = [network.backward(point)[network.image] for point in (points if wide else [None])]
    total = functools.reduce(operator.add, images).scaled(1 / len(images))
    values, vectors = decompose(total, shape, count)
    if not float(values[0]) > 0:
        reason = "a layer on every path starts with weights of zero"
        raise ValueError(f"the gradient of {name} vanishes: {reason}; draw them, or give their weight_variances")
    at = evaluation_point if isinstance(evaluation_point, str) else "tensor"
    exact = "in the limit of infinite width" if wide else "for the network with constant activation gains"
    metadata = {
        "architecture": name,
        "method": "analytic",
        "nonlinearity": nonlinearity,
        "evaluation_point": at,
        "signal_variance": float(signal_variance),
        "build_options": {key: repr(value) for key, value in build_options.items()},
        "kronecker": total.is_product,
        "exact": exact + (", but for the terms with first derivatives of the kernel" if wide and at != "zero" else ""),
        "approximations": sorted({step.operation.note for step in network.steps} - {""}),
        **({"num_directions": count} if count < dimension else {}),
        **storage.provenance(seed),
    }
    return NADs(vectors, values, 0 * values, math.nan * values, metadata)


@unaffected_by_context()
def covariances(
    architecture: str | nn.Module | Callable[[], nn.Module],
    image_size: tuple[int, int] = (32, 32),
    *,
    in_channels: int = 1,
    signal_variance: float = 1.0,
    weight_variances: Mapping[str, float] | None = None,
    seed: int = 0,
    **build_options: Any,
) -> dict[str, Covariance]:
    """The covariance of the signal that comes back to each layer's result, of the linear network.

    Arguments and errors are those of :func:`analytic_nads`. From the name of each layer and its type, in the order in
    which the signal meets them, to the covariance over a channel's positions; last, ``"image"``. At any size of the
    image :meth:`Covariance.quadratic` is the alignment of a direction; :meth:`Covariance.matrix` has the numbers.
    """
    shape = _shape(image_size, in_channels)
    network, _ = _network(architecture, shape, signal_variance, weight_variances, seed, build_options)
    layers = {step.name: step.layer for step in network.steps}
    found: dict[str, Covariance] = {}
    for name, covariance in network.backward().items():
        number = sum(other.split(" #")[0] == layers[name] for other in found)
        found[f"{layers[name]} #{number + 1}" if number else layers[name]] = covariance
    return found


def _shape(image_size: tuple[int, int], in_channels: int) -> tuple[int, int, int]:
    height, width = checks.check_shape("image_size", image_size)
    return checks.positive_int("in_channels", in_channels), height, width


def _network(
    architecture: str | nn.Module | Callable[[], nn.Module],
    shape: tuple[int, int, int],
    signal_variance: float,
    weight_variances: Mapping[str, float] | None,
    seed: int,
    build_options: dict[str, Any],
) -> tuple[Network, str]:
    """The layers of an architecture, and its name."""
    variance = checks.positive_number("signal_variance", signal_variance)
    checks.instance("weight_variances", weight_variances or {}, Mapping, "a mapping of layers to variances")
    given = {k: checks.nonnegative_number(f"weight_variances[{k!r}]", v) for k, v in (weight_variances or {}).items()}
    build = (lambda: architecture) if isinstance(architecture, nn.Module) else architecture
    source = network_source(build, shape, build_options, chosen={"num_classes": 1}, caller="analytic_nads")
    module = source(derive_seed(stream(checks.check_seed(seed), "network of a closed form")))
    checks.instance("the result of the callable", module, nn.Module, "a torch.nn.Module")
    for layer in given.keys() - dict(module.named_modules()).keys():
        raise ValueError(f"got weight_variances for {layer!r}, which the network lacks; expected a layer's name")
    name = type(module).__name__ if module is architecture else source.name
    return trace(module, shape, variance, given), name


def _points(point: EvaluationPoint, shape: tuple[int, int, int], count: int, seed: int) -> list[Tensor]:
    if isinstance(point, Tensor):
        if checks.tensor("evaluation_point", point).shape != shape:
            raise ValueError(f"got evaluation_point of shape {tuple(point.shape)}; expected {shape}")
        return [point]
    if checks.choice("evaluation_point", point, ("zero", "normal")) == "zero":
        return [torch.zeros(shape)]
    purpose = stream(checks.check_seed(seed), "points of a closed form")
    return [torch.randn(shape, generator=generator(torch.device("cpu"), purpose, i)) for i in range(count)]
