from __future__ import annotations

import math

import pandas as pd
import pytest
import torch
from torch import nn

import nadtools as nt
from nadtools import training


def data(n: int = 400, seed: int = 0, sigma: float = 1.0, shape: tuple[int, int] = (8, 8)):
    return nt.LinearlySeparable(nt.fourier_atom(shape, (1, 2)), sigma=sigma).sample(n, seed, device="cpu")


def logreg(seed: int = 0) -> nn.Module:
    return nt.build("logreg", image_size=(8, 8), seed=seed)


def test_one_step_is_clipped_sgd_on_cross_entropy():
    network, (x, y) = logreg(), data(16)
    before = [p.detach().clone() for p in network.parameters()]
    loss = nn.functional.cross_entropy(network(x), y)
    gradients = torch.autograd.grad(loss, list(network.parameters()))
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
    clip = norm / 3
    config = nt.TrainConfig(epochs=1, max_lr=0.1, batch_size=16, clip_norm=clip)
    nt.train(network, (x, y), (x, y), config, progress=False)
    for p, old, gradient in zip(network.parameters(), before, gradients, strict=True):
        torch.testing.assert_close(p.detach(), old - 0.1 * gradient / 3, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    ("max_lr", "options", "reference_optimizer"),
    [
        (0.1, {"momentum": 0.9, "weight_decay": 0.01}, torch.optim.SGD),
        (0.01, {"optimizer": "adamw", "weight_decay": 0.0}, torch.optim.AdamW),
        (0.01, {"optimizer": "adamw", "weight_decay": 0.1}, torch.optim.AdamW),
    ],
)
def test_steps_are_those_of_torchs_optimisers(max_lr, options, reference_optimizer):
    config = nt.TrainConfig(3, max_lr, "constant", batch_size=400, clip_norm=None, **options)
    network, reference, (x, y) = logreg(), logreg(), data()
    nt.train(network, (x, y), (x, y), config, progress=False)
    given = {name: value for name, value in options.items() if name != "optimizer"}
    optimizer = reference_optimizer(reference.parameters(), lr=max_lr, **given)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(reference(x), y).backward()
        optimizer.step()
    for p, q in zip(network.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(p, q, atol=1e-6, rtol=1e-4)


def test_records_name_an_optimiser_only_where_it_was_chosen():
    plain = nt.TrainConfig(max_lr=0.3).parameters()
    chosen = nt.TrainConfig(max_lr=0.3, optimizer="adamw")
    assert "optimizer" not in plain and chosen.parameters() == plain | {"optimizer": "adamw"}
    assert nt.TrainConfig(**chosen.parameters()) == chosen
    with pytest.raises(ValueError, match=r"momentum=0\.9 for AdamW"):
        nt.TrainConfig(momentum=0.9, optimizer="adamw")
    with pytest.raises(ValueError, match="optimizer='adam'; expected 'sgd' or 'adamw'"):
        nt.TrainConfig(optimizer="adam")


def test_schedules():
    linear, triangular = (
        [nt.TrainConfig(max_lr=2.0, schedule=s).learning_rate(i, 10) for i in range(10)]
        for s in ("linear", "triangular")
    )
    assert linear == pytest.approx([2.0 * (1 - i / 10) for i in range(10)])
    assert triangular == pytest.approx([0.2, 0.6, 1.0, 1.4, 1.8, 1.8, 1.4, 1.0, 0.6, 0.2])
    assert nt.TrainConfig(max_lr=2.0, schedule="constant").learning_rate(9, 10) == 2.0


def test_a_separable_problem_is_learned_and_the_history_says_how():
    train, test = data(2000, 0), data(2000, 1)
    result = nt.train(logreg(), train, test, nt.TrainConfig(epochs=5), progress=False)
    assert result.test_accuracy > 0.99 and result.train_accuracy > 0.99
    history = result.history
    assert list(history.columns) == [
        "epoch",
        "learning_rate",
        "train_loss",
        "train_accuracy",
        "test_loss",
        "test_accuracy",
    ]
    assert history.epoch.tolist() == [1, 2, 3, 4, 5]
    assert history.train_loss.is_monotonic_decreasing and history.learning_rate.is_monotonic_decreasing
    assert history.test_accuracy.iloc[-1] == result.test_accuracy and history.test_loss.iloc[-1] == result.test_loss


def test_the_same_seed_gives_the_same_network_and_another_order_another():
    def weights(seed: int) -> torch.Tensor:
        network = logreg()
        nt.train(network, data(), data(seed=1), nt.TrainConfig(epochs=2, seed=seed), progress=False)
        return network.output.weight.detach()

    assert torch.equal(weights(0), weights(0)) and not torch.equal(weights(0), weights(1))


def test_every_sample_is_used_once_an_epoch_with_a_last_batch_that_is_not_full():
    seen: list[torch.Tensor] = []

    class Spy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(1, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.training:
                seen.append(x.flatten())
            return self.linear(x.flatten(1))

    x = torch.arange(10.0).reshape(10, 1, 1, 1)
    with nt.device.isolated_random_state(0):
        spy = Spy()
    nt.train(
        spy, (x, torch.arange(10) % 2), (x, torch.arange(10) % 2), nt.TrainConfig(2, 0.01, batch_size=4), progress=False
    )
    assert [len(batch) for batch in seen] == [4, 4, 2] * 2
    first, second = torch.cat(seen[:3]), torch.cat(seen[3:])
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(10)) and first.tolist() != second.tolist()


def test_a_callback_sees_each_epoch_and_can_stop():
    rows: list[dict[str, float]] = []

    def callback(row: dict[str, float]) -> bool:
        rows.append(row)
        return row["epoch"] == 2

    result = nt.train(logreg(), data(), data(seed=1), nt.TrainConfig(epochs=9), progress=False, callback=callback)
    assert [row["epoch"] for row in rows] == [1, 2] and len(result.history) == 2 and result.stopped_early


def test_evaluation_can_be_left_to_the_end():
    result = nt.train(logreg(), data(), data(seed=1), nt.TrainConfig(epochs=3), progress=False, evaluate_every=0)
    assert result.history.test_accuracy.isna().all() and result.test_accuracy > 0.5


def test_the_loss_of_every_step_is_that_of_the_batch_before_the_step():
    x, y = data(10)
    config = nt.TrainConfig(epochs=2, max_lr=0.1, batch_size=4, clip_norm=None)
    network, reference = logreg(), logreg()
    result = nt.train(network, (x, y), (x, y), config, progress=False)
    order = nt.device.generator(torch.device("cpu"), nt.device.stream(0, "training"), 0)
    losses = []
    for epoch in range(2):
        for number, batch in enumerate(torch.randperm(10, generator=order).split(4)):
            loss = nn.functional.cross_entropy(reference(x[batch]), y[batch])
            losses.append(float(loss.detach()))
            gradients = torch.autograd.grad(loss, list(reference.parameters()))
            with torch.no_grad():
                for p, gradient in zip(reference.parameters(), gradients, strict=True):
                    p -= config.learning_rate(3 * epoch + number, 6) * gradient
    assert result.step_losses.tolist() == pytest.approx(losses, rel=1e-5) and result.step_losses.device.type == "cpu"
    mean = sum(loss * n for loss, n in zip(losses[3:], (4, 4, 2), strict=True)) / 10
    assert result.history.train_loss[1] == pytest.approx(mean, rel=1e-5)


def test_a_training_that_is_stopped_has_the_losses_of_the_steps_it_took():
    result = nt.train(
        logreg(), data(), data(), nt.TrainConfig(epochs=9, batch_size=100), progress=False, callback=lambda _: True
    )
    assert result.step_losses.shape == (4,) and bool(torch.isfinite(result.step_losses).all())


def test_steps_to_a_loss():
    def steps(losses: list[float], level: float, window: int) -> int | None:
        result = nt.TrainResult(1.0, 1.0, 0.0, 0.0, pd.DataFrame(), False, torch.tensor(losses))
        return result.steps_to_loss(level, window)

    noisy = [5.0, 1.0, 5.0, 2.0, 2.0, 1.0, 9.0]
    assert [steps(noisy, level, 1) for level in (5.0, 1.5, 0.5)] == [1, 2, None]
    # Means of two steps: 3, 3, 3.5, 2, 1.5, 5.
    assert [steps(noisy, level, 2) for level in (3.0, 2.0, 1.9, 1.4)] == [2, 5, 6, None]
    assert steps(noisy, 4.0, 7) == 7 and steps(noisy, 9.0, 8) is None and steps([], 1.0, 1) is None
    for level, window, message in ((0.0, 1, "level=0.0"), (math.nan, 1, "level=nan"), (1.0, 0, "window=0")):
        with pytest.raises(ValueError, match=message):
            steps(noisy, level, window)


def test_dropout_depends_on_the_seed_alone():
    def loss(seed: int, drawn: int) -> float:
        network = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), logreg()[1])
        with torch.random.fork_rng():
            torch.rand(drawn)
            config = nt.TrainConfig(epochs=2, seed=seed)
            return nt.train(network, data(), data(), config, progress=False).train_loss

    # That the global state is left alone is asserted for every test.
    assert loss(0, 0) == loss(0, 3) != loss(1, 0)


