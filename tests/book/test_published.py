import hashlib
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from companion import chapter_04, compact, experiments, published

import nadtools as nt
from nadtools import storage
from nadtools.nads import NADs

FOLDER = os.environ.get("NADTOOLS_DATA")
BASIS = np.linalg.qr(np.random.default_rng(0).standard_normal((1024, 1024)))[0].astype(np.float32)
SINGULAR_VALUES = np.linspace(2, 1, 1023, dtype=np.float32)
FOURIER = "x,y,acc_lr,acc_ln,acc_rn,acc_dn,acc_vgg\n0,8,100,50,75,60,70\n15,6,99,51,25,61,71\n"
NADS = (
    "index,acc_ln,eig_ln,acc_rn,eig_rn,acc_dn,eig_dn,acc_vgg,eig_vgg\n"
    "0,100,0.2,98,0.1,97,0.002,96,0.06\n10,90,0.1,95,0.05,60,0.001,70,0.03\n"
)
STAND_INS = {name: published.ARCHITECTURES[name] for name in ("lenet", "resnet18", "densenet121")}


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
def no_network(monkeypatch, tmp_path, request):
    """Make pooch fail, from an empty cache, and hide the reader's folder and, but from its own tests, the copy."""
    monkeypatch.delenv("NADTOOLS_DATA", raising=False)
    if "compact_copy" not in request.fixturenames:
        monkeypatch.setattr(compact, "FOLDER", tmp_path / "no copy")
    cache = NoNetwork(tmp_path / "cache")
    monkeypatch.setattr(published, "_cache", lambda: cache)
    return cache


