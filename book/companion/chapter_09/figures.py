"""What a change of the images costs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from companion.parts import COLOURS, as_mapping, finish, title_height

__all__ = ["plot_agreement", "plot_changes"]

_ARMS = ("flipped", "random basis", "permuted", "checkerboard", "random signs")
_COLOUR = dict(zip(_ARMS, COLOURS[1:], strict=False))


def plot_changes(changes: Mapping[str, pd.DataFrame], title: str | None = None) -> go.Figure:
    """Draw what each change of the images does to the accuracy of each network, with intervals.

    Parameters
    ----------
    changes
        From the network to its rows ``arm``, ``difference``, ``low`` and ``high``, in accuracy, as
        :func:`flipping_claims` gives them. Networks are drawn from top to bottom, the first arm uppermost.
    """
    tables = as_mapping(changes, "changes")
    arms = list(dict.fromkeys(arm for table in tables.values() for arm in table["arm"]))
    figure = go.Figure()
    for number, arm in enumerate(arms):
        # A row has room for all arms, one below the other.
        offset = 0.5 * (number / max(len(arms) - 1, 1) - 0.5)
        rows = [(place, table.set_index("arm").loc[arm]) for place, table in enumerate(tables.values())]
        change, low, high = ([100 * row[column] for _, row in rows] for column in ("difference", "low", "high"))
        figure.add_scatter(
            x=change,
            y=[place + offset for place, _ in rows],
            error_x={
                "array": [top - middle for top, middle in zip(high, change, strict=True)],
                "arrayminus": [middle - bottom for middle, bottom in zip(change, low, strict=True)],
                "symmetric": False,
                "thickness": 1.5,
                "width": 3,
            },
            mode="markers",
            marker={"size": 8, "color": _COLOUR[arm]},
            name=arm,
            text=list(tables),
            customdata=list(zip(low, high, strict=True)),
            hovertemplate=f"%{{text}}, {arm}: %{{x:.1f}} points<br>"
            "%{customdata[0]:.1f} to %{customdata[1]:.1f}<extra></extra>",
        )
    figure.add_vline(x=0, line={"width": 1, "color": "#8c8c8c"})
    names = [label.replace(", ", ",<br>").replace(" ", "<br>", 1) for label in tables]
    figure.update_yaxes(
        tickvals=list(range(len(names))), ticktext=names, range=[len(names) - 0.5, -0.5], showgrid=False, zeroline=False
    )
    figure.update_xaxes(title="change in accuracy, points", zeroline=False)
    alt = f"{title or 'Changes of the accuracy'}, in points: " + "; ".join(
        f"{label}: " + ", ".join(f"{row.arm} {100 * row.difference:.1f}" for row in table.itertuples())
        for label, table in tables.items()
    )
    top, bottom = 34 + title_height(title), 96
    margin = {"l": 108, "r": 16, "t": top, "b": bottom}
    legend = {"y": -60 / (56 * len(names)), "yanchor": "top"}
    return finish(figure, title, alt, height=56 * len(names) + top + bottom, margin=margin, legend=legend)


def plot_agreement(tables: Mapping[str, pd.DataFrame], title: str | None = None) -> go.Figure:
    """Draw what each change of the images costs against the agreement that it leaves, means over seeds.

    Parameters
    ----------
    tables
        From the network to its rows ``arm``, ``agreement`` and ``test_accuracy``, of which the first arm is that of the
        images as they are. The points of the network with the largest agreement, which stand apart, have the names of
        the arms.
    """
    figure = go.Figure()
    parts = []
    named = max(as_mapping(tables, "tables"), key=lambda label: tables[label].agreement.max())
    for number, (label, table) in enumerate(tables.items()):
        colour = (COLOURS[0], *COLOURS[2:])[number]  # the second is that of the flip
        means = table.groupby("arm", sort=False)[["agreement", "test_accuracy"]].mean()
        agreement, lost = means.agreement.tolist(), (100 * (means.test_accuracy - means.test_accuracy.iloc[0])).tolist()
        for arm, x, y in zip(means.index[1:], agreement[1:], lost[1:], strict=True):
            if arm == "flipped":  # which does what the other two do
                continue
            path = {"x": [agreement[0], x], "y": [lost[0], y], "mode": "lines", "hoverinfo": "skip"}
            figure.add_scatter(**path, line={"color": colour, "width": 1}, showlegend=False)
        figure.add_scatter(
            x=agreement,
            y=lost,
            mode="markers+text" if label == named else "markers",
            text=["as they are", *means.index[1:]],
            textposition=["top center", "bottom center", "bottom center", "bottom right"],
            marker={"size": 9, "color": colour},
            name=label,
            hovertemplate=f"{label}, %{{text}}<br>A = %{{x:.2g}}<br>%{{y:.1f}} points<extra></extra>",
        )
        shown = zip(means.index[1:], agreement[1:], lost[1:], strict=True)
        parts.append(f"{label}: " + ", ".join(f"{arm} A = {x:.2g}, {y:.1f}" for arm, x, y in shown))
    exponents = np.log10(pd.concat(list(tables.values())).agreement)
    room = [exponents.min() - 0.3, exponents.max() + 0.6]  # for a name
    figure.update_xaxes(type="log", title="agreement A", dtick=1, range=room)
    figure.update_yaxes(title="change in accuracy, points", range=[-30, 8])
    alt = f"{title or 'Cost against agreement'}, in points: {'; '.join(parts)}."
    legend = {"y": -0.26, "yanchor": "top"}
    return finish(figure, title, alt, height=400, margin={"t": 34 + title_height(title), "b": 120}, legend=legend)
