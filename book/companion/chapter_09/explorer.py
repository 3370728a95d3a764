"""Explore what flipping does to an image."""

from __future__ import annotations

from typing import Any

import ipywidgets
import torch
from torch import Tensor

from companion.explorer import LABELS, ImageExplorer, live_only
from companion.explorer.images import check_images_and_nads
from nadtools.checks import check_seed
from nadtools.device import generator
from nadtools.directions import fourier_basis, random_basis
from nadtools.images import Images
from nadtools.interventions import flip
from nadtools.nads import NADs

__all__ = ["FlippingExplorer", "flipping_explorer"]


class FlippingExplorer(ImageExplorer):
    """An image, and the same with its coefficients in another order.

    Attributes
    ----------
    number, basis, order
        Controls.
    picture : ipywidgets.Image
        A PNG picture: the normalised image, the same in the new order, and put back.
    status : ipywidgets.HTML
        Norms, and the error of putting it back.
    flipped : Tensor
        The image in the new order, shape (1, channels, h, w).
    """

    def __init__(self, images: Images, nads: NADs, seed: int) -> None:
        shape = images.image_shape[1:]
        seed = check_seed(seed)
        self._bases: dict[str, NADs | Tensor] = {
            "NADs": nads,
            "Fourier atoms": fourier_basis(shape),
            "random": random_basis(shape, seed),
        }
        stream = generator(torch.device("cpu"), seed)
        self._orders: dict[str, Tensor | None] = {
            "reversed": None,
            "permuted": torch.randperm(len(nads.vectors), generator=stream),
        }
        self.basis = ipywidgets.Dropdown(options=list(self._bases), description="basis", **LABELS)
        self.order = ipywidgets.Dropdown(options=list(self._orders), description="order", **LABELS)
        super().__init__(images, nads, (self.basis, self.order))

    def _changed(self, _: Any = None) -> None:
        x, y = self._chosen()
        normalised = self._images.normalise(x)
        basis, order = self._bases[self.basis.value], self._orders[self.order.value]
        self.flipped = flip(normalised, basis, order)
        back = flip(self.flipped, basis, None if order is None else torch.argsort(order))
        error = float((back - normalised).abs().max())
        self._show_row(
            {"normalised": normalised[0], self.order.value: self.flipped[0], "and back": back[0]},
            f"It shows: {self._images.class_names[int(y)]}. Norm before {float(normalised.norm()):.4g}, after "
            f"{float(self.flipped.norm()):.4g}. Largest error on the way back: {error:.1g}.",
        )


@live_only
def flipping_explorer(images: Images, nads: NADs, seed: int = 0) -> FlippingExplorer:
    """Explore flipping: choose an image, a basis and an order, and see the image, and that it comes back.

    Parameters
    ----------
    images
        Test images are shown, normalised.
    nads
        Of the images' height and width.
    seed
        Of the random basis and of the random order.
    """
    check_images_and_nads(images, nads)
    return FlippingExplorer(images, nads, seed)
