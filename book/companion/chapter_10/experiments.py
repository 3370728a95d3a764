"""How fast real networks approach the closed form as they grow wider."""

from __future__ import annotations

from typing import Any

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
_BLOCKS = 10


def average_pooling_network(width: int) -> nn.Sequential:
    """Two convolutions without padding, ReLU and average pooling: the theorem's conditions but for the width."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(width, width, 2), nn.ReLU(), nn.Flatten(),
        nn.Linear(4 * width, 1),
    )  # fmt: skip


def _width_parameters(scale: Scale) -> dict[str, Any]:
    widths = [8, 16] if scale == "smoke" else [8, 16, 32, 64, 128, 256, 512]
    # Blocks of networks: as many as leave an error of sampling below that of the width.
    return {"widths": widths, "networks": 20 if scale == "smoke" else 4_000, "blocks": _BLOCKS}


def _width(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    """Squared distance of the covariance at one x₀ from the closed form, as a share of its squared norm.

    Different blocks of networks have independent errors of sampling, so products of two blocks' deviations have none on
    average.
    """
    point = torch.randn(1, *_IMAGE, generator=generator(torch.device("cpu"), session.seed, "evaluation point of the closed form"))
    limit = analytic_nads(
        lambda: average_pooling_network(64), _IMAGE, nonlinearity="infinite-width", evaluation_point=point
    ).covariance().numpy()
    rows: dict[str, list[float]] = {"width": [], "squared_error": [], "stderr": []}
    for width in progress_bar(parameters["widths"], session.progress, desc="widths"):
        deviations = []
        for block in range(parameters["blocks"]):
            estimate = estimate_nads(
                lambda width=width: average_pooling_network(width),
                max(2, parameters["networks"] // (parameters["blocks"] * max(1, width // 32))),
                "secant",
                image_size=_IMAGE,
                scale=1e-3,  # no kink of a ReLU within reach: this is the gradient, at the price of a forward pass
                evaluation_point=point,
                seed=derive_seed(session.seed, width, block),
                progress=False,
            )
            deviations.append((estimate.covariance().numpy() - limit).ravel() / np.linalg.norm(limit))
        gram = np.array(deviations) @ np.array(deviations).T
        count = len(gram)
        without = (gram.sum(1) - gram.diagonal()) / (count - 1)  # of each block with the others
        rows["width"].append(width)
        rows["squared_error"].append(float(without.mean()))
        rows["stderr"].append(float(2 * without.std(ddof=1) / np.sqrt(count)))
    return {name: np.array(values) for name, values in rows.items()}


EXPERIMENTS = (
    Experiment(
        "width",
        "distance of the gradient covariance of real networks from the closed form, over their width",
        {},
        _width_parameters,
        _width,
    ),
)
