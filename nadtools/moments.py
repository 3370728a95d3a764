r"""Streaming second moments of input gradients: :math:`E_\theta[g g^T]`, network by network.

Two things are called the gradient of a network f at x₀: the gradient itself, and the *secant*
:math:`g_i = (f(x_0 + s e_i) - f(x_0 - s e_i)) / (2s)` with a large scale s, which the code of *Neural Anisotropy
Directions* computes. Both are here, for a network with one output or for its k features at once. A third matrix of the
paper is the second moment of the mixed derivatives :math:`\nabla^2_{\theta, x} f` (section 3, example).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from nadtools import checks
from nadtools.symmetries import Sector, SymmetryGroup, sectors

__all__ = [
    "Eigendecomposition", "GradientMoments", "Halves", "Sketch", "fix_signs", "gradients", "mixed_derivatives",
    "secants",
]  # fmt: skip

Function = Callable[[Tensor], Tensor]

_ENTRIES_AT_ONCE = 2**22  # of a sketch, copied in double precision
_ROUNDING = 1e-13  # squares of singular values, relative to the largest: less is not known from a Gram matrix


def secants(
    function: Function, point: Tensor, scale: float = 100.0, batch_size: int = 256, basis: Tensor | None = None
) -> Tensor:
    """Secants of a function of images along every pixel, with a step of ``scale`` either way: (channels * h * w, k).

    The function takes images (n, channels, h, w), ``batch_size`` at once, to (n, k); the point is (channels, h, w).
    Along the rows of a basis (m, channels * h * w) instead of the pixels the result is (m, k).
    """
    checks.function("function", function, "a function of images", 1)
    point, scale = _check_point(point), checks.positive_number("scale", scale)
    total, steps_per_batch = point.numel(), max(1, checks.positive_int("batch_size", batch_size) // 2)
    if basis is not None:
        basis = checks.tensor("basis", basis)
        if basis.ndim != 2 or not len(basis) or basis.shape[1] != total:
            raise ValueError(f"got basis of shape {tuple(basis.shape)}; expected (m, {total})")
        total = len(basis)
    differences, images = [], point.new_empty(2 * min(steps_per_batch, total), point.numel())
    with torch.no_grad():
        for start in range(0, total, steps_per_batch):
            count = min(steps_per_batch, total - start)
            x = images[: 2 * count].copy_(point.flatten())  # anew: a network may work in place on its input
            if basis is None:
                x[:count, start:].diagonal().add_(scale)
                x[count:, start:].diagonal().sub_(scale)
            else:
                steps = scale * basis[start : start + count].to(x)
                x[:count] += steps
                x[count:] -= steps
            outputs = function(x.view(2 * count, *point.shape))
            differences.append(outputs[:count] - outputs[count:])
    return torch.cat(differences) / (2 * scale)


def gradients(function: Function, point: Tensor, num_outputs: int, batch_size: int = 256) -> Tensor:
    """Gradients of the k outputs of a function of images at a point; arguments and result are those of :func:`secants`.

    One copy of the point goes through the function for each output, and one backward pass returns the gradients of
    all: this works for every network that treats the images of a batch independently.
    """
    checks.function("function", function, "a function of images", 1)
    point, num_outputs = _check_point(point), checks.positive_int("num_outputs", num_outputs)
    jacobian = point.new_zeros(num_outputs, point.numel())
    for start in range(0, num_outputs, checks.positive_int("batch_size", batch_size)):
        outputs = torch.arange(start, min(start + batch_size, num_outputs), device=point.device)
        x = point.unsqueeze(0).repeat(len(outputs), *[1] * point.ndim).requires_grad_(True)
        with torch.enable_grad():
            # A copy, so that a network may work in place on its input.
            values = function(x.clone())
            if values.ndim != 2 or values.shape[1] < num_outputs:
                raise ValueError(f"the function returned {tuple(values.shape)}; expected (n, {num_outputs}) or more")
            value = values[torch.arange(len(outputs), device=point.device), outputs].sum()
            (gradient,) = torch.autograd.grad(value, x, allow_unused=True) if value.requires_grad else (None,)
        if gradient is not None:
            jacobian[outputs] = gradient.flatten(1)
    return jacobian.T


def mixed_derivatives(
    function: Function, parameters: Sequence[Tensor], point: Tensor, num_probes: int, generator: torch.Generator
) -> Tensor:
    r"""Random combinations of the mixed derivatives of a function of images and parameters.

    For a standard normal probe z in parameter space, :math:`r = \nabla_x \langle \nabla_\theta f, z \rangle` has
    :math:`E_z[r r^T] = (\nabla^2_{\theta,x} f)^T (\nabla^2_{\theta,x} f)`: the matrix with a row for each parameter is
    never formed. The r are returned as R, (channels * h * w, num_probes), scaled such that R @ R.T is their mean.

    The function takes images (n, channels, h, w) to one output each, the parameters require gradients, the point is
    (channels, h, w), and the generator of the probes is on the CPU.
    """
    checks.function("function", function, "a function of images", 1)
    checks.instance("parameters", parameters, Sequence, "a sequence of tensors")
    checks.instance("generator", generator, torch.Generator, "a torch.Generator")
    num_probes = checks.positive_int("num_probes", num_probes)
    x = _check_point(point).unsqueeze(0).clone().requires_grad_(True)
    with torch.enable_grad():
        output = function(x.clone()).sum()
        by_parameter = torch.autograd.grad(output, list(parameters), create_graph=True, allow_unused=True)
        used = [gradient for gradient in by_parameter if gradient is not None and gradient.requires_grad]
        columns = []
        for _ in range(num_probes):
            probes = [torch.randn(g.shape, generator=generator).to(g.device, g.dtype) for g in used]
            (column,) = torch.autograd.grad(used, x, probes, retain_graph=True, allow_unused=True) if used else (None,)
            columns.append(torch.zeros_like(x) if column is None else column)
    return torch.cat(columns).flatten(1).T / num_probes**0.5


def _check_point(point: Tensor) -> Tensor:
    point = checks.tensor("point", point)
    if point.ndim != 3 or not point.numel():
        raise ValueError(f"got point of shape {tuple(point.shape)}; expected (channels, h, w)")
    return point


@functools.lru_cache(maxsize=8)
def _sectors_on(image_shape: tuple[int, int, int], group: SymmetryGroup, device: torch.device) -> tuple[Sector, ...]:
    found = sectors(image_shape, group)
    # A pixel is in one vector of a basis, so that products with sparse ones cost next to nothing.
    return tuple(Sector(tuple(basis.to_sparse().to(device) for basis in sector.bases)) for sector in found)


class GradientMoments:
    """Sums of J J^T over networks, in float64, averaged over a symmetry group and split into blocks of networks.

    Only the sector blocks of the covariance are held, for the eight symmetries of the square an eighth of its
    entries. Networks go to blocks by their index, so sums over disjoint sets of indices can be merged, in any order.
    The blocks are for standard errors; the sums are kept on the device.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        group: SymmetryGroup = "none",
        num_blocks: int = 10,
        device: torch.device | str = "cpu",
    ) -> None:
        self.image_shape = image_shape
        self.group: SymmetryGroup = group
        self.num_blocks = num_blocks
        self.device = torch.device(device)
        self.counts = torch.zeros(num_blocks, dtype=torch.int64)
        self.sums = [
            torch.zeros(num_blocks, sector.dimension, sector.dimension, dtype=torch.float64, device=device)
            for sector in self.sectors
        ]

    def add(self, index: int, jacobian: Tensor) -> None:
        """Add the network with this index: ``J @ J.T`` for a J of shape (D, k)."""
        checks.tensor(f"the gradient of network {index} at initialisation", jacobian)
        block = index % self.num_blocks
        jacobian = jacobian.to(torch.float64)
        for sector, sums in zip(self.sectors, self.sums, strict=True):
            for basis in sector.bases:
                projected = basis.T @ jacobian
                sums[block].addmm_(projected, projected.T, alpha=1 / len(sector.bases))
        self.counts[block] += 1

    def merge(self, other: GradientMoments) -> None:
        """Add the sums of other networks, for the same images, group and number of blocks."""
        ours, theirs = ((m.image_shape, m.group, m.num_blocks) for m in (self, other))
        if ours != theirs:
            raise ValueError(f"got moments of (image shape, group, blocks) {theirs}; expected {ours}")
        self.counts += other.counts
        for mine, others in zip(self.sums, other.sums, strict=True):
            mine += others.to(mine.device)

    def average_over(self, orbits: Tensor) -> None:
        """Average the sums, of no named group, over that of :func:`nadtools.symmetries.orbits_of_pairs`."""
        orbits = orbits.to(self.device)
        sizes = torch.bincount(orbits)
        for block in self.sums[0]:
            means = torch.bincount(orbits, weights=block.flatten()) / sizes
            block.copy_(means[orbits].view_as(block))

    @property
    def num_networks(self) -> int:
        """How many networks have been added."""
        return int(self.counts.sum())

    @property
    def sectors(self) -> tuple[Sector, ...]:
        """The sectors that the sums belong to; shared by all moments of the same images and group."""
        return _sectors_on(self.image_shape, self.group, self.device)

    def state(self) -> dict[str, Tensor]:
        """The counts and sums, by name, on the CPU: all that :meth:`restore` needs."""
        return {"counts": self.counts, **{f"sums{k}": sums.cpu() for k, sums in enumerate(self.sums)}}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Take over what :meth:`state` returned for moments of the same images, group and number of blocks."""
        self.counts = state["counts"].clone()
        for k, sums in enumerate(self.sums):
            sums.copy_(state[f"sums{k}"])

    def covariance(self) -> Tensor:
        """The dense covariance, shape (D, D), float64."""
        return sum(
            (
                basis @ (basis @ (sums.sum(0) / self.num_networks)).T
                for sector, sums in zip(self.sectors, self.sums, strict=True)
                for basis in sector.bases
            ),
            start=torch.zeros((), dtype=torch.float64),
        )

    def eigendecomposition(
        self, blocks: slice = slice(None), *, measured_on: slice | None = None, errors: bool = True
    ) -> Eigendecomposition:
        """Eigenvectors of some blocks of networks, largest eigenvalue first, and u^T C u of each, with its error.

        C is that of the same blocks, and u^T C u the eigenvalue, or of the blocks that it is ``measured_on``. Errors
        are the delete-one-block jackknife's to first order: the spread over blocks of (u^T g)²; NaN for a single block
        and without ``errors``.
        """
        counts, others = self.counts[blocks], blocks if measured_on is None else measured_on
        if not int(counts.sum()):
            raise ValueError("no network has been added to these blocks; expected at least one")
        values, measured, deviations, vectors, order_keys = [], [], [], [], []
        for number, (sector, sums) in enumerate(zip(self.sectors, self.sums, strict=True)):
            # LAPACK on the CPU: the result is the same wherever the sums were kept.
            block_values, block_vectors = torch.linalg.eigh((sums[blocks].sum(0) / counts.sum()).cpu())
            block_vectors = block_vectors.to(sums.device)
            means = block_errors = torch.full_like(block_values, math.nan)
            if measured_on is not None or (errors and int((counts > 0).sum()) > 1):
                means, block_errors = _mean_squares(self.counts[others], sums[others], block_vectors)
            for part, basis in enumerate(sector.bases):
                values.append(block_values)
                measured.append(block_values if measured_on is None else means.cpu())
                deviations.append(block_errors.cpu())
                vectors.append((basis @ block_vectors).cpu())
                order_keys += [(number, rank, part) for rank in range(len(block_values) - 1, -1, -1)]
        listed = torch.cat(values).tolist()
        order = sorted(range(len(listed)), key=lambda i: (-listed[i], order_keys[i]))
        # Rounding may leave an eigenvalue of a positive semidefinite matrix just below zero.
        return Eigendecomposition(
            torch.cat(measured)[order].clamp_min(0),
            torch.cat(deviations)[order],
            fix_signs(torch.cat(vectors, dim=1)[:, order].T),
        )

    def halves(self, *, held_out: bool = True) -> Halves:
        """What the even and the odd blocks say of each other; NaN with fewer than two networks, or not asked for."""
        even, odd = slice(0, None, 2), slice(1, None, 2)
        nothing = torch.full((math.prod(self.image_shape),), math.nan, dtype=torch.float64)
        if any(int(self.counts[half].sum()) == 0 for half in (even, odd)):
            return Halves(nothing, nothing, nothing)
        first, second = (
            self.eigendecomposition(own, measured_on=other if held_out else None, errors=held_out)
            for own, other in ((even, odd), (odd, even))
        )
        overlap = _overlaps(first.vectors, second.vectors)
        if not held_out:
            return Halves(overlap, nothing, nothing)
        stderr = (first.standard_errors**2 + second.standard_errors**2).sqrt() / 2
        return Halves(overlap, (first.values + second.values) / 2, stderr)


class Sketch:
    r"""The leading part of the sums of J J^T, for images whose D x D entries are too many.

    For each half of the networks, those of even and of odd index, a matrix B with at most ``rank`` columns stands for
    the sum, by B B^T. To add J, the singular vectors of [B, J] are found from its small Gram matrix, and those beyond
    the rank are left out. That is positive semidefinite, and its norm is the square of the first singular value that
    goes. So the true sum minus B B^T is positive semidefinite, and its norm at most the sum of all these squares. Hence
    (Weyl) every eigenvalue, and every mean square along a direction, is too small by at most :attr:`bound`, and never
    too large but for rounding. Sketches of other networks merge by the same step, with the same bound.
    """

    def __init__(self, dimension: int, num_directions: int, device: torch.device | str = "cpu") -> None:
        self.num_directions = num_directions
        self.rank = min(dimension, max(2 * num_directions, num_directions + 64))
        self.device = torch.device(device)
        self.counts = torch.zeros(2, dtype=torch.int64)
        self.discarded = torch.zeros(2, dtype=torch.float64)
        self.factors = [torch.zeros(dimension, 0, dtype=torch.float64, device=device) for _ in range(2)]

    def add(self, index: int, jacobian: Tensor) -> None:
        """Add the network with this index: ``J @ J.T`` for a J of shape (D, k)."""
        checks.tensor(f"the gradient of network {index} at initialisation", jacobian)
        self._absorb(index % 2, jacobian)
        self.counts[index % 2] += 1

    def merge(self, other: Sketch) -> None:
        """Add the sums of other networks."""
        for half, factor in enumerate(other.factors):
            self._absorb(half, factor.to(self.device))
        self.counts += other.counts
        self.discarded += other.discarded

    def _absorb(self, half: int, columns: Tensor) -> None:
        self.factors[half], values = _leading([self.factors[half], columns], self.rank)
        if len(values) > self.rank:
            self.discarded[half] += float(values[self.rank])

    @property
    def bound(self) -> float:
        """By how much an eigenvalue may be too small."""
        return float(self.discarded.sum() / self.counts.sum())

    def state(self) -> dict[str, Tensor]:
        """All that :meth:`restore` needs, by name, on the CPU."""
        factors = {f"factor{half}": factor.cpu() for half, factor in enumerate(self.factors)}
        return {"counts": self.counts, "discarded": self.discarded, **factors}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Take over what :meth:`state` returned."""
        self.counts, self.discarded = state["counts"].clone(), state["discarded"].clone()
        self.factors = [state[f"factor{half}"].to(self.device) for half in range(2)]

    def eigendecomposition(self) -> Eigendecomposition:
        """The first eigenvectors of all networks and their eigenvalues; what these lack is :attr:`bound`, no error."""
        factor, values = _leading(self.factors, self.num_directions)
        missing = self.num_directions - factor.shape[1]
        found = torch.cat([values[: factor.shape[1]], values.new_zeros(missing)]) / self.counts.sum()
        # Where fewer are known than asked for, QR chooses the rest.
        basis = torch.linalg.qr(pad(factor, (0, missing))).Q
        return Eigendecomposition(found, found * math.nan, fix_signs(basis.T.cpu()))

    def halves(self, *, held_out: bool = True) -> Halves:
        """As :meth:`GradientMoments.halves`, of the first directions, without standard errors."""
        nothing = torch.full((self.num_directions,), math.nan, dtype=torch.float64)
        if int(self.counts.min()) == 0:
            return Halves(nothing, nothing, nothing)
        bases = [torch.linalg.qr(factor[:, : self.num_directions]).Q for factor in self.factors]
        # Zero where a half knows no more directions, so that these never seem to agree.
        first, second = (pad(basis, (0, self.num_directions - basis.shape[1])).T for basis in bases)
        overlap = _overlaps(first, second).cpu()
        if not held_out:
            return Halves(overlap, nothing, nothing)
        squares = [
            (vectors @ self.factors[other]).square().sum(1).cpu() / self.counts[other]
            for vectors, other in ((first, 1), (second, 0))
        ]
        return Halves(overlap, (squares[0] + squares[1]) / 2, nothing)


