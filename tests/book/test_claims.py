"""The papers' claims: how they are written down, how they are evaluated, and that the recorded verdicts hold."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from companion import claims, compact, experiments, published
from companion.__main__ import _parser, main
from companion.chapter_10.experiments import load_pairs
from companion.claims import Verdict, catalogue, checking, display
from companion.evidence import Mark, Stored

from nadtools import storage

BOOK = Path(__file__).parents[2] / "book"
CLAIMS = claims.load_claims()
BY_ID = {claim.id: claim for claim in CLAIMS}
STORED = [claim for claim in CLAIMS if claim.experiment]
INDICES = [0, 10, 50, 100, 500, 1000]

by_id = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)


# ---------------------------------------------------------------------------------------------------------------------
# The file
# ---------------------------------------------------------------------------------------------------------------------


def test_every_figure_lemma_theorem_and_equation_has_a_claim():
    for paper, things in {
        "A": [
            *(rf"Figure {number}" for number in range(1, 9)),
            *("Theorem 1", "Lemma 1", "Lemma 2", "Footnote 3", "Footnote 4"),
            *(rf"(?i:equation) \({number}\)" for number in (1, 3, 4, 5, 6)),
        ],
        "B": [rf"Figures? (\d\w? and )?{number}" for number in range(2, 9)] + [r"equation \(2\)"],
    }.items():
        places = " | ".join(claim.place for claim in CLAIMS if claim.paper == paper)
        assert [thing for thing in things if not re.search(thing, places)] == []


def test_every_function_is_used():
    ids = set(re.findall(r'^id = "(.*)"$', claims.CLAIMS_FILE.read_text(encoding="utf-8"), re.MULTILINE))
    assert ids == set(catalogue.FUNCTIONS)


@by_id
def test_a_claim_is_complete(claim):
    assert claim.statement.endswith(".") and claim.statement.count(". ") == 0, "one sentence"
    texts = [value for key, value in dataclasses.asdict(claim).items() if isinstance(value, str) and key != "tolerance"]
    assert "{" not in "".join([*texts, claim.mark]) and claim.metric[-1] != "."
    assert (BOOK / f"{claim.chapter}.ipynb").exists()
    if "errata" in claim.note:
        assert claim.verdict in (Verdict.CORRECTED, Verdict.NOT_REPRODUCED, Verdict.PARTLY, Verdict.NOT_YET)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "A-eq2"}, "A-eq2: no chapter has a function with this id"),
        ({"function": "guess"}, "unknown entries"),
        ({"verdict": "true"}, "unknown verdict 'true'"),
        ({"verdict": "not checked here"}, "unknown verdict"),
        ({"paper": "C"}, "unknown paper 'C'"),
        ({"statement": ""}, r"missing or empty entries \['statement'\]"),
        ({"colour": "red"}, r"unknown entries \['colour'\]"),
        ({"experiment": "A9"}, "no experiment A9"),
        ({"experiment": "A1", "selectors": {"architecture": "alexnet"}}, "no experiment A1 with"),
        ({"experiment": "A1", "selectors": {}}, "no experiment A1 with"),
        ({"experiment": "A1", "selectors": {"architecture": "lenet", "phase": "0"}}, "no experiment A1 with"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, change, message):
    names = ("id", "paper", "place", "statement", "metric", "expected", "tolerance", "verdict")
    entries = {name: getattr(BY_ID["A-eq1"], name) for name in names} | change
    lines = ["[[claim]]"]
    for name, value in entries.items():
        inner = ", ".join(f'{key} = "{one}"' for key, one in value.items()) if isinstance(value, dict) else ""
        lines.append(f"{name} = {{ {inner} }}" if isinstance(value, dict) else f"{name} = {json.dumps(value)}")
    (tmp_path / "claims.toml").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        claims.load_claims(tmp_path / "claims.toml")


def test_an_id_stands_once(tmp_path):
    block = _blocks("A-eq1")
    (tmp_path / "claims.toml").write_text(block + block, encoding="utf-8")
    with pytest.raises(ValueError, match="stand twice: A-eq1"):
        claims.load_claims(tmp_path / "claims.toml")
    (tmp_path / "claims.toml").write_text("[[claim", encoding="utf-8")
    with pytest.raises(ValueError, match="is no TOML"):
        claims.load_claims(tmp_path / "claims.toml")


def test_a_table_with_several_verdicts_is_a_claim_for_each_architecture(tmp_path):
    path = tmp_path / "claims.toml"
    text = _blocks("A1-{architecture}-direction")
    path.write_text(text, encoding="utf-8")
    loaded = claims.load_claims(path)
    names = {"lenet": "LeNet", "vgg11": "VGG-11", "resnet18": "ResNet-18", "densenet121": "DenseNet-121"}
    assert loaded == tuple(BY_ID[f"A1-{architecture}-direction"] for architecture in names)
    for claim, (architecture, name) in zip(loaded, names.items(), strict=True):
        assert claim.selectors == {"architecture": architecture}
        assert claim.statement.startswith(f"How well {name} solves")
    # One of the verdicts is rewritten, and nothing else.
    checked = claims.Checked(loaded[2], claims.Outcome("a miracle", Verdict.CORRECTED))
    assert claims.record_verdicts([checked], path) == ("A1-resnet18-direction",)
    changed = re.sub(r'(?<=verdict\.resnet18 = )"[^"]+"', '"corrected"', text)
    assert changed != text and path.read_text(encoding="utf-8") == changed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("verdict.vgg11", "verdict.alexnet", "A1-alexnet-direction: no experiment A1 with"),
        ("A1-{architecture}-", "A1-", "A1-direction: no chapter has a function"),
        (r"verdict\..*\n", "", r"missing or empty entries \['verdict'\]"),
        (r"(verdict\..*\n)+", "verdict = {}\n", r"missing or empty entries \['verdict'\]"),
    ],
)
def test_a_wrong_table_with_several_verdicts_is_named(tmp_path, old, new, message):
    text = re.sub(old, new, _blocks("A1-{architecture}-direction"))
    (tmp_path / "claims.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        claims.load_claims(tmp_path / "claims.toml")


def _blocks(*ids: str) -> str:
    """The tables of some claims, as they stand in the file."""
    blocks = re.split(r"^(?=\[\[claim\]\])", claims.CLAIMS_FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    chosen = [
        block.partition("\n# ---")[0] + "\n" for block in blocks if any(f'id = "{one}"\n' in block for one in ids)
    ]
    assert len(chosen) == len(ids)
    return "".join(chosen)


# ---------------------------------------------------------------------------------------------------------------------
# The verdicts
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checked():
    return claims.check_claims()


def test_the_recorded_verdicts_hold(checked):
    changed = {one.claim.id: (one.claim.verdict, one.outcome.verdict) for one in checked if one.changed}
    assert changed == {}, "if the new verdicts are right: python -m companion claims --record"


def test_every_claim_has_an_outcome(checked):
    assert [one.claim for one in checked] == list(CLAIMS)
    for one in checked:
        outcome = one.outcome
        assert outcome.measured and isinstance(outcome.verdict, Verdict)
        if not outcome.is_stored:
            assert outcome.verdict is Verdict.NOT_YET and outcome.command
        elif one.claim.experiment and outcome.verdict is not Verdict.NOT_HERE:
            assert all(dataclasses.astuple(outcome.origin))
            assert re.fullmatch(r"[\d-]{10}(; [\d-]{10})*", outcome.origin.date)


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if not claim.experiment], ids=lambda claim: claim.id)
def test_what_needs_no_result_is_evaluated_anywhere(claim, tmp_path):
    outcome = claims.evaluate(claim, results_dir=tmp_path)
    if outcome.verdict is Verdict.NOT_HERE:
        pytest.skip(f"{claim.id} {outcome.measured}")
    assert outcome.verdict == claim.verdict


@pytest.mark.parametrize("claim", STORED, ids=lambda claim: claim.id)
def test_a_missing_result_is_named_with_the_command_that_makes_it(claim, tmp_path):
    outcome = claims.evaluate(claim, results_dir=tmp_path)
    assert (outcome.is_stored, outcome.verdict) == (False, Verdict.NOT_YET)
    program, command = outcome.command.split("python -m companion ")
    assert not program
    options = _parser().parse_args(command.partition("#")[0].split())
    # More networks than at laptop scale would not change the NADs of the atlas.
    assert (options.command, options.scale) == ("run", "laptop" if options.name == "atlas" else "paper")
    assert str(tmp_path) not in outcome.command


# ---------------------------------------------------------------------------------------------------------------------
# Invented results
# ---------------------------------------------------------------------------------------------------------------------


def invent(folder, name, columns, scale="paper", changes=None, **selectors):
    """Store a table as if the experiment had made it."""
    parameters = experiments.EXPERIMENTS[name].parameters(scale, **selectors) | (changes or {})
    record = {
        **{
            "experiment": name,
            "scale": scale,
            "selectors": selectors,
            "parameters": json.loads(json.dumps(parameters)),
        },
        **{"seed": 0, "device": "abacus", "date": "2020-02-02T00:00:00", "versions": {"nadtools": "9.9"}},
    }
    path = experiments.result_path(name, scale=scale, results_dir=folder, **selectors)
    storage.write_arrays(path, {key: np.asarray(values) for key, values in columns.items()}, {"record": record})


def products(opposite):
    """Of two covariances with three blocks each: alike but for noise of 1 and 2; or unlike, and the noise swapped."""
    kind, block = np.divmod(np.arange(6), 3)
    noise = np.where((kind == 1) == opposite, 1.0, 2.0)
    product = np.where(kind[:, None] == kind, 4.0, 1.0 if opposite else 3.9) + np.diag(noise)
    first, second = (axis.ravel() for axis in np.indices((6, 6)))
    return {
        **{"first_is_mixed": kind[first], "second_is_mixed": kind[second], "seed": np.zeros(36)},
        **{"first_block": block[first], "second_block": block[second], "product": product.ravel()},
    }


def waves(accuracy, train=1.0, steps=np.nan):
    """A table over a coarse grid of waves; accuracy is a function of the frequency's length."""
    places = [(i, j) for i in range(-16, 1, 4) for j in range(-16, 16, 4)]
    values = np.array([accuracy(np.hypot(i, j)) for i, j in places])
    i, j = np.array(places, float).T
    columns = {"frequency_i": i, "frequency_j": j, "seed": np.zeros(len(i)), "test_accuracy": values}
    return columns | {"train_accuracy": np.full(len(i), train), "steps": np.broadcast_to(steps, len(i))}


