"""What the figures of two or more chapters draw, with Plotly.

Nothing is computed here beyond what is drawn; what does not fit is refused with a TypeError or a ValueError that says
what was expected. The ``title`` stands above the figure. The text for readers who cannot see the figure is written from
the data, and stands in ``layout.meta["alt"]``. Images have row 0 at the top, and so do frequencies: i, the vertical
frequency, grows downwards.
"""

from __future__ import annotations

from companion.figures.along import plot_along_nads
from companion.figures.curves import plot_curves
from companion.figures.directions import plot_direction, plot_directions
from companion.figures.images import plot_over_indices
from companion.figures.training import plot_accuracy_map, plot_history, plot_samples
from companion.figures.wall import plot_gallery, plot_wall

__all__ = [
    "plot_accuracy_map", "plot_along_nads", "plot_curves", "plot_direction", "plot_directions", "plot_gallery",
    "plot_history", "plot_over_indices", "plot_samples", "plot_wall",
]  # fmt: skip
