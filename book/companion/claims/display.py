"""How claims and outcomes are shown: counted, as plain text, and as a page."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from companion.claims.model import PAPERS, Checked, Claim, Origin
from companion.evidence import Verdict

__all__ = ["summary", "to_html", "to_text"]

#: A sign for those who do not see colours, and a background on which white reads (a contrast of at least 4.5).
_SIGNS: Final = {
    Verdict.REPRODUCED: ("✓", "#00704a"),
    Verdict.PARTLY: ("◐", "#8a5a00"),
    Verdict.NOT_REPRODUCED: ("✗", "#b3261e"),
    Verdict.CORRECTED: ("✎", "#0b5cad"),
    Verdict.NOT_YET: ("…", "#5f6368"),
    Verdict.NOT_HERE: ("–", "#5f6368"),
}
_STYLE: Final = """
.claims { width: 100%; font-size: 0.85em; border-collapse: collapse; table-layout: fixed }
.claims th, .claims td { text-align: start !important; vertical-align: top; font-weight: normal; white-space: normal;
  overflow-wrap: anywhere; padding: 0.3rem 0.5rem; border-bottom: 1px solid rgba(128, 128, 128, 0.4) }
.claims thead th { font-weight: bold }
.claims th:first-child { width: 34% }
.claims th:last-child { width: 18% }
.claims code { color: inherit; background: none; padding: 0 }
.claims td > span { display: none }
.claims .verdict { color: #fff; border-radius: 4px; padding: 1px 6px; white-space: nowrap }
@media (max-width: 700px) {
  .claims thead { display: none }
  .claims, .claims tbody, .claims tr, .claims th, .claims td { display: block; width: 100% !important }
  .claims th, .claims td { border: 0; padding: 0.1rem 0 }
  .claims tr { border-bottom: 1px solid rgba(128, 128, 128, 0.6); padding: 0.6rem 0 }
  .claims td > span { display: inline; font-weight: bold }
}
"""


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
    """Write claims and outcomes as an HTML table, whose rows become cards on a narrow screen.

    Claims for which nothing is stored come last, in a table that is folded up.

    Parameters
    ----------
    checked : iterable of Checked
    pages : path
        The folder of the chapters. What lies there is linked.
    """
    chosen = list(checked)
    stored = [one for one in chosen if one.outcome.is_stored]
    missing = [one for one in chosen if not one.outcome.is_stored]
    parts = [f"<style>{_STYLE}</style>", _table_of(stored, Path(pages))]
    if missing:
        count = f"{len(missing)} claims" if len(missing) > 1 else "one claim"
        parts.append(
            f"<details><summary>For {count} nothing is stored yet</summary>{_table_of(missing, Path(pages))}</details>"
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
            "From": html.escape(_in_words(outcome.origin)) if outcome.origin else "–",
        }
        if outcome.command:
            cells["Measured"] += f"<br><code>{html.escape(outcome.command)}</code>"
        note = f"<br><small>{html.escape(claim.note)}</small>" if claim.note else ""
        rows.append(
            f'<tr role="row" id="{html.escape(claim.id)}"><th role="rowheader" scope="row">{_link(claim, pages)} '
            f'<span class="verdict" style="background:{colour}">{sign} {html.escape(outcome.verdict)}</span>'
            f"<br>{html.escape(claim.statement)}{note}</th>"
            + "".join(f'<td role="cell"><span>{name}: </span>{cell}</td>' for name, cell in cells.items())
            + "</tr>"
        )
    heads = "".join(
        f'<th role="columnheader" scope="col">{name}</th>' for name in ("Claim", "Expected", "Measured", "From")
    )
    return (
        f'<table role="table" class="claims"><thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def _link(claim: Claim, pages: Path) -> str:
    text = html.escape(claim.place)
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
