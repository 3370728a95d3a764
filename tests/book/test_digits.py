import pytest
import torch
from companion.digits import load_digits, load_images
from sklearn import datasets

from nadtools.image_sources import ImagesNotFoundError


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch, tmp_path):
    monkeypatch.delenv("NADTOOLS_DATA", raising=False)
    monkeypatch.setenv("NADTOOLS_CACHE", str(tmp_path / "cache"))


def test_the_digits_of_scikit_learn():
    images = load_digits()
    assert images.x_train.shape == (1437, 1, 32, 32) and images.x_test.shape == (360, 1, 32, 32)
    assert images.class_names == tuple("0123456789")
    assert images.source == "scikit-learn's digits; 8x8 pixels resized to 32x32"
    small, digits = load_images("digits", size=8, progress=False), datasets.load_digits()
    assert torch.equal(small.x_test[:, 0], torch.from_numpy(digits.images[1437:] / 16).float())
    assert small.y_test.tolist() == digits.target[1437:].tolist() and small.source == "scikit-learn's digits"


def test_the_digits_are_the_last_resort(tmp_path):
    for source in (None, "auto"):
        images = load_images(source, subset=100, data_dir=tmp_path, download=False, per_class=2)
        assert images.source.startswith("scikit-learn's digits; 2 of each class") and len(images.x_train) == 20
    with pytest.raises(FileNotFoundError, match="data_dir names"):  # a mistake is not one of these cases
        load_images(data_dir=tmp_path / "gone")
    with pytest.raises(ImagesNotFoundError):
        load_images("cifar10", download=False)
    with pytest.raises(ValueError, match="subset=10"):
        load_images("digits", subset=10)
