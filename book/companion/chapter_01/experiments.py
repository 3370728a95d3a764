"""Trainings on D(v) over waves: figures 1, 2 and 3 of *Neural Anisotropy Directions*, and its footnote 4."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

from companion.stored import Experiment, Scale, Session
from companion.trainings import ARCHITECTURES, SIZE, SMALL, columns, run_trainings, setting
from nadtools.device import DerivedSeed
from nadtools.directions import fourier_atom, random_direction

__all__ = ["EXPERIMENTS", "half_grid"]

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


# Of full width, on a GPU: in A1, A2, and A3, which has some of the waves of A1. Without pooling a VGG-11 computes 64
# times as much.
_FULL_WIDTH = {
    "vgg11": ([*half_grid(4), (-2, 0), (-6, -10), (-14, -14)], _FEW, [_FEW[0], _FEW[2], _FEW[4]]),
    "resnet18": ([*_FEW, (-16, 0), (-8, -8), (-12, -12)], _FEW, [*_FEW[:1], *_FEW[3:6], *_FEW[7:]]),
    "densenet121": ([*_FEW[:2], *_FEW[3:6], *_FEW[8:]], _FEW[:1] + _FEW[4:6], _FEW[:1] + _FEW[4:6]),
}


def _frequencies(scale: Scale, architecture: str, step: int, kind: int = 0) -> list[tuple[int, int]]:
    if scale == "smoke":
        return _FEW[:3]
    if architecture in SMALL:
        return half_grid(step)
    return _FEW if scale == "laptop" else _FULL_WIDTH[architecture][kind]


def _fourier_parameters(scale: Scale, architecture: str) -> dict[str, Any]:
    # The sine; at the four frequencies that are their own mirror image only the cosine exists.
    return setting(scale, architecture) | {
        "frequencies": _frequencies(scale, architecture, step=2),
        "phase": math.pi / 2,
    }


def _speed_parameters(scale: Scale, architecture: str) -> dict[str, Any]:
    parameters = _fourier_parameters(scale, architecture)
    return parameters | {
        "sigma": 0.5,
        "frequencies": _frequencies(scale, architecture, step=4, kind=1),
        "loss_level": 0.01,
    }


def _no_pooling_parameters(scale: Scale, architecture: str) -> dict[str, Any]:
    parameters = _fourier_parameters(scale, architecture)
    options = parameters["build_options"] | {"pooling": False}
    frequencies = _frequencies(scale, architecture, step=4, kind=2)
    if scale == "laptop" and architecture in SMALL:
        # Without pooling a training takes twice as long: leave out the rim, where few waves are learned at all.
        frequencies = [f for f in frequencies if max(map(abs, f)) < 16]
    if scale == "laptop" and architecture == "densenet121":
        # An hour for each, of a core that computes in bfloat16, and four in float32: the three of full width.
        frequencies = _FULL_WIDTH[architecture][2]
        parameters["config"] |= {"precision": "bfloat16", "epochs": 5}
    return parameters | {"build_options": options, "frequencies": frequencies}


def _random_parameters(scale: Scale, architecture: str) -> dict[str, Any]:
    return setting(scale, architecture) | {"directions": 3 if scale == "smoke" else 30 if architecture in SMALL else 8}


def _fourier(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    frequencies = [(i, j) for i, j in parameters["frequencies"]]
    directions = {}
    for i, j in frequencies:
        self_conjugate = i % (SIZE[0] // 2) == 0 and j % (SIZE[1] // 2) == 0
        directions[i, j] = fourier_atom(SIZE, (i, j), 0.0 if self_conjugate else parameters["phase"])
    table = run_trainings(directions, parameters, session)
    i, j = np.array(table["direction"].tolist()).T
    return columns(table, frequency_i=i, frequency_j=j)


def _random(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    directions: dict[Any, Tensor] = {
        # The number itself is the stream's seed, as when the results were made.
        number: random_direction(SIZE, seed=DerivedSeed(number))
        for number in range(parameters["directions"])
    }
    table = run_trainings(directions, parameters, session)
    return columns(table, direction=table["direction"].to_numpy(dtype=int))


EXPERIMENTS = (
    Experiment(
        "A1",
        "test accuracy on D(v) over Fourier atoms",
        {"architecture": ARCHITECTURES},
        _fourier_parameters,
        _fourier,
    ),
    Experiment(
        "A2",
        "steps to a small training loss over Fourier atoms, with little noise",
        {"architecture": ARCHITECTURES},
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
        "random",
        "test accuracy on D(v) over random directions (footnote 4)",
        {"architecture": ARCHITECTURES},
        _random_parameters,
        _random,
    ),
)
