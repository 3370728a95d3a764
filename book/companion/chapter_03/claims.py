"""Claims about how the deep linear model learns: lemma 1, ζ and figure 4b of paper A."""

from __future__ import annotations

import functools
from typing import Final

import torch
from torch import Tensor

from companion.chapter_03.descent import steps_to_fraction
from companion.chapter_03.landscape import two_weight_loss
from companion.evidence import Measured, close, computed, printed_and_corrected
from nadtools.theory import deep_linear, pooling

__all__ = ["CLAIMS"]

_RESPONSE = (1.0, 0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1)


def least_loss_does_not_depend(deviation: float) -> Measured:
    gain = torch.logspace(-2, 0, 9, dtype=torch.float64)
    epsilon, sigma = 1.0, 3.0
    best = epsilon / (epsilon**2 + sigma**2)
    losses = torch.stack([two_weight_loss(best, 1 / m, m, epsilon, sigma) for m in gain.tolist()])
    spread = float(losses.max() - losses.min())
    text = f"least loss {float(losses[0]):.3f}; it varies by {spread:.0e} over responses from 0.01 to 1"
    return Measured(text, (spread <= deviation,))


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


def lemma_1() -> Measured:
    formula = functools.partial(deep_linear.expected_hessian, 2, _RESPONSE, 2)
    return printed_and_corrected(_curvature("phi"), formula, "for S = 2 the curvature")


def lemma_1_theta() -> Measured:
    found, formula = _curvature("theta"), deep_linear.expected_hessian_theta(2, _RESPONSE, 2)
    error = float((found - formula).abs().max())
    return Measured(f"signal and noise, summed over each bin; largest deviation {error:.0e}", (close(found, formula),))


def zeta_ranks() -> Measured:
    ratio, steps = (
        function(_RESPONSE, 1.0, 3.0) for function in (deep_linear.curvature_ratio, deep_linear.condition_number)
    )
    order = ratio.argsort(descending=True)
    holds = bool((steps[order].diff() >= 0).all())
    text = f"condition number {float(steps.min()):.3g} to {float(steps.max()):.3g}, in the order of ζ"
    return Measured(text if holds else "another order", (holds,))


def zeta_size() -> Measured:
    loud = deep_linear.condition_number([1.0, 1.0], 1.0, 3.0)[1]  # ζ = 1/9 by much noise
    weak = deep_linear.condition_number([1.0, 1 / 3], 1.0, 1.0)[1]  # ζ = 1/9 by a weak response
    text = f"at ζ = 1/9 the condition number is {float(loud):.3g} for σ = 3 and {float(weak):.3g} for σ = 1"
    return Measured(text, (close(loud, weak),), corrected=float(loud) < float(weak))


def slower_for_small_zeta() -> Measured:
    response = pooling.spectral_response("gaussian", 128, 4).abs()[:64]  # as in figure 4
    curvature = deep_linear.expected_hessian(0, response, 1, epsilon=0.0, sigma=1.0)
    steps = steps_to_fraction(curvature, 1 / float(curvature.max()), 0.1)
    holds = bool((steps.diff() >= 0).all()) and float(steps[-1]) > float(steps[0])
    text = f"{float(steps[0]):.0f} step at ℓ = 0, {float(steps[16]):.0f} at ℓ = 16, {float(steps[32]):.0f} at ℓ = 32"
    return Measured(text, (holds,))


CLAIMS: Final = computed(
    {
        "A-optimum": least_loss_does_not_depend,
        "A-lemma1": lemma_1,
        "A-lemma1-theta": lemma_1_theta,
        "A-zeta-order": zeta_ranks,
        "A-zeta-size": zeta_size,
        "A4b-speed": slower_for_small_zeta,
    }
)
