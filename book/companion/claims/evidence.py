"""What the functions that look at claims share: their register, what they give, and how they read stored results."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from companion import experiments, published
from companion.chapter_09.experiments import load_transition
from companion.claims.model import Claim, Verdict
from nadtools.nads import NADs

__all__ = [
    "EVALUATORS",
    "SCALES",
    "Found",
    "NotHereError",
    "Source",
    "Where",
    "along_nads",
    "at_hand",
    "atlas",
    "deviation",
    "evaluator",
    "mean_waves",
    "paper_parameters",
    "percent",
    "photographs",
    "points",
    "published_accuracies",
    "rank_correlation",
    "sources",
    "stored_table",
    "waves",
]

SCALES: Final[tuple[experiments.Scale, ...]] = ("paper", "laptop")
Where = str | os.PathLike[str] | None
#: A record, and the seeds that were read.
Source = tuple[Mapping[str, Any], tuple[int, ...]]


class NotHereError(Exception):
    """The authors' files are needed, and are not at hand."""


@dataclasses.dataclass(frozen=True)
class Found:
    """What a function finds: in words, whether each part of the claim holds, and what it read.

    ``corrected`` says of a formula whether it holds with the correction of the errata.
    """

    text: str
    holds: tuple[bool, ...]
    sources: tuple[Source, ...] = ()
    corrected: bool | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict, if what was read is of the size that counts."""
        if all(self.holds):
            return "reproduced"
        if self.corrected:
            return "corrected"
        return "partly" if any(self.holds) else "not reproduced"


Evaluator = Callable[[Claim, Where], Found]
#: By the name that stands in the file of claims; :mod:`companion.claims` fills it.
EVALUATORS: Final[dict[str, Evaluator]] = {}


def evaluator(function: Evaluator) -> Evaluator:
    """Register a function, under its name without the underscore."""
    EVALUATORS[function.__name__.lstrip("_")] = function
    return function


def paper_parameters(experiment: str, selectors: Mapping[str, str], scale: str = "paper") -> dict[str, Any]:
    """Parameters of an experiment, as they come back from JSON, with CIFAR-10 where no data set is named."""
    known = experiments.EXPERIMENTS[experiment]
    chosen = {"data": "cifar10", **selectors} if "data" in known.selectors else dict(selectors)
    if any(chosen[name] not in values for name, values in known.selectors.items()):
        raise KeyError(str(chosen))
    parameters: dict[str, Any] = json.loads(json.dumps(known.parameters(scale, **chosen)))
    return parameters


def stored_table(name: str, where: Where, **selectors: Any) -> pd.DataFrame:
    """A stored table, of the largest scale that there is."""
    for scale in SCALES:
        if experiments.result_path(name, scale=scale, results_dir=where, **selectors).exists():
            return experiments.load_table(name, scale=scale, results_dir=where, **selectors)
    return experiments.load_table(name, scale="paper", results_dir=where, **selectors)  # says how it is made


def photographs(name: str, where: Where, architecture: str) -> pd.DataFrame:
    """A stored table of trainings on images, with the best data that there are."""
    try:
        if name == "B3":
            return load_transition(architecture, results_dir=where)
        return experiments.load_largest(name, architecture, results_dir=where)
    except FileNotFoundError:
        return stored_table(name, where, architecture=architecture, data="cifar10")


def waves(name: str, where: Where, architecture: str) -> pd.DataFrame:
    """A stored table of trainings along waves, by frequency."""
    return stored_table(name, where, architecture=architecture).set_index(["frequency_i", "frequency_j"])


def mean_waves(table: pd.DataFrame, column: str = "test_accuracy") -> pd.Series:
    """Means over the trainings along each wave."""
    return table.groupby(level=[0, 1])[column].mean()


def along_nads(where: Where, architecture: str, nads: str = "ours") -> tuple[pd.Series, pd.DataFrame]:
    """Mean accuracy along each NAD, and the stored table."""
    table = stored_table("A6", where, architecture=architecture, nads=nads)
    return table.groupby("index")["test_accuracy"].mean(), table


@functools.lru_cache(maxsize=8)
def _stored_nads(folder: str, architecture: str, estimator: str) -> NADs:
    return experiments.load_atlas(architecture, estimator, results_dir=folder)


def atlas(where: Where, architecture: str, estimator: str = "secant") -> NADs:
    """Stored NADs; each file is read once."""
    return _stored_nads(str(experiments.results_folder(where)), architecture, estimator)


def sources(*read: pd.DataFrame | NADs) -> tuple[Source, ...]:
    """Records and seeds of what was read."""
    found: list[Source] = []
    for one in read:
        if isinstance(one, NADs):
            record = one.metadata["record"]
            found.append((record, (record["seed"],)))
        else:
            record = {str(key): value for key, value in one.attrs.items()}
            found.append((record, tuple(sorted(int(seed) for seed in one["seed"].dropna().unique()))))
    return tuple(found)


def at_hand(name: str) -> None:
    """Pass if the authors' file can be read without a network."""
    try:
        here = published.available()
    except (FileNotFoundError, ImportError):
        here = ()
    if name not in here:
        raise NotHereError("takes the authors' files; set NADTOOLS_DATA to a folder with them")


def published_accuracies(kind: published.AccuracyTable, architecture: str, *index: str) -> pd.Series:
    """The authors' accuracies of an architecture, by the columns that are named."""
    at_hand(kind)
    rows = published.load_accuracies(kind)
    return rows[rows["architecture"] == architecture].set_index(list(index))["accuracy"]


def deviation(ours: pd.Series, theirs: pd.Series) -> tuple[float, str]:
    """Mean absolute deviation in points over the indices that both have, and in words."""
    apart = (ours - theirs).abs().dropna()
    text = f"{points(apart.mean())} on average over {len(apart)} indices, {points(apart.max())} at most"
    return float(100 * apart.mean()), text


def rank_correlation(a: Any, b: Any) -> float:
    """Spearman's, or not a number if one of the two does not vary."""
    first, second = (pd.Series(np.asarray(values, float)) for values in (a, b))
    if min(first.nunique(), second.nunique()) < 2:
        return math.nan
    return float(first.corr(second, "spearman"))


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.1f} %"


def points(difference: float) -> str:
    """A difference of two shares in words."""
    return f"{100 * difference:.1f} points"
