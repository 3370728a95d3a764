"""The canary: a cheap row of each experiment's stored results is computed anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from companion import experiments, recompute

FOLDER = Path(recompute.__file__).parents[1] / "results"
_SECONDS = 14


def cheapest_rows() -> list[tuple[Path, int]]:
    """Of each experiment the row that takes the shortest time, where that is a few seconds; needs no photographs."""
    cheapest: dict[str, tuple[float, Path, int]] = {}
    for path in sorted(FOLDER.glob("*.npz")):
        rows, record = recompute.rows_of(path), experiments.read_record(path)
        if rows.empty or "images" in record["parameters"] or record["parameters"].get("nads") == "published":
            continue
        # The first seed alone needs no other trainings; of a pair of equal directions there is one.
        seconds = rows["seconds"].where(rows["seed"] == record["seed"], np.inf).to_numpy(float)
        if "first" in rows:
            seconds = np.where(rows["first"] == rows["second"], seconds, np.inf)
        number = int(np.argmin(np.where(rows["direction"] == 0, seconds, np.inf) if "direction" in rows else seconds))
        if seconds[number] <= _SECONDS:
            name = record["experiment"]
            cheapest[name] = min(cheapest.get(name, (np.inf, path, 0)), (float(seconds[number]), path, number))
    return [(path, number) for _, path, number in cheapest.values()]


CHEAPEST = cheapest_rows()


@pytest.mark.parametrize(("path", "number"), CHEAPEST, ids=[path.stem for path, _ in CHEAPEST])
def test_what_is_stored_is_what_the_code_computes(path: Path, number: int) -> None:
    row = recompute.recompute(path, number)
    assert row.agrees, row


def test_the_canary_looks_at_several_experiments() -> None:
    assert len(CHEAPEST) >= 4
