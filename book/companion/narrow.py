"""Do narrow networks learn what those of full width learn?  Some trainings of other experiments, at full width.

The directions were chosen before anything was trained at full width, and not by our results: of those that the narrow
networks are trained on, the two on which the authors' own network has the highest and the lowest accuracy, and the one
on which its accuracy is closest to the middle between these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from companion import stored
from companion.evidence import Where
from companion.stored import Experiment, NotStoredError, Result, Scale, Session, largest, load_table, result_path, stale

__all__ = ["EXPERIMENTS", "LIMIT", "WidthCheck", "width_check"]

#: By how much the test accuracy of a narrow network may differ for its result to count. Seeds alone make a difference
#: of up to 4.4 points: of LeNet, along its NADs, in the stored trainings.
LIMIT: Final = 0.05


@dataclasses.dataclass(frozen=True)
class _Source:
    """An experiment that is repeated: its other selectors, the parameter that lists directions, and their columns.

    Of the chosen directions of each network the best learned comes first, and the worst last.
    """

    selectors: Mapping[str, str]
    axis: str
    labels: tuple[str, ...]
    chosen: Mapping[str, list[Any]]


_SOURCES: Final = {
    "A1": _Source(
        {},
        "frequencies",
        ("frequency_i", "frequency_j"),
        {
            "vgg11": [(0, 0), (-8, 0), (-6, -10)],
            "resnet18": [(-16, -16), (-6, -10), (-14, -14)],
            "densenet121": [(0, 0), (-8, 0), (-6, -10)],
        },
    ),
    "A6": _Source(
        {"nads": "ours"},
        "indices",
        ("index",),
        {"vgg11": [0, 30, 1000], "resnet18": [10, 100, 700], "densenet121": [0, 30, 400]},
    ),
}


def _parameters(scale: Scale, architecture: str, of: str) -> dict[str, Any]:
    source, smoke = _SOURCES[of], scale == "smoke"
    size: Scale = "smoke" if smoke else "paper"
    parameters = stored.EXPERIMENTS[of].parameters(size, architecture=architecture, **source.selectors)
    precision = {} if smoke else {"precision": "bfloat16"}
    return parameters | {
        "of": of,
        source.axis: source.chosen[architecture][: 1 if smoke else None],
        "config": parameters["config"] | precision,
        "num_seeds": 1,
    }


def _compute(parameters: dict[str, Any], session: Session) -> Result:
    return stored.EXPERIMENTS[parameters["of"]].compute(parameters, session)


@dataclasses.dataclass(frozen=True)
class WidthCheck:
    """How many trainings were repeated at full width, and the largest difference of their test accuracies."""

    count: int
    difference: float

    @property
    def passed(self) -> bool:
        """Whether a result of narrow networks counts."""
        return self.difference <= LIMIT

    @property
    def text(self) -> str:
        """What came out."""
        return f"the {self.count} checked at full width differ by at most {100 * self.difference:.1f} points"


def width_check(record: Mapping[str, Any], *, results_dir: Where = None) -> WidthCheck | None:
    """Compare narrow trainings with those at full width.

    Parameters
    ----------
    record : mapping
        Of a result of narrow networks. NADs of the authors are checked as ours are.
    results_dir : path, optional
        See :func:`companion.experiments.results_folder`.

    Returns
    -------
    WidthCheck or None
        None if no check of this network on such directions is stored, it is stale, more than the width differs, or a
        training has no counterpart or diverged.
    """
    name, architecture = record["experiment"], record["selectors"].get("architecture")
    source = _SOURCES.get(name)
    if source is None or architecture not in source.chosen:
        return None
    tables = []
    for one, selectors in ((name, source.selectors), ("narrow", {"of": name})):
        chosen: dict[str, Any] = {"architecture": architecture, **selectors}
        try:
            scale = largest(one, results_dir=results_dir, **chosen).scale
        except NotStoredError:
            return None
        if stale(result_path(one, scale=scale, results_dir=results_dir, **chosen)):
            return None
        tables.append(load_table(one, scale=scale, results_dir=results_dir, **chosen))
    narrow, full = tables
    if not (_training(record) == _training(narrow.attrs) == _training(full.attrs)):
        return None
    both = pd.merge(full, narrow, on=[*source.labels, "seed"], how="left", suffixes=("", "_narrow"))
    differences = (both["test_accuracy"] - both["test_accuracy_narrow"]).abs()
    return WidthCheck(len(both), float(differences.max())) if differences.notna().all() else None


def _training(record: Mapping[Any, Any]) -> dict[str, Any]:
    """What has to be equal: all but the width, the rounding, and which directions and seeds there are."""
    parameters = dict(record["parameters"])
    for name in ("of", "nads", "num_seeds", *(source.axis for source in _SOURCES.values())):
        parameters.pop(name, None)
    return parameters | {
        "build_options": {key: value for key, value in parameters["build_options"].items() if key != "width"},
        "config": {key: value for key, value in parameters["config"].items() if key != "precision"},
    }


EXPERIMENTS = (
    Experiment(
        "narrow",
        "some trainings of other experiments at full width: do narrow networks learn the same?",
        {"architecture": ("vgg11", "resnet18", "densenet121"), "of": tuple(_SOURCES)},
        _parameters,
        _compute,
    ),
)
