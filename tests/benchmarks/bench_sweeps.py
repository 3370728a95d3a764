"""Trainings per minute on two cores: plain PyTorch loops with a DataLoader, and ``nadtools.sweep``.

LeNet trains on D(v) with the samples of figure 1 of *Neural Anisotropy Directions*; ResNet-18, at a quarter of its
width, takes a few steps there. The sweep does so in both precisions. All go from the drawing of the samples to the
accuracy on the test set, and report the accuracies that they reach. Times are wall time, since several processes work:
they mean something only where nothing else runs. The sweep's processes are started before it is timed; a DataLoader
starts its workers anew for each training, so there are plain loops without any, too. A plain loop has one thread, or as
many as PyTorch takes by default. Nothing asserts a time.

Run with ``python -m pytest tests/benchmarks/bench_sweeps.py``. ``NADTOOLS_BENCHMARK=smoke`` only shows that everything
runs; ``extra_info`` says which size it was.
"""

from __future__ import annotations

import dataclasses
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator

import joblib
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import resnet  # noqa: F401 - takes seconds to import, not to be timed

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
FEW_STEPS = Size(2, 2_560, FREQUENCIES[:2])
SMOKE = Size(1, 256, FREQUENCIES[:2])
SIZES = {
    "full": {"lenet": Size(4, 10_000, FREQUENCIES), "resnet18": FEW_STEPS},
    "smoke": {"lenet": SMOKE, "resnet18": SMOKE},
}
NAME = os.environ.get("NADTOOLS_BENCHMARK", "full")
ARCHITECTURES = tuple(SIZES[NAME])
OPTIONS = {"lenet": {}, "resnet18": {"width": 0.25}}


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


def plain_resnet18() -> nn.Module:
    return nt.build("resnet18", **OPTIONS["resnet18"])


PLAIN: dict[str, Callable[[], nn.Module]] = {"lenet": plain_lenet, "resnet18": plain_resnet18}


def plain_samples(v: Tensor, samples: int) -> TensorDataset:
    y = torch.randint(2, (samples,))
    noise = SIGMA * torch.randn(samples, v.numel())
    noise -= torch.outer(noise @ v.flatten(), v.flatten())
    x = EPSILON * torch.outer(2.0 * y - 1, v.flatten()) + noise
    return TensorDataset(x.reshape(-1, 1, *v.shape), y)


def plain_training(architecture: str, v: Tensor, workers: int) -> float:
    """As a tutorial would have it; its workers live for the whole training."""
    size = SIZES[NAME][architecture]
    loading = {"batch_size": BATCH_SIZE, "num_workers": workers, "persistent_workers": workers > 0}
    train_loader = DataLoader(plain_samples(v, size.samples), shuffle=True, **loading)
    test_loader = DataLoader(plain_samples(v, size.samples), **loading)
    network = PLAIN[architecture]()
    optimizer = torch.optim.SGD(network.parameters(), lr=MAX_LR)
    num_steps = size.epochs * len(train_loader)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / num_steps)
    for _ in range(size.epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x), y).backward()
            nn.utils.clip_grad_norm_(network.parameters(), CLIP_NORM)
            optimizer.step()
            schedule.step()
    network.eval()
    with torch.no_grad():
        correct = sum(int((network(x).argmax(1) == y).sum()) for x, y in test_loader)
    return correct / size.samples


@pytest.mark.parametrize("workers", [0, NUM_JOBS])
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_plain_loop(benchmark, architecture: str, threads: int, workers: int) -> None:
    torch.set_num_threads(threads)

    def trainings() -> list[float]:
        with nt.device.isolated_random_state(0):
            return [plain_training(architecture, v, workers) for v in directions(architecture).values()]

    accuracies = benchmark.pedantic(trainings, rounds=1)
    describe(benchmark, architecture, "a plain loop", accuracies)
    benchmark.extra_info.update(threads=threads, loader_workers=workers)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_sweep(benchmark, architecture: str, precision: str) -> None:
    if precision == "bfloat16" and not nt.training._has_bfloat16(torch.device("cpu")):
        pytest.skip("the processor has no bfloat16 arithmetic")
    size = SIZES[NAME][architecture]
    config = nt.TrainConfig(
        size.epochs, MAX_LR, "linear", batch_size=BATCH_SIZE, clip_norm=CLIP_NORM, precision=precision
    )

    def sweep() -> list[float]:
        table = nt.sweep(
            architecture,
            directions(architecture),
            epsilon=EPSILON,
            sigma=SIGMA,
            num_train=size.samples,
            num_test=size.samples,
            config=config,
            num_jobs=NUM_JOBS,
            device="cpu",
            progress=False,
            **OPTIONS[architecture],
        )
        return table.test_accuracy.tolist()

    start_processes()
    accuracies = benchmark.pedantic(sweep, rounds=1)
    method = "nadtools.sweep" if precision == "float32" else f"nadtools.sweep, {precision}"
    describe(benchmark, architecture, method, accuracies)
    benchmark.extra_info.update(processes=NUM_JOBS, precision=precision)


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


def directions(architecture: str) -> dict[tuple[int, int], Tensor]:
    frequencies = SIZES[NAME][architecture].frequencies
    return {frequency: nt.fourier_atom((32, 32), frequency, math.pi / 2) for frequency in frequencies}


def describe(benchmark, architecture: str, method: str, accuracies: list[float]) -> None:
    seconds = benchmark.stats.stats.mean
    benchmark.extra_info.update(
        method=method,
        size=NAME,
        architecture=architecture,
        options=OPTIONS[architecture],
        epsilon=EPSILON,
        sigma=SIGMA,
        **dataclasses.asdict(SIZES[NAME][architecture]),
        trainings_per_minute=60 * len(accuracies) / seconds,
        accuracies=accuracies,
        mean_accuracy=statistics.fmean(accuracies),
    )
    # Logistic regression would be perfect; LeNet is so where it is biased to, and at chance where it is not.
    assert NAME == "smoke" or architecture != "lenet" or accuracies[0] > accuracies[-1]
