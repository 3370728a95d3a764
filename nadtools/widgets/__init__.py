"""Explorers for live Jupyter: thin skins of ipywidgets over the floors below.

Their Python callbacks need a running kernel. Where the book is built as static pages (the environment variable
``NADTOOLS_STATIC`` is set) an explorer gives a line that says so in its place.
Pictures are drawn with matplotlib and shown as images: this needs no JavaScript beyond ipywidgets' own.
"""

from __future__ import annotations

from nadtools.widgets.deep_linear import LandscapeExplorer, landscape_explorer
from nadtools.widgets.directions import DirectionExplorer, direction_explorer
from nadtools.widgets.explorer import StaticNotice, live_only
from nadtools.widgets.images import FlippingExplorer, PoisoningExplorer, flipping_explorer, poisoning_explorer
from nadtools.widgets.learning import MixtureExplorer, mixture_explorer
from nadtools.widgets.nads import NadsExplorer, nads_explorer
from nadtools.widgets.pooling import AliasingExplorer, aliasing_explorer
from nadtools.widgets.underspecification import (
    ConcatenationExplorer,
    PairExplorer,
    concatenation_explorer,
    pair_explorer,
)

__all__ = [
    "AliasingExplorer",
    "ConcatenationExplorer",
    "DirectionExplorer",
    "FlippingExplorer",
    "LandscapeExplorer",
    "MixtureExplorer",
    "NadsExplorer",
    "PairExplorer",
    "PoisoningExplorer",
    "StaticNotice",
    "aliasing_explorer",
    "concatenation_explorer",
    "direction_explorer",
    "flipping_explorer",
    "landscape_explorer",
    "live_only",
    "mixture_explorer",
    "nads_explorer",
    "pair_explorer",
    "poisoning_explorer",
]
