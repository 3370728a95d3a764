"""Many small images side by side: a wall of directions, a gallery of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import get_colorscale
from plotly.subplots import make_subplots

from companion.figures.images import as_pixels, frame, png, stretched
from companion.parts import ArrayLike, as_mapping, finish
from companion.style import DIVERGING

__all__ = ["plot_gallery", "plot_wall"]

_GAP, _ROW_GAP = 2, 18  # pixels between images, and between rows: for a label, on a telephone too
_WIDE = 340  # pixels of a wall whose rows are that far apart
_WIDTH = 680  # of a wall on the page
_NOTHING = -128  # between images: a page of any colour shows through


def plot_wall(
    rows: Mapping[str, Any], title: str | None = None, *, alt: str | None = None, one_scale: bool = False
) -> go.Figure:
    """Draw rows of small images, each scaled to its own largest value; red is positive, blue negative.

    Parameters
    ----------
    rows
        From a row's label to its images, of shape (k, h, w), or from their names, which then stand above each of them,
        to images of shape (h, w); all of one size.
    title
    alt
        Text for readers who cannot see the figure.
    one_scale
        Whether all are scaled to the largest value among them instead.

    Raises
    ------
    ValueError
        If the images of two rows differ in size or number.
    """
    labels = [list(row) if isinstance(row, Mapping) else [label] for label, row in as_mapping(rows, "rows").items()]
    given = {
        label: np.stack(
            [np.asarray(image, dtype=float) for image in (row.values() if isinstance(row, Mapping) else row)]
        )
        for label, row in rows.items()
    }
    shapes = {images.shape for images in given.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 3:
        raise ValueError(f"got rows of the shapes {sorted(shapes)}; expected one shape (number, height, width)")
    count, height, width = next(iter(shapes))
    gap = _row_gap(count * (width + _GAP))
    wall = np.full((len(given) * (height + gap), count * (width + _GAP)), _NOTHING, dtype=np.int8)
    largest = max(float(np.abs(images).max()) for images in given.values())
    for row, images in enumerate(given.values()):
        for column, image in enumerate(images):
            top, left = row * (height + gap) + gap, column * (width + _GAP)
            scaled = 127 * image / max(largest if one_scale else float(np.abs(image).max()), 1e-300)
            wall[top : top + height, left : left + width] = scaled.round()
    clear, first = "rgba(0, 0, 0, 0)", 1 / 255  # the place of -127 between -128 and 127
    colours = [[first + (1 - first) * place, colour] for place, colour in get_colorscale(DIVERGING)]
    scale = [[0, clear], [first / 2, clear], [first / 2, colours[0][1]], *colours]
    heatmap = go.Heatmap(z=wall, colorscale=scale, zmin=_NOTHING, zmax=127, showscale=False, hoverinfo="skip")
    figure = go.Figure(heatmap)
    for row, texts in enumerate(labels):
        for column, text in enumerate(texts):
            place = {"x": column * (width + _GAP) - 0.5, "y": row * (height + gap) + gap - 0.5}
            figure.add_annotation(**place, text=text, showarrow=False, xanchor="left", yanchor="bottom")
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False, autorange="reversed", scaleanchor="x", constrain="domain")
    margin = {"l": 12, "r": 12, "t": 46, "b": 12}
    cut = {"count": count, "height": height, "width": width + _GAP, "gap": gap, "named": max(map(len, labels)) > 1}
    figure.layout.meta = {"sheet": wall.shape[0] / wall.shape[1], "wall": cut}  # for the page's script
    if alt is None:
        alt = f"{title or 'Directions'}: {count} images in each row, for {', '.join(given)}."
    return finish(figure, title, alt, height=70 + round(_WIDTH * wall.shape[0] / wall.shape[1]), margin=margin)


def plot_gallery(rows: Mapping[str, Mapping[str, ArrayLike]], title: str | None = None) -> go.Figure:
    """Draw rows of pictures, each row with its label above.

    Parameters
    ----------
    rows
        From a row's label to the name of a picture to its image, of shape (1 or 3 channels, h, w) or (h, w); all of one
        size, as many in each row. Images with values outside [0, 1] are stretched around grey.
    title

    Raises
    ------
    ValueError
        If the images of two rows differ in size or number.
    """
    pictures = {
        label: [stretched(as_pixels(image, f"{label!r}, {name!r}")) for name, image in as_mapping(row, label).items()]
        for label, row in as_mapping(rows, "rows").items()
    }
    shapes = {picture.shape for row in pictures.values() for picture in row}
    counts = {len(row) for row in pictures.values()}
    if len(shapes) != 1 or len(counts) != 1:
        raise ValueError(f"got rows of {sorted(counts)} pictures of {sorted(shapes)}; expected one number and one size")
    (height, width, _), (count,) = shapes.pop(), counts
    gap = _row_gap(count * (width + _GAP))
    sheet = np.zeros((len(pictures) * (height + gap), count * (width + _GAP) - _GAP, 4))
    figure = make_subplots(1, 1)
    for row, (label, images) in enumerate(pictures.items()):
        top = row * (height + gap) + gap
        for column, image in enumerate(images):
            left = column * (width + _GAP)
            sheet[top : top + height, left : left + width, :3] = image
            sheet[top : top + height, left : left + width, 3] = 1
        figure.add_annotation(x=-0.5, y=top - 0.5, text=label, showarrow=False, xanchor="left", yanchor="bottom")
    figure.add_trace(go.Image(source=png(sheet), hoverinfo="skip"))
    frame(figure, 1, *sheet.shape[:2])
    names = next(iter(as_mapping(rows, "rows").values()))
    alt = f"{title or 'Pictures'}: {', '.join(names)}; in rows: {', '.join(pictures)}."
    height = 70 + round(_WIDTH * sheet.shape[0] / sheet.shape[1])
    figure.layout.meta = {"sheet": sheet.shape[0] / sheet.shape[1]}  # for the page's script
    return finish(figure, title, alt, height=height, margin={"l": 12, "r": 12, "t": 46, "b": 12})


def _row_gap(width: int) -> int:
    """Room for a label, which is as high on the page where there are few images of few pixels."""
    return max(8, round(_ROW_GAP * width / _WIDE))
