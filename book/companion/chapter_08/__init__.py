"""Chapter 8: Which of two features does a network use?"""

from __future__ import annotations

from companion.chapter_08.experiments import Pairs, concatenation_claims, load_pairs, load_transition, pair_claims
from companion.chapter_08.explorer import ConcatenationExplorer, PairExplorer, concatenation_explorer, pair_explorer
from companion.chapter_08.figures import TrainedPairs, plot_pairs, plot_sections

__all__ = [
    "ConcatenationExplorer",
    "PairExplorer",
    "Pairs",
    "TrainedPairs",
    "concatenation_claims",
    "concatenation_explorer",
    "load_pairs",
    "load_transition",
    "pair_claims",
    "pair_explorer",
    "plot_pairs",
    "plot_sections",
]
