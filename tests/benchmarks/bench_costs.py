"""What the parts of an estimate cost, beside the images that have to go through the networks in any case.

Run by ``make benchmark``, after the fashion of ``bench_nads.py``: processor time of a single thread, nothing asserted.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torchvision
from torch import Tensor, nn

import nadtools as nt
from nadtools.architectures import symmetry_group
from nadtools.device import isolated_random_state
from nadtools.moments import GradientMoments, secants
from nadtools.output_layer import OutputLayer, find_output_layer
from nadtools.symmetries import SymmetryGroup

SMOKE = os.environ.get("NADTOOLS_BENCHMARK") == "smoke"
SIDE = 16 if SMOKE else 32
BATCH_SIZE = 128
NUM_NETWORKS = 20

pytestmark = [pytest.mark.benchmark(timer=time.process_time), pytest.mark.timeout(0)]


@dataclasses.dataclass(frozen=True)
class Case:
    """A network of evaluation mode, cut in front of its output layer, and a point for the secants."""

    network: nn.Module
    cut: OutputLayer
    point: Tensor
    group: SymmetryGroup
    rounds: int

    def moments(self) -> GradientMoments:
        return GradientMoments(tuple(self.point.shape), self.group)

    def jacobian(self) -> Tensor:
        return secants(self.cut.features, self.point, batch_size=BATCH_SIZE)


def named(name: str) -> tuple[nn.Module, SymmetryGroup]:
    return nt.build(name, image_size=(SIDE, SIDE)), symmetry_group(name)


# Channels, rounds, and what builds the network.
NETWORKS: dict[str, tuple[int, int, Callable[[], tuple[nn.Module, SymmetryGroup]]]] = {
    "MLP": (1, 20, lambda: named("mlp")),
    "LeNet": (1, 5, lambda: named("lenet")),
    "ResNet-18": (1, 1, lambda: named("resnet18")),
    "MobileNetV3 small, colour": (3, 3, lambda: (torchvision.models.mobilenet_v3_small(), "none")),
}


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.fixture(params=list(NETWORKS)[:2] if SMOKE else list(NETWORKS), scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    channels, rounds, build = NETWORKS[request.param]
    with isolated_random_state(0):
        network, group = build()
    network = network.eval().requires_grad_(False).to(memory_format=torch.channels_last)
    cut = find_output_layer(network, (channels, SIDE, SIDE))
    assert cut is not None
    return Case(network, cut, normal(channels, SIDE, SIDE), group, rounds)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def described(benchmark, request: pytest.FixtureRequest, case: Case) -> None:
    benchmark.extra_info.update(
        network=request.node.callspec.params["case"],
        part=request.node.originalname.removeprefix("test_"),
        size="smoke" if SMOKE else "full",
        num_networks=NUM_NETWORKS,
    )


def test_forward(benchmark, case: Case) -> None:
    """Two images for every pixel and channel, in batches, and nothing else."""
    batch = normal(BATCH_SIZE, *case.point.shape).contiguous(memory_format=torch.channels_last)

    def forward() -> None:
        with torch.no_grad():
            for _ in range(-(-2 * case.point.numel() // BATCH_SIZE)):
                case.network(batch)

    benchmark.pedantic(forward, rounds=case.rounds)


def test_secants(benchmark, case: Case) -> None:
    benchmark.pedantic(case.jacobian, rounds=case.rounds)


def test_add(benchmark, case: Case) -> None:
    moments, jacobian = case.moments(), case.jacobian()
    benchmark.pedantic(moments.add, args=(0, jacobian), rounds=case.rounds)


def test_eigenvectors(benchmark, case: Case) -> None:
    """Of all networks and of their halves, with standard errors: once for an estimate."""
    moments, jacobian = case.moments(), case.jacobian()
    for index in range(NUM_NETWORKS):
        moments.add(index, jacobian.roll(index, 0))

    def eigenvectors() -> Any:
        return moments.eigendecomposition(), moments.halves()

    benchmark.pedantic(eigenvectors, rounds=1)
