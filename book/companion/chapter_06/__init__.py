"""Chapter 6: Does a network follow a carrier along a NAD?"""

from __future__ import annotations

from companion.chapter_06.explorer import FlippingExplorer, PoisoningExplorer, flipping_explorer, poisoning_explorer
from companion.digits import load_images

__all__ = [
    "FlippingExplorer",
    "PoisoningExplorer",
    "flipping_explorer",
    "load_images",
    "poisoning_explorer",
]
