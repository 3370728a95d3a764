"""Bad calls: each argument of each public function is replaced, one at a time, by values of every wrong kind.

A call must either return, where the value is one that the argument may have (``ACCEPTED``), or raise ValueError,
TypeError or FileNotFoundError with the argument's name in the message, before a network is trained or differentiated,
in seconds, and within 2 GB. `make test` runs every 11th of the 18,000 calls; this runs them all, in some three minutes:

    BAD_CALLS=all python -m pytest tests/library/test_bad_calls.py
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from companion.chapter_03 import descent, landscape
from companion.chapter_04 import dipoles
from small_networks import SMALL, Network

import nadtools as nt
from nadtools import boundaries, ensembles, images, moments
from nadtools.moments import GradientMoments
from nadtools.theory import deep_linear, pooling

resource = pytest.importorskip("resource")

EVERY = 1 if os.environ.get("BAD_CALLS") == "all" else 11
SECONDS, BYTES = 60.0, 2 * 2**30


def _quantised() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are on their way out of PyTorch
        return torch.quantize_per_tensor(torch.ones(8, 8), 0.1, 0, torch.qint8)


VALUES: dict[str, Any] = {
    "None": None,
    "nan": math.nan,
    "inf": math.inf,
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "True": True,
    "10**30": 10**30,
    "10**400": 10**400,
    "1e300": 1e300,
    "1j": 1j,
    "''": "",
    "'x'": "x",
    "b''": b"",
    "[]": [],
    "{}": {},
    "object": object(),
    "lambda": lambda: None,
    "path": Path("nowhere/x"),
    "array": np.ones((8, 8)),
    "objects": np.array([None, "x"]),
    "int64": torch.ones(8, 8, dtype=torch.int64),
    "bool": torch.ones(8, 8, dtype=torch.bool),
    "complex": torch.ones(8, 8, dtype=torch.complex64),
    "float8": torch.ones(8, 8).to(torch.float8_e5m2),
    "NaN tensor": torch.full((8, 8), math.nan),
    "infinite tensor": torch.full((8, 8), math.inf),
    "zeros": torch.zeros(8, 8),
    "NaN number": torch.tensor(math.nan),
    "meta": torch.ones(8, 8, device="meta"),
    "meta number": torch.ones((), device="meta"),
    "sparse": torch.eye(8).to_sparse(),
    "quantised": _quantised(),
    "empty": torch.empty(0),
    "no images": torch.empty(0, 1, 8, 8),
    "five": torch.ones(5),
    "module": torch.nn.ReLU(),
    "bfloat16": torch.bfloat16,
    "int dtype": torch.int64,
}

V = nt.fourier_atom(SMALL, (1, 2))
BASIS = nt.fourier_basis(SMALL)
NADS = nt.NADs.from_vectors(BASIS, torch.linspace(2, 1, 64))
D = nt.LinearlySeparable(V)
X, Y = D.sample(16, device="cpu")
LABELLED = nt.Labelled(X, Y)
WHOLE = nt.concatenate(D, nt.LinearlySeparable(nt.fourier_atom(SMALL, (2, 2))))
RESPONSE = [1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05]
TAPS = pooling.pooling_matrix("average", 2, 8)
PIXELS = {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y, "mean": torch.zeros(1), "std": torch.ones(1)}
IMAGES = nt.Images(**PIXELS, class_names=("a", "b"), source="test")
ARRAYS = {"x_train": (X[:, 0] > 0).float().numpy(), "y_train": Y.numpy()}
ARRAYS |= {"x_test": ARRAYS["x_train"], "y_test": ARRAYS["y_train"]}
DRAWN = {"size": 8, "channels": 1, "per_class": 2, "test_per_class": 2, "seed": 0}
LANDSCAPE = {"m": 1.0, "learning_rate": 0.1, "steps": 2, "start": (1.0, 0.1), "extent": (-0.5, 4.0), "resolution": 5}
MODEL = {"prefilter": RESPONSE, "stride": 2}
WEIGHTS = {"sigma_theta": 1.0, "sigma_phi": 1.0}
NOISE = {"epsilon": 1.0, "sigma": 3.0}
DEVICE = {"device": "cpu", "dtype": torch.float32}
FAST = {"device": "cpu", "progress": False}
ESTIMATE = {"estimator": "secant", "seed": 0, "scale": 10.0, "evaluation_point": torch.zeros(1, 8, 8), "num_probes": 1}
ESTIMATE |= {"average_output_layer": False, "symmetries": "none", "until": (2, 0.01), "in_channels": 1}
ESTIMATE |= {"image_size": SMALL, "batch_size": 64, "num_jobs": 1, "checkpoint": None, **FAST}
SWEEP = {**NOISE, "num_train": 8, "num_test": 8, "config": nt.TrainConfig(epochs=1), "seeds": [0], "loss_level": 0.1}
SWEEP |= {"networks_at_once": 1, "journal": None, "num_jobs": 1, **FAST}
POISON = {"x": X, "nads": NADS, "index": 0, "epsilon": 0.05}
PLANE = {"points": X, "first": BASIS[1], "second": BASIS[2], "dtype": torch.float32}
FOURIER = {"prefilter": "average", "stride": 2, "size": 8, "phase": 0.0}


def network() -> torch.nn.Module:
    return nt.build("logreg", image_size=SMALL)


def single() -> torch.nn.Module:
    return Network()


def pair() -> torch.nn.Module:
    return Network(outputs=2)


@functools.wraps(nt.load_images)
def _load_images(source: Any, **options: Any) -> nt.Images:
    np.savez("a.npz", **ARRAYS)
    return nt.load_images(source, **options)


class _Fresh:
    """An argument that a call changes, so that each gets its own."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


