"""How long the deep linear model learns: formulas against training, and training against PyTorch's own."""

from __future__ import annotations

import math

import pytest
import torch
from companion.chapter_03.descent import critical_learning_rate, steps_to_fraction, steps_to_loss, train_deep_linear
from deep_linear_cases import CASES, SIGMA_PHI, SIGMA_THETA, check_mean, generator, prefilter
from scipy import special

from nadtools import device
from nadtools.theory.deep_linear import DeepLinearModel, condition_number, expected_hessian

GOOD = (torch.ones(8), 2)


@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 3.0), (1.0, 0.3), (0.5, 0.5), (0.0, 1.0)])
def test_the_critical_learning_rate_is_two_over_the_largest_curvature(epsilon, sigma):
    for dimension, stride, seed in CASES:
        m = prefilter(dimension, seed)
        critical = critical_learning_rate(m, stride, SIGMA_THETA, epsilon, sigma)
        for frequency in range(dimension):
            hessian = expected_hessian(frequency, m, stride, SIGMA_THETA, epsilon, sigma)
            assert float(critical[frequency]) == pytest.approx(2 / float(hessian.max()), rel=1e-12)
    assert critical_learning_rate([2.0, 0.0], 1, 1.0, 1.0, 0.0).tolist() == [0.25, math.inf]


