"""Several small networks trained at once on one device: their weights are stacked, and one batch of kernels moves all.

A small network leaves a GPU idle: starting its kernels takes longer than computing them. ``torch.func.vmap`` over the
stacked weights starts each kernel once for all networks. Every network has its own data, its own order of the samples
and its own gradient norm, and learns what :func:`nadtools.train` would teach it, up to rounding. On a CPU this is
slower than one network after the other: there convolutions with weights of their own are.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional

from nadtools import checks, training
from nadtools.device import generator, resolve_device, stream, unaffected_by_context
from nadtools.progress import progress_bar
from nadtools.training import Data, TrainConfig, TrainResult

__all__ = ["can_train_together", "train_together"]


def can_train_together(network: nn.Module, x: Tensor) -> bool:
    """Whether networks like this one can be trained at once on images like x, which is on its device.

    Not with batch normalisation, whose statistics change in the forward pass, not with dropout, which would draw other
    numbers than for one network alone, and not where ``torch.func.vmap`` cannot follow the computation.
    """
    layers = (nn.modules.batchnorm._BatchNorm, *training.DROPOUT_LAYERS)
    if any(isinstance(module, layers) for module in network.modules()):
        return False
    mode = network.training
    try:
        network.train()
        with torch.no_grad():
            forward, weights = _stacked([network, network])
            forward(weights, torch.stack([x, x]))
    except (RuntimeError, ValueError):
        return False
    finally:
        network.train(mode)
    return True


@unaffected_by_context()
def train_together(
    networks: Sequence[nn.Module],
    train_data: Sequence[Data],
    test_data: Sequence[Data],
    configs: Sequence[TrainConfig],
    *,
    device: str | torch.device | None = None,
    progress: bool = True,
) -> list[TrainResult]:
    """Train networks of one architecture in place, each on its own data, as :func:`nadtools.train` trains one.

    See :func:`can_train_together`. All data are of one size, and the configurations the same but for their seeds.
    The networks are evaluated at the end only, and left on the device, by default that of the first training images.
    Where a network's loss is no longer finite, all its losses and accuracies are NaN; others are not affected.
    """
    checks.flags(progress=progress)
    config = _check_alike(networks, train_data, test_data, configs)
    resolved = train_data[0][0].device if device is None else resolve_device(device)
    training.check_precision(config, resolved)
    for network, one_train, one_test in zip(networks, train_data, test_data, strict=True):
        training.check_classes(network.to(resolved), one_train, one_test, resolved)
    if not can_train_together(networks[0], train_data[0][0][:2].to(resolved)):
        raise ValueError("batch norm, dropout or no vmap: these cannot be trained at once; use nadtools.train")
    x, y, x_test, y_test = (
        torch.stack([pair[part].to(resolved) for pair in data]) for data in (train_data, test_data) for part in (0, 1)
    )
    for network in networks:
        network.train()
    forward, weights = _stacked(networks)
    parameters = [weights[name] for name, p in networks[0].named_parameters() if p.requires_grad]
    optimizer = training.make_optimizer(parameters, config)  # entry by entry, so it is the same for stacked weights
    generators = [generator(resolved, stream(one.seed, "training"), training.SHUFFLE) for one in configs]
    count, num_samples = x.shape[:2]
    num_batches = -(-num_samples // config.batch_size)
    which = torch.arange(count, device=resolved)[:, None]
    step_losses = torch.empty(config.epochs * num_batches, count, device=resolved)
    rows: list[tuple[float, Tensor, Tensor]] = []
    for epoch in progress_bar(range(config.epochs), progress, desc=f"training {count} networks", unit="epoch"):
        orders = torch.stack([torch.randperm(num_samples, device=resolved, generator=g) for g in generators])
        loss_sums, correct = torch.zeros(count, device=resolved), torch.zeros(count, device=resolved)
        learning_rate = config.max_lr
        for number, batches in enumerate(orders.split(config.batch_size, dim=1)):
            step = epoch * num_batches + number
            learning_rate = config.learning_rate(step, config.epochs * num_batches)
            optimizer.param_groups[0]["lr"] = learning_rate
            targets = y[which, batches]
            outputs = training.forward_pass(functools.partial(forward, weights), x[which, batches], config)
            losses = _losses(outputs, targets)
            optimizer.zero_grad(set_to_none=True)
            # Each loss depends on the weights of one network, so the gradient of the sum is theirs side by side.
            losses.sum().backward()
            if config.clip_norm is not None:
                _clip_each(parameters, config.clip_norm)
            optimizer.step()
            step_losses[step] = losses.detach()
            loss_sums += losses.detach() * batches.shape[1]
            correct += (outputs.detach().argmax(-1) == targets).sum(-1)
        rows.append((learning_rate, loss_sums.double() / num_samples, correct.double() / num_samples))
    for index, network in enumerate(networks):
        for name, parameter in network.eval().named_parameters():
            parameter.data.copy_(weights[name][index].detach())
    final_train, final_test = _evaluate(networks, x, y), _evaluate(networks, x_test, y_test)
    curves, losses_of_epochs = step_losses.T.cpu(), torch.stack([loss for _, loss, _ in rows]).T.tolist()
    accuracies_of_epochs = torch.stack([accuracy for _, _, accuracy in rows]).T.tolist()
    results = []
    for index in range(count):
        finite = all(map(math.isfinite, losses_of_epochs[index]))
        history = pd.DataFrame({"epoch": range(1, config.epochs + 1), "learning_rate": [rate for rate, _, _ in rows]})
        history = history.assign(train_loss=losses_of_epochs[index], train_accuracy=accuracies_of_epochs[index])
        history = history.assign(test_loss=math.nan, test_accuracy=math.nan)
        finals = [final[index] if finite else (math.nan, math.nan) for final in (final_train, final_test)]
        (train_loss, train_accuracy), (test_loss, test_accuracy) = finals
        curve = curves[index].clone()
        results.append(TrainResult(test_accuracy, train_accuracy, test_loss, train_loss, history, False, curve))
    return results


def _stacked(networks: Sequence[nn.Module]) -> tuple[Callable[[dict[str, Tensor], Tensor], Tensor], dict[str, Tensor]]:
    """A function from stacked weights and images (networks, n, ...) to outputs (networks, n, classes); the weights."""
    parameters, buffers = stack_module_state(list(networks))
    skeleton = copy.deepcopy(networks[0]).to("meta")

    def single(weights: dict[str, Tensor], fixed: dict[str, Tensor], x: Tensor) -> Tensor:
        outputs: Tensor = functional_call(skeleton, (weights, fixed), (x,))
        return outputs

    together = vmap(single)
    return lambda weights, x: together(weights, buffers, x), parameters


def _losses(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of each network, shape (networks,)."""
    flat = functional.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none")
    return flat.view(targets.shape).mean(1)


