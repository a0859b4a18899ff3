"""Function candidates: run in a box, given the task and the tools, judged like any other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import Benchmark, BenchmarkCase, Private, Tool, verdict
from pytest_modelbench.benchmarks.benchmark import ToolRefused as Refused
from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.errors import Fault, RegistryProblem
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.packs.model import BENCHMARK, Case
from pytest_modelbench.packs.source import Source
from pytest_modelbench.protocols.agent import AgentProtocol
from pytest_modelbench.protocols.benchmark import BenchmarkProtocol
from pytest_modelbench.protocols.functions import FunctionCandidate
from pytest_modelbench.protocols.protocol import Services
from pytest_modelbench.records import Candidate, Limits
from pytest_modelbench.today import identifier
from pytest_modelbench.worlds.box import TEMPORARY, BoxSpec
from pytest_modelbench.worlds.levels import choose, probe


@pytest.fixture
def function(tmp_path: Path) -> Callable[..., Candidate]:
    """A candidate whose function is written here, in a package of a project of its own."""
    root = tmp_path / "project"

    def declared(code: str, name: str = "mine.solver:solve", **keys: str) -> Candidate:
        (root / "mine").mkdir(parents=True, exist_ok=True)
        (root / "mine" / "__init__.py").write_text("")
        (root / "mine" / "solver.py").write_text(code)
        lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        head = f'[candidates.f]\nagent = "function"\nfunction = "{name}"\n'
        (root / "modelbench.toml").write_text(head + "\n".join(lines))
        (candidate,) = Registry.read(root).resolve(["f"])
        return candidate

    return declared


def worked(case: Case, candidate: Candidate, services: Services) -> tuple[Any, Any, Journal]:
    protocol = BenchmarkProtocol() if case.protocol == BENCHMARK else AgentProtocol()
    journal = Journal()
    harvested = protocol.work(case, candidate, 1, "a1", services, journal)
    observation = protocol.observe(case, harvested, services)
    return harvested, protocol.verify(case, harvested, observation), journal


REPAIRS = """
def solve(task, tools):
    print("prompt:", task.prompt)
    text = tools.read_file(path="calc.py")
    tools["edit_file"](path="calc.py", old="a - b", new="a + b")
    return f"{sorted(tools)}"
"""


def test_it_works_in_the_tree_by_the_agents_tools(
    case: Case, function: Callable[..., Candidate], services: Services
) -> None:
    harvested, verdict_, journal = worked(case, function(REPAIRS), services)
    assert verdict_.passed
    assert harvested.detail == (
        "['edit_file', 'list_files', 'read_file', 'run_command', 'write_file']"
    )
    failures = {"failed_calls": 0, "failed_commands": 0, "invented_tools": 0}
    assert journal.counts == {"turns": 2, **failures}
    assert journal.usage == {}
    entries = read_transcript(journal.transcript)
    assert [one["kind"] for one in entries] == [
        *("request", "reply", "request", "reply", "request", "program")
    ]
    assert (entries[-1]["output"], entries[-1]["how"]) == (
        "prompt: Repair add in calc.py.\n",
        "returned",
    )


SEES = """
import os, socket
def solve(task, tools):
    seen = [os.getcwd(), sorted(os.listdir("."))[1:]]
    for place in (%r, %r):
        try:
            seen.append(open(place).read())
        except OSError as error:
            seen.append(type(error).__name__)
    with open("calc.py", "w") as file:
        file.write("def add(a, b):\\n    return a + b\\n")
    return str(seen)
