"""Photographs that ship with the book: small patches of ten of them, where the library finds no other images.

``book/photographs/photographs.npz`` holds the ten, 256 pixels high: eight that come with scikit-image and two that come
with scikit-learn. Authors and licences stand on the book's page of references. :func:`make_photographs` made the file.

Patches are cut when they are asked for, always the same ones: those to train on from the left half of each photograph,
those to test on from the right half, so no pixel is in both. The label is the photograph. Colour and contrast alone
would give it away, and neither has a place in the image. So each patch is made grey on average, channel by channel, and
all are given the same contrast. Where a photograph shows next to nothing, as in a black sky, no patch is cut.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import nadtools as nt
from nadtools import storage
from nadtools.image_sources import ImagesNotFoundError

__all__ = ["PHOTOGRAPHS", "load_images", "load_patches", "load_thumbnails", "make_photographs"]

#: Where the packages have them, by what they show.
PHOTOGRAPHS: Final = {
    "astronaut": "skimage/data/astronaut.png",
    "brick": "skimage/data/brick.png",
    "cat": "skimage/data/chelsea.png",
    "coffee": "skimage/data/coffee.png",
    "deep field": "skimage/data/hubble_deep_field.jpg",
    "flower": "sklearn/datasets/images/flower.jpg",
    "palace": "sklearn/datasets/images/china.jpg",
    "retina": "skimage/data/retina.jpg",
    "rocket": "skimage/data/rocket.jpg",
    "tissue": "skimage/data/ihc.png",
}
FILE: Final = Path(__file__).resolve().parents[1] / "photographs" / "photographs.npz"

_SOURCE: Final = "patches of ten photographs"
_HEIGHT: Final = 256  # of a stored photograph
_SIZE: Final = 32  # of a patch
_TRAIN, _TEST = 200, 100  # of each photograph
_LEAST, _CONTRAST = 8.0, 48.0  # standard deviation in a patch, of 255: to be cut, and afterwards
_ONLY_FILES: Final = ("subset", "data_dir", "download", "progress")


def load_patches(**options: Any) -> nt.Images:
    """Load the patches: in colour, 32x32 pixels, 2,000 to train and 1,000 to test, as many of each of ten photographs.

    Parameters
    ----------
    **options
        ``size``, ``channels``, ``per_class``, ``test_per_class``, ``seed``: as for :func:`nadtools.images.from_arrays`.
    """
    photographs, _ = storage.read_arrays(FILE)
    halves = {name: np.array_split(photographs[name], 2, axis=1) for name in PHOTOGRAPHS}
    x_train, y_train = _labelled([left for left, _ in halves.values()], _TRAIN)
    x_test, y_test = _labelled([right for _, right in halves.values()], _TEST)
    return nt.images.from_arrays(x_train, y_train, x_test, y_test, tuple(halves), _SOURCE, **options)


def load_thumbnails() -> dict[str, Tensor]:
    """Load the middle of each photograph, reduced to the size of a patch: by its name, shape (3, 32, 32), in [0, 1].

    They are to look at. Nothing is trained on them.
    """
    photographs, _ = storage.read_arrays(FILE)
    thumbnails = {}
    for name in PHOTOGRAPHS:
        pixels = torch.from_numpy(photographs[name]).movedim(2, 0)
        left = (pixels.shape[2] - _HEIGHT) // 2
        square = pixels[:, :, left : left + _HEIGHT].double() / 255
        thumbnails[name] = functional.avg_pool2d(square, _HEIGHT // _SIZE).float()
    return thumbnails


def load_images(source: str | os.PathLike[str] | None = None, **options: Any) -> nt.Images:
    """Load images as :func:`nadtools.load_images` does; or the patches: by name, or where "auto" finds no others."""
    if source != "patches":
        try:
            return nt.load_images(source, **options)
        except ImagesNotFoundError:
            if source not in (None, "auto"):
                raise
    elif options.get("subset") is not None:
        raise ValueError(f"got subset={options['subset']} for 'patches'; use per_class, seed instead")
    return load_patches(**{name: value for name, value in options.items() if name not in _ONLY_FILES})


def make_photographs(path: str | os.PathLike[str] = FILE) -> Path:
    """Make the file of photographs from those that are installed with scikit-image and scikit-learn.

    The book itself does not need scikit-image. Install it to make the file again.
    """
    from PIL import Image

    pictures = {}
    for name, file in PHOTOGRAPHS.items():
        package, _, rest = file.partition("/")
        found = importlib.util.find_spec(package)
        if found is None or not found.submodule_search_locations:
            raise FileNotFoundError(f"{file} is not here: install scikit-image and scikit-learn")
        with Image.open(Path(found.submodule_search_locations[0], rest)) as picture:
            colour = picture.convert("RGB")
            width = round(colour.width * _HEIGHT / colour.height)
            pictures[name] = np.asarray(colour.resize((width, _HEIGHT), Image.Resampling.LANCZOS))
    return storage.write_arrays(path, pictures, {"files": PHOTOGRAPHS, "licences": "see the book's page of references"})


def _labelled(halves: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Patches and the numbers of their photographs, in an order that mixes these, as in CIFAR-10."""
    x = np.concatenate([_cut(half, count, number) for number, half in enumerate(halves)])
    y = np.arange(len(halves)).repeat(count)
    order = np.random.default_rng(0).permutation(len(y))
    return x[order], y[order]


def _cut(half: np.ndarray, count: int, seed: int) -> np.ndarray:
    """So many patches of half a photograph, at random places where there is something to see."""
    source, patches = np.random.default_rng(seed), list[np.ndarray]()
    while len(patches) < count:
        i, j = (int(source.integers(side - _SIZE + 1)) for side in half.shape[:2])
        patch = half[i : i + _SIZE, j : j + _SIZE].astype(np.float64)
        patch -= patch.mean((0, 1))
        contrast = patch.std()
        if contrast >= _LEAST:
            patches.append((127.5 + patch * (_CONTRAST / contrast)).round().clip(0, 255).astype(np.uint8))
    return np.stack(patches)
