import hashlib
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from nadtools import published

FOLDER = os.environ.get("NADTOOLS_DATA")
BASIS = np.linalg.qr(np.random.default_rng(0).standard_normal((1024, 1024)))[0].astype(np.float32)
SINGULAR_VALUES = np.linspace(2, 1, 1023, dtype=np.float32)
FOURIER = "x,y,acc_lr,acc_ln,acc_rn\n0,8,100,50,75\n15,6,99,51,25\n"
NADS = "index,acc_ln,eig_ln,acc_rn,eig_rn\n0,100,0.2,98,0.1\n10,90,0.1,95,0.05\n"


def npy(array: np.ndarray, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


class NoNetwork:
    """Stand in for pooch: it has nothing and fails as requests does."""

    def __init__(self, abspath: Path):
        self.abspath = abspath
        self.asked_for: list[str] = []

    def fetch(self, name: str) -> str:
        self.asked_for.append(name)
        raise OSError("no network")


@pytest.fixture
def published_folder() -> str:
    """The reader's folder with the authors' files, taken before `no_network` hides it."""
    if not FOLDER:
        pytest.skip("set NADTOOLS_DATA to a folder with the authors' files to test that they load")
    return FOLDER


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """Make pooch fail, from an empty cache, and hide the reader's folder."""
    monkeypatch.delenv("NADTOOLS_DATA", raising=False)
    cache = NoNetwork(tmp_path / "cache")
    monkeypatch.setattr(published, "_cache", lambda: cache)
    return cache


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder with small stand-ins for LeNet's files and the tables, and their checksums."""
    files = {
        "NADs/LeNet_NADs.npy": npy(BASIS[:1023]),
        "NADs/LeNet_eigenvals.npy": npy(SINGULAR_VALUES),
        "docs/data/dft_accuracies.csv": FOURIER.encode(),
        "docs/data/nads.csv": NADS.encode(),
    }
    directory = tmp_path / "published"
    directory.mkdir()
    for name, content in files.items():
        (directory / Path(name).name).write_bytes(content)
        monkeypatch.setitem(published._SHA256, name, hashlib.sha256(content).hexdigest())
    return tmp_path


def test_nads_are_a_complete_basis_with_eigenvalues_of_the_covariance(folder, no_network):
    nads = published.load_nads("lenet", data_dir=folder)
    assert nads.vectors.shape == (1024, 32, 32)
    rows = nads.vectors.flatten(1).double()
    # float32 rounding of 1,024 products
    torch.testing.assert_close(rows @ rows.T, torch.eye(1024, dtype=torch.float64), atol=1e-5, rtol=0)
    expected = torch.from_numpy(SINGULAR_VALUES.astype(np.float64) ** 2 / 10_000)
    torch.testing.assert_close(nads.eigenvalues[:1023], expected, rtol=1e-12, atol=0)
    assert nads.eigenvalues[1023] == 0
    # Each vector is the stored one, up to its sign, and the last is the missing one.
    cosines = (rows * torch.from_numpy(BASIS.astype(np.float64))).sum(1).abs()
    torch.testing.assert_close(cosines, torch.ones(1024, dtype=torch.float64), atol=1e-5, rtol=0)
    assert nads.metadata["architecture"] == "lenet"
    assert no_network.asked_for == []
    again = published.load_nads("lenet", data_dir=folder)
    assert torch.equal(nads.vectors, again.vectors)


def test_the_environment_variable_names_the_folder_and_the_argument_wins(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("NADTOOLS_DATA", str(folder))
    assert published.load_accuracies("nads").attrs["source"] == "nads.csv"
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileNotFoundError, match="could not be downloaded"):
        published.load_accuracies("nads", data_dir=empty)


def test_accuracies_on_fourier_atoms(folder):
    table = published.load_accuracies("fourier", data_dir=folder)
    assert list(table.columns) == ["architecture", "frequency_i", "frequency_j", "accuracy"]
    resnet = table[table.architecture == "resnet18"]
    assert resnet[["frequency_i", "frequency_j"]].to_numpy().tolist() == [[-16, 0], [14, -4]]
    assert resnet.accuracy.tolist() == [0.75, 0.25]
    assert set(table.architecture) == {"logreg", "lenet", "resnet18"}


def test_accuracies_on_nads(folder):
    table = published.load_accuracies("nads", data_dir=folder)
    expected = pd.DataFrame(
        {
            "architecture": ["lenet", "lenet", "resnet18", "resnet18"],
            "index": [0, 10, 0, 10],
            "accuracy": [1.0, 0.9, 0.98, 0.95],
            "eigenvalue": [0.2, 0.1, 0.1, 0.05],
        }
    )
    pd.testing.assert_frame_equal(table, expected)


def test_an_excerpt_serves_where_the_full_table_is_missing(folder):
    (folder / "published" / "dft_accuracies.csv").unlink()
    excerpt = folder / "published" / "excerpt-accuracies-on-fourier-atoms.csv"
    excerpt.write_text(FOURIER)  # an excerpt has no checksum
    assert published.load_accuracies("fourier", data_dir=folder).attrs["source"] == excerpt.name
    excerpt.write_text(FOURIER.replace("acc_ln", "accuracy_lenet"))
    with pytest.raises(ValueError, match=r"no column acc_ln; it has x, y, acc_lr, accuracy_lenet, acc_rn"):
        published.load_accuracies("fourier", data_dir=folder)


@pytest.mark.parametrize("name", ["LeNet_NADs.npy", "LeNet_eigenvals.npy", "dft_accuracies.csv"])
def test_a_changed_file_is_refused(folder, name):
    path = folder / "published" / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"{name} is not the file that the authors published.*expected [0-9a-f]{{64}}"
    ):
        published.load_accuracies("fourier", folder) if name.endswith("csv") else published.load_nads("lenet", folder)


