"""What the benchmark's JSON says of the machine: enough to read the numbers, and nothing that names a computer."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

import nadtools as nt

_MACHINE = ("machine", "python_implementation", "python_version", "system")
_CPU = ("arch", "brand_raw", "count", "hz_advertised_friendly", "l2_cache_size", "l3_cache_size")


def pytest_configure(config: pytest.Config) -> None:
    if (size := os.environ.get("NADTOOLS_BENCHMARK", "full")) not in ("full", "smoke"):
        raise pytest.UsageError(f"got the size {size!r} of a benchmark; there are full and smoke")


# Optional: without pytest-benchmark the ordinary tests, which load this file too, still run.
@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    kept = {key: machine_info[key] for key in _MACHINE}
    cpu = {key: machine_info["cpu"].get(key, "unknown") for key in _CPU}
    versions = {"nadtools": nt.__version__, "torch": torch.__version__.partition("+")[0]}
    machine_info.clear()
    machine_info.update(kept, cpu=cpu, versions=versions, threads=torch.get_num_threads())


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_commit_info(config: pytest.Config, commit_info: dict[str, Any]) -> None:
    kept = {key: commit_info.get(key) for key in ("id", "time", "dirty")}
    commit_info.clear()
    commit_info.update(kept)
