"""A network as a list of layers at work, and signals that walk through it in both directions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx, nn

from nadtools.analytic.covariance import Covariance
from nadtools.analytic.operations import Call, NoRuleError, Operation, Place
from nadtools.analytic.rules import operation, rule_type
from nadtools.networks import on_images

__all__ = ["Network", "Step", "trace"]


class Step(NamedTuple):
    """One layer at work."""

    name: str  #: of its result
    layer: str  #: its name and type
    inputs: tuple[str, ...]  #: names of the results that it reads
    operation: Operation
    place: Place


@dataclasses.dataclass(frozen=True)
class Network:
    """The layers that lead from the image to the output, in the order of the forward pass; the first is the image."""

    steps: tuple[Step, ...]
    output: str

    @property
    def image(self) -> str:
        """The name of the image's step."""
        return self.steps[0].name

    def backward(self, point: Tensor | None = None) -> dict[str, Covariance]:
        """The covariances of what comes back to every tensor, from the output to the image.

        For the limit of infinite width at an image x₀, if one is given, else for the linear network.
        """
        ahead = self._forward(point) if point is not None else {}
        last = next(step.place for step in self.steps if step.name == self.output)
        if math.prod(last.positions) > 1:
            raise ValueError(f"the network returns the shape {last.shape}; expected one output, or a vector of outputs")
        found = {self.output: Covariance.constant(last.positions, 1 / math.prod(last.shape))}
        met = {self.output: {"output"}}  # weights: signals that met others are uncorrelated
        for step in reversed(self.steps):
            if step.name not in found:
                continue
            before = ahead.get(step.inputs[0]) if step.inputs else None
            weights = {step.name} if step.operation.weights else met[step.name]
            for name, part in zip(step.inputs, step.operation.backward(found[step.name], before), strict=True):
                if part is None:
                    continue
                if weights & met.get(name, set()):
                    both = f"{step.layer} and a layer after it read {name} and meet again without weights on the way"
                    raise NoRuleError(f"{both}: they are correlated; put a convolution in one of the two paths")
                found[name] = found[name] + part if name in found else part
                met[name] = weights | met.get(name, set())
        if self.image not in found:
            raise ValueError("the network's output does not depend on the image")
        return {step.name: found[step.name] for step in reversed(self.steps) if step.name in found}

    def _forward(self, point: Tensor) -> dict[str, Covariance]:
        rows = point.to("cpu", torch.float64).flatten(1)
        found = {self.image: Covariance.from_matrix(rows.T @ rows / len(rows), point.shape[1:])}
        met = {self.image: {self.image}}
        for step in self.steps[1:]:
            before = [met[name] for name in step.inputs]
            if step.operation.forward is None or sum(map(len, before)) > len(set().union(*before)):
                raise NoRuleError(f"{step.layer} has no rule at infinite width: try averages or nonlinearity='linear'")
            found[step.name] = step.operation.forward([found[name] for name in step.inputs])
            met[step.name] = {step.name} if step.operation.weights else set().union(*before)
        return found


class _Tracer(fx.Tracer):
    proxy_buffer_attributes = True

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return rule_type(m) is not None or super().is_leaf_module(m, module_qualified_name)


class _Recorder(fx.Interpreter):
    """Runs a network and keeps, for each node, the shape of what depends on the image, and the value of all else."""

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if n.meta["depends"] and isinstance(value, tuple):  # of attention, or chunks
            n.meta["value"] = getattr(value[0], "shape", None)
            return value
        n.meta["value"] = getattr(value, "shape", None) if n.meta["depends"] else value
        return value


def trace(
    network: nn.Module, image_shape: tuple[int, int, int], signal_variance: float, variances: Mapping[str, float]
) -> Network:
    """Take a network apart, and look up the rule of each layer; the network stays as it is."""
    modes = {module: module.training for module in network.modules()}
    try:
        return _steps(_traced(network.eval(), image_shape), signal_variance=signal_variance, variances=variances)
    finally:
        for module, mode in modes.items():
            module.training = mode


