"""Chapter 7: What if the photographs stood in the reverse order of the NADs?"""

from __future__ import annotations

from companion.chapter_06.explorer import FlippingExplorer, flipping_explorer
from companion.digits import load_images

__all__ = [
    "FlippingExplorer",
    "flipping_explorer",
    "load_images",
]
