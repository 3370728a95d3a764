r"""Trainings on binary images beside a direction, :math:`\oplus\, D(v)`, over NADs.

B3 asks of each network the accuracy with both parts and with either alone, and its margin along v: figure 3 of *A
neural anisotropic view of underspecification*.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from companion import two_features
from companion.patches import load_images
from companion.photographs import DATA, SMALL_DATA
from companion.stored import Experiment, Scale, Session
from companion.tables import Row, timed
from nadtools.distributions import Labelled, LinearlySeparable, concatenate
from nadtools.images import binary
from nadtools.sweeps import unit_seeds
from nadtools.training import evaluate

__all__ = ["EXPERIMENTS", "load_transition"]


def _transition_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    deep, common = architecture in two_features.DEEP, two_features.setting(scale, architecture)
    images, epochs = dict(DATA[data]), 60 if architecture == "mlp" else 40
    indices = [0, 5, 10, 20, 50, 100, 200, 300, 500, 700, 1000]
    if scale == "smoke":
        images |= {"per_class": 8, "test_per_class": 8}
        indices, epochs = [0, 1000], 1
    elif deep:
        indices, epochs = [0, 50, 200, 1000], 15 if scale == "laptop" else epochs
    elif scale == "laptop":
        indices = [0, 10, 30, 60, 100, 200, 400, 1000]
    if architecture == "mlp":
        common["build_options"] = {"hidden": [200, 50]}
    return common | {
        "images": images,
        "indices": indices,
        "epsilon": 1.0,
        "sigma": 1.0 if architecture == "lenet" else 3.0,
        "config": two_features.config(scale, architecture, epochs=epochs, max_lr=0.15, weight_decay=1e-5),
        # What each part is worth alone: D(v) by itself only where trainings are cheap.
        "alone": not deep and data in SMALL_DATA,
    }


def _train_transition(plan: two_features.Plan, unit: Mapping[str, Any]) -> Row:
    """One network on images ⊕ D(v), or on one of them alone, and all that is asked of it."""
    row: Row = dict.fromkeys(
        (
            "test_accuracy_images",
            "test_accuracy_direction",
            "test_accuracy_without_feature",
            "follows_images",
            "margin",
            "margin_found",
        )
    )
    parameters, seed = plan.parameters, unit["seed"]
    with timed(row, plan.device):
        train_images, test_images = _read_images(tuple(parameters["images"].items()))
        v = plan.directions[unit["index"]]
        part = LinearlySeparable(v, parameters["epsilon"], parameters["sigma"])
        problem, test_problem = concatenate(train_images, part), concatenate(test_images, part)
        seeds = unit_seeds(seed)
        x_train, y_train = problem.sample(len(train_images.y), seeds.train_data, device=plan.device)
        x, y = test_problem.sample(len(test_images.y), seeds.test_data, device=plan.device)
        views = {"images": problem.only(0), "direction": problem.only(1)}
        if unit["part"] != "both":
            x_train, x = views[unit["part"]](x_train), views[unit["part"]](x)
        network, measured = two_features.fit(plan, (x_train, y_train), (x, y), seed)
        row |= measured
        if network is None or unit["part"] != "both":
            return row
        direction = problem.direction(1).to(plan.device)
        contradicted = two_features.reflected(x, direction)
        points = (x[: parameters["num_points"]], y[: parameters["num_points"]])
        margin, found = two_features.median_margin(plan, network, points, direction)
        row |= {f"test_accuracy_{name}": evaluate(network, (view(x), y)).accuracy for name, view in views.items()}
        row |= {
            # The images beside the noise of D(v) alone: the mean of a sample and its reflection.
            "test_accuracy_without_feature": evaluate(network, ((x + contradicted) / 2, y)).accuracy,
            "follows_images": evaluate(network, (contradicted, y)).accuracy,
            "margin": margin,
            "margin_found": found,
        }
    return row


@functools.lru_cache(maxsize=1)
def _read_images(arguments: tuple[tuple[str, Any], ...]) -> tuple[Labelled, Labelled]:
    """Normalised images with binary labels, to train and to test on: y = 1 for the second half of the classes."""
    images = load_images(**dict(arguments), progress=False)
    positive = range(images.num_classes // 2, images.num_classes)
    train_images, test_images = (
        Labelled(images.normalise(x), binary(y, positive))
        for x, y in ((images.x_train, images.y_train), (images.x_test, images.y_test))
    )
    return train_images, test_images


def _transition(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    directions, eigenvalues = two_features.directions_of(parameters)
    indices = parameters["indices"]
    units: list[Row] = [{"part": "both", "index": index} for index in indices]
    units.append({"part": "images", "index": indices[0]})
    if parameters["alone"]:
        units += [{"part": "direction", "index": index} for index in indices]
    try:
        table = two_features.run_trainings(_train_transition, units, directions, parameters, session)
    finally:
        _read_images.cache_clear()  # large
    parts = np.array(table["part"].tolist())
    table["eigenvalue"] = [eigenvalues[index] for index in table["index"]]
    return {"part": parts} | two_features.numbers(table.drop(columns="part"))


def load_transition(
    architecture: str, *, results_dir: str | os.PathLike[str] | None = None, **data: str
) -> pd.DataFrame:
    """Load the stored trainings on images ⊕ D(v), of all seeds that are stored, with the best data unless named.

    The order is that of ``companion.photographs.DATA``; with the same data the scale ``"paper"`` comes before
    ``"laptop"``.

    Returns
    -------
    pandas.DataFrame
        A row for each training: ``part`` (``"both"``, or what alone was trained on: ``"images"`` or ``"direction"``),
        ``index``, ``seed``, ``eigenvalue``, ``max_lr``, accuracies and losses on what was trained on, and where that is
        both:
        ``test_accuracy_images`` (D(v) switched off), ``test_accuracy_direction`` (images switched off),
        ``test_accuracy_without_feature`` (the noise of D(v) stays, its part along v is zero),
        ``follows_images`` (the share of answers with the image where it contradicts D(v)), ``margin`` (median distance
        to the boundary along v, infinite where most points have none) and ``margin_found``. The record of the first
        seed's run is in ``attrs``.

    Raises
    ------
    NotStoredError
        If none is stored.
    ValueError
        If the architecture is not known, or a file is damaged.
    """
    stored, record = two_features.load_seeds("B3", {"architecture": architecture, **data}, results_dir)
    table, _ = two_features.joined([pd.DataFrame(dict(one)) for one in stored])
    table.attrs |= record
    return table


EXPERIMENTS = (
    Experiment(
        "B3",
        "test accuracy on binary images with a channel of D(v), and on each part, over NADs",
        {"architecture": ("mlp", "lenet", "vgg11", "resnet18"), "data": tuple(DATA)},
        _transition_parameters,
        _transition,
    ),
)
