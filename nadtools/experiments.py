"""Long computations under a name, and their stored results: made once, read by the chapters, checked for staleness.

An experiment states the parameters of a run before anything is computed. They are stored inside the result, so that
:func:`stale` can tell whether the code would still compute the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import operator
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy import stats

from nadtools import architectures, storage
from nadtools.device import check_seed, derive_seed, resolve_device
from nadtools.estimation import estimate_nads
from nadtools.nads import NADs
from nadtools.progress import progress_bar

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Result",
    "Scale",
    "Session",
    "load",
    "load_atlas",
    "read_record",
    "result_path",
    "results_folder",
    "run",
    "stale",
]

Scale = Literal["smoke", "laptop", "paper"]
Result = NADs | Mapping[str, np.ndarray]
_RECORD = "record"
_CHECKOUT = Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True)
class Session:
    """How a run is carried out: nothing here changes its result but for the seed, and rounding.

    Attributes
    ----------
    seed : int
    device : torch.device
    num_jobs : int or None
        Processes that work at the same time, as joblib's ``n_jobs``.
    progress : bool
        Show progress bars.
    folder : Path
        For checkpoints. What an interrupted run leaves there, the next one finds; it is removed after the run.
    """

    seed: int
    device: torch.device
    num_jobs: int | None
    progress: bool
    folder: Path


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A computation whose result is stored.

    Attributes
    ----------
    name, summary : str
    selectors : mapping of str to tuple of str
        What the caller has to choose, and the values to choose from.
    parameters : callable
        ``parameters(scale, **selectors)`` gives all that determines the result besides the seed, as JSON can hold it.
        It computes nothing, so it is also how a stored result is recognised as stale.
    compute : callable
        ``compute(parameters, session)`` does the work and gives NADs, or arrays by name.
    """

    name: str
    summary: str
    selectors: Mapping[str, tuple[str, ...]]
    parameters: Callable[..., dict[str, Any]]
    compute: Callable[[dict[str, Any], Session], Result]


# ---------------------------------------------------------------------------------------------------------------------
# The experiments
# ---------------------------------------------------------------------------------------------------------------------

_ATLAS_NETWORKS: dict[Scale, dict[str, int]] = {
    "smoke": {"lenet": 2, "vgg11": 2, "resnet18": 2, "densenet121": 2},
    "laptop": {"lenet": 100, "vgg11": 20, "resnet18": 10, "densenet121": 5},
    "paper": {"lenet": 1000, "vgg11": 200, "resnet18": 100, "densenet121": 50},
}


def _atlas_parameters(scale: Scale, architecture: str, estimator: str) -> dict[str, Any]:
    # A smoke run checks the machinery: narrow networks are enough where the true ones take minutes.
    width = 0.25 if scale == "smoke" and architecture != "lenet" else 1.0
    image_size = (32, 32)
    step: dict[str, Any] = {"scale": 100.0} if estimator == "secant" else {}
    return {
        "architecture": architecture,
        "num_networks": _ATLAS_NETWORKS[scale][architecture],
        "estimator": estimator,
        **step,
        "evaluation_point": "normal",
        "average_output_layer": True,
        "symmetries": architectures.symmetry_group(architecture, image_size),
        "in_channels": 1,
        "image_size": image_size,
        "width": width,
    }


def _atlas(parameters: dict[str, Any], session: Session) -> NADs:
    return estimate_nads(
        **parameters,
        seed=session.seed,
        num_jobs=session.num_jobs,
        checkpoint=session.folder / "moments.npz",
        device=session.device,
        progress=session.progress,
    )


def _coverage_parameters(scale: Scale) -> dict[str, Any]:
    repetitions, reference = {"smoke": (3, 20), "laptop": (50, 1500), "paper": (500, 20_000)}[scale]
    return {
        "architecture": "lenet",
        "width": 0.5,
        "estimator": "secant",
        "evaluation_point": "normal",
        "num_networks": 20,
        "repetitions": repetitions,
        "reference_networks": reference,
        "level": 0.95,
        # Groups of eigenvalues: exactly equal ones count as one, and neighbours differ by at least this share.
        "separation": 0.02,
        "groups": 20,
    }


