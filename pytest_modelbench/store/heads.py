"""Read the first line of a results file: what its run declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_modelbench.store.index import RunHeader


# Any: JSON that no model has checked; it is checked here, since a reader of many files loads none.
def header_of(raw: dict[str, Any], path: Path) -> RunHeader:
    """Return the header that a parsed line is; KeyError or TypeError for another shape.

    What a later version adds to it is passed over.
    """
    grid = _table("grid", raw["grid"])
    repeats = grid["repeats"]
    if not _is_count(repeats):
        raise TypeError("grid.repeats is no number of repeats")
    fresh = _table("fresh", raw.get("fresh", {}))
    if not all(isinstance(told, list) and all(map(_is_count, told)) for told in fresh.values()):
        raise TypeError("fresh is no table of repeats")
    versions = _table("versions", raw.get("versions", {}))
    return RunHeader(
        path=path,
        run=_text("run", raw["run"]),
        started=_text("started", raw["started"]),
        pack=_text("pack", raw["pack"]),
        candidate=_text("candidate", raw["candidate"]),
        note=_text("note", raw.get("note", "")),
        cases=_texts("grid.cases", grid["cases"]),
        candidates=_texts("grid.candidates", grid["candidates"]),
        repeats=repeats,
        facts=_table("facts", raw.get("facts", {})),
        versions={name: _text(f"versions.{name}", told) for name, told in versions.items()},
        fresh={case: tuple(told) for case, told in fresh.items()},
        draw=_table("draw", raw.get("draw", {})),
        gates=_texts("gates", raw.get("gates", [])),
    )


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return value


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{name} is no list of texts")
    return tuple(_text(name, one) for one in value)


def _table(name: str, value: object) -> dict[str, Any]:  # Any: as above
    if not isinstance(value, dict):
        raise TypeError(f"{name} is no table")
    return value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
