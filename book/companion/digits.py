"""Images that are always at hand: scikit-learn's digits, where the library finds no photographs."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import nadtools as nt
from nadtools.image_sources import ImagesNotFoundError

__all__ = ["load_digits", "load_images"]

_TRAIN = 1437  # of 1,797
_ONLY_FILES = ("subset", "data_dir", "download", "progress")


def load_digits(**options: Any) -> nt.Images:
    """Load the digits that come with scikit-learn: grey, 8x8 pixels, 1,437 to train and 360 to test, in its order.

    Parameters
    ----------
    **options
        ``size``, ``channels``, ``per_class``, ``test_per_class``, ``seed``: as for :func:`nadtools.images.from_arrays`.
    """
    from sklearn.datasets import load_digits as load

    digits = load()
    x, y = digits.images / 16, digits.target
    names = tuple(map(str, np.asarray(digits.target_names)))
    return nt.images.from_arrays(
        x[:_TRAIN], y[:_TRAIN], x[_TRAIN:], y[_TRAIN:], names, "scikit-learn's digits", **options
    )


def load_images(source: str | os.PathLike[str] | None = None, **options: Any) -> nt.Images:
    """Load images as :func:`nadtools.load_images` does; or the digits: by name, or where "auto" finds no others."""
    if source != "digits":
        try:
            return nt.load_images(source, **options)
        except ImagesNotFoundError:
            if source not in (None, "auto"):
                raise
    elif options.get("subset") is not None:
        raise ValueError(f"got subset={options['subset']} for 'digits'; use per_class, seed instead")
    return load_digits(**{name: value for name, value in options.items() if name not in _ONLY_FILES})