"""


def test_it_is_in_the_box_of_the_tree_and_sees_no_hidden_file(
    case: Case, function: Callable[..., Candidate], services: Services, tmp_path: Path
) -> None:
    if services.box.level != "bubblewrap":
        pytest.skip(f"the box here is {services.box.level}")
    assert case.hidden is not None
    manifest = tmp_path / "project" / "modelbench.toml"
    code = SEES % (str(case.hidden / "test_calc.py"), str(manifest))
    harvested, verdict_, _ = worked(case, function(code), services)
    assert harvested.detail == (
        "['/work', ['calc.py', 'notes.txt'], 'FileNotFoundError', 'FileNotFoundError']"
    )
    assert verdict_.passed


@pytest.mark.parametrize(
    ("body", "end", "detail"),
    [
        ("raise ValueError('odd')", "function-raised", "ValueError: odd"),
        ("return 7", "function-raised", "TypeError: it returned a int, and neither text nor None"),
        ("import os; os._exit(0)", "function-ended", "the function's process ended"),
        ("import sys; sys.exit(3)", "function-raised", "SystemExit: 3"),
        ("tools.read_file(path='none')", "function-raised", "RuntimeError: Error: none does"),
        ("tools.finish()", "function-raised", "AttributeError: there is no tool 'finish'"),
        ("\n    while True: pass", "time-limit", "nothing came for"),
        ("\n    while True: tools.list_files()", "step-limit", "3 calls"),
    ],
)
def test_what_goes_wrong_in_it_is_a_verdict(
    case: Case,
    function: Callable[..., Candidate],
    services: Services,
    body: str,
    end: str,
    detail: str,
) -> None:
    short = 0.5 if end == "time-limit" else 60.0
    limited = replace(case, limits=case.limits.model_copy(update={"seconds": short, "turns": 3}))
    code = f"def solve(task, tools):\n    {body.strip()}\n"
    harvested, verdict_, _ = worked(limited, function(code), services)
    assert (harvested.end, verdict_.passed, verdict_.reason) == (end, False, end)
    assert harvested.detail.startswith(detail)


@pytest.mark.parametrize("level", [level.name for level in probe() if level.available])
@pytest.mark.parametrize("name", ["mine.solver:solve", "alone:solve", "bare.inner:solve"])
def test_every_level_imports_a_package_a_file_and_a_plain_folder(
    function: Callable[..., Candidate], tmp_path: Path, level: str, name: str
) -> None:
    tmp_path.chmod(0o755)
    candidate = function("from . import names\ndef solve(a, b): return names.LAMPS\n", name=name)
    root = tmp_path / "project"
    (root / "mine" / "names.py").write_text("LAMPS = 'yes'\n")
    (root / "alone.py").write_text("def solve(a, b): return 'yes'\n")
    (root / "bare").mkdir()
    (root / "bare" / "inner.py").write_text("def solve(a, b): return 'yes'\n")
    spec = BoxSpec(workdir=TEMPORARY)
    made = FunctionCandidate(candidate, Limits(), choose(level), spec, Journal())
    assert made.solve("", [], [], lambda name, arguments: ("", True)) == "yes"


def test_one_that_cannot_be_imported_has_measured_nothing(
    case: Case, function: Callable[..., Candidate], services: Services
) -> None:
    with pytest.raises(Fault, match="cannot be imported in the box: ModuleNotFound") as caught:
        worked(case, function("import nothing_of_this_name\ndef solve(a, b): pass\n"), services)
    assert caught.value.permanent
    with pytest.raises(Fault, match="has no attribute 'other'"):
        worked(case, function("", name="mine.solver:other"), services)


class Lamps(Benchmark[list[str]]):
    def cases(self) -> list[BenchmarkCase]:
        return [BenchmarkCase("one", "Switch on a and b.", Private({"on": ["a", "b"]}))]

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        pass

    def setup(self, public: Mapping[str, JsonValue], folder: Path) -> list[str]:
        return []

    def tools(self, world: list[str]) -> list[Tool]:
        def switch(arguments: Mapping[str, JsonValue]) -> str:
            if arguments["lamp"] not in ("a", "b"):
                raise Refused("there is no such lamp")
            world.append(str(arguments["lamp"]))
            return f"{world[-1]} is on"

        schema: Mapping[str, JsonValue] = {"type": "object", "required": ["lamp"]}
        return [Tool("switch", "", schema, switch), Tool("done", "", {}, lambda _: "", ends=True)]

    def harvest(self, world: list[str], met: Any) -> JsonValue:
        return {"on": [*world], "said": met.text, "calls": len(met.calls), "replied": met.replied}

    def verify(self, private: Private, observation: Any) -> Any:
        return verdict({"on": observation["on"] == private.data["on"]})


@pytest.fixture
def lamps(case: Case, tmp_path: Path) -> Case:
    benchmark = Lamps(tmp_path, {})
    source = Source("lamps", benchmark)
    return replace(case, protocol=BENCHMARK, source=source, given=benchmark.cases()[0])


LIGHTS = """
from mine import names
def solve(task, tools):
    for lamp in names.LAMPS:
        try:
            print(tools.switch(lamp=lamp))
        except RuntimeError as error:
            print(error)
    return task.messages[0]["content"] + task.options["mark"]
