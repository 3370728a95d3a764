"""Right and wrong answers to the exercises of chapter 11."""


def contradict(x, v):
    return x - 2 * (x @ v)[:, None] * v


def reliability(both, contradicted, images):
    return (images - contradicted) / (both - contradicted)


SOLUTIONS = {"11-2": reliability, "11-1": contradict, "11-3": 1024}
# (exercise, wrong answer, a word that its remark must hold)
WRONG = [
    ("11-2", lambda b, c, i: 1 - reliability(b, c, i), "may lie"),
    ("11-2", lambda b, c, i: i, "now and then"),
    ("11-2", lambda b, c, i: i / b, "right all the same"),
    ("11-2", lambda b, c, i: (i - c) / b, "mix the two"),
    ("11-2", lambda b, c, i: 0.5, "Hint"),
    ("11-2", lambda b, c, i: None, "returns nothing yet"),
    ("11-1", lambda x, v: x - (x @ v)[:, None] * v, "takes the feature away"),
    ("11-1", lambda x, v: -x, "noise round as well"),
    ("11-1", lambda x, v: x - 2 * v, "depends on the sample"),
    ("11-1", lambda x, v: x + 2 * (x @ v)[:, None] * v, "mind the sign"),
    ("11-1", lambda x, v: -(x @ v)[:, None] * v, "noise must stay"),
    ("11-1", lambda x, v: 2 * (x @ v)[:, None] * v - x, "negative of the right answer"),
    ("11-1", lambda x, v: 0 * x, "Hint"),
    ("11-1", lambda x, v: x @ v, "shape"),
    ("11-1", lambda x, v: ..., "returns nothing yet"),
    ("11-3", 1023, "leave one"),
    ("11-3", 1025, "One fewer"),
    ("11-3", 136_126, "mean difference"),
    ("11-3", 10_000, "Hint"),
    ("11-3", "many", "one number"),
]
