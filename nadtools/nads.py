r"""From an architecture to its neural anisotropy directions.

NADs are the eigenvectors of the covariance :math:`E_\theta[g g^T]` of a network's input gradients over its random
initialisations, largest eigenvalue first. Source: *Neural Anisotropy Directions*, section 3; the alignment
:math:`\alpha(v)` is equation (2) of *A neural anisotropic view of underspecification*.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from nadtools import architectures, storage
from nadtools.device import check_seed, derive_seed, full_precision, generator, isolated_random_state, resolve_device
from nadtools.directions import as_direction, check_shape
from nadtools.moments import GradientMoments, fix_signs, gradients, secants
from nadtools.output_layer import check_network, find_output_layer, output_weight_variance
from nadtools.progress import progress_bar
from nadtools.symmetries import SymmetryGroup, check_group

__all__ = ["Estimator", "NADs", "captured_energy", "estimate_nads", "subspace_overlap"]

Estimator = Literal["secant", "gradient"]
Architecture = str | Callable[[], nn.Module]

_POINT = 1  # the random stream of evaluation points, apart from that of the weights
_KIND = "NADs"


@dataclasses.dataclass(frozen=True, eq=False)
class NADs:
    """A complete orthonormal basis of image space, ranked by an architecture's preference.

    Attributes
    ----------
    vectors : Tensor
        Shape (D, h, w), or (D, channels, h, w) for several channels; float32, first NAD first. The sign of each is
        fixed: the first pixel, row by row, that reaches half of the largest magnitude is positive.
    eigenvalues : Tensor
        Shape (D,), float64: of the uncentred covariance, descending.
    eigenvalue_stderr : Tensor
        Shape (D,), float64: one standard error of each; NaN where there is no estimate.
    metadata : dict
        What they were made from: estimator, number of networks, seed, versions...
    """

    vectors: Tensor
    eigenvalues: Tensor
    eigenvalue_stderr: Tensor
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        count, dimension = len(self.vectors), self.vectors[0].numel()
        if self.vectors.ndim not in (3, 4) or count != dimension:
            raise ValueError(
                f"got vectors of shape {tuple(self.vectors.shape)}; expected a complete basis, (D, h, w) or "
                "(D, channels, h, w) with D entries in each; NADs.from_vectors completes a basis"
            )
        for name in ("eigenvalues", "eigenvalue_stderr"):
            if getattr(self, name).shape != (count,):
                raise ValueError(f"got {name} of shape {tuple(getattr(self, name).shape)}; expected ({count},)")

    @classmethod
    def from_vectors(cls, vectors: Tensor, eigenvalues: Tensor, **metadata: Any) -> NADs:
        """Make NADs from ranked vectors that are orthonormal up to rounding, and may be fewer than D.

        The vectors are made orthonormal in their order (Gram-Schmidt, in float64) and completed to a basis by
        directions of eigenvalue 0; the completion is the one of Householder's QR decomposition.

        Parameters
        ----------
        vectors : Tensor
            Shape (n, h, w) or (n, channels, h, w), n <= D.
        eigenvalues : Tensor
            Shape (n,), descending.

        Raises
        ------
        ValueError
            If the vectors are not close to orthonormal (1e-2) or the eigenvalues do not fit or do not descend.
        """
        count, dimension = len(vectors), vectors[0].numel()
        rows = vectors.reshape(count, -1).to(torch.float64)
        if not 1 <= count <= dimension or not bool(torch.isfinite(rows).all()):
            raise ValueError(
                f"got {count} vectors of {dimension} entries; expected between 1 and {dimension} finite ones"
            )
        deviation = float((rows @ rows.T - torch.eye(count, dtype=torch.float64)).abs().max())
        if deviation > 1e-2:
            raise ValueError(f"got vectors that miss orthonormality by {deviation:.2g}; expected at most 0.01")
        values = torch.as_tensor(eigenvalues).to(torch.float64)
        if values.shape != (count,) or bool((values[1:] > values[:-1]).any()) or float(values[-1]) < 0:
            raise ValueError(
                f"got eigenvalues of shape {tuple(values.shape)}; expected ({count},), descending, none negative"
            )
        basis = torch.linalg.qr(rows.T, mode="complete").Q.T
        return cls(
            fix_signs(basis).to(torch.float32).reshape(dimension, *vectors.shape[1:]),
            torch.cat([values, values.new_zeros(dimension - count)]),
            torch.full((dimension,), math.nan, dtype=torch.float64),
            metadata,
        )

    @property
    def image_shape(self) -> tuple[int, ...]:
        """(h, w) or (channels, h, w)."""
        return tuple(self.vectors.shape[1:])

    def covariance(self) -> Tensor:
        """The covariance that the NADs diagonalise: shape (D, D), float64."""
        rows = self.vectors.flatten(1).to(torch.float64)
        return (rows.T * self.eigenvalues) @ rows

    def alignment(self, v: Tensor) -> float:
        r"""How well a direction suits the architecture: :math:`\alpha(v) = v^T E[g g^T] v`, v scaled to unit norm.

        Raises
        ------
        TypeError, ValueError
            If v is not a direction of this image shape.
        """
        v = as_direction(v, self.image_shape).to("cpu", torch.float64).flatten()
        return float((self.vectors.flatten(1).to(torch.float64) @ v).square() @ self.eigenvalues)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a ``.npz`` file, atomically; :meth:`load` reads it."""
        arrays = {
            "vectors": self.vectors.numpy(),
            "eigenvalues": self.eigenvalues.numpy(),
            "eigenvalue_stderr": self.eigenvalue_stderr.numpy(),
        }
        return storage.write_arrays(path, arrays, {**self.metadata, "kind": _KIND})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NADs:
        """Read what :meth:`save` wrote.

        Raises
        ------
        FileNotFoundError, ValueError
            If there is no such file, it is damaged, or holds something else.
        """
        arrays, metadata = storage.read_arrays(path)
        if metadata.pop("kind", None) != _KIND:
            raise ValueError(f"{path} does not hold NADs; it holds {sorted(arrays)}")
        return cls(**{name: torch.from_numpy(array) for name, array in arrays.items()}, metadata=metadata)


