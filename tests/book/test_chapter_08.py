"""What the page of chapter 8 has as a table: the content of photographs along LeNet's NADs."""

from __future__ import annotations

import pytest
from companion import chapter_08, experiments

import nadtools as nt
from nadtools.image_sources import ImagesNotFoundError


def test_photographs_hold_what_the_table_says():
    try:
        images = nt.load_images("cifar10", subset=1000, progress=False)
    except ImagesNotFoundError:
        pytest.skip("needs images of CIFAR-10")
    along = experiments.load_atlas("lenet").vectors[list(chapter_08.CONTENT)].flatten(1)
    content = (images.x_train.flatten(2) @ along.T).square().mean((0, 1)).sqrt()
    # A subset of the photographs, and the JPEG copy is a little smoother.
    assert content.tolist() == pytest.approx(list(chapter_08.CONTENT.values()), rel=0.1)
