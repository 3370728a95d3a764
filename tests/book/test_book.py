"""The built book in a real browser, with the network cut."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import torch
import yaml
from book_browser import (
    REPOSITORY,
    BuiltBook,
    dead_controls,
    dead_keys,
    endless,
    faint_text,
    inaccessible,
    listing,
    serve,
    sideways_scroll,
    undrawn,
    unfold,
    visit,
    wait_until_drawn,
    without_data,
)
from playwright.sync_api import Browser

import nadtools as nt

DESKTOP, PHONE = 1280, 390  # CSS pixels
HIGHEST_PAGE = 14_000
# The listings of code are all alike, and one stands for the others. Their index is Sphinx's own, with its nested lists.
PAGES = [
    "index.html",
    *(f"{name}.html" for name in re.findall(r"(?:root|file): *(\S+)", (REPOSITORY / "_toc.yml").read_text("utf-8"))),
    *("genindex.html", "prf-prf.html", "py-modindex.html", "search.html"),
    "_modules/nadtools/estimation.html",
]
CONTRAST = ("book/intro.html", "book/05-nads-and-learning.html", "book/scoreboard.html", "search.html")
LISTS = ("book/api", "_modules", "genindex", "prf-prf", "py-modindex")  # of functions, and of all there is


@pytest.fixture(scope="module")
def address(book: BuiltBook) -> Iterator[str]:
    with serve(book.html) as url:
        yield url


def pages_with_figures(book: BuiltBook) -> list[str]:
    return [page for page in book.pages() if "plotly-graph-div" in (book.html / page).read_text(encoding="utf-8")]


class _Links(HTMLParser):
    """The links, the anchors and the loaded resources of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.resources: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and "href" in values:
            self.resources.append(values["href"])
        elif "src" in values:
            self.resources.append(values["src"])


def test_every_page_is_there_and_visited_below(book: BuiltBook) -> None:
    assert {page for page in book.pages() if not page.startswith("_modules/")} == {
        page for page in PAGES if not page.startswith("_modules/")
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_accessible_and_alive(book: BuiltBook, browser: Browser, address: str, name: str) -> None:
    with visit(browser, address, name, folded=True) as (page, problems):
        if not name.startswith(LISTS):
            problems += endless(page, HIGHEST_PAGE)
        unfold(page)
        page.set_viewport_size({"width": PHONE, "height": 844})
        problems += wait_until_drawn(page)
        problems += [f"on a telephone, {problem}" for problem in undrawn(page) + sideways_scroll(page)]
        page.set_viewport_size({"width": DESKTOP, "height": 900})
        problems += wait_until_drawn(page)
        problems += undrawn(page)
        problems += faint_text(page)
        # The contrast of text takes most of the time, and its colours are those of the theme.
        problems += inaccessible(page, contrast=name in CONTRAST)
        # Titles and tick labels of figures, and the text of tables, have the contrast that WCAG 2 asks for (4.5).
        page.emulate_media(color_scheme="dark")
        page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
        problems += [f"on a dark page, {problem}" for problem in faint_text(page)]
        page.emulate_media(color_scheme="light")
        problems += without_data(page)
        (controls, dead), (keys, mute) = dead_controls(page), dead_keys(page)
        problems += dead + mute
        if controls and not keys:
            problems.append("no control can be reached by the keyboard")
        assert not problems, "\n".join(problems)


def test_pages_open_from_a_folder_without_a_server(book: BuiltBook, browser: Browser) -> None:
    problems = {}
    for name in ["index.html", *pages_with_figures(book)[:2]]:
        with visit(browser, book.html.as_uri(), name, width=PHONE) as (page, found):
            if found := found + undrawn(page) + sideways_scroll(page):
                problems[name] = found
    assert not problems, listing(problems)


def test_the_pointer_on_a_map_draws_the_wave_of_its_frequency(book: BuiltBook, browser: Browser, address: str) -> None:
    with visit(browser, address, "book/01-directional-bias.html") as (page, problems):
        linked = "(gd) => Boolean(gd.layout.meta && gd.layout.meta.waves)"
        figure = next(one for one in page.locator(".plotly-graph-div").all() if one.evaluate(linked))
        figure.evaluate("(gd) => gd.scrollIntoView({block: 'center', behavior: 'instant'})")
        title = "(gd) => gd.layout.annotations[gd.layout.meta.waves.annotation].text"
        before = figure.evaluate(title)
        box = figure.locator(".xy").first.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 0.71 * box["width"], box["y"] + 0.29 * box["height"])
        for _ in range(100):
            if figure.evaluate(title) != before:
                break
            page.wait_for_timeout(50)
        name = figure.evaluate(title)
        assert name != before
        i, j = (int(f) for f in re.findall(r"-?\d+", name.replace("\u2212", "-")))
        wave = torch.tensor(figure.evaluate("(gd) => gd.data[gd.layout.meta.waves.trace].z"))
        torch.testing.assert_close(wave, nt.fourier_atom((32, 32), (i, j), math.pi / 2), rtol=0, atol=1e-6)
        assert problems == []


