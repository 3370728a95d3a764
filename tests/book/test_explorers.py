"""The explorers, driven from Python: setting a value changes the figure and the numbers; a training runs, and stops."""

import math
import time

import ipywidgets
import pytest
import torch
from companion import explorer as shared
from companion.chapter_01 import direction_explorer
from companion.chapter_02 import aliasing_explorer
from companion.chapter_03 import landscape_explorer
from companion.chapter_03.landscape import two_weight_landscape
from companion.chapter_04 import explorer as chapter_04
from companion.chapter_04 import nads_explorer
from companion.chapter_05 import mixture_explorer
from companion.chapter_08 import poisoning_explorer
from companion.chapter_09 import flipping_explorer
from companion.chapter_10 import pair_explorer
from companion.chapter_11 import concatenation_explorer
from companion.explorer import StaticNotice, live_only
from companion.patches import load_patches

import nadtools as nt
from nadtools.theory import pooling

CPU = {"device": "cpu"}
NADS = nt.NADs.from_vectors(nt.fourier_basis((8, 8)), torch.linspace(2.0, 0.0, 64, dtype=torch.float64))
COLOUR = nt.NADs.from_vectors(nt.random_basis((3, 4, 4)), torch.linspace(1, 0, 48))
PATCHES = load_patches(size=8, per_class=30, test_per_class=10)
MAKERS = {
    "direction": lambda: direction_explorer(num_samples=300, **CPU),
    "aliasing": lambda: aliasing_explorer(48),
    "landscape": landscape_explorer,
    "nads": lambda: nads_explorer(shape=(16, 16), **CPU),
    "mixture": lambda: mixture_explorer(NADS, num_samples=300, **CPU),
    "poisoning": lambda: poisoning_explorer(PATCHES, NADS),
    "flipping": lambda: flipping_explorer(PATCHES, NADS, seed=3),
    "pair": lambda: pair_explorer(NADS, num_samples=400, **CPU),
    "concatenation": lambda: concatenation_explorer(PATCHES, NADS, **CPU),
}
TRAINING = ("direction", "mixture", "pair", "concatenation")


def is_png(value):
    return bytes(value[:4]) == b"\x89PNG"


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("NADTOOLS_STATIC", raising=False)


@pytest.fixture
def explorer(request):
    """The explorer of this name; what it does is ended with the test."""
    made = MAKERS[request.param]()
    if request.param in TRAINING:
        made.architecture.value, made.epochs.value = "logreg", 4
    yield made
    if hasattr(made, "stop"):
        made.stop()
        assert made.wait(120)


def of(*names):
    return pytest.mark.parametrize("explorer", names, indirect=True)


def moving(explorer):
    """The picture that changes with each epoch."""
    return explorer.curve_image if hasattr(explorer, "curve_image") else explorer.picture


# What is shown, and what changes it.


@of(*MAKERS)
def test_an_explorer_shows_itself(explorer):
    assert isinstance(explorer.ui, ipywidgets.Widget)
    assert "application/vnd.jupyter.widget-view+json" in explorer._repr_mimebundle_()
    images = [value for value in vars(explorer).values() if isinstance(value, ipywidgets.Image)]
    assert images
    for image in images:  # one without content would show as broken
        assert is_png(image.value) if image.layout.display is None else image.value == b""


@pytest.mark.parametrize(
    ("explorer", "controls", "changes", "stays"),
    [
        (
            "direction",
            {"frequency_i": -5, "frequency_j": 9, "phase": math.pi / 2},
            ("direction_image", "samples_image"),
            (),
        ),
        ("direction", {"epsilon": 3.0, "sigma": 0.0}, ("samples_image",), ("direction_image",)),
        ("mixture", {"first": 5, "second": 7, "angle": 60}, ("direction_image", "samples_image", "status"), ()),
        ("aliasing", {"frequency": 20, "phase": 1.2, "stride": 2, "prefilter": "ideal"}, ("picture",), ()),
        ("aliasing", {"ratio": 0.5}, ("status",), ()),
        (
            "landscape",
            {"m": 0.2, "learning_rate": 0.5, "sigma": 2.0, "start_theta": 2.0, "start_phi": 3.0},
            ("picture",),
            (),
        ),
        (
            "poisoning",
            {"number": 7, "label": 3, "index": 20, "epsilon": 2.0, "replace": "all"},
            ("picture", "status"),
            (),
        ),
        ("flipping", {"number": 7, "basis": "random", "order": "permuted"}, ("picture",), ()),
    ],
    indirect=["explorer"],
)
def test_every_control_changes_what_is_shown(explorer, controls, changes, stays):
    if hasattr(explorer, "angle"):
        explorer.angle.value = 30
    for control, value in controls.items():
        before = {name: getattr(explorer, name).value for name in (*changes, *stays)}
        getattr(explorer, control).value = value
        for name, old in before.items():
            assert (getattr(explorer, name).value != old) == (name in changes), (control, name)
    assert all(is_png(getattr(explorer, name).value) for name in changes if name != "status")


