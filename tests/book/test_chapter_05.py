"""The formulas that chapter 5 displays, each against an independent computation."""

import math

import pytest
import torch
from scipy.stats import norm, spearmanr

from nadtools.directions import random_basis, random_direction
from nadtools.nads import NADs
from nadtools.theory import pooling

SIZE = 8
DIMENSION = SIZE * SIZE


@pytest.fixture(scope="module")
def nads():
    eigenvalues = torch.logspace(0, -3, DIMENSION, dtype=torch.float64)
    return NADs.from_vectors(random_basis((SIZE, SIZE), seed=1), eigenvalues)


def test_alignment_of_a_mixture_is_a_weighted_mean_of_eigenvalues(nads):
    coefficients = torch.randn(DIMENSION, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    coefficients /= coefficients.norm()
    v = (coefficients @ nads.vectors.flatten(1).double()).reshape(SIZE, SIZE)
    quadratic_form = v.flatten() @ nads.covariance() @ v.flatten()
    # The vectors are float32.
    assert float(coefficients.square() @ nads.eigenvalues) == pytest.approx(float(quadratic_form), rel=1e-5)
    assert nads.alignment(v) == pytest.approx(float(quadratic_form), rel=1e-5)


def test_mean_and_variance_of_the_alignment_of_random_directions(nads):
    number = 4000
    alpha = nads.alignments(torch.stack([random_direction((SIZE, SIZE), seed=k) for k in range(number)]))
    values = nads.eigenvalues
    variance = 2 / (DIMENSION + 2) * float(values.square().mean() - values.mean().square())
    # Four standard errors of the mean. The variance of a skewed sample: 10 % is about three of its standard errors.
    assert float(alpha.mean()) == pytest.approx(float(values.mean()), abs=4 * math.sqrt(variance / number))
    assert float(alpha.var()) == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize("degrees", [10, 45, 80])
def test_best_accuracy_of_a_reader_that_is_blind_to_the_second_direction(nads, degrees):
    t, epsilon, sigma = math.radians(degrees), 1.0, 0.7
    first, second = nads.vectors[0].flatten().double(), nads.vectors[-1].flatten().double()
    v = math.cos(t) * first + math.sin(t) * second
    blind = norm.cdf(epsilon / sigma / math.tan(t))
    assert float(pooling.bayes_accuracy(v, first[None], epsilon, sigma)) == pytest.approx(blind, abs=1e-6)
    # All the other coordinates do not help: they are independent of the label and of the first one's noise.
    others = nads.vectors[:-1].flatten(1).double()
    assert float(pooling.bayes_accuracy(v, others, epsilon, sigma)) == pytest.approx(blind, abs=1e-5)


def test_rank_correlation_by_squared_differences():
    generator = torch.Generator().manual_seed(3)
    x, y = torch.randn(2, 30, generator=generator, dtype=torch.float64)
    y = y + x
    n, d = len(x), x.argsort().argsort() - y.argsort().argsort()
    by_formula = 1 - 6 * float(d.square().sum()) / (n * (n**2 - 1))
    assert by_formula == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_effective_number_of_directions():
    def effective(values):
        return float(values.sum() ** 2 / values.square().sum())

    assert effective(torch.ones(7)) == pytest.approx(7)
    assert effective(torch.tensor([2.0, 0.0, 0.0])) == pytest.approx(1)
    assert effective(torch.tensor([3.0, 1.0])) == pytest.approx(1.6)
