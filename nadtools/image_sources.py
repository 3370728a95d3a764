"""Where images come from: CIFAR-10, Fashion-MNIST, or your own files, read as arrays.

The files of CIFAR-10 and Fashion-MNIST are looked for, in this order,

1. in a folder of files that you have: the argument ``data_dir``, or else the environment variable ``NADTOOLS_DATA``;
   there in the subfolder ``data`` and then in the folder itself, as torchvision lays them out
   (``cifar-10-batches-py``, ``FashionMNIST``);
2. in the download cache: the system's usual cache folder, or the one that ``NADTOOLS_CACHE`` names;
3. on the internet, by torchvision, which knows their addresses and checksums.
"""

from __future__ import annotations

import hashlib
import http.client
import lzma
import os
import struct
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from nadtools import storage
from nadtools.progress import progress_bar

__all__ = ["CIFAR10_BATCH", "MAX_CLASSES", "NAMES", "Arrays", "ImagesNotFoundError", "best_at_hand", "read"]

NAMES: Final = ("cifar10", "cifar10-jpeg", "fashion-mnist")
CIFAR10_CLASSES: Final = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip

_CIFAR10_SUBSET: Final = "cifar10-first-1000-per-batch.npz"  # exact pixels
_CIFAR10_JPEG: Final = "cifar10-jpeg.tar.xz"  # a lossy copy of all images
_SUBSET_MOST: Final = 1000  # images of each batch that the subset's file holds
CIFAR10_BATCH: Final = 10_000
_MAX_NPZ_BYTES: Final = 8 * 2**30
MAX_CLASSES: Final = 100_000  # four times those of ImageNet-21k
_MAX_UNPACKED: Final = 2**30  # bytes, with a block for each file
_MAX_PIXELS: Final = 2**26  # in one image file; a few bytes can claim to be any number of pixels
_FORMATS: Final = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP")
_GREY_MODES: Final = ("1", "L", "LA")
_COLOUR_MODES: Final = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")


class ImagesNotFoundError(FileNotFoundError):
    """A data set that is neither at hand nor to be had; the message says how to get one."""


class Arrays(NamedTuple):
    """Images as they are stored, as :func:`nadtools.images.from_arrays` takes them."""

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    class_names: tuple[str, ...] | None


class _Torchvision(NamedTuple):
    title: str
    class_name: str  # in torchvision.datasets
    folder: str

    def open(self, root: str | os.PathLike[str], **options: bool) -> Any:
        import torchvision.datasets  # as long to import as PyTorch

        return getattr(torchvision.datasets, self.class_name)(root, **options)


_CIFAR10: Final = _Torchvision("CIFAR-10", "CIFAR10", "cifar-10-batches-py")
_FASHION_MNIST: Final = _Torchvision("Fashion-MNIST", "FashionMNIST", "FashionMNIST")


def read(
    source: str | os.PathLike[str],
    subset: int | None,
    size: int,
    data_dir: str | os.PathLike[str] | None,
    download: bool,
    progress: bool,
) -> tuple[Arrays, str]:
    """Read the arrays as they are stored, and what they are; the arguments are those of ``load_images``.

    Images in a folder come at size x size pixels.
    """
    match source:
        case "cifar10":
            return _read_cifar10(subset, data_dir, download)
        case "cifar10-jpeg":
            return _read_cifar10_jpeg(size, data_dir, progress), "CIFAR-10, JPEG copy (lossy)"
        case "fashion-mnist":
            return _read_torchvision(_FASHION_MNIST, data_dir, download), "Fashion-MNIST"
    path = Path(source).expanduser()
    if not path.exists():
        known = ", ".join(map(repr, NAMES))
        raise FileNotFoundError(f"got source {str(source)!r}, which is neither {known} nor a file or folder there is")
    if path.is_dir():
        return _read_folder(path, size, progress), f"the folder {path.resolve().name}, at {size}x{size} pixels"
    if path.suffix != ".npz":
        raise ValueError(f"got source {path.name!r}; expected a .npz file, or a folder: unpack archives first")
    return _read_npz(path), path.name


def best_at_hand(data_dir: str | os.PathLike[str] | None, subset: int | None) -> tuple[str, int | None]:
    """The name of a data set that needs no network, and the subset of it.

    Raises:
        ImagesNotFoundError: If there is none.
    """
    if _torchvision_root(_CIFAR10, data_dir) is not None:
        return "cifar10", subset
    if (subset or _SUBSET_MOST) <= _SUBSET_MOST and _find(_CIFAR10_SUBSET, data_dir) is not None:
        return "cifar10", subset or _SUBSET_MOST
    if _torchvision_root(_FASHION_MNIST, data_dir) is not None:
        return "fashion-mnist", None
    raise ImagesNotFoundError(_how_to_get("No images are at hand.", _CIFAR10.folder))


