"""Freshly initialised networks from a name or a callable, and what tells one computation from another.

A name says little about what is computed: two lambdas share theirs, and a network's weights do not show whether it
pools by means or by maxima. So a computation is known by what its first network does: see :func:`fingerprint`.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from nadtools import architectures, checks
from nadtools.device import isolated_random_state

__all__ = [
    "Architecture", "NetworkSource", "Output", "Selected", "add_tensor", "check_independent_images",
    "check_networks_differ", "differences", "fingerprint", "network_source", "on_images",
]  # fmt: skip

Architecture = str | Callable[[], nn.Module]
Output = int | str | Callable[[Any], Tensor]

_PROBE_SCALES = (0.1, 1.0, 30.0)  # a clipped activation differs from an unclipped one at large inputs only
_NOTHING = object()
_TOLERANCE = 1e-5  # relative, in float64: far above the rounding of other machines, threads and batch sizes


class Selected(nn.Module):
    """A network of which one output counts, or the tensor behind a key, or what a function makes of its result."""

    def __init__(self, network: nn.Module, output: Output) -> None:
        super().__init__()
        # torch.compile would hide its layers.
        self.network, self.output = getattr(network, "_orig_mod", network), output

    def forward(self, x: Tensor) -> Tensor:
        """The chosen outputs, (n, k) for a batch of n images."""
        result = self.network(x)
        if callable(self.output):
            return self.output(result)
        try:
            of_tensor = isinstance(result, Tensor) and isinstance(self.output, int)
            chosen: Tensor = result.flatten(1)[:, self.output, None] if of_tensor else result[self.output]
        except (LookupError, TypeError) as error:
            raise ValueError(f"got output={self.output!r}, which its result lacks ({error})") from error
        return chosen


@dataclasses.dataclass(frozen=True)
class NetworkSource:
    """Draws networks of one architecture."""

    name: str  #: for people: no computation is recognised by it alone
    build: Callable[..., nn.Module]  #: with an argument ``seed`` if ``named``, else without arguments
    named: bool  #: one of nadtools.available(); if not, PyTorch's global generator is seeded around the call
    build_options: Mapping[str, Any]  #: of a named architecture, beside image size, channels and outputs
    output: Output | None = None  #: what counts of the network's result: see :class:`Selected`

    def __call__(self, seed: int) -> nn.Module:
        """Draw the network of a seed."""
        if self.named:
            network = self.build(seed=seed)
        else:
            with isolated_random_state(seed):
                network = self.build()
        return network if self.output is None else Selected(network, self.output)


def network_source(
    architecture: Architecture,
    image_shape: tuple[int, int, int],
    build_options: Mapping[str, Any],
    *,
    chosen: Mapping[str, Any],
    caller: str,
    output: Output | None = None,
) -> NetworkSource:
    """A source of networks for images of shape (channels, h, w).

    ``build_options`` are the user's, ``chosen`` those that the calling function sets itself; messages name the caller.
    """
    channels, *size = image_shape
    if output is not None and not callable(output):
        checks.instance("output", output, (int, str), "an int, a key or a function")
    if isinstance(architecture, str):
        fixed = {"in_channels": channels, "image_size": tuple(size), **chosen}
        for option in ("seed", *fixed):
            if option in build_options:
                raise TypeError(f"got {option}={build_options[option]!r}, which {caller} chooses itself")
        known = inspect.signature(architectures.build).parameters
        unknown = [option for option in build_options if option not in known]
        if unknown:
            raise TypeError(f"got {unknown[0]}={build_options[unknown[0]]!r}, which {caller} and nadtools.build lack")
        build = functools.partial(architectures.build, architecture, **fixed, **build_options)
        return NetworkSource(architecture, build, True, dict(build_options), output)
    if not callable(architecture) or isinstance(architecture, nn.Module):
        kind = type(architecture).__name__
        raise TypeError(f"got an architecture of type {kind}; expected a name or a callable: lambda: MyNetwork()")
    if build_options:
        raise TypeError(f"got {', '.join(build_options)} for a callable architecture, or {caller} has no such argument")
    name = getattr(architecture, "__name__", type(architecture).__name__)
    return NetworkSource(name, architecture, False, {}, output)


def fingerprint(source: NetworkSource, network: nn.Module, image_shape: tuple[int, int, int]) -> dict[str, Any]:
    """What computations on networks like this first one of the source must have in common, as JSON can hold it.

    The name, the build options, a digest of the module's structure (as PyTorch prints it) and of the initial weights,
    and the outputs on fixed probes, in evaluation and in training mode: where modules do not show what a network does,
    its outputs do. :func:`differences` compares them. The network is left as it is.
    """
    weights = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        weights.update(f"{name} ".encode())
        add_tensor(weights, value)
    return {
        "architecture": source.name,
        "build_options": json.loads(json.dumps(dict(source.build_options), default=repr)),
        # What a module prints of its parts may hold addresses.
        "structure": hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", repr(network)).encode()).hexdigest(),
        "first_network": weights.hexdigest(),
        "outputs": _outputs(network, image_shape, training=False),
        "outputs_in_training": _outputs(network, image_shape, training=True),
    }


def add_tensor(digest: Any, value: Tensor) -> None:
    """Add dtype, shape and bytes of a tensor to a digest of :mod:`hashlib`."""
    digest.update(f"{value.dtype} {tuple(value.shape)}\0".encode())
    digest.update(value.detach().cpu().contiguous().flatten().clone().view(torch.uint8).numpy().tobytes())


def _outputs(network: nn.Module, image_shape: tuple[int, int, int], *, training: bool) -> list[list[float]] | None:
    """Outputs on two probes of each scale, on the CPU and in float64 where the network allows; None where it fails."""
    probes = torch.randn(2, *image_shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = torch.cat([scale * probes for scale in _PROBE_SCALES])
    for dtype in (torch.float64, torch.float32):
        try:
            # A copy: batch normalisation changes its statistics in training mode.
            copied = copy.deepcopy(network).to("cpu", dtype).train(training)
            with torch.no_grad(), isolated_random_state(0):
                outputs = copied(x.to(dtype)).double().nan_to_num(0.0, 0.0, 0.0)
            return [[float(f"{value:.9g}") for value in row] for row in outputs.flatten(1).tolist()]
        except (RuntimeError, ValueError, TypeError, AttributeError, IndexError):
            continue
    return None


def differences(stored: Any, asked: Any, where: str = "") -> list[str]:
    """Name what differs between two descriptions (JSON values) of a computation called ``where``.

    Rows of numbers are compared to a tolerance.
    """
    if isinstance(stored, dict) and isinstance(asked, dict):
        return [
            found
            for key in sorted({*stored, *asked})
            for found in differences(stored.get(key, _NOTHING), asked.get(key, _NOTHING), f"{where}.{key}".lstrip("."))
        ]
    if _is_row(stored) and _is_row(asked) and len(stored) == len(asked):
        scale = max(map(abs, (*stored, *asked)), default=0.0)
        return [where] if any(abs(a - b) > _TOLERANCE * scale for a, b in zip(stored, asked, strict=True)) else []
    if isinstance(stored, list) and isinstance(asked, list) and len(stored) == len(asked):
        alike = not any(differences(a, b) for a, b in zip(stored, asked, strict=True))
    else:
        alike = stored is asked or stored == asked
    if alike:
        return []
    texts = ("nothing" if value is _NOTHING else repr(value) for value in (stored, asked))
    shown = [text if len(text) <= 40 else "another" for text in texts]
    return [where if shown == ["another"] * 2 else f"{where}: {shown[0]} there, {shown[1]} here"]


def _is_row(value: Any) -> bool:
    return (
        isinstance(value, list)
        and any(isinstance(v, float) for v in value)
        and not any(isinstance(v, bool) or not isinstance(v, int | float) for v in value)
    )


@contextlib.contextmanager
def on_images(x: Tensor, remark: str = "") -> Iterator[None]:
    """Say, where a network fails inside the block, that it does so on images like these."""
    try:
        yield
    except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as error:
        kind = f"images of shape {tuple(x.shape[1:])} and {x.dtype}"
        raise ValueError(f"the network does not accept {kind}{remark}: {error}") from error


def check_independent_images(network: nn.Module, x: Tensor) -> None:
    """Refuse a network, in evaluation mode, whose output for an image depends on the other images of its batch."""
    with torch.no_grad():
        together, alone = network(x.clone()), network(x[:1].clone())
    if not torch.allclose(together[:1], alone, rtol=1e-3, atol=1e-3 * float(together.abs().max())):
        raise ValueError("an output depends on the other images of its batch; let the network treat them one by one")


def check_networks_differ(first: nn.Module, second: object) -> None:
    """Refuse a callable that returns the same network, or the same weights, twice."""
    if first is second:
        raise ValueError("the callable returned the same network twice; expected a new one from each call")
    if isinstance(second, nn.Module):
        mine, other = ([value.cpu() for value in network.state_dict().values()] for network in (first, second))
        if mine and len(mine) == len(other) and all(map(torch.equal, mine, other)):
            same = "the callable returned two networks with the same weights"
            raise ValueError(f"{same}; let it draw new ones from PyTorch's global generator, without setting a seed")
