"""Poisoned images, and accuracies over the index and the size of the carrier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from companion.figures.curves import plot_curves
from companion.figures.images import as_pixels, frame, png
from companion.parts import (
    Array,
    ArrayLike,
    as_array,
    as_mapping,
    colour_bar,
    dropdown_layout,
    finish,
    slider_layout,
    title_height,
)
from companion.style import SEQUENTIAL

__all__ = ["plot_index_map", "plot_over_content", "plot_poisoning"]


def plot_poisoning(
    before: ArrayLike,
    after: ArrayLike,
    names: Sequence[str],
    indices: Sequence[int],
    epsilons: Sequence[float],
    title: str | None = None,
) -> go.Figure:
    """Draw images before and after poisoning, and the difference, magnified.

    A dropdown chooses the image, one slider the NAD's index, another ε. They change different properties (the picture,
    and the part of it that shows along either axis), so they can be moved in any order.

    Parameters
    ----------
    before
        Shape (images, channels, h, w), in [0, 1].
    after
        Shape (images, indices, epsilons, channels, h, w). Pixels outside [0, 1] are drawn as 0 or 1.
    names
        Of the images.
    indices, epsilons
    """
    originals, poisoned = as_array(before, "before"), as_array(after, "after")
    expected = (len(names), len(indices), len(epsilons), *originals.shape[1:])
    if originals.ndim != 4 or len(originals) != len(names) or poisoned.shape != expected or 0 in expected:
        raise ValueError(
            f"got before {originals.shape} and after {poisoned.shape} for {len(names)} images, {len(indices)} indices "
            f"and {len(epsilons)} values of epsilon; expected (images, channels, h, w) and "
            "(images, indices, epsilons, channels, h, w)"
        )
    height, width = originals.shape[2:]
    sources = []
    for original, variants in zip(originals, poisoned, strict=True):
        change = variants - original
        # Each difference fills its own range: a carrier of norm 0.05 changes a pixel by a thousandth.
        largest = np.abs(change).max((2, 3, 4), keepdims=True)
        magnified = 0.5 + change / (2 * np.where(largest > 0, largest, 1))
        sources.append([png(as_pixels(original, "before")), png(_sheet(variants)), png(_sheet(magnified))])
    titles = ("before", "after", "difference<br>(magnified)")
    figure = make_subplots(1, 3, subplot_titles=titles, horizontal_spacing=0.03)
    for column, source in enumerate(sources[0], 1):
        figure.add_trace(go.Image(source=source, hoverinfo="skip"), 1, column)
        frame(figure, column, height, width)
    buttons = [
        {"label": name, "method": "restyle", "args": [{"source": pictures}, [0, 1, 2]]}
        for name, pictures in zip(names, sources, strict=True)
    ]
    across = [
        {"label": str(index), "method": "relayout", "args": [_window("x", k, width)]} for k, index in enumerate(indices)
    ]
    down = [
        {"label": f"{epsilon:g}", "method": "relayout", "args": [_window("y", k, height)]}
        for k, epsilon in enumerate(epsilons)
    ]
    sliders = [slider_layout(across, "index of the NAD: ", 0.12), slider_layout(down, "ε = ", -0.4)]
    top, bottom = 96 + title_height(title), 180
    figure.update_layout(sliders=sliders, updatemenus=[{**dropdown_layout(buttons), "pad": {"b": 42}}])
    alt = (
        f"{title or 'Poisoning'}: an image before and after, and the magnified difference. Controls choose the "
        f"image ({', '.join(names)}), the index of the NAD ({', '.join(map(str, indices))}) and ε."
    )
    margin = {"l": 8, "r": 8, "t": top, "b": bottom}
    return finish(figure, title, alt, height=160 + top + bottom, margin=margin)


def plot_index_map(
    values: Mapping[str, ArrayLike],
    indices: Sequence[int],
    epsilons: Sequence[float],
    title: str | None = None,
) -> go.Figure:
    """Draw maps of shares over the index of the NAD and over ε, side by side, with the percentages in the cells.

    Parameters
    ----------
    values
        From the name of a map to its values, shape (epsilons, indices), in [0, 1].
    indices, epsilons
    """
    maps = {name: as_array(given, name) for name, given in as_mapping(values, "values").items()}
    for name, grid in maps.items():
        if grid.shape != (len(epsilons), len(indices)) or not grid.size:
            raise ValueError(
                f"got {name!r} of shape {grid.shape}; expected ({len(epsilons)}, {len(indices)}): (epsilons, indices)"
            )
    columns, rows = [str(index) for index in indices], [f"{epsilon:g}" for epsilon in epsilons]
    figure = make_subplots(1, len(maps), subplot_titles=list(maps), shared_yaxes=True, horizontal_spacing=0.04)
    for number, (name, grid) in enumerate(maps.items(), 1):
        figure.add_heatmap(
            x=columns, y=rows, z=np.round(grid, 4), zmin=0.0, zmax=1.0, colorscale=SEQUENTIAL,
            name=name, hovertemplate=f"{name}<br>index %{{x}}, ε = %{{y}}<br>%{{z:.1%}}<extra></extra>",
            colorbar=colour_bar((0.0, 1.0), 200, y=-0.28, tickformat=".0%"),
            row=1, col=number,
        )  # fmt: skip
        # A heatmap's own numbers are grey on green.
        figure.add_scatter(
            x=np.tile(columns, len(rows)),
            y=np.repeat(rows, len(columns)),
            text=[f"{100 * value:.0f}" for value in grid.ravel()],
            textfont={"color": np.where(grid > 0.45, "black", "white").ravel().tolist()},
            mode="text", hoverinfo="skip", showlegend=False, row=1, col=number,
        )  # fmt: skip
    figure.update_xaxes(title="index of the NAD", type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False)
    figure.update_yaxes(title="size ε", col=1)
    top, bottom = 56 + title_height(title), 110
    alt = f"{title or 'Maps'} over the index of the NAD and ε: " + "; ".join(
        f"{name} from {grid.min():.0%} to {grid.max():.0%}" for name, grid in maps.items()
    )
    margin = {"l": 60, "r": 12, "t": top, "b": bottom}
    return finish(figure, title, f"{alt}.", height=240 + top + bottom, margin=margin)


def plot_over_content(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    content: Mapping[int, float],
    epsilon: float,
    y_title: str,
    title: str | None = None,
    notes: Sequence[tuple[str, int, str, str]] = (),
) -> go.Figure:
    """Draw shares over what images hold along each NAD, in multiples of the carrier's size; lines join one NAD's.

    Parameters
    ----------
    curves
        From a name to indices of NADs and shares.
    content
        By the NAD's index.
    epsilon
        The carrier's size. A line marks where the content is as large.
    y_title, title
    notes
        What is written at points: the name of a curve, an index, a text, and where it is, in Plotly's words.
    """
    ordered, numbers = {}, {}
    for name, (given, shares) in curves.items():
        indices = as_array(given, f"indices of {name!r}").astype(int)
        size = np.array([content[index] for index in indices.tolist()]) / epsilon
        order = np.argsort(size)
        ordered[name] = (size[order], as_array(shares, f"shares of {name!r}")[order])
        numbers[name] = indices[order].tolist()
    figure = plot_curves(
        ordered, "content / ε", y_title, title, markers=tuple(ordered), x_log=True, y_format=".1%", height=290
    )
    for trace in figure.data:
        said = {index: (text, place) for name, index, text, place in notes if name == trace.name}
        texts, places = zip(*(said.get(index, ("", "top center")) for index in numbers[trace.name]), strict=True)
        trace.update(mode="markers+text", marker={"size": 9})
        trace.update(customdata=numbers[trace.name], text=texts, textposition=places)
        trace.hovertemplate = f"{trace.name}, NAD %{{customdata}}<br>content %{{x:.2~g}} ε<br>%{{y:.1%}}<extra></extra>"
    for x, *shares in zip(figure.data[0].x, *(trace.y for trace in figure.data), strict=True):
        line = {"color": "#8c8c8c", "width": 1}
        figure.add_shape(type="line", x0=x, x1=x, y0=min(shares), y1=max(shares), line=line, layer="below")
    figure.add_vline(x=1, line={"dash": "dot", "width": 1, "color": "#8c8c8c"})
    figure.add_annotation(x=0, y=1, yref="paper", yanchor="top", text="content = ε", xanchor="left", showarrow=False)
    figure.update_xaxes(dtick=1, exponentformat="none", minorloglabels="none")
    figure.update_yaxes(range=(-0.03, 0.62))
    return figure


def _sheet(variants: Array) -> Array:
    """Variants (indices, epsilons, channels, h, w) side by side, as one picture (epsilons h, indices w, 3)."""
    return np.concatenate(
        [np.concatenate([as_pixels(one, "after") for one in column], axis=0) for column in variants], axis=1
    )


def _window(axis: Literal["x", "y"], position: int, size: int) -> dict[str, list[float]]:
    """The part of the two sheets that shows, along one axis."""
    edges = [position * size - 0.5, (position + 1) * size - 0.5]
    return {f"{axis}axis{number}.range": edges[:: 1 if axis == "x" else -1] for number in (2, 3)}
