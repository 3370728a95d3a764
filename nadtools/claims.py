"""What both papers claim, and what the stored results say about it.

Each claim stands in ``claims.toml``, beside this file: in our words, with its place, what is expected, and the verdict
that was recorded when it was last looked at. It names one of the functions below, which reads stored results or
evaluates a formula. Nothing is trained and nothing is downloaded here. ``python -m nadtools claims`` compares what the
functions find with what is recorded.
"""

from __future__ import annotations

import dataclasses
import functools
import html
import itertools
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
import pandas as pd
import torch
from scipy.optimize import linprog
from torch import Tensor

import nadtools
from nadtools import architectures, deep_linear, experiments, interventions, pooling, published, storage
from nadtools.directions import fourier_atom, fourier_energy, random_basis
from nadtools.experiments.images import flipping_claims, poisoning_claims
from nadtools.experiments.pairs import concatenation_claims, pair_claims
from nadtools.nads import NADs, subspace_overlap

__all__ = [
    "CLAIMS_FILE",
    "Checked",
    "Claim",
    "Outcome",
    "Verdict",
    "check_claims",
    "evaluate",
    "load_claims",
    "record_verdicts",
    "summary",
    "to_html",
    "to_text",
]

Verdict = Literal[
    "reproduced", "partly", "not reproduced", "corrected", "not yet at paper scale", "not checked here"
]  # fmt: skip

#: The claims.
CLAIMS_FILE = Path(__file__).with_name("claims.toml")
PAPERS: Final = {
    "A": "Neural Anisotropy Directions",
    "B": "A neural anisotropic view of underspecification in deep learning",
}
_NOT_YET: Final = "not yet at paper scale"
_NOT_HERE: Final = "not checked here"
_NOT_STORED: Final = "not stored"
_ISOTROPIC = ("logreg", "mlp")
_CNNS = ("lenet", "vgg11", "resnet18", "densenet121")
_SCALES: tuple[experiments.Scale, ...] = ("paper", "laptop")
_NO_SOURCE = "–"
Where = str | os.PathLike[str] | None


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
        statements that :mod:`nadtools.experiments` evaluates is the one that stands in its table.
    function : str
        Of this module: it evaluates the claim.
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
    data: str = _NO_SOURCE
    width: str = _NO_SOURCE
    seeds: str = _NO_SOURCE
    device: str = _NO_SOURCE
    date: str = _NO_SOURCE
    version: str = _NO_SOURCE
    command: str = ""


@dataclasses.dataclass(frozen=True)
class Checked:
    """A claim beside its outcome."""

    claim: Claim
    outcome: Outcome

    @property
    def changed(self) -> bool:
        """Whether the verdict is another one than was recorded. What cannot be checked here has not changed."""
        return self.outcome.verdict not in (self.claim.verdict, _NOT_HERE)


