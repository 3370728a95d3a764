from __future__ import annotations

import dataclasses
import functools
import math

import joblib
import pandas as pd
import pytest
import torch
from small_networks import Network, seeded
from torch import nn

import nadtools as nt
from nadtools import sweeps
from nadtools.sweeps import unit_seeds
from nadtools.units import read_journal

SHAPE = (8, 8)
DIRECTIONS = {(i, 0): nt.fourier_atom(SHAPE, (i, 0)) for i in range(3)}
SMALL = {
    "epsilon": 0.5,
    "sigma": 1.0,
    "num_train": 200,
    "num_test": 150,
    "config": nt.TrainConfig(epochs=3, batch_size=32),
    "seeds": (0, 7),
    "loss_level": 0.6,
    "device": "cpu",
    "progress": False,
}
SERIES = ["train_accuracy", "test_accuracy", "train_loss", "test_loss"]

two_outputs = functools.partial(Network, outputs=2)


def sweep(architecture="mlp", directions=DIRECTIONS, **arguments) -> pd.DataFrame:
    return nt.sweep(architecture, directions, **(SMALL | arguments))


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """All that must not depend on what did the work."""
    return table.drop(columns="seconds")


@functools.cache
def reference() -> pd.DataFrame:
    return numbers(sweep())


# What a row says.


def test_a_row_holds_what_a_training_by_hand_gives():
    """And so bound to its seed: nothing but the four seeds and the parameters is needed."""
    table = sweep(views={"mirrored": lambda x: x.flip(-1)})
    assert table.columns.tolist() == [
        "direction", "seed", "train_accuracy", "test_accuracy", "test_accuracy_mirrored", "train_loss", "test_loss",
        "steps", "seconds", "device",
    ]  # fmt: skip
    assert table.direction.tolist() == [(0, 0), (0, 0), (1, 0), (1, 0), (2, 0), (2, 0)]
    assert table.seed.tolist() == [0, 7] * 3 and set(table.device) == {"cpu"}
    for row in table.itertuples():
        seeds = unit_seeds(row.seed)
        problem = nt.LinearlySeparable(DIRECTIONS[row.direction], epsilon=0.5, sigma=1.0)
        train, test = problem.sample(200, seeds.train_data), problem.sample(150, seeds.test_data)
        network = nt.build("mlp", image_size=SHAPE, seed=seeds.initialisation)
        config = nt.TrainConfig(epochs=3, batch_size=32, seed=seeds.order)
        result = nt.train(network, train, test, config, progress=False)
        for name in SERIES:
            assert getattr(row, name) == getattr(result, name)
        steps = result.steps_to_loss(0.6)
        assert row.steps is pd.NA if steps is None else row.steps == steps
        mirrored = nt.evaluate(network, (test[0].flip(-1), test[1])).accuracy
        assert row.test_accuracy_mirrored == mirrored
    assert table.steps.notna().any() and table.steps.isna().any()
    assert numbers(table).drop(columns="test_accuracy_mirrored").equals(reference())


def test_at_one_seed_directions_share_all_that_is_random():
    seen = []

    @dataclasses.dataclass(frozen=True)
    class Recorded:
        inner: nt.LinearlySeparable

        def sample(self, n, seed=0, *, device=None):
            x, y = self.inner.sample(n, seed, device=device)
            if n > 2:
                seen.append((x, y))
            return x, y

    v, w = (nt.random_direction(SHAPE, seed) for seed in range(2))
    problems = [Recorded(nt.LinearlySeparable(direction)) for direction in (v, w)]
    sweep(directions=problems, epsilon=1.0, sigma=3.0, seeds=[3])
    (train, labels), (test, _), (other, other_labels), _ = seen
    assert torch.equal(labels, other_labels) and train.shape == (200, 1, *SHAPE) and test.shape == (150, 1, *SHAPE)
    both = torch.stack([v, w]).flatten(1)
    outside = torch.eye(64) - torch.linalg.pinv(both) @ both  # onto what is orthogonal to both
    torch.testing.assert_close(train.flatten(1) @ outside, other.flatten(1) @ outside, atol=1e-4, rtol=0)
    assert not torch.equal(train[:150], test)


def test_labels_of_every_kind():
    v = nt.fourier_atom(SHAPE, (1, 1))
    small = {"num_train": 10, "num_test": 10, "seeds": [0], "config": nt.TrainConfig(epochs=1)}
    (mode,) = [mode for mode in nt.fourier_modes(SHAPE) if mode.frequency == (1, 1)][:1]
    labels = [3, "random", (1, -2), mode, 0.5]
    assert sweep("logreg", dict.fromkeys(labels, v), **small).direction.tolist() == labels
    assert sweep("logreg", torch.stack([v, v]), **small).direction.tolist() == [0, 1]
    assert sweep("logreg", [v, v, v], **small).direction.dtype == "int64"


