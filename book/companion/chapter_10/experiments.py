"""How far real networks are from the closed form, at x₀ = 0 and away from it."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import torch
from torch import nn

from companion.stored import Experiment, Scale, Session
from nadtools.analytic import analytic_nads
from nadtools.device import derive_seed, generator
from nadtools.estimation import estimate_nads
from nadtools.progress import progress_bar

__all__ = ["EXPERIMENTS", "average_pooling_network"]

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


EXPERIMENTS = (
    Experiment(
        "exactness",
        "distance of real networks' gradient covariance from the closed form, over the size of x₀",
        {},
        _exactness_parameters,
        _exactness,
    ),
)
