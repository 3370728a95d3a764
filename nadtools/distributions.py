r"""The linearly separable distributions D(v), and concatenations such as D(v₁)⊕D(v₂), sampled on the device.

Sources: *Neural Anisotropy Directions*, section 2; *A neural anisotropic view of underspecification*, equation (1) and
section 2.
"""

from __future__ import annotations

import dataclasses
import itertools

import torch
from torch import Tensor

from nadtools import checks
from nadtools.checks import positive_int
from nadtools.device import derive_seed, generator, resolve_device, stream, unaffected_by_context
from nadtools.directions import as_direction

__all__ = ["Concatenated", "Labelled", "LinearlySeparable", "SwitchOff", "concatenate"]

_LABELS, _NOISE, _PARTS, _CHOICE = range(4)  # apart from each other, so given labels leave the noise as it was
_BATCH = 4096  # images that are copied at a time


@dataclasses.dataclass(frozen=True, eq=False)
class LinearlySeparable:
    r"""D(v): :math:`x = \epsilon y v + w`, with :math:`w \sim N(0, \sigma^2 (I - v v^T))` and y = ±1, equally likely.

    The one feature that tells the classes apart is the coordinate along v, and it is noise-free: a hyperplane
    separates the classes with margin epsilon, whatever sigma is.
    """

    v: Tensor  #: (h, w) or (channels, h, w); scaled to unit norm
    epsilon: float = 1.0  #: half the distance between the two classes, in pixel units; positive
    sigma: float = 3.0  #: standard deviation of the noise in every direction orthogonal to v; not negative

    def __post_init__(self) -> None:
        v = as_direction(self.v)
        if v.ndim not in (2, 3):
            raise ValueError(f"got v of shape {tuple(v.shape)}; expected (height, width) or (channels, height, width)")
        object.__setattr__(self, "v", v)
        object.__setattr__(self, "epsilon", checks.positive_number("epsilon", self.epsilon))
        object.__setattr__(self, "sigma", checks.nonnegative_number("sigma", self.sigma))

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of one sample."""
        channels, height, width = (1, *self.v.shape)[-3:]
        return channels, height, width

    @unaffected_by_context()
    def sample(
        self, n: int, seed: int = 0, *, device: str | torch.device | None = None, labels: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw n samples on the device, in place: nothing of the size of the result is held beside it.

        They are x, (n, channels, h, w), float32, and y, (n,), int64 in {0, 1}: the sign in the formula is 2y - 1. The
        same seed gives the same samples on the same kind of device. With ``labels``, integers 0 and 1 of shape (n,), x
        is drawn for these.
        """
        n, seed, resolved = positive_int("n", n), stream(seed, "samples"), resolve_device(device)
        y = _draw_labels(n, seed, resolved, labels)
        return self._images(y, seed), y

    def _images(self, y: Tensor, seed: int) -> Tensor:
        """Images for labels, on the device of these."""
        v = self.v.to(y.device, torch.float32).reshape(-1)
        x = torch.empty((len(y), v.numel()), device=y.device)
        x.normal_(generator=generator(y.device, seed, _NOISE))
        # x = sigma g + (epsilon y - sigma <g, v>) v: the projection and the signal in one rank-one update.
        along_v = (2 * y - 1).to(torch.float32).mul_(self.epsilon).sub_(x @ v, alpha=self.sigma)
        x.mul_(self.sigma).addr_(along_v, v)
        return x.view(len(y), *self.image_shape)


