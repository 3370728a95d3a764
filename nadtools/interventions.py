r"""Two changes of image data in the basis of the NADs: poisoning and flipping.

Poisoning writes the label into one coefficient of an image. Flipping turns the order of all coefficients round.
Source: *Neural Anisotropy Directions*, section 4.2; the code of the carriers is the authors' (see :func:`poison`).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from nadtools import checks
from nadtools.checks import positive_int
from nadtools.device import full_precision, unaffected_by_context
from nadtools.directions import orthonormalised
from nadtools.nads import NADs

__all__ = ["decode", "flip", "poison"]

Replace = Literal["own", "all"]
Array = Tensor | np.ndarray[Any, Any]

_BATCH = 1024
_DTYPES = (torch.float32, torch.float64)


@unaffected_by_context()
def poison(
    x: Array,
    y: Array,
    nads: NADs | Tensor,
    index: int,
    epsilon: float,
    *,
    replace: Replace = "own",
    num_classes: int | None = None,
) -> Tensor:
    r"""Write the label into each image, as ±epsilon along a carrier.

    The carrier of class t is one NAD in one channel, with a sign. With C channels:

    - C = 3, as published: NAD ``index + t // 6``, channel ``t % 3``, sign - for even t and + for odd t;
    - else: NAD ``index + t // (2 C)``, channel ``t % C``, sign - if ``t // C`` is even and + if it is odd. (The
      published code would give classes 0 and 2 one carrier where C = 2.)

    NADs of several channels span whole images: they count as C = 1. The image's component along its carrier is
    replaced, :math:`x' = x + (\pm\epsilon - \langle x, u \rangle) u`, so the other content of the image stays.

    Returns a tensor (n, channels, h, w) of the dtype and on the device of x. Pixels may lie outside [0, 1].

    Args:
        x: Shape (n, channels, h, w), float32 or float64, finite. In pixel units, before any normalisation. A NumPy
            array, channels behind columns, and bytes from 0 to 255, which become floats up to 1, are taken, too.
        y: Shape (n,), integers from 0 to num_classes - 1.
        nads: Or any orthonormal vectors, shape (m, h, w) or (m, channels, h, w).
        index: The first NAD that is used, from 0.
        epsilon: Size of the carrier, positive. The paper's is 0.05 for pixels in [0, 1].
        replace: ``"own"``, the paper's: the coefficient of the image's own class. ``"all"``: the coefficients of the
            other classes' carriers are set to zero besides. The classes are then separable by hyperplanes in these
            coefficients; with ``"own"`` they need not be, as the others still hold image content.
        num_classes: None takes the largest label + 1.
    """
    checks.choice("replace", replace, get_args(Replace))
    x = _images(x, nads)
    most = checks.LARGEST if num_classes is None else positive_int("num_classes", num_classes)
    y = checks.labels("y", torch.as_tensor(y) if isinstance(y, np.ndarray) else y, len(x), most)
    y, num_classes = y.to(x.device), int(y.max()) + 1 if num_classes is None else num_classes
    code = _code(x, nads, index, epsilon, num_classes)
    result = torch.empty_like(x, memory_format=torch.contiguous_format)
    for target, images, labels in zip(result.split(_BATCH), x.split(_BATCH), y.split(_BATCH), strict=True):
        # In float64, so that the coefficients of the result are exact but for the rounding of its pixels.
        pixels = images.to(torch.float64).reshape(len(images), code.num_channels, -1)
        coefficients = pixels @ code.vectors.T
        rows = torch.arange(len(labels), device=x.device)
        own = (rows, code.channel[labels], code.vector[labels])
        wanted = torch.zeros_like(coefficients) if replace == "all" else coefficients.clone()
        wanted[own] = code.value[labels]
        change = wanted - coefficients
        if replace == "all":
            change *= code.used
        target.copy_((change @ code.vectors).add_(pixels).view_as(target))
    return result


@unaffected_by_context()
def decode(x: Array, nads: NADs | Tensor, index: int, epsilon: float, num_classes: int) -> Tensor:
    """Read the labels off poisoned images: the class whose coefficient is ±epsilon, as int64; -1 where there is none.

    The arguments are those of :func:`poison`, and x is what it returned. It is exact but for coincidences: another
    class's coefficient may be nearer to its own ±epsilon than the rounding of the pixels (one of 250,000 photographs).
    """
    x = _images(x, nads)
    code = _code(x, nads, index, epsilon, positive_int("num_classes", num_classes))
    result = torch.empty(len(x), dtype=torch.int64, device=x.device)
    for target, images in zip(result.split(_BATCH), x.split(_BATCH), strict=True):
        pixels = images.to(torch.float64).reshape(len(images), code.num_channels, -1)
        coefficients = (pixels @ code.vectors.T)[:, code.channel, code.vector]
        deviation, label = (coefficients - code.value).abs().min(1)
        tolerance = 64 * torch.finfo(x.dtype).eps * pixels.abs().amax((1, 2)).clamp(min=float(epsilon))
        target.copy_(label.where(deviation <= tolerance, -1))
    return result


@unaffected_by_context()
def flip(x: Array, nads: NADs | Tensor, order: Tensor | None = None) -> Tensor:
    r"""Reverse the order of the images' coefficients: :math:`x' = U\,\mathrm{flip}(U^T x)`, in each channel.

    What an image held along the first NAD it then holds along the last. The map is orthogonal, so nothing is lost, and
    flipping twice gives the images back.

    Args:
        x: Shape (n, channels, h, w), float32 or float64, finite; or what :func:`poison` takes.
        nads: A complete orthonormal basis: NADs, or vectors of shape (D, h, w), which are applied to each channel, or
            (D, channels, h, w), which are applied to whole images.
        order: Shape (D,): another permutation. Coefficient k of the result is coefficient ``order[k]`` of the image,
            and ``torch.argsort(order)`` undoes it. ``torch.arange(D)`` changes nothing. None reverses.
    """
    x = _images(x, nads)
    vectors = _check_vectors(x, nads)
    dimension = vectors[0].numel()
    if len(vectors) != dimension:
        raise ValueError(f"got nads of {len(vectors)} vectors of {dimension} entries; expected a basis, {dimension}")
    if isinstance(nads, NADs):
        nads.warn_if_arbitrary(dimension - 1)
    order = torch.arange(dimension - 1, -1, -1) if order is None else checks.permutation("order", order, dimension)
    rows = vectors.flatten(1).to(x.device, torch.float64)
    _check_orthonormal(rows)
    # One symmetric or orthogonal matrix for all images; its transpose, as images are rows.
    matrix = (rows[order.to(x.device)].T @ rows).to(x.dtype)
    result = torch.empty_like(x, memory_format=torch.contiguous_format)
    with full_precision():
        for target, images in zip(result.split(_BATCH), x.split(_BATCH), strict=True):
            torch.matmul(images.reshape(-1, dimension), matrix, out=target.view(-1, dimension))
    return result


def _images(x: Any, nads: Any) -> Tensor:
    """Images as floats (n, channels, h, w)."""
    x = torch.from_numpy(np.ascontiguousarray(x)) if isinstance(x, np.ndarray) and x.dtype.kind in "fu" else x
    if isinstance(x, Tensor) and x.ndim == 4:
        x = x.float() / 255 if x.dtype == torch.uint8 else x
        size = getattr(getattr(nads, "vectors", nads), "shape", ())[-2:]
        x = x.movedim(3, 1) if x.shape[2:] != size == x.shape[1:3] else x
    return checks.images("x", x, _DTYPES)


class _Code(NamedTuple):
    """Of each class: which vector in which channel holds which value."""

    vectors: Tensor  # (m, D), float64, orthonormal
    vector: Tensor  # (classes,), an index into the vectors
    channel: Tensor  # (classes,)
    value: Tensor  # (classes,), ±epsilon, float64
    used: Tensor  # (channels, m), whether the coefficient is any class's
    num_channels: int


def _code(x: Tensor, nads: NADs | Tensor, index: int, epsilon: float, num_classes: int) -> _Code:
    vectors = _check_vectors(x, nads)
    epsilon = checks.positive_number("epsilon", epsilon)
    index = checks.integer("index", index, expected="an int from 0")
    channels = x.shape[1] if vectors.ndim == 3 else 1
    needed = -(-num_classes // (2 * channels))
    if index < 0 or index + needed > len(vectors):
        room = f"from index 0 to {len(vectors) - needed}" if needed <= len(vectors) else "more NADs or fewer classes"
        need = f"{num_classes} classes in {channels} channel(s) need {needed} NADs in a row"
        raise ValueError(f"got index={index} of {len(vectors)} NADs; {need}; expected {room}")
    if isinstance(nads, NADs):
        nads.warn_if_arbitrary(index + needed - 1)
    rows = vectors[index : index + needed].flatten(1).to(x.device, torch.float64)
    _check_orthonormal(rows)
    label = torch.arange(num_classes, device=x.device)
    # With an odd number of channels t % 2 would do as well; for three it is the published code.
    sign = 2 * ((label if channels == 3 else label // channels) % 2) - 1
    code = _Code(
        orthonormalised(rows),  # without their rounding, which would show in the coefficients as 1e-6
        label // (2 * channels),
        label % channels,
        epsilon * sign.to(torch.float64),
        torch.zeros(channels, needed, dtype=torch.bool, device=x.device),
        channels,
    )
    code.used[code.channel, code.vector] = True
    return code


def _check_vectors(x: Tensor, nads: NADs | Tensor) -> Tensor:
    """Compare images and NADs, and return the vectors."""
    given = nads.vectors if isinstance(nads, NADs) else nads
    vectors = checks.tensor("nads", given, expected="NADs or a floating-point tensor of orthonormal vectors")
    if not vectors.numel() or vectors.shape[1:] not in (x.shape[1:], x.shape[2:]):
        expected = " or ".join(f"(m, {', '.join(map(str, x.shape[start:]))})" for start in (2, 1))
        found = f"nads of shape {tuple(vectors.shape)} for images of shape {tuple(x.shape[1:])}"
        raise ValueError(f"got {found}; expected {expected}")
    return vectors


def _check_orthonormal(rows: Tensor) -> None:
    deviation = float((rows @ rows.T - torch.eye(len(rows), dtype=rows.dtype, device=rows.device)).abs().max())
    if not deviation < 1e-4:  # false for NaN, too
        raise ValueError(f"got nads that miss orthonormality by {deviation:.2g}; NADs.from_vectors makes them so")
