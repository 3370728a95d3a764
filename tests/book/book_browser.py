"""The built book, and what a reader's browser makes of its pages: shared by the tests of the book."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from filelock import FileLock
from playwright.sync_api import Browser, Locator, Page, Playwright, Route

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "book" / "build.py"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
DRAW_TIMEOUT_MS = 30_000


@dataclass(frozen=True)
class BuiltBook:
    """One run of book/build.py: what it printed, and what it left."""

    returncode: int
    log: str
    html: Path
    report: list[dict[str, Any]]

    def pages(self) -> list[str]:
        """Every page's path relative to `html`; without the theme's own templates below _static."""
        paths = (path.relative_to(self.html) for path in sorted(self.html.rglob("*.html")))
        return [path.as_posix() for path in paths if path.parts[0] != "_static"]


def run_build(root: Path, output: Path, *options: str) -> BuiltBook:
    command = [sys.executable, str(BUILD), "--scale", "smoke", "--root", str(root), "--output", str(output), *options]
    finished = subprocess.run(command, cwd=REPOSITORY, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    report = output / "report.json"
    rows = json.loads(report.read_text(encoding="utf-8")) if report.exists() else []
    return BuiltBook(finished.returncode, finished.stdout, output / "html", rows)


def smoke_book(session: str) -> BuiltBook:
    """The book at smoke scale, executed and built from clean folders once in a test session, whose name is given.

    The processes of a session share it: the first that asks builds, the others wait.
    """
    output = REPOSITORY / "_build" / "smoke"
    output.mkdir(parents=True, exist_ok=True)
    build = output / "build.json"
    with FileLock(output / "lock"):
        if build.exists() and (last := json.loads(build.read_text(encoding="utf-8")))["session"] == session:
            return BuiltBook(last["returncode"], last["log"], output / "html", last["report"])
        book = run_build(REPOSITORY, output, "--jobs", str(os.cpu_count() or 1))
        done = {"session": session, "returncode": book.returncode, "log": book.log, "report": book.report}
        build.write_text(json.dumps(done), encoding="utf-8")
        return book


def find_chromium() -> str | None:
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def launch(playwright: Playwright, executable: str) -> Browser:
    """A Chromium that cannot look up any host but this machine, and asks for nothing of its own accord."""
    return playwright.chromium.launch(
        executable_path=executable,
        args=[
            "--no-sandbox",
            "--disable-gpu",
            "--enable-unsafe-swiftshader",  # WebGL in software, for three-dimensional figures
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ],
    )


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; gives its address."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a browser that leaves a page closes its connections half-way

    server = Server(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def visit(
    browser: Browser,
    address: str,
    page_path: str,
    *,
    width: int = 1280,
    dark: bool = False,
    folded: bool = False,
) -> Iterator[tuple[Page, list[str]]]:
    """Open a page with the network cut, wait until it is drawn, and give it with the list of its problems.

    The list grows while the page is used. `address` is where the book lies, as http:// or file://. What is folded is
    opened, unless it is to stay `folded`.
    """
    problems: list[str] = []

    def only_the_book(route: Route) -> None:
        url = route.request.url
        if url.startswith((address + "/", "data:", "blob:")):
            route.continue_()
        else:
            problems.append(f"request to another host: {url}")
            route.abort()

    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", service_workers="block"
    )
    context.route("**/*", only_the_book)
    page = context.new_page()
    page.on("console", lambda message: message.type == "error" and problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"uncaught: {error}"))
    page.on("requestfailed", lambda request: problems.append(f"request failed: {request.url} {request.failure}"))
    page.on("response", lambda reply: reply.status >= 400 and problems.append(f"{reply.status}: {reply.url}"))
    try:
        page.goto(f"{address}/{page_path}")
        # index.html is a redirection to the first page.
        page.wait_for_function("""() => !document.querySelector("meta[http-equiv=Refresh i]")""")
        page.wait_for_load_state("load")
        if not folded:
            unfold(page)
        problems += wait_until_drawn(page)
        yield page, problems
    finally:
        context.close()


def listing(problems: dict[str, list[str]]) -> str:
    return "\n".join(f"{page}: {problem}" for page, found in problems.items() for problem in found)


def unfold(page: Page) -> None:
    page.evaluate(
        """() => {
            document.querySelectorAll("details").forEach((box) => { box.open = true; });
            document.querySelectorAll(".toggle-hidden.admonition button.toggle-button, " +
                ".toggle-hidden > button.toggle-button").forEach((button) => button.click());
        }"""
    )


def wait_until_drawn(page: Page) -> list[str]:
    """Wait for figures and formulas; the problems met."""
    try:
        page.wait_for_function(
            """() => [...document.querySelectorAll(".plotly-graph-div")].every((gd) => gd.querySelector(".main-svg"))
                && (!document.querySelector(".math") || document.querySelector("mjx-container"))""",
            timeout=DRAW_TIMEOUT_MS,
        )
    except Exception as error:
        return [f"figures or formulas are not drawn after {DRAW_TIMEOUT_MS / 1000:.0f} s: {error}"]
    page.evaluate("() => window.MathJax && MathJax.startup && MathJax.startup.promise.then(() => null)")
    page.wait_for_timeout(100)  # the observers of sizes run after the layout
    return []


def undrawn(page: Page) -> list[str]:
    """Figures without a mark or a size, without alternative text or wider than their column, and broken formulas."""
    return page.evaluate(
        """() => {
            const problems = [];
            document.querySelectorAll(".plotly-graph-div").forEach((gd, index) => {
                const name = `figure ${index + 1}`;
                const svg = gd.querySelector(".main-svg").getBoundingClientRect();
                if (svg.width < 100 || svg.height < 100) problems.push(`${name} is ${svg.width} x ${svg.height} px`);
                const marks = [".trace", ".hm image", ".im image", ".contour"].flatMap((mark) =>
                    [...gd.querySelectorAll(`.cartesianlayer ${mark}, .polarlayer ${mark}, canvas`)]);
                if (!marks.some((mark) => mark.getBoundingClientRect().width > 0))
                    problems.push(`${name} shows no trace`);
                const apart = [".legend", ".g-gtitle", ".updatemenu-header-group"].flatMap((part) =>
                    [...gd.querySelectorAll(part)].map((element) => [part, element.getBoundingClientRect()]));
                apart.forEach(([part, a], k) => apart.slice(k + 1).forEach(([other, b]) => {
                    if (a.width && b.width && a.left < b.right - 1 && b.left < a.right - 1 &&
                        a.top < b.bottom - 1 && b.top < a.bottom - 1) problems.push(`${name}: ${part} covers ${other}`);
                }));
                const box = gd.closest(".nadtools-figure");
                if (!box) problems.push(`${name} was not made by the book's renderer (call use_book_style first)`);
                else {
                    if (!box.querySelector("[role=group]").getAttribute("aria-label").trim())
                        problems.push(`${name} has neither alternative text nor a title`);
                    const column = box.getBoundingClientRect().width;
                    if (svg.width > column + 1)
                        problems.push(`${name} is ${svg.width} px wide in a column of ${column}`);
                }
            });
            document.querySelectorAll(".math").forEach((math) => {
                if (math.offsetParent && !math.querySelector("mjx-container svg"))
                    problems.push(`formula not rendered: ${math.textContent}`);
            });
            document.querySelectorAll("mjx-merror, [data-mjx-error]").forEach((error) =>
                problems.push(`formula with an error: ${error.getAttribute("data-mjx-error") || error.textContent}`));
            document.querySelectorAll("main img").forEach((img) => {
                if (img.complete && !img.naturalWidth) problems.push(`image not shown: ${img.src}`);
                if (!img.alt) problems.push(`image without alternative text: ${img.src}`);
            });
            return problems;
        }"""
    )


def endless(page: Page, highest: int) -> list[str]:
    """What is too much on a page: more height than so many pixels, and code that scrolls sideways."""
    return page.evaluate(
        """(highest) => {
            const height = document.documentElement.scrollHeight;
            const wide = [...document.querySelectorAll("div.cell_input pre")]
                .filter((pre) => pre.scrollWidth > pre.clientWidth + 1 && pre.innerText.trim())  // none that is folded
                .map((pre) => `code scrolls sideways: ${pre.innerText.split("\\n")[0]}`);
            return (height > highest ? [`${height} px high`] : []).concat(wide);
        }""",
        highest,
    )


def sideways_scroll(page: Page) -> list[str]:
    """The elements that make a page wider than its window."""
    return page.evaluate(
        """() => {
            const width = document.documentElement.clientWidth;
            if (document.documentElement.scrollWidth <= width && document.body.scrollWidth <= width) return [];
            const wide = [...document.querySelectorAll("main *")].filter(
                (element) => element.getBoundingClientRect().right > width + 1);
            return [`${document.documentElement.scrollWidth} px of content in ${width} px: ` +
                wide.slice(0, 3).map((element) => element.outerHTML.slice(0, 120)).join(" | ")];
        }"""
    )


def faint_text(page: Page) -> list[str]:
    """Texts of figures and tables whose contrast with the page is below 4.5; cells coloured by a value are left out."""
    return page.evaluate(
        """() => {
            const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
            const luminance = (rgb) => rgb.slice(0, 3).map((c) => c / 255)
                .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
                .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
            const behind = (element) => {
                for (let box = element; box; box = box.parentElement) {
                    const rgba = channels(getComputedStyle(box).backgroundColor);
                    if (rgba.length === 3 || rgba[3] > 0.5) return rgba;
                }
                return [255, 255, 255];
            };
            const texts = ".plotly-graph-div .xtick text, .plotly-graph-div .ytick text, .plotly-graph-div .gtitle, " +
                ".plotly-graph-div .legendtext, .plotly-graph-div .slider-label, .nadtools-figure figcaption, " +
                "div.cell_output .text_html td, div.cell_output .text_html th, div.cell_output .text_html p";
            return [...document.querySelectorAll(texts)].flatMap((text) => {
                const style = getComputedStyle(text);
                if (!text.textContent.trim() || text.style.backgroundColor ||
                    (text.tagName === "TD" && style.backgroundColor !== "rgba(0, 0, 0, 0)")) return [];
                const colour = channels(text instanceof SVGElement ? style.fill : style.color);
                const [low, high] = [luminance(colour), luminance(behind(text))].sort((a, b) => a - b);
                const contrast = (high + 0.05) / (low + 0.05);
                return contrast < 4.5 ? [`contrast ${contrast.toFixed(1)}: ${text.textContent.trim()}`] : [];
            });
        }"""
    )


def inaccessible(page: Page, *, contrast: bool) -> list[str]:
    """What axe-core finds on a page that is a serious obstacle to some readers."""
    page.wait_for_timeout(500)  # the theme waits before it looks for boxes that scroll
    found = Axe().run(
        page,
        context={"exclude": [["mjx-container"]]},  # MathJax draws its formulas, and describes them itself
        # Without preload, which asks for the style sheets again, some of them where they are not.
        options={"rules": {"color-contrast": {"enabled": contrast}}, "resultTypes": ["violations"], "preload": False},
    )
    return [
        f"{violation['id']}: {node['html'][:120]}"
        for violation in found.response["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


# What a figure shows, its controls left out: a slider that moves only itself leaves this unchanged. It is kept in the
# page, since a map has megabytes.
_FINGERPRINT = """(gd) => {
    const parts = [...gd.querySelectorAll(".cartesianlayer, .polarlayer, .shapelayer, .g-gtitle, .annotation")];
    return JSON.stringify([gd.data, gd.layout.scene || null, parts.map((part) => part.outerHTML)]);
}"""
_REMEMBER = f"(gd) => {{ gd.before = ({_FINGERPRINT})(gd); }}"
_CHANGED = f"(gd) => ({_FINGERPRINT})(gd) !== gd.before"


def _changes(figure: Locator, seconds: float = 8.0) -> bool:
    """Whether the figure becomes another than it was when it was remembered."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if figure.evaluate(_CHANGED):
            return True
        time.sleep(0.05)
    return False


