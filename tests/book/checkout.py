"""Copies of the checkout, in which make may do what it likes: shared by the tests of the Makefile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_BEHIND = shutil.ignore_patterns("__pycache__", ".*_cache", ".ipynb_checkpoints", "_build")


def copy_of_the_checkout(folder: Path, *names: str) -> Path:
    """Copy the Makefile and what else is named; the environment that runs the tests is linked as .venv."""
    for name in ("Makefile", "pyproject.toml", "requirements.txt", *names):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=LEFT_BEHIND)
        else:
            shutil.copy2(ROOT / name, target)
    (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    return folder


def make_command(folder: Path, target: str, *arguments: str) -> list[str]:
    """The command for a target in this folder; it installs nothing into a linked environment."""
    complete = ["--old-file=.venv/.installed"] if (folder / ".venv").is_symlink() else []
    return ["make", f"--directory={folder}", *complete, target, *arguments]


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """That of this process, less what the make and the pytest that started it left there; the copy is imported."""
    inherited = ("MAKE", "MFLAGS", "PYTEST", "NADTOOLS", "JUPYTER", "UV_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(inherited)}
    return kept | {"PYTHONPATH": str(folder)} | variables


def make(folder: Path, target: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run make; what it printed, errors included, is in ``stdout``."""
    return subprocess.run(
        make_command(folder, target, *arguments),
        env=environment(folder, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
    )
