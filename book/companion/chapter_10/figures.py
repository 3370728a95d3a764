"""Two features that both tell the classes apart: which one a network uses, and how its decision boundary lies."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from companion.parts import (
    Array,
    ArrayLike,
    as_array,
    as_mapping,
    as_vector,
    check_columns,
    colour_bar,
    dropdown_layout,
    finish,
    percent,
    sentence,
    title_height,
)
from companion.style import DIVERGING, SEQUENTIAL

__all__ = ["TrainedPairs", "plot_pairs", "plot_sections"]

#: What a map shows, and the column that holds it.
_MAPS = {
    "both channels": "test_accuracy",
    "only the first": "test_accuracy_first",
    "only the second": "test_accuracy_second",
}
INK, POINTS = "#202020", ("#0072b2", "#d55e00")
_MARKS = "rgb(240, 60, 60)"
_NARROW = 1e-9
_EPSILONS = (1.0, 0.5)  # the classes lie at ±ε in the plane of a section
_PANEL_TITLE = 15  # characters, for three panels on a telephone


class TrainedPairs(Protocol):
    """Trainings on pairs of directions, such as :func:`load_pairs` gives."""

    table: pd.DataFrame
    sections: np.ndarray
    coordinates: np.ndarray


def plot_pairs(
    results: Mapping[str, TrainedPairs],
    title: str | None = None,
) -> go.Figure:
    """Draw maps of accuracies over pairs of indices, linked with the decision boundary of one pair.

    Three maps: with both channels, and with only one of them switched on. On the book's pages the pointer (a tap, on a
    telephone) on a cell marks the pair in all maps, and draws its section below, with its numbers. A dropdown chooses
    the network where there are several.

    Parameters
    ----------
    results
        From a network's name to its trainings: ``table`` with a row each (``first``, ``second``, the accuracies
        ``test_accuracy``, ``test_accuracy_first``, ``test_accuracy_second``, and where they are known ``angle_first``
        in radians, ``margin_first``, ``margin_second`` and ``train_loss``); ``sections``, shape (rows, r, r);
        ``coordinates``, shape (r,). Rows of one pair, as from several seeds, are averaged; a pair with a row that is
        NaN is left blank.
    """
    groups = {label: _read(label, given) for label, given in as_mapping(results, "results").items()}
    maps = list(_MAPS)
    figure = make_subplots(
        2,
        3,
        specs=[[{}, {}, {}], [{"colspan": 3}, None, None]],
        subplot_titles=[*(name.replace(" ", "<br>", 1) for name in maps), ""],
        horizontal_spacing=0.05,
        vertical_spacing=0.26,
        row_heights=[0.36, 0.64],
    )
    start = next(iter(groups.values()))
    i, j = start.starting_pair
    left, right = figure.get_subplot(1, 1).xaxis.domain[0], figure.get_subplot(1, 3).xaxis.domain[1]
    bar = colour_bar((left, right), 200, y=0.6, tickformat=".0%")
    for column, name in enumerate(maps, 1):
        figure.add_heatmap(
            x=start.names,
            y=start.names,
            z=start.maps[name],
            zmin=0.5,
            zmax=1.0,
            colorscale=SEQUENTIAL,
            hoverongaps=False,
            hovertemplate=f"{name}<br>NAD %{{y}} and NAD %{{x}}<br>%{{z:.1%}}<extra></extra>",
            colorbar=bar,
            showscale=column == 1,
            row=1,
            col=column,
        )
    for column in range(1, 4):
        figure.add_scatter(
            x=[start.names[j]],
            y=[start.names[i]],
            mode="markers",
            marker={"symbol": "square-open", "size": 15, "color": _MARKS, "line": {"width": 3}},
            hoverinfo="skip",
            showlegend=False,
            row=1,
            col=column,
        )
    figure.add_trace(_section_trace(start.coordinates, start.sections[i][j], scale=100), 2, 1)
    _add_plane(figure, 2, 1, _EPSILONS, float(start.coordinates[-1]))
    for column in range(1, 4):
        axes = figure.get_subplot(1, column)
        # Strict: else Plotly reads the names as numbers when another network is chosen.
        common = {"type": "category", "autotypenumbers": "strict", "showgrid": False}
        axes.xaxis.update(constrain="domain", tickangle=-60, **common)
        axes.yaxis.update(showticklabels=column == 1, constraintoward="top", **common)
    figure.update_yaxes(title="NAD in channel 1", row=1, col=1)
    figure.update_xaxes(
        title="NAD in channel 2", row=1, col=2
    )  # one for all: on a telephone there is no room for three
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top", "align": "left", "yshift": -54}
    figure.add_annotation(text=start.texts[i][j], x=0, y=0, showarrow=False, **place)
    number = len(figure.layout.annotations) - 1
    top = 54 + title_height(title)
    if len(groups) > 1:
        buttons = [
            {"label": label, "method": "update", "args": _change(one, one.starting_pair, number)}
            for label, one in groups.items()
        ]
        figure.update_layout(updatemenus=[{**dropdown_layout(buttons), "pad": {"b": 44}}])
        top += 44
    alt = f"{sentence(title or 'Accuracies over pairs of directions')} " + " ".join(
        f"{label}: " + ", ".join(f"{name} {_range(one.maps[name])}" for name in maps) + "."
        for label, one in groups.items()
    )
    alt += " Below, the decision function of one network in the plane of its two directions."
    figure = finish(figure, title, alt, height=660 + top, margin={"l": 58, "r": 12, "t": top, "b": 150})
    figure.layout.annotations[number].font.size = 12
    # For the page's script: which traces to change, and what to draw for each network and each pair.
    link = {
        "maps": [0, 1, 2],
        "marks": [3, 4, 5],
        "section": 6,
        "annotation": number,
        "groups": [{"names": one.names, "sections": one.whole_sections, "texts": one.texts} for one in groups.values()],
    }
    figure.layout.meta = {**figure.layout.meta, "pairs": link}
    return figure


def plot_sections(
    sections: Mapping[str, tuple[ArrayLike, ArrayLike]],
    title: str | None = None,
    *,
    epsilons: tuple[float, float] = _EPSILONS,
) -> go.Figure:
    """Draw decision functions in the plane of two directions, side by side.

    Each is divided by its largest absolute value. The black line is the decision boundary, the dots are the two classes
    at ±epsilons, the dotted line is the boundary of maximum margin.

    Parameters
    ----------
    sections
        From a title to coordinates, shape (r,), and values, shape (r, r): rows along the second direction.
    epsilons
    """
    panels: dict[str, tuple[Array, Array]] = {}
    for label, pair in as_mapping(sections, "sections").items():
        axis, values = as_vector(pair[0], f"coordinates of {label!r}"), as_array(pair[1], f"values of {label!r}")
        if values.shape != (len(axis), len(axis)) or len(axis) < 2:
            raise ValueError(
                f"got {len(axis)} coordinates and values {values.shape} of {label!r}; expected (r,), (r, r)"
            )
        panels[label] = axis, _normalised(values)
    alt = f"{sentence(title or 'Decision functions')} In the plane of two directions: " + " ".join(
        f"{label}: {_lean(axis, values)}." for label, (axis, values) in panels.items()
    )
    columns = 2 if len(panels) == 4 else min(3, len(panels))  # never three and one
    rows = -(-len(panels) // columns)
    room = _PANEL_TITLE if columns > 2 else 2 * _PANEL_TITLE
    lines = max(-(-len(label) // room) for label in panels)
    figure = make_subplots(
        rows,
        columns,
        subplot_titles=["<br>".join(textwrap.wrap(label, room)) for label in panels],
        horizontal_spacing=0.09,
        vertical_spacing=0.3 / rows,
    )
    for number, (axis, values) in enumerate(panels.values()):
        row, column = number // columns + 1, number % columns + 1
        figure.add_trace(_section_trace(axis, values), row, column)
        _add_plane(figure, row, column, epsilons, float(axis[-1]))
    for number in range(len(panels) - columns):  # on a telephone they would stand on the titles below
        figure.update_xaxes(title=None, row=number // columns + 1, col=number % columns + 1)
    top = 24 + 18 * lines + title_height(title)
    height = (300 if columns == 2 else 250) * rows + top
    finish(figure, title, alt, height=height, margin={"l": 50, "r": 12, "t": top, "b": 50})
    figure.layout.meta = {**figure.layout.meta, "square": True}
    return figure


# ---------------------------------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------------------------------


class _Group:
    """One network's trainings by pair: rows are indices of v₁, columns those of v₂."""

    def __init__(self, table: pd.DataFrame, sections: Array, coordinates: Array) -> None:
        indices = sorted({*table["first"], *table["second"]})
        self.names = [str(int(index)) for index in indices]
        self.coordinates = coordinates
        shape = (len(indices), len(indices))
        self.maps = {name: np.full(shape, np.nan) for name in _MAPS}
        self.texts = [["" for _ in indices] for _ in indices]
        self.sections = np.full((*shape, *sections.shape[1:]), np.nan)
        places = {index: place for place, index in enumerate(indices)}
        for _, rows in table.groupby(["first", "second"]):
            one, other = (int(rows[name].iloc[0]) for name in ("first", "second"))
            i, j = places[one], places[other]
            for name, column in _MAPS.items():
                self.maps[name][i, j] = rows[column].mean(skipna=False)
            positions = table.index.get_indexer(rows.index)
            self.sections[i, j] = np.mean([_normalised(sections[position]) for position in positions], axis=0)
            self.texts[i][j] = _text(one, other, rows)
        self.sections = np.round(100 * self.sections)

    @property
    def whole_sections(self) -> list[list[list[list[int]] | None]]:
        """For the page: per cent as integers; None where there is nothing to draw."""
        return [[one.astype(int).tolist() if np.isfinite(one).all() else None for one in row] for row in self.sections]

    @property
    def starting_pair(self) -> tuple[int, int]:
        """Places of the largest and the smallest index, drawn at first: there size and NADs disagree."""
        return len(self.names) - 1, 0


