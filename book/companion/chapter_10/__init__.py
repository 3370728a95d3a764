"""Chapter 10: What of all this is the architecture?"""

from __future__ import annotations

from companion.chapter_10.figures import plot_layers, plot_thresholds
from companion.chapter_10.measures import mean_alignments, noise_ceiling

__all__ = ["mean_alignments", "noise_ceiling", "plot_layers", "plot_thresholds"]
