"""The explorers, driven from Python: setting a value changes the figure; a training runs, and stops."""

import math
import time

import ipywidgets
import pytest
import torch
from companion import explorer as shared
from companion.chapter_01 import direction_explorer
from companion.chapter_04 import NadsExplorer, nads_explorer
from companion.chapter_04 import explorer as chapter_04
from companion.explorer import DirectionExplorer, StaticNotice, live_only

from nadtools.architectures import available
from nadtools.directions import fourier_atom
from nadtools.estimation import estimate_nads


def is_png(value):
    return bytes(value[:4]) == b"\x89PNG"


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("NADTOOLS_STATIC", raising=False)


@pytest.fixture
def explorer():
    made = direction_explorer(num_samples=300, device="cpu")
    yield made
    made.stop()
    assert made.wait(60)


def test_explorer_shows_direction_and_samples_at_once(explorer):
    assert is_png(explorer.direction_image.value)
    assert is_png(explorer.samples_image.value)
    assert explorer.curve_image.value == b""
    assert explorer.curve_image.layout.display == "none"
    assert "application/vnd.jupyter.widget-view+json" in explorer._repr_mimebundle_()
    assert isinstance(explorer.ui, ipywidgets.Widget)


@pytest.mark.parametrize(("control", "value"), [("frequency_i", -5), ("frequency_j", 9), ("phase", math.pi / 2)])
def test_direction_controls_change_the_direction_and_its_picture(explorer, control, value):
    direction, samples = explorer.direction_image.value, explorer.samples_image.value
    getattr(explorer, control).value = value
    assert is_png(explorer.direction_image.value)
    assert explorer.direction_image.value != direction
    assert explorer.samples_image.value != samples
    expected = fourier_atom(
        (32, 32), (explorer.frequency_i.value, explorer.frequency_j.value), phase=explorer.phase.value
    )
    torch.testing.assert_close(explorer.direction(), expected)


@pytest.mark.parametrize(("control", "value"), [("epsilon", 3.0), ("sigma", 0.0)])
def test_distribution_controls_change_the_samples_only(explorer, control, value):
    direction, samples = explorer.direction_image.value, explorer.samples_image.value
    getattr(explorer, control).value = value
    assert explorer.direction_image.value == direction
    assert explorer.samples_image.value != samples
    assert getattr(explorer.distribution(), control) == value


def test_a_sine_that_does_not_exist_is_explained_and_cannot_be_trained(explorer):
    explorer.phase.value = math.pi / 2
    explorer.frequency_i.value = explorer.frequency_j.value = 0
    assert "cosine" in explorer.status.value
    assert explorer.train_button.disabled
    explorer.sigma.value = 2.0
    explorer.start()
    assert explorer.history == []
    explorer.frequency_j.value = 1
    assert not explorer.train_button.disabled


def test_training_moves_the_curve_each_epoch_and_learns(explorer):
    explorer.architecture.value, explorer.epochs.value, explorer.sigma.value = "logreg", 6, 0.5
    curves, running, epochs = [], [], []

    def look(change):
        curves.append(change["new"])
        running.append((explorer.train_button.disabled, explorer.stop_button.disabled, explorer.epochs.disabled))
        epochs.append(len(explorer.history))

    explorer.curve_image.observe(look, "value")
    explorer.train_button.click()
    assert explorer.wait(60)
    assert len(set(curves)) == 6
    assert all(is_png(curve) for curve in curves)
    assert epochs == [1, 2, 3, 4, 5, 6]
    assert explorer.curve_image.layout.display is None
    assert set(running) == {(True, False, True)}
    assert len(explorer.history) == 6
    # The class is a noise-free coordinate: a linear model finds it well above chance from 300 samples.
    assert explorer.result.test_accuracy > 0.8
    assert "Done: 6 epochs" in explorer.status.value
    assert not explorer.train_button.disabled
    assert explorer.stop_button.disabled


def test_stop_ends_the_training_early(explorer):
    explorer.architecture.value, explorer.epochs.value = "logreg", 50

    def press_stop(_):
        if len(explorer.history) == 2:
            explorer.stop_button.click()

    explorer.curve_image.observe(press_stop, "value")
    explorer.train_button.click()
    assert explorer.wait(60)
    assert len(explorer.history) == 2
    assert explorer.result.stopped_early
    assert "Stopped after 2 epochs" in explorer.status.value
    assert not explorer.train_button.disabled


def test_stop_from_outside_and_train_again(explorer):
    explorer.epochs.value = 50
    explorer.train_button.click()
    deadline = time.monotonic() + 60
    while not explorer.history and time.monotonic() < deadline:
        time.sleep(0.01)
    explorer.train_button.click()  # a second press while it runs begins nothing
    explorer.stop_button.click()
    assert explorer.wait(60)
    assert 1 <= len(explorer.history) < 50
    explorer.architecture.value, explorer.epochs.value = "logreg", 2
    explorer.train_button.click()
    assert explorer.wait(60)
    assert len(explorer.history) == 2


