"""The theory of pooling: which frequencies fold together, and what is left of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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

__all__ = ["plot_bin", "plot_folding", "plot_foretold", "plot_pooling_accuracies"]


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


def plot_bin(response: ArrayLike, stride: int, frequency: int, title: str | None = None) -> go.Figure:
    """Draw a prefilter's response, and on it a frequency and those that pooling folds onto it.

    Parameters
    ----------
    response
        Of the prefilter, shape (D,), real or complex, in the order of ``torch.fft.fft``.
    stride
        S, a divisor of D.
    frequency
    """
    energy = as_vector(np.abs(np.asarray(response)) ** 2, "response")
    size = len(energy)
    if size % stride:
        raise ValueError(f"got stride {stride} for {size} samples; expected a divisor of D")
    centred = np.arange(size) - size // 2
    figure = go.Figure()
    line = {"color": COLOURS[0], "width": 2}
    hover = "frequency %{x}<br>|m̂|² = %{y:.3f}<extra></extra>"
    curve = _short(np.fft.fftshift(energy))
    figure.add_scatter(x=centred, y=curve, mode="lines", line=line, hovertemplate=hover, showlegend=False)
    aliases = _aliases(frequency, stride, size)
    for name, places, colour in (("ℓ", [frequency], COLOURS[1]), ("its aliases ℓ + kM", aliases, COLOURS[3])):
        heights = [float(energy[place % size]) for place in places]
        x = [value for place in places for value in (place, place, None)]
        y = [value for height in heights for value in (0.0, height, None)]
        stem = {"color": colour, "width": 3}
        figure.add_scatter(x=x, y=y, mode="lines", line=stem, hoverinfo="skip", showlegend=False)
        dots = {"color": colour, "size": 11}
        figure.add_scatter(x=places, y=heights, name=name, mode="markers", marker=dots, hovertemplate=hover)
        for place, height in zip(places, heights, strict=True):
            text = f"{place}".replace("-", "−")
            side = {"xanchor": "left", "xshift": 8} if place == frequency else {"xanchor": "right", "xshift": -8}
            figure.add_annotation(x=place, y=height, text=text, showarrow=False, yshift=10, **side)
    figure.update_xaxes(title="frequency")
    figure.update_yaxes(title="response |m̂|²", range=[0, 1.08])
    shares = ", ".join(f"{place} at {energy[place % size]:.2f}" for place in (frequency, *aliases))
    alt = f"{title or 'Response of the prefilter'}: over {size} frequencies, with those of one bin: {shares}."
    top = 40 + title_height(title)
    legend = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"}
    margin = {"l": 60, "r": 12, "t": top, "b": 52}
    return finish(figure, title, alt, height=210 + top + 52, margin=margin, legend=legend)


def plot_foretold(
    foretold: ArrayLike,
    reached: ArrayLike,
    names: Sequence[str],
    marks: Mapping[str, str],
    x_title: str,
    y_title: str,
) -> go.Figure:
    """Draw one accuracy of each wave over another, with the line on which the two are equal.

    Parameters
    ----------
    foretold, reached
        Of each wave.
    names
        Of the waves.
    marks
        Those that the text names, and where such a name stands: left, right or above.
    """
    x, y = as_vector(foretold, "foretold"), as_vector(reached, "reached")
    figure = go.Figure()
    sides: dict[str, dict[str, Any]] = {
        "left": {"xanchor": "right", "xshift": -8},
        "right": {"xanchor": "left", "xshift": 8},
        "above": {"yanchor": "bottom", "yshift": 6},
    }
    grey = {"color": "#8c8c8c", "dash": "dash", "width": 1.5}
    figure.add_scatter(x=[0.5, 1], y=[0.5, 1], mode="lines", line=grey, hoverinfo="skip")
    hover = f"%{{customdata}}<br>{x_title} %{{x:.1%}}<br>{y_title} %{{y:.1%}}<extra></extra>"
    marker = {"color": COLOURS[0], "size": 8, "opacity": 0.6}
    figure.add_scatter(x=x, y=y, mode="markers", marker=marker, customdata=list(names), hovertemplate=hover)
    for name, across, up in zip(names, x, y, strict=True):
        if name in marks:
            figure.add_annotation(x=across, y=up, text=name, showarrow=False, **sides[marks[name]])
    above = float(np.mean(y > x)) > 0.5  # the line's name stands where there are fewer points
    place = {"x": 0.75, "y": 0.71, "xanchor": "left"} if above else {"x": 0.75, "y": 0.79, "xanchor": "right"}
    figure.add_annotation(place, text="just as much", showarrow=False)
    figure.update_xaxes(title=x_title, range=[0.48, 1.04], tickformat=".0%")
    figure.update_yaxes(title=y_title, range=[0.47, 1.02], tickformat=".0%")
    alt = f"{y_title}, over: {x_title}. {(y > x).sum()} of {len(x)} waves lie above the diagonal."
    margin = {"l": 60, "r": 12, "t": 16, "b": 52}
    return finish(figure, None, alt, height=320, margin=margin, showlegend=False)


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


def _aliases(frequency: int, stride: int, size: int) -> list[int]:
    """The other frequencies of its bin, from -D/2 up."""
    bins = size // stride
    return [(frequency + k * bins + size // 2) % size - size // 2 for k in range(1, stride)]


def _short(values: Array) -> Array:
    """As many digits as can be seen."""
    return np.round(values, 4)