def test_evaluate_agrees_with_a_plain_computation_in_evaluation_mode():
    network, (x, y) = nn.Sequential(nn.Flatten(), nn.Dropout(0.9), logreg()[1]), data(3000)
    measured = nt.evaluate(network, (x, y))
    logits = network.eval()(x).detach()
    assert measured.loss == pytest.approx(float(nn.functional.cross_entropy(logits, y)), rel=1e-5)
    assert measured.accuracy == float((logits.argmax(1) == y).double().mean())


def test_inside_an_epoch_nothing_is_copied_to_the_host(monkeypatch):
    """Counts the synchronising calls: they may not grow with the number of batches."""
    counts = {"calls": 0}
    for name in ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__"):
        original = getattr(torch.Tensor, name)

        def counted(self, *args, _original=original, **kwargs):
            counts["calls"] += 1
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(torch.Tensor, name, counted)

    def calls(batch_size: int) -> int:
        counts["calls"] = 0
        nt.train(logreg(), data(), data(seed=1), nt.TrainConfig(epochs=2, batch_size=batch_size), progress=False)
        return counts["calls"]

    assert calls(400) == calls(10)


def test_lenet_fails_where_logistic_regression_does_not():
    """Figure 1 with fewer samples and less noise: chapter 1 has its full size."""
    distribution = nt.LinearlySeparable(nt.fourier_atom((32, 32), (8, 0), math.pi / 2), epsilon=1.0, sigma=1.0)
    train, test, config = distribution.sample(2_000, 0), distribution.sample(10_000, 1), nt.TrainConfig(epochs=10)
    lenet = nt.train(nt.build("lenet"), train, test, config, progress=False, evaluate_every=0)
    assert 0.47 <= lenet.test_accuracy <= 0.53  # six standard errors of chance
    assert nt.train(nt.build("logreg"), train, test, config, progress=False).test_accuracy > 0.99


