"""The labs in the pages, in a real browser from a folder with the network cut: mathematics and controls."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import math
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import websocket
from book_browser import REPOSITORY, inaccessible, sideways_scroll, visit
from companion.chapter_03.landscape import two_weight_landscape
from playwright.sync_api import Browser, Page
from torch import Tensor, nn

import nadtools as nt
from nadtools.theory.pooling import fourier_accuracies, pooling_matrix, spectral_response

LAB = REPOSITORY / "book" / "static" / "lab"
SCRIPTS = ("eigen", "recursion", "canvas", "draw", "results", "bet", "chapter-01", "chapter-02", "chapter-03")
LABS = ("hero", "draw", "bet", "chapter-01", "chapter-02", "chapter-03")
TOLERANCE = 1e-4
PRESETS = ("lenet", "vgg11", "resnet18", "plain", "strides", "blur")
NUM_CHAINS, NUM_SHORTCUTS = 22, 8
WAVES = [((3, 4), 0.0), ((3, 4), math.pi / 2), ((-5, 6), 0.3), ((0, 7), math.pi / 2), ((8, 0), 0.0), ((2, -8), 1.1)]
PREFILTERS = ("average", "gaussian", "binomial", "ideal", "identity")


def extension() -> Any:
    spec = importlib.util.spec_from_file_location("lab", REPOSITORY / "book" / "_ext" / "lab.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with all labs, as the book has them, without the book around them."""
    root = tmp_path_factory.mktemp("page")
    for file in LAB.iterdir():
        shutil.copy(file, root)
    data = json.dumps(extension().stored_accuracies())
    (root / "results.js").write_text(f"window.NADLAB_DATA = {data};", encoding="utf-8")
    scripts = "".join(f'<script defer src="{name}.js"></script>' for name in SCRIPTS)
    colours = {"text-base": "#222832", "text-muted": "#48566b", "background": "#fff", "link": "#0d52b5"}
    variables = "".join(f"--pst-color-{name}: {value};" for name, value in colours.items())
    for name, labs in {"all": LABS, "draw": ("draw",)}.items():
        boxes = "".join(f'<div class="nad-lab" data-lab="{lab}" style="min-height: 5rem"></div>' for lab in labs)
        (root / f"{name}.html").write_text(
            f'<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><title>Labs</title>'
            f'<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
            f'<link rel="stylesheet" href="lab.css"><style>:root {{{variables}}}</style>{scripts}'
            f"<body><main><h1>Labs</h1>{boxes}</main></body></html>",
            encoding="utf-8",
        )
    return root


@pytest.fixture(scope="module")
def page(browser: Browser, folder: Path) -> Iterator[Page]:
    with visit(browser, folder.as_uri(), "all.html") as (page, problems):
        for lab in LABS:
            page.locator(f'[data-lab="{lab}"]').scroll_into_view_if_needed()
            page.locator(f'[data-lab="{lab}"].nl-ready').wait_for()
        page.evaluate("() => { NADLAB.patience = 0; }")
        yield page
        assert problems == []


def random_architecture(source: random.Random, shortcuts: bool) -> str:
    """An architecture as the page writes it, on 16 x 16 pixels (and 32 x 32 without shortcuts)."""
    size = 16 if shortcuts else source.choice((16, 32))
    words, here = [str(size)], size
    for _ in range(source.randint(1, 4)):
        if shortcuts and source.random() < 0.6:
            stride = source.choice((1, 2)) if here >= 4 else 1
            kernel = source.choice((1, 3, 5))
            words += ["s2", f"c3.{stride}.1", f"c{kernel}.1.{kernel // 2}"]
            here = (here - 1) // stride + 1
            continue
        kernel, stride = source.randint(1, min(5, here)), source.randint(1, 2)
        kind = source.choice("ccma")
        padding = source.randint(0, kernel - 1) if kind == "c" else 0
        words.append(f"{kind}{kernel}.{stride}" + (f".{padding}" if kind == "c" else ""))
        here = (here + 2 * padding - kernel) // stride + 1
    if shortcuts and not any(word.startswith("s") for word in words):
        words += ["s3", "c3.1.1", "s1", "c3.1.1"]
    return " ".join([*words, *(["g"] if source.random() < 0.3 else [])])


def random_architectures() -> list[str]:
    source = random.Random(0)
    return [random_architecture(source, k >= NUM_CHAINS) for k in range(NUM_CHAINS + NUM_SHORTCUTS)]


