"""The figure builders: what is drawn equals what was given, controls change what is shown, bad input is refused."""

import itertools
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io
import pytest
import torch
from companion import parts, style
from companion.chapter_01.figures import plot_projections
from companion.chapter_03.explorer import draw_landscape
from companion.chapter_03.landscape import two_weight_landscape
from companion.chapter_04.figures import plot_alignment, plot_convergence, plot_spectra
from companion.chapter_04.pictures import plot_atlas, plot_nads
from companion.chapter_10.explorer import draw_section
from companion.explorer import pictures
from companion.figures import (
    plot_accuracy_map,
    plot_curves,
    plot_direction,
    plot_directions,
    plot_history,
    plot_samples,
)

from nadtools.boundaries import CrossSection
from nadtools.directions import fourier_atom, fourier_basis, fourier_energy, random_direction
from nadtools.distributions import LinearlySeparable
from nadtools.nads import NADs

SHAPE = (8, 8)


def make_nads(shape=SHAPE, reverse=False, stderr=True):
    vectors = fourier_basis(shape)
    count = len(vectors)
    eigenvalues = torch.logspace(-1, -4, count, dtype=torch.float64)
    error = eigenvalues / 20 if stderr else torch.full_like(eigenvalues, torch.nan)
    overlap = torch.ones_like(eigenvalues)
    return NADs(vectors.flip(0) if reverse else vectors, eigenvalues, error, overlap)


def make_result(final=0.8, epochs=5, unmeasured=False):
    epoch = np.arange(1, epochs + 1)
    table = pd.DataFrame(
        {
            "epoch": epoch,
            "learning_rate": 0.5,
            "train_loss": 1 / epoch,
            "train_accuracy": np.linspace(0.5, final + 0.1, epochs),
            "test_loss": 1.2 / epoch,
            "test_accuracy": np.linspace(0.5, final, epochs),
        }
    )
    if unmeasured:
        table.loc[::2, ["test_loss", "test_accuracy"]] = math.nan
    return SimpleNamespace(history=table, test_accuracy=final)


V, R = fourier_atom(SHAPE, (1, 2)), random_direction(SHAPE, 0)
DIRECTIONS = {"a": V, "b": R, "c": fourier_atom(SHAPE, (2, 0))}
X, Y = LinearlySeparable(V, epsilon=1.0, sigma=2.0).sample(500, seed=0, device="cpu")
FREQUENCIES = [(i, j) for i in (-4, 0, 4) for j in (0, 2)]
ACCURACIES = np.linspace(0.5, 1, 6)
ALPHA = np.logspace(-5, -1, 8)
ACCURACY = np.array([0.5, 0.52, 0.51, 0.6, 0.7, 0.8, 0.95, 1.0])
LABELS = [f"atom {k}" for k in range(8)]

ATLAS = {
    "lenet": {"secant": make_nads(), "gradient": make_nads(reverse=True)},
    "resnet18": {"secant": make_nads(stderr=False), "gradient": make_nads()},
    "vgg11": {"gradient": make_nads(reverse=True)},
}
CURVES = {
    "both averages": ([1, 4, 16, 100], [0.2, 0.6, 0.8, 0.95]),
    "plain": (torch.tensor([100, 1, 10]), np.array([0.5, 0.1, math.nan])),
}

# Every builder, with arguments that work.
BUILDERS = {
    "direction": lambda **o: plot_direction(V, **o),
    "directions, slider": lambda **o: plot_directions(DIRECTIONS, layout="slider", **o),
    "directions, row": lambda **o: plot_directions(DIRECTIONS, layout="row", columns=2, **o),
    "nads": lambda **o: plot_nads(make_nads(), **o),
    "spectra": lambda **o: plot_spectra({"lenet": make_nads(), "flat": np.ones(9)}, **o),
    "atlas": lambda **o: plot_atlas(ATLAS, **o),
    "convergence": lambda **o: plot_convergence(CURVES, **o),
    "map": lambda **o: plot_accuracy_map(FREQUENCIES, ACCURACIES, **o),
    "maps": lambda **o: plot_accuracy_map(FREQUENCIES, {"lenet": ACCURACIES, "mlp": ACCURACIES[::-1]}, **o),
    "alignment": lambda **o: plot_alignment(ALPHA, ACCURACY, LABELS, ["x", "y"] * 4, **o),
    "projections": lambda **o: plot_projections(X, Y, V, R, **o),
    "history": lambda **o: plot_history(make_result(), **o),
    "histories": lambda **o: plot_history({"lenet": make_result(), "mlp": make_result(0.6)}, **o),
}