def test_nothing_is_unpickled_even_with_the_right_checksum(folder, monkeypatch):
    content = npy(np.array([{"any": "object"}], dtype=object), allow_pickle=True)
    (folder / "published" / "LeNet_NADs.npy").write_bytes(content)
    monkeypatch.setitem(published._SHA256, "NADs/LeNet_NADs.npy", hashlib.sha256(content).hexdigest())
    with pytest.raises(ValueError, match="allow_pickle=False"):
        published.load_nads("lenet", data_dir=folder)


def test_without_folder_and_network_the_error_names_both_ways(no_network):
    with pytest.raises(FileNotFoundError, match=r"internet.*published/VGG11_NADs\.npy.*NADTOOLS_DATA.*data_dir"):
        published.load_nads("vgg11")
    assert no_network.asked_for == ["NADs/VGG11_NADs.npy"]


def test_a_missing_folder_is_an_error_before_any_download(monkeypatch, tmp_path, no_network):
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError, match=r"data_dir names .*missing"):
        published.load_nads("lenet", data_dir=missing)
    monkeypatch.setenv("NADTOOLS_DATA", str(missing))
    for call in (lambda: published.load_nads("lenet"), lambda: published.load_accuracies("nads"), published.available):
        with pytest.raises(FileNotFoundError, match=r"NADTOOLS_DATA names .*missing"):
            call()
    assert no_network.asked_for == []


def test_unknown_names_are_refused(no_network):
    with pytest.raises(ValueError, match=r"got architecture 'alexnet'.*lenet, vgg11, resnet18, densenet121, logreg"):
        published.load_nads("alexnet")
    with pytest.raises(ValueError, match=r"got kind 'random'.*'fourier', 'nads'"):
        published.load_accuracies("random")
    assert no_network.asked_for == []


def test_available_lists_what_needs_no_network(folder, no_network):
    assert published.available() == ()
    assert published.available(folder) == ("lenet", "fourier", "nads")
    (folder / "published" / "LeNet_eigenvals.npy").unlink()
    (folder / "published" / "nads.csv").rename(folder / "published" / "excerpt-accuracies-on-nads.csv")
    assert published.available(folder) == ("fourier", "nads")
    # A cached file counts when it is whole.
    cached = no_network.abspath / "NADs" / "LeNet_eigenvals.npy"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(npy(SINGULAR_VALUES))
    assert published.available(folder) == ("lenet", "fourier", "nads")
    cached.write_bytes(b"cut off")
    assert published.available(folder) == ("fourier", "nads")


