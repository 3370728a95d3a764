"""Photographs in a folder or an archive, laid out as torchvision's ImageFolder, decoded to arrays.

The layout is ``train/CLASS/NAME`` and ``test/CLASS/NAME``, perhaps inside one more folder. An archive is decoded as it
is read: no member of it is ever written to the disk, so none can land outside a target folder and an interruption
leaves nothing half unpacked. The decoded arrays are cached under the archive's SHA-256.
"""

from __future__ import annotations

import functools
import hashlib
import io
import lzma
import re
import stat
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

import numpy as np

from nadtools import storage
from nadtools.progress import progress_bar

__all__ = ["ARCHIVE_SUFFIXES", "Arrays", "read_archive", "read_folder"]

ARCHIVE_SUFFIXES: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
#: An archive may hold this much, unpacked and decoded together; a folder may be larger.
MAX_ARCHIVE_BYTES: Final = 4 * 2**30
_MAX_PIXELS: Final = 2**26  # in one image; a few bytes can claim to be any number of pixels
_IMAGE_SUFFIXES: Final = (".jpg", ".jpeg", ".png", ".ppm", ".pgm", ".bmp", ".tif", ".tiff", ".webp")
_FORMATS: Final = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP")
_GREY_MODES: Final = ("1", "L", "LA")
_COLOUR_MODES: Final = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
_SPLITS: Final = ("train", "test")
_LAYOUT: Final = "expected images as train/CLASS/NAME.png and test/CLASS/NAME.png (or .jpg, .ppm, .bmp, .tif, .webp)"
# What the standard library raises for damaged, truncated, encrypted or unknown archives.
_DAMAGE: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    EOFError,
    OSError,
    RuntimeError,
    lzma.LZMAError,
    struct.error,
    zlib.error,
)
_CACHE_VERSION: Final = 1


class Arrays(NamedTuple):
    """Images as they are stored: x (n, h, w) or (n, h, w, 3), uint8 or float32 in [0, 1]; y (n,), int64."""

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    class_names: tuple[str, ...]


class _File(NamedTuple):
    name: str
    size: int
    read: Callable[[], bytes]


def read_folder(folder: Path, size: int, *, progress: bool = True) -> Arrays:
    """Decode the images of a folder.

    Parameters
    ----------
    folder : Path
    size : int
        Images of another shape are stretched to size x size pixels (bilinear, antialiased).
    progress : bool
        Show a progress bar.

    Raises
    ------
    ValueError
        If there are no images in the layout, a class lacks training images, or a file is not a readable image.
    """
    files = (
        _File(path.relative_to(folder).as_posix(), path.stat().st_size, path.read_bytes)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )
    return _decode_files(progress_bar(files, progress, desc=f"reading {folder.name}", unit=" images"), folder, size)


def read_archive(archive: Path, size: int, cache: Path, *, progress: bool = True) -> Arrays:
    """Decode the images of a .zip or .tar archive, or read what an earlier call decoded.

    Parameters
    ----------
    archive : Path
        Its name ends in one of :data:`ARCHIVE_SUFFIXES`.
    size : int
        As in :func:`read_folder`.
    cache : Path
        Folder of the decoded arrays. It is made if it is missing.
    progress : bool
        Show a progress bar.

    Raises
    ------
    ValueError
        As :func:`read_folder`, and if the archive is damaged, truncated, holds links or paths that lead out of it, or
        more than :data:`MAX_ARCHIVE_BYTES`.
    """
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    cached = cache / f"{digest}-{size}-v{_CACHE_VERSION}.npz"
    try:
        arrays, metadata = storage.read_arrays(cached)
        return Arrays(**arrays, class_names=tuple(metadata["class_names"]))
    except FileNotFoundError:
        pass
    except (ValueError, TypeError, KeyError):  # damaged: it is only a cache
        cached.unlink(missing_ok=True)
    members = _zip_members(archive) if archive.suffix.lower() == ".zip" else _tar_members(archive)
    bar = progress_bar(_checked(members, archive, size), progress, desc=f"reading {archive.name}", unit=" images")
    try:
        decoded = _decode_files(bar, archive, size)
    except _DAMAGE as error:
        raise ValueError(
            f"{archive} is damaged, truncated or no archive ({type(error).__name__}: {error}); copy it again"
        ) from error
    try:
        cache.mkdir(parents=True, exist_ok=True)
        arrays = decoded._asdict()
        metadata = {"class_names": arrays.pop("class_names")}
        # Stored as they are: compressing takes longer than decoding.
        storage.write_arrays(cached, arrays, metadata, compress=False)
    except OSError as error:
        warnings.warn(
            f"the decoded images could not be kept in {cache} ({error}), so they will be decoded again next time; "
            "NADTOOLS_CACHE names another folder",
            stacklevel=3,
        )
    return decoded


