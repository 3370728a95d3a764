"""Rules of sums, products with constants and concatenations, and of tensors in another form."""

from __future__ import annotations

import functools
import operator

import torch

from nadtools.analytic.covariance import Covariance
from nadtools.analytic.operations import Call, Operation, Place, passed

__all__ = ["addition", "concatenation", "multiplication", "permutation", "reshape"]


def addition(call: Call) -> Operation:
    """Branches get the same signal; what is added may be a constant."""
    if any(place != Place(call.shape, call.place.kinds) for place in call.inputs) or call.kwargs.get("alpha", 1) != 1:
        call.refuse("tensors of different shapes or kinds, or with a factor, are added")
    count = len(call.inputs)
    # A constant that is added has an influence on later activations only.
    forward = (lambda inputs: functools.reduce(operator.add, inputs)) if count > 1 else None
    return Operation(call.place.kinds, lambda g, _: [g] * count, forward)


def multiplication(call: Call) -> Operation:
    """By a constant, or its mean square over channels; two tensors that depend on the image have no rule."""
    constants = [a for a in (*call.args, *call.kwargs.values()) if not isinstance(a, Place) and a is not None]
    divided = "div" in call.kind
    if len(call.inputs) > 1 or len(constants) != 1 or (divided and not isinstance(call.args[0], Place)):
        call.refuse("it multiplies two tensors that depend on the image, or divides by one")
    square = float(torch.as_tensor(constants[0]).detach().double().square().mean())
    return passed(call, 1 / square if divided else square)


def concatenation(call: Call) -> Operation:
    """Of channels: every input gets its part of the signal."""
    axis = call.argument(1, "dim", 0) % (len(call.shape) + 1) - 1
    if axis != call.place.kinds.index("c") or any(place.kinds != call.place.kinds for place in call.inputs):
        call.refuse("it joins images, positions or tensors of different kinds")
    return Operation(call.place.kinds, lambda g, _: [g] * len(call.inputs))


def reshape(call: Call) -> Operation:
    """Everything becomes channels: a linear layer makes positions uncorrelated, and takes the mean of variances."""
    if call.shape == call.place.shape:
        return passed(call)
    if len(call.shape) != 1:
        call.refuse(f"it makes {call.shape} of {call.place.shape}, and only a vector has a rule")
    return Operation(
        "c",
        lambda g, _: [Covariance.product([torch.eye(size) for size in call.place.positions], g.scale)],
        lambda inputs: Covariance.constant((), float(inputs[0].diagonal().mean())),
    )


def permutation(call: Call) -> Operation:
    """The axis of channels moves; the order is read off by running the layer on a tensor of different sizes."""
    numbers = range(1, len(call.place.shape) + 1)
    order = [size - 1 for size in call.run(torch.empty(0, *numbers)).shape]
    positions = [axis for axis in order[1:] if call.place.kinds[axis] == "p"]
    if order[0] != -1 or positions != sorted(positions):
        call.refuse("it moves the axis of the images, or exchanges rows and columns")
    return passed(call, kinds="".join(call.place.kinds[axis] for axis in order[1:]))
