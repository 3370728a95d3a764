"""What a reader meets on the built pages: figures with a number and a finding, no excuses, no page without end."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from book_browser import BuiltBook, serve, visit
from bs4 import BeautifulSoup, Tag
from playwright.sync_api import Browser

SCREEN = 900  # CSS pixels
EXCUSES = ("not at hand", "not run yet", "live only")
# A caption says what happens. A verb that is missing here is easily added.
VERB = re.compile(
    r"""\b(?:
    agree | agrees | cost | costs | explain | explains | glue | glues | misleads | predicts | ranks | spread
    | spreads
    | am | are | bring | brings | can | cannot | carries | carry | come | comes | contain | contains | could | count
    | counts | decide | decided | decides | depend | depends | did | die | dies | differ | differs | disagree | do
    | does | draw | draws | drop | drops | end | ends | equals | fail | failed | fails | fall | falls | fell |
    fill | find | finds | fit | fits | fold | folds | follow | follows | get | gets | give | gives | go | goes |
    grew | grow | grows | had | has | have | hide | hides | hold | holds | is | jump | jumps | keep | keeps | kept
    | know | knows | lack | lacks | lead | leads | learn | learned | learns | leave | leaves | lie | lies | look |
    looks | lose | loses | lost | made | make | makes | matter | matters | may | mean | means | meet | meets |
    might | miss | misses | must | need | needs | pass | passes | prefer | prefers | reach | reached | reaches |
    read | reads | remain | remains | respond | responds | rise | rises | run | runs | say | says | see | sees |
    separate | separates | share | shares | shift | shifts | show | shows | shrink | shrinks | sink | sinks |
    split | splits | stand | stands | start | starts | stay | stayed | stays | survive | survives | take | takes |
    tell | tells | tilt | tilts | took | turn | turns | use | used | uses | vanish | vanishes | was | were | will
    | win | wins | works
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)


def chapters(book: BuiltBook) -> dict[str, Tag]:
    """The articles of the pages whose titles begin with a chapter's number, as HTML before any script has run."""
    articles = {}
    for page in book.pages():
        if re.match(r"book/\d\d", page):
            soup = BeautifulSoup((book.html / page).read_text(encoding="utf-8"), "html.parser")
            article = soup.select_one("article.bd-article")
            assert article is not None
            articles[page] = article
    assert articles
    return articles


def faults(caption: str) -> list[str]:
    """What keeps a caption from being a statement; empty if nothing does."""
    number = re.match(r"(Figure|Table) \d+\*?\.\d+\. ", caption)
    words = re.findall(r"[\w'’]+", caption[number.end() :] if number else caption)
    found = [] if number else ["no number"]
    found += [] if len(words) >= 6 else [f"{len(words)} words"]
    found += [] if caption.endswith((".", "?", "!", ".)")) else ["no full stop"]
    found += [] if VERB.search(caption) else ["no verb"]
    return found


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("Figure 3.2. The smaller the response, the later the floor is reached.", []),
        ("Figure 4*.1. Only the first of LeNet's ten intervals is too short.", []),
        ("The smaller the response, the later the floor is reached.", ["no number"]),
        ("Figure 3.2. The first ten NADs of four architectures.", ["no verb"]),
        ("Figure 3.2. Blobs come first.", ["3 words"]),
        ("Table 1.1. It is the test accuracy of two networks", ["no full stop"]),
        ("", ["no number", "0 words", "no full stop", "no verb"]),
    ],
)
def test_a_caption_that_only_names_things_is_found(caption: str, expected: list[str]) -> None:
    assert faults(caption) == expected


def test_every_figure_and_table_has_a_number_and_says_what_it_shows(book: BuiltBook) -> None:
    problems = {}
    for page, article in chapters(book).items():
        shown = article.select("figure, div.cell_output table, div.cell_output img")
        shown = [one for one in shown if one.name == "figure" or one.find_parent("figure") is None]
        assert shown, page
        for number, one in enumerate(shown, 1):
            caption = one.find(["figcaption", "caption"])
            if found := faults(" ".join(caption.get_text(" ").split()) if isinstance(caption, Tag) else ""):
                problems[page, number, one.name] = found
    assert problems == {}


def test_numbers_run_without_a_gap(book: BuiltBook) -> None:
    for page, article in chapters(book).items():
        numbers = [one.get_text() for one in article.select(".figure-number")]
        for kind in ("Figure", "Table"):
            of_kind = [int(number.rstrip(".").rpartition(".")[2]) for number in numbers if number.startswith(kind)]
            assert of_kind == list(range(1, len(of_kind) + 1)), page


def test_a_number_and_its_per_cent_sign_stay_on_one_line(book: BuiltBook) -> None:
    apart = {
        page: [text for one in article.select("p, caption, td") for text in re.findall(r".{0,20}\d %", one.get_text())]
        for page, article in chapters(book).items()
    }
    assert {page: found for page, found in apart.items() if found} == {}


def test_code_that_shows_nothing_is_folded_with_the_code_behind_it(book: BuiltBook) -> None:
    """Whether the first cell of a page, which imports, has a line of its own to open it."""
    text = (book.html / "book" / "02-pooling-information.html").read_text(encoding="utf-8")
    assert not re.search(r'</details>\s*</div>\s*<div class="cell tag_hide-input[^>]*>\s*<details', text)
    first = BeautifulSoup(text, "html.parser").select_one("details.hide")
    assert first is not None and len(first.select("div.cell_input")) == 2


def test_no_page_excuses_itself(book: BuiltBook) -> None:
    problems = {}
    for page in book.pages():
        if page.startswith("_modules/"):
            continue
        soup = BeautifulSoup((book.html / page).read_text(encoding="utf-8"), "html.parser")
        article = soup.select_one("article.bd-article")
        text = " ".join(article.get_text(" ").lower().split()) if article else ""
        if found := [excuse for excuse in EXCUSES if excuse in text]:
            problems[page] = found
    assert problems == {}


@pytest.fixture(scope="module")
def address(book: BuiltBook) -> Iterator[str]:
    with serve(book.html) as url:
        yield url


def test_the_first_nad_is_on_the_first_two_screens_of_its_chapter(
    book: BuiltBook, browser: Browser, address: str
) -> None:
    with visit(browser, address, "book/04-nads.html", folded=True) as (page, _):
        figure = page.locator(".nadtools-figure").first
        box = figure.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 2 * SCREEN
        assert "NADs" in (figure.locator("[role=group]").get_attribute("aria-label") or "")
