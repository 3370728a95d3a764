from __future__ import annotations

import contextlib
import functools
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest

from nadtools import journal as journal_module
from nadtools.units import as_finished, read_journal, run_units

UNITS = [{"n": n, "pair": (n, "a")} for n in range(8)]


def square(unit):
    return {"square": unit["n"] ** 2, "third": unit["n"] / 3, "first": unit["pair"][0], "odd": bool(unit["n"] % 2)}


def run(function=square, units=UNITS, **arguments):
    return run_units(function, units, **({"journal": None, "parameters": {"p": 1}, "progress": False} | arguments))


def finished(journal: Path) -> int:
    return len(read_journal(journal)[0])


# What comes back, and what is done again.


@pytest.mark.parametrize("num_jobs", [None, 1, 2, -1])
def test_a_row_for_each_unit_in_their_order(tmp_path, num_jobs):
    table = run(num_jobs=num_jobs, journal=tmp_path / "j.sqlite")
    assert table.columns.tolist() == ["n", "pair", "square", "third", "first", "odd"]
    assert table.n.tolist() == list(range(8)) and table.pair.tolist() == [(n, "a") for n in range(8)]
    assert table["square"].tolist() == [n**2 for n in range(8)] and table.third.tolist() == [n / 3 for n in range(8)]
    assert table.odd.dtype == bool


def test_only_what_is_missing_is_done(tmp_path):
    journal, calls = tmp_path / "j.sqlite", []

    def counted(unit):
        calls.append(unit["n"])
        return square(unit)

    first = run(counted, UNITS[2:5], journal=journal)
    assert calls == [2, 3, 4]
    more = run(counted, UNITS, journal=journal)
    assert calls == [2, 3, 4, 0, 1, 5, 6, 7]
    assert more.equals(run()) and more[2:5].reset_index(drop=True).equals(first)
    # Fewer units than the journal holds, in another order.
    assert run(counted, UNITS[6:3:-1], journal=journal).n.tolist() == [6, 5, 4] and len(calls) == 8
    kept, parameters = read_journal(journal)
    assert kept.n.tolist() == [2, 3, 4, 0, 1, 5, 6, 7] and parameters == {"p": 1}


def test_each_row_is_on_disk_before_the_next_unit(tmp_path):
    journal = tmp_path / "j.sqlite"

    def function(unit):
        assert finished(journal) == unit["n"]
        return square(unit)

    run(function, journal=journal)
    assert os.listdir(tmp_path) == ["j.sqlite"]


def test_numbers_come_back_as_they_were_whether_from_a_journal_or_not(tmp_path):
    values = {"tiny": 5e-324, "third": 1 / 3, "nan": float("nan"), "none": None, "text": "é\n", "np": np.float32(0.1)}
    fresh, stored = run(lambda _: values), run(lambda _: values, journal=tmp_path / "j.sqlite")
    again = run(lambda _: 1 / 0, journal=tmp_path / "j.sqlite")
    assert fresh.equals(stored) and stored.equals(again)
    assert again.tiny[0] == 5e-324 and again.third[0] == 1 / 3 and np.isnan(again.nan[0])
    assert again.np[0] == float(np.float32(0.1)) and again.text[0] == "é\n" and again.none.isna().all()


# What can end a run.


def test_ctrl_c_loses_nothing_that_is_finished(tmp_path):
    journal = tmp_path / "j.sqlite"

    def interrupted(unit):
        if unit["n"] == 3:
            raise KeyboardInterrupt
        return square(unit)

    with pytest.raises(KeyboardInterrupt) as caught:
        run(interrupted, journal=journal)
    assert caught.value.__notes__ == [f"3 of 8 are finished and kept in {journal}: the same call goes on from there"]
    assert finished(journal) == 3 and run(journal=journal).equals(run())


def slowly(unit):
    time.sleep(0.3)
    return square(unit)


