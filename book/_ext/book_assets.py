"""Sphinx extension: what the book's pages need beyond Jupyter Book.

Third-party JavaScript is brought out of pinned Python packages, for the pages that use it: ``plotly.min.js`` from
``plotly``, MathJax from ``sphinx-mathjax-offline``. Nothing is downloaded while the book is built, and no page asks
another host for anything.

Figures and tables of a chapter are numbered here, so that their numbers need no JavaScript.

References to the package's public names (``nadtools.build``) lead to the modules that define them.
"""

import importlib
import re
import shutil
from collections import Counter
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

import nadtools

# (package, file inside its site-packages folder). MathJax with all TeX extensions: the smaller file fetches some of
# them when a formula first uses them.
ASSETS = [
    ("plotly", "plotly/package_data/plotly.min.js"),
    ("sphinx-mathjax-offline", "sphinx-mathjax-offline/static/mathjax/tex-svg-full.js"),
]

# Where a folded cell without an output ends and the next folded cell begins. One line to open both is enough.
FOLDED_TWICE = re.compile(
    r'</details>\s*</div>\s*<div class="cell tag_hide-input[^>]*>\s*'
    r'<details class="admonition hide above-input">\s*<summary.*?</summary>\s*',
    re.DOTALL,
)


def _asset(package: str, name: str) -> Path:
    try:
        path = Path(str(distribution(package).locate_file(name)))
    except PackageNotFoundError as error:
        raise ExtensionError(f"The package {package} is not installed; install requirements.txt.") from error
    if not path.is_file():
        raise ExtensionError(f"{package} has no file {name}; install the version that requirements.txt names.")
    return path


def copy_assets(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        folder = Path(app.outdir) / "_static"
        folder.mkdir(parents=True, exist_ok=True)
        for package, name in ASSETS:
            shutil.copyfile(_asset(package, name), folder / Path(name).name)


def finish_page(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Load Plotly where a page has figures, and mend what would mislead a screen reader or break a line badly."""
    body = context.get("body", "")
    if "plotly-graph-div" in body:
        app.add_js_file("plotly.min.js")  # within this event: for this page alone
        app.add_js_file("book.js")
    if body:
        # Docutils calls the bibliography a list, but its entries are no items of a list.
        body = body.replace('<div role="list" class="citation-list">', '<div class="citation-list">')
        body = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", body)
        body = FOLDED_TWICE.sub("", body)
        context["body"] = number_captions(body, context.get("title", ""))


def number_captions(body: str, title: str) -> str:
    """Put "Figure 3.2." and "Table 3.1." before the captions of a page whose title begins with a chapter's number."""
    chapter = re.match(r"\d+\*?(?=\.)", title)
    if chapter is None:
        return body
    counts = Counter[str]()

    def numbered(start: re.Match[str]) -> str:
        kind = "Table" if start["tag"] == "caption" else "Figure"
        counts[kind] += 1
        return f'{start[0]}<span class="figure-number">{kind} {chapter[0]}.{counts[kind]}.</span> '

    return re.sub(r"<(?P<tag>figcaption|caption)\b[^>]*>(\s*<p>)?", numbered, body)


def name_toggles(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give the sidebar's toggles a name: the theme's are an arrow alone."""
    generate = context.get("generate_toctree_html")
    if generate is None:
        return

    def named(*arguments: Any, **options: Any) -> Any:
        tree = generate(*arguments, **options)
        for toggle in tree.find_all("summary") if hasattr(tree, "find_all") else ():
            toggle["aria-label"] = "Pages below this one"
        return tree

    context["generate_toctree_html"] = named


def leave_thebe_out(app: Sphinx, config: Config) -> None:
    """Jupyter Book always loads Thebe, whose live cells need two hosts elsewhere; this book does not offer them."""
    for event in ("env-before-read-docs", "doctree-resolved"):
        for listener in list(app.events.listeners[event]):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)


def state_the_version(app: Sphinx, config: Config) -> None:
    """At the foot of each page, beside the date."""
    config.version = config.release = nadtools.__version__
    config.html_last_updated_fmt = "%Y-%m-%d"
    config.html_theme_options["extra_footer"] = f"<p>Made with nadtools {nadtools.__version__}.</p>"


def resolve_public_name(
    app: Sphinx,
    environment: BuildEnvironment,
    node: pending_xref,
    contnode: nodes.TextElement,
) -> nodes.reference | None:
    """``nadtools.NADs.save`` is documented as ``nadtools.nads.NADs.save``: look there."""
    package, _, name = node.get("reftarget", "").partition(".")
    if node.get("refdomain") != "py" or package != "nadtools" or not name:
        return None
    first, *rest = name.split(".")
    module = getattr(getattr(importlib.import_module(package), first, None), "__module__", None)
    if module is None:
        return None
    target = ".".join([module, first, *rest])
    domain = environment.get_domain("py")
    return domain.resolve_xref(environment, node["refdoc"], app.builder, node["reftype"], target, node, contnode)


def setup(app: Sphinx) -> dict[str, Any]:
    for package, name in ASSETS:
        _asset(package, name)  # fail before the build, not at its end
    app.connect("config-inited", leave_thebe_out)
    app.connect("config-inited", state_the_version)
    app.connect("missing-reference", resolve_public_name)
    app.connect("html-page-context", finish_page)
    app.connect("html-page-context", name_toggles, priority=900)  # after the theme has made its tree
    app.connect("build-finished", copy_assets)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
