"""Random streams carry their purpose, and contexts around a call change nothing."""

from __future__ import annotations

import contextlib

import numpy as np
import pandas as pd
import pytest
import torch
from companion.chapter_03 import descent
from small_networks import SMALL, Network, estimate, seeded

import nadtools as nt
from nadtools.device import DerivedSeed, derive_seed, stream
from nadtools.sweeps import unit_seeds
from nadtools.theory import pooling

CONFIG = nt.TrainConfig(epochs=2, batch_size=16)
WAVES = {f: nt.fourier_atom(SMALL, f) for f in [(1, 0), (2, 1)]}


def sweep(**arguments) -> pd.DataFrame:
    return nt.sweep(
        lambda: Network(outputs=2), WAVES, num_train=48, num_test=48, config=CONFIG, seeds=[0, 1], device="cpu",
        progress=False, **arguments,
    )  # fmt: skip


def test_no_two_uses_of_one_seed_share_a_stream(monkeypatch):
    seen: dict[str, set[int]] = {}
    name = ""
    manual_seed, seed_all = torch.Generator.manual_seed, torch.manual_seed

    class Spy(torch.Generator):
        def manual_seed(self, seed):
            seen[name].add(int(seed) % 2**32)  # what PyTorch's CPU generator uses of it
            return manual_seed(self, seed)

    def spy_on_all(seed):
        seen[name].add(int(seed) % 2**32)
        return seed_all(seed)

    problem = nt.LinearlySeparable(WAVES[1, 0])
    x, y = problem.sample(32, device="cpu")
    network = seeded(lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(64, 2)))
    uses = {
        "build": lambda: nt.build("mlp", image_size=SMALL, seed=0),
        "direction": lambda: nt.random_direction(SMALL, seed=0),
        "basis": lambda: nt.random_basis(SMALL, seed=0),
        "samples": lambda: problem.sample(4, seed=0, device="cpu"),
        "train": lambda: nt.train(network, (x, y), (x, y), nt.TrainConfig(epochs=2), progress=False),
        "estimate": lambda: estimate(Network, 5, estimator="mixed", num_probes=1, average_output_layer=False),
        "sweep": lambda: sweep(),
        "monte carlo": lambda: pooling.monte_carlo_accuracy(
            torch.eye(8)[0], pooling.pooling_matrix(torch.ones(2), 2, 8), num_samples=4, seed=0
        ),
        "deep linear model": lambda: descent.train_deep_linear(
            torch.ones(8), 2, frequencies=[1], learning_rate=0.1, steps=1, batch_size=2, seed=0
        ),
    }
    monkeypatch.setattr(torch, "Generator", Spy)
    monkeypatch.setattr(torch, "manual_seed", spy_on_all)
    for name, use in uses.items():
        seen[name] = set()
        use()
    # Probes with a fixed seed of their own are part of the checks, and the same for all.
    fixed = {0}
    every = [seed for seeds in seen.values() for seed in seeds - fixed]
    assert all(seeds - fixed for seeds in seen.values())
    assert len(every) == len(set(every))


def test_a_derived_seed_names_its_stream_by_itself():
    seed = derive_seed(3, "unit", 1)
    assert isinstance(seed, DerivedSeed) and stream(seed, "a") == stream(seed, "b") == seed
    assert stream(3, "a") != stream(3, "b")
    assert all(isinstance(one, DerivedSeed) for one in unit_seeds(0))


def test_the_networks_of_an_estimate_are_not_those_of_a_sweep():
    """At one seed a sweep trained a network whose body was in the estimate."""
    drawn = []

    def recorded(outputs):
        network = Network(outputs=outputs)
        drawn.append(network.body[1].weight.detach().clone())
        return network

    estimate(lambda: recorded(1), 6)
    of_estimate, drawn[:] = list(drawn), []
    sizes = {"num_train": 16, "num_test": 16, "config": CONFIG}
    nt.sweep(lambda: recorded(2), WAVES, seeds=range(3), device="cpu", progress=False, **sizes)
    assert drawn and not any(torch.equal(a, b) for a in of_estimate for b in drawn)


@contextlib.contextmanager
def default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        yield
    finally:
        torch.set_num_threads(before)


CONTEXTS = {
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "inference mode": torch.inference_mode,
    "no_grad": torch.no_grad,
    "default dtype": default_dtype,
    "default device": lambda: torch.device("meta"),
    "deterministic": deterministic,
    "two threads": threads,
    "a seed": lambda: nt.device.isolated_random_state(7),
}


@pytest.fixture(scope="module")
def plain():
    return sweep(), {
        kind: estimate(Network, 4, estimator=kind, num_probes=2) for kind in ("secant", "gradient", "mixed")
    }


@pytest.mark.parametrize("context", CONTEXTS)
def test_contexts_around_a_call_change_nothing(context, plain, tmp_path):
    table, estimates = plain
    with CONTEXTS[context]():
        again = sweep(journal=tmp_path / "j.sqlite")
        repeated = {kind: estimate(Network, 4, estimator=kind, num_probes=2) for kind in estimates}
    pd.testing.assert_frame_equal(table.drop(columns="seconds"), again.drop(columns="seconds"), check_exact=True)
    for kind, nads in estimates.items():
        difference = (repeated[kind].covariance() - nads.covariance()).abs().max()
        assert float(difference) <= 1e-6 * float(nads.eigenvalues[0])


@pytest.mark.parametrize("context", CONTEXTS)
def test_contexts_around_pieces_change_nothing(context):
    def pieces():
        x, y = nt.concatenate(*(nt.LinearlySeparable(v) for v in WAVES.values())).sample(40, seed=1, device="cpu")
        network = nt.build("mlp", 2, image_size=SMALL, seed=3)
        result = nt.train(network, (x, y), (x, y), CONFIG, progress=False)
        basis = nt.random_basis(SMALL, seed=2)
        poisoned = nt.poison(x[:, :1], y, basis, 0, 0.5, num_classes=2)
        energy = nt.fourier_energy(basis[0])
        evaluated = nt.evaluate(network, (x, y))
        return [
            x,
            y,
            basis,
            poisoned,
            nt.flip(x, basis),
            energy,
            nt.fourier_basis(SMALL),
            result.step_losses,
        ], evaluated

    tensors, evaluated = pieces()
    with CONTEXTS[context]():
        again, evaluated_again = pieces()
    for one, other in zip(tensors, again, strict=True):
        assert one.dtype == other.dtype and other.device.type == "cpu" and not other.is_inference()
        np.testing.assert_allclose(other.detach().numpy(), one.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert evaluated.accuracy == evaluated_again.accuracy


def test_a_network_built_in_inference_mode_is_refused():
    with torch.inference_mode():
        network = seeded(lambda: Network(outputs=2))
    x, y = nt.LinearlySeparable(WAVES[1, 0]).sample(16, device="cpu")
    with pytest.raises(ValueError, match="inference_mode"):
        nt.train(network, (x, y), (x, y), CONFIG, progress=False)


def test_an_estimate_is_reproducible_to_the_last_bit():
    first, second = (estimate("lenet", 2, image_size=(16, 16)) for _ in range(2))
    assert torch.equal(first.eigenvalues, second.eigenvalues) and torch.equal(first.vectors, second.vectors)