NETWORK = _Fresh(network)
LEVEL = nt.TrainResult(1.0, 1.0, 0.1, 0.1, None, False, torch.linspace(1, 0, 20))
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "fourier_atom": (nt.fourier_atom, {"shape": SMALL, "frequency": (1, 2), "phase": 0.5, **DEVICE}),
    "fourier_modes": (nt.fourier_modes, {"shape": SMALL}),
    "fourier_basis": (nt.fourier_basis, {"shape": SMALL, **DEVICE}),
    "fourier_energy": (nt.fourier_energy, {"v": V}),
    "random_direction": (nt.random_direction, {"shape": SMALL, "seed": 0, **DEVICE}),
    "random_basis": (nt.random_basis, {"shape": SMALL, "seed": 0, **DEVICE}),
    "as_direction": (nt.directions.as_direction, {"v": V, "shape": SMALL}),
    "LinearlySeparable": (nt.LinearlySeparable, {"v": V, **NOISE}),
    "LinearlySeparable.sample": (D.sample, {"n": 4, "seed": 0, "device": "cpu", "labels": Y[:4]}),
    "Labelled": (nt.Labelled, {"x": X, "y": Y}),
    "Labelled.sample": (LABELLED.sample, {"n": 4, "seed": 0, "device": "cpu"}),
    "Concatenated": (nt.Concatenated, {"parts": (D, LABELLED)}),
    "Concatenated.sample": (WHOLE.sample, {"n": 4, "seed": 0, "device": "cpu", "labels": Y[:4]}),
    "Concatenated.direction": (WHOLE.direction, {"part": 0, "v": V}),
    "Concatenated.only": (lambda parts: WHOLE.only(parts), {"parts": 0}),
    "SwitchOff": (WHOLE.only(0), {"x": torch.ones(2, 2, 8, 8)}),
    "concatenate": (lambda parts: nt.concatenate(D, parts), {"parts": D}),
    "build": (
        nt.build,
        {"name": "lenet", "in_channels": 1, "num_classes": 2, "width": 0.1, "pooling": True, "strides": True}
        | {"init": "pytorch", "image_size": (16, 16), "seed": 0},
    ),
    "build mlp": (nt.build, {"name": "mlp", "hidden": (3, 2), "image_size": SMALL}),
    "symmetry_group": (nt.symmetry_group, {"name": "lenet", "image_size": (32, 32), "pooling": True, "strides": True}),
    "subspace_overlap": (nt.subspace_overlap, {"a": BASIS, "b": BASIS, "k": 3}),
    "captured_energy": (nt.captured_energy, {"vectors": BASIS, "reference": NADS, "k": 3}),
    "NADs": (
        nt.NADs,
        {name: getattr(NADS, name) for name in ("vectors", "eigenvalues")}
        | {"eigenvalue_stderr": NADS.eigenvalues, "split_half_overlap": NADS.eigenvalues, "metadata": {}},
    ),
    "NADs.from_vectors": (nt.NADs.from_vectors, {"vectors": BASIS[:3], "eigenvalues": torch.ones(3)}),
    "NADs.alignment": (NADS.alignment, {"v": V}),
    "NADs.alignments": (NADS.alignments, {"directions": BASIS[:3]}),
    "NADs.load": (nt.NADs.load, {"path": "nowhere.npz"}),
    "NADs.save": (NADS.save, {"path": "saved.npz", "half_precision": False}),
    "secants": (
        moments.secants,
        {"function": lambda x: x.flatten(1), "point": X[0], "scale": 1.0, "batch_size": 8},
    ),
    "gradients": (
        moments.gradients,
        {"function": lambda x: x.flatten(1), "point": X[0], "num_outputs": 2, "batch_size": 8},
    ),
    "estimate_nads": (nt.estimate_nads, {"architecture": single, "num_networks": 2, **ESTIMATE}),
    "estimate_nads logreg": (
        nt.estimate_nads,
        {"architecture": "logreg", "num_networks": 2, "image_size": SMALL, "width": 1.0, "init": "pytorch", **FAST},
    ),
    "TrainConfig": (
        nt.TrainConfig,
        {"epochs": 1, "max_lr": 0.5, "schedule": "linear", "momentum": 0.0, "weight_decay": 0.0, "batch_size": 8}
        | {"clip_norm": 0.5, "seed": 0},
    ),
    "TrainConfig.learning_rate": (nt.TrainConfig().learning_rate, {"step": 0, "num_steps": 2}),
    "TrainResult.steps_to_loss": (LEVEL.steps_to_loss, {"level": 0.5, "window": 2}),
    "train": (
        nt.train,
        {"network": NETWORK, "train_data": (X, Y), "test_data": (X, Y), "config": nt.TrainConfig(epochs=1)}
        | {"evaluate_every": 1, "callback": lambda row: None, **FAST},
    ),
    "train_together": (
        lambda networks, **options: ensembles.train_together(
            [networks] if isinstance(networks, torch.nn.Module) else networks, **options
        ),
        {"networks": NETWORK, "train_data": [(X, Y)], "test_data": [(X, Y)], "configs": [nt.TrainConfig(epochs=1)]}
        | FAST,
    ),
    "evaluate": (nt.evaluate, {"network": NETWORK, "data": (X, Y), "device": "cpu"}),
    "sweep": (nt.sweep, {"architecture": pair, "directions": [V], "views": {"same": lambda x: x}, **SWEEP}),
    "sweep logreg": (nt.sweep, {"architecture": "logreg", "directions": {"a": V}, "width": 1.0, **SWEEP}),
    "Images": (nt.Images, {**PIXELS, "class_names": ("a", "b"), "source": "test"}),
    "Images.normalise": (IMAGES.normalise, {"x": X}),
    "load_images": (
        _load_images,
        {"source": "a.npz", "data_dir": None, "download": False, "progress": False, **DRAWN},
    ),
    "from_arrays": (
        images.from_arrays,
        {**ARRAYS, "class_names": ("a", "b"), "source": "test", **DRAWN},
    ),
    "binary": (images.binary, {"y": Y, "positive_classes": [1]}),
    "poison": (nt.poison, {**POISON, "y": Y, "replace": "own", "num_classes": 2}),
    "decode": (nt.decode, {**POISON, "num_classes": 2}),
    "flip": (nt.flip, {"x": X, "nads": NADS, "order": torch.arange(64)}),
    "cross_section": (
        boundaries.cross_section,
        {"network": NETWORK, **PLANE, "extent": (1.0, 1.0), "resolution": 3, "progress": False},
    ),
    "boundary_angle": (boundaries.boundary_angle, {"network": NETWORK, **PLANE, "radius": 1.0}),
    "margins": (
        boundaries.margins,
        {"network": NETWORK, "direction": BASIS[1], "max_distance": 1.0}
        | {name: PLANE[name] for name in ("points", "dtype")},
    ),
    "pooling_matrix": (pooling.pooling_matrix, {"prefilter": "average", "stride": 2, "size": 8}),
    "pooling_matrix taps": (pooling.pooling_matrix, {"prefilter": [0.5, 0.5], "stride": (2, 2), "size": (8, 8)}),
    "spectral_response": (pooling.spectral_response, {"prefilter": "gaussian", "size": 8, "stride": 2}),
    "aliasing_matrix": (pooling.aliasing_matrix, {"size": 8, "stride": 2}),
    "bayes_accuracy": (pooling.bayes_accuracy, {"v": RESPONSE, "pooling_matrix": TAPS, **NOISE}),
    "monte_carlo_accuracy": (
        pooling.monte_carlo_accuracy,
        {"v": RESPONSE, "pooling_matrix": TAPS, **NOISE, "num_samples": 10, "seed": 0},
    ),
    "theorem1_accuracy": (
        pooling.theorem1_accuracy,
        {"frequency": 1, "prefilter_response": RESPONSE, "stride": 2, **NOISE},
    ),
    "fourier_accuracies": (pooling.fourier_accuracies, {**FOURIER, **NOISE}),
    "kept_shares": (pooling.kept_shares, FOURIER),
    "DeepLinearModel": (deep_linear.DeepLinearModel, {**MODEL, **WEIGHTS, "weights": "normal", "seed": 0}),
    "gradient_covariance": (deep_linear.gradient_covariance, {**MODEL, **WEIGHTS, "as_printed": False}),
    "mixed_second_moment": (deep_linear.mixed_second_moment, {**MODEL, **WEIGHTS, "as_printed": False}),
    "expected_hessian": (
        deep_linear.expected_hessian,
        {"frequency": 1, **MODEL, "sigma_theta": 1.0, **NOISE, "as_printed": False},
    ),
    "expected_hessian_theta": (
        deep_linear.expected_hessian_theta,
        {"frequency": 1, **MODEL, "sigma_phi": 1.0, **NOISE},
    ),
    "curvature_ratio": (deep_linear.curvature_ratio, {"prefilter": RESPONSE, **NOISE}),
    "condition_number": (deep_linear.condition_number, {"prefilter": RESPONSE, **NOISE}),
    "critical_learning_rate": (descent.critical_learning_rate, {**MODEL, "sigma_theta": 1.0, **NOISE}),
    "steps_to_fraction": (
        descent.steps_to_fraction,
        {"curvature": 1.0, "learning_rate": 0.1, "fraction": 0.1},
    ),
    "train_deep_linear": (
        descent.train_deep_linear,
        {**MODEL, "frequencies": [0, 1], "learning_rate": 0.1, "steps": 2, **NOISE, **WEIGHTS, "weights": "normal"}
        | {"learn": "both", "batch_size": 4, "seed": 0},
    ),
    "steps_to_loss": (descent.steps_to_loss, {"losses": torch.ones(3), "level": 0.5, "settle": True}),
    "two_weight_loss": (landscape.two_weight_loss, {"theta": 1.0, "phi": 1.0, "m": 1.0, **NOISE}),
    "two_weight_landscape": (landscape.two_weight_landscape, {**LANDSCAPE, **NOISE}),
    "dipole_gradient_bound": (
        dipoles.dipole_gradient_bound,
        {"alpha": 1.0, "beta": 1.0, "rms_gradient": 1.0, "rms_mixed": 1.0, "mean_mixed": 1.0, "as_printed": False},
    ),
    "dipole_probability": (dipoles.dipole_probability, {"eta": 1.0, "gradient_variance": 1.0, "weights": "normal"}),
    "derive_seed": (nt.device.derive_seed, {"seed": 0}),
    "resolve_device": (nt.device.resolve_device, {"device": "cpu"}),
}

