"""Many trainings: an architecture on many problems with many seeds, one row for each.

A training is bound to its problem and its seed, and not to the process that runs it. See :mod:`nadtools.units` for how
the trainings are spread over processes or machines, and kept.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pandas as pd
import torch
from torch import Tensor, nn

from nadtools import checks
from nadtools.checks import positive_int
from nadtools.device import derive_seed, isolated_random_state, one_thread, resolve_device, unaffected_by_context
from nadtools.distributions import LinearlySeparable
from nadtools.ensembles import can_train_together, train_together
from nadtools.networks import Architecture, Output, add_tensor, fingerprint, network_source
from nadtools.training import Data, TrainConfig, TrainResult, check_fit, check_precision, evaluate, train
from nadtools.units import Row, Task, name_units, run_tasks

__all__ = ["Problem", "UnitSeeds", "sweep", "unit_seeds"]

View = Callable[[Tensor], Tensor]


@runtime_checkable
class Problem(Protocol):
    """Anything that samples x of shape (n, channels, h, w) and y of shape (n,), int64: :class:`LinearlySeparable`.

    A dataclass of numbers, texts, tensors and other such dataclasses, so that a journal can tell one from another.
    """

    def sample(self, n: int, seed: int = 0, *, device: str | torch.device | None = None) -> tuple[Tensor, Tensor]:
        """Draw n samples on the device."""
        ...


_PROCEDURE = 1  # to be raised whenever the same parameters would give other numbers
_INITIALISATION, _ORDER, _TRAIN_DATA, _TEST_DATA, _LAYERS = range(5)  # random streams of a seed
_LOSS_WINDOW = 10
_NETWORKS_AT_ONCE = 16  # on a GPU


class UnitSeeds(NamedTuple):
    """Seeds of what is random in a training."""

    initialisation: int
    order: int
    train_data: int
    test_data: int


def unit_seeds(seed: int) -> UnitSeeds:
    """Return the seeds that :func:`sweep` uses for a training with this seed.

    ``initialisation`` is for :func:`nadtools.build` (a callable architecture is called with PyTorch's global generator
    seeded with it), ``order`` for :class:`nadtools.TrainConfig`, the others for the problem's ``sample``.
    """
    streams = (_INITIALISATION, _ORDER, _TRAIN_DATA, _TEST_DATA)
    return UnitSeeds(*(derive_seed(seed, stream) for stream in streams))


@dataclasses.dataclass(frozen=True)
class _Plan:
    """All that the trainings of a sweep have in common."""

    build: Callable[[int], nn.Module]
    config: TrainConfig
    num_train: int
    num_test: int
    loss_level: float | None
    views: Mapping[str, View]
    device: torch.device


@unaffected_by_context()
def sweep(
    architecture: Architecture,
    directions: Mapping[Any, Tensor | Problem] | Sequence[Tensor | Problem] | Tensor,
    *,
    epsilon: float = 1.0,
    sigma: float = 3.0,
    num_train: int = 10_000,
    num_test: int = 10_000,
    config: TrainConfig | None = None,
    seeds: Sequence[int] = (0,),
    loss_level: float | None = 0.01,
    views: Mapping[str, View] | None = None,
    output: Output | None = None,
    networks_at_once: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    num_jobs: int | None = None,
    device: str | torch.device | None = None,
    progress: bool = True,
    **build_options: Any,
) -> pd.DataFrame:
    r"""Train an architecture on D(v) for many directions v, or on problems of other kinds; one row per training.

    What is random in a training depends on its seed alone (see :func:`unit_seeds`). So at one seed all directions share
    the initial network, the labels, the order of the samples, and the noise before its part along v is taken out: what
    a seed adds is common to them, and error bars have to come from several seeds.

    Each training runs on one thread, so that the same call gives the same numbers in one process, in several and on a
    cluster of like machines. On a GPU rounding differs from run to run, and the samples are other draws than a CPU's.

    Args:
        architecture: As for :func:`nadtools.estimate_nads`, but with an output for each class.
        directions: Directions v of shape (h, w) or (channels, h, w) by label (a number, a text, or a tuple such as a
            frequency), or in a sequence, whose labels are 0, 1, ... Instead of a direction it may hold any
            :class:`Problem`, such as D(v₁)⊕D(v₂).
        epsilon, sigma: Of D(v), see :class:`nadtools.LinearlySeparable`. Problems have their own.
        num_train, num_test: Samples to train on, and to test on.
        config: Its own seed must be 0: ``seeds`` takes its place.
        seeds: Every problem is trained once with each.
        loss_level: Count the steps to this training loss (:meth:`nadtools.TrainResult.steps_to_loss`, averaged over 10
            steps).
        views: What else to test on: each changes the images of the test set, for example sets one channel to zero, and
            must not depend on chance. A journal knows views by their names only.
        output: Where a network's result is no tensor with an output for each class: as for
            :func:`nadtools.estimate_nads`.
        networks_at_once: Networks that one process trains at the same time, see
            :func:`nadtools.ensembles.train_together`. By default 16 where the device is CUDA and the architecture
            allows it, else 1. More than one changes the rounding.
        journal: A file that keeps every finished training. The same call goes on where an interrupted one stopped, also
            with more directions or seeds, and on a device of another kind.
        **build_options: For a named architecture, passed on to :func:`nadtools.build`: ``width``, ``pooling``,
            ``num_classes``...

    Returns:
        pandas.DataFrame: One row per training, in the order of the directions and for each in that of the seeds.
            Columns: direction (the label), seed, train_accuracy, test_accuracy, test_accuracy_NAME for each view,
            train_loss, test_loss, steps (to ``loss_level``; NA if never), seconds (of networks trained at once each has
            its share), device ("cpu" or "cuda"). Accuracies and losses are NaN where the training diverged.

    Raises:
        TypeError, ValueError: Also if the journal is damaged or belongs to another computation.
        OSError: If the journal cannot be written, for instance because the disk is full. What is finished is kept.
    """
    config = TrainConfig() if config is None else config
    checks.instance("config", config, TrainConfig, "a TrainConfig")
    checks.flags(progress=progress)
    checks.number_of_jobs(num_jobs)
    if journal is not None:
        checks.file_path("journal", journal)
    if config.seed != 0:
        raise ValueError(f"got a config with seed={config.seed}; expected 0: the argument seeds takes its place")
    resolved = resolve_device(device)
    check_precision(config, resolved)
    if loss_level is not None:
        loss_level = checks.positive_number("loss_level", loss_level)
    num_train, num_test = positive_int("num_train", num_train), positive_int("num_test", num_test)
    checked_seeds = checks.integers("seeds", seeds, 0, 2**4096, "non-negative ints, for instance range(3)")
    if not checked_seeds or len(set(checked_seeds)) < len(checked_seeds):
        raise ValueError(f"got seeds={checked_seeds}; expected at least one, and each only once")
    problems, of_directions = _problems(directions, epsilon, sigma)
    image_shape, views = _check_problems(problems, {} if views is None else views, resolved)
    source = network_source(architecture, image_shape, build_options, chosen={}, caller="sweep", output=output)
    plan = _Plan(source, config, num_train, num_test, loss_level, views, resolved)
    first, at_once = _check_architecture(plan, next(iter(problems.values())), networks_at_once)

    parameters = {
        "kind": "sweep",
        "procedure": _PROCEDURE,
        **(fingerprint(source, first, image_shape) if journal is not None else {}),
        **({"epsilon": float(epsilon), "sigma": float(sigma)} if of_directions else {}),
        "num_train": num_train,
        "num_test": num_test,
        "config": config.parameters(),
        "loss_level": loss_level,
        "loss_window": _LOSS_WINDOW,
        "views": sorted(views),
    }
    pairs = [(label, seed) for label in problems for seed in checked_seeds]
    names = name_units([{"direction": label, "seed": seed} for label, seed in pairs])
    digests = {label: _digest(problem, hashlib.sha256()) for label, problem in problems.items()}

    def tasks(indices: Sequence[int]) -> Iterator[Task]:
        for start in range(0, len(indices), at_once):
            group = indices[start : start + at_once]
            units = [(problems[label], seed) for label, seed in (pairs[index] for index in group)]
            one = functools.partial(_train_one, plan, *units[0])
            yield Task(group, one if len(units) == 1 else functools.partial(_train_group, plan, units))

    marks, title = [digests[label] for label, _ in pairs], f"{source.name} on D(v)"
    table = run_tasks(names, marks, tasks, journal, parameters, num_jobs, progress, title)
    by_view = [f"test_accuracy_{view}" for view in views]
    series = ["train_accuracy", "test_accuracy", *by_view, "train_loss", "test_loss"]
    types = {**dict.fromkeys(series, "float64"), "steps": "Int64"}
    return table.astype(types)[["direction", "seed", *series, "steps", "seconds", "device"]]


def _train_one(plan: _Plan, problem: Problem, seed: int) -> list[Row]:
    """The unit of work of a process: one training, from data to row."""
    # PyTorch's global generator, from which layers draw, is one for all threads of a process.
    with one_thread(), isolated_random_state(derive_seed(seed, _LAYERS)):
        start = time.perf_counter()
        network, train_data, test_data, config = _prepare(plan, problem, seed)
        try:
            result = train(network, train_data, test_data, config, evaluate_every=0, device=plan.device, progress=False)
        except FloatingPointError:
            result = None
        row = _row(plan, result, network, test_data)
        return [row | {"seconds": round(time.perf_counter() - start, 3), "device": plan.device.type}]


def _train_group(plan: _Plan, units: Sequence[tuple[Problem, int]]) -> list[Row]:
    """Several trainings at once."""
    with one_thread():
        start = time.perf_counter()
        prepared = [_prepare(plan, problem, seed) for problem, seed in units]
        results = train_together(*zip(*prepared, strict=True), device=plan.device, progress=False)
        rows = [
            _row(plan, None if math.isnan(result.train_loss) else result, network, test_data)
            for result, (network, _, test_data, _) in zip(results, prepared, strict=True)
        ]
        seconds = round((time.perf_counter() - start) / len(units), 3)
        return [row | {"seconds": seconds, "device": plan.device.type} for row in rows]


def _prepare(plan: _Plan, problem: Problem, seed: int) -> tuple[nn.Module, Data, Data, TrainConfig]:
    """A training's network, its data on the device, and its configuration."""
    seeds = unit_seeds(seed)
    train_data = problem.sample(plan.num_train, seeds.train_data, device=plan.device)
    test_data = problem.sample(plan.num_test, seeds.test_data, device=plan.device)
    return plan.build(seeds.initialisation), train_data, test_data, dataclasses.replace(plan.config, seed=seeds.order)


