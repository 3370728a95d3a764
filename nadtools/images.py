"""Image data sets as tensors: CIFAR-10, Fashion-MNIST, scikit-learn's digits, or your own.

The files of CIFAR-10 and Fashion-MNIST are looked for, in this order,

1. in a folder of files that you have: the argument ``data_dir``, or else the environment variable ``NADTOOLS_DATA``;
   there in the subfolder ``data`` and then in the folder itself, as torchvision lays them out
   (``cifar-10-batches-py``, ``FashionMNIST``);
2. in the download cache: the system's usual cache folder, or the one that ``NADTOOLS_CACHE`` names;
3. on the internet, by torchvision, which knows their addresses and checksums.
"""

from __future__ import annotations

import dataclasses
import http.client
import importlib
import importlib.util
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from nadtools import checks, storage
from nadtools.checks import check_seed, positive_int
from nadtools.device import generator, stream, unaffected_by_context
from nadtools.image_files import ARCHIVE_SUFFIXES, Arrays, read_archive, read_folder

__all__ = ["CIFAR10_CLASSES", "NAMES", "Images", "binary", "crop_and_mirror", "load_images"]

NAMES: Final = ("cifar10", "cifar10-jpeg", "fashion-mnist", "digits")
CIFAR10_CLASSES: Final = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip

_CIFAR10_SUBSET: Final = "cifar10-first-1000-per-batch.npz"  # exact pixels
_CIFAR10_JPEG: Final = "cifar10-jpeg.tar.xz"  # a lossy copy of all images
_SUBSET_MOST: Final = 1000  # images of each batch that the subset's file holds
_CIFAR10_BATCH: Final = 10_000
_DIGITS_TRAIN: Final = 1437  # of scikit-learn's 1,797 digits
_MAX_NPZ_BYTES: Final = 8 * 2**30
_MAX_CLASSES: Final = 100_000  # four times those of ImageNet-21k
_LUMA: Final = (0.299, 0.587, 0.114)  # ITU-R BT.601, as Pillow and JPEG
_BATCH: Final = 256  # small enough for a processor's cache


