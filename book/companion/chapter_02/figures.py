"""The theory of pooling: which frequencies fold together, and what is left of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from companion.parts import (
    COLOURS,
    Array,
    ArrayLike,
    as_mapping,
    as_vector,
    dropdown_layout,
    finish,
    slider_layout,
    title_height,
)

__all__ = ["plot_aliasing", "plot_folding", "plot_pooling_accuracies"]

Layer: TypeAlias = tuple[int, str]


def plot_folding(
    frequency: int = 3, stride: int = 4, size: int = 32, title: str | None = "Two waves, one set of samples"
) -> go.Figure:
    """Draw a wave and its alias: above, what is left of both if every S-th sample is kept; below, if S are averaged.

    Parameters
    ----------
    frequency
        Of the slower wave; the other one is its next alias.
    stride, size
        S, and the number D of samples on the circle.
    """
    other = frequency + size // stride
    fine, samples = np.linspace(0, size, 40 * size // stride + 1), np.arange(size)
    figure = make_subplots(
        2,
        1,
        shared_xaxes=True,
        vertical_spacing=0.12,
        subplot_titles=(f"every {stride}th sample", f"means of {stride} samples"),
    )
    for number, ell in enumerate((frequency, other)):
        name, colour = f"frequency {ell}", COLOURS[number]
        wave = np.cos(2 * np.pi * ell * samples / size)
        middles = samples[::stride] + (stride - 1) / 2
        for row, x, y in (
            (1, samples[::stride].astype(float), wave[::stride]),
            (2, middles, wave.reshape(-1, stride).mean(1)),
        ):
            figure.add_scatter(
                x=fine,
                y=_short(np.cos(2 * np.pi * ell * fine / size)),
                name=name,
                mode="lines",
                line={"color": colour, "width": 1.5},
                opacity=0.6,
                showlegend=row == 1,
                legendgroup=name,
                hoverinfo="skip",
                row=row,
                col=1,
            )
            figure.add_scatter(
                x=x,
                y=_short(y),
                name=f"left of {name}",
                mode="markers",
                # The dots of one wave lie on those of the other: a ring around a disc.
                marker={"color": colour, "size": 13 if number else 8, "symbol": "circle-open" if number else "circle"},
                showlegend=False,
                legendgroup=name,
                hovertemplate=f"{name}<br>%{{x}}: %{{y:.2f}}<extra></extra>",
                row=row,
                col=1,
            )
    figure.update_traces(marker_line_width=2, selector={"mode": "markers"})
    figure.update_yaxes(range=[-1.2, 1.2], nticks=3)
    figure.update_xaxes(title="sample", row=2, col=1)
    alt = (
        f"{title}: two waves, of frequencies {frequency} and {other} on {size} samples. Every {stride}th sample is the "
    )
    alt += f"same for both. The means of {stride} samples differ: those of the faster wave are smaller."
    top = 70 + title_height(title)
    legend = {"orientation": "h", "x": 0, "y": 1.1, "yanchor": "bottom"}
    margin = {"l": 40, "r": 12, "t": top, "b": 52}
    return finish(figure, title, alt, height=340 + top + 52, margin=margin, legend=legend)


def plot_aliasing(
    responses: Mapping[Layer, ArrayLike],
    accuracies: Mapping[Layer, ArrayLike],
    title: str | None = None,
) -> go.Figure:
    """Draw which frequencies share a bin after pooling, how much of each the prefilter lets through, and what is left.

    Two dropdowns choose the stride and the prefilter, a slider chooses the frequency. They change different traces, or
    different properties of the same ones, so they can be moved in any order.

    Parameters
    ----------
    responses
        From (stride, name of the prefilter), for all combinations, to its spectral response, shape (D,), real or
        complex, in the order of ``torch.fft.fft``.
    accuracies
        From the same keys to the best accuracy at each frequency, shape (D,).
    """
    frequency = 9  # where the slider stands at first
    strides, prefilters = _layers(responses)
    _layers(accuracies, like=responses)
    energies = {key: as_vector(np.abs(np.asarray(value)) ** 2, f"response {key}") for key, value in responses.items()}
    size = len(next(iter(energies.values())))
    curves = {key: as_vector(value, f"accuracies {key}", size, "frequency") for key, value in accuracies.items()}
    for key, energy in energies.items():
        as_vector(energy, f"response {key}", size, "frequency")
    if any(size % stride for stride in strides):
        raise ValueError(f"got strides {strides} for {size} samples; expected divisors of D")

    centred = np.arange(size) - size // 2
    half = np.arange(size // 2 + 1)
    figure = make_subplots(
        2,
        1,
        vertical_spacing=0.2,
        subplot_titles=("response |m̂|² of the prefilter", "best accuracy after pooling"),
    )
    first = prefilters[0]
    x, y = _verticals([frequency], 1.05)
    figure.add_scatter(x=x, y=y, name="ℓ", mode="lines", line={"color": COLOURS[1], "width": 3}, hoverinfo="skip")
    x, y = _verticals([frequency], 1.0, bottom=0.5)
    line = {"color": COLOURS[1], "width": 3}
    figure.add_scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False, row=2, col=1)
    for stride in strides:
        shown = {"visible": stride == strides[0]}
        x, y = _verticals(_aliases(frequency, stride, size), 1.05)
        dash = {"color": COLOURS[3], "width": 2, "dash": "dash"}
        figure.add_scatter(x=x, y=y, name="its aliases ℓ + kM", mode="lines", line=dash, hoverinfo="skip", **shown)
        figure.add_scatter(
            x=centred,
            y=_short(np.fft.fftshift(energies[stride, first])),
            mode="lines",
            line={"color": COLOURS[0], "width": 2},
            hovertemplate="frequency %{x}<br>|m̂|² = %{y:.3f}<extra></extra>",
            showlegend=False,
            **shown,
        )
        figure.add_scatter(
            x=half,
            y=_short(curves[stride, first][: size // 2 + 1]),
            mode="lines",
            line={"color": COLOURS[0], "width": 2},
            hovertemplate="ℓ = %{x}<br>accuracy %{y:.1%}<extra></extra>",
            showlegend=False,
            row=2,
            col=1,
            **shown,
        )
    lines = {stride: 2 + 3 * number for number, stride in enumerate(strides)}
    steps = []
    for one in half.tolist():
        places = [_verticals([one], 1.05), _verticals([one], 1.0, bottom=0.5)]
        places += [_verticals(_aliases(one, stride, size), 1.05) for stride in strides]
        change = {"x": [place[0] for place in places], "y": [place[1] for place in places]}
        steps.append({"label": str(one), "method": "restyle", "args": [change, [0, 1, *lines.values()]]})
    slider = slider_layout(steps, "ℓ = ", -0.14)
    slider["active"] = frequency
    per_stride = [index for start in lines.values() for index in (start, start + 1, start + 2)]
    stride_buttons = [
        {
            "label": f"S = {stride}",
            "method": "restyle",
            "args": [{"visible": [stride == other for other in strides for _ in range(3)]}, per_stride],
        }
        for stride in strides
    ]
    drawn = [index for start in lines.values() for index in (start + 1, start + 2)]
    prefilter_buttons = []
    for prefilter in prefilters:
        columns = []
        for stride in strides:
            columns += [
                _short(np.fft.fftshift(energies[stride, prefilter])).tolist(),
                _short(curves[stride, prefilter][: size // 2 + 1]).tolist(),
            ]
        prefilter_buttons.append({"label": prefilter, "method": "restyle", "args": [{"y": columns}, drawn]})
    menus = [dropdown_layout(stride_buttons), dropdown_layout(prefilter_buttons, x=1)]
    for menu in menus:
        menu["pad"] = {"b": 56}
    figure.update_xaxes(title="frequency", row=1, col=1)
    figure.update_xaxes(title="frequency ℓ of v", row=2, col=1)
    figure.update_yaxes(range=[0, 1.08], row=1, col=1)
    figure.update_yaxes(range=[0.48, 1.02], tickformat=".0%", row=2, col=1)
    alt = (
        f"Two panels. Above, the response of the prefilter over {size} frequencies, with lines at a frequency and "
        "at those that pooling folds onto it. Below, the best accuracy after pooling against the frequency. "
        "Controls choose the stride, the prefilter and the frequency."
    )
    top = 110 + title_height(title)
    legend = {"orientation": "h", "x": 0, "y": 1.065, "yanchor": "bottom"}
    margin = {"l": 54, "r": 12, "t": top, "b": 130}
    figure.update_layout(sliders=[slider], updatemenus=menus)
    return finish(figure, title, alt, height=430 + top + 130, margin=margin, legend=legend)


def plot_pooling_accuracies(
    curves: Mapping[str, Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]]],
    title: str | None = None,
) -> go.Figure:
    """Draw accuracies against the frequency: a dropdown chooses the layer, a slider the margin.

    Parameters
    ----------
    curves
        From the label of a layer, to the label of a margin, to the name of a curve, to its frequencies and accuracies.
        Curves whose name begins with "Monte Carlo" are points, those that begin with "printed" are dashed. All layers
        have the same margins and the same names, and a curve the same frequencies at every margin.
    """
    layers = as_mapping(curves, "curves")
    margins = list(as_mapping(next(iter(layers.values())), "margins"))
    names = list(as_mapping(layers[next(iter(layers))][margins[0]], "curves"))
    start = len(margins) // 2
    figure = go.Figure()
    ys: dict[str, list[list[float]]] = {margin: [] for margin in margins}
    owner = []
    for number, (label, layer) in enumerate(layers.items()):
        if list(layer) != margins or any(list(part) != names for part in layer.values()):
            raise ValueError(f"got other margins or curves for {label!r} than for {next(iter(layers))!r}")
        for position, name in enumerate(names):
            for margin in margins:
                x = as_vector(layer[margin][name][0], f"frequencies of {name!r}")
                ys[margin].append(_short(as_vector(layer[margin][name][1], name, len(x), "frequency")).tolist())
            colour = COLOURS[(1, 0, 6)[position] if position < 3 else position]
            style: dict[str, Any] = {"mode": "lines", "line": {"color": colour, "width": 2}}
            if name.startswith("Monte Carlo"):
                style = {"mode": "markers", "marker": {"color": "#8c8c8c", "size": 8, "symbol": "circle-open"}}
                style["marker"]["line"] = {"width": 2}
            elif name.startswith("printed"):
                style["line"]["dash"] = "dash"
            figure.add_scatter(
                x=x,
                y=ys[margins[start]][-1],
                name=name,
                visible=number == 0,
                hovertemplate=f"{name}<br>ℓ = %{{x}}<br>%{{y:.1%}}<extra></extra>",
                **style,
            )
            owner.append(number)
    everything = list(range(len(owner)))
    steps = [{"label": m, "method": "restyle", "args": [{"y": ys[m]}, everything]} for m in margins]
    buttons = [
        {"label": label, "method": "restyle", "args": [{"visible": [one == number for one in owner]}, everything]}
        for number, label in enumerate(layers)
    ]
    menu = dropdown_layout(buttons)
    menu["pad"] = {"b": 30}
    top = 80 + title_height(title)
    figure.update_xaxes(title="frequency ℓ of v")
    figure.update_yaxes(title="accuracy", range=[0.48, 1.02], tickformat=".0%")
    slider = {**slider_layout(steps, "ε/σ = ", -0.3), "active": start}
    figure.update_layout(sliders=[slider], updatemenus=[menu])
    alt = f"Accuracy after pooling against the frequency: {', '.join(names)}."
    alt += f" A dropdown chooses the layer ({', '.join(layers)}), a slider the margin ({', '.join(margins)})."
    legend = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"}
    margin_sizes = {"l": 60, "r": 12, "t": top, "b": 150}
    return finish(figure, title, alt, height=260 + top + 150, margin=margin_sizes, legend=legend)


def _layers(values: Any, like: Any = None) -> tuple[list[int], list[str]]:
    """Strides and prefilters of a dict over all their combinations."""
    if not isinstance(values, Mapping) or not values:
        raise TypeError(f"got {type(values).__name__}; expected a non-empty dict from (stride, prefilter) to a vector")
    strides = list(dict.fromkeys(stride for stride, _ in values))
    prefilters = list(dict.fromkeys(prefilter for _, prefilter in values))
    wanted = {(stride, prefilter) for stride in strides for prefilter in prefilters}
    if set(values) != wanted or (like is not None and set(like) != wanted):
        raise ValueError("got some combinations of stride and prefilter; expected all of them, the same for both dicts")
    return strides, prefilters


def _aliases(frequency: int, stride: int, size: int) -> list[int]:
    """The other frequencies of its bin, from -D/2 up."""
    bins = size // stride
    return [(frequency + k * bins + size // 2) % size - size // 2 for k in range(1, stride)]


def _verticals(places: list[int], top: float, bottom: float = 0.0) -> tuple[list[Any], list[Any]]:
    x: list[Any] = [value for place in places for value in (place, place, None)]
    return x, [bottom, top, None] * len(places)


def _short(values: Array) -> Array:
    """As many digits as can be seen."""
    return np.round(values, 4)
