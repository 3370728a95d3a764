from __future__ import annotations

import json
import os

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


def test_provenance_is_json_with_versions():
    record = json.loads(json.dumps(storage.provenance(seed=4)))
    assert record["seed"] == 4 and record["device"].startswith("cpu")
    assert {"nadtools", "torch", "torchvision", "numpy", "python"} <= set(record["versions"])
