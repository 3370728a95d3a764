"""The linked map over frequencies."""

import math

import numpy as np
import pytest
from companion.chapter_01.figures import plot_wave_map

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


def test_other_quantities_have_their_own_scale():
    figure = plot_wave_map(
        FREQUENCIES, {"LeNet": [100.0] * 6}, limits=(0, 200), value_title="steps", value_format=".0f"
    )
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 200)
    assert "LeNet: 100" in figure.data[0].text[0][list(figure.data[0].x).index(-8)]
    assert "from 100 to 100" in figure.layout.meta["alt"]