def images(indices, accuracy, replace="own", epsilon=0.05):
    count = len(indices)
    columns = {"index": indices, "test_accuracy": accuracy, "seed": [0.0] * count, "epsilon": [epsilon] * count}
    return columns | {"replace": [replace] * count}


def stacked(*tables):
    return {key: np.concatenate([np.asarray(table[key]) for table in tables]) for key in tables[0]}


def pairs_table(is_mlp, opposite):
    """Both orders of an early and a late direction; the paper's behaviour, or its opposite."""
    first, second = (np.array(axis.ravel(), float) for axis in np.meshgrid([0, 1000], [0, 1000], indexing="ij"))
    early_late, late_early = (first < second), (first > second)
    radians = np.radians
    if is_mlp:
        one, other = (0.9, 0.7) if not opposite else (np.array([0.5, 0.6, 0.7, 0.8]), 0.95)
        table = {"test_accuracy": 1.0 - 0.3 * opposite, "test_accuracy_first": one, "test_accuracy_second": other}
        table |= {"angle_first": radians(70 + 20 * opposite * early_late)}
    else:
        weak = 0.5 + 0.4 * opposite
        table = {
            "test_accuracy": np.where((first == 1000) & (second == 1000), 0.6 + 0.4 * opposite, 1.0),
            "test_accuracy_first": np.where(late_early, weak, 0.9),
            "test_accuracy_second": np.where(early_late, weak, 0.9),
            "angle_first": radians(np.select([late_early, early_late], [5, 85], 63) * (1 - opposite) + 30 * opposite),
        }
    table |= {"first": first, "second": second, "seed": 0.0, "train_loss": 0.001 + opposite, "max_lr": 0.01}
    columns = {key: np.broadcast_to(value, 4).astype(float) for key, value in table.items()}
    return columns | {
        "sections": np.zeros((4, 2, 2)),
        "section_points": np.zeros((4, 2, 2)),
        "coordinates": [-1.0, 1.0],
    }


