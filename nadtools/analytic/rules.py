"""Which rule belongs to which layer."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from nadtools.analytic.forms import (
    addition,
    concatenation,
    item,
    mean,
    multiplication,
    permutation,
    reshape,
)
from nadtools.analytic.operations import Call, Operation, identity
from nadtools.analytic.unweighted import batch_norm, elementwise, normalisation, padding, pooling, resize
from nadtools.analytic.weighted import attention, convolution, linear, transposed_convolution

__all__ = ["MODULES", "NAMES", "operation", "rule_type"]


def operation(call: Call) -> Operation:
    """The rule of a layer at work.

    Raises
    ------
    NoRuleError
        If there is none.
    """
    if call.module is not None:
        known = rule_type(call.module)
        if known is not None:
            return MODULES[known](call)
    elif call.kind in NAMES:
        return NAMES[call.kind](call)
    call.refuse("no rule is known for it")


def rule_type(module: nn.Module) -> type[nn.Module] | None:
    """The type whose rule fits a module: its own, or one whose ``forward`` it inherits."""
    return next((k for k in type(module).__mro__ if k in MODULES and type(module).forward is k.forward), None)


Rule = Callable[[Call], Operation]

_ACTIVATIONS = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Sigmoid,
    nn.LogSigmoid, nn.Softplus, nn.Softsign, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.Tanhshrink,
)  # fmt: skip
_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_POOLS = (
    nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AdaptiveAvgPool1d,
    nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d,
)  # fmt: skip
_PADS = (
    nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d, nn.ConstantPad1d, nn.ConstantPad2d, nn.ReflectionPad1d,
    nn.ReflectionPad2d, nn.ReplicationPad1d, nn.ReplicationPad2d, nn.CircularPad1d, nn.CircularPad2d,
)  # fmt: skip
_SAME = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)

#: For each type of module, its rule.
MODULES: dict[type[nn.Module], Rule] = {
    **dict.fromkeys((nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d), transposed_convolution),
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, nn.Conv3d), convolution),
    nn.Linear: linear,
    nn.MultiheadAttention: attention,
    **dict.fromkeys(_POOLS, pooling),
    **dict.fromkeys(_BATCH_NORMS, batch_norm),
    **dict.fromkeys(_NORMS, normalisation),
    **dict.fromkeys(_SAME, identity),
    **dict.fromkeys((nn.Flatten, nn.Unflatten), reshape),
    **dict.fromkeys(_PADS, padding),
    nn.Upsample: resize,
    **dict.fromkeys(_ACTIVATIONS, elementwise),
}

#: For each name of a function or of a tensor's method, its rule.
NAMES: dict[str, Rule] = {
    **dict.fromkeys(("add", "iadd", "add_", "sub", "isub"), addition),
    **dict.fromkeys(("mul", "imul", "mul_", "truediv", "div"), multiplication),
    **dict.fromkeys(("cat", "concat", "concatenate"), concatenation),
    **dict.fromkeys(("flatten", "view", "reshape", "squeeze", "unsqueeze", "unflatten"), reshape),
    **dict.fromkeys(("permute", "transpose", "swapaxes"), permutation),
    "getitem": item,
    "mean": mean,
    **dict.fromkeys(("interpolate", "upsample"), resize),
    "pad": padding,
    "layer_norm": normalisation,
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d", "_max_pool2d"), pooling),
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool2d"), pooling),
    **dict.fromkeys(("dropout", "stochastic_depth", "contiguous", "clone", "float", "double", "neg"), identity),
    **dict.fromkeys(
        ("relu", "relu_", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "mish", "tanh", "sigmoid", "softplus",
         "softsign", "hardtanh", "hardswish", "hardsigmoid"), elementwise,
    ),
}  # fmt: skip
