"""What is trained for chapter 7: directions on both sides of a step, waves on and off a lattice."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from companion import chapter_07, experiments
from companion.photographs import over_carriers
from companion.waves import mean_alignments

import nadtools as nt


@pytest.mark.parametrize("network", chapter_07.NETWORKS)
def test_half_of_the_directions_lie_before_the_step(network):
    indices = experiments.EXPERIMENTS["beyond"].parameters("laptop", network=network)["indices"]
    assert [index < chapter_07.NETWORKS[network].step for index in indices] == [True] * 4 + [False] * 4
    assert sorted(set(indices)) == indices


def test_two_estimates_of_a_vision_transformer_share_the_lattice(tmp_path):
    chosen = {"scale": "smoke", "network": "vit-4", "results_dir": tmp_path}
    experiments.run("spaces", progress=False, num_jobs=1, **chosen)
    spaces = experiments.load_table("spaces", **chosen)
    assert spaces["size"].tolist() == [16, 1008]
    assert spaces["overlap"].min() > 0.9 and spaces["alpha"][1] < 1e-3 * spaces["alpha"][0]


def permuted(images: torch.Tensor, patch: int, order: torch.Tensor) -> torch.Tensor:
    """Images of shape (n, 1, h, w) with their patches in another order."""
    patches = torch.nn.functional.unfold(images, patch, stride=patch)
    return torch.nn.functional.fold(patches[..., order], images.shape[-2:], patch, stride=patch)


@pytest.mark.parametrize("class_token", [False, True])
def test_without_positions_a_transformer_sees_a_set_and_its_gradient_repeats(class_token):
    network = nt.build("vit", num_classes=1, position_embedding=0, class_token=class_token).eval()
    images = torch.randn(3, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    moved = permuted(images, 8, order)
    assert not torch.allclose(moved, images)
    torch.testing.assert_close(network(moved), network(images), rtol=0, atol=1e-5)
    x = torch.zeros(1, 1, 32, 32, requires_grad=True)
    (gradient,) = torch.autograd.grad(network(x).sum(), x)
    assert float(chapter_07.lattice_share(gradient, 8)) == pytest.approx(1, abs=1e-6)
    with_positions = nt.build("vit", num_classes=1, class_token=class_token).eval()
    (gradient,) = torch.autograd.grad(with_positions(x).sum(), x)
    assert float(chapter_07.lattice_share(gradient, 8)) < 0.999


@pytest.mark.parametrize("patch", [4, 8, 16])
def test_a_wave_repeats_with_the_patch_or_a_shift_by_patches_is_its_negative(patch):
    for i in range(-16, 16):
        for j in range(-16, 16):
            wave = nt.fourier_atom((32, 32), (i, j), math.pi / 3)
            share = float(chapter_07.lattice_share(wave, patch))
            shifts = [(a, b) for a in range(0, 32, patch) for b in range(0, 32, patch)]
            lost = any(torch.allclose(wave.roll(shift, (0, 1)), -wave, rtol=0, atol=1e-5) for shift in shifts)
            assert lost == (share < 0.5) and min(share, 1 - share) < 1e-5, (i, j)


def test_the_figures_show_what_they_are_given(tmp_path):
    assert chapter_07.load_stored("beyond", results_dir=tmp_path) == {}
    network = "lstm"
    experiments.run("beyond", scale="smoke", network=network, results_dir=tmp_path, progress=False, num_jobs=1)
    tables = chapter_07.load_stored("beyond", scale="smoke", results_dir=tmp_path)
    assert list(tables) == [network]
    accuracy = tables[network].set_index("index").test_accuracy
    figure = chapter_07.plot_trainings(tables)
    (curve,) = figure.data
    np.testing.assert_allclose(curve.y, accuracy, atol=1e-6)
    (step,) = figure.layout.shapes
    assert step.x0 == 128 + 1  # indices begin at 1, on a logarithmic axis


def stored_of(name: str, network: str, by: str | list[str]) -> pd.DataFrame:
    table = experiments.load_table(name, network=network)
    assert set(table["seed"]) == {0, 1, 2} and not table["test_accuracy"].isna().any()
    return table.groupby(by).mean()


def test_what_the_chapter_says_of_two_features():
    mean = stored_of("two", "vit-8", ["first", "second"])
    assert f"{mean.test_accuracy_second[66, 0]:.1%} / {1 - mean.follows_first[66, 0]:.1%}" == "99.7% / 99.9%"
    assert mean.test_accuracy_first[0, 66] > 0.99 and mean.test_accuracy_second[0, 32] > 0.85  # before the step: used
    after = [mean.test_accuracy_first[66, 0], mean.test_accuracy_second[0, 66], mean.test_accuracy[66, 1000]]
    np.testing.assert_allclose(after, 0.5, atol=0.02)  # five standard errors of three networks' 4,000 answers


def test_what_the_chapter_says_of_carriers():
    table = experiments.load_table("poisoned", network="vit-8")
    assert set(table["seed"]) == {0, 1, 2}
    mean = table.groupby("index", dropna=False).mean(numeric_only=True)
    with_one = mean.test_accuracy[mean.index.notna()]
    accuracies = [float(mean.test_accuracy[mean.index.isna()].iloc[0]), with_one.min(), with_one.max()]
    assert [f"{accuracy:.0%}" for accuracy in accuracies] == ["69%", "67%", "69%"]
    lenet = experiments.load_table("A7", architecture="lenet")
    first = lenet[(lenet["index"] == 0) & (lenet["replace"] == "own")].test_accuracy.mean()
    assert f"{lenet[lenet['replace'] == 'none'].test_accuracy.mean() - first:.0%}" == "34%"
    assert mean.follows_carrier.max() < 0.1 < 0.6 < mean.follows_content.min()
    noticed = (table.test_accuracy_poisoned - table.test_accuracy).groupby(table["index"]).agg(["min", "max"])
    assert [f"{100 * value:.1f}" for value in noticed.loc[0]] == ["1.9", "2.8"]
    assert noticed.loc[32, "min"] > 0.005 and noticed.loc[66:].abs().to_numpy().max() < 0.0041


def test_what_the_chapter_says_of_positions():
    table = experiments.load_table("positions")
    assert set(table["seed"]) == {0, 1, 2}
    lost = table[table["frequency_i"] == 1].groupby("position_embedding").mean()
    assert [f"{share:.0%}" for share in lost.test_accuracy[[0, 1]]] == ["50%", "100%"]
    part = table[(table["frequency_i"] == 1) & (table["position_embedding"] == 0.02)].test_accuracy
    assert [f"{share:.0%}" for share in (part.min(), part.max())] == ["57%", "74%"]
    assert [f"{alpha:.1g}" for alpha in lost.alpha_gradient[1:]] == ["0.03", "0.3"]
    assert lost.alpha_secant.max() < 0.003


def test_what_the_chapter_says_of_long_trainings():
    vit = stored_of("beyond", "vit-8", "index")
    assert vit.test_accuracy.loc[:62].min() > 0.99 and vit.train_accuracy.min() > 0.9965
    assert vit.test_accuracy.loc[66:].max() < 0.53 and vit.alpha.loc[66:].max() < 0.01
    mixer = stored_of("beyond", "mixer", "index")
    assert mixer.test_accuracy.loc[66:].min() > 0.66 and mixer.alpha.loc[66:].round(1).eq(0.3).all()
    assert [f"{mixer.test_accuracy[k]:.0%}" for k in (66, 128, 500, 1000)] == ["87%", "69%", "67%", "67%"]
    lstm = stored_of("beyond", "lstm", "index")
    assert [f"{lstm.test_accuracy[k]:.0%}" for k in (66, 128, 500, 1000)] == ["100%", "83%", "57%", "50%"]
    assert 0.25 < lstm.alpha[66] < 0.35 and lstm.alpha[128] < 1 / 50
    convnext = stored_of("beyond", "convnext", "index")
    assert convnext.test_accuracy.loc[:62].min() == 1 and (convnext.alpha.loc[66:] * 1000).round().eq(1).all()
    after = convnext.test_accuracy.loc[66:]
    assert [f"{share:.0%}" for share in (after.min(), after.max())] == ["88%", "94%"]
    asleep = stored_of("beyond", "convnext-asleep", "index").test_accuracy
    assert asleep.loc[:62].min() == 1 and asleep.loc[66:].max() < 0.51


@pytest.mark.parametrize("network", chapter_07.load_stored("spaces"))
def test_two_estimates_share_every_eigenspace_that_is_called_settled(network):
    assert experiments.load_table("spaces", network=network)["overlap"].min() >= 0.97


@pytest.mark.parametrize("network", sorted(set(chapter_07.load_stored("beyond")) - {"convnext"}))
def test_accuracy_falls_by_thirty_points_from_before_the_bulk_to_its_end(network):
    accuracy, one = stored_of("beyond", network, "index").test_accuracy, chapter_07.NETWORKS[network]
    bulk = one.bulk or one.step
    assert accuracy[accuracy.index < bulk].min() - accuracy.iloc[-1] > 0.3


def test_what_the_chapter_says_of_patches_of_four():
    table = experiments.load_table("beyond", network="vit-4").set_index("index").test_accuracy
    assert table.loc[:15].min() > 0.9995
    assert f"{table.loc[16:].groupby(level=0).mean().max():.0%}" == "53%"


def test_a_curve_over_carriers_has_one_point_for_each_index():
    rows = {
        "replace": ["own"] * 4 + ["none"] * 2,
        "index": [0, 9, 0, 9, None, None],
        "test_accuracy": [2, 4, 4, 8, 1, 3],
    }
    table = pd.DataFrame(rows | dict.fromkeys(("train_accuracy", "follows_carrier", "follows_content"), 0.5))
    curves = over_carriers(table)
    index, accuracy = curves["clean test images"]
    assert (list(index), list(accuracy)) == ([0, 9], [3, 6])
    assert list(curves["clean, trained without a carrier"][1]) == [2, 2]


def test_what_the_chapter_says_of_lenet_and_smooth_waves():
    smooth, lost = mean_alignments(nt.analytic_nads("lenet"), [(1, 0), (8, 0)])
    assert round(smooth) == 15  # times the mean
    assert lost < 1e-9
