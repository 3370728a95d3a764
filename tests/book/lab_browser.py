"""The chapters in JupyterLab: a server of their own, and what a reader does with an open chapter."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from book_browser import REPOSITORY, visit
from playwright.sync_api import Browser, Locator, Page

SECONDS_TO_START = 60
_PANEL = "window.jupyterapp?.shell.currentWidget"
_CONTEXT = f"{_PANEL}?.sessionContext"
# News would be fetched from another host, and the question whether to fetch them would lie over the page.
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},  # cells outside the window are there, too
}


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab."""

    address: str
    token: str
    root: Path  # where its notebooks lie

    def ask(self, method: str, path: str) -> Any:
        """Ask the server's own interface, for example for its kernels."""
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(f"{self.address}/api/{path}", method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=SECONDS_TO_START) as reply:
            return json.loads(reply.read() or "null")

    def shut_kernels_down(self) -> None:
        for session in self.ask("GET", "sessions"):
            self.ask("DELETE", f"sessions/{session['id']}")


def under_the_explorer(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """The explorer's cell, and those that define what it reads, or what these read."""
    kept: list[nbformat.NotebookNode] = []
    wanted: set[str] = set()
    for cell in reversed([cell for cell in cells if cell.cell_type == "code"]):
        nodes = list(ast.walk(ast.parse(cell.source)))
        read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        defined = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        defined |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
        defined |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        if "_explorer(" in cell.source or wanted & defined:
            kept.append(cell)
            wanted |= read
    return kept[::-1]


def copy_chapters(folder: Path, whole: str, explorers: str, chapters: Sequence[str]) -> None:
    """Copy the book at smoke scale, and a chapter whole; what the others' explorers need goes to one more notebook."""
    shutil.copytree(REPOSITORY / "book", folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.py"))
    kept = []
    for chapter in chapters:
        path = folder / f"{chapter}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        parameters = next(cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
        parameters.source += '\nscale = "smoke"'
        for cell in notebook.cells:
            if cell.cell_type == "code":  # an output that was left in the checkout would pass for one of the run
                cell.outputs, cell.execution_count = [], None
        if chapter == whole:
            nbformat.write(notebook, path)
        else:
            kept += under_the_explorer(notebook.cells)
    for number, cell in enumerate(kept):
        cell.id = f"cell-{number}"
    notebook.cells = kept
    nbformat.write(notebook, folder / f"{explorers}.ipynb")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def serve_lab(root: Path, home: Path) -> Iterator[Lab]:
    """Start JupyterLab on this machine in `root`; the settings of whoever runs the tests play no part."""
    (home / "settings").mkdir(parents=True)
    (home / "settings" / "overrides.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    left_out = ("JUPYTER", "NADTOOLS_STATIC")  # the second: widgets are to be shown
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    environment |= {"PYTHONPATH": path, "IPYTHONDIR": str(home / "ipython")}
    environment |= {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    port, token = _free_port(), secrets.token_urlsafe()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--notebook-dir={root}"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += [f"--IdentityProvider.token={token}", f"--LabApp.app_settings_dir={home / 'settings'}"]
    command += ["--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly"]
    log = home / "log"
    with log.open("wb") as file:
        server = subprocess.Popen(command, env=environment, cwd=root, stdout=file, stderr=subprocess.STDOUT)
    lab = Lab(f"http://127.0.0.1:{port}", token, root)
    try:
        deadline = time.monotonic() + SECONDS_TO_START
        while True:
            try:
                lab.ask("GET", "status")
                break
            except OSError:
                said = log.read_text(encoding="utf-8")
                assert server.poll() is None and time.monotonic() < deadline, f"JupyterLab did not start:\n{said}"
                time.sleep(0.1)
        yield lab
    finally:
        server.terminate()  # it ends its kernels
        try:
            server.wait(SECONDS_TO_START)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@contextlib.contextmanager
def open_chapter(browser: Browser, lab: Lab, chapter: str) -> Iterator[tuple[Page, list[str]]]:
    """Open a chapter, wait for its kernel, and give the page with the list of its problems, which grows."""
    # A workspace of its own: the default one would open the tabs of the chapters before, whose kernels are gone.
    path = f"lab/workspaces/{chapter}/tree/{chapter}.ipynb?token={lab.token}"
    try:
        with visit(browser, lab.address, path) as (page, problems):
            page.set_default_timeout(1000 * SECONDS_TO_START)
            wait_until_idle(page)
            yield page, problems
    finally:
        lab.shut_kernels_down()


def run_all(page: Page, seconds: float) -> list[str]:
    """Run all cells by the menu, and wait for the last of them; the errors in their outputs."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    # Cells far from the window need not be drawn: what they hold is asked of Lab's model.
    state = page.wait_for_function(
        f"""() => {{
            const cells = [...{_PANEL}.content.model.cells].filter((cell) => cell.type === "code");
            const outputs = cells.flatMap((cell) => cell.outputs.toJSON());
            const errors = outputs.filter((output) => output.output_type === "error");
            const done = cells.every((cell) => cell.executionCount !== null && cell.executionState === "idle");
            if (!errors.length && !(done && {_CONTEXT}.session.kernel.status === "idle")) return null;
            return errors.map((error) => `${{error.ename}}: ${{error.evalue}}`);
        }}""",
        timeout=1000 * seconds,
        polling=100,
    )
    return state.json_value()


def find_explorer(page: Page, number: int = 0) -> Locator:
    """An explorer of a notebook that was run, scrolled to."""
    cell = page.locator(".jp-CodeCell", has_text="_explorer(").nth(number)
    explorer = cell.locator(".jp-OutputArea-output .widget-hbox").first
    explorer.scroll_into_view_if_needed()
    return explorer


def wait_until_idle(page: Page) -> None:
    """Wait until the kernel has answered; all that it changed in the page has arrived by then."""
    page.wait_for_function(f"() => {_CONTEXT}?.session?.kernel?.status === 'idle'")


def pictures(explorer: Locator) -> list[str]:
    """A digest of each picture that the explorer shows."""
    return explorer.evaluate(
        """async (root) => {
            const digest = async (img) => {
                if (!img.complete || !img.naturalWidth) throw new Error("a picture is not drawn");
                const bytes = await (await fetch(img.src)).arrayBuffer();
                return [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].join();
            };
            for (let attempt = 0; ; attempt++) {
                const shown = [...root.querySelectorAll("img")].filter((img) => img.getClientRects().length);
                try {
                    return await Promise.all(shown.map(digest));
                } catch (error) {  // a picture may be exchanged just now
                    if (attempt === 100) throw error;
                    await new Promise((resolve) => setTimeout(resolve, 50));
                }
            }
        }"""
    )


def wait_for_another(explorer: Locator, before: list[str], seconds: float) -> bool:
    """Whether the pictures become others than before, and are not hidden."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (now := pictures(explorer)) and now != before:
            return True
        time.sleep(0.05)
    return False


def move(explorer: Locator, name: str) -> None:
    """Move a control as a reader would."""
    row = explorer.locator(".widget-inline-hbox", has=explorer.page.get_by_text(name, exact=True))
    if (select := row.locator("select")).count():
        # Without the click, which opens the list, Lab takes the arrow for itself and goes to the next cell.
        select.click()
        last = select.evaluate("(select) => select.selectedIndex === select.length - 1")
        explorer.page.keyboard.press("ArrowUp" if last else "ArrowDown")
        explorer.page.keyboard.press("Enter")
    elif (number := row.locator("input")).count():
        number.fill("3")
        number.press("Enter")
    else:
        slider, handle = row.locator(".noUi-target"), row.get_by_role("slider")
        low, high, now = (float(handle.get_attribute(f"aria-value{end}") or 0) for end in ("min", "max", "now"))
        box = slider.bounding_box()
        assert box is not None, f"{name} is not on the page"
        share = 0.95 if now < (low + high) / 2 else 0.3
        slider.click(position={"x": share * box["width"], "y": box["height"] / 2})
