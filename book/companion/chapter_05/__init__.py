"""Chapter 5: Do its NADs predict what a network learns?"""

from __future__ import annotations

from companion.chapter_05.explorer import MixtureExplorer, mixture_explorer
from companion.chapter_05.figures import plot_predictions, plot_spectrum_and_accuracy

__all__ = [
    "MixtureExplorer",
    "mixture_explorer",
    "plot_predictions",
    "plot_spectrum_and_accuracy",
]
