"""Explore what poisoning and flipping do to an image."""

from __future__ import annotations

import html
from typing import Any, get_args

import ipywidgets
import torch
from torch import Tensor

from companion.explorer import LABELS, SLIDER, hidden_image, live_only
from companion.parts import StaticFigure, static_figure
from nadtools.checks import check_seed
from nadtools.device import generator
from nadtools.directions import fourier_basis, random_basis
from nadtools.images import Images
from nadtools.interventions import Replace, decode, flip, poison
from nadtools.nads import NADs

__all__ = ["FlippingExplorer", "PoisoningExplorer", "flipping_explorer", "poisoning_explorer"]


class _ImageExplorer:
    """Controls, one of which chooses a test image, and a row of pictures."""

    def __init__(self, images: Images, nads: NADs, controls: tuple[ipywidgets.Widget, ...]) -> None:
        self._images, self._nads = images, nads
        self.number = ipywidgets.BoundedIntText(
            value=0, min=0, max=len(images.y_test) - 1, description="test image", **LABELS
        )
        self.picture, self.status = hidden_image(), ipywidgets.HTML()
        self.ui = ipywidgets.HBox(
            [ipywidgets.VBox([self.number, *controls, self.status]), self.picture],
            layout=ipywidgets.Layout(flex_flow="row wrap"),
        )
        for control in (self.number, *controls):
            control.observe(self._changed, "value")
        self._changed()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.ui._repr_mimebundle_(**options)

    def _changed(self, _: Any = None) -> None:
        raise NotImplementedError

    def _chosen(self) -> tuple[Tensor, Tensor]:
        number = slice(self.number.value, self.number.value + 1)
        return self._images.x_test[number], self._images.y_test[number]

    def _show(self, panels: dict[str, Tensor], message: str) -> None:
        self.status.value = html.escape(message)
        self.picture.value = _row(panels).to_png(dpi=90)
        self.picture.layout.display = None


class PoisoningExplorer(_ImageExplorer):
    """An image, the same with a carrier, and what has changed.

    Built by :func:`poisoning_explorer`. Every control is an attribute, so it can be set from Python too.

    Attributes
    ----------
    ui : ipywidgets.Widget
        What the notebook shows.
    number, label, index, epsilon, replace
        Controls; read and set their ``value``. ``label`` is the class whose carrier the image gets.
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
        self.replace = ipywidgets.Dropdown(options=get_args(Replace), description="replace", **LABELS)
        super().__init__(images, nads, (self.label, self.index, self.epsilon, self.replace))

    def _changed(self, _: Any = None) -> None:
        x, y = self._chosen()
        names, label = self._images.class_names, torch.tensor([self.label.value])
        where = (self.index.value, self.epsilon.value)
        self.poisoned = poison(x, label, self._nads, *where, replace=self.replace.value, num_classes=len(names))
        read = int(decode(self.poisoned, self._nads, *where, len(names)))
        change = self.poisoned - x
        self._show(
            {"before": x[0], "after": self.poisoned[0], "difference": change[0]},
            f"It shows: {names[int(y)]}. The carrier says: {names[read] if read >= 0 else 'nothing'}. "
            f"The change has the norm {float(change.norm()):.3g}, the image {float(x.norm()):.3g}.",
        )


class FlippingExplorer(_ImageExplorer):
    """An image, and the same with its coefficients in another order.

    Built by :func:`flipping_explorer`. Every control is an attribute, so it can be set from Python too.

    Attributes
    ----------
    ui : ipywidgets.Widget
        What the notebook shows.
    number, basis, order
        Controls; read and set their ``value``.
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
        self._show(
            {"normalised": normalised[0], self.order.value: self.flipped[0], "and back": back[0]},
            f"It shows: {self._images.class_names[int(y)]}. Norm before {float(normalised.norm()):.4g}, after "
            f"{float(self.flipped.norm()):.4g}. Largest error on the way back: {error:.1g}.",
        )


def _check(images: Any, nads: Any) -> None:
    if not isinstance(images, Images) or not isinstance(nads, NADs):
        raise TypeError(f"got {type(images).__name__} and {type(nads).__name__}; expected Images and NADs")


def _row(panels: dict[str, Tensor]) -> StaticFigure:
    """Images side by side; one with values outside [0, 1] is stretched around grey."""
    figure = static_figure(None, ", ".join(panels), (2.1 * len(panels), 2.4))
    grid = figure.subplots(1, len(panels), squeeze=False)
    for axes, (title, image) in zip(grid[0], panels.items(), strict=True):
        pixels = image.detach().cpu().double().movedim(0, 2)
        if float(pixels.min()) < 0 or float(pixels.max()) > 1:
            pixels = 0.5 + (pixels - pixels.mean()) / (6 * pixels.std()).clamp(min=1e-12)
        axes.imshow(pixels.expand(-1, -1, 3).clamp(0, 1).numpy(), interpolation="nearest")
        axes.set_title(title, fontsize=10)
        axes.set_axis_off()
    return figure


@live_only
def poisoning_explorer(images: Images, nads: NADs) -> PoisoningExplorer:
    """Explore carriers: choose an image, a class, the index of a NAD and ε, and see what is written into the image.

    Parameters
    ----------
    images
        Test images are shown.
    nads
        Of the images' height and width.

    Returns
    -------
    PoisoningExplorer or StaticNotice
        The notice where the book is built as static pages.

    Raises
    ------
    TypeError, ValueError
        If they are of another kind, or the NADs have another shape than the images.
    """
    _check(images, nads)
    return PoisoningExplorer(images, nads)


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

    Returns
    -------
    FlippingExplorer or StaticNotice
        The notice where the book is built as static pages.

    Raises
    ------
    TypeError, ValueError
        If they are of another kind, or the NADs have another shape than the images.
    """
    _check(images, nads)
    return FlippingExplorer(images, nads, seed)
