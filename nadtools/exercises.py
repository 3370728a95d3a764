"""Exercises that check themselves: :func:`check` says whether an answer is right, or gives the next hint.

Each exercise is an :class:`Exercise`: its question in one line, a grader and a few hints. A grader computes the
solution when it is asked, and compares; it returns ``None`` for a right answer, and otherwise what it noticed.
"""

from __future__ import annotations

import html
import math
import numbers
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.stats import norm

__all__ = ["Exercise", "Verdict", "available", "check", "reset"]


@dataclass(frozen=True)
class Verdict:
    """What :func:`check` says about an answer; true in a boolean context when the answer is right.

    Attributes
    ----------
    exercise
        The exercise's id, for example ``"01-1"``.
    correct
        Whether the answer is right.
    message
        A sentence for the reader: praise, or what was noticed and the next hint.
    """

    exercise: str
    correct: bool
    message: str

    def __bool__(self) -> bool:
        return self.correct

    def __repr__(self) -> str:
        return f"{'✓' if self.correct else '✗'} Exercise {self.exercise}: {self.message}"

    def _repr_html_(self) -> str:
        # Colours that have enough contrast on a light and on a dark page; the mark carries the meaning without them.
        mark, word, colour = ("✓", "Right", "#2e8b57") if self.correct else ("✗", "Not yet", "#d2691e")
        return (
            f'<div role="status" style="border-left: 4px solid {colour}; padding: 0.3em 0.8em; margin: 0.4em 0">'
            f'<strong style="color: {colour}">{mark} {word}</strong> '
            f"(exercise {html.escape(self.exercise)}). {html.escape(self.message)}</div>"
        )


class _UnexpectedAnswer(Exception):
    """The answer is not of the kind that the exercise asks for; the message says what is."""


@dataclass(frozen=True)
class Exercise:
    """A question with a grader and hints.

    Attributes
    ----------
    id
        ``"CHAPTER-NUMBER"``, for example ``"01-1"``.
    summary
        The question in one sentence.
    grade
        Takes an answer; returns None when it is right, else a remark on this answer (empty if there is none).
    hints
        From a nudge to nearly the solution.
    praise
        What a right answer is told.
    """

    id: str
    summary: str
    grade: Callable[[Any], str | None] = field(repr=False)
    hints: tuple[str, ...] = field(repr=False)
    praise: str = field(default="That is right.", repr=False)


# ---------------------------------------------------------------------------------------------------------------------
# Reading answers
# ---------------------------------------------------------------------------------------------------------------------


def _describe(answer: Any) -> str:
    return f"a {type(answer).__name__}"


def _number(answer: Any) -> float:
    """Read the answer as a finite float, or raise _UnexpectedAnswer."""
    if isinstance(answer, torch.Tensor | np.ndarray) and math.prod(answer.shape) == 1:
        answer = answer.item()
    if isinstance(answer, bool | np.bool_) or not isinstance(answer, numbers.Real):
        raise _UnexpectedAnswer(f"Expected one number, such as 0.75, but got {_describe(answer)}.")
    try:
        value = float(answer)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise _UnexpectedAnswer(f"Expected a finite number, but got {value}.")
    return value


def _call(function: Any, signature: str, *arguments: Any) -> Any:
    """Call the reader's function; any failure inside it becomes a message."""
    if not callable(function):
        raise _UnexpectedAnswer(f"Expected a function {signature}, without calling it, but got {_describe(function)}.")
    try:
        return function(*arguments)
    except Exception as error:  # it is the reader's code: whatever it raises is reported, not re-raised
        raise _UnexpectedAnswer(
            f"Your function raised {type(error).__name__}: {error}. It is called as {signature}."
        ) from None


def _close(value: float, expected: float, tolerance: float) -> bool:
    return abs(value - expected) <= tolerance


# ---------------------------------------------------------------------------------------------------------------------
# Chapter 1
# ---------------------------------------------------------------------------------------------------------------------


