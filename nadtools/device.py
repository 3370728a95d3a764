"""Devices, random streams, and contexts around a call that must not change its result.

Every stochastic function of the package takes an integer ``seed`` and draws from generators made here, so the
global random state of PyTorch is never read and never changed. No two uses of one seed share a stream: each says what
it is for (:func:`stream`), and each unit of work has a seed of its own (:func:`derive_seed`).
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import torch

from nadtools.checks import check_seed

__all__ = [
    "DerivedSeed", "available_memory", "derive_seed", "full_precision", "generator", "isolated_random_state",
    "one_thread", "require_memory", "resolve_device", "stream", "unaffected_by_context",
]  # fmt: skip


def resolve_device(device: str | torch.device | None = None) -> torch.device:
    """The device to compute on: the one that is named, else CUDA where there is one, else the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"got device {device!r}; expected None, 'cpu', 'cuda' or 'cuda:<index>'") from error
    if resolved.type == "cuda":
        count = torch.cuda.device_count()
        if (resolved.index or 0) >= count:
            raise ValueError(f"got device {str(device)!r}, but PyTorch sees {count} CUDA devices; use device='cpu'")
    elif resolved.type != "cpu":
        # Apple's "mps" has no float64, in which second moments are accumulated.
        raise ValueError(f"got device {str(device)!r}; expected None, 'cpu', 'cuda' or 'cuda:<index>'")
    return resolved


class DerivedSeed(int):
    """A seed that :func:`derive_seed` made for one unit of work: it names its stream by itself."""


def derive_seed(seed: int, *keys: int | str) -> DerivedSeed:
    """A seed for one unit of work, bound to the unit and not to the order in which units run: 63 well-mixed bits.

    The keys name the unit: its purpose, and non-negative integers such as the index of the network.
    (PyTorch's CPU generator uses the lower 32 of the bits.)
    """
    words = [zlib.crc32(key.encode()) if isinstance(key, str) else key for key in keys]
    low, high = np.random.SeedSequence([check_seed(seed), *words]).generate_state(2, np.uint32).tolist()
    return DerivedSeed(int(low) | (int(high) & 0x7FFFFFFF) << 32)


def stream(seed: int, purpose: str) -> DerivedSeed:
    """The seed of one use of a seed: no two purposes share a stream.

    A derived seed is for one use already, and is returned as it is.
    """
    seed = check_seed(seed)
    return seed if isinstance(seed, DerivedSeed) else derive_seed(seed, purpose)


def generator(device: torch.device, seed: int, *keys: int | str) -> torch.Generator:
    """A fresh generator on ``device`` for the unit of work that ``keys`` name."""
    return torch.Generator(device=device).manual_seed(derive_seed(seed, *keys))


@contextmanager
def isolated_random_state(seed: int) -> Iterator[None]:
    """Seed PyTorch's global generators inside the block, and put them back as they were after it.

    Layers draw their initial weights from the global generator and offer no other way.
    """
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


@contextmanager
def full_precision() -> Iterator[None]:
    """Turn TF32 off inside the block: its ten bits of mantissa are too few for a covariance."""
    matmul, cudnn = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = matmul, cudnn


_ONE_THREAD = threading.RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread inside the block: rounding depends on their number, and a training amplifies it.

    The number belongs to the process. So only one of its Python threads at a time is inside; others wait.
    """
    with _ONE_THREAD:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


@contextmanager
def unaffected_by_context() -> Iterator[None]:
    """Compute inside the block as if no context were around it; as a decorator, in each call.

    Autocast, inference mode, ``no_grad``, a default dtype and a default device of the caller's would otherwise change
    numbers, or fail where nobody looks for the reason.
    """
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autocast("cpu", enabled=False),
            torch.autocast("cuda", enabled=False),
            # Entered only where it changes something: it looks at every call of a torch function.
            nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu"),
        ):
            yield
    finally:
        torch.set_default_dtype(dtype)


def available_memory(device: torch.device) -> int | None:
    """Bytes that can be had on the device without swapping; None where the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def require_memory(needed: int, what: str, advice: str, device: torch.device | None = None) -> None:
    """Refuse, with what to do instead, what takes more bytes than are free."""
    free = available_memory(device or torch.device("cpu"))
    if free is not None and needed > free:
        raise MemoryError(f"{what} need about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free; {advice}")