def test_downloads_are_pinned_checked_and_cached_where_asked(monkeypatch, tmp_path):
    monkeypatch.undo()  # the real pooch, which asks for nothing before fetch
    monkeypatch.delenv("NADTOOLS_DATA", raising=False)
    monkeypatch.setenv("NADTOOLS_CACHE", str(tmp_path))
    cache = published._cache()
    assert Path(cache.abspath) == tmp_path
    assert cache.get_url("docs/data/nads.csv") == f"{published.REPOSITORY}/raw/45df872/docs/data/nads.csv"
    assert all(digest.startswith("sha256:") and len(digest) == 71 for digest in cache.registry.values())
    stems = published.ARCHITECTURES.values()
    parts = {f"NADs/{stem}_{part}.npy" for stem in stems for part in ("NADs", "eigenvals")}
    assert set(cache.registry) == parts | {"docs/data/dft_accuracies.csv", "docs/data/nads.csv"}


def test_a_download_is_checked_quiet_and_made_once(monkeypatch, tmp_path, capfd):
    monkeypatch.undo()
    monkeypatch.delenv("NADTOOLS_DATA", raising=False)
    monkeypatch.setenv("NADTOOLS_CACHE", str(tmp_path))
    monkeypatch.setitem(published._SHA256, "docs/data/nads.csv", hashlib.sha256(NADS.encode()).hexdigest())
    sent = [b"an error page", NADS.encode()]
    urls = []

    def downloader(url, file, _pooch):
        urls.append(url)
        Path(file).write_bytes(sent.pop(0))

    monkeypatch.setattr("pooch.core.choose_downloader", lambda *_, **__: downloader)
    with pytest.raises(ValueError, match="does not match the known hash"):
        published.load_accuracies("nads")
    assert published.available() == ()
    assert len(published.load_accuracies("nads")) == len(published.load_accuracies("nads")) == 4
    assert urls == [f"{published.REPOSITORY}/raw/45df872/docs/data/nads.csv"] * 2
    assert published.available() == ("nads",)
    # Whatever reaches stderr fails the build of the book.
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("architecture", ["lenet", "resnet18", "logreg"])
def test_the_published_nads_load(published_folder, architecture):
    if architecture not in published.available(published_folder):
        pytest.skip(f"the folder has no NADs of {architecture}")
    nads = published.load_nads(architecture, data_dir=published_folder)
    rows = nads.vectors.flatten(1).double()
    torch.testing.assert_close(rows @ rows.T, torch.eye(1024, dtype=torch.float64), atol=1e-5, rtol=0)
    assert bool((nads.eigenvalues[:1023] > 0).all())
    if architecture == "logreg":
        # The weights are uniform with variance 1/(3D). The mean over 1,024 x 10,000 draws is known to 0.03 % (kurtosis
        # 1.8); one eigenvalue is missing from the file, the smallest, which is 0.07 % of the sum at most.
        assert float(nads.eigenvalues.sum()) * 3 == pytest.approx(1, abs=2e-3)


def test_the_published_tables_are_as_documented(published_folder):
    if not {"fourier", "nads"} <= set(published.available(published_folder)):
        pytest.skip("the folder has no tables of accuracies")
    fourier = published.load_accuracies("fourier", data_dir=published_folder)
    at = fourier.set_index(["architecture", "frequency_i", "frequency_j"]).accuracy
    assert at["lenet", -4, 0] == pytest.approx(0.788, abs=1e-3)
    assert at["lenet", 8, 0] < 0.53
    # Mirrored in the first frequency: half of the table is a copy.
    mirrored = [(name, -i if i > -16 else -16, j) for name, i, j in at.index]
    assert np.array_equal(at.to_numpy(), at[mirrored].to_numpy())
    nads = published.load_accuracies("nads", data_dir=published_folder)
    assert nads.groupby("architecture").size().to_dict() == {"lenet": 103, "resnet18": 103}
    for table in (fourier, nads):
        assert table.accuracy.between(0, 1).all()
