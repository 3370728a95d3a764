"""Accuracies over waves: what is stored, and what the authors published."""

from __future__ import annotations

import pandas as pd

from companion import experiments, published
from companion.style import ARCHITECTURE_NAMES

__all__ = ["accuracy_maps", "waves_of"]


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
