"""Samples of D(v) along two directions; accuracies over waves, as bars, as maps, and against other trainings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
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
    colour_of,
    dropdown_layout,
    finish,
    percent,
    pixel_trace,
    square_cells,
    title_height,
)
from companion.style import ARCHITECTURE_COLOURS, SEQUENTIAL
from nadtools.directions import fourier_atom

__all__ = [
    "plot_projections", "plot_scores", "plot_slowness", "plot_strips", "plot_unpooled", "plot_wave_map",
]  # fmt: skip

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
    marks: Mapping[tuple[int, int], str] | None = None,
) -> go.Figure:
    """Draw maps of accuracies over frequencies beside the wave of one frequency; a dropdown chooses the map.

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
    marks
        From frequencies that the text names to these names, which stand beside a frame.
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
            written.append(f"{name}: {percent(given[number])}")
        texts[cell] = "<br>".join(written)

    start = tuple(int(f) for f in (first if first is not None else cells[0]))
    figure = make_subplots(
        1, 2, subplot_titles=("test accuracy", _wave_title(*start)), column_widths=[0.7, 0.3], horizontal_spacing=0.06
    )
    figure.layout.annotations[1].update(x=1, xanchor="right")  # it is wider than its panel on a telephone
    left = figure.get_subplot(1, 1).xaxis.domain
    for number, grid in enumerate(grids.values()):
        figure.add_heatmap(
            x=columns,
            y=rows,
            z=grid.astype(np.float32),
            zmin=0.5,
            zmax=1.0,
            colorscale=SEQUENTIAL,
            visible=number == 0,
            hoverongaps=False,
            text=texts,
            hovertemplate="frequency (%{y}, %{x})<br>%{text}<extra></extra>",
            colorbar=colour_bar(left, 230, y=-0.14, nticks=4, tickformat="~%"),
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
    for (i, j), name in (marks or {}).items():
        frame = {"x0": j - 1, "x1": j + 1, "y0": i - 1, "y1": i + 1, "line": {"color": "white", "width": 2}}
        figure.add_shape(type="rect", row=1, col=1, **frame)
        label = {"bgcolor": "rgba(0, 0, 0, 0.6)", "font": {"color": "white"}, "xanchor": "left", "showarrow": False}
        figure.add_annotation(x=j + 1.2, y=i, text=name, row=1, col=1, **label)
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
        f"{name} from {percent(given.min())} to {percent(given.max())}" for name, given in finite.items() if len(given)
    )
    alt = f"{title or 'Test accuracy'} over {len(cells)} Fourier frequencies: {ranges}. Beside it, one of the waves."
    figure = finish(figure, title, alt, height=440 + top + bottom, margin={"l": 52, "r": 12, "t": top, "b": bottom})
    # For the page's script: which trace is the wave, which annotation its title, and how a wave is drawn.
    link = {"trace": len(names), "annotation": 1, "size": _SIZE, "phase": _PHASE}
    figure.layout.meta = {**figure.layout.meta, "waves": link, "square": True}
    return figure


def plot_scores(scores: Mapping[str, Mapping[str, float]], title: str | None = None) -> go.Figure:
    """Draw test accuracies as bars, one group for each wave, and a line at one half: a coin.

    Parameters
    ----------
    scores
        From the name of a classifier to its accuracies, in [0, 1], by the name of a wave.
    """
    given = as_mapping(scores, "scores")
    figure = go.Figure()
    for name, values in given.items():
        colour = ARCHITECTURE_COLOURS.get({"logistic regression": "logreg"}.get(name, name.lower()))
        figure.add_bar(
            x=list(values),
            y=list(values.values()),
            name=name,
            marker={"color": colour, "line": {"width": 0}},
            hovertemplate=f"{name} on %{{x}}: %{{y:.1%}}<extra></extra>",
        )
    figure.add_hline(0.5, line={"color": "rgb(115, 115, 115)", "dash": "dash", "width": 1.5})
    figure.add_annotation(x=1, xref="paper", y=0.5, text="a coin", showarrow=False, xanchor="left")
    figure.update_yaxes(title="test accuracy", range=[0, 1.02], tickformat=".0%")
    figure.update_xaxes(title="frequency of v", type="category")
    ends = "; ".join(f"{name} {', '.join(f'{percent(v)} on {w}' for w, v in vs.items())}" for name, vs in given.items())
    figure.update_layout(barmode="group")
    return _with_legend(figure, title, f"{title or 'Test accuracies'}: {ends}.", right=56)


