"""Draw the cover: python book/cover.py. The numbers are those of chapter 1 and chapter 4 at laptop scale, seed 0."""

import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from companion import style
from companion.style import ARCHITECTURE_COLOURS, DIVERGING

import nadtools as nt

WAVES = [(0, 0), (1, 0), (2, 2), (4, 0), (12, 4), (15, 0), (16, 16), (8, 0)]


def accuracy(architecture: str, frequency: tuple[int, int]) -> float:
    phase = 0.0 if frequency in ((0, 0), (16, 16)) else math.pi / 2
    problem = nt.LinearlySeparable(nt.fourier_atom((32, 32), frequency, phase), epsilon=1.0, sigma=1.0)
    data = problem.sample(3_000, seed=0), problem.sample(2_000, seed=1)
    network = nt.build(architecture, seed=0)
    return nt.train(network, *data, nt.TrainConfig(epochs=15), evaluate_every=0, progress=False).test_accuracy


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
    limit = float(nads.vectors[k].abs().max())
    panel.imshow(nads.vectors[k], cmap=DIVERGING, vmin=-limit, vmax=limit)
    panel.set_axis_off()
figure.savefig(Path(__file__).parent / "static" / "cover.png", dpi=150)
