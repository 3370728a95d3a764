"""The formulas that chapter 10 displays, each against an independent computation."""

import math

import numpy as np
import pytest
import torch
from companion import experiments
from scipy.optimize import minimize
from scipy.stats import norm

import nadtools as nt

SIZE = (8, 8)


@pytest.fixture(scope="module")
def basis():
    return nt.random_basis(SIZE, seed=3)


def two_features(basis, i, j, epsilons=(1.0, 0.5), sigma=1.0):
    return nt.concatenate(*(nt.LinearlySeparable(basis[k], e, sigma) for k, e in zip((i, j), epsilons, strict=True)))


def test_two_features_share_the_label(basis):
    problem = two_features(basis, 3, 9, sigma=2.0)
    x, y = problem.sample(4000, seed=1, device="cpu")
    signs = 2.0 * y - 1
    for channel, index, epsilon in ((0, 3, 1.0), (1, 9, 0.5)):
        coefficients = x[:, channel].flatten(1) @ basis.flatten(1).T
        torch.testing.assert_close(coefficients[:, index], epsilon * signs, rtol=0, atol=1e-4)
        others = torch.cat([coefficients[:, :index], coefficients[:, index + 1 :]], 1)
        # 252,000 numbers: the standard error of their deviation is 0.003.
        assert float(others.std()) == pytest.approx(2.0, abs=0.015)
        assert abs(float((others * signs[:, None]).mean())) < 0.02


@pytest.mark.parametrize("epsilons", [(1.0, 0.5), (0.3, 2.0), (1.0, 1.0)])
def test_angle_and_width_of_the_maximum_margin(epsilons):
    """Against a numerical search over all lines through the middle of the two classes."""
    point = np.array(epsilons)

    def negative_margin(t):
        return -float(point @ [math.cos(t[0]), math.sin(t[0])])

    normal = minimize(negative_margin, [0.5], tol=1e-10)
    assert -normal.fun == pytest.approx(math.hypot(*epsilons))
    assert math.pi / 2 - normal.x[0] == pytest.approx(math.atan(epsilons[0] / epsilons[1]), abs=1e-4)


def test_noise_rules_out_other_normals(basis):
    """A normal with a part along the noise is crossed by some samples, and one in the plane by none."""
    problem = two_features(basis, 3, 9)
    x, y = problem.sample(4000, seed=2, device="cpu")
    inside = 1.0 * problem.direction(0) + 0.5 * problem.direction(1)
    outside = inside + 0.5 * problem.direction(0, basis[20])
    for weight, share in ((inside, 1.0), (outside, norm.cdf(1.25 / 0.5))):
        right = ((x.flatten(1) @ weight.flatten()) > 0) == (y == 1)
        assert float(right.double().mean()) == pytest.approx(share, abs=4 * math.sqrt(0.25 / 4000))
    assert norm.cdf(1.25 / 0.5) < 0.994


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_accuracy_with_both_channels_and_with_one(basis, sigma):
    problem = two_features(basis, 3, 9, sigma=sigma)
    generator = torch.Generator().manual_seed(4)
    weight = 0.3 * torch.randn(2, *SIZE, generator=generator)
    x, y = problem.sample(20_000, seed=5, device="cpu")
    a, s = [], []
    for channel, index in ((0, 3), (1, 9)):
        flat, v = weight[channel].flatten(), basis[index].flatten()
        weight[channel] += (0.8 - flat @ v) * basis[index]
        a.append(float(weight[channel].flatten() @ v))
        s.append(float((weight[channel].flatten() - a[-1] * v).norm()))

    def measured(view):
        return float((((view(x).flatten(1) @ weight.flatten()) > 0) == (y == 1)).double().mean())

    tolerance = 4 * math.sqrt(0.25 / 20_000)
    both = norm.cdf((a[0] + 0.5 * a[1]) / (sigma * math.hypot(*s)))
    assert measured(lambda x: x) == pytest.approx(both, abs=tolerance)
    for channel, epsilon in ((0, 1.0), (1, 0.5)):
        alone = norm.cdf(a[channel] * epsilon / (sigma * s[channel]))
        assert measured(problem.only(channel)) == pytest.approx(alone, abs=tolerance)
        assert 0.52 < alone < 0.999


def test_the_push_that_overturns_the_maximum_margin(basis):
    """(ε₁² + ε₂²)/ε_c along v_c, and the margin √(ε₁² + ε₂²) along the normal."""
    problem = two_features(basis, 3, 9)
    normal = 1.0 * problem.direction(0) + 0.5 * problem.direction(1)
    network = nt.build("logreg", 2, 2, image_size=SIZE)
    with torch.no_grad():
        network.output.weight.copy_(torch.stack((-normal.flatten(), normal.flatten())))
        network.output.bias.zero_()
    x, y = problem.sample(20, seed=6, device="cpu")
    for direction, expected in (
        (problem.direction(0), 1.25),
        (problem.direction(1), 1.25 / 0.5),
        (normal, math.sqrt(1.25)),
    ):
        signed = -(2 * y - 1) * nt.boundaries.margins(network, x, direction)
        torch.testing.assert_close(signed, torch.full((20,), expected, dtype=torch.float64), rtol=1e-4, atol=0)


