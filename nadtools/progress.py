"""Progress bars, in a terminal and in a notebook."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from tqdm.auto import tqdm

__all__ = ["progress_bar"]


def progress_bar(iterable: Iterable[Any] | None, show: bool, **options: Any) -> tqdm[Any]:
    """``tqdm.auto.tqdm``, unless ``show`` is false or the environment variable ``TQDM_DISABLE`` is set."""
    # tqdm's notebook version shows an empty bar where only the environment disables it.
    hidden = not show or os.environ.get("TQDM_DISABLE", "") not in ("", "0")
    return tqdm(iterable, disable=hidden, **options)
