from __future__ import annotations

import dataclasses
import functools
import math

import pytest
import torch
from small_networks import Network, seeded
from torch import nn

import nadtools as nt
from nadtools.ensembles import can_train_together, train_together
from nadtools.training import _has_bfloat16

two_outputs = functools.partial(Network, outputs=2)


def data(n: int, seed: int, shape: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    return nt.LinearlySeparable(nt.random_direction(shape, seed), sigma=1.0).sample(n, seed, device="cpu")


def build(name: str, number: int) -> nn.Module:
    return nt.build(name, image_size=SHAPES[name], seed=number)


SHAPES = {"lenet": (16, 16), "mlp": (8, 8), "logreg": (8, 8)}
CONFIGS = {
    "as in the papers": nt.TrainConfig(epochs=2, max_lr=0.1, batch_size=32, clip_norm=0.2),
    "momentum, decay, no clipping": nt.TrainConfig(
        2, 0.05, "triangular", momentum=0.9, weight_decay=0.01, batch_size=50, clip_norm=None
    ),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_networks_learn_what_each_would_learn_alone(name, config):
    """Own initialisation, data and order of samples; a last batch that is not full; a few steps, so only rounding."""
    numbers, shape = range(3), SHAPES[name]
    networks, alone = ([build(name, number) for number in numbers] for _ in range(2))
    train = [data(120, 10 + number, shape) for number in numbers]
    test = [data(70, 20 + number, shape) for number in numbers]
    configs = [dataclasses.replace(config, seed=number) for number in numbers]
    together = train_together(networks, train, test, configs, progress=False)
    for index in numbers:
        expected = nt.train(alone[index], train[index], test[index], configs[index], progress=False, evaluate_every=0)
        result = together[index]
        for p, q in zip(networks[index].parameters(), alone[index].parameters(), strict=True):
            torch.testing.assert_close(p, q, atol=2e-6, rtol=1e-4)
        torch.testing.assert_close(result.step_losses, expected.step_losses, atol=1e-5, rtol=1e-5)
        assert result.test_loss == pytest.approx(expected.test_loss, rel=1e-4)
        assert result.train_loss == pytest.approx(expected.train_loss, rel=1e-4)
        assert result.test_accuracy == expected.test_accuracy and result.train_accuracy == expected.train_accuracy
        assert result.history.columns.tolist() == expected.history.columns.tolist()
        assert result.history.train_loss.tolist() == pytest.approx(expected.history.train_loss.tolist(), rel=1e-4)
        assert result.history.learning_rate.equals(expected.history.learning_rate)
        assert not networks[index].training


@pytest.mark.skipif(not _has_bfloat16(torch.device("cpu")), reason="the processor has no bfloat16 arithmetic")
def test_networks_learn_in_bfloat16_what_each_would_learn_alone():
    config = nt.TrainConfig(epochs=1, max_lr=0.1, batch_size=32, precision="bfloat16")
    networks, alone, others = ([build("lenet", number) for number in range(2)] for _ in range(3))
    train = [data(64, 10 + number, SHAPES["lenet"]) for number in range(2)]
    together = train_together(networks, train, train, [config] * 2, progress=False)
    for network, other, pair, result in zip(alone, others, train, together, strict=True):
        expected = nt.train(network, pair, pair, config, progress=False)
        # Outputs of about 0.3 have a rounding error of 2e-3 at most in bfloat16, whose significands have 8 bits.
        torch.testing.assert_close(result.step_losses, expected.step_losses, atol=2e-3, rtol=0)
        single = nt.train(other, pair, pair, dataclasses.replace(config, precision="float32"), progress=False)
        assert not torch.equal(result.step_losses, single.step_losses)


def test_one_network_that_diverges_leaves_the_others_as_they_are():
    networks, alone = ([build("mlp", number) for number in range(3)] for _ in range(2))
    train, test = ([data(60, seed, (8, 8)) for seed in seeds] for seeds in ((0, 1, 2), (3, 4, 5)))
    train[1] = (train[1][0] * 1e30, train[1][1])
    configs = [nt.TrainConfig(2, 0.1, clip_norm=None, batch_size=20, seed=number) for number in range(3)]
    results = train_together(networks, train, test, configs, progress=False)
    assert all(math.isnan(getattr(results[1], key)) for key in ("train_loss", "test_loss", "train_accuracy"))
    for index in (0, 2):
        expected = nt.train(alone[index], train[index], test[index], configs[index], progress=False)
        assert results[index].test_loss == pytest.approx(expected.test_loss, rel=1e-4)


def test_which_networks_can_be_trained_together():
    x = torch.zeros(2, 1, 32, 32)
    allowed = {name: can_train_together(nt.build(name), x) for name in ("logreg", "mlp", "lenet", "vgg11", "resnet18")}
    assert allowed == {"logreg": True, "mlp": True, "lenet": True, "vgg11": False, "resnet18": False}

    class Functional(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(nn.functional.dropout(x.flatten(1), 0.5, self.training))

    class Deciding(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x.flatten(1) if x.sum() > 0 else -x.flatten(1))

    for kind in (Functional, Deciding):
        network = seeded(functools.partial(kind, 1024, 2))
        assert not can_train_together(network, x) and network.training
    assert can_train_together(seeded(two_outputs), x[..., :8, :8])


def test_a_sweep_that_trains_several_at_once_agrees_with_one_that_does_not(tmp_path):
    directions = {number: nt.random_direction((8, 8), number) for number in range(3)}
    arguments = {
        "directions": directions,
        "num_train": 200,
        "num_test": 100,
        "config": nt.TrainConfig(epochs=2, batch_size=32),
        "seeds": (0, 1),
        "loss_level": 0.68,
        "views": {"mirrored": lambda x: x.flip(-1)},
        "device": "cpu",
        "progress": False,
    }
    single = nt.sweep("mlp", **arguments)
    # The journal holds one, so the groups are of four and of one.
    nt.sweep("mlp", **arguments | {"directions": {1: directions[1]}, "seeds": [1]}, journal=tmp_path / "j.sqlite")
    several = nt.sweep("mlp", **arguments, networks_at_once=4, journal=tmp_path / "j.sqlite")
    assert several[["direction", "seed"]].equals(single[["direction", "seed"]])
    for name in ("train_loss", "test_loss"):
        assert several[name].tolist() == pytest.approx(single[name].tolist(), rel=1e-4)
    for name in ("train_accuracy", "test_accuracy", "test_accuracy_mirrored"):
        # One sample on the boundary may change sides.
        assert several[name].tolist() == pytest.approx(single[name].tolist(), abs=0.011)
    assert several.steps.tolist() == single.steps.tolist() and several.steps.notna().all()
    diverging = nt.TrainConfig(epochs=9, max_lr=1e30, clip_norm=None, schedule="constant")
    table = nt.sweep("mlp", **arguments | {"config": diverging}, networks_at_once=6)
    assert table[["test_loss", "train_accuracy", "test_accuracy_mirrored", "steps"]].isna().all(axis=None)


NETWORKS = [build("mlp", number) for number in range(2)]
X, Y = data(4, 0, (8, 8))
PAIRS = [(X, Y)] * 2
SAME = [nt.TrainConfig(epochs=1)] * 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], [], [], []), ValueError, "0 in networks, 0 in train_data"),
        ((NETWORKS, PAIRS, PAIRS[:1], SAME), ValueError, "2 in train_data, 1 in test_data, 2 in configs"),
        (([NETWORKS[0]] * 2, PAIRS, PAIRS, SAME), ValueError, "the same network twice"),
        (([NETWORKS[0], len], PAIRS, PAIRS, SAME), TypeError, "type builtin_function"),
        (([NETWORKS[0], build("logreg", 0)], PAIRS, PAIRS, SAME), ValueError, "different architectures"),
        ((NETWORKS, PAIRS, PAIRS, [SAME[0], nt.TrainConfig(epochs=2)]), ValueError, "the same but for the seeds"),
        ((NETWORKS, [(X, Y), (X[:3], Y[:3])], PAIRS, SAME), ValueError, "train_data of shapes"),
        ((NETWORKS, PAIRS, [(X, Y), X], SAME), TypeError, "expected a pair of tensors"),
        ((NETWORKS, PAIRS, [(X, Y + 5)] * 2, SAME), ValueError, "the network has 2 outputs"),
        (([nn.Sequential(n, nn.Dropout()) for n in NETWORKS], PAIRS, PAIRS, SAME), ValueError, "use nadtools.train"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        train_together(*arguments, progress=False)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"networks_at_once": 2, "architecture": "resnet18", "width": 0.05}, ValueError, "cannot be trained at once"),
    ],
)
def test_bad_input_of_a_sweep(arguments, error, message):
    with pytest.raises(error, match=message):
        nt.sweep(**{"architecture": "mlp", "directions": [X[0, 0]], "device": "cpu", "progress": False} | arguments)