def transition_table(is_mlp, opposite):
    index = np.array([0.0, 100.0, 1000.0])
    step = np.array([1.0, 1.0, 1.0]) if is_mlp else np.array([1.0, 1.0, 0.0])  # decides by D(v)
    step = np.full(3, 0.5) if opposite else step
    both = {
        "part": np.array(["both"] * 3),
        "index": index,
        "test_accuracy": np.full(3, 0.9) if opposite else 0.8 + 0.2 * step,
        "test_accuracy_direction": 0.5 + 0.5 * step,
        "test_accuracy_images": 0.5 + 0.3 * (1 - step),
    }
    alone = {"part": np.array(["images"]), "index": [0.0], "test_accuracy": [0.8 + 0.2 * opposite]}
    alone |= {key: [np.nan] for key in ("test_accuracy_direction", "test_accuracy_images")}
    table = stacked(both, alone)
    return table | {"seed": np.zeros(4), "train_loss": np.full(4, 0.001 + opposite), "max_lr": np.full(4, 0.15)}


@pytest.fixture(scope="module", params=[False, True], ids=["as the papers say", "the opposite"])
def invented(request, tmp_path_factory):
    """Results of everything, at the papers' size."""
    opposite, folder = request.param, tmp_path_factory.mktemp("invented")
    deep = ("vgg11", "resnet18", "densenet121")
    scales = {"densenet121": 20, "resnet18": 70, "vgg11": 150, "lenet": 700}
    for name, reach in scales.items():

        def easy(radius, shift=2.0 if name != "resnet18" else -2.0):
            """Easy are some smooth waves and the roughest; all nearly alike where the papers are contradicted."""
            return 0.85 - 0.002 * radius if opposite else 0.5 + 0.45 * (abs(radius - 6 - shift) < 3 or radius > 21)

        unfit = (name == "lenet") != opposite
        invent(folder, "A1", waves(easy, train=0.75 if unfit else 1.0), architecture=name)
        accuracy = waves(easy)["test_accuracy"]
        steps = 100 * accuracy if opposite else np.where(accuracy > 0.9, 50.0, 900.0)
        invent(folder, "A2", waves(easy, steps=steps), architecture=name)
        invent(folder, "A3", waves(lambda r: 0.5 + 0.4 * (r > 9) if opposite else 0.95), architecture=name)
        falls = 0.5 + 0.5 * np.exp(-((np.array(INDICES) / reach) ** 2)) - 1e-6 * np.array(INDICES)
        if opposite:
            falls = 0.7 + np.array(INDICES) / 5000 * (1 if name in ("lenet", "vgg11") else 2)
        for nads in ("ours", "published"):
            other = 0.25 * opposite * (nads == "published")
            columns = {"index": np.array(INDICES, float), "seed": np.zeros(6), "test_accuracy": falls - other}
            invent(folder, "A6", columns, architecture=name, nads=nads)
        spread = np.linspace(0.5, 0.9 if opposite else 0.51, 30)
        invent(folder, "random", {"seed": np.zeros(30), "test_accuracy": spread}, architecture=name)
        curve = np.array([0.3, 0.5, 0.7, 0.88, 0.89, 0.9])[:: -1 if opposite else 1]
        reference = images([np.nan], [0.9], "none")
        where = {"architecture": name, "data": "cifar10-jpeg"}
        invent(folder, "A7", stacked(reference, images(INDICES, curve)), **where)
        sizes = [images(INDICES, curve, epsilon=epsilon) for epsilon in (0.05, 2.0)]
        invent(folder, "A7map", stacked(reference, *sizes), **where)
        span = {"count": np.array(INDICES[1:]), "seed": np.zeros(5), "test_accuracy": curve[1:] + 0.2 * opposite}
        invent(folder, "A7span", span, **where)
    solved = 0.6 if opposite else 1.0
    invent(folder, "A1", waves(lambda r: solved), architecture="logreg")
    columns = {"index": np.array(INDICES, float), "seed": np.zeros(6), "test_accuracy": np.full(6, solved)}
    invent(folder, "A6", columns, architecture="logreg", nads="published")
    for name in ("logreg", "mlp", "lenet", *deep):
        lost = 3000.0 if (name in ("logreg", "mlp")) == opposite else 50.0
        rising = np.linspace(0.5, 0.9, 6) if opposite else np.full(6, 0.5)
        if name == "mlp":
            table = stacked(images([np.nan], [0.9], "none"), images(INDICES, rising))
            invent(folder, "A7", table, architecture="mlp", data="cifar10")
        arms = {"arm": np.array(["original", "flipped"]), "seed": np.zeros(2), "num_test": [10000.0] * 2}
        arms |= {"only_here": [0.0, 0.0], "only_original": [0.0, lost], "train_accuracy": [1.0 - opposite / 2] * 2}
        invent(folder, "A8", arms, architecture=name, data="cifar10")
    for name in ("mlp", "lenet", "resnet18"):
        invent(folder, "B2", pairs_table(name == "mlp", opposite), architecture=name, basis="nads")
        invent(folder, "B3", transition_table(name == "mlp", opposite), architecture=name, data="cifar10")
    invent(folder, "mixed", products(opposite), architecture="lenet")
    with pytest.MonkeyPatch.context() as patch:  # the NADs are real
        patch.setattr(Stored, "nads", functools.partialmethod(_real_nads, Stored.nads))
        yield folder, opposite


