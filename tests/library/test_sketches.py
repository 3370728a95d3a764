"""The first directions alone: for images whose covariance does not fit, and inside a given span."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
from small_networks import SMALL, Network, estimate
from torch import nn

import nadtools as nt
from nadtools.moments import GradientMoments, Sketch

SHAPE = (1, 20, 20)


def jacobians(number: int, columns: int, decay: float) -> list[torch.Tensor]:
    """Of networks with a spectrum that falls."""
    source = torch.Generator().manual_seed(0)
    scales = torch.arange(1, 401, dtype=torch.float64)[:, None] ** -decay
    return [scales * torch.randn(400, columns, dtype=torch.float64, generator=source) for _ in range(number)]


def both(given: list[torch.Tensor], num_directions: int) -> tuple[GradientMoments, Sketch]:
    dense, sketch = GradientMoments(SHAPE), Sketch(400, num_directions)
    for index, jacobian in enumerate(given):
        dense.add(index, jacobian)
        sketch.add(index, jacobian)
    return dense, sketch


def test_below_its_rank_a_sketch_is_exact():
    dense, sketch = both(jacobians(6, 10, 0.5), 20)  # ranks of 30 and 30, of 84 that it may have
    exact, found = dense.eigendecomposition(), sketch.eigendecomposition()
    assert sketch.bound == 0
    torch.testing.assert_close(found.values, exact.values[:20], rtol=1e-10, atol=0)
    torch.testing.assert_close(found.vectors, exact.vectors[:20], rtol=0, atol=1e-7)
    ours, theirs = sketch.halves(), dense.halves()
    torch.testing.assert_close(ours.overlap, theirs.overlap[:20], rtol=1e-8, atol=0)
    torch.testing.assert_close(ours.held_out, theirs.held_out[:20], rtol=1e-8, atol=0)
    assert bool(found.standard_errors.isnan().all() and ours.held_out_stderr.isnan().all())


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.0, 2.0])
def test_above_its_rank_it_is_off_by_the_recorded_bound_at_most(decay):
    """Every mean square is too small, by at most the bound: along the eigenvectors and along any direction."""
    dense, sketch = both(jacobians(12, 40, decay), 5)
    exact, found = dense.eigendecomposition().values[:5], sketch.eigendecomposition()
    lacking = exact - found.values
    rounding = 1e-12 * float(exact[0])
    assert sketch.bound > 0 and float(lacking.min()) >= -rounding and float(lacking.max()) <= sketch.bound + rounding
    kept = sum(factor @ factor.T for factor in sketch.factors) / 12
    left_out = torch.linalg.eigvalsh(dense.covariance() - kept)
    assert float(left_out[0]) >= -rounding and float(left_out[-1]) <= sketch.bound + rounding
    if decay == 2.0:
        assert sketch.bound < 1e-3 * float(exact[0]), "a spectrum that falls leaves little out"
    if decay == 0.0:
        assert sketch.bound > 0.1 * float(exact[0]), "and a flat one much: the bound has to say so"


def test_sketches_merge_and_are_restored_from_their_state():
    given = jacobians(12, 40, 1.0)
    dense, straight = both(given, 5)
    parts = [Sketch(400, 5) for _ in range(3)]
    for index, jacobian in enumerate(given):
        parts[index % 3].add(index, jacobian)
    parts[1].merge(parts[2])
    parts[0].merge(parts[1])
    exact, merged = dense.eigendecomposition().values[:5], parts[0].eigendecomposition().values
    assert parts[0].counts.tolist() == [6, 6]
    assert bool(((exact - merged).abs() <= parts[0].bound + 1e-12).all())
    resumed = Sketch(400, 5)
    for index, jacobian in enumerate(given):
        resumed.add(index, jacobian)
        state, resumed = resumed.state(), Sketch(400, 5)
        resumed.restore(state)
    assert torch.equal(resumed.eigendecomposition().vectors, straight.eigendecomposition().vectors)
    assert resumed.bound == straight.bound
    with pytest.raises(ValueError, match=r"gradient of network 3 .* with NaN"):
        straight.add(3, torch.full((400, 1), math.nan))


def test_what_halves_do_not_know_never_seems_to_agree():
    sketch = Sketch(400, 20)
    for index, jacobian in enumerate(jacobians(2, 3, 0.5)):
        sketch.add(index, jacobian)
    overlap = sketch.halves().overlap
    assert float(overlap[19]) <= 3 / 20
    assert len(sketch.eigendecomposition().vectors) == 20
    alone = Sketch(400, 2)
    alone.add(0, jacobians(1, 3, 0.5)[0])
    assert bool(alone.halves().overlap.isnan().all())


@pytest.mark.parametrize("estimator", ["gradient", "secant", "mixed"])
def test_an_estimate_of_the_first_ones_is_that_of_all(estimator):
    every, first = (estimate(Network, 5, estimator=estimator, num_directions=count) for count in (None, 12))
    torch.testing.assert_close(first.eigenvalues, every.eigenvalues[:12], rtol=1e-5, atol=0)
    assert nt.subspace_overlap(first, every, 12) > 1 - 1e-5
    torch.testing.assert_close(first.split_half_overlap, every.split_half_overlap[:12], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(first.held_out, every.held_out[:12], rtol=1e-4, atol=0)
    assert (first.metadata["num_directions"], first.metadata["bound"]) == (12, 0.0)
    assert repr(first).startswith("12 of 64 NADs of 8 x 8 pixels")
    with pytest.raises(ValueError, match="the others are not known"):
        first.covariance()


def test_the_first_ones_are_resumed_and_spread_over_processes(tmp_path):
    whole = estimate(Network, 6, num_directions=4, average_output_layer=False)
    path = tmp_path / "c.npz"
    estimate(Network, 3, num_directions=4, average_output_layer=False, checkpoint=path)
    more = estimate(Network, 6, num_directions=4, average_output_layer=False, checkpoint=path)
    torch.testing.assert_close(more.eigenvalues, whole.eigenvalues, rtol=1e-6, atol=0)
    with pytest.raises(ValueError, match="belongs to another computation"):
        estimate(Network, 6, num_directions=5, average_output_layer=False, checkpoint=path)
    spread = estimate(Network, 6, num_directions=4, average_output_layer=False, num_jobs=2)
    torch.testing.assert_close(spread.eigenvalues, whole.eigenvalues, rtol=1e-6, atol=0)


def patches() -> nn.Module:
    """Sees the mean of all patches of 4 x 4 pixels: 16 of 256 directions, all alike."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 4, stride=4, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1)
    )