# Values that an argument may have, by its name or by function and name; "[]" stands for what a container holds. None
# is always allowed where it is the default.
POSITIVE = {"1.5", "10**30"}
NOT_NEGATIVE = {"0", *POSITIVE}
REAL = {"-1", *NOT_NEGATIVE}
SEED = {"0", "10**30", "10**400"}
ARRAY = {"0", "1.5", "True", "1e300", "[]", "array", "int64", "bool", "zeros", "empty", "no images", "five"}
ENTRIES = {"-1", "0", "1.5", "True"}
ACCEPTED: dict[str, set[str]] = {
    "device": {"None"},
    "dtype": {"None", "bfloat16"},
    "seed": SEED,
    "seeds[]": SEED,
    **{key: {"True"} for key in ("pooling", "strides", "as_printed", "settle", "half_precision")},
    **{key: {"True"} for key in ("progress", "download", "average_output_layer")},
    **{key: {"None", *POSITIVE} for key in ("variance", "max_lr", "clip_norm", "level", "loss_level", "scale")},
    **{key: {"None", *POSITIVE} for key in ("radius", "max_distance", "extent", "extent[]", "epsilon")},
    **dict.fromkeys(("sigma", "sigma_theta", "sigma_phi", "alpha", "beta"), NOT_NEGATIVE),
    **dict.fromkeys(
        ("momentum", "weight_decay", "two_weight_landscape.learning_rate", "steps_to_loss.level"), NOT_NEGATIVE
    ),
    **dict.fromkeys(("phase", "m", "start[]", "two_weight_landscape.extent[]"), REAL),
    **{key: {"0"} for key in ("part", "parts", "index", "step", "steps", "evaluate_every", "frequency")},
    **{key: {"0"} for key in ("positive_classes[]", "frequencies[]")},
    "frequency[]": {"-1", "0"},
    "theorem1_accuracy.frequency": {"0", "int64"},
    "num_jobs": {"-1"},
    "width": {"1.5"},
    "v": {"int64"},
    "directions[]": {"int64"},
    "journal": {"'x'"},
    "data_dir": {"'x'", "path"},
    "metadata": {"{}"},
    "metadata[]": set(VALUES),
    "source": {"'x'", "''"},
    "views": {"{}"},
    "views[]": {"module"},
    "hidden": {"[]", "empty"},
    "frequencies": {"[]", "empty"},
    "class_names[]": {"''", "'x'"},
    "from_arrays.class_names": {"None"},
    "losses": {"array", "int64", "bool", "infinite tensor", "zeros", "five"},
    "pooling_matrix": {"array", "int64", "bool", "zeros"},
    "prefilter": {"five"},
    "prefilter_response[]": {*ENTRIES, "1j"},
    "prefilter[]": ENTRIES,
    "v[]": {*ENTRIES, "1e300"},
    **dict.fromkeys(("curvature", "learning_rate", "fraction", "eta", "gradient_variance"), ARRAY),
    **dict.fromkeys(("rms_gradient", "rms_mixed", "mean_mixed"), ARRAY),
    **{key: {"-1", *ARRAY} for key in ("theta", "phi")},
}
for array_like in ("bayes_accuracy", "theorem1_accuracy", "fourier_accuracies"):
    ACCEPTED |= {f"{array_like}.epsilon": ARRAY, f"{array_like}.sigma": ARRAY}
    ACCEPTED[f"{array_like}.v"] = {"array", "int64", "bool", "no images"}
