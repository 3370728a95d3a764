"""The closed forms of the deep linear model against autograd and Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from deep_linear_cases import (
    CASES,
    NUM_NETWORKS,
    SIGMA_PHI,
    SIGMA_THETA,
    check_mean,
    check_mean_differs,
    draw_weights,
    generator,
    model,
    output,
    prefilter,
)
from torch import Tensor
from torch.func import grad, jacrev, vmap

import nadtools as nt
from nadtools.theory.deep_linear import (
    DeepLinearModel,
    condition_number,
    curvature_ratio,
    expected_hessian,
    expected_hessian_theta,
    gradient_covariance,
    mixed_second_moment,
)

# The model


@pytest.mark.parametrize(("dimension", "stride", "seed"), CASES)
def test_the_model_is_its_formula_with_an_explicit_aliasing_matrix(dimension, stride, seed):
    network = model(dimension, stride, seed)
    aliasing = torch.cat([torch.eye(dimension // stride, dtype=torch.float64)] * stride, dim=1) / math.sqrt(stride)
    x = torch.randn(5, dimension, dtype=torch.float64, generator=generator(seed))
    expected = (network.m * network.phi * x) @ aliasing.T @ network.theta
    assert network(x).shape == (5, 1)
    torch.testing.assert_close(network(x)[:, 0], expected)
    torch.testing.assert_close(network(x.view(5, 1, 1, dimension)), network(x))


def test_weights_have_the_stated_law():
    dimension, stride = 200_000, 2
    normal = DeepLinearModel(torch.ones(dimension), stride, SIGMA_THETA, SIGMA_PHI, seed=5)
    for weights, sigma in ((normal.theta.detach().double(), SIGMA_THETA), (normal.phi.detach().double(), SIGMA_PHI)):
        for power, moment in ((1, 0), (2, sigma**2), (4, 3 * sigma**4)):
            check_mean(weights**power, torch.tensor(moment, dtype=torch.float64))
    signs = DeepLinearModel(torch.ones(dimension), stride, SIGMA_THETA, SIGMA_PHI, weights="rademacher", seed=5)
    for weights, sigma in ((signs.theta.detach(), SIGMA_THETA), (signs.phi.detach(), SIGMA_PHI)):
        torch.testing.assert_close(weights.abs(), torch.full_like(weights, sigma))
        check_mean(weights.double(), torch.tensor(0.0, dtype=torch.float64))


def test_a_seed_fixes_the_weights_and_without_one_the_global_generator_is_used():
    a, b, c = (DeepLinearModel(torch.ones(8), 2, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(a.phi, b.phi) and torch.equal(a.theta, b.theta) and not torch.equal(a.phi, c.phi)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        first, second = DeepLinearModel(torch.ones(8), 2), DeepLinearModel(torch.ones(8), 2)
        torch.manual_seed(3)
        again = DeepLinearModel(torch.ones(8), 2)
    assert torch.equal(first.phi, again.phi) and not torch.equal(first.phi, second.phi)


@pytest.mark.parametrize("estimator", ["secant", "gradient"])
def test_estimate_nads_takes_the_model(estimator):
    dimension, stride, num_networks = 8, 4, 300
    m = prefilter(dimension, 1)

    def estimate(weights, number, **options):
        return nt.estimate_nads(
            lambda: DeepLinearModel(m, stride, SIGMA_THETA, SIGMA_PHI, weights=weights),
            number,
            estimator,
            image_size=(1, dimension),
            progress=False,
            **options,
        )

    expected = gradient_covariance(m, stride, SIGMA_THETA, SIGMA_PHI)
    # The square of every entry of the gradient is a constant here: the diagonal comes out exactly (in float32).
    exact = estimate("rademacher", 3, average_output_layer=False).covariance().diag()
    torch.testing.assert_close(exact, expected, rtol=1e-5, atol=0)
    # (XY)² has mean 1 and variance 8, so the relative standard error is sqrt(8 / n); five of them are 0.82.
    sampled = estimate("normal", num_networks, average_output_layer=False).covariance().diag()
    assert ((sampled / expected - 1).abs() < 5 * math.sqrt(8 / num_networks)).all()
    with pytest.warns(UserWarning, match="linear layer"):
        estimate("normal", 2)


# Equations (4), (5) and Lemma 1


@pytest.mark.parametrize(("dimension", "stride", "seed"), CASES)
def test_gradient_covariance(dimension, stride, seed):
    network, weights = model(dimension, stride, seed), draw_weights(dimension, stride, seed)
    x = torch.randn(dimension, dtype=torch.float64, generator=generator(seed))
    gradients = vmap(grad(output, argnums=2), in_dims=(None, 0, None))(network, weights, x)
    products = gradients[:, :, None] * gradients[:, None, :]
    arguments = (network.m, stride, SIGMA_THETA, SIGMA_PHI)
    check_mean(products, gradient_covariance(*arguments).diag())
    if stride > 1:
        check_mean_differs(gradients.square(), gradient_covariance(*arguments, as_printed=True))
    torch.testing.assert_close(
        gradient_covariance(*arguments, as_printed=True), SIGMA_THETA**2 * SIGMA_PHI**2 * network.m**2
    )


@pytest.mark.parametrize(("dimension", "stride", "seed"), CASES)
def test_mixed_second_moment(dimension, stride, seed):
    network, weights = model(dimension, stride, seed), draw_weights(dimension, stride, seed)
    x = torch.randn(dimension, dtype=torch.float64, generator=generator(seed))
    mixed = vmap(jacrev(grad(output, argnums=2), argnums=1), in_dims=(None, 0, None))(network, weights, x)
    # Each block has shape (networks, D, parameters): the transpose of a block of H.
    moment = mixed["theta"] @ mixed["theta"].mT + mixed["phi"] @ mixed["phi"].mT
    arguments = (network.m, stride, SIGMA_THETA, SIGMA_PHI)
    check_mean(moment, mixed_second_moment(*arguments).diag())
    if stride > 1:
        printed = mixed_second_moment(*arguments, as_printed=True)
        check_mean_differs(moment.diagonal(dim1=1, dim2=2), printed)
        torch.testing.assert_close(printed, (SIGMA_THETA**2 + SIGMA_PHI**2 / stride) * network.m**2)


@pytest.mark.parametrize(("dimension", "stride", "seed"), CASES)
@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 3.0), (2.0, 0.5)])
def test_expected_hessian(dimension, stride, seed, epsilon, sigma):
    network, weights = model(dimension, stride, seed), draw_weights(dimension, stride, seed)
    frequency = dimension - 2
    source = generator(seed + 100)
    y = 2.0 * torch.randint(2, (NUM_NETWORKS,), generator=source) - 1
    x = sigma * torch.randn(NUM_NETWORKS, dimension, dtype=torch.float64, generator=source)
    x[:, frequency] += epsilon * y

    def loss(phi: Tensor, theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return (y - output(network, {"theta": theta, "phi": phi}, x)).square()

    hessians = vmap(jacrev(grad(loss)))(weights["phi"], weights["theta"], x, y)
    arguments = (frequency, network.m, stride, SIGMA_THETA, epsilon, sigma)
    check_mean(hessians, expected_hessian(*arguments).diag())
    if stride > 1:
        printed = expected_hessian(*arguments, as_printed=True)
        check_mean_differs(hessians.diagonal(dim1=1, dim2=2), printed)
        signal = torch.zeros(dimension, dtype=torch.float64)
        signal[frequency] = 2 * epsilon**2 * network.m[frequency] ** 2 * SIGMA_THETA**2
        torch.testing.assert_close(printed, signal + 2 * sigma**2 * SIGMA_THETA**2 * network.m**2)


def test_without_noise_only_the_signal_curves_the_loss():
    hessian_diagonal = expected_hessian(3, torch.ones(8), 2, 1.0, epsilon=0.5, sigma=0.0)
    assert hessian_diagonal.nonzero().tolist() == [[3]] and float(hessian_diagonal[3]) == 2 * 0.25 / 2
    assert not expected_hessian(3, torch.ones(8), 2, 1.0, epsilon=0.0, sigma=0.0).any()


@pytest.mark.parametrize(("dimension", "stride", "seed"), CASES)
@pytest.mark.parametrize("sigma", [0.0, 1.7])
def test_expected_hessian_of_theta(dimension, stride, seed, sigma):
    network, weights = model(dimension, stride, seed), draw_weights(dimension, stride, seed + 40)
    frequency, epsilon, source = dimension - 2, 0.8, generator(seed + 41)
    y = 2.0 * torch.randint(2, (NUM_NETWORKS,), generator=source) - 1
    x = sigma * torch.randn(NUM_NETWORKS, dimension, dtype=torch.float64, generator=source)
    x[:, frequency] += epsilon * y

    def loss(theta: Tensor, phi: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return (y - output(network, {"theta": theta, "phi": phi}, x)).square()

    hessians = vmap(jacrev(grad(loss)))(weights["theta"], weights["phi"], x, y)
    expected = expected_hessian_theta(frequency, network.m, stride, SIGMA_PHI, epsilon, sigma)
    assert expected.shape == (dimension // stride,)
    check_mean(hessians, expected.diag())
    # Without the factor 1/S, or with the other standard deviation, the sample says no.
    for wrong in (expected * stride, expected * (SIGMA_THETA / SIGMA_PHI) ** 2):
        if not torch.equal(wrong, expected):
            reached = wrong > 0
            check_mean_differs(hessians.diagonal(dim1=1, dim2=2)[:, reached], wrong[reached])


def test_both_hessians_have_the_same_trace_for_equal_weights():
    # Both blocks spread 2 sigma² m[i]² E[x_i²] / S, one over frequencies and the other over bins.
    for dimension, stride, seed in CASES:
        m = prefilter(dimension, seed)
        phi, theta = (h(1, m, stride, 0.6, 1.2, 0.9) for h in (expected_hessian, expected_hessian_theta))
        torch.testing.assert_close(phi.sum(), theta.sum())


def test_curvature_ratio_is_that_of_the_two_terms_of_lemma_1():
    for dimension, stride, seed in CASES:
        m, epsilon, sigma = prefilter(dimension, seed), 0.8, 0.5
        ratio = curvature_ratio(m, epsilon, sigma)
        torch.testing.assert_close(ratio, epsilon**2 * m**2 / (sigma**2 * (m**2).max()))
        noise = expected_hessian(0, m, stride, SIGMA_THETA, 0.0, sigma)
        for frequency in range(dimension):
            signal = expected_hessian(frequency, m, stride, SIGMA_THETA, epsilon, 0.0)[frequency]
            assert float(ratio[frequency]) == pytest.approx(float(signal / noise.max()), rel=1e-12)
        torch.testing.assert_close(curvature_ratio(-3 * m, epsilon, sigma), ratio)
    assert curvature_ratio([2.0, 0.0], 1.0, 0.0).tolist() == [math.inf, 0]
    assert curvature_ratio([2.0, 1.0], 0.0, 0.0).tolist() == [0, 0]


@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 3.0), (1.0, 0.3), (0.5, 0.5), (0.0, 1.0)])
def test_condition_number_is_largest_curvature_over_that_along_the_frequency(epsilon, sigma):
    for dimension, stride, seed in CASES:
        m = prefilter(dimension, seed)
        kappa, ratio = condition_number(m, epsilon, sigma), curvature_ratio(m, epsilon, sigma)
        for frequency in range(dimension):
            hessian = expected_hessian(frequency, m, stride, SIGMA_THETA, epsilon, sigma)
            assert float(kappa[frequency]) == pytest.approx(float(hessian.max() / hessian[frequency]), rel=1e-12)
        if epsilon:
            torch.testing.assert_close(kappa, (1 / ((1 + sigma**2 / epsilon**2) * ratio)).clamp(min=1))
        torch.testing.assert_close(condition_number(-3 * m, epsilon, sigma), kappa)
    assert condition_number([2.0, 0.0], 1.0, 3.0).tolist() == [1, math.inf]
    assert condition_number([2.0, 1.0], 1.0, 0.0).tolist() == [
        1,
        1,
    ]  # without noise any frequency can be learned at once
    assert condition_number([2.0, 1.0], 0.0, 0.0).tolist() == [math.inf, math.inf]


def test_rademacher_weights_give_the_closed_forms_without_any_averaging():
    for dimension, stride, seed in CASES:
        network = DeepLinearModel(
            prefilter(dimension, seed), stride, SIGMA_THETA, SIGMA_PHI, weights="rademacher", seed=seed
        ).double()
        weights = {name: parameter.detach() for name, parameter in network.named_parameters()}
        x = torch.randn(dimension, dtype=torch.float64, generator=generator(seed))
        gradient = grad(output, argnums=2)(network, weights, x)
        mixed = jacrev(grad(output, argnums=2), argnums=1)(network, weights, x)
        squares = mixed["theta"].square().sum(1) + mixed["phi"].square().sum(1)
        arguments = (network.m, stride, SIGMA_THETA, SIGMA_PHI)
        # The weights were drawn in float32: sigma = 0.7 is known to a relative 6e-8.
        torch.testing.assert_close(gradient.square(), gradient_covariance(*arguments), rtol=1e-6, atol=0)
        torch.testing.assert_close(squares, mixed_second_moment(*arguments), rtol=1e-6, atol=0)


# Bad input

GOOD = (torch.ones(8), 2)
CLOSED_FORMS = [
    DeepLinearModel,
    gradient_covariance,
    mixed_second_moment,
    lambda *arguments: expected_hessian(0, *arguments),
]


@pytest.mark.parametrize("function", CLOSED_FORMS)
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((torch.ones(8), 3), ValueError, "stride=3.*D = 8.*divisor"),
        ((torch.ones(8), 16), ValueError, "stride=16"),
        ((torch.ones(2, 4), 2), ValueError, r"shape \(2, 4\); expected \(D,\)"),
    ],
)
def test_bad_models_are_refused(function, arguments, error, message):
    with pytest.raises(error, match=message):
        function(*arguments)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: DeepLinearModel(*GOOD, seed=0)(torch.ones(8)), ValueError, r"shape \(8,\); expected a batch"),
        (lambda: DeepLinearModel(*GOOD, seed=0)(torch.ones(3, 7)), ValueError, r"shape \(3, 7\).*8 entries"),
        (lambda: expected_hessian(8, *GOOD), ValueError, "frequency=8.*between 0 and D - 1 = 7"),
        (lambda: expected_hessian_theta(8, *GOOD), ValueError, "frequency=8"),
        (lambda: curvature_ratio(torch.zeros(8)), ValueError, "zero everywhere"),
        (lambda: condition_number(torch.zeros(8)), ValueError, "zero everywhere"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_floats_lists_and_arrays_are_taken():
    m = [1.0, 0.5, 0.25, 0.125]
    torch.testing.assert_close(gradient_covariance(m, 2), gradient_covariance(np.array(m), 2), rtol=0, atol=0)
    assert float(gradient_covariance([0.1], 1)) == pytest.approx(0.01, rel=1e-15)  # not by way of float32