def _grade_accuracy_off_direction(answer: Any) -> str | None:
    value = _number(answer)
    epsilon, sigma, angle, tolerance = 1.0, 3.0, math.pi / 4, 1e-3
    expected = float(norm.cdf(epsilon * math.cos(angle) / (sigma * math.sin(angle))))
    if _close(value, expected, tolerance):
        return None
    if _close(value, float(norm.cdf(epsilon * math.cos(angle) / sigma)), tolerance):
        return "This has noise of full size σ along r, but the noise lies only in the orthogonal complement of v."
    if _close(value, 1 - expected, tolerance):
        return "This is the error rate; the question asks for the accuracy."
    if _close(value, 100 * expected, 100 * tolerance):
        return "This is in per cent; give a number between 0 and 1."
    if _close(value, epsilon * math.cos(angle) / (sigma * math.sin(angle)), tolerance):
        return "This is the argument of Φ; the distribution function has still to be applied."
    if not 0 <= value <= 1:
        return "An accuracy lies between 0 and 1."
    return ""


_SAMPLE_SIGNATURE = "sample(v, n, epsilon, sigma, generator)"


def _draw(answer: Any, v: torch.Tensor, n: int, epsilon: float, sigma: float) -> tuple[torch.Tensor, torch.Tensor]:
    """One draw of the reader's sampler, in float64, with its form checked."""
    drawn = _call(answer, _SAMPLE_SIGNATURE, v.clone(), n, epsilon, sigma, torch.Generator().manual_seed(7))
    if drawn is None or drawn is ...:
        raise _UnexpectedAnswer("Your function returns nothing yet; expected a pair (x, y).")
    if not (isinstance(drawn, tuple | list) and len(drawn) == 2):
        raise _UnexpectedAnswer(f"Expected the function to return a pair (x, y), but got {_describe(drawn)}.")
    x, y = drawn
    if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
        raise _UnexpectedAnswer(f"Expected two tensors, but got {_describe(x)} and {_describe(y)}.")
    if tuple(x.shape) != (n, v.numel()) or tuple(y.shape) != (n,):
        raise _UnexpectedAnswer(
            f"Expected x of shape (n, D) = ({n}, {v.numel()}) and y of shape (n,) = ({n},), "
            f"but got {tuple(x.shape)} and {tuple(y.shape)}."
        )
    if x.is_complex() or y.is_complex():
        raise _UnexpectedAnswer("Expected real tensors, but got complex ones.")
    return x.detach().cpu().double(), y.detach().cpu().double()


