from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from companion import atlas, experiments, stored

import nadtools as nt
from nadtools import storage

LENET = {"architecture": "lenet", "estimator": "secant"}


def toy_parameters(scale: str, flavour: str) -> dict[str, object]:
    return {"size": {"smoke": 2, "laptop": 3, "paper": 4}[scale], "flavour": flavour, "shape": (1, 2)}


def toy_compute(parameters, session):
    assert session.folder.is_dir(), "checkpoints need their folder"
    return {"numbers": np.arange(parameters["size"]) + session.seed}


TOY = experiments.Experiment("toy", "counts", {"flavour": ("plain", "odd")}, toy_parameters, toy_compute)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(experiments.EXPERIMENTS, "toy", TOY)


@pytest.fixture(scope="module")
def smoke_atlas(tmp_path_factory):
    """A smoke run of the atlas, and its file."""
    folder = tmp_path_factory.mktemp("results")
    return experiments.run("atlas", scale="smoke", device="cpu", results_dir=folder, progress=False, **LENET)


def with_record(path, folder, **changes):
    """A copy of a result whose record differs."""
    arrays, metadata = storage.read_arrays(path)
    metadata["record"] |= changes
    return storage.write_arrays(folder / path.name, arrays, metadata)


@pytest.mark.parametrize("experiment", experiments.EXPERIMENTS.values(), ids=lambda experiment: experiment.name)
def test_every_experiment_keeps_the_rules_of_the_registry(experiment):
    assert experiments.EXPERIMENTS[experiment.name] is experiment
    assert "." not in experiment.name
    taken = {"name", "command", "scale", "seed", "device", "num_jobs", "jobs", "results", "results_dir", "progress"}
    assert not taken & set(experiment.selectors), "a selector has the name of another option"
    for scale in ("smoke", "laptop", "paper"):
        first = {selector: known[0] for selector, known in experiment.selectors.items()}
        parameters = experiment.parameters(scale, **first)
        assert json.dumps(parameters) == json.dumps(experiment.parameters(scale, **first))


def test_parameters_of_the_atlas():
    counts = {
        scale: [
            experiments.EXPERIMENTS["atlas"].parameters(scale, architecture=name, estimator="gradient")["num_networks"]
            for name in ("lenet", "vgg11", "resnet18", "densenet121")
        ]
        for scale in ("smoke", "laptop", "paper")
    }
    assert counts == {"smoke": [2, 2, 2, 2], "laptop": [100, 20, 10, 5], "paper": [1000, 200, 100, 50]}
    parameters = experiments.EXPERIMENTS["atlas"].parameters
    assert parameters("smoke", architecture="resnet18", estimator="secant")["width"] == 0.25
    assert parameters("laptop", architecture="resnet18", estimator="secant")["width"] == 1.0
    assert parameters("laptop", architecture="resnet18", estimator="secant")["scale"] == 100.0
    assert "scale" not in parameters("laptop", architecture="resnet18", estimator="gradient"), "a gradient has no step"


def test_the_atlas_stores_what_estimate_nads_gives(smoke_atlas):
    assert smoke_atlas.name == "atlas-lenet-secant-smoke.npz"
    stored = experiments.load("atlas", scale="smoke", results_dir=smoke_atlas.parent, **LENET)
    assert isinstance(stored, nt.NADs)
    direct = nt.estimate_nads("lenet", 2, "secant", nt.device.DerivedSeed(0), device="cpu", progress=False)
    # The spectrum is kept in full.
    torch.testing.assert_close(stored.eigenvalues, direct.eigenvalues, rtol=1e-4, atol=1e-6 * direct.eigenvalues[0])
    assert bool(torch.isfinite(stored.split_half_overlap[:10]).all())
    # The vectors are rounded to float16: half a unit in the last of 11 bits, 5e-4, of each entry.
    assert float((stored.vectors[0] - direct.vectors[0]).norm()) < 1e-3
    assert storage.read_arrays(smoke_atlas)[0]["vectors"].dtype == np.float16
    assert not (smoke_atlas.parent / ".partial").exists(), "checkpoints are left"
    assert experiments.stale(smoke_atlas) == []


