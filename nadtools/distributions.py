r"""The linearly separable distributions D(v), sampled on the device.

Source: *Neural Anisotropy Directions*, section 2; equation (1) of *A neural anisotropic view of underspecification*.
"""

from __future__ import annotations

import dataclasses
import math
import operator

import torch
from torch import Tensor

from nadtools.device import check_seed, generator, resolve_device
from nadtools.directions import as_direction

__all__ = ["LinearlySeparable"]

_LABELS, _NOISE = 0, 1  # each has a random stream of its own, so given labels leave the noise as it was


@dataclasses.dataclass(frozen=True, eq=False)
class LinearlySeparable:
    r"""D(v): :math:`x = \epsilon y v + w`, with :math:`w \sim N(0, \sigma^2 (I - v v^T))` and y = ±1, equally likely.

    The one feature that tells the classes apart is the coordinate along v, and it is noise-free: a hyperplane
    separates the classes with margin epsilon, whatever sigma is.

    Attributes
    ----------
    v : Tensor
        Shape (h, w) or (channels, h, w); scaled to unit norm.
    epsilon : float
        Half the distance between the two classes, in pixel units. Positive.
    sigma : float
        Standard deviation of the noise in every direction orthogonal to v. Not negative.

    Raises
    ------
    TypeError, ValueError
        If v is no direction (see :func:`nadtools.directions.as_direction`), epsilon <= 0 or sigma < 0.
    """

    v: Tensor
    epsilon: float = 1.0
    sigma: float = 3.0

    def __post_init__(self) -> None:
        v = as_direction(self.v).detach()
        if v.ndim not in (2, 3):
            raise ValueError(f"got v of shape {tuple(v.shape)}; expected (height, width) or (channels, height, width)")
        epsilon, sigma = float(self.epsilon), float(self.sigma)
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise ValueError(f"got epsilon={epsilon}; expected a positive number")
        if not (math.isfinite(sigma) and sigma >= 0):
            raise ValueError(f"got sigma={sigma}; expected zero or a positive number")
        object.__setattr__(self, "v", v)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "sigma", sigma)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of one sample."""
        channels, height, width = (1, *self.v.shape)[-3:]
        return channels, height, width

    def sample(
        self,
        n: int,
        seed: int = 0,
        *,
        device: str | torch.device | None = None,
        labels: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Draw n samples on the device, in place: nothing of the size of the result is held beside it.

        Parameters
        ----------
        n : int
            Number of samples, at least 1.
        seed : int
            The same seed gives the same samples on the same kind of device.
        device : str, torch.device or None
            None means CUDA where there is one, else the CPU.
        labels : Tensor, optional
            Shape (n,), integers 0 and 1: draw x for these labels instead of drawing labels too.

        Returns
        -------
        x : Tensor
            Shape (n, channels, h, w), float32.
        y : Tensor
            Shape (n,), int64 in {0, 1}; the sign in the formula is 2y - 1.

        Raises
        ------
        TypeError, ValueError
            If n is not a positive int, or the labels do not fit.
        """
        try:
            n = operator.index(n)
        except TypeError:
            raise TypeError(f"got n={n!r} of type {type(n).__name__}; expected a positive int") from None
        if n < 1:
            raise ValueError(f"got n={n}; expected at least 1 sample")
        check_seed(seed)
        resolved = resolve_device(device)
        if labels is None:
            y = torch.randint(2, (n,), device=resolved, generator=generator(resolved, seed, _LABELS))
        else:
            y = _check_labels(labels, n).to(resolved)
        v = self.v.to(resolved, torch.float32).reshape(-1)
        x = torch.empty((n, v.numel()), device=resolved)
        x.normal_(generator=generator(resolved, seed, _NOISE))
        # x = sigma g + (epsilon y - sigma <g, v>) v: the projection and the signal in one rank-one update.
        along_v = (2 * y - 1).to(torch.float32).mul_(self.epsilon).sub_(x @ v, alpha=self.sigma)
        x.mul_(self.sigma).addr_(along_v, v)
        return x.view(n, *self.image_shape), y


def _check_labels(labels: Tensor, n: int) -> Tensor:
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.is_complex():
        kind = labels.dtype if isinstance(labels, Tensor) else type(labels).__name__
        raise TypeError(f"got labels of type {kind}; expected an integer tensor of zeros and ones")
    if labels.shape != (n,):
        raise ValueError(f"got labels of shape {tuple(labels.shape)}; expected ({n},), one for each sample")
    labels = labels.to(torch.int64)
    if not bool(((labels == 0) | (labels == 1)).all()):
        raise ValueError(f"got labels {sorted(labels.unique().tolist())[:5]}; expected 0 and 1 (the sign is 2y - 1)")
    return labels
