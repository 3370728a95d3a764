"""Trainings on poisoned photographs: figure 7 of *Neural Anisotropy Directions*, with controls of our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
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
    run_trainings,
    setting,
    train_poisoned,
)
from companion.stored import Experiment, Scale, Session
from companion.tables import Row, timed

__all__ = ["EXPERIMENTS"]

_EPSILON = 0.05


def _indices(scale: Scale, architecture: str) -> list[int]:
    """The last leaves room for ten classes in one channel: five NADs."""
    if scale == "smoke":
        return [0, 1019]
    if architecture in DEEP:
        return [0, 5, 20, 50, 100, 300, 700, 1019] if scale == "laptop" else [0, 10, 50, 300, 1019]
    return [0, 2, 5, 10, 20, 50, 100, 200, 400, 700, 1019]


def _poisoning_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    # The control, in which every coefficient of the code is replaced, where trainings are cheap.
    cheap = architecture not in DEEP and data in SMALL_DATA
    common = setting(scale, architecture, data)
    return common | {
        "num_seeds": min(2, common["num_seeds"]),
        "epsilons": [_EPSILON],
        "indices": _indices(scale, architecture),
        "replace": ["own", "all"] if cheap else ["own"],
    }


def _map_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    # The images' own coefficients have a deviation between 12 (LeNet's first NAD) and 0.02 (its last). The smallest
    # carrier is silence: it erases what the images hold along the NAD, and adds a twentieth of the least of it.
    epsilons, indices = [0.001, 0.05, 0.25, 0.75, 2.0, 6.0], [0, 10, 50, 200, 1019]
    if scale == "smoke":
        epsilons, indices = epsilons[1::4], indices[::4]
    return setting(scale, architecture, data) | {"epsilons": epsilons, "indices": indices, "replace": ["own"]}


def _span_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    counts = [index for index in _indices(scale, architecture) if index]
    return setting(scale, architecture, data) | {"counts": counts}


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