X, Y = data(4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nt.TrainConfig(precision="float16"), ValueError, "precision='float16'; expected 'float32'"),
        (lambda: nt.train(logreg(), (X.int(), Y), (X, Y)), TypeError, "floating point"),
        (lambda: nt.train(logreg(), (X, Y.float()), (X, Y)), TypeError, "torch.int64"),
        (lambda: nt.train(logreg(), (X, Y[:2]), (X, Y)), ValueError, r"x \(4, 1, 8, 8\) and y \(2,\)"),
        (lambda: nt.train(logreg(), (X, Y), (X[..., :4], Y)), ValueError, "in test_data; expected the same"),
        (lambda: nt.train(logreg(), (X, Y + 1), (X, Y)), ValueError, "the network has 2 outputs"),
        (lambda: nt.train(logreg(), (X / 0, Y), (X, Y)), ValueError, "NaN or infinite entries"),
        (lambda: nt.train(nt.build("logreg"), (X, Y), (X, Y)), ValueError, "does not accept images"),
        (
            lambda: nt.train(nt.build("logreg", num_classes=1, image_size=(8, 8)), (X, Y), (X, Y)),
            ValueError,
            "at least 2",
        ),
        (lambda: nt.train(logreg().requires_grad_(False), (X, Y), (X, Y)), ValueError, "no parameters to train"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_training_that_diverges_says_so():
    config = nt.TrainConfig(epochs=30, max_lr=1e30, clip_norm=None, schedule="constant")
    with pytest.raises(FloatingPointError, match="smaller max_lr"):
        nt.train(nt.build("mlp", image_size=(8, 8)), data(), data(), config, progress=False)


def test_a_configuration_is_a_record_that_names_only_a_precision_that_was_chosen():
    """Records from before there was a choice stay valid."""
    plain, chosen = (nt.TrainConfig(max_lr=0.3, seed=4, precision=p).parameters() for p in ("float32", "bfloat16"))
    assert chosen == plain | {"precision": "bfloat16"}
    assert plain == {
        "epochs": 20, "max_lr": 0.3, "schedule": "linear", "momentum": 0.0, "weight_decay": 0.0, "batch_size": 128,
        "clip_norm": 0.5,
    }  # fmt: skip
    assert nt.TrainConfig(**plain) == nt.TrainConfig(max_lr=0.3) and nt.TrainConfig(**chosen).precision == "bfloat16"


has_bfloat16 = pytest.mark.skipif(
    not training._has_bfloat16(torch.device("cpu")), reason="the processor has no bfloat16 arithmetic"
)


@has_bfloat16
def test_bfloat16_is_for_forward_passes_of_the_training_alone():
    seen: dict[bool, set[torch.dtype]] = {True: set(), False: set()}
    network = logreg()
    network.output.register_forward_hook(lambda layer, _, outputs: seen[layer.training].add(outputs.dtype))
    result = nt.train(network, data(), data(seed=1), nt.TrainConfig(epochs=2, precision="bfloat16"), progress=False)
    assert seen == {True: {torch.bfloat16}, False: {torch.float32}}
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in network.parameters())
    # Losses have more digits than bfloat16 holds.
    assert not torch.equal(result.step_losses, result.step_losses.bfloat16().float())


