"""Chapter 2: What does pooling forget?"""

from __future__ import annotations

from companion.chapter_02.explorer import AliasingExplorer, aliasing_explorer
from companion.chapter_02.figures import plot_aliasing, plot_pooling_accuracies

__all__ = [
    "AliasingExplorer",
    "aliasing_explorer",
    "plot_aliasing",
    "plot_pooling_accuracies",
]
