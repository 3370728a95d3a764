"""Unit vectors and orthonormal bases of image space.

A *direction* is a tensor of shape (height, width), or (channels, height, width), of unit Euclidean norm.
"""

from __future__ import annotations

import math
import operator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nadtools.device import generator, resolve_device, stream, unaffected_by_context

__all__ = [
    "FourierMode",
    "as_direction",
    "fourier_atom",
    "fourier_basis",
    "fourier_energy",
    "fourier_modes",
    "random_basis",
    "random_direction",
]

Shape = tuple[int, int]


class FourierMode(NamedTuple):
    """What names an element of the real Fourier basis: its 2D frequency, and its phase in radians."""

    frequency: tuple[int, int]
    phase: float


def check_shape(shape: tuple[int, ...], dimensions: tuple[int, ...] = (2,)) -> tuple[int, ...]:
    """Return ``shape`` as a tuple of positive ints, or say what is wrong with it."""
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise TypeError(f"got shape={shape!r}; expected a tuple of ints such as (32, 32)") from None
    if len(sizes) not in dimensions or any(size < 1 for size in sizes):
        expected = " or ".join(str(d) for d in dimensions)
        raise ValueError(f"got shape={shape!r}; expected {expected} positive sizes, for instance (32, 32)")
    return sizes


