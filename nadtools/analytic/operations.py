"""What a rule makes of a layer: how signals go through it, forwards and backwards."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from nadtools.analytic.activations import Function, mean_squared_slope, wide_covariances
from nadtools.analytic.covariance import Covariance, Shift
from nadtools.analytic.signals import Signal

__all__ = ["Call", "NoRuleError", "Operation", "Place", "activation", "identity", "on_positions", "weights"]

Backward = Callable[[Signal, Sequence[Signal]], Sequence[Signal | None]]
Forward = Callable[[Sequence[Signal]], Signal]


class NoRuleError(NotImplementedError):
    """A layer whose effect on a covariance has not been derived."""


@dataclasses.dataclass(frozen=True)
class Place:
    """Sizes of a tensor behind the batch, and which of its axes are channels ("c") and positions ("p")."""

    shape: tuple[int, ...]
    kinds: str

    def sizes(self, kind: str) -> tuple[int, ...]:
        """Of the axes of one kind."""
        return tuple(n for n, other in zip(self.shape, self.kinds, strict=True) if other == kind)

    def index(self, axis: int) -> int:
        """The number of an axis among those of its kind; axes count from 0 behind the batch."""
        return self.kinds[:axis].count(self.kinds[axis])


@dataclasses.dataclass(frozen=True)
class Operation:
    """A layer's effect on signals.

    Attributes
    ----------
    kinds : str
        Of the axes of its result.
    backward : callable
        From the signal that comes back to its result, and the forward signals of its inputs where these are known, to
        the signal that goes back to each input; None for none.
    forward : callable or None
        From the covariances of its inputs to that of its result in the limit of infinite width; None if that is not
        derived.
    note : str
        What is approximated, if anything.
    """

    kinds: str
    backward: Backward
    forward: Forward | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Call:
    """A layer at work in a network.

    ``inputs`` are the places of the tensors that depend on the image, in order; ``args`` and ``kwargs`` are those of
    the function, with Places for such tensors and values for all else.
    """

    name: str
    kind: str
    module: nn.Module | None
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    inputs: tuple[Place, ...]
    shape: tuple[int, ...]
    signal_variance: float
    is_output: bool
    variances: Mapping[str, float]
    gate: tuple[int, float] | None  # which input is a sigmoid's result, and that one's value at rest

    def refuse(self, reason: str) -> NoReturn:
        """Say that there is no rule."""
        raise NoRuleError(
            f"{self.name} ({self.kind}): {reason}. Leave the layer out or put one with a rule in its place; or use "
            "nadtools.estimate_nads, which draws networks and takes any layer"
        )

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by position or name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)


def weights(call: Call, weight: Tensor | None, fan_in: int, suffix: str = "") -> float:
    """The variance of a layer's weights: the one given, PyTorch's default where they follow it, else measured."""
    name = call.name + suffix
    if name in call.variances:
        return call.variances[name]
    assert weight is not None
    values = weight.detach().double().flatten()
    count, square = len(values), float(values.square().mean())
    if square == 0:
        # The variance of the output layer is a factor of all eigenvalues and of nothing else.
        return 1 / (3 * fan_in) if call.is_output else 0.0
    mean = float(values.mean())
    if count >= 8 and abs(mean) > max(0.1 * square**0.5, 8 * float(values.std()) / count**0.5):
        call.refuse(
            f"its weights have mean {mean:.3g} beside a root mean square of {square**0.5:.3g}, and the recursion "
            "needs independent weights of mean zero"
        )
    default = 1 / (3 * fan_in)
    # A uniform variable has a kurtosis of 9/5: the standard error of its mean square is s² sqrt(4/5 / n).
    is_default = float(values.abs().max()) <= fan_in**-0.5 * (1 + 1e-6)
    is_default &= abs(square / default - 1) < 5 * (0.8 / count) ** 0.5
    return default if is_default else square


def bias_variance(bias: Tensor | None, fan_in: int) -> float:
    """As for weights."""
    if bias is None:
        return 0.0
    values = bias.detach().double()
    uniform = float(values.abs().max()) <= fan_in**-0.5 * (1 + 1e-6) and float(values.abs().max()) > 0
    square = float(values.square().mean())
    plausible = abs(square * 3 * fan_in - 1) < 5 * (0.8 / len(values)) ** 0.5
    return 1 / (3 * fan_in) if uniform and plausible else square


def identity(call: Call, gain: float = 1.0, note: str = "") -> Operation:
    """All signals pass, times a gain."""
    (place,) = call.inputs[:1]
    others = [None] * (len(call.inputs) - 1)
    return Operation(
        place.kinds,
        lambda signal, _: [signal.map(lambda part: part.scaled(gain)), *others],
        lambda inputs: inputs[0].map(lambda part: part.scaled(gain)),
        note,
    )


def on_positions(call: Call, matrices: Mapping[int, Tensor], note: str = "", wide: bool = True) -> Operation:
    """A linear map, the same for all channels, along axes of positions: matrices of shape (out, in) by axis."""
    (place,) = call.inputs
    if any(place.kinds[axis] != "p" for axis in matrices):
        call.refuse("it works along an axis of channels")
    indexed = {place.index(axis): matrix.to(torch.float64) for axis, matrix in matrices.items()}

    def transform(part: Covariance, transposed: bool) -> Covariance:
        for axis, matrix in indexed.items():
            part = part.congruent(axis, matrix.T if transposed else matrix)
        return part

    return Operation(
        place.kinds,
        lambda signal, _: [signal.map(lambda part: transform(part, False))],
        (lambda inputs: inputs[0].map(lambda part: transform(part, True))) if wide else None,
        note,
    )


def activation(call: Call, function: Function) -> Operation:
    """A function of single entries."""
    (place,) = call.inputs
    try:
        gain = mean_squared_slope(function, call.signal_variance)
    except RuntimeError as error:
        call.refuse(f"its derivative could not be computed ({error})")
    relative = abs(gain / mean_squared_slope(function, 4 * call.signal_variance) - 1) if gain else 0.0

    def backward(signal: Signal, inputs: Sequence[Signal]) -> list[Signal]:
        if not inputs:
            return [signal.map(lambda part: part.scaled(gain))]
        pairs = torch.stack([signal.labels.flatten(), inputs[0].labels.flatten()])
        different, labels = torch.unique(pairs, dim=1, return_inverse=True)
        slopes = [part.map(lambda k: wide_covariances(function, k)[1]) for part in inputs[0].parts]
        chosen = [(int(a), int(b)) for a, b in different.T]
        parts = tuple(signal.parts[a].times(slopes[b]) for a, b in chosen)
        origins = tuple(signal.origins[a] for a, _ in chosen)
        return [Signal(labels.view(signal.labels.shape), parts, origins)]

    return Operation(
        place.kinds,
        backward,
        lambda inputs: inputs[0].map(lambda part: part.map(lambda k: wide_covariances(function, k)[0])),
        f"its gain holds for a signal of variance {call.signal_variance:g}" if relative > 1e-6 else "",
    )


def window(
    call: Call,
    place: Place,
    shifts: Sequence[Sequence[Shift]],
    *,
    groups: int,
    channels: tuple[int, int],
    weight: float,
    bias: float,
    sizes: tuple[tuple[int, ...], tuple[int, ...]],
) -> Operation:
    """Independent weights on windows: shifts of each axis lead from the result back to the input."""
    before, after = sizes

    def back(part: Covariance) -> Covariance:
        for axis, moves in enumerate(shifts):
            part = part.shifted(axis, moves, before[axis])
        return part.scaled(weight)

    def ahead(part: Covariance) -> Covariance:
        for axis, moves in enumerate(shifts):
            part = part.shifted(axis, [(target, source) for source, target in moves], after[axis])
        part = part.scaled(weight)
        return part + Covariance.constant(after, bias) if bias else part

    return Operation(
        place.kinds,
        lambda signal, _: [signal.mixed(0, groups, channels[0], back, call.name)],
        lambda inputs: inputs[0].mixed(0, groups, channels[1], ahead, call.name),
    )
