"""The deep linear model of pooling: its loss over two weights, and what it costs to learn a frequency."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from companion.chapter_03.descent import steps_to_fraction
from companion.chapter_03.landscape import Landscape
from companion.figures.curves import plot_curves
from companion.parts import (
    COLOURS,
    Array,
    ArrayLike,
    as_array,
    as_mapping,
    as_vector,
    buttons_for,
    dropdown_layout,
    finish,
    open_at,
    slider_layout,
    wrap,
)
from companion.style import SEQUENTIAL

__all__ = ["plot_accuracy_and_steps", "plot_landscapes", "plot_learning_rates", "plot_losses", "plot_steps"]

# Losses above this share one colour: the valley is what matters. A network that always answers 0 has the loss 1.
HIGHEST = 2.0
_BROKEN = 10.0  # losses of trainings are drawn up to here
_NAMES = {"response": "response m[ℓ]", "kappa": "κ(ℓ)"}
PATH, _FAINT = "#ff8c1a", "rgba(128, 128, 128, 0.45)"


def plot_landscapes(
    landscapes: Mapping[str, Landscape],
    title: str | None = None,
    *,
    prefix: str = "",
) -> go.Figure:
    """Draw the loss over two weights with the path of gradient descent, and below it the loss by step.

    A slider chooses the landscape; the curves of the others stay in grey.
    A path has *learned* when it has gone nine tenths of the way from 1, the loss of the answer 0, to the least loss.

    Parameters
    ----------
    landscapes
        Label to landscape, of ``two_weight_landscape``.
    title
        Above the figure, before what the path has reached.
    prefix
        Before the label that the slider shows, such as ``"m = "``.
    """
    chosen: dict[str, Landscape] = as_mapping(landscapes, "landscapes")
    ends_of = {label: reached(landscape) for label, landscape in chosen.items()}
    ends = "; ".join(f"{prefix}{label}: {text}" for label, text in ends_of.items())
    alt = f"{title or 'Loss over the weights θ and φ'}, with the path of gradient descent and its loss by step. "
    alt += f"{ends}."
    figure = make_subplots(2, 1, row_heights=[0.66, 0.34], vertical_spacing=0.17)
    for landscape in chosen.values():  # in grey, always there
        figure.add_trace(_loss_curve(landscape, color=_FAINT, width=1), 2, 1)
    owners = [-1] * len(chosen)
    top = figure.get_subplot(1, 1).yaxis.domain
    for number, (label, landscape) in enumerate(chosen.items()):
        traces = [*_landscape_traces(landscape, top), _loss_curve(landscape, color=PATH, width=3)]
        for trace, row in zip(traces, (1, 1, 2), strict=True):
            trace.update(visible=number == 0, name=f"{prefix}{label}")
            figure.add_trace(trace, row, 1)
            owners.append(number)
    titles = [f"{title + ': ' if title else ''}{prefix}{label}: {text}" for label, text in ends_of.items()]
    steps = [
        {
            "label": label,
            "method": "update",
            "args": [
                {"visible": [owner in (-1, number) for owner in owners]},
                {"title.text": wrap(titles[number])},
            ],
        }
        for number, label in enumerate(chosen)
    ]
    first = next(iter(chosen.values()))
    figure.update_xaxes(title="θ", range=(float(first.theta[0]), float(first.theta[-1])), showgrid=False, row=1, col=1)
    figure.update_yaxes(title="φ", range=(float(first.phi[0]), float(first.phi[-1])), showgrid=False, row=1, col=1)
    figure.update_xaxes(title="step", row=2, col=1)
    worst = max(min(float(landscape.path_losses.max()), HIGHEST) for landscape in chosen.values())
    figure.update_yaxes(title="loss", range=(0, 1.1 * worst), row=2, col=1)
    figure.add_hline(y=first.least, line={"color": COLOURS[2], "dash": "dash", "width": 1.5}, row=2, col=1)
    figure.update_layout(sliders=[slider_layout(steps, prefix, -0.08)])
    lines = max(wrap(text).count("<br>") for text in titles) + 1
    margin = {"l": 52, "r": 12, "t": 28 + 20 * lines, "b": 112}
    return finish(figure, titles[0], alt, height=480 + margin["t"] + margin["b"], margin=margin, showlegend=False)


def reached(landscape: Landscape) -> str:
    """Say how far the path gets."""
    end, steps = float(landscape.path_losses[-1]), len(landscape.path_losses) - 1
    if np.isfinite(landscape.steps_to_learn):
        return f"learned after {landscape.steps_to_learn:.0f} steps"
    return f"loss {end:.2f} after {steps} steps" if end < 100 else f"loss {end:.1e} after {steps} steps"


def _landscape_traces(landscape: Landscape, domain: tuple[float, float]) -> tuple[go.Contour, go.Scatter]:
    losses, path = as_array(landscape.losses, "losses"), as_array(landscape.path, "path")
    contour = go.Contour(
        x=as_array(landscape.theta, "theta").astype(np.float32),
        y=as_array(landscape.phi, "phi").astype(np.float32),
        z=np.minimum(losses, HIGHEST).astype(np.float32),
        colorscale=SEQUENTIAL,
        zmin=0.0,
        zmax=HIGHEST,
        contours={"start": 0.1, "end": HIGHEST - 0.1, "size": 0.1},
        line={"width": 0.4, "color": "rgba(255, 255, 255, 0.5)"},
        colorbar={
            "thickness": 10,
            "y": domain[1],
            "yanchor": "top",
            "len": domain[1] - domain[0],
            "tickvals": [0, 0.5, 1, 1.5, 2],
            "ticktext": ["0", "0.5", "1", "1.5", "≥ 2"],
            "title": {"text": "loss"},
        },
        hovertemplate="θ %{x:.2f}, φ %{y:.2f}<br>loss %{z:.3f}<extra></extra>",
    )
    way = go.Scatter(
        x=_single(path[:, 0]),
        y=_single(path[:, 1]),
        mode="lines+markers",
        line={"color": PATH, "width": 2},
        marker={"color": PATH, "size": 6, "line": {"color": "#ffffff", "width": 1}},
        customdata=np.stack([np.arange(len(path)), as_array(landscape.path_losses, "path_losses")], axis=1),
        hovertemplate="step %{customdata[0]}<br>loss %{customdata[1]:.3f}<extra></extra>",
    )
    return contour, way


def _single(values: Array) -> Array:
    """Values as float32; a path that diverges is cut off far outside the picture."""
    return np.clip(values, -1e9, 1e9).astype(np.float32)


def _loss_curve(landscape: Landscape, **line: Any) -> go.Scatter:
    losses = as_array(landscape.path_losses, "path_losses")
    return go.Scatter(
        x=np.arange(len(losses)),
        y=_single(losses),
        mode="lines",
        line=line,
        hovertemplate="step %{x}: loss %{y:.3f}<extra></extra>",
    )


def plot_accuracy_and_steps(
    frequencies: ArrayLike,
    choices: Mapping[str, tuple[Mapping[str, ArrayLike], Mapping[str, ArrayLike]]],
    title: str | None = None,
    *,
    prefix: str = "",
    first: str | None = None,
) -> go.Figure:
    """Draw best accuracies and other shares above, and numbers of training steps below, over the same frequencies.

    Parameters
    ----------
    frequencies
        Shape (n,).
    choices
        From the label of a choice to a pair: accuracies in [0, 1], and steps, each from the name of a curve to n
        values. Every choice has the same names. A slider chooses. Infinite steps are left out.
    prefix
        Before the label that the slider shows.
    first
        The choice on which the figure opens.
    """
    x = as_vector(frequencies, "frequencies")
    sets = {label: _read_choice(label, pair, len(x)) for label, pair in as_mapping(choices, "choices").items()}
    names = [list(part) for part in next(iter(sets.values()))]
    for label, pair in sets.items():
        if [list(part) for part in pair] != names:
            raise ValueError(f"got other curves for {label!r} than for the first choice, {names}; expected the same")
    alt = f"{title or 'Best accuracy and steps'} over the frequency."
    for label, (accuracies, steps) in sets.items():
        parts = [f"{name} at least {values.min():.0%}" for name, values in accuracies.items()]
        parts += [f"{name} {_span(values)}" for name, values in steps.items()]
        alt += f" {prefix}{label}: {', '.join(parts)}."
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.08)
    owners = []
    for number, pair in enumerate(sets.values()):
        for row, part in enumerate(pair, start=1):
            for name, values in part.items():
                hover = f"{name}<br>ℓ = %{{x}}: %{{y:{'.1%' if row == 1 else '.0f'}}}<extra></extra>"
                line = {"color": _colour(name, names), "width": 2}
                curve = go.Scatter(x=x, y=values.astype(np.float32), name=name, line=line, hovertemplate=hover)
                figure.add_trace(curve.update(visible=number == 0, mode="lines"), row, 1)
                owners.append(number)
    lowest = min(float(values.min()) for shares, _ in sets.values() for values in shares.values())
    figure.update_yaxes(range=(min(0.48, lowest - 0.04), 1.04), tickformat=".0%", **_AXES[0], row=1, col=1)
    if len(names[0]) > 1:
        figure.update_yaxes(title="share", row=1, col=1)
    counts = np.concatenate([values for _, part in sets.values() for values in part.values()])
    ends = np.array([0.0, np.log10(np.max(counts, where=np.isfinite(counts), initial=10.0))])
    figure.update_yaxes(range=[-0.1, float(ends[1]) + 0.1], **_decades(ends), **_AXES[1], row=2, col=1)
    figure.update_xaxes(title="frequency ℓ", row=2, col=1)
    if len(sets) > 1:
        figure.update_layout(sliders=[slider_layout(buttons_for(sets, owners), prefix, -0.16)])
    margin = {"l": 58, "r": 12, "t": 12, "b": 140 if len(sets) > 1 else 48}
    finish(figure, title, alt, height=352 + margin["b"], margin=margin)
    if first is not None:
        open_at(figure, list(sets).index(first))
    return _two_columns(figure, len(names[0]) + len(names[1]), title)


_AXES: tuple[dict[str, str], dict[str, str]] = (
    {"title": "best accuracy", "type": "linear"},
    {"title": "steps", "type": "log"},
)


def _read_choice(label: str, pair: Any, length: int) -> tuple[dict[str, Array], dict[str, Array]]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"got a choice {label!r} of type {type(pair).__name__}; expected a pair (accuracies, steps)")
    accuracies, steps = (
        {
            name: as_vector(values, f"{name} of {label!r}", length, "frequency")
            for name, values in as_mapping(part, f"the curves of {label!r}").items()
        }
        for part in pair
    )
    for name, values in accuracies.items():
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"got {name} of {label!r} outside [0, 1]; expected shares, not per cent")
    return accuracies, {name: np.where(np.isfinite(values), values, np.nan) for name, values in steps.items()}


def _colour(name: str, names: list[list[str]]) -> str:
    return COLOURS[[*names[0], *names[1]].index(name) % len(COLOURS)]


def _span(values: Array) -> str:
    finite = values[np.isfinite(values)]
    return f"from {finite.min():.0f} to {finite.max():.0f} steps" if len(finite) else "never"


def plot_learning_rates(
    multiples: ArrayLike,
    losses: Mapping[str, ArrayLike],
    title: str | None = None,
) -> go.Figure:
    """Draw the loss at the end of trainings against their learning rate, and the limit where they should break.

    Parameters
    ----------
    multiples
        Shape (n,): learning rates over the predicted limit, positive.
    losses
        From the name of a kind of training to its n losses; infinite where it diverged.
    """
    x = as_vector(multiples, "multiples")
    if not (x > 0).all():
        raise ValueError("got multiples that are not positive; expected learning rates over the predicted limit")
    curves: dict[str, tuple[Array, Array]] = {}
    for name, values in as_mapping(losses, "losses").items():
        curves[name] = (x, np.minimum(as_vector(values, f"losses of {name!r}", len(x), "learning rate"), _BROKEN))
    broken = {name: x[y >= _BROKEN] for name, (_, y) in curves.items()}
    parts = [f"{name} from {rates.min():.2g}" if len(rates) else f"{name} nowhere" for name, rates in broken.items()]
    alt = f"{title or 'Loss against the learning rate'}. In multiples of the predicted limit, training breaks: "
    alt += f"{', '.join(parts)}."
    lowest = min(float(np.nanmin(y)) for _, y in curves.values())
    curves["predicted limit"] = (np.ones(2), np.array([lowest, _BROKEN]))
    figure = plot_curves(
        curves,
        "learning rate / predicted limit",
        "loss at the end",
        title,
        dashed=["predicted limit"],
        x_log=True,
        y_log=True,
        alt=alt,
    )
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]
    figure.update_xaxes(tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks])
    figure.update_yaxes(tickvals=[0.1, 0.2, 0.5, 1, 2, 5, 10], ticktext=["0.1", "0.2", "0.5", "1", "2", "5", "≥ 10"])
    return _two_columns(figure, len(curves), title)


def plot_steps(table: pd.DataFrame, title: str | None = None) -> go.Figure:
    """Draw numbers of steps against the response of the filter and against κ, with a dropdown over the trainings.

    On the right stands what gradient descent takes by the formula at η = 1 / max h, where one tenth of the way is left.

    Parameters
    ----------
    table
        Columns ``training``, ``sigma``, ``response``, ``kappa`` and ``steps``; infinite steps are left out.
    """
    trainings, sigmas = list(table.training.unique()), list(table.sigma.unique())
    figure = make_subplots(1, 2, shared_yaxes=True, horizontal_spacing=0.06)
    groups: list[Hashable] = []
    for training, (number, sigma), (column, x) in itertools.product(
        trainings, enumerate(sigmas), enumerate(("response", "kappa"), 1)
    ):
        rows = table[(table.training == training) & (table.sigma == sigma) & np.isfinite(table.steps)]
        figure.add_scatter(
            x=rows[x],
            y=rows.steps,
            name=f"σ = {sigma:g}",
            mode="lines+markers",
            line={"color": COLOURS[number], "width": 2},
            marker={"size": 5},
            showlegend=column == 1,
            visible=training == trainings[0],
            hovertemplate=f"σ = {sigma:g}, {_NAMES[x]} %{{x:.3g}}<br>%{{y:.0f}} steps<extra></extra>",
            row=1,
            col=column,
        )
        groups.append(trainings.index(training))
    kappa = np.geomspace(1, table.kappa.max(), 60)
    line = {"color": _FAINT, "dash": "dash", "width": 2}
    formula = steps_to_fraction(1 / kappa, 1.0).numpy()
    figure.add_scatter(x=kappa, y=formula, name="formula", mode="lines", line=line, row=1, col=2)
    for column, x in enumerate(("response", "kappa"), 1):
        ends = np.log10([table[x].min(), table[x].max()])
        update = {"title": _NAMES[x], "type": "log", "range": [ends[0] - 0.12, ends[1] + 0.12], **_decades(ends)}
        figure.update_xaxes(**update, row=1, col=column)
    finite = table.steps[np.isfinite(table.steps)]
    ends = np.log10([1, finite.max()])
    figure.update_yaxes(type="log", range=[-0.15, ends[1] + 0.15], **_decades(ends))
    figure.update_yaxes(title="steps", row=1, col=1)
    buttons = buttons_for(trainings, groups)
    for button in buttons:
        button["args"][0]["visible"].append(True)  # the formula's curve stays
    alt = f"{title or 'Steps to learn'}, against the response and against κ, for σ = " + ", ".join(
        f"{sigma:g}" for sigma in sigmas
    )
    alt += f". A dropdown chooses the training: {', '.join(trainings)}."
    legend = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "xanchor": "left"}
    figure = finish(
        figure,
        title,
        alt,
        height=280,
        margin={"l": 56, "r": 12, "t": 0, "b": 52},
        legend=legend,
        updatemenus=[dropdown_layout(buttons)],
    )
    return _two_columns(figure, len(sigmas) + 1, title, control=44)


def plot_losses(
    choices: Mapping[str, tuple[Mapping[str, ArrayLike], float]],
    title: str | None = None,
) -> go.Figure:
    """Draw how far losses are above the least reachable one during training, with a dropdown over several problems.

    Parameters
    ----------
    choices
        From the label of a choice to a pair: curves, from a name to the losses after 0, 1, 2... steps, and the least
        reachable loss. Every choice has the same names.
    """
    shown: dict[str, dict[str, tuple[Array, Array]]] = {}
    ends = []
    for label, pair in as_mapping(choices, "choices").items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"got a choice {label!r} of type {type(pair).__name__}; expected (curves, least loss)")
        shown[label] = {}
        for name, values in as_mapping(pair[0], f"the curves of {label!r}").items():
            losses = as_vector(values, f"losses of {name!r}")
            # Step 0 has no place on a logarithmic axis; later steps are drawn ever more sparsely.
            steps = np.unique(np.geomspace(1, len(losses) - 1, 120).round().astype(int)) if len(losses) > 1 else [0]
            shown[label][name] = (np.asarray(steps, dtype=float), losses[steps] - float(pair[1]))
        ends.append(f"{label}: " + ", ".join(f"{name} {curve[1][-1]:.3f}" for name, curve in shown[label].items()))
    alt = f"{title or 'Loss above the least one'} against the step. At the end, {'; '.join(ends)}."
    figure = plot_curves(shown, "step", "loss − least loss", title, choose="dropdown", x_log=True, y_log=True, alt=alt)
    figure.update_yaxes(range=[-3, 1], tickvals=[0.001, 0.01, 0.1, 1, 10], ticktext=["0.001", "0.01", "0.1", "1", "10"])
    last = max(curve[0][-1] for curves in shown.values() for curve in curves.values())
    decades = np.array([0.0, np.log10(max(last, 10.0))])
    figure.update_xaxes(range=[-0.03, float(decades[1]) + 0.05], **_decades(decades))
    return _two_columns(figure, len(next(iter(shown.values()))), title, control=44)


def _decades(ends: Array) -> dict[str, Any]:
    """Ticks at the powers of ten that lie between two logarithms."""
    powers = range(int(np.ceil(ends[0] - 0.15)), int(np.floor(ends[1] + 0.15)) + 1)
    # Many long numbers would be turned on a telephone.
    text = [f"10<sup>{power}</sup>".replace("-", "−") if len(powers) > 5 else f"{10.0**power:g}" for power in powers]
    return {"tickvals": [10.0**power for power in powers], "ticktext": text}


def _two_columns(figure: go.Figure, entries: int, title: str | None, control: int = 0) -> go.Figure:
    """Lay out the legend in two columns above the panel, with room for all its rows."""
    before = figure.layout.margin.t
    rows = -(-entries // 2)
    top = 16 + 22 * (wrap(title).count("<br>") + 1) + 20 * rows + control
    legend = {"entrywidth": 0.5, "entrywidthmode": "fraction", "font": {"size": 11}, "x": -0.06, "y": 1.03}
    figure.update_layout(legend=legend, margin={"t": top}, height=figure.layout.height + top - before)
    if control:
        figure.layout.updatemenus[0].pad.b = 20 * rows + 14
    return figure
