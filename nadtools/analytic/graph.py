"""A network as a list of layers at work, and signals that walk through it in both directions."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, fx, nn

from nadtools.analytic.covariance import Covariance
from nadtools.analytic.forms import gate_at_rest
from nadtools.analytic.operations import Call, NoRuleError, Operation, Place
from nadtools.analytic.rules import operation, rule_type
from nadtools.analytic.signals import DependentSignals, Signal

__all__ = ["Network", "Step", "trace"]

_CUTS = (torch.chunk, torch.split, "chunk", "split")
_ADVICE = "write the network's forward() without branches that depend on values, or use nadtools.estimate_nads"


@dataclasses.dataclass(frozen=True)
class Step:
    """One layer at work: its qualified name, what it reads, by names of steps, and its rule's operation."""

    name: str
    layer: str
    inputs: tuple[str, ...]
    operation: Operation
    place: Place


@dataclasses.dataclass(frozen=True)
class Network:
    """The layers that lead from the image, called ``image``, to the output, in the order of the forward pass."""

    steps: tuple[Step, ...]
    image: Place
    output: str

    @property
    def notes(self) -> list[str]:
        """What is approximated."""
        return sorted({step.operation.note for step in self.steps if step.operation.note})

    def covariances(self, image: Covariance | None = None) -> dict[str, Signal]:
        """The signals that come back to every tensor, from the output to the image.

        Parameters
        ----------
        image : Covariance, optional
            :math:`x_0 x_0^T`, averaged over channels, for the limit of infinite width; None for the linear network.
        """
        ahead = self._forward(image) if image is not None else {}
        places = {"image": self.image, **{step.name: step.place for step in self.steps}}
        last = places[self.output]
        if any(n > 1 for n in last.sizes("p")):
            raise ValueError(
                f"the network's output has the shape {last.shape}; expected one output, or a vector of outputs"
            )
        channels = last.sizes("c")
        share = 1 / max(1, torch.Size(channels).numel())
        waiting = {self.output: Signal.uniform(channels, Covariance.constant(last.sizes("p"), share), "output")}
        found = {}
        for step in reversed(self.steps):
            if step.name not in waiting:
                continue
            signal = waiting.pop(step.name)
            found[step.name] = signal
            seen = [ahead[name] for name in step.inputs] if ahead else []
            for name, part in zip(step.inputs, step.operation.backward(signal, seen), strict=True):
                if part is None:
                    continue
                try:
                    waiting[name] = waiting[name] + part if name in waiting else part
                except DependentSignals:
                    raise NoRuleError(
                        f"{step.layer} and a layer after it read the output of {name}, and both lead to the same sum "
                        "without independent weights on the way: their signals are correlated, and covariances do "
                        "not add; put a convolution or a linear layer in one of the two paths"
                    ) from None
        if "image" not in waiting:
            raise ValueError("the network's output does not depend on the image")
        return found | {"image": waiting["image"]}

    def _forward(self, image: Covariance) -> dict[str, Signal]:
        found = {"image": Signal.uniform(self.image.sizes("c"), image, "image")}
        for step in self.steps:
            if step.operation.forward is None:
                why = f" ({step.operation.note})" if step.operation.note else ""
                raise NoRuleError(
                    f"{step.layer} has no rule at infinite width{why}; use nonlinearity='linear', or put average "
                    "pooling or another layer with a rule in its place"
                )
            try:
                found[step.name] = step.operation.forward([found[name] for name in step.inputs])
            except DependentSignals:
                raise NoRuleError(f"{step.layer} adds signals that are not independent at infinite width") from None
        return found


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return rule_type(m) is not None or super().is_leaf_module(m, module_qualified_name)


