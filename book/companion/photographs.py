"""Trainings on photographs: figures 7 and 8 of *Neural Anisotropy Directions*, with controls of our own.

All of them train as the authors' code does: SGD with momentum, a learning rate that falls linearly from 0.21, the
gradient norm clipped at 0.5, batches of 128, no augmentation. Images are normalised by the mean and the deviation of
the original training images: after poisoning, whose size is in pixels, and before flipping. What a seed decides, the
initial network and the order of the images, is the same for all trainings with that seed.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from companion.atlas import load_atlas
from companion.digits import load_images
from companion.stored import EXPERIMENTS as _KNOWN
from companion.stored import Experiment, Scale, Session, load_table, result_path
from companion.tables import VERDICTS, Row, claims_table, timed
from nadtools import architectures
from nadtools.device import derive_seed, generator
from nadtools.directions import random_basis
from nadtools.images import Images
from nadtools.interventions import flip, poison
from nadtools.sweeps import unit_seeds
from nadtools.training import TrainConfig, evaluate, train
from nadtools.units import run_units

__all__ = [
    "ARMS",
    "DATA",
    "EXPERIMENTS",
    "flipping_claims",
    "load_largest",
    "paired_interval",
    "poisoning_claims",
]

Data = tuple[Tensor, Tensor]

#: The data sets by the names that the experiments give them, the best first, as arguments of ``load_images``.
DATA: Final[dict[str, dict[str, Any]]] = {
    "cifar10": {"source": "cifar10"},
    "cifar10-jpeg": {"source": "cifar10-jpeg"},
    "cifar10-subset": {"source": "cifar10", "subset": 1000},
    "digits": {"source": "digits"},
}
#: What A8 trains on.
ARMS: Final = ("original", "flipped", "random basis", "permuted")
_DEEP = ("vgg11", "resnet18", "densenet121")
_ARCHITECTURES = ("logreg", "mlp", "lenet", *_DEEP)
_SMALL_DATA = ("cifar10-subset", "digits")
_EPSILON = 0.05
_OTHER_LABELS, _PERMUTATION, _BASIS = range(3)  # random streams of a seed
_TEXTS = ("arm", "replace")  # columns


def _setting(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    """Sizes of one training. Where there is no GPU the deep networks are narrower, and large data take fewer epochs."""
    images, width, epochs = dict(DATA[data]), 1.0, 50
    if scale == "smoke":
        images |= {"per_class": 8, "test_per_class": 8}
        epochs, width = 1, (0.125 if architecture in _DEEP else 1.0)
    elif scale == "laptop":
        width = 0.25 if architecture in _DEEP else 1.0
        if data not in _SMALL_DATA:
            epochs = 20
        elif architecture in _DEEP:
            epochs = 15  # all training images are right after 13
    config = TrainConfig(epochs=epochs, max_lr=0.21, schedule="linear", momentum=0.9, weight_decay=5e-4, clip_norm=0.5)
    return {
        "architecture": architecture,
        "build_options": {"width": width} if width != 1.0 else {},
        "images": images,
        "config": config.parameters(),
        # Logistic regression and the MLP have no NADs to speak of: they get LeNet's.
        "nads_of": {"logreg": "lenet", "mlp": "lenet"}.get(architecture, architecture),
        "num_seeds": 3 if scale == "paper" else 1,
    }


def _indices(scale: Scale, architecture: str) -> list[int]:
    """The last leaves room for ten classes in one channel: five NADs."""
    if scale == "smoke":
        return [0, 1019]
    if scale == "laptop" and architecture in _DEEP:
        return [0, 5, 20, 50, 100, 300, 700, 1019]
    return [0, 2, 5, 10, 20, 50, 100, 200, 400, 700, 1019]


def _poisoning_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    # The control, in which every coefficient of the code is replaced, where trainings are cheap.
    cheap = architecture not in _DEEP and data in _SMALL_DATA
    return _setting(scale, architecture, data) | {
        "epsilons": [_EPSILON],
        "indices": _indices(scale, architecture),
        "replace": ["own", "all"] if cheap else ["own"],
    }


def _map_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    # The images' own coefficients have a deviation between 3 (LeNet's first NAD) and 0.02 (its last).
    epsilons, indices = [0.05, 0.25, 0.75, 2.0, 6.0], [0, 10, 50, 200, 1019]
    if scale == "smoke":
        epsilons, indices = epsilons[::4], indices[::4]
    return _setting(scale, architecture, data) | {"epsilons": epsilons, "indices": indices, "replace": ["own"]}


def _span_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    counts = [index for index in _indices(scale, architecture) if index]
    return _setting(scale, architecture, data) | {"counts": counts}


def _flipping_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    setting = _setting(scale, architecture, data)
    # The isotropic networks are the check, so their spread between seeds has to be known; and they train fast.
    seeds = 3 if scale == "laptop" and architecture in ("logreg", "mlp") else setting["num_seeds"]
    return setting | {"arms": list(ARMS), "num_seeds": seeds}


# ---------------------------------------------------------------------------------------------------------------------
# One training
# ---------------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Plan:
    """All that the trainings of a run have in common; the images are read by the process that works."""

    architecture: str
    build_options: Mapping[str, Any]
    images: Mapping[str, Any]
    config: TrainConfig
    nads: Tensor
    device: torch.device
    base_seed: int


@functools.lru_cache(maxsize=1)
def _load(arguments: tuple[tuple[str, Any], ...]) -> Images:
    return load_images(**dict(arguments), progress=False)


def _images(plan: _Plan) -> Images:
    images = _load(tuple(plan.images.items()))
    where = plan.device
    moved = {name: getattr(images, name).to(where) for name in ("x_train", "y_train", "x_test", "y_test")}
    return dataclasses.replace(images, **moved)


def _fit(plan: _Plan, images: Images, train_data: Data, test_data: Data, seed: int) -> tuple[nn.Module | None, Row]:
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


def _predict(network: nn.Module, x: Tensor) -> Tensor:
    with torch.inference_mode():
        return torch.cat([network(batch).argmax(1) for batch in x.split(1024)])


def _train_poisoned(plan: _Plan, unit: Mapping[str, Any]) -> Row:
    """Train on images with a carrier, or without where the index is None; test on clean ones and on others."""
    row: Row = dict.fromkeys(("test_accuracy_poisoned", "follows_carrier", "follows_content"))
    with timed(row, plan.device):
        images = _images(plan)
        y, num_classes = images.y_test, images.num_classes

        def prepared(x: Tensor, labels: Tensor) -> Tensor:
            if unit["index"] is not None:
                x = poison(
                    x, labels, plan.nads, unit["index"], unit["epsilon"],
                    replace=unit["replace"], num_classes=num_classes,
                )  # fmt: skip
            return images.normalise(x)

        train_data = (prepared(images.x_train, images.y_train), images.y_train)
        network, measured = _fit(plan, images, train_data, (images.normalise(images.x_test), y), unit["seed"])
        row |= measured
        if network is not None and unit["index"] is not None:
            row["test_accuracy_poisoned"] = evaluate(network, (prepared(images.x_test, y), y)).accuracy
            # The carrier of one class on the content of another: which of them decides?
            stream = generator(torch.device("cpu"), plan.base_seed, _OTHER_LABELS)
            other = (y + torch.randint(1, num_classes, y.shape, generator=stream).to(y.device)) % num_classes
            answer = _predict(network, prepared(images.x_test, other))
            row |= {
                "follows_carrier": float((answer == other).float().mean()),
                "follows_content": float((answer == y).float().mean()),
            }
    return row


def _train_span(plan: _Plan, unit: Mapping[str, Any]) -> Row:
    """Train and test on what images hold in the span of the first NADs."""
    row: Row = {}
    with timed(row, plan.device):
        images = _images(plan)
        first = plan.nads[: unit["count"]].flatten(1).to(images.x_train)

        def prepared(x: Tensor) -> Tensor:
            normalised = images.normalise(x).flatten(2)
            return ((normalised @ first.T) @ first).view_as(x)

        train_data, test_data = ((prepared(x), y) for x, y in _pairs(images))
        row |= _fit(plan, images, train_data, test_data, unit["seed"])[1]
    return row


def _train_flipped(plan: _Plan, unit: Mapping[str, Any]) -> Row:
    """Train and test on one representation of the images; which test images are right is kept."""
    row: Row = {"correct": None}
    with timed(row, plan.device):
        images = _images(plan)

        def prepared(x: Tensor) -> Tensor:
            x, nads = images.normalise(x), plan.nads
            match unit["arm"]:
                case "flipped":
                    return flip(x, nads)
                case "random basis":
                    return flip(x, random_basis(tuple(nads.shape[1:]), derive_seed(plan.base_seed, _BASIS)))
                case "permuted":
                    stream = generator(torch.device("cpu"), plan.base_seed, _PERMUTATION)
                    return flip(x, nads, torch.randperm(len(nads), generator=stream))
                case _:
                    return x

        train_data, test_data = ((prepared(x), y) for x, y in _pairs(images))
        network, measured = _fit(plan, images, train_data, test_data, unit["seed"])
        row |= measured
        if network is not None:
            correct = _predict(network, test_data[0]) == test_data[1]
            row["correct"] = np.packbits(correct.cpu().numpy()).tobytes().hex()
    return row


def _pairs(images: Images) -> tuple[Data, Data]:
    return (images.x_train, images.y_train), (images.x_test, images.y_test)


# ---------------------------------------------------------------------------------------------------------------------
# Many trainings
# ---------------------------------------------------------------------------------------------------------------------


def _run(function: Any, units: Sequence[Row], parameters: dict[str, Any], session: Session, title: str) -> pd.DataFrame:
    nads = load_atlas(parameters["nads_of"]).vectors
    plan = _Plan(
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
        _load.cache_clear()  # large
    return table.drop(columns="device")


def _columns(table: pd.DataFrame) -> dict[str, np.ndarray]:
    return {
        str(name): np.array(table[name].tolist()) if name in _TEXTS else table[name].to_numpy(float, na_value=np.nan)
        for name in table
    }


def _poisoning(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    units: list[Row] = [{"index": None, "epsilon": 0.0, "replace": "none"}]
    units += [
        {"index": index, "epsilon": epsilon, "replace": replace}
        for replace in parameters["replace"]
        for epsilon in parameters["epsilons"]
        for index in parameters["indices"]
    ]
    return _columns(_run(_train_poisoned, units, parameters, session, "poisoned"))


def _span(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    units = [{"count": count} for count in parameters["counts"]]
    return _columns(_run(_train_span, units, parameters, session, "first NADs"))


def _flipping(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    units = [{"arm": arm} for arm in parameters["arms"]]
    table = _run(_train_flipped, units, parameters, session, "flipped")
    num_test = _num_test(parameters)
    labels = list(zip(table["arm"], table["seed"], strict=True))
    correct = dict(zip(labels, [_unpacked(text, num_test) for text in table["correct"]], strict=True))
    counts: dict[str, list[float]] = {"only_here": [], "only_original": []}
    for arm, seed in labels:
        here, original = correct[arm, seed], correct["original", seed]
        known = here is not None and original is not None
        counts["only_here"].append(float((here & ~original).sum()) if known else np.nan)
        counts["only_original"].append(float((original & ~here).sum()) if known else np.nan)
    return _columns(table.drop(columns="correct").assign(num_test=num_test, **counts))


def _unpacked(text: str | None, num_test: int) -> Any:
    """Which test images were right, as booleans; None where the training diverged."""
    if text is None:
        return None
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8), count=num_test).astype(bool)


def _num_test(parameters: dict[str, Any]) -> int:
    count = len(_load(tuple(parameters["images"].items())).y_test)
    _load.cache_clear()
    return count


def paired_interval(
    only_here: float, only_original: float, num_test: int, quantile: float = 1.96
) -> tuple[float, float]:
    r"""Interval of the difference between two accuracies on the same test images, here minus original.

    With b and c images that only one of the two networks has right, the difference is (b - c)/n, and its variance
    (b + c - (b - c)²/n)/n² (the normal approximation of McNemar's setting). It speaks of these two trained networks
    on further test images, and not of further seeds.

    Parameters
    ----------
    only_here, only_original : float
        Test images that only the one, only the other network classifies correctly.
    num_test : int
        All test images.
    quantile : float
        Of the normal distribution; 1.96 gives 95 %.

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
    half = quantile * variance**0.5
    return difference - half, difference + half


def poisoning_claims(table: pd.DataFrame) -> pd.DataFrame:
    """Hold the paper's statements about figure 7 against a result of A7, with the carrier's own coefficient replaced.

    They are, in numbers: the accuracy on clean images rises with the index of the carrier (Spearman's rank correlation
    of at least 0.8); carriers at the last two indices cost at most 5 points; the one at the first costs at least 15.

    Parameters
    ----------
    table
        As :func:`load_largest` gives it.

    Returns
    -------
    pandas.DataFrame
        A row for each claim, with the columns claim, measured and verdict.

    Raises
    ------
    ValueError
        If the table lacks the reference without a carrier, or has fewer than three indices.
    """
    reference = table[table["replace"] == "none"]["test_accuracy"].mean()
    curve = table[table["replace"] == "own"].groupby("index")["test_accuracy"].mean()
    if not np.isfinite(reference) or len(curve) < 3:
        raise ValueError(f"got a reference of {reference} and {len(curve)} indices; expected a result of A7")
    # Without any variation there is no rank correlation, and nothing rises. The index comes sorted.
    correlation = float(np.corrcoef(np.arange(len(curve)), curve.rank())[0, 1]) if curve.nunique() > 1 else math.nan
    costs = reference - curve
    first, last = float(costs.iloc[0]), float(costs.iloc[-2:].max())
    claims = [
        (
            "clean accuracy rises with the index: rank correlation at least 0.8",
            "no variation" if math.isnan(correlation) else f"{correlation:.2f}",
            correlation >= 0.8,
        ),
        ("the last two carriers cost at most 5 points", f"{100 * last:.1f} points", last <= 0.05),
        ("the first carrier costs at least 15 points", f"{100 * first:.1f} points", first >= 0.15),
    ]
    return claims_table(claims)


def flipping_claims(table: pd.DataFrame, isotropic: bool) -> pd.DataFrame:
    """Hold the paper's statements about figure 8 against a result of A8.

    In numbers: for a convolutional network flipping costs at least 10 points. For an isotropic one it changes less than
    2 points: the paired 95 % interval of each seed holds a difference that small.

    Parameters
    ----------
    table
        As :func:`load_largest` gives it.
    isotropic
        Whether the architecture prefers no direction, as logistic regression and the MLP.

    Returns
    -------
    pandas.DataFrame
        A row for each arm but the original, with the columns arm, difference and low, high (in accuracy, the mean over
        seeds and the ends of the paired 95 % intervals of all seeds), claim and verdict. The paper says nothing about
        the controls: there both are empty, unless the architecture is isotropic.
    """
    rows = []
    for arm in [name for name in dict.fromkeys(table["arm"]) if name != "original"]:
        part = table[table["arm"] == arm].dropna(subset=["only_here"])
        ends = [
            paired_interval(here, original, int(count))
            for here, original, count in zip(part["only_here"], part["only_original"], part["num_test"], strict=True)
        ]
        difference = float(((part["only_here"] - part["only_original"]) / part["num_test"]).mean())
        claim, verdict = "", ""
        if isotropic:
            claim = "changes less than 2 points"
            verdict = VERDICTS[bool(ends) and all(low < 0.02 and high > -0.02 for low, high in ends)]
        elif arm == "flipped":
            claim, verdict = "costs at least 10 points", VERDICTS[difference <= -0.1]
        low, high = (min(end[0] for end in ends), max(end[1] for end in ends)) if ends else (np.nan, np.nan)
        rows.append((arm, difference, low, high, claim, verdict))
    return pd.DataFrame(rows, columns=["arm", "difference", "low", "high", "claim", "verdict"])


def load_largest(name: str, architecture: str, *, results_dir: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Load the stored result of an experiment on images that was made with the best data there is.

    The order is that of :data:`DATA`; with the same data the scale ``"paper"`` comes before ``"laptop"``. What it is
    stands in ``attrs``, as :func:`companion.experiments.load_table` leaves it.

    Raises
    ------
    FileNotFoundError
        If none is stored; the message holds the command that makes one.
    ValueError
        If the experiment or the architecture is not known, or the file is damaged.
    """
    scales: tuple[Scale, ...] = ("paper", "laptop")
    if name in _KNOWN and "data" not in _KNOWN[name].selectors:
        having = ", ".join(repr(one) for one, known in _KNOWN.items() if "data" in known.selectors)
        raise ValueError(f"got name={name!r}; expected an experiment on images: {having}")
    known = _KNOWN[name].selectors["data"] if name in _KNOWN else tuple(DATA)
    where: dict[str, Any] = {"architecture": architecture, "results_dir": results_dir}
    for data in known:
        for scale in scales:
            if result_path(name, scale=scale, data=data, **where).exists():
                return load_table(name, scale=scale, data=data, **where)
    return load_table(name, data="cifar10-subset", **where)


_SELECTORS = {"architecture": _ARCHITECTURES, "data": tuple(DATA)}

EXPERIMENTS = (
    Experiment(
        "A7",
        "accuracy on clean images after training on images with a carrier, against its index",
        _SELECTORS,
        _poisoning_parameters,
        _poisoning,
    ),
    Experiment(
        "A7map",
        "accuracy on clean images over the carrier's size and its index",
        _SELECTORS,
        _map_parameters,
        _poisoning,
    ),
    Experiment(
        "A7span",
        "accuracy with nothing but the span of the first NADs",
        _SELECTORS,
        _span_parameters,
        _span,
    ),
    Experiment(
        "A8",
        "accuracy on images whose coefficients are flipped in the basis of the NADs, with controls",
        _SELECTORS,
        _flipping_parameters,
        _flipping,
    ),
)