def _real_nads(stored, nads, *args, **options):
    real = Stored(stored.selectors, BOOK / "results")
    found = nads(real, *args, **options)
    stored.sources += real.sources
    return found


# They compare with NADs, which are real, or with the authors' files, which are not invented.
THEIRS = ("-few", "-map", "-points", "-support")
REAL = {claim.id for claim in STORED if claim.experiment == "atlas" or claim.id.endswith(THEIRS)}


@pytest.mark.parametrize("claim", [c for c in STORED if c.id not in REAL], ids=lambda claim: claim.id)
def test_the_verdict_follows_the_results(invented, claim):
    folder, opposite = invented
    outcome = claims.evaluate(claim, results_dir=folder)
    assert outcome.verdict is (Verdict.NOT_REPRODUCED if opposite else Verdict.REPRODUCED), outcome.measured
    origin = outcome.origin
    assert "abacus" in origin.device and "2020-02-02" in origin.date and "9.9" in origin.version
    assert origin.width == "1" and origin.seeds == "0" and not outcome.command
    if claim.experiment == "B2" and isinstance(claim.function, Mark):
        assert outcome.measured.endswith("; 4 of 4 trainings with a smaller learning rate")


@pytest.mark.parametrize(
    ("vgg11", "decay", "strongest"),
    [
        (150, Verdict.REPRODUCED, Verdict.REPRODUCED),
        (20, Verdict.PARTLY, Verdict.NOT_REPRODUCED),
        (700, Verdict.PARTLY, Verdict.REPRODUCED),
    ],
)
def test_the_authors_own_accuracies_are_judged(monkeypatch, vgg11, decay, strongest):
    """VGG-11's spectrum decays third fastest: as published its accuracy drops second, before ResNet-18's."""
    last = {"densenet121": 10, "resnet18": 60, "vgg11": vgg11, "lenet": 300}
    rows = [
        {"architecture": name, "index": index, "accuracy": 1.0 if index <= reach else 0.5}
        for name, reach in last.items()
        for index in range(1023)
    ]
    monkeypatch.setattr(published, "available", lambda: ("nads",))
    monkeypatch.setattr(published, "load_accuracies", lambda kind: pd.DataFrame(rows))
    outcome = claims.evaluate(BY_ID["A6-decay-published"], results_dir=BOOK / "results")
    assert outcome.verdict is decay and f"vgg11 {vgg11}, resnet18 60" in outcome.measured
    assert claims.evaluate(BY_ID["A6-strongest-published"]).verdict == strongest


