"""Directions of the input space: pixels and Fourier energy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from companion.parts import (
    Array,
    ArrayLike,
    Backend,
    Figure,
    as_direction,
    as_mapping,
    check_backend,
    direction_panels,
    draw_energy,
    draw_pixels,
    energy_of,
    grid_plotly,
    static_figure,
)
from nadtools import checks

__all__ = ["plot_direction", "plot_directions"]


def plot_direction(v: ArrayLike, title: str | None = None, *, backend: Backend = "plotly") -> Figure:
    """Draw a direction in pixels, and the share of its energy at each Fourier frequency.

    Parameters
    ----------
    v
        Shape (h, w).
    """
    check_backend(backend)
    direction = as_direction(v)
    alt = f"{title or 'A direction'}: on the left its pixels, on the right its energy at each Fourier frequency."
    alt += f" {_peak(direction)}"
    if backend == "plotly":
        return direction_panels({title or "": direction}, [title or ""], None, alt)
    figure = static_figure(title, alt, (6.4, 3.2))
    figure.set_layout_engine("compressed")
    left, right = figure.subplots(1, 2)
    left.set_title("pixels", fontsize=10)
    figure.colorbar(draw_pixels(left, direction), ax=left, shrink=0.8)
    left.set(xlabel="column", ylabel="row")
    right.set_title("Fourier energy", fontsize=10)
    figure.colorbar(draw_energy(right, direction), ax=right, shrink=0.8)
    right.set(xlabel="frequency j", ylabel="frequency i")
    return figure


def _peak(v: Array) -> str:
    energy = energy_of(v)
    i, j = np.unravel_index(int(energy.argmax()), energy.shape)
    height, width = energy.shape
    return f"The largest share, {energy.max():.1%}, lies at frequency ({i - height // 2}, {j - width // 2})."


def plot_directions(
    directions: Mapping[str, ArrayLike],
    title: str | None = None,
    *,
    layout: Literal["row", "slider", "dropdown"] = "slider",
    columns: int = 4,
) -> go.Figure:
    """Draw several directions: one at a time, chosen by a slider or a dropdown, or all of them as small multiples.

    Parameters
    ----------
    directions
        Label to direction; directions have shape (h, w), all the same.
    layout
        ``"slider"``, ``"dropdown"`` or ``"row"``.
    columns
        A row is broken after this many directions.
    """
    checks.choice("layout", layout, ("row", "slider", "dropdown"))
    columns = checks.positive_int("columns", columns)
    images = {
        label: as_direction(v, f"direction {label!r}") for label, v in as_mapping(directions, "directions").items()
    }
    shapes = {image.shape for image in images.values()}
    if len(shapes) > 1:
        raise ValueError(f"got directions of different shapes, {sorted(shapes)}; expected one shape")
    alt = f"{title or 'Directions'}: pixels and Fourier energy of {', '.join(images)}."
    if layout != "row":
        titles = [f"{title}: {label}" if title else label for label in images]
        return direction_panels(images, titles, layout, alt)
    items = [(label, {"": image}) for label, image in images.items()]
    return grid_plotly(items, title, min(columns, len(images)), alt)
