"""Carry out an experiment by name, store its result with its provenance, load it, and tell whether it is stale."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import operator
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import torch

from nadtools import storage
from nadtools.checks import check_seed
from nadtools.device import resolve_device
from nadtools.nads import NADs

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Largest",
    "NotStoredError",
    "Result",
    "Scale",
    "Session",
    "command",
    "largest",
    "load",
    "load_table",
    "read_record",
    "result_path",
    "results_folder",
    "run",
    "stale",
]

Scale = Literal["smoke", "laptop", "paper"]
Result = NADs | Mapping[str, np.ndarray]
_RECORD = "record"
_LOCKED = ".gitignore"  # of a working folder: it hides the folder, and whoever works there holds its lock
_RESULTS = Path(__file__).resolve().parents[1] / "results"


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


#: By name; :mod:`companion.experiments` fills it.
EXPERIMENTS: dict[str, Experiment] = {}


class NotStoredError(FileNotFoundError):
    """A result is not stored.

    Attributes
    ----------
    command : str
        Makes it.
    """

    def __init__(self, command: str, path: Path | None = None) -> None:
        super().__init__(f"there is no stored result{f' {path}' if path else ''}; make it with: {command}")
        self.command = command


class Largest(NamedTuple):
    """Which of the stored results of an experiment is the largest, and its seeds."""

    scale: Scale
    selectors: dict[str, Any]
    seeds: list[int]


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
    BlockingIOError
        If another process computes the same result at the moment.
    OSError
        If the disk is full: the result is then kept elsewhere, where there is room, and the message says where.
    """
    experiment, parameters = _parameters(name, scale, selectors)
    if num_jobs is not None and operator.index(num_jobs) == 0:
        raise ValueError("got num_jobs=0; expected a positive int, -1 for one on each core, or None")
    seed, resolved = check_seed(seed), resolve_device(device)
    path = result_path(name, scale=scale, seed=seed, results_dir=results_dir, **selectors)
    with _working_folder(path, parameters) as folder:
        resumed = any(entry.name != _LOCKED for entry in folder.iterdir())
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
        try:
            _save(result, record, path)
        except OSError as error:
            raise _kept_elsewhere(result, record, path, error) from error
    return path


def _save(result: Result, record: dict[str, Any], path: Path) -> None:
    if isinstance(result, NADs):
        metadata = {**result.metadata, _RECORD: record}
        dataclasses.replace(result, metadata=metadata).save(path, half_precision=True)
    else:
        storage.write_arrays(path, result, {_RECORD: record})