def _row(plan: _Plan, result: TrainResult | None, network: nn.Module, test_data: Data) -> Row:
    """What a training came to; None for a number where it diverged."""
    series = ["train_accuracy", "test_accuracy", "train_loss", "test_loss"]
    row: Row = dict.fromkeys([*series, "steps", *(f"test_accuracy_{view}" for view in plan.views)])
    if result is not None:
        row |= {name: getattr(result, name) for name in series}
        if plan.loss_level is not None:
            row["steps"] = result.steps_to_loss(plan.loss_level, _LOSS_WINDOW)
        for view, change in plan.views.items():
            row[f"test_accuracy_{view}"] = evaluate(network, (change(test_data[0]), test_data[1])).accuracy
    return row


def _problems(directions: Any, epsilon: float, sigma: float) -> tuple[dict[Any, Problem], bool]:
    """Problems by label, and whether some of them are directions."""
    if isinstance(directions, Tensor):
        if directions.ndim not in (3, 4):
            shape = tuple(directions.shape)
            raise ValueError(f"got directions of shape {shape}; expected (n, h, w) or (n, channels, h, w), or [v]")
        directions = list(directions)
    if isinstance(directions, Sequence) and not isinstance(directions, str | bytes):
        directions = dict(enumerate(directions))
    checks.instance("directions", directions, Mapping, "a mapping to tensors, or a sequence of them")
    items = dict(directions)
    if not items:
        raise ValueError("got no directions; expected at least one")
    of_directions = any(isinstance(value, Tensor) for value in items.values())
    epsilon = checks.positive_number("epsilon", epsilon)
    sigma = checks.nonnegative_number("sigma", sigma)
    if not of_directions and (epsilon, sigma) != (1.0, 3.0):
        raise ValueError(f"got epsilon={epsilon} and sigma={sigma} for problems, which have their own; leave them out")
    for label, value in items.items():
        checks.instance(f"directions[{label!r}]", value, (Tensor, Problem), "a tensor, or what samples")
        if isinstance(value, Tensor):
            try:
                items[label] = LinearlySeparable(value, epsilon, sigma)
            except (TypeError, ValueError) as error:
                raise type(error)(f"directions[{label!r}]: {error}") from None
    return items, of_directions


