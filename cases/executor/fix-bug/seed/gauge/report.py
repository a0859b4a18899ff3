"""Write the report."""

from gauge.readings import parse_readings
from gauge.summary import mean, median, spread


def report(text: str) -> str:
    """Return three lines about the measurements in a text, each number with two decimals."""
    readings = parse_readings(text)
    return "\n".join(
        f"{name:<7}{value:>8.2f}"
        for name, value in (
            ("mean", mean(readings)),
            ("median", median(readings)),
            ("spread", spread(readings)),
        )
    )
