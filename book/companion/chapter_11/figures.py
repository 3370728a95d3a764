"""Accuracies on images beside D(v), over the index of v."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from companion.figures import plot_over_indices
from companion.parts import Array, as_mapping, check_columns, percent, sentence

__all__ = ["plot_transition"]

_TRANSITION = {
    "both": "test_accuracy",
    "images alone": "test_accuracy_images",
    "hint alone": "test_accuracy_direction",
    "contradiction: the picture wins": "follows_images",
}
_REFERENCE = "trained on images alone"


def plot_transition(tables: Mapping[str, pd.DataFrame], title: str | None = None) -> go.Figure:
    """Draw accuracies on images ⊕ D(v), and on either part, against the index of v; a dropdown chooses the network.

    Parameters
    ----------
    tables
        From a network's name to its trainings, a row each: ``part``, ``index``, ``test_accuracy``,
        ``test_accuracy_images``, ``test_accuracy_direction`` and ``follows_images``, as :func:`load_transition`
        gives them. Seeds are averaged. Where there are rows whose part is ``"images"``, their mean accuracy is a dashed
        line.
    """
    given = as_mapping(tables, "tables")
    curves: dict[str, dict[str, tuple[Array, Array]]] = {}
    alone = all("images" in set(table["part"]) for table in given.values() if isinstance(table, pd.DataFrame))
    for label, table in given.items():
        check_columns(label, table, ("part", "index", *_TRANSITION.values()))
        means = table[table["part"] == "both"].groupby("index")[list(_TRANSITION.values())].mean()
        if means.empty:
            raise ValueError(f"got no training on both parts of {label!r}; expected rows whose part is 'both'")
        index = means.index.to_numpy(float)
        curves[label] = {name: (index, means[column].to_numpy()) for name, column in _TRANSITION.items()}
        if alone:
            reference = float(table[table["part"] == "images"]["test_accuracy"].mean())
            curves[label][_REFERENCE] = (index[[0, -1]], np.full(2, reference))
    lowest = min([0.5, *(float(np.nanmin(y)) for part in curves.values() for _, y in part.values())])
    alt = f"{sentence(title or 'Accuracies against the index of v')} " + " ".join(
        f"{label}: with the hint alone from {percent(part['hint alone'][1][0])} at the first index to "
        f"{percent(part['hint alone'][1][-1])} at the last, with the images alone from "
        f"{percent(part['images alone'][1][0])} to {percent(part['images alone'][1][-1])}."
        for label, part in curves.items()
    )
    figure = plot_over_indices(
        curves,
        "share of test samples",
        title,
        choose="dropdown",
        x_title="index of the hint's NAD",
        dashed=(_REFERENCE,) if alone else (),
        y_range=(lowest - 0.03, 1.02),
        alt=alt,
    )
    # Where one part decides, "both" lies under it.
    figure.update_traces(line={"width": 8}, opacity=0.4, selector={"name": "both"})
    return figure
