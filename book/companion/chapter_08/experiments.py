r"""Two features that both tell the classes apart: all figures of *A neural anisotropic view of underspecification*.

B2 trains on :math:`D(v_1) \oplus D(v_2)` over pairs of NADs, and asks of each network the accuracy with both channels
and with either alone, the angle of its decision boundary, its margins, and a cross-section (figures 2, 4 to 8). B3
trains on binary images :math:`\oplus\, D(v)` (figure 3).

The hyperparameters are those of the paper's appendix A. Where it is silent the choice is ours. The gradient norm is
clipped at 0.5, as in the code of *Neural Anisotropy Directions*: without it LeNet, at the paper's learning rate, falls
back to chance on rough pairs. Even so a training can stay at chance, while the paper's networks all fit their training
set: it is then repeated with half the learning rate, and with half of that, and the table says so. Images are
normalised, so that a part that is switched off shows the mean colour. And each network is also asked about
contradictions, in which one part says the one class and the other part the other.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from companion.atlas import load_atlas
from companion.digits import load_images
from companion.photographs import DATA
from companion.stored import Experiment, Scale, Session, load, read_record, result_path
from companion.tables import Row, claims_table, timed
from nadtools import architectures
from nadtools.boundaries import boundary_angle, cross_section, margins
from nadtools.device import DerivedSeed
from nadtools.directions import random_basis
from nadtools.distributions import Concatenated, Labelled, LinearlySeparable, concatenate
from nadtools.images import binary
from nadtools.sweeps import unit_seeds
from nadtools.training import Data, TrainConfig, evaluate, train
from nadtools.units import run_units

__all__ = ["EXPERIMENTS", "Pairs", "concatenation_claims", "load_pairs", "load_transition", "pair_claims"]

_SIZE = (32, 32)
_DEEP = ("vgg11", "resnet18", "densenet121")
_ARCHITECTURES = ("logreg", "mlp", "lenet", *_DEEP)
_BASES = ("nads", "random")
_SMALL_DATA = ("cifar10-subset", "digits")
# Logistic regression and the MLP have no NADs to speak of: they get LeNet's.
_NADS_OF: Final = {"logreg": "lenet", "mlp": "lenet"}
_MOST_SEEDS = 10  # that loaders look for
_AT_CHANCE = 0.6  # training loss in nats; guessing has ln 2 = 0.693


def _config(**changes: Any) -> dict[str, Any]:
    return TrainConfig(schedule="triangular", momentum=0.9, clip_norm=0.5, **changes).parameters()


def _setting(scale: Scale, architecture: str) -> dict[str, Any]:
    """What both experiments have in common."""
    deep = architecture in _DEEP
    width = 1.0 if not deep or scale == "paper" else 0.25 if scale == "laptop" else 0.125
    points = {"smoke": 4, "laptop": 32 if deep else 64, "paper": 64}[scale]
    return {
        "architecture": architecture,
        "build_options": {"width": width} if width != 1.0 else {},
        "nads_of": _NADS_OF.get(architecture, architecture),
        "num_points": points,
        # Single precision is ten times faster for deep networks on a CPU; the angle's rounding is far below its error.
        "precision": "single" if deep else "double",
        "num_seeds": 3 if scale == "paper" else 1,
        # With half the learning rate each, of a training that stays at chance.
        "repetitions": 0 if scale == "smoke" else 2,
    }


def _pairs_parameters(scale: Scale, architecture: str, basis: str) -> dict[str, Any]:
    deep = architecture in _DEEP
    samples, epochs = 10_000, 30 if deep else 50
    indices = [0, 10, 20, 50, 100, 200, 300, 500, 700, 1000]
    if scale == "laptop":
        indices = [0, 100, 1000] if deep else [0, 20, 100, 300, 1000]
        epochs = 10 if deep else 50
    elif scale == "smoke":
        indices, samples, epochs = [0, 1000], 128, 1
    return _setting(scale, architecture) | {
        "basis": basis,
        "indices": indices,
        "epsilons": [1.0, 0.5],
        "sigma": 1.0,
        "num_train": samples,
        "num_test": samples,
        "config": _config(epochs=epochs, max_lr=0.1 if deep else 0.2, weight_decay=1e-5 if deep else 0.0),
        "extent": 2.0,
        "resolution": 5 if scale == "smoke" else 21,
    }


def _transition_parameters(scale: Scale, architecture: str, data: str) -> dict[str, Any]:
    deep, setting = architecture in _DEEP, _setting(scale, architecture)
    images, epochs = dict(DATA[data]), 60 if architecture == "mlp" else 40
    indices = [0, 5, 10, 20, 50, 100, 200, 300, 500, 700, 1000]
    if scale == "smoke":
        images |= {"per_class": 8, "test_per_class": 8}
        indices, epochs = [0, 1000], 1
    elif scale == "laptop":
        indices = [0, 50, 200, 1000] if deep else [0, 10, 30, 60, 100, 200, 400, 1000]
        if deep:
            epochs = 15
    if architecture == "mlp":
        setting["build_options"] = {"hidden": [200, 50]}
    return setting | {
        "images": images,
        "indices": indices,
        "epsilon": 1.0,
        "sigma": 1.0 if architecture == "lenet" else 3.0,
        "config": _config(epochs=epochs, max_lr=0.15, weight_decay=1e-5),
        # What each part is worth alone: D(v) by itself only where trainings are cheap.
        "alone": not deep and data in _SMALL_DATA,
    }


# ---------------------------------------------------------------------------------------------------------------------
# One training
# ---------------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Plan:
    """All that the trainings of a run have in common. The directions are by index."""

    parameters: Mapping[str, Any]
    directions: Mapping[int, Tensor]
    device: torch.device

    @property
    def dtype(self) -> torch.dtype:
        """To ask a network about its boundary."""
        return torch.float64 if self.parameters["precision"] == "double" else torch.float32


def _fit(plan: _Plan, train_data: Data, test_data: Data, seed: int) -> tuple[nn.Module | None, Row]:
    """Train a network, if need be again with a smaller learning rate; None where the last training diverged."""
    seeds, shape = unit_seeds(seed), train_data[0].shape[1:]
    config = TrainConfig(**plan.parameters["config"], seed=seeds.order)
    names = ("train_accuracy", "test_accuracy", "train_loss", "test_loss")
    row: Row = {}
    trained = None
    for repetition in range(plan.parameters["repetitions"] + 1):
        network = architectures.build(
            plan.parameters["architecture"], shape[0], 2,
            image_size=(shape[1], shape[2]), seed=seeds.initialisation, **plan.parameters["build_options"],
        )  # fmt: skip
        max_lr = config.max_lr / 2**repetition
        try:
            result = train(
                network, train_data, test_data, dataclasses.replace(config, max_lr=max_lr),
                evaluate_every=0, device=plan.device, progress=False,
            )  # fmt: skip
        except FloatingPointError:
            trained, measured = None, dict.fromkeys(names)
        else:
            trained, measured = network, {name: getattr(result, name) for name in names}
        row |= {**measured, "max_lr": max_lr}
        if trained is not None and result.train_loss <= _AT_CHANCE:
            break
    return trained, row


def _reflected(x: Tensor, direction: Tensor) -> Tensor:
    """The same samples with the feature along a direction turned round: it says the other class, the rest stays."""
    unit = direction.to(x).flatten()
    return x - 2 * (x.flatten(1) @ unit).view(-1, 1, 1, 1) * unit.view(direction.shape)


def _margin(plan: _Plan, network: nn.Module, data: Data, direction: Tensor) -> tuple[float, float]:
    """The median margin along a direction, infinite where most points have none, and the share of points with one."""
    x, y = data
    distances = margins(network, x, direction, dtype=plan.dtype)
    signed = torch.where(distances.isfinite(), -(2 * y.cpu() - 1) * distances, torch.inf)
    return float(np.median(signed.numpy())), float(signed.isfinite().double().mean())


def _train_pair(plan: _Plan, unit: Mapping[str, Any]) -> Row:
    """One network on D(v₁)⊕D(v₂), and all that is asked of it."""
    row: Row = dict.fromkeys(
        (
            "test_accuracy_first", "test_accuracy_second", "follows_first", "angle_first", "angle_second", "normal",
            "angle_stderr", "resultant", "radius", "crossed", "margin_first", "margin_second",
            "margin_first_found", "margin_second_found", "section", "section_point",
        )
    )  # fmt: skip
    parameters, seed = plan.parameters, unit["seed"]
    with timed(row, plan.device):
        problem = _pair_problem(parameters, *(plan.directions[unit[part]] for part in ("first", "second")))
        seeds = unit_seeds(seed)
        train_data = problem.sample(parameters["num_train"], seeds.train_data, device=plan.device)
        x, y = problem.sample(parameters["num_test"], seeds.test_data, device=plan.device)
        network, measured = _fit(plan, train_data, (x, y), seed)
        row |= measured
        if network is None:
            return row
        first, second = (problem.direction(part).to(plan.device) for part in (0, 1))
        row |= {
            "test_accuracy_first": evaluate(network, (problem.only(0)(x), y)).accuracy,
            "test_accuracy_second": evaluate(network, (problem.only(1)(x), y)).accuracy,
            "follows_first": evaluate(network, (_reflected(x, second), y)).accuracy,
        }
        points = (x[: parameters["num_points"]], y[: parameters["num_points"]])
        angle = boundary_angle(network, points[0], first, second, dtype=plan.dtype)
        row |= {
            "angle_first": angle.to_first,
            "angle_second": angle.to_second,
            "normal": angle.normal,
            "angle_stderr": angle.stderr,
            "resultant": angle.resultant,
            "radius": angle.radius,
            "crossed": angle.num_crossed / angle.num_points,
        }
        for name, direction in (("first", first), ("second", second)):
            row[f"margin_{name}"], row[f"margin_{name}_found"] = _margin(plan, network, points, direction)
        for name, chosen in (("section", points[0]), ("section_point", points[0][0])):
            drawn = cross_section(
                network, chosen, first, second, parameters["extent"], parameters["resolution"], progress=False
            )
            row[name] = base64.b64encode(drawn.values.numpy().astype("<f4").tobytes()).decode()
    return row


def _pair_problem(parameters: Mapping[str, Any], first: Tensor, second: Tensor) -> Concatenated:
    one, other = parameters["epsilons"]
    sigma = parameters["sigma"]
    return concatenate(LinearlySeparable(first, one, sigma), LinearlySeparable(second, other, sigma))


def _train_transition(plan: _Plan, unit: Mapping[str, Any]) -> Row:
    """One network on images ⊕ D(v), or on one of them alone, and all that is asked of it."""
    row: Row = dict.fromkeys(
        ("test_accuracy_images", "test_accuracy_direction", "follows_images", "margin", "margin_found")
    )
    parameters, seed = plan.parameters, unit["seed"]
    with timed(row, plan.device):
        train_images, test_images = _load(tuple(parameters["images"].items()))
        v = plan.directions[unit["index"]]
        part = LinearlySeparable(v, parameters["epsilon"], parameters["sigma"])
        problem, test_problem = concatenate(train_images, part), concatenate(test_images, part)
        seeds = unit_seeds(seed)
        x_train, y_train = problem.sample(len(train_images.y), seeds.train_data, device=plan.device)
        x, y = test_problem.sample(len(test_images.y), seeds.test_data, device=plan.device)
        views = {"images": problem.only(0), "direction": problem.only(1)}
        if unit["part"] != "both":
            x_train, x = views[unit["part"]](x_train), views[unit["part"]](x)
        network, measured = _fit(plan, (x_train, y_train), (x, y), seed)
        row |= measured
        if network is None or unit["part"] != "both":
            return row
        direction = problem.direction(1).to(plan.device)
        points = (x[: parameters["num_points"]], y[: parameters["num_points"]])
        margin, found = _margin(plan, network, points, direction)
        row |= {f"test_accuracy_{name}": evaluate(network, (view(x), y)).accuracy for name, view in views.items()}
        row |= {
            "follows_images": evaluate(network, (_reflected(x, direction), y)).accuracy,
            "margin": margin,
            "margin_found": found,
        }
    return row


@functools.lru_cache(maxsize=1)
def _load(arguments: tuple[tuple[str, Any], ...]) -> tuple[Labelled, Labelled]:
    """Normalised images with binary labels, to train and to test on: y = 1 for the second half of the classes."""
    images = load_images(**dict(arguments), progress=False)
    positive = range(images.num_classes // 2, images.num_classes)
    train_images, test_images = (
        Labelled(images.normalise(x), binary(y, positive))
        for x, y in ((images.x_train, images.y_train), (images.x_test, images.y_test))
    )
    return train_images, test_images


# ---------------------------------------------------------------------------------------------------------------------
# Many trainings
# ---------------------------------------------------------------------------------------------------------------------


def _directions(parameters: Mapping[str, Any]) -> tuple[dict[int, Tensor], dict[int, float]]:
    """Directions and eigenvalues by index; a random basis has none."""
    nads = load_atlas(parameters["nads_of"])
    if parameters.get("basis") == "random":
        basis = random_basis(_SIZE, DerivedSeed(0))  # the stream that the stored results were made with
        return {index: basis[index] for index in parameters["indices"]}, {}
    vectors, eigenvalues = nads.vectors.float(), nads.eigenvalues
    return (
        {index: vectors[index] for index in parameters["indices"]},
        {index: float(eigenvalues[index]) for index in parameters["indices"]},
    )


def _run(
    function: Any, units: Sequence[Row], directions: Mapping[int, Tensor], parameters: dict[str, Any], session: Session
) -> pd.DataFrame:
    """All units for the first seed, then for the next."""
    seeds = [session.seed + number for number in range(parameters["num_seeds"])]
    digest = hashlib.sha256(b"".join(v.half().numpy().tobytes() for v in directions.values())).hexdigest()
    try:
        table = run_units(
            functools.partial(function, _Plan(parameters, directions, session.device)),
            [{**unit, "seed": seed} for seed in seeds for unit in units],
            journal=session.folder / "trainings.sqlite",
            parameters=parameters | {"kind": function.__name__, "directions": digest},
            num_jobs=session.num_jobs,
            progress=session.progress,
            description=f"{parameters['architecture']}, two features",
        )
    finally:
        _load.cache_clear()  # large
    return table.drop(columns="device")


def _numbers(table: pd.DataFrame) -> dict[str, np.ndarray]:
    return {str(name): table[name].to_numpy(float, na_value=np.nan) for name in table}


def _pairs(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    directions, eigenvalues = _directions(parameters)
    units = [{"first": i, "second": j} for i in parameters["indices"] for j in parameters["indices"]]
    table = _run(_train_pair, units, directions, parameters, session)
    resolution, names = parameters["resolution"], ["section", "section_point"]
    sections = {f"{name}s": np.stack([_decoded(text, resolution) for text in table[name]]) for name in names}
    for part in ("first", "second"):
        table[f"eigenvalue_{part}"] = [eigenvalues.get(index, np.nan) for index in table[part]]
    axis = np.linspace(-parameters["extent"], parameters["extent"], resolution)
    return _numbers(table.drop(columns=names)) | sections | {"coordinates": axis}


def _decoded(text: str | None, resolution: int) -> np.ndarray:
    if text is None:
        return np.full((resolution, resolution), np.nan, np.float32)
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(resolution, resolution).astype(np.float32)


def _transition(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    directions, eigenvalues = _directions(parameters)
    indices = parameters["indices"]
    units: list[Row] = [{"part": "both", "index": index} for index in indices]
    units.append({"part": "images", "index": indices[0]})
    if parameters["alone"]:
        units += [{"part": "direction", "index": index} for index in indices]
    table = _run(_train_transition, units, directions, parameters, session)
    parts = np.array(table["part"].tolist())
    table["eigenvalue"] = [eigenvalues[index] for index in table["index"]]
    return {"part": parts} | _numbers(table.drop(columns="part"))


# ---------------------------------------------------------------------------------------------------------------------
# Stored results
# ---------------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Pairs:
    """Stored trainings on pairs of directions.

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each training, ordered by seed: ``first``, ``second`` (indices of v₁ and v₂), ``seed``, accuracies
        (``test_accuracy`` with both channels, ``test_accuracy_first`` with the second one switched off,
        ``test_accuracy_second`` with the first one switched off), ``follows_first`` (the share of answers with the
        first channel where the two contradict each other), losses, ``max_lr`` (smaller than the paper's where
        the training had to be repeated), angles in radians (see :class:`nadtools.boundaries.BoundaryAngle`) and median
        margins (infinite where most points have none). NaN where a training diverged. The record of the first seed's
        run is in ``attrs``.
    sections, section_points : array
        Shape (rows, r, r): the decision function in the plane of v₁ and v₂, averaged over test points, and through the
        first test point, as :class:`nadtools.boundaries.CrossSection` holds it.
    coordinates : array
        Shape (r,), along either direction.
    """

    table: pd.DataFrame
    sections: np.ndarray
    section_points: np.ndarray
    coordinates: np.ndarray


def load_pairs(architecture: str, basis: str = "nads", *, results_dir: str | os.PathLike[str] | None = None) -> Pairs:
    """Load the stored trainings on pairs, of all seeds that are stored; ``"paper"`` comes before ``"laptop"``.

    Parameters
    ----------
    architecture : str
    basis : {"nads", "random"}
        What the indices count: the architecture's NADs (LeNet's for logistic regression and the MLP), or the vectors of
        one random orthonormal basis.
    results_dir : path, optional

    Raises
    ------
    FileNotFoundError
        If none is stored; the message holds the command that makes them.
    ValueError
        If the architecture or the basis is not known, or a file is damaged.
    """
    stored, record = _load_seeds("B2", {"architecture": architecture, "basis": basis}, results_dir)
    apart = ("sections", "section_points")
    tables = [pd.DataFrame({k: v for k, v in one.items() if v.ndim == 1 and k != "coordinates"}) for one in stored]
    table, kept = _joined(tables)
    table.attrs |= record
    sections, points = (np.concatenate([one[name] for one in stored])[kept] for name in apart)
    return Pairs(table, sections, points, stored[0]["coordinates"])


def load_transition(architecture: str, *, results_dir: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Load the stored trainings on images ⊕ D(v) with the best data there are, of all seeds that are stored.

    The order is that of ``companion.photographs.DATA``; with the same data the scale ``"paper"`` comes before
    ``"laptop"``.

    Returns
    -------
    pandas.DataFrame
        A row for each training: ``part`` (``"both"``, or what alone was trained on: ``"images"`` or ``"direction"``),
        ``index``, ``seed``, ``eigenvalue``, ``max_lr``, accuracies and losses on what was trained on, and where that is
        both:
        ``test_accuracy_images`` (D(v) switched off), ``test_accuracy_direction`` (images switched off),
        ``follows_images`` (the share of answers with the image where it contradicts D(v)), ``margin`` (median distance
        to the boundary along v, infinite where most points have none) and ``margin_found``. The record of the first
        seed's run is in ``attrs``.

    Raises
    ------
    FileNotFoundError
        If none is stored; the message holds the command that makes them.
    ValueError
        If the architecture is not known, or a file is damaged.
    """
    found = None
    for data in DATA:
        selectors = {"architecture": architecture, "data": data}
        if _scale_of("B3", selectors, results_dir) is not None:
            found = selectors
            break
    selectors = found or {"architecture": architecture, "data": "cifar10-subset"}
    stored, record = _load_seeds("B3", selectors, results_dir)
    table, _ = _joined([pd.DataFrame(dict(one)) for one in stored])
    table.attrs |= record
    return table


