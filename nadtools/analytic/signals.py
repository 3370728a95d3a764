r"""Random signals on a network's tensors: independent channels, each with a covariance over positions.

A tensor's axes behind the batch are *channels* ("c") or *positions* ("p"). Weights are drawn independently for each
channel and shared by all positions. So the entries of a signal are uncorrelated between channels, and many channels
have the same covariance: they are kept as labels, one for each channel, and the covariances that these point to.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from nadtools.analytic.covariance import Covariance

__all__ = ["Signal", "flattened", "reshaped", "unflattened"]

Origin = frozenset[tuple[object, ...]]


@dataclasses.dataclass(frozen=True, eq=False)
class Signal:
    """A random signal whose channels are uncorrelated.

    Attributes
    ----------
    labels : Tensor
        For each channel the index of its covariance: int64, of the shape of the channels.
    parts : tuple of Covariance
    origins : tuple of frozenset
        For each part, which random layers it comes from: signals are independent where these are different.
    """

    labels: Tensor
    parts: tuple[Covariance, ...]
    origins: tuple[Origin, ...]

    @classmethod
    def uniform(cls, channels: Sequence[int], part: Covariance, origin: str) -> Signal:
        """The same covariance in all channels."""
        return cls(torch.zeros(tuple(channels), dtype=torch.int64), (part,), (frozenset([(origin,)]),))

    def map(self, function: Callable[[Covariance], Covariance]) -> Signal:
        """Apply a function to every covariance."""
        return dataclasses.replace(self, parts=tuple(map(function, self.parts)))

    def relabelled(self, function: Callable[[Tensor], Tensor]) -> Signal:
        """Rearrange the channels."""
        return dataclasses.replace(self, labels=function(self.labels))

    def marked(self, *mark: object) -> Signal:
        """Say that these channels are others than those that other marks are given to."""
        origins = tuple(frozenset((*source, *mark) for source in origin) for origin in self.origins)
        return dataclasses.replace(self, origins=origins)

    def __add__(self, other: Signal) -> Signal:
        pairs = torch.stack([self.labels.flatten(), other.labels.flatten()])
        different, labels = torch.unique(pairs, dim=1, return_inverse=True)
        chosen = [(int(a), int(b)) for a, b in different.T]
        for a, b in chosen:
            if self.parts[a].scale and other.parts[b].scale and self.origins[a] & other.origins[b]:
                raise DependentSignals
        return Signal(
            labels.view(self.labels.shape),
            tuple(self.parts[a] + other.parts[b] for a, b in chosen),
            tuple(self.origins[a] | other.origins[b] for a, b in chosen),
        )

    def mixed(
        self, axis: int, groups: int, size: int, apply: Callable[[Covariance], Covariance], origin: str, copies: int = 1
    ) -> Signal:
        """Pass an axis of channels through independent weights, which join all channels of a group.

        Every new channel has the sum of a group's covariances, to which ``apply`` is applied.
        """
        rows = self.labels.movedim(axis, -1).unflatten(-1, (groups, -1))
        counts = torch.zeros(*rows.shape[:-1], len(self.parts), dtype=torch.float64)
        counts.scatter_add_(-1, rows, torch.ones(rows.shape, dtype=torch.float64))
        different, labels = torch.unique(counts.flatten(0, -2), dim=0, return_inverse=True)
        parts = []
        for row in different:
            used = [part.scaled(float(n)) for part, n in zip(self.parts, row, strict=True) if n]
            total = used[0]
            for part in used[1:]:
                total = total + part
            parts.append(apply(total.scaled(copies)))
        spread = labels.view(rows.shape[:-1]).repeat_interleave(size // groups, dim=-1)
        return Signal(spread.movedim(-1, axis), tuple(parts), (frozenset([(origin,)]),) * len(parts))

    def mean(self) -> Covariance:
        """The mean of the channels' covariances."""
        counts = torch.bincount(self.labels.flatten(), minlength=len(self.parts)).tolist()
        used = [p.scaled(n / self.labels.numel()) for p, n in zip(self.parts, counts, strict=True) if n]
        total = used[0]
        for part in used[1:]:
            total = total + part
        return total

    def joined(self, other: Signal, axis: int) -> Signal:
        """Concatenate along an axis of channels."""
        labels = torch.cat([self.labels, other.labels + len(self.parts)], dim=axis)
        return Signal(labels, self.parts + other.parts, self.origins + other.origins)


class DependentSignals(ValueError):
    """Two signals to be added that are not independent."""


def flattened(signal: Signal, kinds: str) -> Signal:
    """Make channels of all positions: only their variances are kept, which is all that a linear layer uses."""
    variances = torch.stack([part.diagonal() for part in signal.parts])[signal.labels]
    different, labels = torch.unique(variances.permute(_to_tensor(kinds)).flatten(), return_inverse=True)
    origin = frozenset[tuple[object, ...]]().union(*signal.origins)
    parts = tuple(Covariance((), float(value), ()) for value in different)
    return Signal(labels, parts, (origin,) * len(parts))


def unflattened(signal: Signal, shape: Sequence[int], kinds: str) -> Signal:
    """The inverse of :func:`flattened`: positions that are uncorrelated, as the features were."""
    order = [axis for kind in "cp" for axis, other in enumerate(kinds) if other == kind]
    sizes = [shape[axis] for axis in order]
    number = kinds.count("c")
    labels = signal.labels.reshape(tuple(shape)).permute(order).reshape(math.prod(sizes[:number]), -1)
    different, which = torch.unique(labels, dim=0, return_inverse=True)
    parts, origins = [], []
    for row in different:
        values = torch.stack([torch.tensor(signal.parts[int(i)].scale, dtype=torch.float64) for i in row.unique()])
        if len(values) == 1:
            parts.append(Covariance.identity(sizes[number:], float(values)))
        else:
            every = torch.tensor([part.scale for part in signal.parts], dtype=torch.float64)
            parts.append(Covariance.from_matrix(torch.diag(every[row]), sizes[number:]))
        origins.append(frozenset[tuple[object, ...]]().union(*(signal.origins[int(i)] for i in row.unique())))
    return Signal(which.reshape(sizes[:number]), tuple(parts), tuple(origins))


def reshaped(signal: Signal, shape: Sequence[int], kinds: str) -> Signal:
    """With axes of channels or of positions merged or split among themselves."""
    channels = [n for n, kind in zip(shape, kinds, strict=True) if kind == "c"]
    positions = [n for n, kind in zip(shape, kinds, strict=True) if kind == "p"]
    return signal.relabelled(lambda labels: labels.reshape(channels)).map(lambda part: part.reshaped(positions))


def _to_tensor(kinds: str) -> list[int]:
    """The order that takes axes (channels..., positions...) to those of the tensor."""
    channels, positions = iter(range(kinds.count("c"))), iter(range(kinds.count("c"), len(kinds)))
    return [next(channels if kind == "c" else positions) for kind in kinds]
