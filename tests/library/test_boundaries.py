from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import nadtools as nt
from nadtools import boundaries
from nadtools.boundaries import boundary_angle, cross_section, margins

A, B = torch.eye(2)  # the directions of a plane that is all there is


class Function(nn.Module):
    """A network that computes a given function of flattened inputs, and remembers how many it saw at a time."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function
        self.sizes: list[int] = []

    def __deepcopy__(self, _) -> Function:
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.sizes.append(len(x))
        return self.function(x.flatten(1))


def affine(weight: torch.Tensor, bias: float = 0.0, outputs: int = 1) -> nn.Module:
    """f(x) = <weight, x> + bias, as a single output, or spread over the difference of two."""
    size = weight.shape if weight.ndim == 3 else (1, 1, weight.numel())
    network = nt.build("logreg", size[0], outputs, image_size=tuple(size[1:]))
    with torch.no_grad():
        if outputs == 1:
            network.output.weight.copy_(weight.flatten()[None])
            network.output.bias.fill_(bias)
        else:
            network.output.weight[1] = network.output.weight[0] + weight.flatten()
            network.output.bias[1] = network.output.bias[0] + bias
    return network


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def plane_of(network_shape: tuple[int, ...], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.linalg.qr(random(math.prod(network_shape), 2, seed=seed).double())[0].T.float()
    first, second = rows.view(2, *network_shape)
    return first, second


# The angle.


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("shape", [(2, 1, 1), (1, 3, 1), (2, 5, 5), (3, 32, 32), (3, 64, 64)])
def test_the_angle_is_exact_on_linear_networks_of_any_dimension(shape, outputs):
    weight, points = random(*shape, seed=1), random(12, *shape, seed=2)
    first, second = plane_of(shape, 3)
    network = affine(weight, 0.3, outputs)
    if outputs == 2:  # as stored: the weights are single precision
        weight = (network.output.weight[1] - network.output.weight[0]).detach().view(shape)
    along = [float((weight.double() * v).sum()) for v in (first, second)]
    found = boundary_angle(network, points, first, second)
    # Directions are orthonormal to single precision only.
    assert found.normal == pytest.approx(math.atan2(along[1], along[0]), abs=2e-5)
    assert found.to_first == pytest.approx(math.atan2(abs(along[0]), abs(along[1])), abs=2e-5)
    assert found.to_first + found.to_second == pytest.approx(math.pi / 2, abs=1e-6)
    assert found.stderr < 1e-5 and 2 * found.num_crossed >= found.num_points == 12
    single = boundary_angle(network, points, first, second, dtype=None)
    assert single.normal == pytest.approx(found.normal, abs=1e-3)


@pytest.mark.parametrize("quarter", range(8))
def test_the_normal_has_the_sign_of_f_in_every_octant(quarter):
    angle = quarter * math.pi / 4 + 0.1
    weight = torch.tensor([math.cos(angle), math.sin(angle)])
    found = boundary_angle(affine(weight), torch.zeros(1, 1, 2), A[None, None], B[None, None])
    assert math.remainder(found.normal - angle, 2 * math.pi) == pytest.approx(0, abs=1e-6)
    assert found.radius == 1 and found.resultant == pytest.approx(1) and math.isnan(found.stderr)
    swapped = boundary_angle(affine(weight), torch.zeros(1, 1, 2), B[None, None], A[None, None])
    assert (swapped.to_first, swapped.to_second) == pytest.approx((found.to_second, found.to_first), abs=1e-6)


def test_a_maximum_margin_classifier_and_a_stump():
    """On D(v₁)⊕D(v₂) with margins 1 and 0.5: the normal along (1, 0.5), and along the first direction alone."""
    v1, v2 = nt.fourier_basis((8, 8))[[3, 11]]
    whole = nt.concatenate(nt.LinearlySeparable(v1, 1.0, 1.0), nt.LinearlySeparable(v2, 0.5, 1.0))
    x, y = whole.sample(30, device="cpu")
    first, second = whole.direction(0), whole.direction(1)
    sign = (2 * y - 1).double()

    maximum_margin = affine(first + 0.5 * second, outputs=2)
    found = boundary_angle(maximum_margin, x, first, second)
    assert found.to_second == pytest.approx(math.atan(0.5), abs=1e-5)
    assert found.radius == pytest.approx(math.sqrt(1.25), abs=1e-5) and found.resultant == pytest.approx(1, abs=1e-5)
    # At distance 1 + 0.25 in units of f, which changes by 1 and by 0.5 per unit along the directions.
    for direction, margin in ((first, 1.25), (second, 2.5)):
        torch.testing.assert_close(
            -sign * margins(maximum_margin, x, direction), torch.full((30,), margin).double(), atol=1e-5, rtol=0
        )

    stump = affine(first, outputs=2)
    found = boundary_angle(stump, x, first, second)
    assert found.to_first == pytest.approx(math.pi / 2, abs=1e-6) and found.to_second == pytest.approx(0, abs=1e-6)
    assert found.normal == pytest.approx(0, abs=1e-6)
    torch.testing.assert_close(-sign * margins(stump, x, first), torch.ones(30).double(), atol=1e-5, rtol=0)
    assert bool(margins(stump, x, second).isinf().all())


def test_an_offset_is_found_by_larger_discs_only():
    weight, far = torch.tensor([3.0, 4.0]), torch.zeros(1, 1, 2)
    network = affine(weight, 5 * 100.0)  # the boundary's distance from the centre is 100
    found = boundary_angle(network, far, A[None, None], B[None, None])
    assert found.radius == 128 and found.normal == pytest.approx(math.atan2(4, 3), abs=1e-6)
    # A chord at distance d has half the length sqrt(R² - d²).
    assert found.resultant == pytest.approx(math.sqrt(1 - (100 / 128) ** 2), abs=1e-6)
    missed = boundary_angle(network, far, A[None, None], B[None, None], radius=99)
    assert missed.num_crossed == 0 and missed.resultant == 0 and missed.radius == 99
    assert all(math.isnan(value) for value in (missed.normal, missed.to_first, missed.to_second, missed.stderr))
    given = boundary_angle(network, far, A[None, None], B[None, None], radius=200)
    assert given.radius == 200 and given.normal == pytest.approx(found.normal, abs=1e-6)


def test_a_network_that_uses_neither_direction_has_no_angle():
    found = boundary_angle(affine(torch.tensor([0.0, 0.0, 1.0])), torch.ones(5, 1, 1, 3), *torch.eye(3)[:2, None, None])
    assert math.isnan(found.normal) and found.num_crossed == 0 and found.num_points == 5


@pytest.mark.parametrize("slope", [0.3, 1.0, 5.0])
def test_a_relu_network_turns_by_half_of_its_kink(slope):
    """f = a - slope relu(b): the boundary is a = 0 below and a = slope b above, of equal lengths in the disc."""
    with nt.device.isolated_random_state(0):
        body = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    kinked = nn.Sequential(nn.Flatten(), body)
    with torch.no_grad():
        body[0].weight.copy_(torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, 0]]))
        body[0].bias.zero_()
        body[2].weight.copy_(torch.tensor([[1.0, -1, -slope, 0]]))
        body[2].bias.zero_()
    point = torch.tensor([[[0.5, -1.0]]])
    found = boundary_angle(kinked, point, A[None, None], B[None, None])
    assert found.normal == pytest.approx(-math.atan(slope) / 2, abs=1e-6)
    # The mean of two half lines whose normals differ by atan(slope).
    assert found.resultant == pytest.approx(math.cos(math.atan(slope) / 2), abs=1e-6)
    assert float(margins(kinked, point, A[None, None])) == pytest.approx(-0.5)
    # Along b it meets a = slope b at b = 0.5 / slope.
    assert float(margins(kinked, point, B[None, None])) == pytest.approx(1 + 0.5 / slope)
    assert math.isinf(float(margins(kinked, point, B[None, None], max_distance=1.0)))
    assert math.isinf(float(margins(kinked, -point.abs(), -B[None, None])))


def test_an_island_counts_as_nothing():
    """The mean normal of a closed boundary is zero, so only the line a = 0 counts."""

    def line_and_island(x):
        island = 0.3 - (x - torch.tensor([-0.6, 0.2])).norm(dim=1)
        return torch.maximum(x[:, 0], island)

    found = boundary_angle(Function(line_and_island), torch.zeros(1, 2), A, B, radius=1.5)
    assert found.normal == pytest.approx(0, abs=1e-6) and found.resultant == pytest.approx(1)


def test_a_curved_boundary_against_a_dense_circle():
    shape = (2, 4, 4)
    with nt.device.isolated_random_state(3):
        network = nn.Sequential(nn.Flatten(), nn.Linear(32, 20), nn.Tanh(), nn.Linear(20, 2)).double()
    points, (first, second), radius = random(5, *shape, seed=4).double() / 2, plane_of(shape, 5), 6.0
    found = boundary_angle(network, points, first, second, radius=radius)

    count = 100_000
    angles = (torch.arange(count, dtype=torch.float64) + 0.5) * 2 * math.pi / count
    basis = torch.linalg.qr(torch.stack((first, second)).flatten(1).double().T)
    one, other = (basis[0] * basis[1].diagonal().sign()).T
    circle = torch.stack((angles.cos(), angles.sin()), 1)
    normals = []
    with torch.no_grad():
        for point in points.flatten(1):
            base = point - (point @ one) * one - (point @ other) * other
            outputs = network(base + radius * circle @ torch.stack((one, other)))
            normals.append(circle[outputs[:, 1] > outputs[:, 0]].sum(0) * math.pi / count)
    mean = torch.stack(normals).mean(0)
    assert found.num_crossed > 2
    # Both are good to about 1e-4: crossings here to 2e-4 of a circle's step, there to 6e-5 rad.
    assert found.normal == pytest.approx(math.atan2(mean[1], mean[0]), abs=5e-4)
    assert found.resultant == pytest.approx(float(mean.norm()), abs=5e-4)


def test_the_error_is_that_of_the_jackknife():
    """Each point has a boundary at an angle of its own: its third coordinate."""
    angles = 0.6 + 0.3 * random(40)
    network = Function(lambda x: x[:, 0] * x[:, 2].cos() + x[:, 1] * x[:, 2].sin())
    points = torch.cat((random(40, 2, seed=1), angles[:, None]), 1)
    found = boundary_angle(network, points, *torch.eye(3)[:2], radius=1.0)
    vectors = np.stack((np.cos(angles.numpy()), np.sin(angles.numpy())), 1)
    mean = vectors.mean(0)
    assert found.normal == pytest.approx(math.atan2(mean[1], mean[0]), abs=1e-5)
    assert found.resultant == pytest.approx(float(np.linalg.norm(mean)), abs=1e-5)
    without = np.array([math.atan2(*np.delete(vectors, k, 0).mean(0)[::-1]) for k in range(40)])
    jackknife = math.sqrt(39 / 40 * ((without - without.mean()) ** 2).sum())
    # They differ in the second order, 1 / 40.
    assert found.stderr == pytest.approx(jackknife, rel=0.03)


def test_directions_need_not_be_orthogonal():
    weight = torch.tensor([1.0, 2.0])
    oblique = torch.tensor([1.0, 1.0])
    found = boundary_angle(affine(weight), torch.zeros(1, 1, 2), A[None, None], oblique[None, None])
    # The boundary runs along (-2, 1).
    assert found.to_first == pytest.approx(math.atan2(1, 2), abs=1e-6)
    assert found.to_second == pytest.approx(math.acos(1 / math.sqrt(10)), abs=1e-6)


# Margins.


def test_margins_of_an_affine_network():
    weight, points = random(2, 4, 4, seed=1), random(50, 2, 4, 4, seed=2)
    direction = nt.random_direction((2, 4, 4), 3)
    network = affine(weight, 0.7)
    with torch.no_grad():
        exact = -network(points)[:, 0].double() / (weight * direction).sum()
    found = margins(network, points, direction, max_distance=1e4)
    assert found.dtype == torch.float64 and found.shape == (50,)
    # The reference is in single precision.
    torch.testing.assert_close(found, exact, atol=1e-4, rtol=1e-4)
    limit = float(exact.abs().median())
    near = margins(network, points, direction, max_distance=limit)
    assert torch.equal(near.isinf(), exact.abs() > limit)
    torch.testing.assert_close(near[near.isfinite()], exact[near.isfinite()], atol=1e-4, rtol=1e-4)
    assert margins(network, points[0], direction).shape == ()
    torch.testing.assert_close(margins(network, points, -direction, max_distance=1e4), -found)


def test_the_nearer_of_two_boundaries_counts():
    band = Function(lambda x: 2 - (x[:, 0] + 1).abs())  # positive between -3 and 1
    points = torch.tensor([[0.0, 5], [-2, 0], [1.5, 0], [-6, 0], [1, 0]])
    expected = torch.tensor([1.0, -1, -0.5, 3, 0]).double()
    torch.testing.assert_close(margins(band, points, A), expected, atol=1e-6, rtol=1e-6)
    # A band that is thin for its distance falls between 25 and 50, where the sign is looked at.
    assert math.isinf(float(margins(band, torch.tensor([-40.0, 0]), A)))


def test_margins_do_not_depend_on_batches_or_other_points():
    network = nt.build("lenet", in_channels=2, seed=1)
    points, direction = random(6, 2, 32, 32), nt.random_direction((2, 32, 32))
    found = margins(network, points, direction, max_distance=50.0)
    split = torch.stack([margins(network, point, direction, max_distance=50.0) for point in points])
    torch.testing.assert_close(found, split, atol=1e-6, rtol=1e-6)


# Cross-sections.


def test_a_cross_section_of_an_affine_network():
    shape = (2, 3, 3)
    weight, points = random(*shape, seed=1), random(20, *shape, seed=2)
    first, second = plane_of(shape, 3)
    network = affine(weight, 0.4)
    found = cross_section(network, points, first, second, (1.0, 2.0), 5, progress=False)
    assert found.first.tolist() == [-1, -0.5, 0, 0.5, 1] and found.second.tolist() == [-2, -1, 0, 1, 2]
    base = points - sum((points * v).sum((1, 2, 3), keepdim=True) * v for v in (first, second))
    with torch.no_grad():
        at_base = network(base)[:, 0].double()
    slopes = [float((weight * v).sum()) for v in (first, second)]
    expected = at_base.mean() + slopes[0] * found.first[None, :] + slopes[1] * found.second[:, None]
    torch.testing.assert_close(found.values, expected, atol=1e-5, rtol=1e-5)
    error = float(at_base.std() / 20**0.5)
    torch.testing.assert_close(found.stderr, torch.full((5, 5), error).double(), atol=1e-4, rtol=1e-4)
    moved = cross_section(network, points + 3 * first - 2 * second, first, second, (1.0, 2.0), 5, progress=False)
    torch.testing.assert_close(moved.values, found.values, atol=1e-4, rtol=1e-4)
    assert found.num_points == 20
    single = cross_section(network, points[0], first, second, 1.0, 2, progress=False)
    assert single.num_points == 1 and bool(single.stderr.isnan().all()) and single.values.shape == (2, 2)


def test_oblique_coordinates_are_those_along_the_directions():
    oblique = torch.tensor([1.0, 1.0])
    found = cross_section(Function(lambda x: x[:, 0]), torch.zeros(2), A, oblique, 1.0, 3, progress=False)
    expected = found.first[None, :] + found.second[:, None] / math.sqrt(2)
    torch.testing.assert_close(found.values, expected, atol=1e-6, rtol=0)


def test_a_large_grid_is_evaluated_in_batches(monkeypatch):
    monkeypatch.setattr(boundaries, "_BATCH", 1000)
    network = Function(lambda x: x[:, 0] * x[:, 1] + x[:, 2])
    points = torch.stack([torch.tensor([0.0, 0, k]) for k in range(5)])
    first, second = torch.eye(3)[:2]
    found = cross_section(network, points, first, second, 1.0, 90, progress=False)
    assert max(network.sizes) <= 1000 < 90**2
    expected = found.first[None, :] * found.second[:, None] + 2
    torch.testing.assert_close(found.values, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.stderr, torch.full((90, 90), (2.5 / 5) ** 0.5).double(), atol=1e-6, rtol=0)
    # Many points and a small grid share batches, and the numbers stay.
    network.sizes.clear()
    monkeypatch.setattr(boundaries, "_BATCH", 170)
    few = cross_section(network, points, first, second, 1.0, 9, progress=False)
    assert sorted(set(network.sizes[1:])) == [81, 162]
    monkeypatch.setattr(boundaries, "_BATCH", 1)
    one = cross_section(network, points, first, second, 1.0, 9, progress=False)
    torch.testing.assert_close(few.values, one.values, atol=1e-12, rtol=0)


def test_the_angle_agrees_with_the_cross_section():
    """A line fitted to the zero crossings of the picture, on a network that bends it little."""
    with nt.device.isolated_random_state(0):
        network = nn.Sequential(nn.Flatten(), nn.Linear(8, 30), nn.Tanh(), nn.Linear(30, 2))
    shape = (2, 2, 2)
    first, second = plane_of(shape, 1)
    point = torch.zeros(shape)
    picture = cross_section(network, point, first, second, 0.5, 61, progress=False)
    columns, rows = np.meshgrid(picture.first.numpy(), picture.second.numpy())
    crossing = np.diff(np.sign(picture.values.numpy()), axis=0) != 0
    x, y = columns[:-1][crossing], (rows[:-1] + rows[1:])[crossing] / 2
    _, _, axes = np.linalg.svd(np.stack((x - x.mean(), y - y.mean())).T)
    line = math.atan2(abs(axes[0, 1]), abs(axes[0, 0]))
    found = boundary_angle(network, point, first, second, radius=0.5)
    assert found.num_crossed == 1 and found.to_first == pytest.approx(line, abs=0.05)


# What is common to all.


def test_the_network_is_left_as_it_was():
    network = nt.build("resnet18", in_channels=2, width=0.05).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    points, first, second = random(3, 2, 32, 32), *plane_of((2, 32, 32), 0)
    found = cross_section(network, points, first, second, 1.0, 3, progress=False)
    boundary_angle(network, points[0], first, second, radius=1.0, dtype=None)
    margins(network, points[0], first, dtype=None)
    assert network.training and all(module.training for module in network.modules())
    for name, value in network.state_dict().items():
        assert value.dtype == before[name].dtype and torch.equal(value, before[name]), name
    assert all(parameter.requires_grad and parameter.grad is None for parameter in network.parameters())
    network.eval()
    again = cross_section(network, points, first, second, 1.0, 3, progress=False)
    assert torch.equal(again.values, found.values), "evaluation mode in both cases"


def test_one_channel():
    network = nt.build("logreg", 1, 2, image_size=(4, 4))
    first, second = nt.fourier_basis((4, 4))[[1, 5]]
    weight = network.output.weight.detach()
    difference = (weight[1] - weight[0]).view(4, 4)
    found = boundary_angle(network, random(8, 1, 4, 4), first, second)
    expected = math.atan2(float((difference * second).sum()), float((difference * first).sum()))
    assert found.normal == pytest.approx(expected, abs=1e-5)


NETWORK = nt.build("logreg", 2, 2, image_size=(4, 4))
POINTS = torch.zeros(3, 2, 4, 4)
FIRST, SECOND = plane_of((2, 4, 4), 0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: boundary_angle(NETWORK, POINTS, FIRST, 2 * FIRST), ValueError, "expected two that span a plane"),
        (lambda: cross_section(NETWORK, POINTS, FIRST, -FIRST), ValueError, "expected two that span a plane"),
        (lambda: boundary_angle(NETWORK, POINTS, FIRST[0], SECOND[0]), ValueError, r"second \(4, 4\); expected dir"),
        (lambda: boundary_angle(NETWORK, POINTS, FIRST, SECOND[:1]), ValueError, r"second \(1, 4, 4\); expected"),
        (lambda: margins(NETWORK, POINTS, FIRST, dtype=torch.float16), ValueError, "dtype=torch.float16"),
        (lambda: margins(nt.build("lenet"), POINTS, FIRST), ValueError, "does not accept .* shape .2, 4, 4."),
        (lambda: margins(nn.Identity(), POINTS, FIRST), ValueError, r"returned \(1, 2, 4, 4\) for 1 image"),
        (
            lambda: margins(nn.Flatten(), POINTS, FIRST),
            ValueError,
            r"returned \(1, 32\) for 1 image; expected",
        ),
        (lambda: cross_section(NETWORK, POINTS, FIRST, SECOND, (1.0, 2.0, 3.0)), ValueError, "positive number, or two"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
