"""Figures of images, and of accuracies over the NADs."""

import base64
import io

import numpy as np
import pandas as pd
import pytest
import torch
from companion.chapter_08.figures import plot_index_map, plot_over_content, plot_poisoning
from companion.chapter_09.figures import plot_agreement, plot_changes
from companion.figures import plot_gallery, plot_over_indices
from companion.figures.images import as_pixels, stretched
from companion.photographs import over_carriers
from PIL import Image


def decoded(source):
    """The pixels of a picture in a page's address, in [0, 1]."""
    kind, _, content = source.partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content)))) / 255


def random_images(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def test_images_with_other_values_are_stretched_around_grey():
    image = torch.randn(1, 30, 30, generator=torch.Generator().manual_seed(1)) * 7 + 50
    pixels = stretched(as_pixels(image, "one"))
    assert pixels.mean() == pytest.approx(0.5, abs=0.01)
    assert pixels.std() == pytest.approx(1 / 6, abs=0.01)  # three deviations reach the end of the range
    assert np.ptp(pixels, axis=2).max() == 0, "one channel is grey"
    assert (stretched(as_pixels(torch.full((4, 4), -1.0), "flat")) == 0.5).all()


def test_a_gallery_draws_every_picture_in_its_row_and_leaves_the_gaps_clear():
    images = random_images(4, 3, 5, 6)
    figure = plot_gallery({"above": {"a": images[0], "b": images[1]}, "below": {"a": images[2], "b": images[3]}}, "Two")
    sheet = decoded(figure.data[0].source)
    assert sheet.shape == (2 * (5 + 8), 2 * 6 + 2, 4)
    for row, column, image in ((0, 0, images[0]), (0, 1, images[1]), (1, 0, images[2]), (1, 1, images[3])):
        shown = sheet[row * 13 + 8 : row * 13 + 13, column * 8 : column * 8 + 6]
        np.testing.assert_allclose(shown[..., :3], image.movedim(0, 2), atol=0.5 / 255 + 1e-6)
        assert (shown[..., 3] == 1).all()
    assert sheet[..., 3].sum() == 4 * 5 * 6, "the page shows through between the pictures"
    assert [note.text for note in figure.layout.annotations] == ["above", "below"]


def test_notes_stand_at_their_points_and_go_with_another_choice():
    curves = {name: {"clean": ([0, 9, 99], [0.1, 0.2, 0.4])} for name in ("LeNet", "MLP")}
    figure = plot_over_indices(curves, "accuracy", choose="dropdown", notes=[("clean", 99, "here")])
    (note,) = figure.layout.annotations
    assert (note.x, note.y, note.text) == (pytest.approx(2.0), pytest.approx(0.4), "here")
    shown = [button.args[1]["annotations[0].visible"] for button in figure.layout.updatemenus[0].buttons]
    assert shown == [True, False]


def test_curves_over_carriers_are_those_of_the_papers_kind():
    columns = ("index", "replace", "test_accuracy", "train_accuracy", "follows_carrier", "follows_content")
    rows = [(np.nan, "none", 0.7, 0.9, np.nan, np.nan), (0, "own", 0.3, 0.95, 0.4, 0.2), (9, "own", 0.6, 0.9, 0.1, 0.6)]
    curves = over_carriers(pd.DataFrame([*rows, (0, "all", 0.1, 1.0, 0.9, 0.0)], columns=columns))
    np.testing.assert_array_equal(curves["clean test images"], ([0, 9], [0.3, 0.6]))
    np.testing.assert_array_equal(curves["contradiction: carrier"][1], [0.4, 0.1])
    np.testing.assert_array_equal(curves["clean, trained without a carrier"], ([0, 9], [0.7, 0.7]))


def test_sliders_of_poisoning_show_the_right_part_of_the_sheet():
    before, after = random_images(2, 3, 4, 5), random_images(2, 3, 2, 3, 4, 5, seed=1)
    figure = plot_poisoning(before, after, ["cat", "dog"], [0, 10, 1000], [0.05, 2.0])
    by_index, by_epsilon = figure.layout.sliders
    (change, _) = figure.layout.updatemenus[0].buttons[1].args
    sheet, difference = decoded(change["source"][1]), decoded(change["source"][2])
    for number, step in enumerate(by_index.steps):
        for height, other in enumerate(by_epsilon.steps):
            across, down = step.args[0], other.args[0]
            assert across["xaxis2.range"] == across["xaxis3.range"] and down["yaxis2.range"] == down["yaxis3.range"]
            left, right = (round(edge + 0.5) for edge in across["xaxis2.range"])
            bottom, top = (round(edge + 0.5) for edge in down["yaxis2.range"])  # rows grow downwards
            seen = sheet[top:bottom, left:right]
            np.testing.assert_allclose(seen, after[1, number, height].movedim(0, 2), atol=0.5 / 255 + 1e-6)
            expected = (after[1, number, height] - before[1]).movedim(0, 2)
            magnified = 0.5 + expected / (2 * expected.abs().max())
            np.testing.assert_allclose(difference[top:bottom, left:right], magnified, atol=0.5 / 255 + 1e-6)
    assert list(figure.layout.xaxis2.range) == by_index.steps[0].args[0]["xaxis2.range"]
    assert [step.label for step in by_epsilon.steps] == ["0.05", "2"]
    np.testing.assert_allclose(decoded(figure.data[0].source), before[0].movedim(0, 2), atol=0.5 / 255 + 1e-6)


def test_curves_over_indices_begin_with_index_zero():
    curves = {"LeNet": {"clean": ([0, 9, 1019, 1023], [0.1, 0.2, 0.3, 0.4]), "reference": ([0, 1023], [0.5, 0.5])}}
    figure = plot_over_indices(curves, "accuracy", "Title", choose="dropdown", dashed=("reference",))
    clean, reference = figure.data
    assert list(clean.x) == [1, 10, 1020, 1024] and list(clean.customdata) == [0, 9, 1019, 1023]
    assert clean.mode == "lines+markers" and reference.mode == "lines"
    assert figure.layout.xaxis.type == "log"
    assert list(figure.layout.xaxis.ticktext) == ["1023", "9", "0"], "labels must not overlap"
    assert list(figure.layout.xaxis.tickvals) == [1024, 10, 1]
    assert "customdata" in clean.hovertemplate


def test_index_maps_stand_side_by_side_in_one_scale():
    grid = np.arange(6).reshape(2, 3) / 10
    figure = plot_index_map({"LeNet": grid, "MLP": 1 - grid}, [0, 10, 100], [0.05, 6.0], "Map")
    first, numbers, second, _ = figure.data
    np.testing.assert_array_equal(first.z, grid)
    np.testing.assert_array_equal(second.z, 1 - grid)
    assert {(one.zmin, one.zmax) for one in (first, second)} == {(0, 1)}
    assert numbers.text == ("0", "10", "20", "30", "40", "50")
    assert list(numbers.x) == ["0", "10", "100"] * 2 and list(numbers.y) == ["0.05"] * 3 + ["6"] * 3
    assert numbers.textfont.color == ("white",) * 5 + ("black",)
    assert list(first.x) == ["0", "10", "100"] and list(first.y) == ["0.05", "6"]
    assert "LeNet from 0% to 50%; MLP from 50% to 100%." in figure.layout.meta["alt"]


def test_shares_are_drawn_over_the_content():
    curves = {"LeNet": ([0, 9, 20], [0.1, 0.2, 0.3])}
    content = {0: 4.0, 9: 0.5, 20: 1.0}
    figure = plot_over_content(curves, content, 0.5, "share", "Title", [("LeNet", 20, "NAD 20", "top left")])
    (points,) = figure.data
    assert list(points.x) == [1, 2, 8] and list(points.y) == pytest.approx([0.2, 0.3, 0.1])
    assert list(points.customdata) == [9, 20, 0] and points.text == ("", "NAD 20", "")
    assert figure.layout.xaxis.type == "log" and figure.layout.shapes[0].x0 == 1


def test_changes_are_drawn_in_points_one_row_a_network():
    columns = ["arm", "difference", "low", "high"]
    changes = {
        "MLP": pd.DataFrame([("flipped", -0.01, -0.02, 0.005), ("permuted", 0.0, -0.01, 0.01)], columns=columns),
        "LeNet": pd.DataFrame([("flipped", -0.2, -0.21, -0.18), ("permuted", -0.17, -0.2, -0.16)], columns=columns),
    }
    figure = plot_changes(changes, "Title")
    flipped, permuted = figure.data
    assert (flipped.name, permuted.name) == ("flipped", "permuted")
    np.testing.assert_allclose(flipped.x, [-1, -20])
    np.testing.assert_allclose(flipped.error_x.array, [1.5, 2])
    np.testing.assert_allclose(flipped.error_x.arrayminus, [1, 1])
    assert np.round(flipped.y).tolist() == [0, 1] and (np.array(flipped.y) < permuted.y).all()
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1], "the first network is uppermost"
    assert "LeNet: flipped -20.0, permuted -17.0" in figure.layout.meta["alt"]


def test_costs_are_drawn_over_the_agreement():
    columns = ["arm", "agreement", "test_accuracy"]
    rows = [("original", 9.0, 0.70), ("signs", 9.0, 0.52), ("signs", 9.0, 0.54), ("flipped", 0.1, 0.49)]
    figure = plot_agreement({"LeNet": pd.DataFrame(rows, columns=columns)}, "Title")
    *paths, points = figure.data
    np.testing.assert_allclose(points.x, [9, 9, 0.1])
    np.testing.assert_allclose(points.y, [0, -17, -21])
    assert list(points.text) == ["as they are", "signs", "flipped"]
    assert [tuple(path.x) for path in paths] == [(9, 9)]
    assert "LeNet: signs A = 9, -17.0, flipped A = 0.1, -21.0" in figure.layout.meta["alt"]
