r"""From an architecture to its NADs: fresh networks, exact averages, and an estimate that says how good it is.

Source: *Neural Anisotropy Directions*, section 3. The work is a sum over networks that are drawn independently, each
bound to its index. So it can be split among processes or machines, interrupted and continued, and comes out the same.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
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
from nadtools.moments import GradientMoments, gradients, mixed_derivatives, secants
from nadtools.nads import NADs
from nadtools.networks import Architecture, NetworkSource, differences, fingerprint, network_source
from nadtools.output_layer import Output, Selected
from nadtools.progress import progress_bar
from nadtools.symmetries import SymmetryGroup, check_group, contradicted_symmetry, symmetries_of
from nadtools.units import as_finished, in_this_process

__all__ = ["Architecture", "Estimator", "EvaluationPoint", "estimate_nads"]

Estimator = Literal["secant", "gradient", "mixed"]
EvaluationPoint = Literal["zero", "normal"] | Tensor | Callable[[torch.Generator], Tensor]

_POINT, _PROBES = 1, 2  # random streams beside that of the weights
_NUM_BLOCKS = 10
_CHECKED_NETWORKS = 16  # for the check of a group that was named, not proven
_BATCH_SIZES = {"cpu": 128, "cuda": 4096}
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
    output: Output | None
    variance: float | None  # of the output weights, where they are averaged out
    batch_size: int
    device: torch.device

    def draw(self, index: int) -> nn.Module:
        """Draw the network with this index; torch.compile would hide its layers."""
        network = self.source(derive_seed(self.seed, index))
        network = getattr(network, "_orig_mod", network)
        return network if self.output is None else Selected(network, self.output)

    def moments(self) -> GradientMoments:
        return GradientMoments(self.image_shape, self.group, _NUM_BLOCKS, self.device)


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
    symmetries: SymmetryGroup | Literal["auto"] = "auto",
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

    Parameters
    ----------
    architecture : str or callable
        A name that :func:`nadtools.build` knows, or a callable without arguments that returns a new, freshly
        initialised ``nn.Module``: a network of your own, of torchvision or of timm. It may draw its weights from
        PyTorch's global generator, which is seeded for it and put back afterwards.
    num_networks : int
        How many networks to draw; with ``until``, at most. The network with index i depends on ``seed`` and i alone.
    estimator : {"secant", "gradient", "mixed"}
        ``"secant"``: finite differences with a step of ``scale`` along every pixel, as in the code of the paper.
        ``"gradient"``: the gradient, as in the text of the paper (section 3).
        ``"mixed"``: the mixed second derivatives with respect to parameters and input, the paper's other
        decomposition (equation 5), by random probes.
    seed : int
    scale : float
        Step of the secant, in pixel units.
    evaluation_point : {"normal", "zero"}, Tensor or callable
        Where to take secants or derivatives. ``"normal"``, the default: at x₀ ~ N(0, I), drawn anew for each network;
        ``"zero"``: at x₀ = 0; a tensor of shape (channels, h, w); or a callable that draws one from a
        ``torch.Generator``. (At 0 a network without biases has no gradient, and secants whatever the scale.)
    num_probes : int
        Random probes in parameter space for each network, for ``"mixed"``.
    average_output_layer : bool
        Average the last linear layer out exactly (for ``"mixed"``, its block of the matrix). Where the network has
        none, or its weights do not have mean zero and equal variance, a warning says so and the layer is sampled.
    output : int, str or callable, optional
        Of several outputs C is the mean of theirs; an int takes one. Where the result is no tensor: the key of a dict,
        the number in a tuple, or a function of the result that gives one.
    symmetries : {"auto", "none", "transpose", "reflections", "square"}
        The group to average over. "auto" takes the group that is proven for a named architecture, and none for a
        callable or where the evaluation point breaks the symmetry. A group that you name for a callable is checked
        against the first networks, and a warning is given if they contradict it.
    until : (int, float), optional
        ``(k, target)``: stop as soon as two halves of the networks overlap by the target on their first k directions
        (:func:`nadtools.subspace_overlap`). Looked at after 4, 6, 8, 12, 16, 24... networks.
    in_channels, image_size : int, (int, int)
    batch_size : int, optional
        Images that go through a network at once; by default 128, on a GPU 4096. The result does not depend on it but
        for rounding.
    checkpoint : path, optional
        A ``.npz`` file that keeps what has been computed. The same call goes on where an interrupted one stopped.
    num_jobs, device, progress
    **build_options
        For a named architecture, passed on to :func:`nadtools.build`: ``width``, ``pooling``...

    Raises
    ------
    TypeError, ValueError
        Also if the networks have no NADs (outputs that are random or not finite, constant, the same each time), or the
        checkpoint belongs to another computation.
    MemoryError
        Before any computing, if the estimate needs more memory than is free.
    """
    num_networks, num_probes = positive_int("num_networks", num_networks), positive_int("num_probes", num_probes)
    checks.flags(average_output_layer=average_output_layer, progress=progress)
    checks.choice("estimator", estimator, get_args(Estimator))
    checks.choice("symmetries", symmetries, ("auto", *get_args(SymmetryGroup)))
    scale, num_jobs = checks.positive_number("scale", scale), checks.number_of_jobs(num_jobs)
    if checkpoint is not None:
        checkpoint = checks.file_path("checkpoint", checkpoint)
    resolved = resolve_device(device)
    batch_size = _BATCH_SIZES[resolved.type] if batch_size is None else positive_int("batch_size", batch_size)
    channels, (height, width) = positive_int("in_channels", in_channels), check_shape("image_size", image_size)
    image_shape = (channels, height, width)
    if until is not None:
        _check_until(until, channels * height * width)
    _check_point(evaluation_point, image_shape)
    if output is not None and not callable(output):
        checks.instance("output", output, (int, str), "an int, a key or a function")
    source = network_source(architecture, image_shape, build_options, chosen={"num_classes": 1}, caller="estimate_nads")
    group, proven = _group(architecture, symmetries, image_shape, evaluation_point, build_options)
    plan = _Plan(
        source, image_shape, estimator, stream(seed, "networks of an estimate"), scale, evaluation_point,
        num_probes, group, output, None, batch_size, resolved,
    )  # fmt: skip
    _check_memory(plan, num_jobs)
    first = output_layer.check_network(plan.draw(0), image_shape, resolved)
    networks.check_networks_differ(first, plan.draw(1))
    if average_output_layer:
        plan = dataclasses.replace(plan, variance=_averaged_variance(plan, first))

    description = _description(plan, first) if checkpoint is not None else {}
    moments, done = _resume(plan, description, checkpoint)
    if not proven and group != "none":
        first_ones = [_jacobian(plan, index).cpu() for index in range(min(num_networks, _CHECKED_NETWORKS))]
        contradiction = contradicted_symmetry(first_ones, group, image_shape)
        if contradiction is not None:
            warnings.warn(f"{contradiction}; averaging over it biases the NADs", stacklevel=4)
    title = f"NADs of {plan.source.name}"
    with progress_bar(None, progress, total=num_networks, initial=len(done), desc=title, unit="network") as bar:
        for total in [num_networks] if until is None else _rounds(num_networks):
            remaining = [index for index in range(total) if index not in done]
            _accumulate(plan, remaining, moments, done, num_jobs, checkpoint, description, bar.update)
            if until is not None and float(moments.halves(held_out=False).overlap[until[0] - 1]) >= until[1]:
                break
    notes = output_layer.switched_off(first, output_layer.find_output_layer(first, image_shape))
    return _result(plan, moments, until, total, seed, notes)


