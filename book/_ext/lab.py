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
#: Presets of the page, and their names.
NETWORKS = {"lenet": "LeNet", "vgg11": "VGG-11", "resnet18": "ResNet-18"}


def stored_accuracies() -> dict[str, Any]:
    """For each network its waves with our stored accuracy and the authors', and where they come from.

    The authors do not say which of an atom's two frequencies runs along the rows, nor its phase; half of their table is
    a copy of the other half, and is left out.
    """
    if str(BOOK) not in sys.path:
        sys.path.insert(0, str(BOOK))
    from companion import published

    theirs = published.load_accuracies("fourier").query("frequency_i <= 0")
    networks = []
    for architecture, name in NETWORKS.items():
        rows = theirs[theirs["architecture"] == architecture]
        authors = {
            (int(i), int(j)): a for i, j, a in zip(rows.frequency_i, rows.frequency_j, rows.accuracy, strict=True)
        }
        ours, phase, stamp = _trained_here(architecture)
        waves = []
        for wave in ours:
            known = {"ours": ours.get(wave), "authors": authors.get(wave)}
            waves.append({"frequency": wave} | {who: round(float(a), 4) for who, a in known.items() if a is not None})
        stamp += (
            f"The authors: {published.REPOSITORY} at {published.REVISION}, Apache-2.0; they do not state the phase."
        )
        networks.append({"key": architecture, "name": name, "phase": phase, "stamp": stamp, "waves": waves})
    return {"networks": networks, "learned": LEARNED}


def _trained_here(architecture: str) -> tuple[dict[tuple[int, int], float], float, str]:
    """Accuracy by wave, phase, and a sentence on the settings."""
    from companion import experiments

    table = experiments.load_table("A1", architecture=architecture)
    settings, record = table.attrs["parameters"], table.attrs
    means = table.groupby(["frequency_i", "frequency_j"], sort=True)["test_accuracy"].mean()
    width = settings["build_options"].get("width", 1)
    narrow = f"a width of {width:g}, " if width != 1 else ""
    stamp = (
        f"This book: A1 at {record['scale']} scale, {narrow}{settings['num_train']:,} samples, "
        f"σ = {settings['sigma']:g}, "
        f"ε = {settings['epsilon']:g}, seed {record['seed']}, revision {record['revision']}, {record['date'][:10]}. "
    )
    waves = {(int(i), int(j)): float(accuracy) for (i, j), accuracy in means.items() if math.isfinite(accuracy)}
    return waves, float(settings["phase"]), stamp


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
