"""Of NADs: their spectra, their convergence and what they are aligned with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

if TYPE_CHECKING:
    from nadtools.nads import NADs
from companion.parts import (
    Array,
    ArrayLike,
    as_mapping,
    as_vector,
    colour_of,
    finish,
    rank_correlation,
)

__all__ = ["plot_alignment", "plot_convergence", "plot_spectra"]

_ROUNDING = 1e-7  # of the mean eigenvalue, in float32


def plot_spectra(
    spectra: Mapping[str, NADs | ArrayLike],
    title: str | None = None,
) -> go.Figure:
    """Draw eigenvalues over their mean against their rank, on logarithmic axes, with a band of one standard error.

    Parameters
    ----------
    spectra
        Label to NADs or to eigenvalues. Those that are zero, but for rounding, are left out.
    """
    curves = []
    for label, spectrum in as_mapping(spectra, "spectra").items():
        values = as_vector(getattr(spectrum, "eigenvalues", spectrum), f"the spectrum {label!r}")
        errors = getattr(spectrum, "eigenvalue_stderr", None)
        mean = values.mean()
        positive = values > _ROUNDING * mean
        rank = np.arange(1, len(values) + 1)[positive]
        band = None
        if errors is not None:
            error = as_vector(errors, f"the standard errors of {label!r}", len(values), "eigenvalue")[positive] / mean
            known = np.isfinite(error)
            if known.any():
                centre, error = values[positive][known] / mean, error[known]
                # A logarithmic axis has no room for zero and below.
                band = rank[known], np.maximum(centre - error, centre / 10), centre + error
        curves.append((label, rank, values[positive] / mean, band))
    parts = [f"{label} falls from {y[0]:.2g} to {y[-1]:.2g}" for label, _, y, _ in curves]
    alt = f"{title or 'Eigenvalues against their rank'}, on logarithmic axes: {'; '.join(parts)}."
    figure = go.Figure()
    for number, (label, rank, values, band) in enumerate(curves):
        colour = colour_of(label, number)
        if band is not None:
            figure.add_trace(
                go.Scatter(
                    x=np.concatenate([band[0], band[0][::-1]]),
                    y=np.concatenate([band[1], band[2][::-1]]).astype(np.float32),
                    fill="toself",
                    fillcolor=colour,
                    opacity=0.25,
                    line={"width": 0},
                    mode="lines",
                    hoverinfo="skip",
                    showlegend=False,
                    legendgroup=label,
                )
            )
        figure.add_trace(
            go.Scatter(
                x=rank,
                y=values.astype(np.float32),
                mode="lines" if len(rank) > 1 else "markers",
                name=label,
                legendgroup=label,
                line={"color": colour, "width": 2},
                hovertemplate="rank %{x}<br>eigenvalue / mean %{y:.3g}",
            )
        )
    figure.update_xaxes(type="log", title="rank (index + 1)", dtick=1)
    figure.update_yaxes(type="log", title="eigenvalue / mean", exponentformat="power", dtick=1)
    legend = {"y": -0.32, "yanchor": "top"}
    return finish(figure, title, alt, height=360, showlegend=len(curves) > 1, legend=legend)


def plot_convergence(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    title: str | None = None,
    xlabel: str = "number of networks",
    ylabel: str = "overlap",
) -> go.Figure:
    """Draw how a quantity changes with the number of networks (logarithmic), from 0 to 1.

    Parameters
    ----------
    curves
        Label to (numbers, values), two vectors of one length; numbers are positive. NaN values are left out.
    xlabel, ylabel
        Of the axes.
    """
    drawn = {label: _curve_points(label, curve) for label, curve in as_mapping(curves, "curves").items()}
    parts = [f"{label} goes from {y[0]:.2g} at {x[0]:g} to {y[-1]:.2g} at {x[-1]:g}" for label, (x, y) in drawn.items()]
    alt = f"{title or ylabel.capitalize()} against the {xlabel}, on a logarithmic axis: {'; '.join(parts)}."
    markers = ["circle", "square", "diamond", "cross", "x"]
    figure = go.Figure()
    for number, (label, (x, y)) in enumerate(drawn.items()):
        figure.add_trace(
            go.Scatter(
                x=x,
                y=y,
                mode="lines+markers",
                name=label,
                line={"color": colour_of(label, number), "width": 2},
                marker={"size": 8, "symbol": markers[number % len(markers)]},
                hovertemplate=f"{xlabel} %{{x}}<br>{ylabel} %{{y:.3f}}",
            )
        )
    smallest, largest = (end(float(end(x)) for x, _ in drawn.values()) for end in (min, max))
    decades = math.log10(largest / smallest)
    figure.update_xaxes(
        type="log", title=xlabel, dtick=1 if decades > 2.5 else "D2", tickformat=",~r", minor={"ticks": ""}
    )
    figure.update_yaxes(title=ylabel, range=(-0.03, 1.09), zeroline=False)  # room for whole markers
    legend = {"y": -0.32, "yanchor": "top"}
    return finish(figure, title, alt, height=360, showlegend=len(drawn) > 1, legend=legend, hovermode="closest")


def _curve_points(label: str, curve: tuple[ArrayLike, ArrayLike]) -> tuple[Array, Array]:
    """Read a curve as numbers in rising order and finite values."""
    x = as_vector(curve[0], f"the numbers of {label!r}")
    y = as_vector(curve[1], f"the values of {label!r}", len(x), "number")
    known = ~np.isnan(y)
    order = np.argsort(x[known], kind="stable")
    return x[known][order], y[known][order]


def plot_alignment(
    alpha: ArrayLike,
    accuracy: ArrayLike,
    labels: Sequence[Any],
    groups: Sequence[Any] | None = None,
    title: str | None = None,
) -> go.Figure:
    """Draw test accuracy against the alignment α(v), on a logarithmic axis, with Spearman's rank correlation.

    Parameters
    ----------
    alpha
        α(v) of each direction, positive.
    accuracy
        Test accuracy on D(v), in [0, 1].
    labels
        A name for each direction.
    groups
        Which group each direction belongs to; groups differ in colour and marker, and the legend gives each one's
        correlation.
    title
        Above the figure, before the correlation.
    """
    x = as_vector(alpha, "alpha")
    y = as_vector(accuracy, "accuracy", len(x), "alpha")
    names = [str(label) for label in labels]
    members = [""] * len(x) if groups is None else [str(group) for group in groups]
    unique = list(dict.fromkeys(members))
    selections = [[k for k, member in enumerate(members) if member == group] for group in unique]
    # Pooled over groups a correlation would mix different scales of alpha.
    summaries = [rank_correlation(x[chosen], y[chosen]) for chosen in selections]
    by_group = ", ".join(f"{group} {summary}" for group, summary in zip(unique, summaries, strict=True)).strip()
    heading = "Spearman's rank correlation" if title is None else title
    full_title = heading if groups is not None else f"{heading}: {summaries[0]}"
    alt = f"Test accuracy against alignment for {len(x)} directions; Spearman's rank correlation: {by_group}."
    labelled = [f"{group} ({summary})" for group, summary in zip(unique, summaries, strict=True)]
    markers = ["circle", "square", "diamond", "cross", "x"]
    figure = go.Figure()
    for number, (group, chosen) in enumerate(zip(labelled, selections, strict=True)):
        figure.add_trace(
            go.Scatter(
                x=x[chosen],
                y=y[chosen],
                text=[names[k] for k in chosen],
                mode="markers",
                zorder=-number,  # the first group lies on top
                name=group,
                marker={
                    "size": 10,
                    "color": colour_of(unique[number], number),
                    "symbol": markers[number % len(markers)],
                },
                hovertemplate="%{text}<br>α %{x:.3g}<br>accuracy %{y:.1%}<extra></extra>",
            )
        )
    decades = math.log10(x.max() / x.min())
    figure.update_xaxes(
        type="log", title="alignment α(v)", exponentformat="power", dtick=1 if decades > 1.5 else "D2", showgrid=True
    )
    figure.update_yaxes(title="test accuracy", tickformat=".0%")
    legend = {"y": -0.24, "yanchor": "top"}
    legend_too = groups is not None
    return finish(figure, full_title, alt, height=400, showlegend=legend_too, legend=legend, hovermode="closest")