def _read_cifar10(subset: int | None, data_dir: str | os.PathLike[str] | None, download: bool) -> tuple[Arrays, str]:
    if subset is None:
        return _read_torchvision(_CIFAR10, data_dir, download), "CIFAR-10"
    description = f"CIFAR-10, the first {subset:,} images of each batch"
    path = _find(_CIFAR10_SUBSET, data_dir) if subset <= _SUBSET_MOST else None
    if path is not None:
        arrays, per_batch = _read_npz(path)._replace(class_names=CIFAR10_CLASSES), _SUBSET_MOST
    else:
        arrays, per_batch = _read_torchvision(_CIFAR10, data_dir, download), CIFAR10_BATCH
    _check_counts(arrays, per_batch, path or _CIFAR10.folder)

    def first(array: np.ndarray) -> np.ndarray:
        batches = array.reshape(-1, per_batch, *array.shape[1:])[:, :subset]
        return batches.reshape(-1, *array.shape[1:])

    x_train, y_train, x_test, y_test = map(first, (arrays.x_train, arrays.y_train, arrays.x_test, arrays.y_test))
    return Arrays(x_train, y_train, x_test, y_test, arrays.class_names), description


def _check_counts(arrays: Arrays, per_batch: int, origin: object) -> None:
    for y, batches in ((arrays.y_train, 5), (arrays.y_test, 1)):
        if len(y) != batches * per_batch:
            raise ValueError(f"{origin} holds {len(y)} images, expected {batches * per_batch}")


def _read_cifar10_jpeg(size: int, data_dir: str | os.PathLike[str] | None, progress: bool) -> Arrays:
    archive = _find(_CIFAR10_JPEG, data_dir)
    if archive is None:
        where = "in the folder that data_dir or NADTOOLS_DATA names, nor in its subfolder 'data'"
        raise ImagesNotFoundError(f"there is no {_CIFAR10_JPEG} {where}; load_images('cifar10') takes the originals")
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    folder = _cache_folder() / f"cifar10-jpeg-{digest[:16]}"
    if not folder.is_dir():
        try:
            _make_folder(folder, lambda target: _unpack(archive, target, progress))
        except (tarfile.TarError, EOFError, lzma.LZMAError) as error:
            raise ValueError(f"{archive} is damaged, truncated or no archive ({error!r}); copy it again") from error
        except OSError as error:
            problem = f"{archive} could not be unpacked into {folder.parent} ({error})"
            raise OSError(error.errno, f"{problem}; NADTOOLS_CACHE names another folder") from error
    arrays = _read_folder(folder, size, progress)
    _check_counts(arrays, CIFAR10_BATCH, f"{archive}, unpacked to {folder},")
    return arrays


def _unpack(archive: Path, folder: Path, progress: bool) -> None:
    """Unpack files and folders, none of which can land outside, and no more than a limit."""
    folder.mkdir()
    total = 0
    with tarfile.open(archive, "r:xz") as tar:
        for member in progress_bar(tar, progress, desc=f"unpacking {archive.name}", unit=" files"):
            total += member.size + 4096
            if total > _MAX_UNPACKED:
                raise ValueError(f"{archive} holds more than {_MAX_UNPACKED / 2**30:.3g} GiB; copy it again")
            if not (member.isreg() or member.isdir()):
                raise ValueError(f"{archive} holds a link or a device: {member.name!r}; do not unpack it")
            tar.extract(member, folder, filter="data")
        while tar.fileobj is not None and tar.fileobj.read(2**20):
            pass  # what follows the last member: the checksum comes at the end


def _read_folder(folder: Path, size: int, progress: bool) -> Arrays:
    """The images of a folder, class by class, in the order of their names."""
    from torchvision import datasets

    def is_image(path: str) -> bool:
        # Dot files are the file system's own ("._photo.jpg"), not photographs.
        return not Path(path).name.startswith(".") and datasets.folder.is_image_file(path)

    decoded: dict[str, list[np.ndarray]] = {}
    y: dict[str, np.ndarray] = {}
    numbers: dict[str, int] = {}
    for split in ("train", "test"):
        try:
            files = datasets.ImageFolder(str(folder / split), is_valid_file=is_image, allow_empty=split == "test")
        except FileNotFoundError as error:
            raise ValueError(f"{folder} holds no images as train/CLASS/NAME and test/CLASS/NAME: {error}") from error
        numbers = numbers or files.class_to_idx
        names = [files.classes[label] for _, label in files.samples]
        if strange := sorted(set(names) - set(numbers)):
            raise ValueError(f"{folder} has test images of {', '.join(strange)}, but no training images of that class")
        if not names:
            raise ValueError(f"{folder} holds no images as {split}/CLASS/NAME.png, .jpg, .ppm, .bmp, .tif or .webp")
        bar = progress_bar(files.samples, progress, desc=f"reading {split}", unit=" images")
        decoded[split] = [_decode(path, size) for path, _ in bar]
        y[split] = np.array([numbers[name] for name in names], np.int64)
    colour = any(image.ndim == 3 for images in decoded.values() for image in images)
    x = {
        split: np.stack([i[..., None].repeat(3, 2) if colour and i.ndim == 2 else i for i in images])
        for split, images in decoded.items()
    }
    return Arrays(x["train"], y["train"], x["test"], y["test"], tuple(numbers))


