r"""The linear layer that a network ends in, found automatically.

A network :math:`f(x) = a^T h(x) + b` whose output weights a are independent of the rest, with mean zero and equal
variance s², has :math:`E_a[g g^T] = s^2 J^T J`, with g and J the secants or gradients of f and of h. So the output
layer can be averaged out exactly, and the bias b never matters. Several outputs with weights of their own have the same
average. Where a is zero at initialisation, s² = 1 stands in its place: it is a factor of all eigenvalues alike.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from nadtools import checks
from nadtools.networks import check_independent_images, on_images

__all__ = [
    "OutputLayer", "averaged_variance", "check_network", "find_output_layer", "output_weight_variance", "switched_off",
    "variance_of_weights",
]  # fmt: skip

_SWITCHED_OFF = 1e-3  # the largest weight of a layer that hardly lets anything through


@dataclasses.dataclass(frozen=True)
class OutputLayer:
    """A network cut in front of its last linear layer."""

    network: nn.Module
    layer: nn.Linear

    def features(self, x: Tensor) -> Tensor:
        """h(x), what enters the output layer: shape (n, k) for a batch of n images."""
        seen: list[Tensor] = []
        handle = self.layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        try:
            self.network(x)
        finally:
            handle.remove()
        return seen[0].reshape(len(x), -1)

    def is_shared(self, image_shape: tuple[int, int, int]) -> bool:
        """Whether h depends on the output layer's weights; all parameters of the network are frozen."""
        weight = self.layer.weight
        try:
            weight.requires_grad_(True)
            return self.features(_probe(image_shape, weight.device)).requires_grad
        finally:
            weight.requires_grad_(False)


def check_network(network: object, image_shape: tuple[int, int, int], device: torch.device) -> nn.Module:
    """Return the network in evaluation mode on the device, with its parameters frozen; refuse what has no NADs."""
    if not isinstance(network, nn.Module):
        made = f"the architecture returned {type(network).__name__}"
        raise TypeError(f"{made}; expected a torch.nn.Module: pass a callable such as lambda: MyNetwork()")
    if any(parameter.is_inference() for parameter in network.parameters()):
        raise ValueError("the network was built under torch.inference_mode(); build it outside")
    network = network.to(device).float().eval().requires_grad_(False)
    x = _probe(image_shape, device)
    with on_images(x, " (say what it takes by in_channels=... and image_size=...)"), torch.no_grad():
        # Copies, so that a network that works in place cannot change what the second call sees.
        first, second = network(x.clone()), network(x.clone())
    checks.instance("a result of the network", first, Tensor, "a tensor; output=... takes one out of dicts and tuples")
    if first.ndim < 1 or len(first) != len(x) or not first.numel():
        raise ValueError(f"the network returned shape {tuple(first.shape)} for {len(x)} images; expected (3, outputs)")
    if not bool(torch.isfinite(first).all()):
        raise ValueError("the network returned NaN or infinite values at initialisation; expected finite ones")
    if not torch.equal(first, second):
        raise ValueError("the network returned different values for the same input in evaluation mode: it has no NADs")
    check_independent_images(network, x)
    return network


def find_output_layer(network: nn.Module, image_shape: tuple[int, int, int]) -> OutputLayer | None:
    """Cut the network in front of the linear layer of whose outputs the network's are some; None if it has none."""
    parameter = next(network.parameters(), None)
    x = _probe(image_shape, parameter.device if parameter is not None else torch.device("cpu"))
    calls: list[tuple[nn.Linear, Tensor]] = []

    def record(layer: nn.Module, _: object, output: Tensor) -> None:
        assert isinstance(layer, nn.Linear)
        calls.append((layer, output.detach().clone()))

    linear = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    handles = [layer.register_forward_hook(record) for layer in linear]
    try:
        with torch.no_grad():
            output = network(x).reshape(len(x), 1, -1)
    finally:
        for handle in handles:
            handle.remove()
    calls = [
        (layer, seen.reshape(len(x), -1, 1)) for layer, seen in calls if seen.numel() == len(x) * layer.out_features
    ]
    matching = [layer for layer, seen in calls if bool((seen == output).all(0).any(0).all())]
    if not matching or sum(layer is matching[-1] for layer, _ in calls) != 1:
        return None
    return OutputLayer(network, matching[-1])


