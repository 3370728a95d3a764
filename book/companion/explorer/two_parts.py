"""A training on two parts that share the label: what the explorers of chapters 10 and 11 share."""

from __future__ import annotations

from typing import Any

import ipywidgets
import torch
from torch import nn

from companion.explorer.base import SLIDER, Explorer, hidden_image
from companion.explorer.pictures import Figure
from nadtools import checks
from nadtools.architectures import build
from nadtools.device import derive_seed
from nadtools.distributions import Concatenated
from nadtools.nads import NADs
from nadtools.training import Data, TrainConfig, TrainResult, evaluate, train

__all__ = ["POINTS_AT_THE_END", "TwoPartExplorer"]

_ARCHITECTURES = ("lenet", "mlp", "logreg")  # the deep networks take too long on a CPU to be watched
_POINTS = 4  # that a section is averaged over after each epoch
POINTS_AT_THE_END = 32


class TwoPartExplorer(Explorer):
    """A training on two parts that share the label, asked after each epoch what it does with either alone."""

    names: tuple[str, str]  # of the parts

    def __init__(self, nads: Any, seed: int, device: str | torch.device | None) -> None:
        checks.instance("nads", nads, NADs, "NADs, as estimate_nads returns them")
        if len(nads.image_shape) != 2:
            raise ValueError(f"got NADs of images of shape {nads.image_shape}; expected one channel, (height, width)")
        super().__init__((nads.image_shape[0], nads.image_shape[1]), seed, device, _ARCHITECTURES)
        self._vectors = nads.vectors.float()
        self.history: list[dict[str, float]] = []
        self.result: TrainResult | None = None
        self.network: nn.Module | None = None
        self.epochs = ipywidgets.IntSlider(value=10, min=1, max=60, description="epochs", **SLIDER)
        self.train_button = ipywidgets.Button(description="Train", icon="play", button_style="primary")
        self.picture = hidden_image()

    def _complete(self, *own: ipywidgets.Widget) -> None:
        controls = (self.architecture, *own, self.epochs)
        buttons = ipywidgets.HBox([self.train_button, self.stop_button])
        self._lay_out(self.train_button, controls, [*controls, buttons], [self.picture])
        self._say("Choose, and press Train.")

    def _index_slider(self, value: int, name: str) -> ipywidgets.IntSlider:
        last = len(self._vectors) - 1
        return ipywidgets.IntSlider(value=min(value, last), min=0, max=last, description=name, **SLIDER)

    def problems(self) -> tuple[Concatenated, Concatenated]:
        """Return the problems to train and to test on, as the controls set them."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin a training, unless one is running."""
        if self._running:
            return
        problems = self.problems()
        # Built here: initialisation borrows PyTorch's global generator, which the notebook's own thread may use.
        shape = problems[0].image_shape
        network = build(self.architecture.value, shape[0], 2, image_size=self._shape, seed=self._seed)
        self.history, self.result, self.network = [], None, network
        self.picture.layout.display, self.picture.value = "none", b""
        self._say("Training …")
        config = TrainConfig(epochs=self.epochs.value, max_lr=0.1, schedule="triangular", momentum=0.9, seed=self._seed)
        self._begin("training", lambda: self._train(network, problems, config))

    def _train(self, network: nn.Module, problems: tuple[Concatenated, Concatenated], config: TrainConfig) -> None:
        train_data, test_data = (
            problem.sample(self._size(problem), derive_seed(self._seed, number), device=self._device)
            for number, problem in enumerate(problems, 1)
        )

        def after_epoch(row: dict[str, float]) -> bool:
            self._ask(network, problems[1], test_data, row["test_accuracy"])
            self._say(f"Epoch {len(self.history)} of {config.epochs}: {self._summary()}.")
            self._show(self.picture, lambda: self._draw(network, problems[1], test_data, _POINTS))
            return self._stop.is_set()

        self.result = train(network, train_data, test_data, config, progress=False, callback=after_epoch)
        self._show(self.picture, lambda: self._draw(network, problems[1], test_data, POINTS_AT_THE_END))
        ended = "Stopped after" if self.result.stopped_early else "Done:"
        self._say(f"{ended} {len(self.history)} epochs. {self._verdict(network, problems[1], test_data)}")

    def _ask(self, network: nn.Module, problem: Concatenated, test_data: Data, both: float) -> None:
        x, y = test_data
        row = {"both": both}
        for part, name in enumerate(self.names):
            row[name] = evaluate(network, (problem.only(part)(x), y)).accuracy
        self.history.append(row)

    def _summary(self) -> str:
        return ", ".join(f"{name} {share:.1%}" for name, share in self.history[-1].items())

    def _verdict(self, network: nn.Module, problem: Concatenated, test_data: Data) -> str:
        return f"Test accuracy: {self._summary()}."

    def _size(self, problem: Concatenated) -> int:
        raise NotImplementedError

    def _draw(self, network: nn.Module, problem: Concatenated, test_data: Data, points: int) -> Figure:
        raise NotImplementedError
