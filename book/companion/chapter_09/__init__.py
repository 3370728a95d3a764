"""Chapter 9: What if the photographs stood in the reverse order of the NADs?"""

from __future__ import annotations

from companion.chapter_09.claims import flipping_claims
from companion.chapter_09.explorer import FlippingExplorer, flipping_explorer
from companion.chapter_09.figures import plot_agreement, plot_changes
from companion.patches import load_patches, load_thumbnails

__all__ = [
    "FlippingExplorer",
    "flipping_claims",
    "flipping_explorer",
    "load_patches",
    "load_thumbnails",
    "plot_agreement",
    "plot_changes",
]
