"""How long it takes to know the NADs of LeNet and ResNet-18: one image at a time, by exact gradients, by nadtools, and
with no network at all.

Run by ``make benchmark``, not by the ordinary tests: their file names start with ``test_``. Nothing asserts a time.
Times are processor time of a single thread, which other programs on the same machine disturb little. What is measured
beside the times, the energy that a number of networks captures, stands in each benchmark's ``extra_info``.

The reference is what the authors published, where it is at hand (see :mod:`companion.published`), and otherwise an
independent estimate of ours from more networks; ``extra_info`` says which. ``NADTOOLS_BENCHMARK=smoke`` only shows, on
small images and narrow networks, that everything runs.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from companion import published
from torch import Tensor, nn

import nadtools as nt
from nadtools.architectures import symmetry_group
from nadtools.device import derive_seed
from nadtools.moments import GradientMoments, gradients, secants
from nadtools.output_layer import OutputLayer, find_output_layer

SMOKE = os.environ.get("NADTOOLS_BENCHMARK") == "smoke"
OPTIONS: dict[str, Any] = {"image_size": (16, 16), "width": 0.25} if SMOKE else {"image_size": (32, 32)}
SHAPE = (1, *OPTIONS["image_size"])
DIMENSION = math.prod(SHAPE)
SCALE = 100.0
BATCH_SIZE = 64
FIRST = 50  # the energy is that of the first 50 directions
FRESH, POINTS, RESAMPLED, REFERENCE = 1_000, 2_000, 3_000, 4_000  # seeds, apart from those of the timed rounds

pytestmark = [pytest.mark.benchmark(timer=time.process_time), pytest.mark.timeout(0)]


@dataclasses.dataclass(frozen=True)
class Case:
    """How much of each kind of work an architecture can afford."""

    architecture: str
    num_networks: int  # of one estimate by nadtools
    rounds: int  # of the straightforward method
    estimates: int  # rounds of nadtools
    straightforward: tuple[int, ...]  # numbers of fresh networks
    gradients: tuple[int, ...]
    averaged: tuple[int, ...]
    averaged_gradients: int
    reference: int  # networks of our own reference


CASES = {
    case.architecture: case
    for case in (
        Case(
            "lenet",
            num_networks=20,
            rounds=5,
            estimates=5,
            straightforward=(100, 200, 500, 1_000, 2_000, 5_000, 6_000),
            gradients=(100, 1_000, 5_000),
            averaged=(1, 2, 5, 10, 20, 50, 100),
            averaged_gradients=100,
            reference=500,
        ),
        Case(
            "resnet18",
            num_networks=10,
            rounds=2,
            estimates=1,
            straightforward=(),
            gradients=(100, 200),
            averaged=(1, 2, 5, 10),
            averaged_gradients=4,
            reference=20,
        ),
    )
}
SMOKE_CASES = {
    name: Case(
        name,
        num_networks=2,
        rounds=1,
        estimates=1,
        straightforward=tuple(count for count in (20, 40) if case.straightforward),
        gradients=(20, 40),
        averaged=(1, 2),
        averaged_gradients=2,
        reference=2,
    )
    for name, case in CASES.items()
}
RESAMPLED_COUNTS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)


@pytest.fixture(params=list(CASES), scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    return (SMOKE_CASES if SMOKE else CASES)[request.param]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# ---------------------------------------------------------------------------------------------------------------------
# What is timed
# ---------------------------------------------------------------------------------------------------------------------


def fresh_network(architecture: str, seed: int) -> nn.Module:
    return nt.build(architecture, num_classes=1, seed=seed, **OPTIONS).eval().requires_grad_(False)


def normal_point(seed: int) -> Tensor:
    return torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed))


def secant_one_image_at_a_time(architecture: str, seed: int) -> Tensor:
    """As in the authors' code: 2,048 images, each alone through a fresh network; one point for all networks."""
    network, point = fresh_network(architecture, seed), normal_point(POINTS)
    secant = torch.empty(DIMENSION)
    with torch.no_grad():
        for pixel in range(DIMENSION):
            step = torch.zeros(DIMENSION)
            step[pixel] = SCALE
            step = step.view(SHAPE)
            secant[pixel] = (network((point + step)[None]) - network((point - step)[None])).item() / (2 * SCALE)
    return secant


