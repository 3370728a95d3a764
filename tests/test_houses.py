"""Two houses with one door: the companion imports the library, never the other way round, and imports go downwards."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY, COMPANION = ROOT / "nadtools", ROOT / "book" / "companion"

# The library's modules, each above all that it imports.
FLOORS = (
    *("_version", "checks", "progress", "storage", "device", "directions", "plots"),
    *("theory.pooling", "theory.deep_linear", "theory"),
    *(
        "distributions",
        "image_sources",
        "images",
        "symmetries",
        "architectures",
        "networks",
        "output_layer",
        "moments",
        "nads",
    ),
    *(
        "analytic.covariance",
        "analytic.operations",
        "analytic.weighted",
        "analytic.unweighted",
        "analytic.forms",
        "analytic.rules",
        "analytic.graph",
        "analytic.spectrum",
        "analytic",
    ),
    *("journal", "units", "estimation", "interventions", "training", "ensembles", "sweeps", "boundaries", "__init__"),
)
BOOKS_OWN = (
    "plotly",
    "matplotlib",
    "ipywidgets",
    "IPython",
    "pooch",
    "sklearn",
    "papermill",
    "nbformat",
    "psutil",
    "yaml",
)


def name_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports_of(path: Path) -> set[str]:
    """Full names of what a file imports, anywhere in it, but for what only type checkers see."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unseen = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and isinstance(test.test, ast.Name) and test.test.id == "TYPE_CHECKING"
        for statement in test.body
        for node in ast.walk(statement)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules(root: Path) -> dict[str, Path]:
    return {name_of(path, root): path for path in sorted(root.rglob("*.py"))}


def test_the_library_imports_downwards_only():
    assert sorted(FLOORS) == sorted(modules(LIBRARY))
    upwards = [
        (name, other)
        for name, path in modules(LIBRARY).items()
        for other in FLOORS[FLOORS.index(name) :]
        if f"nadtools.{other}" in imports_of(path) and other != name
    ]
    assert upwards == []


def test_the_library_knows_nothing_of_the_book():
    for name, path in modules(LIBRARY).items():
        top = {imported.partition(".")[0] for imported in imports_of(path)}
        allowed = {"matplotlib"} if name == "plots" else set()
        assert not top & {"companion", *BOOKS_OWN} - allowed, name


def test_a_chapter_imports_no_other_chapter_and_what_they_share_imports_none():
    for name, path in modules(COMPANION).items():
        own = name.split(".")[0]
        chapters = {
            imported.split(".")[1] for imported in imports_of(path) if imported.startswith("companion.chapter_")
        }
        # The list of experiments and the claims stand above the chapters.
        assert own in ("experiments", "claims") or chapters <= {own}, f"{name} imports {sorted(chapters - {own})}"


def test_no_file_of_the_library_is_long_and_it_is_small():
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules(LIBRARY).items()}
    assert max(lines.values()) <= 500, max(lines, key=lines.__getitem__)
    assert sum(lines.values()) <= 8000


@pytest.mark.parametrize("forbidden", [BOOKS_OWN])
def test_the_library_works_without_the_books_packages(forbidden, tmp_path):
    script = f"""
import sys
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda cls, name, *where: None if name.partition(".")[0] in {forbidden!r} else find(name, *where)
)
import nadtools as nt

nads = nt.estimate_nads("mlp", 2, image_size=(8, 8), progress=False)
network = nt.build("mlp", image_size=(8, 8))
data = nt.LinearlySeparable(nads.vectors[0]).sample(32, device="cpu")
nt.train(network, data, data, nt.TrainConfig(epochs=1), progress=False)
options = dict(num_train=16, num_test=16, config=nt.TrainConfig(epochs=1), progress=False)
table = nt.sweep("mlp", nads.vectors[:2], journal={str(tmp_path / "j.sqlite")!r}, **options)
assert len(table) == 2
try:
    nads.plot()
except ModuleNotFoundError as error:
    assert "pip install matplotlib" in str(error)
else:
    raise AssertionError("matplotlib was imported")
assert not [name for name in sys.modules if name.partition(".")[0] in {forbidden!r}]
"""
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert finished.returncode == 0, finished.stderr
