"""Explore what is learned along NADs, and along mixtures of two of them."""

from __future__ import annotations

import math
from typing import Any

import ipywidgets
import torch
from torch import Tensor

from companion.explorer import SLIDER, DirectionExplorer, live_only
from companion.explorer.pictures import draw_direction
from nadtools import checks
from nadtools.nads import NADs

__all__ = ["MixtureExplorer", "mixture_explorer"]


class MixtureExplorer(DirectionExplorer):
    """A direction between two NADs, its alignment, and a training on it that can be watched and stopped.

    Built by :func:`mixture_explorer`. It is a :class:`~companion.explorer.DirectionExplorer` whose direction
    is cos t · u_a + sin t · u_b.

    Attributes
    ----------
    first, second
        Sliders: the indices a and b.
    angle
        Slider: t in degrees; 0 is u_a itself.
    """

    def __init__(self, nads: NADs, seed: int, device: str | torch.device | None, num_samples: int) -> None:
        checks.instance("nads", nads, NADs, "NADs, as estimate_nads returns them")
        if len(nads.image_shape) != 2:
            raise ValueError(f"got NADs of images of shape {nads.image_shape}; expected one channel, (height, width)")
        self._nads = nads
        last = len(nads.vectors) - 1
        self.first = ipywidgets.IntSlider(value=0, min=0, max=last, description="NAD a", **SLIDER)
        self.second = ipywidgets.IntSlider(value=min(1000, last), min=0, max=last, description="NAD b", **SLIDER)
        self.angle = ipywidgets.IntSlider(value=45, min=0, max=90, step=5, description="angle t, °", **SLIDER)
        super().__init__((nads.image_shape[0], nads.image_shape[1]), seed, device, num_samples)
        own = (self.first, self.second, self.angle)
        waves = (self.frequency_i, self.frequency_j, self.phase)
        column = self.ui.children[0]
        column.children = (*own, *(control for control in column.children if control not in waves))
        self._fixed_while_running = (*own, *self._fixed_while_running)
        for control in own:
            control.observe(self._direction_changed, "value")

    def direction(self) -> Tensor:
        """Return the direction that the sliders name, of unit norm and shape (h, w)."""
        t = math.radians(self.angle.value)
        u = self._nads.vectors
        v = math.cos(t) * u[self.first.value] + math.sin(t) * u[self.second.value]
        return v / v.norm()

    @property
    def alignment(self) -> float:
        """α(v), as a multiple of the mean eigenvalue."""
        return self._nads.alignment(self.direction()) / float(self._nads.eigenvalues.mean())

    def _direction_changed(self, _: Any = None) -> None:
        t = self.angle.value
        name = f"v = cos {t}° · u({self.first.value}) + sin {t}° · u({self.second.value})"
        self._say(f"{name}: α(v) is {self.alignment:.2g} times the mean eigenvalue.")
        direction = self.direction()
        self._show(self.direction_image, lambda: draw_direction(direction))
        self._samples_changed()


@live_only
def mixture_explorer(
    nads: NADs, seed: int = 0, device: str | torch.device | None = None, num_samples: int = 3000
) -> MixtureExplorer:
    """Explore D(v) between two NADs: choose both and the angle, look at α(v), and watch a training."""
    return MixtureExplorer(nads, seed, device, num_samples)
