"""Trainings on D(v): what the experiments of chapters 1 and 5 share.

All of them train as the authors' code does: SGD, a learning rate that falls linearly from 0.5, the gradient norm
clipped at 0.5, batches of 128.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from companion.stored import Scale, Session
from nadtools.networks import Architecture
from nadtools.sweeps import sweep
from nadtools.training import Precision, TrainConfig

__all__ = ["ARCHITECTURES", "SIZE", "SMALL", "columns", "run_trainings", "setting"]

SIZE = (32, 32)
ARCHITECTURES = ("logreg", "mlp", "lenet", "vgg11", "resnet18", "densenet121")
SMALL = ("logreg", "mlp", "lenet")


def setting(scale: Scale, architecture: str) -> dict[str, Any]:
    """Parameters of trainings. The deep networks are narrower where there is no GPU, and two of them train briefly."""
    deep = architecture not in SMALL
    narrow = scale == "laptop" and deep
    if scale == "smoke":
        width, epochs, samples = (0.125 if deep else 1.0), 1, 128
    elif narrow:
        width, epochs, samples = 0.25, (20 if architecture == "vgg11" else 6), 10_000
    else:
        width, epochs, samples = 1.0, 20, 10_000
    # Of narrow networks only a VGG-11 is faster in bfloat16: by a fifth.
    saves_time = (deep and scale == "paper") or (narrow and architecture == "vgg11")
    precision: Precision = "bfloat16" if saves_time else "float32"
    # Logistic regression and the MLP have a width of their own: neither is scaled.
    options: dict[str, Any] = {"width": width} if width != 1.0 else {}
    return {
        "architecture": architecture,
        "build_options": options,
        "num_train": samples,
        "num_test": samples,
        "config": TrainConfig(
            epochs=epochs, max_lr=0.5, schedule="linear", clip_norm=0.5, precision=precision
        ).parameters(),
        "epsilon": 1.0,
        "sigma": 3.0,
        "num_seeds": 3 if scale == "paper" and not deep else 1,
        "loss_level": None,
    }


def run_trainings(
    directions: dict[Any, Tensor], parameters: dict[str, Any], session: Session, factory: Architecture | None = None
) -> pd.DataFrame:
    """Train on D(v) of each direction, as the parameters say; what the factory builds, if there is one."""
    return sweep(
        factory or parameters["architecture"],
        directions,
        epsilon=parameters["epsilon"],
        sigma=parameters["sigma"],
        num_train=parameters["num_train"],
        num_test=parameters["num_test"],
        config=TrainConfig(**parameters["config"]),
        seeds=[session.seed + number for number in range(parameters["num_seeds"])],
        loss_level=parameters["loss_level"],
        journal=session.folder / "trainings.sqlite",
        num_jobs=session.num_jobs,
        device=session.device,
        progress=session.progress,
        **({} if factory else parameters["build_options"]),
    )


def columns(table: pd.DataFrame, **labels: Any) -> dict[str, np.ndarray]:
    """The table as arrays by name; the labels take the place of the direction."""
    table = table.drop(columns=["direction", "device"])
    arrays = {name: np.asarray(values) for name, values in labels.items()}
    return arrays | {str(name): table[name].to_numpy(dtype=float, na_value=np.nan) for name in table}
