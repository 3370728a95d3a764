"""Results on disk: atomic, checksummed, never pickled, each with its provenance.

A file is a NumPy ``.npz`` archive: the arrays, and one JSON text that holds the metadata, the format version and
the SHA-256 of every array.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import glob
import hashlib
import importlib.metadata
import io
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from nadtools._version import __version__

__all__ = ["lock", "provenance", "read_arrays", "read_members", "write_arrays", "write_bytes"]

FORMAT_VERSION = 1
_HEADER = "__nadtools__"


def write_bytes(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file so that a reader sees the old content or the new, whatever happens in between.

    What processes that were killed have left of earlier attempts at the same file is deleted. An OSError leaves the old
    file, if there was one, unharmed; it says how much was to be written, and what to do.
    """
    path = Path(path)
    try:
        _sweep(path)
        while not _replace(path, content):
            pass
    except OSError as error:
        reason = f"{error.strerror or error}; it takes {len(content):,} bytes"
        remedy = _REMEDIES.get(error.errno or 0, "make its folder writable, or name another file")
        raise OSError(error.errno or errno.EIO, f"{path} could not be written ({reason}): {remedy}") from error
    return path


_REMEDIES = {
    errno.ENOENT: "make its folder, or name another file",
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room, or name a file on another disk"),
}


def lock(descriptor: int) -> None:
    """Lock an open file until it is closed, or its process ends in whatever way.

    BlockingIOError says that somebody else holds it, another OSError that its file system has no locks.
    """
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(error.errno, "the file is locked") from error
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _replace(path: Path, content: bytes) -> bool:
    """Write a temporary file and rename it; False if another process took it for a dead one's and deleted it."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            with contextlib.suppress(OSError):
                lock(descriptor)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes private files; a result should have the permissions that the user's umask gives any file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, FileNotFoundError) and path.parent.is_dir():
            return False
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return True


def _sweep(path: Path) -> None:
    """Delete the temporary files of writers that are dead: a living one holds the lock of its own."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.????????.tmp"):
        with contextlib.suppress(OSError):
            with left.open("r+b") as file:
                lock(file.fileno())
            left.unlink()


def write_arrays(
    path: str | os.PathLike[str],
    arrays: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
    *,
    compress: bool = True,
) -> Path:
    """Write named arrays and their metadata (anything JSON can hold) to a ``.npz`` file, atomically."""
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"got the file name {path.name!r}; expected one that ends in '.npz'")
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in contiguous.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name!r} has dtype {array.dtype}; expected numbers or text, which need no pickle")
    header = {
        "format": FORMAT_VERSION,
        "metadata": dict(metadata),
        "sha256": {name: _digest(array) for name, array in contiguous.items()},
    }
    buffer = io.BytesIO()
    text: Any = {_HEADER: np.array(json.dumps(header))}
    save = np.savez_compressed if compress else np.savez
    save(buffer, allow_pickle=False, **contiguous, **text)
    return write_bytes(path, buffer.getvalue())


def read_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what :func:`write_arrays` wrote: the arrays and the metadata.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, truncated, not ours, or of a later format.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.is_file():
        raise ValueError(f"{path} is not a file; move it away")
    try:
        content = path.read_bytes()
        arrays = read_members(io.BytesIO(content), max_bytes=_MOST_INFLATION * len(content))
        if _HEADER not in arrays:
            raise ValueError(f"it holds {sorted(arrays)} and no header")
        header = json.loads(str(arrays.pop(_HEADER)))
    except (ValueError, RecursionError) as error:
        raise ValueError(_damaged(path, str(error))) from error
    if isinstance(header, dict) and header.get("format") != FORMAT_VERSION:
        known = f"this nadtools reads version {FORMAT_VERSION}"
        raise ValueError(f"{path} has format version {header.get('format')!r}, {known}; use the one that wrote it")
    if not isinstance(header, dict) or not all(isinstance(header.get(key), dict) for key in ("sha256", "metadata")):
        raise ValueError(_damaged(path, "its header lacks checksums or metadata"))
    found, named = {name: _digest(array) for name, array in arrays.items()}, header["sha256"]
    for name in sorted({*found, *named}):
        if found.get(name) != named.get(name):
            raise ValueError(_damaged(path, f"the checksum of {name!r} does not match, or one is missing"))
    return arrays, header["metadata"]


def read_members(
    file: str | os.PathLike[str] | BinaryIO, names: Iterable[str] | None = None, max_bytes: float = math.inf
) -> dict[str, np.ndarray]:
    """Read the arrays of any ``.npz`` file, or those that are named and there; no memory is taken on its word alone.

    Raises:
        ValueError: If the file cannot be read or is damaged, an array holds Python objects, or they take more than
            ``max_bytes``. The message is the reason only.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            if names is not None:
                members = {name: members[name] for name in names if name in members}
            total = sum(member.file_size for member in members.values())
            if total > max_bytes:
                raise ValueError(f"it holds {total / 2**30:.3g} GiB, more than {max_bytes / 2**30:.3g}")
            return {name: _read_member(archive, member, name) for name, member in members.items()}
    except MemoryError:
        raise
    except Exception as error:  # NumPy and zipfile report damage in a dozen ways
        raise ValueError(str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}") from error


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> np.ndarray:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name!r} is compressed in another way than NumPy's")
    if member.file_size > _MOST_INFLATION * member.compress_size:
        raise ValueError(f"{name!r} claims to hold {member.file_size:,} bytes in {member.compress_size:,}")
    with archive.open(member) as file:
        try:
            read_header = _HEADER_READERS[np.lib.format.read_magic(file)]
            shape, _, dtype = read_header(file)
        except Exception:  # whose message may recommend to unpickle the file
            raise ValueError(f"{name!r} has no header that can be read") from None
        if dtype.hasobject:
            raise ValueError(f"{name!r} holds Python objects; expected numbers or text, which need no pickle")
        size = math.prod(shape) * max(dtype.itemsize, 1)
        if size != member.file_size - file.tell():
            raise ValueError(f"{name!r} is of shape {shape} and {dtype}, which does not fit {member.file_size:,} bytes")
        file.seek(0)
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        return array


_MOST_INFLATION = 1032  # deflate makes at most 258 bytes of two bits
_HEADER_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def provenance(seed: int | None = None, device: torch.device | str | None = None) -> dict[str, Any]:
    """Where and when a result was made: versions, device, date, source revision, seed."""
    device_name = str(device) if device is not None else "cpu"
    if device_name.startswith("cuda") and torch.cuda.is_available():
        device_name = f"{device_name} ({torch.cuda.get_device_name(device_name)})"
    elif device_name == "cpu":
        threads = torch.get_num_threads()
        device_name = f"cpu ({platform.machine()}, {threads} thread{'s' if threads > 1 else ''})"
    return {
        "seed": seed,
        "device": device_name,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "revision": _revision(),
        "versions": {
            "nadtools": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "torchvision": importlib.metadata.version("torchvision"),
            "numpy": np.__version__,
        },
    }


def _revision() -> str | None:
    try:
        command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _digest(array: np.ndarray) -> str:
    description = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(description + np.ascontiguousarray(array).tobytes()).hexdigest()


def _damaged(path: Path, reason: str) -> str:
    return f"{path} is damaged or not a file of nadtools ({reason}); delete it and make it again"
