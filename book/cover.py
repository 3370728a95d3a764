"""Draw the cover and the pictures of the landing page's cards: python book/cover.py.

The cover's numbers are those of chapter 1 and chapter 4 at laptop scale, seed 0, and take a minute. The cards show
stored results and formulas: python book/cover.py cards draws them alone. They have a transparent background, so that
they stand on a light and on a dark page, and few colours, so that they are small.
"""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from companion import experiments, style
from companion.atlas import load_atlas
from companion.patches import FILE
from companion.style import ARCHITECTURE_COLOURS, DIVERGING
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from PIL import Image

import nadtools as nt
from nadtools import storage

STATIC = Path(__file__).parent / "static"
FOLDER = STATIC / "cards"
SIZE = (4.8, 2.7)  # inches, of 100 pixels
#: Without its darkest part, which would be lost on a dark page.
SEQUENTIAL = ListedColormap(plt.get_cmap("viridis")(np.linspace(0.15, 1, 256)))
INK = "#808080"  # reads on white and on black
COLOURS = 96  # of a picture, transparent ones among them
WAVES = [(0, 0), (1, 0), (2, 2), (4, 0), (12, 4), (15, 0), (16, 16), (8, 0)]  # of the cover
CAT = (slice(20, 210), slice(90, 280))  # the face, which is poisoned and flipped


def accuracy(architecture: str, frequency: tuple[int, int]) -> float:
    phase = 0.0 if frequency in ((0, 0), (16, 16)) else math.pi / 2
    problem = nt.LinearlySeparable(nt.fourier_atom((32, 32), frequency, phase), epsilon=1.0, sigma=1.0)
    data = problem.sample(3_000, seed=0), problem.sample(2_000, seed=1)
    network = nt.build(architecture, seed=0)
    return nt.train(network, *data, nt.TrainConfig(epochs=15), evaluate_every=0, progress=False).test_accuracy


def draw_cover() -> None:
    style.use_book_style()
    figure = plt.figure(figsize=(10, 4.2))
    left, right = figure.subfigures(1, 2, width_ratios=(5, 4.4), wspace=0.04)
    axes = left.subplots()
    for number, architecture in enumerate(("logreg", "lenet")):
        heights = [accuracy(architecture, frequency) for frequency in WAVES]
        places = [k + 0.4 * number - 0.2 for k in range(len(WAVES))]
        label = {"logreg": "logistic regression", "lenet": "LeNet"}[architecture]
        axes.bar(places, heights, width=0.38, color=ARCHITECTURE_COLOURS[architecture], label=label)
    axes.axhline(0.5, color="black", linewidth=0.8, linestyle="--")
    axes.set(ylim=(0.4, 1.02), ylabel="test accuracy on D(v)", xlabel="frequency of v")
    axes.set_xticks(range(len(WAVES)), [str(wave) for wave in WAVES], fontsize=8)
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.legend(loc="upper right", bbox_to_anchor=(1, 1.14), ncols=2)
    axes.grid(axis="x", visible=False)

    nads = nt.estimate_nads("lenet", num_networks=20, seed=0, progress=False)
    right.suptitle("The first NADs of LeNet", fontsize=10, x=0.02, ha="left")
    for k, panel in enumerate(right.subplots(3, 4).flat):
        signed(panel, nads.vectors[k])
        panel.set_axis_off()
    figure.savefig(STATIC / "cover.png", dpi=150)
    plt.close(figure)


def panels(columns: int) -> tuple[Figure, Any]:
    """Square pictures side by side, without axes."""
    figure, axes = plt.subplots(1, columns, figsize=SIZE, squeeze=False)
    figure.subplots_adjust(left=0.02, right=0.98, bottom=0.02, top=0.98, wspace=0.06)
    for panel in axes.flat:
        panel.set_axis_off()
    return figure, axes[0]


def curves() -> tuple[Figure, Any]:
    """One panel with two bare axes."""
    figure, axes = plt.subplots(figsize=SIZE)
    figure.subplots_adjust(left=0.03, right=0.98, bottom=0.16, top=0.96)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set(color=INK, linewidth=1.5)
    axes.set(xticks=[], yticks=[])
    return figure, axes


def name(axes: Any, x: float, y: float, text: str, colour: str = INK, **options: Any) -> None:
    axes.text(x, y, text, color=colour, fontsize=19, transform=axes.transAxes, **options)


def table(name: str, **selectors: str) -> pd.DataFrame:
    """A stored experiment's columns."""
    arrays = experiments.load(name, **selectors)
    rows = len(next(iter(arrays.values())))
    return pd.DataFrame({key: list(values) for key, values in arrays.items() if len(values) == rows})


