"""Chapter 6: Does a network follow a carrier along a NAD?"""

from __future__ import annotations

from companion.chapter_06.explorer import FlippingExplorer, PoisoningExplorer, flipping_explorer, poisoning_explorer
from companion.chapter_06.figures import plot_index_map, plot_poisoning

__all__ = [
    "FlippingExplorer",
    "PoisoningExplorer",
    "flipping_explorer",
    "plot_index_map",
    "plot_poisoning",
    "poisoning_explorer",
]