class Shortcut(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self[0](x) + self[1](x))


def computed(page: Page, text: str) -> dict[str, Any]:
    """What the page makes of an architecture: covariance, eigenvalues, first NADs, α of some waves; and its Python."""
    return page.evaluate(
        """([text, waves]) => {
            const architecture = NADLAB.parse(text);
            const covariance = NADLAB.covariance(architecture);
            const found = NADLAB.nads(covariance);
            const { alpha, mean } = NADLAB.alignment(covariance);
            return {
                terms: covariance.terms.map((term) => Array.from(term)),
                eigenvalues: Array.from(found.eigenvalues),
                vectors: found.vectors.map((vector) => Array.from(vector)),
                alpha: waves.map(([frequency, phase]) => alpha(frequency, phase)),
                mean: Array.from(mean),
                python: NADLAB.python(architecture),
            };
        }""",
        [text, WAVES],
    )


@contextlib.contextmanager
def firefox(profile: Path) -> Iterator[Callable[..., Any]]:
    """Debian's Firefox, by WebDriver BiDi: what is yielded sends a command and gives its result."""
    executable = shutil.which("firefox") or shutil.which("firefox-esr")
    if executable is None:
        pytest.skip("no Firefox found (on Debian: apt-get install firefox-esr)")
    command = [executable, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = next(line.split()[-1] for line in process.stderr if "BiDi listening" in line)
        socket, numbers = websocket.create_connection(f"{address}/session", suppress_origin=True), itertools.count()

        def send(method: str, **parameters: Any) -> Any:
            number = next(numbers)
            socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
            while (answer := json.loads(socket.recv())).get("id") != number:
                pass
            return answer["result"]

        send("session.new", capabilities={})
        yield send
        socket.close()
        process.terminate()


COMPUTE = """new Promise((done) => {
    const errors = [];
    addEventListener("error", ({ message }) => errors.push(message));
    const labs = [...document.querySelectorAll(".nad-lab")];
    const wait = () => {
        const left = labs.find((lab) => !lab.matches(".nl-ready"));
        if (left && !errors.length) { left.scrollIntoView(); setTimeout(wait, 50); return; }
        const found = Object.entries(NADLAB.PRESETS).map(([name, { text }]) => {
            const covariance = NADLAB.covariance(NADLAB.parse(text));
            const numbers = [NADLAB.nads(covariance).eigenvalues, NADLAB.alignment(covariance).mean];
            return [name, ...numbers.map((each) => Array.from(each))];
        });
        done(JSON.stringify({ errors, found }));
    };
    wait();
})"""


def test_firefox_computes_the_same(page: Page, folder: Path, tmp_path: Path) -> None:
    with firefox(tmp_path) as send:
        tab = send("browsingContext.getTree")["contexts"][0]["context"]
        send("browsingContext.navigate", context=tab, url=f"{folder.as_uri()}/all.html", wait="complete")
        answer = send("script.evaluate", expression=COMPUTE, target={"context": tab}, awaitPromise=True)
    own, chromium = json.loads(answer["result"]["value"]), json.loads(page.evaluate(COMPUTE))
    assert own["errors"] == []
    for (name, *ours), (other, *theirs) in zip(own["found"], chromium["found"], strict=True):
        assert name == other
        for one, another in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, another, rtol=1e-9, atol=1e-9 * max(another))


def run_python(code: str) -> nt.NADs:
    assert len(code.splitlines()) <= 5
    names: dict[str, Any] = {}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        exec(code, names)
    return names["nads"]


