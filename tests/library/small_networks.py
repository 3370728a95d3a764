"""A small network, and estimates of its NADs that take milliseconds."""

from __future__ import annotations

import torch
from torch import nn

import nadtools as nt

SMALL = (8, 8)


class Network(nn.Module):
    """A small network whose output layer is easy to vary."""

    def __init__(self, output: nn.Module | None = None, outputs: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh())
        self.output = output or nn.Linear(12, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.body(x))


def estimate(architecture, num_networks=6, **arguments) -> nt.NADs:
    arguments = {"image_size": SMALL, "progress": False, "device": "cpu"} | arguments
    return nt.estimate_nads(architecture, num_networks, **arguments)


def seeded(factory):
    with nt.device.isolated_random_state(0):
        return factory()


def network_seed(seed: int, index: int) -> int:
    """Of the network with this index in an estimate."""
    return nt.device.derive_seed(estimate_seed(seed), index)


def estimate_seed(seed: int) -> int:
    return nt.device.stream(seed, "networks of an estimate")
