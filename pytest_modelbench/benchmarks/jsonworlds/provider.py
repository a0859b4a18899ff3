"""A benchmark in a world of JSON: tools change records, and assertions judge what they are then.

One engine for all of them: what a benchmark adds is its tools and its types of assertions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import Answer, Benchmark, Met, Private, Tool, verdict
from pytest_modelbench.benchmarks.jsonworlds.assertions import AssertionProblem, AssertionTypes
from pytest_modelbench.benchmarks.jsonworlds.scoring import Finding, score
from pytest_modelbench.benchmarks.jsonworlds.state import State, copied
from pytest_modelbench.benchmarks.jsonworlds.tasks import Task, read_tasks
from pytest_modelbench.errors import PackProblem, PackProblems
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.records import Check, Verdict

COUNTED = "counted"
"""The check that is lost where no assertion counts: what held all along was earned by nobody."""


@dataclass
class JsonWorld:
    """The world of one attempt: ``state`` is what tools change, ``start`` what it was."""

    state: State
    start: State
    allowed: tuple[str, ...] = ()


class JsonWorlds(Benchmark[JsonWorld]):
    """Extend it: give ``types``, `acts`, and `tasks` where they are not files of the pack."""

    types: AssertionTypes

    def __init__(self, folder: Path, options: Mapping[str, JsonValue]) -> None:
        """Take the pack's folder."""
        super().__init__(folder, options)
        self.folder = folder
        self._tasks: dict[str, Task] = {}

    @abstractmethod
    def acts(self, state: State) -> Sequence[Tool]:
        """Return all tools over a state."""

    def tasks(self) -> Iterable[Task]:
        """Return the tasks: by default those of the folder ``tasks``."""
        return read_tasks(self.folder)

    def system(self, public: Mapping[str, JsonValue]) -> str:
        """Return what a candidate is told before the prompt of a case."""
        return str(public.get("system", ""))

    def cases(self) -> Iterator[BenchmarkCase]:
        """Yield a case a task; PackProblem for an assertion that is not known or does not fit."""
        tasks = list(self.tasks())
        problems = [problem for task in tasks for problem in self.problems(task)]
        if problems:
            raise problems[0] if len(problems) == 1 else PackProblems(problems)
        for task in tasks:
            self._tasks[task.id] = task
            public: dict[str, JsonValue] = {"state": task.state, "tools": [*task.tools]}
            if task.system:
                public["system"] = task.system
            yield BenchmarkCase(
                id=task.id,
                prompt=task.prompt,
                public=public,
                private=Private(
                    {"state": task.state, "assertions": [dict(a) for a in task.assertions]}
                ),
                title=task.title,
                tags=task.tags,
                group=task.group,
                damaged={name: one.loses for name, one in task.damaged.items()},
            )

    def problems(self, task: Task) -> list[PackProblem]:
        """Return what is wrong with the assertions of a task, each with its number."""
        found = []
        names: set[str] = set()
        for number, assertion in enumerate(task.assertions, 1):
            try:
                self.types.check(task.state, assertion)
            except AssertionProblem as problem:
                found.append(task.problem(f"assertion {number}: {problem}", "mend the task"))
            name = check_name(number, assertion)
            if name in names:
                what = f"assertion {number}: there is a {name!r} already"
                found.append(task.problem(what, "give each a name of its own"))
            names.add(name)
        lost = {name for one in task.damaged.values() for name in one.loses} - names - {COUNTED}
        if lost:
            what = f"damaged answers lose {', '.join(sorted(lost))}, which no assertion is named"
            found.append(task.problem(what, f"there are {', '.join(sorted(names))}"))
        return found

    def messages(
        self, case: BenchmarkCase, options: Mapping[str, JsonValue]
    ) -> Sequence[JsonValue]:
        """Return what comes before any prompt, and the prompt."""
        said = self.system(case.public)
        first: list[JsonValue] = [{"role": "system", "content": said}] if said else []
        return [*first, {"role": "user", "content": case.prompt}]

    def setup(self, public: Mapping[str, JsonValue], folder: Path) -> JsonWorld:
        """Copy the state of the beginning."""
        start, tools = public["state"], public.get("tools")
        start = start if isinstance(start, dict) else {}
        state = copied(start)
        allowed = tuple(map(str, tools)) if isinstance(tools, list) else ()
        return JsonWorld(state if isinstance(state, dict) else {}, start, allowed)

    def tools(self, world: JsonWorld) -> Sequence[Tool]:
        """Return the tools, of which a task may allow some only."""
        acts = self.acts(world.state)
        return [one for one in acts if one.name in world.allowed] if world.allowed else acts

    def harvest(self, world: JsonWorld, met: Met) -> JsonValue:
        """Return the collections that are other than at the beginning, and the last text."""
        return {"changed": _changes(world.start, world.state), "text": met.text}

    def verify(self, private: Private, observation: JsonValue) -> Verdict:
        """Judge the end by assertions, of which those count that the beginning did not give."""
        start, assertions = private.data["state"], private.data["assertions"]
        seen = observation.get("changed") if isinstance(observation, dict) else None
        end = {**_object(start)}
        for app, collections in _object(seen).items():
            old = end.get(app)
            new = isinstance(old, dict) and isinstance(collections, dict)
            end[app] = {**_object(old), **_object(collections)} if new else collections
        listed = [_object(one) for one in assertions] if isinstance(assertions, list) else []
        found = score(listed, end, _object(start), self.types.check)
        checks = [
            Check(name=check_name(number, said), passed=one.passed, reason=_why(one))
            for number, (said, one) in enumerate(zip(listed, found.findings, strict=True), 1)
            if one.passed or not one.excluded
        ]
        if not found.counted:
            checks.append(Check(name=COUNTED, passed=False, reason="nothing was done"))
        return verdict(checks, reward=found.reward)

    def reference(self, case: BenchmarkCase, variant: str = "") -> Answer | None:
        """Return the calls that the task says."""
        task = self._tasks[case.id]
        if not variant:
            return task.reference
        damage = task.damaged.get(variant)
        return None if damage is None else damage.answer


def check_name(number: int, assertion: Mapping[str, object]) -> str:
    """Return the name of an assertion's check: what it is called, or its number and type."""
    return str(assertion.get("name") or f"{number}-{assertion.get('type')}")


def _why(finding: Finding) -> str:
    if finding.excluded:
        return "held all along"
    return "" if finding.passed else "does not hold"


def _changes(start: State, state: State) -> dict[str, JsonValue]:
    """Return app → collection → what it is now, of collections that are not what they were."""
    changes: dict[str, JsonValue] = {}
    for app, now in state.items():
        before = start.get(app)
        if now == before:
            continue
        if isinstance(now, dict) and isinstance(before, dict):
            changes[app] = {key: one for key, one in now.items() if one != before.get(key)}
        else:
            changes[app] = now
    return changes


def _object(value: object) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}
