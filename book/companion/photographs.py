"""Trainings on photographs: what the experiments of chapters 7, 8 and 9 share, and their data.

All of them train as the authors' code does: SGD with momentum, a learning rate that falls linearly from 0.21, the
gradient norm clipped at 0.5, batches of 128, no augmentation. Images are normalised by the mean and the deviation of
the original training images: after poisoning, whose size is in pixels, and before flipping. What a seed decides, the
initial network and the order of the images, is the same for all trainings with that seed.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from companion.atlas import load_atlas
from companion.patches import load_images
from companion.stored import Scale, Session
from companion.tables import Row, timed
from nadtools import architectures
from nadtools.device import generator
from nadtools.images import Images
from nadtools.interventions import poison
from nadtools.sweeps import unit_seeds
from nadtools.training import TrainConfig, evaluate, train
from nadtools.units import run_units

__all__ = [
    "ARCHITECTURES",
    "DATA",
    "DEEP",
    "SELECTORS",
    "SMALL_DATA",
    "Plan",
    "columns",
    "fit",
    "halves",
    "images_of",
    "over_carriers",
    "predict",
    "read_images",
    "run_trainings",
    "setting",
    "train_poisoned",
]

Data = tuple[Tensor, Tensor]

#: The data sets by the names that the experiments give them, the best first, as arguments of ``load_images``.
DATA: Final[dict[str, dict[str, Any]]] = {
    "cifar10": {"source": "cifar10"},
    "cifar10-jpeg": {"source": "cifar10-jpeg"},
    "cifar10-subset": {"source": "cifar10", "subset": 1000},
    "patches": {"source": "patches"},
}
DEEP = ("vgg11", "resnet18", "densenet121")
ARCHITECTURES = ("logreg", "mlp", "lenet", *DEEP)
SMALL_DATA = ("cifar10-subset", "patches")
_OTHER_LABELS: Final = 0  # a random stream of a seed; chapter 9 has others
_TEXTS = ("arm", "replace")  # columns


def setting(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    """Sizes of one training. Where there is no GPU the deep networks are narrower, and large data take fewer epochs."""
    images, width, epochs = dict(DATA[data]), 1.0, 50
    if scale == "smoke":
        images |= {"per_class": 8, "test_per_class": 8}
        epochs, width = 1, (0.125 if architecture in DEEP else 1.0)
    elif scale == "laptop":
        width = 0.25 if architecture in DEEP else 1.0
        if data not in SMALL_DATA:
            epochs = 20
        elif architecture in DEEP:
            epochs = 15  # all training images are right after 13
    full_width = scale == "paper" and architecture in DEEP
    if full_width and data not in SMALL_DATA:
        epochs = 20  # of the authors' 50
    config = TrainConfig(
        epochs=epochs, max_lr=0.21, schedule="linear", momentum=0.9, weight_decay=5e-4, clip_norm=0.5,
        precision="bfloat16" if full_width else "float32",
    )  # fmt: skip
    return {
        "architecture": architecture,
        "build_options": {"width": width} if width != 1.0 else {},
        "images": images,
        "config": config.parameters(),
        # Logistic regression and the MLP have no NADs to speak of: they get LeNet's.
        "nads_of": {"logreg": "lenet", "mlp": "lenet"}.get(architecture, architecture),
        "num_seeds": 3 if scale == "paper" and not full_width else 1,
    }


# ---------------------------------------------------------------------------------------------------------------------
# One training
# ---------------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that the trainings of a run have in common; the images are read by the process that works."""

    architecture: str
    build_options: Mapping[str, Any]
    images: Mapping[str, Any]
    config: TrainConfig
    nads: Tensor
    device: torch.device
    base_seed: int


@functools.lru_cache(maxsize=1)
def read_images(arguments: tuple[tuple[str, Any], ...]) -> Images:
    """Images, read once in a process; the arguments are those of ``load_images``."""
    return load_images(**dict(arguments), progress=False)


