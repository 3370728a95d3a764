"""Rules of layers that average, normalise, resize or pad, and of activations.

Max pooling is taken as the average over its windows: its best linear approximation, since it treats the pixels of a
window alike.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nadtools.analytic.geometry import as_tuple, shifts_of, spatial, unit_vectors
from nadtools.analytic.operations import Call, Operation, activation, identity, on_positions

__all__ = ["batch_norm", "elementwise", "normalisation", "padding", "pooling", "resize"]

_MAX_NOTE = "max pooling as the average over its windows"
_NORM_NOTE = "normalisation of many channels; what it subtracts along its own output is left out"


def pooling(call: Call) -> Operation:
    """Average pooling, and max pooling as that; adaptive pooling."""
    layer: Any = call.module
    adaptive, maximum = (
        "Adaptive" in call.kind or "adaptive" in call.kind,
        "ax" in call.kind and "max" in call.kind.lower(),
    )
    count = len(call.shape) - 1
    place = spatial(call, count)
    if layer is None:
        settings = _pooling_arguments(call, adaptive, maximum)
    else:
        names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "count_include_pad", "divisor_override")
        settings = {name: getattr(layer, name) for name in names if hasattr(layer, name)}
    matrices = {}
    for axis, (size, out) in enumerate(zip(place.shape[1:], call.shape[1:], strict=True)):
        if adaptive:
            matrices[axis + 1] = unit_vectors(size, lambda x, out=out: F.adaptive_avg_pool1d(x, out))  # type: ignore[misc]
            continue
        kernel, stride, padding, dilation = (
            as_tuple(settings.get(name) or default, count)[axis]
            for name, default in (
                ("kernel_size", 1),
                ("stride", settings["kernel_size"]),
                ("padding", 0),
                ("dilation", 1),
            )
        )
        if maximum:
            seen = torch.zeros(out, size, dtype=torch.float64)
            for source, target in shifts_of(size, out, kernel, stride, padding, dilation):
                seen[range(*source.indices(out)), range(*target.indices(size))] = 1
            matrices[axis + 1] = seen / seen.sum(1, keepdim=True)
        else:
            rest = settings.get("ceil_mode", False), settings.get("count_include_pad", True)
            matrices[axis + 1] = unit_vectors(
                size,
                lambda x, window=(kernel, stride, padding, *rest): F.avg_pool1d(x, *window),  # type: ignore[misc]
            )
    if settings.get("divisor_override"):
        window_size = math.prod(as_tuple(settings["kernel_size"], count))
        matrices[1] = matrices[1] * window_size / settings["divisor_override"]
    return on_positions(call, matrices, _MAX_NOTE if maximum else "", wide=not maximum)


def _pooling_arguments(call: Call, adaptive: bool, maximum: bool) -> dict[str, Any]:
    if adaptive:
        return {}
    names = ("kernel_size", "stride", "padding") + (
        ("dilation", "ceil_mode") if maximum else ("ceil_mode", "count_include_pad", "divisor_override")
    )
    return {name: call.args[i + 1] for i, name in enumerate(names) if len(call.args) > i + 1} | dict(call.kwargs)


def batch_norm(call: Call) -> Operation:
    """In evaluation mode a factor for each channel."""
    layer: Any = call.module
    if layer.running_var is None:
        call.refuse("without running statistics it joins the images of a batch")
    gain = 1 / (layer.running_var.double() + layer.eps)
    if layer.weight is not None:
        gain = gain * layer.weight.detach().double().square()
    return identity(call, float(gain.mean()))


def normalisation(call: Call) -> Operation:
    """Layer, group and instance normalisation: the mean is subtracted, of many channels or of few."""
    place, layer = call.inputs[0], call.module
    channels = math.prod(place.sizes("c"))
    weight = getattr(layer, "weight", None)
    if isinstance(layer, nn.GroupNorm):
        axes, channels = place.kinds, channels // layer.num_groups
    elif layer is not None and not isinstance(layer, nn.LayerNorm):
        axes, channels = place.kinds, 1
    else:
        shape = layer.normalized_shape if isinstance(layer, nn.LayerNorm) else call.argument(1, "normalized_shape")
        axes = place.kinds[len(place.kinds) - len(shape) :]
        weight = weight if layer is not None else call.argument(2, "weight")
    if (
        "c" not in axes
        or axes.count("p") not in (0, place.kinds.count("p"))
        or axes.count("c") != place.kinds.count("c")
    ):
        call.refuse("it normalises some of the channels or positions only")
    gain = float(weight.detach().double().square().mean()) if weight is not None else 1.0
    gain /= call.signal_variance
    if "p" not in axes:
        return _approximate(identity(call, gain * (1 - 1 / channels)), _NORM_NOTE)
    number = channels * math.prod(place.sizes("p"))

    def centred(matrix: Tensor) -> Tensor:
        sums = matrix.sum(1)
        return matrix - (sums[:, None] + sums) / number + channels * matrix.sum() / number**2

    return Operation(
        place.kinds,
        lambda signal, _: [signal.map(lambda part: part.map(centred).scaled(gain))],
        note=_NORM_NOTE,
    )


def _approximate(exact: Operation, note: str) -> Operation:
    return Operation(exact.kinds, exact.backward, None, note)


def resize(call: Call) -> Operation:
    """Nearest and linear resizing."""
    layer: Any = call.module
    count = len(call.shape) - 1
    place = spatial(call, count)
    mode = layer.mode if layer is not None else call.argument(3, "mode", "nearest")
    corners = layer.align_corners if layer is not None else call.argument(4, "align_corners")
    one = {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode)
    if one not in ("nearest", "linear", "nearest-exact", "area"):
        call.refuse(f"resizing by {mode!r} has no rule")
    factors = layer.scale_factor if layer is not None else call.argument(2, "scale_factor")
    by_scale = factors is not None and not getattr(
        layer, "recompute_scale_factor", call.kwargs.get("recompute_scale_factor")
    )
    matrices = {}
    for axis, (size, out) in enumerate(zip(place.shape[1:], call.shape[1:], strict=True)):
        how: dict[str, Any] = {"scale_factor": float(as_tuple(factors, count)[axis])} if by_scale else {"size": out}
        how |= {"mode": one} | ({"align_corners": corners} if one == "linear" else {})
        matrices[axis + 1] = unit_vectors(size, lambda x, how=how: F.interpolate(x, **how))  # type: ignore[misc]
    return on_positions(call, matrices)


def padding(call: Call) -> Operation:
    """By zeros or by the image itself."""
    layer: Any = call.module
    sides = list(layer.padding if layer is not None else call.argument(1, "pad"))
    place = call.inputs[0]
    mode = call.argument(2, "mode", "constant")
    for prefix in ("Reflection", "Replication", "Circular"):
        if layer is not None and prefix in call.kind:
            mode = {"Replication": "replicate", "Reflection": "reflect"}.get(prefix, "circular")
    matrices = {}
    for number in range(len(sides) // 2):
        side, axis = sides[2 * number : 2 * number + 2], len(place.shape) - 1 - number
        if any(side):
            matrices[axis] = unit_vectors(place.shape[axis], lambda x, s=tuple(side): F.pad(x, s, mode))  # type: ignore[misc]
    return on_positions(call, matrices)


def elementwise(call: Call) -> Operation:
    """An activation, as a module or a function."""
    if call.module is not None:
        module = type(call.module), {k: v for k, v in vars(call.module).items() if not k.startswith("_")}
        return activation(call, lambda z: _applied(*module, z))
    function = getattr(F, call.kind, None) or getattr(torch, call.kind)
    rest = {name: value for name, value in call.kwargs.items() if name not in ("inplace", "input")}
    return activation(call, lambda z: function(z, *[a for a in call.args[1:] if not isinstance(a, bool)], **rest))


def _applied(kind: type[nn.Module], settings: dict[str, Any], z: Tensor) -> Tensor:
    module = kind()
    vars(module).update({**settings, "inplace": False} if "inplace" in settings else settings)
    result: Tensor = module(z)
    return result