def exact_gradient(architecture: str, seed: int) -> Tensor:
    """A backward pass of one image, at a point drawn for each network."""
    return gradients(fresh_network(architecture, seed), normal_point(derive_seed(POINTS, seed)), 1)[:, 0]


def nads_of(*arguments: Any, **options: Any) -> nt.NADs:
    return nt.estimate_nads(*arguments, progress=False, **OPTIONS, **options)


def test_straightforward(benchmark, case: Case) -> None:
    secant = benchmark.pedantic(secant_one_image_at_a_time, setup=seeds(case), rounds=case.rounds)
    # The curve below puts many images through a network at once: the same secants to rounding, in less time.
    at_once = batched_secant(case.architecture, case.rounds - 1)
    assert torch.allclose(secant, at_once, rtol=1e-2, atol=1e-3 * float(at_once.abs().max()))
    describe(benchmark, case, "straightforward")
    if case.straightforward:
        fresh = (batched_secant(case.architecture, derive_seed(FRESH, index)) for index in itertools.count())
        benchmark.extra_info["curve"] = curve_of_vectors(fresh, case.straightforward, reference(case)[0])
    jacobians = bodies(case)[: case.num_networks]
    benchmark.extra_info["resampled"] = resampled_curve(jacobians)
    benchmark.extra_info["resampled_bodies"] = len(jacobians)


def test_exact_gradient(benchmark, case: Case) -> None:
    benchmark.pedantic(exact_gradient, setup=seeds(case), rounds=20)
    describe(benchmark, case, "gradient")
    compared_with = reference(case)[0]
    fresh = (exact_gradient(case.architecture, derive_seed(FRESH, index)) for index in itertools.count())
    benchmark.extra_info["curve"] = curve_of_vectors(fresh, case.gradients, compared_with)
    # With both averagings, to see where the curve leads.
    limit = nads_of(case.architecture, case.averaged_gradients, "gradient")
    benchmark.extra_info["averaged"] = {
        "networks": [case.averaged_gradients],
        "energy": [nt.captured_energy(limit.vectors, compared_with, FIRST)],
    }


def test_nadtools(benchmark, case: Case) -> None:
    estimates = []

    def estimate(architecture: str, seed: int) -> None:
        estimates.append(nads_of(architecture, case.num_networks, seed=seed))

    benchmark.pedantic(estimate, setup=seeds(case), rounds=case.estimates)
    describe(benchmark, case, "nadtools")
    compared_with = reference(case)[0]
    energies = [nt.captured_energy(nads.vectors, compared_with, FIRST) for nads in estimates]
    assert min(energies) > benchmark.extra_info["chance"]
    benchmark.extra_info.update(num_networks=case.num_networks, energies=energies)
    moments = moments_like(case)
    energy = []
    for number, jacobian in enumerate(bodies(case), start=1):
        moments.add(number, jacobian)
        if number in case.averaged:
            energy.append(nt.captured_energy(images(moments.eigendecomposition().vectors), compared_with, FIRST))
    benchmark.extra_info["curve"] = {"networks": list(case.averaged), "energy": energy}


def test_no_network(benchmark, case: Case) -> None:
    nads = benchmark.pedantic(nt.analytic_nads, args=(case.architecture,), kwargs=OPTIONS, rounds=5)
    describe(benchmark, case, "no network")
    energy = nt.captured_energy(nads.vectors, reference(case)[0], FIRST)
    assert energy > benchmark.extra_info["chance"]
    benchmark.extra_info["energies"] = [energy]


def test_no_network_for_a_large_image(benchmark) -> None:
    side = 32 if SMOKE else 224
    what = {"image_size": (side, side), "num_directions": FIRST}
    benchmark.pedantic(nt.analytic_nads, args=("lenet",), kwargs=what, rounds=5)
    size = "smoke" if SMOKE else "full"
    benchmark.extra_info.update(architecture="lenet", method=f"no network, {side} × {side}", size=size)


# ---------------------------------------------------------------------------------------------------------------------
# What is measured beside
# ---------------------------------------------------------------------------------------------------------------------