def _coverage(parameters: dict[str, Any], session: Session) -> dict[str, np.ndarray]:
    """How often the intervals of repeated estimates contain the eigenvalues of a much larger one."""
    chosen = {key: parameters[key] for key in ("architecture", "width", "estimator", "evaluation_point")}
    options = {**chosen, "num_jobs": session.num_jobs, "device": session.device, "progress": False}
    reference = estimate_nads(
        num_networks=parameters["reference_networks"],
        seed=derive_seed(session.seed, 0),
        checkpoint=session.folder / "reference.npz",
        **options,
    ).eigenvalues.numpy()
    starts = np.flatnonzero(np.diff(reference, prepend=np.inf))
    values = reference[starts]
    ratios = np.concatenate([[np.inf], values[:-1] / np.maximum(values[1:], 1e-300), [np.inf]]) - 1
    separated = starts[np.minimum(ratios[:-1], ratios[1:]) > parameters["separation"]][: parameters["groups"]]

    estimates, errors = [], []
    for repetition in progress_bar(range(parameters["repetitions"]), session.progress, desc="repetitions"):
        nads = estimate_nads(
            num_networks=parameters["num_networks"], seed=derive_seed(session.seed, 1, repetition), **options
        )
        estimates.append(nads.eigenvalues.numpy()[separated])
        errors.append(nads.eigenvalue_stderr.numpy()[separated])
    # Ten blocks of networks leave nine degrees of freedom.
    quantile = stats.t.ppf((1 + parameters["level"]) / 2, df=9)
    inside = np.abs(np.array(estimates) - reference[separated]) <= quantile * np.array(errors)
    return {
        "index": separated,
        "coverage": inside.mean(0),
        "reference": reference[separated],
        "mean_estimate": np.mean(estimates, axis=0),
        "spread": np.std(estimates, axis=0, ddof=1),
        "mean_standard_error": np.mean(errors, axis=0),
    }


EXPERIMENTS: dict[str, Experiment] = {
    "atlas": Experiment(
        "atlas",
        "NADs of the convolutional architectures, with their convergence",
        {"architecture": tuple(_ATLAS_NETWORKS["laptop"]), "estimator": ("secant", "gradient")},
        _atlas_parameters,
        _atlas,
    ),
    "coverage": Experiment(
        "coverage",
        "how often the eigenvalues' 95 % intervals contain the true ones, for LeNet at half width",
        {},
        _coverage_parameters,
        _coverage,
    ),
}


def load_atlas(
    architecture: str,
    estimator: str = "secant",
    scale: Scale | None = None,
    *,
    results_dir: str | os.PathLike[str] | None = None,
) -> NADs:
    """Load stored NADs: of the largest scale there is, or of the one that is named.

    Smoke results, of two narrow networks, are read only when named.

    Raises
    ------
    FileNotFoundError
        If none is stored; the message holds the command that makes it.
    ValueError
        If there is no such architecture, estimator or scale, or the file is damaged.
    """
    scales: tuple[Scale, ...] = ("paper", "laptop") if scale is None else (scale,)
    where: dict[str, Any] = {"results_dir": results_dir, "architecture": architecture, "estimator": estimator}
    largest = next((one for one in scales if result_path("atlas", scale=one, **where).exists()), scales[-1])
    stored = load("atlas", scale=largest, **where)
    assert isinstance(stored, NADs)
    return stored


# ---------------------------------------------------------------------------------------------------------------------
# Running, storing, reading
# ---------------------------------------------------------------------------------------------------------------------


