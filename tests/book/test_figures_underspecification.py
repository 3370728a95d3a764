"""Figures of two features, against the numbers that they are drawn from."""

import dataclasses
import math
import os

import book_browser
import numpy as np
import pandas as pd
import plotly.io
import pytest
from companion.chapter_10.figures import plot_pairs, plot_sections
from companion.chapter_11.figures import plot_transition
from playwright.sync_api import sync_playwright

AXIS = np.linspace(-2, 2, 5)


@dataclasses.dataclass
class Pairs:
    table: pd.DataFrame
    sections: np.ndarray
    coordinates: np.ndarray


def plane(degrees, scale=1.0):
    t = math.radians(degrees)
    return scale * (math.cos(t) * AXIS[None] + math.sin(t) * AXIS[:, None])


def pairs(indices=(0, 50, 900), seeds=1):
    rows, sections = [], []
    for seed in range(seeds):
        for i in indices:
            for j in indices:
                row = {"first": i, "second": j, "seed": seed, "train_loss": 1e-4, "margin_first": 1.25}
                row |= {"test_accuracy": 1 - (i + j) / 4000, "test_accuracy_first": 1 - i / 2000 - 0.01 * seed}
                row |= {"test_accuracy_second": 1 - j / 2000, "angle_first": math.radians(60), "margin_second": np.inf}
                rows.append(row)
                sections.append(plane(30 + i / 100, scale=7.0))
    return Pairs(pd.DataFrame(rows), np.array(sections), AXIS)


def test_the_maps_hold_the_accuracies():
    figure = plot_pairs({"LeNet": pairs()}, "Pairs")
    both, first, second = (np.array(trace.z, float) for trace in figure.data[:3])
    index = np.array([0, 50, 900])
    np.testing.assert_allclose(both, 1 - (index[:, None] + index) / 4000, atol=1e-6)
    np.testing.assert_allclose(first, np.repeat(1 - index[:, None] / 2000, 3, 1), atol=1e-6)
    np.testing.assert_allclose(second, np.repeat(1 - index[None] / 2000, 3, 0), atol=1e-6)
    assert list(figure.data[0].x) == list(figure.data[0].y) == ["0", "50", "900"]
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "category"
    assert not figure.layout.updatemenus


def test_the_page_is_told_what_belongs_to_a_pair():
    figure = plot_pairs({"LeNet": pairs()})
    link = figure.layout.meta["pairs"]
    (group,) = link["groups"]
    assert group["names"] == ["0", "50", "900"]
    assert [figure.data[number].type for number in (*link["maps"], *link["marks"], link["section"])] == [
        *["heatmap"] * 3, *["scatter"] * 3, "contour",
    ]  # fmt: skip
    # Rows are indices of the first direction, in per cent of the largest value.
    expected = plane(30 + 50 / 100) / np.abs(plane(30 + 50 / 100)).max()
    np.testing.assert_allclose(np.array(group["sections"][1][2]) / 100, expected, atol=0.0051)
    np.testing.assert_allclose(figure.data[link["section"]].z, group["sections"][2][0])
    assert all((mark.x, mark.y) == (("0",), ("900",)) for mark in figure.data[3:6])
    text = group["texts"][1][2]
    assert figure.layout.annotations[link["annotation"]].text == group["texts"][2][0]
    for part in (
        "v₁ is NAD 50, v₂ is NAD 900",
        "both 76.2%",
        "first 97.5%",
        "second 55.0%",
        "v₁: 60°",
        "1.25 along v₁, none along",
    ):
        assert part in text


def test_the_menu_chooses_the_network():
    figure = plot_pairs({"LeNet": pairs(), "ResNet-18": pairs((0, 900))})
    change, layout, traces = figure.layout.updatemenus[0].buttons[1].args
    assert list(traces) == list(range(7))
    assert change["x"][0] == ["0", "900"] and len(change["z"][0]) == 2 and change["z"][3] is None
    assert change["x"][3] == ["0"] and change["y"][3] == ["900"]
    assert "v₁ is NAD 900, v₂ is NAD 0<" in next(iter(layout.values()))
    assert len(figure.layout.meta["pairs"]["groups"]) == 2
    assert "LeNet: both channels from 55.0% to 100.0%" in figure.layout.meta["alt"]


def test_seeds_are_averaged_and_a_diverged_one_leaves_a_blank():
    given = pairs(seeds=2)
    figure = plot_pairs({"LeNet": given})
    assert figure.data[1].z[0][0] == pytest.approx(0.995)
    assert "(2 seeds)" in figure.layout.meta["pairs"]["groups"][0]["texts"][0][0]
    columns = ["test_accuracy", "test_accuracy_first", "test_accuracy_second", "angle_first", "train_loss"]
    given.table.loc[0, columns] = np.nan
    given.sections[0] = np.nan
    group = plot_pairs({"LeNet": given}).layout.meta["pairs"]["groups"][0]
    assert group["sections"][0][0] is None and "diverged" in group["texts"][0][0]
    assert np.isnan(plot_pairs({"LeNet": given}).data[0].z[0][0])