@has_bfloat16
@pytest.mark.parametrize(
    ("name", "options", "shape", "frequency"),
    [("lenet", {}, (16, 16), (1, 0)), ("resnet18", {"width": 0.125}, (8, 8), (2, 0))],
)
def test_bfloat16_changes_accuracies_by_less_than_their_scatter_over_seeds(name, options, shape, frequency):
    problem = nt.LinearlySeparable(nt.fourier_atom(shape, frequency, math.pi / 2), sigma=1.0)

    def accuracy(precision: str, seed: int) -> float:
        network = nt.build(name, image_size=shape, seed=seed, **options)
        config = nt.TrainConfig(2, 0.1, momentum=0.9, batch_size=50, seed=seed, precision=precision)
        samples = [problem.sample(1000, 2 * seed + part, device="cpu") for part in range(2)]
        return nt.train(network, *samples, config, progress=False, evaluate_every=0).test_accuracy

    single, half = (torch.tensor([accuracy(p, seed) for seed in range(3)]) for p in ("float32", "bfloat16"))
    assert not torch.equal(single, half) and float(single.mean()) > 0.65
    assert abs(float(single.mean() - half.mean())) < float(single.std())


def test_bfloat16_is_refused_where_there_is_none(monkeypatch):
    monkeypatch.setattr(training, "_has_bfloat16", lambda device: False)
    network = logreg()
    before, config = network.output.weight.detach().clone(), nt.TrainConfig(precision="bfloat16")
    with pytest.raises(ValueError, match="precision='bfloat16' on 'cpu', which has no bfloat16 arithmetic"):
        nt.train(network, data(), data(seed=1), config, progress=False)
    with pytest.raises(ValueError, match="precision='bfloat16' on 'cpu'"):
        nt.sweep("logreg", [nt.fourier_atom((8, 8), (1, 0))], config=config, device="cpu", progress=False)
    assert torch.equal(network.output.weight, before)
