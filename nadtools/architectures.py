r"""Networks by name, at any width, with or without pooling and strides, for images of any size that fits.

The layers are those of the code that accompanies *Neural Anisotropy Directions*; the residual and dense blocks and
VGG's convolutional part are torchvision's own, and so are the blocks of the vision transformer and of ConvNeXt. The
initialisation is part of an architecture's bias, so it is a stated choice:

``init="pytorch"``
    As in the authors' code: PyTorch's default for every layer, but for VGG's convolutions of k x k filters, which
    are drawn from N(0, 2 / (k² · output channels)), with zero bias; and but for the vision transformer's blocks, as
    torchvision draws them: two layers behind attention by Xavier, position embeddings from N(0, 0.02²).
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
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from nadtools import checks
from nadtools.checks import positive_int
from nadtools.device import derive_seed, isolated_random_state, stream, unaffected_by_context
from nadtools.symmetries import SymmetryGroup

__all__ = ["Initialisation", "available", "build", "symmetry_group"]

Initialisation = Literal["pytorch", "torchvision"]

_Reduction = Literal["unpadded 5x5", "pool", "stride", "global pool", "patch", "halve"]


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
    patch_size: int
    depth: int | None
    class_token: bool
    position_embedding: float
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
    patch_size: int | None = None,
    depth: int | None = None,
    class_token: bool = False,
    position_embedding: float | None = None,
    image_size: tuple[int, int] = (32, 32),
    seed: int = 0,
) -> nn.Sequential:
    """A freshly initialised network, on the CPU and in training mode; its last layer is called ``output``.

    Args:
        name: One of :func:`available`:

            - ``"logreg"``: one linear layer.
            - ``"mlp"``: hidden layers with ReLU, of 100 and 20 units (the underspecification paper's, appendix A.1).
            - ``"lenet"``: convolutions of 6 and 16 channels with 5x5 filters, each followed by 2x2 max-pooling, then
              fully connected layers of 120 and 84 units.
            - ``"vgg11"``: eight 3x3 convolutions with batch normalisation, of 64 to 512 channels, and five 2x2
              max-poolings; then two fully connected layers of 512 units, each with dropout (Simonyan and Zisserman,
              2015).
            - ``"resnet18"``: a 3x3 convolution without stride, and no max-pooling; then torchvision's eight residual
              blocks, three of them with stride 2, and global average pooling (He et al., 2016).
            - ``"densenet121"``: a 3x3 convolution without stride, normalisation or pooling; then torchvision's dense
              blocks of 6, 12, 24 and 16 layers with growth 32. Transitions between them halve the channels, and the
              size by 2x2 average pooling. Global average pooling (Huang et al., 2017).
            - ``"vit"``: a vision transformer. Patches of 8x8 pixels as tokens of 64 channels, 4 of torchvision's
              blocks, each with 4 heads and 128 hidden units, and the mean over tokens.
            - ``"mixer"``: an MLP-Mixer. The same patches; 4 blocks in which 32 hidden units mix the tokens and 128 the
              channels; the mean over tokens.
            - ``"convnext"``: patches of 4x4 pixels with 48 channels, 2 of torchvision's blocks with their layer scale
              of 1e-6, a 2x2 convolution with stride 2, 2 blocks of 96 channels, global average pooling.
            - ``"lstm"``: one LSTM layer of 128 units, which reads the rows from top to bottom; its last state.
        num_classes: Outputs (logits).
        width: Scales the number of channels and of hidden units, and DenseNet's growth.
        pooling: False removes every pooling layer, the global one too, and the first fully connected layer grows to
            fit: that of VGG-11 to 1 GiB at width 1 and 32x32 pixels. ConvNeXt, and networks without pooling, refuse it.
        strides: False gives ResNet-18's convolutions stride 1, at about twenty times the computing. Others refuse it.
        init: The initialisation: see the head of this module. ``"logreg"``, ``"mlp"`` and ``"lenet"`` know only the
            first.
        hidden: Units of the hidden layers of ``"mlp"``; ``width`` scales them, too.
        patch_size: Side of a patch of ``"vit"``, ``"mixer"`` and ``"convnext"``: pixels outside whole patches are not
            seen.
        depth: How many blocks these three have, and layers ``"lstm"``.
        class_token: Whether ``"vit"`` reads a class token, which starts at zero, in place of the mean.
        position_embedding: Standard deviation of the position embeddings of ``"vit"``, 0.02 unless given; with 0 it
            knows no positions.
        seed: Of the initialisation. The global random state is left as it was.
    """
    units = tuple(checks.integers("hidden", hidden, 1, expected="positive ints"))
    checks.flags(class_token=class_token)
    if position_embedding is not None:
        position_embedding = checks.nonnegative_number("position_embedding", position_embedding)
    depth = None if depth is None else positive_int("depth", depth, 1000)
    size, patch = _check_request(
        name, image_size, pooling, strides, patch_size, depth=depth, hidden=units or None,
        class_token=class_token or None, position_embedding=position_embedding,
    )  # fmt: skip
    in_channels, num_classes = positive_int("in_channels", in_channels), positive_int("num_classes", num_classes)
    width, init = checks.positive_number("width", width, 1000), checks.choice("init", init, get_args(Initialisation))
    if init == "torchvision" and name not in _TORCHVISION:
        known = ", ".join(map(repr, _TORCHVISION))
        raise ValueError(f"got init='torchvision' for {name!r}; use init='pytorch' (torchvision has {known})")
    rows, columns = (_last_map(name, length, pooling, strides, patch)[0] for length in size)
    request = _Request(
        in_channels, num_classes, width, pooling, strides, init, units, patch, depth, class_token,
        _POSITION_EMBEDDING if position_embedding is None else position_embedding, (rows, columns),
    )  # fmt: skip
    with isolated_random_state(derive_seed(stream(seed, "initialisation"))):
        return _BUILDERS[name](request)


def available() -> tuple[str, ...]:
    """The names that :func:`build` knows."""
    return tuple(_BUILDERS)


def symmetry_group(
    name: str,
    image_size: tuple[int, int] = (32, 32),
    *,
    pooling: bool = True,
    strides: bool = True,
    patch_size: int | None = None,
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
    33x33 (maps of 33, 17, 9 and 5 pixels) and without strides. In whole patches every one passes: patches change
    places, and so do the pixels in each of them. An LSTM reads from top to bottom. (It has all permutations of columns,
    and the others of patches, but averages over these are not offered.)

    ``"square"``: all eight symmetries of the square; ``"reflections"``: the two mirror images and the half turn;
    ``"transpose"``: transposition alone; ``"none"``.
    """
    (height, width), patch = _check_request(name, image_size, pooling, strides, patch_size)
    if name == "lstm":
        return "none"
    if all(_last_map(name, length, pooling, strides, patch)[1] for length in (height, width)):
        return "square" if height == width else "reflections"
    return "transpose" if height == width else "none"


def _check_request(
    name: str, image_size: tuple[int, int], pooling: bool, strides: bool, patch_size: int | None, **own: Any
) -> tuple[tuple[int, int], int]:
    """Height and width of the image, and of a patch."""
    if not isinstance(name, str) or name not in _BUILDERS:
        raise ValueError(f"unknown architecture name {name!r}; known are {', '.join(map(repr, _BUILDERS))}")
    checks.flags(pooling=pooling, strides=strides)
    patch = _PATCHES.get(name, 1) if patch_size is None else positive_int("patch_size", patch_size)
    for option, value in {"patch_size": patch_size, **own}.items():
        if value is not None and name not in _OPTIONS[option]:
            owners = ", ".join(map(repr, _OPTIONS[option]))
            raise ValueError(f"got {option}={value!r} for {name!r}; networks that have it: {owners}")
    for kept, reductions, what in (
        (pooling, ("pool", "global pool"), "pooling layers"),
        (strides, ("stride",), "strided convolutions"),
    ):
        having = [known for known, steps in _REDUCTIONS.items() if set(steps) & set(reductions)]
        if not kept and name not in having:
            raise ValueError(f"{name!r} has no {what} to remove; networks with {what}: {', '.join(map(repr, having))}")
    height, width = checks.check_shape("image_size", image_size)
    least = next(size for size in itertools.count(1) if _last_map(name, size, pooling, strides, patch)[0] >= 1)
    if min(height, width) < least:
        raise ValueError(f"got image_size={(height, width)}; expected at least {(least, least)} for {name!r}")
    return (height, width), patch


def _last_map(name: str, size: int, pooling: bool, strides: bool, patch: int) -> tuple[int, bool]:
    """Size of the last feature map along one axis, and whether mirroring the image mirrors every map."""
    mirrored = True
    for reduction in _REDUCTIONS[name]:
        if reduction == "unpadded 5x5":
            size -= 4
        elif reduction in ("patch", "halve") or (reduction == "pool" and pooling):
            length = patch if reduction == "patch" else 2
            mirrored &= size % length == 0
            size //= length
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
    pools: list[dict[str, nn.Module]] = [{f"pool{i}": nn.MaxPool2d(2)} if request.pooling else {} for i in (1, 2)]
    layers: dict[str, nn.Module] = {
        "convolution1": nn.Conv2d(request.in_channels, channels1, kernel_size=5),
        **pools[0],
        "relu1": nn.ReLU(),
        "convolution2": nn.Conv2d(channels1, channels2, kernel_size=5),
        **pools[1],
        "relu2": nn.ReLU(),
        "flatten": nn.Flatten(),
        "linear1": nn.Linear(channels2 * math.prod(request.map_size), units1),
        "relu3": nn.ReLU(),
        "linear2": nn.Linear(units1, units2),
        "relu4": nn.ReLU(),
        "output": nn.Linear(units2, request.num_classes),
    }
    return nn.Sequential(OrderedDict(layers))


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


class _OfTokens(nn.Module):
    """Patches as tokens (n, tokens, channels), perhaps behind a class token; blocks; that token, or the mean of all."""

    def __init__(self, patches: nn.Conv2d, blocks: nn.Module, class_token: bool = False) -> None:
        super().__init__()
        self.patches, self.blocks = patches, blocks
        self.class_token = nn.Parameter(torch.zeros(1, 1, patches.out_channels)) if class_token else None

    def forward(self, x: Tensor) -> Tensor:
        tokens: Tensor = self.patches(x).flatten(2).transpose(1, 2)
        if self.class_token is None:
            return self.blocks(tokens).mean(1)
        return self.blocks(torch.cat([self.class_token.expand(x.shape[0], -1, -1), tokens], 1))[:, 0]


class _Mixing(nn.Module):
    """A block of the MLP-Mixer."""

    def __init__(self, tokens: int, channels: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.tokens = nn.Sequential(nn.Linear(tokens, channels // 2), nn.GELU(), nn.Linear(channels // 2, tokens))
        self.channels = nn.Sequential(nn.Linear(channels, 2 * channels), nn.GELU(), nn.Linear(2 * channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class _OverRows(nn.Module):
    """The last state of an LSTM that reads the rows of an image."""

    def __init__(self, columns: int, units: int, depth: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(columns, units, depth, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x.transpose(1, 2).flatten(2))[0][:, -1]


def _with_output(features: nn.Module, units: int, request: _Request) -> nn.Sequential:
    return nn.Sequential(OrderedDict(features=features, output=nn.Linear(units, request.num_classes)))


def _patches(channels: int, request: _Request) -> nn.Conv2d:
    return nn.Conv2d(request.in_channels, channels, request.patch_size, request.patch_size)


def _vit(request: _Request) -> nn.Sequential:
    from torchvision.models import vision_transformer

    heads, channels, tokens = 4, 4 * request.scaled(16), math.prod(request.map_size) + request.class_token
    blocks = vision_transformer.Encoder(tokens, request.depth or 4, heads, channels, 2 * channels, 0.0, 0.0)
    if request.position_embedding:
        with torch.no_grad():
            blocks.pos_embedding.mul_(request.position_embedding / _POSITION_EMBEDDING)
    else:
        del blocks.pos_embedding
        blocks.register_buffer("pos_embedding", torch.zeros(1, tokens, channels))
    return _with_output(_OfTokens(_patches(channels, request), blocks, request.class_token), channels, request)


def _mixer(request: _Request) -> nn.Sequential:
    channels = 4 * request.scaled(16)
    blocks = [_Mixing(math.prod(request.map_size), channels) for _ in range(request.depth or 4)]
    features = _OfTokens(_patches(channels, request), nn.Sequential(*blocks, nn.LayerNorm(channels)))
    return _with_output(features, channels, request)


def _convnext(request: _Request) -> nn.Sequential:
    from torchvision.models.convnext import CNBlock, LayerNorm2d

    few, many = 4 * request.scaled(12), 4 * request.scaled(24)
    layers: list[nn.Module] = [_patches(few, request), LayerNorm2d(few)]
    layers += [CNBlock(few, 1e-6, 0.0) for _ in range(request.depth or 2)]
    layers += [LayerNorm2d(few), nn.Conv2d(few, many, 2, 2)]
    layers += [CNBlock(many, 1e-6, 0.0) for _ in range(request.depth or 2)]
    layers += [nn.AdaptiveAvgPool2d(1), LayerNorm2d(many), nn.Flatten()]
    return _with_output(nn.Sequential(*layers), many, request)


def _lstm(request: _Request) -> nn.Sequential:
    units = request.scaled(128)
    rows = _OverRows(request.in_channels * request.map_size[1], units, request.depth or 1)
    return _with_output(rows, units, request)


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
    "vit": _vit,
    "mixer": _mixer,
    "convnext": _convnext,
    "lstm": _lstm,
}
_TORCHVISION = ("vgg11", "resnet18", "densenet121")
_POSITION_EMBEDDING = 0.02  # torchvision's
_PATCHES = {"vit": 8, "mixer": 8, "convnext": 4}  # pixels on a side
_OPTIONS = {
    "hidden": ("mlp",),
    "patch_size": tuple(_PATCHES),
    "depth": (*_PATCHES, "lstm"),
    "class_token": ("vit",),
    "position_embedding": ("vit",),
}

# What changes the size of a network's feature maps, in order.
_REDUCTIONS: dict[str, tuple[_Reduction, ...]] = {
    "logreg": (),
    "mlp": (),
    "lenet": ("unpadded 5x5", "pool") * 2,
    "vgg11": ("pool",) * 5,
    "resnet18": (*("stride",) * 3, "global pool"),
    "densenet121": (*("pool",) * 3, "global pool"),
    "vit": ("patch",),
    "mixer": ("patch",),
    "convnext": ("patch", "halve"),
    "lstm": (),
}
