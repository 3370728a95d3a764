"""Chapter 3: What does pooling slow down?"""

from __future__ import annotations

from companion.chapter_03.explorer import LandscapeExplorer, landscape_explorer
from companion.chapter_03.figures import (
    plot_accuracy_and_steps,
    plot_landscapes,
    plot_learning_rates,
    plot_losses,
    plot_steps,
)

__all__ = [
    "LandscapeExplorer",
    "landscape_explorer",
    "plot_accuracy_and_steps",
    "plot_landscapes",
    "plot_learning_rates",
    "plot_losses",
    "plot_steps",
]
