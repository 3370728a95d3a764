"""Neural anisotropy directions: what an architecture prefers to learn, computed at initialisation.

What holds for all functions is said here. They check their arguments before they compute: a TypeError or ValueError
says what was got and what is expected. ``seed`` is a non-negative int, and all that chance depends on; the global
random state stays as it was. ``device`` is a name or a ``torch.device``; None is CUDA where there is one, else the CPU,
unless a function says otherwise. ``progress`` shows a progress bar. ``num_jobs`` processes work at the same time, -1
for one on each core; by default one, or what a surrounding ``joblib.parallel_config`` says: with
``joblib.parallel_config("dask")`` all of a cluster. Images are tensors (n, channels, h, w), their labels (n,) int64.
"""

from __future__ import annotations

from nadtools import analytic, boundaries, device, directions, images, interventions, moments, storage, theory
from nadtools._version import __version__ as __version__
from nadtools.analytic import analytic_nads
from nadtools.architectures import available, build, symmetry_group
from nadtools.directions import (
    FourierMode,
    fourier_atom,
    fourier_basis,
    fourier_energy,
    fourier_modes,
    random_basis,
    random_direction,
)
from nadtools.distributions import Concatenated, Labelled, LinearlySeparable, concatenate
from nadtools.estimation import estimate_nads
from nadtools.images import Images, load_images
from nadtools.interventions import decode, flip, poison
from nadtools.nads import NADs, captured_energy, compare, subspace_overlap
from nadtools.plots import plot_spectra
from nadtools.sweeps import sweep
from nadtools.theory import pooling
from nadtools.training import Evaluation, TrainConfig, TrainResult, evaluate, train

# By task.
__all__ = [
    # directions of image space
    "FourierMode", "fourier_atom", "fourier_basis", "fourier_energy", "fourier_modes",
    "random_basis", "random_direction",
    # distributions and images
    "LinearlySeparable", "Labelled", "Concatenated", "concatenate", "Images", "load_images",
    # networks
    "available", "build", "symmetry_group",
    # NADs
    "estimate_nads", "analytic_nads", "NADs", "subspace_overlap", "captured_energy", "compare", "plot_spectra",
    # trainings
    "TrainConfig", "TrainResult", "train", "Evaluation", "evaluate", "sweep",
    # interventions
    "poison", "decode", "flip",
    # modules
    "analytic", "boundaries", "device", "directions", "images", "interventions", "moments", "pooling", "storage",
    "theory",
]  # fmt: skip
