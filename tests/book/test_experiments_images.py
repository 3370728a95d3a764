"""Experiments on images: what a training is given, what is stored, and the claims that are read off it."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from companion import experiments, two_features
from companion import photographs as module
from companion.chapter_08.claims import poisoning_claims
from companion.chapter_09.claims import flipping_claims
from companion.chapter_09.experiments import ARMS, FACTORS, changed, paired_interval
from companion.patches import load_patches

import nadtools as nt
from nadtools import storage, sweeps

SMOKE = {"scale": "smoke", "device": "cpu", "progress": False}
PATCHES = {"architecture": "logreg", "data": "patches"}
B2 = {"architecture": "logreg", "basis": "nads"}


@pytest.fixture(scope="module")
def patches():
    return load_patches(per_class=8, test_per_class=8)


def run(name, folder, **changes):
    path = experiments.run(name, results_dir=folder, **SMOKE, **(PATCHES | changes))
    assert experiments.stale(path) == []
    return experiments.load_table(name, scale="smoke", results_dir=folder, **(PATCHES | changes))


def test_training_images_carry_the_label_and_test_images_do_not(folder, patches, lenet, trained_on):
    table = run("A7", folder)
    assert table["replace"].tolist() == ["none", "own", "own", "all", "all"]
    assert table["index"].isna().tolist() == [True, False, False, False, False]
    carriers = [(None, None), (0, "own"), (1019, "own"), (0, "all"), (1019, "all")]
    for (_, (x, y), (x_test, y_test), _), (index, replace) in zip(trained_on, carriers, strict=True):
        clean = patches.x_train
        if index is not None:
            clean = nt.poison(clean, patches.y_train, lenet, index, 0.05, replace=replace)
            pixels = x * patches.std.view(-1, 1, 1) + patches.mean.view(-1, 1, 1)
            # Normalising and back costs a few roundings, which the decoder's tolerance does not allow for.
            torch.testing.assert_close(pixels, clean, rtol=0, atol=1e-6)
        assert torch.equal(x, patches.normalise(clean)) and torch.equal(y, patches.y_train)
        assert torch.equal(x_test, patches.normalise(patches.x_test)) and torch.equal(y_test, patches.y_test)


def test_all_trainings_of_a_seed_share_network_and_order(folder, trained_on):
    run("A7", folder)
    seeds = sweeps.unit_seeds(0)
    assert {config.seed for _, _, _, config in trained_on} == {seeds.order}
    config = trained_on[0][3]
    assert (config.max_lr, config.momentum, config.weight_decay) == (0.21, 0.9, 5e-4)
    assert (config.schedule, config.clip_norm, config.batch_size, config.epochs) == ("linear", 0.5, 128, 1)


def test_a_network_that_reads_the_carrier_follows_it(patches, lenet, monkeypatch):
    """The test with carrier and content at odds, on a network that decodes, and on one that does not look at it."""
    plan = module.Plan("logreg", {}, {}, nt.TrainConfig(), lenet.vectors, torch.device("cpu"), 0)
    monkeypatch.setattr(module, "images_of", lambda plan: patches)
    lookup = {image.numpy().tobytes(): int(label) for image, label in zip(patches.x_test, patches.y_test, strict=True)}

    class Decoder(torch.nn.Module):
        def forward(self, x):
            pixels = x * patches.std.view(-1, 1, 1) + patches.mean.view(-1, 1, 1)
            along = pixels.double().flatten(2) @ lenet.vectors[:2].double().flatten(1).T
            coefficients = torch.stack([along[:, label % 3, label // 6] for label in range(10)], 1)
            values = 0.05 * torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(5)
            return -(coefficients - values).abs()

    monkeypatch.setattr(module, "fit", lambda *arguments: (Decoder(), {"train_accuracy": 1.0}))
    row = module.train_poisoned(plan, {"index": 0, "epsilon": 0.05, "replace": "own", "seed": 0})
    assert lookup and row["test_accuracy_poisoned"] == row["follows_carrier"] == 1.0
    assert row["follows_content"] == 0.0, "the carrier is always that of another class"
    clean = module.train_poisoned(plan, {"index": None, "epsilon": 0.0, "replace": "none", "seed": 0})
    assert clean["follows_carrier"] is None


@pytest.mark.parametrize(
    ("name", "selectors", "trainer", "blank"),
    [
        ("A7map", PATCHES, module, ("test_accuracy",)),
        ("A8", PATCHES, module, ("test_accuracy", "only_here")),
        ("B2", B2, two_features, ("test_accuracy", "test_accuracy_first", "angle_first", "margin_second", "sections")),
        ("B3", {"architecture": "mlp", "data": "patches"}, two_features, ("test_accuracy", "margin")),
    ],
)
def test_a_training_that_diverges_leaves_blanks(tmp_path, monkeypatch, name, selectors, trainer, blank):
    def diverge(*arguments, **options):
        raise FloatingPointError("the training loss is nan")

    monkeypatch.setattr(trainer, "train", diverge)
    stored, _ = storage.read_arrays(experiments.run(name, results_dir=tmp_path, **SMOKE, **selectors))
    assert all(np.isnan(stored[column]).all() for column in blank)
    assert (stored["seconds"] >= 0).all() and np.all(stored.get("num_test", 80) == 80)


def test_the_span_of_the_first_nads_is_all_that_is_left(folder, patches, lenet, trained_on):
    table = run("A7span", folder)
    assert table["count"].tolist() == [1019]
    ((_, (x, _), (x_test, _), _),) = trained_on
    rows = lenet.vectors.flatten(1)
    coefficients = (x.flatten(2) @ rows.T, patches.normalise(patches.x_train).flatten(2) @ rows.T)
    # float32 over 1,024 pixels of size 1
    torch.testing.assert_close(coefficients[0][..., :1019], coefficients[1][..., :1019], rtol=0, atol=1e-4)
    assert float(coefficients[0][..., 1019:].abs().max()) < 1e-4
    assert float(x_test.std()) > 0.1


def test_the_arms_of_flipping(folder, patches, lenet, trained_on):
    table = run("A8", folder)
    assert table["arm"].tolist() == list(ARMS)
    normalised = patches.normalise(patches.x_train)
    original, flipped, random, permuted = (x for _, (x, _), _, _ in trained_on)
    assert torch.equal(original, normalised)
    assert torch.equal(flipped, nt.flip(normalised, lenet))
    norms = normalised.flatten(1).norm(dim=1)
    for x in (random, permuted):
        torch.testing.assert_close(x.flatten(1).norm(dim=1), norms, rtol=1e-4, atol=0)
        assert float((x - flipped).abs().max()) > 0.1
    torch.testing.assert_close(nt.flip(random, nt.random_basis((32, 32), nt.device.derive_seed(0, 2))), normalised)
    sizes = [
        (permuted.flatten(2) @ lenet.vectors.flatten(1).T).abs().sort(-1).values for permuted in (permuted, flipped)
    ]
    torch.testing.assert_close(*sizes, rtol=0, atol=1e-3)  # the same coefficients, in another order


def test_signs_keep_the_agreement_or_the_pixels(folder, patches, lenet, trained_on):
    table = run("signs", folder).set_index("arm")
    assert table.index.tolist() == list(FACTORS)
    original, board, signs, flipped = (x for _, (x, _), _, _ in trained_on)
    assert torch.equal(original, patches.normalise(patches.x_train)) and torch.equal(board.abs(), original.abs())
    assert torch.equal(board[..., 1:, :] * board[..., :-1, :], -original[..., 1:, :] * original[..., :-1, :])
    assert torch.equal(board[..., 1:] * board[..., :-1], -original[..., 1:] * original[..., :-1])
    along = [(x.flatten(2) @ lenet.vectors.flatten(1).T) for x in (signs, original)]
    torch.testing.assert_close(along[0].abs(), along[1].abs(), rtol=0, atol=1e-3)  # float32, over 1,024 pixels
    turned = (along[0] * along[1]).sum((0, 1)) < 0
    assert 412 < int(turned.sum()) < 612  # half of 1,024 signs: within 6 deviations
    # By the matrices that the definition names.
    weights, rows = (one.double() for one in (lenet.eigenvalues, lenet.vectors.flatten(1)))
    for x, arm in zip((original, board, signs, flipped), FACTORS, strict=True):
        centred = (x - x.mean(0)).flatten(2).flatten(0, 1).double()
        covariance, seen = centred.T @ centred, rows.T * weights @ rows
        expected = 1024 * float((covariance * seen).sum() / covariance.trace() / seen.trace())
        assert table.agreement[arm] == pytest.approx(expected, rel=1e-4)
    assert table.agreement["random signs"] == pytest.approx(table.agreement["original"], rel=1e-4)
    assert max(table.agreement["checkerboard"], table.agreement["flipped"]) < table.agreement["original"] / 5


def test_an_unknown_change_of_images_is_refused(patches, lenet):
    with pytest.raises(ValueError, match="got arm='upside down'; expected one of"):
        changed(patches.x_train, "upside down", lenet.vectors, 0)


def test_counts_of_flipping_agree_with_the_accuracies(folder):
    table = run("A8", folder)
    original = table["test_accuracy"][0]
    assert (table["num_test"] == 80).all() and table["only_here"][0] == table["only_original"][0] == 0
    difference = (table["only_here"] - table["only_original"]) / table["num_test"]
    np.testing.assert_allclose(difference, table["test_accuracy"] - original, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "selectors", "trainer", "trainings"), [("A7", PATCHES, module, 5), ("B2", B2, two_features, 4)]
)
def test_an_interrupted_run_goes_on(tmp_path, monkeypatch, name, selectors, trainer, trainings):
    calls = []

    def stop_at_the_second(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return nt.train(*arguments, **options)

    (tmp_path / "whole").mkdir()
    whole, _ = storage.read_arrays(experiments.run(name, results_dir=tmp_path / "whole", **SMOKE, **selectors))
    monkeypatch.setattr(trainer, "train", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        experiments.run(name, results_dir=tmp_path, **SMOKE, **selectors)
    path = experiments.run(name, results_dir=tmp_path, **SMOKE, **selectors)
    assert len(calls) == 1 + trainings, "a finished training was repeated"
    assert experiments.read_record(path)["resumed"]
    again, _ = storage.read_arrays(path)
    for column in set(again) - {"seconds"}:
        np.testing.assert_array_equal(again[column], whole[column])


def test_the_loaded_images_do_not_outlive_a_run(folder):
    run("A7map", folder)
    assert module.read_images.cache_info().currsize == 0


@pytest.mark.parametrize("data", list(module.DATA))
def test_parameters_name_the_data(data):
    for name in ("A7", "A7map", "A7span", "A8"):
        parameters = experiments.EXPERIMENTS[name].parameters("laptop", architecture="resnet18", data=data)
        assert parameters["images"] == module.DATA[data]
        assert parameters["build_options"] == {"width": 0.25}
        paper = experiments.EXPERIMENTS[name].parameters("paper", architecture="resnet18", data=data)
        assert paper["build_options"] == {}
        assert paper["config"]["epochs"] == (50 if data in module.SMALL_DATA else 20)
        smoke = experiments.EXPERIMENTS[name].parameters("smoke", architecture="resnet18", data=data)
        assert smoke["images"]["per_class"] == 8


def test_enough_indices():
    def indices(**selectors):
        return experiments.EXPERIMENTS["A7"].parameters("laptop", **selectors)["indices"]

    assert len(indices(architecture="lenet", data="cifar10-jpeg")) >= 10
    assert len(indices(architecture="resnet18", data="cifar10-subset")) == 8
    assert max(indices(architecture="lenet", data="patches")) + 5 == 1024
    grid = experiments.EXPERIMENTS["A7map"].parameters("laptop", architecture="lenet", data="cifar10-subset")
    assert (len(grid["epsilons"]), len(grid["indices"])) == (6, 5)


def test_load_largest_takes_the_best_data(folder, tmp_path):
    run("A7", folder)
    arrays, metadata = storage.read_arrays(folder / "A7-logreg-patches-smoke.npz")
    with pytest.raises(FileNotFoundError, match="run A7 --architecture logreg --data cifar10-subset --scale laptop"):
        experiments.load_table("A7", architecture="logreg", results_dir=tmp_path)
    for data in ("patches", "cifar10-subset", "cifar10-jpeg"):
        metadata["record"] |= {"scale": "laptop", "selectors": {"architecture": "logreg", "data": data}}
        storage.write_arrays(tmp_path / f"A7-logreg-{data}-laptop.npz", arrays, metadata)
        found = experiments.load_table("A7", architecture="logreg", results_dir=tmp_path)
        assert found.attrs["selectors"]["data"] == data
    with pytest.raises(ValueError, match="unknown experiment 'A9'"):
        experiments.load_table("A9", architecture="logreg")
    with pytest.raises(ValueError, match="unknown architecture"):
        experiments.load_table("A7", architecture="alexnet")


def test_the_paired_interval_against_a_bootstrap():
    generator = torch.Generator().manual_seed(0)
    here = torch.rand(2000, generator=generator) < 0.6
    original = here ^ (torch.rand(2000, generator=generator) < 0.1)
    low, high = paired_interval(int((here & ~original).sum()), int((original & ~here).sum()), 2000)
    difference = here.double() - original.double()
    draws = torch.randint(2000, (4000, 2000), generator=generator)
    means = difference[draws].mean(1)
    expected = torch.quantile(means, torch.tensor([0.025, 0.975], dtype=torch.float64))
    # Quantiles of 4,000 draws scatter by about 3 % of the interval.
    np.testing.assert_allclose((low, high), expected, atol=0.08 * (high - low))
    assert paired_interval(0, 0, 10) == (0.0, 0.0)


@pytest.mark.parametrize("counts", [(-1, 0, 10), (6, 5, 10), (0, 0, 0)])
def test_the_paired_interval_refuses(counts):
    with pytest.raises(ValueError, match="expected counts"):
        paired_interval(*counts)


INDICES = (0, 10, 100, 700, 1019)


def poisoned_table(accuracies, reference=0.7):
    rows = [{"index": np.nan, "replace": "none", "test_accuracy": reference}]
    own = zip(INDICES, accuracies, strict=False)
    rows += [{"index": index, "replace": "own", "test_accuracy": value} for index, value in own]
    return pd.DataFrame([*rows, {"index": 0, "replace": "all", "test_accuracy": 0.0}])


def test_claims_of_poisoning():
    holds = poisoning_claims(poisoned_table([0.3, 0.5, 0.6, 0.66, 0.69]))
    assert holds["verdict"].tolist() == ["holds"] * 3
    assert holds["measured"].tolist() == ["1.00", "4.0 points", "40.0 points"]
    fails = poisoning_claims(poisoned_table([0.6, 0.5, 0.7, 0.64, 0.55]))
    assert fails["verdict"].tolist() == ["does not hold"] * 3
    constant = poisoning_claims(poisoned_table([0.1, 0.1, 0.1]))
    assert (constant["measured"][0], constant["verdict"][0]) == ("no variation", "does not hold")
    with pytest.raises(ValueError, match="expected a result of A7"):
        poisoning_claims(poisoned_table([0.1, 0.2]))


def test_claims_of_flipping():
    def table(*rows):
        names = ("arm", "only_here", "only_original")
        return pd.DataFrame([{**dict(zip(names, row, strict=True)), "num_test": 1000} for row in rows])

    original = ("original", 0.0, 0.0)
    convolutional = flipping_claims(table(original, ("flipped", 20.0, 180.0), ("permuted", 10.0, 20.0)), False)
    assert convolutional["verdict"].tolist() == ["holds", ""]
    assert convolutional["difference"].tolist() == pytest.approx([-0.16, -0.01])
    assert convolutional["low"][0] < -0.16 < convolutional["high"][0]
    assert flipping_claims(table(original, ("flipped", 20.0, 100.0)), False)["verdict"][0] == "does not hold"
    two_seeds = table(original, original, ("flipped", 50.0, 45.0), ("flipped", 20.0, 40.0))
    isotropic = flipping_claims(two_seeds, True)
    assert isotropic["verdict"].tolist() == ["holds"]
    one_is_off = table(original, original, ("flipped", 50.0, 45.0), ("flipped", 20.0, 90.0))
    assert flipping_claims(one_is_off, True)["verdict"].tolist() == ["does not hold"]


def test_plans_can_be_sent_to_other_processes(lenet):
    plan = module.Plan("lenet", {}, {"source": "patches"}, nt.TrainConfig(), lenet.vectors[:2], torch.device("cpu"), 0)
    assert dataclasses.asdict(pickle.loads(pickle.dumps(plan)))["images"] == {"source": "patches"}
    parameters = experiments.EXPERIMENTS["B2"].parameters("smoke", **B2)
    sent = pickle.loads(pickle.dumps(two_features.Plan(parameters, {1: lenet.vectors[1]}, torch.device("cpu"))))
    assert torch.equal(sent.directions[1], lenet.vectors[1]) and sent.dtype == torch.float64