def plot_slowness(runs: Mapping[str, pd.DataFrame], marks: Mapping[str, int], title: str | None = None) -> go.Figure:
    """Draw, over the accuracy that a wave came to in one training, the steps that it took in another.

    The waves that this training did not learn have no number of steps: they stand in a panel of their own, above.

    Parameters
    ----------
    runs
        From a network's name to a row for each wave, by the wave's name: ``accuracy``; ``steps``, NaN where the second
        training did not get there; and whether it, too, was right on more new samples than a coin, ``learned``.
    marks
        Waves that the text names, and how many pixels above its mark such a name stands; for the first network.
    """
    figure = make_subplots(2, 1, shared_xaxes=True, row_heights=[0.28, 0.72], vertical_spacing=0.06)
    parts = []
    for number, (name, run) in enumerate(as_mapping(runs, "runs").items()):
        colour = colour_of(name, number)
        late = run.steps.isna()
        bands = {"still learning": run[late & run.learned], "not learned": run[late & ~run.learned]}
        for level, (label, rows) in enumerate(bands.items()):
            # In three rows, such that marks at nearly the same accuracy do not hide each other.
            rank = rows.accuracy.rank(method="first").to_numpy(dtype=int)
            marker = {"color": colour, "size": 8, "symbol": ("circle-open", "x-thin-open")[level], "line": {"width": 2}}
            hover = f"{name} on %{{customdata}}<br>accuracy %{{x:.1%}}<br>{label}<extra></extra>"
            common = {"mode": "markers", "showlegend": False, "marker": marker, "hovertemplate": hover}
            y = level + (rank % 3 - 1) * 0.25
            figure.add_scatter(x=rows.accuracy, y=y, name=label, customdata=rows.index, **common, row=1, col=1)
            if len(rows):
                place = {"x": 0.56, "y": level, "xanchor": "left", "row": 1, "col": 1}
                figure.add_annotation(text=f"{label} at the end: {len(rows)}", showarrow=False, **place)
        done = run[~late]
        marker = {"color": colour, "size": 9, "symbol": ("circle", "square")[number % 2]}
        hover = f"{name} on %{{customdata}}<br>accuracy %{{x:.1%}}, %{{y:.0f}} steps<extra></extra>"
        common = {"name": name, "mode": "markers", "marker": marker, "hovertemplate": hover}
        figure.add_scatter(x=done.accuracy, y=done.steps, customdata=done.index, **common, row=2, col=1)
        for mark in done.index.intersection(list(marks)) if not number else ():
            x, y = float(done.accuracy[mark]), math.log10(done.steps[mark])
            figure.add_annotation(x=x, y=y, text=mark, showarrow=False, yshift=marks[mark], row=2, col=1)
        parts.append(f"{name} takes {done.steps.min():.0f} to {done.steps.max():.0f} steps on {len(done)} waves")
        parts += [f"{label} on {len(rows)}" for label, rows in bands.items() if len(rows)]
    figure.add_hline(0.5, line={"color": "rgba(128, 128, 128, 0.4)", "width": 1}, row=1, col=1)
    figure.update_yaxes(range=[-0.5, 1.5], showticklabels=False, ticks="", showgrid=False, zeroline=False, row=1, col=1)
    figure.update_yaxes(title="steps at σ = 0.5", type="log", range=[1, 3.4], dtick=1, row=2, col=1)
    figure.update_xaxes(title="test accuracy at σ = 3", tickformat=".0%", row=2, col=1)
    return _with_legend(figure, title, f"{title or 'Steps against accuracy'}: {'; '.join(parts)}.", more=40)


