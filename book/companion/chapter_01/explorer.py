"""Explore D(v): a direction, its samples, a training."""

from __future__ import annotations

import torch

from companion.explorer import DirectionExplorer, live_only

__all__ = ["direction_explorer"]


@live_only
def direction_explorer(
    shape: tuple[int, int] = (32, 32),
    seed: int = 0,
    device: str | torch.device | None = None,
    num_samples: int = 2000,
) -> DirectionExplorer:
    """Explore D(v): choose a direction and an architecture, look at samples, and watch a training.

    Parameters
    ----------
    shape
        Height and width of the images, in pixels.
    seed
        Of the samples, the network's initialisation and the training.
    device
        Where to train; None means CUDA where there is one, else the CPU.
    num_samples
        Size of the training set and of the test set.

    Returns
    -------
    DirectionExplorer or StaticNotice
        The notice where the book is built as static pages.

    Raises
    ------
    TypeError, ValueError
        If the shape, the seed, the device or the number of samples is not one.
    """
    return DirectionExplorer(shape, seed, device, num_samples)