def test_the_library_s_options_reach_the_network():
    v = nt.fourier_atom((16, 16), (1, 1))
    for options in ({"width": 0.5}, {"pooling": False, "num_classes": 3}):
        table = sweep("lenet", {"v": v}, seeds=[1], config=nt.TrainConfig(epochs=1), **options)
        seeds, problem = unit_seeds(1), nt.LinearlySeparable(v, 0.5, 1.0)
        network = nt.build("lenet", image_size=(16, 16), seed=seeds.initialisation, **options)
        data = problem.sample(200, seeds.train_data), problem.sample(150, seeds.test_data)
        result = nt.train(network, *data, nt.TrainConfig(epochs=1, seed=seeds.order), progress=False)
        assert table.test_loss[0] == result.test_loss


def test_a_network_of_your_own_with_dropout_is_reproducible():
    def own() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(64, 8), nn.ReLU(), Functional(), nn.Linear(8, 2))

    first, second = (numbers(sweep(own, seeds=[4, 5])) for _ in range(2))
    assert first.equals(second) and first.test_loss.nunique() == 6


class Functional(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x, 0.2, self.training)


def test_a_training_that_diverges_has_a_row_without_numbers():
    config = nt.TrainConfig(epochs=30, max_lr=1e30, clip_norm=None, schedule="constant")
    table = sweep(config=config, seeds=[0])
    assert table[[*SERIES, "steps"]].isna().all(axis=None) and (table.seconds >= 0).all()
    assert str(table.steps.dtype) == "Int64" and str(table.test_loss.dtype) == "float64"


# The same numbers, whatever does the work.


def test_processes_and_threads_give_the_same_numbers():
    assert numbers(sweep(num_jobs=2)).equals(reference())
    # PyTorch's global generator is one for all threads of a process; so they take turns.
    with joblib.parallel_config("threading", n_jobs=3):
        assert numbers(sweep()).equals(reference())
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert numbers(sweep()).equals(reference()) and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


# The journal.


def test_a_journal_grows_with_directions_and_seeds(tmp_path):
    journal = tmp_path / "j.sqlite"
    sweep(directions={(1, 0): DIRECTIONS[1, 0]}, journal=journal, seeds=[7])
    assert numbers(sweep(journal=journal)).equals(reference())
    table, parameters = read_journal(journal)
    assert table.direction.tolist() == [(1, 0), (0, 0), (0, 0), (1, 0), (2, 0), (2, 0)]
    assert parameters["architecture"] == "mlp" and parameters["config"]["epochs"] == 3


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"architecture": "logreg"}, "architecture"),
        ({"architecture": two_outputs}, "first_network"),
        ({"width": 0.5}, "build_options"),
        ({"epsilon": 0.6}, "epsilon: 0.5 there, 0.6 here"),
        ({"sigma": 2}, "sigma: 1.0 there, 2.0 here"),
        ({"num_train": 201}, "num_train"),
        ({"num_test": 100}, "num_test"),
        ({"config": nt.TrainConfig(epochs=4)}, "config"),
        ({"loss_level": None}, "loss_level"),
        ({"views": {"same": lambda x: x}}, "views"),
        ({"config": nt.TrainConfig(epochs=3, batch_size=32, precision="bfloat16")}, "config.precision: nothing there"),
    ],
)
def test_a_journal_of_another_sweep_is_refused(tmp_path, changed, named):
    sweep(journal=tmp_path / "j.sqlite", seeds=[0], directions={(0, 0): DIRECTIONS[0, 0]})
    with pytest.raises(ValueError, match=f"another computation .*{named}"):
        sweep(journal=tmp_path / "j.sqlite", **changed)