@dataclasses.dataclass(frozen=True, eq=False)
class Images:
    """A data set of images, its labels, and what it is.

    Attributes
    ----------
    x_train, x_test : Tensor
        Shape (n, channels, size, size), float32 in [0, 1].
    y_train, y_test : Tensor
        Shape (n,), int64, from 0 to the number of classes - 1.
    class_names : tuple of str
    source : str
        What the images are, for the captions of figures made from them.
    mean, std : Tensor
        Shape (channels,), float32: of all pixels of the training images as they were loaded. They stay when images
        are replaced (``dataclasses.replace``) by poisoned or flipped ones.
    """

    x_train: Tensor = dataclasses.field(repr=False)
    y_train: Tensor = dataclasses.field(repr=False)
    x_test: Tensor = dataclasses.field(repr=False)
    y_test: Tensor = dataclasses.field(repr=False)
    class_names: tuple[str, ...]
    source: str
    mean: Tensor
    std: Tensor

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

        Parameters
        ----------
        x : Tensor
            Shape (n, channels, h, w), floating point.

        Returns
        -------
        Tensor
            A new one. A channel that is constant in the training images is only shifted.

        Raises
        ------
        TypeError, ValueError
            If x is not floating point or has another number of channels.
        """
        x = checks.images("x", x)
        if x.shape[1] != len(self.mean):
            raise ValueError(f"got x of shape {tuple(x.shape)}; expected (n, {len(self.mean)}, height, width)")
        mean, std = (
            values.to(x.device, x.dtype).view(-1, 1, 1) for values in (self.mean, self.std.where(self.std > 0, 1))
        )
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

    Parameters
    ----------
    source : str or path, optional
        A name:

        - ``"cifar10"``: 50,000 + 10,000 photographs, 10 classes, in colour;
        - ``"cifar10-jpeg"``: the same from ``data/cifar10-jpeg.tar.xz``, a lossy copy, class by class;
        - ``"fashion-mnist"``: 60,000 + 10,000 grey images of 28x28 pixels;
        - ``"digits"``: the digits that come with scikit-learn, grey, 8x8 pixels: 1,437 to train and 360 to test, in
          scikit-learn's order.

        Or a path:

        - a ``.npz`` file in Keras' layout: ``x_train``, ``x_test`` of shape (n, h, w), (n, h, w, 1) or (n, h, w, 3),
          uint8 or floats in [0, 1]; integers ``y_train``, ``y_test``; perhaps ``class_names``;
        - a folder or an archive (.zip, .tar, .tar.gz, .tar.xz, .tar.bz2) in ImageFolder's layout, ``train/CLASS/NAME``
          and ``test/CLASS/NAME``. An archive is decoded once and kept in the cache, a folder is read each time.

        None or ``"auto"`` is the best that is at hand without a network: CIFAR-10, its first images, Fashion-MNIST,
        the digits.
    subset : int, optional
        Only for CIFAR-10: the first images of each of the five training batches and of the test batch, so many of
        each. Up to 1,000, the file ``data/cifar10-first-1000-per-batch.npz`` will do. ``"auto"`` uses it where it
        finds CIFAR-10.
    size : int
        Height and width in pixels. Images of another size are stretched (bilinear, antialiased).
    channels : {1, 3}, optional
        Convert colour to grey (luma), or repeat grey three times. None leaves them as they are.
    per_class, test_per_class : int, optional
        Keep so many images of each class, drawn by the seed, in the original order. Of the same seed, a larger number
        keeps what a smaller one kept.
    seed : int
        Of the draw.
    data_dir : path, optional
        A folder of files that you have, see :mod:`nadtools.images`.
    download : bool
        Whether a named data set may be downloaded.
    progress : bool
        Show a progress bar where images are decoded.

    Returns
    -------
    Images

    Raises
    ------
    FileNotFoundError
        If the data are neither at hand nor to be had. The message says how to get them.
    ModuleNotFoundError
        If the digits are asked for and scikit-learn is not installed.
    ValueError, TypeError
        If an argument is not usable, a file is damaged, or its images are not what is described above.
    """
    checks.flags(download=download, progress=progress)
    for name, path in (("source", source), ("data_dir", data_dir)):
        if path is not None:
            checks.file_path(name, path)
    size = positive_int("size", size)
    if channels is not None:
        channels = positive_int("channels", channels)
    if channels not in (None, 1, 3):
        raise ValueError(f"got channels={channels!r}; expected 1 (grey), 3 (colour) or None (as they are)")
    for name, count in (("per_class", per_class), ("test_per_class", test_per_class)):
        if count is not None:
            positive_int(name, count)
    check_seed(seed)
    if subset is not None and positive_int("subset", subset) > _CIFAR10_BATCH:
        raise ValueError(f"got subset={subset}; a batch of CIFAR-10 holds {_CIFAR10_BATCH:,} images")
    if source is None or source == "auto":
        source, subset = _best_at_hand(data_dir, subset)
    elif subset is not None and source != "cifar10":
        raise ValueError(f"got subset={subset} for {str(source)!r}; it is for 'cifar10': use per_class, seed instead")

    arrays, description = _read(source, subset, size, data_dir, download, progress)
    if per_class is not None:
        kept = _balanced(arrays.y_train, per_class, arrays.class_names, seed, "train")
        arrays = arrays._replace(x_train=arrays.x_train[kept], y_train=arrays.y_train[kept])
        description += f"; {per_class:,} of each class to train (seed {seed})"
    if test_per_class is not None:
        kept = _balanced(arrays.y_test, test_per_class, arrays.class_names, seed, "test")
        arrays = arrays._replace(x_test=arrays.x_test[kept], y_test=arrays.y_test[kept])
        description += f"; {test_per_class:,} of each class to test (seed {seed})"
    stored = arrays.x_train.shape[1:3]
    if stored != (size, size):
        description += f"; {stored[0]}x{stored[1]} pixels resized to {size}x{size}"
    x_train, x_test = (_to_float(x, size, channels) for x in (arrays.x_train, arrays.x_test))
    if channels is not None and channels != (3 if arrays.x_train.ndim == 4 else 1):
        description += "; in grey" if channels == 1 else "; grey repeated in three channels"
    variance, mean = torch.var_mean(x_train, dim=(0, 2, 3), correction=0)
    return Images(
        x_train=x_train,
        y_train=torch.from_numpy(arrays.y_train),
        x_test=x_test,
        y_test=torch.from_numpy(arrays.y_test),
        class_names=arrays.class_names,
        source=description,
        mean=mean,
        std=variance.sqrt(),
    )


def binary(y: Tensor, positive_classes: Iterable[int]) -> Tensor:
    """Labels of two classes: 1 for the classes that are named, 0 for the rest.

    *A neural anisotropic view of underspecification*, figure 3, sets the first five classes of CIFAR-10,
    ``range(5)``, against the rest.

    Parameters
    ----------
    y : Tensor
        Shape (n,), integers.
    positive_classes : iterable of int

    Returns
    -------
    Tensor
        Shape (n,), int64.

    Raises
    ------
    TypeError, ValueError
        If y does not hold integers, or no class is named.
    """
    y = checks.labels("y", y)
    classes = checks.integers("positive_classes", positive_classes, expected="labels from 0, for instance range(5)")
    if not classes:
        raise ValueError("got positive_classes=[]; expected one or more labels from 0, for instance range(5)")
    return torch.isin(y, torch.tensor(classes, device=y.device)).to(torch.int64)


