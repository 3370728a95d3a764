import io
import stat
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nadtools import image_files

SIZE = 8


def picture(seed: int, size: int = SIZE, mode: str = "RGB") -> Image.Image:
    shape = (size, size) if mode == "L" else (size, size, 3)
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, shape, np.uint8))


def png(image: Image.Image, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


# Not in the order of their names.
PICTURES = {
    "train/dog/1.png": picture(3),
    "train/dog/0.png": picture(2),
    "test/cat/0.png": picture(4),
    "train/cat/0.png": picture(0),
    "train/cat/1.png": picture(1),
    "test/dog/0.png": picture(5),
}
FILES = {name: png(image) for name, image in PICTURES.items()}


def write_tar(path: Path, files: dict[str, bytes], mode: str = "w", extra: tuple[tarfile.TarInfo, ...] = ()) -> Path:
    with tarfile.open(path, mode) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in extra:
            tar.addfile(member)
    return path


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def write_folder(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def write(kind: str, folder: Path, files: dict[str, bytes]) -> Path:
    if kind == "folder":
        return write_folder(folder / "pictures", files)
    if kind == "zip":
        return write_zip(folder / "pictures.zip", files)
    compression = kind.partition(".")[2]
    return write_tar(folder / f"pictures.{kind}", files, f"w:{compression}")


def read(path: Path, size: int = SIZE) -> image_files.Arrays:
    if path.is_dir():
        return image_files.read_folder(path, size, progress=False)
    return image_files.read_archive(path, size, path.parent / "cache", progress=False)


@pytest.mark.parametrize("kind", ["folder", "zip", "tar", "tar.gz", "tar.xz", "tar.bz2"])
def test_pixels_and_labels_in_the_order_of_the_names(kind, tmp_path):
    arrays = read(write(kind, tmp_path, FILES))
    assert arrays.class_names == ("cat", "dog")
    for split, x, y in (("train", arrays.x_train, arrays.y_train), ("test", arrays.x_test, arrays.y_test)):
        names = sorted(name for name in FILES if name.startswith(split))
        assert y.tolist() == [int("dog" in name) for name in names] and y.dtype == np.int64
        np.testing.assert_array_equal(x, np.stack([np.asarray(PICTURES[name]) for name in names]))


def test_one_more_folder_and_files_that_are_no_images(tmp_path):
    files = {f"pictures/{name}": content for name, content in FILES.items()}
    files |= {"pictures/README.txt": b"text", "pictures/train/cat/._0.png": b"", "__MACOSX/train/cat/2.png": b"x"}
    for kind in ("folder", "tar"):
        folder = tmp_path / kind
        folder.mkdir()
        np.testing.assert_array_equal(
            read(write(kind, folder, files)).x_train, read(write("zip", folder, FILES)).x_train
        )


def test_an_archive_is_decoded_once_for_each_size(tmp_path, monkeypatch):
    archive = write("tar.gz", tmp_path, FILES)
    first = read(archive)
    monkeypatch.setattr(image_files, "_decode", lambda *_: pytest.fail("decoded again"))
    again = read(archive)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert again.class_names == first.class_names and again.y_train.dtype == np.int64
    # Its content names it: a copy elsewhere under another name is the same archive.
    np.testing.assert_array_equal(read(archive.rename(tmp_path / "other.tgz")).x_test, first.x_test)
    with pytest.raises(pytest.fail.Exception, match="decoded again"):
        read(tmp_path / "other.tgz", size=4)


def test_a_damaged_cache_is_made_again(tmp_path):
    archive = write("zip", tmp_path, FILES)
    first = read(archive)
    (cached,) = (tmp_path / "cache").iterdir()
    cached.write_bytes(cached.read_bytes()[:-100])
    np.testing.assert_array_equal(read(archive).x_train, first.x_train)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [cached.name]


def test_images_are_read_where_the_cache_cannot_be_written(tmp_path):
    archive = write("zip", tmp_path, FILES)
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.warns(UserWarning, match="NADTOOLS_CACHE"):
        assert len(read(archive).x_train) == 4


def test_an_interruption_leaves_nothing_in_the_cache(tmp_path, monkeypatch):
    archive = write("tar", tmp_path, FILES)
    decode = image_files._decode
    calls = []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return decode(*arguments)

    monkeypatch.setattr(image_files, "_decode", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read(archive)
    assert not (tmp_path / "cache").exists()
    assert len(read(archive).x_train) == 4


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.xz", "tar.bz2"])
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
def test_a_truncated_archive_is_refused(kind, kept, tmp_path):
    archive = write(kind, tmp_path, FILES)
    content = archive.read_bytes().rstrip(b"\0")  # a tar ends with zeros that it can do without
    archive.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(ValueError, match="damaged, truncated or no archive"):
        read(archive)


def test_a_tar_cut_between_two_members_is_refused(tmp_path):
    archive = write("tar", tmp_path, FILES)
    with tarfile.open(archive) as tar:
        cut = tar.getmembers()[-1].offset
    archive.write_bytes(archive.read_bytes()[:cut])
    with pytest.raises(ValueError, match=f"no end mark at byte {cut}"):
        read(archive)


def test_a_tar_with_a_damaged_header_is_refused(tmp_path):
    archive = write("tar", tmp_path, FILES)
    with tarfile.open(archive) as tar:
        start = tar.getmembers()[-1].offset
    content = bytearray(archive.read_bytes())
    content[start] ^= 1
    archive.write_bytes(content)
    with pytest.raises(ValueError, match="no end mark"):
        read(archive)


def test_a_changed_byte_in_a_zip_is_refused(tmp_path):
    archive = write_zip(tmp_path / "a.zip", FILES)
    with zipfile.ZipFile(archive) as file:
        start = file.infolist()[0].header_offset
    content = bytearray(archive.read_bytes())
    content[start + 100] ^= 0xFF
    archive.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        read(archive)


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    for name in ("a.zip", "a.tar", "a.tar.xz"):
        (tmp_path / name).write_text("not an archive " * 100)
        with pytest.raises(ValueError, match="no archive"):
            read(tmp_path / name)


@pytest.mark.parametrize("name", ["../train/cat/9.png", "train/../../cat/9.png", "/train/cat/9.png",
                                  "C:/train/cat/9.png", "train\\..\\..\\9.png"])  # fmt: skip
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_paths_that_lead_out_are_refused(kind, name, tmp_path):
    archive = write(kind, tmp_path, FILES | {name: FILES["train/cat/0.png"]})
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="leads out"):
        read(archive)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(kind, tmp_path):
    member = tarfile.TarInfo("train/cat/9.png")
    member.type, member.linkname = kind, "train/cat/0.png"
    with pytest.raises(ValueError, match="a link or a device"):
        read(write_tar(tmp_path / "a.tar", FILES, extra=(member,)))


def test_links_in_a_zip_are_refused(tmp_path):
    archive = write_zip(tmp_path / "a.zip", FILES)
    with zipfile.ZipFile(archive, "a") as file:
        member = zipfile.ZipInfo("train/cat/9.png")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(member, "0.png")
    with pytest.raises(ValueError, match="holds a link"):
        read(archive)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_unpacks_no_more_than_it_says(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as file:
        file.writestr("train/cat/9.png", bytes(3 * 10**7))
    content = bytearray((tmp_path / "a.zip").read_bytes())
    for start in (content.index(b"PK\3\4") + 22, content.index(b"PK\1\2") + 24):
        content[start : start + 4] = (100).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"a.zip (is damaged|compresses)"):
            read(tmp_path / "a.zip")
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_read(kind, tmp_path, monkeypatch):
    archive = write(kind, tmp_path, FILES | {"train/cat/9.png": bytes(10**6)})
    monkeypatch.setattr(image_files, "MAX_ARCHIVE_BYTES", 10**6)
    with pytest.raises(ValueError, match="holds more than"):
        read(archive)
    assert len(read(write_folder(tmp_path / "folder", FILES)).x_train) == 4


def test_an_image_with_too_many_pixels_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(image_files, "_MAX_PIXELS", SIZE**2 - 1)
    with pytest.raises(ValueError, match=r"dog/1.png cannot be used: it has 8 x 8 pixels"):
        read(write("tar", tmp_path, FILES))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no images to train and to test in"),
        ({"a.png": FILES["train/cat/0.png"]}, "expected images as train/CLASS/NAME"),
        ({"cat/0.png": FILES["train/cat/0.png"]}, "no images to train and to test"),
        ({"train/0.png": FILES["train/cat/0.png"]}, "no images to train"),
        ({"train/cat/0.png": FILES["train/cat/0.png"]}, "no images to test in"),
        ({"train/cat/notes.txt": b"", "test/cat/notes.txt": b""}, "no images to train"),
        ({"train/cat/0.png": FILES["train/cat/0.png"], "test/dog/0.png": FILES["test/dog/0.png"]},
         "test images of dog, but no training images"),
        (FILES | {"a/train/cat/0.png": FILES["train/cat/0.png"]}, "several data sets"),
        (FILES | {"train/cat/7.png": b"no image"}, "7.png cannot be used"),
        (FILES | {"train/cat/7.png": FILES["train/cat/0.png"][:-80]}, "7.png cannot be used"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["folder", "tar"])
def test_a_folder_that_does_not_fit_the_layout_is_refused(kind, files, message, tmp_path):
    path = write(kind, tmp_path, files)
    path.mkdir(exist_ok=True) if kind == "folder" else None
    with pytest.raises(ValueError, match=message):
        read(path)


def test_grey_images_stay_grey_unless_one_is_in_colour(tmp_path):
    grey = {name: png(picture(i, mode="L")) for i, name in enumerate(FILES)}
    arrays = read(write_folder(tmp_path / "grey", grey))
    assert arrays.x_train.shape == (4, SIZE, SIZE)
    mixed = read(write_folder(tmp_path / "mixed", grey | {"test/dog/0.png": FILES["test/dog/0.png"]}))
    assert mixed.x_train.shape == (4, SIZE, SIZE, 3)
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
