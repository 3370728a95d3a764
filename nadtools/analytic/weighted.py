"""Rules of layers with independent weights: convolutions, linear layers, and attention at initialisation."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from nadtools.analytic.covariance import Covariance
from nadtools.analytic.geometry import chained, shifts_of, spatial, unit_vectors
from nadtools.analytic.operations import Call, Operation, bias_variance, on_positions, weights, window
from nadtools.analytic.signals import Signal

__all__ = ["attention", "convolution", "linear", "transposed_convolution"]

_ATTENTION_NOTE = "attention as the mean of all tokens"


def convolution(call: Call) -> Operation:
    """Equal offsets of the kernel on both sides, for each group of channels; other padding is a map before it."""
    layer: Any = call.module
    count = len(layer.kernel_size)
    place, out = spatial(call, count), call.shape[1:]
    sizes, padders = place.shape[1:], {}
    if isinstance(layer.padding, str):
        total = [d * (k - 1) if layer.padding == "same" else 0 for k, d in zip(layer.kernel_size, layer.dilation)]  # noqa: B905
        sides = [(t // 2, t - t // 2) for t in total]
    else:
        sides = [(p, p) for p in layer.padding]
    if layer.padding_mode != "zeros":
        for axis, (size, side) in enumerate(zip(sizes, sides, strict=True)):
            padders[axis] = unit_vectors(size, lambda x, side=side: F.pad(x, side, layer.padding_mode)).T  # type: ignore[misc]
        sizes, sides = tuple(n + sum(s) for n, s in zip(sizes, sides, strict=True)), [(0, 0)] * count
    geometry = zip(sizes, out, layer.kernel_size, layer.stride, sides, layer.dilation, strict=True)
    shifts = [shifts_of(n, m, k, s, side[0], d) for n, m, k, s, side, d in geometry]
    fan_in = layer.weight[0].numel()
    inner = window(
        call, place, shifts, groups=layer.groups, channels=(layer.in_channels, layer.out_channels),
        weight=weights(call, layer.weight, fan_in), bias=bias_variance(layer.bias, fan_in), sizes=(sizes, out),
    )  # fmt: skip
    if not padders:
        return inner
    outer = on_positions(call, {axis + 1: matrix.T for axis, matrix in padders.items()})
    return chained(outer, inner)


def transposed_convolution(call: Call) -> Operation:
    """A convolution's shifts the other way round."""
    layer: Any = call.module
    place, out = spatial(call, len(layer.kernel_size)), call.shape[1:]
    sizes = place.shape[1:]
    geometry = zip(out, sizes, layer.kernel_size, layer.stride, layer.padding, layer.dilation, strict=True)
    shifts = [[(t, s) for s, t in shifts_of(n, m, k, stride, p, d)] for n, m, k, stride, p, d in geometry]
    fan_in = layer.weight[0].numel()  # PyTorch's own count for this layer
    return window(
        call, place, shifts, groups=layer.groups, channels=(layer.in_channels, layer.out_channels),
        weight=weights(call, layer.weight, fan_in), bias=bias_variance(layer.bias, fan_in), sizes=(sizes, out),
    )  # fmt: skip


def linear(call: Call) -> Operation:
    """On channels a factor; on positions, as where tokens are mixed, the trace times the identity."""
    layer: Any = call.module
    place = call.inputs[0]
    axis = len(place.kinds) - 1
    index, fan_in = place.index(axis), layer.in_features
    weight, bias = weights(call, layer.weight, fan_in), bias_variance(layer.bias, fan_in)
    if place.kinds[axis] == "c":
        positions = place.sizes("p")

        def ahead(part: Covariance) -> Covariance:
            part = part.scaled(weight)
            return part + Covariance.constant(positions, bias) if bias else part

        return Operation(
            place.kinds,
            lambda signal, _: [signal.mixed(index, 1, fan_in, lambda part: part.scaled(weight), call.name)],
            (lambda inputs: inputs[0].mixed(index, 1, layer.out_features, ahead, call.name))
            if place.kinds.count("c") == 1
            else None,
        )

    def backward(signal: Signal, _: object) -> list[Signal]:
        mixed = signal.map(lambda part: part.whitened(index, fan_in).scaled(weight))
        return [Signal(mixed.labels, mixed.parts, (frozenset([(call.name,)]),) * len(mixed.parts))]

    return Operation(place.kinds, backward)


def attention(call: Call) -> Operation:
    """At initialisation every query looks at all tokens alike: the mean of the values, and two layers of weights."""
    layer: Any = call.module
    places = call.inputs
    if not layer.batch_first or any(place.kinds != "pc" for place in places) or len(places) != 3:
        call.refuse("it expects query, key and value of shape (n, tokens, channels) that depend on the image")
    if layer.bias_k is not None or layer.add_zero_attn or call.kwargs.get("attn_mask") is not None:
        call.refuse("masks, biases and zeros that are added to its keys have no rule")
    width, values = layer.embed_dim, places[2].shape[0]
    inner = layer.in_proj_weight[2 * width :] if layer.in_proj_weight is not None else layer.v_proj_weight
    gain = weights(call, inner, inner.shape[1], ".in_proj_weight") * width
    gain *= weights(call, layer.out_proj.weight, width, ".out_proj.weight")
    mean = torch.full((places[0].shape[0], values), 1 / values, dtype=torch.float64)
    return Operation(
        "pc",
        lambda signal, _: [
            None, None,
            signal.mixed(0, 1, inner.shape[1], lambda part: part.congruent(0, mean).scaled(gain), call.name),
        ],
        note=_ATTENTION_NOTE,
    )  # fmt: skip
