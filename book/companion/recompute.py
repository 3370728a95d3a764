"""Does the code still compute what is stored?  One row of a result, computed anew and compared."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from companion.stored import EXPERIMENTS, Session, load_table, read_record
from nadtools.device import resolve_device

__all__ = ["Row", "recompute", "rows_of"]

# Columns that say which training a row is, and the parameter that lists their values.
_AXES: Final = {
    "index": "indices",
    "sigma": "sigmas",
    "samples": "samples",
    "epsilon": "epsilons",
    "replace": "replace",
    "count": "counts",
    "arm": "arms",
}
_LABELS: Final = ("frequency_i", "frequency_j", "direction", "first", "second", "part", "seed", *_AXES)


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a stored result and what it gives now.

    Attributes
    ----------
    path : Path
    labels : dict
        Which row it is, by the names of columns.
    stored, now : float
        Its test accuracy.
    tolerance : float
        The samples are the same, so what differs is rounding, which the processor decides. A training of a network
        amplifies it, at most until it is like another seed: 2.5 points, about the largest deviation over seeds that is
        stored for LeNet on D(v). Logistic regression does not: two standard errors of an accuracy.
    seconds : float
        That it took, with what else had to be computed for it.
    """

    path: Path
    labels: dict[str, Any]
    stored: float
    now: float
    tolerance: float
    seconds: float

    @property
    def agrees(self) -> bool:
        """Whether both are equal within the tolerance."""
        return abs(self.now - self.stored) <= self.tolerance


def rows_of(path: str | os.PathLike[str]) -> pd.DataFrame:
    """The rows of a stored result that can be recomputed here; none if it is not a table of trainings.

    Devices of another kind draw other samples.
    """
    record = read_record(path)
    if not record["device"].startswith(resolve_device(None).type):
        return pd.DataFrame()
    try:
        table = load_table(
            record["experiment"], scale=record["scale"], seed=record["seed"], results_dir=Path(path).parent,
            **record["selectors"],
        )  # fmt: skip
    except ValueError:
        return pd.DataFrame()
    return table[table["test_accuracy"].notna()] if "test_accuracy" in table else pd.DataFrame()


def recompute(path: str | os.PathLike[str], number: int) -> Row:
    """Compute one row of a stored result anew, by the experiment that made it.

    Parameters
    ----------
    path : path
        Of a stored result.
    number : int
        Of a row of :func:`rows_of`.

    Raises
    ------
    IndexError
        If there is no such row.
    """
    path, stored = Path(path), rows_of(path).iloc[number]
    labels = {name: stored[name] for name in _LABELS if name in stored}
    record = read_record(path)
    # Bases and labels come from a run's first seed; so the run begins with it.
    num_seeds = int(stored["seed"]) - record["seed"] + 1
    parameters = _narrowed(record["parameters"], labels) | {"num_seeds": num_seeds}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        session = Session(record["seed"], resolve_device(None), None, False, Path(folder))
        result = EXPERIMENTS[record["experiment"]].compute(parameters, session)
    assert isinstance(result, Mapping)
    columns = {name: result[name] for name in (*labels, "test_accuracy")}
    table = pd.DataFrame(columns)
    same = np.logical_and.reduce([_equal(table[name], value) for name, value in labels.items()])
    accuracy = float(stored["test_accuracy"])
    tolerance = 0.025
    if parameters["architecture"] == "logreg" and "num_test" in parameters:
        tolerance = 2 * float(np.sqrt(accuracy * (1 - accuracy) / parameters["num_test"]))
    return Row(
        path=path,
        labels=labels,
        stored=accuracy,
        now=float(table[same]["test_accuracy"].iloc[0]),
        tolerance=tolerance,
        seconds=time.perf_counter() - start,
    )


def _narrowed(parameters: Mapping[str, Any], labels: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a run that computes hardly more than the row."""
    narrowed = dict(parameters)
    for name, axis in _AXES.items():
        if name in labels and axis in parameters:
            # A row without carrier has no index; it is computed in any case.
            narrowed[axis] = [one for one in parameters[axis] if _equal(pd.Series([one]), labels[name])[0]]
    if "frequency_i" in labels:
        narrowed["frequencies"] = [[int(labels["frequency_i"]), int(labels["frequency_j"])]]
    if "direction" in labels:
        narrowed["directions"] = int(labels["direction"]) + 1
    if "first" in labels:
        narrowed["indices"] = sorted({int(labels["first"]), int(labels["second"])})
    if "part" in labels:
        narrowed["alone"] = labels["part"] == "direction"
    if labels.get("arm", "original") != "original":
        narrowed["arms"] = ["original", labels["arm"]]  # with which it is compared
    return narrowed


def _equal(column: pd.Series, value: Any) -> np.ndarray:
    missing = not isinstance(value, str) and pd.isna(value)
    return np.asarray(column.isna() if missing else column == value)