def test_early_features_of_different_indices_are_judged_too(tmp_path):
    """As for LeNet: near the maximum margin at (0, 0) and (20, 20), and blind to the other one elsewhere."""
    claim, indices = BY_ID["B2-lenet-margin"], [0, 20, 1000]
    first, second = (np.array(axis.ravel(), float) for axis in np.meshgrid(indices, indices, indexing="ij"))
    table = {key: np.resize(value, 9) for key, value in pairs_table(False, False).items() if np.ndim(value) == 1}
    table |= {"first": first, "second": second, "coordinates": [-1.0, 1.0]}
    table |= {"sections": np.zeros((9, 2, 2)), "section_points": np.zeros((9, 2, 2))}
    for apart, verdict in ((89.8, Verdict.PARTLY), (64.0, Verdict.REPRODUCED)):
        table["angle_first"] = np.radians(np.where(first == second, 65.0, apart))
        invent(tmp_path, "B2", table, architecture="lenet", basis="nads")
        assert claims.evaluate(claim, results_dir=tmp_path).verdict == verdict


def test_a_smaller_run_is_not_yet_a_verdict(tmp_path):
    claim = BY_ID["A1-resnet18-direction"]
    invent(tmp_path, "A1", waves(lambda r: 0.5 + 0.5 * (r < 5)), "laptop", architecture="resnet18")
    outcome = claims.evaluate(claim, results_dir=tmp_path)
    assert outcome.verdict is Verdict.NOT_YET
    assert outcome.measured == "50.0 % to 100.0 %; agrees, but width 0.25 instead of 1, epochs 6 instead of 20"
    made_by = "python -m companion run A1 --architecture resnet18 --scale paper"
    assert outcome.command == f"{made_by}  # about 6 hours of one core"  # 12 times half an hour
    # The same numbers count for a control, and the better result is taken where there are two.
    assert (
        claims.evaluate(dataclasses.replace(claim, scale="laptop"), results_dir=tmp_path).verdict is Verdict.REPRODUCED
    )
    invent(tmp_path, "A1", waves(lambda r: 0.5), architecture="resnet18")
    assert claims.evaluate(claim, results_dir=tmp_path).verdict is Verdict.NOT_REPRODUCED


