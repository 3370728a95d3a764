"""The files that everything else rests on agree with each other."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import nadtools

ROOT = Path(__file__).resolve().parents[2]
# What torch brings itself, in the build that was chosen: naming it here would make a CPU-only torch a CUDA one.
CUDA = re.compile(r"nvidia-|cuda-|triton|cupy")


def locked() -> dict[str, Requirement]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    assert len(set(names)) == len(names), "a package is pinned twice"
    return dict(zip(names, requirements, strict=True))


def locked_version(name: str) -> Version:
    return Version(next(iter(locked()[canonicalize_name(name)].specifier)).version)


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Every file that is, or is about to be, in the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git checkout")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def test_every_requirement_is_pinned_to_one_version():
    assert len(locked()) > 100
    for name, requirement in locked().items():
        operators = [(specifier.operator, "*" in specifier.version) for specifier in requirement.specifier]
        assert operators == [("==", False)], name
        assert requirement.url is None, name
        # A local version, such as 2.15.0+cpu, exists on one index only.
        assert locked_version(name).local is None, name


def test_requirements_name_no_cuda_library_and_no_index():
    assert [name for name in locked() if CUDA.match(name)] == []
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*-", text, re.MULTILINE), "an option of pip"


def test_requirements_satisfy_the_project(project):
    extras = project["optional-dependencies"]
    for text in [*project["dependencies"], *extras["book"], *extras["dev"]]:
        wanted = Requirement(text)
        assert canonicalize_name(wanted.name) in locked(), wanted.name
        assert wanted.specifier.contains(locked_version(wanted.name)), text


def test_the_bounds_are_those_that_the_readme_states(project):
    bounds = {Requirement(text).name: Requirement(text).specifier for text in project["dependencies"]}
    assert bounds["torch"] == SpecifierSet(">=2.11")
    assert bounds["torchvision"] == SpecifierSet(">=0.26")
    assert project["requires-python"] == ">=3.11"
    assert "3.11" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_pre_commit_runs_the_locked_versions():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    revisions = {repository["repo"].rsplit("/", 1)[1]: repository["rev"] for repository in config["repos"]}
    for repository, package in (("nbstripout", "nbstripout"), ("ruff-pre-commit", "ruff"), ("codespell", "codespell")):
        assert Version(revisions[repository].removeprefix("v")) == locked_version(package), package


def test_import_is_light():
    """What takes long to import, and most sessions do without, is imported where it is used."""
    heavy = ("plotly", "matplotlib", "ipywidgets", "pooch", "dask", "IPython", "sklearn", "scipy.stats", "torchvision")
    code = f"import sys, nadtools; print(*(name for name in {heavy} if name in sys.modules))"
    finished = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert finished.stdout.split() == []


def test_the_package_is_typed_and_has_a_version():
    assert (Path(nadtools.__file__).parent / "py.typed").is_file()
    assert re.fullmatch(r"\d+\.\d+\.\d+", nadtools.__version__)


def test_continuous_integration_runs_the_readmes_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    run = ROOT / ".ci" / "run"
    assert os.access(run, os.X_OK)
    assert "make test" in run.read_text(encoding="utf-8")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8"))
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert commands == [".ci/run", "make book"]
    for command in ("make book", "make test", "make lab"):
        assert command in readme, command


def test_no_file_names_a_package_registry_or_a_path_of_some_machine(tracked):
    # Put together from parts, so that this file passes its own test.
    hosts = [".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("registry", "npmjs"))]
    hosts += [".".join(("download", "pytorch")), "file:" + 3 * "/"]
    folders = [f"/{name}/" for name in ("work", "home", "root", "Users")]
    forbidden = re.compile("|".join(map(re.escape, hosts + folders)))
    texts = {".bib", ".cfg", ".css", ".ipynb", ".js", ".md", ".py", ".toml", ".txt", ".yaml", ".yml", ""}
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in tracked
        if path.suffix in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for match in [forbidden.search(line)]
        if match
    ]
    assert found == []


def test_no_published_data_is_in_the_repository(tracked):
    assert [
        path.name for path in tracked if path.suffix in {".npy", ".pkl", ".pt"} or path.name.startswith("excerpt-")
    ] == []
    too_large = [path.name for path in tracked if path.stat().st_size > 5_000_000]
    assert too_large == []
