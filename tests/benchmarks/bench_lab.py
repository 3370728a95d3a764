"""From a slider's movement to the picture, in the page: a chain of layers, and ResNet-18.

Run with ``python -m pytest tests/benchmarks/bench_lab.py -s``; it prints the times and asserts none. They are wall time
in Chromium, until the map, the NADs and the eigenvalues are drawn: for chains as long as the page is busy.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser
from test_page_lab import folder  # noqa: F401 - a fixture

_TIME = """async (text) => {
    const input = document.querySelector(".nl-card input");
    const times = [];
    for (let k = 0; k < 12; k++) {
        const start = performance.now();
        input.value = Number(input.value) === 3 ? 5 : 3;
        input.dispatchEvent(new Event("input"));
        while (document.querySelector(".nl-waiting")) await new Promise((done) => setTimeout(done, 1));
        times.push(performance.now() - start);
    }
    return times.slice(2).sort((a, b) => a - b);
}"""


@pytest.mark.timeout(0)
@pytest.mark.parametrize("preset", ["lenet", "vgg11", "blur", "resnet18"])
def test_slider_to_picture(browser: Browser, folder: Path, preset: str) -> None:  # noqa: F811
    page = browser.new_page()
    page.goto(f"{folder.as_uri()}/draw.html")
    text = page.evaluate("(name) => NADLAB.PRESETS[name].text", preset).replace(" ", "+")
    page.goto(f"{folder.as_uri()}/draw.html#a={text}")
    page.reload()
    page.locator(".nl-ready").wait_for()
    times = page.evaluate(_TIME)
    print(f"\n{preset}: median {times[len(times) // 2]:.0f} ms, most {times[-1]:.0f} ms")
    page.close()
