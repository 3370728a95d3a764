r"""Networks by name, at any width, with or without pooling and strides, for images of any size that fits.

The layers are those of the code that accompanies *Neural Anisotropy Directions*; the residual and dense blocks and
VGG's convolutional part are torchvision's own. The initialisation is part of an architecture's bias, so it is a
stated choice:

``init="pytorch"``
    As in the authors' code: PyTorch's default for every layer, but for VGG's convolutions of k x k filters, which
    are drawn from N(0, 2 / (k² · output channels)), with zero bias.
``init="torchvision"``
    As in torchvision's models. VGG: the same convolutions; linear layers from N(0, 0.01²), with zero bias. ResNet:
    convolutions from N(0, 2 / (k² · output channels)); the linear layer is PyTorch's default. DenseNet:
    convolutions from N(0, 2 / (k² · input channels)); the linear layer is PyTorch's default, with zero bias.

Batch normalisation starts as the identity (to its ε) in both.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from torch import nn

from nadtools import checks
from nadtools.checks import positive_int
from nadtools.device import derive_seed, isolated_random_state, stream, unaffected_by_context
from nadtools.symmetries import SymmetryGroup

__all__ = ["Initialisation", "available", "build", "symmetry_group"]

Initialisation = Literal["pytorch", "torchvision"]

_Reduction = Literal["unpadded 5x5", "pool", "stride", "global pool"]


@dataclasses.dataclass(frozen=True)
class _Request:
    """What a builder is asked for."""

    in_channels: int
    num_classes: int
    width: float
    pooling: bool
    strides: bool
    init: Initialisation
    hidden: tuple[int, ...]
    map_size: tuple[int, int]  # of the last feature map, which the first fully connected layer sees

    def scaled(self, channels: int) -> int:
        return max(1, round(channels * self.width))


@unaffected_by_context()
def build(
    name: str,
    in_channels: int = 1,
    num_classes: int = 2,
    width: float = 1.0,
    *,
    pooling: bool = True,
    strides: bool = True,
    init: Initialisation = "pytorch",
    hidden: Sequence[int] = (),
    image_size: tuple[int, int] = (32, 32),
    seed: int = 0,
) -> nn.Sequential:
    """A freshly initialised network, on the CPU and in training mode; its last layer is called ``output``.

    Parameters
    ----------
    name : str
        One of :func:`available`:

        ``"logreg"``
            One linear layer.
        ``"mlp"``
            Hidden layers with ReLU, of 100 and 20 units unless ``hidden`` says otherwise (the MLP of the
            underspecification paper, appendix A.1).
        ``"lenet"``
            Convolutions of 6 and 16 channels with 5x5 filters, each followed by 2x2 max-pooling, then fully
            connected layers of 120 and 84 units.
        ``"vgg11"``
            Eight 3x3 convolutions with batch normalisation, of 64 to 512 channels, and five 2x2 max-poolings; then
            two fully connected layers of 512 units, each with dropout.
        ``"resnet18"``
            A 3x3 convolution without stride, and no max-pooling; then torchvision's eight residual blocks, three of
            them with stride 2, and global average pooling.
        ``"densenet121"``
            A 3x3 convolution without stride, normalisation or pooling; then torchvision's dense blocks of 6, 12, 24
            and 16 layers with growth 32. Transitions between them halve the channels, and the size by 2x2 average
            pooling. Global average pooling at the end.
    in_channels, num_classes : int
        Channels of the input, and outputs (logits).
    width : float
        Scales the number of channels and of hidden units, and DenseNet's growth.
    pooling : bool
        False removes every pooling layer, the global one too. Strided convolutions stay, and the first fully
        connected layer grows to fit. Mind its size: VGG-11's has 524288 x 512 weights at width 1 and 32x32 pixels,
        1 GiB in single precision, and DenseNet-121 then works on maps of 32x32 pixels throughout. Networks without
        pooling refuse it.
    strides : bool
        False gives every convolution stride 1. ResNet-18 then works on maps of the image's size throughout, with
        about twenty times the computing. Networks without strided convolutions refuse it.
    init : {"pytorch", "torchvision"}
        The initialisation: see the head of this module. ``"logreg"``, ``"mlp"`` and ``"lenet"`` know only the first.
    hidden : sequence of int
        Units of the hidden layers of ``"mlp"``; ``width`` scales them, too. Other networks refuse it.
    image_size : (int, int)
        Height and width of the input.
    seed : int
        Of the initialisation. The global random state is left as it was.

    References
    ----------
    VGG: Simonyan and Zisserman, 2015. ResNet: He et al., 2016. DenseNet: Huang et al., 2017.
    """
    size = _check_request(name, image_size, pooling, strides)
    units = tuple(checks.integers("hidden", hidden, 1, expected="positive ints"))
    if units and name != "mlp":
        raise ValueError(f"got hidden={hidden!r} for {name!r}; only 'mlp' has hidden layers to choose")
    in_channels, num_classes = positive_int("in_channels", in_channels), positive_int("num_classes", num_classes)
    width, init = checks.positive_number("width", width, 1000), checks.choice("init", init, get_args(Initialisation))
    if init == "torchvision" and name not in _TORCHVISION:
        raise ValueError(
            f"got init='torchvision' for {name!r}, which torchvision does not have; use init='pytorch' "
            f"(torchvision has {', '.join(map(repr, _TORCHVISION))})"
        )
    rows, columns = (_last_map(name, length, pooling, strides)[0] for length in size)
    request = _Request(in_channels, num_classes, width, pooling, strides, init, units, (rows, columns))
    with isolated_random_state(derive_seed(stream(seed, "initialisation"))):
        return _BUILDERS[name](request)


def available() -> tuple[str, ...]:
    """The names that :func:`build` knows."""
    return tuple(_BUILDERS)


def symmetry_group(
    name: str, image_size: tuple[int, int] = (32, 32), *, pooling: bool = True, strides: bool = True
) -> SymmetryGroup:
    """The symmetries of the image under which a network's law at initialisation is invariant.

    g is in the group if, for every image x, f(g x) has the same distribution over initialisations as f(x), jointly
    for all x. For layers with independent, equally distributed weights this holds when moving the image by g can be
    undone by rearranging weights; the tests show the rearrangement for each network. It holds for both
    initialisations, in evaluation mode.

    Transposition always passes. A mirror image passes 2x2 pooling where the map has an even size: pooling drops the
    last row of an odd one, and the mirror image would drop the first. It passes a padded convolution of stride 2
    where the map has an odd size: its filters are centred at pixels 0, 2, 4, ..., and these are their own mirror
    image only if the last pixel is among them. So ResNet-18 has only transposition at 32x32, and the whole square at
    33x33 (maps of 33, 17, 9 and 5 pixels) and without strides.

    Returns
    -------
    {"none", "transpose", "reflections", "square"}
        ``"square"``: all eight symmetries of the square; ``"reflections"``: the two mirror images and the half turn;
        ``"transpose"``: transposition alone.
    """
    height, width = _check_request(name, image_size, pooling, strides)
    if all(_last_map(name, length, pooling, strides)[1] for length in (height, width)):
        return "square" if height == width else "reflections"
    return "transpose" if height == width else "none"


def _check_request(name: str, image_size: tuple[int, int], pooling: bool, strides: bool) -> tuple[int, int]:
    if not isinstance(name, str) or name not in _BUILDERS:
        raise ValueError(f"unknown architecture name {name!r}; known are {', '.join(map(repr, _BUILDERS))}")
    checks.flags(pooling=pooling, strides=strides)
    for kept, reductions, what in (
        (pooling, ("pool", "global pool"), "pooling layers"),
        (strides, ("stride",), "strided convolutions"),
    ):
        having = [known for known, steps in _REDUCTIONS.items() if set(steps) & set(reductions)]
        if not kept and name not in having:
            raise ValueError(f"{name!r} has no {what} to remove; networks with {what}: {', '.join(map(repr, having))}")
    height, width = checks.check_shape("image_size", image_size)
    if any(_last_map(name, length, pooling, strides)[0] < 1 for length in (height, width)):
        least = next(length for length in itertools.count(1) if _last_map(name, length, pooling, strides)[0] >= 1)
        raise ValueError(f"got image_size={(height, width)}; expected at least {(least, least)} for {name!r}")
    return height, width


def _last_map(name: str, size: int, pooling: bool, strides: bool) -> tuple[int, bool]:
    """Size of the last feature map along one axis, and whether mirroring the image mirrors every map."""
    mirrored = True
    for reduction in _REDUCTIONS[name]:
        if reduction == "unpadded 5x5":
            size -= 4
        elif reduction == "pool" and pooling:
            mirrored &= size % 2 == 0
            size //= 2
        elif reduction == "stride" and strides:
            mirrored &= size % 2 == 1
            size = (size + 1) // 2
        elif reduction == "global pool" and pooling:
            size = min(size, 1)
    return size, mirrored


def _logistic_regression(request: _Request) -> nn.Sequential:
    num_pixels = request.in_channels * math.prod(request.map_size)
    return nn.Sequential(OrderedDict(flatten=nn.Flatten(), output=nn.Linear(num_pixels, request.num_classes)))


def _mlp(request: _Request) -> nn.Sequential:
    num_pixels = request.in_channels * math.prod(request.map_size)
    sizes = [num_pixels, *map(request.scaled, request.hidden or (100, 20))]
    layers: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    for number, (inputs, outputs) in enumerate(itertools.pairwise(sizes), 1):
        layers |= {f"linear{number}": nn.Linear(inputs, outputs), f"relu{number}": nn.ReLU()}
    layers["output"] = nn.Linear(sizes[-1], request.num_classes)
    return nn.Sequential(layers)


def _lenet(request: _Request) -> nn.Sequential:
    channels1, channels2 = request.scaled(6), request.scaled(16)
    units1, units2 = request.scaled(120), request.scaled(84)

    # Pooling before the ReLU gives the same function as after it, on a quarter of the entries.
    def convolution(index: int, inputs: int, outputs: int) -> list[tuple[str, nn.Module]]:
        layers: list[tuple[str, nn.Module]] = [(f"convolution{index}", nn.Conv2d(inputs, outputs, kernel_size=5))]
        if request.pooling:
            layers.append((f"pool{index}", nn.MaxPool2d(2)))
        return [*layers, (f"relu{index}", nn.ReLU())]

    return nn.Sequential(
        OrderedDict(
            [
                *convolution(1, request.in_channels, channels1),
                *convolution(2, channels1, channels2),
                ("flatten", nn.Flatten()),
                ("linear1", nn.Linear(channels2 * math.prod(request.map_size), units1)),
                ("relu3", nn.ReLU()),
                ("linear2", nn.Linear(units1, units2)),
                ("relu4", nn.ReLU()),
                ("output", nn.Linear(units2, request.num_classes)),
            ]
        )
    )


def _vgg11(request: _Request) -> nn.Sequential:
    # torchvision takes as long to import as PyTorch, and most architectures do without it.
    from torchvision.models import vgg

    plan = [step if isinstance(step, str) else request.scaled(step) for step in vgg.cfgs["A"]]
    features = vgg.make_layers([step for step in plan if request.pooling or step != "M"], batch_norm=True)
    # torchvision's first layer takes three channels.
    features[0] = nn.Conv2d(request.in_channels, request.scaled(64), kernel_size=3, padding=1)
    units = request.scaled(512)
    network = nn.Sequential(
        OrderedDict(
            features=features,
            flatten=nn.Flatten(),
            linear1=nn.Linear(units * math.prod(request.map_size), units),
            relu1=nn.ReLU(),
            dropout1=nn.Dropout(),
            linear2=nn.Linear(units, units),
            relu2=nn.ReLU(),
            dropout2=nn.Dropout(),
            output=nn.Linear(units, request.num_classes),
        )
    )
    # The authors' code and torchvision agree on the convolutions.
    _draw_convolutions(network, "fan_out")
    if request.init == "torchvision":
        for layer in network:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=0.01)
                nn.init.zeros_(layer.bias)
    return network


def _resnet18(request: _Request) -> nn.Sequential:
    from torchvision.models import resnet

    channels = [request.scaled(64 * 2**stage) for stage in range(4)]
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        convolution=resnet.conv3x3(request.in_channels, channels[0]),
        norm=nn.BatchNorm2d(channels[0]),
        relu=nn.ReLU(),
        layer1=nn.Sequential(*(resnet.BasicBlock(channels[0], channels[0]) for _ in range(2))),
    )
    stride = 2 if request.strides else 1
    for stage, (inputs, outputs) in enumerate(itertools.pairwise(channels), start=2):
        shortcut = nn.Sequential(resnet.conv1x1(inputs, outputs, stride), nn.BatchNorm2d(outputs))
        first = resnet.BasicBlock(inputs, outputs, stride, shortcut)
        layers[f"layer{stage}"] = nn.Sequential(first, resnet.BasicBlock(outputs, outputs))
    network = nn.Sequential(OrderedDict({**layers, **_head(channels[-1], request)}))
    if request.init == "torchvision":
        _draw_convolutions(network, "fan_out")
    return network


def _densenet121(request: _Request) -> nn.Sequential:
    from torchvision.models import densenet

    growth, channels = request.scaled(32), request.scaled(64)
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        convolution=nn.Conv2d(request.in_channels, channels, kernel_size=3, padding=1, bias=False)
    )
    num_blocks = 4
    for block, num_layers in enumerate((6, 12, 24, 16), start=1):
        # Bottlenecks of four times the growth; no dropout.
        layers[f"block{block}"] = densenet._DenseBlock(num_layers, channels, 4, growth, 0.0)
        channels += num_layers * growth
        if block < num_blocks:
            transition = densenet._Transition(channels, channels // 2)
            if not request.pooling:
                del transition.pool
            layers[f"transition{block}"] = transition
            channels //= 2
    layers.update(norm=nn.BatchNorm2d(channels), relu=nn.ReLU())
    network = nn.Sequential(OrderedDict({**layers, **_head(channels, request)}))
    if request.init == "torchvision":
        _draw_convolutions(network, "fan_in")
        output = network[-1]
        assert isinstance(output, nn.Linear)
        nn.init.zeros_(output.bias)
    return network


def _head(channels: int, request: _Request) -> dict[str, nn.Module]:
    """Global average pooling, if there is pooling, and the linear output layer."""
    pool: dict[str, nn.Module] = {"pool": nn.AdaptiveAvgPool2d(1)} if request.pooling else {}
    output = nn.Linear(channels * math.prod(request.map_size), request.num_classes)
    return {**pool, "flatten": nn.Flatten(), "output": output}


def _draw_convolutions(network: nn.Module, fan: Literal["fan_in", "fan_out"]) -> None:
    """Draw k x k filters from N(0, 2 / (k² · channels)), of the input or the output; biases, if any, are zero."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode=fan, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


_BUILDERS: dict[str, Callable[[_Request], nn.Sequential]] = {
    "logreg": _logistic_regression,
    "mlp": _mlp,
    "lenet": _lenet,
    "vgg11": _vgg11,
    "resnet18": _resnet18,
    "densenet121": _densenet121,
}
_TORCHVISION = ("vgg11", "resnet18", "densenet121")

# What changes the size of a network's feature maps, in order.
_REDUCTIONS: dict[str, tuple[_Reduction, ...]] = {
    "logreg": (),
    "mlp": (),
    "lenet": ("unpadded 5x5", "pool") * 2,
    "vgg11": ("pool",) * 5,
    "resnet18": (*("stride",) * 3, "global pool"),
    "densenet121": (*("pool",) * 3, "global pool"),
}
