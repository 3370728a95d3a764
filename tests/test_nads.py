from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import nn

import nadtools as nt
from nadtools.output_layer import find_output_layer, output_weight_variance

SMALL = (8, 8)


class Network(nn.Module):
    """A small network whose output layer is easy to vary."""

    def __init__(self, output: nn.Module | None = None, outputs: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh())
        self.output = output or nn.Linear(12, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.body(x))


def estimate(architecture, num_networks=6, **arguments) -> nt.NADs:
    arguments = {"image_size": SMALL, "progress": False, "device": "cpu"} | arguments
    return nt.estimate_nads(architecture, num_networks, **arguments)


# The closed forms.


@pytest.mark.parametrize("estimator", ["secant", "gradient"])
def test_logistic_regression_is_exactly_isotropic_with_its_output_layer_averaged_out(estimator):
    nads = nt.estimate_nads("logreg", 2, estimator, device="cpu", progress=False)
    expected = torch.full((1024,), 1 / (3 * 1024), dtype=torch.float64)
    torch.testing.assert_close(nads.eigenvalues, expected, rtol=1e-5, atol=0)  # float32 secants of 100 / 200
    torch.testing.assert_close(nads.covariance(), torch.diag(expected), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("estimator", ["secant", "gradient"])
def test_logistic_regression_sampled_is_isotropic_within_its_sampling_error(estimator):
    number, dimension = 2000, 64
    nads = estimate("logreg", number, estimator=estimator, average_output_layer=False, symmetries="none")
    expected = 1 / (3 * dimension)
    covariance = nads.covariance()
    # Entries of w w^T: variance expected² off the diagonal, 4/5 of it on it (w is uniform).
    assert float((covariance - expected * torch.eye(dimension)).abs().max()) < 5 * expected / number**0.5
    trace = float(nads.eigenvalues.sum())
    assert trace == pytest.approx(1 / 3, rel=5 * math.sqrt(0.8 / (number * dimension)))
    # The eigenvalues fill the Marchenko-Pastur band of a white covariance, up to fluctuations at its edges.
    ratio = math.sqrt(dimension / number)
    assert float(nads.eigenvalues[0]) == pytest.approx(expected * (1 + ratio) ** 2, rel=0.06)
    assert float(nads.eigenvalues[-1]) == pytest.approx(expected * (1 - ratio) ** 2, rel=0.06)


@pytest.mark.parametrize("estimator", ["secant", "gradient"])
def test_averaging_the_output_layer_is_the_limit_of_sampling_it(estimator):
    """One body, many output layers: the sampled covariance tends to the averaged one."""
    body = _seeded(Network).body.requires_grad_(False)
    if estimator == "gradient":
        body[2] = nn.Identity()  # x0 is drawn for each network: a linear body has the same gradient everywhere

    def factory() -> nn.Module:
        network = Network()
        network.body = body
        return network

    exact = estimate(factory, 1, estimator=estimator, seed=5)
    sampled = estimate(factory, 3000, estimator=estimator, average_output_layer=False, seed=6)
    difference = (sampled.covariance() - exact.covariance()).norm() / exact.covariance().norm()
    # Relative error of a covariance of rank 12 from 3,000 samples: about sqrt(13 / 3000) = 0.066.
    assert float(difference) < 0.15
    assert exact.metadata["output_weight_variance"] == pytest.approx(1 / 36)


def test_an_estimate_agrees_with_the_dense_oracle():
    nads = estimate(Network, 3, scale=2.0, batch_size=7, average_output_layer=False)
    expected = torch.zeros(64, 64, dtype=torch.float64)
    for index in range(3):
        with nt.device.isolated_random_state(nt.device.derive_seed(0, index)):
            network = Network().eval().requires_grad_(False)
        steps = 2.0 * torch.eye(64).view(64, 1, *SMALL)
        secant = ((network(steps) - network(-steps)) / 4.0).double()
        expected += secant @ secant.T / 3
    torch.testing.assert_close(nads.covariance(), expected, atol=1e-6 * float(expected.norm()), rtol=0)


# Reproducibility.


def test_the_covariance_depends_on_the_seed_and_on_nothing_else():
    reference = nt.estimate_nads("lenet", 5, seed=3, device="cpu", progress=False)
    threads = torch.get_num_threads()
    try:
        for batch_size, number in ((64, 1), (333, threads), (4096, threads)):
            torch.set_num_threads(number)
            other = nt.estimate_nads("lenet", 5, seed=3, device="cpu", progress=False, batch_size=batch_size)
            difference = (other.covariance() - reference.covariance()).norm() / reference.covariance().norm()
            assert float(difference) < 1e-5
            assert _largest_projector_difference(reference, other) < 1e-3
            # Inside exactly equal pairs the symmetry-adapted basis makes even the vectors reproducible.
            separated = _separated(reference.eigenvalues)
            torch.testing.assert_close(other.vectors[separated], reference.vectors[separated], atol=1e-3, rtol=0)
    finally:
        torch.set_num_threads(threads)
    assert not torch.equal(nt.estimate_nads("lenet", 5, seed=4, progress=False).vectors, reference.vectors)


def _separated(values: torch.Tensor, gap: float = 0.01) -> torch.Tensor:
    """Which eigenvalues, counting exactly equal ones as one, are more than ``gap`` away from all others."""
    distance = (values[:, None] - values[None, :]).abs() / values[0]
    relative = distance * values[0] / torch.maximum(values[:, None], values[None, :])
    relative[distance < 1e-12] = math.inf
    return relative.amin(1) > gap


def _largest_projector_difference(a: nt.NADs, b: nt.NADs) -> float:
    """Over groups of eigenvalues that are separated from the rest by more than 1 %."""
    values = a.eigenvalues
    cuts = [0, *(i + 1 for i in range(len(values) - 1) if float(values[i + 1]) < 0.99 * float(values[i])), len(values)]
    worst = 0.0
    for start, stop in itertools.pairwise(cuts):
        first, second = (n.vectors[start:stop].flatten(1).double() for n in (a, b))
        worst = max(worst, float((first.T @ first - second.T @ second).norm()))
    return worst


def test_more_networks_continue_fewer():
    """The network with index i is the same in every run: the first three are a prefix of the first six."""
    three, six = estimate(Network, 3), estimate(Network, 6)
    seen = []

    def record() -> nn.Module:
        network = Network()
        seen.append(network.output.weight.detach().clone())
        return network

    torch.testing.assert_close(estimate(record, 3).covariance(), three.covariance())
    last = six.covariance() * 6 - three.covariance() * 3
    assert float(torch.linalg.eigvalsh(last)[0]) > -1e-6 * float(last.norm())  # a sum of outer products


# The published NADs of LeNet.


@pytest.mark.parametrize("seed", range(5))
def test_twenty_networks_meet_the_published_nads_of_lenet(published_lenet, seed):
    nads = nt.estimate_nads("lenet", num_networks=20, seed=seed, progress=False)
    assert nt.captured_energy(nads.vectors, published_lenet, 10) >= 0.94
    assert nt.captured_energy(nads.vectors, published_lenet, 50) >= 0.955
    assert nt.subspace_overlap(nads.vectors, published_lenet.vectors, 50) >= 0.86


def test_the_exact_gradient_does_not_meet_them(published_lenet):
    nads = nt.estimate_nads("lenet", num_networks=20, estimator="gradient", progress=False)
    assert nt.subspace_overlap(nads.vectors, published_lenet.vectors, 50) < 0.25  # chance is 0.05


# The result and its file.


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
    with pytest.raises(ValueError, match=r"expected \(8, 8\)"):
        nads.alignment(torch.ones(4, 4))


def test_save_and_load(tmp_path):
    nads = estimate(Network, 3)
    loaded = nt.NADs.load(nads.save(tmp_path / "nads.npz"))
    for name in ("vectors", "eigenvalues", "eigenvalue_stderr"):
        assert torch.equal(getattr(loaded, name), getattr(nads, name))
    assert loaded.metadata == nads.metadata
    content = (tmp_path / "nads.npz").read_bytes()
    (tmp_path / "nads.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="damaged"):
        nt.NADs.load(tmp_path / "nads.npz")
    nt.storage.write_arrays(tmp_path / "other.npz", {"a": nads.eigenvalues.numpy()}, {})
    with pytest.raises(ValueError, match="does not hold NADs"):
        nt.NADs.load(tmp_path / "other.npz")


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
        nt.NADs(basis[:3], torch.ones(3), torch.ones(3))


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


# The output layer.


def test_the_output_layer_is_found_through_reshaping_and_only_where_it_is_last():
    class Squeezed(Network):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).squeeze(-1)

    class Scaled(Network):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(x)

    x = torch.randn(5, 1, *SMALL, generator=torch.Generator().manual_seed(0))
    for kind in (Network, Squeezed):
        network = _seeded(kind)
        cut = find_output_layer(network, (1, *SMALL))
        assert cut is not None and cut.layer is network.output
        torch.testing.assert_close(cut.features(x), network.body(x))
    assert find_output_layer(_seeded(Scaled), (1, *SMALL)) is None
    assert find_output_layer(_seeded(lambda: Network(nn.Sequential(nn.Linear(12, 1), nn.Tanh()))), (1, *SMALL)) is None


def _seeded(factory):
    with nt.device.isolated_random_state(0):
        return factory()


def test_the_variance_is_that_of_the_layers_initialisation():
    def variance(factory) -> float | None:
        def draw(index: int) -> nn.Module:
            with nt.device.isolated_random_state(nt.device.derive_seed(0, index)):
                return factory()

        cut = find_output_layer(draw(0), (1, *SMALL))
        assert cut is not None
        return output_weight_variance(draw, cut)

    def normal() -> nn.Module:
        network = Network()
        nn.init.normal_(network.output.weight, std=0.7)
        return network

    def shifted() -> nn.Module:
        network = Network()
        nn.init.normal_(network.output.weight, mean=0.3, std=0.7)
        return network

    def zero() -> nn.Module:
        network = Network()
        nn.init.zeros_(network.output.weight)
        return network

    assert variance(Network) == 1 / 36
    measured = variance(normal)
    assert measured is not None and measured == pytest.approx(0.49, rel=5 * math.sqrt(2 / 768))
    assert variance(shifted) is None and variance(zero) is None
    with pytest.warns(UserWarning, match="do not have mean zero"):
        estimate(shifted)


def test_without_a_final_linear_layer_the_output_is_sampled_and_a_warning_says_so():
    def factory() -> nn.Module:
        return nn.Sequential(nn.Conv2d(1, 1, 8), nn.Flatten(), nn.Tanh())

    with pytest.warns(UserWarning, match="does not end in a linear layer"):
        nads = estimate(factory)
    assert nads.metadata["output_weight_variance"] is None


# Bad input.


class Random(Network):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + torch.rand(1, generator=GENERATOR)


GENERATOR = torch.Generator().manual_seed(0)


def _constant() -> nn.Module:
    network = Network(nn.Sequential(nn.Linear(12, 1), nn.Tanh()))
    nn.init.zeros_(network.output[0].weight)
    return network


def _nan() -> nn.Module:
    network = Network()
    nn.init.constant_(network.output.bias, math.nan)
    return network


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"architecture": "alexnet"}, ValueError, "unknown architecture 'alexnet'; known are"),
        ({"architecture": 5}, TypeError, "type int; expected a name or a callable"),
        ({"architecture": nn.Linear(2, 1)}, TypeError, "expected a name or a callable"),
        ({"architecture": lambda: 3}, TypeError, "returned int; expected a torch.nn.Module"),
        ({"architecture": lambda: Network(outputs=4)}, ValueError, r"\(3, 4\) for 3 images; expected one output"),
        ({"architecture": lambda: nn.Linear(5, 1)}, ValueError, "does not accept images"),
        ({"architecture": Random}, ValueError, "different values for the same input"),
        ({"architecture": _nan}, ValueError, "NaN or infinite values"),
        ({"architecture": _constant, "average_output_layer": False}, ValueError, "constant at initialisation"),
        ({"architecture": Network, "num_networks": 0}, ValueError, "num_networks=0"),
        ({"architecture": Network, "num_networks": 2.5}, TypeError, "num_networks=2.5"),
        ({"architecture": Network, "estimator": "hessian"}, ValueError, "unknown estimator 'hessian'; known are"),
        ({"architecture": Network, "scale": 0.0}, ValueError, "scale=0.0"),
        ({"architecture": Network, "symmetries": "all"}, ValueError, "unknown symmetry group"),
        ({"architecture": Network, "image_size": (4, 16), "symmetries": "square"}, ValueError, "not square"),
        ({"architecture": Network, "device": "cuda:99"}, ValueError, "CUDA devices here"),
        ({"architecture": Network, "seed": -1}, ValueError, "seed=-1"),
        ({"architecture": Network, "image_size": (0, 8)}, ValueError, "positive sizes"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        estimate(**arguments)
