"""The loss over two weights, against samples and against PyTorch's own descent."""

from __future__ import annotations

import math

import pytest
import torch
from companion.chapter_03.descent import train_deep_linear
from companion.chapter_03.landscape import two_weight_landscape, two_weight_loss
from deep_linear_cases import check_mean, generator
from torch import nn
from torch.func import grad, jacrev

from nadtools.theory.deep_linear import DeepLinearModel, expected_hessian


def test_two_weight_loss_is_the_mean_over_samples():
    source = generator(3)
    for theta, phi, m, epsilon, sigma in (
        (0.8, -1.2, 0.5, 1.0, 0.4),
        (1.5, 0.7, 1.3, 0.6, 1.1),
        (-1.0, 2.0, 0.1, 2.0, 0.0),
    ):
        y = 2.0 * torch.randint(2, (200_000,), generator=source).double() - 1
        x = epsilon * y + sigma * torch.randn(200_000, dtype=torch.float64, generator=source)
        check_mean((y - theta * m * phi * x).square(), two_weight_loss(theta, phi, m, epsilon, sigma))
        # It is the deep linear model with one frequency: any training of that starts at this loss.
        network = DeepLinearModel([m], 1, seed=4)
        start = two_weight_loss(network.theta.detach(), network.phi.detach(), m, epsilon, sigma)
        losses = train_deep_linear([m], 1, learning_rate=0, steps=0, epsilon=epsilon, sigma=sigma, seed=4)
        torch.testing.assert_close(start, losses[0])


@pytest.mark.parametrize(("m", "epsilon", "sigma"), [(1.0, 1.0, 0.3), (0.25, 0.7, 1.2), (-0.6, 2.0, 0.0)])
def test_two_weight_loss_has_the_stated_curvature_and_least_value(m, epsilon, sigma):
    weights = torch.tensor([1.3, -0.4], dtype=torch.float64)
    hessian = jacrev(grad(lambda w: (1 - epsilon * m * w.prod()) ** 2 + sigma**2 * (m * w.prod()) ** 2))(weights)
    expected = 2 * (epsilon**2 + sigma**2) * m**2 * weights.square().flip(0)
    torch.testing.assert_close(hessian.diag(), expected)
    least, product = sigma**2 / (epsilon**2 + sigma**2), epsilon / (epsilon**2 + sigma**2)
    theta = torch.linspace(-4, 4, 400, dtype=torch.float64)
    assert float(two_weight_loss(1.7, product / (1.7 * m), m, epsilon, sigma)) == pytest.approx(least, abs=1e-15)
    assert (two_weight_loss(theta[:, None], theta[None, :], m, epsilon, sigma) >= least - 1e-12).all()
    # The curvature along phi is that of Lemma 1 for a theta of this size.
    assert float(expected[1]) == pytest.approx(float(expected_hessian(0, [m], 1, 1.3, epsilon, sigma)[0]))


@pytest.mark.parametrize(("m", "epsilon", "sigma"), [(1.0, 1.0, 0.3), (0.25, 0.7, 1.2), (-0.6, 2.0, 0.0)])
def test_landscape_path_is_sgd_of_torch(m, epsilon, sigma):
    landscape = two_weight_landscape(
        m, learning_rate=0.05, steps=20, start=(0.9, -0.2), epsilon=epsilon, sigma=sigma, extent=(-1, 2), resolution=7
    )
    weights = nn.Parameter(torch.tensor([0.9, -0.2], dtype=torch.float64))
    optimizer = torch.optim.SGD([weights], lr=0.05)
    for point, value in zip(landscape.path, landscape.path_losses, strict=True):
        torch.testing.assert_close(point, weights.detach())
        loss = (1 - epsilon * m * weights.prod()) ** 2 + sigma**2 * (m * weights.prod()) ** 2
        torch.testing.assert_close(value, loss.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert landscape.path.shape == (21, 2) and landscape.losses.shape == (7, 7)
    # Rows are phi, columns theta.
    torch.testing.assert_close(landscape.losses[1, 4], two_weight_loss(1.0, -0.5, m, epsilon, sigma))
    assert (landscape.losses >= landscape.least - 1e-12).all()


def test_a_landscape_says_when_a_path_has_learned():
    slow, fast = (two_weight_landscape(m, learning_rate=0.1, steps=400) for m in (0.25, 1.0))
    level = fast.least + 0.1 * (1 - fast.least)
    assert fast.path_losses[int(fast.steps_to_learn)] <= level < fast.path_losses[int(fast.steps_to_learn) - 1]
    assert fast.steps_to_learn < slow.steps_to_learn < math.inf
    assert two_weight_landscape(1.0, learning_rate=0.1, steps=1).steps_to_learn == math.inf
    away = two_weight_landscape(1.0, learning_rate=30.0, steps=100)
    assert len(away.path) < 101 and torch.isfinite(away.path_losses).all() and away.steps_to_learn == math.inf
    nothing = two_weight_landscape(0.0, learning_rate=0.1, steps=3)
    assert nothing.least == 1 and torch.equal(nothing.path[0], nothing.path[-1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: two_weight_landscape(1.0, learning_rate=1, steps=1, extent=(1, 1)), ValueError, "lower end first"),
        (lambda: two_weight_landscape(1.0, learning_rate=1, steps=1, epsilon=0, sigma=0), ValueError, "all inputs are"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
