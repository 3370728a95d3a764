"""Chapter 4: What does an architecture prefer, before it has learned anything?"""

from __future__ import annotations

from companion.chapter_04.dipoles import dipole_gradient_bound, dipole_probability, marchenko_pastur_band
from companion.chapter_04.explorer import NadsExplorer, nads_explorer
from companion.chapter_04.figures import plot_alignment, plot_convergence, plot_spectra
from companion.chapter_04.pictures import plot_atlas, plot_nads

__all__ = [
    "NadsExplorer",
    "dipole_gradient_bound",
    "dipole_probability",
    "marchenko_pastur_band",
    "nads_explorer",
    "plot_alignment",
    "plot_atlas",
    "plot_convergence",
    "plot_nads",
    "plot_spectra",
]
