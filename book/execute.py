"""Execute the chapters without a browser, in parallel, and say which of them work.

    python book/execute.py                                        # every chapter at smoke scale
    python book/execute.py --chapter 04 --chapter 05 -p seed 1    # two of them, with another seed
    python book/execute.py --scale laptop --jobs 4 --time-limit 600 --memory-limit 4

Papermill executes a copy of every notebook that ``_toc.yml`` names. A line tells the verdict of each, the seconds, and
the most memory that its kernel and the kernel's own processes held together. A chapter that takes more time or memory
than it may is stopped: its verdict is "too slow" or "too large". The exit status is 0 if every chapter is ok, 1 if one
is not, and 2 if the command is wrong, in which case nothing was executed.

Written below the output folder, anew each time: ``source/book/`` (the executed notebooks, also those that failed, as
far as they ran), ``report.json`` and ``junit.xml`` (the same report, for CI).
"""

import argparse
import ast
import contextlib
import dataclasses
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import joblib
import nbformat
import papermill
import psutil
import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
SCALES = ("smoke", "laptop", "paper")
# Nothing in a kernel may print a progress bar or show a widget: neither works on a page.
KERNEL_ENVIRONMENT = {"TQDM_DISABLE": "1", "NADTOOLS_STATIC": "1"}
SECONDS_BETWEEN_LOOKS = 0.1
NOT_IN_XML = re.compile("\x1b\\[[0-9;]*m|[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class UsageError(ValueError):
    """The command asks for what is not there; nothing was executed."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a chapter may take; infinity for no limit."""

    seconds: float = 1800.0
    gigabytes: float = 8.0


@dataclasses.dataclass
class Usage:
    """What the processes of a chapter have taken so far."""

    peak_bytes: int = 0
    exceeded: str | None = None  # the verdict, once a limit is passed


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One row of the report."""

    chapter: str
    verdict: str  # "ok", "failed", "too slow" or "too large"
    seconds: float
    peak_memory_gb: float
    parameters: dict[str, Any]
    error: str | None = None

    def __str__(self) -> str:
        return f"{self.verdict:>9} {self.seconds:7.1f} s {self.peak_memory_gb:6.2f} GB  {self.chapter}"


def chapter_parameters(notebook: nbformat.NotebookNode) -> dict[str, Any]:
    """The names and values in the cell that is tagged ``parameters``; empty without such a cell."""
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if not cells:
        return {}
    return {
        target.id: ast.literal_eval(statement.value)
        for statement in ast.parse(cells[0].source).body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def notebooks_in_toc(root: Path) -> list[str]:
    """The notebooks that the table of contents names, relative to `root`, in reading order."""

    def files(node: Any) -> list[str]:
        if isinstance(node, dict):
            own = [node[key] for key in ("root", "file") if key in node]
            return own + [name for value in node.values() if isinstance(value, list) for name in files(value)]
        return [name for item in node for name in files(item)] if isinstance(node, list) else []

    if not (root / "_toc.yml").is_file():
        raise UsageError(f"got root={str(root)!r}; expected the folder of _config.yml, _toc.yml and book/")
    names = files(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8")))
    return [f"{name}.ipynb" for name in names if (root / f"{name}.ipynb").is_file()]


def choose(notebooks: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The notebooks whose names are, or begin with, what is wanted; all of them if nothing is named."""
    by_name = {Path(notebook).stem: notebook for notebook in notebooks}
    chosen = set()
    for text in wanted:
        starts = ([name for name in by_name if name.startswith(start)] for start in (f"{text}-", text))  # 04 is not 04b
        matching = [text] if text in by_name else next(filter(None, starts), [])
        if len(matching) != 1:
            found = "several chapters begin" if matching else "no chapter begins"
            raise UsageError(f"{found} with {text!r}; there are {', '.join(by_name)}")
        chosen.add(matching[0])
    return [notebook for name, notebook in by_name.items() if not wanted or name in chosen]


def check_parameters(chapters: Sequence[Path], parameters: dict[str, Any]) -> None:
    """Refuse a parameter that a chapter does not have: papermill would inject a variable that no cell reads."""
    for chapter in chapters:
        known = chapter_parameters(nbformat.read(chapter, as_version=4))
        if unknown := sorted(set(parameters) - set(known)):
            has = ", ".join(known) or "none"
            raise UsageError(f"unknown parameter {', '.join(unknown)}; the parameters of {chapter.stem} are: {has}")


@contextlib.contextmanager
def watch_processes(limits: Limits) -> Iterator[Usage]:
    """Look at the processes that are started in this block, and kill them when they pass a limit.

    Memory is resident memory, summed over the processes and looked at ten times a second. What processes share counts
    for each of them, so the sum is an upper bound.
    """
    own, usage, done = psutil.Process(), Usage(), threading.Event()
    others = set(own.children(recursive=True))
    start = time.perf_counter()

    def look() -> None:
        processes = [process for process in own.children(recursive=True) if process not in others]
        held = 0
        for process in processes:
            with contextlib.suppress(psutil.Error):  # it has ended meanwhile
                held += process.memory_info().rss
        usage.peak_bytes = max(usage.peak_bytes, held)
        if usage.exceeded is None and time.perf_counter() - start > limits.seconds:
            usage.exceeded = "too slow"
        if usage.exceeded is None and held > 1e9 * limits.gigabytes:
            usage.exceeded = "too large"
        if usage.exceeded:
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    process.kill()

    def watch() -> None:
        while not done.wait(SECONDS_BETWEEN_LOOKS):
            look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield usage
    finally:
        done.set()
        thread.join()


def execute_chapter(path: Path, parameters: dict[str, Any], limits: Limits) -> Outcome:
    """Execute one notebook in place."""
    notebook = nbformat.read(path, as_version=4)
    known = chapter_parameters(notebook)
    start = time.perf_counter()
    error: str | None = None
    with watch_processes(limits) as usage:
        for attempts_left in (1, 0):
            try:
                papermill.execute_notebook(
                    path,
                    path,
                    # A value that the chapter already has is not injected: at the default scale no extra cell appears.
                    parameters={name: value for name, value in parameters.items() if known[name] != value},
                    cwd=path.parent,
                    progress_bar=False,
                    extra_arguments=["--log-level=CRITICAL"],  # the kernel's own remarks on starting and stopping
                )
            except Exception as exception:  # any failure is this chapter's verdict; the others go on
                error = str(exception).strip() or repr(exception)
                # Two kernels that start at once can choose the same port. Then no cell has run: start again.
                if attempts_left and not usage.exceeded and "Kernel died before replying" in error:
                    nbformat.write(notebook, path)
                    continue
            else:
                error = None
                _forget_the_machine(path)
            break
    if usage.exceeded == "too slow":
        error = f"stopped after the {limits.seconds:g} s that a chapter may take (--time-limit)"
    elif usage.exceeded == "too large":
        error = f"stopped when it held more than the {limits.gigabytes:g} GB that a chapter may take (--memory-limit)"
    return Outcome(
        chapter=path.stem,
        verdict=usage.exceeded or ("failed" if error else "ok"),
        seconds=round(time.perf_counter() - start, 1),
        peak_memory_gb=round(usage.peak_bytes / 1e9, 3),
        parameters={**known, **parameters},
        error=error,
    )


def _forget_the_machine(path: Path) -> None:
    """Remove what papermill noted down: paths and times, which readers would download with the notebook.

    The cell that it added, with the parameters of this execution, does not appear on the page.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.metadata.tags.append("remove-cell")
    for part in (notebook, *notebook.cells):
        part.metadata.pop("papermill", None)
        part.metadata.pop("execution", None)
    notebook.metadata.pop("widgets", None)
    nbformat.write(notebook, path)


def copy_sources(root: Path, source: Path) -> None:
    """Copy what the book is made of, so that executed notebooks never land in the working tree."""
    source.mkdir(parents=True)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy2(root / name, source / name)
    tools = (path.name for path in (root / "book").glob("*.py"))
    ignore = shutil.ignore_patterns(".*", "__pycache__", "_build", *tools)
    shutil.copytree(root / "book", source / "book", ignore=ignore)


def write_junit(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the report in the format of JUnit, which every CI reads."""
    suite = ElementTree.Element(
        "testsuite",
        name="book",
        tests=str(len(outcomes)),
        failures=str(sum(outcome.verdict != "ok" for outcome in outcomes)),
        errors="0",
        skipped="0",
        time=f"{sum(outcome.seconds for outcome in outcomes):.1f}",
    )
    for outcome in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname="book", name=outcome.chapter, time=f"{outcome.seconds:.1f}"
        )
        properties = ElementTree.SubElement(case, "properties")
        for name, value in {**outcome.parameters, "peak_memory_gb": outcome.peak_memory_gb}.items():
            ElementTree.SubElement(properties, "property", name=name, value=str(value))
        if outcome.error:
            first = outcome.error.splitlines()[-1]  # the exception; the traceback stands above it
            failure = ElementTree.SubElement(case, "failure", type=outcome.verdict, message=NOT_IN_XML.sub("", first))
            failure.text = NOT_IN_XML.sub("", outcome.error)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def execute_book(
    root: Path,
    output: Path,
    parameters: dict[str, Any],
    chapters: Sequence[str] = (),
    jobs: int = 1,
    limits: Limits = Limits(),
) -> list[Outcome]:
    """Execute chapters of the book of `root`, all by default, and report on them in `output`, in reading order.

    Raises
    ------
    UsageError
        If there is no such chapter, or a chapter does not have a parameter; nothing is then executed or removed.
    """
    root, output = root.resolve(), output.resolve()
    notebooks = choose(notebooks_in_toc(root), chapters)
    check_parameters([root / name for name in notebooks], parameters)
    source = output / "source"
    shutil.rmtree(source, ignore_errors=True)
    for name in ("report.json", "junit.xml"):
        (output / name).unlink(missing_ok=True)
    copy_sources(root, source)

    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    os.environ.update(KERNEL_ENVIRONMENT, PYTHONPATH=path)
    tasks = (joblib.delayed(execute_chapter)(source / name, parameters, limits) for name in notebooks)
    # loky divides the cores among its workers, whose kernels inherit the number of threads.
    parallel = joblib.Parallel(n_jobs=max(1, min(jobs, len(notebooks))), return_as="generator_unordered")
    outcomes: list[Outcome] = []
    try:
        for outcome in parallel(tasks):
            outcomes.append(outcome)
            print(outcome, flush=True)
            if outcome.error:
                print(outcome.error, file=sys.stderr, flush=True)
    finally:  # after an interruption the report holds the chapters that were finished
        names = [Path(name).stem for name in notebooks]
        outcomes.sort(key=lambda outcome: names.index(outcome.chapter))
        rows = [dataclasses.asdict(outcome) for outcome in outcomes]
        (output / "report.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        write_junit(output / "junit.xml", outcomes)
    return outcomes


@contextlib.contextmanager
def stop_in_order() -> Iterator[None]:
    """Leave no process behind when a CI, or Ctrl-C, ends this one; the exit status says which signal it was."""

    def terminate(*_: Any) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        raise SystemExit(128 + signal.SIGINT) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def option_parser(description: str | None, scale: str, output: Path) -> argparse.ArgumentParser:
    """The options that executing and building have in common, with their defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=SCALES, default=scale, help=f"the size of every computation ({scale})")
    parser.add_argument(
        "-p",
        "--parameter",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="another parameter of the chapters, for example: -p seed 1",
    )
    parser.add_argument(
        "--output", type=Path, default=output, help=f"where to write ({output.relative_to(REPOSITORY)})"
    )
    parser.add_argument(
        "--root", type=Path, default=REPOSITORY, help="the folder of _config.yml, _toc.yml and book/ (this repository)"
    )
    parser.add_argument("--jobs", type=_positive(int), default=1, help="chapters that run at the same time (1)")
    parser.add_argument(
        "--time-limit",
        type=_positive(float),
        default=Limits.seconds,
        metavar="SECONDS",
        help=f"for each chapter; inf for none ({Limits.seconds:g})",
    )
    parser.add_argument(
        "--memory-limit",
        type=_positive(float),
        default=Limits.gigabytes,
        metavar="GB",
        help=f"for each chapter; inf for none ({Limits.gigabytes:g})",
    )
    return parser


def chosen(options: argparse.Namespace) -> dict[str, Any]:
    """The options as arguments of :func:`execute_book`."""
    return {
        "root": options.root,
        "output": options.output,
        "parameters": {"scale": options.scale, **{name: _value(value) for name, value in options.parameter}},
        "jobs": options.jobs,
        "limits": Limits(options.time_limit, options.memory_limit),
    }


def _positive(kind: type) -> Any:
    def read(text: str) -> Any:
        if not (value := kind(text)) > 0:
            raise ValueError
        return value

    read.__name__ = f"positive {kind.__name__}"  # for argparse's message
    return read


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def main(arguments: list[str] | None = None) -> int:
    parser = option_parser(__doc__, "smoke", REPOSITORY / "_build" / "executed")
    parser.add_argument(
        "--chapter",
        action="append",
        default=[],
        metavar="NAME",
        help="a chapter, or the beginning of its name, for example: --chapter 04 (all chapters)",
    )
    options = parser.parse_args(arguments)
    try:
        with stop_in_order():
            outcomes = execute_book(chapters=options.chapter, **chosen(options))
    except UsageError as error:
        parser.error(str(error))
    failed = sum(outcome.verdict != "ok" for outcome in outcomes)
    print(f"{len(outcomes) - failed} of {len(outcomes)} chapters ok. Notebooks and reports: {options.output}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
