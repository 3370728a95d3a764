"""The file of claims: how it is read, and how new verdicts are written into it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from companion import experiments
from companion.chapter_01 import claims as chapter_01
from companion.chapter_02 import claims as chapter_02
from companion.chapter_03 import claims as chapter_03
from companion.chapter_04 import claims as chapter_04
from companion.chapter_05 import claims as chapter_05
from companion.chapter_08 import claims as chapter_08
from companion.chapter_09 import claims as chapter_09
from companion.chapter_10 import claims as chapter_10
from companion.chapter_11 import claims as chapter_11
from companion.claims.model import PAPERS, Checked, Claim
from companion.evidence import Function, Mark, Verdict
from companion.style import ARCHITECTURE_NAMES
from nadtools import storage

__all__ = ["CLAIMS_FILE", "FUNCTIONS", "load_claims", "paper_parameters", "record_verdicts"]

#: The claims.
CLAIMS_FILE = Path(__file__).with_name("claims.toml")
#: By id, what looks at a claim.
FUNCTIONS: Final[dict[str, Function]] = {
    **chapter_01.CLAIMS,
    **chapter_02.CLAIMS,
    **chapter_03.CLAIMS,
    **chapter_04.CLAIMS,
    **chapter_05.CLAIMS,
    **chapter_08.CLAIMS,
    **chapter_09.CLAIMS,
    **chapter_10.CLAIMS,
    **chapter_11.CLAIMS,
}
_SCALES: Final = ("paper", "laptop")
_NETWORKS: Final = ARCHITECTURE_NAMES | {"mlp": "the MLP"}


def load_claims(path: str | os.PathLike[str] | None = None) -> tuple[Claim, ...]:
    """Read the claims of both papers, in their order, from ``claims.toml`` or another file.

    A table with a verdict for each of several architectures (``verdict.lenet``, ``verdict.vgg11``) is a claim for each
    of them. In its texts ``{architecture}`` and ``{network}`` stand for the name in code and in prose.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no TOML, an entry is missing, unknown or empty, an id stands twice or has no function, or a verdict or
        a result is not known.
    """
    path = Path(CLAIMS_FILE if path is None else path)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("claim", [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is no TOML: {error}") from error
    claims = tuple(_claim(one) for table in tables for one in _for_each_architecture(table))
    ids = [claim.id for claim in claims]
    if twice := {one for one in ids if ids.count(one) > 1}:
        raise ValueError(f"ids that stand twice: {', '.join(sorted(twice))}")
    return claims


def _for_each_architecture(table: dict[str, Any]) -> list[dict[str, Any]]:
    name = table.get("id", "a claim without id")
    if name not in FUNCTIONS:
        raise ValueError(f"{name}: no chapter has a function with this id")
    function, verdicts = FUNCTIONS[name], table.get("verdict")
    bound: dict[str, Any] = {"function": function}
    if isinstance(function, Mark):
        bound["tolerance"] = function.text
    if twice := [key for key in bound if key in table]:
        raise ValueError(f"{name}: unknown entries {twice}, which its chapter gives")
    table = {**table, **bound}
    if not (verdicts and isinstance(verdicts, dict)):
        return [table]
    claims = []
    for architecture, verdict in verdicts.items():
        names = {"{architecture}": architecture, "{network}": _NETWORKS.get(architecture, architecture)}
        claim = {**table, "selectors": {**table.get("selectors", {}), "architecture": architecture}, "verdict": verdict}
        for placeholder, name in names.items():
            claim |= {key: text.replace(placeholder, name) for key, text in claim.items() if isinstance(text, str)}
        claims.append(claim)
    return claims


def _claim(table: Mapping[str, Any]) -> Claim:
    name = table["id"]
    fields = [field.name for field in dataclasses.fields(Claim)]
    unknown = [key for key in table if key not in fields]
    needed = fields[: fields.index("chapter")]  # the others may be left out
    missing = [key for key in needed if not table.get(key)]
    if unknown or missing:
        raise ValueError(f"{name}: unknown entries {unknown}, missing or empty entries {missing}")
    for what, known in (
        ("paper", tuple(PAPERS)),
        ("verdict", [one.value for one in Verdict if one is not Verdict.NOT_HERE]),
        ("scale", _SCALES),
    ):
        if (got := table.get(what, _SCALES[0])) not in known:
            raise ValueError(f"{name}: unknown {what} {got!r}; known are {', '.join(map(repr, known))}")
    claim = Claim(**{**table, "verdict": Verdict(table["verdict"])})
    if claim.experiment:
        try:
            paper_parameters(claim.experiment, claim.selectors)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{name}: no experiment {claim.experiment} with {dict(claim.selectors)}") from error
    return claim


def paper_parameters(experiment: str, selectors: Mapping[str, str], scale: str = "paper") -> dict[str, Any]:
    """Parameters of an experiment, as they come back from JSON, with CIFAR-10 where no data set is named."""
    known = experiments.EXPERIMENTS[experiment]
    chosen = {"data": "cifar10", **selectors} if "data" in known.selectors else dict(selectors)
    if any(chosen[name] not in values for name, values in known.selectors.items()):
        raise KeyError(str(chosen))
    parameters: dict[str, Any] = json.loads(json.dumps(known.parameters(scale, **chosen)))
    return parameters


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
    lines, current, written = path.read_text(encoding="utf-8").splitlines(keepends=True), "", []
    for number, line in enumerate(lines):
        if line.startswith("[["):
            current = ""
        elif match := re.match(r'id = "([^"]+)"', line):
            current = match[1]
        elif match := re.match(r"verdict(?:\.(\w+))? = ", line):
            name = current.replace("{architecture}", match[1] or "")
            if name in changed:
                lines[number] = re.sub(r'"[^"]*"', f'"{changed[name]}"', line, count=1)
                written.append(name)
    if written:
        storage.write_bytes(path, "".join(lines).encode())
    return tuple(written)
