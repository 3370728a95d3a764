"""What both papers claim, and what the stored results say about it.

Each claim stands in ``claims.toml``, beside this file: in our words, with its place, what is expected, and the verdict
that was recorded when it was last looked at. The chapters' ``claims.py`` hold the functions that look at them, by id.
Nothing is trained and nothing is downloaded here. ``python -m companion claims`` compares what the functions find with
what is recorded.
"""

from __future__ import annotations

from companion.claims.catalogue import CLAIMS_FILE, load_claims, record_verdicts
from companion.claims.checking import check_claims, evaluate
from companion.claims.display import chart, summary, to_html, to_text
from companion.claims.model import Checked, Claim, Origin, Outcome
from companion.evidence import Verdict

__all__ = [
    "CLAIMS_FILE",
    "Checked",
    "Claim",
    "Origin",
    "Outcome",
    "Verdict",
    "chart",
    "check_claims",
    "evaluate",
    "load_claims",
    "record_verdicts",
    "summary",
    "to_html",
    "to_text",
]
