"""Execute the chapters and build the offline HTML book.

    python book/build.py                                   # laptop scale, into _build: _build/html/index.html
    python book/build.py --scale smoke --output _build/smoke --jobs 2

There is one way from a chapter to its page. Papermill executes a copy of every notebook that ``_toc.yml`` names, at the
scale that was asked for; Jupyter Book then renders what they printed and drew, and executes nothing. The build fails
when a cell fails, when a parameter is unknown to a chapter, and on any Sphinx warning.

Written below the output folder: ``source/`` (what Sphinx read), ``html/`` (the book) and ``report.json`` (verdict and
seconds for each chapter). All three are made anew each time.
"""

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import joblib
import nbformat
import papermill
import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
SCALES = ("smoke", "laptop", "paper")
# Nothing in a kernel may print a progress bar or show a widget: neither works on a page.
KERNEL_ENVIRONMENT = {"TQDM_DISABLE": "1", "NADTOOLS_STATIC": "1"}


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


def execute(path: Path, parameters: dict[str, Any], timeout: int) -> dict[str, Any]:
    """Execute one notebook in place; return its row of the report."""
    notebook = nbformat.read(path, as_version=4)
    known = chapter_parameters(notebook)
    row: dict[str, Any] = {"chapter": path.stem, "parameters": {**known, **parameters}}
    # papermill itself would only print a line and inject a variable that no cell reads.
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        error = f"unknown parameter {', '.join(unknown)}; its parameters cell has {', '.join(known) or 'none'}"
        return {**row, "verdict": "failed", "seconds": 0.0, "error": error}
    start = time.perf_counter()
    error: str | None = None
    for attempts_left in (1, 0):
        try:
            papermill.execute_notebook(
                path,
                path,
                # A value that the chapter already has is not injected: at the default scale no extra cell appears.
                parameters={name: value for name, value in parameters.items() if known[name] != value},
                cwd=path.parent,
                progress_bar=False,
                execution_timeout=timeout,
                extra_arguments=["--log-level=CRITICAL"],  # the kernel's own remarks on starting and stopping
            )
        except Exception as exception:  # any failure is this chapter's verdict; the others go on
            error = str(exception).strip() or repr(exception)
            # Two kernels that start at once can choose the same port. Then no cell has run: start again.
            if attempts_left and "Kernel died before replying" in error:
                nbformat.write(notebook, path)
                continue
        else:
            error = None
            _forget_the_machine(path)
        break
    return {
        **row,
        "verdict": "failed" if error else "ok",
        "seconds": round(time.perf_counter() - start, 1),
        "error": error,
    }


def _forget_the_machine(path: Path) -> None:
    """Remove what papermill noted down: paths and times, which readers would download with the notebook."""
    notebook = nbformat.read(path, as_version=4)
    for part in (notebook, *notebook.cells):
        part.metadata.pop("papermill", None)
        part.metadata.pop("execution", None)
    notebook.metadata.pop("widgets", None)
    nbformat.write(notebook, path)


def notebooks_in_toc(root: Path) -> list[str]:
    """The notebooks that the table of contents names, relative to `root`, in reading order."""

    def files(node: Any) -> list[str]:
        if isinstance(node, dict):
            own = [node[key] for key in ("root", "file") if key in node]
            return own + [name for value in node.values() if isinstance(value, list) for name in files(value)]
        return [name for item in node for name in files(item)] if isinstance(node, list) else []

    names = files(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8")))
    return [f"{name}.ipynb" for name in names if (root / f"{name}.ipynb").is_file()]


def copy_sources(root: Path, source: Path) -> None:
    """Copy what Sphinx reads, so that executed notebooks never land in the working tree."""
    source.mkdir(parents=True)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy2(root / name, source / name)
    ignore = shutil.ignore_patterns(".*", "__pycache__", "_build", Path(__file__).name)
    shutil.copytree(root / "book", source / "book", ignore=ignore)


def build_html(source: Path, html: Path) -> bool:
    """Run Jupyter Book with every warning an error; whether it succeeded."""
    command = [
        sys.executable,
        "-c",
        "from jupyter_book.cli.main import main; main()",
        "build",
        ".",
    ]
    options = ["--path-output", ".", "--all", "-W", "-n", "--keep-going", "--quiet"]
    # The folder of local extensions is looked up from the working directory.
    finished = subprocess.run([*command, *options], cwd=source, capture_output=True, text=True)
    if finished.returncode != 0:
        print(finished.stdout, finished.stderr, sep="", file=sys.stderr)
        return False
    shutil.move(source / "_build" / "html", html)
    return True


def build(
    root: Path,
    output: Path,
    parameters: dict[str, Any],
    jobs: int = 1,
    timeout: int = 1800,
    html: bool = True,
) -> int:
    """Build the book of `root` into `output`; 0 on success, else 1."""
    output = output.resolve()
    source = output / "source"
    for name in ("source", "html"):
        shutil.rmtree(output / name, ignore_errors=True)
    (output / "report.json").unlink(missing_ok=True)
    copy_sources(root.resolve(), source)

    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    os.environ.update(KERNEL_ENVIRONMENT, PYTHONPATH=path)
    chapters = [source / name for name in notebooks_in_toc(source)]
    tasks = (joblib.delayed(execute)(chapter, parameters, timeout) for chapter in chapters)
    report = []
    # loky divides the cores among its workers, whose kernels inherit the number of threads.
    for row in joblib.Parallel(n_jobs=max(1, min(jobs, len(chapters))), return_as="generator_unordered")(tasks):
        report.append(row)
        print(f"{row['verdict']:>6}  {row['seconds']:6.1f} s  {row['chapter']}", flush=True)
        if row["error"]:
            print(row["error"], file=sys.stderr, flush=True)
    report.sort(key=lambda row: row["chapter"])
    (output / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")

    if any(row["verdict"] != "ok" for row in report):
        print("The book was not built: a chapter failed.", file=sys.stderr)
        return 1
    if html:
        start = time.perf_counter()
        if not build_html(source, output / "html"):
            print(
                "The book was not built: Sphinx reported an error or a warning, see above.",
                file=sys.stderr,
            )
            return 1
        print(f"    ok  {time.perf_counter() - start:6.1f} s  pages")
        print(f"The book: {output / 'html' / 'index.html'}")
    return 0


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=SCALES, default="laptop", help="the size of every computation")
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
        "--output",
        type=Path,
        default=REPOSITORY / "_build",
        help="where to build (default: _build)",
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=REPOSITORY,
        help="the folder of _config.yml, _toc.yml, book/",
    )
    parser.add_argument("--jobs", type=int, default=1, help="chapters that run at the same time")
    parser.add_argument("--timeout", type=int, default=1800, help="seconds that a single cell may take")
    parser.add_argument("--no-html", action="store_true", help="only execute the chapters")
    options = parser.parse_args(arguments)
    parameters = {
        "scale": options.scale,
        **{name: _value(value) for name, value in options.parameter},
    }
    return build(
        options.root,
        options.output,
        parameters,
        options.jobs,
        options.timeout,
        not options.no_html,
    )


if __name__ == "__main__":
    sys.exit(main())
