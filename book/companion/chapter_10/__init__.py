"""Chapter 10: Which of two features does a network use?"""

from __future__ import annotations

from companion.chapter_10.claims import pair_claims
from companion.chapter_10.experiments import Pairs, load_pairs
from companion.chapter_10.explorer import PairExplorer, pair_explorer
from companion.chapter_10.figures import TrainedPairs, plot_pairs, plot_sections
from companion.chapter_10.transformer import plot_two, poisoned_table

__all__ = [
    "PairExplorer",
    "Pairs",
    "TrainedPairs",
    "load_pairs",
    "pair_claims",
    "pair_explorer",
    "plot_pairs",
    "plot_sections",
    "plot_two",
    "poisoned_table",
]
