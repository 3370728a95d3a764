from __future__ import annotations

import copy
import math

import pytest
import torch
import torchvision
from torch import Tensor, nn

import nadtools as nt
from nadtools.symmetries import apply_symmetry, symmetries_of

DEEP = ("vgg11", "resnet18", "densenet121")
BEYOND = ("vit", "mixer", "convnext", "lstm")  # what is no convolutional network of the papers
POOLING = (nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)


def num_parameters(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def distance(outputs: Tensor, expected: Tensor) -> float:
    """Largest difference, in units of how much the expected outputs differ between images."""
    spread = expected.std(0)
    assert float(spread.min()) > 0
    return float(((outputs - expected) / spread).abs().max())


def layers(network: nn.Module, kind: type[nn.Module] | tuple[type[nn.Module], ...]) -> list[nn.Module]:
    return [module for module in network.modules() if isinstance(module, kind)]


def test_parameter_counts_are_those_of_the_text():
    assert num_parameters(nt.build("logreg", num_classes=1)) == 1024 + 1
    assert num_parameters(nt.build("mlp")) == (1024 * 100 + 100) + (100 * 20 + 20) + (20 * 2 + 2)
    lenet = (6 * 25 + 6) + (16 * 6 * 25 + 16) + (400 * 120 + 120) + (120 * 84 + 84) + (84 * 2 + 2)
    assert num_parameters(nt.build("lenet")) == lenet
    # Without pooling the last map is 24x24 instead of 5x5, and only the first fully connected layer grows.
    assert num_parameters(nt.build("lenet", pooling=False)) == lenet + 16 * (24 * 24 - 25) * 120


def test_hidden_layers_of_the_mlp_can_be_chosen():
    network = nt.build("mlp", in_channels=4, hidden=(200, 50), seed=3)
    sizes = [(layer.in_features, layer.out_features) for layer in layers(network, nn.Linear)]
    assert sizes == [(4096, 200), (200, 50), (50, 2)]
    assert [*map(type, network)] == [nn.Flatten, nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    assert num_parameters(nt.build("mlp", hidden=[8], width=0.5)) == (1024 * 4 + 4) + (4 * 2 + 2)
    given, default = nt.build("mlp", hidden=(100, 20)), nt.build("mlp")
    assert torch.equal(given.output.weight, default.output.weight)
    with pytest.raises(ValueError, match=r"hidden=\(200,\) for 'lenet'"):
        nt.build("lenet", hidden=(200,))
    with pytest.raises(ValueError, match=r"hidden\[1\]=0"):
        nt.build("mlp", hidden=(200, 0))
    with pytest.raises(TypeError, match=r"hidden=200 of type int; expected a sequence"):
        nt.build("mlp", hidden=200)


@pytest.mark.parametrize("name", nt.available())
@pytest.mark.parametrize(
    ("channels", "classes", "size", "width"),
    [(1, 5, (32, 32), 1.0), (3, 10, (40, 32), 0.5), (2, 1, (33, 40), 0.01), (1, 2, (32, 33), 1.3)],
)
def test_any_width_channels_classes_and_size(name, channels, classes, size, width):
    network = nt.build(name, in_channels=channels, num_classes=classes, width=width, image_size=size).eval()
    assert isinstance(network.output, nn.Linear) and list(network.named_children())[-1][0] == "output"
    with torch.no_grad():
        assert network(torch.zeros(2, channels, *size)).shape == (2, classes)


@pytest.mark.parametrize(
    ("name", "options", "least"),
    [
        ("lenet", {}, 16),
        ("lenet", {"pooling": False}, 9),
        ("vgg11", {}, 32),
        ("vgg11", {"pooling": False}, 1),
        ("resnet18", {}, 1),
        ("densenet121", {}, 8),
        ("densenet121", {"pooling": False}, 1),
        ("vit", {}, 8),
        ("mixer", {"patch_size": 5}, 5),
        ("convnext", {}, 8),
        ("lstm", {}, 1),
    ],
)
def test_the_smallest_image_is_the_one_that_the_error_names(name, options, least):
    network = nt.build(name, width=0.1, image_size=(least, least + 1), **options).eval()
    assert network(torch.zeros(2, 1, least, least + 1)).shape == (2, 2)
    if least > 1:
        for call in (nt.build, nt.symmetry_group):
            with pytest.raises(ValueError, match=rf"expected at least \({least}, {least}\)"):
                call(name, image_size=(least + 1, least - 1), **options)


@pytest.mark.parametrize("name", BEYOND)
def test_gradients_beyond_convolutions_reach_the_input_and_nearly_every_parameter(name):
    options = {"class_token": True, "depth": 2} if name == "vit" else {"depth": 2}
    network = nt.build(name, **options)
    x = normal(4, 1, 32, 32).requires_grad_()
    nn.functional.cross_entropy(network(x), torch.tensor([0, 1, 0, 1])).backward()
    assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in (x, *network.parameters()))
    assert float(x.grad.abs().max()) > 0
    assert all(float(p.grad.abs().max()) > 0 for p in network.parameters() if p.ndim > 1)
    assert float(network.output.weight.detach().abs().min()) > 0  # the head is drawn, not zero
    assert num_parameters(network) < num_parameters(nt.build(name, **{**options, "depth": 3}))


@pytest.mark.parametrize("name", BEYOND)
def test_networks_beyond_convolutions_have_nads_and_are_trained_by_name(name):
    options = {"width": 0.25, "depth": 1}
    nads = nt.estimate_nads(name, 2, image_size=(16, 16), device="cpu", progress=False, **options)
    assert nads.metadata["symmetries"] == ("none" if name == "lstm" else "square")
    config = nt.TrainConfig(1, 1e-3, batch_size=16, optimizer="adamw")
    sizes = {"num_train": 32, "num_test": 16, "config": config}
    table = nt.sweep(name, [nads[0]], device="cpu", progress=False, **sizes, **options)
    assert table["test_loss"].notna().all()
    if name == "lstm":
        with pytest.raises(nt.analytic.NoRuleError, match=r"features \(|in features"):
            nt.analytic_nads(name, (16, 16), **options)
    else:
        # Means over tokens see one patch: the images that repeat with it. Layers that mix tokens see more.
        values = nt.analytic_nads(name, (16, 16), **options).eigenvalues
        seen = {"vit": 64, "mixer": 256, "convnext": 64}[name]
        assert int((values > 1e-12 * values[0]).sum()) == seen


def test_patches_are_as_large_as_asked_for_and_positions_and_class_token_can_be_chosen():
    x = normal(2, 1, 32, 32)
    with torch.no_grad():
        for name, patch, options in (("vit", 8, {}), ("mixer", 4, {"patch_size": 4})):
            patches = nt.build(name, **options).features.patches
            assert patches.kernel_size == patches.stride == (patch, patch)
            assert patches(x).flatten(2).shape == (2, 64, (32 // patch) ** 2)
        exchanged = torch.cat([x[..., 16:], x[..., :16]], dim=3)  # whole patches change places
        placed, placeless, token = (
            nt.build("vit", **options).eval().double()
            for options in ({}, {"position_embedding": 0}, {"class_token": True, "position_embedding": 0})
        )
        for network, same in ((placed, False), (placeless, True), (token, True)):
            assert torch.allclose(network(x.double()), network(exchanged.double()), rtol=1e-9) == same
        larger = nt.build("vit", position_embedding=0.5).features.blocks.pos_embedding
        assert torch.allclose(larger, 25 * placed.features.blocks.pos_embedding.float())
        assert "pos_embedding" not in dict(placeless.features.blocks.named_parameters())
        assert token.features.class_token.shape == (1, 1, 64) and placed.features.class_token is None


def test_an_lstm_reads_rows_from_top_to_bottom_and_its_layers_can_be_chosen():
    network = nt.build("lstm", depth=2, width=0.5, in_channels=3).eval()
    assert (network.features.lstm.input_size, network.features.lstm.num_layers) == (3 * 32, 2)
    assert network.output.in_features == 64
    x = normal(1, 3, 32, 32).requires_grad_()
    (gradient,) = torch.autograd.grad(network(x)[0, 0], x)
    energy = gradient.square().sum((0, 1, 3))
    assert float(energy[-1]) > 100 * float(energy[0])  # at initialisation it forgets


def test_width_scales_channels():
    layer = nt.build("lenet", width=0.5).get_submodule("convolution2")
    assert (layer.in_channels, layer.out_channels) == (3, 8)
    vgg, resnet, dense = (layers(nt.build(name, width=0.25), (nn.Conv2d, nn.Linear)) for name in DEEP)
    assert [getattr(layer, "out_channels", 0) for layer in vgg[:8]] == [16, 32, 64, 64, 128, 128, 128, 128]
    assert [layer.out_features for layer in vgg[8:]] == [128, 128, 2]
    assert (resnet[0].out_channels, resnet[-1].in_features) == (16, 128)
    # Growth 8: 16 + 6 * 8 channels halved, + 12 * 8 halved, + 24 * 8 halved, + 16 * 8.
    assert (dense[0].out_channels, dense[1].out_channels, dense[2].out_channels) == (16, 32, 8)
    assert dense[-1].in_features == (((16 + 48) // 2 + 96) // 2 + 192) // 2 + 128


def test_deep_parameter_counts_are_those_of_torchvision():
    """But for the first convolution (7x7 there), DenseNet's first normalisation and VGG's fully connected layers."""
    with torch.device("meta"):
        vgg = torchvision.models.vgg11_bn()
        resnet = torchvision.models.resnet18(num_classes=10)
        dense = torchvision.models.densenet121(num_classes=10)
    ours = {name: nt.build(name, in_channels=3, num_classes=10) for name in DEEP}
    assert num_parameters(ours["vgg11"].features) == num_parameters(vgg.features)
    assert num_parameters(ours["vgg11"]) == num_parameters(vgg.features) + 2 * (512 * 512 + 512) + (512 * 10 + 10)
    first = 64 * 3 * (7 * 7 - 3 * 3)
    assert num_parameters(ours["resnet18"]) == num_parameters(resnet) - first == 11_173_962
    assert num_parameters(ours["densenet121"]) == num_parameters(dense) - first - 2 * 64 == 6_956_298


def _with_the_weights_of(source: nn.Module, target: nn.Module) -> nn.Module:
    """Weights copied in order, whatever their names."""
    values = source.state_dict().values()
    target.load_state_dict(dict(zip(target.state_dict(), values, strict=True)))
    return target.eval()


def _torchvision_at_32x32(name: str) -> nn.Module:
    """torchvision's model, without values, with the changes for small images that the text names."""
    with torch.device("meta"):
        model = {
            "vgg11": torchvision.models.vgg11_bn,
            "resnet18": torchvision.models.resnet18,
            "densenet121": torchvision.models.densenet121,
        }[name](num_classes=10)
    model.to_empty(device="cpu")
    first = nn.Conv2d(3, 64, kernel_size=3, padding=1, bias=False)
    if name == "resnet18":
        model.conv1, model.maxpool = first, nn.Identity()
    elif name == "densenet121":
        model.features.conv0 = first
        for layer in ("norm0", "relu0", "pool0"):
            delattr(model.features, layer)
    else:
        model.avgpool = nn.Identity()
        model.classifier[0], model.classifier[3] = nn.Linear(512, 512), nn.Linear(512, 512)
        model.classifier[6] = nn.Linear(512, 10)
    return model


@pytest.mark.parametrize("name", DEEP)
def test_deep_networks_are_torchvisions_functions(name):
    network = nt.build(name, in_channels=3, num_classes=10).eval().double()
    x = normal(2, 3, 32, 32, dtype=torch.float64)
    with torch.random.fork_rng(), torch.no_grad():
        model = _with_the_weights_of(network, _torchvision_at_32x32(name).double())
        assert distance(network(x), model(x)) < 1e-9


@pytest.mark.parametrize("name", ["lenet", *DEEP])
def test_without_pooling_only_the_first_fully_connected_layer_grows(name):
    pooled, bare = (nt.build(name, width=0.125, pooling=pooling) for pooling in (True, False))
    assert layers(pooled, POOLING) and not layers(bare, POOLING)
    convolutions = [[(c.weight.shape, c.stride) for c in layers(net, nn.Conv2d)] for net in (pooled, bare)]
    assert convolutions[0] == convolutions[1]
    before, after = (layers(net, nn.Linear) for net in (pooled, bare))
    # The last map, without and with pooling: ResNet-18's three strided convolutions stay.
    growth = {"lenet": 24**2 / 5**2, "vgg11": 32**2, "resnet18": 4**2, "densenet121": 32**2}[name]
    assert after[0].in_features == before[0].in_features * growth
    assert [layer.weight.shape for layer in before[1:]] == [layer.weight.shape for layer in after[1:]]
    with torch.no_grad():
        assert bare.eval()(torch.zeros(1, 1, 32, 32)).shape == (1, 2)


def test_without_strides_the_maps_keep_their_size():
    strided, bare = nt.build("resnet18", width=0.125), nt.build("resnet18", width=0.125, strides=False)
    assert sum(layer.stride == (2, 2) for layer in layers(strided, nn.Conv2d)) == 6  # three, each with its shortcut
    assert all(layer.stride == (1, 1) for layer in layers(bare, nn.Conv2d))
    # Neither the weights nor their names or initial values depend on strides.
    first, second = strided.state_dict(), bare.state_dict()
    assert list(first) == list(second) and all(torch.equal(first[key], second[key]) for key in first)
    flat = nt.build("resnet18", width=0.125, strides=False, pooling=False, image_size=(12, 10)).eval()
    assert flat.output.in_features == 64 * 12 * 10
    assert flat(torch.zeros(2, 1, 12, 10)).shape == (2, 2)


def test_pooling_before_the_relu_is_the_same_function():
    network, x = nt.build("lenet", seed=3), torch.randn(4, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    h = nn.functional.max_pool2d(nn.functional.relu(network.convolution1(x)), 2)
    h = nn.functional.max_pool2d(nn.functional.relu(network.convolution2(h)), 2).flatten(1)
    h = nn.functional.relu(network.linear2(nn.functional.relu(network.linear1(h))))
    torch.testing.assert_close(network(x), network.output(h))


@pytest.mark.parametrize("name", nt.available())
def test_a_seed_is_a_network(name):
    first, again, other = (nt.build(name, width=0.25, seed=s).state_dict() for s in (0, 0, 1))
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not torch.equal(first["output.weight"], other["output.weight"])


@pytest.mark.parametrize("init", ["pytorch", "torchvision"])
@pytest.mark.parametrize("name", DEEP)
def test_evaluation_mode_at_initialisation(name, init):
    """Batch normalisation starts as the identity, so images do not depend on their batch; the input is not written."""
    network = nt.build(name, width=0.25, init=init).eval().double()
    x = normal(3, 1, 32, 32, dtype=torch.float64)
    before = x.clone()
    with torch.no_grad():
        together, alone = network(x), torch.cat([network(image[None]) for image in x])
    assert torch.equal(x, before)
    assert bool(torch.isfinite(together).all())
    assert distance(alone, together) < 1e-9
    for layer in layers(network, nn.BatchNorm2d):
        assert bool((layer.weight == 1).all() and (layer.bias == 0).all())
        assert bool((layer.running_mean == 0).all() and (layer.running_var == 1).all())


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", DEEP)
def test_gradients_reach_the_input_and_every_parameter(name, training):
    network = nt.build(name, width=0.25).train(training)
    x = normal(4, 1, 32, 32).requires_grad_()
    with torch.random.fork_rng():  # dropout draws from the global generator
        torch.manual_seed(0)
        nn.functional.cross_entropy(network(x), torch.tensor([0, 1, 0, 1])).backward()
    # In training mode, normalisation subtracts a mean in which the bias of the convolution before it is contained.
    cancelled = {id(layer.bias) for layer in layers(network, nn.Conv2d)} if training else set()
    for parameter in (x, *network.parameters()):
        assert parameter.grad is not None and bool(torch.isfinite(parameter.grad).all())
        assert id(parameter) in cancelled or float(parameter.grad.abs().max()) > 0


def _check_law(values: Tensor, law: tuple[str, float]) -> None:
    """Mean and variance within five standard errors, and the shape of the tails.

    The variance of n draws has a relative standard error of sqrt((kurtosis - 1) / n), with kurtosis 9/5 and 3.
    """
    kind, scale = law
    values = values.detach().double().flatten()
    n, largest = len(values), float(values.abs().max())
    if scale == 0:
        assert largest == 0
        return
    std, spread = (scale / math.sqrt(3), 0.8) if kind == "uniform" else (scale, 2.0)
    assert abs(float(values.mean())) < 5 * std / math.sqrt(n)
    assert abs(float(values.square().mean()) / std**2 - 1) < 5 * math.sqrt(spread / n)
    if kind == "uniform":
        # n draws all miss the outermost 20/n of the interval with probability exp(-20).
        assert (1 - min(20 / n, 1)) * scale <= largest <= scale * (1 + 1e-6)
    elif n > 1000:
        assert largest > 2.5 * std  # beyond any uniform of that variance: all miss it with probability 0.988^n


def _laws(name: str, init: str, layer: nn.Conv2d | nn.Linear) -> tuple[tuple[str, float], tuple[str, float]]:
    """What the text says of a layer's weights and of its bias: the bound of a uniform law, or a standard deviation."""
    area = math.prod(layer.kernel_size) if isinstance(layer, nn.Conv2d) else 1
    inputs, outputs = layer.weight.shape[1] * area, layer.weight.shape[0] * area
    default = ("uniform", inputs**-0.5)
    if isinstance(layer, nn.Conv2d):
        if name == "vgg11" or (name, init) == ("resnet18", "torchvision"):
            return ("normal", math.sqrt(2 / outputs)), ("normal", 0)
        if (name, init) == ("densenet121", "torchvision"):
            return ("normal", math.sqrt(2 / inputs)), ("normal", 0)
    elif init == "torchvision":
        if name == "vgg11":
            return ("normal", 0.01), ("normal", 0)
        if name == "densenet121":
            return default, ("normal", 0)
    return default, default


@pytest.mark.parametrize(
    ("name", "init"),
    [(name, "pytorch") for name in nt.available()] + [(name, "torchvision") for name in DEEP],
)
def test_every_layers_initialisation_is_the_stated_one(name, init):
    network = nt.build(name, num_classes=10, init=init)
    found = layers(network, (nn.Conv2d, nn.Linear))
    number = {"logreg": 1, "mlp": 3, "lenet": 5, "vgg11": 8 + 3, "resnet18": 17 + 3 + 1, "densenet121": 121}
    # Patches and output; four blocks of two layers beside attention, or of four; 2 + 2 blocks of three; output.
    number |= {"vit": 2 + 4 * 3, "mixer": 2 + 4 * 4, "convnext": 3 + 4 * 3, "lstm": 1}
    assert len(found) == number[name]
    if name == "vit":
        _check_law(network.features.blocks.pos_embedding, ("normal", 0.02))
        inside = {id(layer) for layer in layers(network.features.blocks, nn.Linear)}
        found = [layer for layer in found if id(layer) not in inside]
    for layer in found:
        weight, bias = _laws(name, init, layer)
        _check_law(layer.weight, weight)
        if layer.bias is not None:
            _check_law(layer.bias, bias)


@pytest.mark.parametrize("name", DEEP)
def test_torchvisions_own_models_follow_the_laws_of_init_torchvision(name):
    """The premise of the test above, measured on what torchvision builds."""
    constructor = {
        "vgg11": torchvision.models.vgg11_bn,
        "resnet18": torchvision.models.resnet18,
        "densenet121": torchvision.models.densenet121,
    }[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = constructor(num_classes=10)
    for layer in layers(model, (nn.Conv2d, nn.Linear)):
        weight, bias = _laws(name, "torchvision", layer)
        _check_law(layer.weight[:512], weight)
        if layer.bias is not None:
            _check_law(layer.bias, bias)


def _rearranged(network: nn.Module, symmetry: str, map_size: tuple[int, ...]) -> nn.Module:
    """The network whose weights are rearranged so that it gives on g(x) what the original gives on x.

    Filters are moved, and so are the weights of the first fully connected layer, which sees maps of that size.
    """
    moved = copy.deepcopy(network)
    for layer in layers(moved, nn.Conv2d):
        layer.weight.copy_(apply_symmetry(layer.weight.clone(), symmetry))
    first = layers(moved, nn.Linear)[0].weight
    first.copy_(apply_symmetry(first.clone().view(len(first), -1, *map_size), symmetry).reshape(first.shape))
    return moved


def _violation(network: nn.Module, image_size: tuple[int, int], symmetry: str) -> float:
    """Distance of f'(g x) from f(x), with f' the rearranged network."""
    network = copy.deepcopy(network).double().eval().requires_grad_(False)
    # Channel by channel, normalisation and its affine map may be anything: make them so.
    for index, layer in enumerate(layers(network, nn.BatchNorm2d)):
        noise = normal(4, layer.num_features, seed=index, dtype=torch.float64)
        for values, change in zip((layer.weight, layer.bias, layer.running_mean), 0.1 * noise, strict=False):
            values.add_(change)
        layer.running_var.mul_((0.1 * noise[3]).exp())
    seen: list[Tensor] = []
    handle = network.flatten.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    x = normal(3, 1, *image_size, seed=1, dtype=torch.float64)
    expected = network(x)
    handle.remove()
    moved = _rearranged(network, symmetry, seen[0].shape[-2:])
    return distance(moved(apply_symmetry(x, symmetry)), expected)


SYMMETRIC = [
    ("logreg", (32, 32), {}, "square"),
    ("mlp", (32, 32), {}, "square"),
    ("mlp", (6, 9), {}, "reflections"),
    ("lenet", (32, 32), {}, "square"),
    ("lenet", (28, 32), {}, "reflections"),
    ("lenet", (33, 33), {}, "transpose"),
    ("lenet", (33, 33), {"pooling": False}, "square"),
    ("vgg11", (32, 32), {}, "square"),
    ("vgg11", (32, 64), {}, "reflections"),
    ("vgg11", (33, 33), {}, "transpose"),
    ("vgg11", (9, 9), {"pooling": False}, "square"),
    ("densenet121", (32, 32), {}, "square"),
    ("densenet121", (8, 16), {}, "reflections"),
    ("densenet121", (12, 12), {}, "transpose"),
    ("densenet121", (6, 6), {"pooling": False}, "square"),
    ("resnet18", (32, 32), {}, "transpose"),
    ("resnet18", (33, 33), {}, "square"),
    ("resnet18", (9, 17), {}, "reflections"),
    ("resnet18", (17, 17), {"pooling": False}, "square"),
    ("resnet18", (16, 16), {"pooling": False}, "transpose"),
    ("resnet18", (32, 32), {"strides": False}, "square"),
    ("resnet18", (10, 10), {"strides": False, "pooling": False}, "square"),
]


@pytest.mark.parametrize(("name", "size", "options", "group"), SYMMETRIC)
def test_laws_are_invariant_under_the_claimed_group(name, size, options, group):
    """Rearranging independent, equally distributed weights leaves the law of a network unchanged."""
    assert nt.symmetry_group(name, size, **options) == group
    network = nt.build(name, num_classes=3, width=0.125 if name in DEEP else 1, image_size=size, seed=1, **options)
    for symmetry in symmetries_of(group):
        # Rounding in float64, through at most 121 layers.
        assert _violation(network, size, symmetry) < 1e-9, symmetry


def _exchanged(network: nn.Module, name: str, symmetry: str, grid: tuple[int, int]) -> nn.Module:
    """The network of patches whose weights are rearranged: inside the patches, and what belongs to their places."""
    moved = copy.deepcopy(network)
    for layer in layers(moved, nn.Conv2d):
        layer.weight.copy_(apply_symmetry(layer.weight.clone(), symmetry))
    order = apply_symmetry(torch.arange(math.prod(grid)).view(grid), symmetry).flatten()
    if name == "vit":
        positions = moved.features.blocks.pos_embedding
        first = positions.shape[1] - len(order)  # behind the class token
        positions.copy_(torch.cat([positions[:, :first], positions[:, first:][:, order]], dim=1))
    elif name == "mixer":
        for block in list(moved.features.blocks)[:-1]:
            before, _, behind = block.tokens
            before.weight.copy_(before.weight[:, order].clone())
            behind.weight.copy_(behind.weight[order].clone())
            behind.bias.copy_(behind.bias[order].clone())
    return moved


def _violation_of_patches(name: str, size: tuple[int, int], symmetry: str, **options) -> float:
    network = nt.build(name, num_classes=3, image_size=size, seed=1, **options).double().eval().requires_grad_(False)
    if name == "convnext":  # whose branches would be too small to be seen
        for key, scale in network.named_parameters():
            if key.endswith("layer_scale"):
                scale.fill_(1.0)
    x = normal(3, 1, *size, seed=1, dtype=torch.float64)
    patch = options.get("patch_size", 8)
    moved = _exchanged(network, name, symmetry, (size[0] // patch, size[1] // patch))
    return distance(moved(apply_symmetry(x, symmetry)), network(x))


@pytest.mark.parametrize(
    ("name", "size", "options", "group"),
    [
        ("vit", (32, 32), {}, "square"),
        ("vit", (32, 32), {"patch_size": 4, "class_token": True}, "square"),
        ("vit", (16, 32), {}, "reflections"),
        ("vit", (33, 33), {}, "transpose"),
        ("vit", (33, 33), {"patch_size": 11}, "square"),
        ("mixer", (32, 32), {}, "square"),
        ("mixer", (24, 16), {}, "reflections"),
        ("mixer", (33, 33), {}, "transpose"),
        ("convnext", (32, 32), {}, "square"),
        ("convnext", (16, 24), {}, "reflections"),
        ("convnext", (36, 36), {}, "transpose"),
        ("lstm", (32, 32), {}, "none"),
    ],
)
def test_laws_of_patches_are_invariant_under_the_claimed_group_and_no_larger_one(name, size, options, group):
    patch = {key: value for key, value in options.items() if key == "patch_size"}
    assert nt.symmetry_group(name, size, **patch) == group
    for symmetry in symmetries_of("square" if size[0] == size[1] else "reflections"):
        if name != "lstm":
            found = _violation_of_patches(name, size, symmetry, **options)
            assert found < 1e-9 if symmetry in symmetries_of(group) else found > 0.01, symmetry


@pytest.mark.parametrize(
    ("name", "size", "options"),
    [
        ("lenet", 33, {}),
        ("vgg11", 33, {}),
        ("densenet121", 12, {}),
        ("resnet18", 32, {}),
        ("resnet18", 16, {"pooling": False}),
    ],
)
@pytest.mark.parametrize("symmetry", [g for g in symmetries_of("square") if g not in symmetries_of("transpose")])
def test_the_rearrangement_fails_outside_the_claimed_group(name, size, options, symmetry):
    width = 0.125 if name in DEEP else 1
    network = nt.build(name, num_classes=3, width=width, image_size=(size, size), seed=1, **options)
    assert _violation(network, (size, size), symmetry) > 0.01


@pytest.mark.parametrize("size", [32, 33])
def test_a_mirror_image_is_no_symmetry_of_resnet18s_law_at_32x32(size):
    """Not only does the rearrangement fail there: the law itself tells left from right.

    For white noise x, an invariant law has the same share of gradient energy in a column and in its mirror image.
    """
    differences = []
    for seed in range(40):
        network = nt.build("resnet18", num_classes=1, width=0.125, image_size=(size, size), seed=seed).eval()
        x = normal(4, 1, size, size, seed=seed).requires_grad_()
        (gradient,) = torch.autograd.grad(network(x).sum(), x)
        energy = gradient.square().sum((0, 1, 2))
        differences.append((energy - energy.flip(0))[: size // 2] / energy.sum())
    mean, std = torch.stack(differences).mean(0), torch.stack(differences).std(0)
    largest = float((mean / std).abs().max()) * math.sqrt(len(differences))
    # In standard errors: the largest of 16 under the null, with 39 degrees of freedom, against what strides do.
    assert largest > 8 if size == 32 else largest < 4.5


@pytest.mark.parametrize(
    ("name", "options", "condition"),
    [
        ("lenet", {}, lambda size: size % 4 == 0),
        ("vgg11", {}, lambda size: size % 32 == 0),
        ("densenet121", {}, lambda size: size % 8 == 0),
        ("resnet18", {}, lambda size: size % 8 == 1),
        ("resnet18", {"strides": False}, lambda size: True),
        ("vgg11", {"pooling": False}, lambda size: True),
        ("densenet121", {"pooling": False}, lambda size: True),
    ],
)
def test_the_group_follows_from_the_sizes_of_the_maps(name, options, condition):
    good = 129 if name == "resnet18" else 128
    for size in range(32, 100):
        square, oblong = (nt.symmetry_group(name, (size, other), **options) for other in (size, good))
        assert (square, oblong) == (("square", "reflections") if condition(size) else ("transpose", "none"))


def test_pooling_drops_the_last_row_of_an_odd_map():
    network = nt.build("lenet", image_size=(33, 33)).requires_grad_(False)
    x = torch.zeros(1, 1, 33, 33)
    x[..., -1] = 100.0  # the last column reaches no output, the first does
    dead = float((network(x) - network(torch.zeros_like(x))).abs().max())
    alive = float((network(x.flip(-1)) - network(torch.zeros_like(x))).abs().max())
    assert dead < alive


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "alexnet"}, "unknown architecture name 'alexnet'; known are 'logreg', 'mlp', 'lenet'"),
        ({"name": "lenet", "image_size": (8, 8)}, r"expected at least \(16, 16\)"),
        ({"name": "vgg11", "image_size": (32, 31)}, r"expected at least \(32, 32\) for 'vgg11'"),
        ({"name": "mlp", "pooling": False}, "no pooling layers to remove.*'lenet', 'vgg11', 'resnet18'"),
        ({"name": "vgg11", "strides": False}, "no strided convolutions to remove.*'resnet18'"),
        ({"name": "logreg", "init": "torchvision"}, "init='torchvision' for 'logreg'"),
        ({"name": "lenet", "init": "torchvision"}, "use init='pytorch'"),
        ({"name": "vit", "patch_size": 33}, r"expected at least \(33, 33\) for 'vit'"),
        (
            {"name": "lstm", "patch_size": 8},
            "patch_size=8 for 'lstm'; networks that have it: 'vit', 'mixer', 'convnext'",
        ),
        ({"name": "mixer", "class_token": True}, "class_token=True for 'mixer'; networks that have it: 'vit'"),
        ({"name": "lenet", "depth": 2}, "depth=2 for 'lenet'.*'lstm'"),
        ({"name": "convnext", "pooling": False}, "no pooling layers to remove"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        nt.build(**arguments)


def test_the_group_refuses_what_build_refuses():
    for arguments, message in (
        ({"name": "alexnet"}, "unknown architecture"),
        ({"name": "logreg", "pooling": False}, "no pooling layers"),
        ({"name": "densenet121", "strides": False}, "no strided convolutions"),
    ):
        with pytest.raises(ValueError, match=message):
            nt.symmetry_group(**arguments)