def assert_complete(figure):
    """It has what every figure of the book has, where it was given the title "A title"."""
    assert isinstance(figure, go.Figure)
    assert "A title" in figure.layout.title.text
    alt = figure.layout.meta["alt"]
    assert alt.startswith(("A title", "Test accuracy")) and alt.endswith(".")
    assert 130 <= figure.layout.height <= 1200
    assert figure.layout.width is None  # the page decides
    json.loads(figure.to_json())
    for axis in figure.select_yaxes():
        assert axis.scaleanchor or axis.title.text or axis.visible is False or axis.showticklabels is False


@pytest.mark.parametrize("name", BUILDERS)
def test_a_figure_is_complete(name):
    assert_complete(BUILDERS[name](title="A title"))


def steps_of(figure):
    (control,) = (*figure.layout.sliders, *figure.layout.updatemenus)
    return control.steps if control.plotly_name == "sliders" else control.buttons


def shown(figure, step):
    """The traces that are visible after a step of the figure's only control."""
    visible = steps_of(figure)[step].args[0]["visible"]
    assert len(visible) == len(figure.data)
    return [trace for trace, flag in zip(figure.data, visible, strict=True) if flag]


def test_direction_draws_pixels_and_energy():
    figure = plot_direction(V)
    pixels, energy = figure.data
    np.testing.assert_allclose(pixels.z, V)
    assert pixels.zmin == -pixels.zmax
    np.testing.assert_allclose(energy.z, fourier_energy(V))
    assert (energy.zmin, energy.zmax) == (0, pytest.approx(0.5))
    np.testing.assert_array_equal(energy.x, np.arange(-4, 4))
    peaks = {(int(energy.y[i]), int(energy.x[j])) for i, j in np.argwhere(energy.z > 0.4)}
    assert peaks == {(1, 2), (-1, -2)}
    assert "50.0%" in figure.layout.meta["alt"]
    # Row 0 at the top in both panels: the axes run downwards.
    assert all(axis.range[0] > axis.range[1] for axis in figure.select_yaxes())


@pytest.mark.parametrize("given", [V.numpy(), V[None], V.double(), V.tolist()])
def test_direction_is_taken_in_any_form(given):
    np.testing.assert_allclose(plot_direction(given).data[0].z, V)


def test_odd_and_oblong_shapes_have_frequency_zero_in_the_centre():
    figure = plot_direction(torch.ones(5, 8))
    energy = figure.data[1]
    i, j = np.argwhere(energy.z > 0.99)[0]
    assert (energy.y[i], energy.x[j]) == (0, 0)
    assert energy.z.shape == (5, 8)


def test_directions_slider_shows_one_at_a_time():
    figure = plot_directions(DIRECTIONS, "Three", layout="slider")
    assert [step.label for step in steps_of(figure)] == ["a", "b", "c"]
    assert [trace.visible for trace in figure.data] == [True, True, False, False, False, False]
    for number, (label, v) in enumerate(DIRECTIONS.items()):
        pixels, energy = shown(figure, number)
        np.testing.assert_allclose(pixels.z, v)
        np.testing.assert_allclose(energy.z, fourier_energy(v))
        assert steps_of(figure)[number].args[1]["title.text"] == f"Three: {label}"


@pytest.mark.parametrize(("columns", "rows"), [(4, 2), (2, 4), (1, 6)])
def test_directions_in_a_row_are_broken_into_columns(columns, rows):
    figure = plot_directions(DIRECTIONS, layout="row", columns=columns)
    assert len(figure.data) == 6
    assert len({axis.domain for axis in figure.select_yaxes()}) == rows
    assert {a.text for a in figure.layout.annotations} == set(DIRECTIONS)


def test_directions_in_a_row_may_come_without_their_energy_and_with_two_lines_above_them():
    plain, two = (
        plot_directions({f"{label}{more}": v for label, v in DIRECTIONS.items()}, layout="row", energy=False)
        for more in ("", "<br>seen")
    )
    assert len(plain.data) == len(DIRECTIONS) and "energy" not in plain.layout.meta["alt"]
    assert two.layout.margin.t > plain.layout.margin.t
    assert two.layout.height - two.layout.margin.t == plain.layout.height - plain.layout.margin.t
    assert "<br>" not in two.layout.meta["alt"]


