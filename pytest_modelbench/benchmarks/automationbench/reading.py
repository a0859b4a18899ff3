"""Reading records of an office, and naming new ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from pytest_modelbench.benchmarks.jsonworlds.state import Record, State
from pytest_modelbench.benchmarks.tools import ToolRefused

SHOWN = 50
"""Records that one call shows."""


def holding(records: Iterable[Record], text: str) -> list[Record]:
    """Return records that hold each word of a text somewhere, capitals aside."""
    words = text.casefold().split()
    found = []
    for one in records:
        whole = json.dumps(one, ensure_ascii=False).casefold()
        if all(word in whole for word in words):
            found.append(one)
    return found


def listed(records: Sequence[Mapping[str, JsonValue]]) -> str:
    """Return records as a model reads them, a line each."""
    lines = [json.dumps(one, ensure_ascii=False) for one in records[:SHOWN]]
    more = len(records) - SHOWN
    return "\n".join([*lines, *([f"[and {more} more]"] if more > 0 else [])]) or "Nothing is there."


def the_record(records: Iterable[Record], what: str, wanted: JsonValue, key: str = "id") -> Record:
    """Return the record of an id; ToolRefused where there is none."""
    for one in records:
        if str(one.get(key)) == str(wanted):
            return one
    raise ToolRefused(f"there is no {what} {wanted!r}")


def fresh_id(prefix: str, records: Sequence[Record]) -> str:
    """Return an id that no record has."""
    taken = {str(one.get("id")) for one in records}
    number = len(records) + 1
    while f"{prefix}_{number}" in taken:
        number += 1
    return f"{prefix}_{number}"


def now(state: State) -> str:
    """Return the time of a world, which stands still."""
    meta = state.get("meta")
    return str(meta.get("current_time", "")) if isinstance(meta, dict) else ""
