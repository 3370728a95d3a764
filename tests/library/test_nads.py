from __future__ import annotations

import pytest
import torch
from small_networks import SMALL, Network, estimate
from torch import nn

import nadtools as nt


def test_nads_are_a_ranked_orthonormal_basis():
    nads = nt.estimate_nads("lenet", 2, device="cpu", progress=False)
    rows = nads.vectors.flatten(1).double()
    assert nads.vectors.shape == (1024, 32, 32) and nads.eigenvalues.shape == nads.eigenvalue_stderr.shape == (1024,)
    assert float((rows @ rows.T - torch.eye(1024)).abs().max()) < 1e-6
    assert bool((nads.eigenvalues[1:] <= nads.eigenvalues[:-1]).all()) and float(nads.eigenvalues[-1]) >= 0
    assert bool(nads.eigenvalue_stderr.isfinite().all())
    assert nads.metadata["symmetries"] == "square" and nads.metadata["num_networks"] == 2


def test_colour_keeps_its_channels():
    nads = estimate("logreg", 1, in_channels=3, image_size=(4, 6))
    assert nads.vectors.shape == (72, 3, 4, 6) and nads.image_shape == (3, 4, 6)


def test_alignment_is_the_quadratic_form_of_the_covariance():
    nads = estimate(Network, 4)
    v = nt.random_direction(SMALL, 1)
    expected = v.flatten().double() @ nads.covariance() @ v.flatten().double()
    assert nads.alignment(v) == pytest.approx(float(expected), rel=1e-6)
    assert nads.alignment(5 * v) == pytest.approx(nads.alignment(v), rel=1e-6)
    assert nads.alignment(nads.vectors[2]) == pytest.approx(float(nads.eigenvalues[2]), rel=1e-5)
    many = nads.alignments(torch.stack([v, nads.vectors[3]]))
    torch.testing.assert_close(many, torch.tensor([nads.alignment(v), nads.alignment(nads.vectors[3])]).double())
    with pytest.raises(ValueError, match=r"expected \(8, 8\)"):
        nads.alignment(torch.ones(4, 4))
    with pytest.raises(TypeError, match=r"expected a torch.Tensor"):
        nads.alignment([1.0])