# ---------------------------------------------------------------------------------------------------------------------
# Where the data come from
# ---------------------------------------------------------------------------------------------------------------------


def crop_and_mirror(x: Tensor, generator: torch.Generator, padding: int = 4) -> Tensor:
    """Shift each image at random, and mirror half of them: the usual augmentation of CIFAR-10.

    For :func:`nadtools.train`, as ``augment=nadtools.images.crop_and_mirror``. What is shifted in is zero: the mean
    colour of normalised images.

    Parameters
    ----------
    x : Tensor
        Shape (n, channels, height, width).
    generator : torch.Generator
        On the device of x.
    padding : int
        The largest shift, in pixels.

    Returns
    -------
    Tensor
        Of the shape of x. Each image has its own shift, up to ``padding`` pixels in either direction, and is mirrored
        left to right or not.

    Raises
    ------
    ValueError
        If x does not have four dimensions, or the padding is negative.
    """
    if not isinstance(x, Tensor) or x.ndim != 4:
        kind = f"shape {tuple(x.shape)}" if isinstance(x, Tensor) else f"type {type(x).__name__}"
        raise ValueError(f"got x of {kind}; expected a tensor of shape (n, channels, height, width)")
    checks.instance("generator", generator, torch.Generator, "a torch.Generator")
    padding = checks.integer("padding", padding, 0, 8 * max(x.shape[2:]), "0 or a positive int")
    number, _, height, width = x.shape
    options: dict[str, Any] = {"device": x.device, "generator": generator}
    top, left = torch.randint(2 * padding + 1, (2, number, 1, 1), **options)
    mirrored = torch.randint(2, (number, 1, 1), **options).bool()
    column = torch.arange(width, device=x.device)
    rows = top + torch.arange(height, device=x.device).view(-1, 1)
    columns = left + torch.where(mirrored, column.flip(0), column)
    padded = functional.pad(x, (padding,) * 4).movedim(1, -1)
    images = torch.arange(number, device=x.device).view(-1, 1, 1)
    return padded[images, rows, columns].movedim(-1, 1)


class _Torchvision(NamedTuple):
    title: str
    class_name: str  # in torchvision.datasets
    folder: str

    def open(self, root: str | os.PathLike[str], **options: bool) -> Any:
        import torchvision.datasets  # as long to import as PyTorch

        return getattr(torchvision.datasets, self.class_name)(root, **options)


_CIFAR10: Final = _Torchvision("CIFAR-10", "CIFAR10", "cifar-10-batches-py")
_FASHION_MNIST: Final = _Torchvision("Fashion-MNIST", "FashionMNIST", "FashionMNIST")


def _read(
    source: str | os.PathLike[str],
    subset: int | None,
    size: int,
    data_dir: str | os.PathLike[str] | None,
    download: bool,
    progress: bool,
) -> tuple[Arrays, str]:
    """The arrays as they are stored, and what they are."""
    match source:
        case "cifar10":
            return _read_cifar10(subset, data_dir, download)
        case "cifar10-jpeg":
            archive = _find(_CIFAR10_JPEG, data_dir)
            if archive is None:
                raise FileNotFoundError(
                    f"there is no {_CIFAR10_JPEG} in the folder that data_dir or NADTOOLS_DATA names, nor in its "
                    "subfolder 'data'; load_images('cifar10') takes the original images"
                )
            return read_archive(archive, size, _cache_folder(), progress=progress), "CIFAR-10, JPEG copy (lossy)"
        case "fashion-mnist":
            return _read_torchvision(_FASHION_MNIST, data_dir, download), "Fashion-MNIST"
        case "digits":
            return _read_digits(), "scikit-learn's digits"
    path = Path(source).expanduser()
    if not path.exists():
        raise FileNotFoundError(
            f"got source {str(source)!r}, which is neither {', '.join(map(repr, NAMES))} nor a file or folder there is"
        )
    if path.is_dir():
        name = path.resolve().name
        return read_folder(path, size, progress=progress), f"the folder {name}, at {size}x{size} pixels"
    if path.suffix == ".npz":
        return _read_npz(path), path.name
    if path.name.lower().endswith(ARCHIVE_SUFFIXES):
        arrays = read_archive(path, size, _cache_folder(), progress=progress)
        return arrays, f"{path.name}, at {size}x{size} pixels"
    raise ValueError(f"got the file {path.name!r}; expected a folder, .npz, {', '.join(ARCHIVE_SUFFIXES)}")


