"""Explorers for live Jupyter: thin skins of ipywidgets over the floors below.

Their Python callbacks need a running kernel. Where the book is built as static pages (the environment variable
``NADTOOLS_STATIC`` is set) an explorer gives a line that says so in its place.
Pictures are drawn with matplotlib and shown as images: this needs no JavaScript beyond ipywidgets' own.
"""

from __future__ import annotations

import functools
import html
import math
import operator
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import ipywidgets
import pandas as pd
import torch
from torch import Tensor, nn

from nadtools.architectures import available, build
from nadtools.device import check_seed, derive_seed, resolve_device
from nadtools.directions import check_shape, fourier_atom
from nadtools.distributions import LinearlySeparable
from nadtools.figures import StaticFigure, plot_direction, plot_history, plot_samples
from nadtools.training import TrainConfig, TrainResult, train

__all__ = ["DirectionExplorer", "StaticNotice", "direction_explorer", "live_only"]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class StaticNotice:
    """What a static page shows in the place of an explorer.

    Attributes
    ----------
    name
        The explorer's name, for example ``"direction_explorer"``.
    """

    name: str

    def __repr__(self) -> str:
        return f"{self.name}() needs a running kernel: open this chapter in JupyterLab (make lab) and run the cell."

    def _repr_html_(self) -> str:
        return (
            '<p class="nadtools-live-only"><em>Live only.</em> This explorer needs a running kernel: open this chapter '
            f"in JupyterLab (<code>make lab</code>) and run <code>nt.widgets.{html.escape(self.name)}()</code>.</p>"
        )


def is_static() -> bool:
    """Whether the book is being built as static pages."""
    return os.environ.get("NADTOOLS_STATIC", "") not in ("", "0")


def live_only(make: Callable[P, T]) -> Callable[P, T | StaticNotice]:
    """Make an explorer return a :class:`StaticNotice` where the book is built as static pages.

    Parameters
    ----------
    make
        A function that builds an explorer.
    """

    @functools.wraps(make)
    def make_or_explain(*args: P.args, **kwargs: P.kwargs) -> T | StaticNotice:
        if is_static():
            return StaticNotice(getattr(make, "__name__", "explorer"))
        return make(*args, **kwargs)

    return make_or_explain