for scalar in ("monte_carlo_accuracy", "expected_hessian", "expected_hessian_theta", "curvature_ratio"):
    ACCEPTED[f"{scalar}.epsilon"] = NOT_NEGATIVE
for scalar in ("condition_number", "critical_learning_rate", "train_deep_linear", "two_weight_loss"):
    ACCEPTED[f"{scalar}.epsilon"] = NOT_NEGATIVE
ACCEPTED |= {"two_weight_landscape.epsilon": NOT_NEGATIVE, "TrainConfig.weight_decay": NOT_NEGATIVE}


FUNCTIONS = ("function", "callback", "evaluation_point", "views", "networks")


def variants(value: Any) -> Iterator[tuple[str, Any]]:
    """Bad values for an argument, alone and in the places of what it holds."""
    for name, bad in VALUES.items():
        yield name, bad
        if isinstance(value, tuple | list):
            for place in range(min(len(value), 2)):
                yield f"{name} in place {place}", type(value)([*value[:place], bad, *value[place + 1 :]])
        elif isinstance(value, dict):
            yield f"{name} in a dict", dict.fromkeys(value or ["a"], bad)


def bad_calls(function: str) -> list[tuple[str, str, Any]]:
    """All (argument, name of the value, value) of a function."""
    _, arguments = CALLS[function]
    calls = [(argument, name, bad) for argument, value in arguments.items() for name, bad in variants(value)]
    # A module is a function, too; what it then makes of its argument is its own affair.
    return [call for call in calls if not (call[0] in FUNCTIONS and call[1] == "module")]