def test_training_is_reproducible_and_leaves_the_global_random_state(explorer):
    explorer.architecture.value, explorer.epochs.value = "logreg", 2
    before = torch.get_rng_state()
    losses = []
    for _ in range(2):
        explorer.start()
        assert explorer.wait(60)
        losses.append([row["train_loss"] for row in explorer.history])
    assert losses[0] == losses[1]
    assert torch.equal(before, torch.get_rng_state())


def test_a_training_that_fails_is_reported(explorer, monkeypatch):
    def fail(*args, **kwargs):
        raise FloatingPointError("the loss is <not finite>")

    monkeypatch.setattr(shared.directions, "train", fail)
    explorer.start()
    assert explorer.wait(60)
    assert "FloatingPointError: the loss is &lt;not finite&gt;" in explorer.status.value
    assert not explorer.train_button.disabled


@pytest.mark.parametrize(
    "arguments",
    [{"shape": (0, 4)}, {"num_samples": 1}, {"seed": -1}, {"device": "cuda:99"}, {"device": "no such device"}],
)
def test_bad_arguments_are_refused_at_once(arguments):
    with pytest.raises(ValueError, match="got "):
        direction_explorer(**arguments)


def test_other_image_shapes():
    explorer = direction_explorer(shape=(8, 12), num_samples=50, device="cpu")
    assert explorer.direction().shape == (8, 12)
    explorer.architecture.value, explorer.epochs.value = "logreg", 1
    explorer.start()
    assert explorer.wait(60)
    assert len(explorer.history) == 1


@pytest.fixture
def nads():
    made = nads_explorer(device="cpu", shape=(16, 16))
    made.num_networks.value = 2
    yield made
    made.stop()
    assert made.wait(120)


def multiple(explorer):
    """The number that the explorer shows for α(v), as a multiple of the mean eigenvalue."""
    return float(explorer.alignment.value.split(": ")[1].split(" ×")[0])


def test_nads_explorer_offers_every_architecture_and_waits():
    explorer = nads_explorer(device="cpu")
    assert explorer.architecture.options == available()
    assert set(explorer.estimator.options) == {"secant", "gradient", "mixed"}
    assert explorer.index.max == 1023
    assert explorer.nads is None
    assert explorer.nads_image.layout.display == "none"
    explorer.index.value, explorer.frequency_j.value = 5, 2  # nothing to look at yet
    assert explorer.nads_image.value == explorer.spectrum_image.value == b""
    assert explorer.alignment.value == ""
    assert "application/vnd.jupyter.widget-view+json" in explorer._repr_mimebundle_()


def test_nads_explorer_computes_what_estimate_nads_does_and_shows_each_round(nads):
    nads.num_networks.value = 6
    progress, overlaps, disabled = [], [], []

    def look(change):
        progress.append(change["new"])
        overlaps.append(nads.nads.metadata["num_networks"])
        disabled.append((nads.compute_button.disabled, nads.num_networks.disabled, nads.stop_button.disabled))

    nads.progress.observe(look, "value")
    nads.compute_button.click()
    assert nads.wait(120)
    assert progress == overlaps == [1, 2, 4, 6]
    assert set(disabled) == {(True, True, False)}
    assert not nads.compute_button.disabled
    expected = estimate_nads("lenet", 6, image_size=(16, 16), device="cpu", progress=False)
    # Rounds and batch sizes change rounding only.
    torch.testing.assert_close(
        nads.nads.eigenvalues, expected.eigenvalues, rtol=1e-4, atol=1e-5 * expected.eigenvalues[0]
    )
    assert "Done: 6 networks" in nads.status.value
    assert f"overlap by {float(expected.split_half_overlap[9]):.2f} on the first 10" in nads.status.value
    assert is_png(nads.nads_image.value)
    assert is_png(nads.spectrum_image.value)
    atom = fourier_atom((16, 16), (nads.frequency_i.value, nads.frequency_j.value))
    # Three digits are shown.
    assert multiple(nads) == pytest.approx(expected.alignment(atom) / float(expected.eigenvalues.mean()), rel=6e-3)


def test_nads_explorer_controls_change_what_they_should(nads):
    nads.start()
    assert nads.wait(120)
    picture, spectrum, alignment = nads.nads_image.value, nads.spectrum_image.value, multiple(nads)
    nads.index.value = 7
    assert nads.nads_image.value != picture
    assert nads.spectrum_image.value != spectrum
    assert multiple(nads) == alignment
    picture, spectrum = nads.nads_image.value, nads.spectrum_image.value
    nads.frequency_i.value = nads.frequency_j.value = 0
    # LeNet prefers low frequencies by far.
    assert multiple(nads) > 3 * alignment
    nads.frequency_i.value = -7
    assert "(-7, 0)" in nads.alignment.value
    assert (nads.nads_image.value, nads.spectrum_image.value) == (picture, spectrum)


