"""Sphinx extension: the labs in the pages, which work without a kernel.

A page holds ``<div class="nad-lab" data-lab="...">``. The scripts in ``static/lab`` are loaded by the pages that have
one, and by no other. The bets are about stored results, which are written into a script when the book is built.
"""

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

BOOK = Path(__file__).resolve().parents[1]
SHARED = ("eigen", "recursion", "canvas")
#: For each lab the scripts that it needs beside the shared ones.
SCRIPTS = {
    "hero": ("draw",),
    "draw": ("draw",),
    "bet": ("results", "bet"),
    "chapter-01": ("chapter-01",),
    "chapter-02": ("chapter-02",),
    "chapter-03": ("chapter-03",),
}
#: The share of new samples above which a bet counts a wave as learned.
LEARNED = 0.6
#: Preset of the page, name, experiment, architecture.
NETWORKS = (("lenet", "LeNet", "A1"), ("resnet18", "ResNet-18", "A1"))


def stored_accuracies() -> dict[str, Any]:
    """The stored accuracies over waves, with where they come from."""
    if str(BOOK) not in sys.path:
        sys.path.insert(0, str(BOOK))
    from companion import experiments
    from companion.stored import load_table

    assert experiments
    networks = []
    for architecture, name, experiment in NETWORKS:
        table = load_table(experiment, architecture=architecture)
        settings, record = table.attrs["parameters"], table.attrs
        waves = table.groupby(["frequency_i", "frequency_j"], sort=True)["test_accuracy"].mean()
        width = settings["build_options"].get("width", 1)
        narrow = f"a width of {width:g}, " if width != 1 else ""
        stamp = (
            f"{experiment} at {record['scale']} scale: {narrow}{settings['num_train']:,} samples, "
            f"σ = {settings['sigma']:g}, ε = {settings['epsilon']:g}, seed {record['seed']}, "
            f"revision {record['revision']}, {record['date'][:10]}."
        )
        networks.append(
            {
                "key": architecture,
                "name": name,
                "preset": architecture,
                "phase": settings["phase"],
                "stamp": stamp,
                "waves": [
                    {"frequency": [int(i), int(j)], "accuracy": round(float(accuracy), 4)}
                    for (i, j), accuracy in waves.items()
                    if math.isfinite(accuracy)
                ],
            }
        )
    return {"networks": networks, "learned": LEARNED, "source": "Stored results of this book:"}


def add_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Load what the labs of this page need."""
    labs = re.findall(r'class="nad-lab" data-lab="([\w-]+)"', context.get("body", ""))
    if not labs:
        return
    app.add_css_file("lab/lab.css")
    scripts = dict.fromkeys([*SHARED, *(script for lab in labs for script in SCRIPTS[lab])])
    for name in scripts:
        app.add_js_file(f"lab/{name}.js", loading_method="defer")
    if "results" in scripts:
        path = Path(app.outdir) / "_static" / "lab" / "results.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(stored_accuracies(), ensure_ascii=False, separators=(",", ":"))
        path.write_text(f"window.NADLAB_DATA = {text};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", add_scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
