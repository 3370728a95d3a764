"""Measured numbers that the chapters type in prose are those of the stored results.

If a result is made again, its number in the text goes stale without a trace: the figure beside it changes by itself,
the sentence does not. So each entry below holds a fragment of a chapter's text with placeholders, and what computes
their values. A relation ("the hardest pair is ...") is computed and formatted like a number.

Numbers that a chapter computes while it is executed are not bound: they are not stored.
"""

from __future__ import annotations

import bisect
import functools
import json
import math
import statistics
import string
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from companion import experiments, published
from companion.chapter_02 import measured as chapter_02
from companion.chapter_04.claims import agreement
from companion.chapter_06 import figures as chapter_06
from companion.chapter_08 import claims as chapter_08
from companion.chapter_08.content import CONTENT
from companion.chapter_09 import claims as chapter_09
from companion.chapter_10 import claims as chapter_10
from companion.chapter_10.experiments import load_pairs as load_pairs_of
from companion.chapter_11 import claims as chapter_11
from companion.chapter_11.experiments import load_transition
from companion.evidence import Mark
from companion.patches import load_patches
from companion.waves import mean_alignments, noise_ceiling
from scipy.optimize import isotonic_regression

import nadtools as nt

BOOK = Path(__file__).parents[2] / "book"


class Stated(NamedTuple):
    """A fragment of a chapter, and what computes the values of its placeholders: one, or a tuple."""

    fragment: str
    values: Callable[[], Any]
    #: what the authors published, by the names of ``published.available``
    needs: tuple[str, ...] = ()


# ---------------------------------------------------------------------------------------------------------------------
# How the prose writes
# ---------------------------------------------------------------------------------------------------------------------