def as_direction(v: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """Check a vector and scale it to unit norm, in float64 on the way.

    Parameters
    ----------
    v : Tensor
        Any real tensor with a finite, non-zero norm.
    shape : tuple of int, optional
        The shape that ``v`` must have.

    Raises
    ------
    TypeError
        If ``v`` is not a real tensor.
    ValueError
        If ``v`` is zero, not finite, or of another shape.
    """
    if not isinstance(v, Tensor):
        raise TypeError(f"got v of type {type(v).__name__}; expected a torch.Tensor (torch.as_tensor(v) makes one)")
    if v.is_complex():
        raise TypeError(f"got v of dtype {v.dtype}; expected a real tensor")
    if shape is not None and tuple(v.shape) != tuple(shape):
        raise ValueError(f"got v of shape {tuple(v.shape)}; expected {tuple(shape)}")
    if not bool(torch.isfinite(v).all()):
        raise ValueError("got a v with NaN or infinite entries; expected finite numbers")
    largest = v.abs().max() if v.numel() else v.new_zeros(())
    if float(largest) == 0:
        raise ValueError("got v = 0, which has no direction; expected a non-zero vector")
    # Dividing by the largest entry first keeps very large and very small vectors from over- and underflowing.
    scaled = v.to(torch.float64) / largest.to(torch.float64)
    return (scaled / scaled.norm()).to(v.dtype if v.is_floating_point() else torch.float32)


@unaffected_by_context()
def fourier_atom(
    shape: Shape,
    frequency: tuple[int, int],
    phase: float = 0.0,
    *,
    device: str | torch.device | None = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""The real Fourier atom :math:`\cos(2\pi(i r/h + j c/w) - \varphi)`, scaled to unit norm.

    Parameters
    ----------
    shape : (int, int)
        Height h and width w, in pixels.
    frequency : (int, int)
        (i, j): cycles per image height and per image width. Negative frequencies are taken modulo h and w.
    phase : float
        :math:`\varphi` in radians: 0 is a cosine, :math:`\pi/2` a sine.
    device, dtype
        Of the result.

    Returns
    -------
    Tensor
        Shape (h, w).

    Raises
    ------
    ValueError
        If the atom vanishes: at a frequency that is its own conjugate (2i = 0 mod h and 2j = 0 mod w) no sine exists.
    """
    height, width = check_shape(shape)
    try:
        i, j = (operator.index(f) for f in frequency)
    except (TypeError, ValueError):
        raise TypeError(f"got frequency={frequency!r}; expected two ints (i, j)") from None
    phase = float(phase)
    if not math.isfinite(phase):
        raise ValueError(f"got phase={phase}; expected a finite number of radians")
    self_conjugate = (2 * i) % height == 0 and (2 * j) % width == 0
    if self_conjugate and abs(math.cos(phase)) < 1e-9:
        raise ValueError(
            f"at frequency {(i, j)} of {height}x{width} pixels only the cosine exists, the sine is zero; use phase=0"
        )
    rows, columns = np.arange(height)[:, None], np.arange(width)[None, :]
    # The number of cycles modulo one, by integer arithmetic: no rounding grows with the frequency.
    cycles = ((i * rows * width + j * columns * height) % (height * width)) / (height * width)
    wave = np.cos(2 * np.pi * cycles - phase)
    return torch.from_numpy(wave / np.linalg.norm(wave)).to(dtype).to(resolve_device(device))


def fourier_modes(shape: Shape) -> list[FourierMode]:
    """Frequencies and phases of :func:`fourier_basis`, in its order: from low frequencies to high ones.

    The order is by the length of the frequency in cycles per pixel, then by (i, j), the cosine before the sine.
    Frequencies lie in the symmetric range -h/2 < i <= h/2, and of f and -f the one with j > 0, or j = 0 and i > 0,
    or j = w/2 and i >= 0, is taken.
    """
    height, width = check_shape(shape)
    modes: list[FourierMode] = []
    for i in range(-((height - 1) // 2), height // 2 + 1):
        for j in range(width // 2 + 1):
            if (2 * i) % height == 0 and (2 * j) % width == 0:
                modes.append(FourierMode((i, j), 0.0))
            elif (2 * j) % width or i > 0:
                modes += [FourierMode((i, j), 0.0), FourierMode((i, j), math.pi / 2)]
    return sorted(modes, key=lambda m: ((m.frequency[0] / height) ** 2 + (m.frequency[1] / width) ** 2, m))


@unaffected_by_context()
def fourier_basis(
    shape: Shape, *, device: str | torch.device | None = "cpu", dtype: torch.dtype = torch.float32
) -> Tensor:
    """The orthonormal real Fourier basis of images of the given (height, width).

    Returns
    -------
    Tensor
        Shape (h*w, h, w); element k is ``fourier_atom(shape, *fourier_modes(shape)[k])``.
    """
    atoms = [fourier_atom(shape, *mode, dtype=dtype) for mode in fourier_modes(shape)]
    return torch.stack(atoms).to(resolve_device(device))


@unaffected_by_context()
def random_direction(
    shape: tuple[int, ...],
    seed: int = 0,
    *,
    device: str | torch.device | None = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """A direction drawn uniformly from the unit sphere; ``shape`` is (h, w) or (channels, h, w)."""
    sizes, resolved = check_shape(shape, (2, 3)), resolve_device(device)
    source = generator(resolved, stream(seed, "direction"))
    gaussian = torch.randn(sizes, dtype=torch.float64, device=resolved, generator=source)
    return (gaussian / gaussian.norm()).to(dtype)


@unaffected_by_context()
def random_basis(
    shape: tuple[int, ...],
    seed: int = 0,
    *,
    device: str | torch.device | None = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """An orthonormal basis drawn uniformly: by the Haar measure on the orthogonal group.

    It is the Q of the QR decomposition of a Gaussian matrix, with the signs that make the diagonal of R positive
    (Mezzadri, *How to generate random matrices from the classical compact groups*, 2007). The decomposition is done on
    the CPU in float64.

    Parameters
    ----------
    shape : tuple of int
        (h, w) or (channels, h, w).
    seed : int
    device, dtype
        Of the result. The basis does not depend on the device.

    Returns
    -------
    Tensor
        Shape (D, ...shape), D being the number of entries.
    """
    sizes, resolved = check_shape(shape, (2, 3)), resolve_device(device)
    dimension = math.prod(sizes)
    cpu = torch.device("cpu")
    gaussian = torch.randn(dimension, dimension, dtype=torch.float64, generator=generator(cpu, stream(seed, "basis")))
    q, r = torch.linalg.qr(gaussian)
    return (q * r.diagonal().sign()).T.reshape(dimension, *sizes).to(resolved, dtype)


@unaffected_by_context()
def fourier_energy(v: Tensor) -> Tensor:
    """The share of a direction's energy that lies at each frequency of the 2D DFT.

    Parameters
    ----------
    v : Tensor
        Shape (..., h, w), non-zero.

    Returns
    -------
    Tensor
        Shape (..., h, w), sums to one over the last two axes; frequency (0, 0) is at [h // 2, w // 2].
    """
    energy = torch.fft.fft2(v.to(torch.float64)).abs().square()
    return torch.fft.fftshift(energy / energy.sum((-2, -1), keepdim=True), dim=(-2, -1)).to(v.dtype)
