import dataclasses
import hashlib
import os
import pickle
import struct
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.datasets import CIFAR10

import nadtools as nt
from nadtools import image_sources as module
from nadtools.image_sources import ImagesNotFoundError

DATA = os.environ.get("NADTOOLS_DATA")
# Of that file's pixels (channels first) and labels: x_train, y_train, x_test, y_test. The original files should give
# the same: they were not at hand when it was computed.
EXACT_SUBSET_SHA256 = "e6fb7fdaffd12982b31c2571a13736b7d59e7eb648d3ffd01e85302d5203c2a0"


@pytest.fixture
def reader_folder() -> Path:
    """The reader's folder with CIFAR-10's first images, taken before `nothing_at_hand` hides it."""
    if not DATA or not (Path(DATA) / "data" / "cifar10-first-1000-per-batch.npz").is_file():
        pytest.skip("set NADTOOLS_DATA to a folder with data/cifar10-first-1000-per-batch.npz")
    return Path(DATA)


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch, tmp_path):
    """No network, no reader's folder, an empty cache, no progress bars."""

    def no_network(*_, **__):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    monkeypatch.delenv("NADTOOLS_DATA", raising=False)
    monkeypatch.setenv("NADTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TQDM_DISABLE", "1")


def write_npz(path: Path, **changes) -> Path:
    rng = np.random.default_rng(1)
    arrays = {
        "x_train": rng.integers(0, 256, (60, 32, 32, 3), np.uint8),
        "y_train": np.arange(60, dtype=np.uint8)[:, None] % 3,
        "x_test": rng.integers(0, 256, (30, 32, 32, 3), np.uint8),
        "y_test": np.arange(30, dtype=np.uint8)[:, None] % 3,
    }
    arrays |= changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.fixture
def small_cifar(monkeypatch):
    """Give torchvision the checksums of small batches, and return a function that writes them."""
    rng = np.random.default_rng(2)
    contents = {}
    for name, _ in (*CIFAR10.train_list, *CIFAR10.test_list):
        batch = {"data": rng.integers(0, 256, (20, 3072), np.uint8), "labels": rng.integers(0, 10, 20).tolist()}
        contents[name] = pickle.dumps(batch)
    contents["batches.meta"] = pickle.dumps({"label_names": list(module.CIFAR10_CLASSES)})
    digests = {name: hashlib.md5(content, usedforsecurity=False).hexdigest() for name, content in contents.items()}
    monkeypatch.setattr(CIFAR10, "train_list", [[name, digests[name]] for name, _ in CIFAR10.train_list])
    monkeypatch.setattr(CIFAR10, "test_list", [[name, digests[name]] for name, _ in CIFAR10.test_list])
    monkeypatch.setattr(CIFAR10, "meta", CIFAR10.meta | {"md5": digests["batches.meta"]})
    monkeypatch.setattr(module, "CIFAR10_BATCH", 20)

    def write(folder: Path) -> dict[str, bytes]:
        target = folder / "cifar-10-batches-py"
        target.mkdir(parents=True)
        for name, content in contents.items():
            (target / name).write_bytes(content)
        return contents

    return write


def test_keras_layout(tmp_path):
    path = write_npz(tmp_path / "mine.npz")
    images = nt.load_images(path)
    with np.load(path) as stored:
        expected = stored["x_train"].transpose(0, 3, 1, 2) / 255
        labels = stored["y_train"][:, 0]
    assert images.x_train.shape == (60, 3, 32, 32) and images.x_test.shape == (30, 3, 32, 32)
    assert images.x_train.dtype == torch.float32 and images.y_train.dtype == images.y_test.dtype == torch.int64
    np.testing.assert_allclose(images.x_train.numpy(), expected, atol=1e-7, rtol=0)  # float32 rounding
    assert images.y_train.tolist() == labels.tolist()
    assert (images.class_names, images.num_classes, images.image_shape) == (("0", "1", "2"), 3, (3, 32, 32))
    assert images.source == "mine.npz"
    assert "tensor" not in repr(images).split("mean=")[0]


