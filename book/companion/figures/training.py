"""Data, trainings and their accuracies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from matplotlib.ticker import MaxNLocator
from plotly.subplots import make_subplots

from companion.style import SEQUENTIAL

if TYPE_CHECKING:
    from nadtools.training import TrainResult
from companion.parts import (
    Array,
    ArrayLike,
    Backend,
    Figure,
    as_array,
    as_images,
    as_mapping,
    as_vector,
    check_backend,
    chooser,
    colour_bar,
    colour_of,
    draw_pixels,
    finish,
    pixel_trace,
    square_cells,
    static_figure,
)
from nadtools import checks

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
        In [0, 1], one for each frequency; NaN leaves a cell blank. With a dict from labels (architectures) to such
        accuracies a dropdown chooses (matplotlib: one panel for each).
    quantity
        What kind of accuracy it is.
    """
    cells = as_array(list(frequencies), "frequencies")
    if cells.ndim != 2 or cells.shape[1:] != (2,) or not (cells == cells.round()).all():
        raise ValueError(f"got frequencies of shape {cells.shape}; expected a list of pairs of integers (i, j)")
    pairs = [(int(i), int(j)) for i, j in cells]
    if len(set(pairs)) < len(pairs):
        twice = next(pair for pair in pairs if pairs.count(pair) > 1)
        raise ValueError(f"got frequency {twice} more than once; expected one accuracy for each frequency")
    table = as_mapping(accuracies, "accuracies") if isinstance(accuracies, Mapping) else {"": accuracies}
    values = {
        label: as_vector(given, f"accuracies {label}".strip(), len(pairs), "frequency")
        for label, given in table.items()
    }
    for label, given in values.items():
        if ((given < 0) | (given > 1)).any():
            worst = given[(given < 0) | (given > 1)][0]
            raise ValueError(
                f"got accuracy {worst:g}{' of ' + label if label else ''}; expected shares in [0, 1], not per cent"
            )
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
    figure = go.Figure()
    for number, grid in enumerate(grids.values()):
        figure.add_trace(
            go.Heatmap(
                x=columns,
                y=rows,
                z=grid.astype(np.float32),
                zmin=0.5,
                zmax=1.0,
                colorscale=SEQUENTIAL,
                visible=number == 0,
                hoverongaps=False,
                hovertemplate="frequency (%{y}, %{x})<br>accuracy %{z:.1%}<extra></extra>",
                colorbar=colour_bar(
                    (0, 1), 230, y=-0.14, dtick=0.1, tickformat=".0%", title={"text": quantity, "side": "top"}
                ),
            )
        )
    step_j, step_i = _step(columns), _step(rows)
    axis = {"showgrid": False, "zeroline": False, "constrain": "domain"}
    figure.update_xaxes(title="frequency j", range=[columns[0] - step_j / 2, columns[-1] + step_j / 2], **axis)
    figure.update_yaxes(
        title="frequency i", range=[rows[-1] + step_i / 2, rows[0] - step_i / 2], scaleanchor="x", **axis
    )
    titles = [": ".join(part for part in (title, label) if part) for label in labels]
    top = 56 if titles[0] else 24
    if len(labels) > 1:
        figure.update_layout(chooser("dropdown", labels, range(len(labels)), titles))
        top += 44
    margin = {"l": 52, "r": 12, "t": top, "b": 118}
    return finish(figure, titles[0], alt, height=320 + top + 118, margin=margin)


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
    *,
    backend: Backend = "plotly",
) -> Figure:
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
    check_backend(backend)
    num_samples = checks.positive_int("num_samples", num_samples)
    images, classes = as_images(x[:num_samples], y[:num_samples])
    limit = float(np.abs(images).max())
    names = ["y = +1" if label else "y = −1" for label in classes]
    alt = f"Samples: {len(images)} images with labels {', '.join(name[4:] for name in names)}."
    if backend == "matplotlib":
        figure = static_figure(None, alt, (max(1.2 * len(images), 2.4), 1.6))
        for axes, image, name in zip(figure.subplots(1, len(images), squeeze=False)[0], images, names, strict=True):
            draw_pixels(axes, image, limit)
            axes.set(xticks=[], yticks=[])
            axes.set_title(name, fontsize=9, loc="center")
        return figure
    figure = make_subplots(1, len(images), subplot_titles=names, horizontal_spacing=0.08 / len(images))
    for column, image in enumerate(images, start=1):
        figure.add_trace(pixel_trace(image, limit), 1, column)
        square_cells(figure, 1, column, image, frequency=False)
    return finish(figure, None, alt, height=158, margin={"l": 4, "r": 4, "t": 28, "b": 4})


def plot_history(
    results: TrainResult | Mapping[str, TrainResult],
    title: str | None = None,
    *,
    backend: Backend = "plotly",
) -> Figure:
    """Draw accuracy and loss after each epoch; solid lines on the test set, dotted ones on the training set.

    Parameters
    ----------
    results
        What ``train`` returns, or a dict from labels to such results.
    """
    check_backend(backend)
    table = as_mapping(results, "results") if isinstance(results, Mapping) else {"": results}
    columns = ("epoch", "train_accuracy", "test_accuracy", "train_loss", "test_loss")
    for label, result in table.items():
        history = getattr(result, "history", None)
        if history is None:
            raise TypeError(f"got a result {label} of type {type(result).__name__}; expected what train(...) returns")
        missing = [column for column in columns if column not in history]
        if missing or not len(history):
            raise ValueError(f"got a history {label} with {len(history)} epochs and without {missing or 'any row'}")
    ends = [f"{label + ' ' if label else ''}ends at {result.test_accuracy:.1%}" for label, result in table.items()]
    alt = f"{title or 'Accuracy and loss'} against the epoch; test accuracy of {', '.join(ends)}."
    alt = alt.replace("accuracy of ends", "accuracy ends")
    panels = (("accuracy", ".0%"), ("loss", ""))
    kinds = (("test", "solid", "-"), ("train", "dot", ":"))
    if backend == "matplotlib":
        figure = static_figure(title, alt, (6.4, 4.4))
        for axes, (quantity, _) in zip(figure.subplots(2, 1, sharex=True), panels, strict=True):
            for number, (label, result) in enumerate(table.items()):
                for kind, _, dash in kinds:
                    axes.plot(
                        *_curve(result, f"{kind}_{quantity}"),
                        dash,
                        color=colour_of(label, number),
                        label=f"{label} {kind}".strip(),
                        marker="." if len(result.history) == 1 else None,
                    )
            axes.set_ylabel(quantity)
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=min(3, len(names)), frameon=False, fontsize=8)
        figure.axes[0].yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        figure.axes[1].set_xlabel("epoch")
        figure.axes[1].xaxis.set_major_locator(MaxNLocator(integer=True))
        return figure
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.08)
    for row, (quantity, _) in enumerate(panels, start=1):
        for number, (label, result) in enumerate(table.items()):
            for kind, dash, _ in kinds:
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
    legend = {"y": -0.16, "yanchor": "top"}
    top = 44 if title else 16
    margin = {"l": 56, "r": 12, "t": top, "b": 48}
    return finish(figure, title, alt, height=440 + top, legend=legend, margin=margin)


def _curve(result: TrainResult, column: str) -> tuple[Array, Array]:
    """Take a column of the history against the epoch, where it was measured."""
    measured = result.history[["epoch", column]].dropna()
    return measured["epoch"].to_numpy(), measured[column].to_numpy()
