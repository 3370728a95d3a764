r"""The theory of pooling: how much of a direction is left after a linear pooling layer.

**The operator.** Linear pooling is a filter with taps w and a circular boundary, followed by subsampling with a stride
S. A signal x of D samples becomes M = D/S samples, :math:`z[n] = \sum_j w[j]\, x[(n S + j) \bmod D]`: for S equal taps
``torch.nn.functional.avg_pool1d``. With unitary Fourier transforms of x and z, and the spectral response
:math:`\hat m[\ell] = \sum_j w[j]\, e^{2\pi i j \ell / D}` of the filter, the same operator reads
:math:`\hat z = A (\hat m \odot \hat x)`, with the aliasing matrix :math:`A = [I_M \cdots I_M] / \sqrt S`: equation (1)
of *Neural Anisotropy Directions*. Frequencies that differ by a multiple of M share a bin of the result.

**What it costs.** Of :math:`x = \epsilon y v + w`, :math:`w \sim N(0, \sigma^2 (I - v v^T))`, it leaves z = P x, whose
classes are Gaussian, with the means :math:`\pm\mu = \pm\epsilon P v` and the covariance
:math:`\Sigma = \sigma^2 P (I - v v^T) P^T`. With a = P v, :math:`K = P P^T` and the squared
length :math:`q = a^T K^+ a` of the projection of v on the row space of P, the best accuracy of any classifier is

.. math:: \text{accuracy} = \Phi\!\left( \frac{\epsilon}{\sigma} \cot \vartheta \right), \qquad
          \vartheta = \angle(v, \text{row space of } P).

**Arguments and results of all functions.** ``size`` is D, or the (h, w) of images, read row by row. ``stride`` is S, or
one for each axis; it must divide the size. :func:`pooling_matrix` describes the ``prefilter``. ``epsilon`` and
``sigma`` are half the distance between the classes and the standard deviation of the noise, in units of the input, zero
or positive; arrays of them are broadcast, and their shape comes first in that of the result. Accuracies are 1/2 for
:math:`\epsilon = 0` and for P v = 0, whatever the noise, and otherwise 1 for :math:`\sigma = 0`. Tensors are float64,
with frequencies in the order of ``torch.fft.fft``, shape (D,) or (h, w).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

from nadtools import checks
from nadtools.device import generator, stream

__all__ = [
    "PrefilterName", "aliasing_matrix", "bayes_accuracy", "fourier_accuracies", "kept_shares", "monte_carlo_accuracy",
    "pooling_matrix", "spectral_response", "theorem1_accuracy",
]  # fmt: skip

ArrayLike = Tensor | np.ndarray[Any, Any] | Sequence[float] | float
PrefilterName = Literal["average", "gaussian", "binomial", "ideal", "identity"]
Prefilter = PrefilterName | ArrayLike
Size = int | tuple[int, int]
Stride = int | tuple[int, int]
Array = NDArray[np.float64]

# Below these, relative to the largest value there is, a number is rounding error and taken as zero.
RESPONSE_TOLERANCE = 64 * float(np.finfo(np.float64).eps)
ANGLE_TOLERANCE = 1e-12
MONTE_CARLO_CHUNK = 8192


def pooling_matrix(prefilter: Prefilter, stride: Stride, size: Size) -> Tensor:
    r"""The matrix P of a linear pooling layer, z = P x.

    Its shape is (M, D); for images :math:`(h w / S^2, h w)`.

    Args:
        prefilter: The filter before the subsampling, by name or as its taps (w[0], w[1], ...): real, at most D, w[0] on
            sample nS.

            * ``"average"``: S equal taps on the samples nS, ..., nS + S - 1, non-overlapping average pooling.
            * ``"gaussian"``: the response :math:`e^{-2 \pi^2 s^2 (\ell/D)^2}`, s = S/2 samples, centred on sample nS.
            * ``"binomial"``: the 2S - 1 coefficients :math:`\binom{2S-2}{j} / 4^{S-1}`, centred on sample nS; for S = 2
              the taps (1, 2, 1)/4 of anti-aliased networks.
            * ``"ideal"``: response 1 for :math:`|\ell| \le M/2`, the frequencies that the result can carry; 0 above.
            * ``"identity"``: no filter, subsampling alone.
        stride, size: For images the prefilter is applied along both axes.
    """
    sizes, strides = _check_geometry(size, stride)
    matrix: Array = np.ones((1, 1))
    for d, s in zip(sizes, strides, strict=True):
        rows, columns = np.arange(d // s)[:, None], np.arange(d)[None, :]
        matrix = np.kron(matrix, _taps(prefilter, d, s)[(columns - s * rows) % d])
    return torch.from_numpy(matrix)


def spectral_response(prefilter: Prefilter, size: Size, stride: Stride) -> Tensor:
    r"""The spectral response of a prefilter, :math:`\hat m[\ell] = \sum_j w[j]\, e^{2\pi i j \ell / D}`.

    It is complex128; entries that are zero up to rounding are exactly zero. The stride sets the width of a named
    prefilter.
    """
    sizes, strides = _check_geometry(size, stride)
    return torch.from_numpy(_response(prefilter, sizes, strides))


def aliasing_matrix(size: Size, stride: Stride) -> Tensor:
    r"""The aliasing matrix :math:`A = [I_M \cdots I_M] / \sqrt S`, which folds D frequencies onto M = D/S bins.

    Its shape is (M, D); for images it is the Kronecker product of those of the axes. Source: *Neural Anisotropy
    Directions*, section 2.1.
    """
    sizes, strides = _check_geometry(size, stride)
    matrix = torch.ones(1, 1, dtype=torch.float64)
    for d, s in zip(sizes, strides, strict=True):
        matrix = torch.kron(matrix, torch.eye(d // s, dtype=torch.float64).repeat(1, s) / math.sqrt(s))
    return matrix


def bayes_accuracy(v: ArrayLike, pooling_matrix: ArrayLike, epsilon: ArrayLike = 1.0, sigma: ArrayLike = 3.0) -> Tensor:
    r"""Best accuracy of any classifier on D(v) after a linear layer z = P x.

    :math:`\Phi((\epsilon/\sigma) \cot\vartheta)`, with the angle :math:`\vartheta` between v and the row space of
    P: chapter 2 of the book has the proof. Angles within 1e-12 of zero or of the right angle count as such.

    Args:
        v: The discriminative direction, shape (D,), or a batch of them (..., D); real, not zero; scaled to unit norm.
        pooling_matrix: P, shape (M, D), real: of :func:`pooling_matrix` or any other.
    """
    signal, noise = _projections(*_check_problem(v, pooling_matrix))
    return torch.as_tensor(special.ndtr(_signal_to_noise(signal, noise, epsilon, sigma)))


def monte_carlo_accuracy(
    v: ArrayLike,
    pooling_matrix: ArrayLike,
    epsilon: float = 1.0,
    sigma: float = 3.0,
    num_samples: int = 10_000,
    seed: int = 0,
) -> float:
    r"""Accuracy of the optimal linear rule on samples of D(v) after z = P x.

    The rule is the sign of :math:`v^T P^+ z`: undo the layer as far as possible and look along v. It is optimal,
    because :math:`P^{+T} v = K^+ a` is proportional to :math:`\Sigma^+ \mu` where :math:`\mu` is in the range of
    :math:`\Sigma`, and otherwise is a direction without noise, :math:`\Sigma K^+ a = \sigma^2 (1 - q) a = 0`.

    v and the matrix are those of :func:`bayes_accuracy`, with one direction. The result is the share of samples on the
    right side, with a standard error of at most :math:`1 / (2 \sqrt{\text{num\_samples}})`. A rule that cannot tell
    (P v = 0) counts one half on each.
    """
    direction, matrix = _check_problem(v, pooling_matrix)
    if direction.ndim != 1:
        raise ValueError(f"got v of shape {direction.shape}; expected one direction, ({matrix.shape[1]},)")
    epsilon, sigma = (checks.nonnegative_number(*scale) for scale in (("epsilon", epsilon), ("sigma", sigma)))
    num_samples = checks.positive_int("num_samples", num_samples)
    source = generator(torch.device("cpu"), stream(seed, "monte carlo"))
    signal, _ = _projections(direction, matrix)
    rule = torch.from_numpy(np.linalg.pinv(matrix).T @ direction * (signal > 0))
    axis, layer = torch.from_numpy(direction), torch.from_numpy(matrix)
    correct = 0.0
    for start in range(0, num_samples, MONTE_CARLO_CHUNK):
        number = min(MONTE_CARLO_CHUNK, num_samples - start)
        y = 2.0 * torch.randint(2, (number,), generator=source).double() - 1
        noise = sigma * torch.randn(number, len(axis), dtype=torch.float64, generator=source)
        x = noise - (noise @ axis)[:, None] * axis + epsilon * y[:, None] * axis
        agreement = y * (x @ layer.T @ rule)
        correct += float((agreement > 0).sum()) + 0.5 * float((agreement == 0).sum())
    return correct / num_samples


def theorem1_accuracy(
    frequency: int | ArrayLike,
    prefilter_response: ArrayLike,
    stride: int,
    epsilon: ArrayLike = 1.0,
    sigma: ArrayLike = 3.0,
) -> Tensor:
    r"""Accuracy after pooling by Theorem 1 of *Neural Anisotropy Directions*, equation (2), as printed.

    .. math:: 1 - Q\!\left( \frac{\sqrt2 \epsilon}{2 \sigma} \gamma(\ell) \right), \qquad
              \gamma^2(\ell) = \frac{|\hat m[\ell]|^2 \cdot S}{\sum_{k=1}^{S-1} |\hat m[(\ell + k M) \bmod D]|^2},

    with the tail Q of the standard normal distribution. For the real Fourier atoms the argument that follows from the
    model has no factor :math:`\sqrt{S/2}` (:func:`fourier_accuracies`): the two agree for S = 2 alone, and this one is
    larger for S > 2.

    Args:
        frequency: :math:`\ell`, between 0 and D - 1.
        prefilter_response: :math:`\hat m`, shape (D,), real or complex: of :func:`spectral_response`.
        stride: S; it must divide D.
    """
    kinds = (*checks.FLOATING, *checks.INTEGERS, *checks.COMPLEX)
    given = checks.as_numbers("prefilter_response", prefilter_response, kinds, "numbers")
    response = given.to(torch.complex128).numpy()
    if response.ndim != 1 or not len(response) or np.abs(response).max() > checks.LARGE:
        raise ValueError(f"got prefilter_response of shape {response.shape}; expected (D,), one for each frequency")
    stride = check_stride(stride, len(response), "prefilter_response")
    frequencies = checks.as_numbers("frequency", frequency, checks.INTEGERS, "an int, or several").numpy()
    if not frequencies.size or not 0 <= frequencies.min() <= frequencies.max() < len(response):
        raise ValueError(f"got frequency={frequency!r}; expected indices between 0 and D - 1 = {len(response) - 1}")
    blocks = np.abs(response).reshape(stride, -1)
    aliases = np.sqrt(_sum_without_own(blocks**2)).reshape(-1)[frequencies]
    gain = np.sqrt(stride / 2) * blocks.reshape(-1)[frequencies]
    return torch.as_tensor(special.ndtr(_signal_to_noise(gain, aliases, epsilon, sigma)))


def fourier_accuracies(
    prefilter: Prefilter,
    stride: Stride,
    epsilon: ArrayLike = 1.0,
    sigma: ArrayLike = 3.0,
    *,
    size: Size,
    phase: float = 0.0,
) -> Tensor:
    r"""Best accuracy after pooling for the real Fourier atoms of every frequency, exactly.

    The atom of frequency :math:`\ell` and ``phase`` :math:`\varphi` (in radians) is
    :math:`\cos(2\pi \ell n / D - \varphi)`, scaled to unit norm. The row space of P has one dimension for each of the M
    bins with a response. If its coefficients at :math:`\pm\ell` lie in different bins, or are the same (where only the
    cosine exists, and is taken), the accuracy is

    .. math:: \Phi\!\left( \frac\epsilon\sigma \frac{|\hat m[\ell]|}{\sqrt{\sum_{k=1}^{S-1} |\hat m[\ell + kM]|^2}}
              \right), \qquad \text{whatever the phase.}

    If they share a bin (:math:`2\ell \equiv 0 \bmod M`) they interfere: the signal is
    :math:`\sqrt2\, \mathrm{Re}(\hat m[\ell]\, e^{-i\varphi})`, and the noise that of the aliases other than
    :math:`\pm\ell`, plus that of the atom in quadrature, :math:`2\, \mathrm{Im}(\hat m[\ell]\, e^{-i\varphi})^2`.

    The bins of images are those of the 2D transform; conditions hold in both axes.
    """
    signal, noise = _fourier_angles(prefilter, stride, size, phase)
    return torch.from_numpy(special.ndtr(_signal_to_noise(signal, noise, epsilon, sigma)))


def kept_shares(prefilter: Prefilter, stride: Stride, *, size: Size, phase: float = 0.0) -> Tensor:
    r"""How much of each real Fourier atom lies in the row space of P: :math:`q = \cos^2\vartheta`, from 0 to 1.

    Over any orthonormal basis the shares sum to the trace of the projector on the row space, which is its dimension:
    :math:`\sum_i q(u_i) = \operatorname{rank} P \le M`. So no prefilter keeps more in total than another of full rank;
    it chooses which directions to keep.
    """
    signal, noise = _fourier_angles(prefilter, stride, size, phase)
    squared, total = signal**2, signal**2 + noise**2
    return torch.from_numpy(np.divide(squared, total, out=np.zeros_like(squared), where=total > 0))


def _fourier_angles(prefilter: Prefilter, stride: Stride, size: Size, phase: float) -> tuple[Array, Array]:
    """Signal and noise in the bin of every frequency, up to a common factor; both of the shape of the signal."""
    sizes, strides = _check_geometry(size, stride)
    phase = checks.number("phase", phase)
    response = _response(prefilter, sizes, strides).reshape(-1)
    index = np.arange(math.prod(sizes)).reshape(sizes)
    blocks = index.reshape([n for d, s in zip(sizes, strides, strict=True) for n in (s, d // s)])
    # Frequencies that share a bin, shape (aliases, bins).
    bins = blocks.transpose(*range(0, blocks.ndim, 2), *range(1, blocks.ndim, 2)).reshape(math.prod(strides), -1)
    conjugate = np.roll(np.flip(index), 1, axis=tuple(range(len(sizes)))).reshape(-1)
    energy = np.abs(response) ** 2
    others = np.empty_like(energy)
    others[bins] = _sum_without_own(energy[bins])
    signal, quadrature = np.abs(response), np.zeros_like(energy)

    in_phase = response * np.exp(-1j * phase)
    floor = RESPONSE_TOLERANCE * np.abs(response).max()
    number = np.arange(bins.shape[1])
    bin_of = np.empty_like(conjugate)
    bin_of[bins] = number
    # Bins that hold -l for each l in them: at most two for each axis.
    for members in bins.T[bin_of[conjugate[bins[0]]] == number]:
        # Sums over pairs (l, -l), so that a pair as a whole is left out, without subtracting anything.
        pairs, inverse = np.unique(np.minimum(members, conjugate[members]), return_inverse=True)
        pair_energy: Array = np.bincount(inverse, weights=energy[members], minlength=len(pairs)).astype(np.float64)
        others[members] = _sum_without_own(pair_energy)[inverse]
        interferes = members[members != conjugate[members]]
        real, imaginary = np.abs(in_phase[interferes].real), np.abs(in_phase[interferes].imag)
        signal[interferes] = math.sqrt(2) * np.where(real > floor, real, 0)
        quadrature[interferes] = 2 * np.where(imaginary > floor, imaginary, 0) ** 2
    return signal.reshape(sizes), np.sqrt(others + quadrature).reshape(sizes)


def _sum_without_own(values: Array) -> Array:
    """For every entry the sum of the others along the first axis; no subtraction, hence no cancellation."""
    zero = np.zeros_like(values[:1])
    before = np.concatenate([zero, np.cumsum(values[:-1], axis=0)])
    after = np.concatenate([np.cumsum(values[:0:-1], axis=0)[::-1], zero])
    return before + after


def _projections(direction: Array, matrix: Array) -> tuple[Array, Array]:
    """Length of the projections of unit vectors (..., D) on the row space of a matrix and on its complement."""
    _, singular, rows = np.linalg.svd(matrix, full_matrices=False)
    rows = rows[singular > max(matrix.shape) * np.finfo(np.float64).eps * singular[0]]
    inside = direction @ rows.T @ rows
    signal, noise = np.linalg.norm(inside, axis=-1), np.linalg.norm(direction - inside, axis=-1)
    return np.where(signal > ANGLE_TOLERANCE, signal, 0), np.where(noise > ANGLE_TOLERANCE, noise, 0)


def _signal_to_noise(signal: Array, noise: Array, epsilon: ArrayLike, sigma: ArrayLike) -> Array:
    """(epsilon signal) / (sigma noise): zero where there is no signal, else infinite where there is no noise."""
    scales = checks.broadcast(epsilon=epsilon, sigma=sigma)
    epsilons, sigmas = (scale.numpy().reshape(tuple(scale.shape) + (1,) * signal.ndim) for scale in scales)
    numerator, denominator = np.broadcast_arrays(epsilons * signal, sigmas * noise)
    with np.errstate(divide="ignore", over="ignore"):
        # Without a signal the noise plays no part, not even its absence.
        return np.asarray(numerator / np.where(numerator == 0, 1.0, denominator))


def _response(prefilter: Prefilter, sizes: tuple[int, ...], strides: tuple[int, ...]) -> NDArray[np.complex128]:
    response = np.ones((), dtype=np.complex128)
    for d, s in zip(sizes, strides, strict=True):
        taps = _taps(prefilter, d, s)
        axis = np.fft.ifft(taps) * d
        floor = RESPONSE_TOLERANCE * np.abs(taps).sum()
        axis = np.where(np.abs(axis.real) > floor, axis.real, 0) + 1j * np.where(abs(axis.imag) > floor, axis.imag, 0)
        response = np.multiply.outer(response, axis)
    return response


def _taps(prefilter: Prefilter, size: int, stride: int) -> Array:
    """The taps on all D samples, counted from sample nS and around the circle."""
    taps = np.zeros(size)
    if not isinstance(prefilter, str):
        given = checks.as_real("prefilter", prefilter).numpy()
        if given.ndim != 1 or not len(given) or np.abs(given).max() > checks.LARGE:
            raise ValueError(f"got a prefilter of shape {given.shape}; expected its taps, a vector of real numbers")
        if len(given) > size:
            raise ValueError(f"got a prefilter of {len(given)} taps for a signal of {size} samples; expected at most D")
        taps[: len(given)] = given
        return taps
    checks.choice("prefilter", prefilter, get_args(PrefilterName))
    frequency = np.fft.fftfreq(size, 1 / size)
    if prefilter == "average":
        taps[:stride] = 1 / stride
    elif prefilter == "identity":
        taps[0] = 1
    elif prefilter == "binomial":
        order = 2 * (stride - 1)
        positions = (np.arange(order + 1) - order // 2) % size
        np.add.at(taps, positions, special.comb(order, np.arange(order + 1)) / 2**order)
    elif prefilter == "gaussian":
        taps = np.fft.ifft(np.exp(-2 * (np.pi * stride / 2 * frequency / size) ** 2)).real
    else:
        taps = np.fft.ifft(2 * stride * np.abs(frequency) <= size).real
    return taps


def _check_geometry(size: Size, stride: Stride) -> tuple[tuple[int, ...], tuple[int, ...]]:
    sizes = checks.check_shape("size", size if isinstance(size, tuple | list) else (size,), (1, 2))
    strides: tuple[Any, ...] = tuple(stride) if isinstance(stride, tuple | list) else (stride,) * len(sizes)
    if len(strides) != len(sizes):
        raise ValueError(f"got stride={stride!r} for size={size!r}; expected one int, or one for each axis")
    return sizes, tuple(check_stride(s, d, "size") for s, d in zip(strides, sizes, strict=True))


def _check_problem(v: ArrayLike, pooling_matrix: ArrayLike) -> tuple[Array, Array]:
    direction, matrix = checks.as_real("v", v).numpy(), checks.as_real("pooling_matrix", pooling_matrix).numpy()
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"got pooling_matrix of shape {matrix.shape}; expected (M, D)")
    if direction.ndim < 1 or direction.shape[-1] != matrix.shape[1]:
        expected = f"({matrix.shape[1]},), or a batch (..., {matrix.shape[1]})"
        raise ValueError(f"got v of shape {direction.shape} for a matrix of shape {matrix.shape}; expected {expected}")
    largest = np.abs(direction).max(axis=-1, keepdims=True, initial=0)
    if (largest == 0).any():
        raise ValueError("got v = 0, which has no direction; expected a non-zero vector")
    # Dividing by the largest entry first keeps very large and very small vectors from over- and underflowing.
    scaled = direction / largest
    return scaled / np.linalg.norm(scaled, axis=-1, keepdims=True), matrix


def check_stride(stride: int, dimension: int, name: str = "prefilter") -> int:
    """Return ``stride`` as an int, or say why it does not divide the dimension."""
    stride = checks.integer("stride", stride)
    if stride < 1 or dimension % stride:
        raise ValueError(f"got stride={stride} for {name} of D = {dimension}; expected a positive divisor of D")
    return stride