def test_the_record_says_where_a_result_comes_from(smoke_atlas):
    record = experiments.read_record(smoke_atlas)
    assert record["experiment"] == "atlas"
    assert record["scale"] == "smoke"
    assert record["selectors"] == LENET
    assert record["parameters"]["num_networks"] == 2
    assert (record["seed"], record["resumed"]) == (0, False)
    assert 0 < record["wall_seconds"] < 600
    assert record["device"].startswith("cpu")
    assert {"nadtools", "python", "torch", "torchvision", "numpy"} <= set(record["versions"])
    assert {"date", "revision", "num_jobs"} <= set(record)


def test_load_atlas_takes_the_largest_scale_but_no_smoke_unless_named(smoke_atlas, tmp_path):
    with pytest.raises(FileNotFoundError, match="run atlas --architecture lenet --estimator secant --scale laptop"):
        experiments.load_atlas("lenet", results_dir=smoke_atlas.parent)
    by_name = experiments.load_atlas("lenet", "secant", "smoke", results_dir=smoke_atlas.parent)
    assert by_name.metadata["num_networks"] == 2
    for scale in ("laptop", "paper"):  # the content does not matter here, but for its record
        arrays, metadata = storage.read_arrays(smoke_atlas)
        metadata["record"]["scale"] = scale
        storage.write_arrays(tmp_path / f"atlas-lenet-secant-{scale}.npz", arrays, metadata)
        found = experiments.load_atlas("lenet", results_dir=tmp_path)
        assert found.metadata["record"]["scale"] == scale
    assert experiments.load_atlas("lenet", scale="laptop", results_dir=tmp_path).metadata["record"]["scale"] == "laptop"
    with pytest.raises(ValueError, match=r"unknown architecture 'mlp'.*'lenet'"):
        experiments.load_atlas("mlp", results_dir=tmp_path)


def test_a_changed_parameter_is_reported(smoke_atlas, tmp_path):
    parameters = experiments.read_record(smoke_atlas)["parameters"]
    changed = {key: value for key, value in parameters.items() if key != "width"} | {"num_networks": 3, "old": 1}
    assert experiments.stale(with_record(smoke_atlas, tmp_path, parameters=changed)) == [
        "num_networks: 3 in the file, 2 in the code",
        "old: 1 in the file, nothing in the code",
        "width: nothing in the file, 1.0 in the code",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"experiment": "gone"}, "unknown experiment 'gone'"),
        ({"scale": "huge"}, "unknown scale 'huge'"),
        ({"selectors": {**LENET, "architecture": "alexnet"}}, "unknown architecture 'alexnet'"),
        ({"selectors": {"architecture": "lenet"}}, "needs estimator"),
        ({"seed": 1}, "file name: 'atlas-lenet-secant-smoke', expected 'atlas-lenet-secant-smoke-seed1'"),
    ],
)
def test_a_result_that_the_code_would_not_make_is_stale(smoke_atlas, tmp_path, change, message):
    (difference,) = experiments.stale(with_record(smoke_atlas, tmp_path, **change))
    assert message in difference


def test_a_change_in_the_code_makes_results_stale(toy, monkeypatch, tmp_path):
    path = experiments.run("toy", results_dir=tmp_path, flavour="odd")
    assert experiments.stale(path) == []

    def more(scale, flavour):
        return {**toy_parameters(scale, flavour), "size": 30}

    monkeypatch.setitem(experiments.EXPERIMENTS, "toy", dataclasses.replace(TOY, parameters=more))
    assert experiments.stale(path) == ["size: 3 in the file, 30 in the code"]


def test_files_without_a_record_are_refused(tmp_path):
    path = storage.write_arrays(tmp_path / "x.npz", {"a": np.zeros(2)}, {})
    with pytest.raises(ValueError, match="no record of an experiment"):
        experiments.stale(path)


