"""Live chapters elsewhere: what Binder installs, and the cell that fetches the book on Colab."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
BINDER = ROOT / "binder"
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
sys.path.append(str(ROOT / "book"))  # where these tools find each other

import colab  # noqa: E402
import launch  # noqa: E402


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_binder_has_a_python_that_the_project_takes(project: dict) -> None:
    language, _, version = (BINDER / "runtime.txt").read_text(encoding="utf-8").strip().partition("-")
    assert language == "python"
    assert SpecifierSet(project["requires-python"]).contains(version)


def test_binder_installs_the_package_at_the_locked_versions_without_cuda() -> None:
    script = BINDER / "postBuild"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)
    text = script.read_text(encoding="utf-8")
    for needed in ("--torch-backend cpu", "--constraint requirements.txt", "--editable '.[book]'"):
        assert needed in text


def test_colab_installs_what_the_package_needs_but_its_own_widgets(project: dict) -> None:
    names = {Requirement(text).name for text in colab.requirements()}
    assert {Requirement(text).name for text in project["dependencies"]} <= names
    assert {"plotly", "matplotlib", "pooch", "scikit-learn"} <= names and "ipywidgets" not in names


def notebook() -> nbformat.NotebookNode:
    parameters = new_code_cell("seed = 0", id="b", metadata={"tags": ["parameters"]})
    return new_notebook(cells=[new_markdown_cell("# Title", id="a"), parameters, new_code_cell("pass", id="c")])


def test_the_cell_stands_before_the_parameters_and_only_once() -> None:
    once = launch.with_launch_cell(notebook(), "first")
    assert [cell.id for cell in once.cells] == ["a", "launch", "b", "c"]
    assert once.cells[1].metadata.tags == ["launch", "remove-cell"]
    nbformat.validate(once)
    twice = launch.with_launch_cell(once, "second")
    assert [cell.source for cell in twice.cells] == ["# Title", "second", "seed = 0", "pass"]
    assert launch.with_launch_cell(twice, None) == notebook()


def test_the_address_is_the_one_line_that_turns_it_on(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    nbformat.write(notebook(), tmp_path / "book" / "page.ipynb")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/page\n", encoding="utf-8")

    def update(repository: dict[str, str]) -> list[str]:
        (tmp_path / "_config.yml").write_text(yaml.safe_dump({"repository": repository}), encoding="utf-8")
        return launch.update(tmp_path)

    assert update({"branch": "main"}) == []
    before = (tmp_path / "book" / "page.ipynb").read_bytes()
    address = {"url": "https://example.org/somebody/something", "branch": "main"}
    assert update(address) == ["book/page.ipynb"]
    assert "https://example.org/somebody/something" in (tmp_path / "book" / "page.ipynb").read_text(encoding="utf-8")
    assert update(address) == []
    assert update({"branch": "main"}) == ["book/page.ipynb"]
    assert (tmp_path / "book" / "page.ipynb").read_bytes() == before


def test_the_cell_is_formatted_as_the_chapters_are(tmp_path: Path) -> None:
    path = tmp_path / "page.ipynb"
    nbformat.write(launch.with_launch_cell(notebook(), launch.launch_cell(CONFIG)), path)
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--config", str(ROOT / "pyproject.toml")]
    subprocess.run([*ruff, "check", *config, str(path)], check=True)
    subprocess.run([*ruff, "format", "--check", "--isolated", "--line-length", "94", str(path)], check=True)


@pytest.mark.parametrize("on_colab", [True, False])
def test_the_cell_fetches_the_book_on_colab_and_does_nothing_elsewhere(tmp_path: Path, on_colab: bool) -> None:
    """A repository that stands in for the book, whose colab.py says that it ran."""
    published = tmp_path / "published"
    (published / "book").mkdir(parents=True)
    (published / "book" / "colab.py").write_text("print('installed')\n", encoding="utf-8")
    (published / "fetched.py").write_text("word = 'fetched'\n", encoding="utf-8")
    git = ["git", "-C", str(published), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message=a"], check=True)

    folder = tmp_path / "content"
    cell = launch.launch_cell({"repository": {"url": str(published), "branch": "main"}}, str(folder))
    assert cell is not None
    marker = "import sys; sys.modules['google.colab'] = sys\n" if on_colab else ""
    code = f"{marker}{cell}\n" + ("import fetched; print(fetched.word)" if on_colab else "")
    for _ in range(2):  # a cell may be run again
        finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
        assert finished.returncode == 0, finished.stderr
        assert finished.stdout.split() == (["installed", "fetched"] if on_colab else [])
        assert folder.exists() == on_colab


def test_every_chapter_has_the_cell_for_the_address_in_the_configuration() -> None:
    source = launch.launch_cell(CONFIG)
    for name in launch.notebooks_in_toc(ROOT):
        chapter = nbformat.read(ROOT / name, as_version=4)
        assert launch.with_launch_cell(chapter, source) == chapter, f"{name} has another launch cell; run: make launch"