def test_save_and_load(tmp_path):
    nads = estimate(Network, 3)
    loaded = nt.NADs.load(nads.save(tmp_path / "nads.npz"))
    for name in ("vectors", "eigenvalues", "eigenvalue_stderr", "split_half_overlap", "held_out", "held_out_stderr"):
        torch.testing.assert_close(getattr(loaded, name), getattr(nads, name), rtol=0, atol=0, equal_nan=True)
    assert loaded.metadata == nads.metadata
    half = nt.NADs.load(nads.save(tmp_path / "half.npz", half_precision=True))
    rows = half.vectors.flatten(1).double()
    assert float((rows @ rows.T - torch.eye(64)).abs().max()) < 1e-6
    torch.testing.assert_close(half.vectors, nads.vectors, atol=2e-3, rtol=0)
    assert torch.equal(half.eigenvalues, nads.eigenvalues)
    assert (tmp_path / "half.npz").stat().st_size < 0.75 * (tmp_path / "nads.npz").stat().st_size
    content = (tmp_path / "nads.npz").read_bytes()
    (tmp_path / "nads.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="damaged"):
        nt.NADs.load(tmp_path / "nads.npz")
    nt.storage.write_arrays(tmp_path / "other.npz", {"a": nads.eigenvalues.numpy()}, {})
    with pytest.raises(ValueError, match="does not hold NADs"):
        nt.NADs.load(tmp_path / "other.npz")


def test_nads_are_read_as_a_sequence_of_vectors():
    nads = estimate(Network, 6)
    assert len(nads) == 64 and torch.equal(nads[3], nads.vectors[3]) and nads[:10].shape == (10, *SMALL)
    assert len(repr(nads).splitlines()) == 3 and "6 networks" in repr(nads)
    assert nt.subspace_overlap(nads, nads.vectors, 5) == pytest.approx(1, abs=1e-6)
    assert nt.captured_energy(nads, nads, 5) == pytest.approx(1, abs=1e-6)


def test_files_of_earlier_versions_have_no_held_out_spectrum(tmp_path):
    nads = estimate(Network, 6)
    arrays, metadata = nt.storage.read_arrays(nads.save(tmp_path / "nads.npz"))
    kept = {name: array for name, array in arrays.items() if not name.startswith("held_out")}
    old = nt.NADs.load(nt.storage.write_arrays(tmp_path / "old.npz", kept, metadata))
    assert bool(old.held_out.isnan().all()) and old.eigenspaces == nads.eigenspaces


# The noise has a spectral norm of about 23 times its size; the gaps are 4, 3 and 1.
@pytest.mark.parametrize(("noise", "sizes"), [(0.003, [1, 3, 12, 48]), (0.03, [1, 3, 60]), (0.3, [64])])
def test_halves_agree_on_every_eigenspace(noise, sizes):
    """By nine tenths, as the projections themselves say; a gap that is small beside the noise divides nothing."""
    source = torch.Generator().manual_seed(0)
    basis = torch.linalg.qr(torch.randn(64, 64, generator=source, dtype=torch.float64)).Q
    values = torch.cat([torch.full((n,), v) for n, v in ((1, 9.0), (3, 5.0), (12, 2.0), (48, 1.0))]).double()
    halves = []
    for _ in range(2):
        error = torch.randn(64, 64, generator=source, dtype=torch.float64)
        matrix = basis * values @ basis.T + noise * (error + error.T)
        halves.append(torch.linalg.eigh(matrix).eigenvectors.flip(1).T.reshape(64, 8, 8))
    overlap = torch.tensor([nt.subspace_overlap(*halves, k) for k in range(1, 65)], dtype=torch.float64)
    nan = torch.full((64,), float("nan"), dtype=torch.float64)
    nads = nt.NADs(halves[0].float(), torch.linspace(2, 1, 64, dtype=torch.float64), nan, overlap)
    for one in nads.eigenspaces:
        first, second = (half[one.start : one.stop] for half in halves)
        assert nt.subspace_overlap(first, second, len(one)) >= 0.9
    assert [len(one) for one in nads.eigenspaces] == sizes and nads.num_resolved == 64 - sizes[-1]


def test_the_closed_form_knows_its_eigenspaces():
    nads = nt.analytic_nads("lenet", (16, 16))
    assert nads.eigenspaces is not None
    for one in nads.eigenspaces:
        values = nads.eigenvalues[one.start : one.stop]
        assert float(values[0] - values[-1]) <= 1e-9 * len(one) * float(nads.eigenvalues[0])
    assert [index for one in nads.eigenspaces for index in one] == list(range(256))


def test_an_incomplete_basis_is_completed_deterministically():
    basis = nt.fourier_basis(SMALL)
    values = torch.linspace(2, 1, 60)
    nads = nt.NADs.from_vectors(basis[:60] * (1 + 1e-4), values, source="test")
    rows = nads.vectors.flatten(1).double()
    assert float((rows @ rows.T - torch.eye(64)).abs().max()) < 1e-6
    assert nt.subspace_overlap(nads.vectors, basis, 60) == pytest.approx(1, abs=1e-6)
    assert torch.equal(nads.eigenvalues[60:], torch.zeros(4, dtype=torch.float64)) and nads.metadata == {
        "source": "test"
    }
    assert torch.equal(
        nt.NADs.from_vectors(basis[:60], values).vectors, nt.NADs.from_vectors(basis[:60], values).vectors
    )
    for bad, message in (
        ((torch.ones(3, 8, 8), torch.ones(3)), "orthonormality"),
        ((basis[:3], torch.tensor([1.0, 2.0, 3.0])), "descending"),
        ((basis[:3], torch.ones(2)), "eigenvalues of shape"),
    ):
        with pytest.raises(ValueError, match=message):
            nt.NADs.from_vectors(*bad)
    with pytest.raises(ValueError, match="expected a complete basis"):
        nt.NADs(basis[:3], torch.ones(3), torch.ones(3), torch.ones(3))


def test_overlap_and_energy_against_dense_formulas():
    a, b = (torch.linalg.qr(torch.randn(64, 64, generator=torch.Generator().manual_seed(s)))[0].T for s in (0, 1))
    a, b = a.reshape(64, 8, 8), b.reshape(64, 8, 8)
    first, second = a[:5].flatten(1), b[:5].flatten(1)
    assert nt.subspace_overlap(a, b, 5) == pytest.approx(float((first @ second.T).norm() ** 2 / 5), rel=1e-5)
    assert nt.subspace_overlap(a, a.flip(0), 64) == pytest.approx(1, abs=1e-6)
    reference = nt.NADs.from_vectors(b, torch.linspace(3, 0.1, 64))
    dense = torch.trace(first.double() @ reference.covariance() @ first.double().T) / reference.eigenvalues[:5].sum()
    assert nt.captured_energy(a, reference, 5) == pytest.approx(float(dense), rel=1e-6)
    assert nt.captured_energy(b, reference, 5) == pytest.approx(1, abs=1e-6)
    with pytest.raises(ValueError, match="at least 70"):
        nt.subspace_overlap(a, b, 70)
    with pytest.raises(ValueError, match="expected at least"):
        nt.captured_energy(a[:, :4], reference, 2)


def test_directions_that_no_network_tells_are_arbitrary_and_using_them_warns():
    """Two networks of 12 features span 24 directions of 64."""
    nads, full = (estimate(Network, number) for number in (2, 8))
    assert (nads.rank, full.rank) == (24, 64)
    assert "arbitrary from index 24 on" in repr(nads) and "arbitrary" not in repr(full)
    x = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([0, 1, 0, 1])
    with pytest.warns(UserWarning, match="NAD 30 is arbitrary, only 24 of 64"):
        nads[30]
    with pytest.warns(UserWarning, match="NAD 63 is arbitrary"):
        nads[-1]
    with pytest.warns(UserWarning, match="NAD 24 is arbitrary"):
        nt.poison(x, y, nads, 24, 0.1)
    with pytest.warns(UserWarning, match="NAD 63 is arbitrary"):
        nt.flip(x, nads)
    # What is known, slices, a complete estimate and a closed form warn of nothing: pytest would raise.
    nt.poison(x, y, nads, 23, 0.1)
    nt.flip(x, full)
    blind = nt.analytic_nads(lambda: nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 1)), (8, 8))
    assert blind.rank == 64 and float(blind.eigenvalues[-1]) == 0
    assert (nads[23].shape, nads[20:30].shape, blind[63].shape) == ((8, 8), (10, 8, 8), (8, 8))


