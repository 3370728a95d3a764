"""How claims and outcomes are shown: as a chart, counted, as plain text, and as a page."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from companion.claims.model import PAPERS, Checked, Claim, Origin
from companion.evidence import Verdict
from companion.parts import finish

__all__ = ["chart", "summary", "to_html", "to_text"]

#: A sign for those who do not see colours, and a background on which white reads (a contrast of at least 4.5).
_SIGNS: Final = {
    Verdict.REPRODUCED: ("✓", "#00704a"),
    Verdict.PARTLY: ("◐", "#8a5a00"),
    Verdict.NOT_REPRODUCED: ("✗", "#b3261e"),
    Verdict.CORRECTED: ("✎", "#0b5cad"),
    Verdict.NOT_YET: ("…", "#5f6368"),
    Verdict.NOT_HERE: ("–", "#5f6368"),
}
_YEARS: Final = {"A": "2020", "B": "2021"}
_STYLE: Final = """
.claims { width: 100%; font-size: 0.85em; border-collapse: collapse; table-layout: fixed }
.claims th, .claims td { text-align: start !important; vertical-align: top; font-weight: normal; white-space: normal;
  overflow-wrap: anywhere; padding: 0.3rem 0.5rem; border-bottom: 1px solid rgba(128, 128, 128, 0.4) }
