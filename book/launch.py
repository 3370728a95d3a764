"""Give each chapter the cell that makes it work on Colab: python book/launch.py, or make launch.

Colab opens the notebook alone, without the package and the stored results. So each notebook that ``_toc.yml`` names
has a cell before its parameters that fetches the book there, from the address in ``_config.yml`` (``repository: url``).
The cell does nothing elsewhere, and does not appear on the page. Without an address in ``_config.yml`` it is removed.
"""

from pathlib import Path
from typing import Any

import nbformat
import yaml
from execute import REPOSITORY, notebooks_in_toc

TAG = "launch"
FOLDER = "/content/book"  # on Colab


def launch_cell(config: dict[str, Any], folder: str = FOLDER) -> str | None:
    """The source of the cell for this ``_config.yml``; None if it names no repository."""
    repository = config.get("repository") or {}
    if not repository.get("url"):
        return None
    return "\n".join(
        [
            "import subprocess",
            "import sys",
            "",
            'if "google.colab" in sys.modules:  # fetch the book; elsewhere this cell does nothing',
            f'    address, folder = "{repository["url"]}", "{folder}"',
            f'    clone = f"git clone --quiet --depth 1 --branch {repository["branch"]} {{address}} {{folder}}"',
            '    subprocess.run(f"test -d {folder} || {clone}", shell=True, check=True)',
            '    subprocess.run([sys.executable, f"{folder}/book/colab.py"], check=True)',
            "    sys.path.insert(0, folder)",
        ]
    )


def with_launch_cell(notebook: nbformat.NotebookNode, source: str | None) -> nbformat.NotebookNode:
    """The notebook with this launch cell before its parameters, in place of any that it has."""
    cells = [cell for cell in notebook.cells if TAG not in cell.metadata.get("tags", [])]
    if source is not None:
        places = [k for k, cell in enumerate(cells) if "parameters" in cell.metadata.get("tags", [])]
        metadata = {"jupyter": {"source_hidden": True}, "tags": [TAG, "remove-cell"]}
        cell = nbformat.v4.new_code_cell(source, id="launch", metadata=metadata)
        cells.insert(places[0] if places else 0, cell)
    return nbformat.NotebookNode({**notebook, "cells": cells})


def update(root: Path = REPOSITORY) -> list[str]:
    """Write the launch cells; the notebooks that were changed."""
    source = launch_cell(yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8")))
    changed = []
    for name in notebooks_in_toc(root):
        notebook = nbformat.read(root / name, as_version=4)
        wanted = with_launch_cell(notebook, source)
        if wanted != notebook:
            nbformat.write(wanted, root / name)
            changed.append(name)
    return changed


if __name__ == "__main__":
    print("\n".join(f"updated {name}" for name in update()) or "Nothing to change.")