@pytest.fixture
def heard():
    """What a shell starts in the background is deaf to Ctrl-C: listen again."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_processes_work(tmp_path, heard):
    journal = tmp_path / "j.sqlite"
    run(num_jobs=2)  # the processes are up

    def interrupt():
        while not journal.exists() or not finished(journal):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt) as caught:
        run(slowly, journal=journal, num_jobs=2)
    assert 1 <= finished(journal) < 8 and "the same call goes on" in caught.value.__notes__[0]
    assert run(journal=journal).equals(run())


def test_who_stops_asking_for_results_gets_no_warning():
    outcomes = as_finished([functools.partial(slowly, unit) for unit in UNITS], num_jobs=2)
    next(outcomes)
    outcomes.close()  # any warning is an error in these tests


def test_without_a_journal_an_error_says_so():
    def broken(unit):
        return {"x": 1 / (unit["n"] - 2)}

    with pytest.raises(ZeroDivisionError) as caught:
        run(broken)
    assert caught.value.__notes__ == ["2 of 8 are finished and lost: name a journal to keep them"]


def failing(unit):
    if unit["n"] == 0:
        raise LookupError("the first unit")
    time.sleep(0.2)
    return square(unit)


def test_an_error_in_a_process_is_raised_when_those_beside_it_are_finished(tmp_path):
    journal = tmp_path / "j.sqlite"
    units = [{"n": n, "pair": (n, "a")} for n in range(40)]  # a busy machine notices the error late
    with pytest.raises(LookupError, match="the first unit") as caught:
        run(failing, units, journal=journal, num_jobs=2)
    where, kept = caught.value.__notes__
    assert "in failing" in where and "kept in" in kept
    # The one beside it, and those that were handed out; but not the rest.
    assert 1 <= finished(journal) < len(units) - 1
    assert run(units=units, journal=journal).equals(run(units=units))


def dying(unit):
    if unit["n"] == 5:
        time.sleep(0.5)
        os._exit(1)
    return square(unit)


def test_a_process_that_dies_takes_nothing_with_it(tmp_path):
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    journal = tmp_path / "j.sqlite"
    with pytest.raises(TerminatedWorkerError, match="unexpectedly terminated") as caught:
        run(dying, journal=journal, num_jobs=2)
    assert "the same call goes on from there" in caught.value.__notes__[-1]
    assert 4 <= finished(journal) < 8
    assert run(journal=journal).equals(run())


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dask's own remarks on ports and clean-up
        with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
            yield cluster


@pytest.fixture
def client(cluster):
    import distributed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.Client(cluster) as client, joblib.parallel_config("dask"):
            yield client


def where(unit):
    time.sleep(0.2)
    return square(unit) | {"where": os.getpid()}


def test_a_dask_worker_that_is_killed_is_replaced(tmp_path, client):
    journal = tmp_path / "j.sqlite"
    doomed, _ = client.run(os.getpid).values()

    def kill():
        while not journal.exists() or not finished(journal):
            time.sleep(0.05)
        os.kill(doomed, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    table = run(where, journal=journal)
    killer.join()
    assert table.drop(columns="where").equals(run(num_jobs=1))
    # What the killed worker had begun, another did; and nothing was done in this process.
    assert (table["where"] == doomed).sum() < 4 and os.getpid() not in set(table["where"])


def test_an_error_on_a_cluster_is_raised_when_those_beside_it_are_finished(tmp_path, client):
    journal = tmp_path / "j.sqlite"
    with pytest.raises(LookupError, match="the first unit") as caught:
        run(failing, journal=journal)
    assert "in failing" in caught.value.__notes__[0] and 1 <= finished(journal) < 8


class Unreadable:
    def __reduce__(self):
        return ord, ("no character",)  # fails where it is unpickled

    def __call__(self, unit):
        return unit


def test_what_workers_cannot_unpickle_is_an_error(client):
    with pytest.raises(TypeError, match="expected a character"):
        run(Unreadable())


def test_a_unit_that_kills_its_workers_ends_the_run(tmp_path, client, cluster):
    """Dask gives it up after some attempts; here after the first."""
    journal = tmp_path / "j.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster.scheduler, "allowed_failures", 0)
        with pytest.raises(Exception, match="all those workers died") as caught:
            run(dying, journal=journal)
    assert type(caught.value).__name__ == "KilledWorker" and "the same call goes on" in caught.value.__notes__[-1]
    assert 3 <= finished(journal) < 8
    assert run(journal=journal, num_jobs=1).equals(run(num_jobs=1))


def test_kill_minus_nine_and_again(tmp_path):
    journal, calls = tmp_path / "j.sqlite", []
    script = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from test_units import run, slowly
        run(slowly, journal=sys.argv[2])
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(Path(__file__).parent), str(journal)])
    while process.poll() is None and (not journal.exists() or finished(journal) < 3):
        time.sleep(0.02)
    process.kill()
    process.wait()
    kept = finished(journal)
    assert 3 <= kept < 8

    def counted(unit):
        calls.append(unit["n"])
        return square(unit)

    assert run(counted, journal=journal).equals(run()) and calls == list(range(kept, 8))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads the state of processes from /proc")
def test_workers_end_with_their_caller(tmp_path):
    work = "import os, time; open(f'{folder}/{os.getpid()}', 'w').close(); time.sleep(60)"
    script = textwrap.dedent(
        """
        import functools, sys
        from nadtools.units import as_finished
        calls = [functools.partial(exec, sys.argv[1], {"folder": sys.argv[2]}) for _ in range(4)]
        list(as_finished(calls, num_jobs=2))
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script, work, str(tmp_path)], stderr=subprocess.DEVNULL)
    try:
        while len(workers := [int(entry.name) for entry in tmp_path.iterdir()]) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
        until = time.monotonic() + 10
        while any(map(is_running, workers)):
            assert time.monotonic() < until, "the workers live on"
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()