def test_only_pages_with_figures_load_plotly(book: BuiltBook) -> None:
    loading = {page for page in book.pages() if any("plotly" in src for src in _Links(book.html / page).resources)}
    assert loading == set(pages_with_figures(book)) != set()


def test_no_page_loads_widgets_or_another_host(book: BuiltBook) -> None:
    resources = {src for page in book.pages() for src in _Links(book.html / page).resources}
    assert [src for src in resources if urlsplit(src).netloc or "widget" in src.lower()] == []


def test_links_inside_the_book_lead_somewhere(book: BuiltBook) -> None:
    parsed = {(book.html / page).resolve(): _Links(book.html / page) for page in book.pages()}
    broken = []
    for path, page in parsed.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            fragment = unquote(parts.fragment)
            known = parsed[target].anchors if target in parsed else None
            if not target.exists() or (fragment and known is not None and fragment not in known):
                broken.append(f"{path.relative_to(book.html.resolve())}: {link}")
    assert broken == []


def test_chapters_can_be_launched_and_downloaded(book: BuiltBook) -> None:
    config = yaml.safe_load((REPOSITORY / "_config.yml").read_text(encoding="utf-8"))
    repository, launch = config["repository"], config["launch_buttons"]
    name = repository["url"].removeprefix("https://github.com/")
    chapters = [page for page in book.pages() if (REPOSITORY / page).with_suffix(".ipynb").is_file()]
    assert chapters
    for page in chapters:
        notebook = Path(page).with_suffix(".ipynb").as_posix()
        links = _Links(book.html / page).links
        assert f"{launch['binderhub_url']}/v2/gh/{name}/{repository['branch']}?urlpath=lab/tree/{notebook}" in links
        assert f"{launch['colab_url']}/github/{name}/blob/{repository['branch']}/{notebook}" in links
        assert f"../_sources/{notebook}" in links  # and so it exists: links inside the book are followed above


def test_every_public_module_has_a_page_in_the_reference() -> None:
    package, pages = REPOSITORY / "nadtools", REPOSITORY / "book" / "api"
    modules = {
        ".".join(path.relative_to(package).with_suffix("").parts)
        for path in package.rglob("*.py")
        if not path.stem.startswith("_")
    } | {"analytic"}  # a package whose functions are at its door
    documented = [
        re.findall(r"automodule:: nadtools\.([\w.]+)", page.read_text(encoding="utf-8")) for page in pages.glob("*.md")
    ]
    assert sorted(name for names in documented for name in names) == sorted(modules)
    listed = re.findall(
        r"^ {3}nadtools\.([\w.]+)$", (pages.parent / "api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(listed) == sorted(modules)


def test_the_checks_find_what_is_broken(book: BuiltBook, browser: Browser, tmp_path: Path) -> None:
    """A page with one fault of each kind: every check above must report its own."""
    (tmp_path / "plotly.min.js").symlink_to(book.html / "_static" / "plotly.min.js")
    (tmp_path / "bad.html").write_text(
        """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script src="plotly.min.js"></script>
        <main><div class="cell_input"><pre style="width:50px;overflow:auto">a line of code that is too long</pre></div>
        <img src="https://example.org/picture.png" alt="far"><img src="missing.png" alt="near">
        <figure class="nadtools-figure"><div role="group" aria-label="">
        <div id="figure" class="plotly-graph-div" style="width:500px;height:400px"></div></div></figure></main>
        <script>console.error("told so");
        const steps = [0, 1].map((k) => ({label: `${k}`, method: "skip", args: []}));
        const buttons = ["a", "b"].map((label) => ({label, method: "skip", args: []}));
        Plotly.newPlot("figure", [{y: [1, 2]}], {sliders: [{steps}], updatemenus: [{buttons}]});</script>""",
        encoding="utf-8",
    )
    with serve(tmp_path) as url, visit(browser, url, "bad.html", width=PHONE) as (page, problems):
        _, dead = dead_controls(page, seconds=1)
        found = "\n".join(problems + undrawn(page) + sideways_scroll(page) + dead + endless(page, 100))
    for expected in (
        "request to another host: https://example.org/picture.png",
        "404: ",
        "console: told so",
        "neither alternative text nor a title",
        "image not shown",
        "px of content in 390 px",
        "px high",
        "code scrolls sideways: a line",
        "slider 1 changes nothing",
        "dropdown item 'b' changes nothing",
    ):
        assert expected in found, f"not reported: {expected}\n{found}"