def _scale_of(
    name: str, selectors: Mapping[str, str], results_dir: str | os.PathLike[str] | None
) -> tuple[Scale, list[int]] | None:
    """The best scale that is stored, and its seeds."""
    scales: tuple[Scale, ...] = ("paper", "laptop")
    for scale in scales:
        seeds = [
            seed
            for seed in range(_MOST_SEEDS)
            if result_path(name, scale=scale, seed=seed, results_dir=results_dir, **selectors).exists()
        ]
        if seeds:
            return scale, seeds
    return None


def _load_seeds(
    name: str, selectors: dict[str, str], results_dir: str | os.PathLike[str] | None
) -> tuple[list[Any], dict[str, Any]]:
    """The results of all stored runs that differ in nothing but the seed, and the record of the first."""
    scale, seeds = _scale_of(name, selectors, results_dir) or ("laptop", [0])
    where: dict[str, Any] = {"scale": scale, "results_dir": results_dir, **selectors}
    stored = [load(name, seed=seed, **where) for seed in seeds]
    records = [read_record(result_path(name, seed=seed, **where)) for seed in seeds]
    alike = [k for k, record in enumerate(records) if record["parameters"] == records[0]["parameters"]]
    return [stored[k] for k in alike], records[0]


def _joined(tables: list[pd.DataFrame]) -> tuple[pd.DataFrame, np.ndarray]:
    """One table, in which a training that two runs share stands once; and which rows these are."""
    names = [name for name in ("part", "index", "first", "second", "seed") if name in tables[0]]
    table = pd.concat(tables, ignore_index=True)
    kept = np.flatnonzero(~table.duplicated(names).to_numpy())
    return table.iloc[kept].reset_index(drop=True), kept


