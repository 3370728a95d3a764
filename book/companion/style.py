"""How figures look and how they reach the reader: colours, Plotly template and renderer, matplotlib style.

Importing this module registers the Plotly template and renderer under the name ``"nadtools"`` and changes no default;
:func:`use_book_style` makes them the defaults of the session.
"""

import html
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io
import torch
from plotly.io.base_renderers import MimetypeRenderer

import nadtools
from nadtools.device import resolve_device

__all__ = [
    "ARCHITECTURE_COLOURS",
    "ARCHITECTURE_NAMES",
    "DIVERGING",
    "SEQUENTIAL",
    "describe",
    "device_of",
    "say",
    "stored",
    "symmetric_limits",
    "use_book_style",
]

#: One colour per architecture in every figure (Okabe and Ito's palette, which colour-blind readers tell apart).
ARCHITECTURE_COLOURS: dict[str, str] = {
    "logreg": "#8c8c8c",
    "mlp": "#cc79a7",
    "lenet": "#0072b2",
    "vgg11": "#e69f00",
    "resnet18": "#009e73",
    "densenet121": "#d55e00",
}

#: What readers call the architectures.
ARCHITECTURE_NAMES: dict[str, str] = {
    "logreg": "logistic regression",
    "mlp": "MLP",
    "lenet": "LeNet",
    "vgg11": "VGG-11",
    "resnet18": "ResNet-18",
    "densenet121": "DenseNet-121",
    "vit": "vision transformer",
    "mixer": "MLP-Mixer",
    "convnext": "ConvNeXt",
    "lstm": "LSTM",
}

#: Perceptually uniform map for quantities that start at zero; a name that Plotly and, in lower case, matplotlib know.
SEQUENTIAL = "Viridis"

#: Map for signed quantities, blue below zero and red above; Plotly and matplotlib know it by the same name. Use it with
#: :func:`symmetric_limits`, so that zero is white.
DIVERGING = "RdBu_r"

#: For lines that stand for no architecture, in this order: the palette again, the grey last.
_LINE_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c"]

# Reads on white (4.7:1) and on a dark page (3.9:1). The book's style sheet looks for exactly this colour and replaces
# it with the page's own text colour, so text that asks for another colour keeps it.
_INK = "rgb(115, 115, 115)"
_FAINT = "rgba(128, 128, 128, 0.25)"
_CONFIG = {"responsive": True, "displaylogo": False, "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"]}


def _template() -> go.layout.Template:
    # zeroline and grid in a translucent grey: they read on light and on dark pages.
    axis = {
        "automargin": True,
        "gridcolor": _FAINT,
        "linecolor": _FAINT,
        "zerolinecolor": "rgba(128, 128, 128, 0.5)",
        "ticks": "outside",
        "tickcolor": _FAINT,
        "title": {"standoff": 8},
    }
    scene_axis = {"backgroundcolor": "rgba(0, 0, 0, 0)", "gridcolor": _FAINT, "showbackground": False, "color": _INK}
    control = {"bgcolor": "rgba(128, 128, 128, 0.25)", "bordercolor": "rgba(128, 128, 128, 0.9)"}
    colour_bar = {"outlinewidth": 0, "thickness": 12, "ticks": "outside", "tickcolor": _FAINT}
    layout = go.Layout(
        autosize=True,
        height=420,
        colorway=_LINE_COLOURS,
        colorscale={"sequential": SEQUENTIAL, "sequentialminus": SEQUENTIAL, "diverging": DIVERGING},
        coloraxis={"colorbar": colour_bar},
        font={"family": "system-ui, sans-serif", "size": 13, "color": _INK},
        paper_bgcolor="rgba(0, 0, 0, 0)",
        plot_bgcolor="rgba(0, 0, 0, 0)",
        margin={"l": 48, "r": 16, "t": 48, "b": 48},
        title={"x": 0, "xref": "paper", "font": {"size": 15}},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "bgcolor": "rgba(0, 0, 0, 0)"},
        hoverlabel={"bgcolor": "#202020", "bordercolor": "#202020", "font": {"color": "#ffffff"}},
        modebar={"bgcolor": "rgba(0, 0, 0, 0)", "color": "rgba(128, 128, 128, 0.5)", "activecolor": _INK},
        # A finger that drags over a figure scrolls the page; three-dimensional scenes keep their own drag mode.
        dragmode=False,
        xaxis=axis,
        yaxis=axis,
        scene={"xaxis": scene_axis, "yaxis": scene_axis, "zaxis": scene_axis},
        sliderdefaults={**control, "activebgcolor": "#0072b2", "pad": {"t": 36}, "ticklen": 4},
        updatemenudefaults=control,
    )
    heatmap = go.Heatmap(colorbar=colour_bar, colorscale=SEQUENTIAL)
    return go.layout.Template(layout=layout, data={"heatmap": [heatmap]})