@pytest.fixture
def compact_copy() -> Path:
    """The copy that ships with the book, and nothing else."""
    return compact.FOLDER


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder with small stand-ins for three networks' files and the tables, and their checksums."""
    files = {
        **{f"NADs/{stem}_NADs.npy": npy(BASIS[:1023]) for stem in STAND_INS.values()},
        **{f"NADs/{stem}_eigenvals.npy": npy(SINGULAR_VALUES) for stem in STAND_INS.values()},
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
    assert (nads.metadata["num_networks"], nads.metadata["eigenvalue_scale"]) == (10_000, "covariance")
    assert no_network.asked_for == []
    again = published.load_nads("lenet", data_dir=folder)
    assert torch.equal(nads.vectors, again.vectors)


def test_the_number_of_secants_is_that_of_each_file(folder):
    squares = torch.from_numpy(SINGULAR_VALUES.astype(np.float64) ** 2)
    resnet = published.load_nads("resnet18", data_dir=folder)
    torch.testing.assert_close(resnet.eigenvalues[:1023], squares / 5_000, rtol=1e-12, atol=0)
    assert (resnet.metadata["num_networks"], resnet.metadata["eigenvalue_scale"]) == (5_000, "covariance")
    # Where it is not known there are no absolute eigenvalues.
    densenet = published.load_nads("densenet121", data_dir=folder)
    torch.testing.assert_close(densenet.eigenvalues[:1023], squares / squares.sum(), rtol=1e-12, atol=0)
    assert (densenet.metadata["num_networks"], densenet.metadata["eigenvalue_scale"]) == (None, "shares of the sum")


def test_the_environment_variable_names_the_folder_and_the_argument_wins(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("NADTOOLS_DATA", str(folder))
    assert len(published.load_accuracies("nads")) == 8
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
    first = table[table.frequency_i == -16].set_index("architecture").accuracy.to_dict()
    assert first == {"logreg": 1.0, "lenet": 0.5, "vgg11": 0.7, "resnet18": 0.75, "densenet121": 0.6}


def test_accuracies_on_nads(folder):
    table = published.load_accuracies("nads", data_dir=folder)
    expected = pd.DataFrame(
        {
            "architecture": np.repeat(["lenet", "vgg11", "resnet18", "densenet121"], 2).tolist(),
            "index": [0, 10] * 4,
            "accuracy": [1.0, 0.9, 0.96, 0.7, 0.98, 0.95, 0.97, 0.6],
            "eigenvalue": [0.2, 0.1, 0.06, 0.03, 0.1, 0.05, 0.002, 0.001],
        }
    )
    pd.testing.assert_frame_equal(table, expected)


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
    assert published.available(folder) == (*STAND_INS, "fourier", "nads")
    (folder / "published" / "LeNet_eigenvals.npy").unlink()
    (folder / "published" / "nads.csv").unlink()
    assert published.available(folder) == ("resnet18", "densenet121", "fourier")
    # A cached file counts when it is whole.
    cached = no_network.abspath / "NADs" / "LeNet_eigenvals.npy"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(npy(SINGULAR_VALUES))
    assert published.available(folder) == (*STAND_INS, "fourier")
    cached.write_bytes(b"cut off")
    assert published.available(folder) == ("resnet18", "densenet121", "fourier")


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
    monkeypatch.setattr(compact, "FOLDER", tmp_path / "no copy")
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
    assert len(published.load_accuracies("nads")) == len(published.load_accuracies("nads")) == 8
    assert urls == [f"{published.REPOSITORY}/raw/45df872/docs/data/nads.csv"] * 2
    assert published.available() == ("nads",)
    # Whatever reaches stderr fails the build of the book.
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("architecture", published.ARCHITECTURES)
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


def mean_square_correlation(nads, count=400):
    """Of the sample's coordinates along the first even and odd principal directions, even or odd when transposed."""
    axis = torch.arange(len(nads.vectors)).reshape(nads.image_shape)
    transposition = torch.eye(axis.numel(), dtype=torch.float64)[axis.T.flatten()]
    signs, basis = torch.linalg.eigh(transposition)
    covariance, blocks = nads.covariance(), []
    for block in (basis[:, signs > 0], basis[:, signs < 0]):
        variances, directions = torch.linalg.eigh(block.T @ covariance @ block)
        blocks.append((block @ directions / variances.sqrt())[:, -count:])
    return float((blocks[0].T @ covariance @ blocks[1]).square().mean())


# To 1 / (mean r²), as the documentation of `load_nads` quotes it.
SECANTS = {"logreg": 9_997, "lenet": 9_412, "vgg11": 9_335, "resnet18": 4_550, "densenet121": 2_558}


@pytest.mark.parametrize("architecture", SECANTS)
def test_sampling_noise_between_even_and_odd_images_tells_the_number_of_secants(published_folder, architecture):
    """The true covariance commutes with transposition: what couples the two is noise, E[r²] = K/N.

    Nothing here has a scale. K is 1 for normal secants, and a spread of the networks' sizes makes it larger: fourth
    moments of our own give 1.02 to 1.09. The authors' single x₀ adds a few
    per cent to r² at most, since steps are 100 times as long. The mean over 160,000 pairs is known to sqrt(2/160,000),
    0.4 %. So N r² is between 0.98 and 1.2: ResNet-18 has 1.10 with 5,000, and would have 2.2 with 10,000.
    """
    if architecture not in published.available(published_folder):
        pytest.skip(f"the folder has no NADs of {architecture}")
    nads = published.load_nads(architecture, data_dir=published_folder)
    measured = mean_square_correlation(nads)
    assert round(1 / measured) == pytest.approx(SECANTS[architecture], abs=1)
    assert f"1/{SECANTS[architecture]:,}" in " ".join(published.load_nads.__doc__.split())
    count = nads.metadata["num_networks"]
    if count is None:  # 5,000 would take K = 2 and 10,000 K = 4: neither is that of our networks
        assert architecture == "densenet121"
    else:
        assert 0.98 < count * measured < 1.2


@pytest.mark.parametrize("tails", ["normal", "heavy"])
def test_the_mean_square_correlation_is_that_of_sampling_noise(tails):
    """The law of the test above, where N and K are known: 1/N for normal samples, 3/N where sizes vary."""
    source, number = np.random.default_rng(0), 2_000
    axis = np.arange(256).reshape(16, 16)
    deviations = np.linspace(2, 1, 256)[(axis + axis.T).flatten() // 2]  # the same for a pixel and its mirror image
    size = 1.0 if tails == "normal" else np.where(source.random((number, 1)) < 1 / 3, 3**0.5, 0.0)  # E s² = 1, E s⁴ = 3
    samples = size * deviations * source.standard_normal((number, 256))
    values, vectors = np.linalg.eigh(samples.T @ samples / number)
    nads = NADs.from_vectors(*(torch.from_numpy(one[::-1].copy()) for one in (vectors.T.reshape(-1, 16, 16), values)))
    # 1.4 % from the number of pairs; which samples are not zero adds 3 % to the heavy tails.
    expected = 1 if tails == "normal" else 3
    assert number * mean_square_correlation(nads, 100) == pytest.approx(expected, rel=0.07)


def test_the_published_tables_are_as_documented(published_folder):
    if not {"fourier", "nads"} <= set(published.available(published_folder)):
        pytest.skip("the folder has no tables of accuracies")
    fourier = published.load_accuracies("fourier", data_dir=published_folder)
    at = fourier.set_index(["architecture", "frequency_i", "frequency_j"]).accuracy
    assert at["lenet", -4, 0] == pytest.approx(0.788, abs=1e-3)
    assert at["lenet", 8, 0] < 0.53
    # Mirrored in the first frequency: half of the table is a copy.
    assert at.groupby("architecture").size().to_dict() == dict.fromkeys(published.ARCHITECTURES, 256)
    mirrored = [(name, -i if i > -16 else -16, j) for name, i, j in at.index]
    assert np.array_equal(at.to_numpy(), at[mirrored].to_numpy())
    nads = published.load_accuracies("nads", data_dir=published_folder)
    assert (nads.groupby("architecture")["index"].unique().map(list) == [list(range(1023))] * 4).all()
    # What the notes say of the eigenvalues: those of the files, but for LeNet.
    table = nads.pivot(index="index", columns="architecture", values="eigenvalue")
    stored = {
        name: np.load(Path(published_folder) / "published" / f"{published.ARCHITECTURES[name]}_eigenvals.npy")
        for name in table
    }
    ratios = table / pd.DataFrame(stored)
    assert f"{ratios.lenet.min():.2f} to {ratios.lenet.max():.2f}" in published.load_accuracies.__doc__
    np.testing.assert_allclose(ratios.drop(columns="lenet"), 1, rtol=1e-4)  # printed with eight digits
    for table in (fourier, nads):
        assert table.accuracy.between(0, 1).all()


# ---------------------------------------------------------------------------------------------------------------------
# The compact copy
# ---------------------------------------------------------------------------------------------------------------------


def test_the_copy_is_small_and_says_whose_it_is(compact_copy):
    files = sorted(path.name for path in compact_copy.iterdir())
    assert files == sorted([*(f"{name}.npz" for name in (*published.ARCHITECTURES, *KINDS)), "LICENSE", "NOTICE"])
    assert sum(path.stat().st_size for path in compact_copy.iterdir()) < 3_000_000
    assert "Apache License" in (compact_copy / "LICENSE").read_text(encoding="utf-8")
    notice = (compact_copy / "NOTICE").read_text(encoding="utf-8")
    assert published.REPOSITORY in notice and published.REVISION in notice
    recorded = {}
    for path in compact_copy.glob("*.npz"):
        _, metadata = storage.read_arrays(path)
        assert metadata["licence"] == "Apache-2.0" and metadata["source"].startswith(published.REPOSITORY)
        recorded |= metadata["sha256"]
    assert recorded == published._SHA256


KINDS = ("fourier", "nads")


@pytest.mark.parametrize("architecture", published.ARCHITECTURES)
def test_the_copy_gives_the_first_hundred_nads_without_a_network(compact_copy, no_network, architecture):
    nads = published.load_nads(architecture)
    assert no_network.asked_for == [] and nads.metadata["copy"] == "compact"
    rows = nads.vectors.flatten(1).double()
    torch.testing.assert_close(rows @ rows.T, torch.eye(1024, dtype=torch.float64), atol=1e-6, rtol=0)
    assert nads.vectors[:100].shape == (100, 32, 32) and nads.vectors[[3, 99]].shape == (2, 32, 32)
    assert nads.eigenvalues.shape == (1024,) and bool((nads.eigenvalues[:1023] > 0).all())
    assert isinstance(nads.alignment(nt.fourier_atom((32, 32), (1, 2))), float)
    assert nt.subspace_overlap(nads.vectors, nads.vectors, 100) == pytest.approx(1)


@pytest.mark.parametrize("index", [101, -2, slice(0, 102), [0, 101], torch.tensor([101]), (101, 0, 0)], ids=str)
def test_the_copy_refuses_what_it_does_not_have_and_says_how_to_get_it(compact_copy, index):
    nads = published.load_nads("vgg11")
    with pytest.raises(IndexError, match=r"NAD 10\d+ of VGG11") as caught:
        nads.vectors[index]
    for way in ("complete=True", "VGG11_NADs.npy", "NADTOOLS_DATA", "NADs 0 to 99"):
        assert way in str(caught.value)
    with pytest.raises(IndexError, match="NAD 100 of VGG11"):
        nt.subspace_overlap(nads.vectors, nads.vectors, 101)


def test_the_copy_has_the_nads_that_networks_were_trained_on_and_that_chapters_show(compact_copy):
    nads = published.load_nads("lenet")
    trained = experiments.load_table("A6", architecture="lenet", nads="published")["index"].unique()
    assert nads.vectors[trained.tolist()].shape == (len(trained), 32, 32)
    assert len(chapter_04.plot_nads(nads).data)  # its slider stops at later NADs


def test_complete_files_win_over_the_copy_and_can_be_asked_for(compact_copy, folder, no_network):
    assert "copy" not in published.load_nads("lenet", folder).metadata
    assert len(published.load_accuracies("nads", folder)) == 8
    assert published.load_nads("vgg11", folder).metadata["copy"] == "compact"  # the folder does not have it
    with pytest.raises(FileNotFoundError, match="could not be downloaded"):
        published.load_nads("vgg11", complete=True)
    assert published.available() == (*published.ARCHITECTURES, *KINDS)


def test_a_damaged_copy_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(compact, "FOLDER", tmp_path)
    (tmp_path / "lenet.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match="is damaged"):
        published.load_nads("lenet")


@pytest.mark.parametrize("kind", KINDS)
def test_the_tables_of_the_copy_are_complete(compact_copy, published_folder, kind):
    copy, original = published.load_accuracies(kind), published.load_accuracies(kind, published_folder)
    pd.testing.assert_frame_equal(copy, original, check_exact=True)


@pytest.mark.parametrize("architecture", published.ARCHITECTURES)
def test_the_copy_is_as_good_as_half_precision(compact_copy, published_folder, architecture):
    if architecture not in published.available(published_folder):
        pytest.skip(f"the folder has no NADs of {architecture}")
    copy = published.load_nads(architecture)
    original = published.load_nads(architecture, published_folder, complete=True)
    assert torch.equal(copy.eigenvalues, original.eigenvalues)
    known = sorted(copy.vectors.known)
    apart = (copy.vectors[known] - original.vectors[known]).flatten(1).norm(dim=1)
    assert float(apart.max()) < 2**-11  # half an ulp of float16, in every entry
    # α of waves, of random directions and of later NADs, in the mean eigenvalue: C is rounded beyond the known NADs.
    waves = [nt.fourier_atom((32, 32), (i, j), 0.5) for i in range(-15, 16, 3) for j in range(0, 16, 3)]
    others = [nt.random_direction((32, 32), seed=seed) for seed in range(20)]
    directions = torch.stack([*waves, *others, *original.vectors[150::50]])
    alpha, expected = (nads.alignments(directions) / original.eigenvalues.mean() for nads in (copy, original))
    torch.testing.assert_close(alpha, expected, atol=0.03, rtol=0.01)
    # What chapter 4 computes of them.
    some = nt.random_basis((32, 32), seed=0)[:50]
    energies = [nt.captured_energy(some, nads, 50) for nads in (copy, original)]
    assert energies[0] == pytest.approx(energies[1], abs=1e-3)


def test_the_copy_can_be_made_again(compact_copy, published_folder, tmp_path):
    if len(published.available(published_folder)) < len(published.ARCHITECTURES) + len(KINDS):
        pytest.skip("the folder does not have all files")
    for path in published.make_compact_copy(published_folder, tmp_path):
        made, origin = storage.read_arrays(path)
        stored, its_origin = storage.read_arrays(compact_copy / path.name)
        assert origin["sha256"] == its_origin["sha256"] and made.keys() == stored.keys()
        for name, array in made.items():
            apart = np.abs(array.astype(float) - stored[name])
            assert apart.max() <= (1 if name == "rest" else 1e-3 if name == "vectors" else 0), name
