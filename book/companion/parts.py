"""What the figures share: reading input, axes, colour bars, controls, titles."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from numpy.typing import NDArray
from plotly.subplots import make_subplots
from scipy.stats import spearmanr
from torch import Tensor

from companion.style import ARCHITECTURE_COLOURS, SEQUENTIAL, describe, symmetric_limits
from nadtools.directions import fourier_energy

__all__ = [
    "COLOURS",
    "Array",
    "ArrayLike",
    "as_array",
    "as_direction",
    "as_images",
    "as_mapping",
    "as_vector",
    "check_columns",
    "chooser",
    "colour_bar",
    "colour_of",
    "dropdown_layout",
    "energy_of",
    "energy_trace",
    "finish",
    "frequencies_of",
    "grid_plotly",
    "percent",
    "pixel_trace",
    "rank_correlation",
    "sentence",
    "short",
    "slider_layout",
    "square_cells",
    "wrap",
]

Array: TypeAlias = NDArray[Any]

ArrayLike: TypeAlias = Tensor | Array | Sequence[Any]

# Titles are wrapped by hand, since Plotly does not; this many characters fit on a telephone.
_TITLE_WIDTH = 44

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c"]


def as_array(values: Any, name: str) -> Array:
    """Values as a float64 array on the CPU."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"got {name} of type {type(values).__name__}; expected numbers: an array or a tensor") from None


def as_vector(values: Any, name: str, length: int | None = None, what: str = "") -> Array:
    """Values as a non-empty float64 vector, of the given length if there is one."""
    array = as_array(values, name)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"got {name} of shape {array.shape}; expected a non-empty vector")
    if length is not None and array.size != length:
        raise ValueError(f"got {array.size} values in {name}; expected {length}, one for each {what}")
    return array


def as_direction(v: Any, name: str = "v") -> Array:
    """Read a direction as a (h, w) array."""
    array = as_array(v, name)
    if array.ndim == 3 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 2 or min(array.shape) < 2:
        raise ValueError(
            f"got {name} of shape {array.shape}; expected (height, width), at least 2 x 2 "
            "(draw a direction in colour one channel at a time: v[c])"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"got {name} with NaN or infinite entries; expected finite numbers")
    if not array.any():
        raise ValueError(f"got {name} = 0, which has no direction; expected a non-zero vector")
    return array


def energy_of(v: Array) -> Array:
    """The share of the energy at each frequency, zero frequency in the middle."""
    energy: Array = fourier_energy(torch.from_numpy(np.ascontiguousarray(v, dtype=float))).numpy()
    return energy


def as_mapping(values: Any, name: str) -> dict[str, Any]:
    """Return a copy of a non-empty dict, with labels as text."""
    if not isinstance(values, Mapping):
        raise TypeError(f"got {name} of type {type(values).__name__}; expected a dict from labels to values")
    if not values:
        raise ValueError(f"got an empty dict of {name}; expected at least one entry")
    return {str(label): value for label, value in values.items()}


def as_images(x: Any, y: Any) -> tuple[Array, Array]:
    """Read samples as (n, h, w) images and labels 0 and 1."""
    images, labels = as_array(x, "x"), as_array(y, "y")
    if images.ndim == 4 and images.shape[1] == 1:
        images = images[:, 0]
    if images.ndim != 3:
        raise ValueError(f"got x of shape {images.shape}; expected (n, 1, height, width)")
    if labels.shape != (len(images),) or not len(images):
        raise ValueError(f"got y of shape {labels.shape} for {len(images)} samples in x; expected one label for each")
    if not np.isin(labels, (0, 1)).all():
        raise ValueError("got labels other than 0 and 1 in y; the sign of a class is 2y - 1")
    return images, labels.astype(int)


def wrap(title: str | None) -> str:
    """Break a title into lines."""
    if not title or "<" in title:
        return title or ""
    return "<br>".join(textwrap.wrap(title, _TITLE_WIDTH))


def title_height(title: str | None) -> int:
    """How many pixels a title takes."""
    return 20 * (wrap(title).count("<br>") + 1) if title else 0


def buttons_for(labels: Iterable[str], groups: Sequence[Hashable]) -> list[dict[str, Any]]:
    """Buttons, or steps of a slider, of which the k-th shows the traces of group k and hides the others."""
    return [
        {"label": label, "method": "restyle", "args": [{"visible": [group == number for group in groups]}]}
        for number, label in enumerate(labels)
    ]


def colour_of(label: str, number: int) -> str:
    """The colour of an architecture, by its key or its name, or of the curve with this number."""
    return ARCHITECTURE_COLOURS.get(label.lower().replace("-", ""), COLOURS[number % len(COLOURS)])


def frequencies_of(size: int) -> Array:
    """The frequencies of an axis, zero frequency in the middle."""
    return np.arange(size) - size // 2


