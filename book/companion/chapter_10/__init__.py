"""Chapter 10: What of all this is the architecture?"""

from __future__ import annotations

from companion.chapter_10.figures import plot_layers, plot_thresholds

__all__ = ["plot_layers", "plot_thresholds"]
