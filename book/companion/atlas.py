"""The atlas of NADs, and the coverage of its intervals."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy import special

from companion.stored import Experiment, Scale, Session, largest, load
from nadtools import architectures
from nadtools.device import DerivedSeed, derive_seed
from nadtools.estimation import estimate_nads
from nadtools.nads import NADs
from nadtools.progress import progress_bar

__all__ = ["EXPERIMENTS", "load_atlas"]

_ATLAS_NETWORKS: dict[Scale, dict[str, int]] = {
    "smoke": {"lenet": 2, "vgg11": 2, "resnet18": 2, "densenet121": 2},
    "laptop": {"lenet": 100, "vgg11": 20, "resnet18": 10, "densenet121": 5},
    "paper": {"lenet": 1000, "vgg11": 200, "resnet18": 100, "densenet121": 50},
}


def _atlas_parameters(scale: Scale, architecture: str, estimator: str) -> dict[str, Any]:
    # A smoke run checks the machinery: narrow networks are enough where the true ones take minutes.
    width = 0.25 if scale == "smoke" and architecture != "lenet" else 1.0
    image_size = (32, 32)
    step: dict[str, Any] = {"scale": 100.0} if estimator == "secant" else {}
    return {
        "architecture": architecture,
        "num_networks": _ATLAS_NETWORKS[scale][architecture],
        "estimator": estimator,
        **step,
        "evaluation_point": "normal",
        "average_output_layer": True,
        "symmetries": architectures.symmetry_group(architecture, image_size),
        "in_channels": 1,
        "image_size": image_size,
        "width": width,
    }


def _atlas(parameters: dict[str, Any], session: Session) -> NADs:
    return estimate_nads(
        **parameters,
        # The seed itself: the trainings along these NADs were made when an estimate had no stream of its own. (So its
        # first network begins with the weights of the trainings at the same seed.)
        seed=DerivedSeed(session.seed),
        num_jobs=session.num_jobs,
        checkpoint=session.folder / "moments.npz",
        device=session.device,
        progress=session.progress,
    )


def _coverage_parameters(scale: Scale) -> dict[str, Any]:
    repetitions, reference = {"smoke": (3, 20), "laptop": (50, 1500), "paper": (500, 20_000)}[scale]
    return {
        "architecture": "lenet",
        "width": 0.5,
        "estimator": "secant",
        "evaluation_point": "normal",
        "num_networks": 20,
        "repetitions": repetitions,
        "reference_networks": reference,
        "level": 0.95,
        # Groups of eigenvalues: exactly equal ones count as one, and neighbours differ by at least this share.
        "separation": 0.02,
        "groups": 20,
    }


def _coverage(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    """How often the intervals of repeated estimates contain the eigenvalues of a much larger one."""
    chosen = {key: parameters[key] for key in ("architecture", "width", "estimator", "evaluation_point")}
    options = {**chosen, "num_jobs": session.num_jobs, "device": session.device, "progress": False}
    reference = estimate_nads(
        num_networks=parameters["reference_networks"],
        seed=derive_seed(session.seed, 0),
        checkpoint=session.folder / "reference.npz",
        **options,
    ).eigenvalues.numpy()
    starts = np.flatnonzero(np.diff(reference, prepend=np.inf))
    values = reference[starts]
    ratios = np.concatenate([[np.inf], values[:-1] / np.maximum(values[1:], 1e-300), [np.inf]]) - 1
    separated = starts[np.minimum(ratios[:-1], ratios[1:]) > parameters["separation"]][: parameters["groups"]]

    estimates, errors = [], []
    for repetition in progress_bar(range(parameters["repetitions"]), session.progress, desc="repetitions"):
        nads = estimate_nads(
            num_networks=parameters["num_networks"], seed=derive_seed(session.seed, 1, repetition), **options
        )
        estimates.append(nads.eigenvalues.numpy()[separated])
        errors.append(nads.eigenvalue_stderr.numpy()[separated])
    # Ten blocks of networks leave nine degrees of freedom.
    quantile = special.stdtrit(9, (1 + parameters["level"]) / 2)
    inside = np.abs(np.array(estimates) - reference[separated]) <= quantile * np.array(errors)
    return {
        "index": separated,
        "coverage": inside.mean(0),
        "reference": reference[separated],
        "mean_estimate": np.mean(estimates, axis=0),
        "spread": np.std(estimates, axis=0, ddof=1),
        "mean_standard_error": np.mean(errors, axis=0),
    }


EXPERIMENTS = (
    Experiment(
        "atlas",
        "NADs of the convolutional architectures, with their convergence",
        {"architecture": tuple(_ATLAS_NETWORKS["laptop"]), "estimator": ("secant", "gradient")},
        _atlas_parameters,
        _atlas,
    ),
    Experiment(
        "coverage",
        "how often the eigenvalues' 95 % intervals contain the true ones, for LeNet at half width",
        {},
        _coverage_parameters,
        _coverage,
    ),
)


def load_atlas(
    architecture: str,
    estimator: str = "secant",
    scale: Scale | None = None,
    *,
    results_dir: str | os.PathLike[str] | None = None,
) -> NADs:
    """Load stored NADs: of the largest scale there is, or of the one that is named.

    Smoke results, of two narrow networks, are read only when named.

    Raises
    ------
    NotStoredError
        If none is stored.
    ValueError
        If there is no such architecture, estimator or scale, or the file is damaged.
    """
    where: dict[str, Any] = {"results_dir": results_dir, "architecture": architecture, "estimator": estimator}
    stored = load("atlas", scale=scale or largest("atlas", **where).scale, **where)
    assert isinstance(stored, NADs)
    return stored