def _read(label: str, given: Any) -> _Group:
    table = getattr(given, "table", None)
    check_columns(label, table, ("first", "second", *_MAPS.values()))
    assert isinstance(table, pd.DataFrame)
    axis = as_vector(given.coordinates, f"coordinates of {label!r}")
    sections = as_array(given.sections, f"sections of {label!r}")
    if sections.shape != (len(table), len(axis), len(axis)):
        raise ValueError(
            f"got sections {sections.shape} of {label!r} for {len(table)} rows and {len(axis)} coordinates; expected "
            "(rows, r, r)"
        )
    return _Group(table.reset_index(drop=True), sections, axis)


def _normalised(values: Array) -> Array:
    largest = np.abs(values).max()
    return values / largest if np.isfinite(largest) and largest > 0 else values


def _text(one: int, other: int, rows: pd.DataFrame) -> str:
    """What is said beside the section of a pair."""
    lines = [f"<b>v₁ is NAD {one}, v₂ is NAD {other}</b>" + (f" ({len(rows)} seeds)" if len(rows) > 1 else "")]
    shares = [f"{name.split()[-1]} {percent(rows[column].mean(skipna=False))}" for name, column in _MAPS.items()]
    lines.append(", ".join(shares).replace("channels", "both"))
    if "angle_first" in rows:
        degrees = math.degrees(rows["angle_first"].mean(skipna=False))
        known = f"{degrees:.0f}°" if math.isfinite(degrees) else "not known"
        lines.append(f"angle between boundary and v₁: {known}")
    if {"margin_first", "margin_second"} <= set(rows):
        along = [f"{_length(rows[f'margin_{part}'])} along {v}" for part, v in (("first", "v₁"), ("second", "v₂"))]
        lines.append(f"margins: {', '.join(along)}")
    if "train_loss" in rows:
        loss = float(rows["train_loss"].max(skipna=False))
        lines.append(f"training loss: {loss:.1g}" if math.isfinite(loss) else "the training diverged")
    return "<br>".join(lines)


