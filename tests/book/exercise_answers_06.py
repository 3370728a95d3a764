"""Right and wrong answers to the exercises of chapter 6."""

SOLUTIONS = {"06-1": 16, "06-2": 8, "06-3": 3}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("06-1", 24, "alone"),
    ("06-1", 0, "two numbers"),
    ("06-1", 48, "twice"),
    ("06-1", 5, "Hint"),
    ("06-2", 5, "window"),
    ("06-2", 4, "whole periods"),
    ("06-2", 7, "Hint"),
    ("06-3", 183 / 32, "either factor"),
    ("06-3", 183**0.5, "either factor"),
    ("06-3", 29, "are kept"),
    ("06-3", 5, "Hint"),
]
