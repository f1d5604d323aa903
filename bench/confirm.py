"""Figures that a second run confirms: the tables of a benchmark program from several runs of it."""
import re
import statistics

RUNS = 3
APART = 0.10  # maximum difference of two runs, as a share of the larger figure
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?%?(?![\w.])")


def agree(a, b):
    return abs(a - b) <= APART * max(abs(a), abs(b))


def confirmed(texts):
    """Merges the outputs of several runs to one text. A number that is the same in all of them, such as a size, stays.
    Any other becomes the median of the runs, or "-" where the median agrees with no second run within APART. Raises
    ValueError when the runs printed different texts around their numbers."""
    around = [NUMBER.split(text) for text in texts]
    figures = [NUMBER.findall(text) for text in texts]
    words = [[" ".join(part.split()) for part in parts] for parts in around]
    if any(other != words[0] for other in words):
        raise ValueError("the runs printed different tables")
    out = list(around[0])
    for i, printed in enumerate(zip(*figures, strict=True)):
        chosen = choose(printed)
        gap = len(figures[0][i]) - len(chosen)
        before = out[i]
        if gap >= 0:
            before += " " * gap
        else:  # numbers stay right-aligned in their columns
            spare = len(before) - len(before.rstrip(" ")) - 1
            before = before[:len(before) + max(gap, -max(spare, 0))]
        out[i] = before + chosen
    return "".join(out)


def choose(printed):
    if len(set(printed)) == 1:
        return printed[0]
    values = sorted((float(p.rstrip("%")), p) for p in printed)
    middle, text = values[len(values) // 2]
    seconds = [value for value, _ in values]
    seconds.remove(middle)
    return text if any(agree(middle, other) for other in seconds) else "-"
