"""Units of work: each is done once, in this process, on all cores or on a cluster, and its row is kept in a journal.

Only the process that was called writes to the journal (:mod:`nadtools.journal`), after every unit. So whatever ends a
run, the same call goes on with what is missing.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import multiprocessing
import numbers
import os
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import joblib
import numpy as np
import pandas as pd

from nadtools import checks
from nadtools.journal import Journal, Row
from nadtools.progress import progress_bar

__all__ = ["Row", "Task", "as_finished", "in_this_process", "name_units", "read_journal", "run_tasks", "run_units"]

T = TypeVar("T")


def run_units(
    function: Callable[[dict[str, Any]], Mapping[str, Any]],
    units: Sequence[Mapping[str, Any]],
    *,
    journal: str | os.PathLike[str] | None,
    parameters: Mapping[str, Any],
    fingerprints: Sequence[str] | None = None,
    num_jobs: int | None = None,
    progress: bool = True,
    description: str = "trainings",
) -> pd.DataFrame:
    """Call a function on every unit that the journal does not hold yet, and return the rows of all, in their order.

    Args:
        function: From a unit to a row: a mapping of names to numbers, texts, bools or None. It must depend on its unit
            alone, and be picklable where several processes work. What it raises is raised, once units under way are
            kept.
        units: What identifies each piece of work: names, with numbers, texts, bools, None or tuples of these. All
            different.
        journal: The file that keeps the finished rows, perhaps of more units. None keeps nothing on disk.
        parameters: Everything that determines the rows beside the units, as JSON can hold it.
        fingerprints: One for each unit: a digest of what its names stand for. A row under the same names with another
            is refused.

    Raises:
        TypeError, ValueError, OSError: Also if the journal is damaged, belongs to another computation or cannot be
            written.
    """
    names = name_units(units)
    marks = [""] * len(names) if fingerprints is None else list(fingerprints)
    if len(marks) != len(names):
        raise ValueError(f"got {len(marks)} fingerprints for {len(names)} units; expected one for each")

    def tasks(indices: Sequence[int]) -> Iterator[Task]:
        for index in indices:
            yield Task([index], functools.partial(_one_row, function, json.loads(names[index])))

    return run_tasks(names, marks, tasks, journal, parameters, num_jobs, progress, description)


def read_journal(journal: str | os.PathLike[str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The rows of what is finished, also while a run is under way, in the order of finishing; and the parameters.

    FileNotFoundError or ValueError says that there is no such file, or it is damaged or no journal.
    """
    path = Path(journal)
    if not path.is_file():
        raise FileNotFoundError(f"there is no journal {path}")
    with contextlib.closing(Journal(path, None)) as opened:
        return _table(opened.rows, opened.rows), opened.parameters


class Task(NamedTuple):
    """A call that gives the rows of some units, by their indices."""

    indices: Sequence[int]
    call: Callable[[], Sequence[Mapping[str, Any]]]

    def __call__(self) -> tuple[Sequence[int], Sequence[Mapping[str, Any]]]:
        """Do it, and say for which units."""
        return self.indices, self.call()