def _length(margins: pd.Series) -> str:
    middle = float(margins.median())
    return "not known" if math.isnan(middle) else "none" if math.isinf(middle) else f"{middle:.2f}"


def _range(values: Array) -> str:
    finite = values[np.isfinite(values)]
    return f"from {percent(finite.min())} to {percent(finite.max())}" if finite.size else "–"


def _lean(axis: Array, values: Array) -> str:
    """Along which of the two directions a function changes."""
    fit, *_ = np.linalg.lstsq(
        np.stack([np.tile(axis, len(axis)), np.repeat(axis, len(axis)), np.ones(len(axis) ** 2)], 1),
        values.ravel(),
        rcond=None,
    )
    if not np.isfinite(fit).all() or np.hypot(*fit[:2]) < _NARROW:
        return "it changes along neither direction"
    share = abs(math.degrees(math.atan2(fit[1], fit[0])))
    return f"it rises at {share:.0f} degrees from the first direction"


# ---------------------------------------------------------------------------------------------------------------------
# Drawing
# ---------------------------------------------------------------------------------------------------------------------


def _section_trace(axis: Array, values: Array, scale: float = 1.0) -> go.Contour:
    """A decision function as a coloured field, with a line where it is zero."""
    return go.Contour(
        x=axis,
        y=axis,
        z=values,
        zmin=-scale,
        zmax=scale,
        zauto=False,
        colorscale=DIVERGING,
        showscale=False,
        contours={"coloring": "heatmap", "start": 0, "end": 0, "size": scale, "showlines": True},
        line={"color": INK, "width": 2},
        hovertemplate="along v₁ %{x:.2f}, along v₂ %{y:.2f}<extra></extra>",
    )


