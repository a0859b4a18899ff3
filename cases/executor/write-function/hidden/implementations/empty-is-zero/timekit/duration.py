"""Broken: no text is no time."""

SIZES = {"h": 3600, "m": 60, "s": 1}


def parse_duration(text):
    total, rest, allowed, found = 0, text.strip().lower(), "hms", False
    while rest:
        digits = len(rest) - len(rest.lstrip("0123456789"))
        unit = rest[digits : digits + 1]
        if not digits or not unit or unit not in allowed:
            raise ValueError(text)
        total += int(rest[:digits]) * SIZES[unit]
        allowed = allowed[allowed.index(unit) + 1 :]
        rest, found = rest[digits + 1 :].lstrip(), True
    if not found and text:
        raise ValueError(text)
    return total