def points_with_the_same_second_moments(dimension: int, frequency: int, epsilon: float, sigma: float):
    """Finitely many equally likely (x, y) with the means and covariances of the data.

    The loss is quadratic in them, so its mean over the points is the expected loss, exactly.
    """
    axes = sigma * math.sqrt(dimension) * torch.eye(dimension, dtype=torch.float64)
    noise = torch.cat([axes, -axes]).repeat(2, 1)
    y = torch.ones(len(noise), dtype=torch.float64)
    y[len(noise) // 2 :] = -1
    noise[:, frequency] += epsilon * y
    return noise, y


@pytest.mark.parametrize(("dimension", "stride", "seed"), CASES)
@pytest.mark.parametrize("sigma", [0.0, 0.6])
def test_full_batch_training_is_sgd_of_torch_on_the_module(dimension, stride, seed, sigma):
    m, epsilon, learning_rate, steps = prefilter(dimension, seed), 0.9, 0.1, 12
    frequencies = [0, dimension - 1, dimension // 2]
    losses = train_deep_linear(
        m,
        stride,
        frequencies,
        learning_rate=learning_rate,
        steps=steps,
        epsilon=epsilon,
        sigma=sigma,
        sigma_theta=SIGMA_THETA,
        sigma_phi=SIGMA_PHI,
        seed=seed,
    )
    assert losses.shape == (steps + 1, 3) and losses.dtype == torch.float64
    for column, frequency in enumerate(frequencies):
        network = DeepLinearModel(m, stride, SIGMA_THETA, SIGMA_PHI, seed=seed).double()
        network.m = m  # the module rounds it to float32
        optimizer = torch.optim.SGD(network.parameters(), lr=learning_rate)
        x, y = points_with_the_same_second_moments(dimension, frequency, epsilon, sigma)
        for step in range(steps + 1):
            loss = (y - network(x)[:, 0]).square().mean()
            assert float(loss.detach()) == pytest.approx(float(losses[step, column]), rel=1e-9)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@pytest.mark.parametrize(("dimension", "stride", "seed"), CASES)
def test_stochastic_training_is_sgd_of_torch_on_the_same_samples(dimension, stride, seed):
    m, epsilon, sigma, learning_rate, steps, batch = prefilter(dimension, seed), 0.9, 0.6, 0.05, 10, 4
    frequency = dimension - 3
    options = {"learning_rate": learning_rate, "steps": steps, "epsilon": epsilon, "sigma": sigma, "seed": seed}
    losses = train_deep_linear(m, stride, [1, frequency], batch_size=batch, **options)
    network = DeepLinearModel(m, stride, seed=seed).double()
    network.m = m
    optimizer = torch.optim.SGD(network.parameters(), lr=learning_rate)
    source = device.generator(torch.device("cpu"), device.stream(seed, "deep linear samples"))
    everything = points_with_the_same_second_moments(dimension, frequency, epsilon, sigma)
    for step in range(steps + 1):
        expected = (everything[1] - network(everything[0])[:, 0]).square().mean()
        assert float(expected.detach()) == pytest.approx(float(losses[step, 1]), rel=1e-9)
        y = 2.0 * torch.randint(2, (batch,), generator=source).double() - 1
        x = sigma * torch.randn(batch, dimension, dtype=torch.float64, generator=source)
        x[:, frequency] += epsilon * y
        optimizer.zero_grad()
        (y - network(x)[:, 0]).square().mean().backward()
        optimizer.step()
    # Without noise a batch is the expectation.
    options["sigma"] = 0.0
    torch.testing.assert_close(
        train_deep_linear(m, stride, batch_size=batch, **options), train_deep_linear(m, stride, **options)
    )


@pytest.mark.parametrize(("dimension", "stride", "seed"), CASES)
@pytest.mark.parametrize("weights", ["normal", "rademacher"])
def test_phi_alone_descends_the_parabola_of_lemma_1(dimension, stride, seed, weights):
    m, epsilon, sigma, steps = prefilter(dimension, seed), 0.9, 0.6, 30
    frequency, network = dimension - 2, DeepLinearModel(m, stride, SIGMA_THETA, SIGMA_PHI, weights=weights, seed=seed)
    theta, phi = network.theta.detach().double().repeat(stride), network.phi.detach().double()
    # Lemma 1 has the mean of theta²; the loss for these weights has theta² itself.
    curvature = expected_hessian(frequency, m, stride, 1.0, epsilon, sigma) * theta.square()
    if weights == "rademacher":
        exact = expected_hessian(frequency, m, stride, SIGMA_THETA, epsilon, sigma)
        torch.testing.assert_close(curvature, exact, rtol=1e-6, atol=0)  # weights are drawn in float32
    best = torch.zeros_like(phi)
    best[frequency] = math.sqrt(stride) * epsilon / ((epsilon**2 + sigma**2) * theta[frequency] * m[frequency])
    rate, time = 1.7 / float(curvature.max()), torch.arange(steps + 1)[:, None]
    excess = (curvature / 2 * (phi - best).square() * (1 - rate * curvature) ** (2 * time)).sum(1)
    losses = train_deep_linear(
        m,
        stride,
        [frequency, frequency],
        learning_rate=[rate, 0.0],
        steps=steps,
        epsilon=epsilon,
        sigma=sigma,
        sigma_theta=SIGMA_THETA,
        sigma_phi=SIGMA_PHI,
        weights=weights,
        learn="phi",
        seed=seed,
    )
    torch.testing.assert_close(losses[:, 0], sigma**2 / (epsilon**2 + sigma**2) + excess)
    assert (losses[:, 1] == losses[0, 1]).all()


@pytest.mark.parametrize(("dimension", "stride", "seed"), CASES)
@pytest.mark.parametrize("sigma", [0.3, 3.0])
def test_phi_alone_diverges_above_two_over_the_largest_curvature_and_not_below(dimension, stride, seed, sigma):
    m, frequency = prefilter(dimension, seed), dimension // 2 - 1
    critical = float(critical_learning_rate(m, stride, SIGMA_THETA, 1.0, sigma)[frequency])
    options = {"weights": "rademacher", "learn": "phi", "sigma_theta": SIGMA_THETA, "sigma": sigma, "seed": seed}
    for factor in (0.99, 1.01):
        losses = train_deep_linear(m, stride, [frequency], learning_rate=factor * critical, steps=1500, **options)[:, 0]
        assert bool(losses[-1] > losses[0]) == (factor > 1)


@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.0])
def test_phi_alone_learns_in_the_predicted_number_of_steps(stride, sigma):
    m = torch.tensor([1.0, 0.5, 0.3, 0.2, 0.1, 0.2, 0.3, 0.5], dtype=torch.float64)
    largest = torch.stack([expected_hessian(f, m, stride, 1.0, 1.0, sigma).max() for f in range(8)])
    along = torch.stack([expected_hessian(f, m, stride, 1.0, 1.0, sigma)[f] for f in range(8)])
    rates = 0.2 / largest
    losses = train_deep_linear(
        m,
        stride,
        learning_rate=rates,
        steps=6_000 // 4,
        sigma=sigma,
        sigma_phi=0.0,  # all models begin at the loss 1, and nothing but the signal is to be learned
        weights="rademacher",
        learn="phi",
    )
    least = sigma**2 / (1 + sigma**2)
    torch.testing.assert_close(
        steps_to_loss(losses, least + 0.1 * (1 - least)), steps_to_fraction(along, rates, 0.1), rtol=0, atol=0
    )
    torch.testing.assert_close(
        steps_to_fraction(along, rates), steps_to_fraction(1 / condition_number(m, 1.0, sigma), 0.2)
    )


