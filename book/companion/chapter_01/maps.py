"""Accuracies over waves: what is stored, and what the authors published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pandas as pd

from companion import experiments, published
from companion.style import ARCHITECTURE_NAMES
from companion.waves import wave_names

__all__ = ["accuracies_by_direction", "accuracy_maps", "slowness", "waves_of"]

Record: TypeAlias = dict[Any, Any]


def waves_of(experiment: str, architecture: str) -> pd.DataFrame:
    """A stored experiment, one row for each frequency (i, j)."""
    return experiments.load_table(experiment, architecture=architecture).set_index(["frequency_i", "frequency_j"])


def accuracy_maps() -> dict[str, pd.Series]:
    """Test accuracies over waves: ours of LeNet and logistic regression, then the authors', on the same frequencies."""
    maps = {
        "LeNet": waves_of("A1", "lenet").test_accuracy,
        "logistic regression": waves_of("A1", "logreg").test_accuracy,
    }
    fourier = published.load_accuracies("fourier").set_index(["frequency_i", "frequency_j"])
    for architecture in ("vgg11", "resnet18", "densenet121", "lenet"):
        accuracy = fourier[fourier.architecture == architecture].accuracy
        maps[f"{ARCHITECTURE_NAMES[architecture]}, by the authors"] = accuracy.reindex(maps["LeNet"].index)
    return maps


def slowness(architectures: Sequence[str]) -> tuple[dict[str, pd.DataFrame], list[Record]]:
    """Of each wave the accuracy at high noise, and at low noise the steps and whether it is learned at all."""
    runs, records = {}, []
    for architecture in architectures:
        fast, hard = waves_of("A2", architecture), waves_of("A1", architecture).test_accuracy
        columns = {"accuracy": hard.reindex(fast.index), "steps": fast.steps, "learned": fast.test_accuracy > 0.6}
        runs[ARCHITECTURE_NAMES[architecture]] = pd.DataFrame(columns).set_axis(wave_names(fast.index))
        records.append(fast.attrs)
    return runs, records


def accuracies_by_direction(architectures: Sequence[str]) -> tuple[dict[str, pd.Series], list[Record]]:
    """Test accuracies on waves and on random directions, labelled, for each architecture."""
    rows, records = {}, []
    for architecture in architectures:
        for name, kind in (("A1", "waves"), ("random", "random directions")):
            table = experiments.load_table(name, architecture=architecture)
            rows[f"{ARCHITECTURE_NAMES[architecture]}, {len(table)} {kind}"] = table.test_accuracy
            records.append(table.attrs)
    return rows, records