# Their numbers.


@of("direction")
def test_the_direction_and_the_distribution_are_those_of_the_sliders(explorer):
    explorer.frequency_i.value, explorer.phase.value, explorer.epsilon.value = -5, math.pi / 2, 3.0
    problem, expected = explorer.distribution(), nt.fourier_atom((32, 32), (-5, explorer.frequency_j.value), 1.5707963)
    torch.testing.assert_close(problem.v, expected)
    assert (problem.epsilon, problem.sigma) == (3.0, explorer.sigma.value)
    oblong = direction_explorer(shape=(8, 12), num_samples=50, **CPU)
    assert oblong.direction().shape == (8, 12)


@of("direction")
def test_a_sine_that_does_not_exist_is_explained_and_cannot_be_trained(explorer):
    explorer.phase.value = math.pi / 2
    explorer.frequency_i.value = explorer.frequency_j.value = 0
    assert "cosine" in explorer.status.value
    assert explorer.train_button.disabled
    explorer.sigma.value = 2.0
    explorer.start()
    assert explorer.history == []
    explorer.frequency_j.value = 1
    assert not explorer.train_button.disabled


@of("aliasing")
def test_the_accuracy_is_that_of_the_wave_that_is_drawn(explorer):
    explorer.stride.value, explorer.frequency.value, explorer.phase.value = 4, 6, 1.0  # it meets its conjugate
    explorer.prefilter.value, explorer.ratio.value = "binomial", 2.0
    wave = torch.cos(2 * math.pi * 6 * torch.arange(48, dtype=torch.float64) / 48 - explorer.phase.value)
    dense = pooling.bayes_accuracy(wave, pooling.pooling_matrix("binomial", 4, 48), explorer.ratio.value, 1.0)
    assert explorer.accuracy == pytest.approx(float(dense), abs=1e-9)
    assert "18, 30, 42" in explorer.status.value
    explorer.stride.value, explorer.prefilter.value = 1, "identity"
    assert "alone" in explorer.status.value and explorer.accuracy == 1.0


@of("landscape")
def test_the_landscape_is_that_of_the_sliders(explorer):
    explorer.m.value, explorer.learning_rate.value, explorer.sigma.value = 0.2, 0.5, 2.0
    explorer.start_theta.value, explorer.start_phi.value = 2.0, 3.0
    options = {"learning_rate": explorer.learning_rate.value, "sigma": 2.0}
    expected = two_weight_landscape(explorer.m.value, steps=60, start=(2.0, 3.0), **options)
    torch.testing.assert_close(explorer.landscape.path, expected.path)
    torch.testing.assert_close(explorer.landscape.losses, expected.losses)
    other = landscape_explorer(steps=7, epsilon=2.0)
    assert len(other.landscape.path) == 8 and other.landscape.epsilon == 2.0
    assert other.landscape.least == pytest.approx(0.09 / 4.09)


