"""Install on Colab what the chapters need and Colab does not have: python book/colab.py.

The first cell of a chapter runs this there, after it has fetched the book. Nothing is installed that is new enough.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
# Of the extra "book" what the companion imports; not ipywidgets: Colab's pages draw those that it brings.
COMPANION = {"matplotlib", "plotly", "pooch", "scikit-learn"}


def requirements() -> list[str]:
    """What the package depends on, and what the companion does."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    book = project["optional-dependencies"]["book"]
    return [*project["dependencies"], *(text for text in book if re.split(r"[^\w.-]", text)[0] in COMPANION)]


if __name__ == "__main__":
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *requirements()], check=True)
