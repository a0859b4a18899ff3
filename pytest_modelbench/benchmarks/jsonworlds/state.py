"""The state of a world: app → collection → records, plain data that tools change in place."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

State = dict[str, JsonValue]
Record = dict[str, JsonValue]

KEYS = ("id", "title")
"""By which the records of a list are told apart: the first that all of them have."""


def collection(state: State, app: str, name: str) -> list[JsonValue]:
    """Return the list of a collection, to be changed in place; an empty one is made."""
    apps = state.setdefault(app, {})
    found = apps.setdefault(name, []) if isinstance(apps, dict) else []
    return found if isinstance(found, list) else []


def records_in(state: State, app: str, name: str) -> list[Record]:
    """Return the records of a collection, each to be changed in place; nothing is made."""
    apps = state.get(app)
    found = apps.get(name) if isinstance(apps, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def laid_over(base: JsonValue, patch: JsonValue) -> JsonValue:
    """Return a copy of a value with another over it.

    Objects are joined key by key, lists of records by their ids, in which a record that is not
    there yet comes last; anything else is replaced.
    """
    if isinstance(base, dict) and isinstance(patch, dict):
        return {
            key: laid_over(base.get(key), patch[key]) if key in patch else copied(base[key])
            for key in [*base, *(key for key in patch if key not in base)]
        }
    if isinstance(base, list) and isinstance(patch, list):
        key = _key([*base, *patch])
        if key:
            found = {str(one[key]): one for one in base if isinstance(one, dict)}
            for one in patch:
                if isinstance(one, dict):
                    name = str(one[key])
                    found[name] = {**found.get(name, {}), **one}
            return [copied(one) for one in found.values()]
    return copied(patch)


def copied(value: JsonValue) -> JsonValue:
    """Return a copy of plain data that shares nothing with it."""
    if isinstance(value, dict):
        return {key: copied(one) for key, one in value.items()}
    return [copied(one) for one in value] if isinstance(value, list) else value


def _key(sequence: Sequence[JsonValue]) -> str:
    for key in KEYS:
        if sequence and all(isinstance(one, dict) and key in one for one in sequence):
            return key
    return ""
