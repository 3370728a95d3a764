"""Explore the loss over two weights, and how gradient descent moves through it."""

from __future__ import annotations

import math
from typing import Any

import ipywidgets
import numpy as np

from companion.chapter_03.figures import HIGHEST, PATH, reached
from companion.chapter_03.landscape import Landscape, two_weight_landscape
from companion.explorer import SLIDER, PictureExplorer, live_only
from companion.explorer.pictures import Figure, new_figure
from companion.parts import COLOURS
from companion.style import SEQUENTIAL
from nadtools import checks

__all__ = ["LandscapeExplorer", "landscape_explorer"]


class LandscapeExplorer(PictureExplorer):
    """The loss of f(x) = θ m φ x over θ and φ, with a path of gradient descent.

    Attributes
    ----------
    m, learning_rate, sigma, start_theta, start_phi
        Controls.
    picture : ipywidgets.Image
        A PNG picture: the landscape above, the loss by step below.
    status : ipywidgets.HTML
        The curvature along φ at the start, the learning rate at which a step along φ diverges, and how far the path
        gets.
    landscape : Landscape
        What the picture shows.
    """

    landscape: Landscape

    def __init__(self, steps: int, epsilon: float) -> None:
        self._steps, self._epsilon = steps, epsilon
        self.m = ipywidgets.FloatLogSlider(
            value=1.0, min=-1.5, max=0.0, step=0.05, description="m", readout_format=".3f", **SLIDER
        )
        self.learning_rate = ipywidgets.FloatLogSlider(
            value=0.1, min=-2.0, max=1.5, step=0.05, description="learning rate", readout_format=".3f", **SLIDER
        )
        self.sigma = ipywidgets.FloatSlider(value=0.3, min=0.0, max=3.0, step=0.1, description="σ", **SLIDER)
        self.start_theta = ipywidgets.FloatSlider(
            value=1.0, min=-0.4, max=4.0, step=0.1, description="θ at the start", **SLIDER
        )
        self.start_phi = ipywidgets.FloatSlider(
            value=0.1, min=-0.4, max=4.0, step=0.1, description="φ at the start", **SLIDER
        )
        super().__init__(self.m, self.learning_rate, self.sigma, self.start_theta, self.start_phi)

    def _changed(self, _: Any = None) -> None:
        start = self.start_theta.value, self.start_phi.value
        self.landscape = two_weight_landscape(
            self.m.value,
            learning_rate=self.learning_rate.value,
            steps=self._steps,
            start=start,
            epsilon=self._epsilon,
            sigma=self.sigma.value,
        )
        curvature = 2 * (self._epsilon**2 + self.sigma.value**2) * (start[0] * self.m.value) ** 2
        steps = self.landscape.steps_to_learn
        message = (
            f"Curvature along φ at the start: {curvature:.3g}. "
            + (f"A step along φ diverges above the learning rate {2 / curvature:.3g}. " if curvature else "")
            + (f"Learned after {steps:.0f} steps." if math.isfinite(steps) else f"Not learned in {self._steps} steps.")
        )
        self._show(draw_landscape(self.landscape, f"m = {self.m.value:.3g}"), message)


def draw_landscape(landscape: Landscape, title: str) -> Figure:
    """Draw the loss with the path of descent above, and the loss by step below."""
    figure = new_figure(4.2, 5.6)
    above, below = figure.subplots(2, 1, height_ratios=[2, 1])
    drawn = (landscape.theta, landscape.phi, landscape.path, landscape.path_losses, landscape.losses)
    theta, phi, path, curve, losses = (one.numpy() for one in drawn)
    shades = {"levels": np.linspace(0, HIGHEST, 21), "cmap": SEQUENTIAL.lower()}
    filled = above.contourf(theta, phi, np.minimum(losses, HIGHEST), **shades)
    above.plot(path[:, 0], path[:, 1], "o-", color=PATH, markersize=3, linewidth=1.2)
    above.set(xlim=(theta[0], theta[-1]), ylim=(phi[0], phi[-1]), xlabel="θ", ylabel="φ")
    above.set_title(f"{title}: {reached(landscape)}", fontsize=9)
    above.grid(False)
    below.plot(curve, color=PATH)
    below.axhline(landscape.least, color=COLOURS[2], linestyle="--", linewidth=1.2)
    below.set(xlabel="step", ylabel="loss", ylim=(0, 1.1 * min(float(curve.max()), HIGHEST)))
    figure.colorbar(filled, ax=above, label="loss", ticks=[0, 0.5, 1, 1.5, 2])
    return figure


@live_only
def landscape_explorer(steps: int = 60, epsilon: float = 1.0) -> LandscapeExplorer:
    """Explore the loss over two weights: choose the prefilter's response, the learning rate, the noise and the start.

    Parameters
    ----------
    steps
        How many steps of gradient descent are drawn; at least 1.
    epsilon
        Half the distance between the classes; positive.
    """
    steps, epsilon = checks.positive_int("steps", steps), checks.positive_number("epsilon", epsilon)
    return LandscapeExplorer(steps, float(epsilon))
