"""Devices, random streams and numerical precision.

Every stochastic function of the package takes an integer ``seed`` and draws from generators made here, so the
global random state of PyTorch is never read and never changed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from nadtools.checks import check_seed

__all__ = [
    "derive_seed",
    "full_precision",
    "generator",
    "isolated_random_state",
    "one_thread",
    "resolve_device",
]


def resolve_device(device: str | torch.device | None = None) -> torch.device:
    """The device to compute on: the one that is named, else CUDA where there is one, else the CPU.

    Parameters
    ----------
    device : str, torch.device or None
        For instance ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.

    Raises
    ------
    ValueError
        If the name is not a device or the device does not exist on this machine.
    """
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"got device {device!r}; expected None, 'cpu', 'cuda' or 'cuda:<index>'") from error
    if resolved.type == "cuda":
        count = torch.cuda.device_count()
        if (resolved.index or 0) >= count:
            raise ValueError(
                f"got device {str(device)!r}, but PyTorch sees {count} CUDA devices here; "
                "use device='cpu', or device=None to take the best one there is"
            )
    elif resolved.type != "cpu":
        # Apple's "mps" has no float64, in which second moments are accumulated.
        raise ValueError(f"got device {str(device)!r}; expected None, 'cpu', 'cuda' or 'cuda:<index>'")
    return resolved


def derive_seed(seed: int, *keys: int) -> int:
    """A seed for one unit of work, bound to the unit and not to the order in which units run.

    Parameters
    ----------
    seed : int
        The seed the user gave.
    *keys : int
        Non-negative integers that name the unit, for instance the index of the network.

    Returns
    -------
    int
        63 well-mixed bits. (PyTorch's CPU generator uses the lower 32 of them.)
    """
    low, high = np.random.SeedSequence([check_seed(seed), *keys]).generate_state(2, np.uint32).tolist()
    return int(low) | (int(high) & 0x7FFFFFFF) << 32


def generator(device: torch.device, seed: int, *keys: int) -> torch.Generator:
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