@pytest.mark.parametrize("text", [*PRESETS, *random_architectures()])
def test_the_page_computes_what_python_computes(page: Page, text: str) -> None:
    if text in PRESETS:
        text = page.evaluate("(name) => NADLAB.PRESETS[name].text", text)
    size = int(text.split()[0])
    found = computed(page, text)
    nads = run_python(found["python"])
    eigenvalues = nads.eigenvalues.double()
    scale = size**2 / float(eigenvalues.sum())
    eigenvalues = scale * eigenvalues
    largest = float(eigenvalues[0])
    vectors = nads.vectors.double().flatten(1)
    covariance = vectors.T * eigenvalues @ vectors
    terms = torch.tensor(found["terms"], dtype=torch.float64).view(-1, size, size)
    own = sum(torch.kron(term, term) for term in terms)
    assert float((own - covariance).norm()) < TOLERANCE * float(covariance.norm())
    assert float((torch.tensor(found["eigenvalues"]) - eigenvalues).abs().max()) < TOLERANCE * largest
    first = torch.tensor(found["vectors"], dtype=torch.float64)
    torch.testing.assert_close(first @ first.T, torch.eye(len(first), dtype=torch.float64), rtol=0, atol=1e-6)
    residuals = own @ first.T - first.T * torch.tensor(found["eigenvalues"][: len(first)], dtype=torch.float64)
    assert float(residuals.norm(dim=0).max()) < 1e-6 * largest
    for (frequency, phase), alpha in zip(WAVES, found["alpha"], strict=True):
        mirror = all(2 * f % size == 0 for f in frequency)
        expected = scale * nads.alignment(nt.fourier_atom((size, size), frequency, 0.0 if mirror else phase))
        assert alpha == pytest.approx(float(expected), rel=TOLERANCE, abs=1e-6)


def test_wrong_architectures_are_told(page: Page) -> None:
    told = "(text) => { try { NADLAB.sizes(NADLAB.parse(text)); } catch ({ message }) { return message; } }"
    for text in ("32 q3", "32 c5.1.9", "4 c5.1.0", "32 g c3.1.1", "32 s3 c3.1.1", "32 s1 c3.1.0", "32 s1 a1.1", "99"):
        assert page.evaluate(told, text), text


@pytest.mark.parametrize("seed", range(5))
def test_chapter_1_agrees_with_python(page: Page, seed: int) -> None:
    source = random.Random(seed)
    frequency, phase = (source.randint(-16, 16), source.randint(1, 15)), source.uniform(0, math.pi)
    epsilon, sigma = source.uniform(0.1, 3), source.uniform(0, 5)
    v, r = (
        nt.fourier_atom((32, 32), frequency, phase, dtype=torch.float64),
        nt.random_direction((32, 32), seed).double(),
    )
    problem = nt.LinearlySeparable(v, epsilon, sigma)
    g = torch.randn(1024, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    own = page.evaluate(
        """([frequency, phase, epsilon, sigma, g, r]) => {
            const v = NADLAB.fourier_atom(32, frequency, phase);
            return [v, NADLAB.fourier_energy(v, 32), NADLAB.sample(v, epsilon, sigma, 1, Float64Array.from(g))]
                .map((one) => Array.from(one)).concat([NADLAB.projection(v, r, epsilon, sigma)]);
        }""",
        [frequency, phase, epsilon, sigma, g.tolist(), r.flatten().tolist()],
    )
    expected = epsilon * v.flatten() + sigma * (g - (g @ v.flatten()) * v.flatten())
    shares = torch.fft.ifftshift(nt.fourier_energy(v)).flatten()
    for mine, theirs in zip(own[:3], (v.flatten(), shares, expected), strict=True):
        torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs, rtol=TOLERANCE, atol=1e-9)
    x, y = problem.sample(20_000, seed=seed, device="cpu")
    signs, along = 2 * y - 1, x.flatten(1).double() @ r.flatten()
    assert own[3]["mean"] == pytest.approx(float((signs * along).mean()), abs=0.04 * sigma + 1e-6)
    assert own[3]["deviation"] == pytest.approx(float((along - signs * own[3]["mean"]).std()), rel=0.03, abs=1e-6)


