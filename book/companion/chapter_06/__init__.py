"""Chapter 6: What of all this is the architecture?"""

from __future__ import annotations

from companion.chapter_06.figures import fit_one_curve, plot_layers, plot_one_curve, plot_thresholds

__all__ = ["fit_one_curve", "plot_layers", "plot_one_curve", "plot_thresholds"]
