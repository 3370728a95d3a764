"""One training: a network, data that stay on the device, and the schedules of the papers.

The papers train with SGD on cross-entropy. *Neural Anisotropy Directions* lets the learning rate fall linearly to zero
and clips the gradient norm at 0.5; the underspecification paper uses a triangular learning rate.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from nadtools import checks
from nadtools.device import derive_seed, generator, isolated_random_state, resolve_device, stream, unaffected_by_context
from nadtools.networks import check_independent_images, on_images
from nadtools.progress import progress_bar

__all__ = ["Evaluation", "TrainConfig", "TrainResult", "evaluate", "train"]

Data = tuple[Tensor, Tensor]
Schedule = Literal["linear", "triangular", "constant"]
Precision = Literal["float32", "bfloat16"]
Optimizer = Literal["sgd", "adamw"]

SHUFFLE, DROPOUT = range(2)  # random streams of one training
EVALUATION_BATCH = 1024
DROPOUT_LAYERS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How to train. The defaults are those of *Neural Anisotropy Directions* for LeNet on D(v).

    Attributes:
        epochs, batch_size: A last batch that is not full is used too.
        max_lr: The largest learning rate.
        schedule: ``"linear"``: from ``max_lr`` down to 0. ``"triangular"``: from 0 up to ``max_lr`` at half of the
            training, and down to 0. It changes after every step.
        momentum, weight_decay: The momentum is SGD's alone; AdamW decouples the decay from the gradient.
        clip_norm: The gradient's norm over all parameters is clipped here; None does not clip.
        seed: Of the order of the samples, and of dropout where a network has it.
        precision: ``"bfloat16"`` computes the forward passes of the training, and so their gradients, in bfloat16 where
            PyTorch's autocast deems it safe; weights, loss and evaluations stay in single precision. Deep networks
            train two to three times as fast where the processor or the GPU has bfloat16 arithmetic, and it is refused
            elsewhere.
        optimizer: ``"adamw"`` with PyTorch's β = (0.9, 0.999) and ε = 1e-8. It wants learning rates of about 1e-3.
    """

    epochs: int = 20
    max_lr: float = 0.5
    schedule: Schedule = "linear"
    momentum: float = 0.0
    weight_decay: float = 0.0
    batch_size: int = 128
    clip_norm: float | None = 0.5
    seed: int = 0
    precision: Precision = "float32"
    optimizer: Optimizer = "sgd"

    def __post_init__(self) -> None:
        checked = {
            "seed": checks.check_seed(self.seed),
            "epochs": checks.positive_int("epochs", self.epochs),
            "batch_size": checks.positive_int("batch_size", self.batch_size),
            "schedule": checks.choice("schedule", self.schedule, get_args(Schedule)),
            "precision": checks.choice("precision", self.precision, get_args(Precision)),
            "optimizer": checks.choice("optimizer", self.optimizer, get_args(Optimizer)),
            "max_lr": checks.positive_number("max_lr", self.max_lr),
            "momentum": checks.nonnegative_number("momentum", self.momentum),
            "weight_decay": checks.nonnegative_number("weight_decay", self.weight_decay),
        }
        if self.clip_norm is not None:
            checked["clip_norm"] = checks.positive_number("clip_norm", self.clip_norm)
        if self.optimizer == "adamw" and self.momentum:
            raise ValueError(f"got momentum={self.momentum} for AdamW; it is SGD's")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def parameters(self) -> dict[str, Any]:
        """What a record of the training has to say: all but the seed.

        Precision and optimiser only where chosen: records from before there was a choice stay those of one training.
        """
        unsaid = (("seed", self.seed), ("precision", "float32"), ("optimizer", "sgd"))
        return {key: value for key, value in dataclasses.asdict(self).items() if (key, value) not in unsaid}

    def learning_rate(self, step: int, num_steps: int) -> float:
        """The learning rate of a step, counted from 0."""
        progress = checks.integer("step", step, 0) / checks.positive_int("num_steps", num_steps)
        match self.schedule:
            case "linear":
                return self.max_lr * (1 - progress)
            case "triangular":
                # In the middle of each step, so that neither the first nor the last does nothing.
                return self.max_lr * (1 - abs(2 * (step + 0.5) / num_steps - 1))
            case "constant":
                return self.max_lr


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Mean cross-entropy in nats, and the fraction of samples classified correctly, in [0, 1]."""

    loss: float
    accuracy: float


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """What a training came to.

    Accuracies, in [0, 1], and losses, mean cross-entropies, are those of the final network in evaluation mode.
    """

    test_accuracy: float
    train_accuracy: float
    test_loss: float
    train_loss: float
    #: One row per epoch: epoch (from 1), learning_rate (of its last step), train_loss and train_accuracy (means over
    #: its batches as they were trained on), test_loss and test_accuracy (after the epoch; NaN if not evaluated).
    history: pd.DataFrame
    stopped_early: bool  #: whether a callback stopped the training
    #: (steps,), float32, on the CPU: the loss of every batch, before the step that it led to
    step_losses: Tensor = dataclasses.field(default_factory=lambda: torch.empty(0))

    def steps_to_loss(self, level: float, window: int = 10) -> int | None:
        """Return the number of steps after which the loss first is at or below a level, in nats; None if never.

        A batch's loss is noisy, so it is averaged over the last ``window`` steps. The count is that of all steps up to
        the end of the first window whose mean is low enough, so it is at least ``window``.
        """
        level, window = checks.positive_number("level", level), checks.positive_int("window", window)
        if len(self.step_losses) < window:
            return None
        reached = self.step_losses.double().unfold(0, window, 1).mean(1) <= level
        return int(reached.to(torch.uint8).argmax()) + window if bool(reached.any()) else None


@unaffected_by_context()
def train(
    network: nn.Module,
    train_data: Data,
    test_data: Data,
    config: TrainConfig | None = None,
    *,
    evaluate_every: int = 1,
    device: str | torch.device | None = None,
    progress: bool = True,
    callback: Callable[[dict[str, float]], bool | None] | None = None,
) -> TrainResult:
    """Train a network in place on cross-entropy.

    The data are moved to the device once; inside an epoch nothing crosses between host and device.

    Args:
        network: From (n, channels, h, w) to (n, classes). It is moved to the device and left in evaluation mode.
        train_data, test_data: x of shape (n, channels, h, w), y of shape (n,), int64.
        evaluate_every: Epochs between evaluations on the test data; 0 evaluates only the final network.
        device: None means the device of the training images.
        callback: Called after each epoch with its row of the history; returning True stops the training.

    Raises:
        FloatingPointError: If the loss is no longer finite: the learning rate is too large.
    """
    config = TrainConfig() if config is None else config
    checks.instance("config", config, TrainConfig, "a TrainConfig")
    evaluate_every = checks.integer("evaluate_every", evaluate_every, 0, expected="0 or a positive int")
    checks.flags(progress=progress)
    if callback is not None:
        checks.function("callback", callback, "a function of a row of the history", 1)
    checks.instance("network", network, nn.Module, "a torch.nn.Module")
    train_data = check_data("train_data", train_data)
    resolved = train_data[0].device if device is None else resolve_device(device)
    check_precision(config, resolved)
    test_data = check_classes(network.to(resolved), train_data, test_data, resolved)
    x, y = (tensor.to(resolved) for tensor in train_data)
    if x.is_inference():
        x = x.clone()  # autograd refuses what was made in inference mode
    test = (test_data[0].to(resolved), test_data[1].to(resolved))
    if any(isinstance(module, nn.Conv2d) for module in network.modules()):
        # Channels-last convolutions are the same function, and faster on CPUs and on tensor cores for nearly all
        # networks and precisions. A race between the formats would make the rounding a matter of time.
        network.to(memory_format=torch.channels_last)
        x, test = x.to(memory_format=torch.channels_last), (test[0].to(memory_format=torch.channels_last), test[1])

    parameters: list[Tensor] = [p for p in network.parameters() if p.requires_grad]
    optimizer = make_optimizer(parameters, config)
    seed = stream(config.seed, "training")
    order_generator = generator(resolved, seed, SHUFFLE)
    num_samples = len(x)
    num_batches = -(-num_samples // config.batch_size)
    drops = any(isinstance(module, DROPOUT_LAYERS) for module in network.modules())
    step_losses = torch.empty(config.epochs * num_batches, device=resolved)
    rows: list[dict[str, float]] = []
    stopped = False
    bar = progress_bar(range(config.epochs), progress, desc="training", unit="epoch")
    for epoch in bar:
        network.train()
        order = torch.randperm(num_samples, device=resolved, generator=order_generator)
        loss_sum, correct = torch.zeros((), device=resolved), torch.zeros((), device=resolved)
        learning_rate = config.max_lr
        # Dropout layers draw from PyTorch's global generator and from no other.
        with isolated_random_state(derive_seed(seed, DROPOUT, epoch)) if drops else contextlib.nullcontext():
            for number, batch in enumerate(order.split(config.batch_size)):
                step = epoch * num_batches + number
                learning_rate = config.learning_rate(step, config.epochs * num_batches)
                optimizer.param_groups[0]["lr"] = learning_rate
                inputs, targets = x[batch], y[batch]
                outputs = forward_pass(network, inputs, config)
                loss = functional.cross_entropy(outputs, targets)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                if config.clip_norm is not None:
                    nn.utils.clip_grad_norm_(parameters, config.clip_norm)
                optimizer.step()
                step_losses[step] = loss.detach()
                loss_sum += loss.detach() * len(batch)
                correct += (outputs.detach().argmax(1) == targets).sum()
        row: dict[str, float] = {
            "epoch": epoch + 1,
            "learning_rate": learning_rate,
            "train_loss": float(loss_sum) / num_samples,
            "train_accuracy": float(correct) / num_samples,
            "test_loss": math.nan,
            "test_accuracy": math.nan,
        }
        if not math.isfinite(row["train_loss"]):
            failure = f"the training loss is {row['train_loss']} in epoch {epoch + 1}"
            raise FloatingPointError(f"{failure}; use a smaller max_lr than {config.max_lr}")
        if evaluate_every and (epoch + 1) % evaluate_every == 0:
            measured = evaluate(network, test)
            row |= {"test_loss": measured.loss, "test_accuracy": measured.accuracy}
        rows.append(row)
        bar.set_postfix(loss=f"{row['train_loss']:.3g}", test=f"{row['test_accuracy']:.3f}", refresh=False)
        if callback is not None and callback(row):
            stopped = True
            break
    bar.close()
    final_train, final_test = evaluate(network, (x, y)), evaluate(network, test)
    return TrainResult(
        test_accuracy=final_test.accuracy,
        train_accuracy=final_train.accuracy,
        test_loss=final_test.loss,
        train_loss=final_train.loss,
        history=pd.DataFrame(rows).astype({"epoch": int}),
        stopped_early=stopped,
        step_losses=step_losses[: len(rows) * num_batches].cpu(),
    )


def make_optimizer(parameters: list[Tensor], config: TrainConfig) -> torch.optim.Optimizer:
    """The optimiser of the configuration, on the parameters that are to be trained."""
    if not parameters:
        raise ValueError("the network has no parameters to train; network.requires_grad_(True) releases frozen ones")
    if config.optimizer == "adamw":
        return torch.optim.AdamW(parameters, config.max_lr, weight_decay=config.weight_decay, fused=True)
    return torch.optim.SGD(parameters, config.max_lr, config.momentum, weight_decay=config.weight_decay, fused=True)


def forward_pass(network: Callable[[Tensor], Tensor], inputs: Tensor, config: TrainConfig) -> Tensor:
    """Outputs to train on, in the precision of the configuration; the loss is computed in single precision."""
    mixed = config.precision == "bfloat16"
    # Without the cache: inside another autocast it would outlive the step, and with it the weights of the first one.
    with torch.autocast(inputs.device.type, torch.bfloat16, enabled=mixed, cache_enabled=False):
        outputs = network(inputs)
    return outputs.float() if mixed else outputs


@unaffected_by_context()
def evaluate(network: nn.Module, data: Data, *, device: str | torch.device | None = None) -> Evaluation:
    """Loss and accuracy on (x, y) of a network in evaluation mode, in which it is left.

    ``device=None`` means the device of the images.
    """
    checks.instance("network", network, nn.Module, "a torch.nn.Module")
    x, y = check_data("data", data)
    resolved = x.device if device is None else resolve_device(device)
    check_fit("data", network.to(resolved), x, y, resolved)
    loss = torch.zeros((), dtype=torch.float64, device=resolved)
    correct = torch.zeros((), dtype=torch.int64, device=resolved)
    with torch.inference_mode():
        for images, targets in zip(x.split(EVALUATION_BATCH), y.split(EVALUATION_BATCH), strict=True):
            outputs, targets = network(images.to(resolved)), targets.to(resolved)
            loss += functional.cross_entropy(outputs, targets, reduction="sum")
            correct += (outputs.argmax(1) == targets).sum()
    return Evaluation(float(loss) / len(x), int(correct) / len(x))


def check_precision(config: TrainConfig, device: torch.device) -> None:
    """Refuse a precision in which the device cannot compute."""
    if config.precision == "bfloat16" and not _has_bfloat16(device):
        raise ValueError(f"got precision='bfloat16' on '{device}', which has no bfloat16 arithmetic; use 'float32'")


def _has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        with torch.cuda.device(device):
            return torch.cuda.is_bf16_supported(including_emulation=False)
    # With AVX-512 oneDNN also takes bfloat16 where the processor lacks the instructions, and then computes more slowly.
    if torch.cpu._is_avx512_supported():
        return torch.cpu._is_avx512_bf16_supported()
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def check_data(name: str, data: Any) -> Data:
    if not (isinstance(data, tuple | list) and len(data) == 2 and all(isinstance(part, Tensor) for part in data)):
        raise TypeError(f"got {name} of type {type(data).__name__}; expected a pair of tensors (x, y)")
    x = checks.tensor(f"x in {name}", data[0], expected="floating point: x.float() converts")
    checks.tensor(f"y in {name}", data[1], [torch.int64], "a tensor of torch.int64")
    if x.ndim < 2 or not x.numel() or data[1].shape != x.shape[:1]:
        got = f"x {tuple(x.shape)} and y {tuple(data[1].shape)}"
        raise ValueError(f"got {got} in {name}; expected (n, ...) and (n,), n >= 1")
    return x, checks.labels(f"y in {name}", data[1], len(x))


def check_classes(network: nn.Module, train_data: Data, test_data: Data, device: torch.device) -> Data:
    """Compare data and network before any training; return the test data."""
    x_test, y_test = check_data("test_data", test_data)
    if any(parameter.is_inference() for parameter in network.parameters()):
        raise ValueError("the network was built under torch.inference_mode(), so it cannot learn; build it outside")
    if train_data[0].shape[1:] != x_test.shape[1:]:
        mine, other = tuple(train_data[0].shape[1:]), tuple(x_test.shape[1:])
        raise ValueError(f"got images of shape {mine} in train_data and {other} in test_data; expected the same")
    for name, (x, y) in (("train_data", train_data), ("test_data", (x_test, y_test))):
        check_fit(name, network, x, y, device)
    return x_test, y_test


def check_fit(name: str, network: nn.Module, x: Tensor, y: Tensor, device: torch.device) -> None:
    """Whether a network on the device takes the images and has an output for every label; it is left in eval mode."""
    with on_images(x, f" ({name})"), torch.inference_mode():
        outputs = network.eval()(x[:1].to(device))
    if not isinstance(outputs, Tensor) or outputs.ndim != 2 or outputs.shape[1] < 2:
        kind = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ValueError(f"the network returned shape {kind}; expected (n, classes), at least 2 classes")
    if int(y.max()) >= outputs.shape[1]:
        raise ValueError(f"got labels up to {int(y.max())} in {name}; the network has {outputs.shape[1]} outputs")
    check_independent_images(network, x[:3].to(device))