def run(
    name: str,
    *,
    scale: Scale = "laptop",
    seed: int = 0,
    device: str | torch.device | None = None,
    num_jobs: int | None = None,
    results_dir: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **selectors: str,
) -> Path:
    """Carry out an experiment and store its result; go on where an interrupted run of the same stopped.

    A result that is already stored is computed anew and replaced.

    Parameters
    ----------
    name : str
        A key of ``EXPERIMENTS``.
    scale : {"smoke", "laptop", "paper"}
    seed : int
    device : str, torch.device or None
    num_jobs : int, optional
        Processes that work at the same time, -1 for one on each core.
    results_dir : path, optional
        See :func:`results_folder`. Checkpoints lie in its folder ``.partial`` until the run is complete.
    progress : bool
    **selectors : str
        What the experiment asks for, such as ``architecture="lenet"``.

    Returns
    -------
    Path
        Of the result, for :func:`load`.

    Raises
    ------
    ValueError
        If a name, scale, selector, seed or device is not known, or the folder does not exist or cannot be written; all
        this before anything is computed.
    """
    experiment, parameters = _parameters(name, scale, selectors)
    if num_jobs is not None and operator.index(num_jobs) == 0:
        raise ValueError("got num_jobs=0; expected a positive int, -1 for one on each core, or None")
    seed, resolved = check_seed(seed), resolve_device(device)
    path = result_path(name, scale=scale, seed=seed, results_dir=results_dir, **selectors)
    with _working_folder(path, parameters) as folder:
        resumed = any(entry.name != ".gitignore" for entry in folder.iterdir())
        start = time.perf_counter()
        result = experiment.compute(parameters, Session(seed, resolved, num_jobs, progress, folder))
        record = {
            "experiment": name,
            "scale": scale,
            "selectors": selectors,
            "parameters": parameters,
            "num_jobs": num_jobs,
            # Of this run alone: what an interrupted one took before is not known.
            "wall_seconds": round(time.perf_counter() - start, 3),
            "resumed": resumed,
            **storage.provenance(seed, resolved),
        }
        if isinstance(result, NADs):
            metadata = {**result.metadata, _RECORD: record}
            dataclasses.replace(result, metadata=metadata).save(path, half_precision=True)
        else:
            storage.write_arrays(path, result, {_RECORD: record})
    return path


def load(
    name: str,
    *,
    scale: Scale = "laptop",
    seed: int = 0,
    results_dir: str | os.PathLike[str] | None = None,
    **selectors: str,
) -> Result:
    """Load a stored result: NADs, or a dict of arrays.

    Raises
    ------
    FileNotFoundError
        If it is not stored; the message holds the command that makes it.
    ValueError
        If a name, scale or selector is not known, the file is damaged, or it holds another result.
    """
    path = result_path(name, scale=scale, seed=seed, results_dir=results_dir, **selectors)
    if not path.exists():
        raise FileNotFoundError(
            f"there is no stored result {path}; make it with: {_command(name, scale, seed, selectors)}"
        )
    arrays, metadata = storage.read_arrays(path)
    record = metadata.get(_RECORD, {})
    asked = {"experiment": name, "scale": scale, "seed": seed, "selectors": selectors}
    held = {key: record.get(key) for key in asked}
    if held != asked:
        raise ValueError(f"{path} holds another result than its name says: {held}; delete it and make it again")
    return NADs.load(path) if metadata.get("kind") == "NADs" else arrays


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a result was made from.

    Returns
    -------
    dict
        Keys ``experiment``, ``scale``, ``selectors``, ``parameters``, ``seed``, ``device``, ``num_jobs``,
        ``wall_seconds``, ``resumed``, ``date``, ``revision`` and ``versions``.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it is damaged, or no experiment made it.
    """
    _, metadata = storage.read_arrays(path)
    if not isinstance(metadata.get(_RECORD), dict):
        raise ValueError(f"{path} has no record of an experiment; results are made by python -m nadtools run")
    record: dict[str, Any] = metadata[_RECORD]
    return record


def stale(path: str | os.PathLike[str]) -> list[str]:
    """What differs between a stored result and what the code would compute now; empty if nothing does.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it is damaged, or no experiment made it.
    """
    path = Path(path)
    record = read_record(path)
    try:
        _, now = _parameters(record["experiment"], record["scale"], record["selectors"])
        expected = _stem(record["experiment"], record["scale"], record["seed"], record["selectors"])
    except KeyError as error:
        return [f"its record has no entry {error}"]
    except ValueError as error:
        return [str(error)]
    differences = [] if path.stem == expected else [f"file name: {path.stem!r}, expected {expected!r}"]
    stored, missing = record.get("parameters", {}), object()
    for key in sorted({*stored, *now}):
        before, after = stored.get(key, missing), now.get(key, missing)
        if before != after:
            shown = ("nothing" if value is missing else repr(value) for value in (before, after))
            differences.append(f"{key}: {next(shown)} in the file, {next(shown)} in the code")
    return differences


def result_path(
    name: str,
    *,
    scale: Scale = "laptop",
    seed: int = 0,
    results_dir: str | os.PathLike[str] | None = None,
    **selectors: str,
) -> Path:
    """Where a result is stored, whether or not it exists: ``atlas-lenet-secant-laptop.npz``.

    Raises
    ------
    ValueError
        If a name, scale or selector is not known.
    """
    _parameters(name, scale, selectors)
    return results_folder(results_dir) / f"{_stem(name, scale, check_seed(seed), selectors)}.npz"


def results_folder(results_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder of stored results, whether or not it exists.

    It is ``results_dir`` if given, else what the environment variable ``NADTOOLS_RESULTS`` names, else ``book/results``
    of the checkout that the package is used from, else ``results`` in the current folder.
    """
    given = results_dir if results_dir is not None else os.environ.get("NADTOOLS_RESULTS")
    if given:
        return Path(given).expanduser()
    if (_CHECKOUT / "pyproject.toml").is_file() and (_CHECKOUT / "book").is_dir():
        return _CHECKOUT / "book" / "results"
    return Path("results")


