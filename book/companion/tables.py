"""What the tables of experiments have in common: a row for each training, and a row for each claim."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pandas as pd
import torch

from nadtools.device import one_thread

__all__ = ["VERDICTS", "Row", "claims_table", "timed"]

Row = dict[str, Any]

VERDICTS: Final = {True: "holds", False: "does not hold"}


@contextlib.contextmanager
def timed(row: Row, device: torch.device) -> Iterator[None]:
    """Compute on one thread, alone in the process, and note the seconds and the device in the training's row."""
    with one_thread():
        start = time.perf_counter()
        yield
        row |= {"seconds": round(time.perf_counter() - start, 3), "device": device.type}


def claims_table(claims: Sequence[tuple[str, str, Any]]) -> pd.DataFrame:
    """A table with the columns claim, measured and verdict, from statements, measurements and whether they hold."""
    rows = [(claim, measured, VERDICTS[bool(holds)]) for claim, measured, holds in claims]
    return pd.DataFrame(rows, columns=["claim", "measured", "verdict"])
