"""Curves over the indices of NADs, and photographs as pixels."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from companion.figures.curves import Curves, plot_curves
from companion.parts import (
    Array,
    as_array,
)

__all__ = ["as_pixels", "frame", "plot_over_indices", "png", "stretched"]

_FEW_POINTS = 50  # each of which is marked
_ROUND = (0, *(first * 10**power for power in range(5) for first in (1, 2, 5)))


def plot_over_indices(
    curves: Curves | Mapping[str, Curves],
    y_title: str,
    title: str | None = None,
    *,
    choose: Literal["slider", "dropdown"] | None = None,
    x_title: str = "index of the NAD",
    y_format: str = ".1%",
    notes: Sequence[tuple[str, int, str]] = (),
    **options: Any,
) -> go.Figure:
    """Draw curves over indices of NADs, on a logarithmic axis that begins with index 0.

    Parameters
    ----------
    curves, y_title, title, choose, y_format, **options
        As for :func:`companion.figures.plot_curves`; x are indices from 0. Curves of a few points
        that are neither dashed nor points alone are lines with points.
    x_title
    notes
        What is written at points of the first choice: the name of a curve, an index, a text. With ``choose`` the other
        choices have none.
    """
    figure = plot_curves(curves, x_title, y_title, title, choose=choose, y_format=y_format, **options)
    indices: set[int] = set()
    for trace in figure.data:
        x = np.asarray(trace.x)
        indices |= {int(index) for index in x}
        trace.update(x=x + 1, customdata=x.astype(int))
        trace.hovertemplate = trace.hovertemplate.replace("%{x}", "%{customdata}")
        if trace.mode == "lines" and not trace.line.dash and len(x) <= _FEW_POINTS:
            trace.update(mode="lines+markers", marker={"size": 7})
    room = 1.95  # the ratio of two labels that just fit on a telephone; the last one has four figures
    if len(indices) > _FEW_POINTS:
        indices, room = {tick for tick in _ROUND if min(indices) <= tick <= max(indices)}, 2.2
    ticks: list[int] = []
    for index in sorted(indices, reverse=True):  # the last one has a label, and the others where there is room
        if not ticks or (ticks[-1] + 1) / (index + 1) > room + 0.5 * (len(ticks) == 1):
            ticks.append(index)
    figure.update_xaxes(type="log", tickvals=[tick + 1 for tick in ticks], ticktext=[str(tick) for tick in ticks])
    figure.update_xaxes(tickangle=0, tickfont_size=11)
    if figure.layout.yaxis.type == "log":
        figure.update_yaxes(dtick=1)
    for curve, index, text in notes:
        _note(figure, curve, index, text)
    # Below the axis, where it may take several lines: on a telephone it would lie under the dropdown.
    figure.update_layout(legend={"y": -0.3, "yanchor": "top"}, height=figure.layout.height + 50)
    figure.layout.margin.b += 50
    return figure


def _note(figure: go.Figure, curve: str, index: int, text: str) -> None:
    """Write a text at a point of a curve; a dropdown's other choices take it away."""
    trace = next(trace for trace in figure.data if trace.name == curve)
    place = list(trace.customdata).index(index)
    y = float(trace.y[place])
    figure.add_annotation(
        x=math.log10(index + 1), y=math.log10(y) if figure.layout.yaxis.type == "log" else y, text=text,
        ax=34, ay=-16, arrowwidth=1, arrowcolor="#8c8c8c", align="left",
    )  # fmt: skip
    number = len(figure.layout.annotations) - 1
    for menu in figure.layout.updatemenus:
        for button, change in enumerate(menu.buttons):
            shown = {f"annotations[{number}].visible": button == 0}
            change.args = [change.args[0], {**change.args[1], **shown}]


# ---------------------------------------------------------------------------------------------------------------------
# Pictures
# ---------------------------------------------------------------------------------------------------------------------


def as_pixels(image: Any, name: str) -> Array:
    """An image as (h, w, 3)."""
    array = as_array(image, name)
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.shape[0] not in (1, 3) or 0 in array.shape:
        raise ValueError(f"got the image {name} of shape {array.shape}; expected (1 or 3 channels, height, width)")
    if not np.isfinite(array).all():
        raise ValueError(f"got NaN or infinite pixels in the image {name}; expected finite numbers")
    return np.broadcast_to(np.moveaxis(array, 0, 2), (*array.shape[1:], 3))


def stretched(pixels: Array) -> Array:
    """Pixels as they are if they lie in [0, 1]; else with their mean grey, and three deviations the range."""
    if pixels.min() >= 0 and pixels.max() <= 1:
        return pixels
    deviation = float(pixels.std())
    return 0.5 + (pixels - pixels.mean()) / (6 * deviation if deviation > 0 else 1.0)


def png(pixels: Array) -> str:
    """A picture as the address that a page can draw it from."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.round(255 * np.clip(pixels, 0, 1)).astype(np.uint8)).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def frame(figure: go.Figure, column: int, height: int, width: int) -> None:
    """Show the first image of a sheet, without an axis around it."""
    subplot = figure.get_subplot(1, column)
    hidden = {"visible": False, "fixedrange": True, "constrain": "domain"}
    subplot.xaxis.update(range=[-0.5, width - 0.5], **hidden)
    subplot.yaxis.update(
        range=[height - 0.5, -0.5],
        scaleanchor=subplot.xaxis.plotly_name.replace("axis", ""),
        constraintoward="top",
        **hidden,
    )