def _best_at_hand(data_dir: str | os.PathLike[str] | None, subset: int | None) -> tuple[str, int | None]:
    """The name of a data set that needs no network, and the subset of it."""
    if _torchvision_root(_CIFAR10, data_dir) is not None:
        return "cifar10", subset
    if (subset or _SUBSET_MOST) <= _SUBSET_MOST and _find(_CIFAR10_SUBSET, data_dir) is not None:
        return "cifar10", subset or _SUBSET_MOST
    if _torchvision_root(_FASHION_MNIST, data_dir) is not None:
        return "fashion-mnist", None
    if importlib.util.find_spec("sklearn") is not None:
        return "digits", None
    raise FileNotFoundError(_how_to_get("No images are at hand.", _CIFAR10.folder))


def _read_cifar10(subset: int | None, data_dir: str | os.PathLike[str] | None, download: bool) -> tuple[Arrays, str]:
    if subset is None:
        return _read_torchvision(_CIFAR10, data_dir, download), "CIFAR-10"
    description = f"CIFAR-10, the first {subset:,} images of each batch"
    path = _find(_CIFAR10_SUBSET, data_dir) if subset <= _SUBSET_MOST else None
    if path is not None:
        arrays, per_batch = _read_npz(path)._replace(class_names=CIFAR10_CLASSES), _SUBSET_MOST
    else:
        arrays, per_batch = _read_torchvision(_CIFAR10, data_dir, download), _CIFAR10_BATCH
    for y, batches in ((arrays.y_train, 5), (arrays.y_test, 1)):
        if len(y) != batches * per_batch:
            raise ValueError(f"{path or _CIFAR10.folder} holds {len(y)} images, expected {batches * per_batch}")

    def first(array: np.ndarray) -> np.ndarray:
        batches = array.reshape(-1, per_batch, *array.shape[1:])[:, :subset]
        return batches.reshape(-1, *array.shape[1:])

    x_train, y_train, x_test, y_test = map(first, (arrays.x_train, arrays.y_train, arrays.x_test, arrays.y_test))
    return Arrays(x_train, y_train, x_test, y_test, arrays.class_names), description


def _read_torchvision(what: _Torchvision, data_dir: str | os.PathLike[str] | None, download: bool) -> Arrays:
    root = _torchvision_root(what, data_dir)
    if root is None:
        if not download:
            raise FileNotFoundError(_how_to_get(f"{what.title} is not at hand, and download=False.", what.folder))
        root = _download(what)
    try:
        # torchvision unpickles CIFAR-10's files: the only pickles that are read here. It compares them with their
        # checksums first, so what is unpickled is what CIFAR-10's authors wrote.
        train, test = (what.open(root, train=train) for train in (True, False))
    except (RuntimeError, ValueError, TypeError, LookupError, AssertionError, OSError) as error:
        raise ValueError(
            f"{root / what.folder} is damaged or incomplete ({type(error).__name__}: {error}); delete it and load again"
        ) from error
    return Arrays(
        np.asarray(train.data),
        np.asarray(train.targets, np.int64),
        np.asarray(test.data),
        np.asarray(test.targets, np.int64),
        tuple(train.classes),
    )


def _download(what: _Torchvision) -> Path:
    """Download into the cache: into a temporary folder, so that what is in place is complete."""
    cache = _cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".download-") as temporary:
            what.open(temporary, download=True)
            try:
                os.replace(Path(temporary) / what.folder, cache / what.folder)
            except OSError:
                if not (cache / what.folder).is_dir():  # else another process was faster
                    raise
    except (OSError, RuntimeError, http.client.HTTPException, EOFError) as error:
        raise FileNotFoundError(
            _how_to_get(
                f"{what.title} is not at hand and could not be downloaded ({type(error).__name__}: {error}).",
                what.folder,
            )
        ) from error
    return cache


def _how_to_get(problem: str, folder: str) -> str:
    return (
        f"{problem} There are three ways to get images. (1) With a connection to the internet, load_images('cifar10') "
        f"downloads them. (2) Files that you have are found as FOLDER/data/{folder} if the environment variable "
        "NADTOOLS_DATA or the argument data_dir names FOLDER; load_images also takes the path of a .npz file, a folder "
        "or an archive. (3) load_images('digits') needs nothing but scikit-learn."
    )