def test_nads_slider_goes_over_the_index_with_the_eigenvalue():
    nads = make_nads()
    figure = plot_nads(nads, [0, 3, 63], title="LeNet")
    assert [step.label for step in steps_of(figure)] == ["0", "3", "63"]
    for step, index in enumerate((0, 3, 63)):
        pixels, energy = shown(figure, step)
        np.testing.assert_allclose(pixels.z, nads.vectors[index])
        np.testing.assert_allclose(energy.z, fourier_energy(nads.vectors[index]), atol=1e-7)
        title = steps_of(figure)[step].args[1]["title.text"].replace("<br>", " ")
        assert title.startswith(f"LeNet: NAD {index}, eigenvalue {float(nads.eigenvalues[index]):.2e} ±")


def test_nads_default_indices_run_from_the_first_to_the_last():
    labels = [int(step.label) for step in steps_of(plot_nads(make_nads()))]
    assert labels[:10] == list(range(10))
    assert labels[-1] == 63
    assert labels == sorted(set(labels))
    assert len(labels) <= 20
    assert [int(step.label) for step in steps_of(plot_nads(make_nads((2, 3))))] == list(range(6))


def test_thirty_frames_stay_below_half_a_megabyte():
    # 32 x 32 pixels as in the papers; only the first NADs are needed, the check is about size.
    vectors = torch.stack([random_direction((32, 32), k) for k in range(30)])
    nads = SimpleNamespace(vectors=vectors, eigenvalues=torch.linspace(1, 0.1, 30))
    assert len(plotly.io.to_html(plot_nads(nads, range(30)), include_plotlyjs=False, full_html=False)) < 500_000


class AtlasReader:
    """Applies what the atlas's controls say, as Plotly does, and reads what then stands in the windows."""

    def __init__(self, figure):
        self.figure = figure
        self.menus = [{b.label: b for b in menu.buttons} for menu in figure.layout.updatemenus]
        self.steps = {step.label: step for slider in figure.layout.sliders for step in slider.steps}

    def use(self, control):
        changes = control.args[0]
        if control.method == "restyle":
            assert set(changes) == {"visible"}
            for trace, flag in zip(self.figure.data, changes["visible"], strict=True):
                trace.visible = flag
            return {"visible"}
        assert control.method == "relayout"
        for name, value in changes.items():
            axis, attribute = name.split(".")
            self.figure.layout[axis][attribute] = value
        return set(changes)

    def window(self, column):
        """The part of the only visible image that lies between the ends of its axes; None if there is none."""
        x, y = self.figure.get_subplot(2, column)
        found = []
        for trace in self.figure.data:
            if trace.type == "heatmap" and trace.visible and trace.xaxis == x.plotly_name.replace("axis", ""):
                (height, width), x0, y0 = trace.z.shape, trace.x0, trace.y0
                columns = (np.arange(width) + x0 > x.range[0]) & (np.arange(width) + x0 < x.range[1])
                rows = (np.arange(height) + y0 > y.range[1]) & (np.arange(height) + y0 < y.range[0])
                if columns.any() and rows.any():
                    found.append(trace.z[rows][:, columns].astype(float))
        assert len(found) <= 1
        return found[0] if found else None

    def caption(self):
        x, y = self.figure.get_subplot(1, 1)
        (trace,) = (t for t in self.figure.data if t.type == "scatter" and t.visible)
        (caption,) = (
            text
            for place, row, text in zip(trace.x, trace.y, trace.text, strict=True)
            if x.range[0] <= place < x.range[1] and y.range[1] < row < y.range[0]
        )
        return caption


def assert_shows(reader, nads, index):
    pixels, energy = nads.vectors[index].numpy(), fourier_energy(nads.vectors[index]).numpy()
    # Half a step of 127, and of 255.
    np.testing.assert_allclose(reader.window(1) / 127, pixels / np.abs(pixels).max(), atol=0.5 / 127 + 1e-6)
    np.testing.assert_allclose(reader.window(2) / 255, energy / energy.max(), atol=0.5 / 255 + 1e-6)


