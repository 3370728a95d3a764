from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import traceback
import tracemalloc
import zipfile

import numpy as np
import pytest

from nadtools import storage

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([], dtype=np.int64), "c": np.array(["x", "yz"])}


def test_round_trip(tmp_path):
    path = storage.write_arrays(tmp_path / "r.npz", ARRAYS, {"seed": 3, "nested": {"ok": [1, None]}})
    arrays, metadata = storage.read_arrays(path)
    assert metadata == {"seed": 3, "nested": {"ok": [1, None]}}
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    assert [p.name for p in tmp_path.iterdir()] == ["r.npz"], "temporary files are left"


def test_permissions_follow_the_umask(tmp_path):
    path = storage.write_bytes(tmp_path / "plain", b"x")
    (tmp_path / "reference").write_bytes(b"x")
    assert path.stat().st_mode == (tmp_path / "reference").stat().st_mode


@pytest.mark.parametrize("keep", [0, 1, 30, 0.5, 0.9, -1])
def test_a_truncated_file_is_refused(tmp_path, keep):
    path = storage.write_arrays(tmp_path / "r.npz", {"a": np.random.default_rng(0).normal(size=500)}, {})
    content = path.read_bytes()
    size = len(content) + keep if keep < 0 else int(keep * len(content)) if isinstance(keep, float) else keep
    path.write_bytes(content[:size])
    with pytest.raises(ValueError, match="damaged"):
        storage.read_arrays(path)


def test_every_flipped_byte_is_noticed_or_harmless(tmp_path):
    reference = {"a": np.random.default_rng(0).normal(size=40)}
    path = storage.write_arrays(tmp_path / "r.npz", reference, {"k": 1})
    content = path.read_bytes()
    refused = 0
    for position in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[position] ^= 0x55
        path.write_bytes(damaged)
        message = ""
        try:
            arrays, metadata = storage.read_arrays(path)
        except ValueError as error:
            message = str(error)
            refused += 1
        else:  # an unused byte of the zip directory, such as a time stamp
            np.testing.assert_array_equal(arrays["a"], reference["a"])
            assert metadata == {"k": 1}
        assert not message or "damaged" in message or "format version" in message
    assert refused > 100


def test_other_files_and_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not a file of nadtools"):
        storage.read_arrays(tmp_path / "foreign.npz")
    np.savez(tmp_path / "pickle.npz", __nadtools__=np.array({"format": 1}, dtype=object))
    with pytest.raises(ValueError, match="damaged"):
        storage.read_arrays(tmp_path / "pickle.npz")
    with pytest.raises(TypeError, match="dtype object"):
        storage.write_arrays(tmp_path / "o.npz", {"a": np.array([{}], dtype=object)}, {})
    with pytest.raises(FileNotFoundError):
        storage.read_arrays(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="npz"):
        storage.write_arrays(tmp_path / "o.npy", {}, {})