@dataclasses.dataclass(frozen=True, eq=False)
class Labelled:
    """Images with given labels, as a part of a concatenation: binary CIFAR-10 in figure B3.

    ``Labelled(images.x_train, nadtools.images.binary(images.y_train, range(5, 10)))`` has y = 1 for the last five
    classes, as in appendix A.2 of the underspecification paper.
    The set is finite: do not draw training and test images from one.
    """

    x: Tensor = dataclasses.field(repr=False)  #: (n, channels, h, w), float32
    #: (n,), int64, not negative; zeros and ones where a D(v) is to be concatenated; on the device of x
    y: Tensor = dataclasses.field(repr=False)

    def __post_init__(self) -> None:
        x = checks.images("x", self.x, [torch.float32])
        checks.tensor("y", self.y, [torch.int64], "a tensor of torch.int64: y.long() converts")
        y = checks.labels("y", self.y, len(x))
        if x.device != y.device:
            raise ValueError(f"got x on {x.device} and y on {y.device}; expected one device")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of one image."""
        channels, height, width = self.x.shape[1:]
        return channels, height, width

    @unaffected_by_context()
    def sample(self, n: int, seed: int = 0, *, device: str | torch.device | None = None) -> tuple[Tensor, Tensor]:
        """Draw n of the images without replacement; they keep their order, so that n = len(x) gives the set itself.

        Of the same seed, more images contain fewer, and every device gets the same ones. Returns copies of x and y.
        """
        rows, resolved = self._choose(positive_int("n", n), stream(seed, "samples")), resolve_device(device)
        x = torch.empty((len(rows), *self.image_shape), device=resolved)
        self._copy(rows, x)
        return x, self.y[rows].to(resolved)

    def _choose(self, n: int, seed: int) -> Tensor:
        """Rows of n images."""
        if n > len(self.x):
            raise ValueError(f"got n={n}, but there are {len(self.x)} images; expected at most so many")
        permutation = torch.randperm(len(self.x), generator=generator(torch.device("cpu"), seed, _CHOICE))
        return permutation[:n].sort().values.to(self.x.device)

    def _copy(self, rows: Tensor, target: Tensor) -> None:
        for some, chosen in zip(target.split(_BATCH), rows.split(_BATCH), strict=True):
            some.copy_(self.x[chosen])


Part = LinearlySeparable | Labelled


@dataclasses.dataclass(frozen=True)
class SwitchOff:
    """A view of images with ``num_channels`` channels that sets some to zero; it can be pickled, and is small."""

    num_channels: int
    channels: tuple[int, ...]

    def __call__(self, x: Tensor) -> Tensor:
        """Return a copy of images of shape (n, num_channels, h, w) with the channels set to zero."""
        x = checks.images("x", x, finite=False)
        if x.shape[1] != self.num_channels:
            raise ValueError(f"got x of shape {tuple(x.shape)}; expected (n, {self.num_channels}, height, width)")
        result = x.clone()
        result[:, list(self.channels)] = 0
        return result


@dataclasses.dataclass(frozen=True, eq=False)
class Concatenated:
    r"""Parts that share the label, stacked as channels: :math:`x = x_1 \oplus x_2 \oplus \dots`.

    Every part tells the classes apart, so a network may use any of them: the task is underspecified. See section 2 of
    the underspecification paper. :func:`concatenate` makes one.
    """

    #: At least one, all of the same height and width, in the order of their channels. Sets of images have the same
    #: labels on one device, which determine those of all other parts.
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple) or not self.parts:
            raise TypeError(f"got parts of type {type(self.parts).__name__}; expected a tuple of at least one part")
        for number, part in enumerate(self.parts):
            checks.instance(f"parts[{number}]", part, (LinearlySeparable, Labelled), "LinearlySeparable or Labelled")
        _check_parts(self.parts)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of one sample."""
        _, height, width = self.parts[0].image_shape
        return sum(part.image_shape[0] for part in self.parts), height, width

    @property
    def channels(self) -> tuple[range, ...]:
        """The channels of each part."""
        ends = list(itertools.accumulate(part.image_shape[0] for part in self.parts))
        return tuple(itertools.starmap(range, zip([0, *ends], ends, strict=False)))

    @unaffected_by_context()
    def sample(
        self, n: int, seed: int = 0, *, device: str | torch.device | None = None, labels: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw n samples, as :meth:`LinearlySeparable.sample`. At most one part of the result is held beside it.

        Each part has a random stream of its own, so a part's noise does not depend on what the other parts are. Images
        are chosen as :meth:`Labelled.sample` chooses them, and have their own labels: ``labels`` is refused with them.
        """
        n, seed, resolved = positive_int("n", n), stream(seed, "samples"), resolve_device(device)
        images = _images_of(self.parts)
        if images and labels is not None:
            raise ValueError("got labels for a concatenation with images, which have their own; leave labels out")
        rows = images[0]._choose(n, seed) if images else torch.empty(0)
        y = images[0].y[rows].to(resolved) if images else _draw_labels(n, seed, resolved, labels)
        x = torch.empty((n, *self.image_shape), device=resolved)
        for number, (part, channels) in enumerate(zip(self.parts, self.channels, strict=True)):
            target = x[:, channels.start : channels.stop]
            if isinstance(part, Labelled):
                part._copy(rows, target)
            else:
                target.copy_(part._images(y, derive_seed(seed, _PARTS, number)))
        return x, y

    def only(self, *parts: int) -> SwitchOff:
        """The view in which all parts but those with these numbers, from 0, are switched off.

        ``D.only(0)(x)`` are the samples x with the channels of all parts but the first at zero: for the views of
        :func:`nadtools.sweep`, for instance.
        """
        if not parts:
            raise ValueError("got no part that stays; expected at least one, for instance only(0)")
        off = set(range(len(self.parts))) - {self._number(part) for part in parts}
        channels = itertools.chain.from_iterable(self.channels[number] for number in sorted(off))
        return SwitchOff(self.image_shape[0], tuple(channels))

    def direction(self, part: int, v: Tensor | None = None) -> Tensor:
        r"""A direction of one part as a direction of the whole: :math:`v_1 \oplus 0` for part 0 of two.

        By default v is the part's own; images have none. Of shape (h, w) or (channels of the part, h, w) it becomes
        (channels, h, w), of unit norm, on its device.
        """
        number = self._number(part, "part")
        chosen = self.parts[number]
        if v is None:
            if isinstance(chosen, Labelled):
                raise ValueError(f"part {number} is a set of images, which has no direction; expected the argument v")
            v = chosen.v
        v = as_direction(v)
        if (1, *v.shape)[-3:] != chosen.image_shape:
            raise ValueError(f"got v of shape {tuple(v.shape)} for part {number}; expected {chosen.image_shape}")
        result = v.new_zeros(self.image_shape)
        channels = self.channels[number]
        result[channels.start : channels.stop] = v
        return result

    def _number(self, part: int, name: str = "parts") -> int:
        """Check the number of a part."""
        most = len(self.parts) - 1
        return checks.integer(name, part, 0, most, f"the number of a part, an int from 0 to {most}")


def concatenate(*parts: Part | Concatenated) -> Concatenated:
    r"""Concatenate parts that share the label along channels: :math:`D_1 \oplus D_2 \oplus \dots`.

    See :class:`Concatenated`; one among the parts counts as its own parts.

    Examples:
        >>> import nadtools as nt
        >>> v1, v2 = nt.fourier_basis((32, 32))[:2]
        >>> D = nt.concatenate(nt.LinearlySeparable(v1, 1.0, 1.0), nt.LinearlySeparable(v2, 0.5, 1.0))
        >>> x, y = D.sample(100, seed=0, device="cpu")
        >>> x.shape, D.only(0)(x)[:, 1].abs().max()
        (torch.Size([100, 2, 32, 32]), tensor(0.))
    """
    flat: list[Part] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Concatenated) else [part])
    return Concatenated(tuple(flat))


def _images_of(parts: tuple[Part, ...]) -> list[Labelled]:
    return [part for part in parts if isinstance(part, Labelled)]


def _check_parts(parts: tuple[Part, ...]) -> None:
    """Whether parts can share images and labels."""
    sizes = [part.image_shape[1:] for part in parts]
    if len(set(sizes)) > 1:
        raise ValueError(f"got parts of {' and '.join(f'{h}x{w}' for h, w in sizes)} pixels; expected one size")
    images = _images_of(parts)
    if not images:
        return
    devices = [str(part.x.device) for part in images]
    if len(set(devices)) > 1:
        raise ValueError(f"got images on {' and '.join(devices)}; expected one device")
    first = images[0].y
    for y in (part.y for part in images[1:] if not torch.equal(part.y, first)):
        if len(y) != len(first):
            raise ValueError(f"got sets of {len(first)} and {len(y)} images; expected the same number")
        different = f"labels that differ at {int((y != first).sum())} of {len(first)} places"
        raise ValueError(f"got sets of images with {different}; expected the same, for instance both sorted by label")
    if len(images) < len(parts) and int(first.max()) > 1:
        most = int(first.max())
        raise ValueError(f"got labels from 0 to {most} to share with D(v); expected 0 and 1: images.binary makes them")


def _draw_labels(n: int, seed: int, device: torch.device, labels: Tensor | None) -> Tensor:
    """Labels, or the given ones checked."""
    if labels is not None:
        return checks.labels("labels", labels, n, 2).to(device)
    return torch.randint(2, (n,), device=device, generator=generator(device, seed, _LABELS))