@pytest.mark.parametrize("estimator", ["gradient", "mixed"])
def test_nads_explorer_uses_the_estimator(nads, estimator):
    nads.estimator.value, nads.num_networks.value = estimator, 1
    nads.start()
    assert nads.wait(120)
    assert (nads.nads.metadata["estimator"], nads.nads.metadata["num_networks"]) == (estimator, 1)
    assert nads.status.value == "Done: 1 networks."


def test_nads_explorer_of_logistic_regression_prefers_nothing(nads):
    nads.architecture.value = "logreg"
    nads.start()
    assert nads.wait(120)
    for frequency in (0, 4):
        nads.frequency_i.value = frequency
        assert multiple(nads) == pytest.approx(1, abs=1e-2)


def test_nads_explorer_marks_the_index_in_the_spectrum():
    made = estimate_nads("logreg", 2, image_size=(4, 4), device="cpu", progress=False)
    axes = chapter_04.marked_spectrum(made, 3).axes[0]
    line, point = axes.lines[-2:]
    assert list(line.get_xdata()) == [4, 4]
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (4, made.eigenvalues[3])


def test_nads_explorer_stops_after_the_round_and_computes_again(nads):
    nads.num_networks.value = 50
    nads.progress.observe(lambda change: change["new"] == 2 and nads.stop_button.click(), "value")
    nads.compute_button.click()
    nads.compute_button.click()  # a second press while it runs begins nothing
    assert nads.wait(120)
    assert "Stopped after 2 networks" in nads.status.value
    assert nads.nads.metadata["num_networks"] == 2
    assert nads.stop_button.disabled
    nads.num_networks.value = 1
    nads.start()
    assert nads.wait(120)
    assert "Done: 1" in nads.status.value


def test_nads_explorer_shows_errors_and_no_stale_picture(nads, monkeypatch):
    nads.start()
    assert nads.wait(120)

    def fail(*args, **kwargs):
        raise ValueError("the output is <constant>")

    monkeypatch.setattr(chapter_04, "estimate_nads", fail)
    nads.start()
    assert nads.wait(120)
    assert "ValueError: the output is &lt;constant&gt;" in nads.status.value
    assert nads.nads is None
    assert nads.nads_image.layout.display == "none"
    assert not nads.compute_button.disabled


def test_nads_explorer_says_when_images_are_too_small():
    explorer = nads_explorer(device="cpu", shape=(4, 4))
    explorer.start()
    assert explorer.wait(120)
    assert "The estimate failed: ValueError" in explorer.status.value


def test_nads_explorer_leaves_nothing_behind(nads, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    nads.start()
    assert nads.wait(120)
    assert "Done" in nads.status.value
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [{"shape": (0, 4)}, {"seed": -1}, {"device": "no such device"}])
def test_nads_explorer_refuses_bad_arguments_at_once(arguments):
    with pytest.raises(ValueError, match="got "):
        nads_explorer(**arguments)


def test_a_static_page_shows_a_picture_and_the_way_to_the_live_notebook(monkeypatch):
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    notice = direction_explorer(num_samples=2)
    assert isinstance(notice, StaticNotice)
    assert len(notice.pictures) == 2 and all(is_png(picture) for picture in notice.pictures)
    assert dict(notice.controls)["frequency i"] == "3"
    assert notice.what == direction_explorer.__doc__.partition("\n")[0]
    page = notice._repr_html_()
    assert page.count("<img alt=") == 2 and notice.what in page
    assert "urlpath=lab/tree/book/01-directional-bias.ipynb" in page and "make lab" in page
    assert "kernel" in repr(notice)
    monkeypatch.setenv("NADTOOLS_STATIC", "0")
    assert isinstance(direction_explorer(num_samples=2), DirectionExplorer)
    assert isinstance(nads_explorer(), NadsExplorer)


def test_an_explorer_that_opens_empty_is_started_for_its_picture(monkeypatch):
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    notice = nads_explorer(shape=(16, 16))
    assert len(notice.pictures) == 2 and "Done" in notice.status


def test_live_only_leaves_other_values_alone(monkeypatch):
    @live_only
    def other_explorer(value, *, doubled=False):
        """Explore."""
        return 2 * value if doubled else value

    assert other_explorer(3, doubled=True) == 6
    assert other_explorer.__name__ == "other_explorer"
    assert other_explorer.__doc__ == "Explore."
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    assert other_explorer(3) == 3