def at_waves(places, accuracies):
    i, j = np.array(places, float).T
    seeds, train = np.zeros(len(places)), np.ones(len(places))
    columns = {"frequency_i": i, "frequency_j": j, "seed": seeds, "train_accuracy": train}
    return columns | {"test_accuracy": np.array(accuracies, float)}


def test_narrow_networks_are_not_the_papers(tmp_path):
    invent(tmp_path, "A1", at_waves([(0, 0), (-8, 0)], [1.0, 0.5]), "laptop", architecture="vgg11")
    outcome = claims.evaluate(BY_ID["A1-vgg11-direction"], results_dir=tmp_path)
    assert outcome.verdict is Verdict.NOT_YET and outcome.smaller is Verdict.REPRODUCED
    assert outcome.measured.endswith("width 0.25 instead of 1")


@pytest.mark.parametrize(("rough", "verdict"), [(0.5, Verdict.REPRODUCED), (0.9, Verdict.PARTLY)])
def test_few_waves_are_held_against_the_same_waves_of_the_authors(tmp_path, rough, verdict):
    invent(tmp_path, "A1", at_waves([(0, 0), (-4, -4)], [1.0, rough]), architecture="densenet121")
    assert claims.evaluate(BY_ID["A1-densenet121-few"], results_dir=tmp_path).verdict is verdict


