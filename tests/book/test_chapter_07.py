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
from exercise_answers_07 import SOLUTIONS

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
    (dots,) = chapter_07.plot_trainings(tables).data
    np.testing.assert_allclose(dots.y, accuracy, atol=1e-6)
    np.testing.assert_allclose(dots.x, tables[network].alpha.clip(lower=1e-5), rtol=1e-6)


def test_a_corner_is_enlarged_and_only_the_first_image_is_named():
    images = torch.arange(2 * 16.0).view(2, 4, 4)
    top, bottom = (chapter_07.with_corner("a", images, 2, bottom) for bottom in (False, True))
    assert list(top) == ["a", " ", "2 × 2"]
    assert top["2 × 2"][:2].tolist() == [[0, 0, 1, 1]] * 2 and bottom["2 × 2"][0].tolist() == [8, 8, 9, 9]


def test_a_diamond_stands_at_the_foot_of_a_step():
    nads = nt.estimate_nads("lstm", 4, image_size=(16, 16), seed=0, progress=False)
    curve, diamonds = chapter_07.plot_spectra({"LSTM": nads}, steps={"LSTM": [16, 32]}).data
    assert diamonds.x.tolist() == [17, 33] and diamonds.y.tolist() == [curve.y[16], curve.y[32]]
    assert curve.y[16] < curve.y[15] / 3 and curve.y[32] < curve.y[31] / 3


def test_the_spectra_without_names_are_told_apart():
    worth = {}
    for label, nads in chapter_07.unlabelled_nads(seed=1, progress=False).items():
        relative = nads.held_out / nads.held_out.mean()
        worth[label] = [float(relative[a:b].mean()) for a, b in ((0, 16), (16, 32), (32, 48))]
    assert "".join("ABCD"[list(worth).index(label)] for label in ("ViT", "Mixer", "LSTM", "MLP")) == SOLUTIONS["07-3"]
    falls = {label: (first / second, second / third) for label, (first, second, third) in worth.items()}
    assert falls["ViT"][0] > 1000 and 10 < falls["Mixer"][0] < 100 and min(falls["LSTM"]) > 4
    assert max(*falls["MLP"], falls["ViT"][1], falls["Mixer"][1]) < 1.5


def each_of(name: str, network: str) -> pd.DataFrame:
    table = experiments.load_table(name, network=network)
    assert set(table["seed"]) == {0, 1, 2} and not table["test_accuracy"].isna().any()
    return table


def stored_of(name: str, network: str, by: str | list[str]) -> pd.DataFrame:
    return each_of(name, network).groupby(by).mean()


def extremes(accuracy: pd.Series) -> list[str]:
    return [f"{share:.1%}" for share in (accuracy.min(), accuracy.max())]


@pytest.mark.parametrize("network", chapter_07.load_stored("beyond"))
def test_what_is_worth_more_than_the_mean_is_learned(network):
    table = each_of("beyond", network)
    assert table[table.alpha > 1].test_accuracy.min() > 0.999


def test_what_the_chapter_says_of_positions():
    table = experiments.load_table("positions")
    assert set(table["seed"]) == {0, 1, 2}
    lost = table[table["frequency_i"] == 1].groupby("position_embedding").mean()
    assert [f"{share:.0%}" for share in lost.test_accuracy[[0, 1]]] == ["50%", "100%"]
    part = table[(table["frequency_i"] == 1) & (table["position_embedding"] == 0.02)].test_accuracy
    assert [f"{share:.0%}" for share in (part.min(), part.max())] == ["57%", "74%"]
    assert [f"{alpha:.1g}" for alpha in lost.alpha_gradient[1:]] == ["0.03", "0.3"]
    assert lost.alpha_secant.max() < 0.003
    after = each_of("beyond", "vit-8").set_index("index").test_accuracy.loc[66:]
    assert [f"{share:.0%}" for share in (after.min(), after.max())] == ["51%", "54%"]


def test_what_the_chapter_says_of_long_trainings():
    vit = stored_of("beyond", "vit-8", "index")
    assert vit.test_accuracy.loc[:62].min() > 0.99 and each_of("beyond", "vit-8").train_accuracy.min() > 0.994
    assert vit.test_accuracy.loc[66:].max() < 0.53 and vit.alpha.loc[66:].max() < 0.01
    mixer = each_of("beyond", "mixer").set_index("index").loc[66:]
    assert extremes(mixer.test_accuracy.loc[66]) == ["86.5%", "88.8%"]
    assert extremes(mixer.test_accuracy.loc[67:]) == ["66.1%", "70.0%"]
    assert [f"{alpha:.2f}" for alpha in (mixer.alpha.min(), mixer.alpha.max())] == ["0.27", "0.31"]
    lstm = stored_of("beyond", "lstm", "index")
    assert [f"{lstm.test_accuracy[k]:.0%}" for k in (66, 128, 500, 1000)] == ["100%", "83%", "57%", "50%"]
    assert [f"{lstm.alpha[k]:.2g}" for k in (66, 128)] == ["0.29", "0.016"]
    at_128 = each_of("beyond", "lstm").set_index("index").test_accuracy[128]
    assert [f"{share:.0%}" for share in (at_128.min(), at_128.max())] == ["82%", "84%"]
    convnext = stored_of("beyond", "convnext", "index")
    assert convnext.test_accuracy.loc[:62].min() == 1 and (convnext.alpha.loc[66:] * 1000).round().eq(1).all()
    after = each_of("beyond", "convnext").set_index("index").test_accuracy.loc[66:]
    assert [f"{share:.0%}" for share in (after.min(), after.max())] == ["81%", "96%"]
    assert round(convnext.test_accuracy.loc[66:].mean(), 1) == 0.9
    asleep = stored_of("beyond", "convnext-asleep", "index").test_accuracy
    assert asleep.loc[:62].min() == 1 and asleep.loc[66:].max() < 0.51


@pytest.mark.parametrize("network", chapter_07.load_stored("spaces"))
def test_two_estimates_share_every_eigenspace_that_is_called_settled(network):
    assert experiments.load_table("spaces", network=network)["overlap"].min() >= 0.97


@pytest.mark.parametrize("network", sorted(set(chapter_07.load_stored("beyond")) - {"convnext"}))
def test_accuracy_falls_by_thirty_points_from_before_the_step_to_the_end(network):
    accuracy = stored_of("beyond", network, "index").test_accuracy
    assert accuracy[accuracy.index < chapter_07.NETWORKS[network].step].min() - accuracy.iloc[-1] > 0.3


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
