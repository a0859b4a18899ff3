def sum_to(last):
    """Return 1 + 2 + ... + last."""
    total = 0
    for number in range(1, last):
        total += number
    return total
