"""NADs, their spectra, their convergence and what they are aligned with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from companion.style import DIVERGING, SEQUENTIAL

if TYPE_CHECKING:
    from nadtools.nads import NADs
from companion.parts import (
    Array,
    ArrayLike,
    Backend,
    Figure,
    as_array,
    as_direction,
    as_mapping,
    as_vector,
    check_backend,
    chooser,
    colour_bar,
    colour_of,
    direction_panels,
    dropdown_layout,
    energy_of,
    energy_trace,
    finish,
    pixel_trace,
    rank_correlation,
    slider_layout,
    square_cells,
    static_figure,
    wrap,
)
from nadtools import checks

__all__ = ["plot_alignment", "plot_atlas", "plot_convergence", "plot_nads", "plot_spectra"]


def _default_indices(count: int, wanted: int) -> list[int]:
    """Take the first indices, then ever fewer, up to the last."""
    if count <= wanted:
        return list(range(count))
    first = wanted // 2
    spread = np.geomspace(first, count - 1, wanted - first).round().astype(int).tolist()
    return sorted({*range(first), *spread})


def plot_nads(
    nads: NADs,
    indices: Sequence[int] | None = None,
    reference: NADs | None = None,
    *,
    title: str | None = None,
    alt: str | None = None,
) -> go.Figure:
    """Draw NADs in pixels and in Fourier energy, with a slider over the index.

    Parameters
    ----------
    nads
        What to show.
    indices
        Which NADs, counted from 0. By default the first ones and a selection up to the last.
    reference
        Other NADs, for instance the published ones, in a second row.
    title
        Above the figure, before the index and the eigenvalue.
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    ValueError
        If an index is out of range, the NADs are in colour, or those of the reference have another shape.
    """
    sets = {"nads": nads} if reference is None else {"nads": nads, "reference": reference}
    vectors = {name: _nad_vectors(value, name) for name, value in sets.items()}
    count = len(vectors["nads"])
    if reference is not None and vectors["reference"].shape[1:] != vectors["nads"].shape[1:]:
        raise ValueError(
            f"got a reference of image shape {vectors['reference'].shape[1:]}; expected {vectors['nads'].shape[1:]}"
        )
    available = min(len(array) for array in vectors.values())
    chosen = _indices(indices, available, _default_indices(count, 20))
    if alt is None:
        alt = f"{title or 'NADs'} in pixels and in Fourier energy, for indices {chosen[0]} to {chosen[-1]}"
        alt += ", above the reference." if reference is not None else "."
    pictures = [{name: as_direction(array[index], name) for name, array in vectors.items()} for index in chosen]

    titles = []
    for index in chosen:
        text = f"{title}: NAD {index}" if title else f"NAD {index}"
        text += f", eigenvalue {_eigenvalue(nads, index)}"
        if reference is not None:
            text += f" (reference {_eigenvalue(reference, index)})"
        titles.append(text)
    if reference is None:
        return direction_panels(
            {str(index): images["nads"] for index, images in zip(chosen, pictures, strict=True)},
            titles,
            "slider",
            alt,
            prefix="NAD ",
        )
    names = ("pixels", "Fourier energy", "reference: pixels", "reference: energy")
    figure = make_subplots(2, 2, subplot_titles=names, horizontal_spacing=0.2, vertical_spacing=0.14)
    groups = []
    for number, images in enumerate(pictures):
        for row, image in enumerate(images.values(), start=1):
            figure.add_trace(pixel_trace(image, visible=number == 0), row, 1)
            figure.add_trace(energy_trace(image, visible=number == 0), row, 2)
            groups += [number, number]
    for row in (1, 2):
        square_cells(figure, row, 1, pictures[0]["nads"], frequency=False)
        square_cells(figure, row, 2, pictures[0]["nads"], frequency=True)
    figure.update_yaxes(title="frequency i", col=2)
    figure.update_xaxes(title="frequency j", row=2, col=2)
    figure.update_layout(chooser("slider", [str(i) for i in chosen], groups, titles, "NAD ", steps_below=-0.12))
    return finish(figure, titles[0], alt, height=620, margin={"l": 12, "r": 12, "t": 84, "b": 130})


def _indices(given: Sequence[int] | None, count: int, default: list[int]) -> list[int]:
    expected = f"at least one, all from 0 to {count - 1}"
    chosen = default if given is None else checks.integers("indices", given, 0, count - 1, expected)
    if not chosen:
        raise ValueError(f"got indices []; expected {expected}")
    return chosen


def _nad_vectors(nads: NADs, name: str) -> Array:
    if not hasattr(nads, "vectors") or not hasattr(nads, "eigenvalues"):
        raise TypeError(f"got {name} of type {type(nads).__name__}; expected NADs, as estimate_nads returns them")
    vectors = as_array(nads.vectors, f"{name}.vectors")
    if vectors.ndim == 4 and vectors.shape[1] == 1:
        vectors = vectors[:, 0]
    if vectors.ndim != 3:
        raise ValueError(f"got {name}.vectors of shape {vectors.shape}; expected (number, height, width), one channel")
    return vectors


def _eigenvalue(nads: NADs, index: int) -> str:
    eigenvalues = as_array(nads.eigenvalues, "eigenvalues")
    if index >= len(eigenvalues):
        return "unknown"
    text = f"{eigenvalues[index]:.2e}"
    errors = getattr(nads, "eigenvalue_stderr", None)
    if errors is not None and math.isfinite(error := float(as_array(errors, "eigenvalue_stderr")[index])):
        text += f" ± {error:.0e}"
    return text


@dataclass(frozen=True)
class _Plate:
    """What the atlas shows of one architecture by one estimator: an image and a share of the trace for each index."""

    architecture: str
    estimator: str
    images: Array
    shares: Array

    @property
    def name(self) -> str:
        return f"{self.architecture}, {self.estimator}"


def plot_atlas(
    atlas: Mapping[str, Mapping[str, NADs]],
    indices: Sequence[int] | None = None,
    title: str | None = None,
    *,
    alt: str | None = None,
) -> go.Figure:
    """Draw NADs of several architectures by several estimators, in pixels and in Fourier energy.

    The architecture, the estimator and the index are three controls that work independently of each
    other; one that has nothing to choose from is left out. Colours are rounded to 8 bits, and scaled to the largest
    pixel and to the largest energy of each NAD.

    Parameters
    ----------
    atlas
        Architecture to estimator to NADs; all of one image shape. An estimator may be missing for an architecture:
        the figure then says so.
    indices
        Which NADs, counted from 0. By default the first ones and a selection up to the last.
    title
        Above the figure.
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    TypeError
        If the atlas is not a dict of dicts of NADs.
    ValueError
        If it is empty, image shapes differ, NADs are in colour, an index is out of range or occurs twice, or
        eigenvalues are not finite or do not have a positive sum.
    """
    sets = {
        (architecture, estimator): nads
        for architecture, by_estimator in as_mapping(atlas, "the atlas").items()
        for estimator, nads in as_mapping(by_estimator, f"the atlas of {architecture!r}").items()
    }
    vectors = {name: _nad_vectors(nads, ", ".join(name)) for name, nads in sets.items()}
    shapes = {array.shape[1:] for array in vectors.values()}
    if len(shapes) > 1:
        raise ValueError(f"got NADs of different image shapes, {sorted(shapes)}; expected one shape")
    count = min(len(array) for array in vectors.values())
    chosen = _indices(indices, count, _default_indices(count, 12))
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"got indices {chosen}; expected each of them once")
    plates = []
    for name, nads in sets.items():
        eigenvalues = as_vector(nads.eigenvalues, f"the eigenvalues of {', '.join(name)}")
        if not np.isfinite(eigenvalues).all() or eigenvalues.sum() <= 0 or len(eigenvalues) <= max(chosen):
            raise ValueError(
                f"got {len(eigenvalues)} eigenvalues of {', '.join(name)} that sum to {eigenvalues.sum():g}; expected "
                "one for each NAD, finite and with a positive sum"
            )
        images = np.stack([as_direction(vectors[name][index], f"NAD {index} of {', '.join(name)}") for index in chosen])
        plates.append(_Plate(*name, images, eigenvalues[chosen] / eigenvalues.sum()))
    if alt is None:
        first = ", ".join(f"{plate.name} {_percent(plate.shares[0])}" for plate in plates)
        alt = (
            f"{title or 'An atlas of NADs'}, in pixels and in Fourier energy, for indices {chosen[0]} to {chosen[-1]}. "
        )
        alt += f"Eigenvalue of NAD {chosen[0]} as a share of the trace: {first}."
    return _atlas_plotly(plates, chosen, title, alt)


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%".replace("-", "−")


def _atlas_plotly(plates: list[_Plate], indices: list[int], title: str | None, alt: str) -> go.Figure:
    """One plane for each architecture, with the indices from left to right and the estimators from top to bottom.

    The figure looks at it through a window of the size of one image. The choice of the architecture makes a plane
    visible, that of the estimator moves the window down and that of the index moves it to the right: no control
    touches what another one has set.
    """
    architectures = list(dict.fromkeys(plate.architecture for plate in plates))
    estimators = list(dict.fromkeys(plate.estimator for plate in plates))
    height, width = plates[0].images.shape[1:]
    starts = {"pixels": (0, 0), "energy": (-(height // 2), -(width // 2))}
    figure = make_subplots(
        2,
        2,
        specs=[[{"colspan": 2}, None], [{}, {}]],
        row_heights=[0.2, 0.8],
        vertical_spacing=0.1,
        horizontal_spacing=0.06,
        subplot_titles=("", "pixels", "Fourier energy"),
    )
    spread = 4  # captions stand this many windows apart, for those that are wider than a narrow window
    groups = []
    for architecture in architectures:
        captions: list[str] = []
        for row, estimator in enumerate(estimators):
            plate = next((p for p in plates if (p.architecture, p.estimator) == (architecture, estimator)), None)
            if plate is None:
                captions += [f"{architecture}, {estimator}<br>is not in this atlas"] * len(indices)
                continue
            energies = [energy_of(image) for image in plate.images]
            strips = {
                "pixels": np.hstack([image * (127 / np.abs(image).max()) for image in plate.images]),
                "energy": np.hstack([energy * (255 / energy.max()) for energy in energies]),
            }
            for column, (kind, strip) in enumerate(strips.items(), start=1):
                trace = go.Heatmap(
                    z=strip.round().astype(np.int8 if kind == "pixels" else np.uint8),
                    y0=starts[kind][0] + row * height,
                    x0=starts[kind][1],
                    coloraxis="coloraxis" if kind == "pixels" else "coloraxis2",
                    hoverinfo="skip",
                    visible=architecture == architectures[0],
                )
                figure.add_trace(trace, 2, column)
                groups.append(architecture)
            captions += [
                f"{plate.name}, NAD {index}<br>eigenvalue {_percent(share)} of the trace<br>peak energy "
                f"{_percent(energy.max())}"
                for index, share, energy in zip(indices, plate.shares, energies, strict=True)
            ]
        columns, rows = np.meshgrid(np.arange(len(indices)), np.arange(len(estimators)))
        text = go.Scatter(
            x=columns.ravel() * spread,
            y=rows.ravel() * spread,
            text=captions,
            mode="text",
            textposition="middle right",
            cliponaxis=True,
            hoverinfo="skip",
            showlegend=False,
            visible=architecture == architectures[0],
        )
        figure.add_trace(text, 1, 1)
        groups.append(architecture)

    figure.update_xaxes(visible=False, range=[0, 1], row=1, col=1)
    figure.update_yaxes(visible=False, range=[0.5, -0.5], row=1, col=1)
    for column, frequency in enumerate((False, True), start=1):
        square_cells(figure, 2, column, plates[0].images[0], frequency)
    for axes, size, count in (
        (figure.update_xaxes, width, len(indices)),
        (figure.update_yaxes, height, len(estimators)),
    ):
        ticks = sorted({-(size // 4), 0, size // 4})
        places = [tick + size * number for number in range(count) for tick in ticks]
        axes(tickvals=places, ticktext=[f"{tick}".replace("-", "−") for tick in ticks] * count, row=2, col=2)
    figure.update_xaxes(title="frequency j", row=2, col=2)
    figure.update_yaxes(title="frequency i", side="right", row=2, col=2)
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)

    pixel_axes, energy_axes = ((figure.get_subplot(2, column)) for column in (1, 2))
    window = [(axis.plotly_name, tuple(axis.range)) for pair in (pixel_axes, energy_axes) for axis in pair]
    caption_window = [(axis.plotly_name, tuple(axis.range)) for axis in figure.get_subplot(1, 1)]

    def moved(letter: str, number: int, size: int) -> dict[str, Any]:
        shifts = [(name, ends, number * size) for name, ends in window]
        shifts += [(name, ends, number * spread) for name, ends in caption_window]
        return {f"{name}.range": [end + by for end in ends] for name, ends, by in shifts if name.startswith(letter)}

    steps = [
        {"label": f"{index}", "method": "relayout", "args": [moved("x", number, width)]}
        for number, index in enumerate(indices)
    ]
    architecture_buttons = [
        {"label": architecture, "method": "restyle", "args": [{"visible": [group == architecture for group in groups]}]}
        for architecture in architectures
    ]
    estimator_buttons = [
        {"label": estimator, "method": "relayout", "args": [moved("y", number, height)]}
        for number, estimator in enumerate(estimators)
    ]
    menus = [buttons for buttons in (architecture_buttons, estimator_buttons) if len(buttons) > 1]
    top = 24 + (20 * (wrap(title).count("<br>") + 1) if title else 0) + (40 if menus else 0)
    bottom = 190 if len(steps) > 1 else 90
    left, right = (axes.xaxis.domain for axes in (pixel_axes, energy_axes))
    pixel_bar = colour_bar(left, y=-0.18, tickvals=[-127, 0, 127], ticktext=["−max", "0", "max"])
    energy_bar = colour_bar(right, y=-0.18, tickvals=[0, 255], ticktext=["0", "peak"])
    figure.update_layout(
        updatemenus=[dropdown_layout(buttons, x) for x, buttons in enumerate(menus)],
        sliders=[slider_layout(steps, "NAD ", -0.3)] if len(steps) > 1 else [],
        coloraxis={"colorscale": DIVERGING, "cmin": -127, "cmax": 127, "colorbar": pixel_bar},
        coloraxis2={"colorscale": SEQUENTIAL, "cmin": 0, "cmax": 255, "colorbar": energy_bar},
    )
    margin = {"l": 12, "r": 12, "t": top, "b": bottom}
    return finish(figure, title, alt, height=300 + top + bottom, margin=margin)


def plot_spectra(
    spectra: Mapping[str, NADs | ArrayLike],
    stderr: bool = True,
    title: str | None = None,
    *,
    backend: Backend = "plotly",
    alt: str | None = None,
) -> Figure:
    """Draw eigenvalues against their rank, both on logarithmic axes, with a band of one standard error.

    Parameters
    ----------
    spectra
        Label to NADs or to eigenvalues. Zero eigenvalues are left out.
    stderr
        Whether to draw the bands, for NADs that have standard errors.
    title
        Above the figure.
    backend
        ``"plotly"`` or ``"matplotlib"``.
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure or StaticFigure

    Raises
    ------
    TypeError
        If ``spectra`` is not a dict.
    ValueError
        If it is empty, or eigenvalues are negative, not finite or all zero.
    """
    check_backend(backend)
    curves = []
    for label, spectrum in as_mapping(spectra, "spectra").items():
        values = as_vector(getattr(spectrum, "eigenvalues", spectrum), f"the spectrum {label!r}")
        # The smallest eigenvalues of a singular covariance are zero up to rounding, on either side.
        if not np.isfinite(values).all() or values.max() <= 0 or values.min() < -1e-6 * values.max():
            raise ValueError(f"got negative, infinite or only zero eigenvalues in {label!r}; expected positive numbers")
        errors = getattr(spectrum, "eigenvalue_stderr", None) if stderr else None
        positive = values > 0
        rank = np.arange(1, len(values) + 1)[positive]
        band = None
        if errors is not None:
            error = as_vector(errors, f"the standard errors of {label!r}", len(values), "eigenvalue")[positive]
            known = np.isfinite(error)
            if known.any():
                centre, error = values[positive][known], error[known]
                # A logarithmic axis has no room for zero and below.
                band = rank[known], np.maximum(centre - error, centre / 10), centre + error
        curves.append((label, rank, values[positive], band))
    if alt is None:
        parts = [f"{label} falls from {y[0]:.2g} to {y[-1]:.2g}" for label, _, y, _ in curves]
        alt = f"{title or 'Eigenvalues against their rank'}, on logarithmic axes: {'; '.join(parts)}."
    if backend == "matplotlib":
        figure = static_figure(title, alt, (6.4, 3.8))
        axes = figure.subplots()
        for number, (label, rank, values, band) in enumerate(curves):
            axes.plot(rank, values, label=label, color=colour_of(label, number), linewidth=1.4)
            if band is not None:
                axes.fill_between(*band, color=colour_of(label, number), alpha=0.25, linewidth=0)
        axes.set(xscale="log", yscale="log", xlabel="rank (index + 1)", ylabel="eigenvalue")
        axes.legend(frameon=False)
        return figure
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
                hovertemplate="rank %{x}<br>eigenvalue %{y:.3g}",
            )
        )
    figure.update_xaxes(type="log", title="rank (index + 1)", dtick=1)
    figure.update_yaxes(type="log", title="eigenvalue", exponentformat="power", dtick=1)
    legend = {"y": -0.2, "yanchor": "top"}
    return finish(figure, title, alt, height=420, showlegend=len(curves) > 1, legend=legend)


def plot_convergence(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    title: str | None = None,
    xlabel: str = "number of networks",
    ylabel: str = "overlap",
    reference_lines: Mapping[str, float] | None = None,
    *,
    y_range: tuple[float, float] | None = (0.0, 1.0),
    alt: str | None = None,
) -> go.Figure:
    """Draw how a quantity changes with the number of networks (logarithmic), with dashed lines for known values.

    Parameters
    ----------
    curves
        Label to (numbers, values), two vectors of one length; numbers are positive. NaN values are left out.
    title
        Above the figure.
    xlabel, ylabel
        Of the axes.
    reference_lines
        Label to value, for instance the chance level and the ceiling.
    y_range
        Ends of the vertical axis, which hold every value. None takes them from the values.
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    TypeError
        If ``curves`` or ``reference_lines`` is not a dict, or a curve is not a pair.
    ValueError
        If there is no curve, lengths differ, a number is not positive, a curve has no finite value, a value is infinite
        or lies outside ``y_range``.
    """
    drawn = {label: _curve_points(label, curve) for label, curve in as_mapping(curves, "curves").items()}
    lines: dict[str, float] = {}
    for label, value in (as_mapping(reference_lines, "reference_lines") if reference_lines else {}).items():
        lines[label] = float(value)
        if not math.isfinite(lines[label]):
            raise ValueError(f"got reference line {label!r} = {value}; expected a finite number")
    values = np.concatenate([*(y for _, y in drawn.values()), list(lines.values())])
    low, high = (float(values.min()), float(values.max())) if y_range is None else map(float, y_range)
    if y_range is None and low == high:
        low, high = low - 0.5, high + 0.5
    if not low < high:
        raise ValueError(f"got y_range={y_range}; expected (low, high) with low < high")
    if values.min() < low or values.max() > high:
        outside = values[(values < low) | (values > high)][0]
        raise ValueError(f"got {outside:g}, outside of y_range={y_range}; give a wider one, or None to fit the values")
    if alt is None:
        parts = [
            f"{label} goes from {y[0]:.2g} at {x[0]:g} to {y[-1]:.2g} at {x[-1]:g}" for label, (x, y) in drawn.items()
        ]
        alt = f"{title or ylabel.capitalize()} against the {xlabel}, on a logarithmic axis: {'; '.join(parts)}."
        if lines:
            alt += f" Dashed lines: {', '.join(f'{label} at {value:.3g}' for label, value in lines.items())}."
    # Room for whole markers below, and for the name of a line above.
    limits = (low - 0.03 * (high - low), high + 0.09 * (high - low))
    names = {label: f"{label} {value:.3g}".replace("-", "−") for label, value in lines.items()}
    # Curves mostly rise. So names of low lines stand on the right and those of high lines on the left.
    on_right = {label: value < (low + high) / 2 for label, value in lines.items()}
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
    for label, value in lines.items():
        figure.add_hline(
            value,
            line={"color": "rgba(128, 128, 128, 0.9)", "width": 1.5, "dash": "dash"},
            annotation={"text": names[label], "showarrow": False},
            annotation_position="top right" if on_right[label] else "top left",
        )
    smallest, largest = (end(float(end(x)) for x, _ in drawn.values()) for end in (min, max))
    decades = math.log10(largest / smallest)
    figure.update_xaxes(
        type="log", title=xlabel, dtick=1 if decades > 2.5 else "D2", tickformat=",~r", minor={"ticks": ""}
    )
    figure.update_yaxes(title=ylabel, range=limits, zeroline=False)
    legend = {"y": -0.22, "yanchor": "top"}
    return finish(figure, title, alt, height=420, showlegend=len(drawn) > 1, legend=legend, hovermode="closest")


def _curve_points(label: str, curve: Any) -> tuple[Array, Array]:
    """Read a curve as numbers in rising order and finite values."""
    if not isinstance(curve, tuple | list) or len(curve) != 2:
        raise TypeError(f"got a curve {label!r} of type {type(curve).__name__}; expected a pair (numbers, values)")
    x = as_vector(curve[0], f"the numbers of {label!r}")
    y = as_vector(curve[1], f"the values of {label!r}", len(x), "number")
    if not (np.isfinite(x).all() and (x > 0).all()):
        raise ValueError(f"got numbers of {label!r} that are zero, negative or not finite; expected positive numbers")
    known = ~np.isnan(y)
    if not known.any() or np.isinf(y).any():
        raise ValueError(f"got values of {label!r} that are infinite, or all NaN; expected finite numbers")
    order = np.argsort(x[known], kind="stable")
    return x[known][order], y[known][order]


def plot_alignment(
    alpha: ArrayLike,
    accuracy: ArrayLike,
    labels: Sequence[Any],
    groups: Sequence[Any] | None = None,
    title: str | None = None,
    *,
    alt: str | None = None,
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
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    ValueError
        If lengths differ, there are fewer than three directions, α is not positive or an accuracy is not in [0, 1].
    """
    x = as_vector(alpha, "alpha")
    y = as_vector(accuracy, "accuracy", len(x), "alpha")
    names = [str(label) for label in labels]
    members = [""] * len(x) if groups is None else [str(group) for group in groups]
    for name, given in (("labels", names), ("groups", members)):
        if len(given) != len(x):
            raise ValueError(f"got {len(given)} {name}; expected {len(x)}, one for each alpha")
    if len(x) < 3:
        raise ValueError(f"got {len(x)} directions; expected at least 3, for a correlation")
    if not (np.isfinite(x).all() and (x > 0).all()):
        raise ValueError("got alpha that is zero, negative or not finite; expected positive numbers")
    if not ((y >= 0) & (y <= 1)).all():
        raise ValueError("got accuracy outside [0, 1]; expected shares, not per cent")
    unique = list(dict.fromkeys(members))
    selections = [[k for k, member in enumerate(members) if member == group] for group in unique]
    # Pooled over groups a correlation would mix different scales of alpha.
    summaries = [rank_correlation(x[chosen], y[chosen]) for chosen in selections]
    by_group = ", ".join(f"{group} {summary}" for group, summary in zip(unique, summaries, strict=True)).strip()
    heading = "Spearman's rank correlation" if title is None else title
    full_title = heading if groups is not None else f"{heading}: {summaries[0]}"
    if alt is None:
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