def test_mean_and_deviation_are_those_of_all_training_pixels(tmp_path):
    images = nt.load_images(write_npz(tmp_path / "a.npz"))
    pixels = images.x_train.double().transpose(0, 1).flatten(1)
    torch.testing.assert_close(images.mean.double(), pixels.mean(1), atol=1e-6, rtol=0)
    torch.testing.assert_close(images.std.double(), pixels.std(1, correction=0), atol=1e-6, rtol=0)
    normalised = images.normalise(images.x_train)
    assert normalised.mean((0, 2, 3)).abs().max() < 1e-5
    torch.testing.assert_close(normalised.std((0, 2, 3), correction=0), torch.ones(3), atol=1e-5, rtol=0)
    # Of the original images, also where others have taken their place.
    changed = dataclasses.replace(images, x_train=images.x_train * 2)
    torch.testing.assert_close(changed.normalise(images.x_train), normalised, atol=0, rtol=0)
    with pytest.raises(TypeError, match="uint8"):
        images.normalise((images.x_train * 255).to(torch.uint8))
    with pytest.raises(ValueError, match=r"expected \(n, 3, height, width\)"):
        images.normalise(images.x_train[:, :1])


def test_a_constant_channel_is_only_shifted(tmp_path):
    black = np.zeros((60, 32, 32), np.uint8)
    images = nt.load_images(write_npz(tmp_path / "a.npz", x_train=black, x_test=black[:30]))
    assert images.normalise(images.x_train).abs().max() == 0


def test_floats_and_class_names(tmp_path):
    grey = np.random.default_rng(0).random((60, 32, 32))
    path = write_npz(
        tmp_path / "a.npz", x_train=grey, x_test=grey[:30, ..., None], class_names=np.array(["a", "b", "c"])
    )
    images = nt.load_images(path)
    assert images.class_names == ("a", "b", "c")
    np.testing.assert_allclose(images.x_train[:, 0].numpy(), grey, atol=1e-7, rtol=0)
    np.testing.assert_allclose(images.x_test[:, 0].numpy(), grey[:30], atol=1e-7, rtol=0)


def test_channels(tmp_path):
    path = write_npz(tmp_path / "a.npz")
    colour, grey = nt.load_images(path), nt.load_images(path, channels=1)
    red, green, blue = colour.x_train.unbind(1)
    expected = 0.299 * red + 0.587 * green + 0.114 * blue
    torch.testing.assert_close(grey.x_train, expected[:, None], atol=1e-6, rtol=0)
    with np.load(path) as stored:
        pillow = np.asarray(Image.fromarray(stored["x_train"][0]).convert("L"))
    np.testing.assert_allclose(255 * grey.x_train[0, 0].numpy(), pillow, atol=1)  # it rounds
    assert grey.source == "a.npz; in grey" and grey.mean.shape == (1,)
    with np.load(path) as stored:
        flat = write_npz(tmp_path / "b.npz", x_train=stored["x_train"][..., 0], x_test=stored["x_test"][..., 0])
    repeated = nt.load_images(flat, channels=3)
    assert torch.equal(repeated.x_train, colour.x_train[:, :1].expand(-1, 3, -1, -1))
    assert repeated.source == "b.npz; grey repeated in three channels"


@pytest.mark.parametrize("size", [8, 28, 45])
def test_resizing_agrees_with_pillow(size, tmp_path):
    path = write_npz(tmp_path / "a.npz")
    images = nt.load_images(path, size=size)
    with np.load(path) as stored:
        pillow = Image.fromarray(stored["x_train"][0]).resize((size, size), Image.Resampling.BILINEAR)
    assert images.x_train.shape == (60, 3, size, size)
    # Pillow rounds to 8 bits after each of its two passes.
    np.testing.assert_allclose(255 * images.x_train[0].movedim(0, 2).numpy(), np.asarray(pillow), atol=1.5)
    assert f"32x32 pixels resized to {size}x{size}" in images.source
    assert images.x_train.min() >= 0 and images.x_train.max() <= 1


