"""The library's two plots draw what they are given."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from small_networks import Network, estimate

import nadtools as nt

matplotlib.use("Agg")


def test_the_first_nads_are_drawn():
    nads = estimate(Network, 2)
    axes = nads.plot(7)
    drawn = [one.images[0].get_array() for one in axes.flat if one.images]
    np.testing.assert_array_equal(np.stack(drawn), nads.vectors[:7].numpy())
    with pytest.raises(ValueError, match="count=65; expected a number of NADs from 1 to 64"):
        nads.plot(65)


def test_spectra_are_drawn_with_their_errors():
    nads = estimate(Network, 4)
    axes = nt.plot_spectra({"small": nads})
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), nads.eigenvalues.numpy())
    assert axes.get_legend().get_texts()[0].get_text() == "small"
    assert len(axes.collections) == 1
    with pytest.raises(ValueError, match="spectra"):
        nt.plot_spectra({})
    with pytest.raises(TypeError, match="spectra"):
        nt.plot_spectra(nads)
