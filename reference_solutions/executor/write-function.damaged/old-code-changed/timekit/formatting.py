"""Write durations."""

UNITS = (("h", 3600), ("m", 60), ("s", 1))


def format_duration(seconds: int) -> str:
    """Return the shortest text for a number of seconds: 5400 gives '1h30m'."""
    if seconds < 0:
        raise ValueError("a duration cannot be negative")
    parts = []
    for unit, size in UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0"
