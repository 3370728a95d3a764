"""Trainings on D(v): figures 1, 2, 3 and 6 of *Neural Anisotropy Directions*, and its footnote 4.

All of them train as the authors' code does: SGD, a learning rate that falls linearly from 0.5, the gradient norm
clipped at 0.5, batches of 128.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from companion import published
from companion.atlas import load_atlas
from companion.stored import Experiment, Scale, Session
from nadtools.device import DerivedSeed
from nadtools.directions import fourier_atom, random_direction
from nadtools.sweeps import sweep
from nadtools.training import TrainConfig

__all__ = ["EXPERIMENTS", "half_grid"]

_SIZE = (32, 32)
_ARCHITECTURES = ("logreg", "mlp", "lenet", "vgg11", "resnet18", "densenet121")
_SMALL = ("logreg", "mlp", "lenet")
# A few frequencies for networks that take minutes each: from smooth to rough, along the axes and between them.
# Of each pair f and −f the one that is in the grid.
_FEW = [(0, 0), (-2, 0), (0, -4), (-4, -4), (-8, 0), (-6, -10), (-12, -4), (-14, -14), (-16, -16)]


def half_grid(step: int) -> list[tuple[int, int]]:
    """Frequencies of 32x32 images in steps, one of each pair f and -f: both name the same atoms, up to a sign."""
    axis = range(-16, 16, step)
    chosen: list[tuple[int, int]] = []
    for i in axis:
        for j in axis:
            mirror = tuple((-f + 16) % 32 - 16 for f in (i, j))
            if mirror not in chosen:
                chosen.append((i, j))
    return chosen


def _setting(scale: Scale, architecture: str) -> dict[str, Any]:
    """Sizes of one training. The deep networks are narrower and train more briefly where there is no GPU."""
    if scale == "smoke":
        width, epochs, samples = (1.0 if architecture in _SMALL else 0.125), 1, 128
    elif scale == "laptop" and architecture not in _SMALL:
        width, epochs, samples = 0.25, 6, 10_000
    else:
        width, epochs, samples = 1.0, 20, 10_000
    # Logistic regression and the MLP have a width of their own: neither is scaled.
    options: dict[str, Any] = {"width": width} if width != 1.0 else {}
    return {
        "architecture": architecture,
        "build_options": options,
        "num_train": samples,
        "num_test": samples,
        "config": TrainConfig(epochs=epochs, max_lr=0.5, schedule="linear", clip_norm=0.5).parameters(),
    }


def _frequencies(scale: Scale, architecture: str, step: int) -> list[tuple[int, int]]:
    if scale == "smoke":
        return _FEW[:3]
    return _FEW if scale == "laptop" and architecture not in _SMALL else half_grid(step)


def _num_seeds(scale: Scale) -> int:
    return 3 if scale == "paper" else 1


def _fourier_parameters(scale: Scale, architecture: str) -> dict[str, Any]:
    frequencies = _frequencies(scale, architecture, step=2)
    # The sine; at the four frequencies that are their own mirror image only the cosine exists.
    return {
        **_setting(scale, architecture),
        "epsilon": 1.0,
        "sigma": 3.0,
        "frequencies": frequencies,
        "phase": math.pi / 2,
        "num_seeds": _num_seeds(scale),
        "loss_level": None,
    }


def _speed_parameters(scale: Scale, architecture: str) -> dict[str, Any]:
    parameters = _fourier_parameters(scale, architecture)
    return parameters | {"sigma": 0.5, "frequencies": _frequencies(scale, architecture, step=4), "loss_level": 0.01}


def _no_pooling_parameters(scale: Scale, architecture: str) -> dict[str, Any]:
    parameters = _fourier_parameters(scale, architecture)
    options = parameters["build_options"] | {"pooling": False}
    frequencies = _frequencies(scale, architecture, step=4)
    if scale == "laptop" and architecture in _SMALL:
        # Without pooling a training takes twice as long: leave out the rim, where few waves are learned at all.
        frequencies = [f for f in frequencies if max(map(abs, f)) < 16]
    return parameters | {"build_options": options, "frequencies": frequencies}


def _indices(scale: Scale, architecture: str) -> list[int]:
    """Indices of NADs, spaced geometrically and linearly; from 10 on in tens, as in the authors' table."""
    if scale == "smoke":
        return [0, 10, 1000]
    if scale == "laptop" and architecture not in _SMALL:
        return [0, 10, 30, 100, 200, 400, 700, 1000]
    early = [0, 1, 2, 5]
    geometric = (10 * np.round(np.geomspace(1, 102, 20))).astype(int).tolist()
    linear = list(range(50, 1021, 50))
    return sorted({*early, *geometric, *linear, 1020})


