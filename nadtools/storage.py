"""Results on disk: atomic, checksummed, never pickled, each with its provenance.

A file is a NumPy ``.npz`` archive: the arrays, and one JSON text that holds the metadata, the format version and
the SHA-256 of every array.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

__all__ = ["device_of", "provenance", "read_arrays", "write_arrays", "write_bytes"]

FORMAT_VERSION = 1
_HEADER = "__nadtools__"


def write_bytes(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file so that a reader sees the old content or the new, whatever happens in between.

    Raises
    ------
    OSError
        If the folder does not exist or the disk is full. The old file, if there was one, is then unharmed.
    """
    path = Path(path)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes private files; a result should have the permissions that the user's umask gives any file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return path


def write_arrays(
    path: str | os.PathLike[str],
    arrays: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
    *,
    compress: bool = True,
) -> Path:
    """Write named arrays and their metadata (anything JSON can hold) to a ``.npz`` file, atomically.

    Raises
    ------
    TypeError
        If the metadata cannot be written as JSON or an array holds Python objects.
    ValueError
        If the path does not end in ``.npz``.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"got the file name {path.name!r}; expected one that ends in '.npz'")
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in contiguous.items():
        if array.dtype.hasobject:
            raise TypeError(
                f"the array {name!r} has dtype {array.dtype}; expected numbers or text, which need no pickle"
            )
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

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, truncated, not ours, or of a later format.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    content = io.BytesIO(path.read_bytes())
    try:
        with np.load(content, allow_pickle=False) as archive:
            header = json.loads(str(archive[_HEADER]))
            arrays = {name: archive[name] for name in archive.files if name != _HEADER}
    # NumPy and zipfile report damage in many ways (zlib.error among them, a plain Exception).
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        raise ValueError(_damaged(path, f"{type(error).__name__}: {error}")) from error
    except Exception as error:
        if type(error).__module__ != "zlib":
            raise
        raise ValueError(_damaged(path, str(error))) from error
    if header.get("format") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {header.get('format')!r}, this nadtools reads version {FORMAT_VERSION}; "
            "read it with the version of nadtools that wrote it, or make it again"
        )
    digests = header["sha256"]
    if set(digests) != set(arrays):
        raise ValueError(_damaged(path, f"it holds {sorted(arrays)}, its header names {sorted(digests)}"))
    for name, array in arrays.items():
        if _digest(array) != digests[name]:
            raise ValueError(_damaged(path, f"the checksum of {name!r} does not match"))
    return arrays, header["metadata"]


def device_of(provenance: Mapping[str, Any]) -> str:
    """The device that a result was made on, in words: earlier files say "1 threads"."""
    return str(provenance["device"]).replace(" 1 threads)", " 1 thread)")


def provenance(seed: int | None = None, device: torch.device | str | None = None) -> dict[str, Any]:
    """Where and when a result was made: versions, device, date, source revision, seed."""
    device_name = str(device) if device is not None else "cpu"
    if device_name.startswith("cuda") and torch.cuda.is_available():
        device_name = f"{device_name} ({torch.cuda.get_device_name(device_name)})"
    elif device_name == "cpu":
        threads = torch.get_num_threads()
        device_name = f"cpu ({platform.machine()}, {threads} thread{'s' if threads > 1 else ''})"
    from nadtools import __version__  # the package is complete by the time that this is called

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