@of("landscape")
def test_the_status_of_a_landscape(explorer):
    assert f"Learned after {explorer.landscape.steps_to_learn:.0f} steps" in explorer.status.value
    explorer.m.value = 0.05
    assert "Not learned in 60 steps" in explorer.status.value
    explorer.m.value, explorer.learning_rate.value = 1.0, 30.0
    assert "Not learned" in explorer.status.value and explorer.landscape.path_losses[-1] > 1e6
    explorer.m.value, explorer.sigma.value, explorer.start_theta.value = 0.5, 1.0, 2.0
    # Lemma 1: 2 (epsilon² + sigma²) theta² m² = 2 · 2 · 4 · 0.25
    assert "Curvature along φ at the start: 4." in explorer.status.value
    assert "above the learning rate 0.5" in explorer.status.value
    explorer.start_theta.value = 0.0
    assert "at the start: 0." in explorer.status.value and "diverges" not in explorer.status.value


@of("mixture")
def test_the_direction_lies_between_the_two(explorer):
    explorer.first.value, explorer.second.value, explorer.angle.value = 3, 40, 60
    v = explorer.direction()
    assert float((v * NADS.vectors[3]).sum()) == pytest.approx(0.5, abs=1e-6)
    assert float((v * NADS.vectors[40]).sum()) == pytest.approx(math.sqrt(0.75), abs=1e-6)
    # The mean eigenvalue is 1.
    expected = 0.25 * float(NADS.eigenvalues[3]) + 0.75 * float(NADS.eigenvalues[40])
    assert explorer.alignment == pytest.approx(expected, abs=1e-6)
    assert f"{expected:.2g} times" in explorer.status.value
    explorer.first.value = explorer.second.value = 6
    torch.testing.assert_close(explorer.direction(), NADS.vectors[6])
    shown = explorer.ui.children[0].children
    assert explorer.first in shown and explorer.frequency_i not in shown and explorer.phase not in shown


@of("poisoning")
def test_the_carrier_that_is_chosen_is_read(explorer):
    explorer.label.value, explorer.index.value = 8, explorer.index.max
    assert explorer.index.max == 64 - 2  # ten classes in three channels take two NADs
    expected = nt.poison(PATCHES.x_test[:1], torch.tensor([8]), NADS, 62, explorer.epsilon.value, num_classes=10)
    assert torch.equal(explorer.poisoned, expected)
    shown = PATCHES.class_names[int(PATCHES.y_test[0])]
    assert f"It shows: {shown}. The carrier says: {PATCHES.class_names[8]}." in explorer.status.value


@of("flipping")
def test_flipping_keeps_the_norm_and_says_so(explorer):
    normalised = PATCHES.normalise(PATCHES.x_test[:1])
    assert torch.equal(explorer.flipped, nt.flip(normalised, NADS))
    assert explorer.status.value.count(f"{float(normalised.norm()):.4g}") == 2
    explorer.order.value = "permuted"  # its inverse is another permutation
    assert float(explorer.status.value.rpartition(": ")[2].rstrip(".")) < 1e-5


@of("pair")
def test_the_controls_set_the_pair(explorer):
    explorer.first.value, explorer.second.value = 5, 9
    explorer.epsilon_first.value, explorer.epsilon_second.value = 2.0, 1.5
    problem, same = explorer.problems()
    assert problem is same and [part.epsilon for part in problem.parts] == [2.0, 1.5]
    for part, index in zip(problem.parts, (5, 9), strict=True):
        torch.testing.assert_close(part.v, NADS.vectors[index])


# Trainings.


@of(*TRAINING)
def test_training_moves_the_picture_each_epoch_and_learns(explorer):
    explorer.epochs.value = 12 if hasattr(explorer, "epsilon_second") else 6
    if hasattr(explorer, "sigma"):
        explorer.sigma.value = 0.5
    pictures, running, epochs = [], [], []

    def look(change):
        if change["new"]:
            pictures.append(bytes(change["new"]))
            running.append((explorer.train_button.disabled, explorer.stop_button.disabled, explorer.epochs.disabled))
            epochs.append(len(explorer.history))

    moving(explorer).observe(look, "value")
    explorer.train_button.click()
    assert explorer.wait(120)
    assert all(map(is_png, pictures)) and len(set(pictures)) > explorer.epochs.value / 2
    assert sorted(set(epochs)) == list(range(1, explorer.epochs.value + 1)) and set(running) == {(True, False, True)}
    assert moving(explorer).layout.display is None
    # The class is a noise-free coordinate: a linear model finds it well above chance from 300 samples.
    assert explorer.result.test_accuracy > 0.8
    assert f"Done: {explorer.epochs.value} epochs" in explorer.status.value
    assert explorer.stop_button.disabled and not (explorer.train_button.disabled or explorer.epochs.disabled)
    if hasattr(explorer, "epsilon_second"):
        assert list(explorer.history[0]) == ["both", "only the first", "only the second"]
        assert explorer.result.test_accuracy == explorer.history[-1]["both"]
        # On a small, easy problem logistic regression comes close to the maximum margin: 63 degrees.
        said = int(explorer.status.value.partition("at ")[2].partition("°")[0])
        assert abs(said - math.degrees(math.atan2(1.0, 0.5))) < 10 and "have it at 63°" in explorer.status.value