# ---------------------------------------------------------------------------------------------------------------------
# Claims
# ---------------------------------------------------------------------------------------------------------------------


def pair_claims(table: pd.DataFrame, isotropic: bool) -> pd.DataFrame:
    """Hold the paper's statements about figures 2 and 4 to 8 against trainings on pairs.

    For an isotropic network (figures 4 and 5), in numbers: at least 98 % with both channels at every pair; with one
    channel the accuracy differs by at most 5 points between any two pairs; the first channel alone is better than the
    second at every pair; the angle of the boundary differs by at most 10 degrees.

    For others (figures 2, 6, 7 and 8), with E the smallest and L the largest index: accuracy with both channels is at
    least 20 points lower at (L, L) than at (E, E); at (E, L) the second channel alone, and at (L, E) the first one
    alone, is within 5 points of chance; there the boundary is parallel to the direction of that channel to within 15
    degrees; at (E, E) the boundary lies within 15 degrees of the one of maximum margin, 63.4 degrees from the first
    direction.

    For all of them: the training loss is at most 0.01 in every run.

    Parameters
    ----------
    table
        As in :class:`Pairs`. Seeds are averaged, but for the training loss. A pair with a diverged training has no
        average, and no claim about it holds.
    isotropic
        Whether the architecture prefers no direction.

    Returns
    -------
    pandas.DataFrame
        A row for each claim, with the columns claim, measured and verdict.

    Raises
    ------
    ValueError
        If a pair is missing, or there are fewer than two indices.
    """
    names = ["test_accuracy", "test_accuracy_first", "test_accuracy_second", "angle_first"]
    means = _means(table, ["first", "second"], names)
    firsts, seconds = (sorted(set(table[part])) for part in ("first", "second"))
    if len(firsts) < 2 or firsts != seconds or len(means) != len(firsts) ** 2:
        raise ValueError(
            f"got {len(means)} pairs of the indices {firsts} and {seconds}; expected all pairs of at least two"
        )
    both, one, other = (means[name].to_numpy() for name in names[:3])
    angle = np.degrees(means["angle_first"].to_numpy())
    if isotropic:
        spread = float(np.max([np.ptp(one), np.ptp(other)]))
        claims = [
            ("both channels: at least 98 % at every pair", _share(both.min()), both.min() >= 0.98),
            ("one channel: pairs differ by at most 5 points", _points(spread), spread <= 0.05),
            (
                "the first channel alone is better at every pair; the least difference",
                _points(float((one - other).min())),
                float((one - other).min()) > 0,
            ),
            ("the boundary's angle differs by at most 10°", _degrees(float(np.ptp(angle))), np.ptp(angle) <= 10),
        ]
    else:
        early, late = firsts[0], firsts[-1]
        fall = float(means["test_accuracy"][early, early] - means["test_accuracy"][late, late])
        alone = [
            float(abs(means[name][pair] - 0.5))
            for name, pair in (("test_accuracy_second", (early, late)), ("test_accuracy_first", (late, early)))
        ]
        # The two directions are orthogonal, so the angles add up to 90 degrees.
        to_first = np.degrees(means["angle_first"])
        angles = [90 - float(to_first[early, late]), float(to_first[late, early])]
        away = abs(float(to_first[early, early]) - _MAXIMUM_MARGIN)
        claims = [
            ("both channels: two late directions cost at least 20 points", _points(fall), fall >= 0.2),
            (
                "a late channel beside an early one: within 5 points of chance",
                _points(float(np.max(alone))),
                np.max(alone) <= 0.05,
            ),
            (
                "and the boundary is parallel to its direction, to within 15°",
                " and ".join(map(_degrees, angles)),
                np.max(angles) <= 15,
            ),
            ("two early directions: at most 15° away from the maximum margin", _degrees(away), away <= 15),
        ]
    return claims_table([*claims, _loss_claim(table)])


