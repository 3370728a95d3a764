from __future__ import annotations

import math

import pytest
import torch

import nadtools as nt

V = nt.fourier_atom((32, 32), (3, 4))


def test_the_signal_is_exact_and_the_noise_orthogonal():
    x, y = nt.LinearlySeparable(V, epsilon=0.5, sigma=3.0).sample(2000, seed=1, device="cpu")
    assert x.shape == (2000, 1, 32, 32) and x.dtype == torch.float32
    assert y.shape == (2000,) and y.dtype == torch.int64
    along = x.flatten(1).double() @ V.flatten().double()
    # The rounding of 1,024 float32 products of size up to 3: about sqrt(1024) * 3 * 6e-8 / 32.
    torch.testing.assert_close(along, 0.5 * (2 * y - 1).double(), atol=1e-5, rtol=0)


def test_the_noise_has_the_stated_covariance():
    v = nt.random_direction((3, 4), 0)
    x, y = nt.LinearlySeparable(v, epsilon=2.0, sigma=1.5).sample(200_000, seed=0, device="cpu")
    noise = x.flatten(1) - 2.0 * (2 * y - 1)[:, None] * v.flatten()
    expected = 1.5**2 * (torch.eye(12) - torch.outer(v.flatten(), v.flatten()))
    # Standard error of an entry: at most 1.5² * sqrt(2 / 200,000) = 0.007.
    torch.testing.assert_close(noise.T @ noise / 200_000, expected, atol=5 * 0.0072, rtol=0)
    assert float(noise.mean(0).abs().max()) < 5 * 1.5 / 200_000**0.5


def test_labels_are_balanced_or_given_without_touching_the_noise():
    distribution = nt.LinearlySeparable(V, epsilon=1.0, sigma=1.0)
    x, y = distribution.sample(10_000, seed=3, device="cpu")
    assert abs(float(y.double().mean()) - 0.5) < 5 * 0.5 / 100
    flipped, given = distribution.sample(10_000, seed=3, device="cpu", labels=1 - y)
    assert torch.equal(given, 1 - y)
    noise, same = (a.flatten(1) - (2 * b - 1)[:, None] * V.flatten() for a, b in ((x, y), (flipped, given)))
    torch.testing.assert_close(noise, same, atol=1e-5, rtol=0)


def test_a_seed_is_a_sample():
    distribution = nt.LinearlySeparable(V)
    first, again, other = (distribution.sample(50, seed=s, device="cpu")[0] for s in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_a_long_v_is_scaled_and_colour_keeps_its_channels():
    x, y = nt.LinearlySeparable(7 * V.expand(3, 32, 32), epsilon=1.0, sigma=0.0).sample(10, device="cpu")
    assert x.shape == (10, 3, 32, 32)
    torch.testing.assert_close(x.flatten(1).norm(dim=1), torch.ones(10))
    assert torch.equal(x[:, 0, 0, 0].sign(), (2 * y - 1).float())


def test_nothing_of_the_size_of_the_result_is_held_beside_it():
    n = 20_000  # 82 MB of samples
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        x, _ = nt.LinearlySeparable(V).sample(n, device="cpu")
    allocated = sum(event.self_cpu_memory_usage for event in profile.key_averages() if event.self_cpu_memory_usage > 0)
    assert allocated < 1.05 * x.nbytes


def test_nothing_is_copied_to_the_host_while_sampling(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the generator waits for the device")

    distribution = nt.LinearlySeparable(V)
    for name in ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__"):
        monkeypatch.setattr(torch.Tensor, name, refuse)
    distribution.sample(100, device="cpu")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nt.LinearlySeparable(torch.zeros(4, 4)), ValueError, "v = 0"),
        (lambda: nt.LinearlySeparable(torch.full((4, 4), math.nan)), ValueError, "NaN"),
        (lambda: nt.LinearlySeparable(torch.ones(16)), ValueError, r"\(16,\); expected \(height, width\)"),
        (lambda: nt.LinearlySeparable(V, epsilon=0.0), ValueError, "epsilon=0.0; expected a positive"),
        (lambda: nt.LinearlySeparable(V, epsilon=-1.0), ValueError, "epsilon=-1.0"),
        (lambda: nt.LinearlySeparable(V, epsilon=math.inf), ValueError, "epsilon=inf"),
        (lambda: nt.LinearlySeparable(V, sigma=-0.1), ValueError, "sigma=-0.1"),
        (lambda: nt.LinearlySeparable(V, sigma=math.nan), ValueError, "sigma=nan"),
        (lambda: nt.LinearlySeparable(V).sample(0), ValueError, "n=0; expected at least 1"),
        (lambda: nt.LinearlySeparable(V).sample(1.5), TypeError, "n=1.5"),
        (lambda: nt.LinearlySeparable(V).sample(2, seed=-3), ValueError, "seed=-3"),
        (lambda: nt.LinearlySeparable(V).sample(2, device="cuda:99"), ValueError, "CUDA devices here"),
        (lambda: nt.LinearlySeparable(V).sample(2, labels=torch.ones(2)), TypeError, "integer tensor"),
        (lambda: nt.LinearlySeparable(V).sample(2, labels=[0, 1]), TypeError, "list"),
        (lambda: nt.LinearlySeparable(V).sample(2, labels=torch.tensor([0, 1, 1])), ValueError, r"expected \(2,\)"),
        (lambda: nt.LinearlySeparable(V).sample(2, labels=torch.tensor([-1, 1])), ValueError, "expected 0 and 1"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_direction_at_an_angle_reaches_the_accuracy_of_the_formula():
    """Chapter 1: Phi(epsilon cos a / (sigma sin a)) along r at an angle a to v."""
    v, z = nt.fourier_basis((32, 32))[[3, 8]]
    x, y = nt.LinearlySeparable(v, epsilon=1.0, sigma=3.0).sample(50_000, device="cpu")
    for angle in (0.3, math.pi / 4, 1.2):
        r = math.cos(angle) * v + math.sin(angle) * z
        accuracy = float(((x.flatten(1) @ r.flatten() > 0) == (y == 1)).double().mean())
        expected = float(torch.special.ndtr(torch.tensor(1.0 * math.cos(angle) / (3.0 * math.sin(angle)))))
        assert accuracy == pytest.approx(expected, abs=5 * 0.5 / 50_000**0.5)


def test_the_difference_of_the_means_misses_by_the_stated_size():
    """Chapter 1: it estimates 2 epsilon v with an error of norm 2 sigma sqrt(D / n)."""
    n, sigma = 4000, 3.0
    x, y = nt.LinearlySeparable(V, epsilon=0.5, sigma=sigma).sample(n, device="cpu")
    error = x[y == 1].mean(0) - x[y == 0].mean(0) - 2 * 0.5 * V
    # The norm of 1,023 normal numbers scatters by 1 / sqrt(2 * 1023) = 2.2 %.
    assert float(error.norm()) == pytest.approx(2 * sigma * (1024 / n) ** 0.5, rel=5 * 0.022)
