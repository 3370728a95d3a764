"""Train on two directions at once, and watch which of them the network takes."""

from __future__ import annotations

import math
import operator
from typing import Any

import ipywidgets
import numpy as np
import torch
from torch import nn

from companion.chapter_10.figures import INK, POINTS
from companion.explorer import SLIDER, TwoPartExplorer, live_only
from companion.explorer.pictures import Figure, new_figure
from companion.explorer.two_parts import POINTS_AT_THE_END
from companion.style import DIVERGING
from nadtools import checks
from nadtools.boundaries import CrossSection, boundary_angle, cross_section
from nadtools.distributions import Concatenated, LinearlySeparable, concatenate
from nadtools.nads import NADs
from nadtools.training import Data

__all__ = ["PairExplorer", "pair_explorer"]

_EXTENT = 2.0


class PairExplorer(TwoPartExplorer):
    """A training on D(v₁)⊕D(v₂) whose decision boundary can be watched.

    Attributes
    ----------
    architecture, first, second, epsilon_first, epsilon_second, epochs
        Controls. ``first`` and ``second`` are indices of NADs.
    picture : ipywidgets.Image
        The boundary in the plane of v₁ and v₂; it moves with each epoch.
    history : list of dict
        Test accuracies after each epoch: with both channels, with the first alone and with the second alone.
    """

    names = ("only the first", "only the second")

    def __init__(self, nads: NADs, seed: int, device: str | torch.device | None, num_samples: int) -> None:
        super().__init__(nads, seed, device)
        checks.integer("num_samples", num_samples, 2, expected="at least 2")
        self._num_samples = operator.index(num_samples)
        self.first, self.second = self._index_slider(0, "v₁ is NAD"), self._index_slider(300, "v₂ is NAD")
        size: dict[str, Any] = {"min": 0.1, "max": 3.0, "step": 0.1, **SLIDER}
        self.epsilon_first = ipywidgets.FloatSlider(value=1.0, description="ε₁", **size)
        self.epsilon_second = ipywidgets.FloatSlider(value=0.5, description="ε₂", **size)
        self._complete(self.first, self.second, self.epsilon_first, self.epsilon_second)

    def problems(self) -> tuple[Concatenated, Concatenated]:
        """Return D(v₁)⊕D(v₂), to train and to test on; it is one problem, and the samples are two draws."""
        one = LinearlySeparable(self._vectors[self.first.value], self.epsilon_first.value, 1.0)
        other = LinearlySeparable(self._vectors[self.second.value], self.epsilon_second.value, 1.0)
        problem = concatenate(one, other)
        return problem, problem

    def _size(self, problem: Concatenated) -> int:
        return self._num_samples

    def _draw(self, network: nn.Module, problem: Concatenated, test_data: Data, points: int) -> Figure:
        first, second = (problem.direction(part) for part in (0, 1))
        section = cross_section(network, test_data[0][:points], first, second, _EXTENT, 21, progress=False)
        epsilons = self.epsilon_first.value, self.epsilon_second.value
        return draw_section(section, epsilons, f"after epoch {len(self.history)}")

    def _verdict(self, network: nn.Module, problem: Concatenated, test_data: Data) -> str:
        first, second = (problem.direction(part) for part in (0, 1))
        angle = boundary_angle(network, test_data[0][:POINTS_AT_THE_END], first, second, dtype=torch.float32)
        lies = f"at {math.degrees(angle.to_first):.0f}° to v₁" if math.isfinite(angle.to_first) else "out of sight"
        widest = math.degrees(math.atan2(self.epsilon_first.value, self.epsilon_second.value))
        margin = f"maximum margin would have it at {widest:.0f}°"
        return f"{super()._verdict(network, problem, test_data)} The boundary is {lies}; {margin}."


def draw_section(section: CrossSection, epsilons: tuple[float, float], title: str) -> Figure:
    """Draw a decision function and its boundary; the dots are the classes, the dotted line is of maximum margin."""
    figure = new_figure(3.2, 3.1)
    axes, axis, (one, other) = figure.subplots(), section.first.numpy(), epsilons
    values = (section.values / section.values.abs().max().clamp(min=1e-300)).numpy()
    limit = float(axis[-1])
    axes.pcolormesh(axis, axis, values, cmap=DIVERGING, vmin=-1, vmax=1, shading="nearest")
    if np.isfinite(values).all() and values.min() < 0 < values.max():
        axes.contour(axis, axis, values, levels=[0.0], colors=INK)
    axes.plot(limit * np.array([-other, other]) / one, [limit, -limit], ":", color=INK, linewidth=1)
    axes.scatter([-one, one], [-other, other], c=list(POINTS), edgecolors="white", zorder=3)
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), xlabel="along v₁", ylabel="along v₂", aspect="equal")
    axes.grid(False)
    axes.set_title(title, fontsize=9)
    return figure


@live_only
def pair_explorer(
    nads: NADs, seed: int = 0, device: str | torch.device | None = None, num_samples: int = 3000
) -> PairExplorer:
    """Explore D(v₁)⊕D(v₂): choose a network and two NADs, train, and watch the decision boundary turn."""
    return PairExplorer(nads, seed, device, num_samples)