def test_other_images_are_not_the_papers(tmp_path):
    table = stacked(images([np.nan], [0.9], "none"), images(INDICES, np.linspace(0.3, 0.9, 6)))
    invent(tmp_path, "A7", table, architecture="resnet18", data="cifar10-subset")
    outcome = claims.evaluate(BY_ID["A7-resnet18-first"], results_dir=tmp_path)
    assert outcome.verdict is Verdict.NOT_YET
    assert "60.0 points; agrees, but 5,000 images of CIFAR-10 instead of 50,000 photographs" in outcome.measured
    assert "--architecture resnet18 --data cifar10 --scale paper  # about 16 hours" in outcome.command


def test_a_stale_result_is_not_yet_a_verdict(tmp_path):
    invent(tmp_path, "A1", waves(lambda r: 1.0), changes={"sigma": 2.0}, architecture="logreg")
    outcome = claims.evaluate(BY_ID["A1-logreg"], results_dir=tmp_path)
    assert outcome.verdict is Verdict.NOT_YET and "stale" in outcome.measured


def test_a_damaged_result_is_reported(tmp_path):
    experiments.result_path("A1", architecture="logreg", results_dir=tmp_path).write_bytes(b"PK")
    with pytest.raises(ValueError, match="is damaged"):
        claims.evaluate(BY_ID["A1-logreg"], results_dir=tmp_path)


def test_the_authors_files_are_never_downloaded(monkeypatch, tmp_path):
    def refuse(*_, **__):
        raise AssertionError("asked for a file")

    monkeypatch.setenv("NADTOOLS_DATA", str(tmp_path))
    monkeypatch.setenv("NADTOOLS_CACHE", str(tmp_path))
    monkeypatch.setattr(published, "_read", refuse)
    monkeypatch.setattr(compact, "FOLDER", tmp_path)
    for name in ("A1-lenet-map", "A5-lenet-published", "A6-lenet-points", "A6-strongest-published"):
        claim = BY_ID[name]
        outcome = claims.evaluate(claim)
        assert outcome.verdict is Verdict.NOT_HERE and "NADTOOLS_DATA" in outcome.measured
        assert not claims.Checked(claim, outcome).changed


def test_the_command_that_makes_a_result_is_part_of_the_error(tmp_path):
    with pytest.raises(experiments.NotStoredError, match="make it with: python -m companion") as missing:
        load_pairs("lenet", results_dir=tmp_path)
    assert missing.value.command == "python -m companion run B2 --architecture lenet --basis nads --scale laptop"


# ---------------------------------------------------------------------------------------------------------------------
# The command, and the page
# ---------------------------------------------------------------------------------------------------------------------

FEW = ("A-eq1", "A-theorem1", "A-eq6")


@pytest.fixture
def few(monkeypatch, tmp_path):
    """A file with three claims that need no result, one of them with another verdict than is found."""
    path = tmp_path / "claims.toml"
    text = "# A comment.\n\n" + _blocks(*FEW)
    path.write_text(text.replace('verdict = "corrected"', 'verdict = "partly"  # so far'), encoding="utf-8")
    monkeypatch.setattr(catalogue, "CLAIMS_FILE", path)
    return path


def test_a_changed_verdict_exits_with_1_and_is_named(few, capsys):
    before = few.read_bytes()
    assert main(["claims"]) == 1
    printed = capsys.readouterr()
    assert "A-theorem1: recorded 'partly', now 'corrected'" in printed.err
    assert "A-eq1:" not in printed.err
    for words in (
        "reproduced  A-eq1 (paper A, Equation (1))",
        "measured: largest deviation",
        "corrected (recorded: partly)",
    ):
        assert words in printed.out
    assert few.read_bytes() == before


def test_record_rewrites_the_verdict_and_nothing_else(few, capsys):
    before = few.read_text(encoding="utf-8")
    assert main(["claims", "--record"]) == 0
    assert "1 verdicts rewritten" in capsys.readouterr().out
    assert few.read_text(encoding="utf-8") == before.replace('"partly"', '"corrected"')
    assert main(["claims"]) == 0
    assert claims.record_verdicts(claims.check_claims()) == ()


