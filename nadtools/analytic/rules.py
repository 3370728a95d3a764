"""Which rule belongs to which layer."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

import nadtools.analytic.forms as forms
import nadtools.analytic.unweighted as unweighted
import nadtools.analytic.weighted as weighted
from nadtools.analytic.operations import Call, Operation, passed

__all__ = ["operation", "rule_type"]

_ACTIVATIONS = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Sigmoid, nn.Softplus,
    nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid,
)  # fmt: skip
_RESIZING = nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Upsample, nn.ZeroPad2d, nn.ReflectionPad2d

# For each type of module, its rule.
_MODULES: dict[type[nn.Module], Callable[[Call], Operation]] = {
    nn.Conv2d: weighted.convolution,
    nn.ConvTranspose2d: weighted.transposed_convolution,
    nn.Linear: weighted.linear,
    nn.MultiheadAttention: weighted.attention,
    nn.MaxPool2d: unweighted.max_pooling,
    **dict.fromkeys(_RESIZING, unweighted.linear_map),
    **dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d), unweighted.batch_norm),
    **dict.fromkeys((nn.LayerNorm, nn.GroupNorm), unweighted.normalisation),
    **dict.fromkeys((nn.Identity, nn.Dropout, nn.Dropout2d), passed),
    nn.Flatten: forms.reshape,
    **dict.fromkeys(_ACTIVATIONS, unweighted.activation),
}

# For each name of a function or of a tensor's method, its rule.
_NAMES: dict[str, Callable[[Call], Operation]] = {
    **dict.fromkeys(("add", "iadd", "add_", "sub"), forms.addition),
    **dict.fromkeys(("mul", "truediv", "div"), forms.multiplication),
    **dict.fromkeys(("cat", "concat"), forms.concatenation),
    "chunk": forms.division,
    "getitem": forms.selection,
    **dict.fromkeys(("flatten", "view", "reshape", "squeeze"), forms.reshape),
    **dict.fromkeys(("permute", "transpose"), forms.permutation),
    "mean": unweighted.average,
    **dict.fromkeys(("interpolate", "pad", "avg_pool2d", "adaptive_avg_pool2d"), unweighted.linear_map),
    **dict.fromkeys(("max_pool2d", "_max_pool2d"), unweighted.max_pooling),
    "layer_norm": unweighted.normalisation,
    **dict.fromkeys(("dropout", "stochastic_depth", "contiguous", "clone"), passed),
    **dict.fromkeys(("relu_", "leaky_relu"), unweighted.activation),
    **{kind.__name__.lower(): unweighted.activation for kind in _ACTIVATIONS},
}


def operation(call: Call) -> Operation:
    """The rule of a layer at work, or NoRuleError if there is none."""
    if call.module is not None and (known := rule_type(call.module)) is not None:
        return _MODULES[known](call)
    if call.module is None and call.kind in _NAMES:
        return _NAMES[call.kind](call)
    call.refuse("no rule is known for it")


def rule_type(module: nn.Module) -> type[nn.Module] | None:
    """The type whose rule fits a module: its own, or one whose ``forward`` it inherits."""
    return next((k for k in type(module).__mro__ if k in _MODULES and type(module).forward is k.forward), None)
