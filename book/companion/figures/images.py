"""Images and what is done to them: poisoned, flipped; and accuracies over the NADs that carry or order it."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from companion.figures.curves import Curves, plot_curves
from companion.parts import (
    COLOURS,
    Array,
    ArrayLike,
    as_array,
    as_mapping,
    as_vector,
    colour_bar,
    dropdown_layout,
    finish,
    slider_layout,
    wrap,
)
from companion.style import SEQUENTIAL

__all__ = ["plot_arms", "plot_images", "plot_index_map", "plot_over_indices", "plot_poisoning"]

_FEW_POINTS = 50  # each of which is marked
_ROUND = (0, *(first * 10**power for power in range(5) for first in (1, 2, 5)))


def plot_images(
    choices: Mapping[str, Mapping[str, ArrayLike]], title: str | None = None, *, alt: str | None = None
) -> go.Figure:
    """Draw a few images in a row; a dropdown chooses the row where there are several.

    Parameters
    ----------
    choices
        From the label of a choice to the name of a panel to its image, shape (channels, h, w) or (h, w), with 1 or 3
        channels. Values in [0, 1] are drawn as they are. An image with others is stretched: its mean becomes grey, and
        three standard deviations the range. All choices have the same panels.
    title
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    TypeError, ValueError
        If an image has another shape, holds NaN, or the choices do not have the same panels.
    """
    rows = {label: as_mapping(row, f"panels of {label!r}") for label, row in as_mapping(choices, "choices").items()}
    panels = list(next(iter(rows.values())))
    for label, row in rows.items():
        if list(row) != panels:
            raise ValueError(f"got panels {list(row)} for {label!r}; expected those of the first choice, {panels}")
    drawn = {
        label: [_png(_stretched(_pixels(image, f"{label!r}, {name!r}"))) for name, image in row.items()]
        for label, row in rows.items()
    }
    height, width = _pixels(next(iter(rows.values()))[panels[0]], "image").shape[:2]
    figure = make_subplots(
        1, len(panels), subplot_titles=[name.replace(" ", "<br>") for name in panels], horizontal_spacing=0.03
    )
    for column, source in enumerate(next(iter(drawn.values())), 1):
        figure.add_trace(go.Image(source=source, hoverinfo="skip"), 1, column)
        _frame(figure, column, height, width)
    lines = wrap(title).count("<br>") + 1 if title else 0
    top = 40 + 20 * lines + 16 * max(name.count(" ") for name in panels)
    if len(drawn) > 1:
        traces = list(range(len(panels)))
        buttons = [
            {"label": label, "method": "restyle", "args": [{"source": sources}, traces]}
            for label, sources in drawn.items()
        ]
        above = 26 + 16 * max(name.count(" ") for name in panels)
        figure.update_layout(updatemenus=[{**dropdown_layout(buttons), "pad": {"b": above}}])
        top += 40
    if alt is None:
        alt = f"{title or 'Images'}: {', '.join(panels)}"
        alt += f", for one of {', '.join(drawn)}." if len(drawn) > 1 else "."
    margin = {"l": 8, "r": 8, "t": top, "b": 12}
    return finish(figure, title, alt, height=top + 12 + 660 // len(panels), margin=margin)


def plot_poisoning(
    before: ArrayLike,
    after: ArrayLike,
    names: Sequence[str],
    indices: Sequence[int],
    epsilons: Sequence[float],
    title: str | None = None,
    *,
    first: tuple[int, int] = (0, 0),
    alt: str | None = None,
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
    title
    first
        Where the sliders stand at first: positions in ``indices`` and ``epsilons``.
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    ValueError
        If the shapes do not fit each other or the labels.
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
        sources.append([_png(_pixels(original, "before")), _png(_sheet(variants)), _png(_sheet(magnified))])
    titles = ("before", "after", "difference<br>(magnified)")
    figure = make_subplots(1, 3, subplot_titles=titles, horizontal_spacing=0.03)
    for column, source in enumerate(sources[0], 1):
        figure.add_trace(go.Image(source=source, hoverinfo="skip"), 1, column)
        _frame(figure, column, height, width, *(first if column > 1 else (0, 0)))
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
    sliders = [slider_layout(across, "index of the NAD: ", -0.02), slider_layout(down, "ε = ", -0.42)]
    for slider, active in zip(sliders, first, strict=True):
        slider["active"] = active
    top, bottom = 96 + 20 * (wrap(title).count("<br>") + 1 if title else 0), 200
    figure.update_layout(sliders=sliders, updatemenus=[{**dropdown_layout(buttons), "pad": {"b": 42}}])
    if alt is None:
        alt = (
            f"{title or 'Poisoning'}: an image before and after, and the magnified difference. Controls choose the "
            f"image ({', '.join(names)}), the index of the NAD ({', '.join(map(str, indices))}) and ε."
        )
    margin = {"l": 8, "r": 8, "t": top, "b": bottom}
    return finish(figure, title, alt, height=210 + top + bottom, margin=margin)


def plot_over_indices(
    curves: Curves | Mapping[str, Curves],
    y_title: str,
    title: str | None = None,
    *,
    choose: Literal["slider", "dropdown"] | None = None,
    x_title: str = "index of the NAD",
    y_format: str = ".1%",
    **options: Any,
) -> go.Figure:
    """Draw curves over indices of NADs, on a logarithmic axis that begins with index 0.

    Parameters
    ----------
    curves, y_title, title, choose, y_format, **options
        As for :func:`companion.figures.plot_curves`; x are indices from 0. Curves of a few points
        that are neither dashed nor points alone are lines with points.
    x_title

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    TypeError, ValueError
        As :func:`companion.figures.plot_curves`.
    """
    figure = plot_curves(curves, x_title, y_title, title, choose=choose, y_format=y_format, backend="plotly", **options)
    assert isinstance(figure, go.Figure)
    indices: set[int] = set()
    for trace in figure.data:
        x = np.asarray(trace.x)
        indices |= {int(index) for index in x}
        trace.update(x=x + 1, customdata=x.astype(int))
        trace.hovertemplate = trace.hovertemplate.replace("%{x}", "%{customdata}")
        if trace.mode == "lines" and not trace.line.dash and len(x) <= _FEW_POINTS:
            trace.update(mode="lines+markers", marker={"size": 7})
    if len(indices) > _FEW_POINTS:
        indices = {tick for tick in _ROUND if min(indices) <= tick <= max(indices)}
    ticks: list[int] = []
    for index in sorted(indices, reverse=True):  # the last one has a label, and the others where there is room
        if not ticks or (ticks[-1] + 1) / (index + 1) > 1.7:
            ticks.append(index)
    figure.update_xaxes(type="log", tickvals=[tick + 1 for tick in ticks], ticktext=[str(tick) for tick in ticks])
    if figure.layout.yaxis.type == "log":
        figure.update_yaxes(dtick=1)
    # Below the axis, where it may take several lines: on a telephone it would lie under the dropdown.
    figure.update_layout(legend={"y": -0.3, "yanchor": "top"}, height=figure.layout.height + 50)
    figure.layout.margin.b += 50
    return figure


def plot_index_map(
    values: Mapping[str, ArrayLike],
    indices: Sequence[int],
    epsilons: Sequence[float],
    title: str | None = None,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    alt: str | None = None,
) -> go.Figure:
    """Draw maps of shares over the index of the NAD and over ε, with the numbers in the cells.

    Parameters
    ----------
    values
        From the name of a map to its values, shape (epsilons, indices), in [0, 1]; NaN leaves a cell blank. A dropdown
        chooses the map where there are several.
    indices, epsilons
    title
    limits
        Of the colour scale.
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    TypeError, ValueError
        If a map has another shape.
    """
    maps = {name: as_array(given, name) for name, given in as_mapping(values, "values").items()}
    for name, grid in maps.items():
        if grid.shape != (len(epsilons), len(indices)) or not grid.size:
            raise ValueError(
                f"got {name!r} of shape {grid.shape}; expected ({len(epsilons)}, {len(indices)}): (epsilons, indices)"
            )
    figure = go.Figure()
    for number, (name, grid) in enumerate(maps.items()):
        figure.add_heatmap(
            x=[str(index) for index in indices],
            y=[f"{epsilon:g}" for epsilon in epsilons],
            z=np.round(grid, 4),
            zmin=limits[0],
            zmax=limits[1],
            colorscale=SEQUENTIAL,
            visible=number == 0,
            texttemplate="%{z:.0%}",
            hovertemplate=f"{name}<br>index %{{x}}, ε = %{{y}}<br>%{{z:.1%}}<extra></extra>",
            colorbar=colour_bar((0.0, 1.0), 200, y=-0.28, tickformat=".0%"),
        )
    figure.update_xaxes(title="index of the NAD", type="category", showgrid=False)
    figure.update_yaxes(title="ε", type="category", showgrid=False)
    top, bottom = 34 + 20 * (wrap(title).count("<br>") + 1 if title else 0), 110
    if len(maps) > 1:
        buttons = [
            {"label": name, "method": "restyle", "args": [{"visible": [name == other for other in maps]}]}
            for name in maps
        ]
        figure.update_layout(updatemenus=[dropdown_layout(buttons)])
        top += 40
    if alt is None:
        alt = f"{title or 'Maps'} over the index of the NAD and ε: " + "; ".join(
            f"{name} from {np.nanmin(grid):.0%} to {np.nanmax(grid):.0%}" for name, grid in maps.items()
        )
        alt += "."
    margin = {"l": 60, "r": 12, "t": top, "b": bottom}
    return finish(figure, title, alt, height=240 + top + bottom, margin=margin)


def plot_arms(
    accuracies: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]],
    title: str | None = None,
    *,
    chance: float | None = None,
    alt: str | None = None,
) -> go.Figure:
    """Draw test accuracies as bars, in groups, with the training accuracy of each as an open circle.

    Parameters
    ----------
    accuracies
        From the group, for instance an architecture, to the name of a bar, to its test and training accuracies, one for
        each seed. A bar is their mean; more than one have their range as an error bar. Groups may lack bars.
    title
    chance
        Where a dotted line says what guessing reaches.
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    TypeError, ValueError
        If a bar is no pair of vectors of one length.
    """
    groups = {
        label: {
            name: (as_vector(pair[0], f"test of {name!r}"), as_vector(pair[1], f"train of {name!r}", len(pair[0])))
            for name, pair in as_mapping(bars, f"bars of {label!r}").items()
        }
        for label, bars in as_mapping(accuracies, "accuracies").items()
    }
    names = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    figure = go.Figure()
    for number, name in enumerate(names):
        colour = COLOURS[number % len(COLOURS)]
        having = {label: bars[name] for label, bars in groups.items() if name in bars}
        test = np.array([pair[0].mean() for pair in having.values()])
        train = np.array([pair[1].mean() for pair in having.values()])
        above = np.array([pair[0].max() for pair in having.values()]) - test
        below = test - np.array([pair[0].min() for pair in having.values()])
        common = {
            "x": [label.replace(" ", "<br>") for label in having],
            "name": name,
            "offsetgroup": name,
            "legendgroup": name,
        }
        hover = f"{name}<br>%{{x}}<br>SPLIT %{{y:.1%}}<extra></extra>"
        error = {"array": above, "arrayminus": below, "symmetric": False, "visible": bool((above + below).any())}
        figure.add_bar(
            y=test, marker={"color": colour}, error_y=error, hovertemplate=hover.replace("SPLIT", "test"), **common
        )
        figure.add_scatter(
            y=train,
            mode="markers",
            marker={"symbol": "circle-open", "size": 8, "color": colour, "line": {"width": 2}},
            hovertemplate=hover.replace("SPLIT", "train"),
            showlegend=False,
            **common,
        )
    if chance is not None:
        figure.add_hline(y=chance, line={"dash": "dot", "width": 1, "color": "#8c8c8c"})
    figure.update_yaxes(title="accuracy", range=[0, 1.04], tickformat=".0%")
    if alt is None:
        alt = f"{title or 'Accuracies'}: " + "; ".join(
            f"{label}: " + ", ".join(f"{name} {pair[0].mean():.0%}" for name, pair in bars.items())
            for label, bars in groups.items()
        )
        alt += ". Circles: training accuracy."
    top = 34 + 20 * (wrap(title).count("<br>") + 1 if title else 0)
    legend = {"y": -0.2, "yanchor": "top"}
    layout = {"barmode": "group", "scattermode": "group", "bargap": 0.25, "scattergap": 0.25}
    margin = {"l": 60, "r": 12, "t": top, "b": 110}
    return finish(figure, title, alt, height=260 + top + 110, margin=margin, legend=legend, **layout)


# ---------------------------------------------------------------------------------------------------------------------
# Pictures
# ---------------------------------------------------------------------------------------------------------------------


def _pixels(image: Any, name: str) -> Array:
    """An image as (h, w, 3)."""
    array = as_array(image, name)
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.shape[0] not in (1, 3) or 0 in array.shape:
        raise ValueError(f"got the image {name} of shape {array.shape}; expected (1 or 3 channels, height, width)")
    if not np.isfinite(array).all():
        raise ValueError(f"got NaN or infinite pixels in the image {name}; expected finite numbers")
    return np.broadcast_to(np.moveaxis(array, 0, 2), (*array.shape[1:], 3))


def _stretched(pixels: Array) -> Array:
    if pixels.min() >= 0 and pixels.max() <= 1:
        return pixels
    deviation = float(pixels.std())
    return 0.5 + (pixels - pixels.mean()) / (6 * deviation if deviation > 0 else 1.0)


def _sheet(variants: Array) -> Array:
    """Variants (indices, epsilons, channels, h, w) side by side, as one picture (epsilons h, indices w, 3)."""
    return np.concatenate(
        [np.concatenate([_pixels(one, "after") for one in column], axis=0) for column in variants], axis=1
    )


def _png(pixels: Array) -> str:
    """A picture as the address that a page can draw it from."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.round(255 * np.clip(pixels, 0, 1)).astype(np.uint8)).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _window(axis: Literal["x", "y"], position: int, size: int) -> dict[str, list[float]]:
    """The part of the two sheets that shows, along one axis."""
    edges = [position * size - 0.5, (position + 1) * size - 0.5]
    return {f"{axis}axis{number}.range": edges[:: 1 if axis == "x" else -1] for number in (2, 3)}


def _frame(figure: go.Figure, column: int, height: int, width: int, across: int = 0, down: int = 0) -> None:
    """Show one image of a sheet, without an axis around it."""
    subplot = figure.get_subplot(1, column)
    hidden = {"visible": False, "fixedrange": True, "constrain": "domain"}
    subplot.xaxis.update(range=[across * width - 0.5, (across + 1) * width - 0.5], **hidden)
    subplot.yaxis.update(
        range=[(down + 1) * height - 0.5, down * height - 0.5],
        scaleanchor=subplot.xaxis.plotly_name.replace("axis", ""),
        constraintoward="top",
        **hidden,
    )
