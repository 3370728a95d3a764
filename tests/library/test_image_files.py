"""Folders of image files, and the archive that is unpacked to one."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import nadtools as nt
from nadtools import image_sources

SIZE = 8


def picture(seed: int, size: int = SIZE, mode: str = "RGB") -> Image.Image:
    shape = (size, size) if mode == "L" else (size, size, 3)
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, shape, np.uint8))


def png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


# Not in the order of their names. One training image for each of five batches, and one test image.
PICTURES = {
    "train/dog/1.png": picture(3),
    "train/dog/0.png": picture(2),
    "test/cat/0.png": picture(4),
    "train/cat/10.png": picture(5),
    "train/cat/0.png": picture(0),
    "train/cat/1.png": picture(1),
}
FILES = {name: png(image) for name, image in PICTURES.items()}
GOOD = FILES["train/cat/0.png"]


def write_folder(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def write_archive(folder: Path, files: dict[str, bytes], *extra: tarfile.TarInfo) -> Path:
    path = folder / "cifar10-jpeg.tar.xz"
    with tarfile.open(path, "w:xz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in extra:
            tar.addfile(member)
    return path


def read(folder: Path) -> image_sources.Arrays:
    return image_sources._read_folder(folder, SIZE, False)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """Where the archive is unpacked; it holds one image of each batch."""
    monkeypatch.setenv("NADTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image_sources, "CIFAR10_BATCH", 1)
    return tmp_path / "cache" / "images"


def load(tmp_path: Path) -> nt.Images:
    return nt.load_images("cifar10-jpeg", size=SIZE, data_dir=tmp_path, progress=False)


def test_pixels_and_labels_in_the_order_of_the_names(tmp_path):
    files = FILES | {"train/cat/._0.png": b"", "train/notes.txt": b"text", "train/dog/notes.txt": b"text"}
    arrays = read(write_folder(tmp_path / "pets", files))
    assert arrays.class_names == ("cat", "dog")
    for split, x, y in (("train", arrays.x_train, arrays.y_train), ("test", arrays.x_test, arrays.y_test)):
        names = sorted(name for name in FILES if name.startswith(split))
        assert y.tolist() == [int("dog" in name) for name in names] and y.dtype == np.int64
        np.testing.assert_array_equal(x, np.stack([np.asarray(PICTURES[name]) for name in names]))
    images = nt.load_images(tmp_path / "pets", size=4, progress=False)
    assert images.source == "the folder pets, at 4x4 pixels" and images.x_train.shape == (5, 3, 4, 4)


def test_the_archive_is_unpacked_once(tmp_path, cache, monkeypatch):
    archive = write_archive(tmp_path, FILES)
    first = load(tmp_path)
    assert first.source == "CIFAR-10, JPEG copy (lossy)" and first.class_names == ("cat", "dog")
    assert torch.equal(first.x_test, nt.load_images(write_folder(tmp_path / "a", FILES), size=SIZE).x_test)
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(image_sources, "_unpack", lambda *_: pytest.fail("unpacked again"))
    assert torch.equal(load(tmp_path).x_train, first.x_train)
    monkeypatch.undo()
    monkeypatch.setenv("NADTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image_sources, "CIFAR10_BATCH", 1)
    # Another content is another archive.
    archive.unlink()
    write_archive(tmp_path, FILES | {"test/cat/0.png": png(picture(9))})
    assert not torch.equal(load(tmp_path).x_test, first.x_test) and len(list(cache.iterdir())) == 2


def test_an_interruption_leaves_nothing_in_the_cache(tmp_path, cache, monkeypatch):
    write_archive(tmp_path, FILES)
    extract = tarfile.TarFile.extract
    calls = []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return extract(*arguments, **options)

    monkeypatch.setattr(tarfile.TarFile, "extract", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load(tmp_path)
    assert not list(cache.iterdir())
    assert len(load(tmp_path).x_train) == 5


def test_a_cache_that_cannot_be_written_is_named(tmp_path, cache):
    write_archive(tmp_path, FILES)
    cache.parent.write_text("a file, not a folder")
    with pytest.raises(OSError, match=r"could not be unpacked into .* NADTOOLS_CACHE names another folder"):
        load(tmp_path)


@pytest.mark.parametrize("kept", [0, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_archive_is_refused(kept, tmp_path, cache):
    archive = write_archive(tmp_path, FILES)
    archive.write_bytes(archive.read_bytes()[: int(kept * archive.stat().st_size)])
    with pytest.raises(ValueError, match="damaged, truncated or no archive"):
        load(tmp_path)
    assert not list(cache.iterdir())


@pytest.mark.parametrize("missing", ["train/dog/0.png", "test/cat/0.png"])
def test_an_archive_that_lacks_images_is_refused(missing, tmp_path, cache):
    more = {"test/dog/0.png": GOOD, "test/dog/1.png": GOOD} if missing.startswith("test") else {}
    write_archive(tmp_path, {name: content for name, content in FILES.items() if name != missing} | more)
    with pytest.raises(ValueError, match=r"unpacked to .* holds [24] images, expected [15]"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["../train/cat/9.png", "train/../../cat/9.png", "../../../9.png"])
def test_paths_that_lead_out_are_refused(name, tmp_path, cache):
    write_archive(tmp_path, FILES | {name: GOOD})
    with pytest.raises(ValueError, match="OutsideDestinationError"):
        load(tmp_path)
    assert not list(cache.iterdir()) and not list(tmp_path.rglob("9.png"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(kind, tmp_path, cache):
    member = tarfile.TarInfo("train/cat/9.png")
    member.type, member.linkname = kind, "train/cat/0.png"
    write_archive(tmp_path, FILES, member)
    with pytest.raises(ValueError, match="a link or a device"):
        load(tmp_path)
    assert not list(cache.iterdir())


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, cache, monkeypatch):
    write_archive(tmp_path, FILES | {"train/cat/9.png": bytes(10**6)})
    monkeypatch.setattr(image_sources, "_MAX_UNPACKED", 10**6)
    with pytest.raises(ValueError, match="holds more than"):
        load(tmp_path)
    assert not list(cache.iterdir())


def test_an_image_with_too_many_pixels_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(image_sources, "_MAX_PIXELS", SIZE**2 - 1)
    with pytest.raises(ValueError, match=r"cat/0.png cannot be used: it has 8 x 8 pixels"):
        read(write_folder(tmp_path / "a", FILES))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no images as train/CLASS/NAME and test/CLASS/NAME"),
        ({"cat/0.png": GOOD}, "holds no images as train/CLASS/NAME"),
        ({"train/0.png": GOOD}, "find any class folder"),
        ({"train/cat/0.png": GOOD}, "No such file or directory"),
        ({"train/cat/notes.txt": b"", "test/cat/notes.txt": b""}, "no valid file for the classes cat"),
        ({"train/cat/0.png": GOOD, "test/cat/notes.txt": b""}, "no images as test/CLASS/NAME.png"),
        ({"train/cat/0.png": GOOD, "test/dog/0.png": GOOD}, "test images of dog, but no training images"),
        (FILES | {"train/cat/7.png": b"no image"}, "7.png cannot be used"),
        (FILES | {"train/cat/7.png": GOOD[:-80]}, "7.png cannot be used"),
    ],
)
def test_a_folder_that_does_not_fit_the_layout_is_refused(files, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read(write_folder(tmp_path / "a", files))


def test_grey_images_stay_grey_unless_one_is_in_colour(tmp_path):
    grey = {name: png(picture(i, mode="L")) for i, name in enumerate(FILES)}
    arrays = read(write_folder(tmp_path / "grey", grey))
    assert arrays.x_train.shape == (5, SIZE, SIZE)
    mixed = read(write_folder(tmp_path / "mixed", grey | {"test/cat/0.png": FILES["test/cat/0.png"]}))
    assert mixed.x_train.shape == (5, SIZE, SIZE, 3)
    for channel in range(3):
        np.testing.assert_array_equal(mixed.x_train[..., channel], arrays.x_train)


def test_other_modes_and_sizes(tmp_path):
    colours = picture(0)
    variants = {"RGBA": colours.convert("RGBA"), "P": colours.quantize(256), "large": colours.resize((32, 16))}
    files = {f"{split}/{name}/0.png": png(image) for name, image in variants.items() for split in ("train", "test")}
    arrays = read(write_folder(tmp_path / "a", files))
    assert arrays.class_names == ("P", "RGBA", "large") and arrays.x_train.shape == (3, SIZE, SIZE, 3)
    np.testing.assert_array_equal(arrays.x_train[0], np.asarray(variants["P"].convert("RGB")))
    np.testing.assert_array_equal(arrays.x_train[1], np.asarray(colours))
    deep = Image.fromarray(np.full((SIZE, SIZE), 40_000, np.uint16))
    with pytest.raises(ValueError, match=r"its mode is I;16; expected 8 bits"):
        read(write_folder(tmp_path / "b", FILES | {"train/cat/3.png": png(deep)}))
