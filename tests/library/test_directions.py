from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import nadtools as nt
from nadtools.directions import as_direction

SHAPES = [(32, 32), (1, 1), (1, 8), (5, 4), (7, 3), (2, 9), (16, 32)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_fourier_basis_is_orthonormal_and_complete(shape):
    basis = nt.fourier_basis(shape)
    dimension = math.prod(shape)
    assert basis.shape == (dimension, *shape) and basis.dtype == torch.float32
    gram = basis.flatten(1).double() @ basis.flatten(1).double().T
    # An entry of a float32 atom is off by 6e-8 relative: 1e-6 bounds any inner product of two unit vectors.
    assert float((gram - torch.eye(dimension)).abs().max()) < 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_modes_name_the_basis_from_low_to_high(shape):
    modes = nt.fourier_modes(shape)
    basis = nt.fourier_basis(shape)
    assert len(set(modes)) == len(modes) == len(basis)
    radii = [math.hypot(m.frequency[0] / shape[0], m.frequency[1] / shape[1]) for m in modes]
    assert radii == sorted(radii) and modes[0] == ((0, 0), 0.0)
    for index in range(0, len(modes), 7):
        assert torch.equal(basis[index], nt.fourier_atom(shape, *modes[index]))


def test_an_atom_is_the_cosine_of_the_formula():
    v = nt.fourier_atom((32, 16), (3, -2), phase=0.7, dtype=torch.float64)
    r, c = np.mgrid[:32, :16]
    wave = np.cos(2 * np.pi * (3 * r / 32 - 2 * c / 16) - 0.7)
    np.testing.assert_allclose(v.numpy(), wave / np.linalg.norm(wave), atol=1e-14)


def test_phase_zero_is_a_cosine_and_a_quarter_a_sine():
    cosine, sine = (nt.fourier_atom((8, 8), (1, 0), phase) for phase in (0.0, math.pi / 2))
    assert float(cosine[0, 0]) == float(cosine.max()) and abs(float(sine[0, 0])) < 1e-7
    assert float(sine[2, 0]) == float(sine.max())


@pytest.mark.parametrize("frequency", [(0, 0), (16, 0), (0, 16), (16, 16), (-16, 32)])
def test_no_sine_exists_at_self_conjugate_frequencies(frequency):
    with pytest.raises(ValueError, match="only the cosine exists"):
        nt.fourier_atom((32, 32), frequency, phase=math.pi / 2)
    assert float(nt.fourier_atom((32, 32), frequency, phase=0.3).norm()) == pytest.approx(1, abs=1e-6)


def test_the_energy_of_an_atom_lies_at_its_frequency_and_its_opposite():
    energy = nt.fourier_energy(nt.fourier_atom((32, 32), (3, -5)))
    assert float(energy[16 + 3, 16 - 5]) == pytest.approx(0.5, abs=1e-6)
    assert float(energy[16 - 3, 16 + 5]) == pytest.approx(0.5, abs=1e-6)
    assert float(energy.sum()) == pytest.approx(1, abs=1e-6)
    batch = nt.fourier_energy(nt.fourier_basis((5, 4)))
    assert batch.shape == (20, 5, 4)
    torch.testing.assert_close(batch.sum((1, 2)), torch.ones(20))


def test_random_directions_are_unit_vectors_and_uniform():
    sample = torch.stack([nt.random_direction((4, 4), seed) for seed in range(500)]).flatten(1)
    torch.testing.assert_close(sample.norm(dim=1), torch.ones(500))
    # The mean of 500 has norm 1/sqrt(500) = 0.045 on average, the second moment is I/16.
    assert float(sample.mean(0).norm()) < 0.1
    # An entry of the second moment has variance about 1/16² / 500 off the diagonal, and about twice that on it.
    assert float((sample.T @ sample / 500 - torch.eye(16) / 16).abs().max()) < 5 * 2**0.5 / 16 / 500**0.5
    assert torch.equal(nt.random_direction((3, 4, 4), 1), nt.random_direction((3, 4, 4), 1))


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (2, 3, 4)])
def test_a_random_basis_is_orthonormal(shape):
    basis = nt.random_basis(shape, 5, dtype=torch.float64)
    rows = basis.flatten(1)
    assert basis.shape == (math.prod(shape), *shape)
    torch.testing.assert_close(rows @ rows.T, torch.eye(len(rows), dtype=torch.float64), rtol=0, atol=1e-13)
    assert torch.equal(basis.float(), nt.random_basis(shape, 5))
    if shape != (1, 1):
        assert not torch.equal(basis.float(), nt.random_basis(shape, 6))


def test_random_bases_are_uniform():
    sample = torch.stack([nt.random_basis((2, 2), seed, dtype=torch.float64).flatten(1) for seed in range(1500)])
    # Of a uniform orthogonal matrix of size 4 the entries have the mean 0 and the second moment 1/4, the diagonal too:
    # a QR decomposition whose signs are left as they come has a negative one. The error of a mean is 0.5/sqrt(1500).
    assert float(sample.mean(0).abs().max()) < 5 * 0.5 / 1500**0.5
    assert float((sample.square().mean(0) - 1 / 4).abs().max()) < 5 * 0.25 / 1500**0.5
    # A product of two entries in one row has the mean 0, and the trace the variance 1.
    assert float((sample[:, 0, 0] * sample[:, 0, 1]).mean().abs()) < 5 * 0.25 / 1500**0.5
    traces = sample.diagonal(dim1=1, dim2=2).sum(1)
    assert float(traces.square().mean()) == pytest.approx(1, abs=5 * 2**0.5 / 1500**0.5)


def test_as_direction_survives_extreme_scales():
    for scale in (1e-30, 1.0, 1e30):
        torch.testing.assert_close(as_direction(torch.tensor([[3.0, 4.0]]) * scale), torch.tensor([[0.6, 0.8]]))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: as_direction(torch.full((2, 2), math.nan)), ValueError, "NaN or infinite"),
        (lambda: as_direction(torch.ones(2, 3), (3, 2)), ValueError, r"\(2, 3\); expected \(3, 2\)"),
        (lambda: nt.fourier_atom((32,), (1, 1)), ValueError, "2 positive sizes"),
        (lambda: nt.random_basis((4,)), ValueError, "2 or 3 positive sizes"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
