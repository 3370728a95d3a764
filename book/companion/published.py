"""What the papers' authors published: NADs of five networks, and tables of test accuracies.

It is looked for, in this order,

1. in a folder of files that you have: the argument ``data_dir``, or else the environment variable ``NADTOOLS_DATA``.
   The files lie in its subfolder ``published``, for example ``published/LeNet_NADs.npy``;
2. in the download cache: the system's usual cache folder, or the one that ``NADTOOLS_CACHE`` names;
3. in the compact copy that ships with the book, see :mod:`companion.compact`. It is enough for all that chapters show;
4. on the internet, from the authors' repository, at the revision :data:`REVISION`: only where ``complete=True`` asks
   for more than the copy holds.

The authors' files are compared with their SHA-256 wherever they came from. Nothing is unpickled.

Source: github.com/LTS4/neural-anisotropy-directions, Apache License 2.0.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
import pandas as pd
import torch

from companion import compact
from nadtools.nads import NADs

if TYPE_CHECKING:
    import pooch

__all__ = [
    "ARCHITECTURES",
    "REPOSITORY",
    "REVISION",
    "AccuracyTable",
    "available",
    "load_accuracies",
    "load_nads",
    "make_compact_copy",
]

REPOSITORY: Final = "https://github.com/LTS4/neural-anisotropy-directions"
REVISION: Final = "45df872"

AccuracyTable = Literal["fourier", "nads"]

#: Our names of the architectures, and the authors'.
ARCHITECTURES: Final = {
    "lenet": "LeNet",
    "vgg11": "VGG11",
    "resnet18": "ResNet18",
    "densenet121": "DenseNet121",
    "logreg": "LogReg",
}

# From path in the authors' repository to SHA-256.
_SHA256: Final = {
    "NADs/LeNet_NADs.npy": "58bb4ca8d28dd73ea380f7c864557b0f48bf9d25d9632076e813ffea058de2bc",
    "NADs/LeNet_eigenvals.npy": "6a72a747ca141a2305d5d5074b44f70e1c56f712efe03ac35735dcbebbd6a822",
    "NADs/ResNet18_NADs.npy": "3d432df94b4f1a67d502d9fcabab222a55aa902bde5fef0d45aad16bc8c5d459",
    "NADs/ResNet18_eigenvals.npy": "484eb56630665acd6db2003d6fc78610adeedf62087df783c2bcbc7d15e8f2b7",
    "NADs/LogReg_NADs.npy": "41fa67a1be6728a5b0d1220f851492e573aedb5dcda989b69f18c24a076cf1ea",
    "NADs/LogReg_eigenvals.npy": "094d4709f6fa13c7aaff9bb2dd6e6cc13229a7ee54851990a5e815baef4e8ed1",
    "NADs/VGG11_NADs.npy": "53b9a78554972ff73bf2828795a60d667b17ccd8687f5b81a5dbf77d6ecb6a4d",
    "NADs/VGG11_eigenvals.npy": "02fa74c9201341ef714b06974030c37b0531480be40f30416c195ebf4db395fb",
    "NADs/DenseNet121_NADs.npy": "2434b5bd8670b93ac07d4489b50350314567aa377f47552043f56dfa12ac4bb1",
    "NADs/DenseNet121_eigenvals.npy": "5a5d65bfc88a71a5ec888f9301e35533ff0116403ce3f41e754f4c1f880f90c4",
    "docs/data/dft_accuracies.csv": "ba013c0b094f7a8eabf611848a134366c28dc4a9daacefa1fb9b825ceda208c2",
    "docs/data/nads.csv": "2c568563e206a56a1d301395f575de7f4a6fef7c63563856972cf25f6054d295",
}
_TABLES: Final = {"fourier": "docs/data/dft_accuracies.csv", "nads": "docs/data/nads.csv"}
# How the tables' columns call the architectures. The table over NADs has no logistic regression.
_SUFFIXES: Final = {"logreg": "lr", "lenet": "ln", "vgg11": "vgg", "resnet18": "rn", "densenet121": "dn"}

# How many stacked secants each file holds the singular values of, one for each network. No text says it: see the notes
# of `load_nads`. For DenseNet-121 the signs contradict each other: see the errata.
_NUM_SECANTS: Final = {"lenet": 10_000, "vgg11": 10_000, "resnet18": 5_000, "densenet121": None, "logreg": 10_000}
_IMAGE_SHAPE: Final = (32, 32)


def load_nads(architecture: str, data_dir: str | os.PathLike[str] | None = None, *, complete: bool = False) -> NADs:
    """Load the NADs that the authors published for one architecture.

    Their 1,023 vectors are completed to an orthonormal basis of the 32x32 images by a direction of eigenvalue 0. The
    stored singular values s of N stacked secants become eigenvalues of the covariance, s²/N. N is 10,000, for ResNet-18
    5,000. For DenseNet-121 it is not known: its eigenvalues are shares, s² over the sum of all s², and not to be
    compared in size with others. The authors subtracted the mean first. There are no standard errors.

    Parameters
    ----------
    architecture : {"lenet", "vgg11", "resnet18", "densenet121", "logreg"}
    data_dir : path, optional
        A folder of files that you have, see :mod:`companion.published`.
    complete : bool
        Never take the compact copy: download what is not here.

    Returns
    -------
    NADs
        Vectors of shape (1024, 32, 32). ``metadata["num_networks"]`` is N, None where it is not known, and
        ``metadata["eigenvalue_scale"]`` is "covariance" or "shares of the sum". From the compact copy come the first
        hundred NADs and a few more, and ``metadata["copy"]`` says so: ``vectors[k]`` for another k is an IndexError.

    Raises
    ------
    ValueError
        If the architecture is unknown, or a file is not the one that the authors published.
    FileNotFoundError
        If the complete files are asked for, are neither in the folder nor in the cache and cannot be downloaded.

    Notes
    -----
    The files themselves tell N. The law of these networks does not change when images are transposed, so the secant's
    coordinates i along an even direction (equal to its transpose) and j along an odd one are uncorrelated. In a sample
    of N secants they have a correlation r all the same, with E[r²] = K/N and K = E[i²j²] / (E[i²] E[j²]). K is 1 for
    normal secants, and larger where networks differ in size: 1.02 to 1.09 for our LeNets, VGG-11s and ResNet-18s. (The
    authors draw x₀ once, not for each network. That breaks the symmetry a little and can only add to r².) The mean r²
    over the first 400 even and odd principal directions is 1/9,997 for logistic regression, 1/9,412 for LeNet, 1/9,335
    for VGG-11, 1/4,550 for ResNet-18 and 1/2,558 for DenseNet-121, which fits neither 5,000 nor 10,000.
    """
    if architecture not in ARCHITECTURES:
        raise ValueError(f"got architecture {architecture!r}; the authors published NADs of {', '.join(ARCHITECTURES)}")
    names = _files(architecture)
    if complete or not compact.has(architecture) or all(_is_here(name, data_dir) for name in names):
        vectors, singular_values = (_read_array(name, data_dir) for name in names)
        images = torch.from_numpy(vectors).reshape(-1, *_IMAGE_SHAPE)
        return NADs.from_vectors(images, _eigenvalues(architecture, singular_values), **_metadata(architecture))
    known, singular_values = compact.read_nads(architecture, ARCHITECTURES[architecture])
    eigenvalues = _eigenvalues(architecture, singular_values)
    unknown = torch.full((len(known),), math.nan, dtype=torch.float64)
    none = eigenvalues.new_zeros(len(known) - len(eigenvalues))
    return NADs(known, torch.cat([eigenvalues, none]), unknown, unknown, _metadata(architecture) | {"copy": "compact"})


def _eigenvalues(architecture: str, singular_values: np.ndarray) -> torch.Tensor:
    squares = torch.from_numpy(singular_values.astype(np.float64) ** 2)
    return squares / (_NUM_SECANTS[architecture] or squares.sum())


def _metadata(architecture: str) -> dict[str, Any]:
    count = _NUM_SECANTS[architecture]
    return {
        "architecture": architecture,
        "estimator": "secant",
        "num_networks": count,
        "eigenvalue_scale": "covariance" if count else "shares of the sum",
        "source": f"{REPOSITORY} at {REVISION}",
    }


def load_accuracies(kind: AccuracyTable, data_dir: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Load test accuracies that the authors published, one row for each architecture and direction.

    Parameters
    ----------
    kind : {"fourier", "nads"}
        ``"fourier"``: on D(v) with v a two-dimensional Fourier atom (figure 1 of *Neural Anisotropy Directions*).
        ``"nads"``: on D(v) with v a NAD of the architecture itself (figure 6).
    data_dir : path, optional
        A folder of files that you have, see :mod:`companion.published`.

    Returns
    -------
    DataFrame
        ``"fourier"``: columns ``architecture`` (all five), ``frequency_i``, ``frequency_j`` (even integers from -16 to
        14) and ``accuracy`` (in [0, 1]).
        ``"nads"``: columns ``architecture`` (all but "logreg"), ``index`` (0 to 1022), ``accuracy`` and ``eigenvalue``
        (as in their article's figure: the stored singular values, not squared).

    Raises
    ------
    ValueError
        If the kind is unknown, or the file is not the one that the authors published.

    Notes
    -----
    The table over Fourier atoms counts its cells by x and y from 0 to 15. Cell (x, y) is frequency (2(x-8), 2(y-8)).
    It does not say which of them runs along the rows of the image: here ``frequency_i`` comes from x and
    ``frequency_j`` from y. The published NADs fit that no better than the other way round. The phase of the atoms is
    not stated either. The table is its own mirror image under x → -x: half of it was copied, so count one half only.

    LeNet's eigenvalues in the table over NADs are not those of its published NADs (the ratio is 0.62 to 0.90), so its
    accuracies may belong to another run.
    """
    if kind not in get_args(AccuracyTable):
        raise ValueError(f"got kind {kind!r}; the authors published {', '.join(map(repr, get_args(AccuracyTable)))}")
    if compact.has(kind) and not _is_here(_TABLES[kind], data_dir):
        table = pd.DataFrame(compact.read_table(kind))
    else:
        table = pd.read_csv(io.BytesIO(_read(_TABLES[kind], data_dir)))
    parts = []
    for architecture, suffix in _SUFFIXES.items():
        if kind == "nads" and architecture == "logreg":
            continue
        part = pd.DataFrame({"architecture": architecture}, index=table.index)
        if kind == "fourier":
            part["frequency_i"] = 2 * (table["x"] - 8)
            part["frequency_j"] = 2 * (table["y"] - 8)
        else:
            part["index"] = table["index"]
        part["accuracy"] = table[f"acc_{suffix}"] / 100
        if kind == "nads":
            part["eigenvalue"] = table[f"eig_{suffix}"]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def available(data_dir: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """List what can be loaded without a network: names of architectures, and "fourier" and "nads" for the tables.

    Parameters
    ----------
    data_dir : path, optional
        A folder of files that you have, see :mod:`companion.published`.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.
    """
    nads = [name for name in ARCHITECTURES if _can_load(name, _files(name), data_dir)]
    return (*nads, *(kind for kind, name in _TABLES.items() if _can_load(kind, [name], data_dir)))


def make_compact_copy(data_dir: str | os.PathLike[str] | None = None, folder: Path = compact.FOLDER) -> list[Path]:
    """Make the compact copy of the authors' files, and give the paths of its files: ``python -m companion compact``.

    Parameters
    ----------
    data_dir : path, optional
        A folder of files that you have, see :mod:`companion.published`.
    folder : path
        Where the copy goes.

    Raises
    ------
    ValueError, FileNotFoundError
        As :func:`load_nads`.
    """
    paths = []
    for architecture in ARCHITECTURES:
        names = _files(architecture)
        nads = load_nads(architecture, data_dir, complete=True)
        origin = _origin(names)
        paths.append(compact.write_nads(architecture, nads, _read_array(names[1], data_dir), origin, folder))
    for kind, name in _TABLES.items():
        table = pd.read_csv(io.BytesIO(_read(name, data_dir)))
        columns = {str(column): table[column].to_numpy() for column in table}
        paths.append(compact.write_table(kind, columns, _origin([name]), folder))
    return paths


def _origin(names: Sequence[str]) -> dict[str, Any]:
    return {"source": f"{REPOSITORY} at {REVISION}", "licence": "Apache-2.0", "sha256": {n: _SHA256[n] for n in names}}


def _files(architecture: str) -> list[str]:
    return [f"NADs/{ARCHITECTURES[architecture]}_{part}.npy" for part in ("NADs", "eigenvals")]


def _is_here(name: str, data_dir: str | os.PathLike[str] | None) -> bool:
    return _in_folder(name, data_dir) is not None or _in_cache(name)


def _can_load(what: str, names: Sequence[str], data_dir: str | os.PathLike[str] | None) -> bool:
    complete = [_is_here(name, data_dir) for name in names]  # a wrong folder is an error, copy or no copy
    return all(complete) or compact.has(what)


def _in_folder(name: str, data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The file in the reader's folder, or None if no folder is given or it lacks the file."""
    given = data_dir if data_dir is not None else os.environ.get("NADTOOLS_DATA")
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        origin = "data_dir" if data_dir is not None else "the environment variable NADTOOLS_DATA"
        raise FileNotFoundError(f"{origin} names {str(folder)!r}, which is not a folder; correct it or leave it out")
    path = folder / "published" / Path(name).name
    return path if path.is_file() else None


def _cache() -> pooch.Pooch:
    import pooch

    # Its notice of each download goes to stderr, where the book's build takes it for a warning.
    pooch.get_logger().setLevel("WARNING")
    return pooch.create(
        path=pooch.os_cache("nadtools"),
        base_url=f"{REPOSITORY}/raw/{REVISION}/",
        registry={name: f"sha256:{digest}" for name, digest in _SHA256.items()},
        env="NADTOOLS_CACHE",
    )


def _in_cache(name: str) -> bool:
    path = Path(_cache().abspath) / name
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == _SHA256[name]


def _read(name: str, data_dir: str | os.PathLike[str] | None) -> bytes:
    """The content of one of the authors' files, compared with its checksum."""
    path = _in_folder(name, data_dir)
    if path is None:
        try:
            path = Path(_cache().fetch(name))
        except OSError as error:  # no network, no such page, a cache folder that cannot be written
            raise FileNotFoundError(
                f"{Path(name).name} is not at hand and could not be downloaded from {REPOSITORY} "
                f"({type(error).__name__}). Either connect to the internet and try again, or put the file into a "
                f"folder as FOLDER/published/{Path(name).name} and set the environment variable NADTOOLS_DATA to "
                f"FOLDER (or pass data_dir=FOLDER). Downloads are kept in {_cache().abspath}; "
                "NADTOOLS_CACHE names another place."
            ) from error
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != _SHA256[name]:
        raise ValueError(
            f"{path} is not the file that the authors published: its SHA-256 is {digest}, expected {_SHA256[name]}. "
            f"Remove it, so that it is downloaded again, or copy it again from {REPOSITORY}"
        )
    return content


def _read_array(name: str, data_dir: str | os.PathLike[str] | None) -> np.ndarray:
    # Plain arrays only: a file that would have to be unpickled is refused.
    return np.load(io.BytesIO(_read(name, data_dir)), allow_pickle=False)