@of("concatenation")
def test_images_beside_a_direction(explorer):
    explorer.index.value, explorer.sigma.value = 7, 0.5
    _, test_problem = explorer.problems()
    torch.testing.assert_close(test_problem.parts[1].v, NADS.vectors[7])
    assert test_problem.parts[1].sigma == 0.5
    assert torch.equal(test_problem.parts[0].y, (PATCHES.y_test >= 5).long())
    explorer.train_button.click()
    assert explorer.wait(120)
    x, y = test_problem.sample(100, nt.device.derive_seed(0, 2), device="cpu")
    for part, name in enumerate(("images alone", "D(v) alone")):
        expected = nt.evaluate(explorer.network, (test_problem.only(part)(x), y)).accuracy
        assert explorer.history[-1][name] == pytest.approx(expected)


@of("direction", "pair")
def test_stop_ends_the_training_early(explorer):
    explorer.epochs.value = 50

    def press_stop(_):
        if len(explorer.history) == 2:
            explorer.stop_button.click()

    moving(explorer).observe(press_stop, "value")
    explorer.train_button.click()
    assert explorer.wait(60)
    assert len(explorer.history) == 2 and explorer.result.stopped_early
    assert "Stopped after 2 epochs" in explorer.status.value and not explorer.train_button.disabled


@of("direction")
def test_stop_from_outside_and_train_again_reproducibly(explorer):
    explorer.architecture.value, explorer.epochs.value = "lenet", 50
    explorer.train_button.click()
    deadline = time.monotonic() + 60
    while not explorer.history and time.monotonic() < deadline:
        time.sleep(0.01)
    explorer.train_button.click()  # a second press while it runs begins nothing
    explorer.stop_button.click()
    assert explorer.wait(60)
    assert 1 <= len(explorer.history) < 50
    explorer.architecture.value, explorer.epochs.value = "logreg", 2
    losses = []
    for _ in range(2):
        explorer.start()
        assert explorer.wait(60)
        losses.append([row["train_loss"] for row in explorer.history])
    assert len(losses[0]) == 2 and losses[0] == losses[1]


@of("direction")
def test_a_training_that_fails_is_reported(explorer, monkeypatch):
    def fail(*args, **kwargs):
        raise FloatingPointError("the loss is <not finite>")

    monkeypatch.setattr(shared.directions, "train", fail)
    explorer.start()
    assert explorer.wait(60)
    assert "FloatingPointError: the loss is &lt;not finite&gt;" in explorer.status.value
    assert not explorer.train_button.disabled


# Estimates.


@pytest.fixture
def nads():
    made = nads_explorer(shape=(16, 16), **CPU)
    made.num_networks.value = 2
    yield made
    made.stop()
    assert made.wait(120)


def multiple(explorer):
    """The number that the explorer shows for α(v), as a multiple of the mean eigenvalue."""
    return float(explorer.alignment.value.split(": ")[1].split(" ×")[0])


def test_nads_explorer_offers_every_architecture_and_waits():
    explorer = nads_explorer(**CPU)
    assert tuple(name for _, name in explorer.architecture.options) == nt.architectures.available()
    assert dict(explorer.architecture.options)["LeNet"] == "lenet"
    assert set(explorer.estimator.options) == {"secant", "gradient", "mixed"}
    assert explorer.index.max == 1023 and explorer.nads is None
    explorer.index.value, explorer.frequency_j.value = 5, 2  # nothing to look at yet
    assert explorer.nads_image.value == explorer.spectrum_image.value == b"" and explorer.alignment.value == ""