def estimate_nads(
    architecture: Architecture,
    num_networks: int = 20,
    estimator: Estimator = "secant",
    seed: int = 0,
    *,
    scale: float = 100.0,
    average_output_layer: bool = True,
    symmetries: SymmetryGroup | Literal["auto"] = "auto",
    in_channels: int = 1,
    image_size: tuple[int, int] = (32, 32),
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    progress: bool = True,
) -> NADs:
    r"""Estimate the NADs of an architecture from freshly initialised networks.

    Two averages are taken exactly instead of by sampling, which is why twenty networks can do the work of thousands:
    over the output layer (see :mod:`nadtools.output_layer`), and over the symmetries of the image under which the
    architecture's law is invariant (see :mod:`nadtools.symmetries`).

    Parameters
    ----------
    architecture : str or callable
        A name that :func:`nadtools.build` knows, or a callable without arguments that returns a new, freshly
        initialised ``nn.Module`` with one output for each image. It may draw its weights from PyTorch's global
        generator, which is seeded for it and put back afterwards.
    num_networks : int
        How many networks to draw. The network with index i depends on ``seed`` and i alone.
    estimator : {"secant", "gradient"}
        ``"secant"``: finite differences with a step of ``scale`` along every pixel, around x₀ = 0: what the code of
        the paper computes. ``"gradient"``: the gradient at x₀ ~ N(0, I), drawn anew for each network: what the text
        of the paper says.
    seed : int
    scale : float
        Step of the secant, in pixel units.
    average_output_layer : bool
        Average the last linear layer out exactly. Where the network has none, or its initial weights do not have
        mean zero, a warning says so and the layer is sampled.
    symmetries : {"auto", "none", "transpose", "reflections", "square"}
        The group to average over. "auto" takes the group that is proven for a named architecture, and none for a
        callable.
    in_channels : int
    image_size : (int, int)
    batch_size : int, optional
        Images that go through a network at once; the result does not depend on it.
    device : str, torch.device or None
    progress : bool
        Show a progress bar.

    Returns
    -------
    NADs

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or the networks have no NADs (several outputs, random or not finite).
    """
    num_networks, batch = _positive_int("num_networks", num_networks), _positive_int("batch_size", batch_size or 256)
    if estimator not in get_args(Estimator):
        raise ValueError(f"unknown estimator {estimator!r}; known are {', '.join(map(repr, get_args(Estimator)))}")
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"got scale={scale}; expected a positive number of pixel units")
    resolved = resolve_device(device)
    image_shape = (_positive_int("in_channels", in_channels), *check_shape(image_size))
    assert len(image_shape) == 3
    name, draw = _network_source(architecture, image_shape, check_seed(seed))
    if symmetries == "auto":
        known = isinstance(architecture, str)
        symmetries = architectures.symmetry_group(name, image_shape[1:]) if known else "none"
    group = check_group(symmetries, image_shape)

    first = check_network(draw(0), image_shape, resolved)
    variance = _averaged_variance(draw, first, image_shape) if average_output_layer else None
    moments = GradientMoments(image_shape, group, num_blocks=min(num_networks, 10), device=resolved)
    with full_precision():
        for index in progress_bar(range(num_networks), progress, desc=f"NADs of {name}", unit="network"):
            network = first if index == 0 else check_network(draw(index), image_shape, resolved)
            cut = find_output_layer(network, image_shape) if variance is not None else None
            function = cut.features if cut else functools.partial(_column, network)
            if estimator == "secant":
                origin = torch.zeros(image_shape, device=resolved)
                jacobian = secants(function, origin, scale, batch)
            else:
                point = torch.randn(image_shape, generator=generator(torch.device("cpu"), seed, index, _POINT))
                jacobian = gradients(function, point.to(resolved), cut.layer.in_features if cut else 1, batch)
            moments.add(index, jacobian, weight=1.0 if variance is None else variance)
    decomposition = moments.eigendecomposition()
    if float(decomposition.values[0]) == 0:
        raise ValueError(
            f"the gradient of {name} vanishes for all {num_networks} networks: its output is constant at initialisation"
        )
    shape = image_shape[1:] if image_shape[0] == 1 else image_shape
    metadata = {
        "architecture": name,
        "estimator": estimator,
        "num_networks": num_networks,
        "scale": scale if estimator == "secant" else None,
        "output_weight_variance": variance,
        "symmetries": group,
        **storage.provenance(seed, resolved),
    }
    vectors = decomposition.vectors.to(torch.float32).reshape(-1, *shape)
    return NADs(vectors, decomposition.values, decomposition.standard_errors, metadata)


