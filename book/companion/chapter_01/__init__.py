"""Chapter 1: Why does a network fail on a problem that logistic regression solves?"""

from __future__ import annotations

from companion.chapter_01.explorer import direction_explorer
from companion.chapter_01.figures import plot_projections, plot_scores, plot_slowness, plot_unpooled, plot_wave_map
from companion.chapter_01.maps import accuracy_maps, waves_of

__all__ = [
    "accuracy_maps",
    "direction_explorer",
    "plot_projections",
    "plot_scores",
    "plot_slowness",
    "plot_unpooled",
    "plot_wave_map",
    "waves_of",
]
