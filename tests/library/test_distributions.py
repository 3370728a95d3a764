from __future__ import annotations

import math
import pickle

import pytest
import torch

import nadtools as nt
from nadtools.images import binary

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
        (lambda: nt.LinearlySeparable(torch.full((4, 4), math.nan)), ValueError, "NaN"),
        (lambda: nt.LinearlySeparable(torch.ones(16)), ValueError, r"\(16,\); expected \(height, width\)"),
        (lambda: nt.LinearlySeparable(V).sample(2, labels=torch.ones(2)), TypeError, "labels of dtype torch.float32"),
        (lambda: nt.LinearlySeparable(V).sample(2, labels=torch.tensor([0, 1, 1])), ValueError, r"expected \(2,\)"),
        (lambda: nt.LinearlySeparable(V).sample(2, labels=torch.tensor([-1, 1])), ValueError, "labels from 0 to 1"),
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


# Concatenations.

V1, V2, V3 = nt.fourier_basis((8, 8))[[2, 9, 40]]
FIRST, SECOND = nt.LinearlySeparable(V1, 1.0, 1.0), nt.LinearlySeparable(V2, 0.5, 1.0)
COLOUR = nt.LinearlySeparable(V3.expand(3, 8, 8), 2.0, 0.5)


def some_images(n=60, channels=3, seed=0) -> nt.Labelled:
    """Images whose first pixel tells which they are."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n, channels, 8, 8, generator=generator)
    x[:, 0, 0, 0] = torch.arange(n)
    return nt.Labelled(x, torch.randint(2, (n,), generator=generator))


def along(x, v):
    return x.flatten(1).double() @ v.flatten().double()


def test_each_part_of_a_concatenation_has_its_signal_and_all_share_the_label():
    whole = nt.concatenate(FIRST, COLOUR, SECOND)
    assert whole.image_shape == (5, 8, 8) and whole.channels == (range(1), range(1, 4), range(4, 5))
    x, y = whole.sample(500, seed=4, device="cpu")
    assert x.shape == (500, 5, 8, 8) and x.dtype == torch.float32 and y.dtype == torch.int64
    sign = (2 * y - 1).double()
    for part, channels in zip(whole.parts, whole.channels, strict=True):
        torch.testing.assert_close(along(x[:, list(channels)], part.v), part.epsilon * sign, atol=1e-5, rtol=0)
    assert 0 < int(y.sum()) < 500


def test_parts_are_independent_given_the_label():
    x, y = nt.concatenate(FIRST, FIRST, FIRST).sample(20_000, device="cpu")
    noise = x - (2 * y - 1).view(-1, 1, 1, 1) * V1
    product = torch.einsum("ncd,ned->ced", noise.flatten(2), noise.flatten(2)) / 20_000
    # Between parts the standard error of each of the 192 covariances is at most 1 / sqrt(20,000).
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert float(product[one, other].abs().max()) < 5 / 20_000**0.5
    assert float(product[0, 0].mean()) == pytest.approx(63 / 64, rel=0.01)


def test_a_part_does_not_depend_on_the_others():
    """So differences between pairs of directions come from the directions."""
    one, other = nt.concatenate(FIRST, SECOND), nt.concatenate(FIRST, nt.LinearlySeparable(V3), SECOND)
    (x, y), (other_x, other_y) = (whole.sample(40, seed=2, device="cpu") for whole in (one, other))
    assert torch.equal(x[:, 0], other_x[:, 0]) and torch.equal(y, other_y)
    again, _ = one.sample(40, seed=2, device="cpu")
    different, _ = one.sample(40, seed=3, device="cpu")
    assert torch.equal(again, x) and not torch.equal(different, x)
    # The noise of a number's part is the same for every direction, up to its component along this.
    swapped, _ = nt.concatenate(SECOND, FIRST).sample(40, seed=2, device="cpu")
    remove = torch.eye(64) - torch.outer(V1.flatten(), V1.flatten()) - torch.outer(V2.flatten(), V2.flatten())
    torch.testing.assert_close(x[:, 0].flatten(1) @ remove, swapped[:, 0].flatten(1) @ remove, atol=1e-5, rtol=0)


def test_labels_of_a_concatenation_can_be_given():
    whole = nt.concatenate(FIRST, SECOND)
    x, y = whole.sample(30, seed=1, device="cpu")
    flipped, given = whole.sample(30, seed=1, device="cpu", labels=1 - y)
    assert torch.equal(given, 1 - y)
    torch.testing.assert_close(along(x[:, 1], V2), -along(flipped[:, 1], V2), atol=1e-5, rtol=0)


def test_concatenating_is_associative():
    flat, nested = nt.concatenate(FIRST, COLOUR, SECOND), nt.concatenate(nt.concatenate(FIRST, COLOUR), SECOND)
    assert torch.equal(*(whole.sample(5, device="cpu")[0] for whole in (flat, nested)))
    alone = nt.concatenate(FIRST)
    assert alone.image_shape == (1, 8, 8) and len(alone.sample(3, device="cpu")[0]) == 3


def test_images_give_their_labels_to_the_other_parts():
    images = some_images()
    whole = nt.concatenate(images, SECOND)
    x, y = whole.sample(25, seed=5, device="cpu")
    rows = x[:, 0, 0, 0].long()
    assert len(set(rows.tolist())) == 25 and torch.equal(rows, rows.sort().values)
    assert torch.equal(x[:, :3], images.x[rows]) and torch.equal(y, images.y[rows])
    torch.testing.assert_close(along(x[:, 3], V2), 0.5 * (2 * y - 1).double(), atol=1e-5, rtol=0)
    # The set alone gives the same images, and more of the same seed contain fewer.
    alone, _ = images.sample(25, seed=5, device="cpu")
    assert torch.equal(alone, x[:, :3])
    assert set(rows.tolist()) < set(images.sample(40, seed=5, device="cpu")[0][:, 0, 0, 0].long().tolist())


def test_as_many_images_as_there_are_are_the_set_in_its_order():
    images = some_images()
    (x, y), (whole, labels) = images.sample(60, device="cpu"), nt.concatenate(SECOND, images).sample(60, device="cpu")
    assert torch.equal(x, images.x) and torch.equal(whole[:, 1:], images.x)
    assert torch.equal(y, images.y) and torch.equal(labels, images.y)
    x.zero_()
    assert images.x.any(), "the sample is a copy"


def test_two_sets_of_images_share_labels():
    grey = some_images(channels=1)
    colour = nt.Labelled(some_images(seed=1).x, grey.y)
    x, y = nt.concatenate(grey, colour).sample(20, seed=3, device="cpu")
    rows = x[:, 0, 0, 0].long()
    assert torch.equal(x, torch.cat((grey.x, colour.x), 1)[rows]) and torch.equal(y, grey.y[rows])
    # Without a D(v) there may be more classes than two.
    many = nt.Labelled(grey.x, torch.arange(60) % 10)
    assert int(many.sample(60, device="cpu")[1].max()) == 9
    split = nt.Labelled(many.x, binary(many.y, range(5, 10)))
    assert nt.concatenate(split, FIRST).sample(60, device="cpu")[1].tolist() == [0] * 5 + [1] * 5 + (
        ([0] * 5 + [1] * 5) * 5
    )


def test_parts_are_switched_off():
    whole = nt.concatenate(FIRST, COLOUR, SECOND)
    x, _ = whole.sample(6, device="cpu")
    before = x.clone()
    middle_off = torch.cat((x[:, :1], torch.zeros(6, 3, 8, 8), x[:, 4:]), 1)
    assert torch.equal(whole.only(0, 2)(x), middle_off)
    assert torch.equal(whole.only(1)(x), x - middle_off) and torch.equal(whole.only(0, 1, 2)(x), x)
    assert torch.equal(x, before), "the samples themselves stay"
    view = pickle.loads(pickle.dumps(whole.only(2)))
    assert torch.equal(view(x)[:, 4], x[:, 4]) and not view(x)[:, :4].any() and view == whole.only(2)


def test_directions_of_parts_are_directions_of_the_whole():
    whole = nt.concatenate(some_images(), COLOUR, SECOND)
    x, y = whole.sample(10, device="cpu")
    torch.testing.assert_close(along(x, whole.direction(1)), 2.0 * (2 * y - 1).double(), atol=1e-5, rtol=0)
    assert torch.equal(whole.direction(2)[6], V2) and not whole.direction(2)[:6].any()
    given = whole.direction(0, 5 * torch.ones(3, 8, 8))
    assert float(given.norm()) == pytest.approx(1) and not given[3:].any() and given[:3].all()


def test_a_sweep_over_concatenations_tests_each_part_alone(tmp_path):
    problems = {(i, j): nt.concatenate(nt.LinearlySeparable(v, 2.0, 0.1), nt.LinearlySeparable(w, 0.1, 0.1))
                for (i, v), (j, w) in [((0, V1), (1, V2)), ((1, V2), (0, V1))]}  # fmt: skip
    first, second = (problems[0, 1].only(part) for part in (0, 1))

    arguments = {"num_train": 200, "num_test": 100, "views": {"first": first, "second": second}, "device": "cpu",
                 "config": nt.TrainConfig(epochs=3, batch_size=32), "journal": tmp_path / "j",
                 "progress": False}  # fmt: skip
    table = nt.sweep("logreg", problems, **arguments)
    assert list(table.direction) == [(0, 1), (1, 0)]
    # The first part's margin is twenty times that of the second, so the network goes by it.
    assert table.test_accuracy.min() > 0.95 and table.test_accuracy_first.min() > 0.95
    assert table.test_accuracy_second.max() < 0.9
    assert nt.sweep("logreg", problems, **arguments).equals(table), "the journal knows the problems again"


def test_at_most_one_part_is_held_beside_the_result():
    whole = nt.concatenate(nt.LinearlySeparable(V), nt.LinearlySeparable(V), nt.LinearlySeparable(V))
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        x, _ = whole.sample(2000, device="cpu")
    # All parts are allocated once, one after the other, and nothing else of their size.
    allocated = sum(event.self_cpu_memory_usage for event in profile.key_averages() if event.self_cpu_memory_usage > 0)
    assert allocated < 2.05 * x.nbytes


def test_nothing_is_copied_to_the_host_while_concatenating(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the generator waits for the device")

    wholes = nt.concatenate(FIRST, COLOUR), nt.concatenate(some_images(), SECOND)
    for name in ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__"):
        monkeypatch.setattr(torch.Tensor, name, refuse)
    for whole in wholes:
        x, _ = whole.sample(20, device="cpu")
        whole.only(0)(x)


def test_a_part_tells_the_classes_apart_for_a_network():
    """A network that reads one channel only is right with this channel, and not without it."""
    whole = nt.concatenate(FIRST, SECOND)
    x, y = whole.sample(200, device="cpu")
    network = nt.build("logreg", in_channels=2, image_size=(8, 8))
    with torch.no_grad():
        network.output.weight.copy_(torch.stack((torch.zeros(128), whole.direction(1).flatten())))
        network.output.bias.copy_(torch.tensor([0.0, -0.1]))
    assert nt.evaluate(network, (x, y)).accuracy == 1
    assert nt.evaluate(network, (whole.only(1)(x), y)).accuracy == 1
    off = nt.evaluate(network, (whole.only(0)(x), y)).accuracy
    assert off == float((y == 0).double().mean())


LABELLED = some_images()
WHOLE = nt.concatenate(LABELLED, SECOND)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nt.concatenate(), TypeError, "at least one part"),
        (lambda: nt.concatenate(V1, V2), TypeError, r"parts\[0\] of type Tensor; expected LinearlySeparable"),
        (lambda: nt.Concatenated([FIRST]), TypeError, "expected a tuple"),
        (lambda: nt.concatenate(FIRST, nt.LinearlySeparable(V)), ValueError, "8x8 and 32x32 pixels; expected one size"),
        (lambda: nt.concatenate(LABELLED, some_images(50)), ValueError, "60 and 50 images"),
        (lambda: nt.concatenate(LABELLED, nt.Labelled(LABELLED.x, 1 - LABELLED.y)), ValueError, "differ at 60 of 60"),
        (lambda: nt.concatenate(nt.Labelled(LABELLED.x, LABELLED.y + 1), FIRST), ValueError, "0 to 2.*binary makes"),
        (lambda: nt.Labelled(LABELLED.x, LABELLED.y.to("meta")), TypeError, "got y on the device 'meta'"),
        (lambda: nt.Labelled(LABELLED.x, LABELLED.y[:-1]), ValueError, r"y of shape \(59,\); expected"),
        (lambda: nt.Labelled(LABELLED.x.byte(), LABELLED.y), TypeError, "torch.uint8; expected a tensor of .*float32"),
        (lambda: nt.Labelled(LABELLED.x, LABELLED.y - 1), ValueError, "y from -1 to .*; expected labels from 0"),
        (lambda: LABELLED.sample(61), ValueError, "n=61, but there are 60"),
        (lambda: WHOLE.sample(61), ValueError, "n=61, but there are 60"),
        (lambda: WHOLE.sample(2, labels=torch.tensor([0, 1])), ValueError, "leave labels out"),
        (lambda: nt.concatenate(FIRST).sample(2, labels=torch.tensor([0, 2])), ValueError, "labels from 0 to 1"),
        (lambda: WHOLE.only(2), ValueError, "parts=2; expected .* from 0 to 1"),
        (lambda: WHOLE.only(0)(torch.zeros(1, 3, 8, 8)), ValueError, r"\(1, 3, 8, 8\); expected \(n, 4"),
        (lambda: WHOLE.only(), ValueError, "no part that stays"),
        (lambda: WHOLE.direction(2), ValueError, "part=2; expected"),
        (lambda: WHOLE.direction(0), ValueError, "expected the argument v"),
        (lambda: WHOLE.direction(0, V1), ValueError, r"\(8, 8\) for part 0; expected \(3, 8, 8\)"),
    ],
)
def test_bad_concatenations(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_images_on_different_devices_are_refused():
    elsewhere = object.__new__(nt.Labelled)  # a tensor without data passes no check of its labels
    object.__setattr__(elsewhere, "x", LABELLED.x.to("meta"))
    object.__setattr__(elsewhere, "y", LABELLED.y.to("meta"))
    with pytest.raises(ValueError, match="images on cpu and meta; expected one device"):
        nt.concatenate(LABELLED, elsewhere)
