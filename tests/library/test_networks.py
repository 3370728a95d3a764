"""What a computation is: no checkpoint or journal takes another network's numbers for its own."""

from __future__ import annotations

import itertools

import pytest
import torch
from small_networks import SMALL, estimate, seeded
from torch import nn
from torch.nn import functional

import nadtools as nt
from nadtools.networks import check_independent_images, differences, fingerprint, network_source

IMAGE = (1, *SMALL)

# Parameter-free functions of maps (n, channels, h, w): pools, paddings, activations, normalisations, dropout.
FUNCTIONS = {
    "average pool": lambda x: functional.avg_pool2d(x, 2),
    "max pool": lambda x: functional.max_pool2d(x, 2),
    "power-average pool": lambda x: functional.lp_pool2d(x, 2.0, 2),
    "adaptive average pool": lambda x: functional.adaptive_avg_pool2d(x, 4),
    "adaptive max pool": lambda x: functional.adaptive_max_pool2d(x, 4),
    "zero padding": lambda x: functional.pad(x, (1, 1, 1, 1)),
    "reflected padding": lambda x: functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "repeated padding": lambda x: functional.pad(x, (1, 1, 1, 1), mode="replicate"),
    "circular padding": lambda x: functional.pad(x, (1, 1, 1, 1), mode="circular"),
    "nearest upsampling": lambda x: functional.interpolate(x, scale_factor=2, mode="nearest"),
    "bilinear upsampling": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "gelu": functional.gelu,
    "tanh gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "leaky relu, 0.02": lambda x: functional.leaky_relu(x, 0.02),
    "softplus": functional.softplus,
    "softplus, beta 2": lambda x: functional.softplus(x, beta=2),
    "identity": lambda x: x,
    "instance norm": functional.instance_norm,
    "dropout": lambda x: functional.dropout(x, 0.5),
    **{
        name: getattr(functional, name)
        for name in (
            *("relu", "relu6", "elu", "selu", "silu", "mish", "hardtanh", "hardswish", "hardsigmoid", "leaky_relu"),
            *("logsigmoid", "softsign", "softshrink", "hardshrink", "tanhshrink", "sigmoid", "tanh"),
        )
    },
}


class Hidden(nn.Module):
    """A network that does not show what it computes: a function is no part that PyTorch prints."""

    def __init__(self, function, outputs: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3)
        self.function = function
        self.output = nn.Linear(4, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Not a mean alone: it would hide how a map was pooled or padded.
        maps = self.function(self.convolution(x))
        weights = torch.linspace(-1, 1, maps[0, 0].numel(), dtype=maps.dtype).view(maps.shape[2:])
        return self.output((maps * weights).mean((2, 3)))


def described(factory) -> dict:
    source = network_source(factory, IMAGE, {}, chosen={}, caller="test")
    return fingerprint(source, source(0), IMAGE)


def test_every_pair_of_parameter_free_functions_is_told_apart():
    found = {name: described(lambda function=function: Hidden(function)) for name, function in FUNCTIONS.items()}
    alike = [pair for pair in itertools.combinations(found, 2) if not differences(found[pair[0]], found[pair[1]])]
    assert alike == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (nn.AvgPool2d(2), nn.MaxPool2d(2)),
        (nn.ReLU(), nn.ReLU6()),
        (nn.Dropout(0.1), nn.Dropout(0.2)),
        (nn.BatchNorm2d(4, momentum=0.1), nn.BatchNorm2d(4, momentum=0.2)),
        (nn.ZeroPad2d(1), nn.ReflectionPad2d(1)),
    ],
)
def test_modules_are_told_apart_by_what_pytorch_prints(first, second):
    assert "structure" in differences(described(lambda: Hidden(first)), described(lambda: Hidden(second)))


def test_the_same_network_is_recognised_by_other_threads_and_rounding():
    once = described(lambda: Hidden(functional.relu))
    torch.set_num_threads(2)
    try:
        again = described(lambda: Hidden(functional.relu))
    finally:
        torch.set_num_threads(1)
    assert differences(once, again) == []
    rounded = {**once, "outputs": [[value * (1 + 1e-6) for value in row] for row in once["outputs"]]}
    assert differences(once, rounded) == []
    moved = {**once, "outputs": [[value * 1.01 for value in row] for row in once["outputs"]]}
    assert differences(once, moved) == ["outputs"]


