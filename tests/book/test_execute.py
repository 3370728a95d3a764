"""Chapters executed without a browser: verdicts, limits, reports."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

EXECUTE = Path(__file__).resolve().parents[2] / "book" / "execute.py"
MEGABYTES = 600  # more than the limit below; a kernel by itself holds about a sixth of that
HUNGRY = f"""
import subprocess, sys, time
# Half of it in the kernel and half in a process of the kernel: the limit is on both together.
held = b"x" * {MEGABYTES // 2 * 10**6}
subprocess.run([sys.executable, "-c", "import time; held = b'x' * {MEGABYTES // 2 * 10**6}; time.sleep(600)"])
"""
CHAPTERS = {
    "01-good": 'print(scale, seed)\nassert (scale, seed, device) == ("smoke", 3, None)',
    "02-failing": "print('so far')\n1 / 0",
    "03-hungry": HUNGRY,
    "04-slow": "import time\ntime.sleep(600)",
}


@dataclass(frozen=True)
class Run:
    returncode: int
    log: str
    output: Path

    def report(self) -> dict[str, dict[str, Any]]:
        rows = json.loads((self.output / "report.json").read_text(encoding="utf-8"))
        return {row["chapter"]: row for row in rows}

    def notebook(self, chapter: str) -> str:
        return (self.output / "source" / "book" / f"{chapter}.ipynb").read_text(encoding="utf-8")

    def cases(self) -> dict[str, ElementTree.Element]:
        cases = ElementTree.parse(self.output / "junit.xml").getroot().iter("testcase")
        return {case.get("name", ""): case for case in cases}


def write_chapters(root: Path) -> Path:
    (root / "book").mkdir(parents=True)
    (root / "_config.yml").write_text("title: small\n", encoding="utf-8")
    first, *others = (f"book/{name}" for name in CHAPTERS)
    files = "".join(f"  - file: {name}\n" for name in others)
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: {first}\nchapters:\n{files}", encoding="utf-8")
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    for name, source in CHAPTERS.items():
        cells = [
            new_markdown_cell("# Chapter"),
            new_code_cell('scale = "laptop"\nseed = 0\ndevice = None', metadata={"tags": ["parameters"]}),
            new_code_cell(source),
        ]
        nbformat.write(new_notebook(cells=cells, metadata=kernel), root / "book" / f"{name}.ipynb")
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chapters(tmp_path_factory.mktemp("book"))


def run(root: Path, output: Path, *options: str) -> Run:
    command = [sys.executable, str(EXECUTE), "--root", str(root), "--output", str(output), *options]
    finished = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    return Run(finished.returncode, finished.stdout, output)


@pytest.fixture(scope="module")
def three(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A good chapter, a failing and a hungry one, two at a time."""
    chapters = [option for number in ("01", "02", "03") for option in ("--chapter", number)]
    limit = str(MEGABYTES * 0.8 / 1000)
    output = tmp_path_factory.mktemp("three")
    return run(root, output, *chapters, "-p", "seed", "3", "--jobs", "2", "--memory-limit", limit)


@pytest.fixture(scope="module")
def slow(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(root, tmp_path_factory.mktemp("slow"), "--chapter", "04-slow", "--time-limit", "4")


def test_each_chapter_has_a_verdict_and_one_line(three: Run) -> None:
    verdicts = {name: row["verdict"] for name, row in three.report().items()}
    assert verdicts == {"01-good": "ok", "02-failing": "failed", "03-hungry": "too large"}
    assert three.returncode == 1
    for name, verdict in verdicts.items():
        lines = [line for line in three.log.splitlines() if line.endswith(f" GB  {name}")]
        assert len(lines) == 1, three.log
        assert lines[0].strip().startswith(verdict)
    assert "1 of 3 chapters ok" in three.log


def test_a_good_chapter_is_kept_with_its_outputs_and_parameters(three: Run) -> None:
    assert "smoke 3" in three.notebook("01-good")
    assert three.report()["01-good"]["parameters"] == {"scale": "smoke", "seed": 3, "device": None}
    assert three.report()["01-good"]["error"] is None
    added = [cell for cell in nbformat.reads(three.notebook("01-good"), 4).cells if "smoke" in cell.source]
    assert ["remove-cell" in cell.metadata.tags for cell in added[:1]] == [True], "it would be visible on the page"


def test_a_failing_chapter_is_kept_as_far_as_it_ran(three: Run) -> None:
    assert "so far" in three.notebook("02-failing")
    assert "ZeroDivisionError" in three.report()["02-failing"]["error"]
    assert "ZeroDivisionError" in three.log


def test_memory_is_that_of_the_kernel_and_its_processes(three: Run) -> None:
    peaks = {name: row["peak_memory_gb"] for name, row in three.report().items()}
    # A kernel that does nothing holds some tens of megabytes.
    assert 0.02 < peaks["01-good"] < MEGABYTES / 2000
    # Neither the kernel nor its process passes the limit alone.
    assert peaks["03-hungry"] > MEGABYTES * 0.8 / 1000
    assert "--memory-limit" in three.report()["03-hungry"]["error"]


def test_a_slow_chapter_is_stopped(slow: Run) -> None:
    row = slow.report()["04-slow"]
    assert (slow.returncode, row["verdict"]) == (1, "too slow")
    assert 4 <= row["seconds"] < 120
    assert "4 s" in row["error"] and "--time-limit" in row["error"]
    assert slow.notebook("04-slow")


def test_junit_says_what_the_report_says(three: Run, slow: Run) -> None:
    for one in (three, slow):
        cases = one.cases()
        assert list(cases) == list(one.report())
        for name, row in one.report().items():
            failure = cases[name].find("failure")
            assert (failure is None) == (row["verdict"] == "ok")
            assert float(cases[name].get("time", "nan")) == row["seconds"]
            properties = {entry.get("name"): entry.get("value") for entry in cases[name].iter("property")}
            assert properties["scale"] == "smoke"
            assert float(properties["peak_memory_gb"] or "nan") == row["peak_memory_gb"]
    failure = three.cases()["02-failing"].find("failure")
    assert failure is not None and "ZeroDivisionError" in (failure.text or "")
    assert failure.get("message", "").startswith("ZeroDivisionError")
    suite = ElementTree.parse(three.output / "junit.xml").getroot().find("testsuite")
    assert suite is not None and (suite.get("tests"), suite.get("failures")) == ("3", "2")


def is_kernel(process: psutil.Process) -> bool:
    try:
        return any("ipykernel" in word for word in process.cmdline())
    except psutil.Error:  # it has ended
        return False


def test_a_terminated_run_leaves_a_report_and_no_process(root: Path, tmp_path: Path) -> None:
    """As a CI ends a job that takes too long."""
    options = ["--chapter", "01", "--chapter", "04", "-p", "seed", "3", "--jobs", "2"]
    command = [sys.executable, str(EXECUTE), "--root", str(root), "--output", str(tmp_path), *options]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("01-good\n")  # the other one sleeps for ten minutes
        started: list[psutil.Process] = []
        deadline = time.monotonic() + 60
        while not any(is_kernel(one) for one in started) and time.monotonic() < deadline:
            time.sleep(0.1)
            started = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        assert process.wait(timeout=120) == 128 + signal.SIGTERM
    _, alive = psutil.wait_procs(started, timeout=30)
    assert started and alive == []
    assert list(Run(143, "", tmp_path).report()) == ["01-good"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-p", "sead", "1"), "unknown parameter sead; the parameters of 01-good are: scale, seed, device"),
        (("--chapter", "09"), "no chapter begins with '09'; there are 01-good, 02-failing"),
        (("--chapter", "0"), "several chapters begin with '0'"),
        (("--scale", "huge"), "invalid choice"),
        (("--time-limit", "0"), "invalid positive float value: '0'"),
        (("--jobs", "two"), "invalid positive int value: 'two'"),
        (("--root", "/nonexistent"), "got root='/nonexistent'; expected the folder of _config.yml"),
    ],
    ids=["parameter", "chapter", "ambiguous", "scale", "limit", "jobs", "root"],
)
def test_wrong_usage_executes_and_removes_nothing(
    root: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(str(EXECUTE.parent))
    main = importlib.import_module(EXECUTE.stem).main
    (tmp_path / "report.json").touch()
    with pytest.raises(SystemExit) as end:
        main(["--root", str(root), "--output", str(tmp_path), *options])
    assert end.value.code == 2
    assert message in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_number_means_its_chapter_and_not_the_starred_one_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXECUTE.parent))
    choose = importlib.import_module("execute").choose
    notebooks = ["book/04-nads.ipynb", "book/04b-estimating-nads.ipynb"]
    assert choose(notebooks, ["04"]) == notebooks[:1]
    assert choose(notebooks, ["04b"]) == notebooks[1:]