def _alternative_text(figure: dict[str, Any]) -> tuple[str, str]:
    """The alternative text and the caption of a figure; the title stands in where no alternative text is given."""
    layout = figure.get("layout", {})
    meta = layout.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    title = layout.get("title") or {}
    title = title if isinstance(title, str) else title.get("text") or ""
    plain_title = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", title)).strip()
    return meta.get("alt") or plain_title, meta.get("caption") or ""


class _PageRenderer(MimetypeRenderer):
    """An HTML fragment that draws with the one plotly.min.js its page loads, and requests nothing itself."""

    stamp = ""

    def to_mimebundle(self, fig_dict: dict[str, Any]) -> dict[str, str]:
        plot = plotly.io.to_html(
            fig_dict,
            include_plotlyjs=False,
            include_mathjax=False,
            full_html=False,
            auto_play=False,
            config=_CONFIG,
            validate=False,
        )
        alt, caption = _alternative_text(fig_dict)
        alt = html.escape(alt, quote=True)
        fragment = (
            f'<figure class="nadtools-figure"><div role="group" aria-label="{alt}">{plot}</div>'
            f"<noscript><p>This figure is drawn with JavaScript. It shows: {alt}</p></noscript>"
        )
        # The book numbers what stands in a <figcaption> (book/_ext/book_assets.py); book.js adds the figure's data.
        stamp = (fig_dict.get("layout", {}).get("meta") or {}).get("stamp", self.stamp)
        origin = f'<p class="stamp">{html.escape(stamp)}</p>' if stamp else ""
        fragment += (
            f"<figcaption>{html.escape(caption)}</figcaption>"
            f'<details class="figure-origin"><summary>Origin and data</summary>{origin}</details>'
        )
        return {"text/html": fragment + "</figure>"}


plotly.io.templates["nadtools"] = _template()
plotly.io.renderers["nadtools"] = _PageRenderer()


def describe(figure: go.Figure, alt: str, caption: str | None = None) -> go.Figure:
    """Give a figure the text that readers meet who cannot see it, and a caption.

    Parameters
    ----------
    figure
        The figure; it is changed in place.
    alt
        What the figure shows, in one or two sentences. On the page it becomes the figure's ``aria-label``.
    caption
        A visible line below the figure on the page.

    Returns
    -------
    plotly.graph_objects.Figure
        The same figure.

    Raises
    ------
    ValueError
        If `alt` is empty.
    """
    if not alt.strip():
        raise ValueError("alt is empty; say in a sentence what the figure shows.")
    meta = figure.layout.meta if isinstance(figure.layout.meta, dict) else {}
    figure.layout.meta = {**meta, "alt": alt, **({"caption": caption} if caption else {})}
    return figure


def say(figure: go.Figure, caption: str) -> go.Figure:
    """Give a figure a caption that states what it shows; its alternative text stays.

    Parameters
    ----------
    figure
        The figure; it is changed in place.
    caption
        A sentence below the figure on the page.

    Returns
    -------
    plotly.graph_objects.Figure
        The same figure.
    """
    meta = figure.layout.meta if isinstance(figure.layout.meta, dict) else {}
    return describe(figure, meta.get("alt") or caption, caption)


