"""The rules: for each kind of layer, how it carries a covariance back.

A layer that averages, resizes, pads or cuts is a linear map along single axes; its matrix is what PyTorch's own layer
makes of the unit vectors. Max pooling is taken as the average over its windows: its best linear approximation, since
it treats the pixels of a window alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from nadtools.analytic.covariance import Covariance, Shift
from nadtools.analytic.operations import (
    Call,
    Operation,
    Place,
    activation,
    bias_variance,
    identity,
    on_positions,
    weights,
    window,
)
from nadtools.analytic.signals import Signal, flattened, reshaped, unflattened

__all__ = ["MODULES", "NAMES", "gate_at_rest", "operation", "rule_type"]

_MAX_NOTE = "max pooling as the average over its windows"
_NORM_NOTE = "normalisation of many channels; what it subtracts along its own output is left out"
_GATE_NOTE = "a gate as its value at rest"
_ATTENTION_NOTE = "attention as the mean of all tokens"


def operation(call: Call) -> Operation:
    """The rule of a layer at work.

    Raises
    ------
    NoRuleError
        If there is none.
    """
    if call.module is not None:
        known = rule_type(call.module)
        if known is not None:
            return MODULES[known](call)
    elif call.kind in NAMES:
        return NAMES[call.kind](call)
    call.refuse("no rule is known for it")


def rule_type(module: nn.Module) -> type[nn.Module] | None:
    """The type whose rule fits a module: its own, or one whose ``forward`` it inherits."""
    return next((k for k in type(module).__mro__ if k in MODULES and type(module).forward is k.forward), None)


def _unit_vectors(size: int, function: Callable[[Tensor], Tensor]) -> Tensor:
    """The (out, in) matrix of a linear map of signals of shape (n, 1, size)."""
    return function(torch.eye(size, dtype=torch.float64)[:, None])[:, 0].T


def _tuple(value: Any, count: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,) * count


def _spatial(call: Call, count: int) -> Place:
    place = call.inputs[0]
    if place.kinds != "c" + "p" * count:
        call.refuse(f"it expects channels and {count} axes of positions, and got axes of the kinds {place.kinds!r}")
    return place


# Layers with weights.


def _shifts(size: int, out: int, kernel: int, stride: int, padding: int, dilation: int) -> list[Shift]:
    """For each offset of a kernel: entries of the result, and the entries of the input that they see."""
    found = []
    for offset in range(kernel):
        position = offset * dilation - padding
        first = max(0, -(position // stride))
        last = min(out - 1, (size - 1 - position) // stride)
        if first <= last:
            start = first * stride + position
            source = slice(first, last + 1)
            found.append((source, slice(start, last * stride + position + 1, stride)))
    return found


def _convolution(call: Call) -> Operation:
    layer: Any = call.module
    count = len(layer.kernel_size)
    place, out = _spatial(call, count), call.shape[1:]
    sizes, padders = place.shape[1:], {}
    if isinstance(layer.padding, str):
        total = [d * (k - 1) if layer.padding == "same" else 0 for k, d in zip(layer.kernel_size, layer.dilation)]  # noqa: B905
        sides = [(t // 2, t - t // 2) for t in total]
    else:
        sides = [(p, p) for p in layer.padding]
    if layer.padding_mode != "zeros":
        for axis, (size, side) in enumerate(zip(sizes, sides, strict=True)):
            padders[axis] = _unit_vectors(size, lambda x, side=side: F.pad(x, side, layer.padding_mode)).T  # type: ignore[misc]
        sizes, sides = tuple(n + sum(s) for n, s in zip(sizes, sides, strict=True)), [(0, 0)] * count
    geometry = zip(sizes, out, layer.kernel_size, layer.stride, sides, layer.dilation, strict=True)
    shifts = [_shifts(n, m, k, s, side[0], d) for n, m, k, s, side, d in geometry]
    fan_in = layer.weight[0].numel()
    inner = window(
        call, place, shifts, groups=layer.groups, channels=(layer.in_channels, layer.out_channels),
        weight=weights(call, layer.weight, fan_in), bias=bias_variance(layer.bias, fan_in), sizes=(sizes, out),
    )  # fmt: skip
    if not padders:
        return inner
    outer = on_positions(call, {axis + 1: matrix.T for axis, matrix in padders.items()})
    return _chained(outer, inner)


def _chained(first: Operation, second: Operation) -> Operation:
    assert first.forward is not None and second.forward is not None
    ahead, further = first.forward, second.forward
    return Operation(
        second.kinds,
        lambda signal, inputs: first.backward(second.backward(signal, inputs)[0], inputs),  # type: ignore[arg-type]
        lambda inputs: further([ahead(inputs)]),
        first.note or second.note,
    )


def _transposed_convolution(call: Call) -> Operation:
    layer: Any = call.module
    place, out = _spatial(call, len(layer.kernel_size)), call.shape[1:]
    sizes = place.shape[1:]
    geometry = zip(out, sizes, layer.kernel_size, layer.stride, layer.padding, layer.dilation, strict=True)
    shifts = [[(t, s) for s, t in _shifts(n, m, k, stride, p, d)] for n, m, k, stride, p, d in geometry]
    fan_in = layer.weight[0].numel()  # PyTorch's own count for this layer
    return window(
        call, place, shifts, groups=layer.groups, channels=(layer.in_channels, layer.out_channels),
        weight=weights(call, layer.weight, fan_in), bias=bias_variance(layer.bias, fan_in), sizes=(sizes, out),
    )  # fmt: skip


def _linear(call: Call) -> Operation:
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


def _attention(call: Call) -> Operation:
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


# Layers without weights.


def _pooling(call: Call) -> Operation:
    layer: Any = call.module
    adaptive, maximum = "Adaptive" in call.kind or "adaptive" in call.kind, "ax" in call.kind and "max" in call.kind.lower()
    count = len(call.shape) - 1
    place = _spatial(call, count)
    if layer is None:
        settings = _pooling_arguments(call, adaptive, maximum)
    else:
        names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "count_include_pad", "divisor_override")
        settings = {name: getattr(layer, name) for name in names if hasattr(layer, name)}
    matrices = {}
    for axis, (size, out) in enumerate(zip(place.shape[1:], call.shape[1:], strict=True)):
        if adaptive:
            matrices[axis + 1] = _unit_vectors(size, lambda x, out=out: F.adaptive_avg_pool1d(x, out))  # type: ignore[misc]
            continue
        kernel, stride, padding, dilation = (
            _tuple(settings.get(name) or default, count)[axis]
            for name, default in (("kernel_size", 1), ("stride", settings["kernel_size"]), ("padding", 0), ("dilation", 1))
        )
        if maximum:
            seen = torch.zeros(out, size, dtype=torch.float64)
            for source, target in _shifts(size, out, kernel, stride, padding, dilation):
                seen[range(*source.indices(out)), range(*target.indices(size))] = 1
            matrices[axis + 1] = seen / seen.sum(1, keepdim=True)
        else:
            rest = settings.get("ceil_mode", False), settings.get("count_include_pad", True)
            matrices[axis + 1] = _unit_vectors(
                size, lambda x, window=(kernel, stride, padding, *rest): F.avg_pool1d(x, *window)  # type: ignore[misc]
            )
    if settings.get("divisor_override"):
        window_size = math.prod(_tuple(settings["kernel_size"], count))
        matrices[1] = matrices[1] * window_size / settings["divisor_override"]
    return on_positions(call, matrices, _MAX_NOTE if maximum else "", wide=not maximum)


def _pooling_arguments(call: Call, adaptive: bool, maximum: bool) -> dict[str, Any]:
    if adaptive:
        return {}
    names = ("kernel_size", "stride", "padding") + (
        ("dilation", "ceil_mode") if maximum else ("ceil_mode", "count_include_pad", "divisor_override")
    )
    return {name: call.args[i + 1] for i, name in enumerate(names) if len(call.args) > i + 1} | dict(call.kwargs)


def _batch_norm(call: Call) -> Operation:
    layer: Any = call.module
    if layer.running_var is None:
        call.refuse("without running statistics it joins the images of a batch")
    gain = 1 / (layer.running_var.double() + layer.eps)
    if layer.weight is not None:
        gain = gain * layer.weight.detach().double().square()
    return identity(call, float(gain.mean()))


def _normalisation(call: Call) -> Operation:
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
    if "c" not in axes or axes.count("p") not in (0, place.kinds.count("p")) or axes.count("c") != place.kinds.count("c"):
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


def _resize(call: Call) -> Operation:
    layer: Any = call.module
    count = len(call.shape) - 1
    place = _spatial(call, count)
    mode = layer.mode if layer is not None else call.argument(3, "mode", "nearest")
    corners = layer.align_corners if layer is not None else call.argument(4, "align_corners")
    one = {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode)
    if one not in ("nearest", "linear", "nearest-exact", "area"):
        call.refuse(f"resizing by {mode!r} has no rule")
    factors = layer.scale_factor if layer is not None else call.argument(2, "scale_factor")
    by_scale = factors is not None and not getattr(layer, "recompute_scale_factor", call.kwargs.get("recompute_scale_factor"))
    matrices = {}
    for axis, (size, out) in enumerate(zip(place.shape[1:], call.shape[1:], strict=True)):
        how: dict[str, Any] = {"scale_factor": float(_tuple(factors, count)[axis])} if by_scale else {"size": out}
        how |= {"mode": one} | ({"align_corners": corners} if one == "linear" else {})
        matrices[axis + 1] = _unit_vectors(size, lambda x, how=how: F.interpolate(x, **how))  # type: ignore[misc]
    return on_positions(call, matrices)


def _padding(call: Call) -> Operation:
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
            matrices[axis] = _unit_vectors(place.shape[axis], lambda x, s=tuple(side): F.pad(x, s, mode))  # type: ignore[misc]
    return on_positions(call, matrices)


# Sums, products, and tensors in another form.


def _addition(call: Call) -> Operation:
    if any(place.shape != call.shape for place in call.inputs):
        call.refuse("tensors of different shapes are added")
    kinds = call.inputs[0].kinds
    if any(place.kinds != kinds for place in call.inputs) or call.kwargs.get("alpha", 1) not in (1, -1):
        call.refuse("tensors of different kinds are added, or with a factor")

    def forward(inputs: Sequence[Signal]) -> Signal:
        total = inputs[0]
        for signal in inputs[1:]:
            total = total + signal
        return total

    constant = len(call.inputs) == 1  # a constant that is added has an influence on later activations only
    return Operation(kinds, lambda signal, _: [signal] * len(call.inputs), None if constant else forward)


def _multiplication(call: Call) -> Operation:
    divided = "div" in call.kind
    if len(call.inputs) == 1:
        (constant,) = (a for a in (*call.args, *call.kwargs.values()) if not isinstance(a, Place) and a is not None)
        if divided and not isinstance(call.args[0], Place):
            call.refuse("it divides by a tensor that depends on the image")
        square = float(torch.as_tensor(constant).detach().double().square().mean())
        return identity(call, 1 / square if divided else square)
    if call.gate is None or divided:
        call.refuse("it multiplies two tensors that depend on the image, and neither is a sigmoid's result")
    chosen, gain = 1 - call.gate[0], call.gate[1] ** 2
    if call.inputs[chosen].shape != call.shape:
        call.refuse("the gate is larger than what it multiplies")

    def backward(signal: Signal, _: object) -> list[Signal | None]:
        passed = signal.map(lambda part: part.scaled(gain))
        return [passed if number == chosen else None for number in range(2)]

    return Operation(call.inputs[chosen].kinds, backward, note=_GATE_NOTE)


def gate_at_rest(call: Call) -> float | None:
    """φ(0), if the layer is a sigmoid of some kind."""
    function = {nn.Sigmoid: torch.sigmoid, nn.Hardsigmoid: F.hardsigmoid}.get(type(call.module))  # type: ignore[arg-type]
    function = function or {"sigmoid": torch.sigmoid, "hardsigmoid": F.hardsigmoid}.get(call.kind)
    return float(function(torch.zeros(()))) if function else None


def _concatenation(call: Call) -> Operation:
    tensors = call.args[0] if call.args else call.kwargs["tensors"]
    axis = call.argument(1, "dim", 0)
    axis = axis - 1 if axis >= 0 else len(call.shape) + axis
    kinds = call.inputs[0].kinds
    if axis < 0 or any(place.kinds != kinds for place in call.inputs):
        call.refuse("it joins images, or tensors of different kinds")
    index, kind, start, ranges = call.inputs[0].index(axis), kinds[axis], 0, []
    for tensor in tensors:
        size = tensor.shape[axis] if isinstance(tensor, Place) else tensor.shape[axis + 1]
        if isinstance(tensor, Place):
            ranges.append((start, size))
        start += size

    def backward(signal: Signal, _: object) -> list[Signal]:
        found = []
        for start, size in ranges:
            if kind == "c":
                cut = signal.relabelled(lambda labels, s=start, n=size: labels.narrow(index, s, n))  # type: ignore[misc]
            else:
                matrix = torch.eye(call.shape[axis], dtype=torch.float64)[:, start : start + size]
                cut = signal.map(lambda part, m=matrix: part.congruent(index, m))  # type: ignore[misc]
            found.append(cut.marked(call.name, start))
        return found

    def forward(inputs: Sequence[Signal]) -> Signal:
        joined = inputs[0].marked(call.name, 0)
        for number, signal in enumerate(inputs[1:], 1):
            joined = joined.joined(signal.marked(call.name, number), index)
        return joined

    return Operation(kinds, backward, forward if kind == "c" and len(ranges) == len(tensors) else None)


def _mean(call: Call) -> Operation:
    place = call.inputs[0]
    axes = call.argument(1, "dim")
    if axes is None:
        call.refuse("it averages over everything")
    chosen = sorted(axis - 1 if axis > 0 else len(place.shape) + axis for axis in _tuple(axes, 1))
    matrices = {a: torch.full((1, place.shape[a]), 1 / place.shape[a], dtype=torch.float64) for a in chosen}
    averaged = on_positions(call, matrices)
    kept = Place(tuple(1 if a in chosen else n for a, n in enumerate(place.shape)), place.kinds)
    if len(call.shape) == len(place.shape):
        return averaged
    return _chained(averaged, _as(kept, "".join(k for a, k in enumerate(place.kinds) if a not in chosen), call))


def _as(before: Place, kinds: str, call: Call) -> Operation:
    """Another shape, axes of one kind merged or split among themselves."""
    after = Place(call.shape, kinds)
    return Operation(
        kinds,
        lambda signal, _: [reshaped(signal, before.shape, before.kinds)],
        lambda inputs: reshaped(inputs[0], after.shape, after.kinds),
    )


def _reshape(call: Call) -> Operation:
    """Which axes are merged and split is read off the sizes."""
    place = call.inputs[0]
    if call.shape == place.shape:
        return identity(call)
    if len(call.shape) == 1 and set(place.kinds) == {"c", "p"}:
        return Operation(
            "c",
            lambda signal, _: [unflattened(signal, place.shape, place.kinds)],
            lambda inputs: flattened(inputs[0], place.kinds),
        )
    kinds, ours, theirs = "", 0, 0
    while theirs < len(call.shape):
        first, i, j = ours, 1, 1
        start = theirs
        while True:
            if i <= j and ours < len(place.shape) and (i < j or ours == first):
                i, ours = i * place.shape[ours], ours + 1
            elif j < i or theirs == start:
                if theirs == len(call.shape):
                    break
                j, theirs = j * call.shape[theirs], theirs + 1
            if i == j and theirs > start:
                break
        merged = {k for k, n in zip(place.kinds[first:ours], place.shape[first:ours], strict=True) if n > 1}
        if len(merged) > 1:
            call.refuse("it merges channels and positions, and others are left")
        kind = merged.pop() if merged else (place.kinds[first] if first < len(place.kinds) else "p")
        kinds += kind * (theirs - start)
    if "c" not in kinds:
        call.refuse("no axis of channels is left")
    return _as(place, kinds, call)


def _permutation(call: Call) -> Operation:
    place, dims = call.inputs[0], len(call.inputs[0].shape) + 1
    if call.module is not None:
        order = [int(a) for a in call.module.dims]  # type: ignore[union-attr, operator]
    elif call.kind == "permute":
        order = list(call.args[1] if isinstance(call.args[1], tuple | list) else call.args[1:])
    else:
        a, b = (call.argument(1, "dim0"), call.argument(2, "dim1"))
        order = list(range(dims))
        order[a], order[b] = order[b], order[a]
    order = [a % dims for a in order]
    if order[0] != 0:
        call.refuse("it moves the axis of the images")
    moves = [a - 1 for a in order[1:]]
    orders = {kind: [place.index(a) for a in moves if place.kinds[a] == kind] for kind in "cp"}
    back = {kind: sorted(range(len(o)), key=o.__getitem__) for kind, o in orders.items()}

    def moved(signal: Signal, by: dict[str, list[int]]) -> Signal:
        return signal.relabelled(lambda labels: labels.permute(by["c"])).map(lambda part: part.permuted(by["p"]))

    return Operation(
        "".join(place.kinds[a] for a in moves),
        lambda signal, _: [moved(signal, back)],
        lambda inputs: moved(inputs[0], orders),
    )


def _item(call: Call) -> Operation:
    """Slices and single entries of axes; what is not chosen gets no signal."""
    place, item = call.inputs[0], call.args[1]
    entries = list(item) if isinstance(item, tuple) else [item]
    if any(entry is Ellipsis for entry in entries):
        at = next(number for number, entry in enumerate(entries) if entry is Ellipsis)
        entries[at : at + 1] = [slice(None)] * (len(place.shape) + 2 - len(entries))
    if not all(isinstance(e, int | slice) for e in entries) or entries[0] != slice(None):
        call.refuse("it picks entries in a way that has no rule")
    cuts = {a - 1: e for a, e in enumerate(entries) if e != slice(None)}
    kept = Place(
        tuple(
            n if a not in cuts else 1 if isinstance(cuts[a], int) else len(range(*cuts[a].indices(n)))
            for a, n in enumerate(place.shape)
        ),
        place.kinds,
    )
    if any(isinstance(e, int) and place.kinds[a] == "c" for a, e in cuts.items()):
        call.refuse("it picks a single channel")

    def backward(signal: Signal, _: object) -> list[Signal]:
        signal = reshaped(signal, kept.shape, kept.kinds)
        for axis, entry in cuts.items():
            index, size = place.index(axis), place.shape[axis]
            if place.kinds[axis] == "p":
                chosen = torch.eye(size, dtype=torch.float64)[[entry] if isinstance(entry, int) else entry]
                signal = signal.map(lambda part, i=index, m=chosen: part.congruent(i, m))  # type: ignore[misc]
                continue
            silent = Covariance.constant(signal.parts[0].sizes, 0.0)
            shape = list(signal.labels.shape)
            shape[index] = size
            labels = torch.full(shape, len(signal.parts), dtype=torch.int64)
            labels[(slice(None),) * index + (entry,)] = signal.labels
            signal = Signal(labels, (*signal.parts, silent), (*signal.origins, frozenset()))
        return [signal]

    kinds = "".join(k for a, k in enumerate(place.kinds) if not isinstance(cuts.get(a), int))
    return Operation(kinds, backward)


def _activation_of(call: Call) -> Operation:
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


Rule = Callable[[Call], Operation]

_ACTIVATIONS = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Sigmoid,
    nn.LogSigmoid, nn.Softplus, nn.Softsign, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.Tanhshrink,
)  # fmt: skip
_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_POOLS = (
    nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AdaptiveAvgPool1d,
    nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d,
)  # fmt: skip
_PADS = (
    nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d, nn.ConstantPad1d, nn.ConstantPad2d, nn.ReflectionPad1d,
    nn.ReflectionPad2d, nn.ReplicationPad1d, nn.ReplicationPad2d, nn.CircularPad1d, nn.CircularPad2d,
)  # fmt: skip
_SAME = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)

#: For each type of module, its rule.
MODULES: dict[type[nn.Module], Rule] = {
    **dict.fromkeys((nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d), _transposed_convolution),
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, nn.Conv3d), _convolution),
    nn.Linear: _linear,
    nn.MultiheadAttention: _attention,
    **dict.fromkeys(_POOLS, _pooling),
    **dict.fromkeys(_BATCH_NORMS, _batch_norm),
    **dict.fromkeys(_NORMS, _normalisation),
    **dict.fromkeys(_SAME, identity),
    **dict.fromkeys((nn.Flatten, nn.Unflatten), _reshape),
    **dict.fromkeys(_PADS, _padding),
    nn.Upsample: _resize,
    **dict.fromkeys(_ACTIVATIONS, _activation_of),
}

#: For each name of a function or of a tensor's method, its rule.
NAMES: dict[str, Rule] = {
    **dict.fromkeys(("add", "iadd", "add_", "sub", "isub"), _addition),
    **dict.fromkeys(("mul", "imul", "mul_", "truediv", "div"), _multiplication),
    **dict.fromkeys(("cat", "concat", "concatenate"), _concatenation),
    **dict.fromkeys(("flatten", "view", "reshape", "squeeze", "unsqueeze", "unflatten"), _reshape),
    **dict.fromkeys(("permute", "transpose", "swapaxes"), _permutation),
    "getitem": _item,
    "mean": _mean,
    **dict.fromkeys(("interpolate", "upsample"), _resize),
    "pad": _padding,
    "layer_norm": _normalisation,
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d", "_max_pool2d"), _pooling),
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool2d"), _pooling),
    **dict.fromkeys(("dropout", "stochastic_depth", "contiguous", "clone", "float", "double", "neg"), identity),
    **dict.fromkeys(
        ("relu", "relu_", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "mish", "tanh", "sigmoid", "softplus",
         "softsign", "hardtanh", "hardswish", "hardsigmoid"), _activation_of,
    ),
}  # fmt: skip

