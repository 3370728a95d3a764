"""What is given away: a wheel that holds the whole package, a source archive, and files that agree on the version."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from checkout import ROOT, copy_of_the_checkout, make

import nadtools

IMPORT_EVERYTHING = """
import importlib, json, pkgutil
import nadtools
names = [module.name for module in pkgutil.walk_packages(nadtools.__path__, "nadtools.")]
print(json.dumps({name: importlib.import_module(name).__file__ for name in ["nadtools", *names]}))
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make release` builds, from a copy of the sources whose book is one page."""
    tools = [f"book/{name}" for name in ("_ext", "static", "references.bib", "execute.py", "build.py")]
    source = copy_of_the_checkout(
        tmp_path_factory.mktemp("source"), "README.md", "LICENSE", "MANIFEST.in", "_config.yml", "nadtools", *tools
    )
    (source / "_toc.yml").write_text("format: jb-book\nroot: book/page\n", encoding="utf-8")
    (source / "book" / "page.md").write_text("# A page\n", encoding="utf-8")
    (source / "dist").mkdir()
    (source / "dist" / "nadtools-0.0.0.tar.gz").touch()
    built = make(source, "release", "SCALE=smoke")
    assert built.returncode == 0, built.stdout
    return source / "dist"


def test_the_wheel_holds_every_file_of_the_package(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("nadtools/")}
    paths = [path for path in (ROOT / "nadtools").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert packed == {path.relative_to(ROOT).as_posix() for path in paths}


def test_there_is_a_source_archive(dist: Path) -> None:
    assert [path.name for path in dist.glob("*.tar.gz")] == [f"nadtools-{nadtools.__version__}.tar.gz"]


def test_the_book_is_there_as_a_zip_that_opens_offline(dist: Path) -> None:
    with zipfile.ZipFile(dist / f"nadtools-book-{nadtools.__version__}.zip") as archive:
        assert archive.testzip() is None
        assert {"html/index.html", "html/book/page.html", "html/_static/plotly.min.js"} <= set(archive.namelist())


def test_the_wheel_installs_and_imports(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True)
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_EVERYTHING],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        check=True,
        capture_output=True,
        text=True,
    )
    files = json.loads(finished.stdout)
    assert len(files) == len(list((ROOT / "nadtools").rglob("*.py")))
    assert [name for name, file in files.items() if not Path(file).is_relative_to(target)] == []


def test_the_citation_names_this_version_and_both_papers() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["version"] == nadtools.__version__
    assert citation["license"] == "MIT"
    # The titles and first authors are those of the book's bibliography.
    bibliography = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    assert len(citation["references"]) == 2
    for reference in citation["references"]:
        assert f"{{{reference['title']}}}" in bibliography
        assert reference["authors"][0]["family-names"] == "Ortiz-Jiménez"
        assert {"type", "title", "authors", "year"} <= set(reference)


def test_the_changelog_knows_this_version() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert nadtools.__version__ in headings
