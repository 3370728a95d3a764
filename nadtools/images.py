"""Image data sets as tensors: CIFAR-10, Fashion-MNIST, or your own; :mod:`nadtools.image_sources` finds their files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from nadtools import checks, image_sources
from nadtools.checks import check_seed, positive_int
from nadtools.device import generator, stream, unaffected_by_context

__all__ = ["Images", "binary", "from_arrays", "load_images"]

_LUMA: Final = (0.299, 0.587, 0.114)  # ITU-R BT.601, as Pillow and JPEG
_BATCH: Final = 256  # small enough for a processor's cache


@dataclasses.dataclass(frozen=True, eq=False)
class Images:
    """A data set of images, its labels, and what it is.

    ``mean`` and ``std`` stay when images are replaced (``dataclasses.replace``) by poisoned or flipped ones.
    """

    x_train: Tensor = dataclasses.field(repr=False)  #: (n, channels, size, size), float32 in [0, 1]
    y_train: Tensor = dataclasses.field(repr=False)  #: (n,), int64, from 0 to the number of classes - 1
    x_test: Tensor = dataclasses.field(repr=False)  #: as ``x_train``
    y_test: Tensor = dataclasses.field(repr=False)  #: as ``y_train``
    class_names: tuple[str, ...]
    source: str  #: what the images are, for the captions of figures made from them
    mean: Tensor  #: (channels,), float32: of all pixels of the training images as they were loaded
    std: Tensor  #: likewise

    def __post_init__(self) -> None:
        checks.instance("source", self.source, str, "a text")
        checks.instance("class_names", self.class_names, (tuple, list), "a tuple of texts")
        if not self.class_names or not all(isinstance(name, str) for name in self.class_names):
            raise TypeError(f"got class_names={self.class_names!r}; expected at least one text")
        for split in ("train", "test"):
            x = checks.images(f"x_{split}", getattr(self, f"x_{split}"))
            checks.labels(f"y_{split}", getattr(self, f"y_{split}"), len(x), self.num_classes)
            if x.shape[1:] != self.x_train.shape[1:]:
                raise ValueError(f"got x_test of shape {tuple(x.shape)}; expected {self.image_shape}, as in x_train")
        for name in ("mean", "std"):
            if checks.tensor(name, getattr(self, name)).shape != self.x_train.shape[1:2]:
                raise ValueError(f"got {name} of shape {tuple(getattr(self, name).shape)}; expected (channels,)")

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(channels, height, width)."""
        channels, height, width = self.x_train.shape[1:]
        return channels, height, width

    def normalise(self, x: Tensor) -> Tensor:
        """Shift and scale each channel by the mean and the deviation of the original training images.

        The papers do so before they train. Flip after it, and poison before it: the carrier's size is in pixel units.
        A channel that is constant in the training images is only shifted.
        """
        x = checks.images("x", x)
        if x.shape[1] != len(self.mean):
            raise ValueError(f"got x of shape {tuple(x.shape)}; expected (n, {len(self.mean)}, height, width)")
        mean, std = (part.to(x.device, x.dtype).view(-1, 1, 1) for part in (self.mean, self.std.where(self.std > 0, 1)))
        return (x - mean).div_(std)


