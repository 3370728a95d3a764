"""What the explorers of two or more chapters share; each is made by a function of its chapter.

The function takes NADs of images with one channel where it needs any; a seed, of the samples, the initialisation and
the training; a device, where None means CUDA where there is one; and ``num_samples``, the size of the training set and
of the test set. What is none of these is refused with a TypeError or a ValueError. Where the book is built as static
pages the function gives a picture of the explorer, a :class:`StaticNotice`.

What it makes has a widget ``ui``, which the notebook shows. Every control is an attribute, so it can be set from Python
too: read and set its ``value``; ``click()`` presses a button, such as ``train_button`` and ``stop_button``. ``status``
is one line on what is going on, and ``result`` what the last training ended with, also if it was stopped.
"""

from __future__ import annotations

from companion.explorer.base import LABELS, SLIDER, Explorer, PictureExplorer, StaticNotice, hidden_image, live_only
from companion.explorer.directions import DirectionExplorer
from companion.explorer.images import ImageExplorer
from companion.explorer.two_parts import TwoPartExplorer

__all__ = [
    "LABELS", "SLIDER", "DirectionExplorer", "Explorer", "ImageExplorer", "PictureExplorer", "StaticNotice",
    "TwoPartExplorer",
    "hidden_image", "live_only",
]  # fmt: skip
