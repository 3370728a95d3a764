"""A compact copy of what the papers' authors published, which ships with the book: ``book/published``.

It lies beside ``book/results`` and not in it: there are only results of our own, each with the experiment that makes
it. Of each network it holds

- the first hundred NADs, and the later ones that a chapter shows or that networks of ours were trained on, in half
  precision: an entry is off by 5e-4 of itself at most;
- all singular values, as they were published;
- what is left of the covariance without these NADs, rounded to a hundredth of its mean eigenvalue. So α(v) of any
  direction comes out nearly right, but a NAD that is not in the copy cannot be had from it.

Both tables of accuracies are complete. Every file records the SHA-256 of the authors' files that it was made from.
``python -m companion compact`` makes the copy from these.

Source: github.com/LTS4/neural-anisotropy-directions, Apache License 2.0; see ``book/published/NOTICE``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from nadtools import storage
from nadtools.moments import fix_signs
from nadtools.nads import NADs

__all__ = ["FOLDER", "has", "read_nads", "read_table", "write_nads", "write_table"]

FOLDER: Final = Path(__file__).resolve().parents[1] / "published"

_FIRST: Final = 100
#: Later NADs. LeNet's: those of the trainings on them (A6), and those at which chapter 4's slider stops.
_LATER: Final = {
    "lenet": (
        *(100, 110, 150, 190, 200, 240, 250, 300, 350, 390, 400, 450, 490, 500, 550, 600, 630, 650, 700, 750, 800),
        *(850, 900, 950, 1000, 1020),
        *(131, 219, 366, 612, 1023),
    )
}
_STEPS: Final = 100  # of the rounding, in the mean eigenvalue of what is left
_MISSING: Final = (
    "NAD {index} of {name} is not in the compact copy that ships with the book, which has {known}. The complete files "
    "have it: companion.published.load_nads({architecture!r}, complete=True) downloads them once; or put them into a "
    "folder as FOLDER/published/{name}_NADs.npy and so on, and set the environment variable NADTOOLS_DATA to FOLDER"
)


class _Known(Tensor):
    """NADs of which only some are the authors': to ask for another one is an error.

    Results of other operations are plain tensors. They are right where all NADs enter together, as in a covariance.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]
    known: frozenset[int]
    missing: dict[str, str]

    @classmethod
    def of(cls, vectors: Tensor, known: frozenset[int], missing: dict[str, str]) -> _Known:
        guarded = vectors.as_subclass(cls)
        guarded.known, guarded.missing = known, missing
        return guarded

    def detach(self) -> _Known:
        return self.of(super().detach(), self.known, self.missing)

    def __getitem__(self, index: Any) -> Tensor:
        first = index[0] if isinstance(index, tuple) and index else index
        if first is not None and first is not Ellipsis:
            for one in torch.arange(len(self))[first].flatten().tolist():
                if one not in self.known:
                    raise IndexError(_MISSING.format(index=one, **self.missing))
        return self.as_subclass(Tensor)[index]


def has(name: str) -> bool:
    """Whether the copy holds a network's NADs, or a table."""
    return _path(name).is_file()


def read_nads(architecture: str, name: str) -> tuple[Tensor, np.ndarray]:
    """Vectors, a complete basis of which :class:`_Known` gives the known ones; and the singular values."""
    arrays, _ = storage.read_arrays(_path(architecture))
    known = arrays["indices"].astype(int)
    rows = torch.from_numpy(arrays["vectors"].astype(np.float64)).flatten(1)
    size = rows.shape[1]
    columns, triangle = torch.linalg.qr(rows.T, mode="complete")
    rows, complement = (columns[:, : len(rows)] * triangle.diagonal().sign()).T, columns[:, len(rows) :]
    rest = torch.zeros(size, size, dtype=torch.float64)
    rest[*torch.triu_indices(size, size)] = torch.from_numpy(arrays["rest"].astype(np.float64))
    # The step does not matter here: the eigenvalues are known.
    others = (complement @ torch.linalg.eigh(complement.T @ (rest + rest.triu(1).T) @ complement)[1].flip(1)).T
    basis = torch.empty(size, size, dtype=torch.float64)
    basis[known] = rows
    basis[np.setdiff1d(np.arange(size), known)] = fix_signs(others)
    vectors = basis.reshape(size, *arrays["vectors"].shape[1:]).to(torch.float32)
    missing = {"name": name, "architecture": architecture, "known": _in_words(known.tolist())}
    return _Known.of(vectors, frozenset(known.tolist()), missing), arrays["singular_values"]


def write_nads(
    architecture: str, nads: NADs, singular_values: np.ndarray, origin: dict[str, Any], folder: Path = FOLDER
) -> Path:
    """Store NADs in the compact form."""
    size = len(nads.vectors)
    known = sorted({*range(_FIRST), *_LATER.get(architecture, ())})
    others = np.setdiff1d(np.arange(size), known)
    rows, values = nads.vectors[others].flatten(1).double(), nads.eigenvalues[others]
    rest = (rows.T * values) @ rows
    steps = (rest * (_STEPS / values.mean())).round()
    arrays = {
        "indices": np.array(known, np.int16),
        "vectors": nads.vectors[known].numpy().astype(np.float16),
        "singular_values": singular_values,
        "rest": steps[*torch.triu_indices(size, size)].clamp(-127, 127).numpy().astype(np.int8),
    }
    return storage.write_arrays(_path(architecture, folder), arrays, origin)


def read_table(kind: str) -> dict[str, np.ndarray]:
    """The columns of a table by their names."""
    return storage.read_arrays(_path(kind))[0]


def write_table(kind: str, columns: dict[str, np.ndarray], origin: dict[str, Any], folder: Path = FOLDER) -> Path:
    """Store a table as it is."""
    return storage.write_arrays(_path(kind, folder), columns, origin)


def _path(name: str, folder: Path | None = None) -> Path:
    return (folder or FOLDER) / f"{name}.npz"


def _in_words(known: list[int]) -> str:
    later = [index for index in known if index >= _FIRST]
    return f"NADs 0 to {_FIRST - 1}" + (f" and {', '.join(map(str, later))}" if later else "")