def _click(page: Page, target: Locator, at: float = 0.5) -> None:
    """Click with the mouse, as a reader would, at a share of the target's width."""
    box = target.bounding_box()
    assert box is not None, "the control is not on the page"
    page.mouse.click(box["x"] + at * box["width"], box["y"] + box["height"] / 2)


def dead_controls(page: Page, seconds: float = 8.0) -> tuple[int, list[str]]:
    """Use every slider, dropdown and button of every figure: how many there are, and those that change nothing."""
    count, problems = 0, []
    for index, figure in enumerate(page.locator(".plotly-graph-div").all()):
        figure.evaluate("(gd) => gd.scrollIntoView({block: 'center', behavior: 'instant'})")
        controls = figure.evaluate(
            """(gd) => ({
                menus: (gd._fullLayout.updatemenus || []).filter((m) => m.visible).map((m) => ({
                    type: m.type, active: m.active, buttons: m.buttons.filter((b) => b.visible).map((b) => ({
                        label: b.label, plays: b.method === "animate" && b.args[0] === null,
                        pauses: b.method === "animate" && Array.isArray(b.args[0]) && b.args[0][0] === null}))})),
                sliders: (gd._fullLayout.sliders || []).filter((s) => s.visible).map((s) => ({
                    active: s.active, steps: s.steps.filter((step) => step.visible).length}))})"""
        )
        # Menus first: a slider at its end leaves a Play button nothing to play.
        for number, menu in enumerate(controls["menus"]):
            header = figure.locator(".updatemenu-header-group").nth(number)
            order = sorted(range(len(menu["buttons"])), key=lambda k, active=menu["active"]: k == active)
            for k in order:
                button = menu["buttons"][k]
                if button["pauses"]:
                    continue
                count += 1
                figure.evaluate(_REMEMBER)
                if menu["type"] == "dropdown":
                    _click(page, header.locator(".updatemenu-header"))
                    _click(page, figure.locator(".updatemenu-dropdown-button").nth(k))
                else:
                    _click(page, header.locator(".updatemenu-button").nth(k))
                if not _changes(figure, seconds):
                    problems.append(f"figure {index + 1}: {menu['type']} item {button['label']!r} changes nothing")
                pause = next((p for p, other in enumerate(menu["buttons"]) if other["pauses"]), None)
                if button["plays"] and pause is not None:
                    count += 1
                    _click(page, header.locator(".updatemenu-button").nth(pause))
                    page.wait_for_timeout(500)
                    figure.evaluate(_REMEMBER)
                    if _changes(figure, 1.5):
                        problems.append(f"figure {index + 1}: the pause button does not stop the figure")
        for number, slider in enumerate(controls["sliders"]):
            count += 1
            active = figure.evaluate("(gd, n) => gd._fullLayout.sliders.filter((s) => s.visible)[n].active", number)
            rail = figure.locator(".slider-group").nth(number).locator(".slider-rail-touch-rect")
            figure.evaluate(_REMEMBER)
            _click(page, rail, at=0.02 if active == slider["steps"] - 1 else 0.98)
            if not _changes(figure, seconds):
                problems.append(f"figure {index + 1}: slider {number + 1} changes nothing")
    return count, problems


