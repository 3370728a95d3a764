"""Trainings on two features that both tell the classes apart: what the experiments of chapters 10 and 11 share.

The hyperparameters are those of the paper's appendix A. Where it is silent the choice is ours. The gradient norm is
clipped at 0.5, as in the code of *Neural Anisotropy Directions*: without it LeNet, at the paper's learning rate, falls
back to chance on rough pairs. Even so a training can stay at chance, while the paper's networks all fit their training
set: it is then repeated with half the learning rate, and with half of that, and the table says so. Images are
normalised, so that a part that is switched off shows the mean colour. And each network is also asked about
contradictions, in which one part says the one class and the other part the other.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from companion.atlas import load_atlas
from companion.evidence import Measured
from companion.stored import Scale, Session, largest, load, read_record, result_path
from companion.tables import Row
from nadtools import architectures
from nadtools.boundaries import margins
from nadtools.device import DerivedSeed
from nadtools.directions import random_basis
from nadtools.sweeps import unit_seeds
from nadtools.training import Data, TrainConfig, train
from nadtools.units import run_units

__all__ = [
    "ARCHITECTURES",
    "DEEP",
    "Plan",
    "config",
    "directions_of",
    "fit",
    "fits_every_run",
    "joined",
    "load_seeds",
    "means_over_seeds",
    "median_margin",
    "numbers",
    "reflected",
    "run_trainings",
    "setting",
    "slower",
]

_SIZE = (32, 32)
DEEP = ("vgg11", "resnet18", "densenet121")
ARCHITECTURES = ("logreg", "mlp", "lenet", *DEEP)
# Logistic regression and the MLP have no NADs to speak of: they get LeNet's.
_NADS_OF: Final = {"logreg": "lenet", "mlp": "lenet"}
_MOST_SEEDS = 10  # that loaders look for
_AT_CHANCE = 0.6  # training loss in nats; guessing has ln 2 = 0.693


def config(scale: Scale, architecture: str, **changes: Any) -> dict[str, Any]:
    """A training's settings, as a result's record holds them. Deep networks of full width compute in bfloat16."""
    if scale == "paper" and architecture in DEEP:
        changes["precision"] = "bfloat16"
    return TrainConfig(schedule="triangular", momentum=0.9, clip_norm=0.5, **changes).parameters()


def setting(scale: Scale, architecture: str) -> dict[str, Any]:
    """What both experiments have in common."""
    deep = architecture in DEEP
    width = 1.0 if not deep or scale == "paper" else 0.25 if scale == "laptop" else 0.125
    points = 4 if scale == "smoke" else 32 if deep else 64
    return {
        "architecture": architecture,
        "build_options": {"width": width} if width != 1.0 else {},
        "nads_of": _NADS_OF.get(architecture, architecture),
        "num_points": points,
        # Single precision is ten times faster for deep networks on a CPU; the angle's rounding is far below its error.
        "precision": "single" if deep else "double",
        "num_seeds": 3 if scale == "paper" and not deep else 1,
        # With half the learning rate each, of a training that stays at chance.
        "repetitions": 0 if scale == "smoke" else 2,
    }


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that the trainings of a run have in common. The directions are by index."""

    parameters: Mapping[str, Any]
    directions: Mapping[int, Tensor]
    device: torch.device

    @property
    def dtype(self) -> torch.dtype:
        """To ask a network about its boundary."""
        return torch.float64 if self.parameters["precision"] == "double" else torch.float32


def fit(plan: Plan, train_data: Data, test_data: Data, seed: int) -> tuple[nn.Module | None, Row]:
    """Train a network, if need be again with a smaller learning rate; None where the last training diverged."""
    seeds, shape = unit_seeds(seed), train_data[0].shape[1:]
    config = TrainConfig(**plan.parameters["config"], seed=seeds.order)
    names = ("train_accuracy", "test_accuracy", "train_loss", "test_loss")
    row: Row = {}
    trained = None
    for repetition in range(plan.parameters["repetitions"] + 1):
        network = architectures.build(
            plan.parameters["architecture"], shape[0], 2,
            image_size=(shape[1], shape[2]), seed=seeds.initialisation, **plan.parameters["build_options"],
        )  # fmt: skip
        max_lr = config.max_lr / 2**repetition
        try:
            result = train(
                network, train_data, test_data, dataclasses.replace(config, max_lr=max_lr),
                evaluate_every=0, device=plan.device, progress=False,
            )  # fmt: skip
        except FloatingPointError:
            trained, measured = None, dict.fromkeys(names)
        else:
            trained, measured = network, {name: getattr(result, name) for name in names}
        row |= {**measured, "max_lr": max_lr}
        if trained is not None and result.train_loss <= _AT_CHANCE:
            break
    return trained, row