# ---------------------------------------------------------------------------------------------------------------------
# What is in an archive
# ---------------------------------------------------------------------------------------------------------------------


def _tar_members(archive: Path) -> Iterator[_File]:
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            if member.isdir():
                continue
            if not member.isreg():
                raise ValueError(_refused(archive, member.name, "a link or a device"))
            yield _File(member.name, member.size, functools.partial(_read_member, tar, member))
        # tarfile takes any unreadable header for the end. A complete archive ends with blocks of zeros.
        assert tar.fileobj is not None
        tar.fileobj.seek(tar.offset)
        if tar.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError(f"no end mark at byte {tar.offset}")


def _read_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None  # it is a regular file
    return file.read()


def _zip_members(archive: Path) -> Iterator[_File]:
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            if member.is_dir():
                continue
            if stat.S_ISLNK(member.external_attr >> 16):
                raise ValueError(_refused(archive, member.filename, "a link"))
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # those inflate without limit
                raise ValueError(f"{archive} compresses {member.filename!r} in a way that is not read; make it again")
            yield _File(member.filename, member.file_size, functools.partial(_read_zipped, file, member))


def _read_zipped(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with file.open(member) as opened:
        # A member that holds more than it says fails its checksum: no more than it says is unpacked.
        return opened.read(member.file_size)


def _checked(members: Iterable[_File], archive: Path, size: int) -> Iterator[_File]:
    """The members, as long as their paths stay inside and their sizes within bounds."""
    total = 0
    for member in members:
        path = PurePosixPath(member.name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", member.name):
            raise ValueError(_refused(archive, member.name, "a path that leads out of the archive"))
        total += member.size + 3 * size**2
        if total > MAX_ARCHIVE_BYTES:
            raise ValueError(
                f"{archive} holds more than {MAX_ARCHIVE_BYTES / 2**30:.3g} GiB; "
                "if you trust it, unpack it and give the folder"
            )
        yield member


def _refused(archive: Path, name: str, what: str) -> str:
    return f"{archive} holds {what}: {name!r}; expected plain files and folders. Do not unpack it unless you trust it"


# ---------------------------------------------------------------------------------------------------------------------
# From files to arrays
# ---------------------------------------------------------------------------------------------------------------------


def _decode_files(files: Iterable[_File], origin: Path, size: int) -> Arrays:
    images: dict[str, list[tuple[str, str, np.ndarray]]] = {split: [] for split in _SPLITS}
    tops: set[str] = set()
    for file in files:
        parts = tuple(part for part in file.name.split("/") if part != ".")
        # Dot files are the file system's own ("._photo.jpg"), not photographs.
        if not parts[-1].lower().endswith(_IMAGE_SUFFIXES) or parts[-1].startswith(".") or "__MACOSX" in parts:
            continue
        position = next((i for i, part in enumerate(parts[:2]) if part in _SPLITS), None)
        if position is None or len(parts) < position + 3:
            continue
        tops.add("/".join(parts[:position]))
        label = parts[position + 1]
        images[parts[position]].append((label, file.name, _decode(file.read(), f"{origin}: {file.name}", size)))
    if len(tops) > 1:
        raise ValueError(f"{origin} holds several data sets, in {', '.join(sorted(tops))}; give one of them")
    missing = [split for split in _SPLITS if not images[split]]
    if missing:
        raise ValueError(f"found no images to {' and to '.join(missing)} in {origin}; {_LAYOUT}")
    names = tuple(sorted({label for label, _, _ in images["train"]}))
    strange = sorted({label for label, _, _ in images["test"]} - set(names))
    if strange:
        raise ValueError(f"{origin} has test images of {', '.join(strange)}, but no training images of that class")
    colour = any(image.ndim == 3 for split in _SPLITS for _, _, image in images[split])
    (x_train, y_train), (x_test, y_test) = (_stack(images.pop(split), names, colour, size) for split in _SPLITS)
    return Arrays(x_train, y_train, x_test, y_test, names)


def _stack(
    images: list[tuple[str, str, np.ndarray]], names: tuple[str, ...], colour: bool, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """The images of one split and their labels, in the order of their names, whatever it was in the archive."""
    images.sort(key=lambda entry: entry[:2])
    x = np.empty((len(images), size, size, *((3,) if colour else ())), np.uint8)
    for i, (_, _, image) in enumerate(images):
        x[i] = image[..., None] if colour and image.ndim == 2 else image
    return x, np.array([names.index(label) for label, _, _ in images], np.int64)


def _decode(content: bytes, name: str, size: int) -> np.ndarray:
    """An image file's pixels: (size, size), or (size, size, 3) for colour; uint8."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
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
        raise ValueError(f"{name} cannot be used: {error}") from error
