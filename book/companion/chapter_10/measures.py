"""How well directions without a network predict what networks learn."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd
import torch

from nadtools.directions import fourier_atom
from nadtools.nads import NADs

__all__ = ["mean_alignments", "noise_ceiling"]

_SIZE = (32, 32)


def mean_alignments(nads: NADs, frequencies: Iterable[tuple[int, int]]) -> pd.Series:
    """α of the waves of each frequency, as a multiple of its mean over all directions, averaged over both phases."""
    frequencies = [(int(i), int(j)) for i, j in frequencies]
    alone = [i % 16 == 0 and j % 16 == 0 for i, j in frequencies]  # no sine exists there
    cosines = torch.stack([fourier_atom(_SIZE, f, 0.0) for f in frequencies])
    sines = torch.stack(
        [cosines[k] if alone[k] else fourier_atom(_SIZE, f, math.pi / 2) for k, f in enumerate(frequencies)]
    )
    mean = (nads.alignments(cosines) + nads.alignments(sines)) / 2 / nads.eigenvalues.mean()
    return pd.Series(mean.tolist(), pd.MultiIndex.from_tuples(frequencies))


def noise_ceiling(accuracies: pd.Series) -> float:
    """Spearman's correlation of a map with its own mirror image under (i, j) → (i, -j), an equally hard problem."""
    wrapped = {place: tuple((16 - f) % 32 - 16 for f in place) for place in accuracies.index}
    mirrored = [
        accuracies.get((i, wrapped[i, j][1]), accuracies.get((wrapped[i, j][0], j))) for i, j in accuracies.index
    ]
    return float(accuracies.corr(pd.Series(mirrored, accuracies.index, dtype=float), "spearman"))
