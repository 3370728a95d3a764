"""What the tables of experiments have in common: a row for each training."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import torch

from nadtools.device import one_thread

__all__ = ["Row", "timed"]

Row = dict[str, Any]


@contextlib.contextmanager
def timed(row: Row, device: torch.device) -> Iterator[None]:
    """Compute on one thread, alone in the process, and note the seconds and the device in the training's row."""
    with one_thread():
        start = time.perf_counter()
        yield
        row |= {"seconds": round(time.perf_counter() - start, 3), "device": device.type}
