"""What explorers draw: pictures that follow a slider at once, by matplotlib and without its list of open figures."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from companion.parts import COLOURS, colour_of, energy_of
from companion.style import DIVERGING, SEQUENTIAL
from nadtools.training import TrainResult

__all__ = ["Figure", "draw_curves", "draw_direction", "draw_history", "draw_samples", "new_figure", "png"]


def new_figure(width: float, height: float, title: str | None = None) -> Figure:
    """Return an empty figure of this size in inches."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
    if title:
        figure.suptitle(title, fontsize=11, x=0.02, ha="left", wrap=True)
    return figure


def png(figure: Figure) -> bytes:
    """Return a figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=90, facecolor="none")
    return buffer.getvalue()


def draw_direction(v: Tensor, title: str | None = None) -> Figure:
    """Draw a direction, shape (h, w), in pixels, and the share of its energy at each Fourier frequency."""
    pixels = v.double().numpy()
    height, width = pixels.shape
    left_end, top = -(width // 2) - 0.5, -(height // 2) - 0.5
    limit = float(np.abs(pixels).max())
    figure = new_figure(6.4, 3.2, title)
    figure.set_layout_engine("compressed")
    left, right = figure.subplots(1, 2)
    looks = {"interpolation": "nearest"}
    image = left.imshow(pixels, cmap=DIVERGING, vmin=-limit, vmax=limit, **looks)
    figure.colorbar(image, ax=left, shrink=0.8)
    left.set(xlabel="column", ylabel="row")
    extent = (left_end, left_end + width, top + height, top)
    image = right.imshow(energy_of(pixels), cmap=SEQUENTIAL.lower(), vmin=0, extent=extent, **looks)
    figure.colorbar(image, ax=right, shrink=0.8)
    right.set(xlabel="frequency j", ylabel="frequency i")
    for axes, name in ((left, "pixels"), (right, "Fourier energy")):
        axes.set_title(name, fontsize=10)
        axes.grid(False)
    return figure


def draw_samples(x: Tensor, y: Tensor) -> Figure:
    """Draw samples, shape (n, 1, h, w), in a row, each under its class 2y − 1, on one colour scale."""
    limit = float(x.abs().max())
    figure = new_figure(max(1.2 * len(x), 2.4), 1.6)
    for axes, image, label in zip(figure.subplots(1, len(x), squeeze=False)[0], x[:, 0], y, strict=True):
        axes.imshow(image.numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")
        axes.grid(False)
        axes.set(xticks=[], yticks=[])
        axes.set_title("y = +1" if label else "y = −1", fontsize=9, loc="center")
    return figure


def draw_history(result: TrainResult, architecture: str) -> Figure:
    """Draw accuracy and loss after each epoch; solid lines on the test set, dotted ones on the training set."""
    figure, history = new_figure(6.4, 4.4, architecture), result.history
    panels = figure.subplots(2, 1, sharex=True)
    for axes, quantity in zip(panels, ("accuracy", "loss"), strict=True):
        for kind, dash in (("test", "-"), ("train", ":")):
            marker = "." if len(history) == 1 else None
            values = history[f"{kind}_{quantity}"]
            axes.plot(history["epoch"], values, dash, color=colour_of(architecture, 0), label=kind, marker=marker)
        axes.set_ylabel(quantity)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    panels[0].yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    panels[1].set_xlabel("epoch")
    panels[1].xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def draw_curves(
    curves: Mapping[str, Sequence[float]], x: Sequence[float], x_title: str, y_title: str, y_range: tuple[float, float]
) -> Figure:
    """Draw curves over one axis."""
    figure = new_figure(6.4, 3.4)
    axes = figure.subplots()
    for number, (name, y) in enumerate(curves.items()):
        axes.plot(x, y, label=name, color=COLOURS[number % len(COLOURS)])
    axes.set(xlabel=x_title, ylabel=y_title, ylim=y_range)
    axes.legend(frameon=False)
    return figure