def test_sections_with_classes_and_the_maximum_margin():
    figure = plot_sections({"a": (AXIS, plane(0, 3.0)), "b": (AXIS, plane(90))}, epsilons=(1.0, 0.5))
    fields = [trace for trace in figure.data if trace.type == "contour"]
    assert len(fields) == 2 and np.abs(fields[0].z).max() == 1
    line, classes = figure.data[1:3]
    assert list(zip(classes.x, classes.y, strict=True)) == [(-1, -0.5), (1, 0.5)]
    # The boundary of maximum margin is perpendicular to what separates the classes.
    along = np.array([line.x[1] - line.x[0], line.y[1] - line.y[0]])
    assert along @ [1.0, 0.5] == pytest.approx(0)
    alt = figure.layout.meta["alt"]
    assert "a: it rises at 0 degrees" in alt and "b: it rises at 90 degrees" in alt
    flat = plot_sections({"a": (AXIS, np.zeros((5, 5)))})
    assert "along neither direction" in flat.layout.meta["alt"]


def transition(parts=("both", "both", "images")):
    columns = {"part": list(parts), "index": [0, 900, 0], "test_accuracy": [1.0, 0.8, 0.82]}
    columns |= {"test_accuracy_images": [0.5, 0.79, np.nan], "test_accuracy_direction": [1.0, 0.51, np.nan]}
    columns["follows_images"] = [0.0, 0.8, np.nan]
    return pd.DataFrame(columns)


def test_the_transition_and_its_reference():
    figure = plot_transition({"LeNet": transition(), "MLP": transition()}, "B3")
    curves = {trace.name: trace for trace in figure.data[:5]}
    parts = ["both", "images alone", "hint alone", "contradiction: the picture wins"]
    assert list(curves) == [*parts, "trained on images alone"]
    np.testing.assert_allclose(curves["hint alone"].y, [1.0, 0.51], atol=1e-6)
    np.testing.assert_allclose(curves["trained on images alone"].y, 0.82, atol=1e-6)
    assert list(curves["both"].customdata) == [0, 900]
    assert len(figure.layout.updatemenus[0].buttons) == 2
    assert "with the hint alone from 100.0% at the first index to 51.0%" in figure.layout.meta["alt"]
    without = plot_transition({"LeNet": transition(("both", "both", "direction"))})
    assert [trace.name for trace in without.data] == parts


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with one figure and the book's own script, in a real browser without a network."""
    executable = book_browser.find_chromium()
    if executable is None:
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail("no Chromium found")
        pytest.skip("no Chromium found: the linked maps were not tried in a browser")
    figure = plot_pairs({"LeNet": pairs(), "ResNet-18": pairs((0, 900))})
    script = (book_browser.REPOSITORY / "book" / "static" / "book.js").read_text(encoding="utf-8")
    drawn = plotly.io.to_html(figure, include_plotlyjs=True, full_html=False)
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(
        f'<!doctype html><meta charset="utf-8"><body>{drawn}<script>{script}</script></body>', encoding="utf-8"
    )
    with sync_playwright() as playwright:
        browser = book_browser.launch(playwright, executable)
        opened = browser.new_page(viewport={"width": 800, "height": 1000})
        opened.goto(path.as_uri())
        opened.wait_for_selector(".xy")
        yield opened, figure
        browser.close()


TEXT = "(gd) => gd.layout.annotations[gd.layout.meta.pairs.annotation].text"


def point_at(page, plot, across, down):
    """Move the pointer over a map, and give the text beside the section once it has changed."""
    figure = page.locator(".plotly-graph-div").first
    before = figure.evaluate(TEXT)
    box = page.locator(f".subplot.{plot}").first.bounding_box()
    page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])
    for _ in range(100):
        if figure.evaluate(TEXT) != before:
            break
        page.wait_for_timeout(50)
    page.wait_for_timeout(100)
    return figure.evaluate(TEXT)


def test_the_pointer_on_a_cell_draws_the_boundary_of_its_pair(page):
    opened, figure = page
    group = figure.layout.meta["pairs"]["groups"][0]
    element = opened.locator(".plotly-graph-div").first
    # The second of the three maps, its middle: both indices are 50.
    assert point_at(opened, "x2y2", 0.5, 0.5) == group["texts"][1][1]
    assert element.evaluate("(gd) => gd.data[gd.layout.meta.pairs.section].z") == group["sections"][1][1]
    marks = element.evaluate("(gd) => gd.layout.meta.pairs.marks.map((k) => [gd.data[k].x[0], gd.data[k].y[0]])")
    assert marks == [["50", "50"]] * 3
    # Top left in the first map: the index of v₁ is the largest, that of v₂ the smallest.
    assert "v₁ is NAD 900, v₂ is NAD 0<" in point_at(opened, "xy", 0.15, 0.15)


def test_the_chosen_network_is_the_one_that_is_drawn(page):
    opened, figure = page
    opened.locator(".updatemenu-header").first.click()
    opened.locator(".updatemenu-dropdown-button").nth(1).click()
    opened.wait_for_timeout(300)
    element = opened.locator(".plotly-graph-div").first
    assert "v₁ is NAD 900, v₂ is NAD 0<" in element.evaluate(TEXT)
    assert element.evaluate("(gd) => gd._fullLayout.xaxis.type") == "category"
    group = figure.layout.meta["pairs"]["groups"][1]
    assert point_at(opened, "xy", 0.25, 0.25) == group["texts"][1][0]
    assert element.evaluate("(gd) => gd.data[gd.layout.meta.pairs.section].z") == group["sections"][1][0]
