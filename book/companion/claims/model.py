"""A claim, what was found about it, and the two side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, Literal

__all__ = ["NOT_HERE", "NOT_STORED", "NOT_YET", "NO_SOURCE", "PAPERS", "Checked", "Claim", "Outcome", "Verdict"]

Verdict = Literal[
    "reproduced", "partly", "not reproduced", "corrected", "not yet at paper scale", "not checked here"
]  # fmt: skip

PAPERS: Final = {
    "A": "Neural Anisotropy Directions",
    "B": "A neural anisotropic view of underspecification in deep learning",
}
NOT_YET: Final = "not yet at paper scale"
NOT_HERE: Final = "not checked here"
NOT_STORED: Final = "not stored"
NO_SOURCE: Final = "–"


@dataclasses.dataclass(frozen=True)
class Claim:
    """Something that one of the papers says, and how it is looked at.

    Attributes
    ----------
    id : str
        Figure or theorem, and a short word.
    paper : {"A", "B"}
        *Neural Anisotropy Directions*, or *A neural anisotropic view of underspecification in deep learning*.
    place : str
        In the paper.
    statement : str
        One sentence, in our words.
    metric, expected, tolerance : str
        What is measured, what the paper lets us expect, and from where on we say that it holds. The tolerance of
        statements that :mod:`companion.experiments` evaluates is the one that stands in its table.
    function : str
        Of this package: it evaluates the claim.
    verdict : str
        As recorded.
    chapter : str, optional
        Of the book, as the name of its file without the ending.
    experiment : str, optional
        Whose stored result is read.
    selectors : mapping, optional
        Of that result. Of the data set the best that is stored is taken.
    limits : mapping, optional
        Numbers for the function, which the tolerance quotes in braces.
    scale : {"paper", "laptop"}
        The size from which on a result counts. ``"laptop"`` is for controls of ours, which no paper has.
    note : str, optional
    """

    id: str
    paper: str
    place: str
    statement: str
    metric: str
    expected: str
    tolerance: str
    function: str
    verdict: str
    chapter: str = ""
    experiment: str = ""
    selectors: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    limits: Mapping[str, float] = dataclasses.field(default_factory=dict)
    scale: str = "paper"
    note: str = ""

    @property
    def mark(self) -> str:
        """The tolerance, with its numbers."""
        return self.tolerance.format(**self.limits)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What was found about a claim, and where that comes from.

    Attributes
    ----------
    measured : str
    verdict : str
        ``"not yet at paper scale"`` if no result is stored, it is of a smaller size than the paper's, or it is stale.
        ``"not checked here"`` if it takes the authors' files, and they are not at hand.
    data, width, seeds, device, date, version : str
        Of the results that were read; several are separated by semicolons.
    command : str
        Makes the result at the paper's size, if that is what is missing.
    """

    measured: str
    verdict: Verdict
    data: str = NO_SOURCE
    width: str = NO_SOURCE
    seeds: str = NO_SOURCE
    device: str = NO_SOURCE
    date: str = NO_SOURCE
    version: str = NO_SOURCE
    command: str = ""


@dataclasses.dataclass(frozen=True)
class Checked:
    """A claim beside its outcome."""

    claim: Claim
    outcome: Outcome

    @property
    def changed(self) -> bool:
        """Whether the verdict is another one than was recorded. What cannot be checked here has not changed."""
        return self.outcome.verdict not in (self.claim.verdict, NOT_HERE)
