"""Each exercise: the solution passes; the blank stub and plausible wrong answers fail, with a fitting remark."""

import importlib
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from companion import grading
from companion.grading import Verdict, check, reset


@pytest.fixture(autouse=True)
def fresh_hints():
    reset()
    yield
    reset()


CHAPTERS = [importlib.import_module(f"exercise_answers_{exercise[:2]}") for exercise in grading.available()]
SOLUTIONS = {exercise: answer for chapter in CHAPTERS for exercise, answer in chapter.SOLUTIONS.items()}
WRONG = [wrong for chapter in dict.fromkeys(CHAPTERS) for wrong in chapter.WRONG]


@pytest.mark.parametrize("exercise", grading.available())
def test_solution_passes(exercise):
    verdict = check(exercise, SOLUTIONS[exercise])
    assert verdict
    assert verdict.correct
    assert "Hint" not in verdict.message


@pytest.mark.parametrize("exercise", grading.available())
def test_there_are_at_least_two_wrong_answers(exercise):
    assert sum(name == exercise for name, _, _ in WRONG) >= 2


@pytest.mark.parametrize(("exercise", "answer", "word"), WRONG)
def test_wrong_answer_fails_and_says_why(exercise, answer, word):
    verdict = check(exercise, answer)
    assert not verdict
    assert word in verdict.message


@pytest.mark.parametrize("exercise", grading.available())
@pytest.mark.parametrize("blank", [None, ...])
def test_blank_stub_gets_the_first_hint_again_and_again(exercise, blank):
    messages = {check(exercise, blank).message for _ in range(3)}
    assert len(messages) == 1
    assert "Hint 1 of" in messages.pop()
    assert not check(exercise, blank)


@pytest.mark.parametrize("exercise", ["01-2", "04-4", "04-6"])
@pytest.mark.parametrize("returned", [None, ...])
def test_blank_function_stub_is_not_correct(exercise, returned):
    verdict = check(exercise, lambda *arguments: returned)
    assert not verdict
    assert "returns nothing yet" in verdict.message


def test_wrong_answers_walk_through_the_hints_and_stay_at_the_last():
    messages = [check("03-1", 2.0 + k).message for k in range(5)]
    assert [message[:11] for message in messages] == [f"Hint {k} of 3" for k in (1, 2, 3, 3, 3)]
    assert "Hint 1" in check("01-1", 0.9).message  # each exercise counts for itself
    reset("03-1")
    assert "Hint 1" in check("03-1", 2.0).message
    assert "Hint 2" in check("01-1", 0.9).message


def test_right_answer_starts_the_hints_again():
    check("03-1", 2.0)
    assert check("03-1", SOLUTIONS["03-1"])
    assert "Hint 1" in check("03-1", 2.0).message


@pytest.mark.parametrize("answer", ["0.63", [0.6, 0.3], True, 1j, float("nan"), float("inf"), torch.zeros(3), 10**400])
def test_wrong_kind_of_number_says_what_is_expected_and_costs_no_hint(answer):
    verdict = check("01-1", answer)
    assert not verdict
    assert "Expected" in verdict.message
    assert "Hint 1" in check("01-1", 0.9).message


@pytest.mark.parametrize("kind", [float, np.float32, np.float64, torch.tensor, np.array, Fraction])
def test_any_kind_of_number_is_read(kind):
    assert check("01-1", kind(SOLUTIONS["01-1"]))
    if kind not in (Fraction, np.float32):  # whose infinity is no float
        assert check("08-3", lambda *arguments: kind(float(SOLUTIONS["08-3"](*arguments))))


@pytest.mark.parametrize(
    ("exercise", "answer", "word"),
    [
        ("01-2", 0.5, "Expected a function"),
        ("01-2", lambda: None, "TypeError"),
        ("01-2", lambda *a: 1 / 0, "ZeroDivisionError"),
        ("01-2", lambda *a: 3, "pair"),
        ("01-2", lambda *a: (1, 2), "tensors"),
        ("01-2", lambda v, n, *a: (torch.zeros(n, 4, 4), torch.zeros(n)), "shape"),
        ("01-2", lambda v, n, *a: (torch.full((n, len(v)), torch.nan), torch.zeros(n)), "finite"),
        ("04-7", 10, "Expected a function"),
        ("04-7", lambda s: s, "raised TypeError"),
        ("04-7", lambda s, d: math.log(-1), "raised ValueError"),
        ("04-7", lambda s, d: "many", "Expected one number"),
        ("04-7", lambda s, d: math.nan, "finite"),
        ("04-7", lambda s, d: torch.ones(2), "Expected one number"),
        ("04-4", "no", "Expected"),
        ("04-4", lambda c: c, "raised"),
        ("04-4", lambda c, v: c @ v, "xpected"),
        ("04-4", lambda c, v: "1", "xpected"),
    ],
)
def test_wrong_kind_of_function_gets_a_message_and_never_a_traceback(exercise, answer, word):
    verdict = check(exercise, answer)
    assert not verdict
    assert word in verdict.message
    assert exercise == "01-2" or "Hint" not in verdict.message


@pytest.mark.parametrize(
    "answer",
    [[0.5, 0.5], torch.tensor([0.5, 0.5]), np.array([0.5, 0.5]), (Fraction(1, 2), np.float32(0.5)), torch.ones(2) / 2],
)
def test_any_kind_of_vector_is_read(answer):
    assert check("04-1", answer)


def test_a_vector_that_requires_gradients_is_read():
    assert check("04-1", torch.full((2,), 0.5, requires_grad=True))


@pytest.mark.parametrize(
    "answer",
    [
        0.5,
        (0.5,),
        (0.5, 0.5, 0.5),
        "ab",
        (0.5, "a"),
        {0.5},
        torch.tensor(0.5),
        torch.full((1, 2), 0.5),
        (0.5, math.nan),
    ],
)
def test_wrong_kind_of_vector_says_what_is_expected_and_costs_no_hint(answer):
    verdict = check("04-1", answer)
    assert not verdict
    assert "Expected" in verdict.message
    assert "Hint 1" in check("04-1", (3, 3)).message


def test_answer_functions_cannot_change_the_case_under_test():
    def in_place(covariance, v):
        v /= v.norm()
        return v @ covariance @ v

    assert check("04-4", in_place)


@pytest.mark.parametrize("call", [lambda: check("99-1", 1), lambda: reset("99-1"), lambda: check(3, 1)])
def test_unknown_exercise_lists_the_known_ones(call):
    with pytest.raises(ValueError, match=r"Unknown exercise .*01-1.*04-4"):
        call()


def test_sampler_check_leaves_the_global_random_state_alone():
    before = torch.get_rng_state()
    check("01-2", SOLUTIONS["01-2"])
    assert torch.equal(before, torch.get_rng_state())


def test_verdict_shows_itself():
    right, wrong = Verdict("x", True, "Fine."), Verdict("x", False, "a < b & c")
    assert repr(right) == "✓ Exercise x: Fine."
    assert repr(wrong).startswith("✗")
    assert "a &lt; b &amp; c" in wrong._repr_html_()
    assert "Not yet" in wrong._repr_html_()
    assert "Right" in right._repr_html_()
    with pytest.raises(AttributeError):
        right.correct = False