def _add_plane(figure: go.Figure, row: int, column: int, epsilons: tuple[float, float], limit: float) -> None:
    """The two classes, the boundary of maximum margin, and square axes."""
    one, other = epsilons
    reach = limit / max(abs(one), abs(other))
    figure.add_scatter(
        x=[-other * reach, other * reach],
        y=[one * reach, -one * reach],
        mode="lines",
        line={"dash": "dot", "width": 1.5, "color": INK},
        hoverinfo="skip",
        showlegend=False,
        row=row,
        col=column,
    )
    figure.add_scatter(
        x=[-one, one],
        y=[-other, other],
        mode="markers",
        marker={"size": 9, "color": list(POINTS), "line": {"color": "white", "width": 1.5}},
        text=["class 0", "class 1"],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
        row=row,
        col=column,
    )
    axes = figure.get_subplot(row, column)
    common = {"range": [-limit, limit], "showgrid": False, "zeroline": False, "constrain": "domain"}
    common |= {"tickvals": [-limit, 0, limit], "tickformat": "~g"}
    axes.xaxis.update(title="along v₁", tickangle=0, **common)
    axes.yaxis.update(
        title="along v₂" if column == 1 else None,
        scaleanchor=axes.xaxis.plotly_name.replace("axis", ""),
        constraintoward="top",
        **common,
    )


def _change(one: _Group, pair: tuple[int, int], annotation: int) -> list[Any]:
    """What a dropdown changes to show another network."""
    i, j = pair
    # As lists: the page's script does not read what Plotly packs into binary data here.
    axis, section = one.coordinates.tolist(), one.sections[i, j].tolist()
    grids = [np.round(one.maps[name], 4).tolist() for name in _MAPS]
    whole = [one.names] * 3
    traces = {
        "x": [*whole, *([[one.names[j]]] * 3), axis],
        "y": [*whole, *([[one.names[i]]] * 3), axis],
        "z": [*grids, None, None, None, section],
    }
    return [traces, {f"annotations[{annotation}].text": one.texts[i][j]}, [0, 1, 2, 3, 4, 5, 6]]
