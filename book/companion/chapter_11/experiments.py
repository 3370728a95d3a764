"""Networks beyond convolutions: what they learn along their NADs, and along waves on and off the lattice of patches."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from torch import Tensor

from companion.stored import Experiment, Scale, Session
from companion.trainings import SIZE, columns, run_trainings
from nadtools.device import derive_seed
from nadtools.directions import fourier_atom
from nadtools.estimation import estimate_nads
from nadtools.nads import NADs
from nadtools.training import TrainConfig

__all__ = ["EXPERIMENTS", "NETWORKS"]


@dataclasses.dataclass(frozen=True)
class _Network:
    """A named architecture and its options; where its spectrum is expected to fall; the side of its patches."""

    architecture: str
    step: int  # dimension of the images that repeat with the patch; of an LSTM two rows
    patch: int | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


NETWORKS: Final = {
    "vit-8": _Network("vit", 64, 8),
    "vit-4": _Network("vit", 16, 4, {"patch_size": 4}),
    "mixer": _Network("mixer", 64, 8),
    "convnext": _Network("convnext", 64, 8),  # patches of 4x4 pixels, then convolutions of 2x2 of them
    "lstm": _Network("lstm", 64),
}


def _setting(scale: Scale, network: str) -> dict[str, Any]:
    smoke = scale == "smoke"
    config = TrainConfig(epochs=1 if smoke else 10, max_lr=2e-3, optimizer="adamw")
    return {
        "architecture": NETWORKS[network].architecture,
        "build_options": dict(NETWORKS[network].options),
        "num_train": 128 if smoke else 4_000,
        "num_test": 128 if smoke else 4_000,
        "config": config.parameters(),
        "epsilon": 1.0,
        "sigma": 1.0,
        "num_seeds": 1 if smoke else 3,
        "loss_level": None,
    }


def _beyond_parameters(scale: Scale, network: str) -> dict[str, Any]:
    step, smoke = NETWORKS[network].step, scale == "smoke"
    before, after = [0, step // 4, step // 2, step - 2], [step + 2, 2 * step, 500, 1000]
    return _setting(scale, network) | {
        "num_networks": 2 if smoke else 50,
        "indices": [0, 1000] if smoke else before + after,
    }


def _estimate(parameters: dict[str, Any], session: Session, purpose: str) -> NADs:
    return estimate_nads(
        parameters["architecture"],
        parameters["num_networks"],
        seed=derive_seed(session.seed, purpose),
        num_jobs=session.num_jobs,
        checkpoint=session.folder / f"{purpose}.npz",
        device=session.device,
        progress=session.progress,
        **parameters["build_options"],
    )


def _beyond(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    """Accuracies along NADs, with the alignments of these directions by other networks than those that chose them."""
    nads, other = (_estimate(parameters, session, purpose) for purpose in ("nads", "another estimate"))
    directions = {index: nads.vectors[index].float() for index in parameters["indices"]}
    table = run_trainings(directions, parameters, session)
    index = table["direction"].to_numpy(dtype=int, copy=True)
    fresh = other.alignments(nads.vectors[index].float()).numpy() / float(other.eigenvalues.mean())
    return columns(table, index=index, alpha=fresh)


def _spaces_parameters(scale: Scale, network: str) -> dict[str, Any]:
    setting = _setting(scale, network)
    chosen = {key: setting[key] for key in ("architecture", "build_options")}
    return chosen | {"num_networks": 2 if scale == "smoke" else 50}


def _spaces(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    """The eigenspaces that one estimate tells apart, and how much of each another estimate has in the same place."""
    nads, other = (_estimate(parameters, session, purpose) for purpose in ("nads", "another estimate"))
    spaces = nads.eigenspaces or ()
    vectors, others = (one.vectors.flatten(1).double() for one in (nads, other))
    fresh = other.alignments(nads.vectors.float()).numpy() / float(other.eigenvalues.mean())
    shared = [vectors[space.start : space.stop] @ others[space.start : space.stop].T for space in spaces]
    return {
        "start": np.array([space.start for space in spaces]),
        "size": np.array([len(space) for space in spaces]),
        "overlap": np.array([float(one.square().sum()) / len(one) for one in shared]),
        "alpha": np.array([fresh[space.start : space.stop].mean() for space in spaces]),
    }


def _lattice_parameters(scale: Scale, network: str) -> dict[str, Any]:
    # Images that repeat with the patch have their energy at multiples of 32 over its side.
    spacing = SIZE[0] // (NETWORKS[network].patch or SIZE[0])
    on = [(spacing, 0), (0, spacing), (spacing, spacing), (-spacing, spacing)]
    off = [(i - 3, j + 1) for i, j in on]
    return _setting(scale, network) | {"frequencies": (on[:1] + off[:1]) if scale == "smoke" else on + off}


def _lattice(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    directions: dict[Any, Tensor] = {
        (i, j): fourier_atom(SIZE, (i, j), math.pi / 2) for i, j in parameters["frequencies"]
    }
    table = run_trainings(directions, parameters, session)
    i, j = np.array(table["direction"].tolist()).T
    return columns(table, frequency_i=i, frequency_j=j)


EXPERIMENTS = (
    Experiment(
        "beyond",
        "test accuracy on D(v) over NADs, of networks beyond convolutions",
        {"network": tuple(NETWORKS)},
        _beyond_parameters,
        _beyond,
    ),
    Experiment(
        "spaces",
        "eigenspaces of networks beyond convolutions, compared with those of an independent estimate",
        {"network": tuple(NETWORKS)},
        _spaces_parameters,
        _spaces,
    ),
    Experiment(
        "lattice",
        "test accuracy on D(v) over waves on and off the lattice of patches",
        {"network": tuple(name for name, one in NETWORKS.items() if one.patch)},
        _lattice_parameters,
        _lattice,
    ),
)
