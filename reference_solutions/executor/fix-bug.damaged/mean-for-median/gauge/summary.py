"""Numbers that describe a list of readings."""


def mean(readings: list[float]) -> float:
    """Return the arithmetic mean; ValueError for no readings."""
    if not readings:
        raise ValueError("no readings")
    return sum(readings) / len(readings)


def median(readings: list[float]) -> float:
    """Return the middle reading by size.

    For an even number of readings there are two in the middle: return their mean.
    ValueError for no readings.
    """
    if not readings:
        raise ValueError("no readings")
    if len(readings) % 2:
        return sorted(readings)[len(readings) // 2]
    return (min(readings) + max(readings)) / 2


def spread(readings: list[float]) -> float:
    """Return the distance between the smallest and the largest reading; ValueError for none."""
    if not readings:
        raise ValueError("no readings")
    return max(readings) - min(readings)