def _traced(network: nn.Module, image_shape: tuple[int, int, int]) -> fx.Graph:
    """The network's graph; its nodes know whether they depend on the image, and their shapes or values."""
    try:
        graph = _Tracer().trace(network)
    except Exception as error:  # any error of the network's own code, run on proxies
        problem = f"torch.fx cannot trace the network ({type(error).__name__}: {error})"
        raise ValueError(f"{problem}; do without branches that depend on values, or use estimate_nads") from error
    runnable = fx.GraphModule(network, graph)
    graph.eliminate_dead_code()
    for number, node in enumerate(graph.nodes):
        parents = any(parent.meta["depends"] for parent in node.all_input_nodes)
        # Sizes are constants for us.
        node.meta["depends"] = number == 0 or (parents and node.target not in ("size", "dim", getattr))
    parameter = next(network.parameters(), torch.zeros(()))
    x = torch.zeros(2, *image_shape, device=parameter.device, dtype=parameter.dtype)
    with on_images(x, " (say what it takes by in_channels=... and image_size=...)"), torch.no_grad():
        _Recorder(runnable, graph=graph).run(x)
    return graph


def _steps(graph: fx.Graph, **settings: Any) -> Network:
    image, *nodes = graph.nodes
    output = nodes.pop().args[0]
    if not isinstance(output, fx.Node) or not output.meta["depends"]:
        raise ValueError("the network returns no tensor that depends on the image; expected one output each")
    last = output  # but for its shape
    while len(last.all_input_nodes) == 1 and last.op != "call_module":
        last = last.all_input_nodes[0]
    places = {image: Place(tuple(image.meta["value"][1:]), "cpp")}
    steps = [Step(image.name, "image", (), Operation("cpp", lambda *_: []), places[image])]
    used: set[str] = set()
    for node in (node for node in nodes if node.meta["depends"]):
        call = _call(node, places, is_output=node is last, **settings)
        if call.name in used:
            call.refuse("its weights are used twice, so that they are not independent")
        if call.module is not None and any(weight.ndim > 1 for weight in call.module.parameters()):
            used.add(call.name)
        found = operation(call)
        places[node] = Place(call.shape, found.kinds, found.level)
        inputs = tuple(parent.name for parent in _tensors(node))
        steps.append(Step(node.name, f"{call.name} ({call.kind})", inputs, found, places[node]))
    return Network(tuple(steps), output.name)


def _tensors(node: fx.Node) -> list[fx.Node]:
    """The inputs that depend on the image, as often and in the order in which the layer reads them."""
    found: list[fx.Node] = []
    fx.node.map_arg((node.args, node.kwargs), lambda n: found.append(n) if n.meta["depends"] else None)
    return found


def _call(node: fx.Node, places: Mapping[fx.Node, Place], **settings: Any) -> Call:
    module, name = None, node.name
    function: Any = node.target
    if node.op == "call_module":
        name = str(node.target)
        module = function = node.graph.owning_module.get_submodule(name)  # type: ignore[union-attr]
    elif node.op == "call_method":
        function = getattr(Tensor, str(node.target))
    kind = type(module).__name__ if module is not None else getattr(node.target, "__name__", str(node.target))
    if module is None and (inside := [name for name, _ in node.meta.get("nn_module_stack", {}).values() if name]):
        name = f"{node.name} in {inside[-1]}"
    shape = node.meta["value"]
    if shape is None or len(shape) < 2 or shape[0] != 2:
        raise NoRuleError(f"{name} ({kind}) joins the images of a batch, which has no rule")
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda n: places.get(n, n.meta["value"]))
    inputs = tuple(places[parent] for parent in _tensors(node))
    return Call(name, kind, module, function, args, kwargs, inputs, tuple(shape[1:]), **settings)