def _parameters(name: str, scale: str, selectors: Mapping[str, str]) -> tuple[Experiment, dict[str, Any]]:
    """The experiment and its parameters, as they come back from JSON."""
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; known are {_listed(EXPERIMENTS)}")
    if scale not in get_args(Scale):
        raise ValueError(f"unknown scale {scale!r}; known are {_listed(get_args(Scale))}")
    experiment = EXPERIMENTS[name]
    for selector in selectors:
        if selector not in experiment.selectors:
            raise ValueError(f"{name} has no selector {selector!r}; it has {_listed(experiment.selectors)}")
    for selector, known in experiment.selectors.items():
        if selector not in selectors:
            raise ValueError(f"{name} needs {selector}; choose one of {_listed(known)}")
        if selectors[selector] not in known:
            raise ValueError(f"unknown {selector} {selectors[selector]!r}; {name} knows {_listed(known)}")
    return experiment, json.loads(json.dumps(experiment.parameters(scale, **selectors)))


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "none"


def _stem(name: str, scale: str, seed: int, selectors: Mapping[str, str]) -> str:
    chosen = (selectors[selector] for selector in EXPERIMENTS[name].selectors)
    return "-".join([name, *chosen, scale, *([f"seed{seed}"] if seed else [])])


def _command(name: str, scale: str, seed: int, selectors: Mapping[str, str]) -> str:
    options = [f"--{selector.replace('_', '-')} {selectors[selector]}" for selector in EXPERIMENTS[name].selectors]
    return " ".join(
        ["python -m nadtools run", name, *options, f"--scale {scale}", *([f"--seed {seed}"] if seed else [])]
    )


@contextlib.contextmanager
def _working_folder(path: Path, parameters: dict[str, Any]) -> Iterator[Path]:
    """A folder for the checkpoints of one result, bound to its parameters; removed when the block completes."""
    partial = path.parent / ".partial"
    digest = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()[:12]
    folder = partial / f"{path.stem}.{digest}"
    if not path.parent.is_dir():
        raise ValueError(
            f"the folder of results {str(path.parent)!r} does not exist; make it, or name another one "
            "(results_dir, --results or the environment variable NADTOOLS_RESULTS)"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        storage.write_bytes(folder / ".gitignore", b"*\n")
    except OSError as error:
        raise ValueError(
            f"the folder of results {str(path.parent)!r} cannot be written ({error.strerror or error}); name another "
            "one (results_dir, --results or the environment variable NADTOOLS_RESULTS)"
        ) from error
    remove = functools.partial(shutil.rmtree, ignore_errors=True)
    try:
        yield folder
    except BaseException:
        if all(entry.name == ".gitignore" for entry in folder.iterdir()):
            remove(folder)
        raise
    else:
        # Also what runs with other parameters left, which nobody will resume.
        for left in partial.glob(f"{path.stem}.*"):
            remove(left)
    finally:
        with contextlib.suppress(OSError):  # other results are on the way
            partial.rmdir()