def test_compare_says_what_the_functions_say():
    known = {"linear": nt.analytic_nads("lenet", (16, 16)), "a few": nt.estimate_nads("lenet", 3, image_size=(16, 16))}
    table = nt.compare(known, k=4)
    assert list(table.index) == ["linear", "a few"]
    for name, one in known.items():
        row = table.loc[name]
        assert (row["num_resolved"], row["rank"]) == (one.num_resolved, one.rank)
        ends = [space.stop for space in one.eigenspaces]
        assert list(row["steps"]) == ends[: len(row["steps"])] and max((0, *row["steps"])) == one.num_resolved
        for other, reference in known.items():
            assert row[f"overlap with {other}"] == nt.subspace_overlap(one, reference, 4)
            assert row[f"energy of {other}"] == nt.captured_energy(one, reference, 4)
    assert table.loc["linear", "overlap with linear"] == pytest.approx(1)
    isotropic = nt.NADs.from_vectors(torch.eye(9).view(9, 3, 3), torch.ones(9))
    assert nt.compare({"all": isotropic}, k=2).loc["all", "effective_rank"] == pytest.approx(9)
    for bad in ([isotropic], {"x": torch.ones(2)}):
        with pytest.raises(TypeError, match=r"nads.* of type"):
            nt.compare(bad)