def _leading(blocks: Sequence[Tensor], count: int) -> tuple[Tensor, Tensor]:
    """The first singular vectors of [A, B, ...] times their singular values, in columns, and all squares of these.

    What is less than rounding leaves is dropped. Only some rows at a time are copied in double precision.
    """
    parts = max(1, sum(block.numel() for block in blocks) // _ENTRIES_AT_ONCE)

    def pieces() -> Iterator[Tensor]:
        for rows in zip(*(block.tensor_split(parts) for block in blocks), strict=True):
            yield torch.cat([piece.to(torch.float64) for piece in rows], dim=1)

    gram = sum((piece.T @ piece for piece in pieces()), start=torch.zeros((), dtype=torch.float64))
    values, vectors = torch.linalg.eigh(gram.cpu())
    values = torch.where(values > _ROUNDING * values[-1:], values, 0.0).flip(0)
    known = int((values[:count] > 0).sum())
    rotation = vectors.flip(1)[:, :known].to(blocks[0].device)
    return torch.cat([piece @ rotation for piece in pieces()]), values


def _overlaps(first: Tensor, second: Tensor) -> Tensor:
    """The overlap of the spans of the first k rows, for every k."""
    squares = (first @ second.T).square_().cumsum_(0).cumsum_(1)
    return squares.diagonal() / torch.arange(1, len(squares) + 1, device=squares.device)


def _mean_squares(counts: Tensor, sums: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """The mean over networks of u^T J J^T u for each column u, and its standard error."""
    sizes = counts[counts > 0].to(sums.device, torch.float64)
    # diag(U^T C_b U) for every block b.
    blocks = (block for block, count in zip(sums, counts.tolist(), strict=True) if count)
    means = torch.stack([((block @ vectors) * vectors).sum(0) for block in blocks]) / sizes[:, None]
    weights = (sizes / sizes.sum())[:, None]
    centre = (weights * means).sum(0)
    if len(sizes) < 2:
        return centre, centre * math.nan
    return centre, ((weights * (means - centre)).square().sum(0) * (len(sizes) / (len(sizes) - 1))).sqrt()


@dataclasses.dataclass(frozen=True)
class Eigendecomposition:
    """Mean squares along eigenvectors (D,), their standard errors (D,), and the eigenvectors (D, D), in rows."""

    values: Tensor
    standard_errors: Tensor
    vectors: Tensor


@dataclasses.dataclass(frozen=True)
class Halves:
    r"""Two halves of the networks, compared; each of shape (D,), float64.

    Entry k - 1 of the overlap is :math:`\|A_k^T B_k\|_F^2 / k` for the eigenvectors A and B of the halves. Held out are
    the mean squares along the eigenvectors of one half in the other, the mean of both ways round.
    """

    overlap: Tensor
    held_out: Tensor
    held_out_stderr: Tensor


def fix_signs(vectors: Tensor) -> Tensor:
    """Choose each row's sign: its first entry that reaches half of its largest magnitude is positive.

    (The largest entry alone would not do: a vector that is odd under a mirror image has two of opposite signs.)
    """
    magnitudes = vectors.abs()
    large = magnitudes >= 0.5 * magnitudes.amax(dim=1, keepdim=True)
    first = large.to(torch.uint8).argmax(dim=1)
    signs = vectors.gather(1, first[:, None]).sign()
    return vectors * torch.where(signs == 0, 1.0, signs)
