"""A claim, what was found about it, and the two side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from companion.evidence import Function, Verdict

__all__ = ["PAPERS", "Checked", "Claim", "Origin", "Outcome"]

PAPERS: Final = {
    "A": "Neural Anisotropy Directions",
    "B": "A neural anisotropic view of underspecification in deep learning",
}


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
        What is measured, what the paper lets us expect, and from where on we say that it holds. A claim that is a
        row of a chapter's table has its tolerance from there.
    verdict : Verdict
        As recorded.
    function : callable
        Looks at the claim.
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
    verdict: Verdict
    function: Function
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
class Origin:
    """Where a measured text comes from. Several results are separated by semicolons; what does not apply is empty."""

    data: str
    width: str
    seeds: str
    device: str
    date: str
    version: str


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What was found about a claim, and where that comes from.

    Attributes
    ----------
    measured : str
    verdict : Verdict
        ``NOT_YET`` if no result is stored, it is of a smaller size than the paper's, or it is stale. ``NOT_HERE`` if
        it takes the authors' files, and they are not at hand.
    origin : Origin, optional
        None if nothing was read.
    command : str
        Makes the result at the paper's size, if that is what is missing.
    smaller : Verdict, optional
        What a run of a smaller size says, if there is only such a run.
    """

    measured: str
    verdict: Verdict
    origin: Origin | None = None
    command: str = ""
    smaller: Verdict | None = None

    @property
    def is_stored(self) -> bool:
        """Whether there was anything to look at, or would be with the authors' files."""
        return self.origin is not None or self.verdict is Verdict.NOT_HERE


@dataclasses.dataclass(frozen=True)
class Checked:
    """A claim beside its outcome."""

    claim: Claim
    outcome: Outcome

    @property
    def changed(self) -> bool:
        """Whether the verdict is another one than was recorded. What cannot be checked here has not changed."""
        return self.outcome.verdict not in (self.claim.verdict, Verdict.NOT_HERE)
