"""Experiments on two features: what a training is given, what is asked of it, and the claims that are read off."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from companion import experiments
from companion import two_features as module
from companion.chapter_10 import experiments as chapter_10
from companion.chapter_10.claims import pair_claims
from companion.chapter_10.experiments import load_pairs
from companion.chapter_11 import experiments as chapter_11
from companion.chapter_11.claims import concatenation_claims
from companion.chapter_11.experiments import load_transition
from companion.patches import load_patches

import nadtools as nt
from nadtools import storage, sweeps

SMOKE = {"scale": "smoke", "device": "cpu", "progress": False}
B2 = {"architecture": "logreg", "basis": "nads"}
B3 = {"architecture": "mlp", "data": "patches"}


def run(name, folder, **selectors):
    path = experiments.run(name, results_dir=folder, **SMOKE, **selectors)
    assert experiments.stale(path) == []
    return experiments.load(name, scale="smoke", results_dir=folder, **selectors)


class Linear(torch.nn.Module):
    """Two outputs whose difference is an affine function of the image."""

    def __init__(self, weight, offset=0.0):
        super().__init__()
        self.register_buffer("weight", weight)
        self.offset = offset

    def forward(self, x):
        f = x.flatten(1) @ self.weight.flatten().to(x) + self.offset
        return torch.stack((-f / 2, f / 2), 1)


def plan(name="B2", directions=None, **changes):
    selectors = {"B2": {"architecture": "mlp", "basis": "nads"}, "B3": {"architecture": "mlp", "data": "patches"}}[name]
    parameters = experiments.EXPERIMENTS[name].parameters("smoke", **selectors) | changes
    return module.Plan(parameters, directions or {}, torch.device("cpu"))


@pytest.fixture(scope="module")
def directions():
    basis = nt.random_basis((32, 32), seed=5)
    return {0: basis[0], 1: basis[1]}


def linear_pair(monkeypatch, directions, first, second, noise=0.0, **changes):
    """A row about a linear network with given weights along both directions, and along one direction of noise."""
    one, other = (nt.LinearlySeparable(directions[k]) for k in (0, 1))
    problem = nt.concatenate(one, other)
    weight = first * problem.direction(0) + second * problem.direction(1)
    weight += noise * problem.direction(0, nt.random_basis((32, 32), seed=5)[7])
    measured = dict.fromkeys(("train_accuracy", "test_accuracy", "train_loss", "test_loss"), 0.0)
    monkeypatch.setattr(chapter_10, "fit", lambda *arguments: (Linear(weight), measured))
    changes = {"num_test": 4000, "num_points": 8, "extent": 1.0} | changes
    return chapter_10._train_pair(plan(directions=directions, **changes), {"first": 0, "second": 1, "seed": 0})


def test_pairs_are_trained_as_the_appendix_says(folder, lenet, trained_on):
    stored = run("B2", folder, **B2)
    assert list(zip(stored["first"], stored["second"], strict=True)) == [(0, 0), (0, 1000), (1000, 0), (1000, 1000)]
    np.testing.assert_allclose(stored["eigenvalue_second"][:2], lenet.eigenvalues[[0, 1000]].numpy())
    seeds = sweeps.unit_seeds(0)
    for (_, (x, y), (x_test, y_test), config), (i, j) in zip(
        trained_on, [(0, 0), (0, 1000), (1000, 0), (1000, 1000)], strict=True
    ):
        assert x.shape == x_test.shape == (128, 2, 32, 32)
        for images, labels in ((x, y), (x_test, y_test)):
            for channel, index, epsilon in ((0, i, 1.0), (1, j, 0.5)):
                along = images[:, channel].flatten(1) @ lenet.vectors[index].float().flatten()
                # float32, over 1,024 pixels of size 1
                torch.testing.assert_close(along, epsilon * (2.0 * labels - 1), rtol=0, atol=1e-4)
        assert not torch.equal(x, x_test), "training and test samples are two draws"
        assert config.seed == seeds.order


def test_settings_of_the_appendix():
    def config(name, scale="paper", **selectors):
        return experiments.EXPERIMENTS[name].parameters(scale, **selectors)

    small = config("B2", architecture="lenet", basis="nads")
    assert (small["config"]["epochs"], small["config"]["max_lr"], small["config"]["weight_decay"]) == (50, 0.2, 0.0)
    deep = config("B2", architecture="resnet18", basis="nads")
    assert (deep["config"]["epochs"], deep["config"]["max_lr"], deep["config"]["weight_decay"]) == (30, 0.1, 1e-5)
    for parameters, seeds in ((small, 3), (deep, 1)):
        assert (parameters["epsilons"], parameters["sigma"]) == ([1.0, 0.5], 1.0)
        assert parameters["num_train"] == parameters["num_test"] == 10_000
        assert parameters["num_seeds"] == seeds and parameters["build_options"] == {}
    epochs = {"mlp": 60, "lenet": 40, "resnet18": 40}
    sigmas = {"mlp": 3.0, "lenet": 1.0, "resnet18": 3.0}
    for architecture in epochs:
        parameters = config("B3", architecture=architecture, data="cifar10")
        assert parameters["config"]["epochs"] == epochs[architecture]
        assert (parameters["epsilon"], parameters["sigma"]) == (1.0, sigmas[architecture])
        assert (parameters["config"]["max_lr"], parameters["config"]["weight_decay"]) == (0.15, 1e-5)
    for name, selectors in (("B2", {"architecture": "mlp", "basis": "nads"}), ("B3", B3)):
        stated = config(name, **selectors)["config"]
        assert (stated["schedule"], stated["momentum"], stated["batch_size"]) == ("triangular", 0.9, 128)
    assert config("B3", "laptop", architecture="resnet18", data="cifar10-subset")["build_options"] == {"width": 0.25}
    assert len(config("B2", "laptop", architecture="lenet", basis="nads")["indices"]) == 5
    assert len(config("B2", "laptop", architecture="resnet18", basis="nads")["indices"]) == 3
    assert len(config("B3", "laptop", architecture="lenet", data="cifar10-subset")["indices"]) == 8


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.5), (0.2, 1.0), (1.0, 0.0)])
def test_what_is_asked_of_a_linear_network(monkeypatch, directions, first, second):
    row = linear_pair(monkeypatch, directions, first, second)
    assert row["normal"] == pytest.approx(math.atan2(second, first), abs=1e-4)
    assert row["angle_first"] == pytest.approx(math.atan2(first, second), abs=1e-4)
    assert row["angle_first"] + row["angle_second"] == pytest.approx(math.pi / 2)
    assert row["crossed"] == 1.0 and row["resultant"] == pytest.approx(1)
    # f = ±(first + second/2); along the first direction it falls by `first` for every unit.
    assert row["margin_first"] == pytest.approx((first + second / 2) / first, rel=1e-3)
    expected = (first + second / 2) / second if second else math.inf
    assert row["margin_second"] == pytest.approx(expected, rel=1e-3)
    assert row["margin_second_found"] == (1.0 if second else 0.0)
    # No noise reaches this network, so each channel is read without error where it has a weight.
    assert row["test_accuracy_first"] == 1.0
    assert row["test_accuracy_second"] == (1.0 if second else pytest.approx(0.5, abs=0.05))
    assert row["follows_first"] == (1.0 if first > second / 2 else 0.0)


def test_accuracy_with_one_channel_has_a_closed_form(monkeypatch, directions):
    """Φ(a ε₁ / (σ s)) with a weight a along v₁ and s along noise of the first channel; the second is free of it."""
    row = linear_pair(monkeypatch, directions, 1.0, 0.5, noise=0.8)
    expected = float(torch.special.ndtr(torch.tensor(1 / 0.8)))
    # Four standard errors of a share of 4,000 samples.
    assert row["test_accuracy_first"] == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 4000))
    assert row["test_accuracy_second"] == 1.0
    contradiction = float(torch.special.ndtr(torch.tensor((1 - 0.25) / 0.8)))
    assert row["follows_first"] == pytest.approx(contradiction, abs=4 * math.sqrt(0.25 / 4000))


def test_sections_are_those_of_the_network(monkeypatch, directions):
    row = linear_pair(monkeypatch, directions, 1.0, 0.5)
    expected = np.linspace(-1, 1, 5)[None] + 0.5 * np.linspace(-1, 1, 5)[:, None]
    for name in ("section", "section_point"):
        np.testing.assert_allclose(chapter_10._decoded(row[name], 5), expected, atol=1e-4)


def test_a_reflected_feature_says_the_other_class_and_keeps_the_rest(directions):
    problem = nt.concatenate(nt.LinearlySeparable(directions[0]), nt.LinearlySeparable(directions[1], 0.5))
    x, y = problem.sample(50, seed=1, device="cpu")
    turned = module.reflected(x, problem.direction(1))
    assert torch.equal(turned[:, 0], x[:, 0])
    along = [part[:, 1].flatten(1) @ directions[1].flatten() for part in (x, turned)]
    torch.testing.assert_close(along[1], -along[0], rtol=0, atol=1e-4)
    torch.testing.assert_close(along[0], 0.5 * (2.0 * y - 1), rtol=0, atol=1e-4)
    torch.testing.assert_close(turned.flatten(1).norm(dim=1), x.flatten(1).norm(dim=1))


def test_images_beside_a_direction(folder, lenet, trained_on):
    stored = run("B3", folder, **B3)
    assert stored["part"].tolist() == ["both", "both", "images", "direction", "direction"]
    assert stored["index"].tolist() == [0, 1000, 0, 0, 1000]
    patches = load_patches(per_class=8, test_per_class=8)
    for number, (_, (x, y), (x_test, y_test), _) in enumerate(trained_on):
        part, index = stored["part"][number], int(stored["index"][number])
        for images, labels, pixels, classes in (
            (x, y, patches.x_train, patches.y_train),
            (x_test, y_test, patches.x_test, patches.y_test),
        ):
            assert torch.equal(labels, (classes >= 5).long())
            shown = torch.zeros_like(pixels) if part == "direction" else patches.normalise(pixels)
            assert torch.equal(images[:, :-1], shown)
            along = images[:, -1].flatten(1) @ lenet.vectors[index].float().flatten()
            signs = 0.0 * labels if part == "images" else 2.0 * labels - 1
            # float32, over 1,024 pixels of size 3
            torch.testing.assert_close(along, signs, rtol=0, atol=3e-4)
    both = stored["part"] == "both"
    for name in ("test_accuracy_images", "test_accuracy_direction", "follows_images", "margin", "margin_found"):
        assert np.isfinite(stored[name][both]).all() or name == "margin"
        assert np.isnan(stored[name][~both]).all()
    assert chapter_11._read_images.cache_info().currsize == 0, "the images outlive the run"


def test_a_training_that_stays_at_chance_is_repeated_with_half_the_learning_rate(monkeypatch):
    rates, starts, diverging = [], [], set()

    def learns_below_a_rate(network, train_data, test_data, config, **options):
        rates.append(config.max_lr)
        starts.append(network.output.weight.detach().clone())
        if config.max_lr in diverging:
            raise FloatingPointError
        return nt.TrainResult(0.5, 0.5, 0.7, 0.69 if config.max_lr > enough else 0.01, pd.DataFrame(), False)

    monkeypatch.setattr(module, "train", learns_below_a_rate)
    data = torch.zeros(2, 2, 32, 32), torch.tensor([0, 1])
    for enough, expected in ((0.2, [0.2]), (0.1, [0.2, 0.1]), (0, [0.2, 0.1, 0.05])):
        rates.clear()
        diverging.clear()
        diverging.update([0.2] if enough == 0.1 else [])
        network, row = module.fit(plan(repetitions=2), data, data, 0)
        assert rates == expected and row["max_lr"] == expected[-1] and network is not None
        assert row["train_loss"] == (0.01 if enough else 0.69)
    assert all(torch.equal(start, starts[0]) for start in starts), "each begins with the same network"


def test_the_first_seed_comes_first(tmp_path, monkeypatch, directions):
    seen = []

    def note(plan, unit):
        seen.append((unit["seed"], unit["first"]))
        return {"device": "cpu"}

    parameters = plan(num_seeds=2).parameters
    session = experiments.Session(5, torch.device("cpu"), None, False, tmp_path)
    note.__name__ = "_train_pair"
    module.run_trainings(note, [{"first": 0}, {"first": 1}], directions, dict(parameters), session)
    assert seen == [(5, 0), (5, 1), (6, 0), (6, 1)]


def test_random_directions_have_no_eigenvalues(tmp_path, trained_on):
    stored = run("B2", tmp_path, architecture="logreg", basis="random")
    assert np.isnan(stored["eigenvalue_first"]).all()
    x, y = trained_on[1][1]
    along = x[:, 1].flatten(1) @ nt.random_basis((32, 32), nt.device.DerivedSeed(0))[1000].flatten()
    torch.testing.assert_close(along, y - 0.5, rtol=0, atol=1e-4)


def copy_result(folder, name, target, scale="laptop", seed=0, **changes):
    """A smoke result under another name."""
    selectors = (B2 if name == "B2" else B3) | changes
    source = experiments.result_path(name, scale="smoke", results_dir=folder, **(B2 if name == "B2" else B3))
    arrays, metadata = storage.read_arrays(source)
    arrays["seed"] = arrays["seed"] + seed
    metadata["record"] |= {"scale": scale, "seed": seed, "selectors": selectors}
    path = experiments.result_path(name, scale=scale, seed=seed, results_dir=target, **selectors)
    storage.write_arrays(path, arrays, metadata)


def test_stored_seeds_are_put_together(folder, tmp_path):
    run("B2", folder, **B2)
    with pytest.raises(FileNotFoundError, match="run B2 --architecture logreg --basis nads --scale laptop"):
        load_pairs("logreg", results_dir=tmp_path)
    for seed in (0, 2):
        copy_result(folder, "B2", tmp_path, seed=seed)
    found = load_pairs("logreg", results_dir=tmp_path)
    assert found.table["seed"].tolist() == [0] * 4 + [2] * 4
    assert found.sections.shape == found.section_points.shape == (8, 5, 5)
    assert found.coordinates.tolist() == [-2, -1, 0, 1, 2]
    assert found.table.attrs["seed"] == 0 and found.table.attrs["scale"] == "laptop"
    copy_result(folder, "B2", tmp_path, scale="paper")
    assert load_pairs("logreg", results_dir=tmp_path).table.attrs["scale"] == "paper"
    with pytest.raises(ValueError, match="unknown basis"):
        load_pairs("logreg", "fourier")


def test_a_training_that_two_runs_share_counts_once(folder, tmp_path):
    run("B2", folder, **B2)
    copy_result(folder, "B2", tmp_path)
    arrays, metadata = storage.read_arrays(tmp_path / "B2-logreg-nads-laptop.npz")
    storage.write_arrays(
        tmp_path / "B2-logreg-nads-laptop-seed1.npz", arrays, metadata | {"record": metadata["record"] | {"seed": 1}}
    )
    found = load_pairs("logreg", results_dir=tmp_path)
    assert len(found.table) == len(found.sections) == 4


def test_the_best_data_are_taken(folder, tmp_path):
    run("B3", folder, **B3)
    with pytest.raises(FileNotFoundError, match="run B3 --architecture mlp --data cifar10-subset"):
        load_transition("mlp", results_dir=tmp_path)
    for data in ("patches", "cifar10-subset", "cifar10-jpeg"):
        copy_result(folder, "B3", tmp_path, data=data)
        assert load_transition("mlp", results_dir=tmp_path).attrs["selectors"]["data"] == data
    copy_result(folder, "B3", tmp_path, seed=1, data="cifar10-jpeg")
    assert sorted(set(load_transition("mlp", results_dir=tmp_path)["seed"])) == [0, 1]
    with pytest.raises(ValueError, match="unknown architecture"):
        load_transition("alexnet")


def pair_table(both, first, second, angle=(63.4, 63.4, 63.4, 63.4), loss=1e-4):
    """Rows for the pairs (0, 0), (0, 9), (9, 0), (9, 9)."""
    columns = {"first": [0, 0, 9, 9], "second": [0, 9, 0, 9], "seed": [0] * 4, "train_loss": [loss] * 4}
    columns |= {"test_accuracy": both, "test_accuracy_first": first, "test_accuracy_second": second}
    degrees = np.radians(angle)
    return pd.DataFrame(columns | {"angle_first": degrees})


def test_claims_about_pairs():
    flat = pair_table([1.0, 0.99, 1.0, 0.985], [0.95, 0.96, 0.94, 0.95], [0.8, 0.81, 0.79, 0.8])
    assert pair_claims(flat, True)["verdict"].tolist() == ["holds"] * 5
    assert pair_claims(flat, True)["measured"][1] == "2.0 points"
    uneven = pair_table([1.0, 0.97, 1.0, 1.0], [0.95, 0.85, 0.94, 0.95], [0.8, 0.9, 0.79, 0.8], (60, 80, 60, 60), 0.2)
    assert pair_claims(uneven, True)["verdict"].tolist() == ["does not hold"] * 5
    anisotropic = pair_table([1.0, 1.0, 0.99, 0.6], [1.0, 1.0, 0.52, 0.5], [0.95, 0.49, 0.99, 0.5], (60, 85, 4, 45))
    found = pair_claims(anisotropic, False)
    assert found["verdict"].tolist() == ["holds"] * 5
    assert found["measured"][0] == "40.0 points" and found["measured"][4] == "in 4 of 4"
    assert pair_claims(flat, False)["verdict"].tolist()[:3] == ["does not hold"] * 3


def test_a_claim_about_a_diverged_training_does_not_hold():
    seeds = [pair_table([1.0] * 4, [0.95] * 4, [0.8] * 4).assign(seed=seed) for seed in (0, 1)]
    assert (pair_claims(pd.concat(seeds), True)["verdict"] == "holds").all()
    diverged = seeds[1].copy()
    diverged.loc[3, diverged.columns.drop(["first", "second", "seed"])] = np.nan
    found = pair_claims(pd.concat([seeds[0], diverged]), True)
    assert (found["verdict"] == "does not hold").all()
    assert found["measured"].tolist() == ["not known"] * 4 + ["in 7 of 8"]
    with pytest.raises(ValueError, match="expected all pairs"):
        pair_claims(seeds[0][:3], True)
    for corner in (1, 2):  # Python's max() passes over NaN in one of two orders
        blank = pair_table([1.0, 1.0, 0.99, 0.6], [1.0, 1.0, 0.52, 0.5], [0.95, 0.49, 0.99, 0.5], (60, 85, 4, 45))
        blank.loc[corner, ["test_accuracy", "test_accuracy_first", "test_accuracy_second", "angle_first"]] = np.nan
        assert pair_claims(blank, False)["verdict"].tolist()[1:3] == ["does not hold"] * 2


def transition_table(images, direction, reference=0.8, loss=1e-4):
    columns = {"part": ["both"] * 3 + ["images"], "index": [0, 10, 900, 0], "seed": [0] * 4}
    columns |= {"test_accuracy_images": [*images, np.nan], "test_accuracy_direction": [*direction, np.nan]}
    return pd.DataFrame(columns | {"test_accuracy": [1.0] * 3 + [reference], "train_loss": [loss] * 3 + [9.0]})


def test_claims_about_images_beside_a_direction():
    switch = transition_table([0.5, 0.6, 0.78], [1.0, 0.9, 0.5])
    found = concatenation_claims(switch, False)
    assert found["verdict"].tolist() == ["holds"] * 5
    assert found["measured"].tolist() == ["100.0%", "50.0%", "50.0%", "2.0 points", "in 3 of 3"]
    assert concatenation_claims(switch, True)["verdict"].tolist() == ["does not hold"] * 2 + ["holds"]
    simple = transition_table([0.5, 0.5, 0.5], [1.0, 1.0, 0.99], loss=0.1)
    assert concatenation_claims(simple, True)["verdict"].tolist() == ["holds"] * 2 + ["does not hold"]
    assert concatenation_claims(simple, False)["verdict"].tolist()[2:] == ["does not hold"] * 3
    with pytest.raises(ValueError, match="expected a result of B3"):
        concatenation_claims(switch[:3], False)
