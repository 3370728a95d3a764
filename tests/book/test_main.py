from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from companion import experiments
from companion.__main__ import main

from nadtools import estimation, storage

SMOKE = ["run", "atlas", "--architecture", "lenet", "--estimator", "gradient", "--scale", "smoke", "--device", "cpu"]
STEM = "atlas-lenet-gradient-smoke"

# Writes a checkpoint after every network, and takes a minute over the second one.
SLOW = """
import signal, sys, time
from nadtools import estimation
from companion.__main__ import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
estimation._SECONDS_BETWEEN_CHECKPOINTS = 0.0
fast = estimation._jacobian
def slow(plan, index):
    time.sleep(60 * index)
    return fast(plan, index)
estimation._jacobian = slow
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """A run of the command in a process of its own, as a user starts it."""
    folder = tmp_path_factory.mktemp("results")
    command = [sys.executable, "-m", "companion", *SMOKE, "--results", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done, folder / f"{STEM}.npz"


def test_run_writes_the_result_and_says_where(uninterrupted):
    done, path = uninterrupted
    assert str(path) in done.stdout
    assert experiments.read_record(path)["selectors"] == {"architecture": "lenet", "estimator": "gradient"}
    assert experiments.stale(path) == []


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)],
    ids=["kill -9", "Ctrl-C", "SIGTERM"],
)
def test_an_interrupted_run_goes_on_and_ends_the_same(uninterrupted, monkeypatch, tmp_path, number, code):
    command = [sys.executable, "-c", SLOW, *SMOKE, "--results", str(tmp_path)]
    errors = tmp_path / "stderr"
    with errors.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 120
        while not list(tmp_path.glob(".partial/*/moments.npz")):
            assert process.poll() is None, errors.read_text()
            assert time.monotonic() < until, "no checkpoint was written"
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(timeout=20) == code
    finally:
        process.kill()
        process.wait()
    if code > 0:
        assert "Traceback" not in errors.read_text()
        assert "goes on from here: python -m companion run atlas --architecture lenet" in errors.read_text()
    assert not (tmp_path / f"{STEM}.npz").exists()

    computed = []
    original = estimation._jacobian
    monkeypatch.setattr(estimation, "_jacobian", lambda plan, index: computed.append(index) or original(plan, index))
    assert main([*SMOKE, "--results", str(tmp_path)]) == 0
    assert computed == [1], "the first network was in the checkpoint"
    assert not (tmp_path / ".partial").exists()
    resumed, whole = (
        experiments.load("atlas", scale="smoke", results_dir=folder, architecture="lenet", estimator="gradient")
        for folder in (tmp_path, uninterrupted[1].parent)
    )
    assert experiments.read_record(tmp_path / f"{STEM}.npz")["resumed"] is True
    largest = float(whole.eigenvalues[0])
    # Batches are sized by timing, so gradients agree to float32 rounding; vectors are stored as float16.
    torch.testing.assert_close(resumed.eigenvalues, whole.eigenvalues, rtol=0, atol=1e-5 * largest)
    torch.testing.assert_close(resumed.covariance(), whole.covariance(), rtol=0, atol=1e-3 * largest)


def test_list_names_experiments_and_the_state_of_results(uninterrupted, capsys, tmp_path):
    _, path = uninterrupted
    arrays, metadata = storage.read_arrays(path)
    storage.write_arrays(tmp_path / path.name, arrays, metadata)
    metadata["record"]["parameters"]["num_networks"] = 3
    storage.write_arrays(tmp_path / "old.npz", arrays, metadata)
    (tmp_path / "damaged.npz").write_bytes(b"PK")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "link.npz").symlink_to(tmp_path / "nowhere")
    assert main(["list", "--results", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    lines = {line.split(":")[0].strip(): line for line in printed.splitlines()}
    assert "lenet | vgg11 | resnet18 | densenet121" in printed
    assert lines[path.name].endswith("up to date")
    assert "STALE" in lines["old.npz"]
    assert "num_networks: 3 in the file, 2 in the code" in lines["old.npz"]
    assert "is damaged" in lines["damaged.npz"]
    assert "is not a file" in lines["folder.npz"] and "there is no file" in lines["link.npz"]


@pytest.mark.parametrize(
    "command", [[], ["list"], ["claims"], ["run"], *(["run", name] for name in experiments.EXPERIMENTS)], ids=" ".join
)
def test_every_command_has_help(capsys, command):
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--help"])
    assert stopped.value.code == 0
    assert "usage: python -m companion" in capsys.readouterr().out


def test_list_of_an_empty_folder(capsys, tmp_path):
    assert main(["list", "--results", str(tmp_path / "none")]) == 0
    assert "No results in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["run"], "required: EXPERIMENT"),
        (["run", "atlantis"], "invalid choice: 'atlantis'"),
        (["run", "atlas", "--architecture", "lenet"], "required: --estimator"),
        (["run", "atlas", "--architecture", "alexnet", "--estimator", "secant"], "lenet"),
        ([*SMOKE[:-1], "abacus"], "got device 'abacus'"),
        ([*SMOKE, "--seed", "-1"], "seed=-1"),
        ([*SMOKE, "--seed", "two"], "invalid int value: 'two'"),
        ([*SMOKE, "--jobs", "0"], "num_jobs=0"),
        ([*SMOKE, "--results", "nowhere"], "'nowhere' does not exist"),
    ],
)
def test_wrong_usage_exits_with_2_and_one_message(monkeypatch, capsys, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NADTOOLS_RESULTS", str(tmp_path))
    try:
        code = main(arguments)
    except SystemExit as exit:  # as argparse leaves
        code = exit.code
    assert code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_no_wrong_usage(monkeypatch, capsys, tmp_path):
    def full(*_, **__):
        error = OSError(28, os.strerror(28))
        error.add_note("three rows are kept")
        raise error

    toy = experiments.Experiment("toy", "fills the disk", {}, lambda scale: {}, full)
    monkeypatch.setitem(experiments.EXPERIMENTS, "toy", toy)
    assert main(["run", "toy", "--results", str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert os.strerror(28) in printed and "three rows are kept" in printed
    assert not list(tmp_path.iterdir())


def test_a_run_without_selectors_and_with_processes(monkeypatch, tmp_path):
    seen = []

    def compute(parameters, session):
        seen.append((session.num_jobs, session.seed, str(session.device)))
        return {"a": np.zeros(1)}

    monkeypatch.setitem(
        experiments.EXPERIMENTS, "toy", experiments.Experiment("toy", "", {}, lambda scale: {}, compute)
    )
    handler = signal.getsignal(signal.SIGTERM)
    options = ["--jobs", "2", "--seed", "3", "--device", "cpu"]
    assert main(["run", "toy", *options, "--results", str(tmp_path)]) == 0
    assert seen == [(2, 3, "cpu")]
    assert signal.getsignal(signal.SIGTERM) is handler
    assert (tmp_path / "toy-laptop-seed3.npz").exists()
