"""A layer at work in a network, and what a rule makes of it: how covariances go through it, backwards and forwards.

All channels of a tensor are uncorrelated. Their covariances over positions are averaged: one stands for them all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from torch import Tensor, nn

from nadtools.analytic.covariance import Covariance

__all__ = ["Call", "NoRuleError", "Operation", "Place", "passed"]


class NoRuleError(NotImplementedError):
    """A layer whose effect on a covariance has not been derived."""


@dataclasses.dataclass(frozen=True)
class Place:
    """Sizes of a tensor behind the batch, and which of its axes are channels ("c": one) and positions ("p")."""

    shape: tuple[int, ...]
    kinds: str
    level: float = dataclasses.field(default=0.0, compare=False)  #: what a gate is where it gets 0

    @property
    def positions(self) -> tuple[int, ...]:
        """Sizes of the axes of positions."""
        return tuple(size for size, kind in zip(self.shape, self.kinds, strict=True) if kind == "p")


@dataclasses.dataclass(frozen=True)
class Operation:
    """A layer's effect on covariances."""

    kinds: str  #: of the axes of its result
    #: From the covariance that comes back to its result, and at infinite width the one that went ahead into it, to
    #: what goes back to each input; None where that is nothing.
    backward: Callable[[Covariance, Covariance | None], Sequence[Covariance | None]]
    #: From those that go ahead into its inputs to its result's, at infinite width; None if that is not derived.
    forward: Callable[[Sequence[Covariance]], Covariance] | None = None
    note: str = ""  #: what is approximated
    level: float = 0.0  #: what an activation makes of 0
    weights: bool = False  #: whether it has independent weights, after which signals are correlated with no others


@dataclasses.dataclass(frozen=True)
class Call:
    """A layer at work in a network."""

    name: str
    kind: str
    module: nn.Module | None
    function: Callable[..., Any]
    args: tuple[Any, ...]  #: Places for tensors that depend on the image, and values for all else; so are kwargs
    kwargs: Mapping[str, Any]
    inputs: tuple[Place, ...]  #: of the tensors that depend on the image, in order
    shape: tuple[int, ...]
    is_output: bool
    signal_variance: float
    variances: Mapping[str, float]

    @property
    def place(self) -> Place:
        """Of the first input."""
        return self.inputs[0]

    def refuse(self, reason: str) -> NoReturn:
        """Say that there is no rule."""
        remedy = "Put a layer with a rule in its place, or use nadtools.estimate_nads, which takes any layer"
        raise NoRuleError(f"{self.name} ({self.kind}): {reason}. {remedy}")

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by position or name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)

    def run(self, x: Tensor) -> Tensor:
        """What the layer makes of another tensor."""
        args = [x if isinstance(value, Place) else value for value in self.args]
        result: Tensor = self.function(*args, **self.kwargs)
        return result


def passed(call: Call, gain: float = 1.0, kinds: str = "", note: str = "") -> Operation:
    """The covariance times a gain, and perhaps with the tensor's axes in another order."""
    forward = None if note else lambda inputs: inputs[0].scaled(gain)
    return Operation(kinds or call.place.kinds, lambda g, _: [g.scaled(gain)], forward, note)
