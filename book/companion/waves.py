"""What several chapters ask of waves: their names, how NADs rank them, how well a map of accuracies can be ranked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import pandas as pd
import torch

from nadtools.directions import fourier_atom
from nadtools.nads import NADs

__all__ = ["mean_alignments", "noise_ceiling", "wave_names"]

_SIZE = (32, 32)


def wave_names(frequencies: Iterable[tuple[int, int]]) -> list[str]:
    """Names of waves, of (i, j) and (−i, −j) the one that begins without a minus."""
    return [f"({i}, {j})".replace("-", "−") for i, j in (max(f, (-f[0], -f[1])) for f in frequencies)]


def mean_alignments(
    nads: NADs, frequencies: Iterable[tuple[int, int]], phase: Literal["sine", "cosine", "both"] = "both"
) -> pd.Series:
    """α of the waves of each frequency, as a multiple of its mean over all directions; of both phases, the mean."""
    frequencies = [(int(i), int(j)) for i, j in frequencies]
    chosen = {"sine": [math.pi / 2], "cosine": [0.0], "both": [0.0, math.pi / 2]}[phase]
    total = torch.zeros(len(frequencies), dtype=torch.float64)
    for angle in chosen:
        # At four frequencies no sine exists.
        atoms = [fourier_atom(_SIZE, (i, j), 0.0 if i % 16 == 0 and j % 16 == 0 else angle) for i, j in frequencies]
        total += nads.alignments(torch.stack(atoms)) / len(chosen)
    mean = total / nads.eigenvalues.mean()
    return pd.Series(mean.tolist(), pd.MultiIndex.from_tuples(frequencies))


def noise_ceiling(accuracies: pd.Series) -> float:
    """Spearman's correlation of a map with its own mirror image under (i, j) → (i, -j), an equally hard problem."""
    wrapped = {place: tuple((16 - f) % 32 - 16 for f in place) for place in accuracies.index}
    mirrored = [
        accuracies.get((i, wrapped[i, j][1]), accuracies.get((wrapped[i, j][0], j))) for i, j in accuracies.index
    ]
    return float(accuracies.corr(pd.Series(mirrored, accuracies.index, dtype=float), "spearman"))