@functools.cache
def all_calls() -> dict[str, list[tuple[str, str, Any]]]:
    """Those that are tried now, by function: every so many of all, so that each function has its share."""
    numbered = [(function, *call) for function in CALLS for call in bad_calls(function)]
    assert len(numbered) > 2000
    chosen: dict[str, list[tuple[str, str, Any]]] = {}
    for function, *call in numbered[::EVERY]:
        chosen.setdefault(function, []).append(tuple(call))
    return chosen


@contextlib.contextmanager
def within_two_gigabytes() -> Iterator[None]:
    """No more of the address space than that beyond what there is."""
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def problem_of(function: str, argument: str, name: str, bad: Any, computed: list[str]) -> str | None:
    """What is wrong with the answer to a bad call."""
    call, arguments = CALLS[function]
    given = {key: value.make() if isinstance(value, _Fresh) else value for key, value in arguments.items()}
    given[argument] = bad
    computed.clear()
    start = time.monotonic()
    try:
        # A model without a seed draws from the global generator.
        with within_two_gigabytes(), torch.random.fork_rng(devices=[]):
            call(**given)
        value, *inside = name.split(" in ")
        key = argument + "[]" * len(inside)
        accepted = ACCEPTED.get(f"{function}.{key}", ACCEPTED.get(key, set()))
        if value not in accepted and not (name == "None" and allows_none(call, argument)):
            return "accepted"
    except (ValueError, TypeError, FileNotFoundError) as error:
        if not re.search(rf"\b{argument}\b", str(error)):
            return f"does not name it: {type(error).__name__}: {error}"
        if computed:
            return f"computed ({computed[0]}) before {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if time.monotonic() - start > SECONDS:
        return f"took {time.monotonic() - start:.0f} seconds"
    return None