def load_claims(path: str | os.PathLike[str] | None = None) -> tuple[Claim, ...]:
    """Read the claims of both papers, in their order, from ``claims.toml`` or another file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no TOML, an entry is missing, unknown or empty, an id stands twice, or a function, a verdict or a
        result is not known.
    """
    path = Path(CLAIMS_FILE if path is None else path)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("claim", [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is no TOML: {error}") from error
    claims = tuple(_claim(table) for table in tables)
    ids = [claim.id for claim in claims]
    if twice := {one for one in ids if ids.count(one) > 1}:
        raise ValueError(f"ids that stand twice: {', '.join(sorted(twice))}")
    return claims


def _claim(table: Mapping[str, Any]) -> Claim:
    name = table.get("id", "a claim without id")
    fields = {field.name: field for field in dataclasses.fields(Claim)}
    unknown = [key for key in table if key not in fields]
    needed = list(fields)[: list(fields).index("chapter")]  # the others may be left out
    missing = [key for key in needed if not table.get(key)]
    if unknown or missing:
        raise ValueError(f"{name}: unknown entries {unknown}, missing or empty entries {missing}")
    claim = Claim(**table)
    for what, got, known in (
        ("paper", claim.paper, tuple(PAPERS)),
        ("function", claim.function, tuple(_EVALUATORS)),
        ("verdict", claim.verdict, get_args(Verdict)[:-1]),
        ("scale", claim.scale, _SCALES),
    ):
        if got not in known:
            raise ValueError(f"{name}: unknown {what} {got!r}; known are {', '.join(map(repr, known))}")
    if claim.experiment:
        try:
            _paper_parameters(claim.experiment, claim.selectors)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{name}: no experiment {claim.experiment} with {dict(claim.selectors)}") from error
    return claim


def evaluate(claim: Claim, *, results_dir: Where = None) -> Outcome:
    """Look at a claim with what is stored.

    Parameters
    ----------
    claim : Claim
    results_dir : path, optional
        See :func:`nadtools.experiments.results_folder`.

    Raises
    ------
    ValueError
        If a stored file is damaged, or holds something else than its name says.
    """
    try:
        found = _EVALUATORS[claim.function](claim, results_dir)
    except FileNotFoundError as error:
        return Outcome(_NOT_STORED, _NOT_YET, command=str(error).partition("make it with: ")[2])
    except _NotHereError as error:
        return Outcome(str(error), _NOT_HERE)
    sources = [_provenance(record, seeds) for record, seeds in found.sources] or [_COMPUTED]
    joined = {
        name: "; ".join(dict.fromkeys(source[name] for source in sources))
        for name in ("data", "width", "seeds", "device", "date", "version")
    }
    smaller = {_command(record): parts for record, _ in found.sources if (parts := _shortfall(record, claim.scale))}
    if not smaller:
        return Outcome(found.text, _verdict(found), **joined)
    reasons = dict.fromkeys(part for parts in smaller.values() for part in parts)
    agrees = "agrees" if all(found.holds) else "agrees in part" if any(found.holds) else "does not agree"
    return Outcome(f"{found.text}; {agrees}, but {', '.join(reasons)}", _NOT_YET, **joined, command=next(iter(smaller)))


def check_claims(claims: Iterable[Claim] | None = None, *, results_dir: Where = None) -> tuple[Checked, ...]:
    """Look at all claims, or at those that are given, and compare with what is recorded."""
    chosen = load_claims() if claims is None else claims
    return tuple(Checked(claim, evaluate(claim, results_dir=results_dir)) for claim in chosen)


def record_verdicts(checked: Sequence[Checked], path: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Write the verdicts that changed into ``claims.toml`` or another file. Nothing but these words is touched.

    Returns
    -------
    tuple of str
        The ids of the claims whose verdict was rewritten.

    Raises
    ------
    OSError
        If the file cannot be read or written.
    """
    path = Path(CLAIMS_FILE if path is None else path)
    changed = {one.claim.id: one.outcome.verdict for one in checked if one.changed}
    lines, current, written = path.read_text(encoding="utf-8").splitlines(keepends=True), None, []
    for number, line in enumerate(lines):
        if line.startswith("[["):
            current = None
        elif match := re.match(r'id = "([^"]+)"', line):
            current = match[1]
        elif current in changed and line.startswith("verdict = "):
            lines[number] = re.sub(r'"[^"]*"', f'"{changed[current]}"', line, count=1)
            written.append(current)
    if written:
        storage.write_bytes(path, "".join(lines).encode())
    return tuple(written)


# ---------------------------------------------------------------------------------------------------------------------
# How outcomes are shown
# ---------------------------------------------------------------------------------------------------------------------

#: A sign for those who do not see colours, and a background on which white reads (a contrast of at least 4.5).
_SIGNS: Final[dict[str, tuple[str, str]]] = {
    "reproduced": ("✓", "#00704a"),
    "partly": ("◐", "#8a5a00"),
    "not reproduced": ("✗", "#b3261e"),
    "corrected": ("✎", "#0b5cad"),
    _NOT_YET: ("…", "#5f6368"),
    _NOT_HERE: ("–", "#5f6368"),
}


def summary(checked: Iterable[Checked]) -> pd.DataFrame:
    """Count the verdicts: a row for each, a column for each paper."""
    pairs = [(one.outcome.verdict, PAPERS[one.claim.paper]) for one in checked]
    index = pd.Index(get_args(Verdict), name="verdict")
    counts = {title: [pairs.count((verdict, title)) for verdict in index] for title in PAPERS.values()}
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
        if (origin := _origin(outcome)) != _NO_SOURCE:
            lines.append(origin)
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
    stored = [one for one in chosen if one.outcome.measured != _NOT_STORED]
    missing = [one for one in chosen if one.outcome.measured == _NOT_STORED]
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
        recorded = f" Recorded: {claim.verdict}." if outcome.verdict == _NOT_HERE else ""
        cells = {
            "Expected": html.escape(f"{claim.metric}: {claim.expected} ({claim.mark})"),
            "Measured": html.escape(f"{outcome.measured}{recorded}"),
            "From": html.escape(_origin(outcome)),
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


def _origin(outcome: Outcome) -> str:
    if outcome.data == _NO_SOURCE:
        return _NO_SOURCE
    parts = [outcome.data]
    if outcome.width != _NO_SOURCE:
        parts.append(f"width {outcome.width}")
    if outcome.seeds != _NO_SOURCE:
        parts.append(f"{'seeds' if ',' in outcome.seeds else 'seed'} {outcome.seeds}")
    return ", ".join([*parts, outcome.device, outcome.date, f"nadtools {outcome.version}"])


# ---------------------------------------------------------------------------------------------------------------------
# From what was found to a verdict
# ---------------------------------------------------------------------------------------------------------------------


class _NotHereError(Exception):
    """The authors' files are needed, and are not at hand."""


@dataclasses.dataclass(frozen=True)
class _Found:
    """What a function finds: in words, whether each part of the claim holds, and the records and seeds it read.

    ``corrected`` says of a formula whether it holds with the correction of the errata.
    """

    text: str
    holds: tuple[bool, ...]
    sources: tuple[tuple[Mapping[str, Any], tuple[int, ...]], ...] = ()
    corrected: bool | None = None


_Evaluator = Callable[[Claim, Where], _Found]
_EVALUATORS: Final[dict[str, _Evaluator]] = {}
_COMPUTED: Final = {
    "data": "computed here",
    "width": _NO_SOURCE,
    "seeds": _NO_SOURCE,
    "device": "cpu",
    "date": "when shown",
    "version": nadtools.__version__,
}


def _evaluator(function: _Evaluator) -> _Evaluator:
    _EVALUATORS[function.__name__.lstrip("_")] = function
    return function


def _verdict(found: _Found) -> Verdict:
    if all(found.holds):
        return "reproduced"
    if found.corrected:
        return "corrected"
    return "partly" if any(found.holds) else "not reproduced"


def _paper_parameters(experiment: str, selectors: Mapping[str, str], scale: str = "paper") -> dict[str, Any]:
    known = experiments.EXPERIMENTS[experiment]
    chosen = {"data": "cifar10", **selectors} if "data" in known.selectors else dict(selectors)
    if any(chosen[name] not in values for name, values in known.selectors.items()):
        raise KeyError(str(chosen))
    parameters: dict[str, Any] = json.loads(json.dumps(known.parameters(scale, **chosen)))
    return parameters


def _shortfall(record: Mapping[str, Any], needed: str) -> list[str]:
    """In what a result falls short of the size that counts. Fewer directions and fewer seeds do count."""
    stored, selectors = record["parameters"], record["selectors"]
    if stored != _paper_parameters(record["experiment"], selectors, record["scale"]):
        return ["stale: the code has other parameters now"]
    if needed == "laptop":
        return []
    paper = _paper_parameters(record["experiment"], selectors)
    parts = []
    for name, width in (("width", _width(stored)), ("epochs", stored.get("config", {}).get("epochs"))):
        full = _width(paper) if name == "width" else paper.get("config", {}).get("epochs")
        if width is not None and width < full:
            parts.append(f"{name} {width:g} instead of {full:g}")
    if stored.get("num_train", 0) < paper.get("num_train", 0):
        parts.append(f"{stored['num_train']:,} samples instead of {paper['num_train']:,}")
    if (data := selectors.get("data", "cifar10")) not in ("cifar10", "cifar10-jpeg"):
        parts.append(f"{_DATA[data]} instead of 50,000 photographs")
    return parts


_DATA: Final = {
    "cifar10": "CIFAR-10",
    "cifar10-jpeg": "CIFAR-10 as JPEG",
    "cifar10-subset": "5,000 images of CIFAR-10",
    "digits": "scikit-learn's digits",
}


def _width(parameters: Mapping[str, Any]) -> float:
    return float(parameters.get("build_options", {}).get("width", parameters.get("width", 1.0)))


def _provenance(record: Mapping[str, Any], seeds: Sequence[int]) -> dict[str, str]:
    parameters = record["parameters"]
    parts = [_DATA[record["selectors"]["data"]]] if "data" in record["selectors"] else []
    if "num_networks" in parameters:
        parts.append(f"{parameters['num_networks']} untrained networks")
    if "sigma" in parameters:
        samples = f", {parameters['num_train']:,} samples" if "num_train" in parameters else ""
        parts.append(f"D(v) with σ = {parameters['sigma']:g}{samples}")
    return {
        "data": " ⊕ ".join(parts),
        "width": f"{_width(parameters):g}",
        "seeds": ", ".join(map(str, seeds)),
        "device": str(record["device"]),
        "date": record["date"][:10],
        "version": str(record["versions"]["nadtools"]),
    }


def _command(record: Mapping[str, Any]) -> str:
    """What makes the same result at the paper's size."""
    experiment = experiments.EXPERIMENTS[record["experiment"]]
    chosen = {**record["selectors"], "data": "cifar10"}
    options = [f"--{name.replace('_', '-')} {chosen[name]}" for name in experiment.selectors]
    return " ".join(["python -m nadtools run", experiment.name, *options, "--scale paper"])


def _table(name: str, where: Where, **selectors: Any) -> pd.DataFrame:
    """A stored table, of the largest scale that there is."""
    for scale in _SCALES:
        if experiments.result_path(name, scale=scale, results_dir=where, **selectors).exists():
            return experiments.load_table(name, scale=scale, results_dir=where, **selectors)
    return experiments.load_table(name, scale="paper", results_dir=where, **selectors)  # says how it is made


def _photographs(name: str, where: Where, architecture: str) -> pd.DataFrame:
    """A stored table of trainings on images, with the best data that there are."""
    try:
        if name == "B3":
            return experiments.load_transition(architecture, results_dir=where)
        return experiments.load_largest(name, architecture, results_dir=where)
    except FileNotFoundError:
        return _table(name, where, architecture=architecture, data="cifar10")


def _waves(name: str, where: Where, architecture: str) -> pd.DataFrame:
    return _table(name, where, architecture=architecture).set_index(["frequency_i", "frequency_j"])


def _mean_waves(table: pd.DataFrame, column: str = "test_accuracy") -> pd.Series:
    return table.groupby(level=[0, 1])[column].mean()


def _along_nads(where: Where, architecture: str, nads: str = "ours") -> tuple[pd.Series, pd.DataFrame]:
    table = _table("A6", where, architecture=architecture, nads=nads)
    return table.groupby("index")["test_accuracy"].mean(), table


@functools.lru_cache(maxsize=8)
def _stored_nads(folder: str, architecture: str, estimator: str) -> NADs:
    return experiments.load_atlas(architecture, estimator, results_dir=folder)


def _atlas(where: Where, architecture: str, estimator: str = "secant") -> NADs:
    return _stored_nads(str(experiments.results_folder(where)), architecture, estimator)


def _sources(*read: pd.DataFrame | NADs) -> tuple[tuple[Mapping[str, Any], tuple[int, ...]], ...]:
    """Records and seeds of what was read."""
    sources: list[tuple[Mapping[str, Any], tuple[int, ...]]] = []
    for one in read:
        if isinstance(one, NADs):
            record = one.metadata["record"]
            sources.append((record, (record["seed"],)))
        else:
            record = {str(key): value for key, value in one.attrs.items()}
            sources.append((record, tuple(sorted(int(seed) for seed in one["seed"].dropna().unique()))))
    return tuple(sources)


def _at_hand(name: str) -> None:
    """Pass if the authors' file can be read without a network."""
    try:
        here = published.available()
    except (FileNotFoundError, ImportError):
        here = ()
    if name not in here:
        raise _NotHereError("takes the authors' files; set NADTOOLS_DATA to a folder with them")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _points(difference: float) -> str:
    return f"{100 * difference:.1f} points"


def _rank_correlation(a: Any, b: Any) -> float:
    first, second = (pd.Series(np.asarray(values, float)) for values in (a, b))
    if min(first.nunique(), second.nunique()) < 2:
        return math.nan  # without any variation there is none
    return float(first.corr(second, "spearman"))


# ---------------------------------------------------------------------------------------------------------------------
# Waves: figures 1 to 3
# ---------------------------------------------------------------------------------------------------------------------


@_evaluator
def _learned_everywhere(claim: Claim, where: Where) -> _Found:
    table = _waves("A1", where, **claim.selectors)
    least = float(_mean_waves(table).min())
    text = f"at least {_percent(least)} on {len(_mean_waves(table))} waves"
    return _Found(text, (100 * least >= claim.limits["least"],), _sources(table))


@_evaluator
def _depends_on_direction(claim: Claim, where: Where) -> _Found:
    table = _waves("A1", where, **claim.selectors)
    accuracy, limits = _mean_waves(table), claim.limits
    holds = (100 * accuracy.max() >= limits["best"] and 100 * accuracy.min() <= limits["worst"],)
    return _Found(f"{_percent(accuracy.min())} to {_percent(accuracy.max())}", holds, _sources(table))


@_evaluator
def _learns_few(claim: Claim, where: Where) -> _Found:
    table = _waves("A1", where, **claim.selectors)
    share = float((100 * _mean_waves(table) >= claim.limits["learned"]).mean())
    return _Found(f"{_percent(share)} of the waves", (100 * share <= claim.limits["share"],), _sources(table))


@_evaluator
def _fits_training_set(claim: Claim, where: Where) -> _Found:
    table = _waves("A1", where, **claim.selectors)
    least = float(table["train_accuracy"].min())
    return _Found(f"at least {_percent(least)}", (100 * least >= claim.limits["least"],), _sources(table))


@_evaluator
def _does_not_fit(claim: Claim, where: Where) -> _Found:
    table = _waves("A1", where, **claim.selectors)
    least = float(table["train_accuracy"].min())
    return _Found(f"down to {_percent(least)}", (100 * least < claim.limits["least"],), _sources(table))


@_evaluator
def _memorises(claim: Claim, where: Where) -> _Found:
    table, limits = _waves("A1", where, **claim.selectors), claim.limits
    count = int(((100 * table.train_accuracy >= limits["train"]) & (100 * table.test_accuracy <= limits["test"])).sum())
    return _Found(f"on {count} of {len(table)} waves", (count > 0,), _sources(table))


@_evaluator
def _not_monotone_in_frequency(claim: Claim, where: Where) -> _Found:
    table = _waves("A1", where, **claim.selectors)
    accuracy = _mean_waves(table)
    order = np.argsort([math.hypot(i, j) for i, j in accuracy.index], kind="stable")
    values = accuracy.to_numpy()[order]
    rise = float((values - np.minimum.accumulate(values)).max())
    text = f"up to {_points(rise)} better than on a smoother wave"
    return _Found(text, (100 * rise >= claim.limits["points"],), _sources(table))


@_evaluator
def _patterns_differ(claim: Claim, where: Where) -> _Found:
    tables = [_waves("A1", where, architecture=name) for name in ("lenet", claim.selectors["architecture"])]
    both = pd.concat([_mean_waves(table) for table in tables], axis=1).dropna()
    rho = _rank_correlation(both.iloc[:, 0], both.iloc[:, 1])
    return _Found(f"{rho:.2f} on {len(both)} waves", (rho <= claim.limits["most"],), _sources(*tables))


@_evaluator
def _map_agrees(claim: Claim, where: Where) -> _Found:
    architecture = claim.selectors["architecture"]
    table = _waves("A1", where, **claim.selectors)
    _at_hand("fourier")
    rows = published.load_accuracies("fourier")
    theirs = rows[rows["architecture"] == architecture].set_index(["frequency_i", "frequency_j"]).accuracy
    ours = _mean_waves(table)
    both = pd.concat([ours, theirs.reindex(ours.index)], axis=1).dropna()
    rho = _rank_correlation(both.iloc[:, 0], both.iloc[:, 1])
    mirrored = pd.Series([theirs.get((i, -j), math.nan) for i, j in theirs.index], theirs.index)
    ceiling = float(theirs.corr(mirrored, "spearman"))
    text = f"rank correlation {rho:.2f}, ceiling {ceiling:.2f}"
    return _Found(text, (rho >= ceiling - claim.limits["below"],), _sources(table))


@_evaluator
def _speed_depends(claim: Claim, where: Where) -> _Found:
    table = _waves("A2", where, **claim.selectors)
    steps = table["steps"].fillna(math.inf)
    reached = steps[np.isfinite(steps)]
    late = int(np.isinf(steps).sum())
    if not len(reached):
        return _Found(f"none of {late} waves gets there", (False,), _sources(table))
    ratio = math.inf if late else float(reached.max() / reached.min())
    text = f"{reached.min():.0f} to {reached.max():.0f} steps; {late} of {len(steps)} waves do not get there"
    return _Found(text, (ratio >= claim.limits["ratio"],), _sources(table))


@_evaluator
def _speed_follows_accuracy(claim: Claim, where: Where) -> _Found:
    speed, accuracy = (_waves(name, where, **claim.selectors) for name in ("A2", "A1"))
    steps = _mean_waves(speed.fillna({"steps": math.inf}), "steps")
    both = pd.concat([steps, _mean_waves(accuracy).reindex(steps.index)], axis=1).dropna()
    rho = _rank_correlation(both["steps"], both["test_accuracy"])
    return _Found(f"{rho:.2f} on {len(both)} waves", (rho <= claim.limits["most"],), _sources(speed, accuracy))


def _with_and_without_pooling(claim: Claim, where: Where) -> tuple[pd.Series, pd.Series, Any]:
    without, pooled = (_waves(name, where, **claim.selectors) for name in ("A3", "A1"))
    accuracy = _mean_waves(without)
    return _mean_waves(pooled).reindex(accuracy.index), accuracy, _sources(without, pooled)


@_evaluator
def _equalised_without_pooling(claim: Claim, where: Where) -> _Found:
    pooled, accuracy, sources = _with_and_without_pooling(claim, where)
    is_smaller = bool(accuracy.std() <= claim.limits["ratio"] * pooled.std())
    off = accuracy.index[100 * (accuracy - accuracy.median()).abs() > claim.limits["points"]]
    text = f"{_points(pooled.std())} with pooling, {_points(accuracy.std())} without"
    if len(off):
        text += f"; not equal at {', '.join(f'({i:.0f}, {j:.0f})' for i, j in off)}"
    return _Found(text, (is_smaller, not len(off)), sources)


@_evaluator
def _better_without_pooling(claim: Claim, where: Where) -> _Found:
    pooled, accuracy, sources = _with_and_without_pooling(claim, where)
    gain = float(accuracy.mean() - pooled.mean())
    text = f"{_percent(pooled.mean())} with pooling, {_percent(accuracy.mean())} without"
    return _Found(text, (100 * gain >= claim.limits["points"],), sources)


@_evaluator
def _larger_without_pooling(claim: Claim, where: Where) -> _Found:
    counts = []
    for is_pooled in (True, False):
        network = architectures.build("lenet", 1, 2, image_size=(32, 32), pooling=is_pooled, seed=0)
        counts.append(sum(weights.numel() for weights in network.parameters()))
    return _Found(f"{counts[0]:,} weights with pooling, {counts[1]:,} without", (counts[1] > counts[0],))


@_evaluator
def _random_directions_alike(claim: Claim, where: Where) -> _Found:
    table = _table("random", where, **claim.selectors)
    spread = float(table.test_accuracy.std())
    text = f"{_percent(table.test_accuracy.mean())} on average, standard deviation {_points(spread)}"
    return _Found(text, (100 * spread <= claim.limits["points"],), _sources(table))


# ---------------------------------------------------------------------------------------------------------------------
# Formulas: sections 2.1, 2.2 and 3
# ---------------------------------------------------------------------------------------------------------------------

_STRIDE, _SIZE = 4, 128  # as in figure 4
_RESPONSE = (1.0, 0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1)


def _close(a: Tensor, b: Tensor) -> bool:
    return bool(torch.allclose(a.double(), b.double(), rtol=1e-5, atol=1e-9))


def _deviation(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())


def _formula(exact: Tensor, printed: Tensor, corrected: Tensor, what: str) -> _Found:
    """A printed formula and its correction against an independent computation."""
    ratio = float((printed / exact).flatten()[0])
    text = f"{what} is {ratio:.3g} times the computed one as printed"
    text += ", and equal to it as corrected" if _close(corrected, exact) else ""
    return _Found(text, (_close(printed, exact),), corrected=_close(corrected, exact))


def _wave(frequency: int, phase: float) -> Tensor:
    angle = 2 * math.pi * frequency * torch.arange(_SIZE, dtype=torch.float64) / _SIZE - phase
    return angle.cos() / angle.cos().norm()


@_evaluator
def _aliasing(claim: Claim, where: Where) -> _Found:
    x = torch.randn(_SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pooled = torch.fft.fft(pooling.pooling_matrix("average", _STRIDE, _SIZE) @ x, norm="ortho")
    filtered = pooling.spectral_response("average", _SIZE, _STRIDE) * torch.fft.fft(x, norm="ortho")
    folded = filtered.unflatten(0, (_STRIDE, -1)).sum(0) / math.sqrt(_STRIDE)
    error = _deviation(pooled, folded)
    return _Found(f"largest deviation {error:.0e}", (error <= claim.limits["deviation"],))


@_evaluator
def _pooling_loses_unequally(claim: Claim, where: Where) -> _Found:
    accuracy = pooling.fourier_accuracies("average", _STRIDE, 1.0, 3.0, size=_SIZE)
    spread = float(accuracy.max() - accuracy.min())
    text = f"{_percent(float(accuracy.min()))} to {_percent(float(accuracy.max()))} for ε = 1, σ = 3"
    return _Found(text, (100 * spread >= claim.limits["points"],))


def _theorem_1(frequencies: Sequence[int], phase: float) -> tuple[Tensor, Tensor, Tensor]:
    """By the dense formula, as printed, and without the factor √(S/2)."""
    matrix = pooling.pooling_matrix("average", _STRIDE, _SIZE)
    response = pooling.spectral_response("average", _SIZE, _STRIDE)
    exact = torch.stack([pooling.bayes_accuracy(_wave(f, phase), matrix, 1.0, 1.0) for f in frequencies])
    printed, corrected = (
        pooling.theorem1_accuracy(np.array(frequencies), response, _STRIDE, epsilon, 1.0)
        for epsilon in (1.0, math.sqrt(2 / _STRIDE))
    )
    return exact, printed, corrected


@_evaluator
def _theorem_1_factor(claim: Claim, where: Where) -> _Found:
    generic = [f for f in range(1, _SIZE // 2) if 2 * f % (_SIZE // _STRIDE)]
    exact, printed, corrected = _theorem_1(generic, 0.3)
    error = _deviation(corrected, exact)
    text = f"off by up to {_points(_deviation(printed, exact))}; without the factor √(S/2) by {error:.0e}"
    return _Found(text, (_close(printed, exact),), corrected=error < 1e-9)


@_evaluator
def _theorem_1_conjugate(claim: Claim, where: Where) -> _Found:
    phases, parts = (0.0, math.pi / 2), []
    for phase in phases:
        exact, printed, _ = _theorem_1([16], phase)
        ours = pooling.fourier_accuracies("average", _STRIDE, 1.0, 1.0, size=_SIZE, phase=phase)[16:17]
        parts.append((exact, printed, ours))
    exact, printed, ours = (torch.cat(values) for values in zip(*parts, strict=True))
    text = f"cosine {exact[0]:.3f}, sine {exact[1]:.3f}, printed {printed[0]:.3f} for both"
    return _Found(text, (_close(printed, exact),), corrected=_close(ours, exact))


@_evaluator
def _least_loss_does_not_depend(claim: Claim, where: Where) -> _Found:
    gain = torch.logspace(-2, 0, 9, dtype=torch.float64)
    epsilon, sigma = 1.0, 3.0
    best = epsilon / (epsilon**2 + sigma**2)
    losses = torch.stack([deep_linear.two_weight_loss(best, 1 / m, m, epsilon, sigma) for m in gain.tolist()])
    spread = float(losses.max() - losses.min())
    text = f"least loss {float(losses[0]):.3f}; it varies by {spread:.0e} over responses from 0.01 to 1"
    return _Found(text, (spread <= claim.limits["deviation"],))


def _curvature(parameter: str, epsilon: float = 1.0, sigma: float = 3.0) -> Tensor:
    """Mean curvature along each weight, by automatic differentiation.

    The curvature depends on the squares of data and weights alone. With weights ±1, and with the roots of the data's
    second moments for x, a single evaluation is the mean.
    """
    model = deep_linear.DeepLinearModel(_RESPONSE, 2, weights="rademacher", seed=0).double()
    moments = torch.full((len(_RESPONSE),), sigma**2, dtype=torch.float64)
    moments[2] += epsilon**2
    weights = dict(model.named_parameters())
    curvatures = []
    for x in torch.diag(moments.sqrt()):  # one entry at a time: mixed terms average out
        slope = torch.autograd.grad(model(x[None]).sum(), weights[parameter])[0]
        curvatures.append(2 * slope.square())
    return torch.stack(curvatures).sum(0)


@_evaluator
def _lemma_1(claim: Claim, where: Where) -> _Found:
    printed, corrected = (
        deep_linear.expected_hessian(2, _RESPONSE, 2, as_printed=as_printed) for as_printed in (True, False)
    )
    return _formula(_curvature("phi"), printed, corrected, "for S = 2 the curvature")


@_evaluator
def _lemma_1_theta(claim: Claim, where: Where) -> _Found:
    computed, formula = _curvature("theta"), deep_linear.expected_hessian_theta(2, _RESPONSE, 2)
    text = f"signal and noise, summed over each bin; largest deviation {_deviation(computed, formula):.0e}"
    return _Found(text, (_close(computed, formula),))


@_evaluator
def _zeta_ranks(claim: Claim, where: Where) -> _Found:
    ratio, steps = (
        function(_RESPONSE, 1.0, 3.0) for function in (deep_linear.curvature_ratio, deep_linear.condition_number)
    )
    order = ratio.argsort(descending=True)
    holds = bool((steps[order].diff() >= 0).all())
    text = f"condition number {float(steps.min()):.3g} to {float(steps.max()):.3g}, in the order of ζ"
    return _Found(text if holds else "another order", (holds,))


@_evaluator
def _zeta_size(claim: Claim, where: Where) -> _Found:
    loud = deep_linear.condition_number([1.0, 1.0], 1.0, 3.0)[1]  # ζ = 1/9 by much noise
    weak = deep_linear.condition_number([1.0, 1 / 3], 1.0, 1.0)[1]  # ζ = 1/9 by a weak response
    holds = _close(loud, weak)
    corrected = float(loud) < float(weak)
    text = f"at ζ = 1/9 the condition number is {float(loud):.3g} for σ = 3 and {float(weak):.3g} for σ = 1"
    return _Found(text, (holds,), corrected=corrected)


@_evaluator
def _slower_for_small_zeta(claim: Claim, where: Where) -> _Found:
    response = pooling.spectral_response("gaussian", _SIZE, _STRIDE).abs()[: _SIZE // 2]
    curvature = deep_linear.expected_hessian(0, response, 1, epsilon=0.0, sigma=1.0)
    steps = deep_linear.steps_to_fraction(curvature, 1 / float(curvature.max()), 0.1)
    holds = bool((steps.diff() >= 0).all()) and float(steps[-1]) > float(steps[0])
    text = f"{float(steps[0]):.0f} step at ℓ = 0, {float(steps[16]):.0f} at ℓ = 16, {float(steps[32]):.0f} at ℓ = 32"
    return _Found(text, (holds,))


@_evaluator
def _lemma_2(claim: Claim, where: Where) -> _Found:
    network = deep_linear.DeepLinearModel([1.0] * 8, 4, weights="rademacher", seed=0)
    x = torch.zeros(1, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    parts = torch.autograd.grad(gradient[0, 2].square() / 4, list(network.parameters()))
    left = float(torch.cat(parts).norm())
    moments = (function([1.0] * 8, 4)[2].sqrt() for function in (_gradients, deep_linear.mixed_second_moment))
    rms, mixed = moments
    printed, bound = (
        float(deep_linear.dipole_gradient_bound(0.5, 0.0, rms, mixed, mixed, as_printed=p)) for p in (True, False)
    )
    text = f"left side {left:.4f}; the bound is {printed:.4f} as printed, {bound:.4f} with α for α²"
    return _Found(text, (left <= printed,), corrected=left <= bound * (1 + 1e-6))


_gradients = deep_linear.gradient_covariance


def _squares(mixed: bool) -> Tensor:
    """Diagonal of the second moment of input gradients, or of mixed derivatives, by automatic differentiation."""
    model = deep_linear.DeepLinearModel(_RESPONSE, 2, weights="rademacher", seed=0).double()
    x = torch.zeros(1, len(_RESPONSE), dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    if not mixed:
        return gradient[0].detach().square()
    rows = [torch.autograd.grad(entry, list(model.parameters()), retain_graph=True) for entry in gradient[0]]
    return torch.stack([torch.cat(row).square().sum() for row in rows])


@_evaluator
def _equation_4(claim: Claim, where: Where) -> _Found:
    printed, corrected = (_gradients(_RESPONSE, 2, as_printed=as_printed) for as_printed in (True, False))
    return _formula(_squares(mixed=False), printed, corrected, "for S = 2 the covariance")


@_evaluator
def _equation_5(claim: Claim, where: Where) -> _Found:
    printed, corrected = (
        deep_linear.mixed_second_moment(_RESPONSE, 2, as_printed=as_printed) for as_printed in (True, False)
    )
    return _formula(_squares(mixed=True), printed, corrected, "for S = 2 the moment")


@_evaluator
def _same_basis(claim: Claim, where: Where) -> _Found:
    orders = [_squares(mixed).argsort(descending=True) for mixed in (False, True)]
    response = torch.tensor(_RESPONSE).square().argsort(descending=True)
    holds = all(bool((order == response).all()) for order in orders)
    return _Found("both in the order of m²" if holds else "in different orders", (holds,))


@_evaluator
def _markov(claim: Claim, where: Where) -> _Found:
    threshold = torch.logspace(-3, 3, 121, dtype=torch.float64)
    ratios = {
        weights: float((deep_linear.dipole_probability(threshold, 1.0, weights=weights) * threshold).max())
        for weights in ("normal", "rademacher")
    }
    text = (
        f"probability over bound: at most {ratios['normal']:.2f} for normal weights, {ratios['rademacher']:.2f} for ±1"
    )
    return _Found(text, (max(ratios.values()) <= 1 + 1e-9,))


@_evaluator
def _separable_by_carriers(claim: Claim, where: Where) -> _Found:
    """Two classes on different coefficients lie on crossing lines, unless all the coefficients are replaced."""
    source = torch.Generator().manual_seed(0)
    x, y = 0.15 * torch.randn(1000, 3, 8, 8, generator=source), torch.arange(1000) % 10
    basis = random_basis((8, 8), seed=0)
    counts = []
    for replace in get_args(interventions.Replace):
        written = interventions.poison(x, y, basis, 0, 0.05, replace=replace)
        code = (written.double().flatten(2) @ basis[:2].double().flatten(1).T).flatten(1).numpy()
        classes = [code[y.numpy() == label] / 0.15 for label in range(10)]
        counts.append(sum(_hyperplane(a, b) for a, b in itertools.combinations(classes, 2)))
    text = f"{counts[0]} of 45 pairs of classes, on random images; {counts[1]} if all coefficients are replaced"
    return _Found(text, (counts[0] == 45,), corrected=counts[1] == 45)


def _hyperplane(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether one lies strictly between two sets of points."""
    sides = np.vstack([-np.c_[a, np.ones(len(a))], np.c_[b, np.ones(len(b))]])
    return bool(linprog(np.zeros(sides.shape[1]), sides, -np.ones(len(sides)), bounds=(None, None)).success)


@_evaluator
def _flip_is_a_rotation(claim: Claim, where: Where) -> _Found:
    basis = random_basis((8, 8), seed=0, dtype=torch.float64)
    matrix = interventions.flip(torch.eye(64, dtype=torch.float64).view(64, 1, 8, 8), basis).flatten(1)
    error = _deviation(matrix @ matrix.T, torch.eye(64, dtype=torch.float64))
    sign = float(torch.linalg.det(matrix))
    text = f"orthogonal up to {error:.0e}, determinant {sign:.3f}"
    return _Found(text, (error <= claim.limits["deviation"] and abs(sign - 1) <= claim.limits["deviation"],))


# ---------------------------------------------------------------------------------------------------------------------
# NADs: figures 5 and 6
# ---------------------------------------------------------------------------------------------------------------------


@_evaluator
def _signatures(claim: Claim, where: Where) -> _Found:
    nads = {name: _atlas(where, name) for name in _CNNS}
    others = max(subspace_overlap(nads[a].vectors, nads[b].vectors, 10) for a, b in itertools.combinations(_CNNS, 2))
    own = min(float(one.split_half_overlap[9]) for one in nads.values())
    text = f"at most {others:.2f} between two architectures, at least {own:.2f} between halves of one"
    holds = others <= claim.limits["most"] and own > others
    return _Found(text, (holds,), _sources(*nads.values()))


@_evaluator
def _support_is_easy(claim: Claim, where: Where) -> _Found:
    nads, table = _atlas(where, **claim.selectors), _waves("A1", where, **claim.selectors)
    accuracy = _mean_waves(table)
    both = {}
    for (i, j), value in zip(accuracy.index, accuracy, strict=True):
        for sign in (1, -1):
            both[sign * int(i) % 32, sign * int(j) % 32] = value
    places = [((i + 16) % 32, (j + 16) % 32) for i, j in both]
    energy = fourier_energy(nads.vectors[:3]).double()
    weights = torch.stack([energy[:, i, j] for i, j in places], 1)
    values = torch.tensor(list(both.values()), dtype=torch.float64)
    weighted = float(((weights @ values) / weights.sum(1)).min())
    text = f"at least {_percent(weighted)} where they have their energy, {_percent(float(values.mean()))} on the grid"
    holds = 100 * (weighted - float(values.mean())) >= claim.limits["points"]
    return _Found(text, (holds,), _sources(nads, table))


@_evaluator
def _combs(claim: Claim, where: Where) -> _Found:
    nads = _atlas(where, **claim.selectors)
    energy = fourier_energy(nads.vectors[:10]).double()
    number = float((1 / energy.square().sum((1, 2))).mean())
    axis = torch.arange(-16, 16) % 4 == 0
    share = float(energy[:, axis][:, :, axis].sum((1, 2)).mean())
    text = f"{number:.0f} frequencies on average; {_percent(share)} of the energy at multiples of four cycles"
    limits = claim.limits
    return _Found(text, (number >= limits["number"] and 100 * share >= limits["share"],), _sources(nads))


@_evaluator
def _no_order_of_frequencies(claim: Claim, where: Where) -> _Found:
    nads = _atlas(where, **claim.selectors)
    axis = torch.arange(-16.0, 16.0, dtype=torch.float64)
    radius = torch.hypot(axis[:, None], axis[None, :])
    frequency = (fourier_energy(nads.vectors[:200]).double() * radius).sum((1, 2))
    rho = _rank_correlation(frequency, range(200))
    return _Found(f"rank correlation {rho:.2f}", (rho <= claim.limits["most"],), _sources(nads))


@_evaluator
def _meets_published_nads(claim: Claim, where: Where) -> _Found:
    nads = _atlas(where, **claim.selectors)
    _at_hand(claim.selectors["architecture"])
    theirs = published.load_nads(claim.selectors["architecture"])
    overlap = subspace_overlap(nads.vectors, theirs.vectors, 10)
    text = f"overlap {overlap:.2f}, by chance 0.01"
    return _Found(text, (overlap >= claim.limits["least"],), _sources(nads))


@_evaluator
def _not_stored(claim: Claim, where: Where) -> _Found:
    raise FileNotFoundError('make it with: nadtools.estimate_nads(architecture, num_networks, estimator="mixed")')


@_evaluator
def _falls_along_nads(claim: Claim, where: Where) -> _Found:
    mean, table = _along_nads(where, **claim.selectors)
    rho, rise = _rank_correlation(mean.index, mean), float(mean.diff().max())
    text = f"rank correlation {rho:.2f}; largest rise from one index to the next {_points(rise)}"
    holds = (rho <= claim.limits["correlation"], 100 * rise <= claim.limits["points"])
    return _Found(text, holds, _sources(table))


@_evaluator
def _meets_published_points(claim: Claim, where: Where) -> _Found:
    architecture = claim.selectors["architecture"]
    mean, table = _along_nads(where, **claim.selectors)
    _at_hand("nads")
    rows = published.load_accuracies("nads")
    theirs = rows[rows["architecture"] == architecture].set_index("index").accuracy
    deviation = (mean - theirs).abs().dropna()
    text = f"{_points(deviation.mean())} on average over {len(deviation)} indices, {_points(deviation.max())} at most"
    return _Found(text, (100 * deviation.mean() <= claim.limits["points"],), _sources(table))


@_evaluator
def _nads_say_all(claim: Claim, where: Where) -> _Found:
    (ours, table), (theirs, other) = (_along_nads(where, "lenet", nads) for nads in ("ours", "published"))
    deviation = (ours - theirs).abs().dropna()
    text = f"{_points(deviation.mean())} on average, {_points(deviation.max())} at NAD {deviation.idxmax():.0f}"
    limits = claim.limits
    holds = (100 * deviation.mean() <= limits["mean"], 100 * deviation.max() <= limits["most"])
    return _Found(text, holds, _sources(table, other))


def _effective_number(nads: NADs) -> float:
    return float(nads.eigenvalues.sum() ** 2 / nads.eigenvalues.square().sum())


@_evaluator
def _fastest_decay(claim: Claim, where: Where) -> _Found:
    nads = {name: _atlas(where, name) for name in _CNNS}
    numbers = {name: _effective_number(one) for name, one in nads.items()}
    ranked = sorted(numbers, key=lambda name: numbers[name])
    text = "effective numbers: " + ", ".join(f"{name} {numbers[name]:.1f}" for name in ranked)
    return _Found(text, (set(ranked[:2]) == {"resnet18", "densenet121"},), _sources(*nads.values()))


@_evaluator
def _drop_follows_decay(claim: Claim, where: Where) -> _Found:
    curves = {name: _along_nads(where, name) for name in _CNNS}
    nads = {name: _atlas(where, name) for name in _CNNS}
    learned = {
        name: float(mean.index[100 * mean >= claim.limits["learned"]].max()) for name, (mean, _) in curves.items()
    }
    rho = _rank_correlation([_effective_number(nads[name]) for name in _CNNS], [learned[name] for name in _CNNS])
    text = "last NAD learned: " + ", ".join(f"{name} {learned[name]:.0f}" for name in _CNNS) + f"; {rho:.2f}"
    return _Found(text, (rho >= claim.limits["least"],), _sources(*(table for _, table in curves.values())))


@_evaluator
def _strongest_bias(claim: Claim, where: Where) -> _Found:
    curves = {name: _along_nads(where, name) for name in _CNNS}
    common = pd.concat({name: mean for name, (mean, _) in curves.items()}, axis=1).dropna().mean()
    text = "mean accuracy: " + ", ".join(f"{name} {_percent(common[name])}" for name in _CNNS)
    holds = common[["resnet18", "densenet121"]].max() < common[["lenet", "vgg11"]].min()
    return _Found(text, (bool(holds),), _sources(*(table for _, table in curves.values())))


@_evaluator
def _alignment_ranks(claim: Claim, where: Where) -> _Found:
    """Rank correlation of α(v) with the accuracy over Fourier atoms."""
    table, limits = _waves("A1", where, architecture=claim.selectors["architecture"]), claim.limits
    nads = _atlas(where, **claim.selectors)
    accuracy = _mean_waves(table)
    own_mirror = [i % 16 == 0 and j % 16 == 0 for i, j in accuracy.index]
    atoms = torch.stack(
        [
            fourier_atom((32, 32), (int(i), int(j)), 0.0 if mirror else math.pi / 2)
            for (i, j), mirror in zip(accuracy.index, own_mirror, strict=True)
        ]
    )
    rho = _rank_correlation(nads.alignments(atoms), accuracy)
    return _Found(f"{rho:.2f}", (rho >= limits["clear"], rho >= limits["monotone"]), _sources(table, nads))


@_evaluator
def _only_first_nads(claim: Claim, where: Where) -> _Found:
    mean, table = _along_nads(where, **claim.selectors)
    first, last = float(mean.iloc[0]), float(mean.iloc[-1])
    text = f"{_percent(first)} at NAD {mean.index[0]:.0f}, {_percent(last)} at NAD {mean.index[-1]:.0f}"
    holds = (100 * first >= claim.limits["first"], 100 * last <= claim.limits["last"])
    return _Found(text, holds, _sources(table))


@_evaluator
def _learned_along_nads(claim: Claim, where: Where) -> _Found:
    mean, table = _along_nads(where, **claim.selectors)
    text = f"at least {_percent(mean.min())} on {len(mean)} NADs"
    return _Found(text, (100 * mean.min() >= claim.limits["least"],), _sources(table))


# ---------------------------------------------------------------------------------------------------------------------
# Photographs and pairs: figures 7 and 8, and the other paper
# ---------------------------------------------------------------------------------------------------------------------


def _row(claim: Claim, rows: pd.DataFrame) -> tuple[str, bool]:
    """The row of an experiment's own table of claims whose words are the tolerance."""
    row = rows[rows["claim"] == claim.tolerance]
    if len(row) != 1:
        raise ValueError(f"{claim.id}: no row {claim.tolerance!r}; there are {', '.join(map(repr, rows['claim']))}")
    return str(row["measured"].iloc[0]), row["verdict"].iloc[0] == "holds"


@_evaluator
def _poisoning(claim: Claim, where: Where) -> _Found:
    table = _photographs("A7", where, **claim.selectors)
    text, holds = _row(claim, poisoning_claims(table))
    return _Found(text, (holds,), _sources(table))


@_evaluator
def _no_rise_without_nads(claim: Claim, where: Where) -> _Found:
    table = _photographs("A7", where, **claim.selectors)
    curve = table[table["replace"] == "own"].groupby("index")["test_accuracy"].mean()
    gain = float(curve.iloc[-1] - curve.iloc[0])
    text = f"{_percent(curve.iloc[0])} at the first, {_percent(curve.iloc[-1])} at the last"
    return _Found(text, (100 * gain <= claim.limits["points"],), _sources(table))


@_evaluator
def _order_at_every_size(claim: Claim, where: Where) -> _Found:
    table = _photographs("A7map", where, **claim.selectors)
    own = table[table["replace"] == "own"].pivot_table(index="epsilon", columns="index", values="test_accuracy")
    gain = own.iloc[:, -1] - own.iloc[:, 0]
    text = ", ".join(f"{_points(value)} at ε = {epsilon:g}" for epsilon, value in gain.items())
    return _Found(text, tuple(bool(value) for value in 100 * gain >= -claim.limits["points"]), _sources(table))


@_evaluator
def _nothing_but_what_comes_before(claim: Claim, where: Where) -> _Found:
    poisoned, span = (_photographs(name, where, **claim.selectors) for name in ("A7", "A7span"))
    curve = poisoned[poisoned["replace"] == "own"].groupby("index")["test_accuracy"].mean()
    alone = span.groupby("count")["test_accuracy"].mean()
    deviation = (curve - alone).abs().dropna()
    text = f"{_points(deviation.mean())} on average over {len(deviation)} indices, {_points(deviation.max())} at most"
    return _Found(text, (100 * deviation.mean() <= claim.limits["points"],), _sources(poisoned, span))


@_evaluator
def _flipping(claim: Claim, where: Where) -> _Found:
    architecture = claim.selectors["architecture"]
    table = _photographs("A8", where, **claim.selectors)
    rows = flipping_claims(table, isotropic=architecture in _ISOTROPIC)
    row = rows[(rows["arm"] == "flipped") & (rows["claim"] == claim.tolerance)].iloc[0]
    text = f"{100 * row['difference']:+.1f} points ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"
    return _Found(text, (row["verdict"] == "holds",), _sources(table))


@_evaluator
def _flipped_fits(claim: Claim, where: Where) -> _Found:
    table = _photographs("A8", where, **claim.selectors)
    accuracy = table.groupby("arm")["train_accuracy"].min()[["original", "flipped"]]
    text = f"training error {_percent(1 - accuracy.iloc[0])} on the originals, {_percent(1 - accuracy.iloc[1])} flipped"
    holds = tuple(bool(100 * (1 - value) <= claim.limits["most"]) for value in accuracy)
    return _Found(text, holds, _sources(table))


def _slower(table: pd.DataFrame) -> str:
    """How many trainings had to be repeated with a smaller learning rate than the paper's."""
    count = int((table["max_lr"] < table.attrs["parameters"]["config"]["max_lr"]).sum())
    return f"; {count} of {len(table)} trainings with a smaller learning rate" if count else ""


@_evaluator
def _pairs(claim: Claim, where: Where) -> _Found:
    architecture = claim.selectors["architecture"]
    try:
        table = experiments.load_pairs(**claim.selectors, results_dir=where).table
    except FileNotFoundError:
        experiments.load("B2", scale="paper", results_dir=where, **claim.selectors)  # says how it is made
        raise
    text, holds = _row(claim, pair_claims(table, isotropic=architecture in _ISOTROPIC))
    return _Found(f"{text}{_slower(table)}", (holds,), _sources(table))


@_evaluator
def _concatenation(claim: Claim, where: Where) -> _Found:
    table = _photographs("B3", where, **claim.selectors)
    isotropic = claim.selectors["architecture"] in _ISOTROPIC
    text, holds = _row(claim, concatenation_claims(table, isotropic=isotropic))
    return _Found(f"{text}{_slower(table)}", (holds,), _sources(table))


@_evaluator
def _costs_accuracy(claim: Claim, where: Where) -> _Found:
    table = _photographs("B3", where, **claim.selectors)
    mean = table[table["part"] == "both"].groupby("index")["test_accuracy"].mean()
    lost = float(mean.iloc[0] - mean.iloc[-1])
    text = f"{_percent(mean.iloc[0])} at NAD {mean.index[0]:.0f}, {_percent(mean.iloc[-1])} at NAD {mean.index[-1]:.0f}"
    return _Found(text, (100 * lost >= claim.limits["points"],), _sources(table))


@_evaluator
def _either_or(claim: Claim, where: Where) -> _Found:
    table = _photographs("B3", where, **claim.selectors)
    names = ["test_accuracy_images", "test_accuracy_direction"]
    mean = table[table["part"] == "both"].groupby("index")[names].mean()
    count = int((100 * mean.min(axis=1) > claim.limits["used"]).sum())
    return _Found(
        f"both are used at {count} of {len(mean)} indices", (count <= claim.limits["indices"],), _sources(table)
    )
