"""Explore what poisoning does to an image."""

from __future__ import annotations

from typing import Any

import ipywidgets
import torch

from companion.explorer import LABELS, SLIDER, ImageExplorer, live_only
from companion.explorer.images import check_images_and_nads
from nadtools.images import Images
from nadtools.interventions import Replace, decode, poison
from nadtools.nads import NADs

__all__ = ["PoisoningExplorer", "poisoning_explorer"]

_REPLACED: list[tuple[str, Replace]] = [("one coefficient", "own"), ("all of the code", "all")]


class PoisoningExplorer(ImageExplorer):
    """An image, the same with a carrier, and what has changed.

    Attributes
    ----------
    number, label, index, epsilon, replace
        Controls. ``label`` is the class whose carrier the image gets.
    picture : ipywidgets.Image
        A PNG picture: before, after, difference.
    status : ipywidgets.HTML
        The size of the change, and what a decoder reads.
    poisoned : Tensor
        The image with the carrier, shape (1, channels, h, w).
    """

    def __init__(self, images: Images, nads: NADs) -> None:
        channels = images.image_shape[0] if nads.vectors.ndim == 3 else 1
        last = len(nads.vectors) - -(-images.num_classes // (2 * channels))
        names = [(name, label) for label, name in enumerate(images.class_names)]
        self.label = ipywidgets.Dropdown(options=names, value=int(images.y_test[0]), description="carrier of", **LABELS)
        self.index = ipywidgets.IntSlider(value=0, min=0, max=last, description="NAD index", **SLIDER)
        self.epsilon = ipywidgets.FloatLogSlider(value=0.05, min=-2, max=1, step=0.05, description="ε", **SLIDER)
        self.replace = ipywidgets.Dropdown(options=_REPLACED, description="replaces", **LABELS)
        super().__init__(images, nads, (self.label, self.index, self.epsilon, self.replace))

    def _changed(self, _: Any = None) -> None:
        x, y = self._chosen()
        names, label = self._images.class_names, torch.tensor([self.label.value])
        where = (self.index.value, self.epsilon.value)
        self.poisoned = poison(x, label, self._nads, *where, replace=self.replace.value, num_classes=len(names))
        read = int(decode(self.poisoned, self._nads, *where, len(names)))
        change = self.poisoned - x
        self._show_row(
            {"before": x[0], "after": self.poisoned[0], "difference": change[0]},
            f"It shows: {names[int(y)]}. The carrier says: {names[read] if read >= 0 else 'nothing'}. "
            f"The change has the norm {float(change.norm()):.3g}, the image {float(x.norm()):.3g}.",
        )


@live_only
def poisoning_explorer(images: Images, nads: NADs) -> PoisoningExplorer:
    """Explore carriers: choose an image, a class, the index of a NAD and ε, and see what is written into the image.

    Parameters
    ----------
    images
        Test images are shown.
    nads
        Of the images' height and width.
    """
    check_images_and_nads(images, nads)
    return PoisoningExplorer(images, nads)