def _kept_elsewhere(result: Result, record: dict[str, Any], path: Path, error: OSError) -> OSError:
    """Keep a result that could not be written to its place, and say where."""
    for folder in (None, os.path.expanduser("~"), os.getcwd()):  # None is the system's own for temporary files
        with contextlib.suppress(OSError):
            kept = Path(tempfile.mkdtemp(prefix="nadtools-", dir=folder))
            try:
                _save(result, record, kept / path.name)
            except OSError:
                kept.rmdir()
                raise
            where = f"The result is kept as {kept / path.name}: move it to {path.parent}"
            return OSError(error.errno, f"{error.strerror or error}. {where}")
    return error


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
    NotStoredError
        If it is not stored.
    ValueError
        If a name, scale or selector is not known, the file is damaged, or it holds another result.
    """
    path = result_path(name, scale=scale, seed=seed, results_dir=results_dir, **selectors)
    if not path.exists():
        raise NotStoredError(command(name, scale, selectors, seed), path)
    arrays, metadata = storage.read_arrays(path)
    record = metadata.get(_RECORD, {})
    asked = {"experiment": name, "scale": scale, "seed": seed, "selectors": selectors}
    held = {key: record.get(key) for key in asked}
    if held != asked:
        raise ValueError(f"{path} holds another result than its name says: {held}; delete it and make it again")
    return NADs.load(path) if metadata.get("kind") == "NADs" else arrays


def load_table(
    name: str,
    *,
    scale: Scale | None = None,
    seed: int = 0,
    results_dir: str | os.PathLike[str] | None = None,
    **selectors: str,
) -> pd.DataFrame:
    """Load a stored result that is a table: its columns by name. In ``attrs`` stand the record and the rows' ``seeds``.

    Without a scale it is the largest that there is (:func:`largest`).

    Raises
    ------
    NotStoredError, ValueError
        As :func:`load`; also if the result is no table.
    """
    if scale is None:
        scale, selectors, _ = largest(name, seeds=[seed], results_dir=results_dir, **selectors)
    stored = load(name, scale=scale, seed=seed, results_dir=results_dir, **selectors)
    if isinstance(stored, NADs) or len({array.shape for array in stored.values()}) != 1:
        raise ValueError(f"the result of {name} is no table; load({name!r}, ...) gives it")
    table = pd.DataFrame(dict(stored))
    path = result_path(name, scale=scale, seed=seed, results_dir=results_dir, **selectors)
    table.attrs |= read_record(path)
    if "seed" in table:
        table.attrs["seeds"] = sorted(int(seed) for seed in table["seed"].unique())
    return table


def largest(
    name: str,
    *,
    seeds: Iterable[int] = (0,),
    results_dir: str | os.PathLike[str] | None = None,
    **selectors: str,
) -> Largest:
    """Find the largest stored result: of the best data, unless they are named, and ``"paper"`` before ``"laptop"``.

    The best data come first among an experiment's selectors.

    Raises
    ------
    NotStoredError
        If none is stored.
    ValueError
        If a name or selector is not known.
    """
    known = EXPERIMENTS[name].selectors if name in EXPERIMENTS else {}
    data = known.get("data", ()) if "data" not in selectors else ()
    scales: tuple[Scale, ...] = ("paper", "laptop")
    for chosen in [{**selectors, "data": one} for one in data] or [selectors]:
        for scale in scales:
            paths = {
                seed: result_path(name, scale=scale, seed=seed, results_dir=results_dir, **chosen) for seed in seeds
            }
            if found := [seed for seed, path in paths.items() if path.exists()]:
                return Largest(scale, chosen, found)
    raise NotStoredError(command(name, "laptop", {"data": "cifar10-subset", **selectors}))


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
        raise ValueError(f"{path} has no record of an experiment; results are made by python -m companion run")
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

    It is ``results_dir`` if given, else what the environment variable ``NADTOOLS_RESULTS`` names, else ``results``
    beside this package.
    """
    given = results_dir if results_dir is not None else os.environ.get("NADTOOLS_RESULTS")
    if given:
        return Path(given).expanduser()
    return _RESULTS


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


def command(name: str, scale: Scale, selectors: Mapping[str, str], seed: int = 0) -> str:
    """What makes a result."""
    options = [f"--{selector.replace('_', '-')} {selectors[selector]}" for selector in EXPERIMENTS[name].selectors]
    return " ".join(
        ["python -m companion run", name, *options, f"--scale {scale}", *([f"--seed {seed}"] if seed else [])]
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
        held = _hold(folder)
    except BlockingIOError:
        raise BlockingIOError(
            f"another process is at work on {path.name} and keeps its checkpoints in {folder}; wait until it is done, "
            "then load its result, or end it and give the same call again"
        ) from None
    except OSError as error:
        raise ValueError(
            f"the folder of results {str(path.parent)!r} cannot be written ({error.strerror or error}); name another "
            "one (results_dir, --results or the environment variable NADTOOLS_RESULTS)"
        ) from error
    remove = functools.partial(shutil.rmtree, ignore_errors=True)
    try:
        with held:
            try:
                yield folder
            except BaseException:
                if all(entry.name == _LOCKED for entry in folder.iterdir()):
                    remove(folder)
                raise
            remove(folder)
        # Also what runs with other parameters left, which nobody will resume, unless one is still at work.
        for left in partial.glob(f"{path.stem}.*"):
            with contextlib.suppress(OSError), _hold(left):
                remove(left)
    finally:
        with contextlib.suppress(OSError):  # other results are on the way
            partial.rmdir()


def _hold(folder: Path) -> BinaryIO:
    """Make a working folder and lock it until the file that this gives is closed, or the process ends.

    Raises
    ------
    BlockingIOError
        If it is locked.
    """
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = (folder / _LOCKED).open("ab")
        except FileNotFoundError:  # who held it has just removed it
            continue
        try:
            storage.lock(file.fileno())
        except BlockingIOError:
            file.close()
            raise
        except OSError:  # a file system without locks
            pass
        if os.fstat(file.fileno()).st_nlink:
            if not file.tell():
                file.write(b"*\n")
                file.flush()
            return file
        file.close()
