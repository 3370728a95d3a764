"""Two plain plots with matplotlib, which is imported when one is drawn; the book draws figures of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nadtools.checks import instance, integer

if TYPE_CHECKING:
    from nadtools.nads import NADs

__all__ = ["plot_nads", "plot_spectra"]


def _subplots(*shape: int, **options: Any) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ModuleNotFoundError("nadtools draws with matplotlib: pip install matplotlib") from error
    _, axes = plt.subplots(*shape, squeeze=False, layout="constrained", **options)
    return axes


def plot_nads(nads: NADs, count: int = 12) -> Any:
    """Draw the first NADs, each with zero in the middle of the colour scale; of several channels the first.

    Those that are arbitrary (:attr:`nadtools.NADs.rank`) are grey.

    Returns an array of matplotlib axes; without matplotlib it raises ModuleNotFoundError.
    """
    total = len(nads.vectors)
    count = integer("count", count, 1, total, f"a number of NADs from 1 to {total}")
    columns = min(count, 6)
    rows = math.ceil(count / columns)
    axes = _subplots(rows, columns, figsize=(1.5 * columns, 1.7 * rows))
    for index, one in enumerate(axes.flat):
        one.axis("off")
        if index < count:
            image = nads.vectors[index].reshape(-1, *nads.vectors.shape[-2:])[0].numpy()
            limit = abs(image).max()
            colours = "RdBu_r" if index < nads.rank else "Greys"
            one.imshow(image, cmap=colours, vmin=-limit, vmax=limit, interpolation="nearest")
            one.set_title(f"NAD {index}", fontsize=9)
    return axes


def plot_spectra(spectra: Mapping[str, NADs]) -> Any:
    """Draw eigenvalues, by label, against their rank, on logarithmic axes, with a band of one standard error.

    Returns matplotlib axes; without matplotlib it raises ModuleNotFoundError.
    """
    instance("spectra", spectra, Mapping, "a dict from labels to NADs")
    if not spectra:
        raise ValueError("got spectra={}; expected at least one label with NADs")
    axes = _subplots(1, 1, figsize=(6, 3.6))[0, 0]
    for label, nads in spectra.items():
        values, errors = nads.eigenvalues.numpy(), nads.eigenvalue_stderr.numpy()
        ranks = range(1, len(values) + 1)
        (line,) = axes.plot(ranks, values, label=str(label))
        axes.fill_between(ranks, values - errors, values + errors, color=line.get_color(), alpha=0.3, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel="rank", ylabel="eigenvalue")
    axes.legend(frameon=False)
    return axes
