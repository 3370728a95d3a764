r"""From an architecture to its NADs: fresh networks, exact averages, and an estimate that says how good it is.

Source: *Neural Anisotropy Directions*, section 3. The work is a sum over networks that are drawn independently, each
bound to its index. So it can be split among processes or machines, interrupted and continued, and comes out the same.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import math
import operator
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import joblib
import torch
from torch import Tensor, nn

from nadtools import architectures, checks, networks, output_layer, storage
from nadtools import symmetries as groups
from nadtools.checks import check_shape, positive_int
from nadtools.device import (
    DerivedSeed,
    derive_seed,
    full_precision,
    generator,
    require_memory,
    resolve_device,
    stream,
    unaffected_by_context,
)
from nadtools.moments import GradientMoments, Sketch, fix_signs, gradients, mixed_derivatives, secants
from nadtools.nads import NADs, orthonormal_rows
from nadtools.networks import Architecture, NetworkSource, Output, add_tensor, differences, fingerprint, network_source
from nadtools.progress import progress_bar
from nadtools.symmetries import SymmetryGroup, symmetries_of
from nadtools.units import as_finished, in_this_process

__all__ = ["Architecture", "Estimator", "EvaluationPoint", "estimate_nads"]

Estimator = Literal["secant", "gradient", "mixed"]
EvaluationPoint = Literal["zero", "normal"] | Tensor | Callable[[torch.Generator], Tensor]
Moments = GradientMoments | Sketch

_POINT, _PROBES = 1, 2  # random streams beside that of the weights
_NUM_BLOCKS = 10
_CHECKED_NETWORKS = 16  # for the check of a group that was named, not proven
_BATCH_SIZES = {"cpu": 128, "cuda": 4096}
_BATCH_INPUTS = {"cpu": 2**21, "cuda": 2**25}  # pixels and channels of all images of a batch
_COLUMNS = 1024  # of a Jacobian, for an estimate of its memory before a network is drawn
_SECONDS_BETWEEN_CHECKPOINTS = 20.0


@dataclasses.dataclass(frozen=True)
class _Plan:
    """All that a process needs to work on a network with a given index."""

    source: NetworkSource
    image_shape: tuple[int, int, int]
    estimator: Estimator
    seed: DerivedSeed
    scale: float
    point: EvaluationPoint
    num_probes: int
    group: SymmetryGroup
    permutations: tuple[Tensor, ...]
    basis: Tensor | None  # (m, D): the span to stay in
    num_directions: int | None
    variance: float | None  # of the output weights, where they are averaged out
    batch_size: int
    device: torch.device

    def draw(self, index: int) -> nn.Module:
        """Draw the network with this index; torch.compile would hide its layers."""
        network = self.source(derive_seed(self.seed, index))
        return getattr(network, "_orig_mod", network)

    @property
    def dimension(self) -> int:
        return math.prod(self.image_shape) if self.basis is None else len(self.basis)

    def moments(self) -> Moments:
        if self.num_directions is not None:
            return Sketch(self.dimension, self.num_directions, self.device)
        shape = self.image_shape if self.basis is None else (1, 1, self.dimension)
        return GradientMoments(shape, self.group, _NUM_BLOCKS, self.device)


@unaffected_by_context()
def estimate_nads(
    architecture: Architecture,
    num_networks: int = 20,
    estimator: Estimator = "secant",
    seed: int = 0,
    *,
    scale: float = 100.0,
    evaluation_point: EvaluationPoint = "normal",
    num_probes: int = 8,
    average_output_layer: bool = True,
    output: Output | None = None,
    symmetries: SymmetryGroup | Literal["auto"] | Sequence[Tensor] = "auto",
    basis: Tensor | None = None,
    num_directions: int | None = None,
    until: tuple[int, float] | None = None,
    in_channels: int = 1,
    image_size: tuple[int, int] = (32, 32),
    batch_size: int | None = None,
    num_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    device: str | torch.device | None = None,
    progress: bool = True,
    **build_options: Any,
) -> NADs:
    r"""Estimate the NADs of an architecture from freshly initialised networks.

    Two averages are taken exactly instead of by sampling, which is why twenty networks can do the work of thousands:
    over the output layer (see :mod:`nadtools.output_layer`), and over the symmetries of the image under which the
    architecture's law is invariant (see :mod:`nadtools.symmetries`).

    Args:
        architecture: A name that :func:`nadtools.build` knows, or a callable without arguments that returns a new,
            freshly initialised ``nn.Module``: a network of your own, of torchvision or of timm. It may draw its weights
            from PyTorch's global generator, which is seeded for it and put back afterwards. Batch normalisation is the
            identity in a fresh network, unless the callable calibrates it: ``torch.optim.swa_utils.update_bn``.
        num_networks: How many networks to draw; with ``until``, at most. The network with index i depends on ``seed``
            and i alone.
        estimator: ``"secant"``: finite differences with a step of ``scale`` along every pixel, as in the code of the
            paper. ``"gradient"``: the gradient, as in the text of the paper (section 3). ``"mixed"``: the mixed second
            derivatives with respect to parameters and input, the paper's other decomposition (equation 5), by random
            probes.
        scale: Step of the secant, in pixel units.
        evaluation_point: Where to take secants or derivatives. ``"normal"``, the default: at x₀ ~ N(0, I), drawn anew
            for each network; ``"zero"``: at x₀ = 0; a tensor of shape (channels, h, w); or a callable that draws one
            from a ``torch.Generator``. (At 0 a network without biases has no gradient, and secants whatever the scale.)
        num_probes: Random probes in parameter space for each network, for ``"mixed"``.
        average_output_layer: Average the last linear layer out exactly (for ``"mixed"``, its block of the matrix).
            Where the network has none, or its weights do not have mean zero and equal variance, a warning says so and
            the layer is sampled.
        output: Of several outputs C is the mean of theirs; an int takes one. Where the result is no tensor: the key of
            a dict, the number in a tuple, or a function of the result that gives one.
        symmetries: The group to average over. "auto" takes the group that is proven for a named architecture, and none
            for a callable or where something given breaks the symmetry. Or permutations that generate a group of your
            own (for up to 3,072 inputs): of shape (h, w), for all channels alike, or (channels, h, w), each says for
            every input from which one it comes, as ``torch.arange(h * w).reshape(h, w).roll(4, dims=1)`` does. What is
            not proven is checked against the first networks, and a warning is given if they contradict it.
        basis: Orthonormal directions (m, h, w) or (m, channels, h, w): secants are taken along these instead of the
            pixels, and the result is m NADs inside their span. Without symmetries.
        num_directions: Only the first so many, for images too large for D x D numbers: by gradients 3 x 224 x 224 fits
            into 4 GB. No eigenvalue is too large, or too small by more than ``metadata["bound"]``: see
            :class:`nadtools.moments.Sketch`, also for the proof. There are no standard errors. Without symmetries.
        until: ``(k, target)``: stop as soon as two halves of the networks overlap by the target on their first k
            directions (:func:`nadtools.subspace_overlap`). Looked at after 4, 6, 8, 12, 16, 24... networks.
        batch_size: Images that go through a network at once; by default 128, on a GPU 4096, fewer if they are large.
            The result does not depend on it but for rounding.
        checkpoint: A ``.npz`` file that keeps what has been computed. The same call goes on where an interrupted one
            stopped.
        **build_options: For a named architecture, passed on to :func:`nadtools.build`: ``width``, ``pooling``...

    Raises:
        TypeError, ValueError: Also if the networks have no NADs (outputs that are random or not finite, constant, the
            same each time), or the checkpoint belongs to another computation.
        MemoryError: Before any computing, if the estimate needs more memory than is free.
    """
    num_networks, num_probes = positive_int("num_networks", num_networks), positive_int("num_probes", num_probes)
    checks.flags(average_output_layer=average_output_layer, progress=progress)
    checks.choice("estimator", estimator, get_args(Estimator))
    scale, num_jobs = checks.positive_number("scale", scale), checks.number_of_jobs(num_jobs)
    if checkpoint is not None:
        checkpoint = checks.file_path("checkpoint", checkpoint)
    resolved = resolve_device(device)
    channels, (height, width) = positive_int("in_channels", in_channels), check_shape("image_size", image_size)
    image_shape, dimension = (channels, height, width), channels * height * width
    fitting = max(1, min(_BATCH_SIZES[resolved.type], _BATCH_INPUTS[resolved.type] // dimension))
    batch_size = fitting if batch_size is None else positive_int("batch_size", batch_size)
    if basis is not None:
        expected = image_shape if channels > 1 else image_shape[1:]
        basis = orthonormal_rows("basis", basis, len(checks.tensor("basis", basis)), expected, 1e-4).to(
            resolved, torch.float32
        )
    count = dimension if basis is None else len(basis)
    if num_directions is not None:
        count = num_directions = positive_int("num_directions", num_directions, count)
    if until is not None:
        positive_int("until[0]", checks.pair("until", until)[0], count)
        if not 0 < checks.number("until[1]", until[1]) <= 1:
            raise ValueError(f"got until={until}; expected (k, target) with a target overlap between 0 and 1")
    _check_point(evaluation_point, image_shape)
    source = network_source(
        architecture, image_shape, build_options, chosen={"num_classes": 1}, caller="estimate_nads", output=output
    )
    if basis is not None or num_directions is not None:
        if not isinstance(symmetries, str) or symmetries not in ("auto", "none"):
            raise ValueError("got symmetries with a basis or num_directions, which average over none; leave them out")
        symmetries = "none"
    group, permutations, unproven = _group(architecture, symmetries, image_shape, evaluation_point, build_options)
    plan = _Plan(
        source, image_shape, estimator, stream(seed, "networks of an estimate"), scale, evaluation_point, num_probes,
        group, permutations, basis, num_directions, None, batch_size, resolved,
    )  # fmt: skip
    _check_memory(plan, num_jobs)
    first = output_layer.check_network(plan.draw(0), image_shape, resolved)
    networks.check_networks_differ(first, plan.draw(1))
    if average_output_layer:
        plan = dataclasses.replace(plan, variance=output_layer.averaged_variance(plan.draw, first, image_shape))

    description = _description(plan, first) if checkpoint is not None else {}
    moments, done = _resume(plan, description, checkpoint)
    orbits = groups.orbits_of_pairs(permutations) if permutations else None
    if unproven:
        first_ones = [_jacobian(plan, index).cpu() for index in range(min(num_networks, _CHECKED_NETWORKS))]
        contradiction = groups.contradicted_symmetry(first_ones, unproven)
        if contradiction is not None:
            warnings.warn(f"{contradiction}; averaging over it biases the NADs", stacklevel=4)
    title = f"NADs of {plan.source.name}"
    with progress_bar(None, progress, total=num_networks, initial=len(done), desc=title, unit="network") as bar:
        for total in [num_networks] if until is None else _rounds(num_networks):
            remaining = [index for index in range(total) if index not in done]
            _accumulate(plan, remaining, moments, done, num_jobs, checkpoint, description, bar.update)
            if orbits is not None and isinstance(moments, GradientMoments):
                moments.average_over(orbits)
            if until is not None and float(moments.halves(held_out=False).overlap[until[0] - 1]) >= until[1]:
                break
    notes = output_layer.switched_off(first, output_layer.find_output_layer(first, image_shape))
    return _result(plan, moments, until, total, seed, notes)


def _result(
    plan: _Plan, moments: Moments, until: tuple[int, float] | None, total: int, seed: int, notes: list[str]
) -> NADs:
    decomposition, halves = moments.eigendecomposition(), moments.halves()
    if float(decomposition.values[0]) == 0:
        remedy = "" if plan.variance else "; average_output_layer=True replaces output weights of zero"
        raise ValueError(f"the derivatives of all {total} networks vanish: constant at initialisation{remedy}")
    if until is not None and not float(overlap := halves.overlap[until[0] - 1]) >= until[1]:
        warnings.warn(
            f"after {total} networks the halves overlap by {float(overlap):.3f} on the first "
            f"{until[0]} directions, less than the {until[1]} asked for; allow more networks",
            stacklevel=3,
        )
    point = "tensor" if isinstance(plan.point, Tensor) else plan.point
    shape = plan.image_shape[1:] if plan.image_shape[0] == 1 else plan.image_shape
    vectors, restricted = decomposition.vectors.to(torch.float32), dict[str, Any]()
    if plan.basis is not None:
        vectors, restricted["span"] = fix_signs(vectors @ plan.basis.cpu()), plan.dimension
        notes = [*notes, f"inside the span of {plan.dimension} given directions"]
    if isinstance(moments, Sketch):
        restricted["bound"] = moments.bound
        if moments.bound > 1e-3 * float(decomposition.values[-1]):
            notes = [*notes, f"an eigenvalue may be too small by {moments.bound:.2g}"]
    if len(vectors) < math.prod(plan.image_shape):
        restricted["num_directions"] = len(vectors)
    metadata = {
        "architecture": plan.source.name,
        "estimator": plan.estimator,
        "num_networks": total,
        "scale": plan.scale if plan.estimator == "secant" else None,
        "evaluation_point": point if isinstance(point, str) else getattr(point, "__qualname__", type(point).__name__),
        "num_probes": plan.num_probes if plan.estimator == "mixed" else None,
        "output_weight_variance": plan.variance,
        "symmetries": f"{len(plan.permutations)} permutations" if plan.permutations else plan.group,
        **restricted,
        **({"output": str(plan.source.output)} if plan.source.output is not None else {}),
        **({"notes": notes} if notes else {}),
        **storage.provenance(seed, plan.device),
    }
    own = decomposition.values, decomposition.standard_errors
    return NADs(vectors.reshape(-1, *shape), *own, halves.overlap, metadata, halves.held_out, halves.held_out_stderr)


@full_precision()
def _jacobian(plan: _Plan, index: int) -> Tensor:
    """J of shape (D, k), such that J J^T is the contribution of the network with this index."""
    network = output_layer.check_network(plan.draw(index), plan.image_shape, plan.device)
    if any(isinstance(module, nn.Conv2d) for module in network.modules()):
        # Faster on CPUs and on tensor cores, and the same function.
        network = network.to(memory_format=torch.channels_last)
    cut = output_layer.find_output_layer(network, plan.image_shape) if plan.variance is not None else None
    if plan.variance is not None and cut is None:
        raise ValueError(f"network {index} does not end in a linear layer, while the first one does")
    point = _draw_point(plan, index).to(plan.device, torch.float32)
    function = cut.features if cut else lambda x: network(x).reshape(len(x), -1)
    num_outputs = cut.layer.in_features if cut else function(point[None].clone()).shape[1]
    in_span = (lambda j: j) if plan.basis is None else plan.basis.matmul
    if plan.estimator == "secant":
        jacobian = secants(function, point, plan.scale, plan.batch_size, plan.basis)
    else:
        jacobian = in_span(gradients(function, point, num_outputs, plan.batch_size))
    if plan.estimator != "mixed":
        return jacobian.mul_((plan.variance if plan.variance is not None else 1 / num_outputs) ** 0.5)
    if network(point[None].clone()).numel() > 1:
        raise ValueError("got several outputs for the estimator 'mixed'; take one, for instance by output=0")
    # The mixed derivatives with respect to the output weights are the gradients of the features.
    parameters = [p for p in network.requires_grad_(True).parameters() if cut is None or p is not cut.layer.weight]
    probes = generator(torch.device("cpu"), plan.seed, index, _PROBES)
    mixed = in_span(mixed_derivatives(network, parameters, point, plan.num_probes, probes))
    return mixed if cut is None else torch.cat([jacobian, mixed], dim=1)


def _moments_of(plan: _Plan, indices: Sequence[int]) -> tuple[Sequence[int], dict[str, Tensor]]:
    """The unit of work of a process: the moments of some networks."""
    moments = plan.moments()
    for index in indices:
        moments.add(index, _jacobian(plan, index))
    return indices, moments.state()


def _draw_point(plan: _Plan, index: int) -> Tensor:
    if isinstance(plan.point, Tensor):
        return plan.point
    if plan.point == "zero":
        return torch.zeros(plan.image_shape)
    source = generator(torch.device("cpu"), plan.seed, index, _POINT)
    if plan.point == "normal":
        return torch.randn(plan.image_shape, generator=source)
    assert callable(plan.point)
    drawn = plan.point(source)
    _check_point(drawn, plan.image_shape)
    return drawn


def _rounds(num_networks: int) -> Iterator[int]:
    """4, 6, 8, 12, 16, 24, 32, 48... up to the number of networks."""
    totals = (total for power in itertools.count(2) for total in (2**power, 3 * 2 ** (power - 1)))
    yield from itertools.takewhile(lambda total: total < num_networks, totals)
    yield num_networks


def _accumulate(
    plan: _Plan,
    indices: Sequence[int],
    moments: Moments,
    done: set[int],
    num_jobs: int | None,
    checkpoint: str | os.PathLike[str] | None,
    description: dict[str, Any],
    advance: Callable[[int], Any],
) -> None:
    """Add the networks with these indices to the moments, by joblib; keep the checkpoint up to date."""
    if not indices:
        return
    saved_at, consistent = time.monotonic(), True
    try:
        for finished, add_to in _contributions(plan, indices, num_jobs):
            consistent = False
            add_to(moments)
            done.update(finished)
            del add_to  # a Jacobian, which may be large
            consistent = True
            advance(len(finished))
            if checkpoint is not None and time.monotonic() - saved_at > _SECONDS_BETWEEN_CHECKPOINTS:
                _save(moments, done, checkpoint, description)
                saved_at = time.monotonic()
    except BaseException as error:
        # Ctrl-C in the middle of an addition leaves the file as it was.
        if checkpoint is not None and consistent and _save(moments, done, checkpoint, description):
            error.add_note(f"{len(done)} networks are kept in {checkpoint}; the same call goes on from there.")
        raise
    if checkpoint is not None:
        _save(moments, done, checkpoint, description)


def _contributions(
    plan: _Plan, indices: Sequence[int], num_jobs: int | None
) -> Iterator[tuple[Sequence[int], Callable[[Any], None]]]:
    """Some networks at a time, and a function that adds them to moments."""
    if in_this_process(num_jobs):
        for index in indices:
            yield [index], operator.methodcaller("add", index, _jacobian(plan, index))
        return
    chunk = max(1, -(-len(indices) // (8 * joblib.effective_n_jobs(num_jobs))))
    chunks = [indices[start : start + chunk] for start in range(0, len(indices), chunk)]
    calls = (functools.partial(_moments_of, plan, chunk) for chunk in chunks)
    for finished, state in as_finished(calls, num_jobs):
        part = plan.moments()
        part.restore(state)
        yield finished, operator.methodcaller("merge", part)


def _description(plan: _Plan, network: nn.Module) -> dict[str, Any]:
    """What a checkpoint and a computation must have in common."""
    point = _draw_point(plan, 0).detach().cpu().double().flatten()
    digest, given = hashlib.sha256(), [t for t in (*plan.permutations, plan.basis) if t is not None]
    for tensor in given:
        add_tensor(digest, tensor)
    return {
        "kind": "moments",
        **fingerprint(plan.source, network, plan.image_shape),
        "estimator": plan.estimator,
        "seed": plan.seed,
        "scale": plan.scale,
        "first_evaluation_point": [float(point.norm()), *point[:64].tolist()],
        "num_probes": plan.num_probes,
        "output_weight_variance": plan.variance,
        "symmetries": plan.group,
        "image_shape": list(plan.image_shape),
        **({"num_directions": plan.num_directions} if plan.num_directions is not None else {}),
        **({"tensors_given": digest.hexdigest()} if given else {}),
    }


def _save(moments: Moments, done: set[int], checkpoint: str | os.PathLike[str], description: dict[str, Any]) -> bool:
    """Whether the checkpoint could be written: a full disk ends no estimate."""
    arrays = {name: tensor.numpy() for name, tensor in moments.state().items()}
    done_indices = torch.tensor(sorted(done), dtype=torch.int64).numpy()
    try:
        storage.write_arrays(checkpoint, {"done": done_indices, **arrays}, description, compress=False)
    except OSError as error:
        warnings.warn(f"{error.strerror}. Without it the estimate cannot be resumed if it is interrupted", stacklevel=2)
        return False
    return True


def _resume(
    plan: _Plan, description: dict[str, Any], checkpoint: str | os.PathLike[str] | None
) -> tuple[Moments, set[int]]:
    moments = plan.moments()
    if checkpoint is None:
        return moments, set()
    path = Path(checkpoint)
    if path.suffix != ".npz" or not path.parent.is_dir():
        raise ValueError(f"got checkpoint={str(path)!r}; expected a file name ending in '.npz' in a folder that exists")
    if not path.exists():
        return moments, set()
    arrays, metadata = storage.read_arrays(path)
    different = differences(metadata, json.loads(json.dumps(description)))
    if different:
        reason = f"belongs to another computation (different: {'; '.join(different)})"
        raise ValueError(f"{path} {reason}; delete it or name another file")
    state = {name: torch.from_numpy(array) for name, array in arrays.items()}
    done = {int(index) for index in state.pop("done")}
    moments.restore(state)
    return moments, done


def _check_point(point: object, image_shape: tuple[int, int, int]) -> None:
    if isinstance(point, Tensor):
        if checks.tensor("evaluation_point", point).shape != image_shape:
            raise ValueError(f"got evaluation_point of shape {tuple(point.shape)}; expected {image_shape}")
    elif callable(point):
        checks.function("evaluation_point", point, "a function of a torch.Generator", 1)
    else:
        checks.choice("evaluation_point", point, get_args(get_args(EvaluationPoint)[0]))


def _group(
    architecture: Architecture,
    symmetries: SymmetryGroup | Literal["auto"] | Sequence[Tensor],
    image_shape: tuple[int, int, int],
    point: EvaluationPoint,
    build_options: dict[str, Any],
) -> tuple[SymmetryGroup, tuple[Tensor, ...], dict[str, Tensor]]:
    """The named group to average over, permutations of one's own, and which of all these are not proven, by name."""
    if not isinstance(symmetries, str):
        given = groups.check_permutations(symmetries, image_shape)
        return "none", given, {f"the permutation symmetries[{number}]": one for number, one in enumerate(given)}
    checks.choice("symmetries", symmetries, ("auto", *get_args(SymmetryGroup)))
    proven: SymmetryGroup = "none"
    if isinstance(architecture, str) and isinstance(point, str):
        options = {key: build_options[key] for key in ("pooling", "strides", "patch_size") if key in build_options}
        proven = architectures.symmetry_group(architecture, image_shape[1:], **options)
    group = groups.check_group(proven if symmetries == "auto" else symmetries, image_shape)
    is_proven = set(symmetries_of(group)) <= set(symmetries_of(proven))
    return group, (), {} if is_proven else groups.permutations_of(group, image_shape)


def _check_memory(plan: _Plan, num_jobs: int | None) -> None:
    """Refuse an estimate whose sums would not fit, with what to do instead."""
    dimension = plan.dimension
    if plan.num_directions is not None:
        moments = Sketch(dimension, plan.num_directions)
        # Both factors and their successors; a Jacobian in single precision; vectors.
        sums, shared = dimension * (32 * moments.rank + 8 * _COLUMNS), 32 * dimension * moments.num_directions
        advice = "ask for fewer num_directions, or use a smaller image_size"
    else:
        # The group's sectors hold their share of the D x D entries; bases, eigenvectors and work space are dense.
        sums, shared = 8 * _NUM_BLOCKS * dimension**2 // len(symmetries_of(plan.group)), 40 * dimension**2
        advice = "ask for the first ones by num_directions=..., or use a smaller image_size or fewer in_channels"
    # Processes of joblib's share this machine's memory; those of a cluster have their own.
    sharing = 1 if in_this_process(num_jobs) else 1 + joblib.effective_n_jobs(num_jobs)
    advice += ", or a smaller num_jobs" if sharing > 1 else ""
    require_memory(sharing * sums + shared, f"NADs of images of shape {plan.image_shape}", advice, plan.device)
