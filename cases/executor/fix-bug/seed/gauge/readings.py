"""Read measurements from text."""


def parse_readings(text: str) -> list[float]:
    """Return one number for each line; blank lines and lines that begin with '#' are skipped."""
    readings = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            readings.append(float(line))
        except ValueError:
            raise ValueError(f"line {number} is not a number: {line!r}") from None
    return readings