def run_tasks(
    names: Sequence[str],
    fingerprints: Sequence[str],
    tasks: Callable[[Sequence[int]], Iterable[Task]],
    journal: str | os.PathLike[str] | None,
    parameters: Mapping[str, Any],
    num_jobs: int | None,
    progress: bool,
    description: str,
) -> pd.DataFrame:
    """Do the tasks of all missing units and keep their rows. A unit's name is its JSON text."""
    num_jobs = checks.number_of_jobs(num_jobs)
    journal = None if journal is None else checks.file_path("journal", journal)
    stated = _plain_json("parameters", dict(parameters))
    opened = Journal(journal, stated) if journal is not None else None
    with contextlib.closing(opened) if opened is not None else contextlib.nullcontext():
        rows = opened.matching(names, fingerprints) if opened is not None else {}
        missing = [index for index, name in enumerate(names) if name not in rows]
        if opened is not None and missing:
            opened.check_writable()
        counts = {"total": len(names), "initial": len(names) - len(missing)}
        with progress_bar(None, progress, **counts, desc=description, unit="unit", smoothing=0) as bar:
            try:
                calls = (task.__call__ for task in tasks(missing))
                with contextlib.closing(as_finished(calls, num_jobs)) as outcomes:
                    for indices, done in outcomes:
                        texts = [_row_text(names[index], row) for index, row in zip(indices, done, strict=True)]
                        finished = [(names[i], fingerprints[i], text) for i, text in zip(indices, texts, strict=True)]
                        if opened is not None:
                            opened.add(finished)
                        rows.update({name: json.loads(text) for name, _, text in finished})
                        bar.update(len(indices))
            except BaseException as error:
                kept = f"{len(rows)} of {len(names)} are finished"
                error.add_note(
                    f"{kept} and kept in {journal}: the same call goes on from there"
                    if journal is not None
                    else f"{kept} and lost: name a journal to keep them"
                )
                raise
    return _table(names, rows)


def as_finished(calls: Iterable[Callable[[], T]], num_jobs: int | None = None) -> Generator[T]:
    """Do calls that do not depend on each other, and give what they return as they are finished.

    The calls take no arguments, and can be pickled where several processes work. They are taken when there is room for
    them. What a call raises, or what ended a process, is raised. Calls that are under way in other processes are then
    finished and given first, if these are alive; no new ones are begun.
    """
    backend, _ = joblib.parallel.get_active_backend()
    if in_this_process(num_jobs):
        for call in calls:
            yield call()
        return
    failure: Exception | None = None

    def until_a_failure() -> Iterator[Callable[[], T]]:
        for call in calls:
            if failure is not None:
                return
            yield call

    by_dask = hasattr(backend, "client")
    outcomes = _by_dask(until_a_failure(), backend) if by_dask else _by_joblib(until_a_failure(), num_jobs)
    with contextlib.closing(outcomes):
        for outcome in outcomes:
            if isinstance(outcome, _Failure):
                failure = failure or outcome.error
            else:
                yield outcome
    if failure is not None:
        raise failure


def in_this_process(num_jobs: int | None = None) -> bool:
    """Whether :func:`as_finished` does its calls one after the other in the calling process."""
    backend, configured_jobs = joblib.parallel.get_active_backend()
    jobs = num_jobs if num_jobs is not None else configured_jobs
    # What a backend does by itself: one process for joblib's own ones, the whole cluster for Dask.
    return (jobs if jobs is not None else backend.default_n_jobs) == 1


class _Failure(NamedTuple):
    """An error on its way back: raised in another process, it would end the calls beside it."""

    error: Exception


def _attempt(call: Callable[[], T], caller: int | None = None) -> T | _Failure:
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid == caller:  # not in a thread of the caller, nor on another machine
        _end_with(caller)
    try:
        return call()
    except Exception as error:
        error.add_note(f"In the process that did the work:\n{traceback.format_exc()}")
        return _Failure(error)


@functools.cache
def _end_with(caller: int) -> None:
    """Let this process end when its caller does. joblib's would wait for more work for another five minutes."""

    def watch() -> None:
        while os.getppid() == caller:  # a process whose parent ends gets another one
            time.sleep(1)
        os._exit(1)

    if os.getppid() == caller:
        threading.Thread(target=watch, daemon=True).start()


def _by_joblib(calls: Iterable[Callable[[], T]], num_jobs: int | None) -> Generator[T | _Failure]:
    # One call at a time, so that each is handed back as soon as it is finished.
    parallel = joblib.Parallel(n_jobs=num_jobs, return_as="generator_unordered", batch_size=1)
    results = parallel(joblib.delayed(_attempt)(call, os.getpid()) for call in calls)
    try:
        # "yield from" would hand a close() on to joblib before the warning is silenced.
        for result in results:  # noqa: UP028
            yield result
    finally:
        with warnings.catch_warnings():
            # joblib warns of what is given up when a run ends early; the error that ended it says more.
            warnings.filterwarnings("ignore", message=".*adjusting the input task iterator", category=UserWarning)
            results.close()


