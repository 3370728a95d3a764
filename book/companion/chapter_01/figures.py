"""Samples of D(v) along two directions; maps over Fourier frequencies, linked with the waves themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from companion.parts import (
    COLOURS,
    Array,
    ArrayLike,
    as_array,
    as_direction,
    as_images,
    as_mapping,
    as_vector,
    colour_bar,
    dropdown_layout,
    finish,
    pixel_trace,
    square_cells,
    title_height,
)
from companion.style import SEQUENTIAL
from nadtools.directions import fourier_atom

__all__ = ["plot_projections", "plot_wave_map"]

_SIZE = 32  # pixels
_PHASE = float(np.pi / 2)  # frequencies that are their own mirror image have only a cosine
_BINS = 60
_COORDINATES = ("⟨x, v⟩", "⟨x, r⟩")


def plot_wave_map(
    frequencies: Sequence[tuple[int, int]],
    values: Mapping[str, ArrayLike],
    title: str | None = None,
    *,
    first: tuple[int, int] | None = None,
    limits: tuple[float, float] = (0.5, 1.0),
    value_title: str = "test accuracy",
    value_format: str = ".1%",
) -> go.Figure:
    """Draw maps over frequencies beside the wave of one frequency; a dropdown chooses the map.

    On the book's pages the pointer (a tap, on a telephone) on a cell draws the wave of its frequency on the right. A
    hover text gives the values of all maps at that frequency. Both f and −f of each frequency are filled in.

    Parameters
    ----------
    frequencies
        (i, j) of each value, one of each pair f and −f.
    values
        From the name of a map to its values, one for each frequency; NaN leaves a cell blank.
    first
        The frequency whose wave is drawn at first; the first of ``frequencies`` by default.
    limits
        Of the colour scale.
    value_title, value_format
        What a value is, and how it is written (as d3 and Python both write it).
    """
    cells = as_array(list(frequencies), "frequencies")
    if cells.ndim != 2 or cells.shape[1:] != (2,) or not (cells == cells.round()).all():
        raise ValueError(f"got frequencies of shape {cells.shape}; expected a list of pairs of integers (i, j)")
    maps = {
        name: as_vector(given, f"values of {name!r}", len(cells), "frequency")
        for name, given in as_mapping(values, "values").items()
    }
    half = _SIZE // 2
    places: dict[tuple[int, int], int] = {}
    for number, (i, j) in enumerate(cells.astype(int).tolist()):
        for f in ((i, j), (-i, -j)):
            places.setdefault(((f[0] + half) % _SIZE - half, (f[1] + half) % _SIZE - half), number)
    rows, columns = (_axis([place[axis] for place in places]) for axis in (0, 1))
    grids = {name: np.full((len(rows), len(columns)), np.nan) for name in maps}
    texts = np.full((len(rows), len(columns)), "", dtype=object)
    for (i, j), number in places.items():
        cell = int(np.searchsorted(rows, i)), int(np.searchsorted(columns, j))
        written = []
        for name, given in maps.items():
            grids[name][cell] = given[number]
            written.append(f"{name}: {format(given[number], value_format) if np.isfinite(given[number]) else '–'}")
        texts[cell] = "<br>".join(written)

    start = tuple(int(f) for f in (first if first is not None else cells[0]))
    figure = make_subplots(1, 2, subplot_titles=(value_title, _wave_title(*start)), horizontal_spacing=0.17)
    left = figure.get_subplot(1, 1).xaxis.domain
    for number, grid in enumerate(grids.values()):
        figure.add_heatmap(
            x=columns,
            y=rows,
            z=grid.astype(np.float32),
            zmin=limits[0],
            zmax=limits[1],
            colorscale=SEQUENTIAL,
            visible=number == 0,
            hoverongaps=False,
            text=texts,
            hovertemplate="frequency (%{y}, %{x})<br>%{text}<extra></extra>",
            colorbar=colour_bar(left, y=-0.24, nticks=4, tickformat="~%" if value_format.endswith("%") else "~s"),
            row=1,
            col=1,
        )
    own_mirror = all(f % half == 0 for f in start)
    wave = fourier_atom((_SIZE, _SIZE), (start[0], start[1]), 0.0 if own_mirror else _PHASE).numpy()
    limit = float(np.sqrt(2) / _SIZE)
    figure.add_trace(pixel_trace(wave, limit), 1, 2)
    square_cells(figure, 1, 2, wave, frequency=False)
    axis: dict[str, Any] = {"showgrid": False, "zeroline": False, "constrain": "domain", "nticks": 5}
    for update, edges, title_of in (
        (figure.update_xaxes, columns, "frequency j"),
        (figure.update_yaxes, rows[::-1], "frequency i"),
    ):
        step = (edges[-1] - edges[0]) / max(1, len(edges) - 1) / 2
        update(title=title_of, range=[edges[0] - step, edges[-1] + step], row=1, col=1, **axis)
    figure.update_yaxes(scaleanchor="x", constraintoward="top", row=1, col=1)
    names = list(grids)
    top, bottom = 30 + title_height(title), 90
    if len(names) > 1:
        buttons = [
            {
                "label": name,
                "method": "restyle",
                "args": [{"visible": [name == other for other in names]}, list(range(len(names)))],
            }
            for name in names
        ]
        figure.update_layout(updatemenus=[{**dropdown_layout(buttons), "pad": {"b": 26}}])
        top += 44
    finite = {name: given[np.isfinite(given)] for name, given in maps.items()}
    ranges = "; ".join(
        f"{name} from {format(given.min(), value_format)} to {format(given.max(), value_format)}"
        for name, given in finite.items()
        if len(given)
    )
    alt = f"{title or value_title} over {len(cells)} Fourier frequencies: {ranges}. Beside it, one of the waves."
    figure = finish(figure, title, alt, height=220 + top + bottom, margin={"l": 52, "r": 12, "t": top, "b": bottom})
    # For the page's script: which trace is the wave, which annotation its title, and how a wave is drawn.
    link = {"trace": len(names), "annotation": 1, "size": _SIZE, "phase": _PHASE}
    figure.layout.meta = {**figure.layout.meta, "waves": link}
    return figure


def _wave_title(i: int, j: int) -> str:
    return f"v at ({i}, {j})".replace("-", "−")


def _axis(values: list[int]) -> Array:
    """Evenly spaced frequencies that hold all the given ones, as few as possible."""
    present = sorted(set(values))
    step = int(np.gcd.reduce(np.diff(present))) if len(present) > 1 else 1
    return np.arange(present[0], present[-1] + 1, step)


def plot_projections(
    x: ArrayLike,
    y: ArrayLike,
    v: ArrayLike,
    other: ArrayLike,
    title: str | None = None,
) -> go.Figure:
    """Draw histograms by class of the samples' coordinates along v, and along another direction.

    Parameters
    ----------
    x
        Shape (n, 1, h, w).
    y
        Labels 0 and 1, shape (n,).
    v, other
        Directions of shape (h, w); both are scaled to unit norm.
    """
    images, classes = as_images(x, y)
    coordinates = []
    for name, given in (("v", v), ("other", other)):
        direction = as_direction(given, name)
        if direction.shape != images.shape[1:]:
            raise ValueError(f"got {name} of shape {direction.shape}; expected {images.shape[1:]}, as the samples have")
        coordinates.append(np.einsum("nhw,hw->n", images, direction / np.linalg.norm(direction)))
    limit = 1.02 * max(float(np.abs(coordinate).max()) for coordinate in coordinates) or 1.0
    edges = np.linspace(-limit, limit, _BINS + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    counts = [[np.histogram(c[classes == label], edges)[0] for label in (0, 1)] for c in coordinates]
    labels = ("y = −1", "y = +1")
    spreads = [float(c[classes == classes[0]].std()) for c in coordinates]
    along, across = _COORDINATES
    alt = f"{title or 'Coordinates of the samples'}, by class. Within a class the standard deviation of {along} is "
    alt += f"{spreads[0]:.2g}, that of {across} is {spreads[1]:.2g}."
    figure = make_subplots(2, 1, shared_xaxes="all", vertical_spacing=0.2)
    for row, pair in enumerate(counts, start=1):
        for number, (label, count) in enumerate(zip(labels, pair, strict=True)):
            figure.add_trace(
                go.Bar(
                    x=centres,
                    y=count,
                    name=label,
                    legendgroup=label,
                    showlegend=row == 1,
                    marker={"color": COLOURS[number], "line": {"width": 0}},
                    opacity=0.6,
                    hovertemplate=f"{label}<br>near %{{x:.2f}}: %{{y}} samples<extra></extra>",
                ),
                row,
                1,
            )
        figure.update_xaxes(title=_COORDINATES[row - 1], showticklabels=True, row=row, col=1)
    figure.update_yaxes(title="samples", nticks=5)
    top = 76 if title else 40
    return finish(
        figure,
        title,
        alt,
        height=380 + top,
        margin={"l": 52, "r": 12, "t": top, "b": 52},
        barmode="overlay",
        bargap=0,
    )
