"""Right and wrong answers to the exercises of chapter 7."""


def eigenspaces(size, patch, channels):
    first = channels * patch**2
    return first, channels * size**2 - first


def on_lattice(i, j, patch, size):
    return i * patch % size == 0 and j * patch % size == 0


SOLUTIONS = {"07-1": eigenspaces, "07-3": on_lattice, "07-2": (4, 2)}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("07-1", lambda size, patch, channels: eigenspaces(size, patch, 1), "Each channel"),
    ("07-1", lambda size, patch, channels: eigenspaces(size, size // patch, channels), "counts patches"),
    ("07-1", lambda size, patch, channels: (channels * patch**2, channels * size**2), "together"),
    ("07-1", lambda size, patch, channels: (1, 2), "Hint"),
    ("07-1", lambda size, patch, channels: 64, "Expected 2 numbers"),
    ("07-3", lambda i, j, patch, size: i % patch == 0 and j % patch == 0, "one patch"),
    ("07-3", lambda i, j, patch, size: i * patch % size == 0, "left to right"),
    ("07-3", lambda i, j, patch, size: True, "Hint"),
    ("07-3", lambda i, j, patch, size: 1, "True or False"),
    ("07-2", (2, 3), "one patch"),
    ("07-2", (1, 5), "half of the image"),
    ("07-2", (2, 6), "Hint"),
    ("07-2", 2, "Expected 2 numbers"),
]
