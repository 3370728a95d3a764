"""Unit vectors and orthonormal bases of image space.

A *direction* is a tensor of shape (height, width), or (channels, height, width), of unit Euclidean norm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nadtools import checks
from nadtools.device import generator, resolve_device, stream, unaffected_by_context

__all__ = [
    "FourierMode", "as_direction", "fourier_atom", "fourier_basis", "fourier_energy", "fourier_modes",
    "orthonormalised", "random_basis", "random_direction",
]  # fmt: skip

Shape = tuple[int, int]


class FourierMode(NamedTuple):
    """What names an element of the real Fourier basis: its 2D frequency, and its phase in radians."""

    frequency: tuple[int, int]
    phase: float


def as_direction(v: Tensor, shape: tuple[int, ...] | None = None, name: str = "v") -> Tensor:
    """Scale a real tensor, of a given shape if there is one, not zero, to unit norm, in float64 on the way."""
    kinds = (*checks.FLOATING, *checks.INTEGERS)
    v = checks.tensor(name, v, kinds, "a torch.Tensor of real numbers (torch.as_tensor makes one)")
    shape = None if shape is None else checks.check_shape("shape", shape, range(1, 5))
    if not v.numel() or (shape is not None and tuple(v.shape) != shape):
        raise ValueError(f"got {name} of shape {tuple(v.shape)}; expected {shape or '(height, width)'}")
    scaled = v.to(torch.float64)
    largest = scaled.abs().max()
    if float(largest) == 0:
        raise ValueError(f"got {name} = 0, which has no direction; expected a non-zero vector")
    # Dividing by the largest entry first keeps very large and very small vectors from over- and underflowing.
    scaled = scaled / largest
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

    Args:
        shape: Height h and width w, in pixels.
        frequency: (i, j): cycles per image height and per image width. Negative frequencies are taken modulo h and w.
        phase: :math:`\varphi` in radians: 0 is a cosine, :math:`\pi/2` a sine.

    Raises:
        ValueError: If the atom vanishes: at a frequency that is its own conjugate (2i = 0 mod h and 2j = 0 mod w) no
            sine exists.
    """
    height, width = checks.check_shape("shape", shape)
    ints = "two ints (i, j)"
    i, j = (checks.integer("frequency", f, expected=ints) for f in checks.pair("frequency", frequency, ints))
    phase, resolved = checks.number("phase", phase), resolve_device(device)
    checks.floating_dtype(dtype)
    self_conjugate = (2 * i) % height == 0 and (2 * j) % width == 0
    if self_conjugate and abs(math.cos(phase)) < 1e-9:
        raise ValueError(f"at frequency {(i, j)} of {height}x{width} pixels only the cosine exists; use phase=0")
    rows, columns = np.arange(height)[:, None], np.arange(width)[None, :]
    # The number of cycles modulo one, by integer arithmetic: no rounding grows with the frequency.
    cycles = ((i * rows * width + j * columns * height) % (height * width)) / (height * width)
    wave = np.cos(2 * np.pi * cycles - phase)
    return torch.from_numpy(wave / np.linalg.norm(wave)).to(resolved, dtype)


def fourier_modes(shape: Shape) -> list[FourierMode]:
    """Frequencies and phases of :func:`fourier_basis`, in its order: from low frequencies to high ones.

    The order is by the length of the frequency in cycles per pixel, then by (i, j), the cosine before the sine.
    Frequencies lie in the symmetric range -h/2 < i <= h/2, and of f and -f the one with j > 0, or j = 0 and i > 0,
    or j = w/2 and i >= 0, is taken.
    """
    height, width = checks.check_shape("shape", shape)
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
    """The orthonormal real Fourier basis of images (h, w): shape (h*w, h, w), in the order of :func:`fourier_modes`."""
    resolved = resolve_device(device)
    return torch.stack([fourier_atom(shape, *mode, dtype=dtype) for mode in fourier_modes(shape)]).to(resolved)


@unaffected_by_context()
def random_direction(
    shape: tuple[int, ...],
    seed: int = 0,
    *,
    device: str | torch.device | None = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """A direction drawn uniformly from the unit sphere; ``shape`` is (h, w) or (channels, h, w)."""
    sizes, resolved = checks.check_shape("shape", shape, (2, 3)), resolve_device(device)
    checks.floating_dtype(dtype)
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
    """An orthonormal basis drawn uniformly, by the Haar measure on the orthogonal group: shape (D, ...shape).

    It is the Q of the QR decomposition of a Gaussian matrix, with the signs that make the diagonal of R positive
    (Mezzadri, *How to generate random matrices from the classical compact groups*, 2007), done on the CPU in float64
    whatever the device. ``shape`` is (h, w) or (channels, h, w), with D entries.
    """
    sizes, resolved = checks.check_shape("shape", shape, (2, 3)), resolve_device(device)
    dimension = math.prod(sizes)
    checks.floating_dtype(dtype)
    cpu = torch.device("cpu")
    gaussian = torch.randn(dimension, dimension, dtype=torch.float64, generator=generator(cpu, stream(seed, "basis")))
    return orthonormalised(gaussian.T).reshape(dimension, *sizes).to(resolved, dtype)


def orthonormalised(rows: Tensor) -> Tensor:
    """What Gram and Schmidt make of independent rows, each in turn."""
    q, r = torch.linalg.qr(rows.T)
    return (q * r.diagonal().sign()).T


@unaffected_by_context()
def fourier_energy(v: Tensor) -> Tensor:
    """The share of a direction's energy that lies at each frequency of the 2D DFT.

    Of v, (..., h, w), non-zero, in the same shape; frequency (0, 0) is at [h // 2, w // 2].
    """
    v = checks.tensor("v", v, (*checks.FLOATING, *checks.INTEGERS), "a torch.Tensor of real numbers")
    if v.ndim < 2 or not v.numel():
        raise ValueError(f"got v of shape {tuple(v.shape)}; expected (..., height, width)")
    largest = v.to(torch.float64).abs().amax((-2, -1), keepdim=True)
    if not bool(largest.all()):
        raise ValueError("got v = 0, which has no energy; expected a non-zero vector")
    # Dividing by the largest entry first keeps squares from over- and underflowing.
    energy = torch.fft.fft2(v.to(torch.float64) / largest).abs().square()
    shares = torch.fft.fftshift(energy / energy.sum((-2, -1), keepdim=True), dim=(-2, -1))
    return shares.to(v.dtype if v.is_floating_point() else torch.float32)
