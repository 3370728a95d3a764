"""Execute the chapters and build the offline HTML book.

    python book/build.py                                   # laptop scale, into _build: _build/html/index.html
    python book/build.py --scale smoke --output _build/smoke --jobs 2

There is one way from a chapter to its page. ``execute.py`` executes a copy of every notebook that ``_toc.yml`` names,
at the scale that was asked for; Jupyter Book then renders what they printed and drew, and executes nothing. The build
fails when a chapter fails, and on any Sphinx warning.

Written below the output folder, anew each time: ``source/`` (what Sphinx read), ``html/`` (the book), and the reports
of ``execute.py``.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from execute import REPOSITORY, UsageError, chosen, execute_book, option_parser, stop_in_order


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


def build(root: Path, output: Path, **options: Any) -> int:
    """Build the book of `root` into `output`; 0 on success, else 1. The options are those of `execute_book`."""
    outcomes = execute_book(root, output, **options)
    html = output.resolve() / "html"
    shutil.rmtree(html, ignore_errors=True)
    if any(outcome.verdict != "ok" for outcome in outcomes):
        print("The book was not built: a chapter failed.", file=sys.stderr)
        return 1
    start = time.perf_counter()
    if not build_html(output.resolve() / "source", html):
        print("The book was not built: Sphinx reported an error or a warning, see above.", file=sys.stderr)
        return 1
    print(f"{'ok':>9} {time.perf_counter() - start:7.1f} s {'':9}  pages")
    print(f"The book: {html / 'index.html'}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = option_parser(__doc__, "laptop", REPOSITORY / "_build")
    options = parser.parse_args(arguments)
    try:
        with stop_in_order():
            return build(**chosen(options))
    except UsageError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
