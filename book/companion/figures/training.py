"""Data, trainings and their accuracies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from companion.style import SEQUENTIAL

if TYPE_CHECKING:
    from nadtools.training import TrainResult
from companion.parts import (
    Array,
    ArrayLike,
    as_array,
    as_images,
    as_mapping,
    as_vector,
    colour_bar,
    colour_of,
    finish,
    pixel_trace,
    square_cells,
)

__all__ = ["plot_accuracy_map", "plot_history", "plot_samples"]


def plot_accuracy_map(
    frequencies: Sequence[tuple[int, int]],
    accuracies: ArrayLike | Mapping[str, ArrayLike],
    title: str | None = None,
    *,
    quantity: str = "test accuracy",
) -> go.Figure:
    """Draw accuracy over two-dimensional Fourier frequencies, from 50 % to 100 %.

    Parameters
    ----------
    frequencies
        (i, j) of each accuracy; the cells are as wide as the largest step that all of them share.
    accuracies
        In [0, 1], one for each frequency; NaN leaves a cell blank. A dict from labels to such
        accuracies gives maps side by side.
    quantity
        What kind of accuracy it is.
    """
    cells = as_array(list(frequencies), "frequencies")
    pairs = [(int(i), int(j)) for i, j in cells]
    table = as_mapping(accuracies, "accuracies") if isinstance(accuracies, Mapping) else {"": accuracies}
    values = {
        label: as_vector(given, f"accuracies {label}".strip(), len(pairs), "frequency")
        for label, given in table.items()
    }
    rows, row_of = _axis_cells([i for i, _ in pairs])
    columns, column_of = _axis_cells([j for _, j in pairs])
    where = ([row_of[i] for i, _ in pairs], [column_of[j] for _, j in pairs])
    grids = {}
    for label, given in values.items():
        grids[label] = np.full((len(rows), len(columns)), np.nan)
        grids[label][where] = given
    parts = []
    for label, given in values.items():
        low, high = np.nanmin(given) if np.isfinite(given).any() else 0.0, np.nanmax([*given, 0.0])
        parts.append(f"{label + ' ' if label else ''}between {low:.0%} and {high:.0%}")
    alt = f"{title or quantity.capitalize()} over {len(pairs)} Fourier frequencies: {'; '.join(parts)}."

    labels = list(grids)
    figure = make_subplots(1, len(labels), subplot_titles=labels if any(labels) else None, horizontal_spacing=0.06)
    for number, grid in enumerate(grids.values(), 1):
        figure.add_heatmap(
            x=columns,
            y=rows,
            z=grid.astype(np.float32),
            coloraxis="coloraxis",
            hoverongaps=False,
            hovertemplate="frequency (%{y}, %{x})<br>accuracy %{z:.1%}<extra></extra>",
            row=1,
            col=number,
        )
        figure.update_yaxes(
            scaleanchor=figure.get_subplot(1, number).xaxis.plotly_name.replace("axis", ""),
            showticklabels=number == 1,
            row=1,
            col=number,
        )
    step_j, step_i = _step(columns), _step(rows)
    axis = {"showgrid": False, "zeroline": False, "constrain": "domain", "nticks": 5}
    figure.update_xaxes(title="frequency j", range=[columns[0] - step_j / 2, columns[-1] + step_j / 2], **axis)
    figure.update_yaxes(range=[rows[-1] + step_i / 2, rows[0] - step_i / 2], constraintoward="top", **axis)
    figure.update_yaxes(title="frequency i", row=1, col=1)
    bar = colour_bar((0, 1), 230, y=-0.2, dtick=0.1, tickformat=".0%", title={"text": quantity, "side": "top"})
    figure.update_layout(coloraxis={"cmin": 0.5, "cmax": 1.0, "colorscale": SEQUENTIAL, "colorbar": bar})
    top = (56 if title else 24) + (16 if any(labels) else 0)
    margin = {"l": 52, "r": 12, "t": top, "b": 118}
    figure = finish(figure, title, alt, height=320 + top + 118, margin=margin)
    figure.layout.meta = {**figure.layout.meta, "square": True}
    return figure


def _axis_cells(given: list[int]) -> tuple[Array, dict[int, int]]:
    """Make evenly spaced cells that hold all the given frequencies, as few as possible."""
    low, high = min(given), max(given)
    step = math.gcd(*(value - low for value in given)) or 1
    cells = np.arange(low, high + 1, step)
    return cells, {int(value): number for number, value in enumerate(cells)}


def _step(cells: Array) -> float:
    return float(cells[1] - cells[0]) if len(cells) > 1 else 1.0


def plot_samples(
    x: ArrayLike,
    y: ArrayLike,
    num_samples: int = 6,
) -> go.Figure:
    """Draw the first few samples in a row, each under its class 2y − 1, on one colour scale.

    Parameters
    ----------
    x
        Shape (n, 1, h, w).
    y
        Labels 0 and 1, shape (n,).
    num_samples
        How many to show, at most.
    """
    images, classes = as_images(x[:num_samples], y[:num_samples])
    limit = float(np.abs(images).max())
    names = ["y = +1" if label else "y = −1" for label in classes]
    alt = f"Samples: {len(images)} images with labels {', '.join(name[4:] for name in names)}."
    figure = make_subplots(1, len(images), subplot_titles=names, horizontal_spacing=0.08 / len(images))
    for column, image in enumerate(images, start=1):
        figure.add_trace(pixel_trace(image, limit), 1, column)
        square_cells(figure, 1, column, image, frequency=False)
    return finish(figure, None, alt, height=158, margin={"l": 4, "r": 4, "t": 28, "b": 4})


def plot_history(
    results: TrainResult | Mapping[str, TrainResult],
    title: str | None = None,
) -> go.Figure:
    """Draw accuracy and loss after each epoch; solid lines on the test set, dotted ones on the training set.

    Parameters
    ----------
    results
        What ``train`` returns, or a dict from labels to such results.
    """
    table = as_mapping(results, "results") if isinstance(results, Mapping) else {"": results}
    ends = [f"{label + ' ' if label else ''}ends at {result.test_accuracy:.1%}" for label, result in table.items()]
    alt = f"{title or 'Accuracy and loss'} against the epoch; test accuracy of {', '.join(ends)}."
    alt = alt.replace("accuracy of ends", "accuracy ends")
    panels = (("accuracy", ".0%"), ("loss", ""))
    kinds = (("test", "solid"), ("train", "dot"))
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.08)
    for row, (quantity, _) in enumerate(panels, start=1):
        for number, (label, result) in enumerate(table.items()):
            for kind, dash in kinds:
                name = f"{label} {kind}".strip()
                epochs, values = _curve(result, f"{kind}_{quantity}")
                figure.add_trace(
                    go.Scatter(
                        x=epochs,
                        y=values,
                        mode="lines" if len(result.history) > 1 else "markers",
                        name=name,
                        legendgroup=name,
                        showlegend=row == 1,
                        line={"color": colour_of(label, number), "dash": dash, "width": 2},
                        hovertemplate="epoch %{x}: %{y:.1%}" if quantity == "accuracy" else "epoch %{x}: %{y:.3g}",
                    ),
                    row,
                    1,
                )
        figure.update_yaxes(title=quantity, tickformat=panels[row - 1][1], row=row, col=1)
    figure.update_xaxes(title="epoch", row=2, col=1)
    legend = {"y": -0.2, "yanchor": "top"}
    top = 44 if title else 16
    margin = {"l": 56, "r": 12, "t": top, "b": 48}
    return finish(figure, title, alt, height=440 + top, legend=legend, margin=margin)


def _curve(result: TrainResult, column: str) -> tuple[Array, Array]:
    """Take a column of the history against the epoch, where it was measured."""
    measured = result.history[["epoch", column]].dropna()
    return measured["epoch"].to_numpy(), measured[column].to_numpy()