def test_atlas_shows_what_its_three_controls_say_in_every_combination():
    reader = AtlasReader(plot_atlas(ATLAS, [0, 3, 20, 63]))
    architectures, estimators = reader.menus
    assert list(architectures) == list(ATLAS)
    assert list(estimators) == ["secant", "gradient"]
    assert list(reader.steps) == ["0", "3", "20", "63"]
    assert_shows(reader, ATLAS["lenet"]["secant"], 0)
    combinations = list(itertools.product(architectures, estimators, reader.steps))
    for number in np.random.default_rng(0).permutation(len(combinations)):
        architecture, estimator, label = combinations[number]
        # The order in which the controls are used does not matter, since no two of them touch the same thing.
        touched = [
            reader.use(control) for control in (reader.steps[label], architectures[architecture], estimators[estimator])
        ]
        assert sum(map(len, touched)) == len(set.union(*touched))
        caption, nads = reader.caption(), ATLAS[architecture].get(estimator)
        assert caption.startswith(f"{architecture}, {estimator}")
        if nads is None:
            assert reader.window(1) is reader.window(2) is None
            assert "not in this atlas" in caption
            continue
        index = int(label)
        assert_shows(reader, nads, index)
        shown, peak = re.search(f"NAD {label}<br>eigenvalue (.*)% of the trace<br>peak energy (.*)%", caption).groups()
        share = float(nads.eigenvalues[index] / nads.eigenvalues.sum())
        assert float(shown) == pytest.approx(100 * share, rel=5e-3)
        assert float(peak) == pytest.approx(100 * float(fourier_energy(nads.vectors[index]).max()), rel=5e-3)


def test_atlas_windows_have_the_right_frequencies():
    figure = plot_atlas({"a": {"secant": make_nads((4, 8)), "mixed": make_nads((4, 8))}}, [0, 1])
    x, y = figure.get_subplot(2, 2)
    assert dict(zip(x.tickvals, x.ticktext, strict=True)) == {-2: "−2", 0: "0", 2: "2", 6: "−2", 8: "0", 10: "2"}
    assert dict(zip(y.tickvals, y.ticktext, strict=True)) == {-1: "−1", 0: "0", 1: "1", 3: "−1", 4: "0", 5: "1"}
    # Rows run downwards, in cells around whole numbers.
    assert (tuple(x.range), tuple(y.range)) == ((-4.5, 3.5), (1.5, -2.5))


@pytest.mark.parametrize(
    ("atlas", "indices", "menus", "sliders"),
    [
        ({"lenet": ATLAS["lenet"]}, [0, 1], [["secant", "gradient"]], 1),
        ({"vgg11": ATLAS["vgg11"], "other": ATLAS["vgg11"]}, [2], [["vgg11", "other"]], 0),
        ({"vgg11": ATLAS["vgg11"]}, [2], [], 0),
    ],
)
def test_atlas_has_no_control_without_a_choice(atlas, indices, menus, sliders):
    figure = plot_atlas(atlas, indices)
    assert [[button.label for button in menu.buttons] for menu in figure.layout.updatemenus] == menus
    assert len(figure.layout.sliders) == sliders


def test_atlas_of_eight_sets_is_small():
    vectors = torch.stack([random_direction((32, 32), k) for k in range(12)])
    nads = SimpleNamespace(vectors=vectors, eigenvalues=torch.linspace(1, 0.1, 12))
    atlas = {name: {"secant": nads, "gradient": nads} for name in "abcd"}
    figure = plot_atlas(atlas)
    assert len(figure.layout.sliders[0].steps) == 12
    assert {trace.z.dtype for trace in figure.select_traces({"type": "heatmap"})} == {np.dtype("i1"), np.dtype("u1")}
    # 8 sets of 12 pairs of 1024 bytes are 262 kB in base64.
    assert len(plotly.io.to_html(figure, include_plotlyjs=False, full_html=False)) < 400_000


def test_atlas_alt_text_says_how_much_the_first_nads_hold():
    alt = plot_atlas(ATLAS, [0, 7]).layout.meta["alt"]
    nads = ATLAS["vgg11"]["gradient"]
    assert f"vgg11, gradient {100 * float(nads.eigenvalues[0] / nads.eigenvalues.sum()):.3g}%" in alt
    assert "indices 0 to 7" in alt


