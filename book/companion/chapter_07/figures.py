"""Spectra with steps, the rows that a recurrent network sees, and what is stored of the trainings."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots
from torch import Tensor

from companion.figures import plot_curves, plot_over_indices
from companion.parts import COLOURS, finish, title_height
from companion.stored import EXPERIMENTS, NotStoredError, load_table
from companion.style import stored
from nadtools.estimation import estimate_nads
from nadtools.nads import NADs

__all__ = [
    "LABELS", "UNLABELLED", "lattice_share", "load_stored", "plot_rows", "plot_spectra", "plot_trainings",
    "plot_unlabelled", "positions_table", "unlabelled_nads", "with_corner",
]  # fmt: skip

LABELS: Final = {
    "vit-8": "ViT, patch 8", "vit-4": "ViT, patch 4", "mixer": "Mixer", "convnext": "ConvNeXt",
    "lstm": "LSTM", "convnext-asleep": "ConvNeXt, asleep",
}  # fmt: skip
_SYMBOLS: Final = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down-open")
_SMALLEST = 1e-5  # what is less is drawn there
_ALPHAS: Final = {"tickvals": [_SMALLEST, 1e-3, 0.1, 10], "ticktext": ["≤ 10<sup>−5</sup>", "0.001", "0.1", "10"]}


def lattice_share(images: Tensor, patch: int) -> Tensor:
    """Shares of the energy of images (..., h, w) that lie in the space of images that repeat with the patch: (...).

    A patch has ``patch`` pixels on a side, of which h and w are multiples.
    """
    *_, height, width = images.shape
    tiles = images.to(torch.float64).unflatten(-1, (width // patch, patch)).unflatten(-3, (height // patch, patch))
    mean = tiles.mean((-4, -2))
    return mean.square().sum((-2, -1)) * (height // patch) * (width // patch) / tiles.square().sum((-4, -3, -2, -1))


def with_corner(label: str, images: Tensor, size: int, bottom: bool = False) -> dict[str, np.ndarray]:
    """A row for ``plot_wall``: images of shape (k, h, w), and a corner of the first one, enlarged to the size of all.

    The corner has ``size`` pixels on a side, a divisor of h = w; it is at the top left, or at the bottom left.
    """
    given = np.asarray(images)
    corner = given[0, -size:, :size] if bottom else given[0, :size, :size]
    enlarged = np.kron(corner, np.ones((given.shape[-1] // size,) * 2))
    names = [label, *(" " * number for number in range(1, len(given)))]  # only the first image is named
    return dict(zip(names, given, strict=True)) | {f"{size} × {size}": enlarged}


def plot_spectra(
    nads: Mapping[str, NADs], title: str | None = None, steps: Mapping[str, Sequence[int]] | None = None
) -> go.Figure:
    """Draw what each direction is worth to other networks than those that chose it, over the mean of all directions.

    ``steps`` holds, by network, where a new eigenspace begins; a mark stands there on its curve.
    """
    curves = {label: (np.arange(len(one.held_out)), _relative(one)) for label, one in nads.items()}
    figure = plot_over_indices(curves, "held-out α / mean", title, y_log=True, y_format=".2~g", height=290)
    figure.update_xaxes(ticklabeloverflow="allow")  # the last one stands at the edge
    figure.update_yaxes(_ALPHAS)
    for trace in tuple(figure.data):
        places = list((steps or {}).get(trace.name, ()))
        figure.add_scatter(
            x=np.array(places) + 1,  # the axis begins with index 0
            y=np.asarray(trace.y)[places],
            mode="markers",
            marker={"color": trace.line.color, "size": 9, "symbol": "diamond"},
            showlegend=False,
            hovertemplate=f"{trace.name}<br>a new eigenspace from NAD %{{customdata}} on<extra></extra>",
            customdata=places,
        )
    figure.update_layout(legend={"y": -0.36, "font": {"size": 11}})  # clear of the axis title on a telephone
    named = "; ".join(f"{label} at {', '.join(map(str, places))}" for label, places in (steps or {}).items())
    falls = f" It falls in steps: {named}." if named else ""
    alt = f"{title or 'Spectra'}: held-out α over the index of the NAD, for {', '.join(nads)}.{falls}"
    figure.layout.meta = {**figure.layout.meta, "alt": alt}
    return figure


def _relative(nads: NADs) -> np.ndarray:
    return np.asarray((nads.held_out / nads.held_out.mean()).clamp_min(_SMALLEST))


#: The networks of exercise 07-3, in the order of its panels A to D, for images of 16 x 16 pixels.
UNLABELLED: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "Mixer": ("mixer", {"patch_size": 4}),
    "MLP": ("mlp", {}),
    "ViT": ("vit", {"patch_size": 4}),
    "LSTM": ("lstm", {}),
}


def unlabelled_nads(**options: Any) -> dict[str, NADs]:
    """Estimates for the spectra of exercise 07-3, in the order of its panels; ``options`` as for ``estimate_nads``."""
    return {
        label: estimate_nads(name, 6, image_size=(16, 16), **given, **options)
        for label, (name, given) in UNLABELLED.items()
    }


def plot_unlabelled(nads: Mapping[str, NADs], title: str | None = None) -> go.Figure:
    """Draw spectra without their names, one panel each, with the letters A, B, ... above."""
    letters = string.ascii_uppercase[: len(nads)]
    figure = make_subplots(1, len(nads), subplot_titles=list(letters), shared_yaxes=True, horizontal_spacing=0.04)
    for column, one in enumerate(nads.values(), 1):
        relative = _relative(one)
        figure.add_scatter(
            x=np.arange(len(relative)) + 1,
            y=relative.astype("float32"),
            mode="lines",
            line={"color": COLOURS[0]},
            customdata=np.arange(len(relative)),
            hovertemplate="NAD %{customdata}<br>%{y:.2~g} of the mean<extra></extra>",
            showlegend=False,
            row=1,
            col=column,
        )
    axis = {"type": "log", "tickvals": [1, 17], "ticktext": ["0", "16"], "tickangle": 0}
    figure.update_xaxes(title={"text": "NAD", "standoff": 4}, **axis)
    figure.update_yaxes(type="log", range=(math.log10(_SMALLEST) - 0.2, 2), **_ALPHAS)
    figure.update_yaxes(title="held-out α / mean", row=1, col=1)
    alt = f"{title or 'Spectra'}: four panels, {', '.join(letters)}, of held-out α over the index of the NAD."
    return finish(figure, title, alt, height=240, margin={"l": 62, "r": 12, "t": 66, "b": 48})


def plot_rows(nads: NADs, title: str | None = None) -> go.Figure:
    """Draw α of single pixels, averaged over the columns, for each row of the image."""
    height, width = nads.image_shape[-2:]
    alpha = nads.covariance().diagonal().reshape(-1, height, width).mean((0, 2))
    rows = np.arange(1, height + 1)
    relative = (alpha / alpha.mean()).clamp_min(_SMALLEST).numpy()
    curves = {"a pixel of the row": (rows, relative)}
    markers = tuple(curves)
    figure = plot_curves(curves, "row, from the top", "α / mean", title, markers=markers, y_log=True, height=220)
    return figure.update_yaxes(_ALPHAS)


def load_stored(name: str, **options: Any) -> dict[str, pd.DataFrame]:
    """The stored tables of an experiment, by network: those that are there."""
    tables = {}
    for network in EXPERIMENTS[name].selectors["network"]:
        try:
            tables[network] = load_table(name, network=network, **options)
        except NotStoredError:
            continue
    return tables


def plot_trainings(tables: Mapping[str, pd.DataFrame], title: str | None = None) -> go.Figure:
    """Draw test accuracy over what other networks say that a NAD is worth: a dot for each direction and seed.

    The tables are those of the experiment ``beyond``, by network.
    """
    figure = go.Figure()
    for number, (network, table) in enumerate(tables.items()):
        figure.add_scatter(
            x=table["alpha"].clip(lower=_SMALLEST).astype("float32"),
            y=table["test_accuracy"].astype("float32"),
            customdata=table["index"],
            mode="markers",
            marker={"color": COLOURS[number], "symbol": _SYMBOLS[number], "size": 8, "opacity": 0.8},
            name=LABELS[network],
            hovertemplate=f"{LABELS[network]}, NAD %{{customdata}}<br>α %{{x:.2~g}} of the mean, accuracy %{{y:.1%}}"
            "<extra></extra>",
        )
    figure.update_xaxes(type="log", title="held-out α / mean", tickangle=0, **_ALPHAS)
    figure.update_yaxes(title="test accuracy on D(v)", tickformat=".0%", range=(0.45, 1.03))
    named = ", ".join(LABELS[network] for network in tables)
    alt = f"{title or 'Accuracy over α'}: a dot for each direction and seed, for {named}."
    legend = {"y": -0.28, "yanchor": "top", "font": {"size": 11}}
    finish(figure, title, alt, height=390 + title_height(title), legend=legend, margin={"b": 130})
    return stored(figure, {str(key): value for key, value in next(iter(tables.values())).attrs.items()})


def positions_table(table: pd.DataFrame) -> Any:
    """Alignments and accuracies of a wave on the lattice and one off it, by the size of the position embeddings."""
    table = table.assign(
        wave=[
            f"({i:.0f},\N{NO-BREAK SPACE}{j:.0f})"
            for i, j in zip(table["frequency_i"], table["frequency_j"], strict=True)
        ]
    )
    mean = table.groupby(["position_embedding", "wave"], sort=False)[
        ["alpha_secant", "alpha_gradient", "test_accuracy"]
    ].mean()
    mean.columns = pd.Index(["α / mean, secant", "α / mean, gradient at 0", "accuracy"])
    mean.index.names = ["positions", "wave"]
    caption = "With larger position embeddings the lost wave is learned. The secant does not see why."
    mean = mean.mask(mean < 1e-12, 0)  # what is left of a lost wave is the rounding of a sum
    shown = mean.style.format("{:.2g}").format("{:.1%}", subset=["accuracy"]).format_index("{:g}", level=0)
    return shown.set_caption(caption)
