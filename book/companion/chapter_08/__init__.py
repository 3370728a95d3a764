"""Chapter 8: Does a network follow a carrier along a NAD?"""

from __future__ import annotations

from companion.chapter_08.claims import poisoning_claims
from companion.chapter_08.content import CONTENT
from companion.chapter_08.explorer import PoisoningExplorer, poisoning_explorer
from companion.chapter_08.figures import plot_index_map, plot_over_content, plot_poisoning
from companion.patches import load_patches, load_thumbnails
from companion.photographs import over_carriers

__all__ = [
    "CONTENT",
    "PoisoningExplorer",
    "load_patches",
    "load_thumbnails",
    "over_carriers",
    "plot_index_map",
    "plot_over_content",
    "plot_poisoning",
    "poisoning_claims",
    "poisoning_explorer",
]
