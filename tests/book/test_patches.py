import numpy as np
import pytest
import torch
from companion import patches
from companion.patches import load_images, load_patches, load_thumbnails

from nadtools import storage
from nadtools.image_sources import ImagesNotFoundError


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch, tmp_path):
    monkeypatch.delenv("NADTOOLS_DATA", raising=False)
    monkeypatch.setenv("NADTOOLS_CACHE", str(tmp_path / "cache"))


def test_as_many_patches_of_each_photograph():
    images = load_patches()
    assert images.x_train.shape == (2000, 3, 32, 32) and images.x_test.shape == (1000, 3, 32, 32)
    assert images.y_train.bincount().tolist() == [200] * 10 and images.y_test.bincount().tolist() == [100] * 10
    assert images.class_names == tuple(patches.PHOTOGRAPHS) and images.source == "patches of ten photographs"
    # The first images of a set are of several classes, as chapters take them.
    assert len(images.y_train[:80].unique()) == len(images.y_test[:80].unique()) == 10
    again = load_patches()
    assert torch.equal(images.x_train, again.x_train) and torch.equal(images.y_test, again.y_test)


def test_neither_colour_nor_contrast_gives_the_photograph_away():
    images = load_patches()
    for x in (images.x_train, images.x_test):
        means = 255 * x.double().mean((2, 3))
        assert float((means - 127.5).abs().quantile(0.9)) < 4  # where highlights were clipped it is more
        contrast = 255 * x.double().flatten(1).std(1)
        assert float(contrast.quantile(0.1)) > 30 and float(contrast.max()) < 50


def test_patches_to_train_and_to_test_on_come_from_different_halves(monkeypatch):
    seen = []

    def cut(half, count, seed):
        seen.append(half)
        return np.zeros((count, 32, 32, 3), np.uint8)

    monkeypatch.setattr(patches, "_cut", cut)
    load_patches()
    photographs, _ = storage.read_arrays(patches.FILE)
    for left, right, whole in zip(seen[:10], seen[10:], photographs.values(), strict=True):
        assert left.shape[0] == right.shape[0] == 256 and min(left.shape[1], right.shape[1]) >= 64
        assert np.array_equal(np.concatenate([left, right], 1), whole)


def test_the_file_is_small_whole_and_of_the_photographs_that_are_named():
    photographs, metadata = storage.read_arrays(patches.FILE)  # compared with its SHA-256
    assert tuple(photographs) == tuple(patches.PHOTOGRAPHS) and metadata["files"] == patches.PHOTOGRAPHS
    assert patches.FILE.stat().st_size < 2_000_000
    page = (patches.FILE.parents[1] / "references.md").read_text(encoding="utf-8")
    for name, file in patches.PHOTOGRAPHS.items():
        assert f"| {name} |" in page and f"`{file.rpartition('/')[2]}`" in page, name


def test_two_of_the_photographs_are_those_of_scikit_learn(monkeypatch, tmp_path):
    mine = {name: file for name, file in patches.PHOTOGRAPHS.items() if file.startswith("sklearn/")}
    monkeypatch.setattr(patches, "PHOTOGRAPHS", mine)
    made, _ = storage.read_arrays(patches.make_photographs(tmp_path / "photographs.npz"))
    stored, _ = storage.read_arrays(patches.FILE)
    assert len(made) == 2
    for name, photograph in made.items():
        apart = np.abs(photograph.astype(int) - stored[name])
        assert apart.mean() < 1, name  # decoders of JPEG round differently


def test_the_patches_are_the_last_resort(tmp_path):
    for source in (None, "auto"):
        images = load_images(source, subset=100, data_dir=tmp_path, download=False, per_class=2)
        assert images.source.startswith("patches of ten photographs; 2 of each class") and len(images.x_train) == 20
    with pytest.raises(FileNotFoundError, match="data_dir names"):  # a mistake is not one of these cases
        load_images(data_dir=tmp_path / "gone")
    with pytest.raises(ImagesNotFoundError):
        load_images("cifar10", download=False)
    with pytest.raises(ValueError, match="subset=10"):
        load_images("patches", subset=10)


def test_a_thumbnail_is_the_middle_of_its_photograph():
    thumbnails = load_thumbnails()
    photographs, _ = storage.read_arrays(patches.FILE)
    assert list(thumbnails) == list(patches.PHOTOGRAPHS)
    for name, thumbnail in thumbnails.items():
        assert thumbnail.shape == (3, 32, 32) and 0 <= float(thumbnail.min()) < float(thumbnail.max()) <= 1
        left = (photographs[name].shape[1] - 256) // 2
        block = photographs[name][8:16, left + 24 : left + 32].astype(float).mean((0, 1)) / 255
        np.testing.assert_allclose(thumbnail[:, 1, 3], block, atol=1e-6)
