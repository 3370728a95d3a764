"""Chapter 11: Photographs or a simple hint: which is used?"""

from __future__ import annotations

from companion.chapter_11.claims import concatenation_claims
from companion.chapter_11.experiments import load_transition
from companion.chapter_11.explorer import ConcatenationExplorer, concatenation_explorer
from companion.chapter_11.figures import plot_transition
from companion.patches import load_patches, load_thumbnails

__all__ = [
    "ConcatenationExplorer",
    "concatenation_claims",
    "concatenation_explorer",
    "load_patches",
    "load_thumbnails",
    "load_transition",
    "plot_transition",
]
