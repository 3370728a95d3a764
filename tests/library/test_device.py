from __future__ import annotations

import pytest
import torch

from nadtools.checks import check_seed
from nadtools.device import derive_seed, full_precision, generator, isolated_random_state, resolve_device


def test_none_is_the_best_device_there_is():
    assert resolve_device(None).type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["cuda:99", "nonsense", "meta", "mps", 3.5])
def test_a_device_that_does_not_exist_is_refused(name):
    with pytest.raises(ValueError, match=r"got device .*(expected|use device)"):
        resolve_device(name)


def test_seeds_are_non_negative_ints():
    assert check_seed(7) == 7
    with pytest.raises(ValueError, match="seed=-1"):
        check_seed(-1)
    with pytest.raises(TypeError, match="float"):
        check_seed(1.5)  # type: ignore[arg-type]


def test_derived_seeds_differ_by_unit_also_in_the_bits_that_the_cpu_uses():
    seeds = [derive_seed(seed, index) for seed in range(20) for index in range(500)]
    assert len({seed & 0xFFFFFFFF for seed in seeds}) > 9_990  # 10,000 draws from 2^32 collide 0.01 times on average
    assert derive_seed(3, 4) == derive_seed(3, 4) != derive_seed(4, 3)


def test_generator_is_bound_to_its_unit():
    cpu = torch.device("cpu")
    first, again, other = (torch.randn(5, generator=generator(cpu, 0, unit)) for unit in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_the_global_state_is_put_back_even_after_an_error():
    before = torch.get_rng_state()

    def fail() -> None:
        with isolated_random_state(5):
            torch.rand(3)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.equal(torch.get_rng_state(), before)


def test_full_precision_restores_the_setting():
    before = torch.backends.cudnn.allow_tf32
    with full_precision():
        assert not torch.backends.cudnn.allow_tf32 and not torch.backends.cuda.matmul.allow_tf32
    assert torch.backends.cudnn.allow_tf32 == before
