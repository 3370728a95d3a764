from __future__ import annotations

import math

import pytest
import torch
from small_networks import SMALL, Network, estimate, seeded
from torch import nn

import nadtools as nt
from nadtools.output_layer import find_output_layer, output_weight_variance


def test_the_output_layer_is_found_through_reshaping_and_only_where_it_is_last():
    class Squeezed(Network):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).squeeze(-1)

    class Scaled(Network):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(x)

    x = torch.randn(5, 1, *SMALL, generator=torch.Generator().manual_seed(0))
    for kind in (Network, Squeezed):
        network = seeded(kind)
        cut = find_output_layer(network, (1, *SMALL))
        assert cut is not None and cut.layer is network.output
        torch.testing.assert_close(cut.features(x), network.body(x))
    assert find_output_layer(seeded(Scaled), (1, *SMALL)) is None
    assert find_output_layer(seeded(lambda: Network(nn.Sequential(nn.Linear(12, 1), nn.Tanh()))), (1, *SMALL)) is None


def test_the_variance_is_that_of_the_layers_initialisation():
    def variance(factory) -> float | None:
        def draw(index: int) -> nn.Module:
            with nt.device.isolated_random_state(nt.device.derive_seed(0, index)):
                return factory()

        cut = find_output_layer(draw(0), (1, *SMALL))
        assert cut is not None
        return output_weight_variance(draw, cut)

    def normal() -> nn.Module:
        network = Network()
        nn.init.normal_(network.output.weight, std=0.7)
        return network

    def shifted() -> nn.Module:
        network = Network()
        nn.init.normal_(network.output.weight, mean=0.3, std=0.7)
        return network

    def zero() -> nn.Module:
        network = Network()
        nn.init.zeros_(network.output.weight)
        return network

    assert variance(Network) == 1 / 36
    measured = variance(normal)
    assert measured is not None and measured == pytest.approx(0.49, rel=5 * math.sqrt(2 / 768))
    assert variance(shifted) is None and variance(zero) is None
    with pytest.warns(UserWarning, match="do not have mean zero and equal variance"):
        estimate(shifted)

    def one_shifted() -> nn.Module:
        network = Network()
        with torch.no_grad():
            network.output.weight[0, 3] += 0.3
        return network

    def unequal() -> nn.Module:
        network = Network()
        with torch.no_grad():
            network.output.weight[0, 6:] *= 2.0
        return network

    def orthogonal() -> nn.Module:
        network = Network()
        nn.init.orthogonal_(network.output.weight)
        return network

    assert variance(one_shifted) is None and variance(unequal) is None
    # A random unit vector of 12 entries: uncorrelated, mean zero, variance 1/12.
    assert variance(orthogonal) == pytest.approx(1 / 12, rel=1e-6)


def test_common_initialisations_are_not_refused_by_accident():
    """The tests for mean zero and equal variance may refuse one seed in very many."""
    for initialise in (nn.init.kaiming_normal_, nn.init.xavier_uniform_, nn.init.trunc_normal_):
        for start in range(15):

            def draw(index: int, initialise=initialise, start=start) -> nn.Module:
                with nt.device.isolated_random_state(nt.device.derive_seed(start, index)):
                    network = Network()
                    initialise(network.output.weight)
                return network

            assert output_weight_variance(draw, find_output_layer(draw(0), (1, *SMALL))) is not None


def test_without_a_final_linear_layer_the_output_is_sampled_and_a_warning_says_so():
    def factory() -> nn.Module:
        return nn.Sequential(nn.Conv2d(1, 1, 8), nn.Flatten(), nn.Tanh())

    with pytest.warns(UserWarning, match="does not end in a linear layer"):
        nads = estimate(factory)
    assert nads.metadata["output_weight_variance"] is None
