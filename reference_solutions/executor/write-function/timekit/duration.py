"""Read durations."""

import re

_DURATION = re.compile(
    r"\s*(?:([0-9]+)h)?\s*(?:([0-9]+)m)?\s*(?:([0-9]+)s)?\s*", re.IGNORECASE | re.ASCII
)


def parse_duration(text: str) -> int:
    """Return the seconds that a text such as '1h 30m' stands for; ValueError for any other text."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise ValueError(f"not a duration: {text!r}")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds
