from __future__ import annotations

import functools
import itertools
import math
import os
import warnings
from pathlib import Path

import pytest
import torch
from small_networks import SMALL, Network, estimate, estimate_seed, network_seed, seeded
from torch import nn

import nadtools as nt
from nadtools import estimation
from nadtools.theory import deep_linear

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
    body = seeded(Network).body.requires_grad_(False)
    if estimator == "gradient":
        body[2] = nn.Identity()  # x0 is drawn for each network: a linear body has the same gradient everywhere

    def factory() -> nn.Module:
        network = Network()
        network.body = body
        return network

    point = "zero" if estimator == "secant" else "normal"
    exact = estimate(factory, 1, estimator=estimator, seed=5, evaluation_point=point)
    sampled = estimate(factory, 1000, estimator=estimator, average_output_layer=False, seed=6, evaluation_point=point)
    difference = (sampled.covariance() - exact.covariance()).norm() / exact.covariance().norm()
    # Relative error of a covariance of rank 12 from 1,000 samples: about sqrt(13 / 1000) = 0.114.
    assert float(difference) < 0.25
    assert exact.metadata["output_weight_variance"] == pytest.approx(1 / 36)


def test_an_estimate_agrees_with_the_dense_oracle():
    nads = estimate(Network, 3, scale=2.0, batch_size=7, average_output_layer=False, evaluation_point="zero")
    expected = torch.zeros(64, 64, dtype=torch.float64)
    for index in range(3):
        with nt.device.isolated_random_state(network_seed(0, index)):
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


# Evaluation points and mixed derivatives.


def test_an_evaluation_point_is_where_the_derivatives_are_taken():
    point = nt.random_direction((1, *SMALL), seed=5) * 3
    nads = estimate(Network, 2, estimator="gradient", evaluation_point=point, average_output_layer=False)
    expected = torch.zeros(64, 64, dtype=torch.float64)
    for index in range(2):
        with nt.device.isolated_random_state(network_seed(0, index)):
            network = Network().eval()
        gradient = torch.autograd.functional.jacobian(network, point[None]).flatten().double()
        expected += torch.outer(gradient, gradient) / 2
    torch.testing.assert_close(nads.covariance(), expected, atol=1e-6 * float(expected.norm()), rtol=0)
    drawn = estimate(
        Network, 2, estimator="gradient", evaluation_point=lambda source: point, average_output_layer=False
    )
    torch.testing.assert_close(drawn.covariance(), expected, atol=1e-6 * float(expected.norm()), rtol=0)
    assert drawn.metadata["evaluation_point"].endswith("<lambda>")


def test_a_point_of_your_own_turns_the_symmetries_off():
    point = torch.ones(1, 32, 32)
    assert nt.estimate_nads("mlp", 1, evaluation_point=point, progress=False).metadata["symmetries"] == "none"
    assert nt.estimate_nads("mlp", 1, evaluation_point="normal", progress=False).metadata["symmetries"] == "square"


@pytest.mark.parametrize("average", [False, True])
def test_mixed_derivatives_agree_with_the_dense_oracle(average):
    """The mean over probes tends to the sum over all parameters of the squared second derivatives."""
    nads = estimate(Network, 1, estimator="mixed", average_output_layer=average, num_probes=4000, seed=2)
    with nt.device.isolated_random_state(network_seed(2, 0)):
        network = Network().double()
    generator = nt.device.generator(torch.device("cpu"), estimate_seed(2), 0, estimation._POINT)
    point = torch.randn(1, *SMALL, generator=generator).double()
    parameters = dict(network.named_parameters())

    def gradient(values: dict[str, torch.Tensor]) -> torch.Tensor:
        output = functools.partial(torch.func.functional_call, network, values)
        return torch.func.grad(lambda x: output(x[None]).sum())(point).flatten()

    blocks = torch.func.jacrev(gradient)(parameters)  # (64, *shape) for each parameter
    dense = torch.cat([block.reshape(64, -1) for block in blocks.values()], dim=1).detach()
    expected = dense @ dense.T
    # Relative error of a covariance of effective rank r from 4,000 probes: about sqrt(r / 4000), r < 64.
    error = float((nads.covariance() - expected).norm() / expected.norm())
    assert error < 0.13
    # With its exact block the output layer adds no noise, and the trace, which sums over pixels, is close.
    assert float(nads.covariance().trace()) == pytest.approx(float(expected.trace()), rel=0.1)


@pytest.mark.parametrize(("size", "stride", "seed"), [(8, 4, 0), (12, 3, 1), (8, 2, 2)])
@pytest.mark.parametrize("estimator", ["secant", "gradient", "mixed"])
def test_estimators_meet_the_closed_forms_of_the_deep_linear_model(estimator, size, stride, seed):
    """Equations (4) and (5) with the constants of the book, and not with those of the paper."""
    prefilter, sigma_theta, sigma_phi, number = torch.linspace(1, 0.5, size), 0.7, 1.3, 1000

    def model() -> nn.Module:
        return deep_linear.DeepLinearModel(prefilter, stride, sigma_theta, sigma_phi)

    nads = estimate(model, number, estimator=estimator, seed=seed, image_size=(1, size), average_output_layer=False)
    closed_form = deep_linear.mixed_second_moment if estimator == "mixed" else deep_linear.gradient_covariance
    arguments = (prefilter, stride, sigma_theta, sigma_phi)
    # An entry g² has a relative variance of 3 * 3 - 1 = 8 (a product of two normals). Those of different bins are
    # independent, those of one bin the same up to a factor.
    ratio = float((nads.covariance().diagonal() / closed_form(*arguments)).mean())
    assert ratio == pytest.approx(1, abs=5 * (8 * stride / size / number) ** 0.5)
    printed = float((nads.covariance().diagonal() / closed_form(*arguments, as_printed=True)).mean())
    assert printed < 0.85


# What the paper calls one architecture may be many: isotropy of fully connected networks.


@pytest.mark.parametrize("estimator", ["secant", "gradient"])
def test_the_mlp_is_isotropic(estimator):
    """Its first layer has independent, equally distributed, sign-symmetric weights: C = c I at the origin."""
    point = "zero"
    nads = estimate("mlp", 400, estimator=estimator, evaluation_point=point, symmetries="none")
    covariance = nads.covariance()
    c = float(covariance.trace()) / 64
    # 400 networks of 20 features each, of which relu lets about half pass: at least 4,000 directions, not independent.
    off_diagonal = covariance - torch.diag(covariance.diagonal())
    assert float(off_diagonal.abs().max()) < 0.12 * c
    assert float((covariance.diagonal() / c - 1).abs().max()) < 0.25


# Merging, resuming, spreading.


def test_the_halves_are_compared():
    nads = estimate(Network, 6, average_output_layer=False, evaluation_point="zero")
    halves = []
    for parity in (0, 1):
        moments = nt.moments.GradientMoments((1, *SMALL), num_blocks=10)
        for index in range(parity, 6, 2):
            with nt.device.isolated_random_state(network_seed(0, index)):
                network = Network().eval().requires_grad_(False)
            moments.add(index, nt.moments.secants(network, torch.zeros(1, *SMALL)))
        halves.append((moments.eigendecomposition().vectors, moments.covariance()))
    (first, odd), (second, even) = halves
    for k in (1, 2, 3):
        assert float(nads.split_half_overlap[k - 1]) == pytest.approx(nt.subspace_overlap(first, second, k), abs=1e-4)
    assert float(nads.split_half_overlap[-1]) == pytest.approx(1, abs=1e-6)
    there, back = ((u @ c * u).sum(1) for u, c in ((first, even), (second, odd)))
    # The largest only: inside the null space of a half the vectors are rounding's.
    torch.testing.assert_close(nads.held_out[:20], ((there + back) / 2)[:20], rtol=1e-4, atol=0)
    alone = estimate(Network, 1)
    for series in (alone.split_half_overlap, alone.held_out, alone.held_out_stderr):
        assert bool(series.isnan().all())
    assert alone.num_resolved is None and "not known" in repr(alone)


