"""Figures of the theory of pooling: what is drawn is what was given, and every control reaches its traces."""

import numpy as np
import pytest
from companion.chapter_02.figures import plot_bin, plot_folding, plot_foretold, plot_pooling_accuracies
from companion.chapter_02.measured import compared, kept_in_total
from companion.figures import plot_curves

from nadtools.theory import pooling


def apply(figure, arguments):
    """Do what Plotly's restyle does."""
    changes, indices = arguments
    for name, values in changes.items():
        for index, value in zip(indices, values, strict=True):
            figure.data[index][name] = value


def test_a_bin_holds_the_frequency_and_its_aliases_as_loud_as_the_filter_leaves_them():
    response = pooling.spectral_response("average", 32, 4)
    figure = plot_bin(response, 4, 9)
    dots = {trace.name: trace for trace in figure.data if trace.mode == "markers"}
    assert list(dots["ℓ"].x) == [9] and sorted(dots["its aliases ℓ + kM"].x) == [-15, -7, 1]
    for trace in dots.values():
        np.testing.assert_allclose(trace.y, [abs(response[place]) ** 2 for place in trace.x], atol=1e-6)
    assert {note.text for note in figure.layout.annotations} == {"9", "−15", "−7", "1"}


def test_what_is_foretold_and_what_is_learned_meet_on_the_diagonal():
    figure = plot_foretold([0.5, 1.0], [0.7, 0.8], ["(8, 0)", "(0, 0)"], {"(0, 0)": "left"}, "before", "after")
    diagonal, dots = figure.data
    assert list(diagonal.x) == list(diagonal.y)
    assert list(dots.x) == [0.5, 1.0] and list(dots.y) == [0.7, 0.8]
    assert figure.layout.annotations[0].text == "(0, 0)" and "1 of 2 waves" in figure.layout.meta["alt"]


def layer(scale):
    x = np.arange(5)
    return {
        m: {"printed": (x, scale * x * f), "exact": (x, x * f), "Monte Carlo": ([1, 3], [f, 3 * f])} for m, f in MARGINS
    }


MARGINS = [("0.5", 0.1), ("1", 0.2), ("2", 0.25)]


def test_accuracies_follow_the_layer_and_the_margin():
    figure = plot_pooling_accuracies({"S = 4": layer(1.5), "S = 2": layer(1.0)})
    slider = figure.layout.sliders[0]
    assert slider.active == 1
    assert list(figure.data[0].y) == pytest.approx([0, 0.3, 0.6, 0.9, 1.2])
    apply(figure, slider.steps[2].args)
    apply(figure, figure.layout.updatemenus[0].buttons[1].args)
    assert [trace.visible for trace in figure.data] == [False] * 3 + [True] * 3
    assert list(figure.data[3].y) == pytest.approx([0, 0.25, 0.5, 0.75, 1.0])
    assert figure.data[0].line.dash == "dash" and figure.data[2].mode == "markers"
    assert "Monte Carlo" in figure.layout.meta["alt"]


CURVES = {"a": ([1, 2, 3], [1, 4, 9]), "b": ([1, 3], [2, 2])}


@pytest.mark.parametrize("choose", ["slider", "dropdown"])
def test_curves_show_one_choice_at_a_time(choose):
    figure = plot_curves({"first": CURVES, "second": CURVES}, "x", "y", "Title", choose=choose, markers=("b",))
    assert [trace.visible for trace in figure.data] == [True, True, False, False]
    assert figure.data[1].mode == "markers" and list(figure.data[0].y) == [1, 4, 9]
    control = figure.layout.sliders[0].steps if choose == "slider" else figure.layout.updatemenus[0].buttons
    assert control[1].args[0]["visible"] == [False, False, True, True]


def test_curves_without_a_choice():
    figure = plot_curves(CURVES, "x", "share", y_log=True, dashed=("a",), y_format=".1%")
    assert not figure.layout.sliders and not figure.layout.updatemenus
    assert figure.layout.yaxis.type == "log" and figure.data[0].line.dash == "dash"


@pytest.mark.parametrize("choose", ["slider", "dropdown"])
def test_one_choice_needs_no_control(choose):
    figure = plot_curves({"first": CURVES}, "x", "y", "Title", choose=choose, prefix="S = ")
    assert not figure.layout.sliders and not figure.layout.updatemenus
    assert figure.layout.title.text == "Title: S = first"
    assert "chooses" not in figure.layout.meta["alt"]


def test_kept_samples_of_a_wave_and_its_alias_coincide_and_their_means_do_not():
    dots = [trace for trace in plot_folding(3, 4, 32).data if trace.mode == "markers"]
    kept, means = dots[0::2], dots[1::2]
    np.testing.assert_allclose(kept[0].y, kept[1].y, atol=1e-3)
    assert np.abs(means[1].y).max() < np.abs(means[0].y).max() / 2


def test_samples_agree_with_the_exact_curve_and_not_with_the_printed_one():
    curves = compared(128, [5, 13], 4_000, 0)["S = 4, average"]["1"]
    measured = curves["Monte Carlo"][1]
    assert abs(measured - curves["exact"][1][[5, 13]]).max() < 0.025
    assert abs(measured - curves["printed in the paper"][1][[5, 13]]).max() > 0.05


def test_no_prefilter_keeps_more_than_another_in_total():
    table = kept_in_total(128, 4)
    np.testing.assert_allclose(table["all waves"], 32, atol=0.6)
    assert table["below M/2"].idxmax() == "ideal"
