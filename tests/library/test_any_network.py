"""Networks that nobody here has built: NADs at first try, or one clear sentence before any long work.

The first directions only, by gradients at 3 x 32 x 32. To be quick, one output is drawn in place of the average over
the output layer; of some networks, small ones, the average is taken.
"""

from __future__ import annotations

import time
import warnings

import pytest
from torch import nn
from torchvision import models

import nadtools as nt

SAMPLED = [
    "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_b1", "googlenet", "mnasnet0_5", "mnasnet0_75",
    "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf", "regnet_x_800mf",
    "regnet_y_400mf", "regnet_y_800mf", "resnet18", "resnet34", "resnet50", "resnext50_32x4d", "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5", "shufflenet_v2_x2_0", "swin_t", "swin_v2_t",
]  # fmt: skip
AVERAGED = ["shufflenet_v2_x0_5", "vision_transformer"]
WITHOUT_LINEAR_LAYER = ["squeezenet1_0", "squeezenet1_1"]
TOO_SMALL = ["alexnet", "inception_v3", "maxvit_t"]  # images of 32 x 32 pixels


def network(name: str) -> nn.Module:
    options = {"init_weights": False, "aux_logits": False} if name in ("googlenet", "inception_v3") else {}
    if name == "vision_transformer":  # whose head starts at zero
        return models.VisionTransformer(32, 8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, num_classes=1)
    return models.get_model(name, weights=None, num_classes=1, **options)


def first_ones(factory, number: int = 2, **arguments) -> nt.NADs:
    arguments = {"in_channels": 3, "device": "cpu", "progress": False, "num_directions": number} | arguments
    return nt.estimate_nads(factory, 2, "gradient", **arguments)


@pytest.mark.parametrize("name", [*SAMPLED, *AVERAGED])
def test_it_has_nads(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nads = first_ones(lambda: network(name), average_output_layer=name in AVERAGED)
    assert nads.vectors.shape == (2, 3, 32, 32)
    assert bool(nads.eigenvalues.isfinite().all()) and float(nads.eigenvalues[0]) > 0
    assert (nads.metadata["output_weight_variance"] is not None) == (name in AVERAGED)


@pytest.mark.parametrize("name", WITHOUT_LINEAR_LAYER)
def test_it_has_nads_and_its_output_is_sampled(name):
    with pytest.warns(UserWarning, match="does not end in a linear layer: its output layer is sampled"):
        nads = first_ones(lambda: network(name))
    assert float(nads.eigenvalues[0]) > 0


@pytest.mark.parametrize("name", TOO_SMALL)
def test_one_sentence_says_why_not_before_any_long_work(name):
    drawn = []

    def factory() -> nn.Module:
        drawn.append(time.perf_counter())
        return network(name)

    with pytest.raises(ValueError, match=r"does not accept images of shape \(3, 32, 32\).*image_size=\.\.\.\)"):
        first_ones(factory)
    assert len(drawn) == 1


def test_there_are_many():
    assert len(SAMPLED) + len(AVERAGED) + len(WITHOUT_LINEAR_LAYER) >= 25


TIMM = [
    "convmixer_768_32", "deit_tiny_patch16_224", "edgenext_xx_small", "efficientvit_b0", "ghostnet_050", "lcnet_050",
    "levit_128s", "mobilenetv4_conv_small", "mobilevit_xxs", "resmlp_12_224", "resnet18", "tinynet_e",
    "vit_tiny_patch16_224",
]  # fmt: skip


@pytest.mark.parametrize("name", TIMM)
def test_networks_of_timm_have_them_too(name):
    timm = pytest.importorskip("timm")
    options = {"img_size": 64} if name.startswith(("deit", "levit", "resmlp", "vit")) else {}
    zero = name.startswith("resmlp")  # its head

    def factory() -> nn.Module:
        return timm.create_model(name, num_classes=1, **options)

    nads = first_ones(factory, average_output_layer=zero, image_size=(64, 64))
    assert bool(nads.eigenvalues.isfinite().all()) and float(nads.eigenvalues[0]) > 0
    assert any("starts at zero" in note for note in nads.metadata.get("notes", [])) == zero