def test_arrays_are_stored_too_and_seeds_apart(toy, tmp_path):
    first = experiments.run("toy", results_dir=tmp_path, flavour="plain")
    second = experiments.run("toy", results_dir=tmp_path, flavour="plain", seed=7)
    assert [first.name, second.name] == ["toy-plain-laptop.npz", "toy-plain-laptop-seed7.npz"]
    assert experiments.load("toy", results_dir=tmp_path, flavour="plain")["numbers"].tolist() == [0, 1, 2]
    assert experiments.load("toy", results_dir=tmp_path, flavour="plain", seed=7)["numbers"].tolist() == [7, 8, 9]
    assert experiments.read_record(second)["seed"] == 7


def test_a_renamed_result_is_not_taken_for_another(toy, tmp_path):
    path = experiments.run("toy", results_dir=tmp_path, flavour="plain")
    os.rename(path, tmp_path / "toy-odd-laptop.npz")
    with pytest.raises(ValueError, match="another result than its name says"):
        experiments.load("toy", results_dir=tmp_path, flavour="odd")


def test_checkpoints_outlive_a_failure_and_are_removed_after_success(toy, monkeypatch, tmp_path):
    seen = []

    def fails_once(parameters, session):
        seen.append(sorted(entry.name for entry in session.folder.iterdir()))
        if len(seen) == 1:
            (session.folder / "state").write_text("half")
            raise KeyboardInterrupt
        return {"numbers": np.zeros(1)}

    monkeypatch.setitem(experiments.EXPERIMENTS, "toy", dataclasses.replace(TOY, compute=fails_once))
    with pytest.raises(KeyboardInterrupt):
        experiments.run("toy", results_dir=tmp_path, flavour="odd")
    assert not list(tmp_path.glob("*.npz"))
    path = experiments.run("toy", results_dir=tmp_path, flavour="odd")
    assert seen == [[".gitignore"], [".gitignore", "state"]]
    assert experiments.read_record(path)["resumed"] is True
    assert list(tmp_path.iterdir()) == [path], "checkpoints are left"


def test_other_parameters_do_not_find_the_checkpoint(toy, monkeypatch, tmp_path):
    seen = []

    def interrupted(parameters, session):
        seen.append((session.folder / "state").exists())
        (session.folder / "state").write_text("half")
        raise KeyboardInterrupt

    for size in (1, 2):
        changed = dataclasses.replace(
            TOY, compute=interrupted, parameters=lambda scale, flavour, size=size: {"n": size}
        )
        monkeypatch.setitem(experiments.EXPERIMENTS, "toy", changed)
        with pytest.raises(KeyboardInterrupt):
            experiments.run("toy", results_dir=tmp_path, flavour="odd")
    assert seen == [False, False]


def test_a_second_run_of_the_same_says_so_and_leaves_the_first_one_alone(toy, monkeypatch, tmp_path):
    def first(parameters, session):
        (session.folder / "state").touch()
        monkeypatch.setitem(experiments.EXPERIMENTS, "toy", TOY)
        with pytest.raises(BlockingIOError, match=r"another process is at work on toy-odd-laptop.npz .* wait until"):
            experiments.run("toy", results_dir=tmp_path, flavour="odd")
        # Another flavour is another result; the same of other code has a folder of its own.
        experiments.run("toy", results_dir=tmp_path, flavour="plain")
        changed = dataclasses.replace(TOY, parameters=lambda scale, flavour: {"size": 1})
        monkeypatch.setitem(experiments.EXPERIMENTS, "toy", changed)
        experiments.run("toy", results_dir=tmp_path, flavour="odd")
        assert (session.folder / "state").exists()
        return {"numbers": np.zeros(5)}

    monkeypatch.setitem(experiments.EXPERIMENTS, "toy", dataclasses.replace(TOY, compute=first))
    path = experiments.run("toy", results_dir=tmp_path, flavour="odd")
    assert len(storage.read_arrays(path)[0]["numbers"]) == 5 and not (tmp_path / ".partial").exists()


