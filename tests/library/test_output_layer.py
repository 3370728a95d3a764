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
    assert variance(shifted) is None and variance(zero) == 1.0
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


def test_the_default_of_a_layer_with_ten_outputs_is_recognised():
    """PyTorch's, for each of 40 starts: 1 / (3 * 12), and no false alarm because there are more weights."""

    def draw(index: int, start: int) -> nn.Module:
        with nt.device.isolated_random_state(nt.device.derive_seed(start, index)):
            return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 10))

    for start in range(40):
        cut = find_output_layer(draw(0, start), (1, *SMALL))
        assert output_weight_variance(lambda index, start=start: draw(index, start), cut) == 1 / 36


def test_without_a_final_linear_layer_the_output_is_sampled_and_a_warning_says_so():
    def factory() -> nn.Module:
        return nn.Sequential(nn.Conv2d(1, 1, 8), nn.Flatten(), nn.Tanh())

    with pytest.warns(UserWarning, match="does not end in a linear layer"):
        nads = estimate(factory)
    assert nads.metadata["output_weight_variance"] is None


class Wrapped(nn.Module):
    """A network whose outputs are inside something."""

    def __init__(self, kind: type) -> None:
        super().__init__()
        self.network, self.kind = Network(outputs=3), kind

    def forward(self, x: torch.Tensor) -> object:
        outputs = self.network(x)
        return {"logits": outputs, "other": x} if self.kind is dict else (x, outputs)


def three() -> nn.Module:
    return Network(outputs=3)


def test_of_several_outputs_the_covariance_is_the_mean_of_theirs():
    together = estimate(three, average_output_layer=False)
    alone = [estimate(three, average_output_layer=False, output=number) for number in range(3)]
    mean = torch.stack([nads.covariance() for nads in alone]).mean(0)
    torch.testing.assert_close(together.covariance(), mean, rtol=1e-4, atol=1e-6 * float(mean.abs().max()))
    assert float((alone[0].covariance() - mean).norm() / mean.norm()) > 0.1
    assert (together.metadata.get("output"), alone[2].metadata["output"]) == (None, "2")
    gradients = estimate(three, estimator="gradient", average_output_layer=False)
    each = [estimate(three, estimator="gradient", average_output_layer=False, output=number) for number in range(3)]
    mean = torch.stack([nads.covariance() for nads in each]).mean(0)
    torch.testing.assert_close(gradients.covariance(), mean, rtol=1e-4, atol=1e-6 * float(mean.abs().max()))


def test_averaged_outputs_are_alike_and_are_found_in_dicts_and_tuples():
    averaged = estimate(three)
    assert averaged.metadata["output_weight_variance"] == 1 / 36
    for factory, output in (
        (three, 1),
        (lambda: Wrapped(dict), "logits"),
        (lambda: Wrapped(tuple), 1),
        (lambda: Wrapped(dict), lambda result: result["logits"][:, 2]),
    ):
        nads = estimate(factory, output=output)
        torch.testing.assert_close(nads.covariance(), averaged.covariance())
    with pytest.raises(TypeError, match=r"got a result of the network of type dict.*output="):
        estimate(lambda: Wrapped(dict))
    with pytest.raises(ValueError, match="several outputs for the estimator 'mixed'; take one"):
        estimate(three, estimator="mixed")
    for output in (3, "logits"):
        with pytest.raises(ValueError, match=rf"got output={output!r}, which its result lacks"):
            estimate(three, output=output)
    with pytest.raises(TypeError, match="output of type float; expected an int, a key or a function"):
        estimate(three, output=1.5)


def test_outputs_behind_a_softmax_are_sampled():
    with pytest.warns(UserWarning, match="does not end in a linear layer"):
        nads = estimate(lambda: nn.Sequential(Network(outputs=3), nn.Softmax(1)))
    assert nads.metadata["output_weight_variance"] is None and float(nads.eigenvalues[0]) > 0


def test_one_factory_serves_an_estimate_and_a_sweep():
    def factory() -> nn.Module:
        return nt.build("mlp", hidden=(8,), image_size=SMALL, seed=int(torch.randint(10**6, ())))

    nads = estimate(factory)
    config = nt.TrainConfig(epochs=1, batch_size=16)
    table = nt.sweep(factory, [nads[0]], num_train=32, num_test=16, config=config, device="cpu", progress=False)
    assert len(table) == 1 and nads.metadata["output_weight_variance"] == 1 / 24


def test_one_factory_with_several_results_serves_both_by_the_same_output():
    def factory() -> nn.Module:
        return Wrapped(dict)

    nads = estimate(factory, output="logits")
    given = {"num_train": 32, "num_test": 16, "device": "cpu", "progress": False}
    given["config"] = nt.TrainConfig(epochs=1, batch_size=16)
    (row,) = nt.sweep(factory, [nads[0]], output="logits", **given).to_dict("records")
    (alike,) = nt.sweep(three, [nads[0]], **given).to_dict("records")
    assert row["train_loss"] == alike["train_loss"]
    with pytest.raises(ValueError, match="got output='logits', which its result lacks"):
        nt.sweep(three, [nads[0]], output="logits", **given)
    with pytest.raises(TypeError, match="output of type float; expected an int, a key or a function"):
        nt.sweep(factory, [nads[0]], output=1.5, **given)


def test_a_head_that_starts_at_zero_is_replaced_by_one_of_variance_1_and_this_is_said():
    def zero(outputs: int = 1) -> nn.Module:
        network = Network(outputs=outputs)
        nn.init.zeros_(network.output.weight)
        return network

    drawn, nads, several = estimate(Network), estimate(zero), estimate(lambda: zero(3))
    torch.testing.assert_close(nads.covariance(), 36 * drawn.covariance())
    torch.testing.assert_close(several.covariance(), nads.covariance())
    assert nads.metadata["notes"] == ["the output layer starts at zero: weights of variance 1 stand in its place"]
    assert "starts at zero" in repr(nads) and "notes" not in drawn.metadata


def test_branches_that_start_at_zero_are_named():
    nads = estimate("convnext", 2, image_size=(16, 16), depth=1, width=0.1)
    (note,) = nads.metadata["notes"]
    assert note.startswith("layers that start at zero or nearly so, 2 in number") and "layer_scale" in note
    assert note in repr(nads)


def test_networks_in_double_precision_and_compiled_ones_are_taken_as_they_are():
    expected = estimate(Network).vectors
    for factory in (lambda: Network().double(), lambda: torch.compile(Network())):
        torch.testing.assert_close(estimate(factory).vectors[0], expected[0], rtol=1e-3, atol=1e-4)