def pixel_trace(v: Array, limit: float | None = None, **options: Any) -> go.Heatmap:
    """A heat map of a direction, with zero in the middle of the colour scale."""
    # float32 reaches the page as binary data, at a third of the size of written numbers.
    limits = symmetric_limits(v if limit is None else [limit])
    hover = "row %{y}, column %{x}<br>value %{z:.3g}<extra></extra>"
    return go.Heatmap(z=v.astype(np.float32), hovertemplate=hover, **{**limits, "showscale": False, **options})


def energy_trace(v: Array, **options: Any) -> go.Heatmap:
    """A heat map of a direction's Fourier energy."""
    energy = energy_of(v)
    return go.Heatmap(
        x=frequencies_of(energy.shape[1]),
        y=frequencies_of(energy.shape[0]),
        z=energy.astype(np.float32),
        colorscale=SEQUENTIAL,
        zmin=0.0,
        zmax=float(energy.max()),
        hovertemplate="frequency (%{y}, %{x})<br>%{z:.2%} of the energy<extra></extra>",
        **{"showscale": False, **options},
    )


def square_cells(figure: go.Figure, row: int, column: int, image: Array, frequency: bool) -> Any:
    """Give an image, or its frequency plane, square cells and row 0 at the top; returns the x axis."""
    height, width = image.shape
    first_row, first_column = (-(height // 2), -(width // 2)) if frequency else (0, 0)
    subplot = figure.get_subplot(row, column)
    common = {"showgrid": False, "zeroline": False, "constrain": "domain", "nticks": 5}
    if not frequency:
        common |= {"showticklabels": False, "ticks": ""}
    subplot.xaxis.update(range=[first_column - 0.5, first_column + width - 0.5], **common)
    subplot.yaxis.update(
        range=[first_row + height - 0.5, first_row - 0.5],
        scaleanchor=subplot.xaxis.plotly_name.replace("axis", ""),
        constraintoward="top",
        **common,
    )
    return subplot.xaxis


def colour_bar(domain: Sequence[float], length: int = 130, **options: Any) -> dict[str, Any]:
    """Place a short horizontal colour bar, ``length`` pixels long, below a panel that spans ``domain``."""
    return {
        "orientation": "h",
        "x": (domain[0] + domain[1]) / 2,
        "xanchor": "center",
        "yanchor": "top",
        "lenmode": "pixels",
        "len": length,
        "tickfont": {"size": 11},
        **options,
    }


def chooser(
    kind: Literal["slider", "dropdown"],
    labels: Sequence[str],
    groups: Sequence[Hashable],
    titles: Sequence[str],
    prefix: str = "",
    steps_below: float = 0.0,
) -> dict[str, Any]:
    """Layout of a slider or a dropdown; step k shows the traces of group k, and title k."""
    steps = [
        {
            "label": label,
            "method": "update",
            "args": [{"visible": [group == number for group in groups]}, {"title.text": wrap(titles[number])}],
        }
        for number, label in enumerate(labels)
    ]
    if kind == "slider":
        return {"sliders": [slider_layout(steps, prefix, steps_below)]}
    return {"updatemenus": [dropdown_layout(steps)]}


def open_at(figure: go.Figure, number: int) -> go.Figure:
    """Let a figure with one slider or menu open on its choice `number`, instead of the first."""
    control = figure.layout.sliders[0] if figure.layout.sliders else figure.layout.updatemenus[0]
    change, *layout = (control.steps if figure.layout.sliders else control.buttons)[number].args
    control.active = number
    for trace, visible in zip(figure.data, change["visible"], strict=True):
        trace.visible = visible
    if layout and "title.text" in layout[0]:
        figure.layout.title.text = layout[0]["title.text"]
    return figure


def slider_layout(steps: Sequence[dict[str, Any]], prefix: str, below: float) -> dict[str, Any]:
    """A Plotly slider below the panels."""
    return {"active": 0, "steps": steps, "currentvalue": {"prefix": prefix, "xanchor": "left"}, "y": below, "len": 1.0}


def dropdown_layout(buttons: Sequence[dict[str, Any]], x: int = 0) -> dict[str, Any]:
    """A Plotly dropdown above the panels."""
    place = {"x": x, "xanchor": "right" if x else "left", "y": 1.0, "yanchor": "bottom", "pad": {"b": 8}}
    # An open list covers parts of the figure, and Plotly's colour for the item under the pointer is nearly white: the
    # list is a light sheet with dark text, also on a dark page.
    return {"buttons": buttons, "active": 0, "bgcolor": "#f2f2f2", "font": {"color": "#303030"}, **place}


def finish(figure: go.Figure, title: str | None, alt: str, **layout: Any) -> go.Figure:
    """Give a Plotly figure its template, title and alternative text."""
    title = wrap(title)
    place = {"xref": "container", "x": 0, "yref": "container", "y": 1, "yanchor": "top", "pad": {"l": 12, "t": 12}}
    figure.update_layout(template="nadtools", title={"text": title, **place})
    figure.update_layout(**layout)
    figure.update_annotations(font={"size": 13})
    return describe(figure, alt)


def direction_panels(
    directions: dict[str, Array],
    titles: Sequence[str],
    kind: Literal["slider"] | None,
    alt: str,
    prefix: str = "",
) -> go.Figure:
    """Draw pixels and Fourier energy side by side, of one direction or of the one that a control chooses."""
    figure = make_subplots(1, 2, subplot_titles=("pixels", "Fourier energy"), horizontal_spacing=0.08)
    left, right = (figure.get_subplot(1, column).xaxis.domain for column in (1, 2))
    groups = []
    for number, direction in enumerate(directions.values()):
        shown = {"visible": number == 0, "showscale": True}
        limit = float(np.abs(direction).max())
        pixel_bar = colour_bar(left, y=-0.24, tickvals=[-limit, 0, limit], tickformat=".2~r")
        energy_bar = colour_bar(right, y=-0.24, nticks=4, tickformat="~%")
        figure.add_trace(pixel_trace(direction, colorbar=pixel_bar, **shown), 1, 1)
        figure.add_trace(energy_trace(direction, colorbar=energy_bar, **shown), 1, 2)
        groups += [number, number]
    image = next(iter(directions.values()))
    square_cells(figure, 1, 1, image, frequency=False)
    square_cells(figure, 1, 2, image, frequency=True).title = "frequency j"
    figure.update_yaxes(title="frequency i", side="right", col=2)
    top, bottom = 34 + max(map(title_height, titles)), 90
    if kind == "slider":
        figure.update_layout(chooser(kind, list(directions), groups, titles, prefix, steps_below=-0.42))
        bottom = 190
    margin = {"l": 12, "r": 12, "t": top, "b": bottom}
    return finish(figure, titles[0], alt, height=220 + top + bottom, margin=margin)


def grid_plotly(
    items: list[tuple[str, dict[str, Array]]], title: str | None, columns: int, alt: str, energy: bool = True
) -> go.Figure:
    """Draw small multiples: in a column for each item, its images as pixels and, below each, as Fourier energy.

    The label of an item may have several lines.
    """
    names = list(items[0][1])
    panels = [(name, kind) for name in names for kind in ("pixels", "energy")[: 1 + energy]]
    blocks = math.ceil(len(items) / columns)
    shape = (blocks * len(panels), columns)
    cells = {
        (number // columns * len(panels) + offset, number % columns): (kind, images[name])
        for number, (_, images) in enumerate(items)
        for offset, (name, kind) in enumerate(panels)
    }
    headings = {(number // columns * len(panels), number % columns): label for number, (label, _) in enumerate(items)}
    row_names = [kind if len(names) == 1 else f"{name}, {kind}" for name, kind in panels] * blocks
    further_lines = 16 * max(label.count("<br>") for label, _ in items)
    height = 140 * shape[0] + further_lines * (blocks - 1)
    figure = make_subplots(
        *shape,
        subplot_titles=[headings.get((row, column), "") for row in range(shape[0]) for column in range(columns)],
        horizontal_spacing=0.03,
        vertical_spacing=(0.22 * 140 + further_lines * (blocks > 1)) / height,
    )
    for (row, column), (kind, image) in cells.items():
        trace = (pixel_trace if kind == "pixels" else energy_trace)(image)
        figure.add_trace(trace, row + 1, column + 1)
        square_cells(figure, row + 1, column + 1, image, kind == "energy")
    figure.update_xaxes(showticklabels=False, ticks="")
    figure.update_yaxes(showticklabels=False, ticks="")
    for row, column in set(np.ndindex(shape)) - set(cells):
        empty = figure.get_subplot(row + 1, column + 1)
        empty.xaxis.visible = empty.yaxis.visible = False
    for row, name in enumerate(row_names if len(panels) > 1 else []):
        figure.update_yaxes(title=name, row=row + 1, col=1)
    top, left = 34 + (24 if title else 0) + further_lines, 30 if len(panels) > 1 else 12
    return finish(figure, title, alt, height=height + top, margin={"l": left, "r": 8, "t": top, "b": 12})


def short(value: Any) -> str:
    """A value for a hover text."""
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def rank_correlation(x: Array, y: Array) -> str:
    """Spearman's rank correlation, as text."""
    if len(x) < 3 or (x == x[0]).all() or (y == y[0]).all():
        return "ρ undefined"
    return f"ρ = {spearmanr(x, y).statistic:.2f}".replace("-", "−")


def check_columns(label: str, table: Any, columns: Sequence[str]) -> None:
    """Refuse what is no table, or has no rows, or lacks a column."""
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"got a table of type {type(table).__name__} for {label!r}; expected a DataFrame")
    missing = [column for column in columns if column not in table]
    if missing or table.empty:
        raise ValueError(f"got {len(table)} rows without {missing} for {label!r}; expected rows with {list(columns)}")


def sentence(title: str) -> str:
    """A title with a full stop, unless it ends a sentence."""
    return title if title.endswith(("?", ".", "!")) else f"{title}."


def percent(value: float) -> str:
    """A share as a text; a dash where it is not known."""
    return f"{value:.1%}" if math.isfinite(value) else "–"
