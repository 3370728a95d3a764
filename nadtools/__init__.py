"""Neural anisotropy directions: what an architecture prefers to learn, computed at initialisation."""

from __future__ import annotations

__version__ = "0.1.0"

from nadtools import boundaries, device, directions, images, interventions, moments, storage, theory
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
from nadtools.moments import marchenko_pastur_band
from nadtools.nads import NADs, captured_energy, subspace_overlap
from nadtools.sweeps import sweep
from nadtools.theory import pooling
from nadtools.training import Evaluation, TrainConfig, TrainResult, evaluate, train

__all__ = [
    "Concatenated",
    "Evaluation",
    "FourierMode",
    "Images",
    "Labelled",
    "LinearlySeparable",
    "NADs",
    "TrainConfig",
    "TrainResult",
    "available",
    "boundaries",
    "build",
    "captured_energy",
    "concatenate",
    "decode",
    "device",
    "directions",
    "estimate_nads",
    "evaluate",
    "flip",
    "fourier_atom",
    "fourier_basis",
    "fourier_energy",
    "fourier_modes",
    "images",
    "interventions",
    "load_images",
    "marchenko_pastur_band",
    "moments",
    "poison",
    "pooling",
    "random_basis",
    "random_direction",
    "storage",
    "subspace_overlap",
    "sweep",
    "symmetry_group",
    "theory",
    "train",
]