def _result(
    plan: _Plan, moments: GradientMoments, until: tuple[int, float] | None, total: int, seed: int, notes: list[str]
) -> NADs:
    decomposition, halves = moments.eigendecomposition(), moments.halves()
    if float(decomposition.values[0]) == 0:
        raise ValueError(f"the derivatives of all {total} networks vanish: constant at initialisation")
    if until is not None and not float(overlap := halves.overlap[until[0] - 1]) >= until[1]:
        warnings.warn(
            f"after {total} networks the halves overlap by {float(overlap):.3f} on the first "
            f"{until[0]} directions, less than the {until[1]} asked for; allow more networks",
            stacklevel=3,
        )
    metadata = {
        "architecture": plan.source.name,
        "estimator": plan.estimator,
        "num_networks": total,
        "scale": plan.scale if plan.estimator == "secant" else None,
        "evaluation_point": _describe_point(plan.point),
        "num_probes": plan.num_probes if plan.estimator == "mixed" else None,
        "output_weight_variance": plan.variance,
        "symmetries": plan.group,
        **({"output": str(plan.output)} if plan.output is not None else {}),
        **({"notes": notes} if notes else {}),
        **storage.provenance(seed, plan.device),
    }
    shape = plan.image_shape[1:] if plan.image_shape[0] == 1 else plan.image_shape
    vectors = decomposition.vectors.to(torch.float32).reshape(-1, *shape)
    own = decomposition.values, decomposition.standard_errors
    return NADs(vectors, *own, halves.overlap, metadata, halves.held_out, halves.held_out_stderr)


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
    if plan.estimator == "secant":
        jacobian = secants(function, point, plan.scale, plan.batch_size)
    else:
        jacobian = gradients(function, point, num_outputs, plan.batch_size)
    if plan.estimator != "mixed":
        return jacobian * (plan.variance if plan.variance is not None else 1 / num_outputs) ** 0.5
    if network(point[None].clone()).numel() > 1:
        raise ValueError("got several outputs for the estimator 'mixed'; take one, for instance by output=0")
    # The mixed derivatives with respect to the output weights are the gradients of the features.
    parameters = [p for p in network.requires_grad_(True).parameters() if cut is None or p is not cut.layer.weight]
    probes = generator(torch.device("cpu"), plan.seed, index, _PROBES)
    mixed = mixed_derivatives(network, parameters, point, plan.num_probes, probes)
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
    moments: GradientMoments,
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
) -> Iterator[tuple[Sequence[int], Callable[[GradientMoments], None]]]:
    """Some networks at a time, and a function that adds them to moments."""
    if in_this_process(num_jobs):
        for index in indices:
            yield [index], functools.partial(GradientMoments.add, index=index, jacobian=_jacobian(plan, index))
        return
    chunk = max(1, -(-len(indices) // (8 * joblib.effective_n_jobs(num_jobs))))
    chunks = [indices[start : start + chunk] for start in range(0, len(indices), chunk)]
    calls = (functools.partial(_moments_of, plan, chunk) for chunk in chunks)
    for finished, state in as_finished(calls, num_jobs):
        part = plan.moments()
        part.restore(state)
        yield finished, functools.partial(GradientMoments.merge, other=part)


def _description(plan: _Plan, network: nn.Module) -> dict[str, Any]:
    """What a checkpoint and a computation must have in common."""
    point = _draw_point(plan, 0).detach().cpu().double().flatten()
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
    }


def _describe_point(point: EvaluationPoint) -> str:
    if isinstance(point, Tensor):
        return "tensor"
    return point if isinstance(point, str) else getattr(point, "__qualname__", type(point).__name__)


def _save(
    moments: GradientMoments, done: set[int], checkpoint: str | os.PathLike[str], description: dict[str, Any]
) -> bool:
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
) -> tuple[GradientMoments, set[int]]:
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