def test_a_checkpoint_refuses_other_build_options(tmp_path):
    arguments = {"width": 1 / 16, "image_size": (16, 16), "symmetries": "none", "checkpoint": tmp_path / "c.npz"}
    estimate("resnet18", 2, **arguments)
    with pytest.raises(ValueError, match=r"another computation .*build_options.strides"):
        estimate("resnet18", 4, strides=False, **arguments)


def test_a_checkpoint_refuses_another_lambda(tmp_path):
    checkpoint = tmp_path / "c.npz"
    estimate(lambda: Hidden(torch.relu), 2, checkpoint=checkpoint)
    estimate(lambda: Hidden(torch.relu), 3, checkpoint=checkpoint)
    with pytest.raises(ValueError, match=r"another computation .*outputs"):
        estimate(lambda: Hidden(torch.sin), 3, checkpoint=checkpoint)


def test_a_checkpoint_refuses_another_evaluation_point_under_the_same_name(tmp_path):
    checkpoint = tmp_path / "c.npz"

    def point(factor):
        return lambda source: factor * torch.randn(IMAGE, generator=source)

    estimate(lambda: Hidden(torch.relu), 2, evaluation_point=point(1.0), checkpoint=checkpoint)
    with pytest.raises(ValueError, match="first_evaluation_point"):
        estimate(lambda: Hidden(torch.relu), 4, evaluation_point=point(2.0), checkpoint=checkpoint)


def test_a_journal_refuses_another_lambda(tmp_path):
    arguments = {
        "num_train": 16,
        "num_test": 16,
        "config": nt.TrainConfig(epochs=1),
        "journal": tmp_path / "j.sqlite",
        "progress": False,
        "device": "cpu",
    }
    waves = [nt.fourier_atom(SMALL, (1, 0))]
    nt.sweep(lambda: Hidden(torch.relu, 2), waves, **arguments)
    with pytest.raises(ValueError, match=r"another computation .*outputs"):
        nt.sweep(lambda: Hidden(torch.sin, 2), waves, **arguments)


class Dropping(Hidden):
    """It drops at a rate that PyTorch does not print."""

    def __init__(self, rate: float) -> None:
        super().__init__(torch.relu)
        self.rate = rate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(functional.dropout(self.convolution(x).mean((2, 3)), self.rate, self.training))


def test_what_differs_in_training_only_is_seen():
    first, second = (described(lambda rate=rate: Dropping(rate)) for rate in (0.1, 0.5))
    assert differences(first, second) == ["outputs_in_training"]


class Interacting(nn.Module):
    """Its images share the statistics of their batch, in evaluation mode too."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, track_running_stats=False), nn.ReLU(), nn.Flatten()
        )
        self.output = nn.Linear(144, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.layers(x))


def test_networks_whose_images_interact_are_refused():
    x, y = nt.LinearlySeparable(nt.fourier_atom(SMALL, (1, 0))).sample(16, device="cpu")
    network = seeded(lambda: Interacting(2))
    for call in (
        lambda: check_independent_images(network.eval(), x),
        lambda: estimate(Interacting),
        lambda: nt.sweep(lambda: Interacting(2), [nt.fourier_atom(SMALL, (1, 0))], device="cpu", progress=False),
        lambda: nt.train(network, (x, y), (x, y), nt.TrainConfig(epochs=1), progress=False),
        lambda: nt.evaluate(network, (x, y)),
    ):
        with pytest.raises(ValueError, match="depends on the other images of its batch"):
            call()


class Tied(nn.Module):
    """Its output weights are a part of its body, too."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(64, 12)
        self.output = nn.Linear(12, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(torch.tanh(self.body(x.flatten(1))) * self.output.weight)


def test_shared_output_weights_are_not_averaged_out():
    with pytest.raises(ValueError, match="average_output_layer=False"):
        estimate(Tied)
    assert estimate(Tied, average_output_layer=False).metadata["output_weight_variance"] is None


def test_what_does_not_fit_into_memory_is_refused_before_any_computing(monkeypatch):
    drawn = []
    monkeypatch.setattr(nt.device, "available_memory", lambda device: 10**9)
    with pytest.raises(MemoryError, match=r"need about \d+\.\d GB.* 1\.0 GB are free; ask for the first ones by num"):
        estimate(lambda: drawn.append(1) or Hidden(torch.relu), image_size=(128, 128))
    assert drawn == []
    assert nt.device.available_memory(torch.device("cpu")) > 10**8