def is_running(number: int) -> bool:
    try:  # a zombie, which nobody has waited for, holds no memory
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextlib.contextmanager
def files_no_larger_than(size: int):
    """What a full disk does to a file that grows: the write fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("num_jobs", [1, 2])
def test_a_full_disk_loses_nothing_that_is_written(tmp_path, num_jobs):
    journal, units = tmp_path / "j.sqlite", [{"n": n} for n in range(60)]

    def long(unit):
        return {"text": str(unit["n"]) * 300}

    run(long, units[:1], journal=journal)
    with (
        joblib.parallel_config("threading"),
        files_no_larger_than(journal.stat().st_size + 8192),
        pytest.raises(OSError, match=r"could not be written to .* make room on the disk") as caught,
    ):
        run(long, units, journal=journal, num_jobs=num_jobs)
    assert "the same call goes on from there" in caught.value.__notes__[-1]
    assert 3 <= finished(journal) < 60
    assert run(long, units, journal=journal).equals(run(long, units))


def test_a_disk_that_is_full_from_the_start_is_noticed_before_any_work(tmp_path):
    with files_no_larger_than(4096), pytest.raises(OSError, match="cannot be read or written"):
        run(lambda _: pytest.fail("nothing may be done"), journal=tmp_path / "j.sqlite")


def test_a_row_that_could_not_be_written_is_in_the_error(tmp_path):
    journal = tmp_path / "j.sqlite"

    def long(unit):
        return {"text": f"{unit['n']}" * 20_000}

    run(square, UNITS[:1], journal=journal)
    with (
        files_no_larger_than(journal.stat().st_size),
        pytest.raises(OSError, match=r"it takes 20,\d\d\d bytes") as caught,
    ):
        run(long, UNITS, journal=journal)
    assert '"text": "' + "1" * 20_000 in caught.value.__notes__[0]


@pytest.mark.parametrize("moment", ["PRAGMA user_version", "SELECT count", "BEGIN IMMEDIATE", "CREATE TABLE rows"])
def test_a_journal_that_another_process_creates_at_the_same_moment_is_shared(tmp_path, monkeypatch, moment):
    journal, connect, left = tmp_path / "j.sqlite", sqlite3.connect, [moment]

    class Connection(sqlite3.Connection):
        def execute(self, statement, *values):
            if left and statement.startswith(left[0]):
                left.clear()
                if self.in_transaction:  # then the other one waits
                    with pytest.raises(OSError, match="another process holds the journal"):
                        run(units=UNITS[:2], journal=journal)
                else:
                    run(units=UNITS[:2], journal=journal)
            return super().execute(statement, *values)

    monkeypatch.setattr(journal_module, "_BUSY_SECONDS", 0.1)
    monkeypatch.setattr(sqlite3, "connect", functools.partial(connect, factory=Connection))
    assert run(journal=journal).equals(run()) and not left
    assert finished(journal) == 8


def test_a_reader_waits_for_a_journal_that_is_being_created(tmp_path):
    (tmp_path / "j.sqlite").touch()
    writer = threading.Timer(0.2, run, kwargs={"journal": tmp_path / "j.sqlite"})
    writer.start()
    assert read_journal(tmp_path / "j.sqlite")[1] == {"p": 1}
    writer.join()


# Journals that are refused.


def test_a_read_only_journal_says_so_before_any_work(tmp_path, monkeypatch):
    journal, connect = tmp_path / "j.sqlite", sqlite3.connect
    run(units=UNITS[:3], journal=journal)
    # As root writes everywhere, SQLite is told not to.
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, **options: connect(f"file:{path}?mode=ro", uri=True, **options)
    )
    assert len(run(units=UNITS[:3], journal=journal)) == finished(journal) == 3
    with pytest.raises(OSError, match=r"j.sqlite is read-only; make it and its folder writable, or name another file"):
        run(lambda _: pytest.fail("nothing may be done"), journal=journal)


def test_a_journal_of_other_parameters_is_refused(tmp_path):
    run(journal=tmp_path / "j.sqlite", parameters={"a": 1, "b": {"c": [1, 2]}, "gone": None})
    with pytest.raises(ValueError, match="another computation") as caught:
        run(journal=tmp_path / "j.sqlite", parameters={"b": {"c": [1, 3]}, "a": 1, "new": "x"})
    for expected in (
        "(b.c: [1, 2] there, [1, 3] here",
        "gone: None there, nothing here",
        "new: nothing there, 'x' here)",
    ):
        assert expected in str(caught.value)
    assert "a: 1" not in str(caught.value)


def test_units_whose_names_stand_for_something_else_are_refused(tmp_path):
    journal = tmp_path / "j.sqlite"
    run(units=UNITS[:2], fingerprints=["x", "y"], journal=journal)
    assert len(run(units=UNITS[:3], fingerprints=["x", "y", "z"], journal=journal)) == 3
    with pytest.raises(ValueError, match=r'holds \{"n": 1, .*what it stands for has changed'):
        run(units=UNITS[:3], fingerprints=["x", "changed", "z"], journal=journal)


def test_a_damaged_journal_is_refused(tmp_path):
    good = tmp_path / "good.sqlite"
    run(journal=good)
    content = good.read_bytes()
    middle = content.index(b'"square": 25')
    for number, damaged in enumerate(
        [
            content[: len(content) // 2],
            content[:4096],
            content[:middle] + b'"square": 26' + content[middle + 12 :],
            content[:4096] + bytes(4096) + content[8192:],
            content.replace(b'"square": 25', b'"square"\xff 25'),
            content.replace(b"CREATE TABLE computation", b"CREATE TABLE \xffomputation"),
            content.replace(b"tablecomputationcomputation", b"tabledomputationdomputation").replace(
                b"CREATE TABLE computation", b"CREATE TABLE domputation"
            ),
            b"not a database at all, but a text of more than sixteen bytes",
        ]
    ):
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"\d.sqlite is damaged or no journal of nadtools \(.+\); delete it"):
            run(journal=path)
        assert path.read_bytes() == damaged
    empty = tmp_path / "empty.sqlite"
    empty.touch()  # what a process leaves that is killed at the very start
    assert run(journal=empty).equals(run())


def test_other_databases_are_left_alone(tmp_path):
    other, later = tmp_path / "other.sqlite", tmp_path / "later.sqlite"
    with contextlib.closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE rows (x)")
        connection.commit()
    run(journal=later)
    with contextlib.closing(sqlite3.connect(later)) as connection:
        connection.execute("PRAGMA user_version = 2")
    for path, message in ((other, "no journal of nadtools; name another"), (later, "format version 2")):
        before = path.read_bytes()
        with pytest.raises(ValueError, match=message):
            run(journal=path)
        assert path.read_bytes() == before


def test_reading_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no journal"):
        read_journal(tmp_path / "none.sqlite")
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(ValueError, match="no journal of nadtools"):
        read_journal(tmp_path / "empty.sqlite")


# Bad input.


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"units": []}, ValueError, "at least one mapping"),
        ({"units": {"n": 1}}, ValueError, "type dict; expected a sequence"),
        ({"units": [{}]}, TypeError, "expected a mapping with texts as keys"),
        ({"units": [{1: 2}]}, TypeError, "texts as keys"),
        ({"units": [{"n": float("nan")}]}, TypeError, "got nan in the unit"),
        ({"units": [{"n": {1}}]}, TypeError, "expected finite numbers, texts"),
        ({"units": [{"n": 1}, {"n": 1}]}, ValueError, r'the unit \{"n": 1\} twice'),
        ({"parameters": {"f": len}}, TypeError, "parameters that JSON cannot hold"),
        ({"fingerprints": ["x"]}, ValueError, "1 fingerprints for 8 units"),
        ({"num_jobs": 0}, ValueError, "num_jobs=0"),
        ({"num_jobs": 1.5}, TypeError, "num_jobs=1.5"),
        ({"journal": "/nonexistent/folder/j.sqlite"}, ValueError, "in a folder that exists"),
        ({"journal": "/"}, ValueError, "a file name"),
        ({"function": lambda _: 3}, TypeError, "the function returned 3"),
        ({"function": lambda _: {"n": 3}}, ValueError, r"names \['n'\] again"),
        ({"function": lambda _: {"x": [3]}}, TypeError, r"got x=\[3\] in the row"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        run(**arguments)
