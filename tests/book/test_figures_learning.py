"""Figures of accuracy against what was known before: they draw what was given, and every control reaches its traces."""

import numpy as np
import pandas as pd
from companion.chapter_05.figures import plot_predictions, plot_spectrum_and_accuracy
from companion.figures import plot_along_nads


def trainings(seeds=1, shift=0.0):
    """Rows in no particular order, as a sweep that was resumed may leave them."""
    rows = [
        {
            "index": index,
            "seed": seed,
            "eigenvalue": 4.0 / (index + 1),
            "test_accuracy": 0.97 - 0.04 * index - shift + 0.01 * seed,
        }
        for index in (9, 0, 3)
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows)


def published():
    return pd.Series([0.7, 0.99], index=[9, 0])


def predicted(shift=0.0):
    alpha = np.array([0.1, 1.0, 2.0, 10.0])
    frame = pd.DataFrame({"accuracy": [0.5, 0.6, 0.8 - shift, 0.7], "secant": alpha, "gradient": alpha[::-1]})
    return frame.set_axis(["a", "b", "c", "d"])


def press(figure, label):
    """Do what Plotly does when an entry of the dropdown is chosen."""
    (button,) = [button for button in figure.layout.updatemenus[0].buttons if button.label == label]
    changes, *layout = button.args
    for path, values in changes.items():
        for trace, value in zip(figure.data, values, strict=True):
            trace[path] = value
    for path, value in (layout[0] if layout else {}).items():
        figure.update(layout={path.replace("[", "_").replace("].", "_"): value})


def shown(figure):
    return {trace.name: trace for trace in figure.data if trace.visible is not False}


def test_spectrum_and_accuracy_are_drawn_by_index():
    figure = plot_spectrum_and_accuracy(
        {"ours": trainings()}, "Title", published={"ours": published()}, notes={"ours": {3: "look"}}
    )
    traces = shown(figure)
    np.testing.assert_allclose(traces["eigenvalue"].y, [1, 0.25, 0.1])
    np.testing.assert_allclose(traces["test accuracy"].y, [0.97, 0.85, 0.61])
    np.testing.assert_array_equal(traces["test accuracy"].customdata, [0, 3, 9])
    np.testing.assert_array_equal(traces["published accuracy"].x, [10, 1])
    np.testing.assert_array_equal(traces["published accuracy"].y, [0.7, 0.99])
    assert (traces["notes"].x[0], traces["notes"].y[0]) == (4, 0.85)
    assert {name for name, trace in traces.items() if trace.yaxis == "y2"} == set(traces) - {"eigenvalue"}
    assert figure.layout.xaxis.type == figure.layout.xaxis2.type == figure.layout.yaxis.type == "log"
    # Index k stands at k + 1.
    assert [place - 1 for place in figure.layout.xaxis2.tickvals] == [
        int(text) for text in figure.layout.xaxis2.ticktext
    ]
    assert not figure.layout.updatemenus
    assert "97% to 61%" in figure.layout.meta["alt"]


def test_several_seeds_give_means_and_standard_deviations():
    trace = shown(plot_spectrum_and_accuracy({"ours": trainings(seeds=3, shift=0.02)}))["test accuracy"]
    np.testing.assert_allclose(trace.y, [0.96, 0.84, 0.60])
    np.testing.assert_allclose(trace.error_y.array, [0.01, 0.01, 0.01])


def test_the_dropdown_chooses_the_set():
    tables = {"ours": trainings(), "theirs": trainings(shift=0.1)}
    figure = plot_spectrum_and_accuracy(tables, published={"theirs": published()})
    assert set(shown(figure)) == {"eigenvalue", "test accuracy"}
    press(figure, "theirs")
    traces = shown(figure)
    assert set(traces) == {"eigenvalue", "test accuracy", "published accuracy"}
    np.testing.assert_allclose(traces["test accuracy"].y, [0.87, 0.75, 0.51])


def test_every_point_lies_inside_the_axes():
    low = trainings(shift=0.3)
    figure = plot_spectrum_and_accuracy({"fine": trainings(), "low": low})
    assert figure.layout.yaxis2.range[0] < low["test_accuracy"].min()
    assert figure.layout.yaxis.range[0] < np.log10(0.1)
    assert plot_predictions({"low": predicted(shift=0.7)}).layout.yaxis.range[0] < 0.1


def test_a_network_has_its_panel_with_what_was_published_and_what_we_found():
    ours = pd.Series([0.9, 0.6], index=[0, 9])
    networks = {"one": {"published": published(), "same": ours}, "two": {"published": published() - 0.1, "same": ours}}
    figure = plot_along_nads(networks, "Title", points=["same"])
    lines = [trace for trace in figure.data if trace.name == "published"]
    np.testing.assert_allclose([trace.y for trace in lines], [[0.7, 0.99], [0.6, 0.89]], rtol=1e-6)
    assert [trace.xaxis for trace in lines] == ["x", "x2"] and [trace.showlegend for trace in lines] == [True, False]
    points = next(trace for trace in figure.data if trace.name == "same")
    np.testing.assert_array_equal(points.x, [1, 10])
    assert points.mode == "markers"


def headings(figure):
    return [annotation.text for annotation in figure.layout.annotations]


def test_predictions_are_drawn_under_their_rank_correlations():
    figure = plot_predictions({"waves": predicted(), "NADs": predicted(shift=0.15)}, "Title")
    assert headings(figure) == ["secant<br>ρ = 0.80", "gradient<br>ρ = −0.80"]
    press(figure, "NADs")
    traces = shown(figure)
    assert headings(figure) == ["secant<br>ρ = 1.00", "gradient<br>ρ = −1.00"]
    assert [traces[name].xaxis for name in ("secant", "gradient")] == ["x", "x2"]
    np.testing.assert_allclose(traces["secant"].y, [0.5, 0.6, 0.65, 0.7], rtol=1e-6)
    np.testing.assert_allclose(traces["secant"].x, [0.1, 1, 2, 10], rtol=1e-6)
    assert list(traces["secant"].text) == ["a", "b", "c", "d"]
    assert not plot_predictions({"waves": predicted()}).layout.updatemenus


def test_alternative_texts():
    figures = (
        plot_spectrum_and_accuracy({"ours": trainings(3)}, "One", published={"ours": published()}),
        plot_predictions({"waves": predicted()}, "Two"),
    )
    texts = [f.layout.meta["alt"] for f in figures]
    assert "ours" in texts[0] and "secant ρ = 0.80" in texts[1]