@pytest.mark.parametrize("prefilter", PREFILTERS)
def test_chapter_2_agrees_with_python(page: Page, prefilter: str) -> None:
    source = random.Random(prefilter)
    for stride in (1, 2, 4, 8, 16):
        ratio, phase = 10 ** source.uniform(-1, 1), source.choice((0, math.pi / 2, source.uniform(0, math.pi)))
        own = page.evaluate(
            """([prefilter, stride, ratio, phase]) => [
                NADLAB.fourier_accuracies(prefilter, stride, ratio, 1, 128, phase),
                ...NADLAB.spectral_response(prefilter, 128, stride),
                NADLAB.taps(prefilter, 128, stride)].map((one) => Array.from(one))""",
            [prefilter, stride, ratio, phase],
        )
        accuracies = fourier_accuracies(prefilter, stride, ratio, 1.0, size=128, phase=phase)
        response = spectral_response(prefilter, 128, stride)
        for mine, theirs in zip(
            own, (accuracies, response.real, response.imag, pooling_matrix(prefilter, stride, 128)[0]), strict=True
        ):
            torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs, rtol=TOLERANCE, atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_chapter_3_agrees_with_python(page: Page, seed: int) -> None:
    source = random.Random(seed)
    m, rate, sigma = 10 ** source.uniform(-1.5, 0), 10 ** source.uniform(-2, 1.5), source.uniform(0, 3)
    start = (source.uniform(-0.4, 4), source.uniform(-0.4, 4))
    expected = two_weight_landscape(m, learning_rate=rate, steps=60, start=start, sigma=sigma)
    own = page.evaluate(
        """([m, learning_rate, sigma, start]) => {
            const found = NADLAB.two_weight_landscape(m, { learning_rate, steps: 60, start, sigma });
            return { ...found, steps_to_learn: Number.isFinite(found.steps_to_learn) ? found.steps_to_learn : null };
        }""",
        [m, rate, sigma, start],
    )
    # Where descent diverges or is chaotic, rounding grows: the first steps decide.
    steps = min(10, len(own["path"]))
    assert len(own["path"]) == len(expected.path)
    for key, theirs in (("path", expected.path), ("path_losses", expected.path_losses)):
        np.testing.assert_allclose(np.array(own[key][:steps], dtype=float), theirs[:steps], rtol=TOLERANCE)
    assert own["least"] == pytest.approx(expected.least, rel=TOLERANCE)
    learned = expected.steps_to_learn
    assert own["steps_to_learn"] == (learned if math.isfinite(learned) else None)


def test_bets_are_about_stored_results(page: Page) -> None:
    from companion.published import load_accuracies
    from companion.stored import load_table

    theirs = load_accuracies("fourier").set_index(["architecture", "frequency_i", "frequency_j"]).accuracy
    for network in page.evaluate("() => NADLAB_DATA.networks"):
        key, waves = network["key"], {tuple(wave["frequency"]): wave for wave in network["waves"]}
        for (i, j), wave in waves.items():
            assert wave.get("authors") == pytest.approx(theirs.get((key, i, j)), abs=1e-4)
        table = load_table("A1", architecture=key).set_index(["frequency_i", "frequency_j"])
        stored = table.test_accuracy.groupby(level=[0, 1]).mean().to_dict()
        assert {at: wave["ours"] for at, wave in waves.items()} == pytest.approx(stored, abs=1e-4)
        assert network["phase"] == table.attrs["parameters"]["phase"]
        assert table.attrs["revision"] in network["stamp"]


def test_a_bet_is_won_or_lost_by_keyboard(page: Page) -> None:
    box = page.locator('[data-lab="bet"]')
    for number in range(1, 11):
        box.get_by_role("button", name="It learns it" if number % 2 else "It does not").focus()
        page.keyboard.press("Enter")
        assert f"After {number}: you" in box.inner_text()
        if number < 10:
            page.keyboard.press("Enter")  # "Another wave" has the focus
    assert any(end in box.inner_text() for end in ("closed form", "know as much", "never saw a training"))
    box.get_by_role("button", name="Start again").press("Enter")
    box.get_by_text("A new round").wait_for(state="attached")
    assert "After" not in box.inner_text()


PICTURES = """(box) => JSON.stringify([...box.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL()))
    + [...box.querySelectorAll("svg, .nl-verdict, .nl-value, .nl-mark")].map((one) => one.outerHTML).join()"""


@pytest.mark.parametrize("lab", ["draw", "chapter-01", "chapter-02", "chapter-03"])
def test_every_slider_moves_the_picture_by_keyboard(page: Page, lab: str) -> None:
    box = page.locator(f'[data-lab="{lab}"]')
    for slider in box.locator("input[type=range]").all():
        name, before = slider.get_attribute("aria-label"), box.evaluate(PICTURES)
        assert name
        last = slider.evaluate("(input) => input.value === input.max")
        slider.focus()
        page.keyboard.press("ArrowLeft" if last else "ArrowRight")
        assert box.evaluate(PICTURES) != before or box.locator(".nl-problem").inner_text(), f"{name} changes nothing"
        page.keyboard.press("ArrowRight" if last else "ArrowLeft")
    assert page.locator(f'[data-lab="{lab}"] [role=status]').count() == 1


