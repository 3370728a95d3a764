"""Figures from results, drawn with Plotly, or with matplotlib for print and for readers without JavaScript.

Nothing is computed here beyond what is drawn. Each builder takes ``backend`` ("plotly" or "matplotlib") and ``alt``,
the text for readers who cannot see the figure; where it is not given, one is written from the data. A Plotly figure
holds it in ``layout.meta["alt"]``, a matplotlib figure in its attribute ``alt``.
Images have row 0 at the top, and so do frequencies: i, the vertical frequency, grows downwards.
"""

from __future__ import annotations

from nadtools.figures.curves import plot_curves
from nadtools.figures.deep_linear import (
    plot_accuracy_and_steps,
    plot_landscapes,
    plot_learning_rates,
    plot_losses,
    plot_steps,
)
from nadtools.figures.directions import plot_direction, plot_directions
from nadtools.figures.images import plot_arms, plot_images, plot_index_map, plot_over_indices, plot_poisoning
from nadtools.figures.learning import plot_predictions, plot_spectrum_and_accuracy
from nadtools.figures.maps import plot_wave_map
from nadtools.figures.nads import plot_alignment, plot_atlas, plot_convergence, plot_nads, plot_spectra
from nadtools.figures.parts import StaticFigure
from nadtools.figures.pooling import plot_aliasing, plot_pooling_accuracies
from nadtools.figures.training import plot_accuracy_map, plot_history, plot_projections, plot_samples
from nadtools.figures.underspecification import TrainedPairs, plot_pairs, plot_sections, plot_transition

__all__ = [
    "StaticFigure",
    "TrainedPairs",
    "plot_accuracy_and_steps",
    "plot_accuracy_map",
    "plot_aliasing",
    "plot_alignment",
    "plot_arms",
    "plot_atlas",
    "plot_convergence",
    "plot_curves",
    "plot_direction",
    "plot_directions",
    "plot_history",
    "plot_images",
    "plot_index_map",
    "plot_landscapes",
    "plot_learning_rates",
    "plot_losses",
    "plot_nads",
    "plot_over_indices",
    "plot_pairs",
    "plot_poisoning",
    "plot_pooling_accuracies",
    "plot_predictions",
    "plot_projections",
    "plot_samples",
    "plot_sections",
    "plot_spectra",
    "plot_spectrum_and_accuracy",
    "plot_steps",
    "plot_transition",
    "plot_wave_map",
]