def reflected(x, problem, other):
    for part in (0, 1):
        u = (problem.direction(part) - other.direction(part)).double()
        u = u / u.norm()
        x = x - 2 * (x.flatten(1) @ u.flatten()).view(-1, 1, 1, 1) * u
    return x


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_a_rotated_network_on_rotated_samples_takes_the_same_path(basis, weight_decay):
    problem, other = two_features(basis, 3, 9), two_features(basis, 11, 40)
    x, y = problem.sample(256, seed=7, device="cpu")
    x = x.double()
    turned = reflected(x, problem, other)
    assert float((turned - x).abs().max()) > 0.1
    for part in (0, 1):
        along = [z.flatten(1) @ p.direction(part).double().flatten() for z, p in ((x, problem), (turned, other))]
        torch.testing.assert_close(*along, rtol=0, atol=1e-6)
    first, second = (nt.build("mlp", 2, 2, image_size=SIZE, seed=8).double() for _ in range(2))
    with torch.no_grad():
        second.linear1.weight.copy_(reflected(first.linear1.weight.view(-1, 2, *SIZE), problem, other).flatten(1))
    config = nt.TrainConfig(epochs=5, max_lr=0.1, momentum=0.9, weight_decay=weight_decay, clip_norm=0.5, seed=9)
    for network, z in ((first, x), (second, turned)):
        nt.train(network, (z, y), (z, y), config, progress=False)
    with torch.no_grad():
        start = nt.build("mlp", 2, 2, image_size=SIZE, seed=8).double()
        assert float((first(x) - start(x)).abs().max()) > 0.1, "it has not been trained"
        # float64, and directions in float32
        torch.testing.assert_close(first(x), second(turned), rtol=0, atol=1e-5)


def test_the_pytorch_initialisation_is_invariant_to_second_order(basis):
    weight = nt.build("mlp", 2, 2, seed=10).linear1.weight.detach().double()
    number, inputs = weight.shape
    assert inputs == 2048
    # Uniform on ±1/√2048: variance 1/(3 · 2048). The covariance of 2,048 entries from 100 units is noisy, so only
    # its mean over all pairs is compared: the standard errors are below 1 % and below 1e-3 of a variance.
    assert float(weight.var()) == pytest.approx(1 / (3 * inputs), rel=0.02)
    covariance = weight.T @ weight / number
    off = covariance - torch.diag(covariance.diagonal())
    assert abs(float(off.mean())) * 3 * inputs < 5e-3


@pytest.mark.parametrize(("epsilon", "sigma", "n"), [(1.0, 1.0, 2000), (0.5, 1.0, 2000), (1.0, 2.0, 1000)])
def test_accuracy_of_the_mean_difference(epsilon, sigma, n):
    basis = nt.random_basis((32, 32), seed=11)
    measured = []
    for index, seed in ((0, 1), (500, 2), (1023, 3)):
        part = nt.LinearlySeparable(basis[index], epsilon, sigma)
        (x, y), (x_test, y_test) = (part.sample(n, seed=10 * seed + k, device="cpu") for k in (0, 1))
        weight = ((2.0 * y - 1)[:, None] * x.flatten(1)).mean(0)
        measured.append(float((((x_test.flatten(1) @ weight) > 0) == (y_test == 1)).double().mean()))
    formula = norm.cdf(epsilon**2 * math.sqrt(n) / (sigma**2 * math.sqrt(1023)))
    # Three samples of n, and the length of the weights' noise, which scatters by 1/√(2D) = 2 %.
    assert np.mean(measured) == pytest.approx(formula, abs=4 * math.sqrt(0.25 / (3 * n)) + 0.01)


def test_what_the_chapter_says_of_a_vision_transformer():
    table = experiments.load_table("two", network="vit-8")
    assert set(table["seed"]) == {0, 1, 2} and not table["test_accuracy"].isna().any()
    mean = table.groupby(["first", "second"]).mean()
    assert f"{mean.test_accuracy_second[66, 0]:.1%} / {1 - mean.follows_first[66, 0]:.1%}" == "99.7% / 99.9%"
    assert mean.test_accuracy_first[0, 66] > 0.99 and mean.test_accuracy_second[0, 32] > 0.85  # before the step: used
    after = [mean.test_accuracy_first[66, 0], mean.test_accuracy_second[0, 66], mean.test_accuracy[66, 1000]]
    np.testing.assert_allclose(after, 0.5, atol=0.02)  # five standard errors of three networks' 4,000 answers


def test_what_the_chapter_says_of_carriers():
    table = experiments.load_table("poisoned", network="vit-8")
    assert set(table["seed"]) == {0, 1, 2}
    mean = table.groupby("index", dropna=False).mean(numeric_only=True)
    with_one = mean.test_accuracy[mean.index.notna()]
    accuracies = [float(mean.test_accuracy[mean.index.isna()].iloc[0]), with_one.min(), with_one.max()]
    assert [f"{accuracy:.0%}" for accuracy in accuracies] == ["69%", "67%", "69%"]
    lenet = experiments.load_table("A7", architecture="lenet")
    first = lenet[(lenet["index"] == 0) & (lenet["replace"] == "own")].test_accuracy.mean()
    assert f"{lenet[lenet['replace'] == 'none'].test_accuracy.mean() - first:.0%}" == "34%"
    assert mean.follows_carrier.max() < 0.1 < 0.6 < mean.follows_content.min()
    noticed = (table.test_accuracy_poisoned - table.test_accuracy).groupby(table["index"]).agg(["min", "max"])
    assert [f"{100 * value:.1f}" for value in noticed.loc[0]] == ["1.9", "2.8"]
    assert noticed.loc[32, "min"] > 0.005 and noticed.loc[66:].abs().to_numpy().max() < 0.0041