.claims thead th { font-weight: bold }
.claims th:first-child { width: 38% }
.claims code { color: inherit; background: none; padding: 0 }
.claims td > span { display: none }
.claims small { font-size: 0.95em; opacity: 0.85 }
.claims details { margin: 0.3rem 0 0 }
.claims .verdict { color: #fff; border-radius: 4px; padding: 1px 6px; white-space: nowrap }
.claims-chapter { border-bottom: 1px solid rgba(128, 128, 128, 0.4) }
.claims-chapter > summary { cursor: pointer; padding: 0.5rem 0 }
.claims-chapter > summary > span { display: block; font-size: 0.85em; padding-inline-start: 1.1rem }
@media (max-width: 700px) {
  .claims thead { display: none }
  .claims, .claims tbody, .claims tr, .claims th, .claims td { display: block; width: 100% !important }
  .claims th, .claims td { border: 0; padding: 0.1rem 0 }
  .claims tr { border-bottom: 1px solid rgba(128, 128, 128, 0.6); padding: 0.6rem 0 }
  .claims td > span { display: inline; font-weight: bold }
}
"""
#: The parts of a bar, from the left: a verdict, or (after "smaller") what a smaller run says, its name and its colour.
_PARTS: Final = (
    ((Verdict.REPRODUCED, None), "reproduced", "#009e73"),
    ((Verdict.CORRECTED, None), "corrected", "#0072b2"),
    ((Verdict.PARTLY, None), "partly", "#e69f00"),
    ((Verdict.NOT_REPRODUCED, None), "not reproduced", "#d55e00"),
    ((Verdict.NOT_YET, Verdict.REPRODUCED), "a smaller run agrees", "#009e73"),
    ((Verdict.NOT_YET, Verdict.PARTLY), "a smaller run agrees in part", "#e69f00"),
    ((Verdict.NOT_YET, Verdict.NOT_REPRODUCED), "a smaller run does not agree", "#d55e00"),
    ((Verdict.NOT_YET, None), "nothing stored", "#8c8c8c"),
    ((Verdict.NOT_HERE, None), "not checked here", "#bdbdbd"),
)


def chart(checked: Iterable[Checked]) -> go.Figure:
    """Count the verdicts in a bar for each chapter. Where only a smaller run is stored, what it says is hatched."""
    chosen = list(checked)
    chapters = sorted({one.claim.chapter for one in chosen})
    names = [_number(chapter) for chapter in chapters]
    figure = go.Figure()
    for part, name, colour in _PARTS:
        found = [one.claim.chapter for one in chosen if (one.outcome.verdict, one.outcome.smaller) == part]
        if not found:
            continue
        counts = [found.count(chapter) for chapter in chapters]
        marker: dict[str, Any] = {"color": colour, "line": {"width": 0}}
        if part[1] is not None:
            marker["pattern"] = {"shape": "/", "size": 6, "solidity": 0.45, "fillmode": "replace", "fgcolor": colour}
        hover = f"%{{y}}: %{{x}}, {name}<extra></extra>"
        label = f"{name} ({len(found)})"
        figure.add_bar(x=counts, y=names, name=label, orientation="h", marker=marker, hovertemplate=hover)
    reached = sum(one.outcome.verdict not in (Verdict.NOT_YET, Verdict.NOT_HERE) for one in chosen)
    figure.update_layout(barmode="stack", bargap=0.3, legend={"traceorder": "normal", "y": -0.13, "yanchor": "top"})
    figure.update_yaxes(autorange="reversed", showgrid=False, ticks="")
    figure.update_xaxes(title=None)
    alt = (
        f"The verdicts on {len(chosen)} claims, chapter by chapter. {reached} have a verdict at the paper's size: "
        + ("; ".join(f"{trace.name}" for trace in figure.data) + ".")
    )
    title = f"{reached} of {len(chosen)} claims have a verdict"
    return finish(figure, title, alt, height=520, margin={"l": 12, "r": 12, "t": 48, "b": 12})


def summary(checked: Iterable[Checked]) -> pd.DataFrame:
    """Count the verdicts: a row for each, a column for each paper."""
    pairs = [(one.outcome.verdict, PAPERS[one.claim.paper]) for one in checked]
    index = pd.Index([verdict.value for verdict in Verdict], name="verdict")
    counts = {title: [pairs.count((verdict, title)) for verdict in Verdict] for title in PAPERS.values()}
    table = pd.DataFrame(counts, index=index)
    return table[table.sum(axis=1) > 0]


def to_text(checked: Iterable[Checked]) -> str:
    """Write claims and outcomes as plain text, a paragraph for each."""
    parts = []
    for one in checked:
        claim, outcome = one.claim, one.outcome
        lines = [
            f"{_SIGNS[outcome.verdict][0]} {_shown(one)}  {claim.id} (paper {claim.paper}, {claim.place})",
            claim.statement,
            f"{claim.metric}; expected: {claim.expected} ({claim.mark})",
            f"measured: {outcome.measured}",
        ]
        if outcome.origin:
            lines.append(_in_words(outcome.origin))
        if outcome.command:
            lines.append(f"made by: {outcome.command}")
        parts.append("\n    ".join(lines))
    return "\n\n".join(parts)


def to_html(checked: Iterable[Checked], *, pages: str | os.PathLike[str] = ".") -> str:
    """Write claims and outcomes as HTML: for each chapter a table that is folded up, below the count of its verdicts.

    On a narrow screen the rows of a table become cards. Where a result comes from, and what makes it, is folded up
    within its row.

    Parameters
    ----------
    checked : iterable of Checked
    pages : path
        The folder of the chapters. What lies there is linked.
    """
    chapters: dict[str, list[Checked]] = {}
    for one in checked:
        chapters.setdefault(one.claim.chapter, []).append(one)
    parts = [f"<style>{_STYLE}</style>"]
    for chapter in sorted(chapters):
        verdicts = [one.outcome.verdict for one in chapters[chapter]]
        counts = [f"{_SIGNS[one][0]} {count} {one}" for one in Verdict if (count := verdicts.count(one))]
        parts.append(
            f'<details class="claims-chapter"><summary><strong>{html.escape(_title(chapter, Path(pages)))}</strong>'
            f"<span>{' · '.join(counts)}</span></summary>{_table_of(chapters[chapter], Path(pages))}</details>"
        )
    return "".join(parts)


def _table_of(checked: Sequence[Checked], pages: Path) -> str:
    rows = []
    for one in checked:
        claim, outcome = one.claim, one.outcome
        sign, colour = _SIGNS[outcome.verdict]
        recorded = f" Recorded: {claim.verdict}." if outcome.verdict is Verdict.NOT_HERE else ""
        cells = {
            "Expected": html.escape(f"{claim.metric}: {claim.expected} ({claim.mark})"),
            "Measured": html.escape(f"{outcome.measured}{recorded}"),
        }
        sources = [html.escape(_in_words(outcome.origin))] if outcome.origin else []
        if outcome.command:
            sources.append(f"At the paper's size: <code>{html.escape(outcome.command)}</code>")
        if sources:
            cells["Measured"] += f"<details><summary>where this comes from</summary>{'<br>'.join(sources)}</details>"
        note = f"<br><small>{html.escape(claim.note)}</small>" if claim.note else ""
        rows.append(
            f'<tr role="row" id="{html.escape(claim.id)}"><th role="rowheader" scope="row">{_link(claim, pages)} '
            f'<span class="verdict" style="background:{colour}">{sign} {html.escape(outcome.verdict)}</span>'
            f"<br>{html.escape(claim.statement)}{note}</th>"
            + "".join(f'<td role="cell"><span>{name}: </span>{cell}</td>' for name, cell in cells.items())
            + "</tr>"
        )
    heads = "".join(f'<th role="columnheader" scope="col">{name}</th>' for name in ("Claim", "Expected", "Measured"))
    return (
        f'<table role="table" class="claims"><thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def _number(chapter: str) -> str:
    """A chapter's number, with a star if it is one that may be skipped."""
    match = re.match(r"0*(\d+)(b?)-", chapter)
    return f"Chapter {match[1]}{'*' if match[2] else ''}" if match else chapter or "Elsewhere"


def _title(chapter: str, pages: Path) -> str:
    """The first heading of a chapter, where it lies there; else its number."""
    path = pages / f"{chapter}.ipynb"
    if not chapter or not path.exists():
        return _number(chapter)
    first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    return first.partition("\n")[0].lstrip("# ")


def _link(claim: Claim, pages: Path) -> str:
    text = html.escape(f"{_YEARS[claim.paper]}, {claim.place}")
    source = next((path for end in (".ipynb", ".md") if (path := pages / f"{claim.chapter}{end}").exists()), None)
    if not claim.chapter or source is None:
        return f"<strong>{text}</strong>"
    target = f"{claim.chapter}.html" if os.environ.get("NADTOOLS_STATIC") == "1" else source.name
    return f'<a href="{target}"><strong>{text}</strong></a>'


def _shown(one: Checked) -> str:
    recorded = f" (recorded: {one.claim.verdict})" if one.outcome.verdict != one.claim.verdict else ""
    return f"{one.outcome.verdict}{recorded}"


def _in_words(origin: Origin) -> str:
    width = [f"width {origin.width}"] if origin.width else []
    seeds = [f"{'seeds' if ',' in origin.seeds else 'seed'} {origin.seeds}"] if origin.seeds else []
    return ", ".join([origin.data, *width, *seeds, origin.device, origin.date, f"nadtools {origin.version}"])