def _read_digits() -> Arrays:
    try:
        datasets = importlib.import_module("sklearn.datasets")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the digits come with scikit-learn, which is not installed: pip install scikit-learn"
        ) from error
    digits = datasets.load_digits()
    x, y = (digits.images / 16).astype(np.float32), np.asarray(digits.target, np.int64)
    cut = _DIGITS_TRAIN
    return Arrays(x[:cut], y[:cut], x[cut:], y[cut:], tuple(str(name) for name in digits.target_names))


def _read_npz(path: Path) -> Arrays:
    keys = ("x_train", "y_train", "x_test", "y_test")
    try:
        arrays = storage.read_members(path, (*keys, "class_names"), _MAX_NPZ_BYTES)
        missing = sorted(set(keys) - set(arrays))
        if missing:
            raise ValueError(f"it lacks {', '.join(missing)} and holds {', '.join(arrays) or 'none of them'}")
    except ValueError as error:
        raise ValueError(f"{path} cannot be used ({error}); expected a .npz file with {', '.join(keys)}") from error
    x_train, y_train, x_test, y_test = (arrays[key] for key in keys)
    y_train, y_test = (_check_labels(y, name) for y, name in ((y_train, "y_train"), (y_test, "y_test")))
    x_train, x_test = (_check_pixels(x, name) for x, name in ((x_train, "x_train"), (x_test, "x_test")))
    for x, y, split in ((x_train, y_train, "train"), (x_test, y_test, "test")):
        if len(x) != len(y) or len(x) < 1:
            raise ValueError(f"got {len(x)} images and {len(y)} labels to {split}; expected as many, at least one")
    if x_train.shape[1:] != x_test.shape[1:]:
        raise ValueError(f"got images of shape {x_train.shape[1:]} to train, {x_test.shape[1:]} to test; expected one")
    num_classes = int(max(y_train.max(), y_test.max())) + 1
    names = arrays.get("class_names", np.arange(num_classes))
    if names.ndim != 1 or len(names) > _MAX_CLASSES:
        raise ValueError(f"got class_names of shape {names.shape}; expected (n,), at most {_MAX_CLASSES:,} names")
    if len(names) < num_classes:
        raise ValueError(f"got labels up to {num_classes - 1} and {len(names)} class_names; expected a name for each")
    return Arrays(x_train, y_train, x_test, y_test, tuple(map(str, names.tolist())))


def _check_labels(y: np.ndarray, name: str) -> np.ndarray:
    if not np.issubdtype(y.dtype, np.integer):
        raise TypeError(f"got {name} of dtype {y.dtype}; expected integers")
    if y.ndim == 2 and y.shape[1] == 1:  # as Keras gives CIFAR-10's
        y = y[:, 0]
    if y.ndim != 1 or (y.size and int(y.min()) < 0):
        raise ValueError(f"got {name} of shape {y.shape}; expected (n,) labels from 0")
    if y.size and int(y.max()) >= _MAX_CLASSES:
        raise ValueError(f"got {name} with the label {y.max()}; expected labels 0, 1, 2, ... below {_MAX_CLASSES:,}")
    return y.astype(np.int64)


def _check_pixels(x: np.ndarray, name: str) -> np.ndarray:
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


def _data_folders(data_dir: str | os.PathLike[str] | None) -> tuple[Path, ...]:
    """Where the reader's files may lie."""
    given = data_dir if data_dir is not None else os.environ.get("NADTOOLS_DATA")
    if not given:
        return ()
    folder = Path(given).expanduser()
    if not folder.is_dir():
        origin = "data_dir" if data_dir is not None else "the environment variable NADTOOLS_DATA"
        raise FileNotFoundError(f"{origin} names {str(folder)!r}, which is not a folder; correct it or leave it out")
    return folder / "data", folder


def _find(name: str, data_dir: str | os.PathLike[str] | None) -> Path | None:
    return next((folder / name for folder in _data_folders(data_dir) if (folder / name).is_file()), None)


def _torchvision_root(what: _Torchvision, data_dir: str | os.PathLike[str] | None) -> Path | None:
    folders = (*_data_folders(data_dir), _cache_folder())
    return next((folder for folder in folders if (folder / what.folder).is_dir()), None)


def _cache_folder() -> Path:
    named = os.environ.get("NADTOOLS_CACHE")
    if not named:
        import pooch

        named = pooch.os_cache("nadtools")
    return Path(named).expanduser() / "images"


# ---------------------------------------------------------------------------------------------------------------------
# From arrays to tensors
# ---------------------------------------------------------------------------------------------------------------------


def _balanced(y: np.ndarray, count: int, class_names: tuple[str, ...], seed: int, split: str) -> np.ndarray:
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
