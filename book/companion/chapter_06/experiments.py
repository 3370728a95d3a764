"""How far real networks are from the closed form, and what α, samples and noise make of their accuracy."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import torch
from torch import nn

from companion.stored import Experiment, Scale, Session
from companion.trainings import SIZE, columns, run_trainings, setting
from companion.waves import mean_alignments
from nadtools.analytic import analytic_nads
from nadtools.device import derive_seed, generator, isolated_random_state
from nadtools.directions import fourier_atom
from nadtools.estimation import estimate_nads
from nadtools.moments import secants
from nadtools.progress import progress_bar

__all__ = ["EXPERIMENTS", "average_pooling_network", "padded_network"]

_IMAGE = (8, 8)
_FORMS: Final[tuple[Literal["linear", "infinite-width"], ...]] = ("linear", "infinite-width")


def average_pooling_network(width: int) -> nn.Sequential:
    """Two convolutions without padding, ReLU and average pooling, for images of 8x8 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(width, width, 2), nn.ReLU(), nn.Flatten(),
        nn.Linear(4 * width, 1),
    )  # fmt: skip


def _exactness_parameters(scale: Scale) -> dict[str, Any]:
    smoke = scale == "smoke"
    return {
        "sizes": [0.0, 1.0] if smoke else [0.0, 0.03, 0.1, 0.3, 1.0, 3.0],  # of x₀, times N(0, I)
        "width": 8 if smoke else 64,
        "networks": 4 if smoke else 100,
        "blocks": 3 if smoke else 10,
    }