def signed(panel: Any, image: Any) -> None:
    limit = float(np.abs(image).max())
    panel.imshow(image, cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")


def directional_bias() -> Figure:
    """LeNet's test accuracy along waves; the right half of the plane mirrors the left."""
    mean = table("A1", architecture="lenet").groupby(["frequency_i", "frequency_j"])["test_accuracy"].mean()
    plane = np.full((16, 16), np.nan)
    for (i, j), accuracy in mean.items():
        for row, column in ((i, j), (-i, -j)):
            plane[(row // 2 + 8) % 16, (column // 2 + 8) % 16] = accuracy
    figure, (panel,) = panels(1)
    panel.imshow(plane, cmap=SEQUENTIAL, vmin=0.5, vmax=1, interpolation="nearest", aspect="auto")
    return figure


def pooling() -> Figure:
    """The spectral response of average pooling by four, in both directions."""
    response = nt.pooling.spectral_response("average", (32, 32), (4, 4)).abs()
    figure, (panel,) = panels(1)
    panel.imshow(np.fft.fftshift(response.numpy()), cmap=SEQUENTIAL, interpolation="bilinear", aspect="auto")
    return figure


def optimization() -> Figure:
    """Gradient descent along directions whose curvatures differ by a factor of up to a hundred."""
    figure, axes = curves()
    steps = np.linspace(0, 300, 200)
    for k, curvature in enumerate((1, 0.3, 0.1, 0.03, 0.01)):
        axes.plot(
            steps, (1 - 0.1 * curvature) ** (2 * steps), color=plt.get_cmap("viridis")(0.95 - 0.16 * k), linewidth=5
        )
    axes.set(xlim=(0, 300), ylim=(0, 1.03))
    name(axes, 0.98, -0.04, "steps", ha="right", va="top")
    name(axes, 0.5, 0.98, "loss", ha="center", va="top")
    return figure


def nads() -> Figure:
    """A NAD of each of four architectures, none of them trained."""
    figure, axes = plt.subplots(2, 4, figsize=SIZE)
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=0.98, wspace=0.04, hspace=0.04)
    for column, architecture in zip(axes.T, ("lenet", "vgg11", "resnet18", "densenet121"), strict=True):
        vectors = load_atlas(architecture).vectors
        for panel, index in zip(column, (0, 12), strict=True):
            signed(panel, vectors[index].numpy())
            panel.set_axis_off()
    return figure


def prediction() -> Figure:
    """Test accuracy along the NADs, best first: it falls, and stays 1 for logistic regression."""
    figure, axes = curves()
    for architecture, nads_of, label in (
        ("logreg", "published", "logistic regression"),
        ("lenet", "ours", "LeNet"),
    ):
        curve = table("A6", architecture=architecture, nads=nads_of).groupby("index")["test_accuracy"].mean()
        axes.plot(curve.index, curve, color=ARCHITECTURE_COLOURS[architecture], linewidth=5)
        place = (0.98, 0.8) if architecture == "logreg" else (0.4, 0.42)
        name(
            axes, *place, label, ARCHITECTURE_COLOURS[architecture], ha="right" if architecture == "logreg" else "left"
        )
    axes.axhline(0.5, color=INK, linestyle="--", linewidth=1.5)
    axes.set(xlim=(0, 1023), ylim=(0.45, 1.02))
    name(axes, 0.98, -0.04, "NADs, in their order", ha="right", va="top")
    return figure


def photograph() -> torch.Tensor:
    """The cat's face, 32 pixels wide, as a batch of one."""
    arrays, _ = storage.read_arrays(FILE)
    face = Image.fromarray(arrays["cat"][CAT]).resize((32, 32), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.asarray(face) / 255).float().permute(2, 0, 1)[None]


def poisoning() -> Figure:
    """A photograph, what is written into it, and the two together."""
    image, vectors = photograph(), load_atlas("lenet").vectors
    poisoned = nt.poison(image, torch.tensor([4]), vectors, 0, 2.0, num_classes=10)
    return beside(image, poisoned - image, poisoned)


def beside(*images: torch.Tensor) -> Figure:
    figure, axes = panels(len(images))
    for panel, image in zip(axes, images, strict=True):
        shown = image[0].permute(1, 2, 0).numpy()
        if shown.min() < -0.05:  # a change: signed, about grey
            shown = 0.5 + 0.5 * shown / np.abs(shown).max()
        panel.imshow(shown.clip(0, 1), interpolation="nearest")
    return figure


def flipping() -> Figure:
    """A photograph, and the same one with its coefficients in reverse order."""
    image = photograph()
    mean = image.mean((2, 3), keepdim=True)
    flipped = nt.flip(image - mean, load_atlas("lenet"))
    figure, axes = panels(2)
    for panel, picture in zip(axes, (image, 0.5 + 0.5 * flipped / flipped.abs().max()), strict=True):
        panel.imshow(picture[0].permute(1, 2, 0).numpy().clip(0, 1), interpolation="nearest")
    return figure


def two_features() -> Figure:
    """Where a trained LeNet draws the line between two features that both suffice: unequal, equal, unequal."""
    stored = table("B2", architecture="lenet", basis="nads").set_index(["first", "second"])["sections"]
    figure, axes = panels(3)
    for panel, (first, second) in zip(axes, ((0, 100), (0, 0), (100, 0)), strict=True):
        section = np.asarray(stored.loc[first, second])
        panel.imshow(np.tanh(section / np.abs(section).std()), cmap=DIVERGING, vmin=-1, vmax=1, origin="lower")
        panel.contour(section, [0], colors="black", linewidths=2.5)
    return figure


def simplicity() -> Figure:
    """Whether a network looks at the image or at the hint, by how far down the NADs the hint lies."""
    figure, axes = curves()
    for architecture, label, place in (("lenet", "LeNet", (0.76, 0.7)), ("mlp", "MLP", (0.03, 0.45))):
        stored = (
            table("B3", architecture=architecture, data="cifar10-subset").query("part == 'both'").sort_values("index")
        )
        axes.plot(
            range(len(stored)), stored["follows_images"], "o-", color=ARCHITECTURE_COLOURS[architecture], linewidth=5
        )
        name(axes, *place, label, ARCHITECTURE_COLOURS[architecture])
    axes.set(ylim=(-0.03, 0.75))
    name(axes, 0.02, 1.02, "sees the picture", va="top")
    name(axes, 0.98, -0.04, "hint further down", ha="right", va="top")
    return figure


def alignments(nads: nt.NADs) -> Any:
    """Of all waves, in units of a random direction's, as powers of ten."""
    alignment = torch.einsum("k,kij->ij", nads.eigenvalues, nt.fourier_energy(nads.vectors).double())
    return np.log10((alignment / nads.eigenvalues.mean()).clamp_min(1e-3).numpy())


def no_network() -> Figure:
    """LeNet's alignment with every wave, from its layers alone, on a logarithmic scale."""
    figure, (panel,) = panels(1)
    panel.imshow(alignments(nt.analytic_nads("lenet")), cmap="viridis", interpolation="nearest", aspect="auto")
    return figure


def beyond() -> Figure:
    """Two images that repeat with a patch, of 8 and of 4 pixels: by the theorem of chapter 7, first NADs of a ViT."""
    figure, columns = panels(2)
    for panel, patch in zip(columns, (8, 4), strict=True):
        pattern = np.random.default_rng(patch).standard_normal((patch, patch))
        signed(panel, np.tile(pattern, (32 // patch, 32 // patch)))
    return figure


def lab() -> Figure:
    """What the lab shows, for readers without JavaScript: two networks' maps and first NADs."""
    figure = Figure(figsize=(8, 4))
    grid = figure.add_gridspec(4, 8, left=0.04, right=1, bottom=0, top=1, wspace=0.08, hspace=0.1)
    for row, (architecture, title) in enumerate({"lenet": "LeNet", "resnet18": "ResNet-18"}.items()):
        nads = nt.analytic_nads(architecture)
        panel = figure.add_subplot(grid[2 * row : 2 * row + 2, :2])
        panel.imshow(alignments(nads), cmap="viridis", interpolation="nearest")
        panel.text(-0.04, 0.5, title, rotation=90, ha="right", va="center", color=INK, transform=panel.transAxes)
        panels_of_nads = [figure.add_subplot(grid[2 * row + k // 6, 2 + k % 6]) for k in range(12)]
        for tile, vector in zip(panels_of_nads, nads.vectors, strict=False):
            signed(tile, vector)
        for one in (panel, *panels_of_nads):
            one.set_axis_off()
    return figure


CARDS: list[Callable[[], Figure]] = [
    directional_bias,
    pooling,
    optimization,
    nads,
    prediction,
    no_network,
    beyond,
    poisoning,
    flipping,
    two_features,
    simplicity,
]


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=100, transparent=True)
    plt.close(figure)
    with Image.open(path) as picture:
        few = picture.convert("RGBA").quantize(COLOURS, method=Image.Quantize.FASTOCTREE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    if sys.argv[1:] != ["cards"]:
        draw_cover()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for number, draw in enumerate(CARDS, 1):
        save(draw(), FOLDER / f"{number:02d}.png")
    save(lab(), STATIC / "lab" / "still.png")
