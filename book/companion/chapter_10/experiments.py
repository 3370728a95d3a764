r"""Trainings on two directions, :math:`D(v_1) \oplus D(v_2)`, over pairs of NADs.

B2 asks of each network the accuracy with both channels and with either alone, the angle of its decision boundary, its
margins, and a cross-section: figures 2 and 4 to 8 of *A neural anisotropic view of underspecification*.
"""

from __future__ import annotations

import base64
import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from companion.stored import Experiment, Scale, Session
from companion.tables import Row, timed
from companion.two_features import (
    ARCHITECTURES,
    DEEP,
    Plan,
    config,
    directions_of,
    fit,
    joined,
    load_seeds,
    median_margin,
    numbers,
    reflected,
    run_trainings,
    setting,
)
from nadtools.boundaries import boundary_angle, cross_section
from nadtools.distributions import Concatenated, LinearlySeparable, concatenate
from nadtools.sweeps import unit_seeds
from nadtools.training import evaluate

__all__ = ["EXPERIMENTS", "Pairs", "load_pairs"]

_BASES = ("nads", "random")


def _pairs_parameters(scale: Scale, architecture: str, basis: str) -> dict[str, Any]:
    deep = architecture in DEEP
    samples, epochs = 10_000, 50
    indices = [0, 10, 20, 50, 100, 200, 300, 500, 700, 1000]
    if deep:
        indices, epochs = [0, 100, 1000], 30 if scale == "paper" else 10
    elif scale == "laptop":
        indices = [0, 20, 100, 300, 1000]
    if scale == "smoke":
        indices, samples, epochs = [0, 1000], 128, 1
    return setting(scale, architecture) | {
        "basis": basis,
        "indices": indices,
        "epsilons": [1.0, 0.5],
        "sigma": 1.0,
        "num_train": samples,
        "num_test": samples,
        "config": config(
            scale, architecture, epochs=epochs, max_lr=0.1 if deep else 0.2, weight_decay=1e-5 if deep else 0.0
        ),
        "extent": 2.0,
        "resolution": 5 if scale == "smoke" else 21,
    }


def _train_pair(plan: Plan, unit: Mapping[str, Any]) -> Row:
    """One network on D(v₁)⊕D(v₂), and all that is asked of it."""
    row: Row = dict.fromkeys(
        (
            "test_accuracy_first", "test_accuracy_second", "follows_first", "angle_first", "angle_second", "normal",
            "angle_stderr", "resultant", "radius", "crossed", "margin_first", "margin_second",
            "margin_first_found", "margin_second_found", "section", "section_point",
        )
    )  # fmt: skip
    parameters, seed = plan.parameters, unit["seed"]
    with timed(row, plan.device):
        problem = _pair_problem(parameters, *(plan.directions[unit[part]] for part in ("first", "second")))
        seeds = unit_seeds(seed)
        train_data = problem.sample(parameters["num_train"], seeds.train_data, device=plan.device)
        x, y = problem.sample(parameters["num_test"], seeds.test_data, device=plan.device)
        network, measured = fit(plan, train_data, (x, y), seed)
        row |= measured
        if network is None:
            return row
        first, second = (problem.direction(part).to(plan.device) for part in (0, 1))
        row |= {
            "test_accuracy_first": evaluate(network, (problem.only(0)(x), y)).accuracy,
            "test_accuracy_second": evaluate(network, (problem.only(1)(x), y)).accuracy,
            "follows_first": evaluate(network, (reflected(x, second), y)).accuracy,
        }
        points = (x[: parameters["num_points"]], y[: parameters["num_points"]])
        angle = boundary_angle(network, points[0], first, second, dtype=plan.dtype)
        row |= {
            "angle_first": angle.to_first,
            "angle_second": angle.to_second,
            "normal": angle.normal,
            "angle_stderr": angle.stderr,
            "resultant": angle.resultant,
            "radius": angle.radius,
            "crossed": angle.num_crossed / angle.num_points,
        }
        for name, direction in (("first", first), ("second", second)):
            row[f"margin_{name}"], row[f"margin_{name}_found"] = median_margin(plan, network, points, direction)
        for name, chosen in (("section", points[0]), ("section_point", points[0][0])):
            drawn = cross_section(
                network, chosen, first, second, parameters["extent"], parameters["resolution"], progress=False
            )
            row[name] = base64.b64encode(drawn.values.numpy().astype("<f4").tobytes()).decode()
    return row


