"""Progress bars, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tqdm.auto import tqdm

__all__ = ["progress_bar"]


def progress_bar(iterable: Iterable[Any] | None, show: bool, **options: Any) -> tqdm[Any]:
    """``tqdm.auto.tqdm``, unless ``show`` is false or the environment variable ``TQDM_DISABLE`` is set."""
    # An explicit disable=False would overrule the environment variable.
    return tqdm(iterable, **options) if show else tqdm(iterable, disable=True, **options)