def test_layers_are_added_moved_removed_and_pinned_by_keyboard(browser: Browser, folder: Path) -> None:
    with visit(browser, folder.as_uri(), "draw.html") as (page, problems):
        box = page.locator('[data-lab="draw"]')

        def press(name: str) -> None:
            box.get_by_role("button", name=name, exact=True).first.press("Enter")

        page.wait_for_function("() => location.hash === '#a=32+c5.1.0+m2.2+c5.1.0+m2.2'")
        press("Average pooling")
        page.wait_for_function("() => location.hash === '#a=32+c5.1.0+m2.2+c5.1.0+m2.2+a2.2'")
        press("Move Average pooling, layer 5 up")
        page.wait_for_function("() => location.hash === '#a=32+c5.1.0+m2.2+c5.1.0+a2.2+m2.2'")
        press("Remove Convolution, layer 1")
        press("Pin")
        press("16 × 16")
        page.wait_for_function("() => location.hash === '#a=16+m2.2+c5.1.0+a2.2+m2.2&b=32+m2.2+c5.1.0+a2.2+m2.2'")
        assert "too few" not in box.inner_text()
        press("Max pooling")
        assert "too few" in box.locator(".nl-problem").inner_text()
        mark = box.locator(".nl-map").first
        mark.focus()
        before = box.locator(".nl-value").first.inner_text()
        page.keyboard.press("ArrowUp")
        assert box.locator(".nl-value").first.inner_text() != before
        assert problems == []
        assert sideways_scroll(page) == []


def test_an_address_brings_its_architectures_back(browser: Browser, folder: Path) -> None:
    address = "draw.html#a=16+c3.1.1+s2+c3.2.1+c3.1.1+g&b=32+c5.1.0+a2.2"
    with visit(browser, folder.as_uri(), address, width=390) as (page, problems):
        box = page.locator('[data-lab="draw"]')
        page.wait_for_function("() => !document.querySelector('.nl-waiting')")
        assert box.locator(".nl-title").all_inner_texts() == [
            "Your own: 16 × 16 → 1 × 1",
            "Pinned. Your own: 32 × 32 → 14 × 14",
        ]
        box.get_by_role("button", name="ResNet-18").press("Enter")
        page.wait_for_function("() => document.querySelector('.nl-title').textContent.startsWith('ResNet-18')")
        assert problems == []
        assert sideways_scroll(page) == []


def test_the_first_page_moves_until_the_reader_takes_over(browser: Browser, folder: Path) -> None:
    where = "() => document.querySelector('[data-lab=hero] .nl-mark').style.cssText"
    moved = "(before) => document.querySelector('[data-lab=hero] .nl-mark').style.cssText !== before"
    for motion in ("no-preference", "reduce"):
        page = browser.new_page(reduced_motion=motion)
        page.goto(f"{folder.as_uri()}/all.html")
        hero = page.locator('[data-lab="hero"]')
        button = hero.locator(".nl-foot button")
        button.wait_for()
        if motion == "no-preference":
            assert button.inner_text() == "Pause"
            page.wait_for_function(moved, arg=page.evaluate(where))
            hero.get_by_role("button", name="VGG-11").press("Enter")
        assert button.inner_text() == "Play"
        before = page.evaluate(where)
        page.wait_for_timeout(600)
        assert page.evaluate(where) == before
        page.close()


def test_the_labs_are_accessible(page: Page) -> None:
    assert inaccessible(page, contrast=True) == []


def test_the_scripts_are_small_and_ask_for_nothing() -> None:
    files = list(LAB.iterdir())
    assert sum(file.stat().st_size for file in files) <= 250_000
    code = "\n".join(file.read_text(encoding="utf-8") for file in files if file.suffix in (".js", ".css"))
    assert [word for word in ("fetch(", "XMLHttpRequest", "import(", "//cdn") if word in code] == []
    assert code.count("http") == code.count("http://www.w3.org/2000/svg")


def test_only_pages_with_a_lab_load_its_scripts() -> None:
    ours = extension()

    class App:
        def __init__(self) -> None:
            self.files: list[str] = []

        def add_js_file(self, name: str, **_: Any) -> None:
            self.files.append(name)

        add_css_file = add_js_file

    for body, expected in {
        "": [],
        '<div class="nad-lab" data-lab="hero">': ["lab/lab.css", *(f"lab/{n}.js" for n in (*ours.SHARED, "draw"))],
    }.items():
        app = App()
        ours.add_scripts(app, "page", "page.html", {"body": body}, None)
        assert app.files == expected
    assert {f"{name}.js" for scripts in ours.SCRIPTS.values() for name in scripts} >= {
        file.name for file in LAB.glob("*.js") if file.stem not in ours.SHARED
    }