HOLDS = """
import sys, time
from pathlib import Path
from companion.stored import _working_folder
with _working_folder(Path(sys.argv[1]), {}) as folder:
    (folder / "state").touch()
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_killed_run_holds_nothing(tmp_path):
    path = tmp_path / "toy.npz"
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(BlockingIOError, match="at work"), stored._working_folder(path, {}):
            pytest.fail("two at once")
        process.kill()
    with stored._working_folder(path, {}) as folder:
        assert (folder / "state").exists(), "what the killed run left is taken up"


def test_a_result_that_has_no_room_is_kept_elsewhere(toy, monkeypatch, tmp_path):
    results, other = tmp_path / "results", tmp_path / "other"
    results.mkdir()
    other.mkdir()
    replace = os.replace

    def full(source, target):
        if results in target.parents:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        patch.setattr(tempfile, "tempdir", str(other))
        with pytest.raises(
            OSError, match=r"toy-odd-laptop.npz could not be written .* The result is kept as"
        ) as caught:
            experiments.run("toy", results_dir=results, flavour="odd")
    (kept,) = other.rglob("*.npz")
    assert str(kept) in str(caught.value) and f"move it to {results}" in str(caught.value)
    assert not list(results.glob("*.npz"))
    replace(kept, results / kept.name)
    assert experiments.load("toy", results_dir=results, flavour="odd")["numbers"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "atlantis"}, "unknown experiment 'atlantis'; known are 'atlas'"),
        ({"scale": "huge"}, "unknown scale 'huge'; known are 'smoke', 'laptop', 'paper'"),
        ({"architecture": "alexnet"}, "unknown architecture 'alexnet'; atlas knows 'lenet'"),
        ({"estimator": "mixed"}, "unknown estimator 'mixed'; atlas knows 'secant', 'gradient'"),
        ({"colour": "blue"}, "no selector 'colour'; it has 'architecture', 'estimator'"),
        ({"seed": -1}, "seed=-1"),
        ({"device": "abacus"}, "abacus"),
        ({"num_jobs": 0}, "num_jobs=0"),
        ({"results_dir": "nowhere"}, "'nowhere' does not exist"),
    ],
)
def test_bad_input_is_refused_before_the_work(monkeypatch, tmp_path, options, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(atlas, "estimate_nads", lambda **_: pytest.fail("the work began"))
    arguments = {"name": "atlas", "results_dir": tmp_path, **LENET, **options}
    with pytest.raises(ValueError, match=message):
        experiments.run(arguments.pop("name"), **arguments)
    assert not list(tmp_path.iterdir())


def test_a_missing_selector_is_named(tmp_path):
    with pytest.raises(ValueError, match="atlas needs estimator; choose one of 'secant', 'gradient'"):
        experiments.run("atlas", results_dir=tmp_path, architecture="lenet")


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(toy, monkeypatch, tmp_path):
    # Root may write everywhere; a file where the folder of checkpoints should be stops even root.
    (tmp_path / ".partial").write_text("")
    monkeypatch.setitem(
        experiments.EXPERIMENTS, "toy", dataclasses.replace(TOY, compute=lambda *_: pytest.fail("the work began"))
    )
    with pytest.raises(ValueError, match="cannot be written"):
        experiments.run("toy", results_dir=tmp_path, flavour="odd")


def test_the_folder_of_results(monkeypatch, tmp_path):
    monkeypatch.delenv("NADTOOLS_RESULTS", raising=False)
    book = Path(stored.__file__).resolve().parents[1]
    assert experiments.results_folder() == book / "results", "beside the companion, whatever the working folder is"
    monkeypatch.setenv("NADTOOLS_RESULTS", str(tmp_path / "elsewhere"))
    assert experiments.results_folder() == tmp_path / "elsewhere"
    assert experiments.results_folder(tmp_path / "given") == tmp_path / "given"
