"""What photographs hold along LeNet's NADs, before anything is written there."""

from __future__ import annotations

from typing import Final

__all__ = ["CONTENT"]

#: The root mean square of the coefficients of the 50,000 training images of CIFAR-10 (JPEG copy, pixels from 0 to 1),
#: by the NAD's index: a table, as a page is built without these images. The tests compute it from those of a subset.
CONTENT: Final = {
    0: 11.85,
    2: 1.456,
    5: 0.907,
    10: 2.843,
    20: 0.530,
    50: 0.846,
    100: 0.481,
    200: 0.270,
    400: 0.078,
    700: 0.069,
    1019: 0.021,
}