def _grade_sampler(answer: Any) -> str | None:
    # A direction that is no coordinate axis, and an epsilon and a sigma that differ from their squares and halves.
    dimension, n, epsilon, sigma = 16, 4000, 2.0, 0.5
    v = torch.randn(dimension, generator=torch.Generator().manual_seed(3))
    v = v / v.norm()
    x, y = _draw(answer, v, n, epsilon, sigma)
    if not torch.isfinite(x).all():
        return "Some entries of x are not finite."
    labels = set(y.unique().tolist())
    if labels <= {-1.0, 1.0} and -1.0 in labels:
        return "The labels are −1 and 1; expected 0 and 1, where the sign is 2y − 1."
    if not labels <= {0.0, 1.0}:
        return f"Expected labels 0 and 1, but found {sorted(labels)[:4]}."
    # Five standard errors of a share of n fair coins.
    if abs(y.mean().item() - 0.5) > 5 * 0.5 / math.sqrt(n):
        return f"The two labels should be equally likely, but {y.mean().item():.0%} of them are 1."

    direction = v.double()
    along, sign = x @ direction, 2 * y - 1
    # The rounding of float32 stays a factor of five below 1e-5 at this size.
    if (along - epsilon * sign).abs().max() > 1e-5:
        if (along + epsilon * sign).abs().max() <= 1e-5:
            return "The sign is the wrong way round: label 1 belongs to +εv and label 0 to −εv."
        if (along - epsilon / 2 * sign).abs().max() <= 1e-5:
            return "The classes lie at ±(ε/2) v; expected ±ε v."
        if (along - along.mean()).abs().max() <= 1e-5:
            return "Every sample has the same coordinate along v; it should be ε for label 1 and −ε for label 0."
        return "⟨x, v⟩ should be exactly ε(2y − 1), without noise: has the noise been projected onto v's complement?"

    noise = x - along[:, None] * direction
    total_variance = noise.square().sum(1).mean().item() / (dimension - 1)
    # Five standard errors of a variance that is averaged over n (D − 1) independent normal coordinates.
    relative_tolerance = 5 * math.sqrt(2 / (n * (dimension - 1)))
    for candidate, remark in (
        (sigma**2, None),
        (sigma**4, "The noise seems to be scaled by σ²; a standard normal has to be scaled by σ."),
        (sigma, "The noise seems to be scaled by √σ; a standard normal has to be scaled by σ."),
        (1.0, "The noise has variance 1: σ seems to be unused."),
        (0.0, "There is no noise in the directions orthogonal to v."),
    ):
        if abs(total_variance - candidate) <= relative_tolerance * candidate + 1e-12:
            if remark is not None:
                return remark
            break
    else:
        return f"The noise has variance {total_variance:.3g} per orthogonal direction; expected σ² = {sigma**2:.3g}."

    covariance = noise.T @ noise / n
    expected = sigma**2 * (torch.eye(dimension, dtype=torch.float64) - direction[:, None] * direction)
    # An entry of a normal sample covariance has a standard error of at most σ² √(2/n); six of them for 136 entries.
    if (covariance - expected).abs().max() > 6 * sigma**2 * math.sqrt(2 / n):
        return "The noise has the right size, but it is not independent and equal in all directions orthogonal to v."
    if noise.mean(0).abs().max() > 6 * sigma / math.sqrt(n):
        return "The noise should have mean zero."
    if (noise.T @ sign / n).abs().max() > 6 * sigma / math.sqrt(n):
        return "The noise depends on the label; it should not."
    again, _ = _draw(answer, v, n, epsilon, sigma)
    if not torch.equal(again, x):
        return "Two calls with equal generators differ: pass generator=generator to every random function."
    return None


# ---------------------------------------------------------------------------------------------------------------------
# Chapter 4
# ---------------------------------------------------------------------------------------------------------------------


def _grade_logistic_covariance(answer: Any) -> str | None:
    value = _number(answer)
    # nn.Linear draws its weights uniformly from [−a, a] with a = 1/√(fan in); such a weight has variance a²/3.
    fan_in = 32 * 32
    bound = 1 / math.sqrt(fan_in)
    expected = bound**2 / 3

    def near(candidate: float) -> bool:
        return math.isclose(value, candidate, rel_tol=2e-3)

    if near(expected):
        return None
    if near(bound**2):
        return "This is the square of the uniform distribution's bound; its variance is smaller."
    if near(bound):
        return "This is the uniform distribution's bound; its variance is asked for."
    if near(math.sqrt(expected)):
        return "This is the standard deviation of a weight; a covariance holds its square."
    if near(fan_in * expected):
        return "This is the trace of the covariance, the sum of all D eigenvalues."
    if near(32**-1 / 3):
        return "D is the number of pixels, 32 × 32, not the image's side."
    return ""


_ALIGNMENT_SIGNATURE = "alignment(covariance, v)"


