"""Rules of sums, products and concatenations, and of tensors in another form."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nadtools.analytic.covariance import Covariance
from nadtools.analytic.geometry import as_tuple, chained
from nadtools.analytic.operations import Call, Operation, Place, identity, on_positions
from nadtools.analytic.signals import Signal, flattened, reshaped, unflattened

__all__ = [
    "addition", "concatenation", "gate_at_rest", "item", "mean", "multiplication", "permutation", "reshape",
]  # fmt: skip

_GATE_NOTE = "a gate as its value at rest"


def addition(call: Call) -> Operation:
    """Branches get the same signal; what is added may be a constant."""
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


def multiplication(call: Call) -> Operation:
    """By a constant, or by a gate, which counts as constant."""
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
    name = type(call.module).__name__ if call.module is not None else call.kind
    if name.lower() not in ("sigmoid", "hardsigmoid"):
        return None
    return 0.5  # of both


def concatenation(call: Call) -> Operation:
    """Every input gets its part of the signal."""
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


def mean(call: Call) -> Operation:
    """Over positions."""
    place = call.inputs[0]
    axes = call.argument(1, "dim")
    if axes is None:
        call.refuse("it averages over everything")
    chosen = sorted(axis - 1 if axis > 0 else len(place.shape) + axis for axis in as_tuple(axes, 1))
    matrices = {a: torch.full((1, place.shape[a]), 1 / place.shape[a], dtype=torch.float64) for a in chosen}
    averaged = on_positions(call, matrices)
    kept = Place(tuple(1 if a in chosen else n for a, n in enumerate(place.shape)), place.kinds)
    if len(call.shape) == len(place.shape):
        return averaged
    return chained(averaged, _as(kept, "".join(k for a, k in enumerate(place.kinds) if a not in chosen), call))


def _as(before: Place, kinds: str, call: Call) -> Operation:
    """Another shape, axes of one kind merged or split among themselves."""
    after = Place(call.shape, kinds)
    return Operation(
        kinds,
        lambda signal, _: [reshaped(signal, before.shape, before.kinds)],
        lambda inputs: reshaped(inputs[0], after.shape, after.kinds),
    )


def reshape(call: Call) -> Operation:
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


def permutation(call: Call) -> Operation:
    """Axes in another order."""
    place, dims = call.inputs[0], len(call.inputs[0].shape) + 1
    if call.module is not None:
        order = [int(a) for a in call.module.dims]  # type: ignore[union-attr]
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


def item(call: Call) -> Operation:
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