def test_subsets_of_each_class(tmp_path):
    path = write_npz(tmp_path / "a.npz")
    everything = nt.load_images(path)
    small, large = (nt.load_images(path, per_class=count, seed=5) for count in (4, 9))
    assert small.y_train.bincount().tolist() == [4, 4, 4] and len(small.y_test) == 30
    assert "4 of each class to train (seed 5)" in small.source

    def positions(some: torch.Tensor) -> list[int]:
        return [int((everything.x_train == image).flatten(1).all(1).nonzero()) for image in some]

    assert positions(small.x_train) == sorted(positions(small.x_train))
    assert set(positions(small.x_train)) < set(positions(large.x_train))
    assert torch.equal(small.y_train, everything.y_train[positions(small.x_train)])
    assert torch.equal(nt.load_images(path, per_class=4, seed=5).x_train, small.x_train)
    assert not torch.equal(nt.load_images(path, per_class=4, seed=6).x_train, small.x_train)
    tested = nt.load_images(path, test_per_class=2)
    assert tested.y_test.bincount().tolist() == [2, 2, 2] and len(tested.y_train) == 60
    with pytest.raises(ValueError, match="per_class=21; the class '0' has 20 images to train"):
        nt.load_images(path, per_class=21)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"y_test": None}, ValueError, "it lacks y_test"),
        ({"x_train": np.zeros((60, 3, 32, 32), np.uint8)}, ValueError, r"x_train of shape \(60, 3, 32, 32\)"),
        ({"x_train": np.zeros((60, 32, 32, 3), np.int64)}, TypeError, "expected uint8 from 0 to 255, or floats"),
        ({"x_train": np.full((60, 32, 32, 3), 255.0)}, ValueError, r"expected floats in \[0, 1\]"),
        ({"x_train": np.full((60, 32, 32, 3), np.nan)}, ValueError, "values from nan to nan"),
        ({"x_train": np.zeros((59, 32, 32, 3), np.uint8)}, ValueError, "59 images as x_train, 60 labels as y_train"),
        ({"x_test": np.zeros((30, 28, 28, 3), np.uint8)}, ValueError, "expected one shape"),
        ({"y_train": np.zeros(60)}, TypeError, "y_train of dtype float64; expected integers"),
        ({"y_train": np.full(60, -1)}, ValueError, "labels from 0"),
        (
            {"y_train": np.array([0, 10**7] * 30)},
            ValueError,
            "label 10000000; expected labels 0, 1, 2, ... below 100,000",
        ),
        ({"y_test": np.full(30, 2**62)}, ValueError, f"y_test with the label {2**62}"),
        ({"y_test": np.full(30, 2**63, np.uint64)}, ValueError, f"y_test with the label {2**63}"),
        ({"class_names": np.zeros(10**6, "U1")}, ValueError, "expected .n,., at most 100,000 names"),
        ({"class_names": np.array("abc")}, ValueError, r"class_names of shape \(\)"),
        ({"class_names": np.array(["a", "b"])}, ValueError, "labels up to 2 and 2 class_names"),
        ({"class_names": np.array(["a", None], dtype=object)}, ValueError, "class_names. holds Python objects"),
    ],
)
def test_a_npz_of_another_layout_is_refused(changes, error, message, tmp_path):
    with pytest.raises(error, match=message):
        nt.load_images(write_npz(tmp_path / "a.npz", **changes))


def test_a_npz_that_is_damaged_or_too_large_is_refused(tmp_path, monkeypatch):
    path = write_npz(tmp_path / "a.npz")
    monkeypatch.setattr(module, "_MAX_NPZ_BYTES", 10**5)
    with pytest.raises(ValueError, match="GiB"):
        nt.load_images(path)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="cannot be used"):
        nt.load_images(path)


def test_cifar10_from_a_folder(small_cifar, tmp_path, monkeypatch):
    contents = small_cifar(tmp_path / "data")
    images = nt.load_images("cifar10", data_dir=tmp_path)
    assert images.x_train.shape == (100, 3, 32, 32) and images.x_test.shape == (20, 3, 32, 32)
    assert images.class_names == module.CIFAR10_CLASSES and images.source == "CIFAR-10"
    second = pickle.loads(contents["data_batch_2"])
    np.testing.assert_allclose(
        images.x_train[20:40].numpy(), second["data"].reshape(-1, 3, 32, 32) / 255, atol=1e-7, rtol=0
    )
    assert images.y_train[20:40].tolist() == second["labels"]
    # The first three of each batch.
    few = nt.load_images("cifar10", subset=3, data_dir=tmp_path)
    kept = [20 * batch + i for batch in range(5) for i in range(3)]
    assert torch.equal(few.x_train, images.x_train[kept]) and torch.equal(few.y_train, images.y_train[kept])
    assert torch.equal(few.x_test, images.x_test[:3])
    assert few.source == "CIFAR-10, the first 3 images of each batch"
    # torchvision's own root will do, and the environment variable.
    monkeypatch.setenv("NADTOOLS_DATA", str(tmp_path / "data"))
    assert torch.equal(nt.load_images("cifar10").x_test, images.x_test)
    assert nt.load_images().source == nt.load_images("auto").source == "CIFAR-10"


