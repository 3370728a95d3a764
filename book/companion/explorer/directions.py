"""A direction, samples of its D(v), and a training: what the explorers of chapters 1 and 5 share."""

from __future__ import annotations

import math
from typing import Any

import ipywidgets
import pandas as pd
import torch
from torch import Tensor, nn

from companion.explorer.base import SLIDER, Explorer, hidden_image
from companion.explorer.pictures import draw_direction, draw_history, draw_samples
from nadtools import checks
from nadtools.architectures import build
from nadtools.device import derive_seed
from nadtools.directions import fourier_atom
from nadtools.distributions import LinearlySeparable
from nadtools.training import TrainConfig, TrainResult, train

__all__ = ["DirectionExplorer"]


class DirectionExplorer(Explorer):
    """A Fourier atom, its energy, samples of D(v), and a training that can be watched and stopped.

    Every control is an attribute, so it can be set from Python too. The training
    runs in a thread of its own, so that the Stop button is heard.

    Attributes
    ----------
    frequency_i, frequency_j, phase, epsilon, sigma, architecture, epochs
        Controls.
    direction_image, samples_image, curve_image : ipywidgets.Image
        PNG pictures; the curve moves with each epoch.
    history : list of dict
        One row per epoch of the current or last training.
    result : TrainResult or None
        Of the last training that ended, also if it was stopped.
    """

    def __init__(self, shape: tuple[int, int], seed: int, device: str | torch.device | None, num_samples: int) -> None:
        # The deep networks take minutes to train on a CPU: too long to watch.
        super().__init__(shape, seed, device, ("lenet", "logreg", "mlp"))
        checks.integer("num_samples", num_samples, 2, expected="at least 2")
        self._num_samples = num_samples
        self.history: list[dict[str, float]] = []
        self.result: TrainResult | None = None

        self.phase = ipywidgets.FloatSlider(
            value=0.0, min=0.0, max=math.pi, step=math.pi / 16, description="phase", readout_format=".2f", **SLIDER
        )
        self.epsilon = ipywidgets.FloatSlider(value=1.0, min=0.1, max=3.0, step=0.1, description="ε", **SLIDER)
        self.sigma = ipywidgets.FloatSlider(value=1.0, min=0.0, max=5.0, step=0.1, description="σ", **SLIDER)
        self.epochs = ipywidgets.IntSlider(value=20, min=1, max=50, description="epochs", **SLIDER)
        self.train_button = ipywidgets.Button(description="Train", icon="play", button_style="primary")
        self.direction_image, self.samples_image, self.curve_image = (hidden_image() for _ in range(3))
        controls = (
            self.frequency_i,
            self.frequency_j,
            self.phase,
            self.epsilon,
            self.sigma,
            self.architecture,
            self.epochs,
        )
        buttons = ipywidgets.HBox([self.train_button, self.stop_button])
        pictures = (self.direction_image, self.samples_image, self.curve_image)
        self._lay_out(self.train_button, controls, [*controls, buttons], pictures)
        for control in (self.frequency_i, self.frequency_j, self.phase):
            control.observe(self._direction_changed, "value")
        for control in (self.epsilon, self.sigma):
            control.observe(self._samples_changed, "value")
        self._direction_changed()

    def direction(self) -> Tensor:
        """Return the direction that the sliders name, of shape (h, w)."""
        return fourier_atom(self._shape, (self.frequency_i.value, self.frequency_j.value), self.phase.value)

    def distribution(self) -> LinearlySeparable:
        """Return D(v) as the sliders set it."""
        return LinearlySeparable(self.direction(), epsilon=self.epsilon.value, sigma=self.sigma.value)

    def start(self) -> None:
        """Begin a training, unless one is running."""
        if self._running:
            return
        try:
            distribution = self.distribution()
            # Built here: initialisation borrows PyTorch's global generator, which the notebook's own thread may use.
            name = self.architecture.value
            network = build(name, in_channels=1, num_classes=2, image_size=self._shape, seed=self._seed)
        except ValueError as error:
            self._say(str(error))
            return
        self.history, self.result = [], None
        self.curve_image.layout.display, self.curve_image.value = "none", b""
        self._say("Training …")
        config = TrainConfig(epochs=self.epochs.value, seed=self._seed)
        self._begin("training", lambda: self._train(name, network, distribution, config))

    def _train(self, name: str, network: nn.Module, distribution: LinearlySeparable, config: TrainConfig) -> None:
        train_data, test_data = (
            distribution.sample(self._num_samples, seed=derive_seed(self._seed, number), device=self._device)
            for number in (1, 2)
        )
        self.result = train(
            network,
            train_data,
            test_data,
            config,
            progress=False,
            callback=lambda row: self._epoch(name, row, config),
        )
        ended = "Stopped after" if self.result.stopped_early else "Done:"
        self._say(f"{ended} {len(self.history)} epochs, test accuracy {self.result.test_accuracy:.1%}.")

    def _epoch(self, name: str, row: dict[str, float], config: TrainConfig) -> bool:
        self.history.append(row)
        self._say(f"Epoch {len(self.history)} of {config.epochs}: test accuracy {row['test_accuracy']:.1%}.")
        seen = TrainResult(
            test_accuracy=row["test_accuracy"],
            train_accuracy=row["train_accuracy"],
            test_loss=row["test_loss"],
            train_loss=row["train_loss"],
            history=pd.DataFrame(self.history),
            stopped_early=False,
        )
        self._show(self.curve_image, lambda: draw_history(seen, name))
        return self._stop.is_set()

    def _direction_changed(self, _: Any = None) -> None:
        try:
            direction = self.direction()
        except ValueError as error:
            self.train_button.disabled = True
            self._say(str(error))
            return
        with self._lock:
            self.train_button.disabled = self._running
        frequency = f"({self.frequency_i.value}, {self.frequency_j.value})"
        self._say(f"v at frequency {frequency}.")
        self._show(self.direction_image, lambda: draw_direction(direction))
        self._samples_changed()

    def _samples_changed(self, _: Any = None) -> None:
        try:
            x, y = self.distribution().sample(5, seed=self._seed, device="cpu")
        except ValueError as error:
            self._say(str(error))
            return
        self._show(self.samples_image, lambda: draw_samples(x, y))