def plot_strips(rows: Mapping[str, ArrayLike], title: str | None = None) -> go.Figure:
    """Draw test accuracies in rows, a dot for each direction.

    Parameters
    ----------
    rows
        From the label of a row to its accuracies; a label that begins with a network's name has its colour.
    """
    given = {label: as_vector(values, f"accuracies {label!r}") for label, values in as_mapping(rows, "rows").items()}
    figure = go.Figure()
    for number, (label, values) in enumerate(given.items()):
        rank = np.argsort(np.argsort(values))
        figure.add_scatter(
            x=values,
            y=number + (rank % 3 - 1) * 0.13,
            name=label,
            mode="markers",
            marker={"color": colour_of(label.split(",")[0], number), "size": 7, "opacity": 0.6},
            hovertemplate=f"{label}: %{{x:.1%}}<extra></extra>",
        )
        if number:
            figure.add_hline(number - 0.68, line={"color": "rgba(128, 128, 128, 0.35)", "width": 1})
        figure.add_annotation(x=0.57, y=number - 0.4, text=label, showarrow=False, xanchor="left")
    figure.update_yaxes(range=[len(given) - 0.68, -0.68], visible=False)
    figure.update_xaxes(title="test accuracy", range=[0.47, 1.02], tickformat=".0%")
    ends = "; ".join(f"{label} {percent(values.min())} to {percent(values.max())}" for label, values in given.items())
    top = 20 + title_height(title)
    margin = {"l": 16, "r": 20, "t": top, "b": 50}
    alt = f"{title or 'Test accuracies'}: {ends}."
    return finish(figure, title, alt, height=44 * len(given) + top + 50, margin=margin, showlegend=False)


def plot_unpooled(
    pooled: ArrayLike, unpooled: ArrayLike, names: Sequence[str], marks: Sequence[str], title: str | None = None
) -> go.Figure:
    """Draw the accuracy on each wave with pooling and without, the waves in the order of the first.

    Parameters
    ----------
    pooled, unpooled
        Of each wave.
    names
        Of the waves.
    marks
        Those that the text names.
    """
    before, after = as_vector(pooled, "pooled"), as_vector(unpooled, "unpooled")
    order = np.argsort(-before)
    figure = go.Figure()
    stems = [y for k in order for y in (before[k], after[k], None)]  # from one accuracy of a wave to the other
    line = {"color": "rgba(128, 128, 128, 0.35)", "width": 2}
    places = [place for place in range(len(order)) for _ in range(3)]
    figure.add_scatter(x=places, y=stems, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    # Rings around points: where both agree, both are seen.
    ring = {"color": COLOURS[0], "size": 12, "symbol": "circle-open", "line": {"width": 2}}
    for name, values, marker in (("with pooling", before, ring), ("without", after, {"color": COLOURS[1], "size": 7})):
        figure.add_scatter(
            x=list(range(len(order))),
            y=values[order],
            name=name,
            mode="markers",
            marker=marker,
            customdata=[names[k] for k in order],
            hovertemplate=f"%{{customdata}} {name}: %{{y:.1%}}<extra></extra>",
        )
    for place, k in enumerate(order):
        if names[k] in marks:
            lower = float(min(before[k], after[k]))
            figure.add_annotation(x=place, y=lower, text=names[k], ax=-24, ay=24)
    figure.update_xaxes(title="waves, best with pooling first", showticklabels=len(order) < 10)
    if len(order) < 10:  # then each has room for its name
        figure.update_xaxes(tickvals=list(range(len(order))), ticktext=[names[k] for k in order], tickangle=-50)
    figure.update_yaxes(title="test accuracy", range=[0.4, 1.02], tickformat=".0%")
    ends = "; ".join(
        f"{name} from {percent(values.min())} to {percent(values.max())}"
        for name, values in (("with", before), ("without", after))
    )
    return _with_legend(figure, title, f"{title or 'Accuracies with pooling and without'}: {ends}.")


def _with_legend(figure: go.Figure, title: str | None, alt: str, right: int = 20, more: int = 0) -> go.Figure:
    """Finish a figure, its legend between title and panel."""
    top, bottom = 40 + title_height(title), 58
    legend = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"}
    margin = {"l": 60, "r": right, "t": top, "b": bottom}
    return finish(figure, title, alt, height=265 + more + top + bottom, margin=margin, legend=legend)


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
