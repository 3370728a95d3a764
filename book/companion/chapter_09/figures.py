"""Accuracies on flipped images."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from companion.parts import COLOURS, ArrayLike, as_mapping, as_vector, finish, title_height

__all__ = ["plot_arms"]


def plot_arms(
    accuracies: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]],
    title: str | None = None,
    *,
    chance: float | None = None,
) -> go.Figure:
    """Draw test accuracies as bars, in groups, with the training accuracy of each as an open circle.

    Parameters
    ----------
    accuracies
        From the group, for instance an architecture, to the name of a bar, to its test and training accuracies, one for
        each seed. A bar is their mean; more than one have their range as an error bar. Groups may lack bars.
    chance
        Where a dotted line says what guessing reaches.
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
            "x": [label.replace(",", "").replace(" ", "<br>") for label in having],
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
        line = {"dash": "dot", "width": 1, "color": "#8c8c8c"}
        figure.add_hline(y=chance, line=line, name="chance", showlegend=True)
    figure.update_xaxes(tickangle=-35, tickfont={"size": 10})
    figure.update_yaxes(title="accuracy", range=[0, 1.04], tickformat=".0%")
    alt = f"{title or 'Accuracies'}: " + "; ".join(
        f"{label}: " + ", ".join(f"{name} {pair[0].mean():.0%}" for name, pair in bars.items())
        for label, bars in groups.items()
    )
    alt += ". Circles: training accuracy."
    top = 34 + title_height(title)
    legend = {"y": -0.28, "yanchor": "top"}
    layout = {"barmode": "group", "scattermode": "group", "bargap": 0.25, "scattergap": 0.25}
    margin = {"l": 60, "r": 12, "t": top, "b": 130}
    return finish(figure, title, alt, height=260 + top + 130, margin=margin, legend=legend, **layout)
