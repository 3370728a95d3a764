"""Networks of torchvision: each has a closed form, or an error that names the layer without a rule."""

from __future__ import annotations

import re

import pytest
import torch
from small_networks import seeded
from torchvision import models

import nadtools as nt
from nadtools.analytic import NoRuleError

MAX, GATES, ALIKE = "max pooling", "gates as the constant", "channels that are shuffled"
MEANS = "the means that it subtracts"

# What is approximated beside activations.
WORK: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("squeezenet1_1", "resnet18", "resnet34", "resnet50", "resnext50_32x4d"), (MAX,)),
    **dict.fromkeys(("densenet121", "googlenet"), (MAX,)),
    **dict.fromkeys(("mobilenet_v2", "mnasnet0_5", "mnasnet1_0", "regnet_x_400mf", "regnet_x_800mf"), ()),
    **dict.fromkeys(("mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0", "regnet_y_400mf"), (GATES,)),
    **dict.fromkeys(("shufflenet_v2_x0_5", "shufflenet_v2_x1_0"), (MAX, ALIKE)),
    "convnext_tiny": (MEANS,),
    "vision_transformer": (MEANS, "attention as the average"),
}
REFUSED = {"swin_t": "shifted_window_attention", "swin_v2_t": "normalize|shifted_window_attention"}


def network(name: str) -> torch.nn.Module:
    if name == "vision_transformer":
        return models.VisionTransformer(32, 8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64)
    options = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    return models.get_model(name, weights=None, **options)


@pytest.mark.parametrize("name", WORK)
def test_it_has_a_closed_form(name):
    nads = nt.analytic_nads(seeded(lambda: network(name)), (32, 32), in_channels=3, num_directions=30)
    assert bool(nads.eigenvalues.isfinite().all()) and float(nads.eigenvalues[0]) > 0
    found = {note for note in nads.metadata["approximations"] if not note.endswith("for a signal of variance 1")}
    assert len(found) == len(WORK[name]) and all(any(one in note for note in found) for one in WORK[name]), found


@pytest.mark.parametrize("name", REFUSED)
def test_its_layer_without_a_rule_is_named(name):
    module = seeded(lambda: network(name))
    with pytest.raises(NoRuleError, match=REFUSED[name]) as caught:
        nt.analytic_nads(module, (32, 32), in_channels=3)
    (inside,) = re.findall(r" in (\S+) \(", str(caught.value))
    assert inside in dict(module.named_modules())


def test_there_are_many():
    assert len(WORK) + len(REFUSED) > 20