def output_weight_variance(draw: Callable[[int], nn.Module], cut: OutputLayer) -> float | None:
    """Variance s² of the initial output weights, or None where averaging them out would be wrong.

    The weights of a few fresh networks are tested for mean zero and equal variance. PyTorch's default for a
    linear layer with k inputs, uniform on ±1/sqrt(k), is recognised and its exact variance 1/(3k) returned; other
    initialisations are measured. For weights of zero it is 1.
    """
    fan_in = cut.layer.in_features
    name = next(name for name, module in cut.network.named_modules() if module is cut.layer)
    count = max(8, min(64, -(-4096 // fan_in)))
    weights = []
    for index in range(count):
        layer = draw(index).get_submodule(name)
        assert isinstance(layer, nn.Linear)
        weights.append(layer.weight.detach().double().flatten().cpu())
    sample = torch.stack(weights)
    total, size, mean_square = sample.numel(), sample.shape[1], float(sample.square().mean())
    if mean_square == 0:
        return 1.0
    # Means: of all weights together, and, summed over the weights of a layer, of each of them over networks.
    overall = float(sample.mean()) / (mean_square / total) ** 0.5
    by_weight = float(sample.mean(0).square().sum()) * count / mean_square
    # Variances: those of each weight over networks scatter by (kurtosis - 1) / count if they are equal.
    scatter = max(float(sample.pow(4).mean()) / mean_square**2 - 1, 1e-12) / count
    spread = float((sample.square().mean(0) / mean_square - 1).square().sum()) / scatter
    excess = max(by_weight, spread) - size
    if abs(overall) > 5 or excess > 8 * (2 * size) ** 0.5 + 8:
        return None
    return variance_of_weights(sample, fan_in)


def variance_of_weights(values: Tensor, fan_in: int) -> float:
    """The mean square, or the variance 1 / (3 fan_in) of PyTorch's uniform default where that is plausible."""
    square, default = float(values.square().mean()), 1 / (3 * fan_in)
    bounded = float(values.abs().max()) <= fan_in**-0.5 * (1 + 1e-6)
    # A uniform variable has a kurtosis of 9/5: the standard error of its mean square is s² sqrt(4/5 / n).
    plausible = abs(square / default - 1) < 5 * (0.8 / values.numel()) ** 0.5
    return default if bounded and plausible and square > 0 else square


def averaged_variance(
    draw: Callable[[int], nn.Module], network: nn.Module, image_shape: tuple[int, int, int]
) -> float | None:
    """Variance of the output weights if they can be averaged out, else None, with a warning that says why."""
    cut = find_output_layer(network, image_shape)
    if cut is None:
        reason = "the network does not end in a linear layer"
    else:
        if cut.is_shared(image_shape):
            raise ValueError("the output layer's weights are used elsewhere, too; set average_output_layer=False")
        variance = output_weight_variance(draw, cut)
        if variance is not None:
            return variance
        reason = "the initial weights of the output layer do not have mean zero and equal variance"
    warnings.warn(f"{reason}: its output layer is sampled, not averaged", stacklevel=5)
    return None


def switched_off(network: nn.Module, cut: OutputLayer | None) -> list[str]:
    """What has to be said of layers that start at zero, or nearly so: of the output layer, and of others."""
    head = None if cut is None else cut.layer.weight
    zero = head is not None and not bool(head.any())
    said = ["the output layer starts at zero: weights of variance 1 stand in its place"] if zero else []
    kinds = ((name, value) for name, value in network.named_parameters() if re.search(r"weight$|scale|gamma", name))
    off = [name for name, value in kinds if value is not head and float(value.abs().max()) <= _SWITCHED_OFF]
    said += [f"layers that start at zero or nearly so, {len(off)} in number, play no part: {off[0]}..."] if off else []
    return said


def _probe(image_shape: tuple[int, int, int], device: torch.device) -> Tensor:
    """Three images that are neither equal nor special."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(3, *image_shape, generator=generator).to(device)