@pytest.mark.parametrize("fraction", [0.5, 0.1, 1e-6])
def test_half_the_condition_number_counts_the_steps(fraction):
    """The approximation that chapter 3 displays: 1/κ ≤ −ln(1 − 1/κ) ≤ 1/(κ − 1), and steps are whole numbers."""
    kappa = torch.tensor([2.0, 5.0, 40.0, 900.0], dtype=torch.float64)
    approximate = kappa / 2 * math.log(1 / fraction)
    steps = steps_to_fraction(1 / kappa, 1.0, fraction)
    assert (steps >= approximate * (1 - 1 / kappa)).all()
    assert (steps <= approximate + 1).all()


def test_steps_to_fraction():
    assert steps_to_fraction(0.5, 0.2, 0.1).tolist() == 11  # 0.9^22 < 0.1 < 0.9^20
    assert steps_to_fraction(1.0, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0], 0.1).tolist() == [
        math.inf,
        2,
        1,
        2,
        math.inf,
        math.inf,
    ]
    assert steps_to_fraction(1.0, 0.1, [1.0, 2.0, 0.0]).tolist() == [0, 0, math.inf]
    assert steps_to_fraction(torch.ones(3, 1), torch.ones(2)).shape == (3, 2)


def test_trained_models_have_the_accuracy_that_the_least_loss_allows():
    # f = aᵀx is right with probability Phi(epsilon a[l] / (sigma |a|)), which is largest for a along e_l, for every l.
    m, epsilon, sigma, source = torch.tensor([1.0, 0.6, 0.3, 0.6]), 1.0, 0.8, generator(8)
    best = float(special.ndtr(epsilon / sigma))
    for stride in (1, 2, 4):
        losses = train_deep_linear(m, stride, learning_rate=0.2, steps=3000, sigma=sigma, seed=1)
        torch.testing.assert_close(losses[-1], torch.full((4,), sigma**2 / (1 + sigma**2), dtype=torch.float64))
    a = torch.randn(2000, 4, dtype=torch.float64, generator=source)
    assert (torch.special.ndtr(epsilon * a[:, 2] / (sigma * a.norm(dim=1))) <= best).all()
    y = 2.0 * torch.randint(2, (100_000,), generator=source).double() - 1
    x = epsilon * y + sigma * torch.randn(100_000, dtype=torch.float64, generator=source)
    check_mean((x * y > 0).double(), torch.tensor(best, dtype=torch.float64))


def test_learning_rates_can_differ_and_frequencies_repeat():
    m, options = prefilter(8, 1), {"steps": 9, "sigma": 0.5, "batch_size": 3, "seed": 2}
    together = train_deep_linear(m, 2, [3, 5, 3], learning_rate=[0.1, 0.2, 0.3], **options)
    for column, (frequency, rate) in enumerate(((3, 0.1), (5, 0.2), (3, 0.3))):
        alone = train_deep_linear(m, 2, [frequency], learning_rate=rate, **options)
        torch.testing.assert_close(together[:, column], alone[:, 0])


