"""Long computations under a name, and their stored results: made once, read by the chapters, checked for staleness.

An experiment states the parameters of a run before anything is computed. They are stored inside the result, so that
:func:`stale` can tell whether the code would still compute the same.
"""

from __future__ import annotations

from companion import atlas, photographs, trainings
from companion.atlas import load_atlas
from companion.chapter_08 import experiments as pairs
from companion.chapter_08.experiments import Pairs, load_pairs, load_transition
from companion.photographs import load_largest
from companion.stored import (
    EXPERIMENTS,
    Experiment,
    Result,
    Scale,
    Session,
    load,
    load_table,
    read_record,
    result_path,
    results_folder,
    run,
    stale,
)

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Pairs",
    "Result",
    "Scale",
    "Session",
    "load",
    "load_atlas",
    "load_largest",
    "load_pairs",
    "load_table",
    "load_transition",
    "read_record",
    "result_path",
    "results_folder",
    "run",
    "stale",
]

_ALL = (*atlas.EXPERIMENTS, *trainings.EXPERIMENTS, *photographs.EXPERIMENTS, *pairs.EXPERIMENTS)
EXPERIMENTS.update({one.name: one for one in _ALL})