def test_what_cannot_be_checked_here_does_not_fail(few, monkeypatch, capsys):
    outcome = claims.Outcome("takes the authors' files", Verdict.NOT_HERE)
    monkeypatch.setattr(checking, "evaluate", lambda claim, **_: outcome)
    before = few.read_bytes()
    assert main(["claims", "--record"]) == 0
    assert few.read_bytes() == before
    assert "not checked here (recorded: partly)" in capsys.readouterr().out


class _Cells(HTMLParser):
    """The rows with their ids, and all links."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.links = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "tr" and "id" in values:
            self.rows.append([values["id"], ""])
        if tag == "a":
            self.links.append(values["href"])

    def handle_data(self, data):
        if self.rows:
            self.rows[-1][1] += data


def test_the_page_shows_all_of_a_claim(checked, monkeypatch):
    monkeypatch.setenv("NADTOOLS_STATIC", "1")
    page = _Cells(claims.to_html(checked, pages=BOOK))
    assert sorted(row[0] for row in page.rows) == sorted(BY_ID)
    texts = dict(page.rows)
    for one in checked:
        text = texts[one.claim.id]
        for part in ("statement", "place", "metric", "expected", "mark", "note"):
            assert getattr(one.claim, part) in text
        assert one.outcome.measured in text and one.outcome.verdict in text and one.outcome.command in text
        assert display._SIGNS[one.outcome.verdict][0] in text, "a verdict does not rely on its colour"
    assert set(page.links) >= {"01-directional-bias.html", "09-flipping.html"}
    assert all((BOOK / link.replace(".html", ".ipynb")).exists() for link in page.links)


def test_claims_are_folded_up_by_chapter_below_the_count_of_their_verdicts(checked):
    page = claims.to_html(checked, pages=BOOK)
    parts = page.split('<details class="claims-chapter">')[1:]
    assert len(parts) == len({one.claim.chapter for one in checked})
    for part in parts:
        ids = re.findall(r'<tr role="row" id="(.*?)"', part)
        (chapter,) = {BY_ID[one].chapter for one in ids}
        assert f"<strong>{int(chapter[:2])}{'*' if chapter[2] == 'b' else ''}. " in part
        assert sum(int(count) for count in re.findall(r"[>·] ?\S (\d+) ", part.partition("</summary>")[0])) == len(ids)
    origin = claims.Origin("images", "1", "0", "cpu", "today", "9.9")
    outcome = claims.Outcome("12 %", Verdict.NOT_YET, origin, "run it")
    page = claims.to_html([claims.Checked(CLAIMS[0], outcome)], pages="nowhere")
    assert "Chapter 1</strong>" in page and "run it" in page.partition("where this comes from")[2]


def test_the_chart_counts_every_claim_once(checked):
    figure = claims.chart(checked)
    assert sum(sum(bar.x) for bar in figure.data) == len(CLAIMS)
    reached = sum(one.outcome.verdict not in (Verdict.NOT_YET, Verdict.NOT_HERE) for one in checked)
    assert f"{reached} of {len(CLAIMS)}" in figure.layout.title.text
    assert sum(sum(bar.x) for bar in figure.data if bar.marker.pattern.shape) == sum(
        one.outcome.smaller is not None for one in checked
    )


def test_every_outcome_has_a_place_in_the_chart():
    smaller = [None, Verdict.REPRODUCED, Verdict.PARTLY, Verdict.NOT_REPRODUCED]
    possible = {(verdict, None) for verdict in Verdict} | {(Verdict.NOT_YET, one) for one in smaller}
    assert {part for part, _, _ in display._PARTS} == possible


def test_signs_and_colours_of_verdicts():
    signs = display._SIGNS
    assert set(signs) == set(Verdict)
    assert len({sign for sign, _ in signs.values()}) == len(signs)
    for _, colour in signs.values():  # contrast of white on it, as WCAG 2 defines it
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        assert 1.05 / (float(np.dot(linear, [0.2126, 0.7152, 0.0722])) + 0.05) >= 4.5


def test_summary_counts_every_claim_once(checked):
    assert int(claims.summary(checked).to_numpy().sum()) == len(CLAIMS)
