"""The chapters' explorers in JupyterLab, used as a reader would, with the network cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import nbformat
import pytest
from book_browser import REPOSITORY
from lab_browser import (
    Lab,
    copy_chapters,
    find_explorer,
    move,
    open_chapter,
    pictures,
    run_all,
    serve_lab,
    wait_for_another,
    wait_until_idle,
)
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Browser, Locator, Page, expect

#: Those that have an explorer.
CHAPTERS = sorted(
    path.stem
    for path in (REPOSITORY / "book").glob("[0-9]*.ipynb")
    if re.search(r"here\.\w+_explorer\(", path.read_text(encoding="utf-8"))
)
SECONDS_TO_RUN = 300
#: JupyterLab's toolbar of cells looks in vain for the text of one that jupyterlab-myst draws. Nothing is seen of it.
UNSEEN = "uncaught: Cannot read properties of undefined (reading 'node')"


@dataclass(frozen=True)
class Plan:
    """Which controls change the figure, and what is trained or computed in between."""

    moves: tuple[str, ...] = ()
    start: str | None = None  # a button
    longer: str = ""  # a slider: with more of it, there is time to press Stop
    moves_after: tuple[str, ...] = ()


WAVE = ("frequency i", "frequency j", "phase", "ε", "σ")
PLANS = {
    "01": Plan(WAVE, "Train", "epochs"),
    "02": Plan(("frequency ℓ", "phase", "stride S", "prefilter")),
    "03": Plan(("m", "learning rate", "σ", "θ at the start", "φ at the start")),
    "04": Plan((), "Compute", "networks", ("NAD",)),
    "05": Plan(("angle t, °", "NAD a", "NAD b", "ε", "σ"), "Train", "epochs"),
    "08": Plan(("test image", "carrier of", "NAD index", "ε", "replaces")),
    "09": Plan(("test image", "basis", "order")),
    "10": Plan((), "Train", "epochs"),
    "11": Plan((), "Train", "epochs"),
}


@pytest.fixture(scope="module")
def lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    root = tmp_path_factory.mktemp("lab")
    # That all of the chapters run is tested without a browser.
    copy_chapters(root / "book", CHAPTERS[0], "explorers", CHAPTERS)
    with serve_lab(root / "book", root / "home") as running:
        yield running


@pytest.fixture(scope="module")
def explorers(browser: Browser, lab: Lab) -> Iterator[tuple[Page, list[str]]]:
    """The explorers of all chapters but the first, in one notebook that was run."""
    with open_chapter(browser, lab, "explorers") as (page, problems):
        assert run_all(page, SECONDS_TO_RUN) == []
        yield page, problems


def try_controls(explorer: Locator, names: tuple[str, ...], seconds: float = 30) -> list[str]:
    """Move controls one after the other; those that leave the figure as it was."""
    dead = []
    for name in names:
        wait_until_idle(explorer.page)  # a control may change two pictures: the second is not the next control's work
        before = pictures(explorer)
        move(explorer, name)
        if not wait_for_another(explorer, before, seconds):
            dead.append(f"{name!r} changes nothing")
    return dead


def start_and_stop(explorer: Locator, start: str, longer: str) -> None:
    """Press the button, see the figure move while the work goes on, and stop it."""
    move(explorer, longer)
    before = pictures(explorer)
    explorer.get_by_role("button", name=start).click()
    for _ in range(3):
        assert wait_for_another(explorer, before, seconds=60), explorer.inner_text()
        before = pictures(explorer)
    explorer.get_by_role("button", name="Stop").click()
    expect(explorer.get_by_text("Stopped after")).to_be_visible(timeout=60_000)
    expect(explorer.get_by_role("button", name=start)).to_be_enabled()
    last = pictures(explorer)
    assert not wait_for_another(explorer, last, seconds=0.5), "the figure moves on after Stop"


def check_explorer(explorer: Locator, chapter: str, problems: list[str]) -> None:
    plan = PLANS[chapter[:2]]
    dead = try_controls(explorer, plan.moves)
    if plan.start:
        start_and_stop(explorer, plan.start, plan.longer)
    dead += try_controls(explorer, plan.moves_after)
    assert [problem for problem in problems if problem != UNSEEN] + dead == []


def test_a_chapter_and_its_explorer_work_in_lab(browser: Browser, lab: Lab) -> None:
    with open_chapter(browser, lab, CHAPTERS[0]) as (page, problems):
        assert run_all(page, SECONDS_TO_RUN) == []
        check_explorer(find_explorer(page), CHAPTERS[0], problems)


@pytest.mark.parametrize("number", range(len(CHAPTERS) - 1), ids=CHAPTERS[1:])
def test_the_explorer_works_in_lab(explorers: tuple[Page, list[str]], number: int) -> None:
    page, problems = explorers
    problems.clear()
    check_explorer(find_explorer(page, number), CHAPTERS[1 + number], problems)


BROKEN = """
import ipywidgets
from IPython.display import Javascript, display
display(Javascript("console.error('told so'); fetch('https://example.org/data')"))
def dead_explorer():
    return ipywidgets.HBox([ipywidgets.IntSlider(description="dead")])
display(dead_explorer())
1 / 0
"""


def test_the_checks_find_what_is_broken(browser: Browser, lab: Lab) -> None:
    """A notebook with one fault of each kind: every check above must report its own."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=[new_code_cell(BROKEN)], metadata=kernel), lab.root / "broken.ipynb")
    with open_chapter(browser, lab, "broken") as (page, problems):
        assert run_all(page, SECONDS_TO_RUN) == ["ZeroDivisionError: division by zero"]
        dead = try_controls(find_explorer(page), ("dead",), seconds=0.5)
    assert dead == ["'dead' changes nothing"]
    assert "console: told so" in problems
    assert "request to another host: https://example.org/data" in problems
