"""Curves over a common axis, with a slider or a dropdown where there are several sets of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import plotly.graph_objects as go

from companion.parts import (
    COLOURS,
    Array,
    ArrayLike,
    as_mapping,
    as_vector,
    chooser,
    finish,
    title_height,
)

__all__ = ["plot_curves"]

Curves: TypeAlias = Mapping[str, tuple[ArrayLike, ArrayLike]]


def plot_curves(
    curves: Curves | Mapping[str, Curves],
    x_title: str,
    y_title: str,
    title: str | None = None,
    *,
    choose: Literal["slider", "dropdown"] | None = None,
    prefix: str = "",
    markers: Sequence[str] = (),
    dashed: Sequence[str] = (),
    x_log: bool = False,
    y_log: bool = False,
    y_range: tuple[float, float] | None = None,
    y_format: str = ".3~g",
    height: int = 300,
    alt: str | None = None,
) -> go.Figure:
    """Draw curves; with ``choose``, one set of them at a time.

    Parameters
    ----------
    curves
        From the name of a curve to its x and y, vectors of one length. With ``choose``: from the label of a choice to
        such a dict; every choice has the same names.
    x_title, y_title, title
    choose
        A control that shows one set of curves at a time. A set without others has no control; its label joins the
        title.
    prefix
        Before the label that a slider shows, such as ``"S = "``.
    markers
        Names of curves that are drawn as points.
    dashed
        Names of curves that are drawn dashed.
    x_log, y_log
        Logarithmic axes.
    y_range
        Of the vertical axis; the same for all choices.
    y_format
        How hover texts write y, as d3 formats.
    height
        Of the panel, in pixels.
    alt
        Text for readers who cannot see the figure.
    """
    given = as_mapping(curves, "curves")
    sets = {label: _read(part) for label, part in given.items()} if choose else {"": _read(given)}
    names = list(next(iter(sets.values())))
    for label, part in sets.items():
        if list(part) != names:
            raise ValueError(f"got curves {list(part)} for {label!r}; expected those of the first choice, {names}")
    if choose and len(sets) == 1:
        label = prefix + next(iter(sets))
        choose, title = None, f"{title}: {label}" if title else label
    if alt is None:
        alt = f"{title or y_title}: {y_title} against {x_title}, for {', '.join(names)}."
        alt += f" A {choose} chooses {prefix.strip(' =:') or 'the set'}: {', '.join(sets)}." if choose else ""
    figure = go.Figure()
    groups = []
    for group, part in enumerate(sets.values()):
        for number, (name, (x, y)) in enumerate(part.items()):
            colour = COLOURS[number % len(COLOURS)]
            style: dict[str, Any] = {"mode": "lines", "line": {"color": colour, "width": 2}}
            if name in markers:
                style = {"mode": "markers", "marker": {"color": colour, "size": 7}}
            elif name in dashed:
                style["line"]["dash"] = "dash"
            figure.add_scatter(
                x=x.astype("float32"),
                y=y.astype("float32"),
                name=name,
                visible=group == 0,
                hovertemplate=f"{name}<br>{x_title} %{{x}}<br>{y_title} %{{y:{y_format}}}<extra></extra>",
                **style,
            )
            groups.append(group)
    figure.update_xaxes(title=x_title, type="log" if x_log else "linear")
    figure.update_yaxes(title=y_title, type="log" if y_log else "linear", range=y_range)
    for logarithmic, update, axis in ((x_log, figure.update_xaxes, "x"), (y_log, figure.update_yaxes, "y")):
        positive = [value for trace in figure.data for value in trace[axis] if value > 0]
        if logarithmic and positive:
            # Numbers at 1, 2 and 5 where there are few powers of ten.
            few = max(positive) < 200 * min(positive)
            update(
                **({"dtick": "D2", "minorloglabels": "complete"} if few else {"dtick": 1, "exponentformat": "power"})
            )
    if y_format.endswith("%"):
        figure.update_yaxes(tickformat=".0%")
    top, bottom = 34 + title_height(title), 60
    legend = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "xanchor": "left"}
    if choose == "slider":
        bottom = 150
        figure.update_layout(chooser("slider", list(sets), groups, [title or ""] * len(sets), prefix, -0.3))
    elif choose == "dropdown":
        figure.update_layout(chooser("dropdown", list(sets), groups, [title or ""] * len(sets)))
        figure.layout.updatemenus[0].pad.b = 30
        top += 44
    margin = {"l": 60, "r": 12, "t": top, "b": bottom}
    shown = len(names) > 1
    return finish(figure, title, alt, height=height + top + bottom - 90, margin=margin, legend=legend, showlegend=shown)


def _read(curves: Any) -> dict[str, tuple[Array, Array]]:
    read = {}
    for name, pair in as_mapping(curves, "curves").items():
        x = as_vector(pair[0], f"x of {name!r}")
        read[name] = (x, as_vector(pair[1], f"y of {name!r}", len(x), "x"))
    return read
