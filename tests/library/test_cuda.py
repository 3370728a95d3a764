"""What must hold on a GPU: python -m pytest -m cuda. Skipped where there is none."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import nadtools as nt
from nadtools.ensembles import train_together

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device"),
]


@pytest.mark.parametrize("estimator", ["secant", "gradient", "mixed"])
def test_estimates_agree_with_the_cpu(estimator):
    """The same networks and points: only rounding differs, as TF32 is off."""
    on_cpu, on_gpu = (
        nt.estimate_nads("lenet", 3, estimator, num_probes=2, device=device, progress=False)
        for device in ("cpu", "cuda")
    )
    difference = (on_gpu.covariance() - on_cpu.covariance()).norm() / on_cpu.covariance().norm()
    assert float(difference) < 1e-4
    assert on_gpu.vectors.device.type == "cpu" and on_gpu.metadata["device"].startswith("cuda")


def test_samples_are_drawn_on_the_device():
    v = nt.fourier_atom((32, 32), (3, 4))
    x, y = nt.LinearlySeparable(v, epsilon=0.5, sigma=3.0).sample(5000, seed=1, device="cuda")
    assert x.is_cuda and y.is_cuda
    along = x.flatten(1).double() @ v.flatten().double().cuda()
    torch.testing.assert_close(along, 0.5 * (2 * y - 1).double(), atol=1e-4, rtol=0)
    assert float(x.std()) == pytest.approx(3.0, rel=0.01)
    assert torch.equal(
        nt.LinearlySeparable(v).sample(9, device="cuda")[0], nt.LinearlySeparable(v).sample(9, device="cuda")[0]
    )


def test_training_on_the_device_learns_what_it_learns_on_the_cpu():
    problem = nt.LinearlySeparable(nt.fourier_atom((32, 32), (4, 0), math.pi / 2), epsilon=1.0, sigma=1.0)
    train, test = (problem.sample(3000, seed, device="cuda") for seed in (0, 1))
    network = nt.build("lenet")
    result = nt.train(network, train, test, nt.TrainConfig(epochs=15), progress=False, evaluate_every=0)
    assert result.test_accuracy > 0.95
    assert next(network.parameters()).is_cuda


def test_nothing_waits_for_the_device_inside_an_epoch():
    problem = nt.LinearlySeparable(nt.fourier_atom((32, 32), (4, 0)))
    x, y = problem.sample(512, device="cuda")
    network = nt.build("mlp").cuda()
    calls = {"count": 0}

    def stop_after_warm_up(_: dict[str, float]) -> None:
        calls["count"] += 1
        torch.cuda.set_sync_debug_mode("warn" if calls["count"] == 1 else "default")

    try:
        with pytest.warns(UserWarning, match="synchroniz") as caught:
            nt.train(network, (x, y), (x, y), nt.TrainConfig(epochs=2, batch_size=8), progress=False,
                     evaluate_every=0, callback=stop_after_warm_up)  # fmt: skip
    finally:
        torch.cuda.set_sync_debug_mode("default")
    # A few at the end of the epoch, not one for each of its 64 batches.
    assert sum("synchroniz" in str(w.message) for w in caught) < 16


def test_bfloat16_changes_accuracies_no_more_than_another_seed_does():
    """A network with batch normalisation; channels-last in both cases."""
    problem = nt.LinearlySeparable(nt.fourier_atom((32, 32), (4, 0), math.pi / 2), epsilon=1.0, sigma=1.5)
    train, test = (problem.sample(4000, seed, device="cuda") for seed in (0, 1))
    accuracies: dict[Any, list[float]] = {"float32": [], "bfloat16": []}
    for precision, found in accuracies.items():
        for seed in range(4):
            network = nt.build("resnet18", width=0.25, seed=seed)
            config = nt.TrainConfig(epochs=4, max_lr=0.1, momentum=0.9, seed=seed, precision=precision)
            result = nt.train(network, train, test, config, evaluate_every=0, progress=False)
            assert result.step_losses.dtype == torch.float32
            assert all(p.dtype == torch.float32 for p in network.parameters())
            found.append(result.test_accuracy)
    single, half = map(torch.tensor, accuracies.values())
    # Four trainings each: their means differ by less than three standard errors, with a floor for lucky spreads.
    error = float((single.var() / 4 + half.var() / 4).sqrt())
    assert abs(float(single.mean() - half.mean())) < 3 * error + 0.01
    assert float(single.mean()) > 0.6


def test_networks_trained_at_once_learn_what_they_learn_alone():
    numbers = range(6)
    problem = nt.LinearlySeparable(nt.fourier_atom((32, 32), (4, 0), math.pi / 2), epsilon=1.0, sigma=1.0)
    train = [problem.sample(3000, seed, device="cuda") for seed in numbers]
    test = [problem.sample(3000, 100 + seed, device="cuda") for seed in numbers]
    configs = [nt.TrainConfig(epochs=10, seed=seed) for seed in numbers]
    networks, alone = ([nt.build("lenet", seed=seed) for seed in numbers] for _ in range(2))
    together = train_together(networks, train, test, configs, progress=False)
    single = [
        nt.train(*parts, progress=False, evaluate_every=0) for parts in zip(alone, train, test, configs, strict=True)
    ]
    for result, expected in zip(together, single, strict=True):
        # The first steps differ by rounding (TF32 in convolutions) alone.
        torch.testing.assert_close(result.step_losses[:5], expected.step_losses[:5], atol=2e-3, rtol=0)
    means = [sum(result.test_accuracy for result in results) / len(numbers) for results in (together, single)]
    assert means[0] == pytest.approx(means[1], abs=0.03) and means[1] > 0.9


def test_a_sweep_on_the_device(tmp_path):
    directions = {f: nt.fourier_atom((32, 32), f, math.pi / 2) for f in [(1, 0), (4, 0), (8, 0)]}
    arguments = {"sigma": 1.0, "num_train": 500, "num_test": 500, "config": nt.TrainConfig(epochs=2), "progress": False}
    table = nt.sweep(
        "lenet", directions, **arguments, seeds=range(6), journal=tmp_path / "j.sqlite"
    )  # 16 and 2 at once
    # They are trained in groups of 16 and 2.
    assert len(table) == 18 and set(table.device) == {"cuda"} and table.test_accuracy.between(0.3, 1).all()
    # A journal that was begun on a CPU is finished on a GPU.
    nt.sweep("resnet18", [directions[1, 0]], **arguments, width=0.1, device="cpu", journal=tmp_path / "k.sqlite")
    mixed = nt.sweep("resnet18", list(directions.values()), **arguments, width=0.1, journal=tmp_path / "k.sqlite")
    assert mixed.device.tolist() == ["cpu", "cuda", "cuda"]
