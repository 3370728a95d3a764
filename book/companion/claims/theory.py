"""Formulas: what pooling loses, how the deep linear model learns, and what NADs are (paper A, sections 2 and 3)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from companion.chapter_03.descent import steps_to_fraction
from companion.chapter_03.landscape import two_weight_loss
from companion.chapter_04.dipoles import dipole_gradient_bound, dipole_probability
from companion.claims.evidence import Found, Where, evaluator, percent, points
from companion.claims.model import Claim
from nadtools.theory import deep_linear, pooling

_STRIDE, _SIZE = 4, 128  # as in figure 4
_RESPONSE = (1.0, 0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1)


def _close(a: Tensor, b: Tensor) -> bool:
    return bool(torch.allclose(a.double(), b.double(), rtol=1e-5, atol=1e-9))


def _deviation(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())


def _formula(exact: Tensor, formula: Callable[..., Tensor], what: str) -> Found:
    """A printed formula and its correction against an independent computation."""
    printed, corrected = (formula(as_printed=as_printed) for as_printed in (True, False))
    ratio = float((printed / exact).flatten()[0])
    text = f"{what} is {ratio:.3g} times the computed one as printed"
    text += ", and equal to it as corrected" if _close(corrected, exact) else ""
    return Found(text, (_close(printed, exact),), corrected=_close(corrected, exact))


def _wave(frequency: int, phase: float) -> Tensor:
    angle = 2 * math.pi * frequency * torch.arange(_SIZE, dtype=torch.float64) / _SIZE - phase
    return angle.cos() / angle.cos().norm()


@evaluator
def _aliasing(claim: Claim, where: Where) -> Found:
    x = torch.randn(_SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pooled = torch.fft.fft(pooling.pooling_matrix("average", _STRIDE, _SIZE) @ x, norm="ortho")
    filtered = pooling.spectral_response("average", _SIZE, _STRIDE) * torch.fft.fft(x, norm="ortho")
    folded = filtered.unflatten(0, (_STRIDE, -1)).sum(0) / math.sqrt(_STRIDE)
    error = _deviation(pooled, folded)
    return Found(f"largest deviation {error:.0e}", (error <= claim.limits["deviation"],))


@evaluator
def _pooling_loses_unequally(claim: Claim, where: Where) -> Found:
    accuracy = pooling.fourier_accuracies("average", _STRIDE, 1.0, 3.0, size=_SIZE)
    spread = float(accuracy.max() - accuracy.min())
    text = f"{percent(float(accuracy.min()))} to {percent(float(accuracy.max()))} for ε = 1, σ = 3"
    return Found(text, (100 * spread >= claim.limits["points"],))


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


@evaluator
def _theorem_1_factor(claim: Claim, where: Where) -> Found:
    generic = [f for f in range(1, _SIZE // 2) if 2 * f % (_SIZE // _STRIDE)]
    exact, printed, corrected = _theorem_1(generic, 0.3)
    error = _deviation(corrected, exact)
    text = f"off by up to {points(_deviation(printed, exact))}; without the factor √(S/2) by {error:.0e}"
    return Found(text, (_close(printed, exact),), corrected=error < 1e-9)


@evaluator
def _theorem_1_conjugate(claim: Claim, where: Where) -> Found:
    parts = []
    for phase in (0.0, math.pi / 2):
        exact, printed, _ = _theorem_1([16], phase)
        ours = pooling.fourier_accuracies("average", _STRIDE, 1.0, 1.0, size=_SIZE, phase=phase)[16:17]
        parts.append((exact, printed, ours))
    exact, printed, ours = (torch.cat(values) for values in zip(*parts, strict=True))
    text = f"cosine {exact[0]:.3f}, sine {exact[1]:.3f}, printed {printed[0]:.3f} for both"
    return Found(text, (_close(printed, exact),), corrected=_close(ours, exact))


@evaluator
def _least_loss_does_not_depend(claim: Claim, where: Where) -> Found:
    gain = torch.logspace(-2, 0, 9, dtype=torch.float64)
    epsilon, sigma = 1.0, 3.0
    best = epsilon / (epsilon**2 + sigma**2)
    losses = torch.stack([two_weight_loss(best, 1 / m, m, epsilon, sigma) for m in gain.tolist()])
    spread = float(losses.max() - losses.min())
    text = f"least loss {float(losses[0]):.3f}; it varies by {spread:.0e} over responses from 0.01 to 1"
    return Found(text, (spread <= claim.limits["deviation"],))


def _curvature(parameter: str) -> Tensor:
    """Mean curvature along each weight for ε = 1 and σ = 3, by automatic differentiation.

    The curvature depends on the squares of data and weights alone. With weights ±1, and with the roots of the data's
    second moments for x, a single evaluation is the mean.
    """
    model = deep_linear.DeepLinearModel(_RESPONSE, 2, weights="rademacher", seed=0).double()
    epsilon, sigma = 1.0, 3.0
    moments = torch.full((len(_RESPONSE),), sigma**2, dtype=torch.float64)
    moments[2] += epsilon**2
    weights = dict(model.named_parameters())
    curvatures = []
    for x in torch.diag(moments.sqrt()):  # one entry at a time: mixed terms average out
        slope = torch.autograd.grad(model(x[None]).sum(), weights[parameter])[0]
        curvatures.append(2 * slope.square())
    return torch.stack(curvatures).sum(0)


@evaluator
def _lemma_1(claim: Claim, where: Where) -> Found:
    formula = functools.partial(deep_linear.expected_hessian, 2, _RESPONSE, 2)
    return _formula(_curvature("phi"), formula, "for S = 2 the curvature")


@evaluator
def _lemma_1_theta(claim: Claim, where: Where) -> Found:
    computed, formula = _curvature("theta"), deep_linear.expected_hessian_theta(2, _RESPONSE, 2)
    text = f"signal and noise, summed over each bin; largest deviation {_deviation(computed, formula):.0e}"
    return Found(text, (_close(computed, formula),))


@evaluator
def _zeta_ranks(claim: Claim, where: Where) -> Found:
    ratio, steps = (
        function(_RESPONSE, 1.0, 3.0) for function in (deep_linear.curvature_ratio, deep_linear.condition_number)
    )
    order = ratio.argsort(descending=True)
    holds = bool((steps[order].diff() >= 0).all())
    text = f"condition number {float(steps.min()):.3g} to {float(steps.max()):.3g}, in the order of ζ"
    return Found(text if holds else "another order", (holds,))


@evaluator
def _zeta_size(claim: Claim, where: Where) -> Found:
    loud = deep_linear.condition_number([1.0, 1.0], 1.0, 3.0)[1]  # ζ = 1/9 by much noise
    weak = deep_linear.condition_number([1.0, 1 / 3], 1.0, 1.0)[1]  # ζ = 1/9 by a weak response
    holds = _close(loud, weak)
    corrected = float(loud) < float(weak)
    text = f"at ζ = 1/9 the condition number is {float(loud):.3g} for σ = 3 and {float(weak):.3g} for σ = 1"
    return Found(text, (holds,), corrected=corrected)


@evaluator
def _slower_for_small_zeta(claim: Claim, where: Where) -> Found:
    response = pooling.spectral_response("gaussian", _SIZE, _STRIDE).abs()[: _SIZE // 2]
    curvature = deep_linear.expected_hessian(0, response, 1, epsilon=0.0, sigma=1.0)
    steps = steps_to_fraction(curvature, 1 / float(curvature.max()), 0.1)
    holds = bool((steps.diff() >= 0).all()) and float(steps[-1]) > float(steps[0])
    text = f"{float(steps[0]):.0f} step at ℓ = 0, {float(steps[16]):.0f} at ℓ = 16, {float(steps[32]):.0f} at ℓ = 32"
    return Found(text, (holds,))


@evaluator
def _lemma_2(claim: Claim, where: Where) -> Found:
    network = deep_linear.DeepLinearModel([1.0] * 8, 4, weights="rademacher", seed=0)
    x = torch.zeros(1, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    parts = torch.autograd.grad(gradient[0, 2].square() / 4, list(network.parameters()))
    left = float(torch.cat(parts).norm())
    rms, mixed = (
        function([1.0] * 8, 4)[2].sqrt()
        for function in (deep_linear.gradient_covariance, deep_linear.mixed_second_moment)
    )
    printed, bound = (float(dipole_gradient_bound(0.5, 0.0, rms, mixed, mixed, as_printed=p)) for p in (True, False))
    text = f"left side {left:.4f}; the bound is {printed:.4f} as printed, {bound:.4f} with α for α²"
    return Found(text, (left <= printed,), corrected=left <= bound * (1 + 1e-6))


def _squares(mixed: bool) -> Tensor:
    """Diagonal of the second moment of input gradients, or of mixed derivatives, by automatic differentiation."""
    model = deep_linear.DeepLinearModel(_RESPONSE, 2, weights="rademacher", seed=0).double()
    x = torch.zeros(1, len(_RESPONSE), dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    if not mixed:
        return gradient[0].detach().square()
    rows = [torch.autograd.grad(entry, list(model.parameters()), retain_graph=True) for entry in gradient[0]]
    return torch.stack([torch.cat(row).square().sum() for row in rows])


@evaluator
def _equation_4(claim: Claim, where: Where) -> Found:
    formula = functools.partial(deep_linear.gradient_covariance, _RESPONSE, 2)
    return _formula(_squares(mixed=False), formula, "for S = 2 the covariance")


@evaluator
def _equation_5(claim: Claim, where: Where) -> Found:
    formula = functools.partial(deep_linear.mixed_second_moment, _RESPONSE, 2)
    return _formula(_squares(mixed=True), formula, "for S = 2 the moment")


@evaluator
def _same_basis(claim: Claim, where: Where) -> Found:
    orders = [_squares(mixed).argsort(descending=True) for mixed in (False, True)]
    response = torch.tensor(_RESPONSE).square().argsort(descending=True)
    holds = all(bool((order == response).all()) for order in orders)
    return Found("both in the order of m²" if holds else "in different orders", (holds,))


@evaluator
def _markov(claim: Claim, where: Where) -> Found:
    threshold = torch.logspace(-3, 3, 121, dtype=torch.float64)
    ratios = {
        weights: float((dipole_probability(threshold, 1.0, weights=weights) * threshold).max())
        for weights in ("normal", "rademacher")
    }
    text = (
        f"probability over bound: at most {ratios['normal']:.2f} for normal weights, {ratios['rademacher']:.2f} for ±1"
    )
    return Found(text, (max(ratios.values()) <= 1 + 1e-9,))
