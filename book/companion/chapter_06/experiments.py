"""Trainings on poisoned photographs: figure 7 of *Neural Anisotropy Directions*, with controls of our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from companion.photographs import (
    DEEP,
    SELECTORS,
    SMALL_DATA,
    Plan,
    columns,
    fit,
    halves,
    images_of,
    predict,
    run_trainings,
    setting,
)
from companion.stored import Experiment, Scale, Session
from companion.tables import Row, timed
from nadtools.device import generator
from nadtools.interventions import poison
from nadtools.training import evaluate

__all__ = ["EXPERIMENTS", "train_poisoned"]

_EPSILON = 0.05
_OTHER_LABELS: Final = 0  # a random stream of a seed; chapter 7 has others


def _indices(scale: Scale, architecture: str) -> list[int]:
    """The last leaves room for ten classes in one channel: five NADs."""
    if scale == "smoke":
        return [0, 1019]
    if scale == "laptop" and architecture in DEEP:
        return [0, 5, 20, 50, 100, 300, 700, 1019]
    return [0, 2, 5, 10, 20, 50, 100, 200, 400, 700, 1019]


def _poisoning_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    # The control, in which every coefficient of the code is replaced, where trainings are cheap.
    cheap = architecture not in DEEP and data in SMALL_DATA
    return setting(scale, architecture, data) | {
        "epsilons": [_EPSILON],
        "indices": _indices(scale, architecture),
        "replace": ["own", "all"] if cheap else ["own"],
    }


def _map_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    # The images' own coefficients have a deviation between 3 (LeNet's first NAD) and 0.02 (its last).
    epsilons, indices = [0.05, 0.25, 0.75, 2.0, 6.0], [0, 10, 50, 200, 1019]
    if scale == "smoke":
        epsilons, indices = epsilons[::4], indices[::4]
    return setting(scale, architecture, data) | {"epsilons": epsilons, "indices": indices, "replace": ["own"]}


def _span_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    counts = [index for index in _indices(scale, architecture) if index]
    return setting(scale, architecture, data) | {"counts": counts}


def train_poisoned(plan: Plan, unit: Mapping[str, Any]) -> Row:
    """Train on images with a carrier, or without where the index is None; test on clean ones and on others."""
    row: Row = dict.fromkeys(("test_accuracy_poisoned", "follows_carrier", "follows_content"))
    with timed(row, plan.device):
        images = images_of(plan)
        y, num_classes = images.y_test, images.num_classes

        def prepared(x: Tensor, labels: Tensor) -> Tensor:
            if unit["index"] is not None:
                x = poison(
                    x, labels, plan.nads, unit["index"], unit["epsilon"],
                    replace=unit["replace"], num_classes=num_classes,
                )  # fmt: skip
            return images.normalise(x)

        train_data = (prepared(images.x_train, images.y_train), images.y_train)
        network, measured = fit(plan, images, train_data, (images.normalise(images.x_test), y), unit["seed"])
        row |= measured
        if network is not None and unit["index"] is not None:
            row["test_accuracy_poisoned"] = evaluate(network, (prepared(images.x_test, y), y)).accuracy
            # The carrier of one class on the content of another: which of them decides?
            stream = generator(torch.device("cpu"), plan.base_seed, _OTHER_LABELS)
            other = (y + torch.randint(1, num_classes, y.shape, generator=stream).to(y.device)) % num_classes
            answer = predict(network, prepared(images.x_test, other))
            row |= {
                "follows_carrier": float((answer == other).float().mean()),
                "follows_content": float((answer == y).float().mean()),
            }
    return row


def _train_span(plan: Plan, unit: Mapping[str, Any]) -> Row:
    """Train and test on what images hold in the span of the first NADs."""
    row: Row = {}
    with timed(row, plan.device):
        images = images_of(plan)
        first = plan.nads[: unit["count"]].flatten(1).to(images.x_train)

        def prepared(x: Tensor) -> Tensor:
            normalised = images.normalise(x).flatten(2)
            return ((normalised @ first.T) @ first).view_as(x)

        train_data, test_data = ((prepared(x), y) for x, y in halves(images))
        row |= fit(plan, images, train_data, test_data, unit["seed"])[1]
    return row


def _poisoning(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    units: list[Row] = [{"index": None, "epsilon": 0.0, "replace": "none"}]
    units += [
        {"index": index, "epsilon": epsilon, "replace": replace}
        for replace in parameters["replace"]
        for epsilon in parameters["epsilons"]
        for index in parameters["indices"]
    ]
    return columns(run_trainings(train_poisoned, units, parameters, session, "poisoned"))


def _span(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    units = [{"count": count} for count in parameters["counts"]]
    return columns(run_trainings(_train_span, units, parameters, session, "first NADs"))


EXPERIMENTS = (
    Experiment(
        "A7",
        "accuracy on clean images after training on images with a carrier, against its index",
        SELECTORS,
        _poisoning_parameters,
        _poisoning,
    ),
    Experiment(
        "A7map",
        "accuracy on clean images over the carrier's size and its index",
        SELECTORS,
        _map_parameters,
        _poisoning,
    ),
    Experiment(
        "A7span",
        "accuracy with nothing but the span of the first NADs",
        SELECTORS,
        _span_parameters,
        _span,
    ),
)