def _decode(path: str, size: int) -> np.ndarray:
    """An image file's pixels: (size, size), or (size, size, 3) for colour; uint8."""
    from PIL import Image

    try:
        with Image.open(path, formats=_FORMATS) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise ValueError(f"it has {image.width} x {image.height} pixels, more than {_MAX_PIXELS}")
            if image.mode not in (*_GREY_MODES, *_COLOUR_MODES):
                raise ValueError(f"its mode is {image.mode}; expected 8 bits a channel")
            # By way of RGBA, as a palette may hold transparency, which is then dropped.
            plain = image.convert("RGBA") if image.mode in ("P", "PA") else image
            plain = plain.convert("L" if image.mode in _GREY_MODES else "RGB")
            if plain.size != (size, size):
                plain = plain.resize((size, size), Image.Resampling.BILINEAR)
            return np.asarray(plain)
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} cannot be used: {error}") from error


def _read_torchvision(what: _Torchvision, data_dir: str | os.PathLike[str] | None, download: bool) -> Arrays:
    root = _torchvision_root(what, data_dir)
    if root is None:
        if not download:
            raise ImagesNotFoundError(_how_to_get(f"{what.title} is not at hand, and download=False.", what.folder))
        root = _download(what)
    try:
        # torchvision unpickles CIFAR-10's files: the only pickles that are read here. It compares them with their
        # checksums first, so what is unpickled is what CIFAR-10's authors wrote.
        train, test = (what.open(root, train=train) for train in (True, False))
    except (RuntimeError, ValueError, TypeError, LookupError, AssertionError, OSError) as error:
        raise ValueError(f"{root / what.folder} is damaged or incomplete ({error!r}); delete it") from error
    return Arrays(
        np.asarray(train.data),
        np.asarray(train.targets, np.int64),
        np.asarray(test.data),
        np.asarray(test.targets, np.int64),
        tuple(train.classes),
    )


def _download(what: _Torchvision) -> Path:
    cache = _cache_folder()
    try:
        _make_folder(cache / what.folder, lambda folder: what.open(folder.parent, download=True))
    except (OSError, RuntimeError, http.client.HTTPException, EOFError) as error:
        reason = f"{what.title} is not at hand and could not be downloaded ({type(error).__name__}: {error})."
        raise ImagesNotFoundError(_how_to_get(reason, what.folder)) from error
    return cache


def _make_folder(folder: Path, fill: Callable[[Path], object]) -> None:
    """Make a folder with its content, first inside a temporary one, so that what is in place is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as temporary:
        fill(Path(temporary) / folder.name)
        try:
            os.replace(Path(temporary) / folder.name, folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise


def _how_to_get(problem: str, folder: str) -> str:
    return (
        f"{problem} There are two ways to get images. (1) With a connection to the internet, load_images('cifar10') "
        f"downloads them. (2) Files that you have are found as FOLDER/data/{folder} if the environment variable "
        "NADTOOLS_DATA or the argument data_dir names FOLDER; load_images also takes the path of a .npz file or folder."
    )


def _read_npz(path: Path) -> Arrays:
    keys = ("x_train", "y_train", "x_test", "y_test")
    try:
        arrays = storage.read_members(path, (*keys, "class_names"), _MAX_NPZ_BYTES)
        missing = sorted(set(keys) - set(arrays))
        if missing:
            raise ValueError(f"it lacks {', '.join(missing)} and holds {', '.join(arrays) or 'none of them'}")
    except ValueError as error:
        raise ValueError(f"{path} cannot be used ({error}); expected a .npz file with {', '.join(keys)}") from error
    names = arrays.get("class_names")
    if names is not None and (names.ndim != 1 or len(names) > MAX_CLASSES):
        raise ValueError(f"got class_names of shape {names.shape}; expected (n,), at most {MAX_CLASSES:,} names")
    texts = None if names is None else tuple(map(str, names.tolist()))
    return Arrays(**{key: arrays[key] for key in keys}, class_names=texts)


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
        variable, usual = {"win32": ("LOCALAPPDATA", "~/AppData/Local"), "darwin": ("", "~/Library/Caches")}.get(
            sys.platform, ("XDG_CACHE_HOME", "~/.cache")
        )
        named = os.path.join(os.environ.get(variable) or usual, "nadtools")
    return Path(named).expanduser() / "images"
