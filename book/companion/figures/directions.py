"""Directions of the input space: pixels and Fourier energy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from companion.parts import (
    Array,
    ArrayLike,
    as_direction,
    as_mapping,
    direction_panels,
    energy_of,
    grid_plotly,
)

__all__ = ["plot_direction", "plot_directions"]


def plot_direction(v: ArrayLike, title: str | None = None) -> go.Figure:
    """Draw a direction in pixels, and the share of its energy at each Fourier frequency.

    Parameters
    ----------
    v
        Shape (h, w).
    """
    direction = as_direction(v)
    alt = f"{title or 'A direction'}: on the left its pixels, on the right its energy at each Fourier frequency."
    alt += f" {_peak(direction)}"
    return direction_panels({title or "": direction}, [title or ""], None, alt)


def _peak(v: Array) -> str:
    energy = energy_of(v)
    i, j = np.unravel_index(int(energy.argmax()), energy.shape)
    height, width = energy.shape
    return f"The largest share, {energy.max():.1%}, lies at frequency ({i - height // 2}, {j - width // 2})."


def plot_directions(
    directions: Mapping[str, ArrayLike],
    title: str | None = None,
    *,
    layout: Literal["row", "slider"] = "slider",
    columns: int = 4,
    energy: bool = True,
) -> go.Figure:
    """Draw several directions: one at a time, chosen by a slider, or all of them as small multiples.

    Parameters
    ----------
    directions
        Label to direction; directions have shape (h, w), all the same.
    layout
        ``"slider"`` or ``"row"``.
    columns
        A row is broken after this many directions.
    energy
        Whether a row shows the Fourier energy, too.
    """
    images = {
        label: as_direction(v, f"direction {label!r}") for label, v in as_mapping(directions, "directions").items()
    }
    shapes = {image.shape for image in images.values()}
    if len(shapes) > 1:
        raise ValueError(f"got directions of different shapes, {sorted(shapes)}; expected one shape")
    what = "pixels and Fourier energy" if energy or layout != "row" else "pixels"
    alt = f"{title or 'Directions'}: {what} of {', '.join(label.replace('<br>', ', ') for label in images)}."
    if layout != "row":
        titles = [f"{title}: {label}" if title else label for label in images]
        return direction_panels(images, titles, layout, alt)
    items = [(label, {"": image}) for label, image in images.items()]
    return grid_plotly(items, title, min(columns, len(images)), alt, energy)
