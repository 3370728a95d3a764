"""Explore pooling: a wave, the layer, the bins that its frequencies fall into, and what can still be read off."""

from __future__ import annotations

import math
from typing import Any, get_args

import ipywidgets
import numpy as np
import torch

from companion.explorer import LABELS, SLIDER, PictureExplorer, live_only
from companion.explorer.pictures import Figure, new_figure
from companion.parts import COLOURS
from nadtools.checks import check_shape
from nadtools.theory.pooling import PrefilterName, fourier_accuracies, pooling_matrix, spectral_response

__all__ = ["AliasingExplorer", "aliasing_explorer"]


class AliasingExplorer(PictureExplorer):
    """A wave before and after pooling, and its frequency among those that share its bin.

    Attributes
    ----------
    frequency, phase, stride, prefilter, ratio
        Controls. ``ratio`` is ε/σ.
    picture : ipywidgets.Image
        A PNG picture: the wave and its samples above, the spectrum below.
    status : ipywidgets.HTML
        The aliases, and the best accuracy after the layer.
    accuracy : float
        That accuracy.
    """

    def __init__(self, size: int) -> None:
        (self._size,) = check_shape("size", (size,), (1,))
        strides = [s for s in range(1, self._size // 2 + 1) if self._size % s == 0 and s <= 16]
        self.frequency = ipywidgets.IntSlider(value=9, min=0, max=self._size // 2, description="frequency ℓ", **SLIDER)
        self.phase = ipywidgets.FloatSlider(
            value=0.0, min=0.0, max=math.pi, step=math.pi / 16, description="phase", readout_format=".2f", **SLIDER
        )
        stride = 4 if 4 in strides else strides[-1]
        self.stride = ipywidgets.SelectionSlider(options=strides, value=stride, description="stride S", **SLIDER)
        self.prefilter = ipywidgets.Dropdown(options=get_args(PrefilterName), description="prefilter", **LABELS)
        self.ratio = ipywidgets.FloatLogSlider(value=1.0, min=-1, max=1, step=0.1, description="ε/σ", **SLIDER)
        super().__init__(self.frequency, self.phase, self.stride, self.prefilter, self.ratio)

    def _changed(self, _: Any = None) -> None:
        size, stride, frequency = self._size, self.stride.value, self.frequency.value
        layer = (self.prefilter.value, stride)
        curve = fourier_accuracies(*layer, self.ratio.value, 1.0, size=size, phase=self.phase.value)
        self.accuracy = float(curve[frequency])
        bins = size // stride
        aliases = sorted({(frequency + k * bins) % size for k in range(1, stride)})
        shared = f"shares bin {frequency % bins} with {', '.join(map(str, aliases))}" if aliases else "is alone"
        energy = spectral_response(layer[0], size, stride).abs().square().numpy()
        message = f"ℓ = {frequency} {shared}. Best accuracy: {self.accuracy:.1%}."
        self._show(self._draw(energy, aliases), message)

    def _draw(self, energy: np.ndarray, aliases: list[int]) -> Figure:
        size, frequency, stride = self._size, self.frequency.value, self.stride.value
        figure = new_figure(6.4, 4.6)
        above, below = figure.subplots(2, 1)
        fine = np.linspace(0, size, 16 * size, endpoint=False)
        above.plot(fine, np.cos(2 * np.pi * frequency * fine / size - self.phase.value), color="#c8c8c8", linewidth=1)
        wave = torch.cos(2 * math.pi * frequency * torch.arange(size, dtype=torch.float64) / size - self.phase.value)
        pooled = pooling_matrix(self.prefilter.value, stride, size) @ wave
        above.plot(np.arange(0, size, stride), pooled.numpy(), "o-", color=COLOURS[0], markersize=3, linewidth=1)
        above.set(xlabel="sample", ylabel="wave, pooled", ylim=(-1.1, 1.1))
        below.plot(energy, color=COLOURS[0], label="|m̂|²")
        below.plot(frequency, energy[frequency], "o", color=COLOURS[1], label="ℓ")
        if aliases:
            below.plot(aliases, energy[aliases], "o", color=COLOURS[3], label="aliases")
        below.set(xlabel="frequency", ylim=(-0.05, 1.05 * max(1.0, float(energy.max()))))
        below.legend(frameon=False)
        return figure


@live_only
def aliasing_explorer(size: int = 128) -> AliasingExplorer:
    """Explore what linear pooling does to a wave: choose its frequency and phase, the stride and the prefilter.

    Parameters
    ----------
    size
        D, the number of samples of the signal. Strides are its divisors up to 16.
    """
    return AliasingExplorer(size)