def test_a_later_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "FORMAT_VERSION", 99)
    path = storage.write_arrays(tmp_path / "r.npz", ARRAYS, {})
    monkeypatch.undo()
    with pytest.raises(ValueError, match="format version 99"):
        storage.read_arrays(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = storage.write_bytes(tmp_path / "f", b"old")

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        storage.write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "make room"), (errno.EROFS, "make its folder writable"), (errno.ENOENT, "make its folder, or")],
)
def test_what_cannot_be_written_names_the_file_its_size_and_the_remedy(tmp_path, monkeypatch, number, remedy):
    def fails(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(storage.tempfile, "mkstemp", fails)
    with pytest.raises(
        OSError, match=rf"r.txt could not be written \({os.strerror(number)}; it takes 1,234 bytes\)"
    ) as e:
        storage.write_bytes(tmp_path / "r.txt", bytes(1234))
    assert remedy in str(e.value) and e.value.errno == number


KILLED = """
import os, sys, time
from nadtools import storage
def pause(_):
    print("written", flush=True)
    time.sleep(60)
os.fsync = pause
storage.write_bytes(sys.argv[1], b"never seen")
"""


def test_what_a_killed_writer_left_is_swept_and_a_living_one_is_let_alone(tmp_path):
    path = tmp_path / "r[1].txt"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        storage.write_bytes(path, b"while the other lives")
        assert len(list(tmp_path.iterdir())) == 2, "the temporary file of a living writer is gone"
        process.kill()
    storage.write_bytes(tmp_path / "other.txt", b"")
    assert len(list(tmp_path.iterdir())) == 3, "another file's is another's matter"
    storage.write_bytes(path, b"after it died")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["other.txt", "r[1].txt"]
    assert path.read_bytes() == b"after it died"


def test_a_writer_whose_file_was_swept_writes_it_again(tmp_path, monkeypatch):
    chmod, taken = os.chmod, []

    def swept(temporary, mode):  # closed, so not locked any more, and not yet in its place
        if not taken:
            taken.append(temporary)
            os.unlink(temporary)
        chmod(temporary, mode)

    monkeypatch.setattr(os, "chmod", swept)
    assert storage.write_bytes(tmp_path / "f", b"content").read_bytes() == b"content" and taken


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    with zipfile.ZipFile(file := io.BytesIO(), "w", method) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return file.getvalue()


def npy(description: str, data: bytes = b"") -> bytes:
    """An array whose header says what it likes."""
    return b"\x93NUMPY\1\0" + len(description).to_bytes(2, "little") + description.encode() + data


def saved(array: np.ndarray) -> bytes:
    np.save(file := io.BytesIO(), array)
    return file.getvalue()


def with_header(text: str) -> bytes:
    return archive({"__nadtools__.npy": saved(np.array(text))})


def encrypted(content: bytes) -> bytes:
    """With the flag set, in the member's own header and in the directory."""
    damaged = bytearray(content)
    damaged[content.index(b"PK\3\4") + 6] |= 1
    damaged[content.index(b"PK\1\2") + 8] |= 1
    return bytes(damaged)


def claiming(content: bytes, size: int) -> bytes:
    """The first member says that it holds so many bytes unpacked."""
    damaged = bytearray(content)
    for start in (content.index(b"PK\3\4") + 22, content.index(b"PK\1\2") + 24):
        damaged[start : start + 4] = size.to_bytes(4, "little")
    return bytes(damaged)


SHAPE = "{{'descr': '<f8', 'fortran_order': False, 'shape': {}}}"
DAMAGED = {
    "text": b"garbage " * 50,
    "an open bracket": archive({"__nadtools__.npy": npy("{'descr': ('<f8', ")}),
    "nested brackets": archive({"__nadtools__.npy": npy("(" * 5000)}),
    "an endless header": archive({"__nadtools__.npy": npy(SHAPE.format("(1,)") + " " * 20_000, bytes(8))}),
    "a huge shape": archive({"__nadtools__.npy": npy(SHAPE.format(f"({2**33},)"), bytes(8))}),
    "a shape beyond 64 bits": archive({"__nadtools__.npy": npy(SHAPE.format(f"({2**70},)"), bytes(8))}),
    "nothing, very often": archive({"__nadtools__.npy": npy(SHAPE.format(f"({2**40},)").replace("<f8", "<U0"))}),
    "a bomb": claiming(archive({"__nadtools__.npy": npy(SHAPE.format("(500_000_000,)"), bytes(8))}, 8), 4_000_000_066),
    "objects": archive({"__nadtools__.npy": npy(SHAPE.format("(1,)").replace("<f8", "|O"), b"cos\nsystem\n")}),
    "no array": archive({"__nadtools__.npy": b"\x80\4K\1."}),
    "encrypted": encrypted(with_header("{}")),
    "bzip2": archive({"__nadtools__.npy": saved(np.zeros(9))}, zipfile.ZIP_BZIP2),
    "a list": with_header("[1]"),
    "a number": with_header("1"),
    "no checksums": with_header('{"format": 1, "metadata": {}}'),
    "checksums in a list": with_header('{"format": 1, "metadata": {}, "sha256": [[]]}'),
    "metadata in a list": with_header('{"format": 1, "metadata": [], "sha256": {}}'),
    "deep JSON": with_header("[" * 100_000),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_whatever_is_damaged_gives_one_error_and_no_advice_to_unpickle(tmp_path, content):
    (tmp_path / "r.npz").write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"r.npz is damaged or not a file of nadtools \(.+\); delete it") as caught:
            storage.read_arrays(tmp_path / "r.npz")
        assert tracemalloc.get_traced_memory()[1] < 5e7, "memory was taken for what is not there"
    finally:
        tracemalloc.stop()
    assert "allow_pickle" not in "".join(traceback.format_exception(caught.value))


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "r.npz").mkdir()
    with pytest.raises(ValueError, match=r"r\.npz is not a file"):
        storage.read_arrays(tmp_path / "r.npz")


def test_provenance_is_json_with_versions():
    record = json.loads(json.dumps(storage.provenance(seed=4)))
    assert record["seed"] == 4 and record["device"].startswith("cpu")
    assert {"nadtools", "torch", "torchvision", "numpy", "python"} <= set(record["versions"])
