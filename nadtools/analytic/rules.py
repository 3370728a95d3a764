"""Which rule belongs to which layer."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from nadtools.analytic.forms import addition, concatenation, multiplication, permutation, reshape
from nadtools.analytic.operations import Call, Operation, passed
from nadtools.analytic.unweighted import (
    activation,
    average,
    batch_norm,
    linear_map,
    max_pooling,
    normalisation,
    token,
)  # fmt: skip
from nadtools.analytic.weighted import attention, convolution, linear, transposed_convolution

__all__ = ["MODULES", "NAMES", "operation", "rule_type"]


def operation(call: Call) -> Operation:
    """The rule of a layer at work.

    Raises
    ------
    NoRuleError
        If there is none.
    """
    if call.module is not None and (known := rule_type(call.module)) is not None:
        return MODULES[known](call)
    if call.module is None and call.kind in NAMES:
        return NAMES[call.kind](call)
    call.refuse("no rule is known for it")


def rule_type(module: nn.Module) -> type[nn.Module] | None:
    """The type whose rule fits a module: its own, or one whose ``forward`` it inherits."""
    return next((k for k in type(module).__mro__ if k in MODULES and type(module).forward is k.forward), None)


_ACTIVATIONS = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Sigmoid,
    nn.Softplus, nn.Softsign, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid,
)  # fmt: skip
_LINEAR_MAPS = (
    nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Upsample, nn.ZeroPad2d, nn.ReflectionPad2d,
)  # fmt: skip

#: For each type of module, its rule.
MODULES: dict[type[nn.Module], Callable[[Call], Operation]] = {
    nn.Conv2d: convolution,
    nn.ConvTranspose2d: transposed_convolution,
    nn.Linear: linear,
    nn.MultiheadAttention: attention,
    **dict.fromkeys((nn.MaxPool2d, nn.AdaptiveMaxPool2d), max_pooling),
    **dict.fromkeys(_LINEAR_MAPS, linear_map),
    **dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d), batch_norm),
    **dict.fromkeys((nn.LayerNorm, nn.GroupNorm), normalisation),
    **dict.fromkeys((nn.Identity, nn.Dropout, nn.Dropout2d), passed),
    nn.Flatten: reshape,
    **dict.fromkeys(_ACTIVATIONS, activation),
}

#: For each name of a function or of a tensor's method, its rule.
NAMES: dict[str, Callable[[Call], Operation]] = {
    **dict.fromkeys(("add", "iadd", "add_", "sub", "isub"), addition),
    **dict.fromkeys(("mul", "imul", "mul_", "truediv", "div"), multiplication),
    **dict.fromkeys(("cat", "concat", "concatenate"), concatenation),
    **dict.fromkeys(("flatten", "view", "reshape", "squeeze"), reshape),
    **dict.fromkeys(("permute", "transpose", "swapaxes"), permutation),
    "getitem": token,
    "mean": average,
    **dict.fromkeys(("interpolate", "pad", "avg_pool2d", "adaptive_avg_pool2d"), linear_map),
    **dict.fromkeys(("max_pool2d", "_max_pool2d", "adaptive_max_pool2d"), max_pooling),
    "layer_norm": normalisation,
    **dict.fromkeys(("dropout", "stochastic_depth", "contiguous", "clone", "float", "double", "neg"), passed),
    **dict.fromkeys(
        ("relu", "relu_", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "mish", "tanh", "sigmoid", "softplus",
         "softsign", "hardtanh", "hardswish", "hardsigmoid"), activation,
    ),
}  # fmt: skip
