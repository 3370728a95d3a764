"""The aliasing explorer, driven from Python."""

import math

import pytest
import torch
from companion.chapter_02 import aliasing_explorer
from companion.explorer import StaticNotice

from nadtools.theory import pooling


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("NADTOOLS_STATIC", raising=False)


@pytest.mark.parametrize(
    ("control", "value"), [("frequency", 20), ("phase", 1.2), ("stride", 2), ("prefilter", "ideal"), ("ratio", 0.5)]
)
def test_every_control_changes_what_is_shown(control, value):
    explorer = aliasing_explorer(64)
    explorer.frequency.value = 8  # shares a bin with its conjugate, so that the phase matters
    before = explorer.picture.value, explorer.status.value
    getattr(explorer, control).value = value
    assert (explorer.picture.value, explorer.status.value) != before
    assert bytes(explorer.picture.value[:4]) == b"\x89PNG"


def test_the_accuracy_is_that_of_the_wave_that_is_drawn():
    explorer = aliasing_explorer(48)
    explorer.stride.value, explorer.frequency.value, explorer.phase.value = 4, 6, 1.0
    explorer.prefilter.value, explorer.ratio.value = "binomial", 2.0
    phase = explorer.phase.value
    wave = torch.cos(2 * math.pi * 6 * torch.arange(48, dtype=torch.float64) / 48 - phase)
    dense = pooling.bayes_accuracy(wave, pooling.pooling_matrix("binomial", 4, 48), explorer.ratio.value, 1.0)
    assert explorer.accuracy == pytest.approx(float(dense), abs=1e-9)
    assert "18, 30, 42" in explorer.status.value


def test_without_pooling_a_frequency_is_alone():
    explorer = aliasing_explorer(16)
    explorer.stride.value, explorer.prefilter.value = 1, "identity"
    assert "alone" in explorer.status.value and explorer.accuracy == 1.0


def test_bad_sizes_and_static_pages(monkeypatch):
    with pytest.raises(ValueError, match=r"size=\(0,\)"):
        aliasing_explorer(0)
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    assert isinstance(aliasing_explorer(), StaticNotice)
