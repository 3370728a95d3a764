"""Accuracies on images beside D(v), over the index of v; and a drawing of what is at stake."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from companion.figures import plot_over_indices
from companion.parts import COLOURS, Array, as_mapping, check_columns, finish, percent, sentence

__all__ = ["plot_curved_and_straight", "plot_transition"]

_TRANSITION = {
    "both": "test_accuracy",
    "images alone": "test_accuracy_images",
    "hint alone": "test_accuracy_direction",
}
_REFERENCE = "trained on images alone"


def plot_transition(tables: Mapping[str, pd.DataFrame], title: str | None = None) -> go.Figure:
    """Draw accuracies on images ⊕ D(v), and on either part, against the index of v; a dropdown chooses the network.

    Parameters
    ----------
    tables
        From a network's name to its trainings, a row each: ``part``, ``index``, ``test_accuracy``,
        ``test_accuracy_images`` and ``test_accuracy_direction``, as :func:`load_transition` gives
        them. Seeds are averaged. Where there are rows whose part is ``"images"``, their mean accuracy is a dashed line.
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
    return plot_over_indices(
        curves,
        "test accuracy",
        title,
        choose="dropdown",
        x_title="index of the hint's NAD",
        dashed=(_REFERENCE,) if alone else (),
        y_range=(lowest - 0.03, 1.02),
        alt=alt,
    )


def plot_curved_and_straight(title: str | None = None) -> go.Figure:
    """Draw one set of samples twice: in the plane of two features of the picture, and over the hint.

    It is a drawing: the two classes are half moons in the first plane, and the boundaries are drawn by hand.
    """
    source = np.random.default_rng(0)
    angle = source.uniform(0, np.pi, (2, 60))
    across = np.stack([np.cos(angle[0]), 1 - np.cos(angle[1])]) + source.normal(0, 0.08, (2, 60))
    upwards = np.stack([np.sin(angle[0]), 0.5 - np.sin(angle[1])]) + source.normal(0, 0.08, (2, 60))
    hint = np.full((2, 60), [[-1.0], [1.0]])
    bend = np.linspace(-1.4, 2.4, 80)
    boundaries = ((bend, 0.25 + 0.5 * np.cos(np.pi * bend)), (np.zeros(2), np.array([-1.0, 1.5])))
    figure = make_subplots(1, 2, subplot_titles=("by the picture", "by the hint"), horizontal_spacing=0.12)
    for column, (horizontal, boundary) in enumerate(zip((across, hint), boundaries, strict=True), 1):
        for label, colour in enumerate(COLOURS[:2]):
            figure.add_scatter(
                x=horizontal[label], y=upwards[label], mode="markers", marker={"color": colour, "size": 6},
                name=("one class", "the other")[label], showlegend=False, row=1, col=column,
            )  # fmt: skip
        figure.add_scatter(
            x=boundary[0], y=boundary[1], mode="lines", line={"color": "#8c8c8c", "width": 3}, name="boundary",
            showlegend=False, row=1, col=column,
        )  # fmt: skip
    figure.update_xaxes(showticklabels=False, showgrid=False, zeroline=False, range=[-1.4, 2.4], col=1)
    figure.update_xaxes(showticklabels=False, showgrid=False, zeroline=False, range=[-1.9, 1.9], col=2)
    figure.update_yaxes(showticklabels=False, showgrid=False, zeroline=False, range=[-1.0, 1.5])
    figure.update_xaxes(title="something in the picture", col=1)
    figure.update_xaxes(title="the hint", col=2)
    figure.update_yaxes(title="something else in it", col=1)
    alt = f"{sentence(title or 'Curved and straight')} Two classes, as half moons in the plane of two features of the "
    alt += "picture, with a boundary that bends; and over the hint, which one straight line divides."
    return finish(figure, title, alt, height=340, margin={"l": 40, "r": 12, "t": 70, "b": 50})
