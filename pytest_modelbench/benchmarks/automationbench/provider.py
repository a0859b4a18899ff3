"""AutomationBench's records and rules, and tasks of one's own, over five apps of an office."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.benchmarks.automationbench.gold import made_reference
from pytest_modelbench.benchmarks.automationbench.messages import gmail, slack
from pytest_modelbench.benchmarks.automationbench.office import OFFICE
from pytest_modelbench.benchmarks.automationbench.records import (
    google_calendar,
    google_sheets,
    salesforce,
)
from pytest_modelbench.benchmarks.benchmark import Tool
from pytest_modelbench.benchmarks.jsonworlds.provider import JsonWorlds
from pytest_modelbench.benchmarks.jsonworlds.scoring import RULES_VERSION
from pytest_modelbench.benchmarks.jsonworlds.state import State
from pytest_modelbench.benchmarks.jsonworlds.tasks import Task, read_tasks
from pytest_modelbench.errors import PackProblem
from pytest_modelbench.parsing import parse

APPS: Mapping[str, Callable[[State], list[Tool]]] = {
    "gmail": gmail,
    "slack": slack,
    "google_sheets": google_sheets,
    "google_calendar": google_calendar,
    "salesforce": salesforce,
}
"""The apps that are here, by the names of upstream's worlds → their actions."""

OPTIONS = ("records", "only", "unknown_types")
SYSTEM = (
    "You do office work with the tools at hand. Nobody can be asked: go by what you find, and do "
    "what the request says and nothing else."
)


class AutomationBench(JsonWorlds):
    """Office work judged by the end of its world.

    Options: ``records``, upstream's tasks (a JSON list, or JSON lines), by default the pack's own
    ``tasks``; ``only``, names of tasks or domains; ``unknown_types``, ``"refuse"`` or
    ``"leave-out"``: what becomes of a task with an assertion of a type that is not known.
    """

    version = "1"
    rules_version = f"{RULES_VERSION}; office 1"
    types = OFFICE

    def __init__(self, folder: Path, options: Mapping[str, JsonValue]) -> None:
        """Take where the tasks are, and which are wanted."""
        wrong = sorted(set(options) - set(OPTIONS))
        if wrong:
            raise ValueError(f"it has no option {', '.join(wrong)}; it has {', '.join(OPTIONS)}")
        super().__init__(folder, {})
        records = options.get("records")
        self.records = None if records is None else folder / str(records)
        only = options.get("only", [])
        if not isinstance(only, list):
            raise TypeError("only is a list of names of tasks or domains")
        self.only = [str(one) for one in only]
        self.unknown = options.get("unknown_types", "refuse")
        if self.unknown not in ("refuse", "leave-out"):
            raise ValueError('unknown_types is "refuse" or "leave-out"')

    def tasks(self) -> Iterator[Task]:
        """Yield the tasks that are wanted."""
        if self.records is None:
            found = [replace(task, system=SYSTEM) for task in read_tasks(self.folder)]
        else:
            found = list(read_records(self.records))
        for task in found:
            wanted = not self.only or {task.id, *task.tags} & set(self.only)
            if wanted and (self.unknown == "refuse" or self._known(task)):
                yield task if self.problems(task) else self._with_reference(task)

    def acts(self, state: State) -> Sequence[Tool]:
        """Return the actions of the apps of a world."""
        return [tool for app, tools in APPS.items() if app in state for tool in tools(state)]

    def _known(self, task: Task) -> bool:
        return all(str(one.get("type")) in self.types for one in task.assertions)

    def _with_reference(self, task: Task) -> Task:
        if task.reference is not None:
            return task
        return replace(task, reference=made_reference(task.state, task.assertions, self.types))


def read_records(path: Path) -> Iterator[Task]:
    """Yield upstream's tasks: a JSON list of them, one of them, or one a line."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise PackProblem(what, path=path, remedy="records names a file of tasks") from None
    for number, raw in enumerate(_parsed(text, path), 1):
        yield _task(raw, number, path)


def _parsed(text: str, path: Path) -> list[JsonValue]:
    try:
        found = parse(text)
        return found if isinstance(found, list) else [found]
    except ValueError:
        pass
    parsed = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                parsed.append(parse(line))
            except ValueError as error:
                what = f"is no JSON: {error}"
                raise PackProblem(
                    what, path=path, line=number, remedy="write a JSON list, or a record a line"
                ) from None
    return parsed


def _task(raw: JsonValue, number: int, path: Path) -> Task:
    record = raw if isinstance(raw, dict) else {}
    info, prompt = record.get("info"), record.get("prompt")
    info = parse(info) if isinstance(info, str) else info
    name = record.get("task")
    if not isinstance(info, dict) or not isinstance(prompt, list) or not isinstance(name, str):
        what = f"record {number} has no task, prompt or info"
        raise PackProblem(what, path=path, remedy="take the file as upstream has it")
    state, assertions = _filled(info), info.get("assertions")
    if not isinstance(assertions, list) or not assertions:
        what = f"record {number} ({name}) has no assertions"
        raise PackProblem(what, path=path, remedy="take the file as upstream has it")
    said = {str(one["role"]): str(one["content"]) for one in prompt if isinstance(one, dict)}
    return Task(
        id=name,
        prompt=said.get("user", ""),
        system=said.get("system", ""),
        state=state,
        assertions=tuple(one for one in assertions if isinstance(one, dict)),
        path=path,
        record=number,
        tags=(name.partition(".")[0],),
    )


def _filled(info: Mapping[str, JsonValue]) -> State:
    """Return a task's world, with the apps of its allowed actions, which may begin empty."""
    initial, allowed = info.get("initial_state"), info.get("zapier_tools")
    state: State = {**initial} if isinstance(initial, dict) else {}
    for name in allowed if isinstance(allowed, list) else ():
        for app in APPS:
            if str(name).startswith(f"{app}_"):
                state.setdefault(app, {})
    return state