def test_another_direction_under_an_old_label_is_refused(tmp_path):
    journal = tmp_path / "j.sqlite"
    sweep("logreg", journal=journal, seeds=[0])
    changed = DIRECTIONS | {(1, 0): nt.fourier_atom(SHAPE, (1, 0), math.pi / 2)}
    with pytest.raises(ValueError, match=r'"direction": \[1, 0\], "seed": 0.*what it stands for has changed'):
        sweep("logreg", changed, journal=journal, seeds=[0])


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two problems side by side, as channels."""

    first: nt.LinearlySeparable
    second: nt.LinearlySeparable

    def sample(self, n, seed=0, *, device=None):
        x, y = self.first.sample(n, nt.device.derive_seed(seed, 0), device=device)
        other, _ = self.second.sample(n, nt.device.derive_seed(seed, 1), device=device, labels=y)
        return torch.cat([x, other], dim=1), y


def test_problems_of_other_kinds_seen_through_views(tmp_path):
    """D(v1)⊕D(v2): what a network has learned from each channel alone."""

    def only(channel):
        keep = torch.zeros(1, 2, 1, 1)
        keep[0, channel] = 1
        return lambda x: x * keep

    v, w = DIRECTIONS[1, 0], DIRECTIONS[2, 0]
    easy, hard = nt.LinearlySeparable(v, epsilon=2.0, sigma=0.5), nt.LinearlySeparable(w, epsilon=0.1, sigma=0.5)
    arguments = {
        "architecture": "logreg",
        "directions": {"easy first": Pair(easy, hard), "easy second": Pair(hard, easy)},
        "views": {"first": only(0), "second": only(1)},
        "epsilon": 1.0,
        "sigma": 3.0,
        "journal": tmp_path / "j.sqlite",
    }
    table = sweep(**arguments).set_index(["direction", "seed"])
    for seed in (0, 7):
        assert table.test_accuracy_first["easy first", seed] > 0.95 > table.test_accuracy_second["easy first", seed]
        assert table.test_accuracy_second["easy second", seed] > 0.95 > table.test_accuracy_first["easy second", seed]
    assert "epsilon" not in read_journal(tmp_path / "j.sqlite")[1]
    arguments["directions"]["easy first"] = Pair(easy, dataclasses.replace(hard, epsilon=0.2))
    with pytest.raises(ValueError, match=r'"direction": "easy first".* has changed'):
        sweep(**arguments)


# On the device.


def test_data_are_drawn_once_for_each_training_and_nothing_is_drawn_for_what_is_done(tmp_path, monkeypatch):
    drawn = []
    original = nt.LinearlySeparable.sample

    def counted(self, n, *arguments, **options):
        drawn.append(n)
        return original(self, n, *arguments, **options)

    monkeypatch.setattr(nt.LinearlySeparable, "sample", counted)
    sweep(journal=tmp_path / "j.sqlite", views={"same": lambda x: x})
    assert [n for n in drawn if n > 2] == [200, 150] * 6
    drawn.clear()
    sweep(journal=tmp_path / "j.sqlite", views={"same": lambda x: x})
    assert set(drawn) == {2}  # the checks


# Bad input.

V = DIRECTIONS[1, 0]
SINGLE = seeded(two_outputs)


@dataclasses.dataclass(frozen=True)
class Strange:
    x: torch.Tensor | None = None
    y: torch.Tensor | None = None
    other: object = None

    def sample(self, n, seed=0, *, device=None):
        return self.x, self.y


X2, Y2 = torch.zeros(2, 1, 8, 8), torch.zeros(2, dtype=torch.int64)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"architecture": "alexnet"}, ValueError, "unknown architecture name 'alexnet'"),
        ({"architecture": 5}, TypeError, "type int; expected a name or a callable"),
        ({"architecture": SINGLE}, TypeError, "expected a name or a callable"),
        ({"architecture": lambda: SINGLE}, ValueError, "the same network twice"),
        ({"architecture": lambda: 3}, TypeError, "returned int; expected a torch.nn.Module"),
        ({"architecture": Network}, ValueError, r"returned shape \(1, 1\); expected \(n, classes\)"),
        ({"architecture": lambda: nn.Linear(5, 2)}, ValueError, "does not accept images"),
        ({"architecture": two_outputs, "width": 2.0}, TypeError, "width for a callable"),
        ({"image_size": (8, 8)}, TypeError, "image_size=.*, which sweep chooses itself"),
        ({"architecture": "lenet"}, ValueError, "expected at least"),
        ({"directions": V}, ValueError, r"\(8, 8\); expected \(n, h, w\)"),
        ({"directions": [V, V.numpy()]}, TypeError, r"directions\[1\] of type ndarray"),
        ({"directions": [V, V * 0]}, ValueError, "no direction; expected a non-zero vector"),
        ({"directions": [V, V[:4]]}, ValueError, "different shapes: .*for 0.* for 1"),
        ({"directions": {frozenset(): V}}, TypeError, "expected finite numbers, texts"),
        ({"directions": {1: V, "1": V, None: V, (1, len): V}}, TypeError, "built-in function len"),
        (
            {"directions": [Strange(X2[0], Y2)], "epsilon": 1.0, "sigma": 3.0},
            ValueError,
            r"problem 0 gave x \(1, 8, 8\)",
        ),
        ({"directions": [Strange(X2, Y2, len)], "epsilon": 1.0, "sigma": 3.0}, TypeError, "type builtin_function"),
        ({"directions": [nt.LinearlySeparable(V)]}, ValueError, "epsilon=0.5 and sigma=1.0 for problems"),
        ({"config": nt.TrainConfig(seed=1)}, ValueError, "the argument seeds takes its place"),
        ({"seeds": []}, ValueError, "expected at least one"),
        ({"seeds": [1, 2, 1]}, ValueError, "each only once"),
        ({"views": {"half": lambda x: x[..., :4]}}, ValueError, r"the view 'half' gave \(2, 1, 8, 4\)"),
        ({"journal": "/nonexistent/folder/j.sqlite"}, ValueError, "a folder that exists"),
    ],
)
def test_bad_input(arguments, error, message, monkeypatch):
    monkeypatch.setattr(sweeps, "train", lambda *_, **__: pytest.fail("nothing may be trained"))
    with pytest.raises(error, match=message):
        sweep(**arguments)
