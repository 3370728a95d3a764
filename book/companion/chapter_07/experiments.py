"""Networks beyond convolutions: what they learn along their NADs, on waves on and off the lattice of patches, with two
features, and on photographs with a carrier."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from companion import photographs, two_features
from companion.stored import Experiment, Scale, Session
from companion.tables import Row, timed
from companion.trainings import SIZE, columns, run_trainings
from nadtools.architectures import build
from nadtools.device import derive_seed
from nadtools.directions import fourier_atom
from nadtools.distributions import LinearlySeparable, concatenate
from nadtools.estimation import Estimator, EvaluationPoint, estimate_nads
from nadtools.nads import NADs
from nadtools.sweeps import unit_seeds
from nadtools.training import TrainConfig, evaluate

__all__ = ["EXPERIMENTS", "NETWORKS"]


@dataclasses.dataclass(frozen=True)
class _Network:
    """A named architecture and its options, and where its spectrum is expected to fall."""

    architecture: str
    step: int  # dimension of the images that repeat with the patch; of an LSTM two rows
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    frozen: str | None = None  # what is never trained: weights with this in their names


NETWORKS: Final = {
    "vit-8": _Network("vit", 64),
    "vit-4": _Network("vit", 16, {"patch_size": 4}),
    "mixer": _Network("mixer", 64),
    "convnext": _Network("convnext", 64),  # patches of 4x4 pixels, then convolutions of 2x2 of them
    "lstm": _Network("lstm", 64),
    "convnext-asleep": _Network("convnext", 64, frozen="layer_scale"),
}


def _setting(scale: Scale, network: str) -> dict[str, Any]:
    smoke = scale == "smoke"
    config = TrainConfig(epochs=1 if smoke else 10, max_lr=2e-3, optimizer="adamw")
    frozen = NETWORKS[network].frozen
    return ({"frozen": frozen} if frozen else {}) | {
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


def _estimate(
    parameters: dict[str, Any], session: Session, purpose: str,
    estimator: Estimator = "secant", point: EvaluationPoint = "normal",
) -> NADs:  # fmt: skip
    return estimate_nads(
        parameters["architecture"],
        parameters["num_networks"],
        estimator,
        evaluation_point=point,
        seed=derive_seed(session.seed, purpose),
        num_jobs=session.num_jobs,
        checkpoint=session.folder / f"{purpose}.npz",
        device=session.device,
        progress=session.progress,
        **parameters["build_options"],
    )


def _frozen(architecture: str, what: str) -> nn.Module:
    network = build(architecture, seed=int(torch.randint(2**31, ())))
    for name, weight in network.named_parameters():
        weight.requires_grad_(what not in name)
    return network


def _beyond(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    """Accuracies along NADs, with the alignments of these directions by other networks than those that chose them."""
    nads, other = (_estimate(parameters, session, purpose) for purpose in ("nads", "another estimate"))
    directions = {index: nads.vectors[index].float() for index in parameters["indices"]}
    frozen = parameters.get("frozen")
    factory = functools.partial(_frozen, parameters["architecture"], frozen) if frozen else None
    table = run_trainings(directions, parameters, session, factory)
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


def _positions_parameters(scale: Scale) -> dict[str, Any]:
    smoke = scale == "smoke"
    return _setting(scale, "vit-8") | {
        "position_embedding": [0.0, 1.0] if smoke else [0.0, 0.02, 1.0],
        "frequencies": [(4, 0), (1, 0)],
        "num_networks": 2 if smoke else 50,
    }


def _positions(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    """Accuracies of vision transformers that know their positions more or less well, with two kinds of alignment."""
    waves: dict[Any, Tensor] = {(i, j): fourier_atom(SIZE, (i, j), math.pi / 2) for i, j in parameters["frequencies"]}
    asked: tuple[tuple[Estimator, EvaluationPoint], ...] = (("secant", "normal"), ("gradient", "zero"))
    tables = []
    for deviation in parameters["position_embedding"]:
        options = parameters["build_options"] | {"position_embedding": deviation}
        folder = session.folder / f"positions-{deviation}"
        folder.mkdir(exist_ok=True)
        where = dataclasses.replace(session, folder=folder)
        given = parameters | {"build_options": options}
        table = run_trainings(waves, given, where)
        for estimator, point in asked:
            nads = _estimate(given, where, estimator, estimator, point)
            relative = {wave: float(nads.alignment(v)) / float(nads.eigenvalues.mean()) for wave, v in waves.items()}
            table[f"alpha_{estimator}"] = [relative[wave] for wave in table["direction"]]
        tables.append(table.assign(position_embedding=deviation))
    table = pd.concat(tables, ignore_index=True)
    i, j = np.array(table["direction"].tolist()).T
    return columns(table, frequency_i=i, frequency_j=j)


def _two_parameters(scale: Scale, network: str) -> dict[str, Any]:
    step = NETWORKS[network].step
    pairs = [(0, step // 2), (0, step + 2), (step + 2, 0), (step + 2, 1000)]
    # The first feature is twice as large as the second, as in chapter 10.
    return _setting(scale, network) | {
        "num_networks": 2 if scale == "smoke" else 50,
        "pairs": pairs[1:2] if scale == "smoke" else pairs,
        "epsilons": [1.0, 0.5],
        "repetitions": 0,
    }


def _train_two(plan: two_features.Plan, unit: Mapping[str, Any]) -> Row:
    """One network with two features, then with either alone, and where they contradict each other."""
    parameters, seeds = plan.parameters, unit_seeds(unit["seed"])
    row: Row = dict.fromkeys(("test_accuracy_first", "test_accuracy_second", "follows_first"))
    with timed(row, plan.device):
        parts = zip(("first", "second"), parameters["epsilons"], strict=True)
        problem = concatenate(
            *(LinearlySeparable(plan.directions[unit[part]], epsilon, parameters["sigma"]) for part, epsilon in parts)
        )
        train_data = problem.sample(parameters["num_train"], seeds.train_data, device=plan.device)
        x, y = problem.sample(parameters["num_test"], seeds.test_data, device=plan.device)
        network, measured = two_features.fit(plan, train_data, (x, y), unit["seed"])
        row |= measured
        if network is not None:
            turned = two_features.reflected(x, problem.direction(1).to(plan.device))
            row |= {
                "test_accuracy_first": evaluate(network, (problem.only(0)(x), y)).accuracy,
                "test_accuracy_second": evaluate(network, (problem.only(1)(x), y)).accuracy,
                "follows_first": evaluate(network, (turned, y)).accuracy,
            }
    return row


def _two(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    vectors = _estimate(parameters, session, "nads").vectors.float()
    directions = {index: vectors[index] for pair in parameters["pairs"] for index in pair}
    units: list[Row] = [{"first": first, "second": second} for first, second in parameters["pairs"]]
    return two_features.numbers(two_features.run_trainings(_train_two, units, directions, parameters, session))


def _poisoned_parameters(scale: Scale, network: str) -> dict[str, Any]:
    step, setting = NETWORKS[network].step, _setting(scale, network)
    config = TrainConfig(epochs=1 if scale == "smoke" else 20, max_lr=2e-3, optimizer="adamw")
    return {key: setting[key] for key in ("architecture", "build_options", "num_seeds")} | {
        "images": {"source": "patches"} | ({"per_class": 8, "test_per_class": 8} if scale == "smoke" else {}),
        "config": config.parameters(),
        "num_networks": 2 if scale == "smoke" else 50,
        "epsilon": 0.05,
        "indices": [0] if scale == "smoke" else [0, step // 2, step + 2, 300, 1000],
    }


def _poisoned(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    nads = _estimate(parameters, session, "nads").vectors
    units: list[Row] = [{"index": None, "epsilon": 0.0, "replace": "none"}]
    units += [{"index": index, "epsilon": parameters["epsilon"], "replace": "own"} for index in parameters["indices"]]
    table = photographs.run_trainings(photographs.train_poisoned, units, parameters, session, "poisoned", nads)
    return photographs.columns(table)


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
        "positions",
        "test accuracy of vision transformers on waves on and off the lattice, against the size of position embeddings",
        {},
        _positions_parameters,
        _positions,
    ),
    Experiment(
        "two",
        "which of two features networks beyond convolutions use",
        {"network": tuple(NETWORKS)},
        _two_parameters,
        _two,
    ),
    Experiment(
        "poisoned",
        "accuracy of networks beyond convolutions on clean photographs after training with a carrier",
        {"network": tuple(NETWORKS)},
        _poisoned_parameters,
        _poisoned,
    ),
)
