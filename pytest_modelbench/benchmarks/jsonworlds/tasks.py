"""Tasks in a world of JSON, as they are written: a TOML file each, laid over a common world."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import Answer
from pytest_modelbench.benchmarks.jsonworlds.state import State, laid_over
from pytest_modelbench.errors import PackProblem
from pytest_modelbench.parsing import parse

WORLD_FILE = "world.json"
TASKS_FOLDER = "tasks"
Calls = tuple[tuple[str, Mapping[str, JsonValue]], ...]


@dataclass(frozen=True)
class Damage:
    """A damaged answer, and the checks that it has to lose."""

    answer: Answer
    loses: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Task:
    """One task. ``path`` and ``record`` (from 1, 0 for a file of its own) say where it stands."""

    id: str
    prompt: str
    state: State
    assertions: tuple[Mapping[str, JsonValue], ...]
    path: Path
    record: int = 0
    system: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    group: str = ""
    tools: tuple[str, ...] = ()
    reference: Answer | None = None
    damaged: Mapping[str, Damage] = field(default_factory=dict)

    def problem(self, what: str, remedy: str) -> PackProblem:
        """Return a problem with this task that says where it stands."""
        record = f"record {self.record} ({self.id}): " if self.record else ""
        return PackProblem(f"{record}{what}", path=self.path, remedy=remedy)


def read_tasks(folder: Path) -> Iterator[Task]:
    """Yield the tasks of a pack's folder ``tasks``, by name; PackProblem for a file not sound."""
    common = read_state(folder / WORLD_FILE)
    for path in sorted((folder / TASKS_FOLDER).glob("*.toml")):
        yield _task(path, common)


def read_state(path: Path) -> State:
    """Return the world of a JSON file, app → collection → records."""
    try:
        found = parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PackProblem(f"cannot be read: {error}", path=path, remedy="mend it") from None
    if not isinstance(found, dict):
        raise PackProblem("is no JSON object", path=path, remedy="write app → collection → records")
    return found


def changed(calls: Calls, edit: Mapping[str, JsonValue]) -> Calls:
    """Return calls with some left out, some with other arguments, and some behind.

    ``drop`` lists numbers of calls, from 1; ``change`` has arguments by a call's number; ``add``
    is a list of further calls. ValueError for a number that is none.
    """
    dropped = _numbers(edit.get("drop", []), len(calls))
    changes = edit.get("change", {})
    changes = changes if isinstance(changes, dict) else {}
    altered = {_numbers([number], len(calls))[0]: new for number, new in changes.items()}
    kept = []
    for number, (name, arguments) in enumerate(calls, 1):
        new = altered.get(number)
        if number not in dropped:
            kept.append((name, {**arguments, **(new if isinstance(new, dict) else {})}))
    return (*kept, *_calls(edit.get("add", [])))


def _task(path: Path, common: State) -> Task:
    def wrong(what: str) -> PackProblem:
        return PackProblem(what, path=path, remedy="see docs/benchmarks/json-worlds.md")

    try:
        raw: Mapping[str, JsonValue] = tomllib.loads(path.read_text(encoding="utf-8"))
        json.dumps(raw)  # dates and the like are no plain data
    except (OSError, ValueError, TypeError) as error:
        raise wrong(f"cannot be read: {error}") from None
    known = ("title", "prompt", "tags", "group", "world", "assert", "reference", "damaged")
    odd = sorted(set(raw) - set(known))
    if odd:
        raise wrong(f"has {', '.join(odd)}, which is not known; known: {', '.join(known)}")
    prompt, assertions = raw.get("prompt"), raw.get("assert")
    if not isinstance(prompt, str) or not isinstance(assertions, list):
        raise wrong("has no prompt, or no [[assert]]")
    state = laid_over(common, raw.get("world", {}))
    tags = raw.get("tags", [])
    try:
        calls = _calls(raw.get("reference", []))
        damaged = {name: _damage(calls, edit) for name, edit in _object(raw.get("damaged")).items()}
    except ValueError as error:
        raise wrong(str(error)) from None
    return Task(
        id=path.stem,
        prompt=prompt.strip(),
        state=_object(state),
        assertions=tuple(_object(one) for one in assertions),
        path=path,
        title=str(raw.get("title", "")),
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        group=str(raw.get("group", "")),
        reference=Answer("Done.", calls) if calls else None,
        damaged=damaged,
    )


def _damage(calls: Calls, edit: JsonValue) -> Damage:
    edit = _object(edit)
    odd = sorted(set(edit) - {"loses", "drop", "change", "add"})
    loses = edit.get("loses")
    if odd or not isinstance(loses, list) or not loses:
        raise ValueError(f"a damaged answer has loses, and drop, change, add; not {edit}")
    return Damage(Answer("Done.", changed(calls, edit)), tuple(map(str, loses)))


def _calls(value: JsonValue) -> Calls:
    found = []
    for one in value if isinstance(value, list) else ():
        arguments = dict(_object(one))
        name = arguments.pop("tool", None)
        if not isinstance(name, str):
            raise ValueError(f"a call names no tool: {one}")
        found.append((name, arguments))
    return tuple(found)


def _numbers(value: JsonValue, most: int) -> list[int]:
    found = [int(str(one)) for one in value] if isinstance(value, list) else []
    if any(not 1 <= one <= most for one in found):
        raise ValueError(f"of {found} not all are numbers of the {most} calls of the reference")
    return found


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}