def test_convergence_draws_curves_in_order():
    figure = plot_convergence(CURVES)
    first, second = figure.data
    np.testing.assert_array_equal(first.x, [1, 4, 16, 100])
    np.testing.assert_allclose(first.y, [0.2, 0.6, 0.8, 0.95])
    np.testing.assert_array_equal(second.x, [1, 100])  # sorted, without the value that is missing
    np.testing.assert_allclose(second.y, [0.1, 0.5])
    assert figure.layout.xaxis.type == "log"
    low, high = figure.layout.yaxis.range
    assert -0.1 < low < 0
    assert 1 < high < 1.1
    assert "plain goes from 0.1 at 1 to 0.5 at 100" in figure.layout.meta["alt"]


def test_convergence_of_one_point():
    figure = plot_convergence({"a": ([10], [0.5])}, None, "seconds", "error")
    assert figure.layout.showlegend is False
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("seconds", "error")


def test_spectra_draws_eigenvalues_and_bands():
    nads = make_nads()
    figure = plot_spectra({"lenet": nads, "plain": [3.0, 2.0, 0.0]})
    band, curve, plain = figure.data
    multiples = nads.eigenvalues / nads.eigenvalues.mean()
    np.testing.assert_allclose(curve.y, multiples, rtol=1e-6)
    np.testing.assert_array_equal(curve.x, np.arange(1, 65))
    np.testing.assert_allclose(band.y[:64], multiples * 0.95, rtol=1e-6)
    np.testing.assert_allclose(band.y[64:][::-1], multiples * 1.05, rtol=1e-6)
    np.testing.assert_allclose(plain.y, [1.8, 1.2], rtol=1e-6)  # zero has no place on a logarithmic axis
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert len(plot_spectra({"lenet": make_nads(stderr=False)}).data) == 1


def test_spectra_bands_stay_positive_and_rounding_below_zero_is_left_out():
    nads = SimpleNamespace(
        eigenvalues=torch.tensor([1.0, 0.5, -1e-12]), eigenvalue_stderr=torch.tensor([2.0, 0.1, 0.1])
    )
    band, curve = plot_spectra({"x": nads}).data
    assert (np.asarray(band.y) > 0).all()
    np.testing.assert_allclose(curve.y, [2, 1])


def test_accuracy_map_puts_each_value_into_its_cell():
    figure = plot_accuracy_map(FREQUENCIES, ACCURACIES)
    (trace,) = figure.data
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0.5, 1.0)
    np.testing.assert_array_equal(trace.y, [-4, 0, 4])
    np.testing.assert_array_equal(trace.x, [0, 2])
    np.testing.assert_allclose(trace.z.ravel(), ACCURACIES)
    assert all(part in trace.hovertemplate for part in ("frequency (%{y}, %{x})", "accuracy %{z:.1%}"))
    assert not figure.layout.updatemenus


def test_accuracy_map_leaves_missing_cells_blank():
    z = plot_accuracy_map([(0, 0), (0, 1), (2, 3)], [0.5, math.nan, 1.0]).data[0].z
    assert z.shape == (2, 4)
    assert np.isfinite(z).sum() == 2
    assert (z[0, 0], z[1, 3]) == (0.5, 1.0)


def test_accuracy_maps_stand_side_by_side_on_one_scale():
    table = {"lenet": ACCURACIES, "mlp": ACCURACIES[::-1]}
    figure = plot_accuracy_map(FREQUENCIES, table, "Accuracy")
    assert [note.text for note in figure.layout.annotations] == ["lenet", "mlp"]
    for trace, values in zip(figure.data, table.values(), strict=True):
        np.testing.assert_allclose(trace.z.ravel(), values)
        assert trace.coloraxis == "coloraxis"


def test_alignment_draws_points_and_spearmans_correlation():
    figure = plot_alignment(ALPHA, ACCURACY, LABELS, ["x", "y"] * 4)
    # Within each group accuracy rises with alpha, without exception.
    assert [trace.name for trace in figure.data] == ["x (ρ = 1.00)", "y (ρ = 1.00)"]
    np.testing.assert_allclose(figure.data[1].x, ALPHA[1::2])
    np.testing.assert_allclose(figure.data[1].y, ACCURACY[1::2])
    assert list(figure.data[1].text) == LABELS[1::2]
    assert figure.layout.xaxis.type == "log"
    # Ranks of ACCURACY are 1 3 2 4 ... 8: 1 - 6 * 2 / (8 * 63) = 0.976.
    assert "ρ = 0.98" in plot_alignment(ALPHA, ACCURACY, LABELS).layout.title.text
    assert "−0.98" in plot_alignment(1 / ALPHA, ACCURACY, LABELS).layout.title.text
    assert "undefined" in plot_alignment(ALPHA, np.full(8, 0.5), LABELS).layout.title.text


