"""What is learned along directions, against what was known before any training."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from companion.figures.along import index_axis
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

_SPECTRUM, _TEST, _PUBLISHED = "#009e73", "#d55e00", "#0072b2"
_HOVER = "NAD %{customdata}<br>%{fullData.name} %{y:.1%}<extra></extra>"


@dataclass(frozen=True)
class _Series:
    """One set of directions: by index, the spectrum and what training came to."""

    index: Array
    spectrum: Array
    test: Array
    deviation: Array | None
    published: pd.Series | None
    notes: Mapping[int, str]


def plot_spectrum_and_accuracy(
    tables: Mapping[str, pd.DataFrame],
    title: str | None = None,
    *,
    published: Mapping[str, pd.Series] | None = None,
    notes: Mapping[str, Mapping[int, str]] | None = None,
) -> go.Figure:
    """Draw eigenvalues and, below them, accuracies on D(u_k) against the index k of the NADs, on a logarithmic axis.

    Eigenvalues are divided by the largest one of their set. Where an index has several trainings, their mean is drawn
    with a bar of one standard deviation to either side. A dropdown chooses the set.

    Parameters
    ----------
    tables
        From the label of a set to its trainings, one row each: columns ``index``, ``eigenvalue`` and
        ``test_accuracy``, in [0, 1].
    published
        From the label of a set to accuracies that somebody else found, by index.
    notes
        From the label of a set to words beside some of its accuracies, by index.
    """
    given = as_mapping(tables, "tables")
    others, remarks = published or {}, notes or {}
    sets = {label: _series(table, others.get(label), remarks.get(label, {})) for label, table in given.items()}
    alt = f"{title or 'Spectrum and accuracy'}, against the index of the NAD. " + " ".join(
        f"{label}: the eigenvalue falls to {one.spectrum[-1]:.1g} of the first, test accuracy goes from "
        f"{one.test[0]:.0%} to {one.test[-1]:.0%}."
        for label, one in sets.items()
    )

    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.3, 0.7])
    groups: list[Hashable] = []
    for group, one in enumerate(sets.values()):
        for row, trace in _traces(one):
            figure.add_trace(trace.update(visible=group == 0), row, 1)
            groups.append(group)
    figure.update_xaxes(index_axis((0, 3, 10, 30, 100, 300, 1000)))
    figure.update_xaxes(title="index k of the NAD", row=2)
    lowest = min(one.spectrum.min() for one in sets.values())
    figure.update_yaxes(
        title="λ<sub>k</sub> / λ<sub>0</sub>",
        type="log",
        tickformat="~g",
        dtick=2,
        range=[np.log10(lowest) - 0.2, 0.3],
        row=1,
    )
    figure.update_yaxes(
        title="accuracy", range=_limits([one.test for one in sets.values()]), tickformat=".0%", dtick=0.1, row=2
    )
    menus = [dropdown_layout(buttons_for(sets, groups))] if len(sets) > 1 else []
    top = 20 + title_height(title) + 42 * len(menus)
    margin = {"l": 56, "r": 20, "t": top, "b": 72}
    legend = {"orientation": "h", "x": 0, "y": -0.18, "yanchor": "top", "xanchor": "left"}
    return finish(figure, title, alt, height=275 + top + 72, margin=margin, legend=legend, updatemenus=menus)


def _series(table: pd.DataFrame, published: pd.Series | None, notes: Mapping[int, str]) -> _Series:
    """Mean and spread by index."""
    by_index = table.groupby("index")
    means = by_index.mean(numeric_only=True)
    spectrum = means["eigenvalue"].to_numpy()
    repeated = bool((by_index.size() > 1).any())
    deviation = by_index["test_accuracy"].std().fillna(0.0).to_numpy() if repeated else None
    test = means["test_accuracy"].to_numpy()
    return _Series(means.index.to_numpy(dtype=int), spectrum / spectrum.max(), test, deviation, published, notes)


def _limits(accuracies: Sequence[Array]) -> list[float]:
    """From one half to one, and lower where an accuracy is."""
    return [min(0.46, *(float(array.min()) - 0.02 for array in accuracies)), 1.02]


def _traces(one: _Series) -> list[tuple[int, go.Scatter]]:
    """The row and the trace of each."""
    bars = None if one.deviation is None else {"array": one.deviation, "thickness": 1.5, "width": 3}
    spectrum = go.Scatter(
        x=one.index + 1,
        y=one.spectrum,
        customdata=one.index,
        name="eigenvalue",
        showlegend=False,
        mode="lines",
        line={"color": _SPECTRUM, "width": 2},
        hovertemplate="NAD %{customdata}<br>eigenvalue %{y:.3g} of the first<extra></extra>",
    )
    test = go.Scatter(
        x=one.index + 1,
        y=one.test,
        customdata=one.index,
        error_y=bars,
        name="test accuracy",
        mode="lines+markers",
        line={"color": _TEST, "width": 2},
        marker={"size": 6},
        hovertemplate=_HOVER,
    )
    traces = [(1, spectrum), (2, test)]
    if one.published is not None:
        circles = go.Scatter(
            x=one.published.index + 1,
            y=one.published,
            customdata=one.published.index,
            name="published accuracy",
            mode="markers",
            marker={"size": 7, "symbol": "circle-open", "color": _PUBLISHED, "line": {"width": 1.5}},
            hovertemplate=_HOVER,
        )
        traces.append((2, circles))
    if one.notes:
        accuracy = dict(zip(one.index.tolist(), one.test.tolist(), strict=True))
        words = go.Scatter(
            x=[index + 1 for index in one.notes],
            y=[accuracy[index] for index in one.notes],
            text=[f"{note} " for note in one.notes.values()],
            name="notes",
            showlegend=False,
            mode="text",
            textposition="bottom left",
            hoverinfo="skip",
        )
        traces.append((2, words))
    return traces


def plot_predictions(
    tables: Mapping[str, pd.DataFrame],
    title: str | None = None,
) -> go.Figure:
    """Draw test accuracy against several predictions of it, a panel for each; a dropdown chooses the family.

    Above each panel stands Spearman's rank correlation of the prediction with accuracy. All panels have one axis: a
    prediction that is the same for all directions stands as a vertical line.

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
    headings = [[f"{name}<br>{found[name]}" for name in names] for found in summaries.values()]

    figure = make_subplots(
        1, len(names), shared_xaxes="all", shared_yaxes=True, subplot_titles=headings[0], horizontal_spacing=0.03
    )
    groups = []
    for group, frame in enumerate(families.values()):
        for number, name in enumerate(names):
            figure.add_scatter(
                x=frame[name].to_numpy(dtype=np.float32),
                y=frame["accuracy"].to_numpy(dtype=np.float32),
                text=[str(entry) for entry in frame.index],
                name=name,
                mode="markers",
                marker={"size": 7, "color": COLOURS[number % len(COLOURS)], "opacity": 0.7},
                visible=group == 0,
                hovertemplate="%{text}<br>prediction %{x:.3g}<br>accuracy %{y:.1%}<extra></extra>",
                row=1,
                col=number + 1,
            )
            groups.append(group)
    menus = []
    if len(families) > 1:
        buttons = buttons_for(families, groups)
        for button, texts in zip(buttons, headings, strict=True):
            button["method"] = "update"
            button["args"].append({f"annotations[{number}].text": text for number, text in enumerate(texts)})
        menus = [dropdown_layout(buttons) | {"pad": {"b": 44}}]
    accuracies = [frame["accuracy"].to_numpy() for frame in families.values()]
    # Numbers at all powers of ten would not fit on a telephone.
    figure.update_xaxes(type="log", tickvals=[0.01, 0.1, 1, 10], ticktext=["0.01", "", "1", "10"], tickangle=0)
    figure.update_xaxes(title="prediction (1: the mean)", col=(len(names) + 1) // 2)
    figure.update_yaxes(tickformat=".0%", range=_limits(accuracies))
    figure.update_yaxes(title="test accuracy", col=1)
    top = 54 + title_height(title) + 42 * len(menus)
    margin = {"l": 56, "r": 12, "t": top, "b": 52}
    layout = {"margin": margin, "updatemenus": menus, "showlegend": False, "hovermode": "closest"}
    return finish(figure, title, alt, height=195 + top + 52, **layout)
