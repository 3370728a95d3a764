"""The explorers, driven from Python: setting a value changes the figure; a training runs, and stops."""

import math
import time

import ipywidgets
import pytest
import torch

from nadtools import widgets
from nadtools.directions import fourier_atom
from nadtools.widgets import DirectionExplorer, StaticNotice, direction_explorer, live_only


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

    monkeypatch.setattr(widgets, "train", fail)
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


def test_static_build_shows_how_to_run_it_live(monkeypatch):
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    notice = direction_explorer()
    assert isinstance(notice, StaticNotice)
    assert "make lab" in notice._repr_html_()
    assert "direction_explorer()" in notice._repr_html_()
    assert "kernel" in repr(notice)
    monkeypatch.setenv("NADTOOLS_STATIC", "0")
    assert isinstance(direction_explorer(num_samples=2), DirectionExplorer)


def test_live_only_serves_other_explorers(monkeypatch):
    calls = []

    @live_only
    def other_explorer(value, *, doubled=False):
        """Explore."""
        calls.append(value)
        return 2 * value if doubled else value

    assert other_explorer(3, doubled=True) == 6
    assert other_explorer.__name__ == "other_explorer"
    assert other_explorer.__doc__ == "Explore."
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    assert "other_explorer" in other_explorer(3)._repr_html_()
    assert calls == [3]