class _Recorder(fx.Interpreter):
    """Runs a network and keeps the sizes of what depends on the image, and all else."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module, garbage_collect_values=True)
        self.seen: dict[str, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        self.seen[n.name] = value.shape if isinstance(value, Tensor) and n.op != "get_attr" else value
        if isinstance(value, tuple) and any(isinstance(part, Tensor) for part in value):
            self.seen[n.name] = tuple(getattr(part, "shape", None) for part in value)
        elif isinstance(value, Tensor) and not _depends(n):
            self.seen[n.name] = value
        return value


def _depends(node: fx.Node) -> bool:
    return bool(node.meta.get("depends"))


def trace(
    network: nn.Module, image_shape: tuple[int, int, int], signal_variance: float, variances: Mapping[str, float]
) -> Network:
    """Take a network apart, and look up the rule of each layer.

    Raises
    ------
    NoRuleError
        If a layer has none; the message names it.
    ValueError
        If torch.fx cannot trace the network, or it does not take such images.
    """
    modes = {module: module.training for module in network.modules()}
    try:
        network.eval()
        return _traced(network, image_shape, signal_variance, variances)
    finally:
        for module, mode in modes.items():
            module.training = mode


def _traced(
    network: nn.Module, image_shape: tuple[int, int, int], signal_variance: float, variances: Mapping[str, float]
) -> Network:
    try:
        graph = _Tracer().trace(network)
    except Exception as error:  # any error of the network's own code, run on proxies
        raise ValueError(f"torch.fx cannot trace the network ({type(error).__name__}: {error}); {_ADVICE}") from error
    for node in graph.nodes:
        # Numbers such as sizes are constants for us.
        sizes = (node.op == "call_method" and node.target in ("size", "dim")) or node.target is getattr
        node.meta["depends"] = node.op == "placeholder" or (
            not sizes and any(parent.meta["depends"] for parent in node.all_input_nodes)
        )
    recorder = _Recorder(fx.GraphModule(network, graph))
    parameter = next(network.parameters(), torch.zeros(()))
    x = torch.zeros(2, *image_shape, device=parameter.device, dtype=parameter.dtype)
    try:
        with torch.no_grad():
            recorder.run(x)
    except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as error:
        raise ValueError(
            f"the network does not accept images of shape {tuple(x.shape)} (batch, channels, height, width): {error}; "
            "say what it takes by in_channels=... and image_size=..."
        ) from error
    return _Builder(graph, recorder, image_shape, signal_variance, dict(variances)).build()


@dataclasses.dataclass
class _Builder:
    graph: fx.Graph
    recorder: _Recorder
    image_shape: tuple[int, int, int]
    signal_variance: float
    variances: dict[str, float]

    def build(self) -> Network:
        nodes = list(self.graph.nodes)
        image = Place(self.image_shape, "cpp")
        places: dict[str, Place] = {}
        aliases: dict[str, str] = {}  # results that stand for their first input: tuples of one tensor
        steps: list[Step] = []
        calls: dict[str, Call] = {}
        used: set[str] = set()
        last = next(node for node in nodes if node.op == "output").args[0]
        if not isinstance(last, fx.Node) or not last.meta["depends"]:
            raise ValueError("the network returns no tensor that depends on the image; expected one output each")
        output = self._last_layer(last)
        for node in nodes:
            if node.op == "placeholder":
                if places:
                    raise ValueError("the network takes several inputs; expected images alone")
                places[node.name], aliases[node.name] = image, "image"
            elif node.op not in ("output", "get_attr") and node.meta["depends"]:
                value = self.recorder.seen[node.name]
                if not isinstance(value, tuple) and not isinstance(value, list):
                    continue  # a number
                if node.target in _CUTS:
                    source = node.args[0]
                    places[node.name], aliases[node.name] = places[source.name], aliases[source.name]
                    continue
                if self._is_first_of_tuple(node):
                    source = node.args[0]
                    places[node.name], aliases[node.name] = places[source.name], aliases[source.name]
                    continue
                call = self._call(node, places, calls, node is output)
                if call.module is not None and any(True for _ in call.module.parameters()):
                    if call.name in used and not isinstance(call.module, nn.modules.batchnorm._NormBase):
                        call.refuse("its weights are used twice, so that they are not independent")
                    used.add(call.name)
                calls[node.name] = call
                found = operation(call)
                if len(found.kinds) != len(call.shape):
                    call.refuse(f"its result has an unexpected shape {call.shape}")
                places[node.name], aliases[node.name] = Place(call.shape, found.kinds), node.name
                inputs = tuple(aliases[n.name] for n in self._tensors(node))
                steps.append(Step(node.name, f"{call.name} ({call.kind})", inputs, found, places[node.name]))
        return Network(tuple(steps), image, aliases[last.name])

    def _is_first_of_tuple(self, node: fx.Node) -> bool:
        """Whether it only unpacks a layer's results, as of attention, whose first one is meant."""
        if node.target is not operator.getitem or node.args[0].target in _CUTS:  # type: ignore[union-attr]
            return False
        value = self.recorder.seen[node.args[0].name]  # type: ignore[union-attr, index]
        return isinstance(value, tuple) and not isinstance(value, torch.Size)

    def _tensors(self, node: fx.Node) -> list[fx.Node]:
        """The inputs that depend on the image, as often and in the order in which the layer reads them."""
        found: list[fx.Node] = []
        fx.node.map_arg((node.args, node.kwargs), lambda n: found.append(n) if n.meta["depends"] else None)
        return found

    def _last_layer(self, node: fx.Node) -> fx.Node:
        """The linear layer whose result is the output but for its shape."""
        while node.op == "call_method" or getattr(node.target, "__name__", "") in ("flatten", "squeeze", "reshape"):
            node = node.all_input_nodes[0]
        return node

    def _call(self, node: fx.Node, places: dict[str, Place], calls: dict[str, Call], is_output: bool) -> Call:
        seen = self.recorder.seen
        module = self.graph.owning_module.get_submodule(str(node.target)) if node.op == "call_module" else None  # type: ignore[union-attr]
        kind = type(module).__name__ if module else getattr(node.target, "__name__", str(node.target))

        def value(n: fx.Node) -> Any:
            return places[n.name] if n.name in places else seen[n.name]

        args, kwargs = fx.node.map_arg((node.args, node.kwargs), value)
        if kind == "getitem" and node.args[0].target in _CUTS:  # type: ignore[union-attr]
            args = (args[0], self._cut(node))
        shape = seen[node.name]
        if isinstance(shape, tuple) and not isinstance(shape, torch.Size):
            shape = shape[0]
        if len(shape) < 2 or shape[0] != 2:
            raise NoRuleError(f"{self._where(node)} ({kind}) joins the images of a batch, which has no rule")
        gates = [
            (number, gate)
            for number, n in enumerate(self._tensors(node))
            if n.name in calls and (gate := gate_at_rest(calls[n.name])) is not None
        ]
        return Call(
            str(node.target) if module else self._where(node), kind, module, tuple(args), kwargs,
            tuple(places[n.name] for n in self._tensors(node)), tuple(shape[1:]), self.signal_variance, is_output,
            self.variances, gates[0] if len(gates) == 1 else None,
        )  # fmt: skip

    def _cut(self, node: fx.Node) -> tuple[slice, ...]:
        """The slice that one of the tensors that a tensor was cut into is."""
        source, number = node.args
        assert isinstance(source, fx.Node) and isinstance(number, int)
        pieces = self.recorder.seen[source.name]
        axis: Any = source.args[2] if len(source.args) > 2 else source.kwargs.get("dim", 0)
        lengths = [piece[axis] for piece in pieces]
        number %= len(lengths)
        start = sum(lengths[:number])
        axis = axis % len(pieces[0])
        return (*[slice(None)] * axis, slice(start, start + lengths[number]))

    def _where(self, node: fx.Node) -> str:
        stack = node.meta.get("nn_module_stack") or {}
        inside = [name for name, _ in stack.values() if name] if stack else []
        return f"{node.name} in {inside[-1]}" if inside else node.name
