"""Explore NADs: estimate them, look at each, and at what is aligned with them."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any, get_args

import ipywidgets
import numpy as np
import torch
from torch import Tensor

from companion.explorer import LABELS, SLIDER, Explorer, hidden_image, live_only
from companion.explorer.pictures import Figure, draw_direction, new_figure
from companion.parts import colour_of
from companion.style import ARCHITECTURE_NAMES
from nadtools.directions import fourier_atom
from nadtools.estimation import Estimator, estimate_nads
from nadtools.nads import NADs

__all__ = ["NadsExplorer", "nads_explorer"]


class NadsExplorer(Explorer):
    """NADs of an architecture, computed while the reader waits, and the alignment of Fourier atoms with them.

    The estimate runs in a thread of its own, with 1, 2, 4... networks up to the number asked for. After each of these
    rounds the pictures show what has been found, and the estimate can be stopped.

    Attributes
    ----------
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
    nads : NADs or None
        The latest estimate.
    """

    def __init__(self, shape: tuple[int, int], seed: int, device: str | torch.device | None) -> None:
        super().__init__(shape, seed, device)
        self.nads: NADs | None = None
        self.estimator = ipywidgets.Dropdown(options=get_args(Estimator), description="estimator", **LABELS)
        self.num_networks = ipywidgets.IntSlider(value=8, min=1, max=100, description="networks", **SLIDER)
        last = math.prod(self._shape) - 1
        self.index = ipywidgets.IntSlider(value=0, min=0, max=last, description="NAD", **SLIDER)
        self.compute_button = ipywidgets.Button(description="Compute", icon="play", button_style="primary")
        self.progress = ipywidgets.IntProgress(value=0, min=0, max=1, description="done", **LABELS)
        self.nads_image, self.spectrum_image = hidden_image(), hidden_image()
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
            name, value = _name(nads), float(nads.eigenvalues[index])
            share = value / float(nads.eigenvalues.sum())
            title = f"{name}: NAD {index}, eigenvalue {value:.2e} ({share:.2%} of the trace)"
            self._show(self.nads_image, lambda: draw_direction(nads.vectors[index], title))
            self._show(self.spectrum_image, lambda: marked_spectrum(nads, index))

    def _frequency_changed(self, _: Any = None) -> None:
        with self._lock:
            if self.nads is None:
                return
            multiple = self.nads.alignment(self.atom()) / float(self.nads.eigenvalues.mean())
            frequency = f"({self.frequency_i.value}, {self.frequency_j.value})"
            self.alignment.value = f"α(v) of the cosine at {frequency}: {multiple:.3g} × the mean eigenvalue."


def _name(nads: NADs) -> str:
    return ARCHITECTURE_NAMES[nads.metadata["architecture"]]


def marked_spectrum(nads: NADs, index: int) -> Figure:
    """Draw the eigenvalues with a band of one standard error, and a mark at one of them."""
    name, value = _name(nads), float(nads.eigenvalues[index])
    figure = new_figure(6.4, 3.8)
    axes = figure.subplots()
    values, error = nads.eigenvalues.numpy(), nads.eigenvalue_stderr.numpy()
    positive = values > 0  # zero and below have no place on a logarithmic axis
    rank, values, error = np.arange(1, len(values) + 1)[positive], values[positive], error[positive]
    axes.plot(rank, values, label=name, color=colour_of(name, 0), linewidth=1.4)
    band = np.maximum(values - error, values / 10), values + error
    axes.fill_between(rank, *band, color=colour_of(name, 0), alpha=0.25, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel="rank (index + 1)", ylabel="eigenvalue")
    axes.axvline(index + 1, color="#606060", linestyle=":", linewidth=1.2)
    if value > 0:
        axes.plot(index + 1, value, "o", color="#d55e00", label=f"NAD {index}")
    axes.legend(frameon=False)
    return figure


@live_only
def nads_explorer(
    seed: int = 0, device: str | torch.device | None = None, *, shape: tuple[int, int] = (32, 32)
) -> NadsExplorer:
    """Compute NADs of an architecture, look at each of them, and at the alignment of Fourier atoms.

    Networks are initialised from PyTorch's global generator, which is lent to them and put back. Wait for the end of an
    estimate before other cells draw random numbers from it.
    """
    return NadsExplorer(shape, seed, device)