_MAXIMUM_MARGIN: Final = float(np.degrees(np.arctan2(1.0, 0.5)))


def concatenation_claims(table: pd.DataFrame, isotropic: bool) -> pd.DataFrame:
    """Hold the paper's statements about figure 3 against trainings on images ⊕ D(v).

    For an isotropic network, in numbers: with D(v) alone at least 90 % at every index, and with the images alone at
    most 60 %.

    For others: at the first index at least 90 % with D(v) alone and at most 60 % with the images alone; at the last
    index at most 55 % with D(v) alone, and with the images alone at most 5 points less than a network that was trained
    on the images alone.

    For all of them: the training loss is at most 0.01 in every run on both parts.

    Parameters
    ----------
    table
        As :func:`load_transition` gives it. Seeds are averaged, but for the training loss.
    isotropic
        Whether the architecture prefers no direction.

    Returns
    -------
    pandas.DataFrame
        A row for each claim, with the columns claim, measured and verdict.

    Raises
    ------
    ValueError
        If there are fewer than two indices, or no training on images alone.
    """
    trained = table[table["part"] == "both"]
    names = ["test_accuracy_images", "test_accuracy_direction"]
    means = _means(trained, ["index"], names)
    reference = float(table[table["part"] == "images"]["test_accuracy"].mean())
    if len(means) < 2 or not np.isfinite(reference):
        raise ValueError(f"got {len(means)} indices and a reference of {reference}; expected a result of B3")
    images, direction = (means[name].to_numpy() for name in names)
    if isotropic:
        claims = [
            ("D(v) alone: at least 90 % at every index", _share(direction.min()), direction.min() >= 0.9),
            ("images alone: at most 60 % at every index", _share(images.max()), images.max() <= 0.6),
        ]
    else:
        lost = reference - float(images[-1])
        claims = [
            ("first index: at least 90 % with D(v) alone", _share(direction[0]), direction[0] >= 0.9),
            ("first index: at most 60 % with the images alone", _share(images[0]), images[0] <= 0.6),
            ("last index: at most 55 % with D(v) alone", _share(direction[-1]), direction[-1] <= 0.55),
            (
                "last index: the images alone lose at most 5 points on a training without D(v)",
                _points(lost),
                lost <= 0.05,
            ),
        ]
    return claims_table([*claims, _loss_claim(trained)])


