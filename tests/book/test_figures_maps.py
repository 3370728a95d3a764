"""The linked map over frequencies."""

import math

import numpy as np
import pandas as pd
import pytest
from companion.chapter_01.figures import plot_scores, plot_slowness, plot_strips, plot_unpooled, plot_wave_map

import nadtools as nt

FREQUENCIES = [(0, 0), (-4, 0), (0, -4), (-4, -4), (-4, 4), (-16, -8)]
VALUES = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]


def cells(trace):
    return {
        (int(i), int(j)): float(trace.z[row][column])
        for row, i in enumerate(trace.y)
        for column, j in enumerate(trace.x)
        if np.isfinite(trace.z[row][column])
    }


def test_both_mirror_images_are_filled_in_and_nothing_else():
    figure = plot_wave_map(FREQUENCIES, {"LeNet": VALUES})
    filled = cells(figure.data[0])
    expected = {
        (0, 0): 1.0, (-4, 0): 0.9, (4, 0): 0.9, (0, -4): 0.8, (0, 4): 0.8, (-4, -4): 0.7, (4, 4): 0.7,
        (-4, 4): 0.6, (4, -4): 0.6, (-16, -8): 0.5, (-16, 8): 0.5,
    }  # fmt: skip
    assert filled.keys() == expected.keys()
    assert filled == pytest.approx(expected)


def test_the_menu_chooses_the_map_and_every_hover_text_has_all_of_them():
    other = [0.5, math.nan, 0.5, 0.5, 0.5, 0.5]
    figure = plot_wave_map(FREQUENCIES, {"LeNet": VALUES, "ResNet": other}, first=(-4, 0))
    assert [trace.visible for trace in figure.data[:2]] == [True, False]
    change, indices = figure.layout.updatemenus[0].buttons[1].args
    assert change["visible"] == [False, True] and list(indices) == [0, 1]
    row, column = list(figure.data[0].y).index(-4), list(figure.data[0].x).index(0)
    assert figure.data[0].text[row][column] == "LeNet: 90.0%<br>ResNet: –"


def test_the_wave_is_the_atom_and_the_page_is_told_how_to_draw_others():
    figure = plot_wave_map(FREQUENCIES, {"LeNet": VALUES}, first=(-4, 0))
    np.testing.assert_allclose(figure.data[1].z, nt.fourier_atom((32, 32), (-4, 0), math.pi / 2), atol=1e-6)
    link = figure.layout.meta["waves"]
    assert figure.data[link["trace"]] is figure.data[1]
    assert figure.layout.annotations[link["annotation"]].text == "v at (−4, 0)"
    # Only a cosine exists at a frequency that is its own mirror image.
    constant = plot_wave_map(FREQUENCIES, {"LeNet": VALUES})
    assert np.ptp(constant.data[1].z) < 1e-7


def test_named_frequencies_are_framed():
    figure = plot_wave_map(FREQUENCIES, {"LeNet": VALUES}, marks={(-4, 0): "here"})
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (-1, 1, -5, -3)
    assert figure.layout.annotations[-1].text == "here"
    assert "(" in figure.layout.annotations[figure.layout.meta["waves"]["annotation"]].text


def test_what_is_not_learned_stands_in_a_panel_without_numbers():
    columns = {"accuracy": [0.9, 0.5, 0.6, 0.55], "steps": [10.0, math.nan, 80.0, math.nan]}
    run = pd.DataFrame({**columns, "learned": [True, False, True, True]}, index=list("abcd"))
    figure = plot_slowness({"LeNet": run, "ResNet-18": run.loc[["a"]]}, {"c": 15})
    late, never, learned, *_, other = figure.data
    assert list(learned.y) == [10, 80] and list(other.y) == [10]
    assert list(late.x) == [0.55] and list(never.x) == [0.5] and never.y[0] > late.y[0]
    assert late.yaxis == never.yaxis != learned.yaxis and not figure.layout.yaxis.showticklabels
    texts = {mark.text: (mark.x, mark.y) for mark in figure.layout.annotations}
    assert texts.keys() == {"still learning at the end: 1", "not learned at the end: 1", "c"}
    assert texts["c"] == pytest.approx((0.6, math.log10(80)))


def test_strips_have_a_dot_for_each_direction():
    rows = {"LeNet, 3 waves": [0.5, 0.9, 0.7], "LeNet, 2 random directions": [0.5, 0.51]}
    waves, random = plot_strips(rows).data
    assert list(waves.x) == [0.5, 0.9, 0.7] and list(random.x) == [0.5, 0.51]
    assert max(waves.y) < 0.5 < min(random.y) and waves.marker.color == random.marker.color


def test_waves_stand_in_the_order_of_the_first_network():
    figure = plot_unpooled([0.6, 0.9], [0.95, 0.8], ["a", "b"], ["b"])
    stems, *dots = figure.data
    assert [list(trace.y) for trace in dots] == [[0.9, 0.6], [0.8, 0.95]]
    assert list(stems.y) == [0.9, 0.8, None, 0.6, 0.95, None]
    (mark,) = figure.layout.annotations
    assert (mark.x, mark.y, mark.text) == (0, 0.8, "b")


def test_scores_stand_side_by_side_over_a_coin():
    figure = plot_scores({"LeNet": {"(0, 0)": 0.9}, "logistic regression": {"(0, 0)": 1.0}})
    assert [trace.y[0] for trace in figure.data] == [0.9, 1.0]
    assert figure.layout.shapes[0].y0 == 0.5
    assert "LeNet 90.0% on (0, 0)" in figure.layout.meta["alt"]
