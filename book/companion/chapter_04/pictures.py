"""NADs as pictures: in pixels and in Fourier energy."""

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
    as_array,
    as_direction,
    as_mapping,
    as_vector,
    buttons_for,
    colour_bar,
    direction_panels,
    dropdown_layout,
    energy_of,
    finish,
    slider_layout,
    square_cells,
    title_height,
)

__all__ = ["plot_atlas", "plot_nads"]


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
    *,
    title: str | None = None,
) -> go.Figure:
    """Draw NADs in pixels and in Fourier energy, with a slider over the index.

    Parameters
    ----------
    nads
        What to show.
    indices
        Which NADs, counted from 0. By default the first ones and a selection up to the last.
    title
        Above the figure, before the index and the eigenvalue.
    """
    vectors = as_array(nads.vectors, "nads.vectors")
    chosen = list(indices or _default_indices(len(vectors), 20))
    alt = f"{title or 'NADs'} in pixels and in Fourier energy, for indices {chosen[0]} to {chosen[-1]}."
    pictures = {f"{index}": as_direction(vectors[index]) for index in chosen}
    heading = f"{title}: NAD" if title else "NAD"
    titles = [f"{heading} {index}, eigenvalue {_eigenvalue(nads, index)}" for index in chosen]
    return direction_panels(pictures, titles, "slider", alt, prefix="NAD ")


def _eigenvalue(nads: NADs, index: int) -> str:
    text = f"{float(nads.eigenvalues[index]):.2e}"
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
    """
    sets = {
        (architecture, estimator): nads
        for architecture, by_estimator in as_mapping(atlas, "the atlas").items()
        for estimator, nads in as_mapping(by_estimator, f"the atlas of {architecture!r}").items()
    }
    vectors = {name: as_array(nads.vectors, ", ".join(name)) for name, nads in sets.items()}
    count = min(len(array) for array in vectors.values())
    chosen = list(indices or _default_indices(count, 12))
    plates = []
    for name, nads in sets.items():
        eigenvalues = as_vector(nads.eigenvalues, f"the eigenvalues of {', '.join(name)}")
        images = np.stack([as_direction(vectors[name][index], f"NAD {index} of {', '.join(name)}") for index in chosen])
        plates.append(_Plate(*name, images, eigenvalues[chosen] / eigenvalues.sum()))
    first = ", ".join(f"{plate.name} {_percent(plate.shares[0])}" for plate in plates)
    alt = f"{title or 'An atlas of NADs'}, in pixels and in Fourier energy, for indices {chosen[0]} to {chosen[-1]}. "
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
    for group, architecture in enumerate(architectures):
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
                    visible=group == 0,
                )
                figure.add_trace(trace, 2, column)
                groups.append(group)
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
            visible=group == 0,
        )
        figure.add_trace(text, 1, 1)
        groups.append(group)

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
    architecture_buttons = buttons_for(architectures, groups)
    estimator_buttons = [
        {"label": estimator, "method": "relayout", "args": [moved("y", number, height)]}
        for number, estimator in enumerate(estimators)
    ]
    menus = [buttons for buttons in (architecture_buttons, estimator_buttons) if len(buttons) > 1]
    top = 24 + title_height(title) + (40 if menus else 0)
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