def _check_until(until: tuple[int, float], dimension: int) -> None:
    k, target = checks.pair("until", until)
    positive_int("until[0]", k, dimension)
    if not 0 < checks.number("until[1]", target) <= 1:
        raise ValueError(f"got until={until}; expected (k, target) with a target overlap between 0 and 1")


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
    symmetries: SymmetryGroup | Literal["auto"],
    image_shape: tuple[int, int, int],
    point: EvaluationPoint,
    build_options: dict[str, Any],
) -> tuple[SymmetryGroup, bool]:
    """The group to average over, and whether it is proven for this architecture."""
    proven: SymmetryGroup = "none"
    if isinstance(architecture, str) and isinstance(point, str):
        options = {key: build_options[key] for key in ("pooling", "strides", "patch_size") if key in build_options}
        proven = architectures.symmetry_group(architecture, image_shape[1:], **options)
    group = check_group(proven if symmetries == "auto" else symmetries, image_shape)
    return group, set(symmetries_of(group)) <= set(symmetries_of(proven))


def _check_memory(plan: _Plan, num_jobs: int | None) -> None:
    """Refuse an estimate whose sums would not fit, with what to do instead."""
    dimension = math.prod(plan.image_shape)
    # The group's sectors hold their share of the D x D entries; bases, eigenvectors and work space are dense.
    sums = _NUM_BLOCKS * dimension**2 * 8 / len(symmetries_of(plan.group))
    # Processes of joblib's share this machine's memory; those of a cluster have their own.
    sharing = 1 if in_this_process(num_jobs) else 1 + joblib.effective_n_jobs(num_jobs)
    advice = "use a smaller image_size or fewer in_channels" + (", or a smaller num_jobs" if sharing > 1 else "")
    needed = int(sharing * sums + 5 * dimension**2 * 8)
    require_memory(needed, f"NADs of images of shape {plan.image_shape}", advice, plan.device)


def _averaged_variance(plan: _Plan, network: nn.Module) -> float | None:
    """Variance of the output weights if they can be averaged out, else None, with a warning that says why."""
    cut = output_layer.find_output_layer(network, plan.image_shape)
    if cut is None:
        reason = "the network does not end in a linear layer"
    else:
        if cut.is_shared(plan.image_shape):
            raise ValueError("the output layer's weights are used elsewhere, too; set average_output_layer=False")
        variance = output_layer.output_weight_variance(plan.draw, cut)
        if variance is not None:
            return variance
        reason = "the initial weights of the output layer do not have mean zero and equal variance"
    warnings.warn(f"{reason}: its output layer is sampled, not averaged", stacklevel=5)
    return None
