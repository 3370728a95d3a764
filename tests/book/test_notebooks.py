"""The chapters as notebooks: their form, that they run, and that what goes wrong stops the build."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest
from book_browser import REPOSITORY, BuiltBook, run_build
from companion import grading
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

CHAPTERS = sorted((REPOSITORY / "book").glob("*.ipynb"))
CONFIG = "title: small\nexecute: {execute_notebooks: 'off', stderr_output: remove-warn}\n"
MAX_LINES = 20  # of any cell
MAX_VISIBLE_LINES = 12
MAX_VISIBLE_COLUMNS = 76  # more would scroll sideways
MAX_VISIBLE_CELLS = 100  # in the whole book
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
PARAMETERS = 'scale = "laptop"\nseed = 0\ndevice = None'


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request: pytest.FixtureRequest) -> Path:
    return request.param


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def write_book(root: Path, source: str, parameters: str = PARAMETERS) -> Path:
    """A book of one page, whose one cell below the parameters is `source`."""
    (root / "book").mkdir(parents=True)
    (root / "_config.yml").write_text(CONFIG, encoding="utf-8")
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/page\n", encoding="utf-8")
    cells = [
        new_markdown_cell("# Page"),
        new_code_cell(parameters, metadata={"tags": ["parameters"]}),
        new_code_cell(source),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=kernel), root / "book" / "page.ipynb")
    return root


def test_there_are_chapters() -> None:
    assert CHAPTERS


def test_chapter_is_committed_without_outputs(chapter: Path) -> None:
    filled = [k for k, cell in enumerate(code_cells(chapter)) if cell.outputs or cell.execution_count is not None]
    assert filled == [], f"code cells with outputs; run: nbstripout {chapter.name}"


def test_chapter_has_one_parameters_cell(chapter: Path) -> None:
    cells = [cell for cell in code_cells(chapter) if "parameters" in cell.metadata.get("tags", [])]
    assert len(cells) == 1
    assigned = {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in ast.parse(cells[0].source).body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }
    assert assigned == {"scale": "laptop", "seed": 0, "device": None}


def test_chapter_has_short_cells(chapter: Path) -> None:
    cells = [cell.source.splitlines() for cell in code_cells(chapter)]
    assert {lines[0]: len(lines) for lines in cells if len(lines) > MAX_LINES} == {}


def visible_cells(path: Path) -> list[nbformat.NotebookNode]:
    """The code cells whose source the page shows."""
    return [cell for cell in code_cells(path) if not HIDDEN & set(cell.metadata.get("tags", []))]


def test_what_a_chapter_shows_of_its_code_fits_the_page(chapter: Path) -> None:
    cells = [cell.source.splitlines() for cell in visible_cells(chapter)]
    assert {lines[0]: len(lines) for lines in cells if len(lines) > MAX_VISIBLE_LINES} == {}
    assert [line for lines in cells for line in lines if len(line) > MAX_VISIBLE_COLUMNS] == []


def test_jupyterlab_folds_what_the_page_folds_and_the_solutions(chapter: Path) -> None:
    """But for the parameters and the explorers, which whoever runs a chapter may want to change."""
    expected, found, in_solution = [], [], False
    for cell in nbformat.read(chapter, as_version=4).cells:
        if cell.cell_type == "markdown":
            for gate in re.findall(r"{solution-(start|end)}", cell.source):
                in_solution = gate == "start"
            continue
        tags = set(cell.metadata.get("tags", []))
        if (in_solution or HIDDEN & tags) and "parameters" not in tags and "_explorer(" not in cell.source:
            expected.append(cell.source)
        if cell.metadata.get("jupyter", {}).get("source_hidden", False):
            found.append(cell.source)
    assert found == expected


def test_the_book_shows_little_code() -> None:
    assert sum(len(visible_cells(path)) for path in CHAPTERS) <= MAX_VISIBLE_CELLS


@pytest.mark.parametrize("number", sorted({exercise[:2] for exercise in grading.available()}))
def test_every_exercise_is_asked_solved_and_checked_in_its_order(number: str) -> None:
    # A starred chapter has the exercises that follow.
    pages = [path for path in CHAPTERS if re.match(f"{number}b?-", path.stem)]
    cells = [cell for path in pages for cell in nbformat.read(path, as_version=4).cells]
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    code = "\n".join(cell.source for path in pages for cell in code_cells(path))
    expected = [exercise for exercise in grading.available() if exercise.startswith(f"{number}-")]
    assert len(expected) >= 3
    asked = re.findall(r"^```{exercise} (.*?): .*\n:label: exercise-(.*)$", text, re.MULTILINE)
    assert asked == [(exercise, exercise) for exercise in expected]
    assert re.findall(r"^```{solution-start} exercise-(.*)$", text, re.MULTILINE) == expected
    assert re.findall(r'^check\("(.*?)", ', code, re.MULTILINE) == expected


def test_chapter_names_the_plain_kernel(chapter: Path) -> None:
    assert nbformat.read(chapter, as_version=4).metadata.kernelspec.name == "python3"


def test_chapter_runs_at_smoke_scale(chapter: Path, tried_book: BuiltBook) -> None:
    rows = [row for row in tried_book.report if row["chapter"] == chapter.stem]
    assert len(rows) == 1, f"{chapter.stem} was not executed; is it in _toc.yml?\n{tried_book.log}"
    assert rows[0]["parameters"]["scale"] == "smoke"
    assert rows[0]["verdict"] == "ok", rows[0]["error"]


def test_building_leaves_the_chapters_alone(chapter: Path, tried_book: BuiltBook) -> None:
    executed = tried_book.html.parent / "source" / "book" / chapter.name
    assert any(cell.outputs for cell in code_cells(executed))
    assert not any(cell.outputs for cell in code_cells(chapter))
    assert str(REPOSITORY) not in executed.read_text(encoding="utf-8"), "the page names a folder of this machine"


def test_parameters_reach_the_kernel(tmp_path: Path) -> None:
    root = write_book(tmp_path / "root", 'assert (scale, seed, device) == ("smoke", 3, None)')
    built = run_build(root, tmp_path / "out", "-p", "seed", "3")
    assert built.returncode == 0, built.log
    assert "page.html" in "".join(built.pages())


def test_a_failing_cell_fails_the_build(tmp_path: Path) -> None:
    built = run_build(write_book(tmp_path / "root", "1 / 0"), tmp_path / "out")
    assert built.returncode == 1
    assert not built.html.exists()
    assert "ZeroDivisionError" in built.log
    assert built.report[0]["verdict"] == "failed"


@pytest.mark.parametrize(
    ("parameters", "options"), [(PARAMETERS, ("-p", "sead", "1")), ("seed = 0", ())], ids=["misspelt", "no scale"]
)
def test_an_unknown_parameter_fails_the_build(tmp_path: Path, parameters: str, options: tuple[str, ...]) -> None:
    built = run_build(write_book(tmp_path / "root", "pass", parameters), tmp_path / "out", *options)
    assert built.returncode == 2
    assert not built.html.exists()
    assert "unknown parameter" in built.log


def test_anything_on_stderr_fails_the_build(tmp_path: Path) -> None:
    root = write_book(tmp_path / "root", "import warnings; warnings.warn('take care')")
    built = run_build(root, tmp_path / "out")
    assert built.returncode == 1
    assert not built.html.exists()
