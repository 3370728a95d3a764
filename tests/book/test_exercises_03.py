"""Chapter 3's exercises: what counts as an answer. That right ones pass and wrong ones fail is in test_exercises.py."""

import math

import numpy as np
import pytest
import torch
from companion.grading import check, reset
from exercise_answers_03 import steps_needed


@pytest.fixture(autouse=True)
def fresh_hints():
    reset()
    yield
    reset()


@pytest.mark.parametrize("kind", [float, np.float64, torch.tensor, np.array])
def test_numbers_of_any_kind_are_read(kind):
    assert check("03-1", kind(0.975))
    assert check("03-2", kind(4 / 9))
    assert check("03-3", lambda *arguments: kind(float(steps_needed(*arguments))))


@pytest.mark.parametrize("returned", [None, ...])
def test_blank_function_stub_is_not_correct(returned):
    verdict = check("03-3", lambda *arguments: returned)
    assert not verdict
    assert "returns nothing yet" in verdict.message


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (10, "Expected a function"),
        (lambda h: h, "raised TypeError"),
        (lambda h, rate, r: math.log(-1), "raised ValueError"),
        (lambda h, rate, r: "many", "Expected one number"),
        (lambda h, rate, r: math.nan, "finite"),
        (lambda h, rate, r: torch.ones(2), "Expected one number"),
    ],
)
def test_wrong_kind_of_function_gets_a_message_and_costs_no_hint(answer, word):
    verdict = check("03-3", answer)
    assert not verdict
    assert word in verdict.message
    assert "Hint" not in verdict.message
    assert "Hint 1" in check("03-3", lambda *arguments: 10).message


def test_the_right_answers_follow_from_trainings_not_from_the_grader():
    # Descent by hand along one direction of curvature h, from the distance 1.
    for h, rate, fraction in ((0.5, 0.2, 0.1), (1.0, 1.7, 0.01), (0.05, 1.0, 1e-3)):
        distance, steps = 1.0, 0
        while distance**2 > fraction:
            distance, steps = distance - rate * h * distance, steps + 1
        assert steps == steps_needed(h, rate, fraction)
