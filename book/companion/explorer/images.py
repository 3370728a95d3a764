"""An image and what becomes of it, side by side: what the explorers of chapters 8 and 9 share."""

from __future__ import annotations

from typing import Any

import ipywidgets
from torch import Tensor

from companion.explorer.base import LABELS, PictureExplorer
from companion.explorer.pictures import Figure, new_figure
from nadtools.images import Images
from nadtools.nads import NADs

__all__ = ["ImageExplorer", "check_images_and_nads"]


class ImageExplorer(PictureExplorer):
    """Controls, one of which chooses a test image, and a row of pictures."""

    def __init__(self, images: Images, nads: NADs, controls: tuple[ipywidgets.Widget, ...]) -> None:
        self._images, self._nads = images, nads
        self.number = ipywidgets.BoundedIntText(
            value=0, min=0, max=len(images.y_test) - 1, description="test image", **LABELS
        )
        super().__init__(self.number, *controls)

    def _chosen(self) -> tuple[Tensor, Tensor]:
        number = slice(self.number.value, self.number.value + 1)
        return self._images.x_test[number], self._images.y_test[number]

    def _show_row(self, panels: dict[str, Tensor], message: str) -> None:
        self._show(_row(panels), message)


def check_images_and_nads(images: Any, nads: Any) -> None:
    """Refuse what is of another kind."""
    if not isinstance(images, Images) or not isinstance(nads, NADs):
        raise TypeError(f"got {type(images).__name__} and {type(nads).__name__}; expected Images and NADs")


def _row(panels: dict[str, Tensor]) -> Figure:
    """Images side by side; one with values outside [0, 1] is stretched around grey."""
    figure = new_figure(2.1 * len(panels), 2.4)
    grid = figure.subplots(1, len(panels), squeeze=False)
    for axes, (title, image) in zip(grid[0], panels.items(), strict=True):
        pixels = image.detach().cpu().double().movedim(0, 2)
        if float(pixels.min()) < 0 or float(pixels.max()) > 1:
            pixels = 0.5 + (pixels - pixels.mean()) / (6 * pixels.std()).clamp(min=1e-12)
        axes.imshow(pixels.expand(-1, -1, 3).clamp(0, 1).numpy(), interpolation="nearest")
        axes.set_title(title, fontsize=10)
        axes.set_axis_off()
    return figure
