"""Every target of the Makefile, in copies of the checkout; `make release` is run by test_release.py."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import nbformat
import pytest
import yaml
from book_browser import serve
from checkout import ROOT, copy_of_the_checkout, environment, make, make_command
from lab_browser import Lab, _free_port
from nbformat.v4 import new_code_cell, new_notebook

sys.path.append(str(ROOT / "book"))  # where these tools find each other

import execute

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)[1].split())


def test_every_target_is_run_by_a_test() -> None:
    texts = [
        Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("test_makefile.py", "test_release.py")
    ]
    assert {target for text in texts for target in re.findall(r'\bmake(?:_command)?\(\w+, "(\w+)"', text)} == TARGETS


def test_help_names_every_target(tmp_path: Path) -> None:
    copy_of_the_checkout(tmp_path)
    helped = make(tmp_path, "help")
    assert set(re.findall(r"^make (\w+)", helped.stdout, re.MULTILINE)) == TARGETS - {"help", "lint"}
    alone = subprocess.run(["make", "-C", str(tmp_path)], env=environment(tmp_path), capture_output=True, text=True)
    assert alone.stdout.splitlines()[:3] == helped.stdout.splitlines()[:3]


# ---------------------------------------------------------------------------------------------------------------------
# The environment
# ---------------------------------------------------------------------------------------------------------------------

# Notes what it is asked, and makes an environment with itself in it.
PYTHON = """#!/bin/sh
echo "$@" >> called
if [ "$1 $2" = "-m venv" ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi
"""


def calls(folder: Path, *arguments: str) -> list[str]:
    """What `make book` asked of Python; versions, which are asked often, are left out."""
    (folder / "called").write_text("", encoding="utf-8")
    done = make(folder, "book", f"PYTHON={folder / 'python'}", *arguments)
    assert done.returncode == 0, done.stdout
    return [line for line in (folder / "called").read_text(encoding="utf-8").splitlines() if not line.startswith("-c")]


def test_an_environment_is_made_once_and_mended_when_a_dependency_changes(tmp_path: Path) -> None:
    (copy_of_the_checkout(tmp_path) / ".venv").unlink()
    (tmp_path / "python").write_text(PYTHON, encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    made, requirements, package, build = calls(tmp_path)
    assert made == "-m venv .venv"
    assert "--requirement requirements.txt" in requirements and "--no-deps" in package
    assert build == "book/build.py --scale laptop --jobs 2"
    assert calls(tmp_path, "SCALE=smoke", "JOBS=3") == ["book/build.py --scale smoke --jobs 3"]
    later = time.time() + 10
    os.utime(tmp_path / "pyproject.toml", (later, later))
    assert calls(tmp_path) == [requirements, package, build]


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    (copy_of_the_checkout(tmp_path) / ".venv").unlink()
    refused = make(tmp_path, "book", "PYTHON=false")
    assert refused.returncode == 2
    assert "Python 3.11 or newer is needed: 'false'" in refused.stdout
    assert not (tmp_path / ".venv").exists()


PROJECT = '[project]\nname = "small"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["torch"]\n'
EXTRAS = '[project.optional-dependencies]\nbook = ["sphinx"]\ndev = ["pytest"]\n'


def write_wheel(folder: Path, name: str, *needs: str) -> None:
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + "".join(f"Requires-Dist: {x}\n" for x in needs)
    info = f"{name.replace('-', '_')}-1.0"
    with zipfile.ZipFile(folder / f"{info}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}.dist-info/METADATA", metadata)
        wheel.writestr(f"{info}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}.dist-info/RECORD", "")


def test_lock_pins_what_the_extras_need_but_no_cuda(tmp_path: Path) -> None:
    """The registry is a folder of empty packages."""
    copy_of_the_checkout(tmp_path)
    (tmp_path / "pyproject.toml").write_text(PROJECT + EXTRAS, encoding="utf-8")
    before = (tmp_path / "requirements.txt").read_bytes()
    (tmp_path / "wheels").mkdir()
    (tmp_path / "uv.toml").write_text('no-index = true\nfind-links = ["wheels"]\n', encoding="utf-8")
    offline = {"UV_OFFLINE": "1", "UV_NO_CACHE": "1", "UV_CONFIG_FILE": str(tmp_path / "uv.toml")}
    failed = make(tmp_path, "lock", **offline)
    assert failed.returncode == 2, failed.stdout
    assert (tmp_path / "requirements.txt").read_bytes() == before

    for name, needs in {"torch": ["nvidia-cublas"], "sphinx": ["docutils"]}.items():
        write_wheel(tmp_path / "wheels", name, *needs)
    for name in ("nvidia-cublas", "docutils", "pytest"):
        write_wheel(tmp_path / "wheels", name)
    locked = make(tmp_path, "lock", **offline)
    assert locked.returncode == 0, locked.stdout
    lines = (tmp_path / "requirements.txt").read_text(encoding="utf-8").splitlines()
    header = [line for line in before.decode().splitlines() if line.startswith("#")]
    assert lines == [*header, "docutils==1.0", "pytest==1.0", "sphinx==1.0", "torch==1.0"]


# ---------------------------------------------------------------------------------------------------------------------
# The checks
# ---------------------------------------------------------------------------------------------------------------------

GOOD = '"""A package."""\n\n__version__ = "1.0.0"\n'
LONG = "names = [" + ", ".join(f'"name {k:02}"' for k in range(9)) + "]"  # 101 characters, fewer than a module may have
FAULTS = {  # what each of the five commands must find: a file, and what is added to it
    "unused": ("tests/test_small.py", "import os\n"),
    "layout": ("nadtools/__init__.py", "name = {  'a':1 }\n"),
    "chapter": ("book/page.ipynb", LONG),
    "type": ("nadtools/__init__.py", 'number: int = "one"\n'),
    "spelling": ("README.md", "t" + "eh\n"),
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The project's rules, over sources of some lines."""
    copy_of_the_checkout(tmp_path)
    for folder in ("nadtools", "book/companion", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "book" / "companion" / "__init__.py").write_text('"""A package."""\n', encoding="utf-8")
    (tmp_path / "README.md").write_text("A small project.\n", encoding="utf-8")
    (tmp_path / "nadtools" / "__init__.py").write_text(GOOD, encoding="utf-8")
    (tmp_path / "tests" / "test_small.py").write_text("def test_small():\n    assert True\n", encoding="utf-8")
    write_page(tmp_path / "book" / "page.ipynb", "number = 1")
    return tmp_path


def write_page(path: Path, source: str) -> None:
    nbformat.write(new_notebook(cells=[new_code_cell(source, id="one")]), path)


def test_test_runs_the_checks_and_the_tests(small: Path) -> None:
    passed = make(small, "test", "JOBS=1")
    assert passed.returncode == 0, passed.stdout
    assert "1 passed" in passed.stdout
    assert "no issues found in 2 source files" in passed.stdout
    (small / "tests" / "test_small.py").write_text("def test_small():\n    assert 1 == 2\n", encoding="utf-8")
    failed = make(small, "test", "JOBS=1", "--old-file=lint")
    assert failed.returncode == 2 and "1 failed" in failed.stdout, failed.stdout


@pytest.mark.parametrize("fault", FAULTS)
def test_lint_finds_a_fault_and_format_mends_its_layout(small: Path, fault: str) -> None:
    name, text = FAULTS[fault]
    if name.endswith(".ipynb"):
        write_page(small / name, text)
    else:
        with (small / name).open("a", encoding="utf-8") as file:
            file.write(text)
    found = make(small, "lint")
    assert found.returncode == 2, found.stdout
    assert name in found.stdout
    mended = make(small, "format")
    assert mended.returncode == 0, mended.stdout
    if fault in ("unused", "layout", "chapter"):
        again = make(small, "lint")
        assert again.returncode == 0, again.stdout


def test_clean_removes_what_was_built_and_nothing_else(tmp_path: Path) -> None:
    (copy_of_the_checkout(tmp_path) / ".venv").unlink()
    sources = ["Makefile", "pyproject.toml", "requirements.txt"]
    sources += ["nadtools/a.py", "tests/b.py", "book/results/c.npz", ".venv/bin/python"]
    built = ["_build/html/index.html", "build/a", "dist/a.whl", "small.egg-info/PKG-INFO", ".mypy_cache/a"]
    built += [f"{folder}/__pycache__/a.pyc" for folder in ("nadtools", "nadtools/theory", "tests", "book")]
    for name in sources[3:] + built:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    cleaned = make(tmp_path, "clean")
    assert cleaned.returncode == 0, cleaned.stdout
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == set(sources)


# ---------------------------------------------------------------------------------------------------------------------
# The benchmark
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def benchmarked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the whole checkout in which the benchmark was run in its smallest size."""
    copy = copy_of_the_checkout(
        tmp_path_factory.mktemp("checkout"), "README.md", "_config.yml", "_toc.yml", "nadtools", "book", "tests"
    )
    measured = make(copy, "benchmark", "SIZE=smoke")
    assert measured.returncode == 0, measured.stdout
    return copy


def test_the_benchmark_measures_every_method_and_replaces_no_result(benchmarked: Path) -> None:
    measured, sizes = {}, set()
    for name in ("benchmark-costs.json", "benchmark-nads.json", "benchmark-sweeps.json"):
        record = json.loads((benchmarked / "_build" / name).read_text(encoding="utf-8"))
        measured |= {run["name"]: run["stats"]["median"] for run in record["benchmarks"]}
        sizes |= {run["extra_info"]["size"] for run in record["benchmarks"]}
        assert (benchmarked / "book" / "results" / name).read_bytes() == (ROOT / "book" / "results" / name).read_bytes()
    assert min(measured.values()) > 0 and sizes == {"smoke"}
    methods = ("straightforward", "exact_gradient", "nadtools", "no_network")
    assert {f"test_{method}[{network}]" for method in methods for network in ("lenet", "resnet18")} < set(measured)
    assert {"test_plain_loop[lenet-1-0]", "test_plain_loop[resnet18-1-2]"} < set(measured)
    assert {f"test_{part}[LeNet]" for part in ("forward", "secants", "add", "eigenvectors")} < set(measured)
    assert any(name.startswith("test_sweep") for name in measured)


def test_only_the_full_benchmark_goes_to_the_page(benchmarked: Path) -> None:
    commands = make(benchmarked, "benchmark", "--dry-run").stdout
    assert "mv _build/benchmark-*.json book/results" in commands


def test_an_unknown_size_is_refused_before_anything_is_measured(benchmarked: Path) -> None:
    refused = make(benchmarked, "benchmark", "SIZE=huge")
    assert refused.returncode == 2
    assert "got the size 'huge' of a benchmark; there are full and smoke" in refused.stdout


def test_smoke_executes_the_page_that_shows_the_benchmark(benchmarked: Path) -> None:
    """From what was measured just now: the page reads what the benchmark writes."""
    done = make(benchmarked, "smoke", "CHAPTER=benchmarks", "JOBS=1", NADTOOLS_RESULTS=str(benchmarked / "_build"))
    assert done.returncode == 0, done.stdout
    executed = (benchmarked / "_build" / "executed" / "source" / "book" / "benchmarks.ipynb").read_text(
        encoding="utf-8"
    )
    today = json.loads((benchmarked / "_build" / "benchmark-sweeps.json").read_text(encoding="utf-8"))["datetime"][:10]
    assert f"date: {today}" in executed
    assert "a plain loop, 1 thread(s), 0 loader workers" in executed


@pytest.mark.parametrize("line", re.findall(r"^make smoke\b.*?(?= *#)", (ROOT / "README.md").read_text("utf-8"), re.M))
def test_smoke_passes_its_options_on(tmp_path: Path, line: str) -> None:
    copy_of_the_checkout(tmp_path)
    _, _, *given = shlex.split(line)
    (command,) = make(tmp_path, "smoke", *given, "--dry-run").stdout.replace("\\\n", " ").splitlines()[-2:-1] or [""]
    program, *options = shlex.split(command)[1:]
    assert program == "book/execute.py"
    parser = execute.option_parser(None, "laptop", ROOT / "_build")
    parser.add_argument("--chapter", action="append")
    parsed = parser.parse_args(options)
    wanted = dict(word.split("=", 1) for word in given)
    assert parsed.scale == wanted.get("SCALE", "smoke")
    assert str(parsed.jobs) == wanted.get("JOBS", "2")
    assert parsed.chapter == ([wanted["CHAPTER"]] if "CHAPTER" in wanted else None)
    assert ["=".join(pair) for pair in parsed.parameter] == wanted.get("PARAMETERS", "").split()
    assert parsed.time_limit == float(wanted.get("TIME_LIMIT", 1800))
    assert parsed.memory_limit == float(wanted.get("MEMORY_LIMIT", 8))


# ---------------------------------------------------------------------------------------------------------------------
# The chapters
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def chapter(tmp_path: Path) -> Path:
    """A copy whose book is one page, with the configuration and the extensions of the real one."""
    tools = [f"book/{name}" for name in ("_ext", "static", "references.bib", "execute.py", "launch.py")]
    copy_of_the_checkout(tmp_path, "_config.yml", *tools)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/page\n", encoding="utf-8")
    write_page(tmp_path / "book" / "page.ipynb", "number = 1")
    return tmp_path


def test_launch_writes_the_address_into_the_chapters(chapter: Path) -> None:
    config = yaml.safe_load((chapter / "_config.yml").read_text(encoding="utf-8"))
    config["repository"]["url"] = "https://example.org/somebody/something"
    (chapter / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert "updated book/page.ipynb" in make(chapter, "launch").stdout
    assert "https://example.org/somebody/something" in (chapter / "book" / "page.ipynb").read_text(encoding="utf-8")
    assert "Nothing to change." in make(chapter, "launch").stdout


def test_links_wants_a_book_and_finds_the_link_that_leads_nowhere(chapter: Path) -> None:
    """The other hosts are this machine."""
    early = make(chapter, "links")
    assert early.returncode == 2 and "run make book" in early.stdout
    source = chapter / "_build" / "source"
    shutil.copytree(chapter / "book", source / "book")
    (source / "book" / "page.ipynb").unlink()
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(chapter / name, source)
    (chapter / "there.html").write_text("there", encoding="utf-8")
    with serve(chapter) as address:
        page = source / "book" / "page.md"
        page.write_text(f"# Page\n\n[one]({address}/there.html)\n", encoding="utf-8")
        whole = make(chapter, "links")
        assert whole.returncode == 0, whole.stdout
        page.write_text(f"# Page\n\n[one]({address}/there.html), [two]({address}/gone.html)\n", encoding="utf-8")
        broken = make(chapter, "links")
        assert broken.returncode == 2, broken.stdout
    assert re.findall(r"broken link: \S+/(\w+)\.html", broken.stdout) == ["gone"]


def test_lab_opens_the_chapters(chapter: Path) -> None:
    port, token = _free_port(), secrets.token_urlsafe()
    server = {"ip": "127.0.0.1", "port": port, "port_retries": 0, "open_browser": False, "allow_root": True}
    config = {"ServerApp": server, "IdentityProvider": {"token": token}}
    (chapter / "home").mkdir()
    (chapter / "home" / "jupyter_server_config.json").write_text(json.dumps(config), encoding="utf-8")
    folders = {f"JUPYTER_{name}_DIR": str(chapter / "home") for name in ("CONFIG", "DATA", "RUNTIME")}
    log = chapter / "log"
    with (
        log.open("wb") as file,
        subprocess.Popen(
            make_command(chapter, "lab"),
            env=environment(chapter, **folders),
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as running,
    ):
        lab = Lab(f"http://127.0.0.1:{port}", token, chapter / "book")
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    found = lab.ask("GET", "contents")
                    break
                except OSError:
                    said = log.read_text(encoding="utf-8")
                    assert running.poll() is None and time.monotonic() < deadline, said
                    time.sleep(0.1)
        finally:
            os.killpg(running.pid, signal.SIGTERM)
    assert "page.ipynb" in [entry["name"] for entry in found["content"]]