def reflected(x: Tensor, direction: Tensor) -> Tensor:
    """The same samples with the feature along a direction turned round: it says the other class, the rest stays."""
    unit = direction.to(x).flatten()
    return x - 2 * (x.flatten(1) @ unit).view(-1, 1, 1, 1) * unit.view(direction.shape)


def median_margin(plan: Plan, network: nn.Module, data: Data, direction: Tensor) -> tuple[float, float]:
    """The median margin along a direction, infinite where most points have none, and the share of points with one."""
    x, y = data
    distances = margins(network, x, direction, dtype=plan.dtype)
    signed = torch.where(distances.isfinite(), -(2 * y.cpu() - 1) * distances, torch.inf)
    return float(np.median(signed.numpy())), float(signed.isfinite().double().mean())


def directions_of(parameters: Mapping[str, Any]) -> tuple[dict[int, Tensor], dict[int, float]]:
    """Directions and eigenvalues by index; a random basis has none."""
    nads = load_atlas(parameters["nads_of"])
    if parameters.get("basis") == "random":
        basis = random_basis(_SIZE, DerivedSeed(0))  # the stream that the stored results were made with
        return {index: basis[index] for index in parameters["indices"]}, {}
    vectors, eigenvalues = nads.vectors.float(), nads.eigenvalues
    return (
        {index: vectors[index] for index in parameters["indices"]},
        {index: float(eigenvalues[index]) for index in parameters["indices"]},
    )


def run_trainings(
    function: Any, units: Sequence[Row], directions: Mapping[int, Tensor], parameters: dict[str, Any], session: Session
) -> pd.DataFrame:
    """All units for the first seed, then for the next."""
    seeds = [session.seed + number for number in range(parameters["num_seeds"])]
    digest = hashlib.sha256(b"".join(v.half().numpy().tobytes() for v in directions.values())).hexdigest()
    table = run_units(
        functools.partial(function, Plan(parameters, directions, session.device)),
        [{**unit, "seed": seed} for seed in seeds for unit in units],
        journal=session.folder / "trainings.sqlite",
        parameters=parameters | {"kind": function.__name__, "directions": digest},
        num_jobs=session.num_jobs,
        progress=session.progress,
        description=f"{parameters['architecture']}, two features",
    )
    return table.drop(columns="device")


def numbers(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """The table as arrays by name; missing numbers are NaN."""
    return {str(name): table[name].to_numpy(float, na_value=np.nan) for name in table}


def load_seeds(
    name: str, selectors: dict[str, str], results_dir: str | os.PathLike[str] | None
) -> tuple[list[Any], dict[str, Any]]:
    """The largest results of all stored runs that differ in nothing but the seed, and the record of the first."""
    best = largest(name, seeds=range(_MOST_SEEDS), results_dir=results_dir, **selectors)
    where: dict[str, Any] = {"scale": best.scale, "results_dir": results_dir, **best.selectors}
    stored = [load(name, seed=seed, **where) for seed in best.seeds]
    records = [read_record(result_path(name, seed=seed, **where)) for seed in best.seeds]
    alike = [k for k, record in enumerate(records) if record["parameters"] == records[0]["parameters"]]
    return [stored[k] for k in alike], records[0]


def joined(tables: list[pd.DataFrame]) -> tuple[pd.DataFrame, np.ndarray]:
    """One table, in which a training that two runs share stands once; and which rows these are."""
    names = [name for name in ("part", "index", "first", "second", "seed") if name in tables[0]]
    table = pd.concat(tables, ignore_index=True)
    kept = np.flatnonzero(~table.duplicated(names).to_numpy())
    return table.iloc[kept].reset_index(drop=True), kept


def means_over_seeds(table: pd.DataFrame, by: list[str], names: list[str]) -> pd.DataFrame:
    """Means over seeds; NaN where one of them diverged."""
    complete = table.groupby(by)[names].count().eq(table.groupby(by).size(), axis=0)
    return table.groupby(by)[names].mean().where(complete)


def fits_every_run(table: pd.DataFrame) -> Measured:
    """Whether the training loss is at most 0.01 in every run."""
    losses = table["train_loss"].to_numpy(float)
    count = int((losses <= 0.01).sum())  # a diverged run has no loss
    return Measured(f"in {count} of {len(losses)}", (count == len(losses),))


def slower(table: pd.DataFrame) -> str:
    """How many trainings had to be repeated with a smaller learning rate than the paper's."""
    count = int((table["max_lr"] < table.attrs["parameters"]["config"]["max_lr"]).sum())
    return f"; {count} of {len(table)} trainings with a smaller learning rate" if count else ""
