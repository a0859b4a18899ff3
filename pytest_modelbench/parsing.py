"""Parse JSON that somebody else wrote: a server, a model, a program, a hand in a file.

The standard parser fails on deep nesting by RecursionError, which is no ValueError, and just below
that limit it returns what nothing behind it can walk, check or write. Here both are a ValueError.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

DEEPEST = 100
"""Levels of lists and objects; pydantic's own validator takes 255, people write ten."""


# Any: JSON as the standard parser has it; who takes it checks what it is.
def parse(text: str | bytes, *, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Return the value that a whole text is; ValueError for no JSON and for one nested too deep."""
    try:
        value = json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        # Python's own words are about a setting of Python.
        what = "it has a number of thousands of digits" if "digits" in str(error) else str(error)
        raise ValueError(what) from None
    if isinstance(text, bytes):
        opened = text.count(b"[") + text.count(b"{")
    else:
        opened = text.count("[") + text.count("{")
    return value if opened <= DEEPEST else _walkable(value)


def is_of_characters(text: str, value: object) -> bool:
    """Tell whether a value parsed from a text can be written: it spells no half of a pair."""
    if "\\ud" not in text.lower():
        return True
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def parse_at(text: str, place: int) -> tuple[Any, int]:  # Any: as above
    """Return the value that begins at a place of a text, and where it ends; ValueError as above."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, place)
    except RecursionError:
        raise _too_deep() from None
    return _walkable(value), end


def amount(value: object) -> float | None:
    """Return a number that counts something: finite and not below 0; None for all else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return float(value)
    return None


_MOST = sys.float_info.max


def _walkable(value: Any) -> Any:  # Any: as above
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [one for one in level if isinstance(one, (dict, list))]
        if not level:
            return value
        level = [child for one in level for child in (one.values() if type(one) is dict else one)]
    raise _too_deep()


def _too_deep() -> ValueError:
    return ValueError(f"it is nested deeper than {DEEPEST} levels")
