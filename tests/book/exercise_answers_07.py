"""Right and wrong answers to the exercises of chapter 7."""


def on_lattice(i, j, patch, size):
    return i * patch % size == 0 and j * patch % size == 0


SOLUTIONS = {"07-2": on_lattice, "07-1": (4, 2), "07-3": 960}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("07-2", lambda i, j, patch, size: i % patch == 0 and j % patch == 0, "one patch"),
    ("07-2", lambda i, j, patch, size: i * patch % size == 0, "left to right"),
    ("07-2", lambda i, j, patch, size: True, "Hint"),
    ("07-2", lambda i, j, patch, size: 1, "True or False"),
    ("07-1", (2, 3), "one patch"),
    ("07-1", (1, 5), "half of the image"),
    ("07-1", (2, 6), "Hint"),
    ("07-1", 2, "Expected 2 numbers"),
    ("07-3", 64, "on the lattice"),
    ("07-3", 1023, "constant image"),
    ("07-3", 1008, "64 pixels"),
    ("07-3", 512, "Hint"),
]
