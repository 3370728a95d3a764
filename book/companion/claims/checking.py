"""From what a function finds to an outcome: its verdict, where it comes from, and whether its size counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import nadtools
from companion import experiments
from companion.claims.catalogue import load_claims, paper_parameters
from companion.claims.model import Checked, Claim, Origin, Outcome
from companion.evidence import NotHereError, Stored, Verdict, Where, at_paper_scale
from companion.style import device_of

__all__ = ["check_claims", "evaluate"]

_DATA: Final = {
    "cifar10": "CIFAR-10",
    "cifar10-jpeg": "CIFAR-10 as JPEG",
    "cifar10-subset": "5,000 images of CIFAR-10",
    "patches": "patches of ten photographs",
}
#: How a smaller run is spoken of, by whether none, some or all of it holds.
_SMALLER: Final = (
    ("does not agree", Verdict.NOT_REPRODUCED),
    ("agrees in part", Verdict.PARTLY),
    ("agrees", Verdict.REPRODUCED),
)
_COMPUTED: Final = Origin("computed here", "", "", "cpu", "when shown", nadtools.__version__)


def evaluate(claim: Claim, *, results_dir: Where = None) -> Outcome:
    """Look at a claim with what is stored.

    Parameters
    ----------
    claim : Claim
    results_dir : path, optional
        See :func:`companion.experiments.results_folder`.

    Raises
    ------
    ValueError
        If a stored file is damaged, or holds something else than its name says.
    """
    stored = Stored(claim.selectors, results_dir)
    try:
        found = claim.function(stored, **claim.limits)
    except experiments.NotStoredError as error:
        return Outcome("not stored", Verdict.NOT_YET, command=error.command)
    except NotHereError as error:
        return Outcome(str(error), Verdict.NOT_HERE)
    origins = [_provenance(record, seeds) for record, seeds in stored.sources] or [_COMPUTED]
    origin = Origin(
        *("; ".join(dict.fromkeys(column)) for column in zip(*map(dataclasses.astuple, origins), strict=True))
    )
    smaller = [(record, parts) for record, _ in stored.sources if (parts := _shortfall(record, claim.scale))]
    if not smaller:
        return Outcome(found.text, found.verdict, origin)
    reasons = dict.fromkeys(part for _, parts in smaller for part in parts)
    agrees, smaller_verdict = _SMALLER[all(found.holds) + any(found.holds)]
    record = smaller[0][0]
    command = at_paper_scale(record["experiment"], record["selectors"])
    text = f"{found.text}; {agrees}, but {', '.join(reasons)}"
    return Outcome(text, Verdict.NOT_YET, origin, command, smaller_verdict)


def check_claims(claims: Iterable[Claim] | None = None, *, results_dir: Where = None) -> tuple[Checked, ...]:
    """Look at all claims, or at those that are given, and compare with what is recorded."""
    chosen = load_claims() if claims is None else claims
    return tuple(Checked(claim, evaluate(claim, results_dir=results_dir)) for claim in chosen)


def _shortfall(record: Mapping[str, Any], needed: str) -> list[str]:
    """In what a result falls short of the size that counts. Fewer directions and fewer seeds do count."""
    stored, selectors = record["parameters"], record["selectors"]
    if stored != paper_parameters(record["experiment"], selectors, record["scale"]):
        return ["stale: the code has other parameters now"]
    if needed == "laptop":
        return []
    paper = paper_parameters(record["experiment"], selectors)
    parts = []
    if (width := _width(stored)) < _width(paper):
        parts.append(f"width {width:g} instead of {_width(paper):g}")
    epochs, full = (parameters.get("config", {}).get("epochs", 0) for parameters in (stored, paper))
    if epochs < full:
        parts.append(f"epochs {epochs:g} instead of {full:g}")
    if stored.get("num_train", 0) < paper.get("num_train", 0):
        parts.append(f"{stored['num_train']:,} samples instead of {paper['num_train']:,}")
    if (data := selectors.get("data", "cifar10")) not in ("cifar10", "cifar10-jpeg"):
        parts.append(f"{_DATA[data]} instead of 50,000 photographs")
    return parts


def _width(parameters: Mapping[str, Any]) -> float:
    return float(parameters.get("build_options", {}).get("width", parameters.get("width", 1.0)))


def _provenance(record: Mapping[str, Any], seeds: Sequence[int]) -> Origin:
    parameters = record["parameters"]
    parts = [_DATA[record["selectors"]["data"]]] if "data" in record["selectors"] else []
    if "num_networks" in parameters:
        parts.append(f"{parameters['num_networks']} untrained networks")
    if "sigma" in parameters:
        samples = f", {parameters['num_train']:,} samples" if "num_train" in parameters else ""
        parts.append(f"D(v) with σ = {parameters['sigma']:g}{samples}")
    return Origin(
        data=" ⊕ ".join(parts),
        width=f"{_width(parameters):g}",
        seeds=", ".join(map(str, seeds)),
        device=device_of(record),
        date=record["date"][:10],
        version=str(record["versions"]["nadtools"]),
    )
