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
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, get_args

import ipywidgets
import pandas as pd
import torch
from torch import Tensor, nn

from nadtools.architectures import available, build
from nadtools.device import check_seed, derive_seed, resolve_device
from nadtools.directions import check_shape, fourier_atom
from nadtools.distributions import LinearlySeparable
from nadtools.estimation import Estimator, estimate_nads
from nadtools.figures import StaticFigure, plot_direction, plot_history, plot_samples, plot_spectra
from nadtools.nads import NADs
from nadtools.training import TrainConfig, TrainResult, train

__all__ = ["DirectionExplorer", "NadsExplorer", "StaticNotice", "direction_explorer", "live_only", "nads_explorer"]

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


_LABELS = {"style": {"description_width": "7em"}}
_SLIDER: dict[str, Any] = {"continuous_update": False, **_LABELS}


class _Explorer:
    """Controls, pictures, a line of status, and one piece of work at a time in a thread that can be stopped."""

    def __init__(
        self,
        shape: tuple[int, int],
        seed: int,
        device: str | torch.device | None,
        architectures: Sequence[str] | None = None,
    ) -> None:
        height, width = check_shape(shape)
        self._shape = (height, width)
        self._seed = check_seed(seed)
        self._device = resolve_device(device)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()  # for drawing, and for what says whether work is going on
        self._running = False
        # One of f and −f is enough: both name the same cosine.
        self.frequency_i = ipywidgets.IntSlider(
            value=min(3, height // 2), min=-(height // 2), max=height // 2, description="frequency i", **_SLIDER
        )
        self.frequency_j = ipywidgets.IntSlider(
            value=min(4, width // 2), min=0, max=width // 2, description="frequency j", **_SLIDER
        )
        names = architectures or available()
        self.architecture = ipywidgets.Dropdown(
            options=names, value="lenet" if "lenet" in names else names[0], description="architecture", **_LABELS
        )
        self.stop_button = ipywidgets.Button(description="Stop", icon="stop", disabled=True)
        self.stop_button.on_click(lambda _: self.stop())
        self.status = ipywidgets.HTML()

    def _lay_out(
        self,
        start_button: ipywidgets.Button,
        fixed_while_running: Sequence[ipywidgets.Widget],
        controls: Sequence[ipywidgets.Widget],
        pictures: Sequence[ipywidgets.Widget],
    ) -> None:
        self._start_button, self._fixed_while_running = start_button, fixed_while_running
        start_button.on_click(lambda _: self.start())
        self.ui = ipywidgets.HBox(
            [ipywidgets.VBox([*controls, self.status]), ipywidgets.VBox(list(pictures))],
            layout=ipywidgets.Layout(flex_flow="row wrap"),
        )

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.ui._repr_mimebundle_(**options)

    def start(self) -> None:
        """Begin the work, unless it is going on."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ask the work to end after its current step."""
        self._stop.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the work to end, at most ``timeout`` seconds; return whether it has."""
        if self._thread is not None:
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return True

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        """Do the work in a thread, and say so if it fails."""

        def run() -> None:
            try:
                work()
            except Exception as error:  # a thread has nobody above it who could show the error
                self._say(f"The {name} failed: {type(error).__name__}: {error}")
            finally:
                self._set_running(False)

        self._stop.clear()
        self._set_running(True)
        self._thread = threading.Thread(target=run, name="nadtools-explorer", daemon=True)
        self._thread.start()

    def _set_running(self, running: bool) -> None:
        with self._lock:
            self._running = running
            for control in (*self._fixed_while_running, self._start_button):
                control.disabled = running
            self.stop_button.disabled = not running

    def _show(self, image: ipywidgets.Image, draw: Callable[[], Any]) -> None:
        with self._lock:
            figure = draw()
            assert isinstance(figure, StaticFigure)
            image.value, image.layout.display = figure.to_png(dpi=90), None

    def _say(self, message: str) -> None:
        self.status.value = html.escape(message)


def _hidden_image() -> ipywidgets.Image:
    # Hidden until there is something to show: browsers draw a broken image otherwise.
    return ipywidgets.Image(format="png", layout=ipywidgets.Layout(max_width="100%", display="none"))


class DirectionExplorer(_Explorer):
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
        # The deep networks take minutes to train on a CPU: too long to watch.
        super().__init__(shape, seed, device, ("lenet", "logreg", "mlp"))
        if operator.index(num_samples) < 2:
            raise ValueError(f"got num_samples={num_samples}; expected at least 2")
        self._num_samples = num_samples
        self.history: list[dict[str, float]] = []
        self.result: TrainResult | None = None

        self.phase = ipywidgets.FloatSlider(
            value=0.0, min=0.0, max=math.pi, step=math.pi / 16, description="phase", readout_format=".2f", **_SLIDER
        )
        self.epsilon = ipywidgets.FloatSlider(value=1.0, min=0.1, max=3.0, step=0.1, description="ε", **_SLIDER)
        self.sigma = ipywidgets.FloatSlider(value=1.0, min=0.0, max=5.0, step=0.1, description="σ", **_SLIDER)
        self.epochs = ipywidgets.IntSlider(value=20, min=1, max=50, description="epochs", **_SLIDER)
        self.train_button = ipywidgets.Button(description="Train", icon="play", button_style="primary")
        self.direction_image, self.samples_image, self.curve_image = (_hidden_image() for _ in range(3))
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


class NadsExplorer(_Explorer):
    """NADs of an architecture, computed while the reader waits, and the alignment of Fourier atoms with them.

    Built by :func:`nads_explorer`. Every control is an attribute, so it can be set from Python too. The estimate runs
    in a thread of its own, with 1, 2, 4... networks up to the number asked for. After each of these rounds the pictures
    show what has been found, and the estimate can be stopped.

    Attributes
    ----------
    ui : ipywidgets.Widget
        What the notebook shows.
    architecture, estimator, num_networks
        What to compute; read and set their ``value``.
    index, frequency_i, frequency_j
        Which NAD, and which cosine, to look at.
    compute_button, stop_button
        Buttons; ``click()`` presses them.
    progress : ipywidgets.IntProgress
        How many networks are done.
    nads_image, spectrum_image : ipywidgets.Image
        PNG pictures.
    alignment : ipywidgets.HTML
        α of the cosine, as a multiple of the mean eigenvalue.
    status : ipywidgets.HTML
        One line on what is going on.
    nads : NADs or None
        The latest estimate.
    """

    def __init__(self, shape: tuple[int, int], seed: int, device: str | torch.device | None) -> None:
        super().__init__(shape, seed, device)
        self.nads: NADs | None = None
        self.estimator = ipywidgets.Dropdown(options=get_args(Estimator), description="estimator", **_LABELS)
        self.num_networks = ipywidgets.IntSlider(value=8, min=1, max=100, description="networks", **_SLIDER)
        last = math.prod(self._shape) - 1
        self.index = ipywidgets.IntSlider(value=0, min=0, max=last, description="NAD", **_SLIDER)
        self.compute_button = ipywidgets.Button(description="Compute", icon="play", button_style="primary")
        self.progress = ipywidgets.IntProgress(value=0, min=0, max=1, description="done", **_LABELS)
        self.nads_image, self.spectrum_image = _hidden_image(), _hidden_image()
        self.alignment = ipywidgets.HTML()
        chosen = (self.architecture, self.estimator, self.num_networks)
        buttons = ipywidgets.HBox([self.compute_button, self.stop_button])
        looks = (self.index, self.frequency_i, self.frequency_j, self.alignment)
        self._lay_out(
            self.compute_button,
            chosen,
            [*chosen, buttons, self.progress, *looks],
            [self.nads_image, self.spectrum_image],
        )
        self.index.observe(self._index_changed, "value")
        for control in (self.frequency_i, self.frequency_j):
            control.observe(self._frequency_changed, "value")
        self._say("Choose, then press Compute.")

    def atom(self) -> Tensor:
        """Return the cosine that the sliders name, of shape (h, w)."""
        return fourier_atom(self._shape, (self.frequency_i.value, self.frequency_j.value))

    def start(self) -> None:
        """Begin to compute NADs, unless this is going on."""
        if self._running:
            return
        with self._lock:
            self.nads = None
            for image in (self.nads_image, self.spectrum_image):
                image.layout.display, image.value = "none", b""
            self.alignment.value = ""
        name, estimator, total = self.architecture.value, self.estimator.value, self.num_networks.value
        self.progress.value, self.progress.max = 0, total
        self._say(f"Network 1 of {total} …")
        self._begin("estimate", lambda: self._estimate(name, estimator, total))

    def _estimate(self, name: str, estimator: Estimator, total: int) -> None:
        done = 0
        with tempfile.TemporaryDirectory(prefix="nadtools-") as folder:
            # Each round goes on from the checkpoint of the one before: no network is computed twice.
            while done == 0 or (done < total and not self._stop.is_set()):
                done = min(max(1, 2 * done), total)
                found = estimate_nads(
                    name,
                    done,
                    estimator,
                    self._seed,
                    image_size=self._shape,
                    checkpoint=Path(folder) / "moments.npz",
                    device=self._device,
                    progress=False,
                )
                with self._lock:
                    self.nads = found
                    self.progress.value = done
                    self._index_changed()
                    self._frequency_changed()
                self._say(f"{done} of {total} networks …")
        first = min(10, len(found.vectors))
        ended = "Done:" if done == total else "Stopped after"
        agreement = float(found.split_half_overlap[first - 1])
        quality = f", two halves of them overlap by {agreement:.2f} on the first {first} NADs"
        self._say(f"{ended} {done} networks{quality if math.isfinite(agreement) else ''}.")

    def _index_changed(self, _: Any = None) -> None:
        with self._lock:
            if self.nads is None:
                return
            nads, index = self.nads, self.index.value
            name, value = nads.metadata["architecture"], float(nads.eigenvalues[index])
            share = value / float(nads.eigenvalues.sum())
            title = f"{name}: NAD {index}, eigenvalue {value:.2e} ({share:.2%} of the trace)"
            self._show(self.nads_image, lambda: plot_direction(nads.vectors[index], title, backend="matplotlib"))
            self._show(self.spectrum_image, lambda: _marked_spectrum(nads, index))

    def _frequency_changed(self, _: Any = None) -> None:
        with self._lock:
            if self.nads is None:
                return
            multiple = self.nads.alignment(self.atom()) / float(self.nads.eigenvalues.mean())
            frequency = f"({self.frequency_i.value}, {self.frequency_j.value})"
            self.alignment.value = f"α(v) of the cosine at {frequency}: {multiple:.3g} × the mean eigenvalue."


def _marked_spectrum(nads: NADs, index: int) -> StaticFigure:
    name, value = nads.metadata["architecture"], float(nads.eigenvalues[index])
    figure = plot_spectra({name: nads}, backend="matplotlib")
    assert isinstance(figure, StaticFigure)
    axes = figure.axes[0]
    axes.axvline(index + 1, color="#606060", linestyle=":", linewidth=1.2)
    if value > 0:  # zero and below have no place on a logarithmic axis
        axes.plot(index + 1, value, "o", color="#d55e00", label=f"NAD {index}")
    axes.legend(frameon=False)
    return figure


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


@live_only
def nads_explorer(
    seed: int = 0, device: str | torch.device | None = None, *, shape: tuple[int, int] = (32, 32)
) -> NadsExplorer:
    """Compute NADs of an architecture, look at each of them, and at the alignment of Fourier atoms.

    Parameters
    ----------
    seed
        Of the networks.
    device
        Where to compute; None means CUDA where there is one, else the CPU.
    shape
        Height and width of the images, in pixels.

    Returns
    -------
    NadsExplorer or StaticNotice
        The notice where the book is built as static pages.

    Raises
    ------
    TypeError, ValueError
        If the seed, the device or the shape is not one.

    Notes
    -----
    Networks are initialised from PyTorch's global generator, which is lent to them and put back. Wait for the end of an
    estimate before other cells draw random numbers from it.
    """
    return NadsExplorer(shape, seed, device)