def _pair_problem(parameters: Mapping[str, Any], first: Tensor, second: Tensor) -> Concatenated:
    one, other = parameters["epsilons"]
    sigma = parameters["sigma"]
    return concatenate(LinearlySeparable(first, one, sigma), LinearlySeparable(second, other, sigma))


def _pairs(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    directions, eigenvalues = directions_of(parameters)
    units = [{"first": i, "second": j} for i in parameters["indices"] for j in parameters["indices"]]
    table = run_trainings(_train_pair, units, directions, parameters, session)
    resolution, names = parameters["resolution"], ["section", "section_point"]
    sections = {f"{name}s": np.stack([_decoded(text, resolution) for text in table[name]]) for name in names}
    for part in ("first", "second"):
        table[f"eigenvalue_{part}"] = [eigenvalues.get(index, np.nan) for index in table[part]]
    axis = np.linspace(-parameters["extent"], parameters["extent"], resolution)
    return numbers(table.drop(columns=names)) | sections | {"coordinates": axis}


def _decoded(text: str | None, resolution: int) -> np.ndarray:
    if text is None:
        return np.full((resolution, resolution), np.nan, np.float32)
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(resolution, resolution).astype(np.float32)


@dataclasses.dataclass(frozen=True, eq=False)
class Pairs:
    """Stored trainings on pairs of directions.

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each training, ordered by seed: ``first``, ``second`` (indices of v₁ and v₂), ``seed``, accuracies
        (``test_accuracy`` with both channels, ``test_accuracy_first`` with the second one switched off,
        ``test_accuracy_second`` with the first one switched off), ``follows_first`` (the share of answers with the
        first channel where the two contradict each other), losses, ``max_lr`` (smaller than the paper's where
        the training had to be repeated), angles in radians (see :class:`nadtools.boundaries.BoundaryAngle`) and median
        margins (infinite where most points have none). NaN where a training diverged. The record of the first seed's
        run is in ``attrs``.
    sections, section_points : array
        Shape (rows, r, r): the decision function in the plane of v₁ and v₂, averaged over test points, and through the
        first test point, as :class:`nadtools.boundaries.CrossSection` holds it.
    coordinates : array
        Shape (r,), along either direction.
    """

    table: pd.DataFrame
    sections: np.ndarray
    section_points: np.ndarray
    coordinates: np.ndarray


def load_pairs(architecture: str, basis: str = "nads", *, results_dir: str | os.PathLike[str] | None = None) -> Pairs:
    """Load the stored trainings on pairs, of all seeds that are stored; ``"paper"`` comes before ``"laptop"``.

    Parameters
    ----------
    architecture : str
    basis : {"nads", "random"}
        What the indices count: the architecture's NADs (LeNet's for logistic regression and the MLP), or the vectors of
        one random orthonormal basis.
    results_dir : path, optional

    Raises
    ------
    NotStoredError
        If none is stored.
    ValueError
        If the architecture or the basis is not known, or a file is damaged.
    """
    stored, record = load_seeds("B2", {"architecture": architecture, "basis": basis}, results_dir)
    apart = ("sections", "section_points")
    tables = [pd.DataFrame({k: v for k, v in one.items() if v.ndim == 1 and k != "coordinates"}) for one in stored]
    table, kept = joined(tables)
    table.attrs |= record
    sections, points = (np.concatenate([one[name] for one in stored])[kept] for name in apart)
    return Pairs(table, sections, points, stored[0]["coordinates"])


EXPERIMENTS = (
    Experiment(
        "B2",
        "test accuracy and decision boundary on two channels, D(v1) and D(v2), over pairs of directions",
        {"architecture": ARCHITECTURES, "basis": _BASES},
        _pairs_parameters,
        _pairs,
    ),
)
