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

from nadtools.device import check_seed, derive_seed, generator, isolated_random_state, resolve_device
from nadtools.progress import progress_bar

__all__ = ["Evaluation", "TrainConfig", "TrainResult", "evaluate", "train"]

Data = tuple[Tensor, Tensor]
Schedule = Literal["linear", "triangular", "constant"]
Precision = Literal["float32", "bfloat16"]

SHUFFLE, DROPOUT, AUGMENTATION = range(3)  # random streams of one training
EVALUATION_BATCH = 1024
DROPOUT_LAYERS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How to train. The defaults are those of *Neural Anisotropy Directions* for LeNet on D(v).

    Attributes
    ----------
    epochs, batch_size : int
        A last batch that is not full is used too.
    max_lr : float
        The largest learning rate.
    schedule : {"linear", "triangular", "constant"}
        ``"linear"``: from ``max_lr`` down to 0. ``"triangular"``: from 0 up to ``max_lr`` at half of the training,
        and down to 0. It changes after every step.
    momentum, weight_decay : float
        Of SGD.
    clip_norm : float or None
        The gradient's norm over all parameters is clipped here; None does not clip.
    seed : int
        Of the order of the samples, and of dropout where a network has it.
    precision : {"float32", "bfloat16"}
        ``"bfloat16"`` computes the forward passes of the training, and so their gradients, in bfloat16 where PyTorch's
        autocast deems it safe; weights, loss and evaluations stay in single precision. Deep networks train two to three
        times as fast where the processor or the GPU has bfloat16 arithmetic, and it is refused elsewhere.
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

    def __post_init__(self) -> None:
        check_seed(self.seed)
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"got {name}={value!r}; expected a positive int")
        for name, kind in (("schedule", Schedule), ("precision", Precision)):
            value, known = getattr(self, name), get_args(kind)
            if value not in known:
                raise ValueError(f"unknown {name} {value!r}; known are {', '.join(map(repr, known))}")
        if not (math.isfinite(self.max_lr) and self.max_lr > 0):
            raise ValueError(f"got max_lr={self.max_lr!r}; expected a positive number")
        for name in ("momentum", "weight_decay"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"got {name}={value!r}; expected zero or a positive number")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(f"got clip_norm={self.clip_norm!r}; expected a positive number, or None not to clip")

    def parameters(self) -> dict[str, Any]:
        """What a record of the training has to say: all but the seed.

        The precision only where it was chosen: records from before there was a choice stay those of the same training.
        """
        unsaid = {"seed"} if self.precision != "float32" else {"seed", "precision"}
        return {key: value for key, value in dataclasses.asdict(self).items() if key not in unsaid}

    def learning_rate(self, step: int, num_steps: int) -> float:
        """The learning rate of a step, counted from 0."""
        progress = step / num_steps
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

    Attributes
    ----------
    test_accuracy, train_accuracy : float
        Of the final network, in [0, 1], in evaluation mode.
    test_loss, train_loss : float
        Mean cross-entropy of the final network.
    history : pandas.DataFrame
        One row per epoch: epoch (from 1), learning_rate (of its last step), train_loss and train_accuracy (means over
        the epoch's batches as they were trained on), test_loss and test_accuracy (after the epoch; NaN where it was
        not evaluated).
    stopped_early : bool
        Whether a callback stopped the training.
    step_losses : Tensor
        Shape (steps,), float32, on the CPU: the loss of every batch, before the step that it led to.
    """

    test_accuracy: float
    train_accuracy: float
    test_loss: float
    train_loss: float
    history: pd.DataFrame
    stopped_early: bool
    step_losses: Tensor = dataclasses.field(default_factory=lambda: torch.empty(0))

    def steps_to_loss(self, level: float, window: int = 10) -> int | None:
        """Return the number of steps after which the loss first is at or below a level.

        A batch's loss is noisy, so it is averaged over the last ``window`` steps. The count is that of all steps up to
        the end of the first window whose mean is low enough, so it is at least ``window``.

        Parameters
        ----------
        level : float
            Of the mean cross-entropy, in nats; positive.
        window : int
            Steps to average over.

        Returns
        -------
        int or None
            None where the level was never reached.

        Raises
        ------
        ValueError
            If the level or the window is not positive.
        """
        if not (math.isfinite(level) and level > 0):
            raise ValueError(f"got level={level!r}; expected a positive number")
        if not isinstance(window, int) or isinstance(window, bool) or window < 1:
            raise ValueError(f"got window={window!r}; expected a positive int")
        if len(self.step_losses) < window:
            return None
        reached = self.step_losses.double().unfold(0, window, 1).mean(1) <= level
        return int(reached.to(torch.uint8).argmax()) + window if bool(reached.any()) else None


def train(
    network: nn.Module,
    train_data: Data,
    test_data: Data,
    config: TrainConfig | None = None,
    *,
    evaluate_every: int = 1,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    device: str | torch.device | None = None,
    progress: bool = True,
    callback: Callable[[dict[str, float]], bool | None] | None = None,
) -> TrainResult:
    """Train a network in place by SGD on cross-entropy.

    The data are moved to the device once; inside an epoch nothing crosses between host and device.

    Parameters
    ----------
    network : nn.Module
        From (n, channels, h, w) to (n, classes). It is moved to the device and left in evaluation mode.
    train_data, test_data : (Tensor, Tensor)
        x of shape (n, channels, h, w), y of shape (n,), int64.
    config : TrainConfig, optional
    evaluate_every : int
        Epochs between evaluations on the test data; 0 evaluates only the final network.
    augment : callable, optional
        From a batch of training images and a random generator, on their device, to the images that are trained on, for
        instance :func:`nadtools.images.crop_and_mirror`. The papers' experiments have none.
    device : str, torch.device or None
        None means the device of the training images.
    progress : bool
        Show a progress bar.
    callback : callable, optional
        Called after each epoch with its row of the history; returning True stops the training.

    Returns
    -------
    TrainResult

    Raises
    ------
    TypeError, ValueError
        If the data do not fit each other or the network, or the device does not have the precision.
    FloatingPointError
        If the loss is no longer finite: the learning rate is too large.
    """
    config = config or TrainConfig()
    if evaluate_every < 0:
        raise ValueError(f"got evaluate_every={evaluate_every}; expected 0 or a positive int")
    check_data("train_data", train_data)
    resolved = train_data[0].device if device is None else resolve_device(device)
    check_precision(config, resolved)
    check_classes(network.to(resolved), train_data, test_data, resolved)
    x, y = (tensor.to(resolved) for tensor in train_data)
    test = (test_data[0].to(resolved), test_data[1].to(resolved))
    if _has_convolutions(network):
        # Channels-last convolutions are the same function, and as fast or faster for all networks of the book, on CPUs
        # and on tensor cores, in both precisions. A race between the formats would make the rounding a matter of time.
        network.to(memory_format=torch.channels_last)
        x, test = x.to(memory_format=torch.channels_last), (test[0].to(memory_format=torch.channels_last), test[1])

    parameters = [p for p in network.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("the network has no parameters to train; network.requires_grad_(True) releases frozen ones")
    optimizer = torch.optim.SGD(
        parameters, lr=config.max_lr, momentum=config.momentum, weight_decay=config.weight_decay, fused=True
    )
    order_generator = generator(resolved, config.seed, SHUFFLE)
    augmentation_generator = generator(resolved, config.seed, AUGMENTATION)
    num_samples = len(x)
    num_batches = -(-num_samples // config.batch_size)
    step_losses = torch.empty(config.epochs * num_batches, device=resolved)
    rows: list[dict[str, float]] = []
    stopped = False
    bar = progress_bar(range(config.epochs), progress, desc="training", unit="epoch")
    for epoch in bar:
        network.train()
        order = torch.randperm(num_samples, device=resolved, generator=order_generator)
        loss_sum, correct = torch.zeros((), device=resolved), torch.zeros((), device=resolved)
        learning_rate = config.max_lr
        with _seeded_dropout(network, config.seed, epoch):
            for number, batch in enumerate(order.split(config.batch_size)):
                step = epoch * num_batches + number
                learning_rate = config.learning_rate(step, config.epochs * num_batches)
                optimizer.param_groups[0]["lr"] = learning_rate
                inputs, targets = x[batch], y[batch]
                if augment is not None:
                    inputs = augment(inputs, augmentation_generator)
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
            raise FloatingPointError(
                f"the training loss is {row['train_loss']} in epoch {epoch + 1}; "
                f"use a smaller max_lr than {config.max_lr}"
            )
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


def forward_pass(network: Callable[[Tensor], Tensor], inputs: Tensor, config: TrainConfig) -> Tensor:
    """Outputs to train on, in the precision of the configuration; the loss is computed in single precision."""
    mixed = config.precision == "bfloat16"
    with torch.autocast(inputs.device.type, torch.bfloat16, enabled=mixed):
        outputs = network(inputs)
    return outputs.float() if mixed else outputs


def evaluate(network: nn.Module, data: Data, *, device: str | torch.device | None = None) -> Evaluation:
    """Loss and accuracy of a network in evaluation mode, in which it is left.

    Parameters
    ----------
    network : nn.Module
    data : (Tensor, Tensor)
        x of shape (n, channels, h, w), y of shape (n,), int64.
    device : str, torch.device or None
        None means the device of the images.
    """
    check_data("data", data)
    x, y = data
    resolved = x.device if device is None else resolve_device(device)
    network.to(resolved).eval()
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
        raise ValueError(
            f"got precision='bfloat16' on {str(device)!r}, which has no bfloat16 arithmetic; use precision='float32'"
        )


def _has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        with torch.cuda.device(device):
            return torch.cuda.is_bf16_supported(including_emulation=False)
    # With AVX-512 oneDNN also takes bfloat16 where the processor lacks the instructions, and then computes more slowly.
    if torch.cpu._is_avx512_supported():
        return torch.cpu._is_avx512_bf16_supported()
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def check_data(name: str, data: Any) -> None:
    if not (isinstance(data, tuple | list) and len(data) == 2 and all(isinstance(part, Tensor) for part in data)):
        raise TypeError(f"got {name} of type {type(data).__name__}; expected a pair of tensors (x, y)")
    x, y = data
    if not x.is_floating_point():
        raise TypeError(f"got x of dtype {x.dtype} in {name}; expected floating point: x.float() converts")
    if y.dtype != torch.int64:
        raise TypeError(f"got y of dtype {y.dtype} in {name}; expected torch.int64")
    if len(x) < 1 or y.shape != (len(x),):
        raise ValueError(f"got x {tuple(x.shape)} and y {tuple(y.shape)} in {name}; expected (n, ...) and (n,), n >= 1")


def check_classes(network: nn.Module, train_data: Data, test_data: Data, device: torch.device) -> None:
    """Compare data and network before any training."""
    check_data("test_data", test_data)
    x, y = train_data
    if x.shape[1:] != test_data[0].shape[1:]:
        raise ValueError(
            f"got images of shape {tuple(x.shape[1:])} to train on and {tuple(test_data[0].shape[1:])} to test on; "
            "expected the same"
        )
    if not bool(torch.isfinite(x).all()):
        raise ValueError("got NaN or infinite entries in the images of train_data; expected finite numbers")
    try:
        with torch.inference_mode():
            outputs = network.eval()(x[:1].to(device))
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"the network does not accept images of shape {tuple(x.shape[1:])}: {error}") from error
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        raise ValueError(
            f"the network returned shape {tuple(outputs.shape)}; expected (n, classes), at least 2 classes"
        )
    low = min(int(y.min()), int(test_data[1].min()))
    high = max(int(y.max()), int(test_data[1].max()))
    if low < 0 or high >= outputs.shape[1]:
        raise ValueError(
            f"got labels from {low} to {high}; the network has {outputs.shape[1]} outputs, for labels from 0"
        )


def _seeded_dropout(network: nn.Module, seed: int, epoch: int) -> contextlib.AbstractContextManager[None]:
    """Seed PyTorch's global generator for an epoch, for networks with dropout only: its layers draw from no other."""
    if any(isinstance(module, DROPOUT_LAYERS) for module in network.modules()):
        return isolated_random_state(derive_seed(seed, DROPOUT, epoch))
    return contextlib.nullcontext()


def _has_convolutions(network: nn.Module) -> bool:
    return any(isinstance(module, nn.Conv2d) for module in network.modules())
