"""Train on images beside a direction, and watch which of the two the network takes."""

from __future__ import annotations

import ipywidgets
import torch
from torch import nn

from companion.explorer import SLIDER, TwoPartExplorer, live_only
from companion.explorer.pictures import Figure, draw_curves
from nadtools import checks
from nadtools.distributions import Concatenated, Labelled, LinearlySeparable, concatenate
from nadtools.images import Images, binary
from nadtools.nads import NADs
from nadtools.training import Data

__all__ = ["ConcatenationExplorer", "concatenation_explorer"]


class ConcatenationExplorer(TwoPartExplorer):
    """A training on binary images ⊕ D(v), asked after each epoch what it does with either alone.

    Attributes
    ----------
    architecture, index, epsilon, sigma, epochs
        Controls. ``index`` is that of the NAD v.
    picture : ipywidgets.Image
        Test accuracies by epoch.
    history : list of dict
        Test accuracies after each epoch: with both parts, with the images alone and with D(v) alone.
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
        self.epsilon = ipywidgets.FloatSlider(value=3.0, min=0.1, max=3.0, step=0.1, description="ε", **SLIDER)
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
        curves = {name: [row[name] for row in self.history] for name in ("both", *self.names)}
        return draw_curves(curves, range(1, len(self.history) + 1), "epoch", "test accuracy", (0.0, 1.05))


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
    """
    return ConcatenationExplorer(images, nads, seed, device)
