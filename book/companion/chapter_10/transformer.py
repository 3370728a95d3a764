"""What a vision transformer makes of a carrier in photographs, and of two features."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from companion.parts import COLOURS, finish, title_height

__all__ = ["plot_two", "poisoned_table"]


def poisoned_table(table: pd.DataFrame) -> Any:
    """Accuracies with carriers along NADs, the means over seeds: what clean, rightly and wrongly marked images give.

    The table is that of the experiment ``poisoned``.
    """
    mean = table.groupby("index", dropna=False).mean(numeric_only=True)
    columns = {
        "test_accuracy": "right on clean ones",
        "test_accuracy_poisoned": "on marked ones",
        "follows_carrier": "follows a wrong mark",
        "follows_content": "follows the picture",
    }
    shown = mean[list(columns)].rename(columns=columns)
    shown.index = pd.Index([f"NAD {index:.0f}" if index >= 0 else "no carrier" for index in mean.index])
    caption = "Carriers cost the ViT two points at most. Only before the step are they noticed at all."
    return shown.style.format("{:.1%}", na_rep="").set_caption(caption)


def plot_two(table: pd.DataFrame, title: str | None = None) -> go.Figure:
    """Draw, for each pair of features, test accuracy with either alone: the mean over seeds.

    The table is that of the experiment ``two``.
    """
    mean = table.groupby(["first", "second"], sort=False).mean()
    pairs = [f"NAD {int(first)}, large<br>NAD {int(second)}, half" for first, second in mean.index]
    figure = go.Figure()
    for number, (part, name) in enumerate({"first": "large", "second": "half"}.items()):
        accuracy = mean[f"test_accuracy_{part}"].astype("float32")
        hover = f"{name} alone<br>%{{x:.1%}}<extra></extra>"
        figure.add_bar(
            x=accuracy,
            y=pairs,
            name=name,
            orientation="h",
            marker_color=COLOURS[number],
            hovertemplate=hover,
        )
    figure.update_xaxes(title="test accuracy with one alone", range=(0, 1.02), tickformat=".0%")
    figure.update_yaxes(autorange="reversed")
    figure.add_vline(x=0.5, line={"dash": "dash", "color": "#8c8c8c", "width": 1.5})
    alt = f"{title}: test accuracy with either of two features alone, for {len(pairs)} pairs of NADs."
    legend = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"}
    height = 40 * len(pairs) + 100 + title_height(title)
    return finish(
        figure,
        title,
        alt,
        height=height,
        margin={"l": 110, "r": 12, "t": 34 + title_height(title), "b": 60},
        legend=legend,
    )
