"""Chapter 7: Beyond convolutions."""

from __future__ import annotations

from companion.chapter_07.experiments import NETWORKS
from companion.chapter_07.figures import (
    LABELS,
    UNLABELLED,
    lattice_share,
    load_stored,
    plot_rows,
    plot_spectra,
    plot_trainings,
    plot_unlabelled,
    positions_table,
    unlabelled_nads,
    with_corner,
)

__all__ = [
    "LABELS", "NETWORKS", "UNLABELLED", "lattice_share", "load_stored", "plot_rows", "plot_spectra", "plot_trainings",
    "plot_unlabelled", "positions_table", "unlabelled_nads", "with_corner",
]  # fmt: skip