def _check_problems(
    problems: Mapping[Any, Problem], views: Mapping[str, View], device: torch.device
) -> tuple[tuple[int, int, int], dict[str, View]]:
    """The shape of an image, the same for all problems; two samples of each are drawn."""
    shapes = {}
    for label, problem in problems.items():
        x, y = problem.sample(2, derive_seed(0, "check"), device=device)
        if x.ndim != 4 or len(x) != 2 or not x.is_floating_point() or y.shape != (2,) or y.dtype != torch.int64:
            gave = f"the problem {label!r} gave x {tuple(x.shape)} {x.dtype} and y {tuple(y.shape)} {y.dtype}"
            raise ValueError(f"{gave} for 2 samples; expected floating point (2, channels, h, w) and int64 (2,)")
        shapes[tuple(x.shape[1:])] = label
    if len(shapes) > 1:
        found = ", ".join(f"{shape} for {label!r}" for shape, label in shapes.items())
        raise ValueError(f"got images of different shapes: {found}; expected one")
    checks.instance("views", views, Mapping, "a mapping from names to functions of images")
    for name, view in views.items():
        checks.instance("a name in views", name, str, "a text")
        checks.function(f"views[{name!r}]", view, "a function of images", 1)
        seen = view(x)
        if not isinstance(seen, Tensor) or seen.shape != x.shape or seen.dtype != x.dtype:
            kind = f"{tuple(seen.shape)} {seen.dtype}" if isinstance(seen, Tensor) else type(seen).__name__
            raise ValueError(f"the view {name!r} gave {kind} for {tuple(x.shape)} {x.dtype}; expected the same")
        checks.tensor(f"images from the view {name!r}", seen)
    channels, height, width = next(iter(shapes))
    return (channels, height, width), dict(views)