def subspace_overlap(a: Tensor, b: Tensor, k: int) -> float:
    r"""Overlap of the spans of the first k vectors: :math:`\|A_k^T B_k\|_F^2 / k`, between 0 and 1.

    Independent random subspaces overlap by k/D on average.

    Parameters
    ----------
    a, b : Tensor
        Orthonormal vectors, shape (n, ...), n >= k.
    k : int

    Raises
    ------
    ValueError
        If the shapes differ or there are fewer than k vectors.
    """
    k = _positive_int("k", k)
    if a.shape[1:] != b.shape[1:] or min(len(a), len(b)) < k:
        raise ValueError(f"got vectors of shapes {tuple(a.shape)} and {tuple(b.shape)}; expected at least {k} alike")
    first, second = (vectors[:k].flatten(1).to(torch.float64) for vectors in (a, b))
    return float((first @ second.T).square().sum()) / k


def captured_energy(vectors: Tensor, reference: NADs, k: int) -> float:
    r"""Energy of a covariance in the span of k vectors, against its own best: tr(V_kᵀ C V_k) / (λ₁ + … + λ_k).

    Unlike the overlap of subspaces it does not mind the order of directions whose eigenvalues nearly coincide.

    Parameters
    ----------
    vectors : Tensor
        Orthonormal, shape (n, ...), n >= k.
    reference : NADs
        Whose covariance and eigenvalues are meant.
    k : int
    """
    k = _positive_int("k", k)
    if tuple(vectors.shape[1:]) != reference.image_shape or len(vectors) < k:
        raise ValueError(
            f"got vectors of shape {tuple(vectors.shape)}; expected at least {k} of {reference.image_shape}"
        )
    coordinates = vectors[:k].flatten(1).to(torch.float64) @ reference.vectors.flatten(1).to(torch.float64).T
    return float((coordinates.square() @ reference.eigenvalues).sum() / reference.eigenvalues[:k].sum())


def _network_source(
    architecture: Architecture, image_shape: tuple[int, int, int], seed: int
) -> tuple[str, Callable[[int], nn.Module]]:
    """The architecture's name, and a function that draws its network with a given index."""
    if isinstance(architecture, str):
        build = functools.partial(architectures.build, architecture, image_shape[0], 1, image_size=image_shape[1:])
        build()  # the errors of build, before anything is computed
        return architecture, lambda index: build(seed=derive_seed(seed, index))
    if not callable(architecture) or isinstance(architecture, nn.Module):
        raise TypeError(
            f"got an architecture of type {type(architecture).__name__}; expected a name or a callable "
            "without arguments that builds a new network each time, for instance lambda: MyNetwork(num_outputs=1)"
        )
    factory = architecture

    def draw(index: int) -> nn.Module:
        with isolated_random_state(derive_seed(seed, index)):
            return factory()

    return getattr(architecture, "__name__", type(architecture).__name__), draw


def _averaged_variance(
    draw: Callable[[int], nn.Module], network: nn.Module, image_shape: tuple[int, int, int]
) -> float | None:
    """Variance of the output weights if they can be averaged out, else None, with a warning that says why."""
    cut = find_output_layer(network, image_shape)
    if cut is None:
        warnings.warn(
            "the network does not end in a linear layer: its output layer is sampled, not averaged", stacklevel=3
        )
        return None
    variance = output_weight_variance(draw, cut)
    if variance is None:
        warnings.warn(
            "the initial weights of the output layer do not have mean zero: they are sampled, not averaged",
            stacklevel=3,
        )
    return variance


def _column(network: nn.Module, x: Tensor) -> Tensor:
    return network(x).reshape(len(x), 1)


def _positive_int(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"got {name}={value!r} of type {type(value).__name__}; expected a positive int") from None
    if number < 1:
        raise ValueError(f"got {name}={number}; expected a positive int")
    return number
