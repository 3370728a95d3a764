"""The command line: ``python -m companion run EXPERIMENT ...``, ``list``, ``claims``, ``check`` and ``compact``."""

from __future__ import annotations

import argparse
import math
import random
import shlex
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, get_args

import torch

from companion import experiments, published

__all__ = ["main"]

_RESERVED = ("command", "name", "scale", "seed", "device", "num_jobs", "results_dir")


class _Terminated(KeyboardInterrupt):
    """SIGTERM, made an exception so that the work in hand is saved as it is after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0: done; 1: it failed, for instance because the disk is full, or a claim has another verdict than was recorded;
    2: wrong usage; 130 and 143: interrupted by Ctrl-C or SIGTERM.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = vars(_parser().parse_args(given))
    if options["command"] == "list":
        return _list(options["results_dir"])
    if options["command"] == "claims":
        return _claims(options["results_dir"], record=options["record"])
    if options["command"] == "check":
        return _check(options["results_dir"], options["num_rows"], options["seed"], options["seconds"])
    if options["command"] == "compact":
        return _compact()
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        return _run(options)
    except KeyboardInterrupt as interruption:
        command = shlex.join(["python", "-m", "companion", *given])
        print(f"\nInterrupted. The same command goes on from here: {command}", file=sys.stderr)
        return 128 + (signal.SIGTERM if isinstance(interruption, _Terminated) else signal.SIGINT)
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise _Terminated


def _run(options: dict[str, Any]) -> int:
    selectors = {key: value for key, value in options.items() if key not in _RESERVED}
    try:
        path = experiments.run(
            options["name"],
            scale=options["scale"],
            seed=options["seed"],
            device=options["device"],
            num_jobs=options["num_jobs"],
            results_dir=options["results_dir"],
            **selectors,
        )
    except ValueError as error:
        print(f"python -m companion: {error}", file=sys.stderr)
        return 2
    except (OSError, torch.OutOfMemoryError) as error:
        print("\n".join([f"python -m companion: {error}", *getattr(error, "__notes__", ())]), file=sys.stderr)
        return 1
    record = experiments.read_record(path)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB, {record['wall_seconds']:.1f} s")
    return 0


def _list(results_dir: str | None) -> int:
    for experiment in experiments.EXPERIMENTS.values():
        print(f"{experiment.name}: {experiment.summary}")
        for selector, known in {**experiment.selectors, "scale": get_args(experiments.Scale)}.items():
            print(f"    {_option(selector)} {' | '.join(known)}")
    folder = experiments.results_folder(results_dir)
    paths = sorted(folder.glob("*.npz"))
    print(f"\nResults in {folder}:" if paths else f"\nNo results in {folder}.")
    for path in paths:
        try:
            differences = experiments.stale(path)
            date = f", {str(experiments.read_record(path).get('date'))[:10]}"
        except (ValueError, OSError) as error:
            differences, date = [str(error)], ""
        state = f"STALE ({'; '.join(differences)})" if differences else "up to date"
        print(f"    {path.name}: {path.lstat().st_size / 1e6:.2f} MB{date}, {state}")
    return 0


def _claims(results_dir: str | None, *, record: bool) -> int:
    from companion import claims  # what it reads takes a second

    try:
        checked = claims.check_claims(results_dir=results_dir)
        written = claims.record_verdicts(checked) if record else ()
    except (ValueError, OSError) as error:
        print(f"python -m companion: {error}", file=sys.stderr)
        return 1
    print(claims.to_text(checked))
    print(f"\n{claims.summary(checked).to_string()}")
    changed = [one for one in checked if one.changed]
    if changed and not record:
        print("\nOther verdicts than recorded; --record takes them over:", file=sys.stderr)
    for one in changed:
        line = f"    {one.claim.id}: recorded '{one.claim.verdict}', now '{one.outcome.verdict}'"
        print(line, file=sys.stdout if record else sys.stderr)
    if record:
        print(f"\n{len(written)} verdicts rewritten in {claims.CLAIMS_FILE.name}.")
    return int(bool(changed) and not record)


def _check(results_dir: str | None, num_rows: int, seed: int, seconds: float) -> int:
    from companion.recompute import recompute, rows_of

    paths = sorted(experiments.results_folder(results_dir).glob("*.npz"))
    tables = {path: rows_of(path) for path in paths}
    known = [(path, row) for path, table in tables.items() for row in range(len(table))]
    known = [(path, row) for path, row in known if tables[path]["seconds"].iloc[row] <= seconds]
    different = 0
    for path, number in random.Random(seed).sample(known, min(num_rows, len(known))):
        try:
            row = recompute(path, number)
        except FileNotFoundError as error:  # what it was trained on
            print(f"{path.name}: cannot be computed here. {error}", file=sys.stderr)
            continue
        different += not row.agrees
        labels = ", ".join(f"{name} {value}" for name, value in row.labels.items())
        verdict = "agrees" if row.agrees else "DIFFERS"
        print(
            f"{path.name}, {labels}: stored {row.stored:.2%}, now {row.now:.2%} "
            f"({verdict} within {row.tolerance:.2%}; {row.seconds:.0f} s)",
            flush=True,
        )
    return int(different > 0)


def _compact() -> int:
    try:
        paths = published.make_compact_copy()
    except (ValueError, OSError) as error:
        print(f"python -m companion: {error}", file=sys.stderr)
        return 1
    print(*(f"{path}: {path.stat().st_size / 1e6:.2f} MB" for path in paths), sep="\n")
    return 0


def _literal(text: str) -> str:
    return text.replace("%", "%%")  # argparse formats its help with the % operator


def _option(selector: str) -> str:
    return "--" + selector.replace("_", "-")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m companion", description="Long experiments and their results.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    results = argparse.ArgumentParser(add_help=False)
    results.add_argument(
        "--results",
        dest="results_dir",
        metavar="DIR",
        help="folder of results (default: book/results of the checkout, or ./results)",
        default=None,
    )
    commands.add_parser("list", parents=[results], help="list the experiments and the stored results")
    claims = commands.add_parser("claims", parents=[results], help="hold the papers' claims against the stored results")
    claims.add_argument("--record", action="store_true", help="write the verdicts that changed into claims.toml")
    check = commands.add_parser("check", parents=[results], help="recompute rows of stored results, drawn at random")
    check.add_argument("--random", type=int, default=5, metavar="N", dest="num_rows", help="how many (default: 5)")
    check.add_argument("--seed", type=int, default=0, help="of the draw")
    check.add_argument("--seconds", type=float, default=math.inf, help="only rows that took at most so long")
    commands.add_parser("compact", help="make the compact copy of the authors' files that ships with the book")
    run = commands.add_parser("run", help="carry out an experiment, or go on with an interrupted one")
    names = run.add_subparsers(dest="name", required=True, metavar="EXPERIMENT")
    for experiment in experiments.EXPERIMENTS.values():
        one = names.add_parser(experiment.name, parents=[results], help=_literal(experiment.summary))
        for selector, known in experiment.selectors.items():
            one.add_argument(_option(selector), choices=known, required=True)
        one.add_argument("--scale", choices=get_args(experiments.Scale), default="laptop")
        one.add_argument("--seed", type=int, default=0)
        one.add_argument("--device", help="cpu, cuda or cuda:<index> (default: CUDA where there is one)")
        one.add_argument("--jobs", dest="num_jobs", type=int, metavar="N", help="processes; -1 for one on each core")
    return parser


if __name__ == "__main__":
    sys.exit(main())
