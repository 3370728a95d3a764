"""Chapter 2: What does pooling forget?"""

from __future__ import annotations

from companion.chapter_02.explorer import AliasingExplorer, aliasing_explorer
from companion.chapter_02.figures import plot_bin, plot_folding, plot_foretold, plot_pooling_accuracies
from companion.chapter_02.measured import (
    after_one_layer,
    beside_lenet,
    both_signs,
    compared,
    kept_by_frequency,
    kept_in_total,
    over_phases,
)

__all__ = [
    "AliasingExplorer",
    "after_one_layer",
    "aliasing_explorer",
    "beside_lenet",
    "both_signs",
    "compared",
    "kept_by_frequency",
    "kept_in_total",
    "over_phases",
    "plot_bin",
    "plot_folding",
    "plot_foretold",
    "plot_pooling_accuracies",
]