def test_changed_batches_are_refused_before_they_are_unpickled(small_cifar, tmp_path, monkeypatch):
    small_cifar(tmp_path)
    batch = tmp_path / "cifar-10-batches-py" / "data_batch_3"
    batch.write_bytes(batch.read_bytes()[:-1])
    monkeypatch.setattr(pickle, "load", lambda *_, **__: pytest.fail("unpickled"))
    with pytest.raises(ValueError, match="damaged or incomplete"):
        nt.load_images("cifar10", data_dir=tmp_path)


def test_a_download_is_in_place_only_when_it_is_complete(small_cifar, tmp_path, monkeypatch):
    def download(self):
        small_cifar(Path(self.root))

    def interrupted(self):
        (Path(self.root) / "cifar-10-batches-py").mkdir()
        raise KeyboardInterrupt

    cache = tmp_path / "cache" / "images"
    monkeypatch.setattr(CIFAR10, "download", interrupted)
    with pytest.raises(KeyboardInterrupt):
        nt.load_images("cifar10")
    assert list(cache.iterdir()) == []
    monkeypatch.setattr(CIFAR10, "download", download)
    images = nt.load_images("cifar10")
    assert [path.name for path in cache.iterdir()] == ["cifar-10-batches-py"]
    monkeypatch.delattr(CIFAR10, "download")  # it is not asked for again
    assert torch.equal(nt.load_images("cifar10").x_train, images.x_train)


