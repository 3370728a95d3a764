"""What the chapters' claims share: how a finding is given, and how stored results are read and put in words.

It lies below the chapters. The list of all claims, :mod:`companion.claims`, lies above them.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from companion import published
from companion.atlas import load_atlas
from companion.stored import EXPERIMENTS, NotStoredError, command, load_table, results_folder
from nadtools.nads import NADs

__all__ = [
    "Function",
    "Mark",
    "Measured",
    "NotHereError",
    "Stored",
    "Verdict",
    "Where",
    "at_paper_scale",
    "close",
    "computed",
    "deviation",
    "known",
    "marks_table",
    "mean_waves",
    "percent",
    "points",
    "printed_and_corrected",
    "rank_correlation",
    "share",
    "side_by_side",
]

Where = str | os.PathLike[str] | None


# ---------------------------------------------------------------------------------------------------------------------
# Findings
# ---------------------------------------------------------------------------------------------------------------------


class Verdict(enum.StrEnum):
    """What is said of a claim. The last two say why nothing else is said yet, or here."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT_REPRODUCED = "not reproduced"
    CORRECTED = "corrected"
    NOT_YET = "not yet at paper scale"
    NOT_HERE = "not checked here"


@dataclasses.dataclass(frozen=True)
class Measured:
    """What was measured, in words, and whether each part of the claim holds.

    ``corrected`` says of a formula whether it holds with the correction of the errata.
    """

    text: str
    holds: tuple[bool, ...]
    corrected: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict, if what was read is of the size that counts."""
        if all(self.holds):
            return Verdict.REPRODUCED
        if self.corrected:
            return Verdict.CORRECTED
        return Verdict.PARTLY if any(self.holds) else Verdict.NOT_REPRODUCED


#: Looks at a claim: given :class:`Stored` and the claim's limits by name.
Function = Callable[..., Measured]


def computed(functions: Mapping[str, Function]) -> dict[str, Function]:
    """Functions that read nothing, as those that are given :class:`Stored`."""

    def without_reading(function: Function, _: Stored, **limits: float) -> Measured:
        return function(**limits)

    return {name: functools.partial(without_reading, function) for name, function in functions.items()}


@dataclasses.dataclass(frozen=True)
class Mark:
    """A statement about one table, in words that hold its mark: a row on a page, and claims of the scoreboard.

    Attributes
    ----------
    text : str
    read : callable
        Gives the table.
    measure : callable
        Looks at the table.
    aside : callable, optional
        What the scoreboard adds to the words about a table.
    """

    text: str
    read: Callable[[Stored], pd.DataFrame]
    measure: Callable[[pd.DataFrame], Measured]
    aside: Callable[[pd.DataFrame], str] = lambda table: ""

    def __call__(self, stored: Stored) -> Measured:
        table = self.read(stored)
        found = self.measure(table)
        return dataclasses.replace(found, text=found.text + self.aside(table))


def marks_table(marks: Sequence[Mark], table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each mark, with the columns claim, measured and verdict."""
    found = [(mark.text, mark.measure(table)) for mark in marks]
    rows = [(text, one.text, "holds" if all(one.holds) else "does not hold") for text, one in found]
    return pd.DataFrame(rows, columns=["claim", "measured", "verdict"])


