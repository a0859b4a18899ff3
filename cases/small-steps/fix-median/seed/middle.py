def median(numbers):
    """Return the number in the middle, by size."""
    ordered = sorted(numbers)
    return ordered[len(ordered) // 2]
