"""Trainings of LeNet per minute on two cores: plain PyTorch loops with a DataLoader, and ``nadtools.sweep``.

All train on D(v) with the samples of figure 1 of *Neural Anisotropy Directions*, from the drawing of the samples to the
accuracy on the test set, and all report the accuracies that they reach. Times are wall time, since several processes
work: they mean something only where nothing else runs. The sweep's processes are started before it is timed; a
DataLoader starts its workers anew for each training, so there are plain loops without any, too. A plain loop has one
thread, or as many as PyTorch takes by default. Nothing asserts a time.

Run with ``python -m pytest tests/benchmarks/bench_sweeps.py``. ``NADTOOLS_BENCHMARK=smoke`` only shows that everything
runs; ``extra_info`` says which size it was.
"""

from __future__ import annotations

import dataclasses
import math
import os
import statistics
import time
from collections.abc import Iterator

import joblib
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import nadtools as nt

EPSILON, SIGMA = 1.0, 3.0
BATCH_SIZE, MAX_LR, CLIP_NORM = 128, 0.5, 0.5
NUM_JOBS = 2
THREADS = sorted({1, torch.get_num_threads()})  # the second: PyTorch's default on this machine

pytestmark = [pytest.mark.benchmark(timer=time.perf_counter), pytest.mark.timeout(0)]


@dataclasses.dataclass(frozen=True)
class Size:
    """How much is measured."""

    epochs: int
    samples: int  # to train on, and as many to test on
    frequencies: tuple[tuple[int, int], ...]  # one training each


# Where LeNet reaches high, middling and chance accuracy.
FREQUENCIES = ((-1, 0), (-4, 0), (0, -4), (8, 0))
SIZES = {
    "full": Size(4, 10_000, FREQUENCIES),
    "smoke": Size(1, 256, FREQUENCIES[:2]),
}
NAME = os.environ.get("NADTOOLS_BENCHMARK", "full")
SIZE = SIZES[NAME]


@pytest.fixture(autouse=True)
def threads_are_put_back() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


# ---------------------------------------------------------------------------------------------------------------------
# What is timed
# ---------------------------------------------------------------------------------------------------------------------


def plain_lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 2),
    )  # fmt: skip


def plain_samples(v: Tensor) -> TensorDataset:
    y = torch.randint(2, (SIZE.samples,))
    noise = SIGMA * torch.randn(SIZE.samples, v.numel())
    noise -= torch.outer(noise @ v.flatten(), v.flatten())
    x = EPSILON * torch.outer(2.0 * y - 1, v.flatten()) + noise
    return TensorDataset(x.reshape(-1, 1, *v.shape), y)


def plain_training(v: Tensor, workers: int) -> float:
    """As a tutorial would have it; its workers live for the whole training."""
    loading = {"batch_size": BATCH_SIZE, "num_workers": workers, "persistent_workers": workers > 0}
    train_loader = DataLoader(plain_samples(v), shuffle=True, **loading)
    test_loader = DataLoader(plain_samples(v), **loading)
    network = plain_lenet()
    optimizer = torch.optim.SGD(network.parameters(), lr=MAX_LR)
    num_steps = SIZE.epochs * len(train_loader)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / num_steps)
    for _ in range(SIZE.epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x), y).backward()
            nn.utils.clip_grad_norm_(network.parameters(), CLIP_NORM)
            optimizer.step()
            schedule.step()
    network.eval()
    with torch.no_grad():
        correct = sum(int((network(x).argmax(1) == y).sum()) for x, y in test_loader)
    return correct / SIZE.samples


@pytest.mark.parametrize("workers", [0, NUM_JOBS])
@pytest.mark.parametrize("threads", THREADS)
def test_plain_loop(benchmark, threads: int, workers: int) -> None:
    torch.set_num_threads(threads)

    def trainings() -> list[float]:
        with nt.device.isolated_random_state(0):
            return [plain_training(v, workers) for v in directions().values()]

    accuracies = benchmark.pedantic(trainings, rounds=1)
    describe(benchmark, "a plain loop", accuracies)
    benchmark.extra_info.update(threads=threads, loader_workers=workers)


def test_sweep(benchmark) -> None:
    config = nt.TrainConfig(SIZE.epochs, MAX_LR, "linear", batch_size=BATCH_SIZE, clip_norm=CLIP_NORM)

    def sweep() -> list[float]:
        table = nt.sweep(
            "lenet",
            directions(),
            epsilon=EPSILON,
            sigma=SIGMA,
            num_train=SIZE.samples,
            num_test=SIZE.samples,
            config=config,
            num_jobs=NUM_JOBS,
            device="cpu",
            progress=False,
        )
        return table.test_accuracy.tolist()

    start_processes()
    accuracies = benchmark.pedantic(sweep, rounds=1)
    describe(benchmark, "nadtools.sweep", accuracies)
    benchmark.extra_info.update(processes=NUM_JOBS)


# ---------------------------------------------------------------------------------------------------------------------
# What is measured beside
# ---------------------------------------------------------------------------------------------------------------------


def start_processes() -> None:
    """Those of joblib, which the sweep then finds: each has imported this file, and so PyTorch."""
    found: set[int] = set()
    while len(found) < NUM_JOBS:
        found |= set(joblib.Parallel(NUM_JOBS)(joblib.delayed(process_id)() for _ in range(2 * NUM_JOBS)))


def process_id() -> int:
    time.sleep(0.2)
    return os.getpid()


def directions() -> dict[tuple[int, int], Tensor]:
    return {frequency: nt.fourier_atom((32, 32), frequency, math.pi / 2) for frequency in SIZE.frequencies}


def describe(benchmark, method: str, accuracies: list[float]) -> None:
    seconds = benchmark.stats.stats.mean
    benchmark.extra_info.update(
        method=method,
        size=NAME,
        architecture="lenet",
        epsilon=EPSILON,
        sigma=SIGMA,
        **dataclasses.asdict(SIZE),
        trainings_per_minute=60 * len(accuracies) / seconds,
        accuracies=accuracies,
        mean_accuracy=statistics.fmean(accuracies),
    )
    # Logistic regression would be perfect; LeNet is so where it is biased to, and at chance where it is not.
    assert NAME == "smoke" or accuracies[0] > accuracies[-1]
