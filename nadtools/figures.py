"""Figures from results, drawn with Plotly, or with matplotlib for print and for readers without JavaScript.

Nothing is computed here beyond what is drawn. Each builder takes ``backend`` ("plotly" or "matplotlib") and ``alt``,
the text for readers who cannot see the figure; where it is not given, one is written from the data. A Plotly figure
holds it in ``layout.meta["alt"]``, a matplotlib figure in its attribute ``alt``.
Images have row 0 at the top, and so do frequencies: i, the vertical frequency, grows downwards.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import matplotlib.figure
import numpy as np
import plotly.graph_objects as go
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullFormatter
from numpy.typing import NDArray
from plotly.subplots import make_subplots
from scipy.stats import spearmanr
from torch import Tensor

from nadtools.directions import fourier_energy
from nadtools.rendering import ARCHITECTURE_COLOURS, DIVERGING, SEQUENTIAL, describe, symmetric_limits

if TYPE_CHECKING:
    from nadtools.nads import NADs
    from nadtools.training import TrainResult

__all__ = [
    "StaticFigure",
    "plot_accuracy_map",
    "plot_alignment",
    "plot_atlas",
    "plot_convergence",
    "plot_direction",
    "plot_directions",
    "plot_history",
    "plot_nads",
    "plot_projections",
    "plot_samples",
    "plot_spectra",
]

Array: TypeAlias = NDArray[Any]
ArrayLike: TypeAlias = Tensor | Array | Sequence[Any]
Backend: TypeAlias = Literal["plotly", "matplotlib"]

# Titles are wrapped by hand, since Plotly does not; this many characters fit on a telephone.
_TITLE_WIDTH = 44
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c"]


class StaticFigure(matplotlib.figure.Figure):
    """A matplotlib figure that shows itself in a notebook, without pyplot's global list of open figures.

    Attributes
    ----------
    alt : str
        What the figure shows, in words.
    """

    alt: str = ""

    def to_png(self, dpi: float = 120) -> bytes:
        """Return the figure as the bytes of a PNG file."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=dpi)
        return buffer.getvalue()

    def _repr_png_(self) -> bytes:
        return self.to_png()


Figure: TypeAlias = go.Figure | StaticFigure


# ---------------------------------------------------------------------------------------------------------------------
# Input
# ---------------------------------------------------------------------------------------------------------------------


def _check_backend(backend: str) -> None:
    if backend not in ("plotly", "matplotlib"):
        raise ValueError(f"got backend={backend!r}; expected 'plotly' or 'matplotlib'")