def _exactness(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    """Squared distance of the covariance from both closed forms, as a share of their squared norm.

    Different blocks of networks have independent errors of sampling. So the products of two blocks' deviations have the
    squared distance as their mean.
    """
    point = torch.randn(
        1, *_IMAGE, generator=generator(torch.device("cpu"), session.seed, "the point of the closed form")
    )
    rows: dict[str, list[float]] = {"size": []}
    for size in progress_bar(parameters["sizes"], session.progress, desc="points"):
        covariances = [
            estimate_nads(
                lambda: average_pooling_network(parameters["width"]),
                parameters["networks"],
                "secant",
                image_size=_IMAGE,
                scale=1e-4,  # no kink of a ReLU within reach: this is the gradient, at the price of forward passes
                evaluation_point=size * point,
                seed=derive_seed(session.seed, block),
                num_jobs=session.num_jobs,
                progress=False,
            ).covariance().numpy()
            for block in range(parameters["blocks"])
        ]  # fmt: skip
        rows["size"].append(size)
        for form in _FORMS:
            chosen = {} if form == "linear" else {"evaluation_point": size * point}
            limit = analytic_nads(
                lambda: average_pooling_network(parameters["width"]), _IMAGE, nonlinearity=form, **chosen
            ).covariance().numpy()  # fmt: skip
            deviations = np.array([(one - limit).ravel() for one in covariances]) / np.linalg.norm(limit)
            gram = deviations @ deviations.T
            with_others = (gram.sum(1) - gram.diagonal()) / (len(gram) - 1)
            rows.setdefault(f"{form}_error", []).append(float(with_others.mean()))
            rows.setdefault(f"{form}_stderr", []).append(float(2 * with_others.std(ddof=1) / np.sqrt(len(gram))))
    return {name: np.array(values) for name, values in rows.items()}


def padded_network(width: int) -> nn.Sequential:
    """Three padded convolutions, ReLU and average pooling: at x₀ = 0 the border and the middle are open differently."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1),
    )  # fmt: skip


def _width_parameters(scale: Scale) -> dict[str, Any]:
    if scale == "smoke":
        return {"widths": [8, 16], "networks": [20, 20]}
    return {"widths": [8, 16, 32, 64, 128, 256, 512], "networks": [1000, 1000, 600, 400, 200, 80, 40]}


def _width(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    """Relative distances at x₀ = 0, the output layer averaged out: of single networks, and of the mean over networks.

    The first is the root of the mean square. Of the second the square is stored, as in :func:`_exactness`: the mean of
    products of different networks' deviations.
    """
    rows: dict[str, list[float]] = {"width": []}
    for width, count in zip(parameters["widths"], parameters["networks"], strict=True):
        deviations: dict[str, list[torch.Tensor]] = {form: [] for form in _FORMS}
        with isolated_random_state(derive_seed(session.seed, width)):
            limits = {
                form: analytic_nads(padded_network(width), _IMAGE, nonlinearity=form).covariance() for form in _FORMS
            }
            for _ in progress_bar(range(count), session.progress, desc=f"width {width}"):
                features = padded_network(width)[:-1].double()
                with torch.no_grad():
                    # So small a step is the gradient. PyTorch's output weights have the variance 1 / (3 width).
                    jacobian = secants(features, torch.zeros(1, *_IMAGE, dtype=torch.float64), scale=1e-6)
                for form, limit in limits.items():
                    one = jacobian @ jacobian.T / (3 * width)
                    deviations[form].append(((one - limit) / limit.norm()).flatten())
        rows["width"].append(width)
        for form in _FORMS:
            gram = torch.stack(deviations[form]) @ torch.stack(deviations[form]).T
            own = gram.diagonal()
            with_others = (gram.sum(1) - own) / (count - 1)
            rows.setdefault(f"{form}_single", []).append(float(own.mean().sqrt()))
            rows.setdefault(f"{form}_single_stderr", []).append(float(own.std() / count**0.5 / (2 * own.mean().sqrt())))
            rows.setdefault(f"{form}_error", []).append(float(with_others.mean()))
            rows.setdefault(f"{form}_stderr", []).append(float(2 * with_others.std() / count**0.5))
    return {name: np.array(values) for name, values in rows.items()}


# Waves of LeNet with α over its mean near 0, 0.006, 0.03, 0.1, 0.3, 1, 3 and 10.
_WAVES: Final = [(8, 0), (9, 7), (12, 7), (5, 7), (3, 14), (11, 1), (5, 0), (3, 1)]


def _samples_parameters(scale: Scale) -> dict[str, Any]:
    smoke = scale == "smoke"
    parameters = setting(scale, "lenet")
    return parameters | {
        "frequencies": _WAVES[::7] if smoke else _WAVES,
        "samples": [128] if smoke else [300, 1000],
        "sigmas": [1.0] if smoke else [0.5, 1.0, 2.0],
        "steps": 1 if smoke else 400,  # about: whole epochs
        "num_test": 128 if smoke else 2000,
        "num_seeds": 1,
    }


def _samples(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    """Sine waves; each number of samples gets the same number of steps."""
    frequencies = [(i, j) for i, j in parameters["frequencies"]]
    directions = {(i, j): fourier_atom(SIZE, (i, j), math.pi / 2) for i, j in frequencies}
    tables = []
    for count in parameters["samples"]:
        batches = math.ceil(count / parameters["config"]["batch_size"])
        config = parameters["config"] | {"epochs": max(1, round(parameters["steps"] / batches))}
        for sigma in parameters["sigmas"]:
            folder = session.folder / f"{count}-sigma-{sigma:g}"
            folder.mkdir(exist_ok=True)
            chosen = parameters | {"sigma": sigma, "num_train": count, "config": config}
            table = run_trainings(directions, chosen, dataclasses.replace(session, folder=folder))
            tables.append(table.assign(sigma=sigma, samples=count))
    table = pd.concat(tables, ignore_index=True)
    i, j = np.array(table["direction"].tolist()).T
    alpha = mean_alignments(analytic_nads("lenet"), table["direction"], "sine")
    return columns(table, frequency_i=i, frequency_j=j, alpha=alpha.to_numpy())


EXPERIMENTS = (
    Experiment(
        "exactness",
        "distance of real networks' gradient covariance from the closed form, over the size of x₀",
        {},
        _exactness_parameters,
        _exactness,
    ),
    Experiment(
        "width",
        "distance of real networks' gradient covariance from the closed form, over their width",
        {},
        _width_parameters,
        _width,
    ),
    Experiment(
        "samples",
        "test accuracy of LeNet on D(v) over alpha, the number of samples and the noise",
        {},
        _samples_parameters,
        _samples,
    ),
)
