"""What the explorers of two or more chapters share; each is made by a function of its chapter."""

from __future__ import annotations

from companion.explorer.base import LABELS, SLIDER, Explorer, StaticNotice, hidden_image, live_only
from companion.explorer.directions import DirectionExplorer
from companion.explorer.images import ImageExplorer
from companion.explorer.two_parts import TwoPartExplorer

__all__ = [
    "LABELS", "SLIDER", "DirectionExplorer", "Explorer", "ImageExplorer", "StaticNotice", "TwoPartExplorer",
    "hidden_image", "live_only",
]  # fmt: skip
