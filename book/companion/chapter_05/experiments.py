"""Trainings on D(v) over NADs: figure 6 of *Neural Anisotropy Directions*, and the same under another optimiser."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import numpy as np
import pandas as pd

from companion import published
from companion.atlas import load_atlas
from companion.stored import Experiment, Scale, Session
from companion.trainings import ARCHITECTURES, SMALL, columns, run_trainings, setting
from companion.two_features import config

__all__ = ["EXPERIMENTS"]


def _indices(scale: Scale, architecture: str) -> list[int]:
    """Indices of NADs, spaced geometrically and linearly; from 10 on in tens, as in the authors' table."""
    if scale == "smoke":
        return [0, 10, 1000]
    if architecture == "densenet121" and scale == "paper":
        return [10, 100, 1000]
    if architecture not in SMALL:
        return [0, 10, 30, 100, 200, 400, 700, 1000]
    early = [0, 1, 2, 5]
    geometric = (10 * np.round(np.geomspace(1, 102, 20))).astype(int).tolist()
    linear = list(range(50, 1021, 50))
    return sorted({*early, *geometric, *linear, 1020})


def _nads_parameters(scale: Scale, architecture: str, nads: str) -> dict[str, Any]:
    # Logistic regression has no NADs to speak of: it is trained on LeNet's.
    source = {"logreg": "lenet", "mlp": "lenet"}.get(architecture, architecture)
    parameters = setting(scale, architecture)
    if scale == "laptop" and architecture in SMALL and nads == "ours":
        parameters["num_seeds"] = 3
    return parameters | {
        "sigma": 1.0,
        "nads": nads,
        "nads_of": source,
        "indices": _indices(scale, architecture),
    }


def _nads(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    if parameters["nads"] == "ours":
        nads = load_atlas(parameters["nads_of"])
    else:
        nads = published.load_nads(parameters["nads_of"], complete=True)
    directions = {index: nads.vectors[index].float() for index in parameters["indices"]}
    table = run_trainings(directions, parameters, session)
    index = table["direction"].to_numpy(dtype=int)
    return columns(table, index=index) | {"eigenvalue": nads.eigenvalues.numpy()[index]}


_SIGMAS: Final = (1.0, 3.0)


def _optimizer_parameters(scale: Scale, architecture: str, schedule: str) -> dict[str, Any]:
    parameters = setting(scale, architecture)
    small, smoke = architecture in SMALL, scale == "smoke"
    if scale == "laptop" and architecture == "densenet121":
        parameters["build_options"] = {"width": 0.125}
    # As chapter 10's trainings, or as those of chapters 1 and 5 at their full length. The deep networks of chapter 10
    # differ from LeNet in peak and weight decay, as the paper says.
    training = parameters["config"] | {"epochs": 1 if smoke else 20}
    if schedule == "momentum":
        training = config(
            scale,
            architecture,
            epochs=1 if smoke else 50 if small else 30,
            max_lr=0.2 if small else 0.1,
            weight_decay=0.0 if small else 1e-5,
        )
    if not (small or smoke):
        training |= {"precision": "bfloat16"}
    return parameters | {
        "config": training,
        "sigmas": list(_SIGMAS),
        "nads_of": architecture,
        "indices": [0, 1000] if smoke else [0, 10, 100, 300, 1000],
        "num_seeds": 3 if small and not smoke else 1,
    }


def _optimizer(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    nads = load_atlas(parameters["nads_of"])
    directions = {index: nads.vectors[index].float() for index in parameters["indices"]}
    tables = []
    for sigma in parameters["sigmas"]:
        folder = session.folder / f"sigma-{sigma:g}"
        folder.mkdir(exist_ok=True)
        one = dataclasses.replace(session, folder=folder)
        tables.append(run_trainings(directions, parameters | {"sigma": sigma}, one).assign(sigma=sigma))
    table = pd.concat(tables, ignore_index=True)
    index = table["direction"].to_numpy(dtype=int)
    return columns(table, index=index) | {"eigenvalue": nads.eigenvalues.numpy()[index]}


EXPERIMENTS = (
    Experiment(
        "A6",
        "test accuracy on D(v) over NADs, ours or the authors'",
        {"architecture": ARCHITECTURES, "nads": ("ours", "published")},
        _nads_parameters,
        _nads,
    ),
    Experiment(
        "optimizer",
        "test accuracy on D(v) over NADs under the schedules of chapters 5 and 10",
        {"architecture": ("lenet", "vgg11", "resnet18", "densenet121"), "schedule": ("clipped", "momentum")},
        _optimizer_parameters,
        _optimizer,
    ),
)