def _array(values: Any, name: str) -> Array:
    """Values as a float64 array on the CPU."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"got {name} of type {type(values).__name__}; expected numbers: an array or a tensor") from None


def _vector(values: Any, name: str, length: int | None = None, what: str = "") -> Array:
    array = _array(values, name)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"got {name} of shape {array.shape}; expected a non-empty vector")
    if length is not None and array.size != length:
        raise ValueError(f"got {array.size} values in {name}; expected {length}, one for each {what}")
    return array


def _direction(v: Any, name: str = "v") -> Array:
    """Read a direction as a (h, w) array."""
    array = _array(v, name)
    if array.ndim == 3 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 2 or min(array.shape) < 2:
        raise ValueError(
            f"got {name} of shape {array.shape}; expected (height, width), at least 2 x 2 "
            "(draw a direction in colour one channel at a time: v[c])"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"got {name} with NaN or infinite entries; expected finite numbers")
    if not array.any():
        raise ValueError(f"got {name} = 0, which has no direction; expected a non-zero vector")
    return array


def _energy(v: Array) -> Array:
    energy: Array = fourier_energy(torch.from_numpy(np.ascontiguousarray(v, dtype=float))).numpy()
    return energy


def _mapping(values: Any, name: str) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise TypeError(f"got {name} of type {type(values).__name__}; expected a dict from labels to values")
    if not values:
        raise ValueError(f"got an empty dict of {name}; expected at least one entry")
    return {str(label): value for label, value in values.items()}


def _images(x: Any, y: Any) -> tuple[Array, Array]:
    images, labels = _array(x, "x"), _array(y, "y")
    if images.ndim == 4 and images.shape[1] == 1:
        images = images[:, 0]
    if images.ndim != 3:
        raise ValueError(f"got x of shape {images.shape}; expected (n, 1, height, width)")
    if labels.shape != (len(images),) or not len(images):
        raise ValueError(f"got y of shape {labels.shape} for {len(images)} samples in x; expected one label for each")
    if not np.isin(labels, (0, 1)).all():
        raise ValueError("got labels other than 0 and 1 in y; the sign of a class is 2y - 1")
    return images, labels.astype(int)


# ---------------------------------------------------------------------------------------------------------------------
# Pieces
# ---------------------------------------------------------------------------------------------------------------------


def _wrap(title: str | None) -> str:
    if not title or "<" in title:
        return title or ""
    return "<br>".join(textwrap.wrap(title, _TITLE_WIDTH))


def _colour(label: str, number: int) -> str:
    return ARCHITECTURE_COLOURS.get(label.lower(), _COLOURS[number % len(_COLOURS)])


def _frequencies(size: int) -> Array:
    return np.arange(size) - size // 2


def _pixel_trace(v: Array, limit: float | None = None, **options: Any) -> go.Heatmap:
    # float32 reaches the page as binary data, at a third of the size of written numbers.
    limits = symmetric_limits(v if limit is None else [limit])
    hover = "row %{y}, column %{x}<br>value %{z:.3g}<extra></extra>"
    return go.Heatmap(z=v.astype(np.float32), hovertemplate=hover, **{**limits, "showscale": False, **options})


def _energy_trace(v: Array, **options: Any) -> go.Heatmap:
    energy = _energy(v)
    return go.Heatmap(
        x=_frequencies(energy.shape[1]),
        y=_frequencies(energy.shape[0]),
        z=energy.astype(np.float32),
        colorscale=SEQUENTIAL,
        zmin=0.0,
        zmax=float(energy.max()),
        hovertemplate="frequency (%{y}, %{x})<br>%{z:.2%} of the energy<extra></extra>",
        **{"showscale": False, **options},
    )


def _square_cells(figure: go.Figure, row: int, column: int, image: Array, frequency: bool) -> Any:
    """Give an image, or its frequency plane, square cells and row 0 at the top; returns the x axis."""
    height, width = image.shape
    first_row, first_column = (-(height // 2), -(width // 2)) if frequency else (0, 0)
    subplot = figure.get_subplot(row, column)
    common = {"showgrid": False, "zeroline": False, "constrain": "domain", "nticks": 5}
    if not frequency:
        common |= {"showticklabels": False, "ticks": ""}
    subplot.xaxis.update(range=[first_column - 0.5, first_column + width - 0.5], **common)
    subplot.yaxis.update(
        range=[first_row + height - 0.5, first_row - 0.5],
        scaleanchor=subplot.xaxis.plotly_name.replace("axis", ""),
        constraintoward="top",
        **common,
    )
    return subplot.xaxis


def _colour_bar(domain: Sequence[float], length: int = 130, **options: Any) -> dict[str, Any]:
    """Place a short horizontal colour bar, ``length`` pixels long, below a panel that spans ``domain``."""
    return {
        "orientation": "h",
        "x": (domain[0] + domain[1]) / 2,
        "xanchor": "center",
        "yanchor": "top",
        "lenmode": "pixels",
        "len": length,
        "tickfont": {"size": 11},
        **options,
    }


def _chooser(
    kind: Literal["slider", "dropdown"],
    labels: Sequence[str],
    groups: Sequence[Hashable],
    titles: Sequence[str],
    prefix: str = "",
    steps_below: float = 0.0,
) -> dict[str, Any]:
    """Layout of a slider or a dropdown; step k shows the traces of group k, and title k."""
    steps = [
        {
            "label": label,
            "method": "update",
            "args": [{"visible": [group == number for group in groups]}, {"title.text": _wrap(titles[number])}],
        }
        for number, label in enumerate(labels)
    ]
    if kind == "slider":
        return {"sliders": [_slider(steps, prefix, steps_below)]}
    return {"updatemenus": [_dropdown(steps)]}


def _slider(steps: Sequence[dict[str, Any]], prefix: str, below: float) -> dict[str, Any]:
    return {"active": 0, "steps": steps, "currentvalue": {"prefix": prefix, "xanchor": "left"}, "y": below, "len": 1.0}


def _dropdown(buttons: Sequence[dict[str, Any]], x: int = 0) -> dict[str, Any]:
    place = {"x": x, "xanchor": "right" if x else "left", "y": 1.0, "yanchor": "bottom", "pad": {"b": 8}}
    # An open list covers parts of the figure, and Plotly's colour for the item under the pointer is nearly white: the
    # list is a light sheet with dark text, also on a dark page.
    return {"buttons": buttons, "active": 0, "bgcolor": "#f2f2f2", "font": {"color": "#303030"}, **place}


def _finish(figure: go.Figure, title: str | None, alt: str, **layout: Any) -> go.Figure:
    title = _wrap(title)
    place = {"xref": "container", "x": 0, "yref": "container", "y": 1, "yanchor": "top", "pad": {"l": 12, "t": 12}}
    figure.update_layout(template="nadtools", title={"text": title, **place})
    figure.update_layout(**layout)
    figure.update_annotations(font={"size": 13})
    return describe(figure, alt)


def _static(title: str | None, alt: str, size: tuple[float, float]) -> StaticFigure:
    figure = StaticFigure(figsize=size, layout="constrained", facecolor="white")
    figure.alt = alt
    if title:
        figure.suptitle(title, fontsize=11, x=0.02, ha="left", wrap=True)
    return figure


def _draw_pixels(axes: Axes, v: Array, limit: float | None = None) -> Any:
    limit = float(np.abs(v).max()) if limit is None else limit
    image = axes.imshow(v, cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")
    axes.grid(False)
    return image


def _draw_energy(axes: Axes, v: Array) -> Any:
    energy = _energy(v)
    height, width = energy.shape
    left, top = -(width // 2) - 0.5, -(height // 2) - 0.5
    extent = (left, left + width, top + height, top)
    image = axes.imshow(energy, cmap=SEQUENTIAL.lower(), vmin=0, extent=extent, interpolation="nearest")
    axes.grid(False)
    return image


# ---------------------------------------------------------------------------------------------------------------------
# Directions
# ---------------------------------------------------------------------------------------------------------------------


def plot_direction(
    v: ArrayLike, title: str | None = None, *, backend: Backend = "plotly", alt: str | None = None
) -> Figure:
    """Draw a direction in pixels, and the share of its energy at each Fourier frequency.

    Parameters
    ----------
    v
        Shape (h, w).
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
    ValueError
        If v is not an image, is zero or not finite, or the backend is unknown.
    """
    _check_backend(backend)
    direction = _direction(v)
    if alt is None:
        alt = f"{title or 'A direction'}: on the left its pixels, on the right its energy at each Fourier frequency."
        alt += f" {_peak(direction)}"
    if backend == "plotly":
        return _directions_plotly({title or "": direction}, [title or ""], None, alt)
    figure = _static(title, alt, (6.4, 3.2))
    figure.set_layout_engine("compressed")
    left, right = figure.subplots(1, 2)
    left.set_title("pixels", fontsize=10)
    figure.colorbar(_draw_pixels(left, direction), ax=left, shrink=0.8)
    left.set(xlabel="column", ylabel="row")
    right.set_title("Fourier energy", fontsize=10)
    figure.colorbar(_draw_energy(right, direction), ax=right, shrink=0.8)
    right.set(xlabel="frequency j", ylabel="frequency i")
    return figure


def _peak(v: Array) -> str:
    energy = _energy(v)
    i, j = np.unravel_index(int(energy.argmax()), energy.shape)
    height, width = energy.shape
    return f"The largest share, {energy.max():.1%}, lies at frequency ({i - height // 2}, {j - width // 2})."


def _directions_plotly(
    directions: dict[str, Array],
    titles: Sequence[str],
    kind: Literal["slider", "dropdown"] | None,
    alt: str,
    prefix: str = "",
) -> go.Figure:
    """Draw pixels and Fourier energy side by side, of one direction or of the one that a control chooses."""
    figure = make_subplots(1, 2, subplot_titles=("pixels", "Fourier energy"), horizontal_spacing=0.2)
    left, right = (figure.get_subplot(1, column).xaxis.domain for column in (1, 2))
    groups = []
    for number, direction in enumerate(directions.values()):
        shown = {"visible": number == 0, "showscale": True}
        limit = float(np.abs(direction).max())
        pixel_bar = _colour_bar(left, y=-0.24, tickvals=[-limit, 0, limit], tickformat=".2~r")
        energy_bar = _colour_bar(right, y=-0.24, nticks=4, tickformat="~%")
        figure.add_trace(_pixel_trace(direction, colorbar=pixel_bar, **shown), 1, 1)
        figure.add_trace(_energy_trace(direction, colorbar=energy_bar, **shown), 1, 2)
        groups += [number, number]
    image = next(iter(directions.values()))
    _square_cells(figure, 1, 1, image, frequency=False)
    _square_cells(figure, 1, 2, image, frequency=True).title = "frequency j"
    figure.update_yaxes(title="frequency i", col=2)
    lines = max(_wrap(title).count("<br>") + 1 if title else 0 for title in titles)
    top, bottom = 34 + 20 * lines, 90
    if kind == "slider":
        figure.update_layout(_chooser(kind, list(directions), groups, titles, prefix, steps_below=-0.42))
        bottom = 190
    elif kind == "dropdown":
        figure.update_layout(_chooser(kind, list(directions), groups, titles))
        figure.layout.updatemenus[0].pad.b = 26
        top += 40
    margin = {"l": 12, "r": 12, "t": top, "b": bottom}
    return _finish(figure, titles[0], alt, height=220 + top + bottom, margin=margin)


def plot_directions(
    directions: Mapping[str, ArrayLike],
    title: str | None = None,
    *,
    layout: Literal["row", "slider", "dropdown"] = "slider",
    columns: int = 4,
    backend: Backend = "plotly",
    alt: str | None = None,
) -> Figure:
    """Draw several directions: one at a time, chosen by a slider or a dropdown, or all of them as small multiples.

    Parameters
    ----------
    directions
        Label to direction; directions have shape (h, w), all the same.
    title
        Above the figure.
    layout
        ``"slider"``, ``"dropdown"`` or ``"row"``. With matplotlib it is always a row.
    columns
        A row is broken after this many directions.
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
        If ``directions`` is not a dict.
    ValueError
        If it is empty, the shapes differ, or a direction, the layout or the backend is not one.
    """
    _check_backend(backend)
    if layout not in ("row", "slider", "dropdown"):
        raise ValueError(f"got layout={layout!r}; expected 'row', 'slider' or 'dropdown'")
    if columns < 1:
        raise ValueError(f"got columns={columns}; expected at least 1")
    images = {label: _direction(v, f"direction {label!r}") for label, v in _mapping(directions, "directions").items()}
    shapes = {image.shape for image in images.values()}
    if len(shapes) > 1:
        raise ValueError(f"got directions of different shapes, {sorted(shapes)}; expected one shape")
    if alt is None:
        alt = f"{title or 'Directions'}: pixels and Fourier energy of {', '.join(images)}."
    if backend == "plotly" and layout != "row":
        titles = [f"{title}: {label}" if title else label for label in images]
        return _directions_plotly(images, titles, layout, alt)
    items = [(label, {"": image}) for label, image in images.items()]
    return _grid(items, title, min(columns, len(images)), backend, alt)


def _grid(
    items: list[tuple[str, dict[str, Array]]], title: str | None, columns: int, backend: Backend, alt: str
) -> Figure:
    """Draw small multiples: in a column for each item, its images as pixels and, below each, as Fourier energy."""
    names = list(items[0][1])
    panels = [(name, kind) for name in names for kind in ("pixels", "energy")]
    blocks = math.ceil(len(items) / columns)
    shape = (blocks * len(panels), columns)
    cells = {
        (number // columns * len(panels) + offset, number % columns): (kind, images[name])
        for number, (_, images) in enumerate(items)
        for offset, (name, kind) in enumerate(panels)
    }
    headings = {(number // columns * len(panels), number % columns): label for number, (label, _) in enumerate(items)}
    row_names = [kind if len(names) == 1 else f"{name}, {kind}" for name, kind in panels] * blocks
    if backend == "matplotlib":
        return _grid_matplotlib(cells, headings, row_names, shape, title, alt)
    figure = make_subplots(
        *shape,
        subplot_titles=[headings.get((row, column), "") for row in range(shape[0]) for column in range(columns)],
        horizontal_spacing=0.03,
        vertical_spacing=0.22 / shape[0],
    )
    for (row, column), (kind, image) in cells.items():
        trace = (_pixel_trace if kind == "pixels" else _energy_trace)(image)
        figure.add_trace(trace, row + 1, column + 1)
        _square_cells(figure, row + 1, column + 1, image, kind == "energy")
    figure.update_xaxes(showticklabels=False, ticks="")
    figure.update_yaxes(showticklabels=False, ticks="")
    for row, column in set(np.ndindex(shape)) - set(cells):
        empty = figure.get_subplot(row + 1, column + 1)
        empty.xaxis.visible = empty.yaxis.visible = False
    for row, name in enumerate(row_names):
        figure.update_yaxes(title=name, row=row + 1, col=1)
    top = 34 + (24 if title else 0)
    return _finish(figure, title, alt, height=140 * shape[0] + top, margin={"l": 30, "r": 8, "t": top, "b": 12})


def _grid_matplotlib(
    cells: dict[tuple[int, int], tuple[str, Array]],
    headings: dict[tuple[int, int], str],
    row_names: list[str],
    shape: tuple[int, int],
    title: str | None,
    alt: str,
) -> StaticFigure:
    figure = _static(title, alt, (max(1.35 * shape[1], 3.2), 1.42 * shape[0] + 0.5))
    grid = figure.subplots(*shape, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for (row, column), (kind, image) in cells.items():
        axes = grid[row, column]
        axes.set_axis_on()
        axes.set(xticks=[], yticks=[])
        (_draw_pixels if kind == "pixels" else _draw_energy)(axes, image)
        if (row, column) in headings:
            axes.set_title(headings[row, column], fontsize=9, loc="center")
        if column == 0:
            axes.set_ylabel(row_names[row].replace(", ", "\n"), fontsize=8)
    return figure


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
    backend: Backend = "plotly",
    alt: str | None = None,
) -> Figure:
    """Draw NADs in pixels and in Fourier energy, with a slider over the index; as a grid with matplotlib.

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
    backend
        ``"plotly"`` or ``"matplotlib"``.
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure or StaticFigure

    Raises
    ------
    ValueError
        If an index is out of range, the NADs are in colour, or those of the reference have another shape.
    """
    _check_backend(backend)
    sets = {"nads": nads} if reference is None else {"nads": nads, "reference": reference}
    vectors = {name: _nad_vectors(value, name) for name, value in sets.items()}
    count = len(vectors["nads"])
    if reference is not None and vectors["reference"].shape[1:] != vectors["nads"].shape[1:]:
        raise ValueError(
            f"got a reference of image shape {vectors['reference'].shape[1:]}; expected {vectors['nads'].shape[1:]}"
        )
    available = min(len(array) for array in vectors.values())
    chosen = _indices(indices, available, _default_indices(count, 20 if backend == "plotly" else 8))
    if alt is None:
        alt = f"{title or 'NADs'} in pixels and in Fourier energy, for indices {chosen[0]} to {chosen[-1]}"
        alt += ", above the reference." if reference is not None else "."
    pictures = [{name: _direction(array[index], name) for name, array in vectors.items()} for index in chosen]
    if backend == "matplotlib":
        items = [(f"{index}", images) for index, images in zip(chosen, pictures, strict=True)]
        return _grid(items, title, min(8, len(chosen)), backend, alt)

    titles = []
    for index in chosen:
        text = f"{title}: NAD {index}" if title else f"NAD {index}"
        text += f", eigenvalue {_eigenvalue(nads, index)}"
        if reference is not None:
            text += f" (reference {_eigenvalue(reference, index)})"
        titles.append(text)
    if reference is None:
        return _directions_plotly(
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
            figure.add_trace(_pixel_trace(image, visible=number == 0), row, 1)
            figure.add_trace(_energy_trace(image, visible=number == 0), row, 2)
            groups += [number, number]
    for row in (1, 2):
        _square_cells(figure, row, 1, pictures[0]["nads"], frequency=False)
        _square_cells(figure, row, 2, pictures[0]["nads"], frequency=True)
    figure.update_yaxes(title="frequency i", col=2)
    figure.update_xaxes(title="frequency j", row=2, col=2)
    figure.update_layout(_chooser("slider", [str(i) for i in chosen], groups, titles, "NAD ", steps_below=-0.12))
    return _finish(figure, titles[0], alt, height=620, margin={"l": 12, "r": 12, "t": 84, "b": 130})


def _indices(given: Sequence[int] | None, count: int, default: list[int]) -> list[int]:
    chosen = default if given is None else [int(index) for index in given]
    if not chosen or min(chosen) < 0 or max(chosen) >= count:
        raise ValueError(f"got indices {chosen}; expected at least one, all from 0 to {count - 1}")
    return chosen


def _nad_vectors(nads: NADs, name: str) -> Array:
    if not hasattr(nads, "vectors") or not hasattr(nads, "eigenvalues"):
        raise TypeError(f"got {name} of type {type(nads).__name__}; expected NADs, as estimate_nads returns them")
    vectors = _array(nads.vectors, f"{name}.vectors")
    if vectors.ndim == 4 and vectors.shape[1] == 1:
        vectors = vectors[:, 0]
    if vectors.ndim != 3:
        raise ValueError(f"got {name}.vectors of shape {vectors.shape}; expected (number, height, width), one channel")
    return vectors


def _eigenvalue(nads: NADs, index: int) -> str:
    eigenvalues = _array(nads.eigenvalues, "eigenvalues")
    if index >= len(eigenvalues):
        return "unknown"
    text = f"{eigenvalues[index]:.2e}"
    errors = getattr(nads, "eigenvalue_stderr", None)
    if errors is not None and math.isfinite(error := float(_array(errors, "eigenvalue_stderr")[index])):
        text += f" ± {error:.0e}"
    return text


# ---------------------------------------------------------------------------------------------------------------------
# The atlas
# ---------------------------------------------------------------------------------------------------------------------


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
    backend: Backend = "plotly",
    alt: str | None = None,
) -> Figure:
    """Draw NADs of several architectures by several estimators, in pixels and in Fourier energy.

    With Plotly the architecture, the estimator and the index are three controls that work independently of each
    other; one that has nothing to choose from is left out. Colours are rounded to 8 bits, and scaled to the largest
    pixel and to the largest energy of each NAD. With matplotlib there is one row for each architecture and estimator.

    Parameters
    ----------
    atlas
        Architecture to estimator to NADs; all of one image shape. An estimator may be missing for an architecture:
        the figure then says so.
    indices
        Which NADs, counted from 0. By default the first ones and a selection up to the last.
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
        If the atlas is not a dict of dicts of NADs.
    ValueError
        If it is empty, image shapes differ, NADs are in colour, an index is out of range or occurs twice, or
        eigenvalues are not finite or do not have a positive sum.
    """
    _check_backend(backend)
    sets = {
        (architecture, estimator): nads
        for architecture, by_estimator in _mapping(atlas, "the atlas").items()
        for estimator, nads in _mapping(by_estimator, f"the atlas of {architecture!r}").items()
    }
    vectors = {name: _nad_vectors(nads, ", ".join(name)) for name, nads in sets.items()}
    shapes = {array.shape[1:] for array in vectors.values()}
    if len(shapes) > 1:
        raise ValueError(f"got NADs of different image shapes, {sorted(shapes)}; expected one shape")
    count = min(len(array) for array in vectors.values())
    chosen = _indices(indices, count, _default_indices(count, 12 if backend == "plotly" else 5))
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"got indices {chosen}; expected each of them once")
    plates = []
    for name, nads in sets.items():
        eigenvalues = _vector(nads.eigenvalues, f"the eigenvalues of {', '.join(name)}")
        if not np.isfinite(eigenvalues).all() or eigenvalues.sum() <= 0 or len(eigenvalues) <= max(chosen):
            raise ValueError(
                f"got {len(eigenvalues)} eigenvalues of {', '.join(name)} that sum to {eigenvalues.sum():g}; expected "
                "one for each NAD, finite and with a positive sum"
            )
        images = np.stack([_direction(vectors[name][index], f"NAD {index} of {', '.join(name)}") for index in chosen])
        plates.append(_Plate(*name, images, eigenvalues[chosen] / eigenvalues.sum()))
    if alt is None:
        first = ", ".join(f"{plate.name} {_percent(plate.shares[0])}" for plate in plates)
        alt = (
            f"{title or 'An atlas of NADs'}, in pixels and in Fourier energy, for indices {chosen[0]} to {chosen[-1]}. "
        )
        alt += f"Eigenvalue of NAD {chosen[0]} as a share of the trace: {first}."
    if backend == "plotly":
        return _atlas_plotly(plates, chosen, title, alt)
    columns, cells, headings = len(chosen), {}, {}
    for row, plate in enumerate(plates):
        for column, (index, image, share) in enumerate(zip(chosen, plate.images, plate.shares, strict=True)):
            cells[row, column], cells[row, columns + column] = ("pixels", image), ("energy", image)
            headings[row, column] = f"{index}: {_percent(share)}"
            headings[row, columns + column] = f"{index}: energy"
    names = [f"{plate.architecture}\n{plate.estimator}" for plate in plates]
    return _grid_matplotlib(cells, headings, names, (len(plates), 2 * columns), title, alt)


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
            energies = [_energy(image) for image in plate.images]
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
        _square_cells(figure, 2, column, plates[0].images[0], frequency)
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
    top = 24 + (20 * (_wrap(title).count("<br>") + 1) if title else 0) + (40 if menus else 0)
    bottom = 190 if len(steps) > 1 else 90
    left, right = (axes.xaxis.domain for axes in (pixel_axes, energy_axes))
    pixel_bar = _colour_bar(left, y=-0.18, tickvals=[-127, 0, 127], ticktext=["−max", "0", "max"])
    energy_bar = _colour_bar(right, y=-0.18, tickvals=[0, 255], ticktext=["0", "peak"])
    figure.update_layout(
        updatemenus=[_dropdown(buttons, x) for x, buttons in enumerate(menus)],
        sliders=[_slider(steps, "NAD ", -0.3)] if len(steps) > 1 else [],
        coloraxis={"colorscale": DIVERGING, "cmin": -127, "cmax": 127, "colorbar": pixel_bar},
        coloraxis2={"colorscale": SEQUENTIAL, "cmin": 0, "cmax": 255, "colorbar": energy_bar},
    )
    margin = {"l": 12, "r": 12, "t": top, "b": bottom}
    return _finish(figure, title, alt, height=300 + top + bottom, margin=margin)


# ---------------------------------------------------------------------------------------------------------------------
# Spectra, convergence and accuracies
# ---------------------------------------------------------------------------------------------------------------------


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
    _check_backend(backend)
    curves = []
    for label, spectrum in _mapping(spectra, "spectra").items():
        values = _vector(getattr(spectrum, "eigenvalues", spectrum), f"the spectrum {label!r}")
        # The smallest eigenvalues of a singular covariance are zero up to rounding, on either side.
        if not np.isfinite(values).all() or values.max() <= 0 or values.min() < -1e-6 * values.max():
            raise ValueError(f"got negative, infinite or only zero eigenvalues in {label!r}; expected positive numbers")
        errors = getattr(spectrum, "eigenvalue_stderr", None) if stderr else None
        positive = values > 0
        rank = np.arange(1, len(values) + 1)[positive]
        band = None
        if errors is not None:
            error = _vector(errors, f"the standard errors of {label!r}", len(values), "eigenvalue")[positive]
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
        figure = _static(title, alt, (6.4, 3.8))
        axes = figure.subplots()
        for number, (label, rank, values, band) in enumerate(curves):
            axes.plot(rank, values, label=label, color=_colour(label, number), linewidth=1.4)
            if band is not None:
                axes.fill_between(*band, color=_colour(label, number), alpha=0.25, linewidth=0)
        axes.set(xscale="log", yscale="log", xlabel="rank (index + 1)", ylabel="eigenvalue")
        axes.legend(frameon=False)
        return figure
    figure = go.Figure()
    for number, (label, rank, values, band) in enumerate(curves):
        colour = _colour(label, number)
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
    return _finish(figure, title, alt, height=420, showlegend=len(curves) > 1, legend=legend)


def plot_convergence(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    title: str | None = None,
    xlabel: str = "number of networks",
    ylabel: str = "overlap",
    reference_lines: Mapping[str, float] | None = None,
    *,
    y_range: tuple[float, float] | None = (0.0, 1.0),
    backend: Backend = "plotly",
    alt: str | None = None,
) -> Figure:
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
        If ``curves`` or ``reference_lines`` is not a dict, or a curve is not a pair.
    ValueError
        If there is no curve, lengths differ, a number is not positive, a curve has no finite value, a value is infinite
        or lies outside ``y_range``.
    """
    _check_backend(backend)
    drawn = {label: _curve_points(label, curve) for label, curve in _mapping(curves, "curves").items()}
    lines: dict[str, float] = {}
    for label, value in (_mapping(reference_lines, "reference_lines") if reference_lines else {}).items():
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
    markers = ["circle", "square", "diamond", "cross", "x"] if backend == "plotly" else ["o", "s", "D", "P", "X"]
    if backend == "matplotlib":
        figure = _static(title, alt, (6.4, 3.8))
        axes = figure.subplots()
        for number, (label, (x, y)) in enumerate(drawn.items()):
            axes.plot(x, y, label=label, color=_colour(label, number), marker=markers[number % len(markers)], ms=5)
        for label, value in lines.items():
            axes.axhline(value, color="#606060", linestyle="--", linewidth=1)
            place, side = (0.99, "right") if on_right[label] else (0.01, "left")
            name = axes.text(place, value, names[label], ha=side, va="bottom", fontsize=9)
            name.set_transform(axes.get_yaxis_transform())
        axes.set(xscale="log", xlabel=xlabel, ylabel=ylabel, ylim=limits)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        if len(drawn) > 1:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize=9, frameon=False)
        return figure
    figure = go.Figure()
    for number, (label, (x, y)) in enumerate(drawn.items()):
        figure.add_trace(
            go.Scatter(
                x=x,
                y=y,
                mode="lines+markers",
                name=label,
                line={"color": _colour(label, number), "width": 2},
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
    return _finish(figure, title, alt, height=420, showlegend=len(drawn) > 1, legend=legend, hovermode="closest")


def _curve_points(label: str, curve: Any) -> tuple[Array, Array]:
    """Read a curve as numbers in rising order and finite values."""
    if not isinstance(curve, tuple | list) or len(curve) != 2:
        raise TypeError(f"got a curve {label!r} of type {type(curve).__name__}; expected a pair (numbers, values)")
    x = _vector(curve[0], f"the numbers of {label!r}")
    y = _vector(curve[1], f"the values of {label!r}", len(x), "number")
    if not (np.isfinite(x).all() and (x > 0).all()):
        raise ValueError(f"got numbers of {label!r} that are zero, negative or not finite; expected positive numbers")
    known = ~np.isnan(y)
    if not known.any() or np.isinf(y).any():
        raise ValueError(f"got values of {label!r} that are infinite, or all NaN; expected finite numbers")
    order = np.argsort(x[known], kind="stable")
    return x[known][order], y[known][order]


def plot_accuracy_map(
    frequencies: Sequence[tuple[int, int]],
    accuracies: ArrayLike | Mapping[str, ArrayLike],
    title: str | None = None,
    extra: Mapping[str, Sequence[Any]] | None = None,
    *,
    backend: Backend = "plotly",
    alt: str | None = None,
) -> Figure:
    """Draw test accuracy over two-dimensional Fourier frequencies, from 50 % to 100 %.

    Parameters
    ----------
    frequencies
        (i, j) of each accuracy; the cells are as wide as the largest step that all of them share.
    accuracies
        In [0, 1], one for each frequency; NaN leaves a cell blank. With a dict from labels (architectures) to such
        accuracies a dropdown chooses (matplotlib: one panel for each).
    title
        Above the figure.
    extra
        Name to values, one for each frequency, to show when the pointer is over a cell.
    backend
        ``"plotly"`` or ``"matplotlib"``.
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure or StaticFigure

    Raises
    ------
    ValueError
        If lengths differ, a frequency occurs twice or is not a pair of integers, or an accuracy is not in [0, 1].
    """
    _check_backend(backend)
    cells = _array(list(frequencies), "frequencies")
    if cells.ndim != 2 or cells.shape[1:] != (2,) or not (cells == cells.round()).all():
        raise ValueError(f"got frequencies of shape {cells.shape}; expected a list of pairs of integers (i, j)")
    pairs = [(int(i), int(j)) for i, j in cells]
    if len(set(pairs)) < len(pairs):
        twice = next(pair for pair in pairs if pairs.count(pair) > 1)
        raise ValueError(f"got frequency {twice} more than once; expected one accuracy for each frequency")
    table = _mapping(accuracies, "accuracies") if isinstance(accuracies, Mapping) else {"": accuracies}
    values = {
        label: _vector(given, f"accuracies {label}".strip(), len(pairs), "frequency") for label, given in table.items()
    }
    for label, given in values.items():
        if ((given < 0) | (given > 1)).any():
            worst = given[(given < 0) | (given > 1)][0]
            raise ValueError(
                f"got accuracy {worst:g}{' of ' + label if label else ''}; expected shares in [0, 1], not per cent"
            )
    details = {name: list(column) for name, column in (extra or {}).items()}
    for name, column in details.items():
        if len(column) != len(pairs):
            raise ValueError(
                f"got {len(column)} values in extra[{name!r}]; expected {len(pairs)}, one for each frequency"
            )

    rows, row_of = _axis_cells([i for i, _ in pairs])
    columns, column_of = _axis_cells([j for _, j in pairs])
    where = ([row_of[i] for i, _ in pairs], [column_of[j] for _, j in pairs])
    grids = {}
    for label, given in values.items():
        grids[label] = np.full((len(rows), len(columns)), np.nan)
        grids[label][where] = given
    hover = np.full((len(rows), len(columns)), "", dtype=object)
    for k, cell in enumerate(zip(*where, strict=True)):
        hover[cell] = "".join(f"<br>{name} {_short(column[k])}" for name, column in details.items())
    if alt is None:
        parts = []
        for label, given in values.items():
            low, high = np.nanmin(given) if np.isfinite(given).any() else 0.0, np.nanmax([*given, 0.0])
            parts.append(f"{label + ' ' if label else ''}between {low:.0%} and {high:.0%}")
        alt = f"{title or 'Test accuracy'} over {len(pairs)} Fourier frequencies: {'; '.join(parts)}."
    if backend == "matplotlib":
        return _accuracy_map_matplotlib(grids, rows, columns, title, alt)

    labels = list(grids)
    figure = go.Figure()
    for number, grid in enumerate(grids.values()):
        figure.add_trace(
            go.Heatmap(
                x=columns,
                y=rows,
                z=grid.astype(np.float32),
                zmin=0.5,
                zmax=1.0,
                colorscale=SEQUENTIAL,
                visible=number == 0,
                hoverongaps=False,
                text=hover if details else None,
                hovertemplate="frequency (%{y}, %{x})<br>accuracy %{z:.1%}%{text}<extra></extra>"
                if details
                else "frequency (%{y}, %{x})<br>accuracy %{z:.1%}<extra></extra>",
                colorbar=_colour_bar(
                    (0, 1), 230, y=-0.14, dtick=0.1, tickformat=".0%", title={"text": "test accuracy", "side": "top"}
                ),
            )
        )
    step_j, step_i = _step(columns), _step(rows)
    axis = {"showgrid": False, "zeroline": False, "constrain": "domain"}
    figure.update_xaxes(title="frequency j", range=[columns[0] - step_j / 2, columns[-1] + step_j / 2], **axis)
    figure.update_yaxes(
        title="frequency i", range=[rows[-1] + step_i / 2, rows[0] - step_i / 2], scaleanchor="x", **axis
    )
    titles = [": ".join(part for part in (title, label) if part) for label in labels]
    top = 56 if titles[0] else 24
    if len(labels) > 1:
        figure.update_layout(_chooser("dropdown", labels, range(len(labels)), titles))
        top += 44
    margin = {"l": 52, "r": 12, "t": top, "b": 118}
    return _finish(figure, titles[0], alt, height=320 + top + 118, margin=margin)


def _axis_cells(given: list[int]) -> tuple[Array, dict[int, int]]:
    """Make evenly spaced cells that hold all the given frequencies, as few as possible."""
    low, high = min(given), max(given)
    step = math.gcd(*(value - low for value in given)) or 1
    cells = np.arange(low, high + 1, step)
    return cells, {int(value): number for number, value in enumerate(cells)}


def _step(cells: Array) -> float:
    return float(cells[1] - cells[0]) if len(cells) > 1 else 1.0


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def _accuracy_map_matplotlib(
    grids: dict[str, Array], rows: Array, columns: Array, title: str | None, alt: str
) -> StaticFigure:
    figure = _static(title, alt, (2.7 * len(grids) + 1.2, 3.6))
    figure.set_layout_engine("compressed")
    panels = figure.subplots(1, len(grids), squeeze=False, sharey=True)[0]
    half_i, half_j = _step(rows) / 2, _step(columns) / 2
    extent = (columns[0] - half_j, columns[-1] + half_j, rows[-1] + half_i, rows[0] - half_i)
    for axes, (label, grid) in zip(panels, grids.items(), strict=True):
        image = axes.imshow(grid, cmap=SEQUENTIAL.lower(), vmin=0.5, vmax=1, extent=extent, interpolation="nearest")
        axes.grid(False)
        axes.set_title(label, fontsize=10)
        axes.set_xlabel("frequency j")
    panels[0].set_ylabel("frequency i")
    bar = figure.colorbar(image, ax=list(panels), shrink=0.85, format=lambda value, _: f"{value:.0%}")
    bar.set_label("accuracy")
    return figure


def _rank_correlation(x: Array, y: Array) -> str:
    if len(x) < 3 or (x == x[0]).all() or (y == y[0]).all():
        return "ρ undefined"
    return f"ρ = {spearmanr(x, y).statistic:.2f}".replace("-", "−")


def plot_alignment(
    alpha: ArrayLike,
    accuracy: ArrayLike,
    labels: Sequence[Any],
    groups: Sequence[Any] | None = None,
    title: str | None = None,
    *,
    backend: Backend = "plotly",
    alt: str | None = None,
) -> Figure:
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
    backend
        ``"plotly"`` or ``"matplotlib"``.
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure or StaticFigure

    Raises
    ------
    ValueError
        If lengths differ, there are fewer than three directions, α is not positive or an accuracy is not in [0, 1].
    """
    _check_backend(backend)
    x = _vector(alpha, "alpha")
    y = _vector(accuracy, "accuracy", len(x), "alpha")
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
    summaries = [_rank_correlation(x[chosen], y[chosen]) for chosen in selections]
    by_group = ", ".join(f"{group} {summary}" for group, summary in zip(unique, summaries, strict=True)).strip()
    heading = "Spearman's rank correlation" if title is None else title
    full_title = heading if groups is not None else f"{heading}: {summaries[0]}"
    if alt is None:
        alt = f"Test accuracy against alignment for {len(x)} directions; Spearman's rank correlation: {by_group}."
    labelled = [f"{group} ({summary})" for group, summary in zip(unique, summaries, strict=True)]
    markers = ["circle", "square", "diamond", "cross", "x"] if backend == "plotly" else ["o", "s", "D", "P", "X"]
    if backend == "matplotlib":
        figure = _static(full_title, alt, (6.4, 3.8))
        axes = figure.subplots()
        for number, (group, chosen) in enumerate(zip(labelled, selections, strict=True)):
            marker, colour = markers[number % len(markers)], _colour(unique[number], number)
            axes.scatter(x[chosen], y[chosen], label=group, marker=marker, color=colour, edgecolor="white", s=42)
        axes.set(xscale="log", xlabel="alignment α(v)", ylabel="test accuracy")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        if groups is not None:
            axes.legend(frameon=False)
        return figure
    figure = go.Figure()
    for number, (group, chosen) in enumerate(zip(labelled, selections, strict=True)):
        figure.add_trace(
            go.Scatter(
                x=x[chosen],
                y=y[chosen],
                text=[names[k] for k in chosen],
                mode="markers",
                name=group,
                marker={"size": 10, "color": _colour(unique[number], number), "symbol": markers[number % len(markers)]},
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
    return _finish(figure, full_title, alt, height=400, showlegend=legend_too, legend=legend, hovermode="closest")


# ---------------------------------------------------------------------------------------------------------------------
# Samples and trainings
# ---------------------------------------------------------------------------------------------------------------------


def plot_samples(
    x: ArrayLike,
    y: ArrayLike,
    num_samples: int = 6,
    title: str | None = None,
    *,
    backend: Backend = "plotly",
    alt: str | None = None,
) -> Figure:
    """Draw the first few samples in a row, each under its class 2y − 1, on one colour scale.

    Parameters
    ----------
    x
        Shape (n, 1, h, w).
    y
        Labels 0 and 1, shape (n,).
    num_samples
        How many to show, at most.
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
    ValueError
        If the shapes of x and y do not fit, or labels are not 0 and 1.
    """
    _check_backend(backend)
    if num_samples < 1:
        raise ValueError(f"got num_samples={num_samples}; expected at least 1")
    images, classes = _images(x[:num_samples], y[:num_samples])
    limit = float(np.abs(images).max())
    names = ["y = +1" if label else "y = −1" for label in classes]
    if alt is None:
        alt = f"{title or 'Samples'}: {len(images)} images with labels {', '.join(name[4:] for name in names)}."
    if backend == "matplotlib":
        figure = _static(title, alt, (max(1.2 * len(images), 2.4), 1.9 if title else 1.6))
        for axes, image, name in zip(figure.subplots(1, len(images), squeeze=False)[0], images, names, strict=True):
            _draw_pixels(axes, image, limit)
            axes.set(xticks=[], yticks=[])
            axes.set_title(name, fontsize=9, loc="center")
        return figure
    figure = make_subplots(1, len(images), subplot_titles=names, horizontal_spacing=0.08 / len(images))
    for column, image in enumerate(images, start=1):
        figure.add_trace(_pixel_trace(image, limit), 1, column)
        _square_cells(figure, 1, column, image, frequency=False)
    top = 56 if title else 28
    return _finish(figure, title, alt, height=130 + top, margin={"l": 4, "r": 4, "t": top, "b": 4})


def plot_projections(
    x: ArrayLike,
    y: ArrayLike,
    v: ArrayLike,
    other: ArrayLike,
    title: str | None = None,
    *,
    names: tuple[str, str] = ("⟨x, v⟩", "⟨x, r⟩"),
    bins: int = 60,
    backend: Backend = "plotly",
    alt: str | None = None,
) -> Figure:
    """Draw histograms by class of the samples' coordinates along v, and along another direction.

    Parameters
    ----------
    x
        Shape (n, 1, h, w).
    y
        Labels 0 and 1, shape (n,).
    v, other
        Directions of shape (h, w); both are scaled to unit norm.
    title
        Above the figure.
    names
        What to call the two coordinates.
    bins
        Number of bins, which both panels share.
    backend
        ``"plotly"`` or ``"matplotlib"``.
    alt
        Text for readers who cannot see the figure.

    Returns
    -------
    plotly.graph_objects.Figure or StaticFigure

    Raises
    ------
    ValueError
        If shapes do not fit, labels are not 0 and 1, or ``bins`` is less than 2.
    """
    _check_backend(backend)
    images, classes = _images(x, y)
    if bins < 2:
        raise ValueError(f"got bins={bins}; expected at least 2")
    coordinates = []
    for name, given in (("v", v), ("other", other)):
        direction = _direction(given, name)
        if direction.shape != images.shape[1:]:
            raise ValueError(f"got {name} of shape {direction.shape}; expected {images.shape[1:]}, as the samples have")
        coordinates.append(np.einsum("nhw,hw->n", images, direction / np.linalg.norm(direction)))
    limit = 1.02 * max(float(np.abs(coordinate).max()) for coordinate in coordinates) or 1.0
    edges = np.linspace(-limit, limit, bins + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    counts = [[np.histogram(c[classes == label], edges)[0] for label in (0, 1)] for c in coordinates]
    labels = ("y = −1", "y = +1")
    if alt is None:
        spreads = [float(c[classes == classes[0]].std()) for c in coordinates]
        alt = f"{title or 'Coordinates of the samples'}, by class. Within a class the standard deviation of {names[0]} "
        alt += f"is {spreads[0]:.2g}, that of {names[1]} is {spreads[1]:.2g}."
    if backend == "matplotlib":
        figure = _static(title, alt, (6.4, 4.0))
        for axes, name, pair in zip(figure.subplots(2, 1, sharex=True), names, counts, strict=True):
            for number, (label, count) in enumerate(zip(labels, pair, strict=True)):
                axes.bar(centres, count, width=edges[1] - edges[0], color=_COLOURS[number], alpha=0.6, label=label)
            axes.set(xlabel=name, ylabel="samples")
            axes.tick_params(labelbottom=True)
        figure.axes[0].legend(frameon=False)
        return figure
    figure = make_subplots(2, 1, shared_xaxes="all", vertical_spacing=0.2)
    for row, pair in enumerate(counts, start=1):
        for number, (label, count) in enumerate(zip(labels, pair, strict=True)):
            figure.add_trace(
                go.Bar(
                    x=centres,
                    y=count,
                    name=label,
                    legendgroup=label,
                    showlegend=row == 1,
                    marker={"color": _COLOURS[number], "line": {"width": 0}},
                    opacity=0.6,
                    hovertemplate=f"{label}<br>near %{{x:.2f}}: %{{y}} samples<extra></extra>",
                ),
                row,
                1,
            )
        figure.update_xaxes(title=names[row - 1], showticklabels=True, row=row, col=1)
    figure.update_yaxes(title="samples", nticks=5)
    top = 76 if title else 40
    return _finish(
        figure,
        title,
        alt,
        height=380 + top,
        margin={"l": 52, "r": 12, "t": top, "b": 52},
        barmode="overlay",
        bargap=0,
    )


def plot_history(
    results: TrainResult | Mapping[str, TrainResult],
    title: str | None = None,
    *,
    backend: Backend = "plotly",
    alt: str | None = None,
) -> Figure:
    """Draw accuracy and loss after each epoch; solid lines on the test set, dotted ones on the training set.

    Parameters
    ----------
    results
        What ``train`` returns, or a dict from labels to such results.
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
        If a result has no history.
    ValueError
        If a history is empty or lacks a column.
    """
    _check_backend(backend)
    table = _mapping(results, "results") if isinstance(results, Mapping) else {"": results}
    columns = ("epoch", "train_accuracy", "test_accuracy", "train_loss", "test_loss")
    for label, result in table.items():
        history = getattr(result, "history", None)
        if history is None:
            raise TypeError(f"got a result {label} of type {type(result).__name__}; expected what train(...) returns")
        missing = [column for column in columns if column not in history]
        if missing or not len(history):
            raise ValueError(f"got a history {label} with {len(history)} epochs and without {missing or 'any row'}")
    if alt is None:
        ends = [f"{label + ' ' if label else ''}ends at {result.test_accuracy:.1%}" for label, result in table.items()]
        alt = f"{title or 'Accuracy and loss'} against the epoch; test accuracy of {', '.join(ends)}."
        alt = alt.replace("accuracy of ends", "accuracy ends")
    panels = (("accuracy", ".0%"), ("loss", ""))
    kinds = (("test", "solid", "-"), ("train", "dot", ":"))
    if backend == "matplotlib":
        figure = _static(title, alt, (6.4, 4.4))
        for axes, (quantity, _) in zip(figure.subplots(2, 1, sharex=True), panels, strict=True):
            for number, (label, result) in enumerate(table.items()):
                for kind, _, dash in kinds:
                    axes.plot(
                        *_curve(result, f"{kind}_{quantity}"),
                        dash,
                        color=_colour(label, number),
                        label=f"{label} {kind}".strip(),
                        marker="." if len(result.history) == 1 else None,
                    )
            axes.set_ylabel(quantity)
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=min(3, len(names)), frameon=False, fontsize=8)
        figure.axes[0].yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        figure.axes[1].set_xlabel("epoch")
        figure.axes[1].xaxis.set_major_locator(MaxNLocator(integer=True))
        return figure
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.08)
    for row, (quantity, _) in enumerate(panels, start=1):
        for number, (label, result) in enumerate(table.items()):
            for kind, dash, _ in kinds:
                name = f"{label} {kind}".strip()
                epochs, values = _curve(result, f"{kind}_{quantity}")
                figure.add_trace(
                    go.Scatter(
                        x=epochs,
                        y=values,
                        mode="lines" if len(result.history) > 1 else "markers",
                        name=name,
                        legendgroup=name,
                        showlegend=row == 1,
                        line={"color": _colour(label, number), "dash": dash, "width": 2},
                        hovertemplate="epoch %{x}: %{y:.1%}" if quantity == "accuracy" else "epoch %{x}: %{y:.3g}",
                    ),
                    row,
                    1,
                )
        figure.update_yaxes(title=quantity, tickformat=panels[row - 1][1], row=row, col=1)
    figure.update_xaxes(title="epoch", row=2, col=1)
    legend = {"y": -0.16, "yanchor": "top"}
    top = 44 if title else 16
    margin = {"l": 56, "r": 12, "t": top, "b": 48}
    return _finish(figure, title, alt, height=440 + top, legend=legend, margin=margin)


def _curve(result: TrainResult, column: str) -> tuple[Array, Array]:
    """Take a column of the history against the epoch, where it was measured."""
    measured = result.history[["epoch", column]].dropna()
    return measured["epoch"].to_numpy(), measured[column].to_numpy()