def patches() -> nn.Module:
    """Sees the mean of all patches of 4 x 4 pixels: 16 of 64 directions, all alike."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 4, stride=4, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1)
    )


def test_what_is_noise_is_not_ranked():
    """Sixteen directions are told from the rest, but not from each other; of a network without a taste, none."""
    nads = estimate(patches, 40, symmetries="none")
    assert nads.eigenspaces == (range(16), range(16, 64)) and nads.num_resolved == 16
    assert "the first 16 are settled, in eigenspaces of 16" in repr(nads)
    # Of 40 networks with 8 features each: eigenvalues spread as Marchenko and Pastur say, by (1 ± sqrt(16 / 320))².
    assert float(nads.eigenvalues[0] / nads.eigenvalues[15]) > 1.5
    deviations = (nads.held_out[:16] - nads.held_out[:16].mean()) / nads.held_out_stderr[:16]
    assert float(deviations.abs().max()) < 4  # of 16, with the few degrees of freedom of ten blocks
    flat = estimate(
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 1)), 200, symmetries="none", average_output_layer=False
    )
    assert flat.num_resolved == 0 and "no eigenspace is settled" in repr(flat)


def test_until_stops_at_the_target_and_warns_where_it_is_not_reached():
    nads = nt.estimate_nads("lenet", 64, until=(10, 0.85), device="cpu", progress=False)
    reached = nads.metadata["num_networks"]
    assert reached in (4, 6, 8, 12, 16, 24, 32, 48) and float(nads.split_half_overlap[9]) >= 0.85
    fixed = nt.estimate_nads("lenet", reached, device="cpu", progress=False)
    torch.testing.assert_close(fixed.eigenvalues, nads.eigenvalues, rtol=1e-4, atol=1e-12)
    with pytest.warns(UserWarning, match="less than the 0.99 asked for"):
        estimate(Network, 5, until=(10, 0.99))
    assert list(estimation._rounds(30)) == [4, 6, 8, 12, 16, 24, 30] and list(estimation._rounds(3)) == [3]


@pytest.mark.parametrize("num_jobs", [2, -1])
def test_processes_give_the_same_result(num_jobs):
    one, several = estimate(Network, 7, num_jobs=1), estimate(Network, 7, num_jobs=num_jobs)
    torch.testing.assert_close(several.covariance(), one.covariance(), rtol=1e-5, atol=1e-12)
    torch.testing.assert_close(several.eigenvalue_stderr[:5], one.eigenvalue_stderr[:5], rtol=1e-3, atol=1e-12)


class Witness(Network):
    """Leaves a file with the number of the process that draws it."""

    def __init__(self) -> None:
        super().__init__()
        Path(os.environ["NADTOOLS_TEST_WITNESSES"], str(os.getpid())).touch()


def test_a_dask_cluster_does_the_work_with_the_same_result(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    import joblib

    monkeypatch.setenv("NADTOOLS_TEST_WITNESSES", str(tmp_path))  # the workers inherit it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dask's own remarks on ports and clean-up
        with (
            distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster),
            joblib.parallel_config("dask"),
        ):
            spread = estimate(Witness, 7)
    torch.testing.assert_close(spread.covariance(), estimate(Network, 7).covariance(), rtol=1e-5, atol=1e-12)
    assert len({int(path.name) for path in tmp_path.iterdir()} - {os.getpid()}) == 2


def test_a_full_disk_costs_the_checkpoint_and_not_the_result(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(UserWarning, match=r"c.npz could not be written .*; it takes [\d,]+ bytes\): make room"):
        kept = estimate(Network, 4, checkpoint=tmp_path / "c.npz", average_output_layer=False)
    monkeypatch.undo()
    assert torch.equal(kept.eigenvalues, estimate(Network, 4, average_output_layer=False).eigenvalues)

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", full)
    draws = iter([Network, Network, Network, interrupted])
    with pytest.warns(UserWarning, match="cannot be resumed"), pytest.raises(KeyboardInterrupt) as caught:
        estimate(lambda: next(draws)(), 8, checkpoint=tmp_path / "c.npz", average_output_layer=False)
    assert not hasattr(caught.value, "__notes__"), "nothing is kept, so nothing may be promised"


def test_a_checkpoint_is_taken_up_and_one_of_another_computation_is_refused(tmp_path):
    path, calls = tmp_path / "c.npz", []

    def counted() -> nn.Module:
        calls.append(1)
        return Network()

    first = estimate(counted, 4, checkpoint=path, average_output_layer=False)
    before = len(calls)
    more = estimate(counted, 6, checkpoint=path, average_output_layer=False)
    assert len(calls) - before == 2 + 2  # the first two are looked at again, and two are new
    torch.testing.assert_close(more.covariance(), estimate(Network, 6, average_output_layer=False).covariance())
    assert first.metadata["num_networks"] == 4
    for changed in ({"seed": 1}, {"scale": 5.0}, {"estimator": "gradient"}, {"symmetries": "square"}):
        with pytest.raises(ValueError, match="belongs to another computation"):
            estimate(counted, 6, checkpoint=path, **({"average_output_layer": False} | changed))


def test_ctrl_c_loses_nothing_that_is_finished(tmp_path):
    path, calls = tmp_path / "c.npz", []

    def interrupted() -> nn.Module:
        calls.append(1)
        if len(calls) == 6:  # the probing calls come first
            raise KeyboardInterrupt
        return Network()

    with pytest.raises(KeyboardInterrupt) as caught:
        estimate(interrupted, 8, checkpoint=path, average_output_layer=False)
    assert "3 networks are kept in" in caught.value.__notes__[0]
    resumed = estimate(interrupted, 8, checkpoint=path, average_output_layer=False)
    torch.testing.assert_close(resumed.covariance(), estimate(Network, 8, average_output_layer=False).covariance())


# Symmetries of networks that nobody has proven.


class Lopsided(nn.Module):
    """Looks at the left half of the image only."""

    def __init__(self) -> None:
        super().__init__()
        self.output = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(x[..., :4].flatten(1))


def test_a_named_group_that_the_networks_contradict_is_reported():
    with pytest.warns(UserWarning, match="contradict the symmetry 'left-right'"):
        estimate(Lopsided, 12, symmetries="reflections")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for group in ("transpose", "reflections", "square"):
            for seed in range(5):
                estimate(Network, 12, symmetries=group, seed=seed)


# Networks of other shapes and habits.


@pytest.mark.parametrize("estimator", ["secant", "gradient", "mixed"])
def test_in_place_operations_batch_norm_and_dropout_are_handled(estimator):
    class Awkward(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.relu = nn.ReLU(inplace=True)
            self.body = nn.Sequential(
                nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Flatten()
            )
            self.output = nn.Linear(256, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.output(self.body(self.relu(x)))

    def in_training_mode() -> nn.Module:
        return Awkward().train()

    nads = estimate(in_training_mode, 3, estimator=estimator)
    again = estimate(in_training_mode, 3, estimator=estimator, batch_size=5)
    torch.testing.assert_close(nads.covariance(), again.covariance(), rtol=1e-3, atol=1e-6 * float(nads.eigenvalues[0]))


def test_a_callable_may_calibrate_batch_normalisation_on_data():
    """On images ten times as bright a linear network answers the same brightness with a tenth."""
    images = torch.randn(64, 1, 8, 8, generator=torch.Generator().manual_seed(0))

    def calibrated_on(data: torch.Tensor) -> nt.NADs:
        def factory() -> nn.Module:
            network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, eps=1e-12), nn.Flatten(), nn.Linear(144, 1))
            torch.optim.swa_utils.update_bn([data], network)
            return network

        return nt.estimate_nads(factory, 4, "gradient", image_size=(8, 8), device="cpu", progress=False)

    once, tenfold = calibrated_on(images), calibrated_on(10 * images)
    torch.testing.assert_close(tenfold.covariance(), once.covariance() / 100, rtol=1e-4, atol=1e-9)


def test_a_network_of_torchvision_in_colour():
    import torchvision

    def network() -> nn.Module:
        # It ends in a ReLU, so about half of the networks are constant.
        return torchvision.models.squeezenet1_1(num_classes=1)

    with pytest.warns(UserWarning, match="does not end in a linear layer"):
        nads = nt.estimate_nads(
            network, 4, "gradient", in_channels=3, image_size=(24, 20), device="cpu", progress=False
        )
    assert nads.vectors.shape == (1440, 3, 24, 20)


# Bad input.


class Random(Network):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + torch.rand(1, generator=GENERATOR)


GENERATOR = torch.Generator().manual_seed(0)
SINGLE = seeded(Network)


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
        ({"architecture": "alexnet"}, ValueError, "unknown architecture name 'alexnet'; known are"),
        ({"architecture": lambda: nn.Flatten(0)}, ValueError, r"\(192,\) for 3 images; expected \(3, outputs\)"),
        ({"architecture": lambda: nn.Linear(5, 1)}, ValueError, "does not accept images"),
        ({"architecture": Random}, ValueError, "different values for the same input"),
        ({"architecture": _nan}, ValueError, "NaN or infinite values"),
        ({"architecture": _constant, "average_output_layer": False}, ValueError, "constant at initialisation"),
        ({"architecture": Network, "image_size": (4, 16), "symmetries": "square"}, ValueError, "not square"),
        ({"architecture": functools.partial(seeded, Network)}, ValueError, "two networks with the same weights"),
        ({"architecture": lambda: SINGLE}, ValueError, "the same network twice"),
        ({"architecture": Network, "width": 2.0}, TypeError, "width for a callable"),
        ({"architecture": "lenet", "num_classes": 2}, TypeError, "num_classes=2, which estimate_nads chooses"),
        ({"architecture": "mlp", "pooling": False}, ValueError, "no pooling layers"),
        (
            {"architecture": Network, "evaluation_point": torch.zeros(8, 8)},
            ValueError,
            r"point of .*\(1, 8, 8\)",
        ),
        (
            {"architecture": Network, "evaluation_point": lambda _: torch.zeros(3)},
            ValueError,
            "evaluation_point of shape",
        ),
        ({"architecture": Network, "checkpoint": "/nonexistent/folder/c.npz"}, ValueError, "a folder that exists"),
        ({"architecture": Network, "checkpoint": "c.npy"}, ValueError, "ending in '.npz'"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        estimate(**arguments)
