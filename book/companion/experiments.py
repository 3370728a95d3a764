"""Long computations under a name, and their stored results: made once, read by the chapters, checked for staleness.

An experiment states the parameters of a run before anything is computed. They are stored inside the result, so that
:func:`stale` can tell whether the code would still compute the same.
"""

from __future__ import annotations

import importlib

from companion.atlas import load_atlas
from companion.stored import (
    EXPERIMENTS,
    Experiment,
    NotStoredError,
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
    "NotStoredError",
    "Result",
    "Scale",
    "Session",
    "load",
    "load_atlas",
    "load_table",
    "read_record",
    "result_path",
    "results_folder",
    "run",
    "stale",
]

# By name: the chapters' files stand on the same files as this one.
_HOMES = ("atlas", *(f"chapter_{number:02d}.experiments" for number in (1, 4, 5, 6, 7, 8, 9, 10, 11)))
for _home in _HOMES:
    EXPERIMENTS.update({one.name: one for one in importlib.import_module(f"companion.{_home}").EXPERIMENTS})
