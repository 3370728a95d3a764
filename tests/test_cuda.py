"""What must hold on a GPU: python -m pytest -m cuda. Skipped where there is none."""

from __future__ import annotations

import math

import pytest
import torch

import nadtools as nt

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device"),
]


@pytest.mark.parametrize("estimator", ["secant", "gradient", "mixed"])
def test_estimates_agree_with_the_cpu(estimator):
    """The same networks and points: only rounding differs, as TF32 is off."""
    on_cpu, on_gpu = (
        nt.estimate_nads("lenet", 3, estimator, num_probes=2, device=device, progress=False)
        for device in ("cpu", "cuda")
    )
    difference = (on_gpu.covariance() - on_cpu.covariance()).norm() / on_cpu.covariance().norm()
    assert float(difference) < 1e-4
    assert on_gpu.vectors.device.type == "cpu" and on_gpu.metadata["device"].startswith("cuda")


def test_samples_are_drawn_on_the_device():
    v = nt.fourier_atom((32, 32), (3, 4))
    x, y = nt.LinearlySeparable(v, epsilon=0.5, sigma=3.0).sample(5000, seed=1, device="cuda")
    assert x.is_cuda and y.is_cuda
    along = x.flatten(1).double() @ v.flatten().double().cuda()
    torch.testing.assert_close(along, 0.5 * (2 * y - 1).double(), atol=1e-4, rtol=0)
    assert float(x.std()) == pytest.approx(3.0, rel=0.01)
    assert torch.equal(
        nt.LinearlySeparable(v).sample(9, device="cuda")[0], nt.LinearlySeparable(v).sample(9, device="cuda")[0]
    )


def test_training_on_the_device_learns_what_it_learns_on_the_cpu():
    problem = nt.LinearlySeparable(nt.fourier_atom((32, 32), (4, 0), math.pi / 2), epsilon=1.0, sigma=1.0)
    train, test = (problem.sample(3000, seed, device="cuda") for seed in (0, 1))
    network = nt.build("lenet")
    result = nt.train(network, train, test, nt.TrainConfig(epochs=15), progress=False, evaluate_every=0)
    assert result.test_accuracy > 0.95
    assert next(network.parameters()).is_cuda


def test_nothing_waits_for_the_device_inside_an_epoch():
    problem = nt.LinearlySeparable(nt.fourier_atom((32, 32), (4, 0)))
    x, y = problem.sample(512, device="cuda")
    network = nt.build("mlp").cuda()
    calls = {"count": 0}

    def stop_after_warm_up(_: dict[str, float]) -> None:
        calls["count"] += 1
        torch.cuda.set_sync_debug_mode("warn" if calls["count"] == 1 else "default")

    try:
        with pytest.warns(UserWarning, match="synchroniz") as caught:
            nt.train(network, (x, y), (x, y), nt.TrainConfig(epochs=2, batch_size=8), progress=False,
                     evaluate_every=0, callback=stop_after_warm_up)  # fmt: skip
    finally:
        torch.cuda.set_sync_debug_mode("default")
    # A few at the end of the epoch, not one for each of its 64 batches.
    assert sum("synchroniz" in str(w.message) for w in caught) < 16