def _by_dask(calls: Iterable[Callable[[], T]], backend: Any) -> Generator[T | _Failure]:
    """By Dask itself: joblib (1.6) waits without end for what Dask has given up, as when a call kills its workers."""
    from distributed import as_completed
    from distributed.protocol.pickle import dumps

    client, waiting = backend.client, iter(calls)
    backend.effective_n_jobs(-1)  # raises if there are no workers, and none come soon
    under_way = as_completed([], loop=client.loop)

    def hand_out() -> None:
        # As joblib does: for each thread of the cluster, one call to do and one to go on with.
        room = max(2, 2 * sum(client.ncores().values())) - under_way.count()
        for call in itertools.islice(waiting, max(room, 0)):
            # Pickled here: of a task that it cannot unpickle a worker dies. This makes it an error like others.
            under_way.add(client.submit(_attempt_pickled, dumps(call), pure=False))

    try:
        hand_out()
        for future in under_way:
            try:
                outcome = future.result()
            except Exception as error:
                outcome = _Failure(error)
            yield outcome
            hand_out()
    finally:
        under_way.clear()


def _attempt_pickled(call: bytes) -> Any:
    from distributed.protocol.pickle import loads

    return _attempt(lambda: loads(call)())


def _one_row(function: Callable[[dict[str, Any]], Mapping[str, Any]], unit: Any) -> list[Mapping[str, Any]]:
    return [function({key: _with_tuples(value) for key, value in unit.items()})]


def _table(names: Iterable[str], rows: Mapping[str, Row]) -> pd.DataFrame:
    records = ({**json.loads(name), **rows[name]} for name in names)
    return pd.DataFrame([{key: _with_tuples(value) for key, value in record.items()} for record in records])


def _with_tuples(value: Any) -> Any:
    """JSON has lists only, which cannot be compared with the tuples that they were."""
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def name_units(units: Any) -> list[str]:
    """The units' names: their JSON text."""
    if isinstance(units, Mapping | str) or not isinstance(units, Sequence) or not units:
        raise ValueError(f"got units of type {type(units).__name__}; expected a sequence of at least one mapping")
    names = []
    for unit in units:
        if not isinstance(unit, Mapping) or not unit or not all(isinstance(key, str) for key in unit):
            raise TypeError(f"got the unit {unit!r}; expected a mapping with texts as keys")
        names.append(json.dumps({key: _plain(f"the unit {unit!r}", value) for key, value in unit.items()}))
    if len(set(names)) < len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise ValueError(f"got the unit {twice} twice; expected different ones")
    return names


def _plain(where: str, value: Any) -> Any:
    """A number, text, bool or None, or a tuple of these, in Python's own types."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list):
        return [_plain(where, part) for part in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    raise TypeError(f"got {value!r} in {where}; expected finite numbers, texts, bools, None or tuples of these")


def _plain_json(where: str, value: Any) -> Any:
    """As it comes back from JSON."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"got {where} that JSON cannot hold: {error}") from error


def _row_text(name: str, row: Any) -> str:
    """A row as JSON; NaN and infinities are as Python's JSON writes and reads them."""
    if not isinstance(row, Mapping) or not all(isinstance(key, str) for key in row):
        raise TypeError(f"the function returned {row!r} for {name}; expected a mapping with texts as keys")
    clash = set(row) & set(json.loads(name))
    if clash:
        raise ValueError(f"the row of {name} names {sorted(clash)} again; expected other names than the unit's")
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in row.items()}
    for key, value in plain.items():
        if not (value is None or isinstance(value, bool | int | float | str)):
            raise TypeError(f"got {key}={value!r} in the row of {name}; expected a number, text, bool or None")
    return json.dumps(plain)
