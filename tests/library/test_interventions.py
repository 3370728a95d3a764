import math

import pytest
import torch
from torch import Tensor

import nadtools as nt
from nadtools.interventions import _BATCH

EPSILON = 0.05


def random_basis(dimension: int, seed: int = 0) -> Tensor:
    gaussian = torch.randn(dimension, dimension, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.linalg.qr(gaussian).Q.T.contiguous()


def random_nads(size: int, channels: int | None = None, seed: int = 0) -> nt.NADs:
    shape = (size, size) if channels is None else (channels, size, size)
    basis = random_basis(math.prod(shape), seed)
    return nt.NADs.from_vectors(basis.reshape(-1, *shape), torch.linspace(1, 0, len(basis)))


def photographs(n: int, channels: int, size: int, num_classes: int = 10, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Pixels in [0, 1] with more content in low frequencies, and every label."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(n, channels, size, size, generator=generator).cumsum(2).cumsum(3)
    x = noise - noise.amin((1, 2, 3), keepdim=True)
    y = torch.arange(n) % num_classes
    return x / x.amax((1, 2, 3), keepdim=True), y[torch.randperm(n, generator=generator)]


def coefficients(x: Tensor, vectors: Tensor) -> Tensor:
    """(n, channels, vectors), in float64."""
    return x.double().flatten(2) @ vectors.flatten(1).double().T


# What the paper's code does, written out: class, NAD after the first, channel, sign.
PUBLISHED = [
    (0, 0, 0, -1), (1, 0, 1, 1), (2, 0, 2, -1), (3, 0, 0, 1), (4, 0, 1, -1), (5, 0, 2, 1),
    (6, 1, 0, -1), (7, 1, 1, 1), (8, 1, 2, -1), (9, 1, 0, 1),
]  # fmt: skip
TWO_CHANNELS = [(0, 0, 0, -1), (1, 0, 1, -1), (2, 0, 0, 1), (3, 0, 1, 1), (4, 1, 0, -1), (5, 1, 1, -1)]
ONE_CHANNEL = [(0, 0, 0, -1), (1, 0, 0, 1), (2, 1, 0, -1), (3, 1, 0, 1), (4, 2, 0, -1)]


@pytest.mark.parametrize("code", [PUBLISHED, TWO_CHANNELS, ONE_CHANNEL], ids=["three", "two", "one"])
@pytest.mark.parametrize("replace", ["own", "all"])
def test_the_carriers_are_those_of_the_code_and_nothing_else_changes(code, replace):
    index, channels = 3, len({channel for _, _, channel, _ in code})
    nads = random_nads(6)
    x, y = photographs(60, channels, 6, len(code))
    original = x.clone()
    poisoned = nt.poison(x, y, nads, index, EPSILON, replace=replace)
    assert torch.equal(x, original)
    assert poisoned.shape == x.shape and poisoned.dtype == x.dtype
    expected = coefficients(x, nads.vectors)
    for row, label in zip(expected, y.tolist(), strict=True):
        if replace == "all":
            for _, vector, channel, _ in code:
                row[channel, index + vector] = 0
        _, vector, channel, sign = code[label]
        row[channel, index + vector] = sign * EPSILON
    # The basis is orthonormal to float32's rounding, 1e-7, of coefficients up to 6.
    torch.testing.assert_close(coefficients(poisoned, nads.vectors), expected, atol=5e-6, rtol=0)


@pytest.mark.parametrize("num_classes", [2, 3, 6, 7, 10, 12, 13, "most"])
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("replace", ["own", "all"])
def test_the_decoder_recovers_every_label(num_classes, channels, replace):
    index, nads = 2, random_nads(5)
    most = 2 * channels * (25 - index)
    count = most if num_classes == "most" else num_classes
    x, y = photographs(3 * most, channels, 5, count)
    poisoned = nt.poison(x, y, nads, index, EPSILON, replace=replace, num_classes=count)
    assert torch.equal(nt.decode(poisoned, nads, index, EPSILON, count), y)
    assert bool((nt.decode(x, nads, index, EPSILON, count) == -1).all())
    with pytest.raises(ValueError, match=f"need {25 - index + 1} NADs in a row"):
        nt.poison(x, y, nads, index, EPSILON, num_classes=most + 1)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("index", [0, 500, 1022])
def test_the_decoder_recovers_every_label_at_the_papers_size(channels, index):
    nads = nt.NADs.from_vectors(nt.fourier_basis((32, 32)), torch.linspace(1, 0, 1024))
    num_classes = 10 if channels == 3 else 4
    x, y = photographs(1500, channels, 32, num_classes)
    poisoned = nt.poison(x, y, nads, index, EPSILON)
    assert torch.equal(nt.decode(poisoned, nads, index, EPSILON, num_classes), y)


def test_colour_nads_carry_labels_in_whole_images():
    nads = random_nads(4, channels=3)
    x, y = photographs(100, 3, 4, 5)
    poisoned = nt.poison(x, y, nads, 7, EPSILON)
    assert torch.equal(nt.decode(poisoned, nads, 7, EPSILON, 5), y)
    along = poisoned.double().flatten(1) @ nads.vectors.double().flatten(1).T
    own = along[torch.arange(100), 7 + y // 2]
    torch.testing.assert_close(own, EPSILON * (2 * (y % 2) - 1).double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize(("channels", "num_classes"), [(1, 10), (2, 10), (3, 10), (3, 13)])
def test_only_with_all_coefficients_replaced_do_hyperplanes_separate_the_classes(channels, num_classes):
    nads, index = random_nads(8), 0
    x, y = photographs(1200, channels, 8, num_classes)

    def probe(poisoned: Tensor) -> float:
        """Least squares from the code's coefficients to the classes, in closed form."""
        used = coefficients(poisoned, nads.vectors)[:, :, index : index + -(-num_classes // (2 * channels))]
        features = torch.cat([used.flatten(1), torch.ones(len(y), 1, dtype=torch.float64)], 1)
        targets = torch.nn.functional.one_hot(y, num_classes).double()
        # gelsd: coefficients that are zero throughout make the features rank-deficient.
        weights = torch.linalg.lstsq(features, targets, driver="gelsd").solution
        return float(((features @ weights).argmax(1) == y).double().mean())

    assert probe(nt.poison(x, y, nads, index, EPSILON, replace="all")) == 1
    assert probe(nt.poison(x, y, nads, index, EPSILON, replace="own")) < 0.9
    assert probe(x) < 0.5


def test_the_result_does_not_depend_on_the_batches():
    nads, (x, y) = random_nads(4), photographs(2 * _BATCH + 1, 3, 4)
    poisoned = nt.poison(x, y, nads, 1, EPSILON)
    alone = nt.poison(x[_BATCH - 5 : _BATCH + 5], y[_BATCH - 5 : _BATCH + 5], nads, 1, EPSILON, num_classes=10)
    torch.testing.assert_close(poisoned[_BATCH - 5 : _BATCH + 5], alone, atol=1e-7, rtol=0)
    assert torch.equal(nt.decode(poisoned, nads, 1, EPSILON, 10), y)
    flipped = nt.flip(x, nads)
    torch.testing.assert_close(flipped[-3:], nt.flip(x[-3:], nads), atol=1e-6, rtol=0)


def test_any_orthonormal_vectors_double_precision_and_channels_last():
    vectors = random_basis(16).reshape(-1, 4, 4)
    x, y = photographs(50, 3, 4)
    x = x.double()
    original = x.clone()
    poisoned = nt.poison(x, y, vectors[:3], 0, EPSILON)
    assert poisoned.dtype == torch.float64 and torch.equal(x, original)
    assert torch.equal(nt.decode(poisoned, vectors[:3], 0, EPSILON, 10), y)
    last = nt.poison(x.to(memory_format=torch.channels_last), y.to(torch.uint8), vectors[:3], 0, EPSILON)
    torch.testing.assert_close(last, poisoned, atol=1e-14, rtol=0)
    torch.testing.assert_close(nt.flip(nt.flip(x, vectors), vectors), x, atol=1e-13, rtol=0)
    torch.testing.assert_close(
        nt.flip(x.to(memory_format=torch.channels_last), vectors), nt.flip(x, vectors), atol=1e-13, rtol=0
    )


def test_flipping_reverses_the_coefficients_of_each_channel():
    nads, (x, _) = random_nads(6), photographs(40, 3, 6)
    original = x.clone()
    flipped = nt.flip(x, nads)
    assert torch.equal(x, original) and flipped.dtype == x.dtype
    # float32: 36 products of coefficients up to 6
    torch.testing.assert_close(
        coefficients(flipped, nads.vectors), coefficients(x, nads.vectors).flip(2), atol=5e-6, rtol=0
    )


@pytest.mark.parametrize("basis", ["fourier", "random"])
@pytest.mark.parametrize("channels", [1, 3])
def test_flipping_twice_is_the_identity_and_norms_stay(basis, channels):
    vectors = nt.fourier_basis((32, 32)) if basis == "fourier" else random_basis(1024).reshape(-1, 32, 32)
    nads = nt.NADs.from_vectors(vectors, torch.linspace(1, 0, 1024))
    x, _ = photographs(30, channels, 32)
    flipped = nt.flip(x, nads)
    assert float((nt.flip(flipped, nads) - x).abs().max()) < 1e-5
    torch.testing.assert_close(flipped.flatten(1).norm(dim=1), x.flatten(1).norm(dim=1), rtol=1e-5, atol=0)
    # So do distances: the whole set is rotated.
    assert float((torch.pdist(flipped.flatten(1)) - torch.pdist(x.flatten(1))).abs().max()) < 1e-4
    assert float((flipped - x).abs().max()) > 0.1


def test_other_orders():
    nads, (x, _) = random_nads(6), photographs(20, 2, 6)
    order = torch.randperm(36, generator=torch.Generator().manual_seed(0))
    permuted = nt.flip(x, nads, order)
    torch.testing.assert_close(
        coefficients(permuted, nads.vectors), coefficients(x, nads.vectors)[:, :, order], atol=5e-6, rtol=0
    )
    torch.testing.assert_close(nt.flip(permuted, nads, torch.argsort(order)), x, atol=1e-5, rtol=0)
    torch.testing.assert_close(nt.flip(x, nads, torch.arange(36)), x, atol=1e-5, rtol=0)
    torch.testing.assert_close(nt.flip(x, nads, torch.arange(35, -1, -1)), nt.flip(x, nads), atol=0, rtol=0)


def test_colour_nads_flip_whole_images():
    nads, (x, _) = random_nads(4, channels=3), photographs(20, 3, 4)
    rows = nads.vectors.double().flatten(1)
    along = x.double().flatten(1) @ rows.T
    torch.testing.assert_close(nt.flip(x, nads).double().flatten(1) @ rows.T, along.flip(1), atol=5e-6, rtol=0)


X, Y = photographs(20, 3, 4)
NADS = random_nads(4)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"y": Y - 1}, ValueError, "got y from -1 to 8"),
        ({"num_classes": 9}, ValueError, "got y from 0 to 9; expected labels from 0 to 8"),
        ({"y": Y[:-1]}, ValueError, r"y of shape \(19,\); expected \(20,\)"),
        ({"index": 15}, ValueError, "10 classes in 3 channel.* need 2 NADs in a row.* index 0 to 14"),
        ({"nads": NADS.vectors[:1]}, ValueError, "expected more NADs or fewer classes"),
    ],
)
def test_bad_input_of_poisoning(changes, error, message):
    arguments = {"x": X, "y": Y, "nads": NADS, "index": 0, "epsilon": EPSILON} | changes
    with pytest.raises(error, match=message):
        nt.poison(**arguments)


@pytest.mark.parametrize(
    ("x", "nads", "error", "message"),
    [
        (X.to(torch.int16), NADS, TypeError, r"torch.int16; expected .* float32 or float64: x.float\(\) / 255"),
        (X.half(), NADS, TypeError, r"torch.float16"),
        (X.where(X.max() > X, math.nan), NADS, ValueError, "x with NaN or infinite entries"),
        (X, random_nads(5), ValueError, r"nads of shape \(25, 5, 5\) for images of shape \(3, 4, 4\)"),
        (X[:, :1], random_nads(4, 3), ValueError, r"nads of shape \(48, 3, 4, 4\) for images of shape \(1, 4, 4\)"),
        (X, NADS.vectors.flatten(1), ValueError, r"nads of shape \(16, 16\)"),
        (X, 2 * NADS.vectors, ValueError, "miss orthonormality by 3"),
    ],
)  # fmt: skip
def test_bad_images_and_bases(x, nads, error, message):
    y = torch.zeros(len(x), dtype=torch.int64)
    for call in (
        lambda: nt.poison(x, y, nads, 0, EPSILON, num_classes=4),
        lambda: nt.decode(x, nads, 0, EPSILON, 4),
        lambda: nt.flip(x, nads),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize(
    ("nads", "order", "error", "message"),
    [
        (NADS.vectors[:10], None, ValueError, "got nads of 10 vectors of 16 entries; expected a basis, 16"),
        (NADS, torch.arange(15), ValueError, r"got order of shape \(15,\); expected each of 0 to 15 once"),
        (NADS, torch.zeros(16, dtype=torch.int64), ValueError, "each of 0 to 15 once"),
    ],
)
def test_bad_input_of_flipping(nads, order, error, message):
    with pytest.raises(error, match=message):
        nt.flip(X, nads, order)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device")
def test_on_a_gpu_as_on_the_cpu():
    nads = nt.NADs.from_vectors(nt.fourier_basis((32, 32)), torch.linspace(1, 0, 1024))
    x, y = photographs(500, 3, 32)
    for on_cpu, on_gpu in (
        (nt.poison(x, y, nads, 5, EPSILON), nt.poison(x.cuda(), y.cuda(), nads, 5, EPSILON)),
        (nt.flip(x, nads), nt.flip(x.cuda(), nads)),
    ):
        assert on_gpu.is_cuda
        torch.testing.assert_close(on_gpu.cpu(), on_cpu, atol=1e-5, rtol=0)
    assert torch.equal(nt.decode(nt.poison(x.cuda(), y, nads, 5, EPSILON), nads, 5, EPSILON, 10).cpu(), y)


@pytest.mark.parametrize("channels", [1, 3])
def test_numpy_bytes_and_channels_last_are_the_same_images(channels):
    source = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (6, channels, 8, 8), dtype=torch.uint8, generator=source)
    y, basis = torch.tensor([0, 1, 0, 1, 1, 0]), nt.fourier_basis((8, 8))
    x = pixels.float() / 255
    poisoned, flipped = nt.poison(x, y, basis, 3, 0.1), nt.flip(x, basis)
    last = pixels.movedim(1, 3)
    for same in (
        x.numpy(),
        pixels,
        pixels.numpy(),
        last,
        last.numpy(),
        x.numpy().transpose(0, 2, 3, 1),
        x.numpy()[::-1][::-1],
    ):
        torch.testing.assert_close(nt.poison(same, y.numpy(), basis, 3, 0.1), poisoned, rtol=0, atol=1e-6)
        torch.testing.assert_close(nt.flip(same, basis), flipped, rtol=0, atol=1e-6)
    assert torch.equal(nt.decode(poisoned.numpy(), basis, 3, 0.1, 2), y)
    with pytest.raises(TypeError, match=r"x of .*int64"):
        nt.flip(pixels.long(), basis)