@unaffected_by_context()
def load_images(
    source: str | os.PathLike[str] | None = None,
    *,
    subset: int | None = None,
    size: int = 32,
    channels: int | None = None,
    per_class: int | None = None,
    test_per_class: int | None = None,
    seed: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    progress: bool = True,
) -> Images:
    """Load a data set of images.

    Args:
        source: A name:

            - ``"cifar10"``: 50,000 + 10,000 photographs, 10 classes, in colour;
            - ``"cifar10-jpeg"``: the same from ``data/cifar10-jpeg.tar.xz``, a lossy copy, class by class, which is
              unpacked once into the cache;
            - ``"fashion-mnist"``: 60,000 + 10,000 grey images of 28x28 pixels.

            Or a path:

            - a ``.npz`` file in Keras' layout, with the arrays that :func:`from_arrays` takes, perhaps ``class_names``;
            - a folder of image files in torchvision's layout, ``train/CLASS/NAME`` and ``test/CLASS/NAME``.

            None or ``"auto"`` is the best that is at hand without a network: CIFAR-10, its first images, Fashion-MNIST.
        subset: Only for CIFAR-10: the first images of each of the five training batches and of the test batch, so many
            of each. Up to 1,000, the file ``data/cifar10-first-1000-per-batch.npz`` will do. ``"auto"`` uses it where
            it finds CIFAR-10.
        size: Height and width in pixels. Images of another size are stretched (bilinear, antialiased).
        channels: 1 converts colour to grey (luma), 3 repeats grey three times. None leaves them as they are.
        per_class, test_per_class: Keep so many images of each class, drawn by the seed, in the original order. Of the
            same seed, a larger number keeps what a smaller one kept.
        data_dir: A folder of files that you have, see :mod:`nadtools.image_sources`.
        download: Whether a named data set may be downloaded.

    Raises:
        FileNotFoundError: If there is no such file, or a named data set is neither at hand nor to be had.
    """
    checks.flags(download=download, progress=progress)
    for name, path in (("source", source), ("data_dir", data_dir)):
        if path is not None:
            checks.file_path(name, path)
    options: dict[str, Any] = {"size": size, "channels": channels, "per_class": per_class}
    options |= {"test_per_class": test_per_class, "seed": seed}
    _check_options(**options)
    if subset is not None and positive_int("subset", subset) > image_sources.CIFAR10_BATCH:
        raise ValueError(f"got subset={subset}; a batch of CIFAR-10 holds {image_sources.CIFAR10_BATCH:,} images")
    if source is None or source == "auto":
        source, subset = image_sources.best_at_hand(data_dir, subset)
    elif subset is not None and source != "cifar10":
        raise ValueError(f"got subset={subset} for {str(source)!r}; it is for 'cifar10': use per_class, seed instead")
    arrays, description = image_sources.read(source, subset, size, data_dir, download, progress)
    return from_arrays(*arrays, description, **options)


@unaffected_by_context()
def from_arrays(
    x_train: np.ndarray,
    y_train: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    class_names: Sequence[str] | None,
    source: str,
    *,
    size: int = 32,
    channels: int | None = None,
    per_class: int | None = None,
    test_per_class: int | None = None,
    seed: int = 0,
) -> Images:
    """Make a data set of arrays.

    Args:
        x_train, x_test: Shape (n, h, w), (n, h, w, 1) or (n, h, w, 3), uint8 or floats in [0, 1].
        y_train, y_test: Shape (n,) or (n, 1), integers from 0.
        class_names: By default the labels.
        source: What the images are. What is done to them here is added to it.
        size, channels, per_class, test_per_class, seed: As in :func:`load_images`.
    """
    _check_options(size, channels, per_class, test_per_class, seed)
    checks.instance("source", source, str, "a text")
    labels = {name: _check_labels(y, name) for name, y in (("y_train", y_train), ("y_test", y_test))}
    pixels = {name: _check_pixels(x, name) for name, x in (("x_train", x_train), ("x_test", x_test))}
    for x, y, split in zip(pixels.values(), labels.values(), ("train", "test"), strict=True):
        if len(x) != len(y) or len(x) < 1:
            raise ValueError(f"got {len(x)} images as x_{split}, {len(y)} labels as y_{split}; expected as many")
    stored = pixels["x_train"].shape[1:]
    if stored != pixels["x_test"].shape[1:]:
        raise ValueError(f"got images of shape {stored} in x_train, {pixels['x_test'].shape[1:]}; expected one shape")
    num_classes = int(max(y.max() for y in labels.values())) + 1
    names = tuple(map(str, range(num_classes))) if class_names is None else class_names
    checks.instance("class_names", names, (tuple, list), "a tuple of texts")
    if len(names) < num_classes:
        raise ValueError(f"got labels up to {num_classes - 1} and {len(names)} class_names; expected a name for each")
    for count, split in ((per_class, "train"), (test_per_class, "test")):
        if count is not None:
            kept = _balanced(labels[f"y_{split}"], count, names, seed, split)
            labels[f"y_{split}"], pixels[f"x_{split}"] = labels[f"y_{split}"][kept], pixels[f"x_{split}"][kept]
            source += f"; {count:,} of each class to {split} (seed {seed})"
    if stored[:2] != (size, size):
        source += f"; {stored[0]}x{stored[1]} pixels resized to {size}x{size}"
    if channels is not None and channels != (3 if len(stored) == 3 else 1):
        source += "; in grey" if channels == 1 else "; grey repeated in three channels"
    tensors = {name: _to_float(x, size, channels) for name, x in pixels.items()}
    tensors |= {name: torch.from_numpy(y) for name, y in labels.items()}
    variance, mean = torch.var_mean(tensors["x_train"], dim=(0, 2, 3), correction=0)
    return Images(**tensors, class_names=tuple(names), source=source, mean=mean, std=variance.sqrt())


