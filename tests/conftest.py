"""Fixtures that several test files share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from book_browser import BuiltBook, find_chromium, launch, smoke_book
from companion import experiments, published
from playwright.sync_api import Browser, sync_playwright

import nadtools as nt

# For processes that tests start, as the folder of the chapters is for theirs.
BOOK = Path(__file__).resolve().parents[1] / "book"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(BOOK), os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="session")
def published_lenet() -> nt.NADs:
    """The authors' NADs of LeNet, where a folder with them is given."""
    folder = os.environ.get("NADTOOLS_DATA")
    if not folder or not (Path(folder) / "published" / "LeNet_NADs.npy").exists():
        pytest.skip("set NADTOOLS_DATA to a folder with published/LeNet_NADs.npy to compare with the authors' NADs")
    return published.load_nads("lenet", data_dir=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """For results that the tests of one file share."""
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def lenet():
    """The stored NADs of LeNet."""
    return experiments.load_atlas("lenet")


@pytest.fixture
def trained_on(monkeypatch, request):
    """What every training was given by the file of experiments that the test file imports as ``module``."""
    calls = []

    def record(network, train_data, test_data, config, **options):
        calls.append((network, train_data, test_data, config))
        return nt.train(network, train_data, test_data, config, **options)

    monkeypatch.setattr(request.module.module, "train", record)
    return calls


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium with the network cut."""
    executable = find_chromium()
    if executable is None:
        message = "no Chromium found: nothing was opened in a browser (on Debian: apt-get install chromium)"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        chromium = launch(playwright, executable)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def tried_book(testrun_uid: str) -> BuiltBook:
    """The book at smoke scale; its build may have failed."""
    return smoke_book(testrun_uid)


@pytest.fixture(scope="session")
def book(tried_book: BuiltBook) -> BuiltBook:
    """The book at smoke scale."""
    assert tried_book.returncode == 0, tried_book.log
    return tried_book


@pytest.fixture(autouse=True)
def global_random_state_is_left_alone():
    """No function of the package may touch PyTorch's global generator."""
    before = torch.get_rng_state()
    yield
    assert torch.equal(torch.get_rng_state(), before), "the global random state was changed"
