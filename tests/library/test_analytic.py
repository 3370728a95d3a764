"""The closed form against real networks, against itself, and where it has to refuse."""

from __future__ import annotations

import pytest
import torch
from small_networks import SMALL, seeded
from torch import nn

import nadtools as nt
from nadtools.analytic import Covariance, covariances
from nadtools.analytic.covariance import fixed, kernel
from nadtools.analytic.unweighted import mean_squared_slope, wide_covariances

EXACT = {"rtol": 1e-12, "atol": 0}


class Sum(nn.Module):
    """Branches that are added."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return sum((branch(x) for branch in self.branches[1:]), self.branches[0](x))


class Dense(nn.Module):
    """Branches whose channels are joined with the input's."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, *(branch(x) for branch in self.branches)], 1)


class Last(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * self.layer(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Mixer(nn.Module):
    """Tokens in channels-first form, mixed by an MLP of two layers; with a shortcut, a constant token and positions."""

    def __init__(self, channels: int, tokens: int, hidden: int, *, shortcut: bool = True, constant: int = 0) -> None:
        super().__init__()
        self.mix = nn.Sequential(nn.Linear(tokens + constant, hidden), nn.Linear(hidden, tokens + constant))
        self.shortcut, self.has_constant = shortcut, constant > 0
        self.register_buffer("constant", torch.full((1, channels, constant), 0.7))
        self.register_buffer("place", torch.linspace(0, 1, tokens + constant))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.flatten(2)
        if self.has_constant:
            x = torch.cat([self.constant.expand(x.shape[0], -1, -1), x], dim=2)
        x = x + self.place
        return (x + self.mix(x) if self.shortcut else self.mix(x)).transpose(1, 2)


class Pick(nn.Module):
    """Of tokens (batch, tokens, channels) what a key names."""

    def __init__(self, key: int | slice) -> None:
        super().__init__()
        self.key = key

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, self.key]


class Shuffle(nn.Module):
    """Half of the channels go through a branch; then both halves are interleaved."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept, changed = x.chunk(2, dim=1)
        n, c, h, w = x.size()
        return torch.cat([kept, self.branch(changed)], 1).view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


class Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean([2, 3])


class TokenMean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


def ended(*layers: nn.Module, channels: int = 1) -> nn.Module:
    """With a linear output layer on the flattened map."""
    body = nn.Sequential(*layers)
    size = body(torch.zeros(1, channels, *SMALL)).flatten(1).shape[1]
    return nn.Sequential(body, nn.Flatten(), nn.Linear(size, 1))


def conv(inputs: int, outputs: int, kernel: int = 3, **options) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, **options)


TOYS = {
    "average pooling": lambda: ended(conv(1, 3), nn.AvgPool2d(2), conv(3, 2)),
    "overlapping pooling": lambda: ended(conv(1, 2), nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False)),
    "global pooling": lambda: ended(conv(1, 3), conv(3, 4), nn.AdaptiveAvgPool2d(1)),
    "adaptive pooling": lambda: ended(conv(1, 3), nn.AdaptiveAvgPool2d((4, 3))),
    "stride": lambda: ended(conv(1, 3, 3, stride=2, padding=1), conv(3, 2, (2, 3), stride=(1, 2))),
    "dilation": lambda: ended(conv(1, 3, 3, dilation=2), conv(3, 2, 2, dilation=3)),
    "zero padding": lambda: ended(conv(1, 3, 3, padding=2), conv(3, 2, 3, dilation=2, padding="same")),
    "other padding": lambda: ended(nn.ReflectionPad2d((1, 2, 0, 3)), conv(1, 3), nn.ZeroPad2d((1, 2, 0, 3))),
    "groups": lambda: ended(conv(1, 4), Dense(conv(4, 2, 1)), conv(6, 4, 3, groups=2, padding=1)),
    "depthwise": lambda: ended(conv(1, 4), conv(4, 4, 3, groups=4), conv(4, 2, 1)),
    "identity shortcut": lambda: ended(conv(1, 2), Sum(nn.Identity(), conv(2, 2, padding=1)), nn.AvgPool2d(2)),
    "projected shortcut": lambda: ended(
        conv(1, 2), Sum(conv(2, 3, 1, stride=2), nn.Sequential(conv(2, 3, stride=2, padding=1), conv(3, 3, padding=1)))
    ),
    "dense block": lambda: ended(
        conv(1, 2, padding=1), Dense(conv(2, 2, padding=1)), Dense(conv(4, 1, 5, padding=2)), conv(5, 2, stride=2)
    ),
    "transposed": lambda: ended(conv(1, 2, 3, stride=2), nn.ConvTranspose2d(2, 3, 3, 2, padding=1), conv(3, 2, 2)),
    "nearest": lambda: ended(conv(1, 2, 3, stride=2), nn.Upsample(scale_factor=2), conv(2, 2)),
    "bilinear": lambda: ended(conv(1, 2), nn.Upsample(size=(4, 9), mode="bilinear"), conv(2, 2)),
    "channels last": lambda: ended(conv(1, 2), Last(nn.Linear(2, 3)), conv(3, 2, 2)),
    "mean": lambda: ended(conv(1, 3, 3, stride=2), conv(3, 2, 2), Mean()),
    "token mixing": lambda: ended(conv(1, 3, 2, stride=2), Mixer(3, 16, 5, shortcut=False), nn.Linear(3, 2)),
    "mixer": lambda: nn.Sequential(
        conv(1, 3, 2, stride=2), Mixer(3, 16, 20), nn.Linear(3, 4), TokenMean(), nn.Linear(4, 1)
    ),
    "one token": lambda: ended(conv(1, 3, 4, stride=2), Mixer(3, 9, 6, constant=2), Pick(0)),
    "some tokens": lambda: ended(conv(1, 3, 4, stride=2), Mixer(3, 9, 6), Pick(slice(2, 7))),
    "shuffled channels": lambda: ended(conv(1, 4), Shuffle(conv(2, 2, padding=1)), Shuffle(conv(2, 2, 1)), conv(4, 2)),
    "no convolution": lambda: ended(nn.AvgPool2d(2)),
}  # fmt: skip


def sampled_gradients(network: nn.Module, number: int, x: torch.Tensor, *, normal: bool = False) -> torch.Tensor:
    """Gradients (number, D) at x of so many networks, of PyTorch's default initialisation or its normal twin."""
    source, drawn = torch.Generator().manual_seed(0), {}
    for name, parameter in network.named_parameters():
        layer = network.get_submodule(name.rpartition(".")[0])
        bound = layer.weight[0].numel() ** -0.5
        draw = torch.randn if normal else torch.rand
        numbers = draw(number, *parameter.shape, generator=source, dtype=torch.float64)
        drawn[name] = numbers * bound / 3**0.5 if normal else (numbers * 2 - 1) * bound

    def gradient(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.func.grad(lambda image: torch.func.functional_call(network, parameters, (image[None],)).sum())(x)

    return torch.func.vmap(gradient, chunk_size=500)(drawn).flatten(1).detach()


def deviation(gradients: torch.Tensor, expected: torch.Tensor) -> tuple[float, float]:
    """How far a sample is from a covariance, in standard errors: of the whole matrix, and of its size.

    The mean square of |Ĉ - C| in Frobenius' norm is (E|g|⁴ - |C|²) / n; the size is <Ĉ, C> / <C, C>.
    """
    number = len(gradients)
    sample = gradients.T @ gradients / number
    square = (gradients.square().sum(1).square().mean() - expected.square().sum()) / number
    sizes = ((gradients @ expected) * gradients).sum(1) / expected.square().sum()
    return float((sample - expected).norm() / square.sqrt()), float((sizes.mean() - 1) * number**0.5 / sizes.std())


@pytest.mark.parametrize("name", TOYS)
def test_the_covariance_is_that_of_2000_linear_networks(name):
    network = seeded(TOYS[name]).double()
    expected = nt.analytic_nads(network, SMALL).covariance()
    gradients = sampled_gradients(network, 2000, torch.zeros(1, *SMALL, dtype=torch.float64))
    whole, size = deviation(gradients, expected)
    # The first is 1 on average, and scatters the less the more directions there are.
    assert whole < 2 and abs(size) < 4
    # A factor of 3/4 or 4/3 fails.
    assert all(abs(deviation(gradients, expected * factor)[1]) > 4 for factor in (0.75, 4 / 3))


def test_three_channels_and_weights_of_other_variances():
    network = seeded(lambda: ended(conv(3, 4), Sum(nn.Identity(), conv(4, 4, padding=1)), channels=3)).double()
    nads = nt.analytic_nads(network, SMALL, in_channels=3)
    assert nads.vectors.shape == (192, 3, *SMALL)
    gradients = sampled_gradients(network, 2000, torch.zeros(3, *SMALL, dtype=torch.float64))
    whole, size = deviation(gradients, nads.covariance())
    assert whole < 2 and abs(size) < 4
    # Variances that are given are used: 0 for the branch leaves the shortcut.
    given = nt.analytic_nads(network, SMALL, in_channels=3, weight_variances={"0.1.branches.1": 0.0})
    plain = seeded(lambda: ended(conv(3, 4), channels=3)).double()
    torch.testing.assert_close(
        given.covariance(), nt.analytic_nads(plain, SMALL, in_channels=3).covariance(), rtol=1e-6, atol=1e-12
    )
    with pytest.raises(ValueError, match="which the network lacks"):
        nt.analytic_nads(network, SMALL, in_channels=3, weight_variances={"0.9": 0.0})


# Kronecker products.


def test_products_and_arrays_take_every_operation_alike():
    source = torch.Generator().manual_seed(0)
    a, b, c = (torch.randn(n, n, generator=source, dtype=torch.float64) for n in (4, 6, 4))
    product = Covariance.product([a @ a.T, b @ b.T], 0.3)
    dense = Covariance(product.sizes, 0.3, None, product.dense() / 0.3)
    matrix = torch.randn(5, 6, generator=source, dtype=torch.float64)
    for change in (
        lambda g: g.through([fixed(torch.eye(4)).back, fixed(matrix.T).back]),
        lambda g: g.through([kernel(8, 4, 3, 2, 1, 1).back, kernel(9, 6, 2, 1, 0, 3).back]),
        lambda g: g.through([kernel(4, 3, 2, 1, 0, 1).ahead, fixed(matrix).ahead]),
        lambda g: g + Covariance.product([c @ c.T, b @ b.T]),
        lambda g: g + Covariance.product([c @ c.T, torch.eye(6, dtype=torch.float64)]),
        lambda g: g + g.scaled(2),
        lambda g: g.map(lambda m: m.exp()),
    ):
        torch.testing.assert_close(change(product).matrix(), change(dense).matrix(), **EXACT)
        torch.testing.assert_close(
            change(product).diagonal(), change(product).matrix().diagonal().view(change(product).sizes), **EXACT
        )
    v = torch.randn(4, 6, generator=source, dtype=torch.float64)
    assert product.quadratic(v) == pytest.approx(dense.quadratic(v), rel=1e-12)
    torch.testing.assert_close(Covariance.from_matrix(product.matrix(), (4, 6)).matrix(), product.matrix(), **EXACT)
    assert Covariance.from_matrix(product.matrix(), (4, 6)).is_product


@pytest.mark.parametrize("name", ["lenet", "vgg11", "resnet18"])
def test_products_have_the_eigenvectors_of_the_array(name, monkeypatch):
    """And ResNet-18, which is no product, has those of its matrix."""
    nads = nt.analytic_nads(name)
    image = covariances(name)["image"]
    assert image.is_product == (name != "resnet18") == nads.metadata["kronecker"]
    matrix = image.matrix()
    largest = float(nads.eigenvalues[0])
    torch.testing.assert_close(nads.covariance(), matrix, rtol=0, atol=1e-6 * largest)  # float32 vectors
    torch.testing.assert_close(nads.eigenvalues.flip(0), torch.linalg.eigvalsh(matrix), rtol=0, atol=1e-12 * largest)
    monkeypatch.setattr(Covariance, "is_product", False)
    dense = nt.analytic_nads(name)
    torch.testing.assert_close(dense.eigenvalues, nads.eigenvalues, rtol=0, atol=1e-12 * largest)
    # The vectors, too, where no other eigenvalue is near: pairs that a symmetry ties are in the same basis.
    values = nads.eigenvalues[:100]
    gaps = (values[:, None] / values - 1).abs().fill_diagonal_(1)
    alone = (gaps > 1e-3) | (gaps < 1e-9)
    chosen = [i for i in range(90) if bool(alone[i].all()) and int((gaps[i] < 1e-9).sum()) <= 1]
    assert len(chosen) > 20
    overlaps = (dense.vectors[chosen].flatten(1) * nads.vectors[chosen].flatten(1)).sum(1)
    torch.testing.assert_close(overlaps, torch.ones(len(chosen)), rtol=0, atol=1e-5)


# Theorems.


def test_isotropic_architectures():
    for name in ("logreg", "mlp"):
        values = nt.analytic_nads(name).eigenvalues
        torch.testing.assert_close(values, values[:1].expand(1024), **EXACT)
    # logistic regression: 1 / (3 D)
    assert float(nt.analytic_nads("logreg").eigenvalues[0]) == pytest.approx(1 / 3072, rel=1e-12)


def test_waves_that_pooling_loses():
    """LeNet's output ignores these waves at any weights, if it pools by averages."""
    nads = nt.analytic_nads("lenet")
    for frequency in ((8, 0), (8, 4), (8, 8), (16, 16)):
        for phase in (0.0, 0.7):
            assert nads.alignment(nt.fourier_atom((32, 32), frequency, phase)) < 1e-12 * float(nads.eigenvalues[0])
    assert nads.alignment(nt.fourier_atom((32, 32), (1, 2))) > 1e-2 * float(nads.eigenvalues[0])
    assert int((nads.eigenvalues == 0).sum()) > 100


# Infinite width.


def deep(width: int, padding: int = 1, channels: int = 1, first: bool = True) -> nn.Module:
    """Three convolutions, average pooling, and activations after all or after the last two."""
    return ended(
        conv(channels, width, padding=padding), *([nn.ReLU()] if first else []), nn.AvgPool2d(2),
        conv(width, width, padding=1), nn.ReLU(), conv(width, width, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        channels=channels,
    )  # fmt: skip


def squared_error(gradients: torch.Tensor, expected: torch.Tensor) -> float:
    """Relative, without the part that sampling adds: the product of the errors of two halves."""
    first, second = (part.T @ part / len(part) - expected for part in gradients.chunk(2))
    return float((first * second).sum() / expected.square().sum())


def test_networks_agree_with_the_limit_at_zero_and_not_with_the_linear_network():
    """Padding gives positions masks of their own. At width 4 the limit is already within sampling error."""
    x = torch.zeros(1, *SMALL)
    for width in (4, 16):
        network = seeded(lambda width=width: deep(width)).double()
        limit = nt.analytic_nads(network, SMALL, nonlinearity="infinite-width").covariance()
        gradients = sampled_gradients(network, 8000, x.double(), normal=True)
        whole, size = deviation(gradients, limit)
        assert whole < 1.5 and abs(size) < 4
    whole, size = deviation(gradients, nt.analytic_nads(network, SMALL).covariance())
    assert whole > 4 and abs(size) > 5


def test_away_from_zero_first_derivatives_of_the_kernel_are_missing():
    """An error of the recursion that no width makes smaller."""
    x = torch.randn(1, *SMALL, generator=torch.Generator().manual_seed(1))
    for width in (4, 16):
        network = seeded(lambda width=width: deep(width, first=False)).double()
        nads = nt.analytic_nads(network, SMALL, nonlinearity="infinite-width", evaluation_point=x)
        assert "first derivatives" in nads.metadata["exact"]
        gradients = sampled_gradients(network, 6000, x.double(), normal=True)
        assert 0.03 < squared_error(gradients, nads.covariance()) < 0.3


def test_joined_channels_have_a_limit():
    def joined() -> nn.Module:
        branch = nn.Sequential(conv(16, 16, padding=1), nn.ReLU())
        start = conv(1, 16, padding=1), nn.ReLU(), nn.AvgPool2d(2)
        return ended(*start, Dense(branch), conv(32, 16, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))

    network = seeded(joined).double()
    gradients = sampled_gradients(network, 6000, torch.zeros(1, *SMALL, dtype=torch.float64), normal=True)
    whole, size = deviation(gradients, nt.analytic_nads(network, SMALL, nonlinearity="infinite-width").covariance())
    assert whole < 1.5 and abs(size) < 4
    whole, size = deviation(gradients, nt.analytic_nads(network, SMALL).covariance())
    assert whole > 2 and abs(size) > 5


def test_without_padding_the_limit_at_zero_is_the_linear_network():
    network = seeded(lambda: ended(conv(1, 4), nn.ReLU(), nn.AvgPool2d(2), conv(4, 2), nn.ReLU()))
    linear = nt.analytic_nads(network, SMALL)
    wide = nt.analytic_nads(network, SMALL, nonlinearity="infinite-width")
    torch.testing.assert_close(wide.covariance(), linear.covariance(), rtol=1e-6, atol=1e-12)
    assert wide.metadata["exact"] == "in the limit of infinite width"


def test_leaky_activations_and_blocks_have_a_limit():
    covariance = torch.tensor([[2.0, 0.7, -0.5], [0.7, 0.5, 0.1], [-0.5, 0.1, 1.0]], dtype=torch.float64)
    source = torch.Generator().manual_seed(0)
    z = torch.linalg.cholesky(covariance) @ torch.randn(3, 200_000, generator=source, dtype=torch.float64)
    for slope in (0.0, 0.2, 1.0):
        values, slopes = wide_covariances(slope, covariance)
        y, d = torch.where(z > 0, z, slope * z), torch.where(z > 0, 1.0, slope).double()
        torch.testing.assert_close(y @ y.T / z.shape[1], values, rtol=0, atol=0.01)
        torch.testing.assert_close(d @ d.T / z.shape[1], slopes, rtol=0, atol=0.005)
        leaky = nn.LeakyReLU(slope)
        assert mean_squared_slope(leaky, 0.5) == pytest.approx(float(slopes[1, 1]), rel=1e-12)
    options = {"nonlinearity": "infinite-width", "evaluation_point": "normal", "num_points": 2}
    assert nt.analytic_nads("resnet18", (8, 8), width=0.1, **options).eigenvalues[0] > 0


# Approximations of layers.


class Transformer(nn.Module):
    """Patches, positions, one layer of attention with a shortcut, and the mean."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm, self.output = conv(1, 32, 4, stride=4), nn.LayerNorm(32), nn.Linear(32, 1)
        self.places = nn.Parameter(0.02 * torch.randn(1, 16, 32))
        self.attention = nn.MultiheadAttention(32, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        y = self.norm(x)
        return self.output((x + self.attention(y, y, y, need_weights=False)[0]).mean(1))


class Gated(nn.Module):
    """Squeeze and excitation between two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.output = conv(1, 16, padding=1), conv(16, 16, stride=2, padding=1), nn.Linear(16, 1)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), conv(16, 4, 1), nn.ReLU(), conv(4, 16, 1), nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return self.output(self.last(x * self.gate(x)).mean([2, 3]))


@pytest.mark.parametrize(
    ("network", "size", "note"),
    [(Transformer, 16, "attention as the average"), (Gated, 8, "gates as the constant 0.5")],
)
def test_attention_and_gates_are_near_what_networks_have(network, size, note):
    """Within 15 % of the norm at one trace; no preference at all would be off by more than 90 %."""
    nads = nt.analytic_nads(seeded(network), (size, size))
    drawn = nt.estimate_nads(network, 60, "gradient", image_size=(size, size), progress=False)
    assert any(note in one for one in nads.metadata["approximations"])
    ours, theirs = (one.covariance() / one.eigenvalues.sum() for one in (nads, drawn))
    assert float((ours - theirs).norm() / theirs.norm()) < 0.15
    assert float((torch.eye(size**2) / size**2 - theirs).norm() / theirs.norm()) > 0.9
    assert nt.captured_energy(nads.vectors, drawn, 16) > 0.995


# Large images, step by step, storage.


def test_a_large_image_takes_its_first_directions():
    nads = nt.analytic_nads("lenet", (224, 224), num_directions=20)
    assert nads.vectors.shape == (20, 224, 224) and nads.metadata["num_directions"] == 20
    image = covariances("lenet", (224, 224))["image"]
    for value, vector in zip(nads.eigenvalues[:5], nads.vectors, strict=False):
        assert image.quadratic(vector) == pytest.approx(float(value), rel=1e-5)
    for incomplete in (
        nads.covariance,
        lambda: nads.alignment(nads.vectors[0]),
        lambda: nt.captured_energy(nads.vectors, nads, 5),
    ):
        with pytest.raises(ValueError, match=r"first 20 NADs of 50176.*quadratic"):
            incomplete()
    with pytest.raises(MemoryError, match="num_directions"):
        nt.analytic_nads("lenet", (512, 512))
    with pytest.raises(MemoryError, match=r"no Kronecker product.*smaller"):
        Covariance.constant((512, 512)).matrix()


def test_fewer_directions_are_the_first_ones(tmp_path):
    every, some = (nt.analytic_nads("lenet", num_directions=count) for count in (None, 7))
    assert torch.equal(some.vectors, every.vectors[:7])
    again = nt.NADs.load(some.save(tmp_path / "some.npz"))
    assert torch.equal(again.vectors, some.vectors) and again.metadata["num_directions"] == 7
    assert every.metadata["method"] == "analytic" and "max pooling" in every.metadata["approximations"][0]
    assert bool((every.eigenvalue_stderr == 0).all())


def test_the_recursion_step_by_step():
    steps = covariances("lenet")
    assert next(iter(steps)) == "output (Linear)" and list(steps)[-1] == "image"
    assert steps["convolution2 (Conv2d)"].sizes == (10, 10) and steps["image"].sizes == (32, 32)
    torch.testing.assert_close(steps["image"].matrix(), nt.analytic_nads("lenet").covariance(), rtol=1e-3, atol=1e-12)


# Refusals.


class Twice(nn.Module):
    def __init__(self, join) -> None:
        super().__init__()
        self.body, self.join, self.output = conv(1, 2, padding=1), join, nn.Linear(128, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.join(self, self.body(x)).flatten(1))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (lambda: nn.Sequential(nn.Flatten(), nn.Bilinear(64, 64, 1)), "torch.fx|Bilinear"),
        (lambda: nn.Sequential(conv(1, 4), nn.PixelShuffle(2), nn.Flatten(), nn.Linear(144, 1)), r"1 \(PixelShuffle\)"),
        (lambda: Twice(lambda m, x: x + x.relu()), "not.*add|correlated"),
        (lambda: Twice(lambda m, x: x * x.sigmoid()), "multiplies two tensors"),
        (lambda: Twice(lambda m, x: torch.add(x, x, alpha=2)), "with a factor"),
        (lambda: Twice(lambda m, x: torch.cat([x[:, :1], x[:, 1:]], 1)), "getitem.*tokens"),
        (lambda: Twice(lambda m, x: torch.cat(x.chunk(3, 1), 1)), "not into equal parts"),
        (lambda: Twice(lambda m, x: torch.cat([x, x], 2)[:, :, :8]), "joins images, positions"),
        (lambda: Twice(lambda m, x: nn.functional.pad(x, (1, -1), value=1.0)), r"pad \(pad\): it is no linear map"),
        (lambda: ended(conv(1, 2, padding=1, padding_mode="circular")), "padding by 'circular'"),
        (lambda: nn.Sequential(conv(1, 2), nn.Flatten(1, 2), nn.Linear(6, 1)), "only vectors, tokens and groups"),
        (lambda: Twice(lambda m, x: x.softmax(1)), "softmax"),
        (lambda: Twice(lambda m, x: x if x.sum() > 0 else -x), "torch.fx cannot trace"),
        (lambda: nn.Sequential(conv(1, 1), nn.Sequential(nn.LocalResponseNorm(2))), "1.0 .LocalResponseNorm"),
        (lambda: nn.Sequential(conv(1, 1)), "expected one output"),
        (lambda: ended(conv(3, 1), channels=3), "does not accept images"),
    ],
)  # fmt: skip
def test_what_has_no_rule_is_named(network, message):
    with pytest.raises((NotImplementedError, ValueError), match=message):
        nt.analytic_nads(seeded(network), SMALL)