def allows_none(call: Callable[..., Any], argument: str) -> bool:
    parameter = inspect.signature(call).parameters.get(argument)
    return parameter is not None and parameter.default is None


@pytest.mark.parametrize("function", all_calls())
def test_a_bad_argument_is_named(function, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    computed: list[str] = []
    step, add = torch.optim.SGD.step, GradientMoments.add
    monkeypatch.setattr(torch.optim.SGD, "step", lambda *a, **b: (computed.append("step"), step(*a, **b))[1])
    monkeypatch.setattr(GradientMoments, "add", lambda *a, **b: (computed.append("add"), add(*a, **b))[1])
    problems = {
        f"{function}({argument}={name})": problem
        for argument, name, bad in all_calls()[function]
        if (problem := problem_of(function, argument, name, bad, computed))
    }
    assert not problems, "\n".join(f"{call}: {problem}" for call, problem in problems.items())


ONE_OUTPUT = nt.build("logreg", image_size=SMALL, num_classes=1)
NAN = (X * math.nan, Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nt.evaluate(network(), NAN), "x in data with NaN"),
        (lambda: nt.train(network(), NAN, (X, Y)), "x in train_data with NaN"),
        (lambda: nt.train(network(), (X, Y), NAN), "x in test_data with NaN"),
        (lambda: nt.sweep(pair, [V], views={"gone": lambda x: x * math.nan}, num_train=2, num_test=2), "view 'gone'"),
        (lambda: nt.evaluate(ONE_OUTPUT, (X, Y)), "at least 2 classes"),
        (lambda: nt.evaluate(network(), (X[..., :4], Y)), r"images of shape \(1, 8, 4\) and torch.float32 \(data\)"),
        (lambda: nt.evaluate(network(), (X, Y + 1)), "labels up to 2 in data; the network has 2 outputs"),
        (lambda: nt.evaluate(network(), (X, Y - 1)), "y in data from -1"),
        (lambda: nt.train(network(), (X, Y), (X, Y), config=""), "config of type str"),
        (lambda: nt.estimate_nads(single, image_size=SMALL, until=(10**6, 0.5)), r"until\[0\]=1000000"),
        (lambda: nt.estimate_nads(single, image_size=SMALL, num_jobs=0), "num_jobs=0"),
        (lambda: nt.estimate_nads(single, image_size=SMALL, batch_size=0), "batch_size=0"),
        (lambda: nt.sweep(pair, [V], journal=":memory:"), "journal=':memory:'; expected the path of a file"),
        (lambda: nt.captured_energy(BASIS, BASIS, 3), "reference of type Tensor; expected NADs"),
        (lambda: nt.subspace_overlap(2 * BASIS, BASIS, 3), "a with vectors that miss orthonormality"),
    ],
)
def test_what_was_accepted_or_failed_late_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_a_point_in_double_precision_is_taken():
    options = {"num_networks": 2, "image_size": SMALL, "average_output_layer": False, "batch_size": 64, **FAST}
    point = torch.full((1, 8, 8), 0.5)
    first, second = (nt.estimate_nads(single, evaluation_point=x, **options) for x in (point, point.double()))
    assert torch.equal(first.vectors, second.vectors)


def test_energies_of_integers_and_large_numbers_are_those_of_the_direction():
    v = torch.arange(-32, 32, dtype=torch.int8).reshape(8, 8)
    assert nt.fourier_energy(v).sum() == pytest.approx(1)
    torch.testing.assert_close(nt.fourier_energy(v), nt.fourier_energy(v.float()))
    torch.testing.assert_close(nt.fourier_energy(v.double() * 1e200), nt.fourier_energy(v.double()))


@pytest.mark.parametrize("function", CALLS)
def test_the_calls_are_good_before_they_are_made_bad(function, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    call, arguments = CALLS[function]
    given = {key: value.make() if isinstance(value, _Fresh) else value for key, value in arguments.items()}
    if "nowhere" in str(given.get("path")):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            call(**given)
    else:
        call(**given)