@pytest.mark.parametrize(("count", "settled"), [(40, 16), (16, 16), (12, 0)])
def test_of_the_first_ones_too_it_is_known_which_are_settled(count, settled):
    """Also where their last is the last of an eigenspace; not where it is in the middle of one."""
    nads = estimate(patches, 40, estimator="gradient", image_size=(16, 16), num_directions=count)
    assert nads.num_resolved == settled
    assert nads.rank == min(count, 16)
    table = nt.compare({"first": nads, "all": estimate(patches, 4, estimator="gradient", image_size=(16, 16))}, k=10)
    assert table["energy of first"].isna().all() and table["energy of all"].notna().all()


MEMORY = """
import resource, sys
import nadtools as nt, torch
from torch import nn
torch.set_num_threads(1)
def network():
    return nn.Sequential(nn.Conv2d(3, 8, 8, 8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 1))
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
given = {"in_channels": 3, "estimator": "gradient", "device": "cpu", "progress": False}
nt.estimate_nads(network, 2, image_size=(16, 16), num_directions=64, **given)
before = peak()
nads = nt.estimate_nads(network, 4, image_size=(64, 64), num_directions=64, **given)
print(peak() - before, nads.vectors.shape[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no module resource")
def test_an_estimate_of_large_images_takes_little_memory():
    """At 3 x 64 x 64 one dense matrix takes 1.2 GB, and ten blocks of them 12 GB."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    grown, count = map(int, done.stdout.split())
    assert count == 64 and grown < 200e6


def test_memory_of_the_first_ones_is_checked_as_well(monkeypatch):
    monkeypatch.setattr(nt.device, "available_memory", lambda device: 10**9)
    given = {"image_size": (1000, 1000), "estimator": "gradient"}
    with pytest.raises(MemoryError, match="ask for the first ones by num_directions"):
        estimate(Network, 2, **given)
    with pytest.raises(MemoryError, match="ask for fewer num_directions, or use a smaller image_size"):
        estimate(Network, 2, num_directions=64, **given)


# Inside a span.


def test_along_the_pixels_as_a_basis_secants_are_those_of_the_pixels():
    pixels = torch.eye(64).reshape(64, *SMALL)
    for estimator in ("secant", "gradient"):
        inside, ordinary = (estimate(Network, 4, estimator=estimator, basis=given) for given in (pixels, None))
        assert torch.equal(inside.eigenvalues, ordinary.eigenvalues)
        torch.testing.assert_close(inside.vectors, ordinary.vectors, rtol=0, atol=1e-6)


@pytest.mark.parametrize("estimator", ["secant", "gradient", "mixed"])
def test_inside_a_span_the_covariance_is_projected(estimator):
    basis = nt.fourier_basis(SMALL)[:10]
    point = "zero" if estimator == "secant" else "normal"  # the step of a secant changes with its direction elsewhere
    given = {"estimator": estimator, "evaluation_point": point, "scale": 1e-3}
    inside, ordinary = estimate(Network, 4, basis=basis, **given), estimate(Network, 4, **given)
    rows = basis.flatten(1).double()
    expected = torch.linalg.eigvalsh(rows @ ordinary.covariance() @ rows.T).flip(0)
    torch.testing.assert_close(inside.eigenvalues, expected, rtol=1e-2, atol=1e-4 * float(expected[0]))
    assert nt.subspace_overlap(inside, basis, 10) == pytest.approx(1, abs=1e-5)
    assert (inside.metadata["num_directions"], inside.metadata["span"]) == (10, 10)
    assert "inside the span of 10 given directions" in repr(inside)
    assert len(estimate(Network, 4, basis=basis, num_directions=3, **given)) == 3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"basis": torch.ones(2, *SMALL)}, ValueError, "miss orthonormality"),
        ({"basis": torch.eye(64)}, ValueError, r"got basis of shape \(64, 64\)"),
        ({"basis": 3}, TypeError, "got basis of type int"),
        ({"num_directions": 65}, ValueError, "num_directions=65"),
        ({"num_directions": 3, "symmetries": "square"}, ValueError, "leave them out"),
        ({"basis": torch.eye(64).reshape(64, *SMALL), "num_directions": 3, "until": (4, 0.9)}, ValueError, "until"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        estimate(Network, 2, **arguments)