def test_weights_that_are_shared_or_not_of_mean_zero_are_refused():
    layer = seeded(lambda: conv(1, 1, padding=1))
    with pytest.raises(NotImplementedError, match="used twice"):
        nt.analytic_nads(nn.Sequential(layer, layer, nn.Flatten(), seeded(lambda: nn.Linear(64, 1))), SMALL)
    blur = seeded(lambda: ended(conv(1, 1)))
    nn.init.constant_(blur[0][0].weight, 1 / 9)
    with pytest.raises(NotImplementedError, match=r"0.0 \(Conv2d\): its weights have mean"):
        nt.analytic_nads(blur, SMALL)
    wide = seeded(lambda: ended(conv(1, 8)))
    with torch.no_grad():
        wide[0][0].weight.abs_()
    with pytest.raises(NotImplementedError, match=r"0.0 \(Conv2d\): its weights have mean"):
        nt.analytic_nads(wide, SMALL)


def test_few_weights_of_one_sign_are_no_evidence():
    """Eight weights of a 1 x 1 convolution agree in sign once in 128 draws."""
    network = seeded(lambda: ended(conv(1, 8, 1)))
    with torch.no_grad():
        network[0][0].weight.abs_().add_(0.5)
    assert nt.analytic_nads(network, SMALL).eigenvalues[0] > 0


