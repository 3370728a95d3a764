"""Chapter 1: Why does a network fail on a problem that logistic regression solves?"""

from __future__ import annotations

from companion.chapter_01.explorer import direction_explorer
from companion.chapter_01.figures import plot_projections, plot_wave_map

__all__ = [
    "direction_explorer",
    "plot_projections",
    "plot_wave_map",
]
