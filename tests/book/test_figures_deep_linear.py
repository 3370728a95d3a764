"""Figures of the deep linear model: what is drawn equals what was given, controls change what is shown."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from companion.chapter_03.figures import (
    plot_accuracy_and_steps,
    plot_landscapes,
    plot_learning_rates,
    plot_losses,
    plot_steps,
)
from companion.chapter_03.landscape import two_weight_landscape
from companion.chapter_03.measured import at_one_ninth, breaking_rates, mean_curvatures, prefilter, slow_frequencies
from test_figures import assert_complete, shown, steps_of

LANDSCAPES = {f"{m:g}": two_weight_landscape(m, learning_rate=0.1, steps=30, resolution=9) for m in (1.0, 0.5, 0.1)}
FREQUENCIES = torch.arange(0, 65, 8)
ACCURACY = torch.linspace(1.0, 0.6, 9)
STEPS = torch.logspace(0, 3, 9)
CHOICES = {
    "1/3": ({"best accuracy": ACCURACY}, {"both": STEPS, "one": STEPS * 2}),
    "1/30": ({"best accuracy": ACCURACY.flip(0)}, {"both": STEPS.flip(0), "one": torch.full((9,), math.inf)}),
}
COUNTS = pd.DataFrame(
    {
        "training": ["φ alone"] * 4 + ["batches"] * 4,
        "sigma": [0.1, 0.1, 3.0, 3.0] * 2,
        "response": [1.0, 0.01, 1.0, 0.01] * 2,
        "kappa": [1.0, 99.0, 1.0, 9_000.0] * 2,
        "zeta": [100.0, 0.01, 1 / 9, 1e-5] * 2,
        "steps": [1.0, 100.0, 2.0, math.inf, 5.0, 500.0, 50.0, 2_000.0],
    }
)
MULTIPLES = torch.logspace(-1, 0.5, 6)
ENDS = {"φ alone": [0.5, 0.5, 0.5, 0.5, math.inf, math.inf], "both": torch.tensor([0.6, 0.7, 80.0, 1e9, 1e9, math.inf])}
CURVE = torch.logspace(0.2, -1, 1001)
LOSSES = {
    "σ = 0.3": ({"m = 1": CURVE, "m = 0.3": CURVE * 1.1}, 0.08),
    "σ = 3": ({"m = 1": CURVE + 0.9, "m = 0.3": CURVE + 1}, 0.9),
}
BUILDERS = {
    "landscapes": lambda **o: plot_landscapes(LANDSCAPES, prefix="m = ", **o),
    "accuracy and steps": lambda **o: plot_accuracy_and_steps(FREQUENCIES, CHOICES, prefix="weakest ", **o),
    "learning rates": lambda **o: plot_learning_rates(MULTIPLES, ENDS, **o),
    "steps": lambda **o: plot_steps(COUNTS, **o),
    "losses": lambda **o: plot_losses(LOSSES, **o),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_a_figure_is_complete(name):
    assert_complete(BUILDERS[name](title="A title"))


def test_a_path_that_diverges_is_drawn_as_far_as_numbers_go():
    away = {"1": two_weight_landscape(1.0, learning_rate=30.0, steps=60, resolution=5)}
    assert "loss" in plot_landscapes(away).layout.meta["alt"]


def test_landscapes_slider_shows_one_landscape_and_all_loss_curves():
    figure = BUILDERS["landscapes"]()
    assert [step.label for step in steps_of(figure)] == ["1", "0.5", "0.1"]
    for number, landscape in enumerate(LANDSCAPES.values()):
        *grey, contour, path, curve = shown(figure, number)
        assert len(grey) == 3
        for trace, other in zip(grey, LANDSCAPES.values(), strict=True):
            np.testing.assert_allclose(trace.y, other.path_losses, rtol=1e-6)
        # Rows are phi, the vertical axis; columns theta.
        np.testing.assert_allclose(contour.z, landscape.losses.clamp(max=2.0), rtol=1e-6)
        np.testing.assert_allclose(contour.x, landscape.theta)
        np.testing.assert_allclose(np.stack([path.x, path.y], 1), landscape.path, rtol=1e-6)
        np.testing.assert_allclose(curve.y, landscape.path_losses, rtol=1e-6)
        title = steps_of(figure)[number].args[1]["title.text"].replace("<br>", " ")
        wanted = f"learned after {landscape.steps_to_learn:.0f} steps"
        assert title.endswith(wanted if math.isfinite(landscape.steps_to_learn) else "after 30 steps")
    (line,) = figure.layout.shapes
    assert line.y0 == line.y1 == LANDSCAPES["1"].least
    assert figure.layout.xaxis.title.text == "θ" and figure.layout.yaxis.title.text == "φ"


def test_accuracy_and_steps_share_the_frequency_and_the_slider_changes_both():
    figure = BUILDERS["accuracy and steps"]()
    for number, (accuracies, steps) in enumerate(CHOICES.values()):
        top, both, one = shown(figure, number)
        np.testing.assert_allclose(top.y, accuracies["best accuracy"])
        np.testing.assert_allclose(both.y, steps["both"])
        np.testing.assert_array_equal(both.x, FREQUENCIES)
        assert (top.yaxis, both.yaxis, one.yaxis) == ("y", "y2", "y2")
        assert np.isnan(one.y).all() == (number == 1)  # infinite steps are left out
    assert figure.layout.yaxis2.type == "log"
    assert 10 ** figure.layout.yaxis2.range[1] > 2000
    assert "both from 1 to 1000 steps" in figure.layout.meta["alt"]
    assert "one never" in figure.layout.meta["alt"]


def test_learning_rates_are_drawn_up_to_the_highest_loss_with_the_limit():
    figure = BUILDERS["learning rates"]()
    alone, both, limit = figure.data
    np.testing.assert_allclose(alone.y, [0.5, 0.5, 0.5, 0.5, 10, 10])
    np.testing.assert_allclose(both.y, [0.6, 0.7, 10, 10, 10, 10])
    assert list(limit.x) == [1, 1] and limit.line.dash == "dash"
    assert "φ alone from 1.6" in figure.layout.meta["alt"] and "both from 0.4" in figure.layout.meta["alt"]
    fine = plot_learning_rates([0.5, 1.0], {"a": [0.5, 0.5]})
    assert "a nowhere" in fine.layout.meta["alt"]


def test_steps_are_drawn_against_the_response_and_against_kappa():
    figure = BUILDERS["steps"]()
    buttons = figure.layout.updatemenus[0].buttons
    assert [button.label for button in buttons] == ["φ alone", "batches"]
    for button in buttons:
        visible = button.args[0]["visible"]
        *measured, formula = (trace for trace, on in zip(figure.data, visible, strict=True) if on)
        rows = COUNTS[(COUNTS.training == button.label) & np.isfinite(COUNTS.steps)]
        for trace, (sigma, x) in zip(measured, itertools.product((0.1, 3.0), ("response", "kappa")), strict=True):
            wanted = rows[rows.sigma == sigma]
            np.testing.assert_array_equal(trace.x, wanted[x])
            np.testing.assert_array_equal(trace.y, wanted.steps)
        # From large κ on: ln 10 / 2 steps for each unit of it.
        assert formula.y[-1] == pytest.approx(9_000 * math.log(10) / 2, rel=1e-3)
    assert figure.layout.xaxis.title.text == "response m[ℓ]" and figure.layout.xaxis2.title.text == "κ(ℓ)"


def test_steps_at_one_ninth_lie_between_their_neighbours():
    table = at_one_ninth(COUNTS)
    assert table.loc["φ alone", "σ = 3"] == pytest.approx(2)
    place = math.log(1 / 9 / 0.01) / math.log(100 / 0.01)
    assert table.loc["batches", "σ = 0.1"] == pytest.approx(500 ** (1 - place) * 5**place)


def test_losses_are_thinned_out_and_counted_from_the_least():
    figure = BUILDERS["losses"]()
    for number, (curves, least) in enumerate(LOSSES.values()):
        for trace, losses in zip(shown(figure, number), curves.values(), strict=True):
            assert trace.x[0] == 1 and trace.x[-1] == 1000 and len(trace.x) <= 120
            np.testing.assert_allclose(trace.y, losses[trace.x.astype(int)] - least, rtol=1e-5, atol=1e-6)
    assert figure.layout.yaxis.type == "log" and tuple(figure.layout.yaxis.range) == (-3, 1)
    assert "σ = 3: m = 1 0.1" in figure.layout.meta["alt"]


@pytest.mark.parametrize("name", ["learning rates", "steps", "losses", "accuracy and steps"])
def test_the_legend_has_two_columns_and_room(name):
    layout = BUILDERS[name](title="A title").layout
    assert (layout.legend.entrywidth, layout.legend.entrywidthmode) == (0.5, "fraction")
    rows = -(-sum(trace.visible is not False for trace in BUILDERS[name]().data) // 2)
    assert layout.margin.t >= 22 + 20 * rows


def test_a_figure_opens_on_the_choice_that_is_asked_for():
    figure = plot_accuracy_and_steps(FREQUENCIES, CHOICES, first="1/30")
    (slider,) = figure.layout.sliders
    assert slider.active == 1
    assert [trace.visible for trace in figure.data] == list(slider.steps[1].args[0]["visible"])
    visible = [trace for trace in figure.data if trace.visible]
    np.testing.assert_allclose(visible[0].y, ACCURACY.flip(0))


def test_the_machine_finds_the_curvature_of_the_lemma_and_not_the_printed_one():
    table = mean_curvatures(4_000, 0)
    np.testing.assert_allclose(table["φ: measured / lemma"], 1, atol=0.05)
    np.testing.assert_allclose(table["φ: measured / as printed"] * table.index, 1, atol=0.05)
    np.testing.assert_allclose(table["θ: measured / formula"], 1, atol=0.05)


def test_training_breaks_at_the_limit_for_weights_of_one_size_and_earlier_for_normal_ones():
    multiples, ends, normal = breaking_rates(prefilter(30), 40, 200, 0)
    one, other = (float(multiples[ends[name] > 10].min()) for name in ("θ = ±1", "normal θ"))
    assert 1 < one < 1.15
    assert normal < other < 1.15 * normal < 0.5


def test_behind_an_invertible_filter_all_is_possible_and_some_is_slow():
    choices, powers = slow_frequencies([0, 32, 64], steps=4_000, seed=0)
    accuracies, steps = choices["1/30"]
    np.testing.assert_allclose(accuracies["best accuracy"], 0.84134, atol=1e-5)  # Φ(1)
    assert steps["φ and θ learn"][2] > 100 * steps["φ and θ learn"][0]
    assert powers["φ alone, formula"] == pytest.approx(-2, abs=0.1)