def test_a_head_of_zeros_is_only_a_factor_and_other_zeros_end_it():
    network = seeded(lambda: ended(conv(1, 2)))
    expected = nt.analytic_nads(network, SMALL)
    nn.init.zeros_(network[2].weight)
    assert torch.equal(nt.analytic_nads(network, SMALL).vectors, expected.vectors)
    nn.init.zeros_(network[0][0].weight)
    with pytest.raises(ValueError, match="vanishes"):
        nt.analytic_nads(network, SMALL)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("lenet", r"pool1 \(MaxPool2d\).*average"),
        (lambda: ended(conv(1, 2), nn.Tanh()), r"0.1 \(Tanh\) has no rule at infinite width"),
        (lambda: ended(conv(1, 2), conv(2, 2, groups=2)), r"0.1 \(Conv2d\) has no rule at infinite width"),
    ],
)
def test_what_has_no_rule_at_infinite_width_is_named(network, message):
    with pytest.raises(nt.analytic.NoRuleError, match=message):
        nt.analytic_nads(network, SMALL if callable(network) else (32, 32), nonlinearity="infinite-width")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"architecture": "lenett"}, "unknown architecture"),
        ({"architecture": 3}, "expected a name"),
        ({"image_size": (0, 3)}, "image_size"),
        ({"nonlinearity": "relu"}, "nonlinearity"),
        ({"evaluation_point": "origin"}, "evaluation_point"),
        ({"evaluation_point": torch.zeros(3)}, "evaluation_point"),
        ({"num_directions": 1025}, "num_directions"),
        ({"signal_variance": 0}, "signal_variance"),
        ({"weight_variances": {"output": -1}}, "weight_variances"),
        ({"depth": 3}, "depth"),
        ({"architecture": lambda: 3}, "result of the callable"),
    ],
)
def test_wrong_arguments_fail_before_anything_is_computed(arguments, message, monkeypatch):
    monkeypatch.setattr(nt.analytic, "trace", None)
    with pytest.raises((TypeError, ValueError), match=message):
        nt.analytic_nads(**({"architecture": "lenet"} | arguments))


def test_a_module_stays_as_it_was_and_the_result_does_not_depend_on_its_mode():
    network = seeded(lambda: ended(conv(1, 2), nn.BatchNorm2d(2), nn.Dropout())).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    nads = nt.analytic_nads(network, SMALL)
    assert network.training and all(torch.equal(v, before[k]) for k, v in network.state_dict().items())
    assert torch.equal(nads.vectors, nt.analytic_nads(network.eval(), SMALL).vectors)
