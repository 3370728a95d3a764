"""Chapter 7: Beyond convolutions."""

from __future__ import annotations

from companion.chapter_07.experiments import NETWORKS
from companion.chapter_07.figures import (
    LABELS,
    lattice_share,
    load_stored,
    plot_rows,
    plot_spectra,
    plot_trainings,
    plot_two,
    poisoned_table,
    positions_table,
)

__all__ = [
    "LABELS", "NETWORKS", "lattice_share", "load_stored", "poisoned_table", "plot_rows",
    "plot_spectra", "plot_trainings", "plot_two", "positions_table",
]  # fmt: skip