def _clip_each(parameters: list[Tensor], clip_norm: float) -> None:
    """``torch.nn.utils.clip_grad_norm_``, for each network by itself."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)
    factors = (clip_norm / (norms + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factors.view(-1, *(1,) * (gradient.ndim - 1)))


@torch.no_grad()
def _evaluate(networks: Sequence[nn.Module], x: Tensor, y: Tensor) -> list[tuple[float, float]]:
    """Loss and accuracy of each network on its data."""
    forward, weights = _stacked(networks)
    losses = torch.zeros(len(networks), dtype=torch.float64, device=x.device)
    correct = torch.zeros(len(networks), dtype=torch.int64, device=x.device)
    size = training.EVALUATION_BATCH
    for images, targets in zip(x.split(size, 1), y.split(size, 1), strict=True):
        outputs = forward(weights, images)
        losses += _losses(outputs, targets) * targets.shape[1]
        correct += (outputs.argmax(-1) == targets).sum(-1)
    pairs = zip(losses.tolist(), correct.tolist(), strict=True)
    return [(loss / x.shape[1], right / x.shape[1]) for loss, right in pairs]


def _check_alike(networks: Any, train_data: Any, test_data: Any, configs: Any) -> TrainConfig:
    """What all networks share."""
    given = {"networks": networks, "train_data": train_data, "test_data": test_data, "configs": configs}
    for name, sequence in given.items():
        checks.instance(name, sequence, Sequence, "a sequence")
    if not len(networks) or len({len(sequence) for sequence in given.values()}) > 1:
        lengths = ", ".join(f"{len(sequence)} in {name}" for name, sequence in given.items())
        raise ValueError(f"got {lengths}; expected as many of each, and at least one")
    for network, config in zip(networks, configs, strict=True):
        checks.instance("networks", network, nn.Module, "torch.nn.Modules")
        checks.instance("configs", config, TrainConfig, "TrainConfigs")
    if len(set(map(id, networks))) < len(networks):
        raise ValueError("got the same network twice; expected different ones")
    shapes = [{name: p.shape for name, p in network.named_parameters()} for network in networks]
    if any(type(network) is not type(networks[0]) for network in networks) or any(s != shapes[0] for s in shapes):
        raise ValueError("got networks of different architectures; expected the same layers and sizes in all")
    if any(config.parameters() != configs[0].parameters() for config in configs):
        raise ValueError("got different configurations; expected the same but for the seeds")
    for name, data in (("train_data", train_data), ("test_data", test_data)):
        for pair in data:
            training.check_data(name, pair)
        sizes = {tuple(pair[0].shape) for pair in data}
        if len(sizes) > 1:
            raise ValueError(f"got {name} of shapes {sorted(sizes)}; expected the same for all networks")
    first: TrainConfig = configs[0]
    return first
