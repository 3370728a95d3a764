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
    """
    return DirectionExplorer(shape, seed, device, num_samples)