def stored(figure: go.Figure, *metadata: Mapping[str, Any]) -> go.Figure:
    """Say below a figure that it shows stored results, and where these come from.

    Parameters
    ----------
    figure
        The figure; it is changed in place.
    metadata
        Of each result: its provenance, with the record of its experiment where there is one.

    Returns
    -------
    plotly.graph_objects.Figure
        The same figure.
    """
    origins = list(dict.fromkeys(map(_origin, metadata)))
    meta = figure.layout.meta if isinstance(figure.layout.meta, dict) else {}
    named = "A stored result" if len(origins) == 1 else "Stored results"
    figure.layout.meta = {**meta, "stamp": f"{named}: {'; '.join(origins)}."}
    return figure


def _origin(metadata: Mapping[str, Any]) -> str:
    record = metadata.get("record", metadata)
    name = ARCHITECTURE_NAMES.get(record.get("selectors", {}).get("architecture", ""), "")
    seeds = metadata.get("seeds", [metadata["seed"]])
    named = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
    parts = [name, f"{record['scale']} scale" if "scale" in record else "", named, device_of(metadata)]
    versions = metadata["versions"]
    parts.append(f"with nadtools {versions['nadtools']}, torch {versions['torch'].partition('+')[0]}")
    parts.append(metadata["date"][:10])
    return ", ".join(filter(None, parts))


def symmetric_limits(values: Any) -> dict[str, Any]:
    """Colour settings for signed values: the diverging map, with zero at its centre.

    Parameters
    ----------
    values
        Array-like of any shape; NaN is left out.

    Returns
    -------
    dict
        ``colorscale``, ``zmin`` and ``zmax``, to be passed on to a Plotly heatmap.

    Raises
    ------
    ValueError
        If no value is finite.
    """
    array = np.asarray(values, dtype=float)
    array = array[np.isfinite(array)]
    if array.size == 0:
        raise ValueError("values has no finite entry; expected at least one, to set the colour limits.")
    limit = float(np.abs(array).max()) or 1.0
    return {"colorscale": DIVERGING, "zmin": -limit, "zmax": limit}


def use_book_style(
    *, scale: str | None = None, seed: int | None = None, device: str | torch.device | None = None
) -> None:
    """Make the book's colours and fonts the defaults of Plotly and matplotlib in this session.

    Parameters
    ----------
    scale, seed, device
        With a scale, each figure of the built book says below it at which scale, with which seed, on which device and
        with which versions it was computed.

    Notes
    -----
    In a live notebook Plotly chooses how to show a figure, as it does without this call (its own JupyterLab extension,
    which comes with the package). When the book is built (``NADTOOLS_STATIC=1``) a figure becomes an HTML fragment that
    works without a network.
    """
    import matplotlib.style

    plotly.io.templates.default = "nadtools"
    plotly.io.renderers["nadtools"].stamp = "" if scale is None else _stamp(scale, seed, resolve_device(device))
    if os.environ.get("NADTOOLS_STATIC") == "1":
        plotly.io.renderers.default = "nadtools"
    matplotlib.style.use(_matplotlib_style())


def _stamp(scale: str, seed: int | None, device: torch.device) -> str:
    versions = f"nadtools {nadtools.__version__}, torch {torch.__version__.partition('+')[0]}"
    return f"Computed at {scale} scale, seed {seed}, on {device}, with {versions}."


def _matplotlib_style() -> dict[str, Any]:
    from cycler import cycler

    return {
        "axes.prop_cycle": cycler(color=_LINE_COLOURS),
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "figure.constrained_layout.use": True,
        "figure.dpi": 120,
        "figure.figsize": (6.4, 3.6),
        "font.size": 10,
        "grid.color": "#808080",
        "grid.alpha": 0.25,
        "image.cmap": SEQUENTIAL.lower(),
        "image.interpolation": "nearest",
        "legend.frameon": False,
        # No sheet, and an ink that reads on light and on dark pages.
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#737373"),
    }


def device_of(provenance: Mapping[str, Any]) -> str:
    """The device that a result was made on, in words: earlier files say "1 threads"."""
    return str(provenance["device"]).replace(" 1 threads)", " 1 thread)")
