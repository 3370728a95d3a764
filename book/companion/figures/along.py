"""Accuracies along NADs, a panel for each network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from companion.parts import COLOURS, as_mapping, finish, title_height

__all__ = ["index_axis", "plot_along_nads"]


def index_axis(ticks: Sequence[int]) -> dict[str, Any]:
    """A logarithmic axis on which index k stands at k + 1, and is called k."""
    return {
        "type": "log",
        "range": [-0.06, np.log10(1024) + 0.04],
        "tickvals": [tick + 1 for tick in ticks],
        "ticktext": [str(tick) for tick in ticks],
    }


def plot_along_nads(
    networks: Mapping[str, Mapping[str, pd.Series]],
    title: str | None = None,
    *,
    points: Sequence[str] = (),
    dashed: Sequence[str] = (),
    y_title: str = "accuracy",
    y_range: tuple[float, float] = (0.46, 1.03),
    num_columns: int = 2,
) -> go.Figure:
    """Draw shares along NADs, one panel for each network.

    Parameters
    ----------
    networks
        From the name of a network to shares by index, by the name of their curve, which are the same for all networks.
    points, dashed
        Names of curves that are drawn as points, and dashed.
    y_title, y_range, num_columns
    """
    named = as_mapping(networks, "networks")
    rows = -(-len(named) // num_columns)
    figure = make_subplots(
        rows, num_columns, shared_xaxes=True, shared_yaxes=True, subplot_titles=list(named),
        horizontal_spacing=0.2 / num_columns, vertical_spacing=0.26 / rows,
    )  # fmt: skip
    for panel, curves in enumerate(named.values()):
        for number, (name, shares) in enumerate(curves.items()):
            colour = COLOURS[1 if name in points else -1 if name in dashed else number]
            plain = name in dashed or len(shares) > 20
            symbol = "diamond-open" if name in points[1:] else "circle"
            figure.add_scatter(
                x=shares.index + 1,
                y=shares.to_numpy(dtype=np.float32),
                customdata=shares.index,
                mode="markers" if name in points else "lines" if plain else "lines+markers",
                marker={"color": colour, "size": 7, "symbol": symbol, "line": {"color": colour, "width": 1.5}},
                line={"color": colour, "width": 1.5, "dash": "dash" if name in dashed else "solid"},
                cliponaxis=False,
                name=name,
                legendgroup=name,
                showlegend=panel == 0,
                hovertemplate="NAD %{customdata}<br>%{fullData.name} %{y:.1%}<extra></extra>",
                row=panel // num_columns + 1,
                col=panel % num_columns + 1,
            )
    figure.update_xaxes(index_axis((0, 10, 100, 1000) if num_columns < 3 else (10, 1000)), tickangle=0)
    figure.update_xaxes(title="index k", row=rows)
    figure.update_yaxes(title=y_title, col=1)
    step = 0.1 if rows == 1 and y_range[1] - y_range[0] < 0.7 else 0.25
    figure.update_yaxes(range=y_range, tickformat=".0%", dtick=step, tick0=0.5)
    alt = f"{title or y_title}, of {', '.join(named)}: {', '.join(next(iter(named.values())))}."
    top, bottom, height = 34 + title_height(title), 84, (200 if rows == 1 else 128 * rows)
    legend = {"orientation": "h", "x": 0, "y": -58 / height, "yanchor": "top", "xanchor": "left"}
    margin = {"l": 56, "r": 12, "t": top, "b": bottom}
    return finish(figure, title, alt, height=height + top + bottom, margin=margin, legend=legend)