"""


def test_it_meets_a_benchmark_by_its_tools(
    lamps: Case, function: Callable[..., Candidate], services: Services, tmp_path: Path
) -> None:
    candidate = function(LIGHTS).model_copy(update={"options": {"mark": "!"}})
    (tmp_path / "project" / "mine" / "names.py").write_text("LAMPS = 'acb'\n")
    harvested, verdict_, journal = worked(lamps, candidate, services)
    assert verdict_.passed
    assert json.loads(harvested.harvest.files["harvest.json"]) == {
        "on": ["a", "b"],
        "said": "Switch on a and b.!",
        "calls": 3,
        "replied": True,
    }
    assert (journal.counts["turns"], journal.counts["failed_calls"]) == (3, 1)
    assert read_transcript(journal.transcript)[-1]["output"] == (
        "a is on\nError: there is no such lamp\nb is on\n"
    )


def test_the_last_word_ends_it(
    lamps: Case, function: Callable[..., Candidate], services: Services
) -> None:
    code = "def solve(task, tools):\n    tools.done()\n    tools.switch(lamp='a')\n"
    harvested, _, journal = worked(lamps, function(code), services)
    assert (harvested.end, journal.counts["calls"]) == ("", 1)
    assert json.loads(harvested.harvest.files["harvest.json"])["on"] == []


def test_its_identity_is_all_of_its_package(
    case: Case, function: Callable[..., Candidate], tmp_path: Path
) -> None:
    def digest(candidate: Candidate) -> str:
        return identifier()(case, candidate).candidate

    first = digest(function("def solve(task, tools): pass\n"))
    assert digest(function("def solve(task, tools): pass\n")) == first
    assert digest(function("def solve(task, tools): return ''\n")) != first
    assert digest(function("def solve(task, tools): pass\n")) == first
    (tmp_path / "project" / "mine" / "more.py").write_text("x = 1\n")
    assert digest(function("def solve(task, tools): pass\n")) != first


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"name": "mine"}, "'mine' names no function"),
        ({"model": "openai/m"}, "a function has no model"),
        ({"root": "/"}, "unknown key root"),
    ],
)
def test_a_declaration_that_cannot_be_meant_is_refused(
    function: Callable[..., Candidate], keys: dict[str, str], what: str
) -> None:
    with pytest.raises(RegistryProblem, match=what):
        function("", **keys)


def test_a_function_beside_cases_or_nowhere_is_refused(
    case: Case, function: Callable[..., Candidate], tmp_path: Path
) -> None:
    with pytest.raises(RegistryProblem, match="there is no module 'nowhere_at_all'"):
        identifier()(case, function("", name="nowhere_at_all:f"))
    (tmp_path / "project" / "mine" / "pack.toml").parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "project" / "mine" / "pack.toml").write_text("")
    with pytest.raises(RegistryProblem, match="holds packs"):
        identifier()(case, function(""))
