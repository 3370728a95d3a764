"""What chapter 6 draws and measures, and the proposition that it proves."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from companion import chapter_06, experiments, waves
from companion.experiments import EXPERIMENTS
from companion.figures import plot_wall

import nadtools as nt


def test_the_secant_of_a_maximum_is_a_half_for_each_pixel():
    x, s = torch.randn(6, generator=torch.Generator().manual_seed(0), dtype=torch.float64), 1e9
    steps = s * torch.eye(6, dtype=torch.float64)
    secants = ((x + steps).amax(1) - (x - steps).amax(1)) / (2 * s)
    torch.testing.assert_close(secants, torch.full((6,), 0.5, dtype=torch.float64), rtol=0, atol=1e-8)


def test_a_window_of_whole_periods_loses_the_wave_and_keeps_others():
    blurred = torch.nn.Sequential(torch.nn.AvgPool2d((8, 1), stride=1), nt.build("lenet", image_size=(25, 32)))
    lost, kept = [(4, 0), (8, 0), (12, 0)], [(0, 4), (3, 0)]
    alpha = waves.mean_alignments(nt.analytic_nads(blurred), lost + kept, "sine")
    assert (alpha[lost] < 1e-12).all() and (alpha[kept] > 0.1).all()


def test_alignments_of_both_phases_are_the_mean():
    nads, places = nt.analytic_nads("lenet"), [(0, 0), (16, 0), (3, 5), (-2, 7)]
    both, sine, cosine = (waves.mean_alignments(nads, places, phase) for phase in ("both", "sine", "cosine"))
    np.testing.assert_allclose(both, (sine + cosine) / 2, rtol=1e-12)
    v = nt.fourier_atom((32, 32), (3, 5), math.pi / 2)
    assert sine[3, 5] == pytest.approx(float(nads.alignment(v) / nads.eigenvalues.mean()), rel=1e-9)


def test_the_noise_ceiling_of_a_symmetric_map_is_one_and_of_noise_near_zero():
    places = pd.MultiIndex.from_tuples([(i, j) for i in range(-16, 1) for j in range(-16, 16)])
    even = pd.Series([abs(i) + 0.1 * min(j % 32, -j % 32) for i, j in places], places)
    assert waves.noise_ceiling(even) == pytest.approx(1.0)
    noise = pd.Series(np.random.default_rng(0).random(len(places)), places)
    assert abs(waves.noise_ceiling(noise)) < 5 / math.sqrt(len(places))  # five standard errors


def test_the_wall_shows_each_image_at_its_own_scale():
    images = torch.tensor([[[1.0, -2.0], [0.0, 0.5]], [[10.0, 5.0], [0.0, -10.0]]])
    (wall,) = plot_wall({"one": images, "two": images.flip(0)}).data
    pixels = np.asarray(wall.z)
    for top, left, image in ((8, 0, images[0]), (8, 4, images[1]), (18, 0, images[1]), (18, 4, images[0])):
        np.testing.assert_array_equal(pixels[top : top + 2, left : left + 2], (127 * image / image.abs().max()).round())
    assert (pixels == -128).sum() == pixels.size - 4 * 4
    with pytest.raises(ValueError, match="expected one shape"):
        plot_wall({"one": images, "two": images[:1]})
    (alike,) = plot_wall({"one": images, "two": 2 * images}, one_scale=True).data
    assert np.asarray(alike.z)[8:10].max() == 64
    named = plot_wall({"one": dict(zip("ab", images, strict=True)), "two": images})
    assert [(note.text, note.x) for note in named.layout.annotations] == [("a", -0.5), ("b", 3.5), ("two", -0.5)]
    np.testing.assert_array_equal(named.data[0].z[8:10], pixels[8:10])


def test_thresholds_and_layers_draw_what_they_are_given():
    table = pd.DataFrame({"alpha": [0.0, 0.5, 2.0], "accuracy": [0.5, 0.7, 0.9]}, index=[(8, 0), (1, 0), (0, 0)])
    (points,) = chapter_06.plot_thresholds({"LeNet": table}).data
    np.testing.assert_allclose(points.x, [1e-4, 0.5, 2.0], rtol=1e-6)  # the axis is logarithmic
    np.testing.assert_allclose(points.y, table["accuracy"], rtol=1e-6)
    assert list(points.text) == ["(8, 0)", "(1, 0)", "(0, 0)"] and "ρ = 1" in points.name
    both = chapter_06.plot_thresholds({"LeNet": table}, hollow={"LeNet, σ = 0.5": table}, gap=(0.6, 1.0))
    assert [trace.marker.symbol for trace in both.data] == ["circle", "circle-open"]
    assert len({trace.marker.color for trace in both.data}) == 1 and both.data[1].name == "LeNet, σ = 0.5"
    layers = {"conv": np.eye(3), "image": np.zeros((5, 5))}
    shown = chapter_06.plot_layers(layers).data
    for drawn, given in zip(shown, layers.values(), strict=True):
        np.testing.assert_array_equal(drawn.z, given)


def test_one_curve_is_found_in_trainings_that_follow_it():
    rows = [(a, n, s) for a in np.geomspace(0.01, 30, 9) for n in (300, 1000, 3000) for s in (0.5, 1.0, 2.0)]
    table = pd.DataFrame([*rows, (0.0, 300, 1.0)], columns=["alpha", "samples", "sigma"])
    x = np.log10(table["alpha"].clip(lower=1e-9) * (table["samples"] / 1000) ** 0.6 / table["sigma"] ** 2.5)
    table["test_accuracy"] = 0.5 + 0.5 / (1 + np.exp(1 - 3 * x))
    fit = chapter_06.fit_one_curve(table)
    assert (fit.samples_power, fit.noise_power) == pytest.approx((0.6, 2.5), abs=1e-4)
    assert fit.deviation < 1e-5 < 0.05 < fit.of_alpha_alone and len(fit.x) == len(rows)
    *points, curve = chapter_06.plot_one_curve(table, fit).data
    assert [trace.xaxis for trace in points] == ["x", "x2"] * 3 and curve.xaxis == "x2"
    np.testing.assert_allclose(sorted(points[0].x), sorted(table.query("sigma == 0.5").alpha), rtol=1e-6)


def test_width_is_measured_against_both_forms():
    session = experiments.Session(0, torch.device("cpu"), None, False, Path())
    measured = EXPERIMENTS["width"].compute({"widths": [4, 32], "networks": [60, 60]}, session)
    single = measured["infinite-width_single"]
    assert single[1] < 0.7 * single[0]  # a slope of -1/2 gives 0.35
    assert all(abs(measured["infinite-width_error"]) < 5 * measured["infinite-width_stderr"])
