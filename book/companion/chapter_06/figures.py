"""The recursion layer by layer, and accuracies over α: of several networks, or of one over samples and noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from scipy.optimize import curve_fit
from scipy.special import expit

from companion.parts import COLOURS, as_mapping, check_columns, colour_of, finish, rank_correlation, title_height
from companion.style import DIVERGING

__all__ = ["OneCurve", "fit_one_curve", "plot_layers", "plot_one_curve", "plot_thresholds"]

_SMALLEST = 1e-4  # what is less is drawn there


def plot_layers(correlations: Mapping[str, Any], title: str | None = None, *, alt: str | None = None) -> go.Figure:
    """Draw one small image a layer: what comes back to its middle, beside what comes back to the other positions.

    Parameters
    ----------
    correlations
        From a layer's name to an image of any size with values between -1 and 1.
    title, alt
    """
    given = {name: np.asarray(image, dtype=float) for name, image in as_mapping(correlations, "correlations").items()}
    columns = min(3, len(given))
    rows = -(-len(given) // columns)
    figure = make_subplots(rows, columns, subplot_titles=list(given), vertical_spacing=0.16, horizontal_spacing=0.05)
    for number, image in enumerate(given.values()):
        row, column = number // columns + 1, number % columns + 1
        z, gap = image.astype("float32"), int(len(image) < 20)  # where they are few, positions can be counted
        shown = go.Heatmap(z=z, colorscale=DIVERGING, zmin=-1, zmax=1, xgap=gap, ygap=gap, showscale=False)
        figure.add_trace(shown, row, column)
        figure.update_xaxes(visible=False, constrain="domain", row=row, col=column)
        across = figure.get_subplot(row, column).yaxis.anchor
        figure.update_yaxes(
            visible=False, autorange="reversed", scaleanchor=across, constrain="domain", row=row, col=column
        )
    alt = alt or f"{title or 'Layers'}: one image for each of {', '.join(given)}."
    return finish(figure, title, alt, height=60 + 170 * rows, margin={"l": 12, "r": 12, "b": 12, "t": 84})


def plot_thresholds(
    tables: Mapping[str, pd.DataFrame],
    title: str | None = None,
    *,
    hollow: Mapping[str, pd.DataFrame] | None = None,
    gap: tuple[float, float] | None = None,
    alt: str | None = None,
) -> go.Figure:
    """Draw test accuracy over α, one point a wave, for several networks in one panel.

    Parameters
    ----------
    tables
        From a network's name to a table of its waves with the columns ``alpha`` (as a multiple of its mean over all
        directions) and ``accuracy``; the index names the waves.
    title
    hollow
        Further tables, of the same networks under other conditions, drawn as rings: from labels such as
        ``"LeNet, σ = 0.5"``, which begin with the network's name.
    gap
        Two values of α; what lies between them is shaded.
    alt

    Raises
    ------
    TypeError, ValueError
        If a table lacks a column.
    """
    figure, lines = go.Figure(), []
    rings = dict(hollow or {})
    for number, (label, table) in enumerate((as_mapping(tables, "tables") | rings).items()):
        check_columns(label, table, ("alpha", "accuracy"))
        alpha, accuracy = (table[name].to_numpy(float) for name in ("alpha", "accuracy"))
        lines.append(label if label in rings else f"{label}: {rank_correlation(alpha, accuracy)}")
        figure.add_scatter(
            x=np.maximum(alpha, _SMALLEST).astype("float32"),
            y=accuracy.astype("float32"),
            text=[str(place) for place in table.index],
            mode="markers",
            marker={
                "color": colour_of(label.partition(",")[0], number),
                "symbol": "circle-open" if label in rings else "circle",
                "size": 7,
                "opacity": 0.75,
            },
            name=lines[-1],
            hovertemplate="%{text}: α %{x:.2g} times the mean, accuracy %{y:.1%}<extra></extra>",
        )
    ticks = {_SMALLEST: "0", 0.01: "0.01", 1.0: "1", 100.0: "100"}
    figure.update_xaxes(
        type="log", tickvals=list(ticks), ticktext=list(ticks.values()), title="α(v) / mean, without any network"
    )
    figure.update_yaxes(title="test accuracy on D(v)", tickformat=".0%", range=[0.45, 1.02])
    if gap is not None:
        figure.add_vrect(*gap, fillcolor="rgba(128, 128, 128, 0.25)", line_width=0, layer="below")
    alt = alt or f"{title or 'Accuracy over α'}: {'; '.join(lines)}."
    return finish(
        figure, title, alt, height=400, legend={"yref": "container", "y": 0, "yanchor": "bottom"}, margin={"b": 165}
    )


class OneCurve(NamedTuple):
    """Accuracies as one logistic curve of x = α n^p / σ^q, n in thousands of samples."""

    x: pd.Series  #: of each row whose α is not zero
    samples_power: float  #: p
    noise_power: float  #: q
    deviation: float  #: of accuracies from the curve, root mean square
    of_alpha_alone: float  #: the same for a curve of α
    grid: tuple[np.ndarray, np.ndarray]  #: the curve itself: x, accuracy


def fit_one_curve(table: pd.DataFrame) -> OneCurve:
    """Fit one curve, from 1/2 to 1, by least squares.

    The table has the columns ``alpha`` (over its mean), ``samples``, ``sigma`` and ``test_accuracy``, as the experiment
    ``samples`` stores them. Waves that are lost have no place on a logarithmic axis.
    """
    check_columns("table", table, ("alpha", "samples", "sigma", "test_accuracy"))
    kept = table[table["alpha"] > _SMALLEST]
    accuracy = kept["test_accuracy"].to_numpy(float)
    logs = np.log10([kept["alpha"], kept["samples"] / 1000, kept["sigma"]])

    def curve(logs: np.ndarray, start: float, slope: float, p: float = 0.0, q: float = 0.0) -> np.ndarray:
        return np.asarray(0.5 + 0.5 * expit(slope * (logs[0] + p * logs[1] - q * logs[2]) - start))

    alone, _ = curve_fit(lambda x, start, slope: curve(x, start, slope), logs, accuracy, [0.0, 2.0])
    found, _ = curve_fit(curve, logs, accuracy, [0.0, 2.0, 0.5, 2.0])
    deviations = [float(np.sqrt(np.mean((accuracy - curve(logs, *fit)) ** 2))) for fit in (found, alone)]
    x = pd.Series(10 ** (logs[0] + found[2] * logs[1] - found[3] * logs[2]), kept.index)
    grid = np.geomspace(x.min(), x.max(), 60)
    line = curve(np.array([np.log10(grid), 0 * grid, 0 * grid]), *found[:2])
    return OneCurve(x, float(found[2]), float(found[3]), deviations[0], deviations[1], (grid, line))


def plot_one_curve(table: pd.DataFrame, fit: OneCurve, title: str | None = None) -> go.Figure:
    """Draw the accuracies over α alone, and over the number of the fit with its curve.

    One colour for each noise, rings for the smallest number of samples.
    """
    points = table.loc[fit.x.index]
    powers = f"α n<sup>{fit.samples_power:.1f}</sup> / σ<sup>{fit.noise_power:.1f}</sup>"
    left = (f"over {name}:<br>{100 * rest:.1f} points left" for name, rest in
            (("α alone", fit.of_alpha_alone), ("one number", fit.deviation)))  # fmt: skip
    figure = make_subplots(1, 2, shared_yaxes=True, subplot_titles=list(left), horizontal_spacing=0.06)
    for number, (sigma, part) in enumerate(points.groupby("sigma")):
        symbols = np.where(part["samples"] == points["samples"].min(), "circle-open", "circle")
        for column, x in enumerate((part["alpha"], fit.x[part.index]), 1):
            figure.add_scatter(
                x=x.astype("float32"), y=part["test_accuracy"].astype("float32"), row=1, col=column,
                mode="markers", marker={"color": COLOURS[number], "symbol": symbols, "size": 7},
                name=f"σ = {sigma:g}", legendgroup=str(sigma), showlegend=column == 1,
                hovertemplate=f"σ = {sigma:g}<br>%{{x:.2~g}}<br>accuracy %{{y:.1%}}<extra></extra>",
            )  # fmt: skip
    figure.add_scatter(
        x=fit.grid[0],
        y=fit.grid[1],
        mode="lines",
        line_color=COLOURS[-1],
        hoverinfo="skip",
        showlegend=False,
        row=1,
        col=2,
    )
    figure.update_xaxes(type="log", dtick=1, exponentformat="none", minorloglabels="none", tickangle=0)
    figure.update_xaxes(title="α / mean", col=1)
    figure.update_xaxes(title=powers, tickvals=[0.01, 1, 100], col=2)
    figure.update_yaxes(range=[0.45, 1.02], tickformat=".0%")
    figure.update_yaxes(title="test accuracy", col=1)
    alt = f"{title or 'Accuracies'} over α alone, and over {powers}, where they lie near one curve."
    margin = {"l": 60, "r": 12, "t": 64 + title_height(title), "b": 96}
    return finish(figure, title, alt, height=400, margin=margin, legend={"y": -0.28, "yanchor": "top"})