def _means(table: pd.DataFrame, by: list[str], names: list[str]) -> pd.DataFrame:
    """Means over seeds; NaN where one of them diverged."""
    complete = table.groupby(by)[names].count().eq(table.groupby(by).size(), axis=0)
    return table.groupby(by)[names].mean().where(complete)


def _loss_claim(table: pd.DataFrame) -> tuple[str, str, bool]:
    losses = table["train_loss"].to_numpy(float)
    count = int((losses <= 0.01).sum())  # a diverged run has no loss
    return "training loss at most 0.01 in every run", f"in {count} of {len(losses)}", count == len(losses)


def _points(difference: float) -> str:
    return _known(difference, f"{100 * difference:.1f} points")


def _share(accuracy: float) -> str:
    return _known(accuracy, f"{accuracy:.1%}")


def _degrees(angle: float) -> str:
    return _known(angle, f"{angle:.1f}°")


def _known(value: float, text: str) -> str:
    return text if np.isfinite(value) else "not known"


EXPERIMENTS = (
    Experiment(
        "B2",
        "test accuracy and decision boundary on two channels, D(v1) and D(v2), over pairs of directions",
        {"architecture": _ARCHITECTURES, "basis": _BASES},
        _pairs_parameters,
        _pairs,
    ),
    Experiment(
        "B3",
        "test accuracy on binary images with a channel of D(v), and on each part, over NADs",
        {"architecture": ("mlp", "lenet", "vgg11", "resnet18"), "data": tuple(DATA)},
        _transition_parameters,
        _transition,
    ),
)