def test_every_frequency_that_passes_reaches_the_same_loss():
    m, epsilon, sigma = torch.tensor([1.0, 0.9, 0.7, 0.5, 0.4, 0.5, 0.7, 0.9]), 1.0, 0.6
    losses = train_deep_linear(m, 4, learning_rate=0.2, steps=3000, epsilon=epsilon, sigma=sigma, seed=2)
    least = sigma**2 / (epsilon**2 + sigma**2)
    assert (losses >= least - 1e-12).all()
    torch.testing.assert_close(losses[-1], torch.full((8,), least, dtype=torch.float64), rtol=1e-6, atol=0)
    # No information is lost, and still the steps differ.
    steps = steps_to_loss(losses, 1.05 * least)
    assert torch.isfinite(steps).all() and steps.max() > 2 * steps.min()
    stopped = train_deep_linear([1.0, 0.0], 1, [1], learning_rate=0.2, steps=500, sigma=sigma)
    assert float(stopped[-1]) == pytest.approx(1, abs=1e-6)  # always answering 0


def test_a_large_learning_rate_diverges_to_infinity_and_seeds_are_kept():
    options = {"learning_rate": 50.0, "steps": 60, "seed": 0}
    losses = train_deep_linear(prefilter(8, 0), 2, **options)
    assert torch.isinf(losses[-1]).all() and not torch.isnan(losses).any()
    options = {"learning_rate": 0.01, "steps": 5, "sigma": 0.5, "batch_size": 3}
    state = torch.random.get_rng_state()
    a, b, c = (train_deep_linear(prefilter(8, 0), 2, seed=seed, **options) for seed in (1, 1, 2))
    assert torch.equal(a, b) and not torch.equal(a, c) and torch.equal(state, torch.random.get_rng_state())
    alone = train_deep_linear(prefilter(8, 0), 2, [5], seed=1, **options)
    torch.testing.assert_close(alone[:, 0], a[:, 5])  # the others play no part
    assert train_deep_linear(prefilter(8, 0), 2, [5], learning_rate=0.1, steps=0).shape == (1, 1)


def test_steps_to_loss():
    losses = torch.tensor([[3.0, 1.0, 5.0], [2.0, 4.0, 5.0], [1.0, 0.0, 5.0], [2.0, 0.0, math.inf]])
    assert steps_to_loss(losses, 2.0).tolist() == [1, 0, math.inf]
    assert steps_to_loss(losses, 0.5).tolist() == [math.inf, 2, math.inf]
    assert float(steps_to_loss(losses[:, 0], 1.0)) == 2
    assert steps_to_loss(losses, 2.0, settle=True).tolist() == [1, 2, math.inf]
    assert steps_to_loss(losses, 1.0, settle=True).tolist() == [math.inf, 2, math.inf]
    assert steps_to_loss(losses, 9.0, settle=True).tolist() == [0, 0, math.inf]


@pytest.mark.parametrize(
    "function",
    [
        critical_learning_rate,
        lambda *arguments: train_deep_linear(*arguments[:2], sigma_theta=arguments[2], learning_rate=0.1, steps=1),
    ],
)
@pytest.mark.parametrize(
    ("arguments", "message"), [((*GOOD, -1.0), "sigma_theta=-1.0"), ((torch.ones(8), 3, 1.0), "stride=3.*divisor")]
)
def test_bad_models_are_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: train_deep_linear(*GOOD, [8], learning_rate=0.1, steps=1), ValueError, "between 0 and D - 1 = 7"),
        (
            lambda: train_deep_linear(*GOOD, [1], learning_rate=[0.1, 0.2], steps=1),
            ValueError,
            r"shape \(2,\) for 1 freq",
        ),
        (lambda: train_deep_linear(*GOOD, [1, 2], learning_rate=[0.1, -1], steps=1), ValueError, "negative"),
        (lambda: steps_to_fraction(torch.ones(2), torch.ones(3)), ValueError, r"curvature \(2,\)"),
        (lambda: steps_to_loss(torch.ones(0, 2), 1.0), ValueError, r"losses of shape \(0, 2\)"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