class DirectionExplorer:
    """A Fourier atom, its energy, samples of D(v), and a training that can be watched and stopped.

    Built by :func:`direction_explorer`. Every control is an attribute, so it can be set from Python too. The training
    runs in a thread of its own, so that the Stop button is heard.

    Attributes
    ----------
    ui : ipywidgets.Widget
        What the notebook shows.
    frequency_i, frequency_j, phase, epsilon, sigma, architecture, epochs
        Controls; read and set their ``value``.
    train_button, stop_button
        Buttons; ``click()`` presses them.
    direction_image, samples_image, curve_image : ipywidgets.Image
        PNG pictures; the curve moves with each epoch.
    status : ipywidgets.HTML
        One line on what is going on.
    history : list of dict
        One row per epoch of the current or last training.
    result : TrainResult or None
        Of the last training that ended, also if it was stopped.
    """

    def __init__(self, shape: tuple[int, int], seed: int, device: str | torch.device | None, num_samples: int) -> None:
        height, width = check_shape(shape)
        self._shape = (height, width)
        self._seed = check_seed(seed)
        self._device = resolve_device(device)
        if operator.index(num_samples) < 2:
            raise ValueError(f"got num_samples={num_samples}; expected at least 2")
        self._num_samples = num_samples
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()  # for drawing, and for what says whether a training is running
        self._running = False
        self.history: list[dict[str, float]] = []
        self.result: TrainResult | None = None

        # One of f and −f is enough: both name the same cosine.
        whole = {"continuous_update": False, "style": {"description_width": "7em"}}
        self.frequency_i = ipywidgets.IntSlider(
            value=min(3, height // 2), min=-(height // 2), max=height // 2, description="frequency i", **whole
        )
        self.frequency_j = ipywidgets.IntSlider(
            value=min(4, width // 2), min=0, max=width // 2, description="frequency j", **whole
        )
        self.phase = ipywidgets.FloatSlider(
            value=0.0, min=0.0, max=math.pi, step=math.pi / 16, description="phase", readout_format=".2f", **whole
        )
        self.epsilon = ipywidgets.FloatSlider(value=1.0, min=0.1, max=3.0, step=0.1, description="ε", **whole)
        self.sigma = ipywidgets.FloatSlider(value=1.0, min=0.0, max=5.0, step=0.1, description="σ", **whole)
        names = available()
        self.architecture = ipywidgets.Dropdown(
            options=names,
            value="lenet" if "lenet" in names else names[0],
            description="architecture",
            style={"description_width": "7em"},
        )
        self.epochs = ipywidgets.IntSlider(value=20, min=1, max=50, description="epochs", **whole)
        self.train_button = ipywidgets.Button(description="Train", icon="play", button_style="primary")
        self.stop_button = ipywidgets.Button(description="Stop", icon="stop", disabled=True)
        self.status = ipywidgets.HTML()
        # Hidden until there is something to show: browsers draw a broken image otherwise.
        self.direction_image, self.samples_image, self.curve_image = (
            ipywidgets.Image(format="png", layout=ipywidgets.Layout(max_width="100%", display="none")) for _ in range(3)
        )
        self._controls = (
            self.frequency_i,
            self.frequency_j,
            self.phase,
            self.epsilon,
            self.sigma,
            self.architecture,
            self.epochs,
        )
        buttons = ipywidgets.HBox([self.train_button, self.stop_button])
        self.ui = ipywidgets.HBox(
            [
                ipywidgets.VBox([*self._controls, buttons, self.status]),
                ipywidgets.VBox([self.direction_image, self.samples_image, self.curve_image]),
            ],
            layout=ipywidgets.Layout(flex_flow="row wrap"),
        )
        for control in (self.frequency_i, self.frequency_j, self.phase):
            control.observe(self._direction_changed, "value")
        for control in (self.epsilon, self.sigma):
            control.observe(self._samples_changed, "value")
        self.train_button.on_click(lambda _: self.start())
        self.stop_button.on_click(lambda _: self.stop())
        self._direction_changed()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.ui._repr_mimebundle_(**options)

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
        self._stop.clear()
        self._set_running(True)
        self._say("Training …")
        arguments = (name, network, distribution, TrainConfig(epochs=self.epochs.value, seed=self._seed))
        self._thread = threading.Thread(target=self._train, args=arguments, name="nadtools-explorer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask a running training to end after its current epoch."""
        self._stop.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the training to end, at most ``timeout`` seconds; return whether it has."""
        if self._thread is not None:
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return True

    def _train(self, name: str, network: nn.Module, distribution: LinearlySeparable, config: TrainConfig) -> None:
        try:
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
        except Exception as error:  # a thread has nobody above it who could show the error
            self._say(f"The training failed: {type(error).__name__}: {error}")
        finally:
            self._set_running(False)

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
        self._show(self.curve_image, lambda: plot_history(seen, name, backend="matplotlib"))
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
        self._show(self.direction_image, lambda: plot_direction(direction, backend="matplotlib"))
        self._samples_changed()

    def _samples_changed(self, _: Any = None) -> None:
        try:
            x, y = self.distribution().sample(5, seed=self._seed, device="cpu")
        except ValueError as error:
            self._say(str(error))
            return
        self._show(self.samples_image, lambda: plot_samples(x, y, 5, backend="matplotlib"))

    def _show(self, image: ipywidgets.Image, draw: Callable[[], Any]) -> None:
        with self._lock:
            figure = draw()
            assert isinstance(figure, StaticFigure)
            image.value, image.layout.display = figure.to_png(dpi=90), None

    def _say(self, message: str) -> None:
        self.status.value = html.escape(message)

    def _set_running(self, running: bool) -> None:
        with self._lock:
            self._running = running
            for control in (*self._controls, self.train_button):
                control.disabled = running
            self.stop_button.disabled = not running


@live_only
def direction_explorer(
    shape: tuple[int, int] = (32, 32),
    seed: int = 0,
    device: str | torch.device | None = None,
    num_samples: int = 2000,
) -> DirectionExplorer:
    """Explore D(v): choose a direction and an architecture, look at samples, and watch a training.

    Parameters
    ----------
    shape
        Height and width of the images, in pixels.
    seed
        Of the samples, the network's initialisation and the training.
    device
        Where to train; None means CUDA where there is one, else the CPU.
    num_samples
        Size of the training set and of the test set.

    Returns
    -------
    DirectionExplorer or StaticNotice
        The notice where the book is built as static pages.

    Raises
    ------
    TypeError, ValueError
        If the shape, the seed, the device or the number of samples is not one.
    """
    return DirectionExplorer(shape, seed, device, num_samples)
