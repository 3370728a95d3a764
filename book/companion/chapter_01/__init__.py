"""Chapter 1: Why does a network fail on a problem that logistic regression solves?"""

from __future__ import annotations

from companion.chapter_01.explorer import direction_explorer
from companion.chapter_01.figures import (
    plot_projections,
    plot_scores,
    plot_slowness,
    plot_strips,
    plot_unpooled,
    plot_wave_map,
)
from companion.chapter_01.maps import accuracies_by_direction, accuracy_maps, slowness, waves_of
from companion.waves import wave_names

__all__ = [
    "accuracies_by_direction",
    "accuracy_maps",
    "direction_explorer",
    "plot_projections",
    "plot_scores",
    "plot_slowness",
    "plot_strips",
    "plot_unpooled",
    "plot_wave_map",
    "slowness",
    "wave_names",
    "waves_of",
]
