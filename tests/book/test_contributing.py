"""The page that says how to add something of one's own: what it tells readers to run, works."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from companion import experiments, stored
from companion.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "contributing.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """Every command of the page: the lines of shell blocks, and those in the text."""
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    lines += re.findall(r"`((?:make|(?:\.\./)?\.venv/bin/\S+) [^`]*)`", PAGE)
    return [shlex.split(line, comments=True) for line in lines]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The names that the page's Python defines, run from top to bottom in a folder that stands for a checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "book").mkdir()
    (folder / "book" / "companion").symlink_to(ROOT / "book" / "companion")
    names: dict[str, Any] = {"__name__": "page", "folder_of_the_checkout": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder / "book")
        patch.setattr(experiments, "EXPERIMENTS", {**experiments.EXPERIMENTS})
        patch.setattr(stored, "EXPERIMENTS", experiments.EXPERIMENTS)
        for number, block in enumerate(blocks("python")):
            exec(compile(block, f"contributing.md, block {number + 1}", "exec"), names)
    return names


def test_an_architecture_of_yours(executed: dict[str, Any]) -> None:
    nads, table = executed["nads"], executed["table"]
    assert nads.vectors.shape == (1024, 32, 32)
    assert nads.metadata["symmetries"] == "square"
    assert list(table["direction"]) == ["NAD 0", "NAD 1000"]
    # What the chapters teach: the first NAD is learned, a late one is not, as a pooling network forgets it.
    accuracy = table.set_index("direction")["test_accuracy"]
    assert accuracy["NAD 0"] > 0.9 > 0.7 > accuracy["NAD 1000"]


def test_a_figure_of_yours(executed: dict[str, Any]) -> None:
    assert executed["blur"].attrs["scale"] == "smoke"
    drawn = executed["figure"].data[0]
    assert drawn.y.tolist() == executed["blur"]["eigenvalue"].astype("float32").tolist()
    assert executed["figure"].layout.meta["alt"]
    assert "blur" not in experiments.EXPERIMENTS


def test_a_chapter_of_yours(executed: dict[str, Any]) -> None:
    root = executed["folder_of_the_checkout"]
    (root / "_config.yml").write_text("title: small\n", encoding="utf-8")
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/12-my-chapter\n", encoding="utf-8")
    command = [sys.executable, str(ROOT / "book" / "execute.py"), "--root", str(root), "--output", str(root / "out")]
    finished = subprocess.run([*command, "--chapter", "12"], capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    chapter = nbformat.read(root / "out" / "source" / "book" / "12-my-chapter.ipynb", as_version=4)
    assert any("text/html" in output.get("data", {}) for output in chapter.cells[-2].outputs)


def test_an_exercise_of_yours(executed: dict[str, Any]) -> None:
    grade = executed["EXERCISE"].grade
    assert [grade(16), grade(4), grade(3)] == [None, "This counts one axis only.", ""]


def test_every_command_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    assert len(commands()) > 8
    for program, *arguments in commands():
        program = program.removeprefix("../")
        if program == "make":
            assert arguments[0] in targets, arguments
        elif arguments[:2] == ["-m", "companion"]:
            help_of = arguments[2:4] if arguments[2] == "run" else arguments[2:3]
            with pytest.raises(SystemExit, match="0"):
                main([*help_of, "--help"])
            text = capsys.readouterr().out
            assert [word for word in arguments if word.startswith("--") and word not in text] == []
        elif arguments[:2] == ["-m", "pytest"]:
            assert (ROOT / arguments[2]).is_file()
        else:
            assert program in {".venv/bin/nbstripout", ".venv/bin/pre-commit"}, program


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:nadtools|tests|book)/[\w/.]+)`", PAGE))))
def test_every_file_is_there(path: str) -> None:
    ours = "12" in path or path == "book/results"
    assert ours or (ROOT / path).exists()