def binary(y: Tensor, positive_classes: Iterable[int]) -> Tensor:
    """Labels of two classes, int64: 1 for the classes that are named, at least one, and 0 for the rest.

    *A neural anisotropic view of underspecification*, figure 3, sets the first five classes of CIFAR-10,
    ``range(5)``, against the rest.
    """
    y = checks.labels("y", y)
    classes = checks.integers("positive_classes", positive_classes, expected="labels from 0, for instance range(5)")
    if not classes:
        raise ValueError("got positive_classes=[]; expected one or more labels from 0, for instance range(5)")
    return torch.isin(y, torch.tensor(classes, device=y.device)).to(torch.int64)


def _check_options(
    size: int, channels: int | None, per_class: int | None, test_per_class: int | None, seed: int
) -> None:
    positive_int("size", size)
    if channels is not None and positive_int("channels", channels) not in (1, 3):
        raise ValueError(f"got channels={channels!r}; expected 1 (grey), 3 (colour) or None (as they are)")
    for name, count in (("per_class", per_class), ("test_per_class", test_per_class)):
        if count is not None:
            positive_int(name, count)
    check_seed(seed)


def _check_labels(y: np.ndarray, name: str) -> np.ndarray:
    checks.instance(name, y, np.ndarray, "a NumPy array")
    if not np.issubdtype(y.dtype, np.integer):
        raise TypeError(f"got {name} of dtype {y.dtype}; expected integers")
    if y.ndim == 2 and y.shape[1] == 1:  # as Keras gives CIFAR-10's
        y = y[:, 0]
    if y.ndim != 1 or (y.size and int(y.min()) < 0):
        raise ValueError(f"got {name} of shape {y.shape}; expected (n,) labels from 0")
    if y.size and int(y.max()) >= (most := image_sources.MAX_CLASSES):
        raise ValueError(f"got {name} with the label {y.max()}; expected labels 0, 1, 2, ... below {most:,}")
    return y.astype(np.int64)


def _check_pixels(x: np.ndarray, name: str) -> np.ndarray:
    checks.instance(name, x, np.ndarray, "a NumPy array")
    if x.ndim == 4 and x.shape[3] == 1:
        x = x[..., 0]
    if x.ndim not in (3, 4) or (x.ndim == 4 and x.shape[3] != 3) or 0 in x.shape[1:]:
        raise ValueError(f"got {name} of shape {x.shape}; expected (n, h, w), (n, h, w, 1) or (n, h, w, 3)")
    if x.dtype == np.uint8:
        return x
    if not np.issubdtype(x.dtype, np.floating):
        raise TypeError(f"got {name} of dtype {x.dtype}; expected uint8 from 0 to 255, or floats in [0, 1]")
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    if not (low >= 0 and high <= 1):  # false for NaN, too
        raise ValueError(f"got {name} with values from {low:.3g} to {high:.3g}; expected floats in [0, 1], or uint8")
    return x.astype(np.float32)


def _balanced(y: np.ndarray, count: int, class_names: Sequence[str], seed: int, split: str) -> np.ndarray:
    """Indices of so many images of each class, ascending."""
    chosen = []
    for label, name in enumerate(class_names):
        members = np.flatnonzero(y == label)
        if len(members) < count:
            argument = "per_class" if split == "train" else "test_per_class"
            raise ValueError(f"got {argument}={count}; the class {name!r} has {len(members)} images to {split}")
        source = generator(torch.device("cpu"), stream(seed, "images"), int(split == "test"), label)
        chosen.append(members[torch.randperm(len(members), generator=source)[:count].numpy()])
    return np.sort(np.concatenate(chosen))


def _to_float(x: np.ndarray, size: int, channels: int | None) -> Tensor:
    """Images (n, h, w) or (n, h, w, 3) as a tensor (n, channels, size, size) of floats, batch by batch."""
    stored = torch.from_numpy(x).unsqueeze(1) if x.ndim == 3 else torch.from_numpy(x).movedim(3, 1)
    result = torch.empty((len(stored), channels or stored.shape[1], size, size))
    weights = torch.tensor(_LUMA).view(1, 3, 1, 1)
    for target, batch in zip(result.split(_BATCH), stored.split(_BATCH), strict=True):
        images = batch.contiguous().to(torch.float32)
        if batch.dtype == torch.uint8:
            images = images.div_(255)
        if target.shape[1] == 1 and images.shape[1] == 3:
            images = (images * weights).sum(1, keepdim=True)
        if images.shape[2:] != (size, size):
            images = functional.interpolate(images, (size, size), mode="bilinear", antialias=True)
        # Grey is repeated by broadcasting. Rounding must not lead out of [0, 1].
        target.copy_(images).clamp_(0, 1)
    return result
