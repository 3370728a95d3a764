"""Install on Colab what the chapters need and Colab does not have: python book/colab.py.

The first cell of a chapter runs this there, after it has fetched the book. Nothing is installed that is new enough.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
KEPT = {"ipywidgets"}  # Colab's pages draw the widgets of the version that it brings


def requirements() -> list[str]:
    """What the package depends on, without what Colab has to keep."""
    dependencies = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    return [text for text in dependencies if re.split(r"[^\w.-]", text)[0] not in KEPT]


if __name__ == "__main__":
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *requirements()], check=True)