def test_nads_explorer_computes_what_estimate_nads_does_and_shows_each_round(nads):
    nads.num_networks.value = 6
    progress, overlaps, disabled = [], [], []

    def look(change):
        progress.append(change["new"])
        overlaps.append(nads.nads.metadata["num_networks"])
        disabled.append((nads.compute_button.disabled, nads.num_networks.disabled, nads.stop_button.disabled))

    nads.progress.observe(look, "value")
    nads.compute_button.click()
    nads.compute_button.click()  # a second press while it runs begins nothing
    assert nads.wait(120)
    assert progress == overlaps == [1, 2, 4, 6]
    assert set(disabled) == {(True, True, False)} and not nads.compute_button.disabled
    expected = nt.estimate_nads("lenet", 6, image_size=(16, 16), progress=False, **CPU)
    # Rounds and batch sizes change rounding only.
    torch.testing.assert_close(
        nads.nads.eigenvalues, expected.eigenvalues, rtol=1e-4, atol=1e-5 * expected.eigenvalues[0]
    )
    assert "Done: 6 networks" in nads.status.value
    assert f"overlap by {float(expected.split_half_overlap[9]):.2f} on the first 10" in nads.status.value
    assert is_png(nads.nads_image.value) and is_png(nads.spectrum_image.value)
    atom = nt.fourier_atom((16, 16), (nads.frequency_i.value, nads.frequency_j.value))
    # Three digits are shown.
    assert multiple(nads) == pytest.approx(expected.alignment(atom) / float(expected.eigenvalues.mean()), rel=6e-3)


