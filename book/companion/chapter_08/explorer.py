"""Train on two features at once, and watch which of them the network takes."""

from __future__ import annotations

import math
import operator
from typing import Any

import ipywidgets
import torch
from torch import nn

from companion.chapter_08.figures import plot_sections
from companion.explorer import SLIDER, Explorer, hidden_image, live_only
from companion.figures import plot_curves
from companion.parts import Figure
from nadtools import checks
from nadtools.architectures import build
from nadtools.boundaries import boundary_angle, cross_section
from nadtools.device import derive_seed
from nadtools.distributions import Concatenated, Labelled, LinearlySeparable, concatenate
from nadtools.images import Images, binary
from nadtools.nads import NADs
from nadtools.training import Data, TrainConfig, TrainResult, evaluate, train

__all__ = ["ConcatenationExplorer", "PairExplorer", "concatenation_explorer", "pair_explorer"]

_ARCHITECTURES = ("lenet", "mlp", "logreg")  # the deep networks take too long on a CPU to be watched
_POINTS = 4  # that a section is averaged over after each epoch
_POINTS_AT_THE_END = 32
_EXTENT = 2.0


class _TwoPartExplorer(Explorer):
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
        self._show(self.picture, lambda: self._draw(network, problems[1], test_data, _POINTS_AT_THE_END))
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


class PairExplorer(_TwoPartExplorer):
    """A training on D(v₁)⊕D(v₂) whose decision boundary can be watched.

    Built by :func:`pair_explorer`. Every control is an attribute, so it can be set from Python too.

    Attributes
    ----------
    ui : ipywidgets.Widget
        What the notebook shows.
    architecture, first, second, epsilon_first, epsilon_second, epochs
        Controls; read and set their ``value``. ``first`` and ``second`` are indices of NADs.
    train_button, stop_button
        Buttons; ``click()`` presses them.
    picture : ipywidgets.Image
        The boundary in the plane of v₁ and v₂; it moves with each epoch.
    status : ipywidgets.HTML
        One line on what is going on.
    history : list of dict
        Test accuracies after each epoch: with both channels, with the first alone and with the second alone.
    result : TrainResult or None
        Of the last training that ended, also if it was stopped.
    """

    names = ("only the first", "only the second")

    def __init__(self, nads: NADs, seed: int, device: str | torch.device | None, num_samples: int) -> None:
        super().__init__(nads, seed, device)
        checks.integer("num_samples", num_samples, 2, expected="at least 2")
        self._num_samples = operator.index(num_samples)
        self.first, self.second = self._index_slider(0, "v₁ is NAD"), self._index_slider(300, "v₂ is NAD")
        size: dict[str, Any] = {"min": 0.1, "max": 3.0, "step": 0.1, **SLIDER}
        self.epsilon_first = ipywidgets.FloatSlider(value=1.0, description="ε₁", **size)
        self.epsilon_second = ipywidgets.FloatSlider(value=0.5, description="ε₂", **size)
        self._complete(self.first, self.second, self.epsilon_first, self.epsilon_second)

    def problems(self) -> tuple[Concatenated, Concatenated]:
        """Return D(v₁)⊕D(v₂), to train and to test on; it is one problem, and the samples are two draws."""
        one = LinearlySeparable(self._vectors[self.first.value], self.epsilon_first.value, 1.0)
        other = LinearlySeparable(self._vectors[self.second.value], self.epsilon_second.value, 1.0)
        problem = concatenate(one, other)
        return problem, problem

    def _size(self, problem: Concatenated) -> int:
        return self._num_samples

    def _draw(self, network: nn.Module, problem: Concatenated, test_data: Data, points: int) -> Figure:
        first, second = (problem.direction(part) for part in (0, 1))
        section = cross_section(network, test_data[0][:points], first, second, _EXTENT, 21, progress=False)
        return plot_sections(
            {f"after epoch {len(self.history)}": (section.first, section.values)},
            epsilons=(self.epsilon_first.value, self.epsilon_second.value),
            backend="matplotlib",
        )

    def _verdict(self, network: nn.Module, problem: Concatenated, test_data: Data) -> str:
        first, second = (problem.direction(part) for part in (0, 1))
        angle = boundary_angle(network, test_data[0][:_POINTS_AT_THE_END], first, second, dtype=torch.float32)
        lies = f"at {math.degrees(angle.to_first):.0f}° to v₁" if math.isfinite(angle.to_first) else "out of sight"
        widest = math.degrees(math.atan2(self.epsilon_first.value, self.epsilon_second.value))
        margin = f"maximum margin would have it at {widest:.0f}°"
        return f"{super()._verdict(network, problem, test_data)} The boundary is {lies}; {margin}."