def test_the_file_of_first_images_serves_small_subsets(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SUBSET_MOST", 12)
    write_npz(tmp_path / "cifar10-first-1000-per-batch.npz",
              x_test=np.zeros((12, 32, 32, 3), np.uint8), y_test=np.zeros(12, np.uint8))  # fmt: skip
    images = nt.load_images("cifar10", subset=5, data_dir=tmp_path)
    assert len(images.x_train) == 25 and len(images.x_test) == 5
    assert images.y_train[5:10].tolist() == [i % 3 for i in range(12, 17)]
    assert images.class_names == module.CIFAR10_CLASSES
    best = nt.load_images(data_dir=tmp_path)
    assert best.source == "CIFAR-10, the first 12 images of each batch" and len(best.x_train) == 60
    with pytest.raises(FileNotFoundError, match="two ways"):  # it has no thirteenth
        nt.load_images("cifar10", subset=13, data_dir=tmp_path)
    write_npz(tmp_path / "cifar10-first-1000-per-batch.npz")
    with pytest.raises(ValueError, match="holds 30 images, expected 12"):
        nt.load_images("cifar10", subset=5, data_dir=tmp_path)


def test_fashion_mnist_from_a_folder(tmp_path):
    raw = tmp_path / "data" / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(3)
    pixels = {}
    for prefix, count in (("train", 50), ("t10k", 20)):
        pixels[prefix] = rng.integers(0, 256, (count, 28, 28), np.uint8)
        header = struct.pack(">4i", 2051, count, 28, 28)
        (raw / f"{prefix}-images-idx3-ubyte").write_bytes(header + pixels[prefix].tobytes())
        labels = (np.arange(count) % 10).astype(np.uint8)
        (raw / f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + labels.tobytes())
    images = nt.load_images("fashion-mnist", size=28, data_dir=tmp_path)
    np.testing.assert_allclose(images.x_test[:, 0].numpy(), pixels["t10k"] / 255, atol=1e-7, rtol=0)
    assert images.y_train.tolist() == [i % 10 for i in range(50)] and images.class_names[9] == "Ankle boot"
    assert nt.load_images(data_dir=tmp_path).source == "Fashion-MNIST; 28x28 pixels resized to 32x32"
    labels = raw / "train-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:-5])
    with pytest.raises(ValueError, match="damaged or incomplete"):
        nt.load_images("fashion-mnist", data_dir=tmp_path)


@pytest.mark.parametrize("source", ["cifar10", "fashion-mnist"])
@pytest.mark.parametrize("download", [True, False])
def test_without_a_network_the_error_names_two_ways_to_get_data(source, download, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        nt.load_images(source, download=download)
    message = str(caught.value)
    for way in ("internet", "NADTOOLS_DATA", "FOLDER/data", ".npz"):
        assert way in message
    assert not (tmp_path / "cache" / "images").exists() or not list((tmp_path / "cache" / "images").iterdir())


def test_the_best_at_hand_never_asks_the_network(monkeypatch):
    monkeypatch.setattr(module, "_download", lambda *_: pytest.fail("asked the network"))
    with pytest.raises(FileNotFoundError, match=r"No images are at hand\. There are two ways"):
        nt.load_images()


def test_the_lossy_copy_is_taken_only_by_those_who_ask_for_it(tmp_path):
    (tmp_path / "cifar10-jpeg.tar.xz").write_bytes(b"")
    with pytest.raises(ImagesNotFoundError):
        nt.load_images(data_dir=tmp_path)
    with pytest.raises(ImagesNotFoundError, match=r"there is no cifar10-jpeg.tar.xz"):
        nt.load_images("cifar10-jpeg")


@pytest.mark.parametrize(
    ("source", "arguments", "error", "message"),
    [
        ("imagenet", {}, FileNotFoundError, "neither 'cifar10', 'cifar10-jpeg', 'fashion-mnist' nor a file"),
        ("fashion-mnist", {"subset": 10}, ValueError, "it is for 'cifar10'"),
        ("cifar10", {"subset": 0}, ValueError, "expected a positive int"),
        ("cifar10", {"subset": 10_001}, ValueError, "a batch of CIFAR-10 holds 10,000 images"),
        ("cifar10", {"data_dir": "no/such/folder"}, FileNotFoundError, "data_dir names 'no/such/folder'"),
    ],
)
def test_bad_arguments(source, arguments, error, message):
    with pytest.raises(error, match=message):
        nt.load_images(source, **arguments)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "a.zip").write_text("1,2")
    with pytest.raises(ValueError, match=r"got source 'a.zip'; expected a .npz file, or a folder"):
        nt.load_images(tmp_path / "a.zip")


def test_the_cache_is_where_it_is_on_each_system(monkeypatch):
    assert module._cache_folder() == Path(os.environ["NADTOOLS_CACHE"]) / "images"
    monkeypatch.delenv("NADTOOLS_CACHE")
    for system, variable, usual in (
        ("linux", "XDG_CACHE_HOME", ".cache"),
        ("darwin", None, "Library/Caches"),
        ("win32", "LOCALAPPDATA", "AppData/Local"),
    ):
        monkeypatch.setattr(module.sys, "platform", system)
        monkeypatch.delenv(variable or "XDG_CACHE_HOME", raising=False)
        assert module._cache_folder() == Path.home() / usual / "nadtools" / "images"
        if variable:
            monkeypatch.setenv(variable, "/elsewhere")
            assert module._cache_folder() == Path("/elsewhere/nadtools/images")


def test_binary_labels():
    y = torch.tensor([0, 4, 5, 9, 2])
    assert nt.images.binary(y, range(5)).tolist() == [1, 1, 0, 0, 1]
    assert nt.images.binary(y.to(torch.uint8), [9]).dtype == torch.int64
    for bad, error, message in ((y.float(), TypeError, "a tensor of integers"), ([0, 1], TypeError, "type list")):
        with pytest.raises(error, match=message):
            nt.images.binary(bad, range(5))
    with pytest.raises(ValueError, match="one or more labels"):
        nt.images.binary(y, [])


def test_the_exact_subset_is_what_the_originals_hold(reader_folder):
    images = nt.load_images("cifar10", subset=1000, data_dir=reader_folder, download=False)
    assert images.x_train.shape == (5000, 3, 32, 32) and images.x_test.shape == (1000, 3, 32, 32)
    digest = hashlib.sha256()
    for x, y in ((images.x_train, images.y_train), (images.x_test, images.y_test)):
        digest.update((255 * x).round().to(torch.uint8).numpy().tobytes())
        digest.update(y.to(torch.uint8).numpy().tobytes())
    assert digest.hexdigest() == EXACT_SUBSET_SHA256
    # The first labels of CIFAR-10, as every tutorial prints them.
    assert images.y_train[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert images.y_test[:10].tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    few = nt.load_images("cifar10", subset=10, data_dir=reader_folder)
    assert torch.equal(few.x_train[10:20], images.x_train[1000:1010])
