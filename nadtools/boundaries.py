r"""Decision boundaries: their cross-section with a plane, their angle to directions, and margins along directions.

A network decides by the sign of its *decision function* f: the difference of its two outputs, ``outputs[:, 1] -
outputs[:, 0]``, or its single output. Where f > 0 it says class 1, and the boundary is where f changes sign.

Planes are spanned by two directions, in figure B2b by :math:`v_1 \oplus 0` and :math:`0 \oplus v_2`
(:meth:`nadtools.distributions.Concatenated.direction`). Every point lies in one such plane. Its coordinates there are
absolute: the coordinates (a, b) stand for :math:`w + a\,d_1 + b\,d_2`, where w is the point's part orthogonal to the
plane. So the planes of different points can be averaged, and for samples of :math:`D(v_1) \oplus D(v_2)` the classes
lie at :math:`\pm(\epsilon_1, \epsilon_2)` in each of them.

The functions work on a copy of the network in evaluation mode, on the device of the points.

Source: *A neural anisotropic view of underspecification*, section 3 and appendix B.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn

from nadtools import checks
from nadtools.device import full_precision, unaffected_by_context
from nadtools.directions import as_direction
from nadtools.networks import on_images
from nadtools.progress import progress_bar

__all__ = ["BoundaryAngle", "CrossSection", "boundary_angle", "cross_section", "margins"]

_BATCH: Final = 1024  # images evaluated at a time
_PARALLEL: Final = 1e-5  # sine of the smallest angle between two directions that span a plane
_DOUBLINGS: Final = 12
_ANGLES: Final = 32  # at which the sign is looked at, on a circle
_ANGLE_BISECTIONS: Final = 10
_MARGIN_BISECTIONS: Final = 20


@dataclasses.dataclass(frozen=True, eq=False)
class CrossSection:
    """The decision function on a grid in a plane, averaged over points. All tensors are float64, on the CPU.

    ``values[j, i]`` belongs to the coordinates ``(first[i], second[j])``, so that rows go along the vertical axis of a
    figure. The boundary of the mean is where they change sign.
    """

    first: Tensor  #: (r,): coordinates along the first direction, ascending
    second: Tensor  #: (r,): along the second
    values: Tensor  #: (r, r)
    stderr: Tensor  #: (r, r): standard error of each mean over points; NaN for a single point
    num_points: int  #: that were averaged over


@dataclasses.dataclass(frozen=True)
class BoundaryAngle:
    """How a decision boundary lies in a plane. Angles are in radians, and NaN where no boundary was met.

    ``to_first`` and ``to_second`` are the angles between the boundary and the two directions, from 0 (parallel: the
    network ignores the direction) to pi/2 (perpendicular: along it the decision changes fastest). For orthogonal
    directions they add up to pi/2. ``normal`` is the angle of the boundary's normal, on the side where f > 0, counted
    from the first direction towards the second, from -pi to pi. ``stderr`` is the standard error of the three over
    points, NaN for a single one. It is linearised, so anything not well below 1 says that the angle is not known.
    """

    to_first: float
    to_second: float
    normal: float
    stderr: float
    #: Length of the mean normal: 1 if every point's plane has a straight boundary through the middle of the disc,
    #: always at the same angle; near 0 if there are few boundaries, or they disagree.
    resultant: float
    radius: float  #: of the disc in which the boundary was looked at
    num_points: int
    num_crossed: int  #: points with a boundary in it


@unaffected_by_context()
def cross_section(
    network: nn.Module,
    points: Tensor,
    first: Tensor,
    second: Tensor,
    extent: float | tuple[float, float] = 2.0,
    resolution: int = 41,
    *,
    dtype: torch.dtype | None = None,
    progress: bool = True,
) -> CrossSection:
    """The decision function on a grid in the plane of two directions, through a point or averaged over points.

    Args:
        network: From (n, channels, h, w) to (n, 2), (n, 1) or (n,).
        points: Shape (channels, h, w) or (n, channels, h, w). Their own coordinates in the plane do not matter.
        first, second: Shape (channels, h, w), or (h, w) for one channel; scaled to unit norm; not parallel. The
            coordinates are oblique if the directions are not orthogonal.
        extent: The grid goes from -extent to +extent along the first and along the second direction. Positive.
        resolution: Grid lines along each direction, at least 2.
        dtype: To compute in. None means that of the points.
    """
    both = extent if isinstance(extent, tuple | list) else (extent, extent)
    extents = [
        checks.positive_number("extent", one) for one in checks.pair("extent", both, "a positive number, or two")
    ]
    resolution = checks.integer("resolution", resolution, 2, 2**14, "at least 2 grid lines")
    checks.flags(progress=progress)
    points, directions, _ = _check_points(points, {"first": first, "second": second}, dtype)
    plane = _Plane.spanned_by(points, directions)
    f = _decision(network, points)

    axes = [torch.linspace(-limit, limit, resolution, dtype=torch.float64, device=points.device) for limit in extents]
    cells = resolution**2
    sums = torch.zeros(2, cells, dtype=torch.float64, device=points.device)
    at_once = max(1, _BATCH // cells)  # points of which a batch holds the whole grid
    numbers = torch.arange(len(points), device=points.device)
    with progress_bar(None, progress, total=len(points) * cells, desc="cross-section", unit="image", delay=1) as bar:
        for group in numbers.split(at_once):
            for start in range(0, cells, _BATCH):
                cell = torch.arange(start, min(start + _BATCH, cells), device=points.device)
                grid = torch.stack((axes[0][cell % resolution], axes[1][cell // resolution]), 1)
                values = f(plane.base, group.repeat_interleave(len(cell)), grid.repeat(len(group), 1), directions)
                values = values.view(len(group), len(cell))
                sums[0, cell] += values.sum(0)
                sums[1, cell] += values.square().sum(0)
                bar.update(values.numel())
    count = len(points)
    mean = sums[0] / count
    # A difference of two means, of which rounding may leave less than nothing.
    variance = (sums[1] / count - mean.square()).clamp(min=0)
    stderr = (variance / (count - 1)).sqrt() if count > 1 else torch.full_like(mean, math.nan)
    values, errors = (table.view(resolution, resolution).cpu() for table in (mean, stderr))
    return CrossSection(axes[0].cpu(), axes[1].cpu(), values, errors, count)


@unaffected_by_context()
def boundary_angle(
    network: nn.Module,
    points: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    radius: float | None = None,
    dtype: torch.dtype | None = torch.float64,
) -> BoundaryAngle:
    r"""The angle of the decision boundary to two directions, in the plane that they span.

    It is that of the boundary's mean normal. In the plane of each point let B be the disc of radius R about the
    coordinates (0, 0), and n the unit normal of the boundary, which points to where f > 0: the direction in which f
    rises fastest. By the divergence theorem the integral of n over the boundary is one over the circle,

    .. math::

        N = \frac{1}{2R} \int_{B \cap \{f = 0\}} n\, ds
          = \frac12 \int_{f(R\cos t,\,R\sin t) > 0} (\cos t, \sin t)\, dt,

    so that only the sign of f on the circle is needed, whatever the shape of the boundary inside. Where the sign
    changes is found by bisection. N is averaged over the points, and its angle is the result. A straight boundary
    through the centre counts with weight 1, one that cuts the disc in a shorter chord with less, closed islands with 0.

    For an affine f the angle is exact. Arcs of the circle of less than 360/32 degrees can be overlooked.

    Args:
        network, points, first, second: As for :func:`cross_section`. The points' own coordinates in the plane matter
            for the default radius only.
        radius: R, positive. By default the root mean square distance of the points from the centre of the plane, or 1
            if that is zero, doubled, up to 12 times, until at least half of the points have a boundary in their disc;
            if that never happens, it is where most have one.
        dtype: To compute in; None means that of the points. Single precision is faster on a CPU, about twice for LeNet,
            ten times for ResNet-18, and its rounding may move the angle by more than 1e-3.
    """
    if radius is not None:
        radius = checks.positive_number("radius", radius)
    points, directions, _ = _check_points(points, {"first": first, "second": second}, dtype)
    plane = _Plane.spanned_by(points, directions)
    f = _decision(network, points)

    step = 2 * math.pi / _ANGLES
    # Half a step off the axes, where networks tend to have kinks.
    angles = (torch.arange(_ANGLES, dtype=torch.float64, device=points.device) + 0.5) * step
    numbers = torch.arange(len(points), device=points.device)

    def on_circle(size: float, which: Tensor, angle: Tensor) -> Tensor:
        coefficients = size * torch.stack((angle.cos(), angle.sin()), 1)
        return f(plane.base, which, coefficients, plane.orthonormal)

    sizes = [plane.spread * 2.0**doubling for doubling in range(_DOUBLINGS + 1)] if radius is None else [radius]
    crossed = -1
    for one_size in sizes:
        one_values = on_circle(one_size, numbers.repeat_interleave(_ANGLES), angles.repeat(len(points)))
        one_values = one_values.view(-1, _ANGLES)
        changes = (one_values > 0) != (one_values.roll(-1, 1) > 0)
        number = int(changes.any(1).sum())
        if number > crossed:
            size, values, crossed = one_size, one_values, number
            which, before = changes.nonzero(as_tuple=True)
        if 2 * crossed >= len(points):
            break

    angle = _find_crossing(
        lambda t: on_circle(size, which, t),
        angles[before],
        angles[before] + step,
        values[which, before],
        values[which, (before + 1) % _ANGLES],
        _ANGLE_BISECTIONS,
    )
    # The integral over an arc from s to t is (sin t - sin s, cos s - cos t).
    sign = (values[which, before] > 0).to(torch.float64) - 0.5
    ends = sign[:, None] * torch.stack((angle.sin(), -angle.cos()), 1)
    normals = torch.zeros(len(points), 2, dtype=torch.float64, device=points.device).index_add_(0, which, ends)
    return _summarise(normals.cpu(), plane.second_angle, size, crossed)


@unaffected_by_context()
def margins(
    network: nn.Module,
    points: Tensor,
    direction: Tensor,
    *,
    max_distance: float = 100.0,
    dtype: torch.dtype | None = torch.float64,
) -> Tensor:
    r"""Signed distances from points to the decision boundary along a direction.

    For a point x it is the t of smallest absolute value at which :math:`f(x + t\,d)` changes sign. For samples (x, y)
    of D(v) with d = v, ``-(2 * y - 1) * t`` is the margin, positive where the boundary lies towards the other class.

    The sign is looked at for t = ±max_distance/4096, twice that, and so on; between the first two that differ the
    crossing is found by bisection. Two crossings between neighbours go unseen.

    Returns a tensor (n,), or () for a single point; float64, on the CPU. It is infinite where there is no boundary
    within ``max_distance``.

    Args:
        network, points, direction: As for :func:`cross_section`.
        max_distance: How far to look, on both sides. Positive.
        dtype: As for :func:`boundary_angle`.
    """
    max_distance = checks.positive_number("max_distance", max_distance)
    points, unit, single = _check_points(points, {"direction": direction}, dtype)
    f = _decision(network, points)

    numbers = torch.arange(len(points), device=points.device)
    start = f(points, numbers, torch.zeros_like(numbers, dtype=torch.float64)[:, None], unit)
    distance = torch.full_like(start, math.inf)
    left = numbers
    near, near_values = 0.0, start.expand(2, -1)  # the two sides of the points that are left
    for doubling in range(_DOUBLINGS + 1):
        far = max_distance * 2.0 ** (doubling - _DOUBLINGS)
        sides = torch.tensor([-1.0, 1.0], dtype=torch.float64, device=points.device)
        far_values = f(points, left.repeat(2), far * sides.repeat_interleave(len(left))[:, None], unit).view(2, -1)
        changed = (far_values > 0) != (start[left] > 0)
        side, column = changed.nonzero(as_tuple=True)
        which, sign = left[column], sides[side]
        found = _find_crossing(
            lambda t, which=which, sign=sign: f(points, which, (sign * t)[:, None], unit),
            torch.full_like(sign, near),
            torch.full_like(sign, far),
            near_values[side, column],
            far_values[side, column],
            _MARGIN_BISECTIONS,
        )
        both = torch.full_like(far_values, math.inf)
        both[side, column] = found
        shortest, nearer = both.min(0)
        distance[left] = torch.where(shortest.isfinite(), shortest * sides[nearer], math.inf)
        stay = ~changed.any(0)
        left, near, near_values = left[stay], far, far_values[:, stay]
        if not len(left):
            break
    distance = distance.cpu()
    return distance[0] if single else distance


def _decision(network: nn.Module, points: Tensor) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """f, in batches, of a copy of the network on device and in dtype of the points, tried on the first."""
    checks.instance("network", network, nn.Module, "a torch.nn.Module")
    copied = copy.deepcopy(network).to(points.device, points.dtype).eval()
    with on_images(points), torch.inference_mode():
        tried = copied(points[:1])
    shape = tuple(tried.shape) if isinstance(tried, Tensor) else type(tried).__name__
    if shape not in ((1, 2), (1, 1), (1,)):
        raise ValueError(f"the network returned {shape} for 1 image; expected (1, 2), (1, 1) or (1,)")

    def f(points: Tensor, which: Tensor, coefficients: Tensor, directions: Tensor) -> Tensor:
        """Values at points[which] + coefficients @ directions, of shape (q,), float64."""
        flat = directions.flatten(1)
        values = torch.empty(len(which), dtype=torch.float64, device=points.device)
        batches = (tensor.split(_BATCH) for tensor in (values, which, coefficients))
        with torch.inference_mode(), full_precision():
            for target, rows, factors in zip(*batches, strict=True):
                moves = (factors @ flat).view(-1, *points.shape[1:])
                outputs = copied(points[rows] + moves.to(points.dtype)).view(len(rows), -1)
                target.copy_(outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs[:, 0])
        return values

    return f


@dataclasses.dataclass(frozen=True)
class _Plane:
    """The planes of points, which differ in their base alone."""

    orthonormal: Tensor  # (2, ...), float64: the first direction, and what is orthogonal to it, on the second's side
    second_angle: float  # of the second direction, counted from the first
    base: Tensor  # (n, ...): the points without their part in the plane
    spread: float  # root mean square distance of the points from the centre, or 1 if they lie there

    @classmethod
    def spanned_by(cls, points: Tensor, directions: Tensor) -> _Plane:
        one, other = directions
        cosine = (one * other).sum()
        across = other - cosine * one
        sine = float(across.norm())
        if sine < _PARALLEL:
            raise ValueError(f"got two directions at an angle of {sine:.1g} rad; expected two that span a plane")
        across = across / sine
        # Once more, so that rounding does not leave a part of the first in it.
        across = as_direction(across - (across * one).sum() * one)
        orthonormal = torch.stack((one, across))
        flat = orthonormal.flatten(1)
        coordinates = torch.cat([some.flatten(1).to(torch.float64) @ flat.T for some in points.split(_BATCH)])
        base = points.clone()
        for target, some in zip(base.split(_BATCH), coordinates.split(_BATCH), strict=True):
            target.sub_((some @ flat).view(target.shape).to(points.dtype))
        spread = float(coordinates.square().sum(1).mean().sqrt())
        # Below the rounding of coordinates the points lie at the centre.
        scale = float(points.abs().max()) * math.sqrt(points[0].numel()) * torch.finfo(points.dtype).eps
        spread = spread if spread > scale else 1.0
        return cls(orthonormal, math.atan2(sine, float(cosine)), base, spread)


def _find_crossing(function: Any, low: Tensor, high: Tensor, at_low: Tensor, at_high: Tensor, steps: int) -> Tensor:
    """Where a function changes sign, between bounds at which it differs: bisection, then the straight line between."""
    if not len(low):
        return low
    for _ in range(steps):
        middle = (low + high) / 2
        value = function(middle)
        same = (value > 0) == (at_low > 0)
        low, at_low = torch.where(same, middle, low), torch.where(same, value, at_low)
        high, at_high = torch.where(same, high, middle), torch.where(same, at_high, value)
    # One value is positive and the other is not, so the quotient lies in [0, 1].
    return low + at_low / (at_low - at_high) * (high - low)


def _summarise(normals: Tensor, second_angle: float, radius: float, crossed: int) -> BoundaryAngle:
    """The angle of the mean of vectors (n, 2), and its error."""
    count = len(normals)
    mean = normals.mean(0)
    resultant = float(mean.norm())
    if not crossed or resultant == 0:
        return BoundaryAngle(math.nan, math.nan, math.nan, math.nan, 0.0, radius, count, crossed)
    normal = math.atan2(float(mean[1]), float(mean[0]))
    stderr = math.nan
    if count > 1:
        # What a vector has across the mean turns the mean.
        across = (normals @ torch.stack((-mean[1], mean[0]))) / resultant**2
        stderr = float(across.square().sum().div(count * (count - 1)).sqrt())

    def to(direction: float) -> float:
        return math.atan2(abs(math.cos(direction - normal)), abs(math.sin(direction - normal)))

    return BoundaryAngle(to(0.0), to(second_angle), normal, stderr, resultant, radius, count, crossed)


def _check_points(points: Any, given: dict[str, Any], dtype: torch.dtype | None) -> tuple[Tensor, Tensor, bool]:
    """Points (n, ...), ready to compute with; unit directions (k, ...), float64; whether a single point was given."""
    points = checks.tensor("points", points)
    if dtype is not None and (not isinstance(dtype, torch.dtype) or dtype not in (torch.float32, torch.float64)):
        raise ValueError(f"got dtype={dtype!r}; expected torch.float32, torch.float64 or None")
    where = points.device
    units = [as_direction(checks.tensor(name, v).to(where, torch.float64), None, name) for name, v in given.items()]
    directions = [v[None] if v.ndim == 2 else v for v in units]  # one channel
    single = points.shape == directions[0].shape
    points = points[None] if single else points
    if points.ndim < 2 or any(points.shape[1:] != v.shape for v in directions) or len(points) < 1:
        shapes = ", ".join(f"{name} {tuple(v.shape)}" for name, v in zip(given, units, strict=True))
        # Concatenated.direction(part) makes one from that of a part.
        raise ValueError(f"got points {tuple(points.shape)}, {shapes}; expected directions of the shape of one point")
    return points.to(dtype or points.dtype), torch.stack(directions), single
