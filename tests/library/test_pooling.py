"""Linear pooling and Theorem 1: the operator, and the exact accuracy by four independent routes.

The routes are μᵀΣ⁺μ written out, the angle to the row space, the FFT, and Monte Carlo. Algebra in float64 is compared
to 1e-10: condition numbers here are below 1e4. Seeds are fixed, and hypothesis runs derandomised.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from torch import Tensor

import nadtools as nt
from nadtools.theory import pooling
from nadtools.theory.pooling import (
    aliasing_matrix,
    bayes_accuracy,
    fourier_accuracies,
    monte_carlo_accuracy,
    pooling_matrix,
    spectral_response,
    theorem1_accuracy,
)

NAMES = ("average", "gaussian", "binomial", "ideal", "identity")
SIGNED_TAPS = (0.3, -0.5, 1.0, 0.2)  # no symmetry: its response has a phase
PREFILTERS = [*NAMES, SIGNED_TAPS]
# Even and odd M and S, M = 1, M < S and M > S: S = 2 alone would hide a factor sqrt(S/2).
GEOMETRIES = [(8, 1), (16, 2), (16, 4), (24, 4), (24, 8), (12, 3), (15, 3), (15, 5), (8, 8), (20, 10)]
PHASES = [0.0, 0.4, math.pi / 2, 2.0]


def random_tensor(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def close(actual: Tensor, expected: object) -> None:
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), rtol=1e-10, atol=1e-12)


def atoms(size: int, phase: float) -> Tensor:
    """The atom of every frequency, as rows; at frequencies without a sine the cosine."""
    return torch.stack(
        [
            nt.fourier_atom((1, size), (0, f), 0.0 if 2 * f % size == 0 else phase, dtype=torch.float64)[0]
            for f in range(size)
        ]
    )


def textbook_accuracy(v: Tensor, matrix: Tensor, epsilon: float, sigma: float) -> float:
    """The definition, with an explicit pseudo-inverse; v of unit norm."""
    mean = epsilon * matrix @ v
    covariance = sigma**2 * matrix @ (torch.eye(len(v), dtype=torch.float64) - torch.outer(v, v)) @ matrix.T
    scale = float(torch.linalg.matrix_norm(matrix, 2)) ** 2 * sigma**2
    inverse = torch.linalg.pinv(covariance, atol=1e-11 * scale, rtol=0.0, hermitian=True)
    if (covariance @ inverse @ mean - mean).norm() > 1e-7 * mean.norm():
        return 1.0
    return float(special.ndtr(math.sqrt(max(float(mean @ inverse @ mean), 0.0))))


# The operator


@pytest.mark.parametrize(("size", "stride"), GEOMETRIES)
@pytest.mark.parametrize("prefilter", PREFILTERS)
def test_matrix_and_spectral_form_agree(size, stride, prefilter):
    # Equation (1), with unitary transforms and the aliasing matrix written out.
    x = random_tensor(size, seed=size + stride)
    z = pooling_matrix(prefilter, stride, size) @ x
    spectrum = spectral_response(prefilter, size, stride) * torch.fft.fft(x, norm="ortho")
    folded = spectrum.unflatten(0, (stride, -1)).sum(0) / math.sqrt(stride)
    close(torch.fft.fft(z, norm="ortho"), folded)
    close(aliasing_matrix(size, stride).to(torch.complex128) @ spectrum, folded)
    close(torch.fft.ifft(folded, norm="ortho").real, z)


@pytest.mark.parametrize(("size", "stride"), GEOMETRIES)
def test_average_is_the_average_pooling_of_torch(size, stride):
    x = random_tensor(3, 1, size, seed=size)
    expected = torch.nn.functional.avg_pool1d(x, stride).squeeze(1)
    close(x[:, 0] @ pooling_matrix("average", stride, size).T, expected)
    close(x[:, 0] @ pooling_matrix([1 / stride] * stride, stride, size).T, expected)


def test_average_in_two_dimensions_is_the_average_pooling_of_torch():
    x = random_tensor(3, 1, 6, 8, seed=0)
    for stride in (1, 2, (3, 2), (2, 4)):
        expected = torch.nn.functional.avg_pool2d(x, stride).flatten(1)
        close(x.flatten(1) @ pooling_matrix("average", stride, (6, 8)).T, expected)


def test_taps_are_those_of_a_convolution_in_torch():
    size, stride = 12, 3
    x = random_tensor(1, 1, size, seed=4)
    taps = torch.tensor(SIGNED_TAPS, dtype=torch.float64)
    around = torch.cat([x, x[..., : len(taps) - 1]], dim=-1)
    expected = torch.nn.functional.conv1d(around, taps[None, None], stride=stride).flatten()[: size // stride]
    close(pooling_matrix(taps, stride, size) @ x.flatten(), expected)


@pytest.mark.parametrize("prefilter", PREFILTERS)
def test_two_dimensional_matrix_and_spectral_form_agree(prefilter):
    size, stride = (4, 6), (2, 3)
    x = random_tensor(*size, seed=1)
    z = pooling_matrix(prefilter, stride, size) @ x.flatten()
    spectrum = spectral_response(prefilter, size, stride) * torch.fft.fft2(x, norm="ortho")
    folded = aliasing_matrix(size, stride).to(torch.complex128) @ spectrum.flatten()
    close(torch.fft.fft2(z.view(2, 2), norm="ortho").flatten(), folded)


def test_the_aliasing_matrix_is_a_row_of_identities():
    matrix = aliasing_matrix(6, 3)
    close(matrix * math.sqrt(3), [[1.0, 0, 1, 0, 1, 0], [0, 1.0, 0, 1, 0, 1]])
    close(matrix @ matrix.T, torch.eye(2, dtype=torch.float64))


@pytest.mark.parametrize(("size", "stride"), GEOMETRIES)
def test_named_prefilters_have_their_responses(size, stride):
    cycles = torch.fft.fftfreq(size, dtype=torch.float64)

    def check(name: str, expected: Tensor) -> None:
        torch.testing.assert_close(
            spectral_response(name, size, stride), expected.to(torch.complex128), rtol=0, atol=1e-13
        )

    check("identity", torch.ones(size))
    check("gaussian", torch.exp(-2 * (math.pi * stride / 2 * cycles) ** 2))
    check("binomial", torch.cos(math.pi * cycles) ** (2 * (stride - 1)))
    check("ideal", (cycles.abs() <= 1 / (2 * stride)).double())
    # A geometric sum: the modulus is the Dirichlet kernel, the phase that of half a window.
    kernel = torch.special.sinc(stride * cycles) / torch.special.sinc(cycles)
    check("average", kernel * torch.exp(1j * math.pi * cycles * (stride - 1)))


def test_zeros_of_the_response_are_exact():
    response = spectral_response("average", 4096, 8)
    assert response.nonzero().flatten().tolist() == [f for f in range(4096) if f == 0 or f % 512]


def test_anti_aliased_networks_taps():
    close(pooling_matrix("binomial", 2, 8)[1], [0.0, 0.25, 0.5, 0.25, 0, 0, 0, 0])


# The exact accuracy


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("rows", "columns", "rank"), [(3, 8, 3), (5, 8, 2), (12, 8, 7), (1, 6, 1), (4, 4, 3)])
def test_bayes_accuracy_is_the_textbook_formula(seed, rows, columns, rank):
    left, right = (torch.linalg.qr(random_tensor(n, rank, seed=seed + n)).Q for n in (rows, columns))
    matrix = left * torch.linspace(0.5, 3, rank, dtype=torch.float64) @ right.T
    v = torch.nn.functional.normalize(random_tensor(columns, seed=seed + 200), dim=0)
    for epsilon, sigma in ((1.0, 3.0), (0.5, 0.7), (2.0, 1.0)):
        expected = textbook_accuracy(v, matrix, epsilon, sigma)
        assert expected > 0.5 and (expected < 1 or epsilon > sigma)
        assert float(bayes_accuracy(v, matrix, epsilon, sigma)) == pytest.approx(expected, abs=1e-9)
    # Within the row space the mean leaves the range of the covariance; out of it, nothing is left.
    row_space = torch.linalg.svd(matrix).Vh
    inside, outside = row_space[:rank].sum(0), row_space[rank:].sum(0)
    assert textbook_accuracy(inside / inside.norm(), matrix, 0.1, 5.0) == 1
    assert float(bayes_accuracy(inside, matrix, 0.1, 5.0)) == 1
    assert float(bayes_accuracy(inside, matrix, 1e-17, 1.0)) == 1  # exactly no noise: rounding would be some 1e-16
    assert float(bayes_accuracy(outside, matrix, 5.0, 0.1)) == 0.5


def test_two_pixels_by_hand():
    # The mean of two pixels; v at the angle t to (1, 1): (epsilon/sigma) cot t.
    for angle in (0.1, 0.7, 1.5):
        v = math.cos(angle) * np.array([1, 1]) / math.sqrt(2) + math.sin(angle) * np.array([1, -1]) / math.sqrt(2)
        expected = stats.norm.cdf(0.8 / 1.7 / math.tan(angle))
        assert float(bayes_accuracy(v, [[0.5, 0.5]], 0.8, 1.7)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("prefilter", PREFILTERS)
@pytest.mark.parametrize(("size", "stride"), GEOMETRIES)
def test_the_curve_is_the_dense_answer_at_every_frequency(size, stride, prefilter, phase):
    matrix, directions = pooling_matrix(prefilter, stride, size), atoms(size, phase)
    for epsilon, sigma in ((1.0, 3.0), (1.0, 0.4)):
        curve = fourier_accuracies(prefilter, stride, epsilon, sigma, size=size, phase=phase)
        assert curve.shape == (size,) and curve.dtype == torch.float64
        close(curve, bayes_accuracy(directions, matrix, epsilon, sigma))
    # And the definition, for a few of them.
    for frequency in range(0, size, 3):
        expected = textbook_accuracy(directions[frequency], matrix, 1.0, 0.4)
        assert float(curve[frequency]) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("size", "stride"), [(16, 2), (16, 4), (24, 8), (15, 5), (128, 4)])
@pytest.mark.parametrize("prefilter", PREFILTERS)
def test_theorem_1_at_generic_frequencies(size, stride, prefilter):
    """The formula of the book, and the factor sqrt(S/2) of the printed one."""
    bins, epsilon, sigma = size // stride, 1.0, 0.9
    response = spectral_response(prefilter, size, stride)
    curve = fourier_accuracies(prefilter, stride, epsilon, sigma, size=size, phase=0.3)
    for f in range(size):
        if 2 * f % bins == 0:
            continue
        aliases = sum(float(response[(f + k * bins) % size].abs()) ** 2 for k in range(1, stride))
        gain = float(response[f].abs())
        ratio = math.inf if gain and not aliases else gain and gain / math.sqrt(aliases)
        assert float(curve[f]) == pytest.approx(stats.norm.cdf(epsilon / sigma * ratio), rel=1e-12)
        printed = 1 - stats.norm.sf(math.sqrt(2) * epsilon / (2 * sigma) * ratio * math.sqrt(stride))
        assert float(theorem1_accuracy(f, response, stride, epsilon, sigma)) == pytest.approx(printed, rel=1e-12)
        if stride == 2:
            assert printed == pytest.approx(float(curve[f]), rel=1e-12)
        elif 0.1 < ratio < 2:
            assert printed > float(curve[f]) + 0.005


def test_the_printed_formula_is_refuted_by_sampling():
    # Figure A4a's setting at the frequency where the two differ most, among generic ones.
    size, stride, epsilon, sigma = 128, 4, 1.0, 1.0
    exact = fourier_accuracies("average", stride, epsilon, sigma, size=size)
    printed = theorem1_accuracy(torch.arange(size), spectral_response("average", size, stride), stride, epsilon, sigma)
    generic = 2 * torch.arange(size) % (size // stride) != 0
    frequency = int(((printed - exact) * generic).argmax())
    number = 40_000
    measured = monte_carlo_accuracy(
        atoms(size, 0.0)[frequency], pooling_matrix("average", stride, size), epsilon, sigma, number, seed=1
    )
    assert abs(measured - float(exact[frequency])) < 5 * 0.5 / math.sqrt(number)
    assert float(printed[frequency]) - measured > 0.05


def test_interference_at_frequencies_that_share_a_bin_with_their_conjugate():
    # S = 2, subsampling alone: a quarter of the sampling rate folds onto itself. Even samples see the cosine, and its
    # partner in the bin is the sine, which they do not see: all or nothing.
    size = 16
    cosine, sine, between = (
        fourier_accuracies("identity", 2, 1.0, 1.0, size=size, phase=phase)[size // 4]
        for phase in (0.0, math.pi / 2, math.pi / 4)
    )
    assert float(cosine) == 1 and float(sine) == 0.5
    assert float(between) == pytest.approx(stats.norm.cdf(1.0), rel=1e-12)
    # At the other frequencies the phase plays no part.
    curves = torch.stack([fourier_accuracies("identity", 4, size=24, phase=phase) for phase in PHASES])
    generic = 2 * torch.arange(24) % 6 != 0
    assert torch.equal(curves[:, generic], curves[:1, generic].expand(len(PHASES), -1))
    # 3 and 9 are a quarter and three quarters of the way round the bins; 6 and 18 fold onto frequency 0.
    varies = (curves.amax(0) - curves.amin(0) > 1e-3).nonzero().flatten().tolist()
    assert varies == [3, 6, 9, 15, 18, 21]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("prefilter", PREFILTERS)
@pytest.mark.parametrize(("size", "stride"), [(16, 4), (24, 8), (15, 5), ((8, 8), 2), ((6, 4), (3, 1))])
def test_kept_shares_are_squared_cosines_and_sum_to_the_rank(size, stride, prefilter, phase):
    """q = cos² of the angle to the row space; over the orthonormal basis of cosines and sines it sums to rank P."""
    shares = pooling.kept_shares(prefilter, stride, size=size, phase=phase)
    finite = shares.clamp(0, 1 - 1e-15)
    expected = pooling.fourier_accuracies(prefilter, stride, 1.0, 2.0, size=size, phase=phase)
    measured = torch.special.ndtr(0.5 * (finite / (1 - finite)).sqrt())
    torch.testing.assert_close(measured, expected, rtol=0, atol=1e-9)
    # Cosine and sine of one frequency span a plane; l and -l name the same one, so the mean over both phases and all
    # frequencies counts each basis vector once. Where 2l = 0 mod D, only the cosine exists, whatever the phase.
    quadrature = pooling.kept_shares(prefilter, stride, size=size, phase=phase + math.pi / 2)
    rank = int(torch.linalg.matrix_rank(pooling.pooling_matrix(prefilter, stride, size)))
    assert float((shares + quadrature).sum() / 2) == pytest.approx(rank, abs=1e-9)


@pytest.mark.parametrize(
    ("size", "stride", "frequency"), [(128, 4, 16), (128, 4, 48), (64, 8, 12), (16, 2, 4), (24, 3, 4)]
)
@pytest.mark.parametrize("prefilter", ["average", "binomial", "identity", SIGNED_TAPS])
@pytest.mark.parametrize("phase", PHASES)
def test_a_wave_that_meets_its_conjugate_keeps_a_share_that_depends_on_its_phase(
    size, stride, frequency, prefilter, phase
):
    """cos² of the angle is 2 Re(m[l] e^{-i phase})² over the energy of the bin, where 2l is a multiple of M."""
    bins = size // stride
    assert 2 * frequency % bins == 0 and 2 * frequency % size != 0
    response = pooling.spectral_response(prefilter, size, stride)
    rotated = complex(response[frequency]) * complex(math.cos(phase), -math.sin(phase))
    formula = 2 * rotated.real**2 / float(response[frequency % bins :: bins].abs().square().sum())
    wave = torch.cos(2 * math.pi * frequency * torch.arange(size, dtype=torch.float64) / size - phase)
    matrix = pooling.pooling_matrix(prefilter, stride, size)
    dense = float((torch.linalg.pinv(matrix) @ matrix @ wave).norm() ** 2 / wave.norm() ** 2)
    assert formula == pytest.approx(dense, abs=1e-9)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("prefilter", ["average", "gaussian", "ideal", SIGNED_TAPS])
@pytest.mark.parametrize(("size", "stride"), [((8, 8), 2), ((8, 8), 4), ((4, 6), (2, 3)), ((6, 5), (3, 1))])
def test_two_dimensional_curves_are_the_dense_answer(size, stride, prefilter, phase):
    h, w = size
    directions = torch.stack(
        [
            nt.fourier_atom(size, (i, j), phase * ((2 * i) % h > 0 or (2 * j) % w > 0), dtype=torch.float64).flatten()
            for i in range(h)
            for j in range(w)
        ]
    )
    curve = fourier_accuracies(prefilter, stride, 1.0, 0.6, size=size, phase=phase)
    assert curve.shape == size
    close(curve.flatten(), bayes_accuracy(directions, pooling_matrix(prefilter, stride, size), 1.0, 0.6))


def test_arrays_of_epsilon_and_sigma_broadcast():
    epsilon, sigma = torch.tensor([[0.5], [1.0]]), [1.0, 2.0, 4.0]
    grid = fourier_accuracies("gaussian", 4, epsilon, sigma, size=16)
    assert grid.shape == (2, 3, 16)
    close(grid[1, 2], fourier_accuracies("gaussian", 4, 1.0, 4.0, size=16))
    assert fourier_accuracies("gaussian", 4, epsilon, sigma, size=(4, 8)).shape == (2, 3, 4, 8)
    v, matrix = atoms(16, 0.0), pooling_matrix("gaussian", 4, 16)
    close(bayes_accuracy(v, matrix, epsilon, sigma), grid)
    assert bayes_accuracy(v[0], matrix).shape == () and bayes_accuracy(v[0], matrix, sigma=sigma).shape == (3,)
    assert theorem1_accuracy([1, 2], torch.ones(16), 4, epsilon, sigma).shape == (2, 3, 2)


@pytest.mark.parametrize("function", ["dense", "curve", "printed"])
def test_limits(function):
    # Frequency 3 of 16 at S = 4 has signal and aliases; 4 is stopped by the average.
    def accuracy(frequency: int, epsilon: float, sigma: float) -> float:
        if function == "dense":
            return float(bayes_accuracy(atoms(16, 0.0)[frequency], pooling_matrix("average", 4, 16), epsilon, sigma))
        if function == "curve":
            return float(fourier_accuracies("average", 4, epsilon, sigma, size=16)[frequency])
        return float(theorem1_accuracy(frequency, spectral_response("average", 16, 4), 4, epsilon, sigma))

    assert accuracy(3, 1.0, 0.0) == 1 == accuracy(0, 1.0, 0.0) == accuracy(0, 1e-3, 1e3)
    assert accuracy(3, 0.0, 1.0) == 0.5 == accuracy(3, 0.0, 0.0) == accuracy(0, 0.0, 1.0)
    assert accuracy(4, 1.0, 0.0) == 0.5 == accuracy(4, 1.0, 1.0) == accuracy(4, 1e6, 1e-6)
    # And they are limits: continuous in sigma, and in epsilon.
    assert accuracy(3, 1.0, 1e-3) == pytest.approx(1, abs=1e-12)
    assert accuracy(3, 1e-9, 1.0) == pytest.approx(0.5, abs=1e-8)


# Monte Carlo


@pytest.mark.parametrize(
    ("size", "stride", "prefilter", "frequency", "phase"),
    [
        (16, 4, "average", 3, 0.0),
        (24, 8, "gaussian", 2, 1.0),
        (12, 3, SIGNED_TAPS, 4, 0.7),
        (16, 2, "binomial", 4, 0.8),
    ],
)
def test_the_optimal_linear_rule_reaches_the_exact_accuracy(size, stride, prefilter, frequency, phase):
    number, sigma = 40_000, 0.8
    v = atoms(size, phase)[frequency]
    measured = monte_carlo_accuracy(v, pooling_matrix(prefilter, stride, size), 1.0, sigma, number, seed=3)
    exact = float(fourier_accuracies(prefilter, stride, 1.0, sigma, size=size, phase=phase)[frequency])
    assert 0.5 < exact < 1
    assert abs(measured - exact) < 5 * math.sqrt(exact * (1 - exact) / number)


def test_monte_carlo_in_the_degenerate_cases():
    matrix = pooling_matrix("average", 4, 16)
    assert monte_carlo_accuracy(atoms(16, 0.0)[0], matrix, 0.1, 3.0, 1000) == 1  # constant: no noise in its bin
    assert monte_carlo_accuracy(atoms(16, 0.0)[4], matrix, 1.0, 3.0, 1000) == 0.5  # stopped
    assert monte_carlo_accuracy(atoms(16, 0.0)[3], matrix, 0.0, 0.0, 1000) == 0.5
    a, b, c = (monte_carlo_accuracy(atoms(16, 0.0)[3], matrix, num_samples=999, seed=seed) for seed in (5, 5, 6))
    assert a == b != c


# Properties

FEW = settings(derandomize=True, deadline=None, max_examples=40)
TAPS = st.lists(st.floats(-1, 1).map(lambda t: round(t, 3)), min_size=1, max_size=8).filter(any)
GEOMETRY = st.sampled_from([(8, 2), (8, 4), (12, 3), (12, 4), (16, 8), (15, 5)])
PREFILTER = st.one_of(st.sampled_from(NAMES), TAPS)
SCALE = st.floats(0.01, 10)
SEED = st.integers(0, 10_000)


@FEW
@given(GEOMETRY, PREFILTER, SEED)
def test_shares_sum_to_the_rank_over_any_orthonormal_basis(geometry, prefilter, seed):
    size, stride = geometry
    matrix = pooling.pooling_matrix(prefilter, stride, size)
    basis, _ = torch.linalg.qr(
        torch.randn(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    )
    # The angle of each basis vector, by way of the accuracy: cot = the probit of it at epsilon = sigma.
    accuracies = pooling.bayes_accuracy(basis, matrix, 0.1, 1.0).clamp(max=1 - 1e-16)
    cotangents = 10 * torch.special.ndtri(accuracies)
    assert float((cotangents**2 / (1 + cotangents**2)).sum()) == pytest.approx(
        int(torch.linalg.matrix_rank(matrix)), abs=1e-2
    )


@FEW
@given(GEOMETRY, PREFILTER, SCALE, SCALE, st.floats(0, 7), SEED)
def test_accuracies_lie_between_chance_and_certainty(geometry, prefilter, epsilon, sigma, phase, seed):
    size, stride = geometry
    curve = fourier_accuracies(prefilter, stride, epsilon, sigma, size=size, phase=phase)
    single = bayes_accuracy(random_tensor(size, seed=seed), pooling_matrix(prefilter, stride, size), epsilon, sigma)
    printed = theorem1_accuracy(range(size), spectral_response(prefilter, size, stride), stride, epsilon, sigma)
    for values in (curve, single, printed):
        assert bool(((values >= 0.5) & (values <= 1)).all())


@FEW
@given(GEOMETRY, PREFILTER, SCALE, SCALE, st.floats(1, 5), SEED)
def test_accuracies_grow_with_epsilon_over_sigma(geometry, prefilter, epsilon, sigma, factor, seed):
    size, stride = geometry
    v, matrix = random_tensor(size, seed=seed), pooling_matrix(prefilter, stride, size)
    base = bayes_accuracy(v, matrix, epsilon, sigma)
    assert bayes_accuracy(v, matrix, factor * epsilon, sigma) >= base >= bayes_accuracy(v, matrix, epsilon, 2 * sigma)
    close(bayes_accuracy(v, matrix, factor * epsilon, factor * sigma), base)
    curves = fourier_accuracies(prefilter, stride, [epsilon, factor * epsilon], sigma, size=size)
    assert bool((curves[1] >= curves[0]).all())


@FEW
@given(GEOMETRY, TAPS, st.floats(1e-6, 1e6), st.sampled_from([-1, 1]), SEED)
def test_the_scale_of_the_prefilter_plays_no_part(geometry, taps, factor, sign, seed):
    size, stride = geometry
    scaled = [sign * factor * t for t in taps]
    close(fourier_accuracies(scaled, stride, size=size), fourier_accuracies(taps, stride, size=size))
    v, matrix = random_tensor(size, seed=seed), pooling_matrix(taps, stride, size)
    close(bayes_accuracy(v, sign * factor * matrix), bayes_accuracy(v, matrix))
    close(bayes_accuracy(sign * factor * v, matrix), bayes_accuracy(v, matrix))


@FEW
@given(st.integers(1, 12), SCALE, SCALE, SEED)
def test_an_invertible_layer_loses_nothing(size, epsilon, sigma, seed):
    orthogonal, _ = torch.linalg.qr(random_tensor(size, size, seed=seed))
    matrix = orthogonal * torch.linspace(0.1, 10, size, dtype=torch.float64) @ random_tensor(size, size, seed=seed + 1)
    assert bayes_accuracy(random_tensor(size, seed=seed + 2), matrix, epsilon, sigma) == 1


@FEW
@given(st.integers(2, 12), SCALE, SCALE, SEED)
def test_a_layer_that_stops_the_direction_leaves_chance(size, epsilon, sigma, seed):
    v = torch.nn.functional.normalize(random_tensor(size, seed=seed), dim=0)
    matrix = random_tensor(size + 1, size, seed=seed + 1)
    matrix -= torch.outer(matrix @ v, v)
    assert bayes_accuracy(v, matrix, epsilon, sigma) == 0.5
    assert bayes_accuracy(v, torch.zeros(3, size), epsilon, sigma) == 0.5


@FEW
@given(GEOMETRY, PREFILTER, SEED)
def test_a_further_layer_never_helps(geometry, prefilter, seed):
    size, stride = geometry
    v, matrix = random_tensor(size, seed=seed), pooling_matrix(prefilter, stride, size)
    further = random_tensor(2, size // stride, seed=seed + 1)
    assert bayes_accuracy(v, further @ matrix) <= bayes_accuracy(v, matrix) + 1e-12


# Bad input


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pooling_matrix("average", 3, 8), ValueError, "stride=3.*D = 8.*divisor of D"),
        (lambda: pooling_matrix("average", (2, 2), 8), ValueError, "one for each axis"),
        (lambda: pooling_matrix("average", 2, (8, 7)), ValueError, "stride=2.*D = 7"),
        (lambda: pooling_matrix([0.1] * 9, 2, 8), ValueError, "9 taps.*8 samples.*at most D"),
        (lambda: pooling_matrix([[0.1]], 2, 8), ValueError, r"shape \(1, 1\)"),
        (lambda: aliasing_matrix(8, 3), ValueError, "stride=3"),
        (lambda: fourier_accuracies("average", 3, size=8), ValueError, "stride=3"),
        (lambda: fourier_accuracies("average", 2, [1.0, 2.0], [1.0, 2.0, 3.0], size=8), ValueError, "broadcast"),
        (lambda: theorem1_accuracy(8, torch.ones(8), 2), ValueError, "frequency=8.*0 and D - 1 = 7"),
        (lambda: theorem1_accuracy(1, torch.ones(8), 3), ValueError, "stride=3"),
        (lambda: theorem1_accuracy(1, torch.ones(2, 4), 2), ValueError, r"shape \(2, 4\)"),
        (lambda: bayes_accuracy([0.0, 0.0], [[1.0, 0.0]]), ValueError, "v = 0"),
        (lambda: bayes_accuracy([1.0], [[1.0, 0.0]]), ValueError, r"v of shape \(1,\).*\(1, 2\)"),
        (lambda: bayes_accuracy([1.0, 0], [1.0, 0.0]), ValueError, r"pooling_matrix of shape \(2,\)"),
        (lambda: monte_carlo_accuracy(np.eye(2), [[1.0, 0.0]]), ValueError, "one direction"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_theory_has_a_name_of_its_own_and_pooling_a_short_one():
    assert nt.pooling is nt.theory.pooling is pooling
