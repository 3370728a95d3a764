"""What is trained for chapter 11: directions on both sides of a step, waves on and off a lattice."""

from __future__ import annotations

import math

import pytest
import torch
from companion import chapter_11, experiments

import nadtools as nt


@pytest.mark.parametrize("network", [name for name, one in chapter_11.NETWORKS.items() if one.patch])
def test_four_waves_repeat_with_the_patch_and_four_do_not(network):
    side = chapter_11.NETWORKS[network].patch
    frequencies = experiments.EXPERIMENTS["lattice"].parameters("laptop", network=network)["frequencies"]
    repeat = []
    for frequency in frequencies:
        wave = nt.fourier_atom((32, 32), frequency, math.pi / 2)
        moved = (wave.roll(side, axis) for axis in (-2, -1))
        repeat.append(all(torch.allclose(wave, one, rtol=0, atol=1e-6) for one in moved))
    assert repeat == [True] * 4 + [False] * 4


@pytest.mark.parametrize("network", chapter_11.NETWORKS)
def test_half_of_the_directions_lie_before_the_step(network):
    indices = experiments.EXPERIMENTS["beyond"].parameters("laptop", network=network)["indices"]
    assert [index < chapter_11.NETWORKS[network].step for index in indices] == [True] * 4 + [False] * 4
    assert sorted(set(indices)) == indices


def test_two_estimates_of_a_vision_transformer_share_the_lattice(tmp_path):
    chosen = {"scale": "smoke", "network": "vit-4", "results_dir": tmp_path}
    experiments.run("spaces", progress=False, num_jobs=1, **chosen)
    spaces = experiments.load_table("spaces", **chosen)
    assert spaces["size"].tolist() == [16, 1008]
    assert spaces["overlap"].min() > 0.9 and spaces["alpha"][1] < 1e-3 * spaces["alpha"][0]
