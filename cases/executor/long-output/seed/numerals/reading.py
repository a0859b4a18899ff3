"""Read Roman numerals."""

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def value(numeral: str) -> int:
    """Return the number that a numeral stands for."""
    total = 0
    for here, following in zip(numeral, numeral[1:] + " "):
        size = VALUES[here]
        total += -size if VALUES.get(following, 0) > size else size
    return total