def seeds(case: Case):
    """The arguments of each round: a fresh network every time."""
    counter = itertools.count()
    return lambda: ((case.architecture, next(counter)), {})


@functools.cache
def reference(case: Case) -> tuple[nt.NADs, str]:
    if not SMOKE and case.architecture in published.available():
        return published.load_nads(case.architecture), "the authors' published NADs (10,000 networks)"
    ours = nads_of(case.architecture, case.reference, seed=REFERENCE)
    return ours, f"an independent estimate by nadtools ({case.reference} networks)"


def describe(benchmark, case: Case, method: str) -> None:
    compared_with, name = reference(case)
    symmetrised = moments_like(case)
    symmetrised.add(0, compared_with.vectors.flatten(1).T * compared_with.eigenvalues.sqrt())
    ceiling = images(symmetrised.eigendecomposition().vectors)
    values = compared_with.eigenvalues
    benchmark.extra_info.update(
        architecture=case.architecture,
        method=method,
        size="smoke" if SMOKE else "full",
        first=FIRST,
        reference=name,
        chance=float(values.mean() * FIRST / values[:FIRST].sum()),
        ceiling=nt.captured_energy(ceiling, compared_with, FIRST),
    )


def batched_secant(architecture: str, seed: int) -> Tensor:
    network = fresh_network(architecture, seed).to(memory_format=torch.channels_last)
    return secants(network, normal_point(POINTS), SCALE, BATCH_SIZE)[:, 0]


@functools.cache
def bodies(case: Case) -> list[Tensor]:
    """Secants of the features of fresh networks: (D, k) for each, the output weights' standard deviation included."""
    found = []
    for index in range(max(case.averaged)):
        network = fresh_network(case.architecture, derive_seed(FRESH, index)).to(memory_format=torch.channels_last)
        cut = find_output_layer(network, SHAPE)
        assert isinstance(cut, OutputLayer)
        point = normal_point(derive_seed(POINTS, index))
        found.append(secants(cut.features, point, SCALE, BATCH_SIZE) / (3 * cut.layer.in_features) ** 0.5)
    return found


def resampled_curve(jacobians: list[Tensor]) -> dict[str, list[float]]:
    """Energy of single secants whose output weights are drawn anew, on a few bodies, against these bodies' own matrix.

    Fresh networks differ in their bodies, too. So this converges sooner than they do: the number of networks that it
    needs is a lower bound, as far as a few bodies stand for all.
    """
    own = GradientMoments(SHAPE, num_blocks=1)
    for index, jacobian in enumerate(jacobians):
        own.add(index, jacobian)
    exact = own.eigendecomposition()
    compared_with = nt.NADs.from_vectors(images(exact.vectors), exact.values)
    source = torch.Generator().manual_seed(RESAMPLED)

    def vectors() -> Iterator[Tensor]:
        for jacobian in itertools.cycle(jacobians):
            # Uniform, as PyTorch draws output weights, of variance 1.
            weights = (2 * torch.rand(jacobian.shape[1], generator=source) - 1) * 3**0.5
            yield jacobian @ weights

    return curve_of_vectors(vectors(), RESAMPLED_COUNTS, compared_with)


def curve_of_vectors(
    vectors: Iterator[Tensor], counts: tuple[int, ...], compared_with: nt.NADs
) -> dict[str, list[float]]:
    """Energy captured by the second moment of the first n vectors, for each n of the counts."""
    total, energy = torch.zeros(DIMENSION, DIMENSION, dtype=torch.float64), []
    for start, stop in itertools.pairwise((0, *counts)):
        block = torch.stack(list(itertools.islice(vectors, stop - start))).double()
        total += block.T @ block
        leading = torch.linalg.eigh(total).eigenvectors.flip(1).T
        energy.append(nt.captured_energy(images(leading), compared_with, FIRST))
    return {"networks": list(counts), "energy": energy}


def moments_like(case: Case) -> GradientMoments:
    return GradientMoments(SHAPE, symmetry_group(case.architecture), num_blocks=1)


def images(vectors: Tensor) -> Tensor:
    return vectors.reshape(-1, *SHAPE[1:])