def side_by_side(claims: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The claims in rows and the networks in columns: what was measured, and whether the claim holds (✓) or not (✗)."""
    marks = {"holds": "✓", "does not hold": "✗"}
    columns = {
        name: pd.Series(list(table.verdict.map(marks) + " " + table.measured), table.claim)
        for name, table in claims.items()
    }
    return pd.DataFrame(columns).fillna("").rename_axis("")


# ---------------------------------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------------------------------


#: Of one core of a server's processor, for 200,000 samples, forward and back; deep networks of full width in bfloat16.
_MINUTES: Final = {"logreg": 0.1, "mlp": 0.1, "lenet": 0.4, "vgg11": 11, "resnet18": 31, "densenet121": 82}
_MORE_WITHOUT_POOLING: Final = {"lenet": 2, "vgg11": 64, "densenet121": 8}


def at_paper_scale(name: str, selectors: Mapping[str, str]) -> str:
    """What makes a result at the paper's size, and in a comment the hours of one core that the trainings take."""
    chosen = {**selectors, "data": "cifar10"}
    hours = _hours(name, {key: chosen[key] for key in EXPERIMENTS[name].selectors})
    in_words = f"{hours:.0f}" if hours >= 1.5 else f"{hours:.1f}"
    return command(name, "paper", chosen) + (f"  # about {in_words} hours of one core" if hours else "")


def _hours(name: str, selectors: Mapping[str, str]) -> float:
    """0 where nothing is trained, or where it is not known how many."""
    parameters = EXPERIMENTS[name].parameters("paper", **selectors)
    axes = [len(parameters[axis]) for axis in ("frequencies", "indices", "counts", "arms") if axis in parameters]
    if "config" not in parameters or not axes:
        return 0.0
    trainings = math.prod(axes) ** (2 if name == "B2" else 1) + (name in ("A7", "B3"))
    samples = parameters.get("num_train", 50_000) * parameters["config"]["epochs"]
    minutes = _MINUTES[selectors["architecture"]]
    if not parameters["build_options"].get("pooling", True):
        minutes *= _MORE_WITHOUT_POOLING.get(selectors["architecture"], 1)
    return trainings * parameters["num_seeds"] * samples / 200_000 * minutes / 60


class NotHereError(Exception):
    """The authors' files are needed, and are not at hand."""


@functools.lru_cache(maxsize=8)
def _nads(folder: str, architecture: str, estimator: str) -> NADs:
    return load_atlas(architecture, estimator, results_dir=folder)


class Stored:
    """Stored results with a claim's selectors, the largest there are. What was read is noted.

    Attributes
    ----------
    selectors : mapping
        What is not named in a call.
    sources : list
        The record of each result that was read, and its seeds.
    """

    def __init__(self, selectors: Mapping[str, str], where: Where = None) -> None:
        self.selectors, self.where = selectors, where
        self.sources: list[tuple[Mapping[str, Any], tuple[int, ...]]] = []

    def note(self, table: pd.DataFrame) -> pd.DataFrame:
        """Note a table that was read."""
        record = {str(key): value for key, value in table.attrs.items()}
        self.sources.append((record, tuple(sorted(int(seed) for seed in table["seed"].dropna().unique()))))
        return table

    def load(self, name: str, load: Callable[..., pd.DataFrame]) -> pd.DataFrame:
        """What a chapter's loader gives. If there is nothing, the error is about the result at the paper's size."""
        try:
            return self.note(load(**self.selectors, results_dir=self.where))
        except NotStoredError as error:
            raise NotStoredError(at_paper_scale(name, self.selectors)) from error

    def table(self, name: str, **selectors: str) -> pd.DataFrame:
        """A table of one run, with the best data that there are."""
        given = {**self.selectors, **selectors}
        chosen: dict[str, Any] = {key: given[key] for key in EXPERIMENTS[name].selectors if key in given}
        try:
            return self.note(load_table(name, results_dir=self.where, **chosen))
        except NotStoredError as error:
            raise NotStoredError(at_paper_scale(name, chosen)) from error

    def waves(self, name: str, **selectors: str) -> pd.DataFrame:
        """Trainings along waves, by frequency."""
        return self.table(name, **selectors).set_index(["frequency_i", "frequency_j"])

    def along_nads(self, **selectors: str) -> pd.Series:
        """Mean accuracy along each NAD."""
        return self.table("A6", **selectors).groupby("index")["test_accuracy"].mean()

    def nads(self, architecture: str | None = None, *, noted: bool = True) -> NADs:
        """NADs; each file is read once."""
        architecture = architecture or self.selectors["architecture"]
        nads = _nads(str(results_folder(self.where)), architecture, self.selectors.get("estimator", "secant"))
        record = nads.metadata["record"]
        if noted:
            self.sources.append((record, (record["seed"],)))
        return nads

    def published_nads(self) -> NADs:
        """The authors' NADs."""
        _at_hand(self.selectors["architecture"])
        return published.load_nads(self.selectors["architecture"])

    def published_accuracies(
        self, kind: published.AccuracyTable, *index: str, architecture: str | None = None
    ) -> pd.Series:
        """The authors' accuracies, by the columns that are named."""
        _at_hand(kind)
        rows = published.load_accuracies(kind)
        chosen = rows[rows["architecture"] == (architecture or self.selectors["architecture"])]
        return chosen.set_index(list(index))["accuracy"]


def _at_hand(name: str) -> None:
    """Pass if the authors' file can be read without a network."""
    try:
        here = published.available()
    except (FileNotFoundError, ImportError):
        here = ()
    if name not in here:
        raise NotHereError("takes the authors' files; set NADTOOLS_DATA to a folder with them")


# ---------------------------------------------------------------------------------------------------------------------
# Numbers and words
# ---------------------------------------------------------------------------------------------------------------------


def mean_waves(table: pd.DataFrame, column: str = "test_accuracy") -> pd.Series:
    """Means over the trainings along each wave."""
    return table.groupby(level=[0, 1])[column].mean()


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


def close(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are equal up to rounding."""
    return bool(torch.allclose(a.double(), b.double(), rtol=1e-5, atol=1e-9))


def printed_and_corrected(exact: Tensor, formula: Callable[..., Tensor], what: str) -> Measured:
    """A printed formula and its correction against an independent computation."""
    printed, corrected = (formula(as_printed=as_printed) for as_printed in (True, False))
    ratio = float((printed / exact).flatten()[0])
    text = f"{what} is {ratio:.3g} times the computed one as printed"
    text += ", and equal to it as corrected" if close(corrected, exact) else ""
    return Measured(text, (close(printed, exact),), corrected=close(corrected, exact))


def percent(accuracy: float) -> str:
    """A share in words."""
    return f"{100 * accuracy:.1f} %"


def points(difference: float) -> str:
    """A difference of two shares in words."""
    return known(difference, f"{100 * difference:.1f} points")


def share(accuracy: float) -> str:
    """A share in words, where it may be unknown."""
    return known(accuracy, f"{accuracy:.1%}")


def known(value: float, text: str) -> str:
    """A text about a value, unless that is not known."""
    return text if np.isfinite(value) else "not known"
