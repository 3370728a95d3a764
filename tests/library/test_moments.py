from __future__ import annotations

import pytest
import torch

import nadtools as nt
from nadtools.moments import GradientMoments, fix_signs, gradients, secants
from nadtools.symmetries import apply_symmetry, symmetries_of

SHAPE = (1, 6, 6)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_secants_are_finite_differences_and_do_not_depend_on_the_batch():
    weights, point = random(36, 3), random(*SHAPE, seed=1)

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1) @ weights).sin() + x.flatten(1) @ weights

    expected = torch.empty(36, 3, dtype=torch.float64)
    for i in range(36):
        step = torch.zeros(36, dtype=torch.float64)
        step[i] = 0.3
        step = step.view(SHAPE)
        expected[i] = (function((point + step)[None]) - function((point - step)[None]))[0] / 0.6
    for batch_size in (2, 7, 64, 1000):
        torch.testing.assert_close(secants(function, point, 0.3, batch_size), expected, atol=1e-12, rtol=0)


def test_a_linear_functions_secants_are_its_gradients():
    weights = random(36, 4)
    for jacobian in (
        secants(lambda x: x.flatten(1) @ weights, random(*SHAPE), scale=100.0),
        gradients(lambda x: x.flatten(1) @ weights, random(*SHAPE), 4),
    ):
        torch.testing.assert_close(jacobian, weights)


def test_gradients_agree_with_autograds_jacobian():
    network = nt.build("lenet", num_classes=5, seed=0).requires_grad_(False).double()
    point = random(1, 32, 32)
    expected = torch.autograd.functional.jacobian(lambda x: network(x[None])[0], point).flatten(1).T
    for batch_size in (1, 3, 256):
        torch.testing.assert_close(gradients(network, point, 5, batch_size), expected, atol=1e-14, rtol=1e-10)


def test_a_function_without_gradient_has_gradient_zero():
    assert torch.equal(gradients(lambda x: torch.ones(len(x), 2), random(*SHAPE), 2), torch.zeros(36, 2))


@pytest.mark.parametrize("group", ["none", "transpose", "reflections", "square"])
def test_the_covariance_is_the_dense_average(group):
    moments = GradientMoments(SHAPE, group, num_blocks=3)
    expected = torch.zeros(36, 36, dtype=torch.float64)
    for index in range(5):
        jacobian = random(36, 2, seed=index)
        moments.add(index, jacobian)
        for g in symmetries_of(group):
            moved = apply_symmetry(jacobian.T.reshape(2, 6, 6), g).reshape(2, 36)
            expected += moved.T @ moved / len(symmetries_of(group)) / 5
    torch.testing.assert_close(moments.covariance(), expected)
    result = moments.eigendecomposition()
    torch.testing.assert_close(result.values, torch.linalg.eigvalsh(expected).flip(0), atol=1e-12, rtol=1e-9)
    torch.testing.assert_close((result.vectors.T * result.values) @ result.vectors, expected, atol=1e-12, rtol=1e-9)


def test_moments_of_disjoint_networks_merge_in_any_order():
    whole, parts = GradientMoments(SHAPE, "square", 4), [GradientMoments(SHAPE, "square", 4) for _ in range(3)]
    for index in range(11):
        whole.add(index, random(36, 2, seed=index))
    for index in reversed(range(11)):
        parts[index % 3].add(index, random(36, 2, seed=index))
    parts[2].merge(parts[0])
    parts[2].merge(parts[1])
    assert parts[2].num_networks == 11
    torch.testing.assert_close(parts[2].covariance(), whole.covariance(), atol=0, rtol=1e-12)
    torch.testing.assert_close(
        parts[2].eigendecomposition().standard_errors, whole.eigendecomposition().standard_errors, rtol=1e-8, atol=0
    )
    with pytest.raises(ValueError, match="expected"):
        whole.merge(GradientMoments(SHAPE, "none", 4))


def test_standard_errors_match_the_spread_of_repeated_estimates():
    """Gradients with a known, well separated spectrum: compare the mean standard error with the actual spread."""
    scales = torch.tensor([9.0, 4.0, 2.0, 1.0], dtype=torch.float64)
    values, errors = [], []
    for repetition in range(200):
        moments = GradientMoments((1, 2, 2), "none", num_blocks=20)
        samples = random(400, 4, seed=repetition) * scales
        for index, sample in enumerate(samples):
            moments.add(index, sample[:, None])
        result = moments.eigendecomposition()
        values.append(result.values)
        errors.append(result.standard_errors)
    spread = torch.stack(values).std(0)
    # The spread of 200 repetitions is known to 5 %, a jackknife over 20 blocks to 16 % each, 1 % on average.
    torch.testing.assert_close(
        torch.stack(errors).mean(0) / spread, torch.ones(4, dtype=torch.float64), atol=0.2, rtol=0
    )


def test_one_block_has_no_standard_error_and_bad_gradients_are_refused():
    moments = GradientMoments(SHAPE, "none", num_blocks=1)
    moments.add(0, random(36, 1))
    assert bool(moments.eigendecomposition().standard_errors.isnan().all())
    with pytest.raises(ValueError, match=r"gradient of network 1 .* with NaN"):
        moments.add(1, torch.full((36, 1), float("nan")))


def test_signs_follow_the_stated_rule_also_for_odd_images():
    odd = torch.tensor([[0.1, -0.9, 0.9, -0.1], [0.1, 0.6, -1.0, 0.2], [-0.4, 0.9, 1.0, 0.0]])
    expected = torch.tensor([[-0.1, 0.9, -0.9, 0.1], [0.1, 0.6, -1.0, 0.2], [-0.4, 0.9, 1.0, 0.0]])
    assert torch.equal(fix_signs(odd), expected)
    assert torch.equal(fix_signs(-odd), expected)


def test_a_small_dipole_is_measured_by_the_gradient():
    """Chapter 4: |f(x) - f(x + v)|² tends to (v^T grad f)², with an error of first order in the size of v."""
    network = nt.build("mlp", num_classes=1, image_size=(6, 6), seed=0).requires_grad_(False).double()
    smooth = torch.nn.Sequential(*(torch.nn.Tanh() if isinstance(m, torch.nn.ReLU) else m for m in network))
    point, v = random(*SHAPE), random(*SHAPE, seed=1)
    slope = float((gradients(smooth, point, 1).flatten() * v.flatten()).sum())
    errors = []
    for size in (1e-2, 1e-3, 1e-4):
        dipole = float((smooth(point[None]) - smooth((point + size * v)[None])).square())
        errors.append(abs(dipole / (size * slope) ** 2 - 1))
    assert errors[2] < 1e-3 and errors[1] == pytest.approx(10 * errors[2], rel=0.2)


def test_around_zero_the_secants_of_a_network_without_biases_do_not_depend_on_their_scale():
    network = nt.build("resnet18", num_classes=1, width=0.125, image_size=(8, 8)).eval().double()
    origin, elsewhere = torch.zeros(1, 8, 8, dtype=torch.float64), random(1, 8, 8)
    small, large = (secants(network, origin, scale) for scale in (1.0, 100.0))
    torch.testing.assert_close(small, large, rtol=1e-8, atol=1e-12 * float(large.abs().max()))
    moved = secants(network, elsewhere, 1.0) - secants(network, elsewhere, 100.0)
    assert float(moved.norm()) > 0.1 * float(large.norm())
