"""Chapter 3: What does pooling slow down?"""

from __future__ import annotations

from companion.chapter_03.descent import critical_learning_rate, steps_to_fraction, steps_to_loss, train_deep_linear
from companion.chapter_03.explorer import LandscapeExplorer, landscape_explorer
from companion.chapter_03.figures import (
    plot_accuracy_and_steps,
    plot_landscapes,
    plot_learning_rates,
    plot_losses,
    plot_steps,
)
from companion.chapter_03.landscape import two_weight_landscape
from companion.chapter_03.measured import (
    at_one_ninth,
    breaking_rates,
    draws,
    fewest_steps,
    mean_curvatures,
    prefilter,
    slow_frequencies,
)

__all__ = [
    "LandscapeExplorer",
    "at_one_ninth",
    "breaking_rates",
    "critical_learning_rate",
    "draws",
    "fewest_steps",
    "landscape_explorer",
    "mean_curvatures",
    "plot_accuracy_and_steps",
    "plot_landscapes",
    "plot_learning_rates",
    "plot_losses",
    "plot_steps",
    "prefilter",
    "slow_frequencies",
    "steps_to_fraction",
    "steps_to_loss",
    "train_deep_linear",
    "two_weight_landscape",
]
