"""Many small images side by side: a wall of directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from companion.parts import as_mapping, finish
from companion.style import DIVERGING

__all__ = ["plot_wall"]

_GAP = 2  # pixels between images
_HEIGHT = 74  # of a row on the page


def plot_wall(rows: Mapping[str, Any], title: str | None = None, *, alt: str | None = None) -> go.Figure:
    """Draw rows of small images, each scaled to its own largest value; red is positive, blue negative.

    Parameters
    ----------
    rows
        From a row's label to its images, of shape (k, h, w); all of one size.
    title
    alt
        Text for readers who cannot see the figure.

    Raises
    ------
    ValueError
        If the images of two rows differ in size or number.
    """
    given = {label: np.asarray(images, dtype=float) for label, images in as_mapping(rows, "rows").items()}
    shapes = {images.shape for images in given.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 3:
        raise ValueError(f"got rows of the shapes {sorted(shapes)}; expected one shape (number, height, width)")
    count, height, width = next(iter(shapes))
    wall = np.full((len(given) * (height + _GAP), count * (width + _GAP)), np.nan)
    for row, images in enumerate(given.values()):
        for column, image in enumerate(images):
            top, left = row * (height + _GAP), column * (width + _GAP)
            wall[top : top + height, left : left + width] = image / max(float(np.abs(image).max()), 1e-300)
    heatmap = go.Heatmap(
        z=wall.astype("float16"), colorscale=DIVERGING, zmin=-1, zmax=1, showscale=False, hoverinfo="skip"
    )
    figure = go.Figure(heatmap)
    for row, label in enumerate(given):
        figure.add_annotation(
            x=0, y=row * (height + _GAP) - 1.5, text=label, showarrow=False, xanchor="left", yanchor="bottom"
        )  # fmt: skip
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False, autorange="reversed", scaleanchor="x", constrain="domain")
    if alt is None:
        alt = f"{title or 'Directions'}: {count} images in each row, for {', '.join(given)}."
    return finish(figure, title, alt, height=60 + _HEIGHT * len(given), margin={"l": 12, "r": 12, "b": 12})
