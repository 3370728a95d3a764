"""Figures of accuracy against what was known before: they draw what was given, and every control reaches its traces."""

import numpy as np
import pandas as pd
from companion.chapter_05.figures import plot_predictions, plot_spectrum_and_accuracy


def trainings(seeds=1, shift=0.0, train=True):
    """Rows in no particular order, as a sweep that was resumed may leave them."""
    rows = [
        {
            "index": index,
            "seed": seed,
            "eigenvalue": 4.0 / (index + 1),
            "test_accuracy": 0.97 - 0.04 * index - shift + 0.01 * seed,
            "train_accuracy": 1.0,
        }
        for index in (9, 0, 3)
        for seed in range(seeds)
    ]
    frame = pd.DataFrame(rows)
    return frame if train else frame.drop(columns="train_accuracy")


def published():
    return pd.DataFrame({"index": [9, 0], "accuracy": [0.7, 0.99], "architecture": "lenet"})


def predicted(shift=0.0):
    alpha = np.array([0.1, 1.0, 2.0, 10.0])
    frame = pd.DataFrame({"accuracy": [0.5, 0.6, 0.8 - shift, 0.7], "secant": alpha, "gradient": alpha[::-1]})
    return frame.set_axis(["a", "b", "c", "d"])


def press(figure, menu, label):
    """Do what Plotly does when an entry of a dropdown is chosen."""
    (button,) = [button for button in figure.layout.updatemenus[menu].buttons if button.label == label]
    for path, values in button.args[0].items():
        if button.method == "relayout":
            figure.update_layout({path.replace(".", "_"): values})
        else:
            for trace, value in zip(figure.data, values, strict=True):
                trace[path] = value


def shown(figure):
    return {trace.name: trace for trace in figure.data if trace.visible is not False}


def test_spectrum_and_accuracy_are_drawn_by_index():
    figure = plot_spectrum_and_accuracy({"ours": trainings()}, "Title", published={"ours": published()})
    traces = shown(figure)
    np.testing.assert_allclose(traces["eigenvalue (left)"].y, [1, 0.25, 0.1])
    np.testing.assert_allclose(traces["test accuracy"].y, [0.97, 0.85, 0.61])
    np.testing.assert_array_equal(traces["test accuracy"].customdata, [0, 3, 9])
    np.testing.assert_array_equal(traces["published accuracy"].x, [1, 10])
    np.testing.assert_array_equal(traces["published accuracy"].y, [0.99, 0.7])
    assert {name for name, trace in traces.items() if trace.yaxis == "y2"} == set(traces) - {"eigenvalue (left)"}
    assert figure.layout.yaxis.type == "log" and figure.layout.yaxis2.overlaying == "y"
    assert len(figure.layout.updatemenus) == 1
    assert "97% to 61%" in figure.layout.meta["alt"]


def test_several_seeds_give_means_and_standard_deviations():
    trace = shown(plot_spectrum_and_accuracy({"ours": trainings(seeds=3, shift=0.02)}))["test accuracy"]
    np.testing.assert_allclose(trace.y, [0.96, 0.84, 0.60])
    np.testing.assert_allclose(trace.error_y.array, [0.01, 0.01, 0.01])


def test_the_dropdowns_are_independent():
    tables = {"ours": trainings(), "theirs": trainings(shift=0.1, train=False)}
    for order in ((0, 1), (1, 0)):
        figure = plot_spectrum_and_accuracy(tables, published={"theirs": published()})
        for menu in order:
            press(figure, menu, ("logarithmic index", "theirs")[menu])
        assert figure.layout.xaxis.type == "log" and figure.layout.xaxis.autorange
        traces = shown(figure)
        assert set(traces) == {"eigenvalue (left)", "test accuracy", "published accuracy"}
        np.testing.assert_allclose(traces["test accuracy"].y, [0.87, 0.75, 0.51])
        press(figure, 0, "linear index")
        press(figure, 1, "ours")
        assert figure.layout.xaxis.type == "linear"
        assert set(shown(figure)) == {"eigenvalue (left)", "test accuracy", "training accuracy"}


def test_every_point_lies_inside_the_axes():
    low = trainings(shift=0.3)
    figure = plot_spectrum_and_accuracy({"fine": trainings(), "low": low})
    assert figure.layout.yaxis2.range[0] < low["test_accuracy"].min()
    assert figure.layout.yaxis.range[0] < np.log10(0.1)
    assert plot_predictions({"low": predicted(shift=0.7)}).layout.yaxis.range[0] < 0.1


def test_predictions_are_drawn_with_their_rank_correlations():
    figure = plot_predictions({"waves": predicted(), "NADs": predicted(shift=0.15)}, "Title")
    assert set(shown(figure)) == {"secant (ρ = 0.80)", "gradient (ρ = −0.80)"}
    press(figure, 0, "NADs")
    traces = shown(figure)
    assert set(traces) == {"secant (ρ = 1.00)", "gradient (ρ = −1.00)"}
    secant = traces["secant (ρ = 1.00)"]
    np.testing.assert_allclose(secant.y, [0.5, 0.6, 0.65, 0.7], rtol=1e-6)
    np.testing.assert_allclose(secant.x, [0.1, 1, 2, 10], rtol=1e-6)
    assert list(secant.text) == ["a", "b", "c", "d"]
    assert not plot_predictions({"waves": predicted()}).layout.updatemenus


def test_alternative_texts():
    figures = (
        plot_spectrum_and_accuracy({"ours": trainings(3)}, "One", published={"ours": published()}),
        plot_predictions({"waves": predicted()}, "Two"),
    )
    texts = [f.layout.meta["alt"] for f in figures]
    assert "ours" in texts[0] and "secant ρ = 0.80" in texts[1]
