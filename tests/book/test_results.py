"""The results that the book shows: whole, small, and what the code would compute today."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from companion import experiments, published

import nadtools as nt
from nadtools import storage

FOLDER = Path(__file__).parents[2] / "book" / "results"
FILES = sorted(FOLDER.glob("*.npz"))
ATLAS = [path for path in FILES if path.name.startswith("atlas-")]

by_name = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
by_atlas = pytest.mark.parametrize("path", ATLAS, ids=lambda path: path.stem)


def test_sizes():
    assert FILES, f"no results in {FOLDER}"
    # Folders hold the checkpoints of unfinished runs, which git ignores.
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < 30e6
    assert sum(path.stat().st_size for path in ATLAS) < 20e6


@by_name
def test_every_result_is_whole_and_not_stale(path):
    storage.read_arrays(path)  # compares checksums
    differences = experiments.stale(path)
    assert not differences, (
        f"{path.name} is stale: {'; '.join(differences)}; make it again with python -m companion run"
    )


@by_name
def test_every_result_says_where_it_comes_from(path):
    record = experiments.read_record(path)
    assert record["scale"] in ("laptop", "paper"), "smoke results are not worth keeping"
    assert record["wall_seconds"] > 0
    for key in ("device", "date", "revision"):
        assert isinstance(record[key], str) and record[key]
    assert {"nadtools", "torch", "numpy"} <= set(record["versions"])
    assert isinstance(record["seed"], int)


@by_atlas
def test_atlas_holds_complete_orthonormal_nads_with_their_convergence(path):
    record = experiments.read_record(path)
    nads = experiments.load(
        "atlas", scale=record["scale"], seed=record["seed"], results_dir=FOLDER, **record["selectors"]
    )
    assert isinstance(nads, nt.NADs)
    assert nads.image_shape == (32, 32)
    rows = nads.vectors.flatten(1).double()
    assert float((rows @ rows.T - torch.eye(len(rows), dtype=torch.float64)).abs().max()) < 1e-5
    assert nads.eigenvalues.dtype == torch.float64
    assert bool((nads.eigenvalues[1:] <= nads.eigenvalues[:-1]).all())
    assert float(nads.eigenvalues[-1]) >= -1e-9 * float(nads.eigenvalues[0])
    assert nads.metadata["num_networks"] == record["parameters"]["num_networks"]
    overlap = nads.split_half_overlap
    assert bool(((overlap >= 0) & (overlap <= 1 + 1e-9)).all())
    # All of space overlaps with all of space.
    assert float(overlap[-1]) == pytest.approx(1, abs=1e-6)


def test_the_atlas_is_complete():
    selectors = [experiments.read_record(path)["selectors"] for path in ATLAS]
    stored = {(chosen["architecture"], chosen["estimator"]) for chosen in selectors}
    deep = ("lenet", "vgg11", "resnet18", "densenet121")
    assert stored == {(architecture, estimator) for architecture in deep for estimator in ("secant", "gradient")}


def test_lenet_meets_the_published_nads(published_lenet):
    nads = experiments.load_atlas("lenet", "secant")
    for k in (10, 50, 100):
        assert nt.captured_energy(nads.vectors, published_lenet, k) >= 0.97
    assert nt.subspace_overlap(nads.vectors, published_lenet.vectors, 50) >= 0.90


def test_resnet18_meets_the_published_nads_with_ten_networks(published_lenet):
    theirs = published.load_nads("resnet18")
    nads = experiments.load_atlas("resnet18", "secant")
    assert nads.metadata["num_networks"] == 10
    assert nt.subspace_overlap(nads.vectors, theirs.vectors, 10) >= 0.93
    assert nt.subspace_overlap(nads.vectors, theirs.vectors, 100) >= 0.87
    ours, published_shares = (n.eigenvalues.sqrt() / n.eigenvalues.sqrt().sum() for n in (nads, theirs))
    torch.testing.assert_close(ours[1:5], published_shares[1:5], rtol=0.06, atol=0)


def test_confidence_intervals_are_honest():
    record, result = experiments.read_record(FOLDER / "coverage-laptop.npz"), experiments.load("coverage")
    assert record["parameters"]["repetitions"] >= 50 and len(result["coverage"]) >= 15
    assert 0.90 <= float(result["coverage"].mean()) <= 0.99
