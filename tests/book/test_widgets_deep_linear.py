"""The landscape explorer, driven from Python: setting a value changes the landscape, the picture and the numbers."""

import math

import ipywidgets
import pytest
import torch
from companion.chapter_03 import LandscapeExplorer, landscape_explorer
from companion.chapter_03.landscape import two_weight_landscape
from companion.explorer import StaticNotice


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("NADTOOLS_STATIC", raising=False)


@pytest.fixture
def explorer():
    return landscape_explorer()


def test_it_shows_a_landscape_at_once(explorer):
    assert bytes(explorer.picture.value[:4]) == b"\x89PNG"
    assert explorer.picture.layout.display is None
    assert isinstance(explorer.ui, ipywidgets.Widget)
    assert "application/vnd.jupyter.widget-view+json" in explorer._repr_mimebundle_()
    expected = two_weight_landscape(1.0, learning_rate=0.1, steps=60, start=(1.0, 0.1), sigma=0.3)
    torch.testing.assert_close(explorer.landscape.path, expected.path)
    assert f"Learned after {expected.steps_to_learn:.0f} steps" in explorer.status.value


@pytest.mark.parametrize(
    ("control", "value"), [("m", 0.2), ("learning_rate", 0.5), ("sigma", 2.0), ("start_theta", 2.0), ("start_phi", 3.0)]
)
def test_every_control_changes_landscape_picture_and_path(explorer, control, value):
    picture, path = explorer.picture.value, explorer.landscape.path
    getattr(explorer, control).value = value
    assert explorer.picture.value != picture
    assert bytes(explorer.picture.value[:4]) == b"\x89PNG"
    assert explorer.landscape.path.shape != path.shape or not torch.allclose(explorer.landscape.path, path)
    expected = two_weight_landscape(
        explorer.m.value,
        learning_rate=explorer.learning_rate.value,
        steps=60,
        start=(explorer.start_theta.value, explorer.start_phi.value),
        sigma=explorer.sigma.value,
    )
    torch.testing.assert_close(explorer.landscape.path, expected.path)
    torch.testing.assert_close(explorer.landscape.losses, expected.losses)


def test_a_small_m_is_not_learned_and_a_large_learning_rate_breaks(explorer):
    explorer.m.value = 0.05
    assert "Not learned in 60 steps" in explorer.status.value
    explorer.m.value, explorer.learning_rate.value = 1.0, 30.0
    assert "Not learned" in explorer.status.value
    assert explorer.landscape.path_losses[-1] > 1e6
    assert bytes(explorer.picture.value[:4]) == b"\x89PNG"


def test_the_status_names_the_curvature_and_the_limit_of_lemma_1(explorer):
    explorer.m.value, explorer.sigma.value, explorer.start_theta.value = 0.5, 1.0, 2.0
    # 2 (epsilon² + sigma²) theta² m² = 2 · 2 · 4 · 0.25
    assert "Curvature along φ at the start: 4." in explorer.status.value
    assert "above the learning rate 0.5" in explorer.status.value
    explorer.start_theta.value = 0.0
    assert "at the start: 0." in explorer.status.value and "diverges" not in explorer.status.value


def test_steps_and_epsilon_are_taken():
    explorer = landscape_explorer(steps=7, epsilon=2.0)
    assert len(explorer.landscape.path) == 8
    assert explorer.landscape.epsilon == 2.0
    assert explorer.landscape.least == pytest.approx(0.09 / 4.09)


@pytest.mark.parametrize(
    "arguments", [{"steps": 0}, {"steps": 2.5}, {"epsilon": 0.0}, {"epsilon": math.inf}, {"epsilon": "1"}]
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises((ValueError, TypeError), match="got "):
        landscape_explorer(**arguments)


def test_static_build_shows_how_to_run_it_live(monkeypatch):
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    notice = landscape_explorer()
    assert isinstance(notice, StaticNotice)
    assert "<img alt=" in notice._repr_html_()
    monkeypatch.setenv("NADTOOLS_STATIC", "0")
    assert isinstance(landscape_explorer(), LandscapeExplorer)
