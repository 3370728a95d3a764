"""Trainings on flipped photographs: figure 8 of *Neural Anisotropy Directions*, with controls of our own."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from companion.atlas import load_atlas
from companion.photographs import (
    SELECTORS,
    Plan,
    columns,
    fit,
    halves,
    images_of,
    predict,
    read_images,
    run_trainings,
    setting,
)
from companion.stored import Experiment, Scale, Session
from companion.tables import Row, timed
from nadtools.device import derive_seed, generator
from nadtools.directions import random_basis
from nadtools.interventions import flip
from nadtools.nads import NADs

__all__ = ["ARMS", "EXPERIMENTS", "FACTORS", "agreement", "changed", "paired_interval"]

#: What A8 trains on.
ARMS: Final = ("original", "flipped", "random basis", "permuted")
#: What ``signs`` trains on: content stays along its NADs or not, pixels stay in their place or are scattered.
FACTORS: Final = ("original", "checkerboard", "random signs", "flipped")
_PERMUTATION, _BASIS, _SIGNS = 1, 2, 3  # random streams of a seed; chapter 8 has another


def _flipping_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    common = setting(scale, architecture, data)
    # The isotropic networks are the check, so their spread between seeds has to be known; and they train fast.
    seeds = 3 if scale == "laptop" and architecture in ("logreg", "mlp") else common["num_seeds"]
    return common | {"arms": list(ARMS), "num_seeds": seeds}


def _signs_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    seeds = 3 if scale == "laptop" else 1
    return setting(scale, architecture, data) | {"arms": list(FACTORS), "num_seeds": seeds}


def changed(x: Tensor, arm: str, nads: Tensor, seed: int) -> Tensor:
    """Images (n, channels, h, w) after one of the changes; all of them are orthogonal.

    ``"random signs"`` turns about half of the coefficients along the NADs around, ``"checkerboard"`` every other pixel.
    """
    stream = functools.partial(generator, torch.device("cpu"), seed)
    match arm:
        case "original":
            return x
        case "flipped":
            return flip(x, nads)
        case "random basis":
            return flip(x, random_basis(tuple(nads.shape[1:]), derive_seed(seed, _BASIS)))
        case "permuted":
            return flip(x, nads, torch.randperm(len(nads), generator=stream(_PERMUTATION)))
        case "random signs":
            rows = nads.flatten(1).to(x)
            signs = torch.randint(2, (len(rows), 1), generator=stream(_SIGNS)).to(x) * 2 - 1
            return (x.flatten(2) @ (rows.T @ (signs * rows))).view_as(x)
        case "checkerboard":
            i, j = (torch.arange(length, device=x.device) for length in x.shape[2:])
            return x * (1 - 2 * ((i[:, None] + j) % 2))
        case _:
            raise ValueError(f"got arm={arm!r}; expected one of {', '.join(dict.fromkeys(ARMS + FACTORS))}")


def agreement(x: Tensor, nads: NADs) -> float:
    """D tr(Σ C), with the covariance Σ of images (n, channels, h, w) and C of the secants, each of trace 1."""
    centred = (x - x.mean(0)).flatten(2)
    along = (centred @ nads.vectors.flatten(1).T.to(x)).square().mean((0, 1)).double()
    weights = nads.eigenvalues.to(along)
    return len(along) * float(along @ weights / along.sum() / weights.sum())


def _train_flipped(plan: Plan, unit: Mapping[str, Any]) -> Row:
    """Train and test on one representation of the images; which test images are right is kept."""
    row: Row = {"correct": None}
    with timed(row, plan.device):
        images = images_of(plan)
        train_data, test_data = (
            (changed(images.normalise(x), unit["arm"], plan.nads, plan.base_seed), y) for x, y in halves(images)
        )
        network, measured = fit(plan, images, train_data, test_data, unit["seed"])
        row |= measured
        if network is not None:
            correct = predict(network, test_data[0]) == test_data[1]
            row["correct"] = np.packbits(correct.cpu().numpy()).tobytes().hex()
    return row


def _flipping(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    units = [{"arm": arm} for arm in parameters["arms"]]
    table = run_trainings(_train_flipped, units, parameters, session, "flipped")
    num_test = _num_test(parameters)
    labels = list(zip(table["arm"], table["seed"], strict=True))
    correct = dict(zip(labels, [_unpacked(text, num_test) for text in table["correct"]], strict=True))
    counts: dict[str, list[float]] = {"only_here": [], "only_original": []}
    for arm, seed in labels:
        here, original = correct[arm, seed], correct["original", seed]
        known = here is not None and original is not None
        counts["only_here"].append(float((here & ~original).sum()) if known else np.nan)
        counts["only_original"].append(float((original & ~here).sum()) if known else np.nan)
    return columns(table.drop(columns="correct").assign(num_test=num_test, **counts))


def _signs(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    arrays = _flipping(parameters, session)
    images, nads = read_images(tuple(parameters["images"].items())), load_atlas(parameters["nads_of"])
    x = images.normalise(images.x_train)
    of_arms = {arm: agreement(changed(x, arm, nads.vectors, session.seed), nads) for arm in parameters["arms"]}
    read_images.cache_clear()
    return arrays | {"agreement": np.array([of_arms[arm] for arm in arrays["arm"]])}


def _unpacked(text: str | None, num_test: int) -> Any:
    """Which test images were right, as booleans; None where the training diverged."""
    if text is None:
        return None
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8), count=num_test).astype(bool)


def _num_test(parameters: dict[str, Any]) -> int:
    count = len(read_images(tuple(parameters["images"].items())).y_test)
    read_images.cache_clear()
    return count


def paired_interval(only_here: float, only_original: float, num_test: int) -> tuple[float, float]:
    r"""95 % interval of the difference between two accuracies on the same test images, here minus original.

    With b and c images that only one of the two networks has right, the difference is (b - c)/n, and its variance
    (b + c - (b - c)²/n)/n² (the normal approximation of McNemar's setting). It speaks of these two trained networks
    on further test images, and not of further seeds.

    Parameters
    ----------
    only_here, only_original : float
        Test images that only the one, only the other network classifies correctly.
    num_test : int
        All test images.

    Returns
    -------
    (float, float)

    Raises
    ------
    ValueError
        If the counts are negative, or larger than the number of test images together.
    """
    if min(only_here, only_original) < 0 or only_here + only_original > num_test or num_test < 1:
        raise ValueError(
            f"got {only_here} and {only_original} of {num_test} test images; expected counts of disjoint sets of them"
        )
    difference = (only_here - only_original) / num_test
    variance = ((only_here + only_original) / num_test - difference**2) / num_test
    half = 1.96 * variance**0.5
    return difference - half, difference + half


EXPERIMENTS = (
    Experiment(
        "A8",
        "accuracy on images whose coefficients are flipped in the basis of the NADs, with controls",
        SELECTORS,
        _flipping_parameters,
        _flipping,
    ),
    Experiment(
        "signs",
        "accuracy on images after changes that keep the content along the NADs, the pixels in place, both or neither",
        SELECTORS,
        _signs_parameters,
        _signs,
    ),
)
