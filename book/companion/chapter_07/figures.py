"""Spectra with steps, the rows that a recurrent network sees, and what is stored of the trainings on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from torch import Tensor

from companion.chapter_07.experiments import NETWORKS
from companion.figures import plot_curves, plot_over_indices
from companion.parts import COLOURS, finish, title_height
from companion.stored import EXPERIMENTS, NotStoredError, load_table
from companion.style import stored
from nadtools.nads import NADs

__all__ = [
    "LABELS", "lattice_share", "load_stored", "plot_rows", "plot_spectra", "plot_trainings", "plot_two",
    "poisoned_table", "positions_table",
]  # fmt: skip

LABELS: Final = {
    "vit-8": "ViT, patch 8", "vit-4": "ViT, patch 4", "mixer": "Mixer", "convnext": "ConvNeXt",
    "lstm": "LSTM", "convnext-asleep": "ConvNeXt, blocks asleep",
}  # fmt: skip
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


def plot_spectra(nads: Mapping[str, NADs], title: str | None = None) -> go.Figure:
    """Draw what each direction is worth to other networks than those that chose it, over the mean of all directions."""
    curves = {}
    for label, one in nads.items():
        relative = (one.held_out / one.held_out.mean()).clamp_min(_SMALLEST).numpy()
        curves[label] = (np.arange(len(relative)), relative)
    ends = {label: one.num_resolved for label, one in nads.items()}
    figure = plot_over_indices(curves, "held-out α / mean", title, y_log=True, y_format=".2~g", height=280)
    figure.update_yaxes(_ALPHAS)
    steps = "; ".join(f"{label}: {count} before the bulk" for label, count in ends.items())
    figure.layout.meta = {**figure.layout.meta, "alt": f"{title or 'Spectra'}: directions told apart: {steps}."}
    return figure


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
    """Draw test accuracy along NADs, the mean over seeds, and a line at each step.

    The tables are those of the experiment ``beyond``, by network.
    """
    means = {LABELS[network]: table.groupby("index")["test_accuracy"].mean() for network, table in tables.items()}
    curves = {label: (list(mean.index), list(mean)) for label, mean in means.items()}
    figure = plot_over_indices(curves, "accuracy", title, y_range=(0.45, 1.03), height=310)
    for step in sorted({NETWORKS[network].bulk or NETWORKS[network].step for network in tables}):
        figure.add_vline(step + 1, line={"dash": "dot", "width": 1, "color": "#8c8c8c"})
    return stored(figure, {str(key): value for key, value in next(iter(tables.values())).attrs.items()})


def poisoned_table(table: pd.DataFrame) -> Any:
    """Accuracies with carriers along NADs, the means over seeds: what clean, rightly and wrongly marked images give.

    The table is that of the experiment ``poisoned``.
    """
    mean = table.groupby("index", dropna=False).mean(numeric_only=True)
    columns = {
        "test_accuracy": "right on clean ones",
        "test_accuracy_poisoned": "on marked ones",
        "follows_carrier": "follows a wrong mark",
        "follows_content": "follows the picture",
    }
    shown = mean[list(columns)].rename(columns=columns)
    shown.index = pd.Index([f"NAD {index:.0f}" if index >= 0 else "no carrier" for index in mean.index])
    caption = "Carriers cost the ViT two points at most. Only before the step are they noticed at all."
    return shown.style.format("{:.1%}", na_rep="").set_caption(caption)


def plot_two(table: pd.DataFrame, title: str | None = None) -> go.Figure:
    """Draw, for each pair of features, test accuracy with either alone: the mean over seeds.

    The table is that of the experiment ``two``.
    """
    mean = table.groupby(["first", "second"], sort=False).mean()
    pairs = [f"NAD {int(first)}, large<br>NAD {int(second)}, half" for first, second in mean.index]
    figure = go.Figure()
    for number, (part, name) in enumerate({"first": "large", "second": "half"}.items()):
        accuracy = mean[f"test_accuracy_{part}"].astype("float32")
        hover = f"{name} alone<br>%{{x:.1%}}<extra></extra>"
        figure.add_bar(
            x=accuracy,
            y=pairs,
            name=f"{name} alone",
            orientation="h",
            marker_color=COLOURS[number],
            hovertemplate=hover,
        )
    figure.update_xaxes(title="test accuracy", range=(0, 1.02), tickformat=".0%")
    figure.update_yaxes(autorange="reversed")
    figure.add_vline(x=0.5, line={"dash": "dash", "color": "#8c8c8c", "width": 1.5})
    alt = f"{title}: test accuracy with either of two features alone, for {len(pairs)} pairs of NADs."
    legend = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"}
    height = 44 * len(pairs) + 110 + title_height(title)
    return finish(
        figure,
        title,
        alt,
        height=height,
        margin={"l": 110, "r": 12, "t": 34 + title_height(title), "b": 60},
        legend=legend,
    )


def positions_table(table: pd.DataFrame) -> Any:
    """Alignments and accuracies of a wave on the lattice and one off it, by the size of the position embeddings."""
    table = table.assign(
        wave=[f"({i:.0f}, {j:.0f})" for i, j in zip(table["frequency_i"], table["frequency_j"], strict=True)]
    )
    mean = table.groupby(["position_embedding", "wave"], sort=False)[
        ["alpha_secant", "alpha_gradient", "test_accuracy"]
    ].mean()
    mean.columns = pd.Index(["α / mean, secant", "α / mean, gradient at 0", "accuracy"])
    mean.index.names = ["positions", "wave"]
    caption = "With larger position embeddings the lost wave is learned. The secant does not see why."
    shown = mean.style.format("{:.2g}").format("{:.1%}", subset=["accuracy"]).format_index("{:g}", level=0)
    return shown.set_caption(caption)
