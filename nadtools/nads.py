r"""Neural anisotropy directions: a ranked basis of image space, and how to compare two of them.

NADs are the eigenvectors of the covariance :math:`E_\theta[g g^T]` of a network's input gradients over its random
initialisations, largest eigenvalue first. Source: *Neural Anisotropy Directions*, section 3; the alignment
:math:`\alpha(v)` is equation (2) of *A neural anisotropic view of underspecification*.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from nadtools import checks, plots, storage
from nadtools.directions import as_direction
from nadtools.moments import fix_signs

__all__ = ["NADs", "captured_energy", "compare", "subspace_overlap"]

_KIND = "NADs"
_SERIES = ("eigenvalues", "eigenvalue_stderr", "split_half_overlap", "held_out", "held_out_stderr")
_EQUAL = 1e-9  # eigenvalues that differ by less, relative to the largest, do so by rounding
_LEAK = 0.05  # of an eigenspace, on either side


@dataclasses.dataclass(frozen=True, eq=False)
class NADs:
    """A complete orthonormal basis of image space, ranked by an architecture's preference.

    Or the first of its vectors alone, if ``metadata["num_directions"]`` says how many, for images that are too large
    for all, or those of a subspace. What lies outside their span is then not known, so there are no alignments.

    Attributes:
        vectors: (D, h, w), or (D, channels, h, w) for several channels; float32, first NAD first. The sign of each is
            fixed: the first pixel, row by row, that reaches half of the largest magnitude is positive.
        eigenvalues: (D,), float64, as all that follow: of the uncentred covariance, descending.
        eigenvalue_stderr: One standard error of each; NaN, here and below, where there is no estimate.
        split_half_overlap: Entry k - 1 says how well two halves of the networks agree on the first k directions, see
            :func:`subspace_overlap`. All networks together are better than either half.
        metadata: What they were made from: estimator, number of networks, seed, versions...
        held_out, held_out_stderr: The mean square of g along the directions of one half of the networks, in the other
            half, and its standard error. Eigenvalues are chosen as the largest, and fall even where there is nothing
            but noise; these do not.
    """

    vectors: Tensor
    eigenvalues: Tensor
    eigenvalue_stderr: Tensor
    split_half_overlap: Tensor
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)
    held_out: Tensor = None  # type: ignore[assignment]  # NaN, if not given
    held_out_stderr: Tensor = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        vectors = checks.tensor("vectors", self.vectors)
        count = len(vectors) if vectors.ndim else 0
        complete = self.metadata.get("num_directions") != count if isinstance(self.metadata, dict) else True
        if vectors.ndim not in (3, 4) or not count or (complete and vectors.numel() != count**2):
            shape = tuple(vectors.shape)
            raise ValueError(f"got vectors of shape {shape}; expected a complete basis: NADs.from_vectors makes one")
        object.__setattr__(self, "vectors", vectors)
        for name in _SERIES:
            given = getattr(self, name)
            if given is None and name.startswith("held_out"):
                given = torch.full((count,), math.nan, dtype=torch.float64)
            series = checks.tensor(name, given, finite=name == "eigenvalues")
            if series.shape != (count,):
                raise ValueError(f"got {name} of shape {tuple(series.shape)}; expected ({count},)")
            object.__setattr__(self, name, series)
        if bool((self.eigenvalues < 0).any()) or bool((self.eigenvalues.diff() > 0).any()):
            raise ValueError("got eigenvalues that are negative or ascend; expected the largest first")
        checks.instance("metadata", self.metadata, dict, "a dict")

    @classmethod
    def from_vectors(cls, vectors: Tensor, eigenvalues: Tensor, **metadata: Any) -> NADs:
        """Make NADs from ranked vectors that are orthonormal up to rounding, and may be fewer than D.

        The vectors, (n, h, w) or (n, channels, h, w) with n <= D and products of two off by at most 1e-2, are made
        orthonormal in their order (Gram-Schmidt, in float64) and completed to a basis by directions of eigenvalue 0;
        the completion is the one of Householder's QR decomposition. The eigenvalues are (n,), descending.
        """
        vectors = checks.tensor("vectors", vectors)
        count, dimension = len(vectors) if vectors.ndim else 0, math.prod(vectors.shape[1:])
        if vectors.ndim not in (3, 4) or not 1 <= count <= dimension:
            raise ValueError(f"got vectors of shape {tuple(vectors.shape)}; expected (n, h, w), n from 1 to D = h * w")
        rows = orthonormal_rows("vectors", vectors, count)
        values = checks.as_real("eigenvalues", eigenvalues)
        if values.shape != (count,) or bool((values[1:] > values[:-1]).any()) or float(values[-1]) < 0:
            raise ValueError(f"got eigenvalues of shape {tuple(values.shape)}; expected ({count},), descending, from 0")
        basis = torch.linalg.qr(rows.T, mode="complete").Q.T
        complete = fix_signs(basis).to(torch.float32).reshape(dimension, *vectors.shape[1:])
        unknown = torch.full((dimension,), math.nan, dtype=torch.float64)
        return cls(complete, torch.cat([values, values.new_zeros(dimension - count)]), unknown, unknown, metadata)

    @property
    def image_shape(self) -> tuple[int, ...]:
        """(h, w) or (channels, h, w)."""
        return tuple(self.vectors.shape[1:])

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, index: int | slice) -> Tensor:
        if not isinstance(index, slice):
            self.warn_if_arbitrary(range(len(self))[index])
        return self.vectors[index]

    def __repr__(self) -> str:
        known, spaces = "how well they are known is not known", self.eigenspaces
        if spaces is not None and (count := self.num_resolved):
            before = [str(len(one)) for one in spaces if one.stop <= count]
            sizes = ", ".join(before[:8] + ["..."][: len(before) // 9])
            known = f"the first {count} are settled, in eigenspaces of {sizes}; one of {max(map(len, spaces))} follows"
        elif spaces is not None:
            first = max(1, min(10, len(self) - 1))
            agreement = f"{float(self.split_half_overlap[first - 1]):.2f}, chance is {first / self._dimension:.2f}"
            known = f"no eigenspace is settled: halves of the networks agree on the first {first} to {agreement}"
        made = [str(self.metadata[key]) for key in ("architecture", "estimator", "method") if self.metadata.get(key)]
        made += [f"{self.metadata['num_networks']} networks"] if self.metadata.get("num_networks") else []
        number = f"{len(self)} of {self._dimension}" if len(self) < self._dimension else f"{len(self)}"
        values = ", ".join(f"{value:.3g}" for value in self.eigenvalues[:4].tolist())
        notes = [f"arbitrary from index {self.rank} on: no network tells"] if self.rank < len(self) else []
        notes += self.metadata.get("notes", [])
        return (
            f"{number} NADs of {' x '.join(map(str, self.image_shape))} pixels: {', '.join(made)}\n"
            f"    {known}\n    eigenvalues {values}, ..., {float(self.eigenvalues[-1]):.3g}"
            + "".join(f"\n    {note}" for note in notes)
        )

    @functools.cached_property
    def eigenspaces(self) -> tuple[range, ...] | None:
        """Groups of directions that can be told apart, as ranges of indices; inside a group the order is noise.

        Two halves of the networks overlap by at least 0.9 on the span of each group. For that, of the first k
        directions at most 5 % of a group's size leak from one half's span to outside the other's, for both groups that
        meet at k. Neighbours are merged, those with the greatest leak first, until this holds. All networks together
        are better than their halves. In the closed form nothing is sampled: its groups are its eigenspaces. Of the
        first directions alone the last group may go on beyond them. None where it is not known.
        """
        values, last = self.eigenvalues.numpy(), len(self)
        edges = np.concatenate([[0], np.flatnonzero(values[:-1] - values[1:] > _EQUAL * values[0]) + 1, [last]])
        if self.metadata.get("method") != "analytic":
            leaks = np.arange(last + 1) * (1 - np.concatenate([[1.0], self.split_half_overlap.numpy()]))
            if np.isnan(leaks).any():
                return None
            if last < self._dimension:
                edges = np.append(edges, self._dimension)
            while len(edges) > 2:
                sizes = np.diff(edges)
                shares = leaks[edges[1:-1]] / np.minimum(sizes[:-1], sizes[1:])
                if shares.max() <= _LEAK:
                    break
                edges = np.delete(edges, shares.argmax() + 1)
        return tuple(range(start, stop) for start, stop in itertools.pairwise(edges.tolist()))

    @property
    def _dimension(self) -> int:
        """Of the space that these are the first directions of."""
        return int(self.metadata.get("span", math.prod(self.image_shape)))

    @property
    def num_resolved(self) -> int | None:
        """How many directions come before the largest of the :attr:`eigenspaces`, the bulk; 0 if nothing is settled."""
        spaces = self.eigenspaces
        return None if spaces is None else max(spaces, key=len).start

    @functools.cached_property
    def rank(self) -> int:
        """How many eigenvalues stand above rounding: behind these the basis is arbitrary, unless it is a closed form's.

        A network with k features gives k directions. A single direction that is left is known by the others.
        """
        if self.metadata.get("method") == "analytic":
            return len(self)
        least = len(self) * torch.finfo(torch.float64).eps * float(self.eigenvalues[0])
        count = int((self.eigenvalues > least).sum())
        return count if 0 < count < len(self) - (len(self) == self._dimension) else len(self)

    def warn_if_arbitrary(self, index: int) -> None:
        """Warn of an index from which on these NADs say nothing of the architecture."""
        if index >= self.rank:
            remedy = f"only {self.rank} of {len(self)} eigenvalues are not zero: draw more networks"
            warnings.warn(f"NAD {index} is arbitrary, {remedy}", stacklevel=3)

    def covariance(self) -> Tensor:
        """The covariance that the NADs diagonalise: shape (D, D), float64."""
        self._check_complete()
        rows = self.vectors.flatten(1).to(torch.float64)
        return (rows.T * self.eigenvalues) @ rows

    def alignment(self, v: Tensor) -> float:
        r"""How well a direction suits the architecture: :math:`\alpha(v) = v^T E[g g^T] v`, v scaled to unit norm."""
        return float(self._alignments([as_direction(v, self.image_shape)])[0])

    def alignments(self, directions: Tensor) -> Tensor:
        """:meth:`alignment` of many directions at once: (n, h, w) or (n, channels, h, w) gives (n,), float64."""
        checks.instance("directions", directions, (Tensor, list, tuple), "a tensor of at least one")
        if getattr(directions, "ndim", 1) < 1 or not len(directions):
            raise TypeError("got no directions; expected a tensor of at least one")
        return self._alignments([as_direction(v, self.image_shape, "directions") for v in directions])

    def _check_complete(self) -> None:
        count, dimension = len(self.vectors), math.prod(self.image_shape)
        if count < dimension:
            remedy = "nadtools.analytic.covariances(...)['image'].quadratic(v) is an alignment"
            raise ValueError(f"got the first {count} NADs of {dimension}, and the others are not known; {remedy}")

    def _alignments(self, directions: list[Tensor]) -> Tensor:
        self._check_complete()
        unit = torch.stack(directions).to("cpu", torch.float64)
        return (unit.flatten(1) @ self.vectors.flatten(1).to(torch.float64).T).square() @ self.eigenvalues

    def plot(self, count: int = 12) -> Any:
        """Draw the first NADs with matplotlib: :func:`nadtools.plots.plot_nads`."""
        return plots.plot_nads(self, count)

    def save(self, path: str | os.PathLike[str], *, half_precision: bool = False) -> Path:
        """Write to a ``.npz`` file, atomically; :meth:`load` reads it.

        ``half_precision`` stores the vectors as float16: half the size, each entry off by up to 5e-4 of itself. They
        are made orthonormal again when they are read.
        """
        checks.flags(half_precision=half_precision)
        if checks.file_path("path", path).suffix != ".npz":
            raise ValueError(f"got path={str(path)!r}; expected one that ends in '.npz'")
        vectors = self.vectors.numpy().astype(np.float16 if half_precision else np.float32)
        arrays = {"vectors": vectors, **{name: getattr(self, name).numpy() for name in _SERIES}}
        return storage.write_arrays(path, arrays, {**self.metadata, "kind": _KIND})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NADs:
        """Read what :meth:`save` wrote.

        Raises:
            FileNotFoundError, ValueError: If there is no such file, it is damaged, or holds something else.
        """
        if not checks.file_path("path", path).is_file():
            raise FileNotFoundError(f"got path={str(path)!r}; there is no such file")
        arrays, metadata = storage.read_arrays(path)
        if metadata.pop("kind", None) != _KIND:
            raise ValueError(f"{path} does not hold NADs; it holds {sorted(arrays)}")
        vectors = torch.from_numpy(arrays["vectors"])
        # Files of earlier versions have no held-out spectrum.
        series = {name: torch.from_numpy(arrays[name]) for name in _SERIES if name in arrays}
        if vectors.dtype == torch.float16:
            rows = vectors.flatten(1).to(torch.float64)
            for _ in range(3):  # to the nearest orthogonal matrix: Björck and Bowie's quadratic iteration
                rows = 1.5 * rows - 0.5 * rows @ rows.T @ rows
            vectors = fix_signs(rows).reshape(vectors.shape).to(torch.float32)
        return cls(vectors, metadata=metadata, **series)


def subspace_overlap(a: Tensor | NADs, b: Tensor | NADs, k: int) -> float:
    r"""Overlap of the spans of the first k vectors: :math:`\|A_k^T B_k\|_F^2 / k`, between 0 and 1.

    Independent random subspaces overlap by k/D on average.

    The vectors are orthonormal, of shape (n, ...), n >= k, or those of NADs.
    """
    a, b = (one.vectors if isinstance(one, NADs) else one for one in (a, b))
    first = orthonormal_rows("a", a, k)
    second = orthonormal_rows("b", b, k, tuple(a.shape[1:]))
    return float((first @ second.T).square().sum()) / k


def orthonormal_rows(
    name: str, vectors: Tensor, k: int, shape: tuple[int, ...] | None = None, tolerance: float = 1e-2
) -> Tensor:
    """The first k vectors as rows, float64; products of two may be off by the tolerance: 1e-2 is for half precision."""
    k, vectors = checks.positive_int("k", k), checks.tensor(name, vectors)
    if vectors.ndim < 2 or len(vectors) < k or (shape and tuple(vectors.shape[1:]) != shape):
        of = f" of shape {shape}" if shape else ""
        raise ValueError(f"got {name} of shape {tuple(vectors.shape)} and k={k}; expected at least {k} vectors{of}")
    rows = vectors[:k].flatten(1).to("cpu", torch.float64)
    deviation = float((rows @ rows.T - torch.eye(k, dtype=torch.float64)).abs().max())
    if deviation > tolerance:
        expected = f"at most {tolerance:g}: torch.linalg.qr makes them orthonormal"
        raise ValueError(f"got {name} with vectors that miss orthonormality by {deviation:.2g}; expected {expected}")
    return rows


def captured_energy(vectors: Tensor | NADs, reference: NADs, k: int) -> float:
    r"""Energy of a covariance in the span of k vectors, against its own best: tr(V_kᵀ C V_k) / (λ₁ + … + λ_k).

    Unlike the overlap of subspaces it does not mind the order of directions whose eigenvalues nearly coincide.

    The vectors are orthonormal, of shape (n, ...), n >= k, or those of NADs; covariance and eigenvalues are the
    reference's.
    """
    checks.instance("reference", reference, NADs, "NADs: a tensor of vectors has no eigenvalues")
    if not float(reference.eigenvalues[0]):
        raise ValueError("got a reference whose eigenvalues are zero; expected at least one that is not")
    reference._check_complete()
    vectors = vectors.vectors if isinstance(vectors, NADs) else vectors
    rows = orthonormal_rows("vectors", vectors, k, reference.image_shape)
    coordinates = rows @ reference.vectors.flatten(1).to(torch.float64).T
    return float((coordinates.square() @ reference.eigenvalues).sum() / reference.eigenvalues[:k].sum())


def compare(nads: Mapping[str, NADs], k: int = 10) -> pd.DataFrame:
    """A table of NADs by name, for images of one shape, with a row for each.

    Columns: num_resolved; steps, the indices at which the eigenspaces before the bulk end; rank; effective_rank,
    (Σ λ)² / Σ λ², from 1 to D; and of the first k directions, for every name, overlap with NAME and energy of NAME: how
    much of NAME's covariance they hold (:func:`subspace_overlap`, :func:`captured_energy`). What takes a complete basis
    is NaN for others. :func:`nadtools.plot_spectra` draws the spectra of the same dict.
    """
    checks.instance("nads", nads, Mapping, "a dict from names to NADs")
    rows: dict[str, dict[str, Any]] = {}
    for name, one in nads.items():
        checks.instance(f"nads[{name!r}]", one, NADs, "NADs")
        ends = [space.stop for space in one.eigenspaces or () if space.stop <= (one.num_resolved or 0)]
        complete = len(one) == math.prod(one.image_shape)
        effective = float(one.eigenvalues.sum().square() / one.eigenvalues.square().sum()) if complete else math.nan
        row = {"num_resolved": one.num_resolved, "steps": tuple(ends), "rank": one.rank, "effective_rank": effective}
        row |= {f"overlap with {other}": subspace_overlap(one, nads[other], k) for other in nads}
        for other, reference in nads.items():
            known = len(reference) == math.prod(reference.image_shape)
            row[f"energy of {other}"] = captured_energy(one, reference, k) if known else math.nan
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index")
