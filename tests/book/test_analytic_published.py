"""The closed form against the files that the papers' authors published. Nothing is fitted to them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from companion import published
from scipy import stats

import nadtools as nt

FOLDER = os.environ.get("NADTOOLS_DATA")
pytestmark = pytest.mark.skipif(
    not FOLDER or not (Path(FOLDER) / "published" / "LeNet_NADs.npy").exists(),
    reason="set NADTOOLS_DATA to a folder with published/*.npy to compare with the authors' NADs",
)


@pytest.mark.parametrize(
    ("name", "energies"),
    [
        ("lenet", {10: 0.96, 50: 0.96, 100: 0.93}),
        ("resnet18", {10: 0.99, 50: 0.99, 100: 0.99}),
        ("vgg11", {10: 0.94, 50: 0.87}),
        ("densenet121", {10: 0.95}),
    ],
)
def test_captured_energy_of_the_published_covariance(name, energies):
    nads, reference = nt.analytic_nads(name), published.load_nads(name, FOLDER)
    found = {k: nt.captured_energy(nads.vectors, reference, k) for k in energies}
    assert all(found[k] >= least for k, least in energies.items()), found


@pytest.mark.parametrize(("name", "least"), [("lenet", 0.80), ("vgg11", 0.70), ("resnet18", 0.80)])
def test_the_alignment_ranks_the_authors_accuracies(name, least):
    nads, table = nt.analytic_nads(name), published.load_accuracies("fourier", FOLDER)
    # Half of the table is a copy of the other half.
    table = table[(table.architecture == name) & (table.frequency_i <= 0)]
    # The phase is not stated. Ours is the sine, as in the book's claims; waves that are their own conjugates have none.
    atoms = [
        nt.fourier_atom((32, 32), (int(i), int(j)), 0.0 if i % 16 == 0 and j % 16 == 0 else np.pi / 2)
        for i, j in zip(table.frequency_i, table.frequency_j, strict=True)
    ]
    assert stats.spearmanr(nads.alignments(torch.stack(atoms)), table.accuracy).statistic >= least