NUMBERS = dict(enumerate(["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]))
NUMBERS |= {15: "fifteen", 30: "thirty", 40: "forty", 0.5: "half", 3.5: "three and a half"}


def spelt(number: float) -> str:
    return NUMBERS.get(number, f"{number:g}")


def halves(number: float) -> float:
    return round(2 * number) / 2


def percent(share: float, digits: int = 0) -> str:
    """In per cent, or a difference in points. A half is rounded up, as readers do it."""
    exact = Decimal(f"{100 * float(share):.9f}")
    return str(exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def extremes(shares: pd.Series) -> tuple[str, str]:
    return percent(shares.min()), percent(shares.max())


def within(value: float, step: float) -> str:
    """The least multiple of a step that is not exceeded."""
    return f"{math.ceil(value / step - 1e-9) * step:g}"


def listed(names: Iterable[object]) -> str:
    return " and ".join(map(str, names))


def waves(places: Iterable[tuple[float, float]], signed: bool = False) -> str:
    """Frequencies; without their signs where the text speaks of the wave, which has both."""
    return listed(f"$({i:g}, {j:g})$" for i, j in (place if signed else map(abs, place) for place in places))


def so(holds: object, text: str) -> str:
    """A text that stands or falls with a relation."""
    return text if holds else f"[not: {text}]"


# ---------------------------------------------------------------------------------------------------------------------
# What is stored, and what was published
# ---------------------------------------------------------------------------------------------------------------------

table = functools.cache(experiments.load_table)
atlas = functools.cache(experiments.load_atlas)
load_pairs = functools.cache(load_pairs_of)
transition = functools.cache(load_transition)
published_nads = functools.cache(published.load_nads)
published_accuracies = functools.cache(published.load_accuracies)


def largest(name: str, architecture: str) -> pd.DataFrame:
    return table(name, architecture=architecture)


def made_with(stored: pd.DataFrame, *names: str) -> tuple[Any, ...]:
    """Parameters of a stored run; those of its trainings, too."""
    parameters = stored.attrs["parameters"]
    parameters = parameters.get("config", {}) | parameters.get("build_options", {}) | parameters
    return tuple(parameters[name] for name in names)


def spearman(a: Any, b: Any) -> float:
    return float(pd.Series(list(a), dtype=float).corr(pd.Series(list(b), dtype=float), "spearman"))


# Chapter 1: waves


def over_waves(name: str, architecture: str) -> pd.DataFrame:
    return largest(name, architecture).set_index(["frequency_i", "frequency_j"])


def accuracy(name: str, architecture: str) -> pd.Series:
    return over_waves(name, architecture).test_accuracy


def published_waves(architecture: str) -> pd.Series:
    rows = published_accuracies("fourier")
    return rows[rows.architecture == architecture].set_index(["frequency_i", "frequency_j"]).accuracy


def published_half(architecture: str) -> pd.Series:
    """One half of the table: the other one is a copy."""
    values = published_waves(architecture)
    return values[values.index.get_level_values("frequency_i") <= 0]


CHANCE = 0.52  # or less: 10,000 test samples at chance stay below it


def at_chance(name: str, architecture: str) -> pd.Index:
    values = accuracy(name, architecture)
    return values.index[values <= CHANCE]


def resnet_where_lenet_fails() -> str:
    places = [(-8, 0), (-16, -16)]
    theirs = published_waves("resnet18").reindex(places)
    return so((theirs > 0.95).all() and set(places) <= set(at_chance("A1", "lenet")), waves(places))


DEEP = ("resnet18", "vgg11", "densenet121")


def farthest_from_the_published(architecture: str, but: tuple[int, int] | None = None) -> str:
    off = 100 * (accuracy("A1", architecture) - published_waves(architecture)).abs()
    return within(off.drop([but] if but else []).max(), 1)


def densenet_memorises() -> tuple[str, ...]:
    rows = over_waves("A1", "densenet121")
    lost = rows[rows.test_accuracy <= CHANCE]
    shown = " and on ".join(f"$({abs(i):g}, {abs(j):g})$" for i, j in lost.index)
    return shown, percent(lost.train_accuracy.min(), 1), percent(lost.test_accuracy.mean())


def points_from_the_published_lenet() -> tuple[str, str, str]:
    off = (accuracy("A1", "lenet") - published_waves("lenet")).abs().dropna()
    return percent(off.mean(), 1), percent(off.max(), 1), waves([off.idxmax()])


def agreement_with_the_published_lenet() -> tuple[str, str, str]:
    """Rank correlations: of the published map with its mirror image, and of ours with it."""
    ours = accuracy("A1", "lenet")
    theirs = published_waves("lenet").reindex(ours.index)
    mirrored = [theirs.get((i, -j), math.nan) for i, j in theirs.index]
    ceiling, rho = spearman(theirs, mirrored), spearman(ours, theirs)
    return f"{ceiling:.2f}", f"{rho:.2f}", so(rho >= ceiling, "at least as")


def random_directions_learned() -> tuple[str, ...]:
    values = table("random", architecture="lenet").test_accuracy
    perfect = so(table("random", architecture="logreg").test_accuracy.min() == 1, "perfect")
    deep = table("random", architecture="resnet18").test_accuracy
    first = spelt(len(deep)), *extremes(deep)
    return spelt((values > 0.55).sum()), spelt(len(values)), percent(values.max(), 1), *first, perfect


def late_waves() -> tuple[float, str]:
    lost = at_chance("A1", "lenet")
    steps = over_waves("A2", "lenet").steps.fillna(math.inf)
    late = steps.index[steps > 900]
    both = set(late) == set(steps.index) & set(lost)
    return made_with(table("A1", architecture="lenet"), "sigma")[0], so(both, "lost")


def slow_waves_of_resnet() -> tuple[Any, ...]:
    """That it learns them is asserted here."""
    rows, coins = over_waves("A2", "resnet18"), [(-6, -10), (-14, -14)]
    assert rows.test_accuracy.min() > 0.999 and set(coins) <= set(at_chance("A1", "resnet18"))
    sigma, others = made_with(table("A2", architecture="resnet18"), "sigma")[0], rows.steps.drop(coins)
    return sigma, *rows.steps[coins], spelt(len(others)), others.min(), others.max()


def lost_waves_of_lenet() -> tuple[Any, ...]:
    """Of those with a frequency of 8 or 16, in either direction."""
    rows = table("A2", architecture="lenet")
    right = rows[rows.frequency_i.abs().isin([8, 16]) | rows.frequency_j.abs().isin([8, 16])].test_accuracy
    learned = right[right > 0.55]
    assert right.drop(learned.index).between(0.49, 0.51).all()
    return made_with(rows, "sigma")[0], len(right), percent(learned.min()), len(learned)


def steps_of_resnet() -> tuple[Any, ...]:
    _, *lost, _others, low, high = slow_waves_of_resnet()
    return spelt(len(over_waves("A2", "resnet18"))), *lost, low, high


def early_waves() -> float:
    steps = over_waves("A2", "lenet").steps
    return float(steps[steps < 900].max()) + 1


def lenet_without_pooling() -> tuple[str, str]:
    rows = over_waves("A3", "lenet")
    return str(math.floor(100 * rows.test_accuracy.sort_values().iloc[1])), so(rows.train_accuracy.min() == 1, "all")


def worse_without_pooling(architecture: str) -> pd.Index:
    change = accuracy("A3", architecture) - accuracy("A1", architecture)
    return change.index[change < 0]


def resnet_without_pooling() -> tuple[str, str, str]:
    pooled, without = accuracy("A1", "resnet18"), accuracy("A3", "resnet18")
    failed = [wave for wave in at_chance("A1", "resnet18") if wave in without.index]
    assert pooled.reindex(without.index).drop(failed).min() > 0.99
    return waves(failed), percent(math.floor(100 * without.min()) / 100), spelt(len(without))


def one_weight_in() -> int:
    pooled, without = (
        sum(weights.numel() for weights in nt.build("resnet18", 1, 2, pooling=pooling).parameters())
        for pooling in (True, False)
    )
    return int(round(pooled / (without - pooled), -2))


def trained_without_pooling(architecture: str) -> tuple[str, str, str]:
    values = over_waves("A3", architecture).train_accuracy
    return spelt(len(values)), *extremes(values)


def training_accuracy_where_lenet_fails() -> str:
    return percent(over_waves("A1", "lenet").train_accuracy[at_chance("A1", "lenet")].mean())


def lattice_of_resnet() -> tuple[int, int, int]:
    """That the lost waves are those of exercise 01-4 is asserted here."""
    theirs = published_half("resnet18").reindex(accuracy("A1", "lenet").index)
    lost = theirs < 0.55
    assert {tuple(place) for place in theirs.index[lost]} == {
        (i, j) for i, j in theirs.index if i % 4 == 2 and j % 4 == 2
    }
    return int(lost.sum()), len(theirs), math.floor(100 * theirs[~lost].min())


def still_learning() -> tuple[str, str, str, str]:
    """That the waves on which it tosses a coin are those of exercise 01-5 is asserted here."""
    rows = over_waves("A2", "lenet")
    rows = rows[rows.steps.isna()]
    known = rows.test_accuracy[rows.test_accuracy > 0.6]
    lost = rows.test_accuracy.drop(known.index)
    assert lost.max() < CHANCE
    magnitudes = {place: set(map(abs, place)) for place in over_waves("A2", "lenet").index}
    assert set(lost.index) == {place for place, both in magnitudes.items() if 8 in both and 4 not in both}
    return spelt(len(known)), *extremes(known), spelt(len(rows) - len(known))


CHAPTER_1 = [
    Stated(
        "at full size ($\\sigma = {:g}$, {:,} samples), and stored",
        lambda: made_with(table("A1", architecture="lenet"), "sigma", "num_train"),
    ),
    Stated(
        "a ResNet-18 on {} of the waves, a VGG-11 on {} and a DenseNet-121 on {}, {} each",
        lambda: (
            *(len(accuracy("A1", name)) for name in DEEP),
            so(all(not made_with(table("A1", architecture=name), "build_options")[0] for name in DEEP), "once"),
        ),
    ),
    Stated(
        "It learns {}, the highest frequency of all, where LeNet tosses a coin",
        resnet_where_lenet_fails,
        ("fourier",),
    ),
    Stated(
        "on the smooth wave $(2, -2)$, which LeNet learns to {} %, the much larger ResNet-18 {}",
        lambda: (
            percent(accuracy("A1", "lenet")[-2, 2]),
            so(published_waves("resnet18")[-2, 2] <= CHANCE, "tosses a coin"),
        ),
        ("fourier",),
    ),
    Stated(
        "ResNet-18 fails on {} of the {} waves, and learns every other one to {} % or more. Find the rule",
        lattice_of_resnet,
        ("fourier",),
    ),
    Stated(
        "the ResNet-18 comes within {} points of the authors', the VGG-11 within {}, and the DenseNet-121 within {} "
        "(within {} at all but $(16, 16)$)",
        lambda: [*map(farthest_from_the_published, DEEP), farthest_from_the_published("densenet121", but=(-16, -16))],
        ("fourier",),
    ),
    Stated("on {}, knows {} % or more of its training samples, and is right on {} % of new ones", densenet_memorises),
    Stated(
        "On {} of the {} is it much better than a coin: the best comes to {} %. ResNet-18, trained on the first {}, "
        "comes to {} to {} %. Logistic regression is {} on all",
        random_directions_learned,
    ),
    Stated("With less noise ($\\sigma = {:g}$)", lambda: made_with(table("A2", architecture="lenet"), "sigma")),
    Stated(
        "falls below {:g}, for at most {} epochs",
        lambda: made_with(table("A2", architecture="lenet"), "loss_level", "epochs"),
    ),
    Stated("at $\\sigma = {:g}$, all of these waves are {}: near one half", late_waves),
    Stated(
        "after 20 epochs: {} of them to {} to {} % of new samples. On {} it tosses a coin as before", still_learning
    ),
    Stated("Each of the waves on which it beats a coin at high noise takes fewer than {:g}", early_waves),
    Stated(
        "ResNet-18 learns all of its {} waves. The two that it loses at high noise take {:g} and {:g} steps, the "
        "others {:g} to {:g}.",
        steps_of_resnet,
    ),
    Stated(
        "is right on {} % or more of the new samples of every wave but one, and it fits {} its training samples",
        lenet_without_pooling,
    ),
    Stated(
        "It falls behind at {} place only, with {} %: the constant image, {}",
        lambda: (
            spelt(len(worse_without_pooling("lenet"))),
            percent(accuracy("A3", "lenet").min()),
            waves(worse_without_pooling("lenet")),
        ),
    ),
    Stated("it hardly grows: by one weight in {}", one_weight_in),
    Stated(
        "With the average it tosses a coin on {}. Without, it is right on {} % or more of the new samples of all {} "
        "waves",
        resnet_without_pooling,
    ),
    Stated(
        "on {} waves only, and it did not learn its training samples: {} to {} % of them",
        lambda: trained_without_pooling("vgg11"),
    ),
    Stated(
        "Nor did a DenseNet-121 of a quarter of the width, in {} epochs on {} waves: {} to {} % of them.",
        lambda: (*made_with(largest("A3", "densenet121"), "epochs"), *trained_without_pooling("densenet121")),
    ),
    Stated(
        "on {} waves of the grid it is no better than a coin",
        lambda: so(len(at_chance("A1", "lenet")) > len(accuracy("A1", "lenet")) / 2, "most"),
    ),
    Stated(
        "with its own mirror image is {}. This is the *noise ceiling*: another map with as much scatter can be "
        "expected to reach about that. Our map of LeNet reaches {}. So it agrees with the published one {} well "
        "as the published one agrees with its own mirror image",
        agreement_with_the_published_lenet,
        ("fourier",),
    ),
    Stated(
        "ours differs from theirs by {} on average, and by {} at most, at {}",
        points_from_the_published_lenet,
        ("fourier",),
    ),
    Stated("Logistic regression is {} everywhere", lambda: so(accuracy("A1", "logreg").min() == 1, "perfect")),
    Stated("it ends with about {} % of its training samples right", training_accuracy_where_lenet_fails),
]


# Chapter 2: the phase


def printed_and_exact() -> tuple[str, str]:
    response = nt.pooling.spectral_response("average", 128, 4)
    printed = nt.pooling.theorem1_accuracy(7, response, 4, 1.0, 3.0)
    exact = nt.pooling.fourier_accuracies("average", 4, 1.0, 3.0, size=128)[7]
    return percent(float(printed), 1), percent(float(exact), 1)


beside_lenet = functools.cache(chapter_02.beside_lenet)


def foretold() -> float:
    return spearman(*beside_lenet().to_numpy().T)


def foretold_among_the_learned() -> tuple[int, float]:
    """That LeNet does better on all of these but the constant image, as the caption says, is asserted here."""
    learned = beside_lenet()[beside_lenet()["LeNet, trained"] > 0.55]
    assert list(learned.index[learned["LeNet, trained"] <= learned["two averages"]]) == [(0, 0)]
    return len(learned), spearman(*learned.to_numpy().T)


def both_phases_left() -> tuple[float, float]:
    return tuple(
        float(nt.pooling.fourier_accuracies("average", 4, 1.0, 3.0, size=(32, 32), phase=phase)[4, -4])
        for phase in (math.pi / 2, 0.0)
    )


def learned_though_nothing_is_left() -> int:
    """Waves on which LeNet is right at low noise, and of which two layers of average pooling leave nothing."""
    right = table("A2", architecture="lenet").set_index(["frequency_i", "frequency_j"]).test_accuracy
    left = beside_lenet()["two averages"].reindex(right.index)
    return int(((left < 0.501) & (right > 0.9)).sum())


CHAPTER_2 = [
    Stated("$\\epsilon/\\sigma = 1/3$ it is {} %, where {} % is exact", printed_and_exact),
    Stated(
        "One average leaves {} % on $(8, 0)$",
        lambda: percent(
            float(nt.pooling.fourier_accuracies("average", 2, 1.0, 1.0, size=(32, 32), phase=math.pi / 2)[8, 0])
        ),
    ),
    Stated(
        "Over the {} waves the two maps have a rank correlation of {:.2f}",
        lambda: (len(beside_lenet()), foretold()),
    ),
    Stated("Even among the {} waves that LeNet learns to more than 55 %, it is {:.2f}", foretold_among_the_learned),
    Stated(
        "There the sine is {}, and the cosine is not",
        lambda: so(both_phases_left()[0] < 0.501 and both_phases_left()[1] > 0.59, "lost"),
    ),
    Stated(
        "two maps of trained LeNets agree, ours and the authors': {}.",
        lambda: agreement_with_the_published_lenet()[1],
        ("fourier",),
    ),
    Stated(
        "{} % on $(2, 2)$, where they leave {} %",
        lambda: [percent(chapter_02.both_signs(beside_lenet()).loc[(2, 2)].iloc[k]) for k in (1, 0)],
    ),
    Stated(
        "with little noise it learned {} waves of which the averages leave nothing",
        lambda: so(learned_though_nothing_is_left() > 3, "some"),
    ),
    Stated("rank the waves as LeNet does, with a correlation of {:.2f}", foretold),
]


# Chapter 4: NADs


@functools.cache
def fourier_energy(architecture: str) -> torch.Tensor:
    return nt.fourier_energy(atlas(architecture).vectors[:200]).double()


@functools.cache
def radius_correlation(architecture: str) -> float:
    """Of the mean frequency of the first 200 NADs with their index."""
    axis = torch.arange(-16.0, 16.0, dtype=torch.float64)
    frequency = (fourier_energy(architecture) * torch.hypot(axis[:, None], axis)).sum((1, 2))
    return spearman(frequency, range(200))


def combs() -> tuple[str, str]:
    energy, axis = fourier_energy("resnet18")[:10], torch.arange(-16, 16) % 4 == 0
    number = 1 / energy.square().sum((1, 2))
    share = energy[:, axis][:, :, axis].sum((1, 2)).mean()
    return so((number >= 24).sum() > 5, "most of them"), percent(float(share))


def first_nads_of_densenet() -> tuple[str, str]:
    peaks = [divmod(int(energy.argmax()), 32) for energy in fourier_energy("densenet121")[:3]]
    constant, *stripes = [(abs(i - 16), abs(j - 16)) for i, j in peaks]
    return so(constant == (0, 0), "constant image"), so(set(stripes) == {(0, 16), (16, 0)}, "finest stripes")


def interval_that_is_too_short() -> tuple[str, str, str]:
    coverage = experiments.load("coverage")
    short = coverage["index"][coverage["coverage"] < 0.9]
    scatters_most = coverage["index"][np.argmax(coverage["spread"] / coverage["reference"])]
    first = so(list(short) == [scatters_most] == [0], "first")
    return first, percent(coverage["coverage"].min()), percent(np.sort(coverage["coverage"])[1])


def clear_borders(architecture: str) -> list[int]:
    """After how many NADs the gap is more than twice its error."""
    values, errors = atlas(architecture).eigenvalues, atlas(architecture).eigenvalue_stderr
    return (1 + (-values.diff() > 2 * torch.hypot(errors[:-1], errors[1:])).nonzero().flatten()).tolist()


def named_singly(architecture: str) -> list[int]:
    borders = {0, *clear_borders(architecture)}
    return [k for k in sorted(borders) if k + 1 in borders]


def clear_borders_of_lenet() -> list[int]:
    assert named_singly("lenet") == [0]
    return [0, *(k - 1 for k in clear_borders("lenet")[1:4])]


def met_by_first(architecture: str, *numbers: int) -> list[str]:
    """Overlap of the first ones, ours and published."""
    ours, theirs = atlas(architecture).vectors, published_nads(architecture).vectors
    return [f"{nt.subspace_overlap(ours, theirs, k):.2f}" for k in numbers]


def borders_that_are_met() -> tuple[str, str, str]:
    borders = [k for k in clear_borders("lenet") if k <= 30]
    between = [k for k in range(1, borders[-1]) if k not in borders]
    return spelt(len(borders)), min(met_by_first("lenet", *borders)), min(met_by_first("lenet", *between))


def named_in_error() -> tuple[int, str]:
    """Of the NADs that are named, the one that least resembles its published namesake."""
    ours, theirs = atlas("resnet18").vectors, published_nads("resnet18").vectors
    alike = {k: float((ours[k] * theirs[k]).sum().square()) for k in named_singly("resnet18")}
    worst = min(alike, key=alike.__getitem__)
    return worst, f"{alike[worst]:.2f}"


def border_at_its_ceiling() -> tuple[int, str, str]:
    """The one clear border, of all among the first thirty, that the published NADs do not meet by 0.95."""
    missed = [
        (architecture, k)
        for architecture in ("lenet", "vgg11", "resnet18", "densenet121")
        for k in clear_borders(architecture)
        if k <= 30 and float(met_by_first(architecture, k)[0]) < 0.95
    ]
    ((architecture, k),) = missed
    assert architecture == "vgg11"
    theirs = published_nads(architecture)
    symmetrised = nt.moments.GradientMoments((1, 32, 32), nt.symmetry_group(architecture))
    symmetrised.add(0, theirs.vectors.flatten(1).double().T * theirs.eigenvalues.sqrt())
    ceiling = symmetrised.eigendecomposition().vectors.reshape(-1, 32, 32)
    return k, *met_by_first(architecture, k), f"{nt.subspace_overlap(ceiling, theirs.vectors, k):.2f}"


def coverage_parameters() -> tuple[int, int, str]:
    parameters = experiments.read_record(experiments.result_path("coverage"))["parameters"]
    assert parameters["width"] == 0.5
    return parameters["num_networks"], parameters["repetitions"], percent(parameters["level"])


def most_gradients() -> int:
    """The largest sample of gradients that was compared with the published NADs of LeNet."""
    measured = json.loads((BOOK / "results" / "benchmark-nads.json").read_text(encoding="utf-8"))["benchmarks"]
    (gradient,) = [one["extra_info"] for one in measured if one["name"] == "test_exact_gradient[lenet]"]
    assert max(gradient["curve"]["energy"]) < 0.5
    return max(gradient["curve"]["networks"])


@functools.cache
def alignment_and_published_accuracy(architecture: str, estimator: str) -> float:
    """Rank correlation of the two, with the mean of α over both phases."""
    half = published_half(architecture)
    nads, alpha = atlas(architecture, estimator), []
    for i, j in half.index:
        phases = (0.0,) if i % 16 == j % 16 == 0 else (0.0, math.pi / 2)
        alpha.append(float(nads.alignments(torch.stack([nt.fourier_atom((32, 32), (i, j), p) for p in phases])).mean()))
    return spearman(alpha, half)


def resnet_gradient_predicts() -> str:
    secant, gradient = (alignment_and_published_accuracy("resnet18", kind) for kind in ("secant", "gradient"))
    return so(0.5 < gradient < secant, "less well than")


def size_of_resnet() -> tuple[int, str, str]:
    """How many secants its file holds, and how far the trace is off with them and with 10,000."""
    theirs = published_nads("resnet18")
    ratio = float(atlas("resnet18").eigenvalues.sum() / theirs.eigenvalues.sum())
    count = theirs.metadata["num_networks"]
    return count, {2: "half"}[round(ratio * 10_000 / count, 1)], within(100 * abs(ratio - 1), 1)


def first_eigenvalues() -> tuple[Any, ...]:
    lenet = atlas("lenet")
    pairs = torch.stack([lenet.eigenvalues[:2], lenet.eigenvalue_stderr[:2]], 1) / lenet.eigenvalues.mean()
    return lenet.metadata["num_networks"], *(f"{value:.0f}" for value in pairs.flatten().tolist())


CHAPTER_3 = [
    Stated(
        "At $\\sigma = {:g}$ it learns both to 100 %, but takes {:.0f} and {:.0f} steps, where {} other waves take "
        "{:.0f} to {:.0f}.",
        slow_waves_of_resnet,
    ),
]

CHAPTER_4 = [
    Stated("with the {} networks of the wall ${} \\pm {}$ against ${} \\pm {}$ times the mean", first_eigenvalues),
    Stated(
        "In {} smooth NADs do come first, on the whole",
        lambda: listed(
            name
            for key, name in (
                ("lenet", "LeNet"),
                ("vgg11", "VGG-11"),
                ("resnet18", "ResNet-18"),
                ("densenet121", "DenseNet-121"),
            )
            if radius_correlation(key) > 0.5
        ),
    ),
    Stated(
        "over the authors' frequencies, is {}",
        lambda: so(abs(alignment_and_published_accuracy("lenet", "gradient")) < 0.05, "near zero"),
        ("fourier",),
    ),
    Stated("Its gradient's $\\alpha$ predicts, though {} the secant's", resnet_gradient_predicts, ("fourier",)),
]


def mixed_derivatives() -> tuple[Any, ...]:
    stored = table("mixed", architecture="lenet")
    correlation, *shares = agreement(stored)
    size, blocks = (stored.attrs["parameters"][key] for key in ("num_networks", "blocks"))
    return size * blocks, f"{correlation:.3f}", size, *map(percent, shares)


CHAPTER_4B = [
    Stated(
        "with {} networks for each (see [How the results were made](results-made.ipynb)), the two matrices cannot be "
        "told apart: their correlation is {}. The paper is also right that "
        "gradients are the steadier of the two: with {} networks {} % of the gradient's matrix is not noise, and {} %",
        mixed_derivatives,
    ),
    Stated("but even {:,} do not come near the published ones", most_gradients),
    Stated(
        "A stored experiment repeated an estimate with {} networks, LeNets of half the width, {} times and asked how "
        "often the {} % intervals",
        coverage_parameters,
    ),
    Stated(
        "That of the {} eigenvalue, which scatters most, did so in {} % of the cases: it is too short. All others did "
        "in {} % or more",
        interval_that_is_too_short,
    ),
    Stated(
        "To bring it down to a tenth above the true one, at $32 \\times 32$ pixels, you would need {:,} gradients",
        lambda: round(round(1024 / (1.1**0.5 - 1) ** 2), -4),
    ),
    Stated(
        "Of LeNet's NADs only number {}. Its next clear borders lie behind NADs {}, {} and {}", clear_borders_of_lenet
    ),
    Stated(
        "Among the first thirty NADs of each, exercise 04-5 names LeNet's number {}, VGG-11's {} and {}, "
        "DenseNet-121's {} and ResNet-18's {}",
        lambda: [k for name in ("lenet", "vgg11", "densenet121", "resnet18") for k in named_singly(name) if k < 30],
    ),
    Stated(
        "At LeNet's {} borders the overlap is {} or more, and between them it falls to {}.",
        borders_that_are_met,
        ("lenet",),
    ),
    Stated(
        "its NAD 0 meets its published namesake with {}, its first eight meet theirs with {}",
        lambda: met_by_first("resnet18", 1, 8),
        ("resnet18",),
    ),
    Stated(
        "it also names ResNet-18's NAD {}, and that one's overlap with its namesake is {}",
        named_in_error,
        ("resnet18",),
    ),
    Stated(
        "Only VGG-11's border at {} falls short, with {}. But there the *ceiling* is {}.",
        border_at_its_ceiling,
        ("vgg11", "lenet", "resnet18", "densenet121"),
    ),
    Stated("{} spread over dozens of frequencies, and {} % of their energy lies at multiples of four cycles", combs),
    Stated("after the {} come the {} that 32 pixels can show", first_nads_of_densenet),
    Stated(
        "Over the first 200 NADs of both, frequency and index are {} correlated",
        lambda: so(max(abs(radius_correlation(name)) for name in ("resnet18", "densenet121")) < 0.1, "hardly"),
    ),
    Stated(
        "$N$ is not 10,000 but {:,}. Divided by 10,000 they would be {} of ours. "
        "With 5,000 the sums differ by less than {} %",
        size_of_resnet,
        ("resnet18",),
    ),
]


# Chapter 5: learning along NADs


def along_nads(architecture: str, nads: str = "ours") -> pd.Series:
    """Test accuracy by index, the mean over seeds."""
    return table("A6", architecture=architecture, nads=nads).groupby("index").test_accuracy.mean()


def published_curve(architecture: str) -> pd.Series:
    rows = published_accuracies("nads")
    return rows[rows.architecture == architecture].set_index("index").accuracy


def at(curve: pd.Series, *indices: int, digits: int = 0) -> tuple[str, ...]:
    return tuple(percent(curve[index], digits) for index in indices)


def last_learned(curve: pd.Series) -> int:
    return int(curve.index[curve >= 0.75].max())


def relative(architecture: str = "lenet") -> torch.Tensor:
    """Eigenvalues as multiples of their mean."""
    values = atlas(architecture).eigenvalues
    return values / values.mean()


def relative_alignment(architecture: str, vectors: torch.Tensor, estimator: str = "secant") -> torch.Tensor:
    nads = atlas(architecture, estimator)
    return torch.as_tensor(nads.alignments(vectors)) / nads.eigenvalues.mean()


def full_size() -> tuple[Any, ...]:
    stored = table("A6", architecture="lenet", nads="published")
    return *made_with(stored, "num_train", "epochs"), int(stored["index"].min()), int(stored["index"].max())


def almost_perfect() -> str:
    """Up to here at least 98 %, on either set."""
    least = np.minimum(along_nads("lenet"), along_nads("lenet", "published"))
    return spelt(least.index[least.cummin() >= 0.98].max())


def beyond_500() -> str:
    most = max(along_nads("lenet", nads).loc[501:].max() for nads in ("ours", "published"))
    return so(most < 0.6, "little")


def deviation(nads: str) -> pd.Series:
    return (along_nads("lenet", nads) - published_curve("lenet")).abs().dropna()


def published_curve_is_met() -> tuple[Any, ...]:
    apart, curve = deviation("published"), along_nads("lenet", "published")
    return percent(apart.mean(), 1), len(apart), percent(apart.max(), 1), spearman(curve.index, curve)


def index_is_another() -> tuple[Any, ...]:
    apart, curve = deviation("ours"), along_nads("lenet")
    return spearman(curve.index, curve), percent(apart.mean(), 1), percent(apart.max()), int(apart.idxmax())


def spread_over_seeds() -> tuple[str, str]:
    spread = 100 * table("A6", architecture="lenet", nads="ours").groupby("index").test_accuracy.std()
    return spelt(halves(spread.median())), f"{spread.max():.1f}"


def sigma_fits() -> tuple[str, str]:
    theirs, ours = percent(published_curve("lenet")[100]), percent(along_nads("lenet", "published")[100])
    return theirs, so(ours == theirs, "so is ours")


def alignment_of_random_directions(architecture: str = "lenet") -> float:
    """Its standard deviation, by the chapter's proposition."""
    return float((2 / (1024 + 2) * (relative(architecture).square().mean() - 1)).sqrt())


def worth_of_half_the_first() -> tuple[str, str]:
    half, second = float(relative()[0]) / 2, float(relative()[1])
    return spelt(round(half)), so(abs(half / second - 1) < 0.05, "as much as the second NAD has")


def same_index_of_both_sets() -> tuple[str, int]:
    """How far apart their α are, and from where on the published vector is spread over dozens of ours."""
    indices = [10, 50, 110, 150, 300]
    theirs = published_nads("lenet").vectors[indices]
    apart = (relative_alignment("lenet", theirs) / relative()[indices] - 1).abs().max()
    energies = (theirs.flatten(1) @ atlas("lenet").vectors.flatten(1).T).square()
    spread = 1 / energies.square().sum(1)
    first = next(k for k in range(len(indices)) if bool((spread[k:] >= 24).all()))
    return so(apart < 0.05, "a few per cent"), indices[first]


def correlations(vectors: torch.Tensor, accuracies: pd.Series) -> tuple[float, float, float]:
    """Of the accuracy on D(v) with the secant's α, the gradient's, and the share of the pixels alone."""
    pixels = atlas("lenet").covariance().diagonal()
    predictions = [relative_alignment("lenet", vectors, kind) for kind in ("secant", "gradient")]
    predictions.append(vectors.flatten(1).double().square() @ pixels)
    secant, gradient, straw_man = (spearman(one, accuracies) for one in predictions)
    return secant, gradient, straw_man


@functools.cache
def correlations_along_nads(nads: str = "ours") -> tuple[float, float, float]:
    curve = along_nads("lenet", nads)
    basis = atlas("lenet") if nads == "ours" else published_nads("lenet")
    return correlations(basis.vectors[[int(index) for index in curve.index]].float(), curve)


def atoms(places: Iterable[tuple[float, float]]) -> torch.Tensor:
    places = [(int(i), int(j)) for i, j in places]
    phases = [0.0 if i % 16 == j % 16 == 0 else math.pi / 2 for i, j in places]
    return torch.stack([nt.fourier_atom((32, 32), *one) for one in zip(places, phases, strict=True)])


def easy_test() -> tuple[float, float, str]:
    (_, ours, straw_ours), (_, theirs, straw_theirs) = map(correlations_along_nads, ("ours", "published"))
    return ours, theirs, so(straw_ours >= ours and straw_theirs >= theirs, "so does")


@functools.cache
def correlations_over_atoms(is_published: bool) -> tuple[float, float, float]:
    values = published_half("lenet") if is_published else accuracy("A1", "lenet")
    return correlations(atoms(values.index), values)


def published_atoms_agree() -> str:
    (*ours, _), (*theirs, _) = map(correlations_over_atoms, (False, True))
    return so(max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 0.1, "nearly")


def hard_test() -> tuple[str, float, float, float]:
    values = accuracy("A1", "lenet")
    secant, gradient, straw_man = correlations_over_atoms(False)
    pixels = atlas("lenet").covariance().diagonal()
    constant = 1000 * (atoms(values.index).flatten(1).double().square() @ pixels / pixels.mean()).std()

    def wrapped(frequency: float) -> float:
        return (-frequency + 16) % 32 - 16

    # Of each pair f and -f one is stored: the mirror image of f is there, or its negative.
    mirrored = [values.get((i, wrapped(j)), values.get((wrapped(i), j))) for i, j in values.index]
    little = so(constant < 1 and abs(straw_man) < 0.2, "less than a thousandth")
    return little, gradient, secant, spearman(values, mirrored)


@functools.cache
def atoms_by_alignment() -> pd.DataFrame:
    """A1, with what is left over by the increasing function of α that fits best."""
    rows = accuracy("A1", "lenet").to_frame()
    alpha = relative_alignment("lenet", atoms(rows.index))
    rows = rows.assign(alpha=alpha.numpy()).sort_values("alpha", kind="stable")
    return rows.assign(rest=rows.test_accuracy - isotonic_regression(rows.test_accuracy).x)


def stripes() -> tuple[str, str, str]:
    rows = atoms_by_alignment().sort_values("rest")
    worst, best = rows.index[:2], rows.index[:-3:-1]
    times = {2: "twice"}.get(round(rows.alpha[worst].mean()), f"{rows.alpha[worst].mean():.1f} times")
    return waves(worst, signed=True), times, waves(best, signed=True)


def blind_beyond(wave: tuple[int, int], number: int) -> float:
    """The best accuracy of one who sees so many of the first NADs."""
    (v,), first = atoms([wave]), atlas("lenet").vectors[:number].flatten(1)
    sigma = made_with(table("A1", architecture="lenet"), "sigma")
    return float(nt.pooling.bayes_accuracy(v.flatten(), first, 1.0, *sigma))


def blind_beyond_100(wave: tuple[int, int]) -> tuple[str, str]:
    """The best accuracy of one who sees the first hundred NADs, and LeNet's."""
    return percent(blind_beyond(wave, 100)), percent(accuracy("A1", "lenet")[wave])


def cut_for_both() -> tuple[int, str]:
    """How many NADs allow what LeNet reaches on (0, 2), and what these allow on the constant image."""
    reached = accuracy("A1", "lenet")[0, -2]
    # More NADs allow more.
    number = bisect.bisect_left(range(1, 1024), reached, key=lambda n: blind_beyond((0, -2), n)) + 1
    return number, percent(blind_beyond((0, 0), number))


def stripes_and_the_cut() -> tuple[str, int, str]:
    number, _ = cut_for_both()
    return percent(accuracy("A1", "lenet")[-12, 0]), number, percent(blind_beyond((-12, 0), number))


def resnet_breaks_the_order() -> str:
    late = under("momentum", "resnet18").test_accuracy.groupby("index").mean()
    assert late[1000] > late[300]
    return percent(late[300], 1)


def ours_are_better() -> tuple[int, int]:
    ours, theirs = along_nads("lenet", "ours"), along_nads("lenet", "published")
    assert (ours.index == theirs.index).all()
    return int((ours > theirs).sum()), len(ours)


def as_much_as_the_hole() -> tuple[str, int]:
    """Where, in steps of ten, our α is nearest to that of the published NAD 70 of ResNet-18."""
    theirs, curve = published_nads("resnet18"), published_curve("resnet18")
    alpha, *others = relative_alignment("resnet18", theirs.vectors[[70, *range(90, 400, 10)]]).tolist()
    nearest = min(range(90, 400, 10), key=lambda k: abs(others[(k - 90) // 10] - alpha))
    return percent(curve[nearest]), nearest


def hole() -> tuple[str, int]:
    """How far the published eigenvalue of NAD 70 is off, and which NAD is next above it by our α."""
    theirs, indices = published_nads("resnet18"), [60, 70, 80]
    alpha = dict(zip(indices, relative_alignment("resnet18", theirs.vectors[indices]).tolist(), strict=True))
    ratio = float(theirs.eigenvalues[70] / theirs.eigenvalues.mean()) / alpha[70]
    return spelt(halves(ratio)), min((k for k in indices if alpha[k] > alpha[70]), key=lambda k: alpha[k])


def effective_number(architecture: str) -> float:
    return float(1024 / relative(architecture).square().mean())


def published_order() -> tuple[Any, ...]:
    """Three of the authors' networks stand in order of their effective numbers, and VGG-11 does not."""
    names = ("densenet121", "resnet18", "lenet")
    numbers, last = [effective_number(name) for name in names], [last_learned(published_curve(name)) for name in names]
    assert numbers == sorted(numbers) and last == sorted(last)
    return *numbers, *last


def vgg11_breaks_the_order() -> tuple[Any, ...]:
    number, last = effective_number("vgg11"), last_learned(published_curve("vgg11"))
    assert number > effective_number("resnet18") and last < last_learned(published_curve("resnet18"))
    return number, last, *(percent(published_curve(name).mean()) for name in ("vgg11", "resnet18"))


def last_learned_by_ours() -> tuple[Any, ...]:
    resnet, seeds = along_nads("resnet18"), table("A6", architecture="resnet18", nads="ours").seed.nunique()
    return last_learned(along_nads("lenet")), spelt(len(resnet)), so(seeds == 1, "once"), last_learned(resnet)


def resnet_without_momentum() -> tuple[str, str]:
    momentum, epochs = made_with(table("A6", architecture="resnet18", nads="ours"), "momentum", "epochs")
    assert momentum == 0
    return spelt(epochs), *at(along_nads("resnet18"), 1000)


def under(schedule: str, architecture: str, sigma: float = 1.0) -> pd.DataFrame:
    """The optimiser experiment at one noise, by NAD and seed."""
    rows = table("optimizer", architecture=architecture, schedule=schedule, seed=int(architecture == "lenet"))
    return rows[rows.sigma == sigma].set_index(["index", "seed"])


def schedules_compared() -> tuple[str, float]:
    configs = [
        made_with(
            table("optimizer", architecture=name, schedule=schedule, seed=int(name == "lenet")), "momentum", "epochs"
        )
        for name in ("lenet", "vgg11", "resnet18")
        for schedule in ("clipped", "momentum")
    ]
    assert configs[0] == configs[2] == configs[4] and configs[0][0] == 0 and configs[3] == configs[5]
    assert configs[1][0] == configs[3][0]
    return str(configs[0][1]), configs[1][0]


def resnet_under_two_schedules() -> tuple[str, str, str]:
    without, momentum = (under(schedule, "resnet18").loc[1000].iloc[0] for schedule in ("clipped", "momentum"))
    all_learned = so(without.train_accuracy > 0.9999, "all")
    return all_learned, percent(without.test_accuracy, 1), percent(momentum.test_accuracy, 1)


def gains_by_momentum(architecture: str) -> list[str]:
    without, momentum = (
        under(schedule, architecture).test_accuracy.groupby("index").mean() for schedule in ("clipped", "momentum")
    )
    return [percent(momentum[index] - without[index]) for index in (100, 300)]


def vgg_learns_by_heart() -> str:
    runs = [under(schedule, "vgg11").loc[1000].iloc[0] for schedule in ("clipped", "momentum")]
    coins = all(abs(run.test_accuracy - 0.5) < 0.02 for run in runs)
    return so(coins and all(run.train_accuracy > 0.9999 for run in runs), "all")


def lenet_by_heart() -> tuple[str, str]:
    runs = pd.concat([under(schedule, "lenet").loc[1000] for schedule in ("clipped", "momentum")])
    assert (runs.test_accuracy - 0.5).abs().max() < 0.01
    found = under("momentum", "lenet").loc[1000].train_accuracy
    return spelt(int((found > 0.999).sum())), spelt(len(found))


def with_more_noise() -> tuple[str, str, str]:
    accuracies = [
        under(schedule, "resnet18", 3.0).test_accuracy.loc[300].item() for schedule in ("clipped", "momentum")
    ]
    stuck = under("momentum", "lenet", 3.0).train_accuracy.loc[100:].max() < 0.51
    return *map(percent, accuracies), so(stuck, "does not even begin to learn from NAD 100 on")


def deep_points() -> list[str]:
    """Along the published NADs, each beside the authors' table."""
    found = []
    for name, index, digits in (("resnet18", 100, 1), ("vgg11", 100, 0), ("densenet121", 10, 1)):
        found += at(along_nads(name, "published"), index, digits=digits)
        found += at(published_curve(name), index)
    return found


CHAPTER_5 = [
    Stated("are those of {} networks, by the secant", lambda: atlas("lenet").metadata["num_networks"]),
    Stated("figure 6: {:,} training samples, {} epochs, and indices from {} to {}", full_size),
    Stated(
        "show one standard deviation over {} seeds",
        lambda: spelt(table("A6", architecture="lenet", nads="ours").seed.nunique()),
    ),
    Stated("LeNet learns the first {} directions almost perfectly", almost_perfect),
    Stated("beyond index 500 {} is left above one half", beyond_500),
    Stated(
        "by {} points on average, over {} indices, and by {} at most. The rank correlation with the index is ${:.2f}$",
        published_curve_is_met,
        ("nads",),
    ),
    Stated("NADs 40 *and* 60 ({}, {} and {} %)", lambda: at(published_curve("lenet"), 40, 50, 60, digits=1), ("nads",)),
    Stated("training on the same vector gives {} %", lambda: at(along_nads("lenet", "published"), 50, digits=1)),
    Stated(
        "{} % at NAD 70 and {} % at NAD 110, {} % at NAD 240 and {} % at NAD 300",
        lambda: at(along_nads("lenet"), 70, 110, 240, 300),
    ),
    Stated("over three seeds is {} a point there in the median, and {} points at most", spread_over_seeds),
    Stated(
        "On our NADs the rank correlation with the index is ${:.2f}$, too. But at the same index our accuracies and "
        "the published ones differ by {} points on average, and by {} at NAD {}",
        index_is_another,
        ("nads",),
    ),
    Stated("The published accuracy is {} %, and {} with", sigma_fits, ("nads",)),
    Stated("random directions have $\\alpha = 1 \\pm {:.2f}$ for LeNet", alignment_of_random_directions),
    Stated(
        "Its first NAD holds {} % of the sum of the eigenvalues, and its random directions have "
        "$\\alpha = 1 \\pm {:.2f}$",
        lambda: (percent(float(relative("densenet121")[0]) / 1024), alignment_of_random_directions("densenet121")),
    ),
    Stated("this is half of $\\lambda_0$, {} times the mean, and {}", worth_of_half_the_first),
    Stated(
        "have the same $\\alpha$ within {}. But from index {} on the published one is spread over dozens",
        same_index_of_both_sets,
        ("lenet",),
    ),
    Stated(
        "at index 110, {} % instead of {} %",
        lambda: [*at(along_nads("lenet", "published"), 110, digits=1), *at(along_nads("lenet"), 110, digits=1)],
    ),
    Stated("The secant's $\\alpha$ reaches {:.2f}: order along the NADs", lambda: correlations_along_nads()[0]),
    Stated(
        "$\\alpha$ reaches {:.2f} on our NADs and {:.2f} on the published ones. And {} the straw man",
        easy_test,
        ("lenet",),
    ),
    Stated("chapter 2's two averages reach {:.2f} on our accuracies", foretold),
    Stated(
        "what it says of them varies by {}, and rounding decides their order. The gradient has hardly more to say "
        "({:.2f}), and the secant's $\\alpha$ reaches {:.2f}. The noise ceiling is {:.2f}",
        hard_test,
    ),
    Stated("The published accuracies give {} the same correlations", published_atoms_agree, ("fourier",)),
    Stated(
        "The finest stripes, at {}, disappoint most: {} the mean $\\alpha$, and nothing learned. Stripes a little "
        "wider, at {}, surprise most",
        stripes,
    ),
    Stated(
        "For the *constant image*, {}, there is a candidate. It has the largest $\\alpha$",
        lambda: waves([atoms_by_alignment().alpha.idxmax()]),
    ),
    Stated("For the constant image it is {} %, and LeNet reaches {} %", lambda: blind_beyond_100((0, 0))),
    Stated(
        "with the same cut the wave $(0, 2)$ would be learned to {} % at best, where LeNet reaches {} %",
        lambda: blind_beyond_100((0, -2)),
    ),
    Stated("$(0, 2)$ asks for {} NADs, and these would allow {} % on the constant image", cut_for_both),
    Stated("are learned to {} %, where the same {} NADs allow {} %", stripes_and_the_cut),
    Stated("with momentum it learns NAD 1000 better than NAD 300 ({} %)", resnet_breaks_the_order),
    Stated("At {} of the {} indices ours is learned better", ours_are_better),
    Stated("the authors reach {} % at NAD {}, which has as much", as_much_as_the_hole, ("nads", "resnet18")),
    Stated(
        "{} % at NAD 60, {} % at NAD 70, and {} % again at NAD 80",
        lambda: at(published_curve("resnet18"), 60, 70, 80),
        ("nads",),
    ),
    Stated(
        "its eigenvalue in their estimate is {} times the $\\alpha$ that ours gives it. By our $\\alpha$ it belongs "
        "behind NAD {}",
        hole,
        ("resnet18",),
    ),
    Stated(
        "DenseNet-121 with {:.0f} effective direction, ResNet-18 with {:.0f}, LeNet with {:.0f}. The last NADs that "
        "they learn to 75 % are numbers {}, {} and {}",
        published_order,
        ("nads",),
    ),
    Stated(
        "VGG-11 breaks it: it has {:.0f} effective directions, and learns none beyond number {}. Nor do ResNet-18 and "
        "DenseNet-121 have the strongest bias, as the paper says. In the mean over all NADs VGG-11 reaches {} %, and "
        "ResNet-18 {} %",
        vgg11_breaks_the_order,
        ("nads",),
    ),
    Stated(
        "LeNet reaches 75 % up to index {}, and ResNet-18 (on {} NADs, trained {}) up to index {}",
        last_learned_by_ours,
    ),
    Stated("without momentum for {} epochs, as in this chapter, and with momentum {:g}", schedules_compared),
    Stated(
        "Without momentum it is right on {} its training samples of NAD 1000, and on {} % of fresh ones: it has "
        "learned them by heart. With momentum it is right on {} % of fresh ones.",
        resnet_under_two_schedules,
    ),
    Stated("With momentum it gains {} points at NAD 100 and {} at NAD 300", lambda: gains_by_momentum("lenet")),
    Stated(
        "**Nor did the narrow VGG-11**: with momentum it gains {} and {} points", lambda: gains_by_momentum("vgg11")
    ),
    Stated("both schedules end in a coin, with {} training samples learned by heart", vgg_learns_by_heart),
    Stated("On NAD 1000 it tosses a coin, even with the {} seed of {} with which it has", lenet_by_heart),
    Stated("at NAD 300 ResNet-18 is right on {} % and {} %, and LeNet with momentum {}", with_more_noise),
    Stated(
        "VGG-11 has {} % at NAD 100 and {} % at NAD 200. DenseNet-121, on {} NADs, has {} % at NAD 10 and {} % at NAD "
        "100",
        lambda: (
            *at(along_nads("vgg11"), 100, 200),
            spelt(len(along_nads("densenet121"))),
            *at(along_nads("densenet121"), 10, 100),
        ),
    ),
    Stated(
        "ResNet-18 has {} % at NAD 100, where the authors' table has {} %; VGG-11 has {} %, where it has {} %. "
        "DenseNet-121 has {} % at NAD 10, where it has {} %",
        deep_points,
        ("nads",),
    ),
    Stated(
        "can be learned to {} % and to {} %",
        lambda: (*at(along_nads("lenet"), 110), *at(along_nads("lenet", "published"), 110)),
    ),
]


# Chapter 8: poisoned photographs

PHOTOGRAPHS = {
    "cifar10": "50,000 images",
    "cifar10-jpeg": "50,000 images (a JPEG copy of CIFAR-10)",
    "cifar10-subset": "5,000",
}


def photographs(name: str, *architectures: str) -> str:
    return listed({PHOTOGRAPHS[largest(name, one).attrs["selectors"]["data"]] for one in architectures})


def carried(architecture: str) -> pd.DataFrame:
    """The result of A7 that chapter 8 shows: of 20 epochs."""
    scale = "paper" if architecture == "resnet18" else "laptop"
    rows = table("A7", architecture=architecture, data="cifar10-jpeg", scale=scale)
    assert made_with(rows, "epochs") == (20,)
    return rows


def poisoned(architecture: str, name: str = "A7") -> pd.DataFrame:
    """By index; ``cost`` is what the carrier costs on clean images."""
    return by_index(carried(architecture) if name == "A7" else largest(name, architecture))


def by_index(rows: pd.DataFrame) -> pd.DataFrame:
    reference = rows[rows["replace"] == "none"].test_accuracy.mean()
    own = rows[rows["replace"] == "own"].drop(columns="replace").groupby(["index", "epsilon"], as_index=False).mean()
    return own.assign(cost=reference - own.test_accuracy).set_index("index")


def claims_that(hold: bool, marks: Iterable[Mark], stored: pd.DataFrame) -> str:
    """How many of them hold, or do not hold, as a word."""
    found = [all(mark.measure(stored).holds) is hold for mark in marks]
    return "all" if all(found) else spelt(sum(found))


def poisoning_claims_hold(architecture: str) -> str:
    return claims_that(True, chapter_08.MARKS, largest("A7", architecture))


def switch(architecture: str) -> tuple[int, int]:
    """The last index at which a carrier costs more than 5 points, and the first from which on none does."""
    costs = poisoned(architecture).cost > 0.05
    last = int(costs.index[costs].max())
    return last, int(costs.index[costs.index > last].min())


def resnet_with_a_carrier() -> tuple[Any, ...]:
    rows = poisoned("resnet18")
    early = rows.loc[:50]
    return (
        percent(float((rows.cost + rows.test_accuracy).iloc[0]), 1),
        *extremes(early.test_accuracy),
        *early.index,
        percent(rows.test_accuracy[300], 1),
        percent(rows.follows_carrier[300], 1),
    )


def without_a_carrier() -> list[str]:
    rows = [carried(name) for name in ("mlp", "lenet")]
    return [percent(one[one["replace"] == "none"].test_accuracy.mean(), 1) for one in rows]


def rise(architecture: str) -> float:
    rows = poisoned(architecture)
    return spearman(rows.index, rows.test_accuracy)


def costs_where_they_part() -> tuple[str, ...]:
    mlp, lenet = (poisoned(name).cost[[100, 200, 1019]] for name in ("mlp", "lenet"))
    return *map(percent, mlp), within(100 * float(lenet.abs().max()), 1)


def costs_where_both_overlook() -> str:
    return within(100 * max(poisoned(name).cost[[400, 700]].max() for name in ("mlp", "lenet")), 2)


def contradictions_of_lenet() -> list[str]:
    rows = poisoned("lenet")
    return [percent(rows.follows_carrier[0]), percent(rows.follows_content[0]), percent(rows.follows_carrier[100])]


def half_a_hundred_epochs_change() -> tuple[Any, ...]:
    longer = largest("A7", "lenet")
    change = by_index(longer).test_accuracy - poisoned("lenet").test_accuracy
    return *made_with(longer, "epochs"), spelt(longer.seed.nunique()), within(100 * float(change.abs().max()), 2)


def patches_along_the_first_nad() -> tuple[float, float, str]:
    along = load_patches().x_train.flatten(2) @ experiments.load_atlas("lenet").vectors[0].flatten()
    mean, deviation = float(along.mean()), float(along.std())
    return mean, deviation, so(14.5 < (mean - 0.05) / deviation < 16.5, "some 15 deviations")


def without_anything_before() -> str:
    rows = table("A7", architecture="lenet", data="cifar10-jpeg", scale="laptop")
    return percent(rows.query("index == 0 and replace == 'own'").test_accuracy.mean())


def on_the_map(architecture: str, epsilon: float) -> pd.Series:
    """Shares of the contradictions that the carrier wins, by the index of its NAD."""
    return poisoned(architecture, "A7map").query("epsilon == @epsilon").follows_carrier


def silence_and_a_whisper() -> str:
    changes = [on_the_map(name, 0.05) - on_the_map(name, 0.001) for name in ("lenet", "mlp")]
    return within(100 * float(max(change.abs().max() for change in changes)), 2)


def nearly_a_hundred_times() -> str:
    """The largest carrier of the map that LeNet overlooks, in multiples of the content at NAD 1019."""
    return so(85 < 2 / CONTENT[1019] < 100 and on_the_map("lenet", 2.0)[1019] < 0.1, "almost a hundred times")


def wins_from(*indices: int) -> float:
    """The least size of the map from which on the carrier wins most contradictions, at each of these indices."""
    won = poisoned("lenet", "A7map").set_index("epsilon", append=True).follows_carrier.unstack("index") > 0.5
    (least,) = {float(won.index[won[index]].min()) for index in indices}
    return least


def small_carrier_at_50() -> tuple[str, str]:
    few = poisoned("lenet", "A7map").query("epsilon == 0.05").follows_carrier
    return percent(few[50]), percent(poisoned("lenet").follows_carrier[50])


def beside_what_lies_before() -> pd.DataFrame:
    """Clean accuracy with a carrier at i, of a network that sees nothing but the NADs before i, and the difference."""
    rows = table("A7", architecture="lenet", data="cifar10-jpeg", scale="laptop")
    carried = rows[rows["replace"] == "own"].groupby("index").test_accuracy.mean()
    before = table("A7span", architecture="lenet", data="cifar10-jpeg").groupby("count").test_accuracy.mean()
    both = pd.DataFrame({"carried": carried, "before": before}).dropna()
    return both.assign(gain=both.carried - both.before)


def where_they_cross() -> tuple[float, float]:
    gain = beside_what_lies_before().gain
    last = gain.index[gain < 0][gain.index[gain < 0] < 100].max()
    early = gain.loc[:last]
    assert early.max() > 0 > early.min()
    return last, 100 * early.abs().max()


def where_the_carrier_is_no_wall() -> tuple[float, float, str, str]:
    both = beside_what_lies_before()
    better = both.index[both.gain > 0.02].intersection(both.loc[100:].index)
    assert both.loc[better[0] : better[-1]].gain.min() > 0.02
    return better[0], better[-1], *at(both.carried, 100, digits=1), *at(both.before, 100, digits=1)


def who_follows() -> tuple[Any, ...]:
    lenet, mlp = poisoned("lenet").follows_carrier, poisoned("mlp").follows_carrier
    times = {index: content / 0.05 for index, content in CONTENT.items()}
    alike, late = {percent(share) for share in mlp[[400, 700]]}, {percent(share) for share in lenet.loc[100:]}
    # No other sizes are as near each other.
    closest = max(max(times[index], 1 / times[index]) for index in (400, 700))
    assert len(alike) == len(late) == 1
    assert all(max(size, 1 / size) > closest for index, size in times.items() if index not in (400, 700))
    assert times[1019] < 0.5
    return times[100], times[200], *at(mlp, 100, 200), *alike, percent(mlp[1019]), *late


def between_nads_20_and_100() -> list[str]:
    assert 1 < CONTENT[20] / CONTENT[100] < 1.15
    return [one for name in ("lenet", "mlp") for one in at(poisoned(name).follows_carrier, 20, 100)]


def points_of_the_figure() -> tuple[str, str]:
    rows = [carried(name).query("replace == 'own'") for name in ("lenet", "mlp")]
    assert {len(part) for part in rows} == {len(CONTENT)}
    return spelt(len(rows[0])), spelt(sum(content < 0.05 for content in CONTENT.values()))


CHAPTER_8 = [
    Stated(
        "At NADs 100 and 200 the content is {:.0f} and {:.0f} times $\\epsilon$, and the MLP answers {} and {} % with "
        "the carrier. At 400 and 700 the two sizes are closest, and {} % go with it. At 1019, where the content is "
        "less than half of $\\epsilon$, it is {} %. LeNet stays at {} % from NAD 100 on",
        who_follows,
    ),
    Stated(
        "between them LeNet's share falls from {} to {} %, the MLP's from {} to {} %",
        between_nads_20_and_100,
    ),
    Stated("These are {} points for each network, from one training each, and only {} of them", points_of_the_figure),
    Stated(
        "have a mean of {:.1f} and a standard deviation of {:.1f}. A carrier there moves a coefficient by {}",
        patches_along_the_first_nad,
    ),
    Stated("Each was trained for {} epochs", lambda: made_with(carried("lenet"), "epochs")),
    Stated(
        "With {} epochs, and {} seeds, no clean accuracy of LeNet's differs from these by more than {} points",
        half_a_hundred_epochs_change,
    ),
    Stated(
        "the two curves differ by {:.1f} points on average.",
        lambda: 100 * beside_what_lies_before().gain.abs().mean(),
    ),
    Stated("Up to index {:g} they cross, up to {:.1f} points apart", where_they_cross),
    Stated(
        "From index {:g} to {:g} the network with a carrier is the better one: at index 100 it is right on {} % of the "
        "clean images, and one that sees nothing but the NADs before it on {} %",
        where_the_carrier_is_no_wall,
    ),
    Stated("LeNet, ResNet-18 and an MLP on {}.", lambda: photographs("A7", "lenet", "resnet18", "mlp")),
    Stated(
        "with carriers up to index {} LeNet's clean accuracy is well below what it would be without, and from index {} "
        "on it is as if there were no carrier",
        lambda: switch("lenet"),
    ),
    Stated(
        "At NAD 0, {} % of the answers follow the wrong carrier, {} % the picture, and the rest neither. At NAD 100, "
        "{} %",
        contradictions_of_lenet,
    ),
    Stated(
        "in the {} epochs of the authors' code: without a carrier it learns {} % of them",
        lambda: (
            *made_with(largest("A7", "lenet"), "epochs"),
            percent(largest("A7", "lenet").query("replace == 'none'").train_accuracy.mean()),
        ),
    ),
    Stated(
        "although we stopped after {} epochs: its training accuracy is {} % in every run",
        lambda: (
            *made_with(largest("A7", "resnet18"), "epochs"),
            percent(largest("A7", "resnet18").train_accuracy.min(), 1),
        ),
    ),
    Stated(
        "falls farther: from {} % without a carrier to {} to {} % with one at NAD {:g}, {:g} or {:g}. At NAD 300 it is "
        "right on {} % of the clean images, and still gives {} % of the contradictions",
        resnet_with_a_carrier,
    ),
    Stated("the MLP is right on {} % of the clean images, LeNet on {} %, and who sees less", without_a_carrier),
    Stated(
        "Here are LeNet and the MLP over {} sizes of the carrier and {} indices, on {} photographs:",
        lambda: [
            *(spelt(poisoned("lenet", "A7map").reset_index()[name].nunique()) for name in ("epsilon", "index")),
            photographs("A7map", "lenet"),
        ],
    ),
    Stated(
        "in each of its runs {} % or more of the training images were fitted",
        lambda: percent(poisoned("lenet", "A7map").train_accuracy.min(), 1),
    ),
    Stated("with a rank correlation of {:.2f}, and LeNet's has {:.2f}", lambda: (rise("mlp"), rise("lenet"))),
    Stated(
        "At NADs 100, 200 and 1019 the MLP loses {}, {} and {} points, and LeNet less than {}", costs_where_they_part
    ),
    Stated("the two do not part: neither loses more than {} points", costs_where_both_overlook),
    Stated("LeNet is right on {} %, where chance is 10 %", without_anything_before),
    Stated("no share changes by more than {} points. What is heard there", silence_and_a_whisper),
    Stated(
        "the MLP gives {} % of the contradictions to the carrier at NAD 0, and {} and {} % at NADs 200 and 1019",
        lambda: [percent(on_the_map("mlp", 0.75)[index]) for index in (0, 200, 1019)],
    ),
    Stated(
        "LeNet goes the other way: {} % at NAD 0, {} and {} % at NADs 200 and 1019",
        lambda: [percent(on_the_map("lenet", 0.75)[index]) for index in (0, 200, 1019)],
    ),
    Stated(
        "contradictions from $\\epsilon = {:g}$ on, at NAD 1019 only at {:g}",
        lambda: (wins_from(200), wins_from(1019)),
    ),
    Stated("there LeNet overlooks one {} larger than the content", nearly_a_hundred_times),
    Stated("at NAD 50 in {} % of the contradictions; with 50,000 it was {} %", small_carrier_at_50),
    Stated(
        "For LeNet, with 50 epochs, {} three hold, for ResNet-18 {}: its rank correlation is {:.2f}, over",
        lambda: [
            poisoning_claims_hold("lenet"),
            so(poisoning_claims_hold("resnet18") == "all", "too"),
            rise("resnet18"),
        ],
    ),
]


# Chapter 9: flipped photographs


def arms(architecture: str) -> pd.Series:
    """Test accuracy by what it was trained on, the mean over seeds."""
    return largest("A8", architecture).groupby("arm").test_accuracy.mean()


def lenet_loses() -> list[str]:
    lost = arms("lenet")["original"] - arms("lenet")
    return [percent(lost[arm]) for arm in ("flipped", "permuted", "random basis")]


def above_the_flip(arm: str) -> tuple[float, float, int]:
    """LeNet's gain in accuracy over the flip, its standard error without pairing, and the number of test images."""
    first, second = arms("lenet")[arm], arms("lenet")["flipped"]
    number = int(largest("A8", "lenet").num_test.iloc[0])
    return first - second, math.sqrt((first * (1 - first) + second * (1 - second)) / number), number


def flipped_below_permuted() -> tuple[Any, ...]:
    gain, error, number = above_the_flip("permuted")
    return percent(gain, 1), percent(error, 1), number


def flip_is_the_worst() -> bool:
    """Of LeNet's arms, with each seed."""
    by_arm = largest("A8", "lenet").pivot(index="seed", columns="arm", values="test_accuracy")
    return bool((by_arm.idxmin(axis=1) == "flipped").all())


def fits(architecture: str) -> tuple[str, ...]:
    """Its training accuracy on the originals, and the extremes on the others."""
    found = largest("A8", architecture).groupby("arm").train_accuracy.mean()
    return percent(found["original"]), *extremes(found.drop("original"))


def marks_of_flipping() -> str:
    return so(
        all(
            (chapter_09.LITTLE if name in ("logreg", "mlp") else chapter_09.MUCH).measure(largest("A8", name)).holds[0]
            for name in ("logreg", "mlp", "lenet", *DEEP)
        ),
        "all six networks meet them",
    )


def flipped(architecture: str) -> list[str]:
    return [percent(arms(architecture)[arm], 1) for arm in ("original", "flipped", "random basis", "permuted")]


SIGNS = ("lenet", "vgg11", "resnet18")


def lost_by(architecture: str) -> pd.Series:
    means = largest("signs", architecture).groupby("arm").test_accuracy.mean()
    return means["original"] - means


def points_of(architecture: str, *names: str) -> list[str]:
    return [percent(lost_by(architecture)[name]) for name in names]


def checkered() -> tuple[float, float, str]:
    agreed = largest("signs", "lenet").groupby("arm").agreement.mean()
    assert agreed["random signs"] == pytest.approx(agreed["original"], rel=1e-4)
    return agreed["original"], agreed["checkerboard"], percent(round(lost_by("lenet")["checkerboard"], 3), 1)


def inside_out() -> tuple[float, float]:
    agreed = largest("signs", "lenet").groupby("arm").agreement.mean()
    return agreed["original"], agreed["flipped"]


def narrow_networks_agree() -> str:
    lost = [lost_by(name) for name in ("vgg11", "resnet18")]
    most = all(one["random signs"] > 0.6 * one["flipped"] for one in lost)
    return so(most and all(one["checkerboard"] < 0.2 * one["flipped"] for one in lost), "say the same")


def checkerboard_keeps(architecture: str) -> float:
    agreed = largest("signs", architecture).groupby("arm").agreement.mean()
    return float(agreed["checkerboard"] / agreed["original"])


def left_nearby() -> list[str]:
    """Of a pixel's energy, in the mean over pixels and signs: E (sum_k s_k u_k(p) u_k(q))² = sum_k u_k(p)² u_k(q)²."""
    places = torch.cartesian_prod(torch.arange(32), torch.arange(32))
    near = (places[:, None] - places).abs().amax(-1) <= 2
    signs, flips = [], []
    for name in SIGNS:
        rows = atlas(name).vectors.flatten(1).double()
        signs.append(float((rows.square().T @ rows.square())[near].sum()) / len(rows))
        flips.append(float((rows.T @ rows.flip(0)).square()[near].sum()) / len(rows))
    return [*extremes(pd.Series(signs)), *extremes(pd.Series(flips))]


def order_alone() -> list[str]:
    """What the place along the NADs costs, with pixels in their place and scattered."""
    losses = pd.DataFrame({name: lost_by(name) for name in SIGNS})
    return [percent(losses.loc["checkerboard"].max()), *extremes(losses.loc["flipped"] - losses.loc["random signs"])]


CHAPTER_9 = [
    Stated("its accuracy falls by {} points", lambda: lenet_loses()[0]),
    Stated(
        "The stored runs use {}, and {} for a narrow DenseNet-121, of a quarter of the [width](glossary.md).",
        lambda: (photographs("A8", "logreg", "mlp", "lenet", "vgg11", "resnet18"), photographs("A8", "densenet121")),
    ),
    Stated(
        "*The narrow DenseNet-121* falls from {} % to {} % by the flip, {} % in a random basis and {} % by the "
        "permutation, with {} % or more of its {} training images learned in every order",
        lambda: (
            *flipped("densenet121"),
            percent(largest("A8", "densenet121").train_accuracy.min()),
            photographs("A8", "densenet121"),
        ),
    ),
    Stated("the flip costs {} points. But a random order of the NADs costs {}, and a random basis {}.", lenet_loses),
    Stated("these were our marks for the paper's claim, set beforehand, and {}", marks_of_flipping),
    Stated(
        "The flip lies {} points below the permutation; without pairing, the standard error of such a difference is {} "
        "points on {:,} images",
        flipped_below_permuted,
    ),
    Stated(
        "A random basis costs less than the flip by {} points. With each of the {} seeds the flip is the {}",
        lambda: (
            percent(above_the_flip("random basis")[0], 1),
            spelt(largest("A8", "lenet").seed.nunique()),
            so(flip_is_the_worst(), "worst"),
        ),
    ),
    Stated(
        "LeNet reaches {} % of its training images in their own order, and {} to {} % in the others",
        lambda: fits("lenet"),
    ),
    Stated(
        "has fitted {} % or more of its training images in every order, within {} epochs. From {} % the flip leaves {} "
        "%, a random basis {} %, and the permutation {} %. Here the flip is the {} of the three",
        lambda: (
            f"{math.floor(10_000 * largest('A8', 'resnet18').train_accuracy.min()) / 100:.2f}",
            *made_with(largest("A8", "resnet18"), "epochs"),
            *flipped("resnet18"),
            so(arms("resnet18").drop("original").idxmax() == "flipped", "mildest"),
        ),
    ),
    Stated(
        "falls from {} % to {} % by the flip, {} % in a random basis and {} % by the permutation. It has learned {} % "
        "of its training images in their own order, and {} to {} % in the others",
        lambda: (*flipped("vgg11"), *fits("vgg11")),
    ),
    Stated(
        "and cost LeNet {} points of the {} that the flip costs", lambda: points_of("lenet", "random signs", "flipped")
    ),
    Stated("It takes $A$ from {:.1f} to {:.1f}, and costs LeNet {} points", checkered),
    Stated("LeNet's $A$ falls from {:.1f} to {:.1f}.", inside_out),
    Stated("LeNet saw its images for {} epochs.", lambda: made_with(largest("A8", "lenet"), "epochs")),
    Stated("(These LeNets trained for {} epochs, not 50.)", lambda: made_with(largest("signs", "lenet"), "epochs")),
    Stated("The narrow VGG-11 and ResNet-18 {}.", narrow_networks_agree),
    Stated(
        "(The ResNet's checkerboard proves little: it keeps more than {} of $A$.)",
        lambda: {0.5: "half"}[math.floor(2 * checkerboard_keeps("resnet18")) / 2],
    ),
    Stated(
        "The narrow ResNet-18 learns {} its training images every time.",
        lambda: so(largest("signs", "resnet18").train_accuracy.min() == 1, "all"),
    ),
    Stated(
        "LeNet {} % of them as they are, {} % checkered, {} % with random signs and {} % inside out",
        lambda: [
            percent(learned) for learned in largest("signs", "lenet").groupby("arm", sort=False).train_accuracy.mean()
        ],
    ),
    Stated(
        "of a pixel's energy random signs leave {} to {} % within the 5 × 5 pixels around it, and the flip {} to {} %",
        left_nearby,
    ),
    Stated(
        "with the pixels in place {} points at most, and with the pixels scattered, from random signs to inside out, "
        "{} to {}",
        order_alone,
    ),
    Stated(
        "These trainings took LeNet through {} epochs of {} photographs, and the narrow networks through {} of {}; "
        "with {} seeds",
        lambda: (
            *made_with(largest("signs", "lenet"), "epochs"),
            photographs("signs", "lenet").partition(" ")[0],
            *{made_with(largest("signs", name), "epochs")[0] for name in SIGNS[1:]},
            photographs("signs", *SIGNS[1:]).partition(" ")[0],
            spelt(*{largest("signs", name).seed.nunique() for name in SIGNS}),
        ),
    ),
    Stated("That is no law: ResNet-18 is right on {} % even inside out", lambda: flipped("resnet18")[1]),
    Stated(
        "is right on {} to {} % of the photographs in every order. LeNet is right on {} % as they are, and on {} % "
        "inside out",
        lambda: (
            *extremes(arms("mlp")),
            percent(arms("lenet")["original"]),
            percent(arms("lenet")["flipped"]),
        ),
    ),
]


# Chapter 10: pairs of NADs

MAXIMUM_MARGIN = math.degrees(math.atan2(1.0, 0.5))


@functools.cache
def pairs(architecture: str, basis: str = "nads") -> pd.DataFrame:
    """By the pair of indices; ``angle`` is that of the boundary to the first direction, in degrees."""
    rows = load_pairs(architecture, basis).table
    return rows.assign(angle=np.degrees(rows.angle_first)).set_index(["first", "second"]).sort_index()


def beside(architecture: str, early: int, late: int) -> tuple[list[float], list[float]]:
    """In either order: the accuracy with the late channel alone, and the angle of the boundary to its direction."""
    rows = pairs(architecture)
    accuracies = [rows.test_accuracy_second[early, late], rows.test_accuracy_first[late, early]]
    return accuracies, [90 - rows.angle[early, late], rows.angle[late, early]]


def alone_in_the_smaller_channel() -> int:
    """The late NAD, in the larger channel, that ResNet-18 leaves for an earlier one in the smaller."""
    ((late, early),) = [pair for pair in [(100, 0), (1000, 0), (1000, 100)] if pairs("resnet18").angle[pair] < 10]
    assert early == 0
    return late


def learned_by_lenet() -> pd.Series:
    rows = pairs("lenet")
    return rows[rows.test_accuracy > 0.6].angle


def near_the_maximum_margin() -> str:
    angle = learned_by_lenet()
    near = angle.index[(angle - MAXIMUM_MARGIN).abs() < 10]
    diagonal = [pair for pair in angle.index if pair[0] == pair[1]]
    return so(sorted(near) == sorted(diagonal), "equal")


def large_losses(architecture: str) -> tuple[str, int, str]:
    losses = pairs(architecture).train_loss
    large = losses[losses > 0.01]
    return spelt(len(large)), len(losses), listed({f"{loss:.1f}" for loss in large})


def claim_that_fails() -> str:
    marks = chapter_10.marks_of(isotropic=False)
    (failed,) = [mark for mark in marks if not all(mark.measure(load_pairs("lenet").table).holds)]
    return so(failed is chapter_10.LOSS, "training loss")


def resnet_near_the_maximum_margin() -> str:
    """Of all pairs but those where it uses the earlier NAD alone."""
    rows = pairs("resnet18")
    alone = [(0, 100), (0, 1000), (100, 1000), (1000, 0)]
    assert rows.test_accuracy_second[alone[:3]].max() < 0.52 and rows.test_accuracy_first[1000, 0] < 0.52
    return within((rows.angle.drop(alone) - MAXIMUM_MARGIN).abs().max(), 1)


def mlp_on_either_basis() -> pd.DataFrame:
    return pd.concat([pairs("mlp"), pairs("mlp", "random")])


def second_channel_of_mlp() -> tuple[str, str]:
    return extremes(mlp_on_either_basis().test_accuracy_second)


def farthest_boundary_of_mlp() -> str:
    return within((mlp_on_either_basis().angle - MAXIMUM_MARGIN).abs().max(), 1)


def unlearned_by_lenet() -> str:
    return spelt(len(pairs("lenet")) - len(learned_by_lenet()))


def twice_the_same() -> list[str]:
    return [percent(pairs(name).test_accuracy_second[0, 0]) for name in ("resnet18", "lenet")]


def stumps() -> tuple[str, str, str]:
    """How near LeNet's boundaries are to 0° or 90° where the indices differ, how many are not, and at which angle."""
    angle = learned_by_lenet()
    angle = angle[[first != second for first, second in angle.index]]
    away = np.minimum(angle, 90 - angle)
    return (
        within(away[away < 10].max(), 1),
        spelt((away >= 10).sum()),
        listed(f"{one:.0f}" for one in angle[away >= 10]),
    )


def slower_trainings(architecture: str) -> int:
    rates = pairs(architecture).max_lr
    return int((rates < rates.max()).sum())


CHAPTER_10 = [
    Stated(
        "The maps at the head of this chapter are of full ones, with {:,} samples each",
        lambda: made_with(load_pairs("lenet").table, "num_train"),
    ),
    Stated("it uses NAD 0 alone, in {} channel", lambda: so(max(beside("lenet", 0, 20)[0]) < 0.55, "either")),
    Stated("parallel to the direction of NAD 20 to within {}°", lambda: within(max(beside("lenet", 0, 20)[1]), 1)),
    Stated(
        "Of the pairs that it learns, it comes within 10° of the maximum margin only where both indices are {}.",
        near_the_maximum_margin,
    ),
    Stated("Each dot is a trained network that has learned its task ({} LeNets have not)", unlearned_by_lenet),
    Stated("The claim that fails is the one about the {}", claim_that_fails),
    Stated("{} of the {} trainings end with a training loss of about {}", lambda: large_losses("lenet")),
    Stated(
        "**ResNet-18**, trained on {} pairs of its own NADs for {} epochs",
        lambda: (
            spelt(len(pairs("resnet18"))),
            spelt(*made_with(load_pairs("resnet18").table, "epochs")),
        ),
    ),
    Stated("it does so only for NAD 0 beside NAD {}.", alone_in_the_smaller_channel),
    Stated(
        "{} claim fails: two late features",
        lambda: claims_that(False, chapter_10.marks_of(isotropic=False), load_pairs("resnet18").table).capitalize(),
    ),
    Stated(
        "With NAD 1000 in both it is right on {} % of the samples",
        lambda: percent(pairs("resnet18").test_accuracy[1000, 1000], 1),
    ),
    Stated(
        "under another schedule, with NAD 1000 in a single channel, it is right on {} %",
        lambda: resnet_without_momentum()[1],
    ),
    Stated("Elsewhere its boundary is within {}° of the maximum margin.", resnet_near_the_maximum_margin),
    Stated("with NAD 0 in both, the second alone is worth {} %, where LeNet's is worth {} %", twice_the_same),
    Stated("the second channel alone is worth {} to {} %", second_channel_of_mlp),
    Stated("and no boundary is more than {}° away from the maximum margin", farthest_boundary_of_mlp),
    Stated(
        "The stored MLP lies on the line, to within {}°",
        lambda: within((pairs("mlp").angle - MAXIMUM_MARGIN).abs().max(), 1),
    ),
    Stated("its boundary is within {}° of 0° or of 90°, all but {}, at {}°", stumps),
    Stated(
        "and what came out, with {} seed.",
        lambda: listed({spelt(pairs(name).seed.nunique()) for name in ("mlp", "lenet", "resnet18")}),
    ),
    Stated("With LeNet this happened {} times.", lambda: slower_trainings("lenet")),
]


# Chapter 11: photographs and hints


FEW = {"data": "cifar10-subset"}


def hints(architecture: str, part: str = "both", **data: str) -> pd.DataFrame:
    rows = transition(architecture, **data)
    return rows[rows.part == part].set_index("index")


def transition_claims_that(hold: bool, architecture: str) -> str:
    return claims_that(hold, chapter_11.marks_of(isotropic=architecture == "mlp"), transition(architecture))


def resnet_takes_the_hint() -> list[Any]:
    alone = hints("resnet18").test_accuracy_direction
    alone = alone[alone > 0.6]
    return [*map(int, alone.index), *map(percent, alone)]


def resnet_takes_nothing() -> list[Any]:
    rows = hints("resnet18")
    both = rows.test_accuracy[rows.test_accuracy_direction <= 0.6]
    return [*map(int, both.index), *map(percent, both), percent(hints("resnet18", "images").test_accuracy.mean())]


def photographs_and_seeds() -> tuple[str, str, str]:
    lenet, mlp, resnet = (transition(name) for name in ("lenet", "mlp", "resnet18"))
    numbers = [PHOTOGRAPHS[one.attrs["selectors"]["data"]].partition(" ")[0] for one in (lenet, mlp, resnet)]
    return listed({*numbers[:2]}), numbers[2], listed({spelt(one.seed.nunique()) for one in (lenet, mlp, resnet)})


def resnet_gives_one_answer() -> str:
    return listed({percent(one, 1) for one in hints("resnet18").test_accuracy_images})


def choice() -> tuple[Any, ...]:
    """At NADs 100 and 200, trained on the hint alone and on both; and from where on the hint can hardly be read."""
    alone = hints("lenet", "direction", data="cifar10-subset").test_accuracy
    beside_pictures = hints("lenet", data="cifar10-subset").test_accuracy_direction
    worth = [percent(rows[index], 1) for index in (100, 200) for rows in (alone, beside_pictures)]
    return *worth, int(alone.index[alone < 0.6].min())


def turn() -> tuple[int, int, str]:
    alone = hints("lenet").test_accuracy_direction
    last, first = int(alone.index[alone > 0.9].max()), int(alone.index[alone < 0.55].min())
    return last, first, listed(int(index) for index in alone.index if last < index < first)


def mean_difference_reads(samples: int) -> str:
    """In per cent of the hints, on the MLP's task."""
    (sigma,) = made_with(transition("mlp"), "sigma")
    return percent(statistics.NormalDist().cdf(math.sqrt(samples / 1023) / sigma**2))


def samples_for_nine_of_ten() -> str:
    assert hints("lenet").test_accuracy_direction[100] > 0.9  # it takes the hint, with 50,000 photographs
    (sigma,) = made_with(transition("mlp"), "sigma")
    return f"{1023 * (sigma**2 * statistics.NormalDist().inv_cdf(0.9)) ** 2:,.0f}"[:3] + ",000"


CHAPTER_11 = [
    Stated(
        "$\\epsilon = {:g}$, $\\sigma = {:g}$ for LeNet and {:g} for the others",
        lambda: (
            *made_with(transition("lenet"), "epsilon", "sigma"),
            *{made_with(transition(name), "sigma")[0] for name in ("mlp", "resnet18")},
        ),
    ),
    Stated("the MLP ({} and {} units) along LeNet's", lambda: made_with(transition("mlp"), "hidden")[0]),
    Stated(
        "as we could afford: {} photographs for LeNet and the MLP, {} for ResNet-18, {} seed.", photographs_and_seeds
    ),
    Stated(
        "it reads the hint {}, and where the two contradict each other it {} the hint. The images alone are worth "
        "{} to {} % to it",
        lambda: (
            so(hints("mlp").test_accuracy_direction.min() > 0.999, "without error"),
            so(hints("mlp").follows_images.max() < 0.001, "follows"),
            *extremes(hints("mlp").test_accuracy_images),
        ),
    ),
    Stated(
        "Then the picture wins in {} to {} % of the contradictions",
        lambda: extremes(hints("mlp", **FEW).follows_images),
    ),
    Stated(
        "the mean difference reads {} % of the hints, and an MLP, which prefers no direction either, {} to {} %",
        lambda: (
            mean_difference_reads(5_000),
            *extremes(hints("mlp", "direction", **FEW).test_accuracy),
        ),
    ),
    Stated("it would need {} samples to read nine hints of ten", samples_for_nine_of_ten),
    Stated("From 50,000 the MLP reads every hint, and the mean difference {} %", lambda: mean_difference_reads(50_000)),
    Stated("For the MLP {} hold", lambda: transition_claims_that(True, "mlp")),
    Stated(
        "At NAD {} and NAD {} it reads the hint, to {} and {} % only",
        resnet_takes_the_hint,
    ),
    Stated(
        "At NAD {} and NAD {} it gets little out of either part: with both it is right on {} and {} % of the test "
        "samples, though "
        "without a hint it learns the pictures to {} %",
        resnet_takes_nothing,
    ),
    Stated("{} % at all indices is the share of one class", resnet_gives_one_answer),
    Stated("The narrow ResNet-18 misses {}, with", lambda: transition_claims_that(False, "resnet18")),
    Stated(
        "At NAD 100 the hint is worth {} % to a LeNet that sees nothing else, and {} % to one that was trained beside "
        "pictures: a choice. At NAD 200 it is worth {} % alone, and {} % beside pictures. (One training each. With ten "
        "times the photographs LeNet takes the hint at NAD 100, as the figure before shows.) **Could not.** From NAD "
        "{} on LeNet can hardly read the hint",
        choice,
    ),
    Stated(
        "**The MLP** reads the hint to {} to {} % when it sees nothing else, and to {} to {} % beside pictures",
        lambda: (
            *extremes(hints("mlp", "direction", **FEW).test_accuracy),
            *extremes(hints("mlp", **FEW).test_accuracy_direction),
        ),
    ),
    Stated(
        "Even so it misreads one hint in {}",
        lambda: spelt(round(1 / (1 - hints("mlp", "direction", **FEW).test_accuracy.mean()))),
    ),
    Stated(
        "For LeNet all but {} hold: at NAD 100 its training loss ends at {:.2f}",
        lambda: (transition_claims_that(False, "lenet"), hints("lenet").train_loss[100]),
    ),
    Stated(
        "at NAD 200 the hint alone is worth {} %", lambda: at(hints("lenet").test_accuracy_direction, 200, digits=1)[0]
    ),
    Stated("Up to NAD {} it uses the hint, from NAD {} on the picture, and at NAD {} some of both", turn),
    Stated(
        "in {} % of the answers at NAD 100, and in {} % at NAD 200.",
        lambda: at(hints("lenet").follows_images, 100, 200),
    ),
    Stated(
        "Trained on the pictures alone, LeNet reads {} % of them",
        lambda: percent(hints("lenet", "images").test_accuracy.mean()),
    ),
    Stated(
        "At NAD 100, with 5,000 samples, LeNet could have read it, and {}",
        lambda: so(hints("lenet", data="cifar10-subset").follows_images[100] > 0.5, "leaned to the picture"),
    ),
]


# ---------------------------------------------------------------------------------------------------------------------
# The tests
# ---------------------------------------------------------------------------------------------------------------------


@functools.cache
def closed_form(architecture: str) -> nt.NADs:
    return nt.analytic_nads(architecture)


@functools.cache
def closed_form_over_waves() -> pd.DataFrame:
    """The authors' accuracies of all four networks, and α of the same waves by the closed form."""
    rows = published_accuracies("fourier").query("frequency_i <= 0")
    alpha = [
        mean_alignments(closed_form(name), zip(part.frequency_i, part.frequency_j, strict=True)).set_axis(part.index)
        for name, part in rows.groupby("architecture")
        if name in ("lenet", "vgg11", "resnet18", "densenet121")
    ]
    return rows.assign(alpha=pd.concat(alpha)).dropna(subset=["alpha"])


def learned_above(least: float) -> tuple[int, int]:
    above = closed_form_over_waves()[closed_form_over_waves().alpha > least]
    lowest = above.groupby("architecture").accuracy.min()
    return math.floor(10 * lowest["lenet"]) * 10, math.floor(100 * lowest.drop("lenet").min())


def distance_at_unit_noise(form: str) -> float:
    return float(table("exactness").set_index("size")[f"{form}_error"][1.0]) ** 0.5


def width_slope(form: str) -> float:
    rows = table("width")
    return float(np.polyfit(np.log(rows["width"]), np.log(rows[f"{form}_single"]), 1)[0])


def mean_over_networks() -> str:
    rows = table("width")
    return f"{(rows['infinite-width_error'] / rows['infinite-width_stderr']).abs().max():.1f}"


def one_curve() -> chapter_06.OneCurve:
    return chapter_06.fit_one_curve(table("samples"))


def agrees_with_densenet() -> tuple[str, str]:
    """The overlap of the first ten, and whether both rank correlations are as low."""
    overlap = nt.subspace_overlap(closed_form("densenet121").vectors, published_nads("densenet121").vectors, 10)
    waves_of = closed_form_over_waves()[closed_form_over_waves().architecture == "densenet121"]
    accuracy = waves_of.set_index(["frequency_i", "frequency_j"]).accuracy
    rho = waves_of.alpha.corr(waves_of.accuracy, "spearman")
    return (
        so(overlap < 0.5, "by less than one half"),
        so(max(rho, noise_ceiling(accuracy)) < 0.5, "is below one half, too, as is their noise ceiling"),
    )


def energies_at(architecture: str, counts: tuple[int, ...]) -> tuple[list[float], list[float]]:
    """What the closed form's first directions capture of the authors' energy, and what those of our networks do."""
    theirs = published_nads(architecture)
    ours, drawn = (
        [nt.captured_energy(nads.vectors, theirs, k) for k in counts]
        for nads in (closed_form(architecture), atlas(architecture))
    )
    return ours, drawn


def energy_falls() -> tuple[str, ...]:
    (lenet, _), (ours, drawn) = (energies_at(name, (10, 100)) for name in ("lenet", "vgg11"))
    assert 0 < lenet[0] - lenet[1] < ours[0] - ours[1]
    return tuple(f"{value:.2f}" for value in (*ours, *drawn))


def fine_stripes() -> tuple[str, str]:
    """The share of DenseNet-121's first NAD in the first ten, and what the closed form captures of the other nine."""
    theirs, ours = published_nads("densenet121"), closed_form("densenet121")
    share = theirs.eigenvalues[0] / theirs.eigenvalues[:10].sum()
    held = [theirs.alignment(vector) for vector in ours.vectors[1:10]]
    return percent(share), percent(sum(map(float, held)) / theirs.eigenvalues[1:10].sum())


def random_capture() -> tuple[str, str]:
    """The least and the most that random directions capture of the first hundred's energy, in per cent."""
    found = [
        100 / 1024 * float(nads.eigenvalues.sum() / nads.eigenvalues[:100].sum())
        for nads in map(published_nads, ("lenet", "vgg11", "resnet18", "densenet121"))
    ]
    return percent(min(found)), percent(max(found))


def low_frequencies() -> tuple[str, str, str]:
    """Of ResNet-18's first hundred, against random directions; of DenseNet-121's first ten, against the closed form."""
    waves, theirs = nt.fourier_basis((32, 32)), published_nads("densenet121")
    resnet18 = published_nads("resnet18")
    random = 100 / 1024 * float(resnet18.eigenvalues.sum() / resnet18.eigenvalues[:100].sum())
    ten = (nt.captured_energy(vectors, theirs, 10) for vectors in (closed_form("densenet121").vectors, waves))
    near = abs(nt.captured_energy(waves, resnet18, 100) - random) < 0.05
    return so(near, "hardly more than random directions"), *(f"{energy:.2f}" for energy in ten)


def without_waves_above_a_tenth() -> str:
    there = set(closed_form_over_waves().query("0.1 < alpha < 0.4").architecture)
    return so(there == {"lenet", "vgg11"}, "ResNet-18 and DenseNet-121")


def near_half_the_mean() -> tuple[str, str, str]:
    rows = closed_form_over_waves().query("0.4 < alpha < 0.5")
    lenet, resnet18 = (rows[rows.architecture == name].accuracy for name in ("lenet", "resnet18"))
    assert (len(lenet), len(resnet18)) == (8, 72)
    return str(math.floor(100 * resnet18.min())), percent(lenet.min()), percent(lenet.max())


def waves_above(least: float) -> tuple[int, int]:
    above = closed_form_over_waves().query(f"alpha > {least}").architecture
    return len(above), int((above == "resnet18").sum())


def two_alphas() -> tuple[str, ...]:
    """How the closed form's α and the secant's agree over the authors' waves."""
    found = []
    for name in ("lenet", "vgg11"):
        rows = closed_form_over_waves().query(f"architecture == '{name}'")
        places = zip(rows.frequency_i, rows.frequency_j, strict=True)
        found.append(rows.alpha.corr(mean_alignments(atlas(name), places).set_axis(rows.index), "spearman"))
    return tuple(f"{rho:.2f}" for rho in found)


def lowest_group_of_resnet() -> tuple[float, int, float]:
    rows = closed_form_over_waves().query("architecture == 'resnet18'")
    rows = rows.set_index(["frequency_i", "frequency_j"]).reindex(accuracy("A1", "lenet").index)
    low = rows.alpha < 0.1
    assert (low == (rows.accuracy < 0.55)).all()
    return round(rows.alpha[low].max(), 3), int(low.sum()), math.floor(100 * rows.alpha[~low].min()) / 100


CHAPTER_06 = [
    Stated(
        "With $\\sigma = {:g}$ LeNet did: of {} waves that its linear part has lost it is right on {} % or more at {},",
        lost_waves_of_lenet,
    ),
    Stated(
        "Below a tenth of the mean {} learned a wave.",
        lambda: so(closed_form_over_waves().query("alpha < 0.1").accuracy.max() <= 0.55, "none of the four networks"),
    ),
    Stated("from a tenth to four tenths of the mean {} have no waves.", without_waves_above_a_tenth),
    Stated("LeNet learned {} of {} waves that its linear part has lost", lambda: lost_waves_of_lenet()[:0:-2]),
    Stated("low frequencies hold {}", lambda: low_frequencies()[0]),
    Stated('low frequencies first": {} against {} of the first ten', lambda: low_frequencies()[1:]),
    Stated("by LeNet to more than {} %, by the others to more than {} %", lambda: learned_above(3.0)),
    Stated("At size 1 the linear form is off by some {} %", lambda: round(10 * distance_at_unit_noise("linear")) * 10),
    Stated("and the infinite-width form by {} %", lambda: percent(distance_at_unit_noise("infinite-width"))),
    Stated("one of width 512 by {} %", lambda: percent(table("width")["infinite-width_single"].iloc[-1])),
    Stated(
        "is off by more than {}, one of", lambda: so(table("width")["infinite-width_single"][0] > 1, "the whole norm")
    ),
    Stated("with the width to the power of ${}$", lambda: f"{width_slope('infinite-width'):.2f}"),
    Stated("ever more slowly, to about {} %", lambda: round(10 * table("width")["linear_single"].iloc[-1]) * 10),
    Stated("at every width that was tried, within {} standard errors", mean_over_networks),
    Stated(
        "$\\alpha\\, n^{{{}}} / \\sigma^{{{}}}$ leaves",
        lambda: (f"{one_curve().samples_power:.1f}", f"{one_curve().noise_power:.1f}"),
    ),
    Stated("leaves a deviation of {} points of accuracy", lambda: percent(one_curve().deviation, 1)),
    Stated("where one in $\\alpha$ alone would leave {}", lambda: percent(one_curve().of_alpha_alone, 1)),
    Stated("The spaces of the first ten overlap {}", lambda: agrees_with_densenet()[0]),
    Stated("with the authors' accuracies {}.", lambda: agrees_with_densenet()[1]),
    Stated("falls from {} to {}, where that of our networks falls from {} to {}.", energy_falls),
    Stated(
        "It holds {} % of the energy of the first ten; of what the other nine hold, the closed form's captures {} %",
        fine_stripes,
    ),
    Stated("Random directions would hold {} to {} %", random_capture),
    Stated("learned every wave to {} % or more, LeNet its eight to {} to {} %", near_half_the_mean),
    Stated(
        "The lowest, at {} of the mean, are exactly the {} waves on which it tosses a coin (exercise 01-4); no other "
        "lies below {}.",
        lowest_group_of_resnet,
        ("fourier",),
    ),
    Stated("(These are {} waves, {} of them ResNet-18's.)", lambda: waves_above(3.0)),
    Stated(
        "the stripes that disappointed in chapter 5: {:.1f} of the mean by the secant, and {} here.",
        lambda: (
            mean_alignments(atlas("lenet"), [(16, 0)]).item(),
            so(mean_alignments(closed_form("lenet"), [(16, 0)]).item() < 1e-12, "lost"),
        ),
    ),
    Stated("have a rank correlation of {} for LeNet and {} for VGG-11", two_alphas),
    Stated(
        "its accuracy is {} % at most", lambda: percent(table("samples").query("alpha < 1e-12").test_accuracy.max(), 1)
    ),
]

CHAPTERS = {
    "01-directional-bias": CHAPTER_1,
    "02-pooling-information": CHAPTER_2,
    "03-pooling-optimization": CHAPTER_3,
    "04-nads": CHAPTER_4,
    "04b-estimating-nads": CHAPTER_4B,
    "05-nads-and-learning": CHAPTER_5,
    "08-poisoning": CHAPTER_8,
    "09-flipping": CHAPTER_9,
    "10-two-features": CHAPTER_10,
    "11-simplicity": CHAPTER_11,
    "06-no-network": CHAPTER_06,
}


@functools.cache
def prose(chapter: str) -> str:
    """The text of a chapter, without its line breaks."""
    notebook = json.loads((BOOK / f"{chapter}.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    return " ".join("\n\n".join(cells).split())


@pytest.mark.parametrize(
    ("chapter", "stated"),
    [
        pytest.param(chapter, stated, id=f"{chapter.partition('-')[0]}-{number}")
        for chapter, entries in CHAPTERS.items()
        for number, stated in enumerate(entries)
    ],
)
def test_the_prose_states_what_is_stored(chapter: str, stated: Stated) -> None:
    at_hand = published.available()
    missing = ", ".join(sorted(set(stated.needs) - set(at_hand)))
    if missing:
        pytest.skip(f"set NADTOOLS_DATA to a folder with what the authors published ({missing})")
    try:
        values = stated.values()
    except IndexError as error:
        if "compact copy" in str(error):
            pytest.skip(str(error))
        raise
    values = values if isinstance(values, tuple | list) else (values,)
    placeholders = sum(field is not None for _, field, _, _ in string.Formatter().parse(stated.fragment))
    assert placeholders == len(values) > 0, f"{len(values)} values for {stated.fragment!r}"
    sentence = stated.fragment.format(*values)
    count = prose(chapter).count(sentence)
    assert count == 1, f"by the stored results {chapter} should say, once: {sentence!r}; it does {count} times"