def _nads_parameters(scale: Scale, architecture: str, nads: str) -> dict[str, Any]:
    parameters = _fourier_parameters(scale, architecture)
    del parameters["frequencies"], parameters["phase"]
    # Logistic regression has no NADs to speak of: it is trained on LeNet's.
    source = {"logreg": "lenet", "mlp": "lenet"}.get(architecture, architecture)
    num_seeds = 3 if scale == "paper" or (scale == "laptop" and architecture in _SMALL and nads == "ours") else 1
    return parameters | {
        "sigma": 1.0,
        "nads": nads,
        "nads_of": source,
        "indices": _indices(scale, architecture),
        "num_seeds": num_seeds,
    }


def _random_parameters(scale: Scale, architecture: str) -> dict[str, Any]:
    parameters = _fourier_parameters(scale, architecture)
    del parameters["frequencies"], parameters["phase"]
    return parameters | {"directions": 3 if scale == "smoke" else 30}


def _trainings(directions: dict[Any, Tensor], parameters: dict[str, Any], session: Session) -> pd.DataFrame:
    return sweep(
        parameters["architecture"],
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
        **parameters["build_options"],
    )


def _columns(table: pd.DataFrame, **labels: Any) -> dict[str, np.ndarray]:
    """The table as arrays by name; the labels take the place of the direction."""
    table = table.drop(columns=["direction", "device"])
    arrays = {name: np.asarray(values) for name, values in labels.items()}
    return arrays | {str(name): table[name].to_numpy(dtype=float, na_value=np.nan) for name in table}


def _fourier(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    frequencies = [(i, j) for i, j in parameters["frequencies"]]
    directions = {}
    for i, j in frequencies:
        self_conjugate = i % (_SIZE[0] // 2) == 0 and j % (_SIZE[1] // 2) == 0
        directions[i, j] = fourier_atom(_SIZE, (i, j), 0.0 if self_conjugate else parameters["phase"])
    table = _trainings(directions, parameters, session)
    i, j = np.array(table["direction"].tolist()).T
    return _columns(table, frequency_i=i, frequency_j=j)


def _nads(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    load = load_atlas if parameters["nads"] == "ours" else published.load_nads
    nads = load(parameters["nads_of"])
    directions = {index: nads.vectors[index].float() for index in parameters["indices"]}
    table = _trainings(directions, parameters, session)
    index = table["direction"].to_numpy(dtype=int)
    return _columns(table, index=index) | {"eigenvalue": nads.eigenvalues.numpy()[index]}


def _random(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    directions: dict[Any, Tensor] = {
        # The number itself is the stream's seed, as when the results were made.
        number: random_direction(_SIZE, seed=DerivedSeed(number))
        for number in range(parameters["directions"])
    }
    table = _trainings(directions, parameters, session)
    return _columns(table, direction=table["direction"].to_numpy(dtype=int))


EXPERIMENTS = (
    Experiment(
        "A1",
        "test accuracy on D(v) over Fourier atoms",
        {"architecture": _ARCHITECTURES},
        _fourier_parameters,
        _fourier,
    ),
    Experiment(
        "A2",
        "steps to a small training loss over Fourier atoms, with little noise",
        {"architecture": _ARCHITECTURES},
        _speed_parameters,
        _fourier,
    ),
    Experiment(
        "A3",
        "test accuracy on D(v) over Fourier atoms, without any pooling",
        {"architecture": ("lenet", "vgg11", "resnet18", "densenet121")},
        _no_pooling_parameters,
        _fourier,
    ),
    Experiment(
        "A6",
        "test accuracy on D(v) over NADs, ours or the authors'",
        {"architecture": _ARCHITECTURES, "nads": ("ours", "published")},
        _nads_parameters,
        _nads,
    ),
    Experiment(
        "random",
        "test accuracy on D(v) over random directions (footnote 4)",
        {"architecture": _ARCHITECTURES},
        _random_parameters,
        _random,
    ),
)
