"""Do gradients and mixed derivatives have the same directions? Section 3.1 of *Neural Anisotropy Directions*."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from companion.stored import Experiment, Scale, Session
from nadtools.device import derive_seed
from nadtools.estimation import Estimator, estimate_nads
from nadtools.progress import progress_bar

__all__ = ["EXPERIMENTS"]

_ESTIMATORS: Final[tuple[Estimator, ...]] = ("gradient", "mixed")
_NETWORKS: Final = {"lenet": 50, "vgg11": 1, "resnet18": 1, "densenet121": 1}


def _parameters(scale: Scale, architecture: str) -> dict[str, Any]:
    smoke = scale == "smoke"
    narrow = {"width": 0.25} if smoke and architecture != "lenet" else {}
    return {
        "architecture": architecture,
        "build_options": narrow,
        "num_networks": 1 if smoke else _NETWORKS[architecture],  # in a block
        "blocks": 3 if smoke else 10,
    }


def _compare(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    """Products of the covariances, less their mean over all directions, of any two blocks of networks.

    No two blocks share a network, so that the product of different ones is free of the noise of sampling.
    """
    blocks = [(estimator, block) for estimator in _ESTIMATORS for block in range(parameters["blocks"])]
    found = []
    for number, (estimator, _) in enumerate(progress_bar(blocks, session.progress, desc="blocks of networks")):
        covariance = estimate_nads(
            parameters["architecture"],
            parameters["num_networks"],
            estimator,
            seed=derive_seed(session.seed, number),
            checkpoint=session.folder / f"block-{number}.npz",
            num_jobs=session.num_jobs,
            device=session.device,
            progress=False,
            **parameters["build_options"],
        ).covariance().numpy()  # fmt: skip
        found.append((covariance / covariance.trace() - np.eye(len(covariance)) / len(covariance)).ravel())
    products = np.array(found) @ np.array(found).T
    first, second = (axis.ravel() for axis in np.indices(products.shape))
    mixed, block = (
        np.array([_ESTIMATORS.index(estimator) for estimator, _ in blocks]),
        np.array([b for _, b in blocks]),
    )
    return {
        "first_is_mixed": mixed[first],
        "first_block": block[first],
        "second_is_mixed": mixed[second],
        "second_block": block[second],
        "product": products.ravel(),
        "seed": np.full(products.size, session.seed),
    }


EXPERIMENTS = (
    Experiment(
        "mixed",
        "how alike the covariance of gradients and that of mixed derivatives are, and how stable each is",
        {"architecture": tuple(_NETWORKS)},
        _parameters,
        _compare,
    ),
)
