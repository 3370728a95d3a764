from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import nadtools as nt
from nadtools.symmetries import apply_symmetry, symmetries_of


def num_parameters(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def test_parameter_counts_are_those_of_the_text():
    assert num_parameters(nt.build("logreg", num_classes=1)) == 1024 + 1
    assert num_parameters(nt.build("mlp")) == (1024 * 100 + 100) + (100 * 20 + 20) + (20 * 2 + 2)
    lenet = (6 * 25 + 6) + (16 * 6 * 25 + 16) + (400 * 120 + 120) + (120 * 84 + 84) + (84 * 2 + 2)
    assert num_parameters(nt.build("lenet")) == lenet
    # Without pooling the last map is 24x24 instead of 5x5, and only the first fully connected layer grows.
    assert num_parameters(nt.build("lenet", pooling=False)) == lenet + 16 * (24 * 24 - 25) * 120


@pytest.mark.parametrize("name", nt.available())
@pytest.mark.parametrize(("channels", "size", "width"), [(1, (32, 32), 1.0), (3, (28, 32), 0.5), (2, (33, 40), 2.0)])
def test_any_width_channels_and_size(name, channels, size, width):
    network = nt.build(name, in_channels=channels, num_classes=5, width=width, image_size=size)
    assert network(torch.zeros(2, channels, *size)).shape == (2, 5)


def test_width_scales_channels():
    layer = nt.build("lenet", width=0.5).get_submodule("convolution2")
    assert (layer.in_channels, layer.out_channels) == (3, 8)


def test_pooling_before_the_relu_is_the_same_function():
    network, x = nt.build("lenet", seed=3), torch.randn(4, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    h = nn.functional.max_pool2d(nn.functional.relu(network.convolution1(x)), 2)
    h = nn.functional.max_pool2d(nn.functional.relu(network.convolution2(h)), 2).flatten(1)
    h = nn.functional.relu(network.linear2(nn.functional.relu(network.linear1(h))))
    torch.testing.assert_close(network(x), network.output(h))


def test_a_seed_is_a_network():
    first, again, other = (nt.build("lenet", seed=s).state_dict() for s in (0, 0, 1))
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not torch.equal(first["output.weight"], other["output.weight"])


def test_the_initialisation_is_pytorchs_default():
    weights = torch.cat([nt.build("lenet", seed=s).linear1.weight.detach().flatten() for s in range(5)]).double()
    bound = 400**-0.5
    assert float(weights.abs().max()) <= bound
    # 240,000 uniform draws: the standard error of the variance is bound²/3 * sqrt(0.8 / n).
    assert float(weights.var()) == pytest.approx(bound**2 / 3, rel=5 * math.sqrt(0.8 / len(weights)))


def _rearranged_lenet(network: nn.Module, symmetry: str) -> nn.Module:
    """The LeNet whose weights are rearranged so that it gives on g(x) what the original gives on x."""
    moved = nt.build("lenet", num_classes=network.output.out_features)
    moved.load_state_dict(network.state_dict())
    with torch.no_grad():
        for name in ("convolution1", "convolution2"):
            layer = moved.get_submodule(name)
            layer.weight.copy_(apply_symmetry(layer.weight.clone(), symmetry))
        maps = moved.linear1.weight.view(120, 16, 5, 5)
        moved.linear1.weight.copy_(apply_symmetry(maps, symmetry).reshape(120, 400))
    return moved


@pytest.mark.parametrize("symmetry", symmetries_of(nt.symmetry_group("lenet")))
def test_lenets_law_is_invariant_under_the_square(symmetry):
    """Rearranging independent, equally distributed weights leaves the law of a network unchanged."""
    network = nt.build("lenet", num_classes=3, seed=1)
    x = torch.randn(4, 1, 32, 32, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(_rearranged_lenet(network, symmetry)(apply_symmetry(x, symmetry)), network(x))


@pytest.mark.parametrize("name", ["logreg", "mlp"])
@pytest.mark.parametrize("symmetry", symmetries_of("square"))
def test_fully_connected_laws_are_invariant_under_any_rearrangement_of_pixels(name, symmetry):
    network = nt.build(name, seed=1)
    x = torch.randn(4, 1, 32, 32, generator=torch.Generator().manual_seed(1))
    first = network[1]
    expected = network(x)
    with torch.no_grad():
        first.weight.copy_(apply_symmetry(first.weight.view(-1, 32, 32), symmetry).reshape(first.weight.shape))
    torch.testing.assert_close(network(apply_symmetry(x, symmetry)), expected)


def test_the_group_shrinks_where_pooling_drops_a_row_and_where_images_are_not_square():
    assert nt.symmetry_group("lenet", (33, 33)) == "transpose"
    assert nt.symmetry_group("lenet", (33, 32)) == "none"
    assert nt.symmetry_group("lenet", (28, 32)) == "reflections"
    assert nt.symmetry_group("lenet", (33, 33), pooling=False) == "square"
    network = nt.build("lenet", image_size=(33, 33)).requires_grad_(False)
    x = torch.zeros(1, 1, 33, 33)
    x[..., -1] = 100.0  # the last column reaches no output, the first does
    dead = float((network(x) - network(torch.zeros_like(x))).abs().max())
    alive = float((network(x.flip(-1)) - network(torch.zeros_like(x))).abs().max())
    assert dead < alive


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "alexnet"}, "unknown architecture 'alexnet'; known are 'logreg', 'mlp', 'lenet'"),
        ({"name": "lenet", "in_channels": 0}, "in_channels=0"),
        ({"name": "lenet", "num_classes": 1.5}, "num_classes=1.5"),
        ({"name": "lenet", "width": -1}, "width=-1"),
        ({"name": "lenet", "width": math.nan}, "width=nan"),
        ({"name": "lenet", "image_size": (8, 8)}, r"expected at least \(16, 16\)"),
        ({"name": "lenet", "image_size": (32,)}, "2 positive sizes"),
        ({"name": "mlp", "pooling": False}, "no pooling layers to remove"),
        ({"name": "lenet", "seed": -1}, "seed=-1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        nt.build(**arguments)