def images_of(plan: Plan) -> Images:
    """The images of a plan, where it computes."""
    images = read_images(tuple(plan.images.items()))
    where = plan.device
    moved = {name: getattr(images, name).to(where) for name in ("x_train", "y_train", "x_test", "y_test")}
    return dataclasses.replace(images, **moved)


def fit(plan: Plan, images: Images, train_data: Data, test_data: Data, seed: int) -> tuple[nn.Module | None, Row]:
    """Train a network; None where it diverged."""
    seeds = unit_seeds(seed)
    network = architectures.build(
        plan.architecture,
        in_channels=images.image_shape[0],
        num_classes=images.num_classes,
        image_size=images.image_shape[1:],
        seed=seeds.initialisation,
        **plan.build_options,
    )
    row: Row = dict.fromkeys(("train_accuracy", "test_accuracy", "train_loss", "test_loss"))
    try:
        result = train(
            network, train_data, test_data, dataclasses.replace(plan.config, seed=seeds.order),
            evaluate_every=0, device=plan.device, progress=False,
        )  # fmt: skip
    except FloatingPointError:
        return None, row
    return network, {name: getattr(result, name) for name in row}


def predict(network: nn.Module, x: Tensor) -> Tensor:
    """The class that a network gives each image."""
    with torch.inference_mode():
        return torch.cat([network(batch).argmax(1) for batch in x.split(1024)])


def halves(images: Images) -> tuple[Data, Data]:
    """What to train on, and what to test on."""
    return (images.x_train, images.y_train), (images.x_test, images.y_test)


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


# ---------------------------------------------------------------------------------------------------------------------
# Many trainings
# ---------------------------------------------------------------------------------------------------------------------


def run_trainings(
    function: Any, units: Sequence[Row], parameters: dict[str, Any], session: Session, title: str,
    nads: Tensor | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Train all units for the first seed, then for the next; what an interrupted run has done stays done.

    The NADs are those of the atlas, unless given.
    """
    nads = load_atlas(parameters["nads_of"]).vectors if nads is None else nads
    plan = Plan(
        parameters["architecture"],
        parameters["build_options"],
        parameters["images"],
        TrainConfig(**parameters["config"]),
        nads,
        session.device,
        session.seed,
    )
    digest = hashlib.sha256(nads.half().numpy().tobytes()).hexdigest()
    seeds = [session.seed + number for number in range(parameters["num_seeds"])]
    try:
        table = run_units(
            functools.partial(function, plan),
            [{**unit, "seed": seed} for seed in seeds for unit in units],
            journal=session.folder / "trainings.sqlite",
            # Which part of the work is in the list of units does not matter to the others.
            parameters={key: parameters[key] for key in ("architecture", "build_options", "images", "config")}
            | {"kind": function.__name__, "nads": digest, "seed": session.seed},
            num_jobs=session.num_jobs,
            progress=session.progress,
            description=f"{parameters['architecture']}, {title}",
        )
    finally:
        read_images.cache_clear()  # large
    return table.drop(columns="device")


def columns(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """The table as arrays by name; missing numbers are NaN."""
    return {
        str(name): np.array(table[name].tolist()) if name in _TEXTS else table[name].to_numpy(float, na_value=np.nan)
        for name in table
    }


def over_carriers(part: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Curves over the index of the carrier's NAD, means over seeds, of a stored result of A7.

    They are those of the carriers in place of the coefficient of their own NAD.
    """
    means = part.groupby(["replace", "index"], dropna=False).mean().reset_index()
    own, reference = (means[means["replace"] == kind] for kind in ("own", "none"))
    index = own["index"].to_numpy()
    columns = {
        "clean test images": "test_accuracy",
        "training images": "train_accuracy",
        "contradiction: carrier": "follows_carrier",
        "contradiction: picture": "follows_content",
    }
    lines = {name: (index, own[column].to_numpy()) for name, column in columns.items()}
    without = np.full(2, reference["test_accuracy"].mean())
    return lines | {"clean, trained without a carrier": (index[[0, -1]], without)}


SELECTORS = {"architecture": ARCHITECTURES, "data": tuple(DATA)}