def _grade_alignment(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(11)
    # What each mistake would return, in the order in which they are tried.
    mistakes: list[tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], str]] = [
        (lambda c, v: v @ c @ v, "v is not always of unit norm: normalise it first."),
        (
            lambda c, v: v @ c @ v / v.norm(),
            "v occurs twice in vᵀCv, so its norm has to be divided out twice: α has the square of v in it.",
        ),
        (lambda c, v: (c @ v).norm() / v.norm(), "This is ‖Cv‖: take the component of Cv along v, not its length."),
        (lambda c, v: (c @ v).norm(), "This is ‖Cv‖: take the component of Cv along v, not its length."),
        (lambda c, v: (v @ c @ v).sqrt() / v.norm(), "This is the square root of α(v)."),
        (lambda c, v: (v @ c @ c @ v) / v.dot(v), "This is vᵀC²v: the covariance occurs once."),
    ]
    values: list[float] = []
    cases: list[tuple[torch.Tensor, torch.Tensor]] = []
    for dimension, length in ((6, 1.0), (6, 2.5), (12, 0.2), (3, 1.0)):
        factor = torch.randn(dimension, dimension, generator=generator, dtype=torch.float64)
        covariance = factor @ factor.T / dimension
        v = torch.randn(dimension, generator=generator, dtype=torch.float64)
        v = length * v / v.norm()
        returned = _call(answer, _ALIGNMENT_SIGNATURE, covariance.clone(), v.clone())
        if returned is None or returned is ...:
            raise _UnexpectedAnswer("Your function returns nothing yet; expected one number, α(v).")
        try:
            values.append(_number(returned))
        except _UnexpectedAnswer as error:
            raise _UnexpectedAnswer(f"About what your function returns: {error}") from None
        cases.append((covariance, v))

    def agrees(formula: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> bool:
        # Loose enough for an answer that works in float32.
        return all(math.isclose(a, formula(c, v).item(), rel_tol=1e-4) for a, (c, v) in zip(values, cases, strict=True))

    if agrees(lambda c, v: v @ c @ v / v.dot(v)):
        return None
    return next((remark for formula, remark in mistakes if agrees(formula)), "")


def _numbers(answer: Any, size: int, example: str) -> list[float]:
    """Read the answer as a vector of finite floats, or raise _UnexpectedAnswer."""
    expected = f"Expected {size} numbers, such as {example}, but got "
    if isinstance(answer, torch.Tensor):
        answer = answer.detach().cpu().tolist()
    elif isinstance(answer, np.ndarray):
        answer = answer.tolist()
    if not isinstance(answer, tuple | list):
        raise _UnexpectedAnswer(f"{expected}{_describe(answer)}.")
    if len(answer) != size:
        raise _UnexpectedAnswer(f"{expected}{len(answer)}.")
    return [_number(entry) for entry in answer]


def _grade_secant_of_maximum(answer: Any) -> str | None:
    value = _numbers(answer, 2, "(0.25, 0.75)")
    scale = 2.0  # any other gives the same

    def near(*candidate: float) -> bool:
        return all(_close(entry, other, 1e-3) for entry, other in zip(value, candidate, strict=True))

    # At (±s, 0), and by symmetry at (0, ±s).
    above, below = max(scale, 0.0), max(-scale, 0.0)
    expected = (above - below) / (2 * scale)
    if near(expected, expected):
        return None
    if near(1, 0) or near(0, 1):
        winner = "x_1" if near(1, 0) else "x_2"
        return f"That is the gradient at a point where {winner} wins; at x0 = 0 neither does."
    if near(above / scale, above / scale):
        return "This steps to one side only, or divides by s: the secant goes from x0 − s e_i to x0 + s e_i."
    if near(0, 0):
        return "This would be right if f(s e_i) and f(−s e_i) were equal: is max(−s, 0) the same as max(s, 0)?"
    if near(expected, 0) or near(0, expected):
        return "f treats both coordinates alike, and so does x0 = 0."
    if near(-expected, -expected):
        return "The sign is the wrong way round: f grows with either coordinate."
    return ""


_AVERAGE_SIGNATURE = "averaged_covariance(J, variance)"


def _grade_averaged_covariance(answer: Any) -> str | None:
    generator = torch.Generator().manual_seed(12)
    # What each mistake would return, in the order in which they are tried.
    mistakes: list[tuple[Callable[[torch.Tensor, float], torch.Tensor], str]] = [
        (
            lambda jacobian, variance: variance * jacobian @ jacobian.T,
            "This is s² J Jᵀ, of shape (k, k); a covariance of input gradients has shape (D, D).",
        ),
        (
            lambda jacobian, variance: jacobian @ jacobian.T,
            "This is J Jᵀ: the order is the other one, and s² is missing.",
        ),
        (lambda jacobian, variance: jacobian.T @ jacobian, "The variance of the output weights is missing."),
        (
            lambda jacobian, variance: variance * jacobian.T @ jacobian / len(jacobian),
            "This is divided by k: the covariance is a sum over the k features, not a mean.",
        ),
        (
            lambda jacobian, variance: jacobian.T @ jacobian / len(jacobian),
            "This is divided by k, and the variance of the output weights is missing.",
        ),
        (
            lambda jacobian, variance: variance**2 * jacobian.T @ jacobian,
            "The argument is the variance s² already; it is not squared again.",
        ),
        (
            lambda jacobian, variance: variance**0.5 * jacobian.T @ jacobian,
            "This has the standard deviation s in it; the covariance has the variance s².",
        ),
    ]
    cases: list[tuple[torch.Tensor, float]] = []
    values: list[torch.Tensor] = []
    for num_features, dimension, variance in ((3, 5, 0.25), (6, 4, 2.0), (4, 4, 0.01)):
        jacobian = torch.randn(num_features, dimension, generator=generator, dtype=torch.float64)
        returned = _call(answer, _AVERAGE_SIGNATURE, jacobian.clone(), variance)
        if returned is None or returned is ...:
            raise _UnexpectedAnswer("Your function returns nothing yet; expected a matrix of shape (D, D).")
        if not isinstance(returned, torch.Tensor | np.ndarray):
            raise _UnexpectedAnswer(f"Expected the function to return a tensor, but got {_describe(returned)}.")
        matrix = torch.as_tensor(returned).detach().cpu()
        if matrix.is_complex():
            raise _UnexpectedAnswer("Expected a real matrix, but got a complex one.")
        if tuple(matrix.shape) not in {(dimension, dimension), (num_features, num_features)}:
            raise _UnexpectedAnswer(
                f"Expected a matrix of shape (D, D) = ({dimension}, {dimension}) for J of shape "
                f"({num_features}, {dimension}), but got {tuple(matrix.shape)}."
            )
        cases.append((jacobian, variance))
        values.append(matrix.double())

    def agrees(formula: Callable[[torch.Tensor, float], torch.Tensor]) -> bool:
        # Loose enough for an answer that works in float32.
        expected = [formula(*case) for case in cases]
        return all(
            value.shape == other.shape and torch.allclose(value, other, rtol=1e-4, atol=1e-5 * float(other.abs().max()))
            for value, other in zip(values, expected, strict=True)
        )

    if agrees(lambda jacobian, variance: variance * jacobian.T @ jacobian):
        return None
    return next((remark for formula, remark in mistakes if agrees(formula)), "")


# ---------------------------------------------------------------------------------------------------------------------
# The registry
# ---------------------------------------------------------------------------------------------------------------------

_EXERCISES: dict[str, Exercise] = {
    exercise.id: exercise
    for exercise in (
        Exercise(
            id="01-1",
            summary="Which accuracy does a linear classifier along r reach, at 45 degrees to v, with ε = 1 and σ = 3?",
            grade=_grade_accuracy_off_direction,
            hints=(
                "Write r = cos(angle) v + sin(angle) u with a unit vector u orthogonal to v. What is ⟨x, r⟩?",
                "Given the label, ⟨x, r⟩ is normal with mean ±ε cos(angle) and standard deviation σ sin(angle).",
                "The accuracy is Φ(mean / standard deviation); Φ is scipy.stats.norm.cdf.",
            ),
            praise="That is right. The noise lies only in the complement of v, so r sees σ sin(angle) of it.",
        ),
        Exercise(
            id="01-2",
            summary="Write sample(v, n, epsilon, sigma, generator) -> (x, y), which draws from D(v) for a flat v.",
            grade=_grade_sampler,
            hints=(
                "Draw fair labels y in {0, 1} and standard normal noise of shape (n, D), both with the generator.",
                "Remove from each noise vector its component along v: noise − (noise @ v)[:, None] * v.",
                "Then x = ε (2y − 1) v + σ times the projected noise; unsqueeze y so that it broadcasts against v.",
            ),
            praise="That is right. Only v carries the label, and v carries no noise.",
        ),
        Exercise(
            id="04-1",
            summary="The gradient covariance of logistic regression on 1,024 pixels is c I. What is c?",
            grade=_grade_logistic_covariance,
            hints=(
                "The gradient of a linear model with respect to its input is its weight vector.",
                "So c is the variance of one weight. How does torch.nn.Linear initialise its weights?",
                "They are uniform on [−a, a] with a = 1/√D, and such a variable has variance a²/3.",
            ),
            praise="That is right. Logistic regression prefers no direction at all.",
        ),
        Exercise(
            id="04-2",
            summary="Write alignment(covariance, v), which returns α(v) for a v of any length.",
            grade=_grade_alignment,
            hints=(
                "α(v) is the second moment of the gradient's component along v, and v is a unit vector there.",
                "For a unit vector v, α(v) is the quadratic form v @ covariance @ v.",
                "Divide by v @ v to allow for a v that is not of unit norm.",
            ),
            praise="That is right. α(v) is a weighted mean of the eigenvalues.",
        ),
        Exercise(
            id="04-3",
            summary="The secant of f(x) = max(x_1, x_2) at x0 = 0 with scale s: what is (g_1, g_2)?",
            grade=_grade_secant_of_maximum,
            hints=(
                "The secant along x_i is g_i = (f(x0 + s e_i) − f(x0 − s e_i)) / (2s).",
                "Along x_1 the other coordinate stays 0: f(s, 0) = max(s, 0) and f(−s, 0) = max(−s, 0).",
                "For s > 0 these are s and 0. Divide their difference by 2s; x_2 gives the same.",
            ),
            praise="That is right, for any s > 0. There is no gradient at 0; the secant takes both sides alike.",
        ),
        Exercise(
            id="04-4",
            summary="Write averaged_covariance(J, variance): E[g gᵀ] over output weights, for a J of shape (k, D).",
            grade=_grade_averaged_covariance,
            hints=(
                "With output weights w the gradient is g = Jᵀ w, a sum of the rows of J with random coefficients.",
                "E[g gᵀ] = Jᵀ E[w wᵀ] J, since J does not depend on w.",
                "The weights are independent with mean zero: E[w wᵀ] is the variance s² times the identity.",
            ),
            praise="That is right. One network now counts for all its possible output layers at once.",
        ),
    )
}

_wrong_answers: Counter[str] = Counter()


def available() -> tuple[str, ...]:
    """Return the ids of all exercises."""
    return tuple(_EXERCISES)


def _find(exercise: str) -> Exercise:
    if not isinstance(exercise, str) or exercise not in _EXERCISES:
        raise ValueError(f"Unknown exercise {exercise!r}. Known exercises: {', '.join(_EXERCISES)}.")
    return _EXERCISES[exercise]


def reset(exercise: str | None = None) -> None:
    """Begin again with the first hint, for one exercise or for all of them.

    Raises
    ------
    ValueError
        If the exercise is unknown.
    """
    if exercise is None:
        _wrong_answers.clear()
    else:
        del _wrong_answers[_find(exercise).id]


def check(exercise: str, answer: Any) -> Verdict:
    """Say whether an answer is right; after a wrong one, give the next hint.

    Each wrong answer moves to the next hint, up to the last. A blank answer (None or ``...``) and one of the wrong
    kind do not.

    Parameters
    ----------
    exercise
        The exercise's id, for example ``"01-1"``.
    answer
        A number, several numbers or a function, as the exercise asks.

    Returns
    -------
    Verdict
        True in a boolean context when the answer is right.

    Raises
    ------
    ValueError
        If the exercise is unknown; the message lists the known ones.
    """
    task = _find(exercise)
    if answer is None or answer is ...:
        return Verdict(task.id, False, f"There is no answer yet. {_hint(task, 0)}")
    try:
        # A reader's function may draw from the global generator; the notebook's own random numbers stay as they were.
        with torch.random.fork_rng(devices=[]):
            remark = task.grade(answer)
    except _UnexpectedAnswer as error:
        return Verdict(task.id, False, str(error))
    if remark is None:
        del _wrong_answers[task.id]
        return Verdict(task.id, True, task.praise)
    hint = _hint(task, _wrong_answers[task.id])
    _wrong_answers[task.id] += 1
    return Verdict(task.id, False, f"{remark} {hint}".strip())


def _hint(task: Exercise, number: int) -> str:
    number = min(number, len(task.hints) - 1)
    return f"Hint {number + 1} of {len(task.hints)}: {task.hints[number]}"
