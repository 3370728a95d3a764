"""Trainings on D(v) over NADs: figure 6 of *Neural Anisotropy Directions*."""

from __future__ import annotations

from typing import Any

import numpy as np

from companion import published
from companion.atlas import load_atlas
from companion.stored import Experiment, Scale, Session
from companion.trainings import ARCHITECTURES, SMALL, columns, run_trainings, setting

__all__ = ["EXPERIMENTS"]


def _indices(scale: Scale, architecture: str) -> list[int]:
    """Indices of NADs, spaced geometrically and linearly; from 10 on in tens, as in the authors' table."""
    if scale == "smoke":
        return [0, 10, 1000]
    if scale == "laptop" and architecture not in SMALL:
        return [0, 10, 30, 100, 200, 400, 700, 1000]
    early = [0, 1, 2, 5]
    geometric = (10 * np.round(np.geomspace(1, 102, 20))).astype(int).tolist()
    linear = list(range(50, 1021, 50))
    return sorted({*early, *geometric, *linear, 1020})


def _nads_parameters(scale: Scale, architecture: str, nads: str) -> dict[str, Any]:
    # Logistic regression has no NADs to speak of: it is trained on LeNet's.
    source = {"logreg": "lenet", "mlp": "lenet"}.get(architecture, architecture)
    num_seeds = 3 if scale == "paper" or (scale == "laptop" and architecture in SMALL and nads == "ours") else 1
    return setting(scale, architecture) | {
        "sigma": 1.0,
        "nads": nads,
        "nads_of": source,
        "indices": _indices(scale, architecture),
        "num_seeds": num_seeds,
    }


def _nads(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    load = load_atlas if parameters["nads"] == "ours" else published.load_nads
    nads = load(parameters["nads_of"])
    directions = {index: nads.vectors[index].float() for index in parameters["indices"]}
    table = run_trainings(directions, parameters, session)
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
)
