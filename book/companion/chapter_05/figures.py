"""What is learned along directions, against what was known before any training."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from companion.parts import (
    COLOURS,
    Array,
    as_mapping,
    buttons_for,
    dropdown_layout,
    finish,
    rank_correlation,
    title_height,
)

__all__ = ["plot_predictions", "plot_spectrum_and_accuracy"]

_SPECTRUM, _TEST, _TRAIN, _PUBLISHED = "#009e73", "#d55e00", "#8c8c8c", "#0072b2"


@dataclass(frozen=True)
class _Series:
    """One set of directions: by index, the spectrum and what training came to."""

    index: Array
    spectrum: Array
    test: Array
    deviation: Array | None
    train: Array | None
    published: tuple[Array, Array] | None


def plot_spectrum_and_accuracy(
    tables: Mapping[str, pd.DataFrame],
    title: str | None = None,
    *,
    published: Mapping[str, pd.DataFrame] | None = None,
) -> go.Figure:
    """Draw eigenvalues (left axis) and accuracies on D(u_k) (right axis) against the index k of the NADs.

    Eigenvalues are divided by the largest one of their set. Where an index has several trainings, their mean is drawn
    with a bar of one standard deviation to either side. With Plotly a dropdown chooses the set, and another one whether
    the index axis is linear or logarithmic; on a logarithmic axis index k stands at k + 1.

    Parameters
    ----------
    tables
        From the label of a set to its trainings, one row each: columns ``index``, ``eigenvalue`` and
        ``test_accuracy``, and ``train_accuracy`` where it is to be drawn; accuracies in [0, 1].
    published
        From the label of a set to accuracies that somebody else found: columns ``index`` and ``accuracy``.
    """
    given = as_mapping(tables, "tables")
    others = as_mapping(published, "published") if published else {}
    sets = {label: _series(table, others.get(label)) for label, table in given.items()}
    alt = f"{title or 'Spectrum and accuracy'}, against the index of the NAD. " + " ".join(
        f"{label}: the eigenvalue falls to {one.spectrum[-1]:.1g} of the first, test accuracy goes from "
        f"{one.test[0]:.0%} to {one.test[-1]:.0%}."
        for label, one in sets.items()
    )

    figure = go.Figure()
    groups: list[Hashable] = []
    for group, one in enumerate(sets.values()):
        for trace in _traces(one):
            figure.add_trace(trace.update(visible=group == 0))
            groups.append(group)
    figure.update_xaxes(title="index k of the NAD, plus 1")
    lowest = min(one.spectrum.min() for one in sets.values())
    figure.update_layout(
        yaxis={
            "title": {"text": "eigenvalue / the first", "font": {"color": _SPECTRUM}},
            "type": "log",
            "exponentformat": "power",
            "dtick": 1,
            "range": [np.log10(lowest) - 0.1, 0.1],
        },
        yaxis2={
            "title": {"text": "accuracy", "font": {"color": _TEST}},
            "overlaying": "y",
            "side": "right",
            "range": _limits([one.test for one in sets.values()]),
            "tickformat": ".0%",
            "tickmode": "linear",  # by default they stand where the left axis has its ticks
            "dtick": 0.1,
            "showgrid": False,
            "zeroline": False,
        },
    )
    axis_buttons = [
        {
            "label": f"{kind} index",
            "method": "relayout",
            "args": [{"xaxis.type": "log" if kind == "logarithmic" else "linear", "xaxis.autorange": True}],
        }
        for kind in ("linear", "logarithmic")
    ]
    # One above the other: side by side they would not fit on a telephone.
    menus = [dropdown_layout(axis_buttons)]
    if len(sets) > 1:
        menus.append({**dropdown_layout(buttons_for(sets, groups)), "pad": {"b": 48}})
    top = 20 + title_height(title) + 42 * len(menus)
    margin = {"l": 56, "r": 56, "t": top, "b": 110}
    legend = {"orientation": "h", "x": 0, "y": -0.24, "yanchor": "top", "xanchor": "left"}
    return finish(figure, title, alt, height=290 + top + 110, margin=margin, legend=legend, updatemenus=menus)


def _series(table: pd.DataFrame, published: pd.DataFrame | None) -> _Series:
    """Mean and spread by index."""
    by_index = table.groupby("index")
    means = by_index.mean(numeric_only=True)
    spectrum = means["eigenvalue"].to_numpy()
    repeated = bool((by_index.size() > 1).any())
    deviation = by_index["test_accuracy"].std().fillna(0.0).to_numpy() if repeated else None
    train = means["train_accuracy"].to_numpy() if "train_accuracy" in means else None
    beside = None
    if published is not None:
        other = published.sort_values("index")
        beside = other["index"].to_numpy(dtype=float), other["accuracy"].to_numpy()
    test = means["test_accuracy"].to_numpy()
    return _Series(means.index.to_numpy(dtype=float), spectrum / spectrum.max(), test, deviation, train, beside)


def _limits(accuracies: Sequence[Array]) -> list[float]:
    """From one half to one, and lower where an accuracy is."""
    return [min(0.48, *(float(array.min()) - 0.02 for array in accuracies)), 1.02]


def _traces(one: _Series) -> list[go.Scatter]:
    place = one.index + 1
    numbers = one.index.astype(int)
    bars = None if one.deviation is None else {"array": one.deviation, "thickness": 1.5, "width": 3}
    traces = [
        go.Scatter(
            x=place,
            y=one.spectrum,
            customdata=numbers,
            name="eigenvalue (left)",
            mode="lines",
            line={"color": _SPECTRUM, "width": 2},
            hovertemplate="NAD %{customdata}<br>eigenvalue %{y:.3g} of the first<extra></extra>",
        ),
    ]
    if one.train is not None:
        traces.append(
            go.Scatter(
                x=place,
                y=one.train,
                customdata=numbers,
                name="training accuracy",
                yaxis="y2",
                mode="lines",
                line={"color": _TRAIN, "width": 2, "dash": "dot"},
                hovertemplate="NAD %{customdata}<br>training accuracy %{y:.1%}<extra></extra>",
            )
        )
    traces.append(
        go.Scatter(
            x=place,
            y=one.test,
            customdata=numbers,
            error_y=bars,
            name="test accuracy",
            yaxis="y2",
            mode="lines+markers",
            line={"color": _TEST, "width": 2},
            marker={"size": 6},
            hovertemplate="NAD %{customdata}<br>test accuracy %{y:.1%}<extra></extra>",
        )
    )
    if one.published is not None:
        index, accuracy = one.published
        traces.append(
            go.Scatter(
                x=index + 1,
                y=accuracy,
                customdata=index.astype(int),
                name="published accuracy",
                yaxis="y2",
                mode="markers",
                marker={"size": 7, "symbol": "circle-open", "color": _PUBLISHED, "line": {"width": 1.5}},
                hovertemplate="NAD %{customdata}<br>published accuracy %{y:.1%}<extra></extra>",
            )
        )
    return traces


def plot_predictions(
    tables: Mapping[str, pd.DataFrame],
    title: str | None = None,
) -> go.Figure:
    """Draw test accuracy against several predictions of it; a dropdown chooses the family of directions.

    The legend gives Spearman's rank correlation of each prediction with accuracy.

    Parameters
    ----------
    tables
        From the label of a family to its directions, one row each: the index names the direction, ``accuracy`` is in
        [0, 1], and each other column is a prediction, positive, such as α(v) by one estimator, as a multiple of its
        mean over all directions.
    """
    families: dict[str, pd.DataFrame] = as_mapping(tables, "tables")
    names = list(next(iter(families.values())).columns.drop("accuracy"))
    summaries = {
        label: {name: rank_correlation(frame[name].to_numpy(), frame["accuracy"].to_numpy()) for name in names}
        for label, frame in families.items()
    }
    parts = [f"{label}: " + ", ".join(f"{n} {r}" for n, r in found.items()) for label, found in summaries.items()]
    alt = f"{title or 'Accuracy against its predictions'}; Spearman's rank correlations. {'; '.join(parts)}."

    figure = go.Figure()
    groups = []
    for group, (label, frame) in enumerate(families.items()):
        for number, name in enumerate(names):
            figure.add_scatter(
                x=frame[name].to_numpy(dtype=np.float32),
                y=frame["accuracy"].to_numpy(dtype=np.float32),
                text=[str(entry) for entry in frame.index],
                name=f"{name} ({summaries[label][name]})",
                mode="markers",
                marker={"size": 7, "color": COLOURS[number % len(COLOURS)], "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
                visible=group == 0,
                hovertemplate="%{text}<br>prediction %{x:.3g}<br>accuracy %{y:.1%}<extra></extra>",
            )
            groups.append(group)
    menus = [dropdown_layout(buttons_for(families, groups))] if len(families) > 1 else []
    accuracies = [frame["accuracy"].to_numpy() for frame in families.values()]
    figure.update_xaxes(type="log", title="prediction (1: the mean)", exponentformat="power", dtick=1)
    figure.update_yaxes(title="test accuracy", tickformat=".0%", range=_limits(accuracies))
    top = 20 + title_height(title) + 42 * len(menus)
    margin = {"l": 56, "r": 12, "t": top, "b": 90}
    legend = {"orientation": "h", "x": 0, "y": -0.24, "yanchor": "top", "xanchor": "left"}
    layout = {"margin": margin, "legend": legend, "updatemenus": menus, "showlegend": True, "hovermode": "closest"}
    return finish(figure, title, alt, height=290 + top + 90, **layout)


_SYMBOLS = ("circle", "square", "diamond", "cross", "x")
