"""The formulas that chapter 11 displays, each against an independent computation."""

import math

import pytest
import torch
from scipy.stats import norm

import nadtools as nt


@pytest.fixture(scope="module")
def problem():
    generator = torch.Generator().manual_seed(0)
    images = nt.Labelled(
        torch.rand(500, 3, 8, 8, generator=generator), torch.randint(0, 2, (500,), generator=generator)
    )
    return nt.concatenate(images, nt.LinearlySeparable(nt.random_direction((8, 8), seed=1), 3.0, 2.0))


def test_a_hint_beside_an_image(problem):
    x, y = problem.sample(500, seed=2, device="cpu")
    images, part = problem.parts
    assert torch.equal(x[:, :3], images.x) and torch.equal(y, images.y)
    along = x[:, 3].flatten(1) @ part.v.flatten()
    torch.testing.assert_close(along, 3.0 * (2.0 * y - 1), rtol=0, atol=1e-4)
    noise = x[:, 3].flatten(1) - along[:, None] * part.v.flatten()
    # 63 of 64 directions hold noise of variance 4.
    assert float(noise.square().sum(1).mean()) == pytest.approx(4 * 63, rel=0.05)


def test_a_contradiction_is_a_sample_for_the_other_label(problem):
    x, y = problem.sample(500, seed=3, device="cpu")
    direction = problem.direction(1)
    turned = x - 2 * (x.flatten(1) @ direction.flatten()).view(-1, 1, 1, 1) * direction
    part = problem.parts[1]
    # The noise is drawn apart from the labels, so drawing the part again for the other labels gives the same.
    same, other = (part.sample(500, seed=4, device="cpu", labels=labels)[0] for labels in (y, 1 - y))
    v = part.v.flatten()
    reflected = same.flatten(1) - 2 * (same.flatten(1) @ v)[:, None] * v
    torch.testing.assert_close(reflected.view_as(other), other, rtol=0, atol=1e-4)
    assert torch.equal(turned[:, :3], x[:, :3])
    back = turned - 2 * (turned.flatten(1) @ direction.flatten()).view(-1, 1, 1, 1) * direction
    torch.testing.assert_close(back, x, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("epsilon", "sigma", "n"), [(1.0, 1.0, 1000), (1.0, 3.0, 4000), (3.0, 3.0, 1000)])
def test_accuracy_of_the_mean_difference_on_the_hint(epsilon, sigma, n):
    part = nt.LinearlySeparable(nt.random_direction((32, 32), seed=5), epsilon, sigma)
    (x, y), (x_test, y_test) = (part.sample(count, seed=k, device="cpu") for k, count in ((6, n), (7, 5000)))
    signed = (2.0 * y - 1)[:, None] * x.flatten(1)
    weight = signed.mean(0)
    v = part.v.flatten()
    # The two steps of the derivation: ε along v, and variance σ²/n in each of the other directions.
    assert float(weight @ v) == pytest.approx(epsilon, abs=1e-4)
    noise = weight - (weight @ v) * v
    assert float(noise.square().sum()) == pytest.approx(1023 * sigma**2 / n, rel=4 * math.sqrt(2 / 1023))
    measured = float((((x_test.flatten(1) @ weight) > 0) == (y_test == 1)).double().mean())
    formula = norm.cdf(epsilon**2 * math.sqrt(n) / (sigma**2 * math.sqrt(1023)))
    # 5,000 test samples, and the length of the noise, which scatters by 2 %.
    assert measured == pytest.approx(formula, abs=4 * math.sqrt(0.25 / 5000) + 0.01)


def test_samples_needed_grow_as_the_dimension_and_the_fourth_power_of_the_noise():
    def argument(n, dimension, ratio):
        return math.sqrt(n) / (ratio**2 * math.sqrt(dimension - 1))

    base = argument(1000, 1025, 2.0)
    assert argument(2000, 2049, 2.0) == pytest.approx(base)
    assert argument(16_000, 1025, 4.0) == pytest.approx(base)
