"""Figures of the theory of pooling: what is drawn is what was given, and every control reaches its traces."""

import numpy as np
import pytest
from companion.chapter_02.figures import plot_aliasing, plot_folding, plot_pooling_accuracies
from companion.chapter_02.measured import compared, kept_in_total
from companion.figures import plot_curves

from nadtools.theory import pooling

LAYERS = [(stride, prefilter) for stride in (4, 2) for prefilter in ("average", "identity")]
SIZE = 32


def responses():
    return {(s, p): pooling.spectral_response(p, SIZE, s) for s, p in LAYERS}


def accuracies():
    return {(s, p): pooling.fourier_accuracies(p, s, 1.0, 1.0, size=SIZE) for s, p in LAYERS}


def apply(figure, arguments):
    """Do what Plotly's restyle does."""
    changes, indices = arguments
    for name, values in changes.items():
        for index, value in zip(indices, values, strict=True):
            figure.data[index][name] = value


def lines_of(figure, name):
    (trace,) = [trace for trace in figure.data if trace.name == name and trace.visible is not False]
    return [x for x in trace.x if x is not None][::2]


def test_aliasing_marks_the_frequency_and_its_aliases():
    figure = plot_aliasing(responses(), accuracies())
    assert lines_of(figure, "ℓ") == [9]
    assert sorted(lines_of(figure, "its aliases ℓ + kM")) == [-15, -7, 1]
    slider, strides = figure.layout.sliders[0], figure.layout.updatemenus[0]
    assert slider.active == 9 and len(slider.steps) == SIZE // 2 + 1
    apply(figure, slider.steps[5].args)
    apply(figure, strides.buttons[1].args)
    assert strides.buttons[1].label == "S = 2"
    assert lines_of(figure, "ℓ") == [5]
    assert lines_of(figure, "its aliases ℓ + kM") == [-11]


def test_aliasing_draws_the_chosen_layer_whatever_the_order_of_the_controls():
    expected = accuracies()[2, "identity"][: SIZE // 2 + 1].numpy().round(4)
    for order in ((0, 1), (1, 0)):
        figure = plot_aliasing(responses(), accuracies())
        for menu in order:
            apply(figure, figure.layout.updatemenus[menu].buttons[1].args)
        shown = [trace for trace in figure.data if trace.visible is not False and trace.yaxis == "y2"]
        curve = next(trace for trace in shown if len(trace.x) == SIZE // 2 + 1)
        np.testing.assert_array_equal(np.asarray(curve.y), expected)


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