def _check_architecture(plan: _Plan, problem: Problem, networks_at_once: int | None) -> tuple[nn.Module, int]:
    """Check that networks fit the data; the one that seed 0 initialises, and how many to train at once."""
    network = plan.build(unit_seeds(0).initialisation)
    if not isinstance(network, nn.Module):
        raise TypeError(f"the architecture returned {type(network).__name__}; expected a torch.nn.Module")
    if plan.build(unit_seeds(0).initialisation) is network:
        raise ValueError("the callable returned the same network twice; expected a new one from each call")
    x, y = problem.sample(2, derive_seed(0, "check"), device="cpu")
    check_fit("samples", network.cpu(), x, y, torch.device("cpu"))
    return network, _at_once(plan, network, x, networks_at_once)


def _at_once(plan: _Plan, network: nn.Module, x: Tensor, networks_at_once: int | None) -> int:
    if networks_at_once is None:
        suited = plan.device.type == "cuda" and can_train_together(network, x)
        return _NETWORKS_AT_ONCE if suited else 1
    number = positive_int("networks_at_once", networks_at_once)
    if number > 1 and not can_train_together(network, x):
        raise ValueError(f"got networks_at_once={number} for networks that cannot be trained at once; expected 1")
    return number


def _digest(value: Any, digest: Any) -> str:
    """Add what a problem consists of to a digest of :mod:`hashlib`; what that then is."""
    if isinstance(value, Tensor):
        add_tensor(digest, value)
    elif value is None or isinstance(value, bool | int | float | str):
        digest.update(f"{type(value).__name__} {value!r}\0".encode())
    elif isinstance(value, tuple | list):
        digest.update(f"sequence {len(value)}\0".encode())
        for part in value:
            _digest(part, digest)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        digest.update(f"{type(value).__qualname__}\0".encode())
        for field in dataclasses.fields(value):
            digest.update(f"{field.name}\0".encode())
            _digest(getattr(value, field.name), digest)
    else:
        expected = "a dataclass of tensors, numbers, texts, tuples and other such dataclasses, for a journal to tell"
        raise TypeError(f"got a problem with a part of type {type(value).__name__}; expected {expected}")
    return str(digest.hexdigest())