# What a button would have the browser save: the name of the file, and its text.
_SAVED = """async (button) => {
    const click = HTMLAnchorElement.prototype.click;
    let link;
    HTMLAnchorElement.prototype.click = function () { link = this; };
    button.click();
    HTMLAnchorElement.prototype.click = click;
    return [link.download, await (await fetch(link.href)).text()];
}"""


def without_data(page: Page) -> list[str]:
    """Download every figure's table of numbers: the figures that give none, or cells that are no numbers."""
    problems = page.evaluate(
        """() => [...document.querySelectorAll(".nadtools-figure")].flatMap((box, index) => {
            const photographs = box.querySelector(".plotly-graph-div").data.every((trace) => trace.type === "image");
            return photographs || box.querySelector(".figure-data") ? [] : [`figure ${index + 1} gives no data`];
        })"""
    )
    for number, button in enumerate(page.locator(".figure-data").all()):
        button.evaluate("(button) => button.scrollIntoView({block: 'center', behavior: 'instant'})")
        if number == 0:  # as a reader does; a browser asks its user before the eleventh download of a page
            with page.expect_download() as download:
                button.click()
            text = Path(download.value.path()).read_text(encoding="utf-8")
            name = download.value.suggested_filename
        else:
            name, text = button.evaluate(_SAVED)
        rows = list(csv.DictReader(io.StringIO(text)))
        numbers = [row[axis] for row in rows for axis in ("x", "y")]
        if not name.endswith(".csv") or not rows or not all(numbers):
            problems.append(f"{name}: {len(rows)} rows, {numbers.count('')} empty cells")
    return problems


def dead_keys(page: Page) -> tuple[int, list[str]]:
    """Use the controls that figures have for the keyboard: how many there are, and those that change nothing."""
    count, problems = 0, []
    for index, figure in enumerate(page.locator(".nadtools-figure").all()):
        drawn = figure.locator(".plotly-graph-div")
        for number, control in enumerate(figure.locator(".figure-keys input, .figure-keys select").all()):
            count += 1
            menu = control.evaluate("(c) => Boolean(c.options)")
            control.focus()
            drawn.evaluate(_REMEMBER)
            last = control.evaluate("(c) => (c.options ? c.selectedIndex === c.length - 1 : c.value === c.max)")
            page.keyboard.press("ArrowUp" if menu and last else "ArrowDown" if menu or last else "ArrowRight")
            if not _changes(drawn):
                problems.append(f"figure {index + 1}: control {number + 1} for the keyboard changes nothing")
    return count, problems