def test_nads_explorer_controls_change_what_they_should(nads, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    nads.start()
    assert nads.wait(120)
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
    picture, spectrum, alignment = nads.nads_image.value, nads.spectrum_image.value, multiple(nads)
    nads.index.value = 7
    assert nads.nads_image.value != picture and nads.spectrum_image.value != spectrum
    assert multiple(nads) == alignment
    picture, spectrum = nads.nads_image.value, nads.spectrum_image.value
    nads.frequency_i.value = nads.frequency_j.value = 0
    # LeNet prefers low frequencies by far.
    assert multiple(nads) > 3 * alignment
    nads.frequency_i.value = -7
    assert "(-7, 0)" in nads.alignment.value
    assert (nads.nads_image.value, nads.spectrum_image.value) == (picture, spectrum)


@pytest.mark.parametrize(("architecture", "estimator"), [("lenet", "gradient"), ("logreg", "mixed")])
def test_nads_explorer_uses_the_architecture_and_the_estimator(nads, architecture, estimator):
    nads.architecture.value, nads.estimator.value, nads.num_networks.value = architecture, estimator, 1
    nads.start()
    assert nads.wait(120)
    assert (nads.nads.metadata["estimator"], nads.nads.metadata["num_networks"]) == (estimator, 1)
    assert nads.status.value == "Done: 1 networks."
    for frequency in (0, 4) if architecture == "logreg" else ():  # it prefers nothing
        nads.frequency_i.value = frequency
        assert multiple(nads) == pytest.approx(1, abs=1e-2)


def test_nads_explorer_marks_the_index_in_the_spectrum():
    made = nt.estimate_nads("logreg", 2, image_size=(4, 4), progress=False, **CPU)
    axes = chapter_04.marked_spectrum(made, 3).axes[0]
    curve, line, point = axes.lines
    assert (axes.get_xscale(), axes.get_yscale(), len(axes.collections)) == ("log", "log", 1)
    torch.testing.assert_close(torch.tensor(curve.get_ydata()), made.eigenvalues)
    assert list(line.get_xdata()) == [4, 4]
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (4, made.eigenvalues[3])


def test_nads_explorer_stops_after_the_round(nads):
    nads.num_networks.value = 50
    nads.progress.observe(lambda change: change["new"] == 2 and nads.stop_button.click(), "value")
    nads.compute_button.click()
    assert nads.wait(120)
    assert "Stopped after 2 networks" in nads.status.value
    assert nads.nads.metadata["num_networks"] == 2 and nads.stop_button.disabled


def test_nads_explorer_shows_errors_and_no_stale_picture(nads, monkeypatch):
    nads.num_networks.value = 1
    nads.start()
    assert nads.wait(120)

    def fail(*args, **kwargs):
        raise ValueError("the output is <constant>")

    monkeypatch.setattr(chapter_04, "estimate_nads", fail)
    nads.start()
    assert nads.wait(120)
    assert "The estimate failed: ValueError: the output is &lt;constant&gt;" in nads.status.value
    assert nads.nads is None
    assert nads.nads_image.layout.display == "none" and not nads.compute_button.disabled


# What is refused, and static pages.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: direction_explorer(shape=(0, 4)), "got "),
        (lambda: direction_explorer(num_samples=1), "at least 2"),
        (lambda: nads_explorer(seed=-1), "seed=-1"),
        (lambda: nads_explorer(device="no such device"), "got device"),
        (lambda: aliasing_explorer(0), r"size=\(0,\)"),
        (lambda: landscape_explorer(steps=2.5), "got steps"),
        (lambda: landscape_explorer(epsilon=0.0), "got epsilon"),
        (lambda: mixture_explorer(NADS.vectors), "NADs"),
        (lambda: mixture_explorer(COLOUR), "one channel"),
        (lambda: poisoning_explorer(load_patches(size=16), NADS), "expected"),
        (lambda: flipping_explorer(PATCHES, NADS.vectors), "expected Images and NADs"),
        (lambda: pair_explorer(NADS.vectors), "expected NADs"),
        (lambda: pair_explorer(NADS, num_samples=1), "at least 2"),
        (lambda: pair_explorer(COLOUR), "one channel"),
        (lambda: concatenation_explorer(PATCHES.x_train, NADS), "expected Images"),
        (lambda: concatenation_explorer(load_patches(size=16), NADS), "one size"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


LARGER = nt.NADs.from_vectors(nt.random_basis((16, 16)), torch.linspace(1, 0, 256))
STATIC = {  # how many pictures, and what the line below them says
    "direction": (lambda: direction_explorer(num_samples=2), 2, ""),
    "aliasing": (aliasing_explorer, 1, "Best accuracy"),
    "landscape": (landscape_explorer, 1, "Learned"),
    "nads": (lambda: nads_explorer(shape=(16, 16)), 2, "Done"),  # one that opens empty is started for its picture
    "mixture": (lambda: mixture_explorer(NADS), 2, "mean eigenvalue"),
    "poisoning": (MAKERS["poisoning"], 1, "The carrier says"),
    "flipping": (MAKERS["flipping"], 1, "Norm before"),
    "pair": (lambda: pair_explorer(LARGER, num_samples=300), 1, "Done"),
    "concatenation": (lambda: concatenation_explorer(load_patches(size=16, per_class=30), LARGER), 1, "Done"),
}


@pytest.mark.parametrize("name", STATIC)
def test_a_static_page_shows_a_picture(name, monkeypatch):
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    make, count, status = STATIC[name]
    notice = make()
    assert isinstance(notice, StaticNotice) and status in notice.status
    assert len(notice.pictures) == count == notice._repr_html_().count("<img alt=")
    assert all(map(is_png, notice.pictures))


def test_a_static_page_leads_to_the_live_notebook(monkeypatch):
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    notice = direction_explorer(num_samples=2)
    assert dict(notice.controls)["frequency i"] == "3"
    assert notice.what == direction_explorer.__doc__.partition("\n")[0]
    page = notice._repr_html_()
    assert notice.what in page and "make lab" in page and "kernel" in repr(notice)
    assert "urlpath=lab/tree/book/01-directional-bias.ipynb" in page
    monkeypatch.setenv("NADTOOLS_STATIC", "0")
    assert not isinstance(direction_explorer(num_samples=2), StaticNotice)


def test_live_only_leaves_other_values_alone(monkeypatch):
    @live_only
    def other_explorer(value, *, doubled=False):
        """Explore."""
        return 2 * value if doubled else value

    assert other_explorer(3, doubled=True) == 6
    assert (other_explorer.__name__, other_explorer.__doc__) == ("other_explorer", "Explore.")
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    assert other_explorer(3) == 3