class ConcatenationExplorer(_TwoPartExplorer):
    """A training on binary images ⊕ D(v), asked after each epoch what it does with either alone.

    Built by :func:`concatenation_explorer`. Every control is an attribute, so it can be set from Python too.

    Attributes
    ----------
    ui : ipywidgets.Widget
        What the notebook shows.
    architecture, index, epsilon, sigma, epochs
        Controls; read and set their ``value``. ``index`` is that of the NAD v.
    train_button, stop_button
        Buttons; ``click()`` presses them.
    picture : ipywidgets.Image
        Test accuracies by epoch.
    status : ipywidgets.HTML
        One line on what is going on.
    history : list of dict
        Test accuracies after each epoch: with both parts, with the images alone and with D(v) alone.
    result : TrainResult or None
        Of the last training that ended, also if it was stopped.
    """

    names = ("images alone", "D(v) alone")

    def __init__(self, images: Images, nads: NADs, seed: int, device: str | torch.device | None) -> None:
        checks.instance("images", images, Images, "Images, as load_images returns them")
        super().__init__(nads, seed, device)
        if images.image_shape[1:] != self._shape:
            raise ValueError(
                f"got images of {images.image_shape[1:]} pixels and NADs of {self._shape}; expected one size"
            )
        half = range(images.num_classes // 2, images.num_classes)
        self._images = [
            Labelled(images.normalise(x), binary(y, half))
            for x, y in ((images.x_train, images.y_train), (images.x_test, images.y_test))
        ]
        self.index = self._index_slider(0, "v is NAD")
        self.epsilon = ipywidgets.FloatSlider(value=1.0, min=0.1, max=3.0, step=0.1, description="ε", **SLIDER)
        self.sigma = ipywidgets.FloatSlider(value=1.0, min=0.0, max=5.0, step=0.1, description="σ", **SLIDER)
        self._complete(self.index, self.epsilon, self.sigma)

    def problems(self) -> tuple[Concatenated, Concatenated]:
        """Return images ⊕ D(v): one with the images to train on, one with those to test on."""
        part = LinearlySeparable(self._vectors[self.index.value], self.epsilon.value, self.sigma.value)
        train_images, test_images = self._images
        return concatenate(train_images, part), concatenate(test_images, part)

    def _size(self, problem: Concatenated) -> int:
        part = problem.parts[0]
        assert isinstance(part, Labelled)
        return len(part.y)

    def _draw(self, network: nn.Module, problem: Concatenated, test_data: Data, points: int) -> Figure:
        epochs = range(1, len(self.history) + 1)
        curves = {name: (list(epochs), [row[name] for row in self.history]) for name in ("both", *self.names)}
        return plot_curves(curves, "epoch", "test accuracy", y_range=(0.0, 1.05), backend="matplotlib")


@live_only
def pair_explorer(
    nads: NADs, seed: int = 0, device: str | torch.device | None = None, num_samples: int = 3000
) -> PairExplorer:
    """Explore D(v₁)⊕D(v₂): choose a network and two NADs, train, and watch the decision boundary turn.

    Parameters
    ----------
    nads
        Of images with one channel.
    seed
        Of the samples, the network's initialisation and the training.
    device
        Where to train; None means CUDA where there is one, else the CPU.
    num_samples
        Size of the training set and of the test set.

    Returns
    -------
    PairExplorer or StaticNotice
        The notice where the book is built as static pages.

    Raises
    ------
    TypeError, ValueError
        If the NADs, the seed, the device or the number of samples is not one.
    """
    return PairExplorer(nads, seed, device, num_samples)


@live_only
def concatenation_explorer(
    images: Images, nads: NADs, seed: int = 0, device: str | torch.device | None = None
) -> ConcatenationExplorer:
    """Explore images ⊕ D(v): choose a network and a NAD, train, and watch which part it comes to rely on.

    Parameters
    ----------
    images
        The first half of their classes makes one class, the second half the other.
    nads
        Of images with one channel, of the images' height and width.
    seed
        Of the samples of D(v), the network's initialisation and the training.
    device
        Where to train; None means CUDA where there is one, else the CPU.

    Returns
    -------
    ConcatenationExplorer or StaticNotice
        The notice where the book is built as static pages.

    Raises
    ------
    TypeError, ValueError
        If the images, the NADs, the seed or the device are not such, or their sizes differ.
    """
    return ConcatenationExplorer(images, nads, seed, device)
