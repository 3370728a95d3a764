"""Networks by name, at any width, with or without pooling, for images of any size.

The layers and their initialisation are those of the code that accompanies *Neural Anisotropy Directions*:
PyTorch's default initialisation throughout. The initialisation is part of an architecture's bias.
"""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from collections.abc import Callable

from torch import nn

from nadtools.device import check_seed, derive_seed, isolated_random_state
from nadtools.directions import check_shape
from nadtools.symmetries import SymmetryGroup

__all__ = ["available", "build", "symmetry_group"]


@dataclasses.dataclass(frozen=True)
class _Request:
    """What a builder is asked for."""

    in_channels: int
    num_classes: int
    width: float
    pooling: bool
    image_size: tuple[int, int]

    def scaled(self, channels: int) -> int:
        return max(1, round(channels * self.width))


def build(
    name: str,
    in_channels: int = 1,
    num_classes: int = 2,
    width: float = 1.0,
    *,
    pooling: bool = True,
    image_size: tuple[int, int] = (32, 32),
    seed: int = 0,
) -> nn.Sequential:
    """A freshly initialised network, on the CPU.

    Parameters
    ----------
    name : str
        One of :func:`available`:
        ``"logreg"``, one linear layer; ``"mlp"``, hidden layers of 100 and 20 units (the MLP of the
        underspecification paper, appendix A.1); ``"lenet"``, convolutions of 6 and 16 channels with 5x5 filters,
        each followed by 2x2 max-pooling, then fully connected layers of 120 and 84 units.
    in_channels, num_classes : int
        Channels of the input, and outputs (logits).
    width : float
        Scales the number of channels and of hidden units.
    pooling : bool
        False removes the pooling layers; the first fully connected layer grows to fit. Networks that have none
        refuse it.
    image_size : (int, int)
        Height and width of the input.
    seed : int
        Of the initialisation. The global random state is left as it was.

    Raises
    ------
    ValueError
        If the name is unknown (the message lists the known ones), a size is not positive, ``pooling=False`` is asked
        of a network without pooling, or the images are too small for the network.
    """
    size = _check_request(name, in_channels, num_classes, width, image_size)
    if not pooling and name not in _POOLED:
        raise ValueError(f"{name!r} has no pooling layers to remove; only {', '.join(sorted(_POOLED))} has")
    request = _Request(in_channels, num_classes, width, pooling, size)
    with isolated_random_state(derive_seed(check_seed(seed))):
        return _BUILDERS[name](request)


def available() -> tuple[str, ...]:
    """The names that :func:`build` knows."""
    return tuple(_BUILDERS)


def symmetry_group(name: str, image_size: tuple[int, int] = (32, 32), *, pooling: bool = True) -> SymmetryGroup:
    """The symmetries of the image under which a network's law at initialisation is invariant.

    g is in the group if, for every image x, f(g x) has the same distribution over initialisations as f(x), jointly
    for all x. For layers with independent, equally distributed weights this holds when moving the image by g can be
    undone by rearranging weights; the tests show the rearrangement for each network.

    Returns
    -------
    {"none", "transpose", "reflections", "square"}
        ``"square"``: all eight symmetries of the square; ``"reflections"``: the two mirror images and the half turn;
        ``"transpose"``: transposition alone.
    """
    height, width = _check_request(name, 1, 1, 1.0, image_size)
    reflections = True
    if name == "lenet":
        # Pooling drops the last row or column of an odd-sized map, and a mirror image would drop the first.
        reflections = all(_lenet_map_sizes(size, pooling)[1] for size in (height, width))
    if reflections:
        return "square" if height == width else "reflections"
    return "transpose" if height == width else "none"


def _check_request(
    name: str, in_channels: int, num_classes: int, width: float, image_size: tuple[int, int]
) -> tuple[int, int]:
    if name not in _BUILDERS:
        raise ValueError(f"unknown architecture {name!r}; known are {', '.join(map(repr, _BUILDERS))}")
    for label, value in (("in_channels", in_channels), ("num_classes", num_classes)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"got {label}={value!r}; expected a positive int")
    if not (isinstance(width, int | float) and math.isfinite(width) and width > 0):
        raise ValueError(f"got width={width!r}; expected a positive number")
    height, columns = check_shape(image_size)
    return height, columns


def _logistic_regression(request: _Request) -> nn.Sequential:
    num_pixels = request.in_channels * math.prod(request.image_size)
    return nn.Sequential(OrderedDict(flatten=nn.Flatten(), output=nn.Linear(num_pixels, request.num_classes)))


def _mlp(request: _Request) -> nn.Sequential:
    num_pixels = request.in_channels * math.prod(request.image_size)
    first, second = request.scaled(100), request.scaled(20)
    return nn.Sequential(
        OrderedDict(
            flatten=nn.Flatten(),
            linear1=nn.Linear(num_pixels, first),
            relu1=nn.ReLU(),
            linear2=nn.Linear(first, second),
            relu2=nn.ReLU(),
            output=nn.Linear(second, request.num_classes),
        )
    )


def _lenet(request: _Request) -> nn.Sequential:
    channels1, channels2 = request.scaled(6), request.scaled(16)
    units1, units2 = request.scaled(120), request.scaled(84)
    map_sizes = [_lenet_map_sizes(size, request.pooling)[0] for size in request.image_size]
    if min(map_sizes) < 1:
        raise ValueError(f"got image_size={request.image_size}; expected at least (16, 16) for 'lenet'")

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
                ("linear1", nn.Linear(channels2 * math.prod(map_sizes), units1)),
                ("relu3", nn.ReLU()),
                ("linear2", nn.Linear(units1, units2)),
                ("relu4", nn.ReLU()),
                ("output", nn.Linear(units2, request.num_classes)),
            ]
        )
    )


def _lenet_map_sizes(size: int, pooling: bool) -> tuple[int, bool]:
    """Size of LeNet's last feature map along one axis, and whether no pooling dropped a row on the way."""
    exact = True
    for _ in range(2):
        size -= 4
        if pooling:
            exact &= size % 2 == 0
            size //= 2
    return size, exact


_BUILDERS: dict[str, Callable[[_Request], nn.Sequential]] = {
    "logreg": _logistic_regression,
    "mlp": _mlp,
    "lenet": _lenet,
}
_POOLED = {"lenet"}
