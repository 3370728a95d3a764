"""Right and wrong answers to the exercises of chapter 1."""

import math

import torch
from scipy.stats import norm


def sample(v, n, epsilon, sigma, generator):
    y = torch.randint(0, 2, (n,), generator=generator)
    noise = torch.randn(n, v.numel(), generator=generator)
    noise = noise - (noise @ v)[:, None] * v
    return epsilon * (2 * y - 1)[:, None] * v + sigma * noise, y


def altered_sample(
    noise_power=1, project=True, sign=1, half=1, signed_labels=False, fair=True, shared=False, seed=True
):
    def sample(v, n, epsilon, sigma, generator):
        y = torch.randint(0, 2, (n,), generator=generator) if fair else torch.ones(n, dtype=torch.long)
        noise = torch.randn(n, v.numel(), generator=generator if seed else None)
        if shared:
            noise = noise[:, :1] * torch.ones(v.numel())
        if project:
            noise = noise - (noise @ v)[:, None] * v
        x = sign * half * epsilon * (2 * y - 1)[:, None] * v + sigma**noise_power * noise
        return x, (2 * y - 1 if signed_labels else y)

    return sample


def altered_wave(scale=lambda wave: wave / wave.norm(), turn=lambda wave: wave, sign=1):
    def wave(N, i, j, phase):
        r = torch.arange(N)
        plain = torch.cos(2 * math.pi * (i * r[:, None] + j * r) / N - sign * phase)
        return turn(scale(plain))

    return wave


ANGLE = math.pi / 4
ACCURACY = float(norm.cdf(math.cos(ANGLE) / (3 * math.sin(ANGLE))))
SOLUTIONS = {"01-1": ACCURACY, "01-2": sample, "01-3": altered_wave(), "01-4": lambda i, j: {i % 4, j % 4} == {2}}
SOLUTIONS["01-5"] = lambda i, j: (abs(i) == 8 and abs(j) != 4) or (abs(j) == 8 and abs(i) != 4)
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("01-1", float(norm.cdf(math.cos(ANGLE) / 3)), "complement"),
    ("01-1", 1 - ACCURACY, "error rate"),
    ("01-1", 63.06, "per cent"),
    ("01-1", 1 / 3, "argument of Φ"),
    ("01-1", 0.5, "Hint"),
    ("01-1", 0.6326, "Hint"),  # off by twice the tolerance
    ("01-2", altered_sample(project=False), "projected"),
    ("01-2", altered_sample(noise_power=2), "σ²"),
    ("01-2", altered_sample(noise_power=0), "unused"),
    ("01-2", altered_sample(signed_labels=True), "−1 and 1"),
    ("01-2", altered_sample(sign=-1), "wrong way round"),
    ("01-2", altered_sample(half=0.5), "ε/2"),
    ("01-2", altered_sample(fair=False), "equally likely"),
    ("01-2", altered_sample(shared=True), "noise"),
    ("01-2", altered_sample(seed=False), "generator"),
    ("01-2", lambda v, n, e, s, g: (torch.zeros(n, v.numel()), torch.randint(0, 2, (n,), generator=g)), "coordinate"),
    ("01-3", altered_wave(scale=lambda wave: wave), "norm is not 1"),
    ("01-3", altered_wave(scale=lambda wave: math.sqrt(2) / len(wave) * wave), "but not all"),
    ("01-3", altered_wave(scale=lambda wave: wave / len(wave)), "constant image alone"),
    ("01-3", altered_wave(scale=lambda wave: wave / wave.norm() ** 2), "square of the norm"),
    ("01-3", altered_wave(turn=lambda wave: wave.T), "exchanged"),
    ("01-3", altered_wave(sign=-1), "opposite sign"),
    ("01-3", lambda N, i, j, phase: torch.ones(N, N) / N, "Hint"),
    ("01-3", lambda N, i, j, phase: torch.full((N, N), math.nan), "Hint"),
    ("01-3", lambda N, i, j, phase: torch.ones(N * N), "shape"),
    ("01-3", lambda N, i, j, phase: [[1.0] * N] * N, "real tensor"),
    ("01-3", lambda N, i, j, phase: None, "returns nothing yet"),
    ("01-4", lambda i, j: i % 4 == 2 or j % 4 == 2, "(2, 0) is learned"),
    ("01-4", lambda i, j: i % 4 == j % 4 == 0, "two cells further"),
    ("01-4", lambda i, j: {i % 4, j % 4} != {2}, "other way round"),
    ("01-4", lambda i, j: (i + j) % 4 == 0, "(4, 0)"),
    ("01-4", lambda i, j: i == j, "diagonal"),
    ("01-4", lambda i, j: False, "Hint"),
    ("01-4", lambda i, j: 1, "True or False"),
    ("01-5", lambda i, j: abs(i) == 8 or abs(j) == 8, "(4, 8)"),
    ("01-5", lambda i, j: i % 8 == j % 8 == 0, "(16, 0)"),
    ("01-5", lambda i, j: i % 8 == 0 or j % 8 == 0, "(4, 0)"),
    ("01-5", lambda i, j: (i == 8 and abs(j) != 4) or (j == 8 and abs(i) != 4), "the same wave"),
    ("01-5", lambda i, j: not (8 in (abs(i), abs(j)) and 4 not in (abs(i), abs(j))), "other way round"),
    ("01-5", lambda i, j: False, "Hint"),
    ("01-5", lambda i, j: 0, "True or False"),
]