def test_samples_are_drawn_on_one_scale_with_their_signs():
    figure = plot_samples(X, Y, 4)
    assert len(figure.data) == 4
    assert len({trace.zmax for trace in figure.data}) == 1
    for number, trace in enumerate(figure.data):
        np.testing.assert_allclose(trace.z, X[number, 0])
        assert figure.layout.annotations[number].text == ("y = +1" if Y[number] else "y = −1")
    assert len(plot_samples(X[:2], Y[:2]).data) == 2


def test_projections_count_every_sample_and_separate_along_v_only():
    figure = plot_projections(X, Y, 3 * V, R)
    along_v, along_r = figure.data[:2], figure.data[2:]
    sizes = [int((label == Y).sum()) for label in (0, 1)]
    assert [int(np.sum(bar.y)) for bar in along_v] == sizes
    assert [int(np.sum(bar.y)) for bar in along_r] == sizes
    # epsilon = 1 and no noise along v: one spike for each class, however long v was.
    for bar, sign in zip(along_v, (-1, 1), strict=True):
        (spike,) = np.flatnonzero(bar.y)
        assert abs(bar.x[spike] - sign) < bar.x[1] - bar.x[0]
    overlap = np.minimum(along_r[0].y, along_r[1].y).sum()
    assert overlap > 0.5 * min(sizes)


def test_history_draws_each_curve():
    results = {"lenet": make_result(), "mlp": make_result(0.6)}
    figure = plot_history(results)
    curves = {(trace.name, trace.yaxis): trace for trace in figure.data}
    assert len(curves) == 8
    np.testing.assert_allclose(curves["mlp test", "y"].y, results["mlp"].history["test_accuracy"])
    np.testing.assert_allclose(curves["lenet train", "y2"].y, results["lenet"].history["train_loss"])
    assert curves["lenet test", "y"].line.color == style.ARCHITECTURE_COLOURS["lenet"]
    assert curves["lenet test", "y"].line.dash != curves["lenet train", "y"].line.dash
    assert "mlp ends at 60.0%" in figure.layout.meta["alt"]


def test_history_skips_epochs_that_were_not_evaluated():
    test = plot_history(make_result(unmeasured=True)).data[0]
    np.testing.assert_array_equal(test.x, [2, 4])
    assert np.isfinite(test.y).all()


def test_long_titles_are_wrapped_for_narrow_pages():
    title = "A title that is far too long for the width of a telephone, and then longer"
    text = plot_direction(V, title).layout.title.text
    assert max(map(len, text.split("<br>"))) <= 44
    assert text.replace("<br>", " ") == title


def test_drawing_leaves_the_defaults_alone():
    import matplotlib.pyplot as plt

    before = plotly.io.templates.default
    plot_direction(V)
    pictures.png(pictures.draw_direction(V))
    assert plt.get_fignums() == []
    assert plotly.io.templates.default == before


# The pictures of explorers.


def test_the_picture_of_a_direction():
    left, right = pictures.draw_direction(V).axes[:2]
    np.testing.assert_allclose(left.images[0].get_array(), V)
    np.testing.assert_allclose(right.images[0].get_array(), fourier_energy(V), atol=1e-7)
    assert left.images[0].norm.vmin == -left.images[0].norm.vmax
    # imshow's extent: column index 4 is frequency 0, so its centre lies at 0.
    assert right.images[0].get_extent() == [-4.5, 3.5, 3.5, -4.5]


