"""Claims about what pooling loses: equation (1), theorem 1 and figure 4a of paper A."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from companion.evidence import Measured, close, computed, percent, points
from nadtools.theory import pooling

__all__ = ["CLAIMS"]

_STRIDE, _SIZE = 4, 128  # as in figure 4


def _wave(frequency: int, phase: float) -> Tensor:
    angle = 2 * math.pi * frequency * torch.arange(_SIZE, dtype=torch.float64) / _SIZE - phase
    return angle.cos() / angle.cos().norm()


def aliasing(deviation: float) -> Measured:
    x = torch.randn(_SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pooled = torch.fft.fft(pooling.pooling_matrix("average", _STRIDE, _SIZE) @ x, norm="ortho")
    filtered = pooling.spectral_response("average", _SIZE, _STRIDE) * torch.fft.fft(x, norm="ortho")
    folded = filtered.unflatten(0, (_STRIDE, -1)).sum(0) / math.sqrt(_STRIDE)
    error = float((pooled - folded).abs().max())
    return Measured(f"largest deviation {error:.0e}", (error <= deviation,))


def pooling_loses_unequally(points: float) -> Measured:
    accuracy = pooling.fourier_accuracies("average", _STRIDE, 1.0, 3.0, size=_SIZE)
    least, most = float(accuracy.min()), float(accuracy.max())
    return Measured(f"{percent(least)} to {percent(most)} for ε = 1, σ = 3", (100 * (most - least) >= points,))


def _theorem_1(frequencies: Sequence[int], phase: float) -> tuple[Tensor, Tensor, Tensor]:
    """By the dense formula, as printed, and without the factor √(S/2)."""
    matrix = pooling.pooling_matrix("average", _STRIDE, _SIZE)
    response = pooling.spectral_response("average", _SIZE, _STRIDE)
    exact = torch.stack([pooling.bayes_accuracy(_wave(f, phase), matrix, 1.0, 1.0) for f in frequencies])
    printed, corrected = (
        pooling.theorem1_accuracy(np.array(frequencies), response, _STRIDE, epsilon, 1.0)
        for epsilon in (1.0, math.sqrt(2 / _STRIDE))
    )
    return exact, printed, corrected


def theorem_1_factor() -> Measured:
    generic = [f for f in range(1, _SIZE // 2) if 2 * f % (_SIZE // _STRIDE)]
    exact, printed, corrected = _theorem_1(generic, 0.3)
    off, error = (float((formula - exact).abs().max()) for formula in (printed, corrected))
    text = f"off by up to {points(off)}; without the factor √(S/2) by {error:.0e}"
    return Measured(text, (close(printed, exact),), corrected=error < 1e-9)


def theorem_1_conjugate() -> Measured:
    parts = []
    for phase in (0.0, math.pi / 2):
        exact, printed, _ = _theorem_1([16], phase)
        ours = pooling.fourier_accuracies("average", _STRIDE, 1.0, 1.0, size=_SIZE, phase=phase)[16:17]
        parts.append((exact, printed, ours))
    exact, printed, ours = (torch.cat(values) for values in zip(*parts, strict=True))
    text = f"cosine {exact[0]:.3f}, sine {exact[1]:.3f}, printed {printed[0]:.3f} for both"
    return Measured(text, (close(printed, exact),), corrected=close(ours, exact))


CLAIMS: Final = computed(
    {
        "A-eq1": aliasing,
        "A-theorem1": theorem_1_factor,
        "A-theorem1-conjugate": theorem_1_conjugate,
        "A4a-anisotropic": pooling_loses_unequally,
    }
)