def test_the_pictures_of_samples_and_of_a_training():
    panels = pictures.draw_samples(X[:4], Y[:4]).axes
    np.testing.assert_allclose(panels[3].images[0].get_array(), X[3, 0])
    assert [panel.get_title() for panel in panels] == ["y = +1" if label else "y = −1" for label in Y[:4]]
    assert len({panel.images[0].norm.vmax for panel in panels}) == 1
    result = make_result()
    accuracy, loss = pictures.draw_history(result, "lenet").axes
    np.testing.assert_allclose(accuracy.lines[0].get_ydata(), result.history["test_accuracy"])
    np.testing.assert_allclose(loss.lines[1].get_ydata(), result.history["train_loss"])
    assert [line.get_color() for line in accuracy.lines] == [style.ARCHITECTURE_COLOURS["lenet"]] * 2


@pytest.mark.parametrize(("learning_rate", "highest"), [(0.1, 2.0), (30.0, 1e300)])  # the second path diverges
def test_the_picture_of_a_landscape(learning_rate, highest):
    landscape = two_weight_landscape(1.0, learning_rate=learning_rate, steps=60, resolution=5)
    above, below, _ = draw_landscape(landscape, "m = 1").axes
    np.testing.assert_allclose(above.lines[0].get_xdata(), landscape.path[:, 0])
    np.testing.assert_allclose(below.lines[0].get_ydata(), landscape.path_losses)
    assert "m = 1: " in above.get_title() and max(below.lines[0].get_ydata()) < highest
    assert below.lines[1].get_ydata()[0] == landscape.least


def test_the_picture_of_a_section():
    axis = torch.linspace(-2, 2, 5)
    values = 3.0 * axis[None] + 0.0 * axis[:, None]
    (axes,) = draw_section(CrossSection(axis, axis, values, values, 1), (1.0, 0.5), "after epoch 3").axes
    np.testing.assert_allclose(axes.collections[0].get_array().reshape(5, 5), values / 6)
    np.testing.assert_allclose(axes.collections[-1].get_offsets(), [(-1, -0.5), (1, 0.5)])
    # The boundary of maximum margin is perpendicular to what separates the classes.
    x, y = axes.lines[0].get_data()
    assert (x[1] - x[0]) * 1.0 + (y[1] - y[0]) * 0.5 == pytest.approx(0)


# What does not fit.


@pytest.mark.parametrize(
    ("read", "error", "message"),
    [
        (lambda: parts.as_array("no direction", "v"), TypeError, "expected numbers"),
        (lambda: parts.as_vector([], "x"), ValueError, "non-empty vector"),
        (lambda: parts.as_vector([1.0, 2.0], "y", 3, "x"), ValueError, "got 2 values in y; expected 3, one for each x"),
        (lambda: parts.as_direction(torch.zeros(4, 4)), ValueError, "v = 0"),
        (lambda: parts.as_direction(torch.full((4, 4), torch.nan)), ValueError, "NaN"),
        (lambda: parts.as_direction(torch.ones(16)), ValueError, r"shape \(16,\)"),
        (lambda: parts.as_direction(torch.ones(3, 4, 4)), ValueError, r"v\[c\]"),
        (lambda: parts.as_mapping({}, "curves"), ValueError, "empty dict of curves"),
        (lambda: parts.as_mapping([V], "curves"), TypeError, "dict"),
        (lambda: parts.as_images(X[:, 0, 0], Y), ValueError, "expected .n, 1, height, width."),
        (lambda: parts.as_images(X, Y[:3]), ValueError, "one label for each"),
        (lambda: parts.as_images(X, 2 * Y - 1), ValueError, "other than 0 and 1"),
        (lambda: parts.check_columns("a", pd.DataFrame({"x": [1]}), ("x", "y")), ValueError, "without"),
        (lambda: plot_directions({"a": V, "b": torch.ones(4, 4)}), ValueError, "different shapes"),
        (lambda: plot_accuracy_map(FREQUENCIES, ACCURACIES[:3]), ValueError, "got 3 values in accuracies; expected 6"),
        (lambda: plot_curves({"1": CURVES, "2": {}}, "x", "y", choose="slider"), ValueError, "empty dict of curves"),
    ],
)
def test_what_does_not_fit_is_refused(read, error, message):
    with pytest.raises(error, match=message):
        read()


def test_a_caption_leaves_the_alternative_text_alone():
    figure = style.describe(go.Figure(), "Two lines.")
    assert style.say(figure, "One line rises.") is figure
    assert figure.layout.meta == {"alt": "Two lines.", "caption": "One line rises."}
    assert style.say(go.Figure(), "One line rises.").layout.meta["alt"] == "One line rises."
