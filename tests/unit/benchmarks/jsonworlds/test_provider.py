"""A whole benchmark in a world of JSON: what counts, what is refused, what is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import Tool
from pytest_modelbench.benchmarks.jsonworlds.acting import TEXT, acting
from pytest_modelbench.benchmarks.jsonworlds.assertions import AssertionTypes, records
from pytest_modelbench.benchmarks.jsonworlds.provider import JsonWorlds
from pytest_modelbench.benchmarks.jsonworlds.state import State, records_in
from pytest_modelbench.benchmarks.loops import Met
from pytest_modelbench.benchmarks.tools import run_tool
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.records import Verdict

LAMPS = AssertionTypes()


@LAMPS.register("lamp_is", required=("id", "state"))
def _lamp(world: Mapping[str, object], assertion: Mapping[str, object]) -> bool:
    lamps = records(world, "house", "lamps")
    return any((one["id"], one["is"]) == (assertion["id"], assertion["state"]) for one in lamps)


class House(JsonWorlds):
    types = LAMPS

    def acts(self, state: State) -> Sequence[Tool]:
        def switch(arguments: Mapping[str, JsonValue]) -> str:
            for lamp in records_in(state, "house", "lamps"):
                if lamp["id"] == arguments["id"]:
                    lamp["is"] = arguments["to"]
            return "switched"

        return [acting("switch", "Switch.", switch, {"id": TEXT, "to": TEXT})]


TASK = """
prompt = "Hall on."
[[assert]]
name = "hall"
type = "lamp_is"
id = "hall"
state = "on"
[[assert]]
name = "attic"
type = "lamp_is"
id = "attic"
state = "off"
[[reference]]
tool = "switch"
id = "hall"
to = "on"
[damaged.all]
loses = ["attic"]
add = [{ tool = "switch", id = "attic", to = "on" }]
"""
WORLD = """{"house": {"lamps": [{"id": "hall", "is": "off"}, {"id": "attic", "is": "off"}],
 "doors": [1]}}"""


def house(folder: Path, task: str = TASK) -> House:
    (folder / "tasks").mkdir()
    (folder / "world.json").write_text(WORLD)
    (folder / "tasks" / "hall.toml").write_text(task)
    return House(folder, {})


def judged(benchmark: House, case: BenchmarkCase, *switched: tuple[str, str]) -> Verdict:
    world = benchmark.setup(case.public, Path())
    (switch,) = benchmark.tools(world)
    for name, to in switched:
        assert run_tool(switch, {"id": name, "to": to})[1]
    return benchmark.verify(case.private, benchmark.harvest(world, Met()))


def test_what_held_all_along_earns_nothing_and_can_be_lost(tmp_path: Path) -> None:
    benchmark = house(tmp_path)
    (case,) = benchmark.cases()
    done = judged(benchmark, case, ("hall", "on"))
    assert (done.passed, done.reward) == (True, 1.0)
    assert [(c.name, c.passed, c.reason) for c in done.checks] == [
        ("hall", True, ""),
        ("attic", True, "held all along"),
    ]
    both = judged(benchmark, case, ("hall", "on"), ("attic", "on"))
    assert (both.passed, both.reward) == (False, 0.5)
    nothing = judged(benchmark, case)
    assert (nothing.passed, nothing.reward) == (False, 0.0)


def test_where_nothing_counts_nothing_is_passed(tmp_path: Path) -> None:
    benchmark = house(tmp_path, 'prompt = "Leave it."\n[[assert]]\n' + TASK.split("[[assert]]")[2])
    (case,) = benchmark.cases()
    nothing = judged(benchmark, case)
    assert (nothing.passed, nothing.reward) == (False, 0.0)
    assert [check.name for check in nothing.checks if not check.passed] == ["counted"]


def test_what_says_excluded_false_is_earned_by_leaving_it_alone(tmp_path: Path) -> None:
    task = TASK.replace('state = "off"', 'state = "off"\nexcluded = false')
    benchmark = house(tmp_path, task)
    (case,) = benchmark.cases()
    assert judged(benchmark, case).reward == 0.5


def test_only_what_changed_is_kept(tmp_path: Path) -> None:
    benchmark = house(tmp_path)
    (case,) = benchmark.cases()
    world = benchmark.setup(case.public, Path())
    assert benchmark.harvest(world, Met(text="hm")) == {"changed": {}, "text": "hm"}
    run_tool(benchmark.tools(world)[0], {"id": "hall", "to": "on"})
    kept = benchmark.harvest(world, Met())
    lamps = [{"id": "hall", "is": "on"}, {"id": "attic", "is": "off"}]
    assert kept == {"changed": {"house": {"lamps": lamps}}, "text": None}
    again = benchmark.setup(case.public, Path())
    assert benchmark.harvest(again, Met()) == {"changed": {}, "text": None}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('type = "lamp_is"', 'type = "lamp_was"', r"hall\.toml: assertion 1: .*'lamp_was' is not"),
        ('state = "on"', "", r"hall\.toml: assertion 1: lamp_is: state is missing"),
        ('state = "on"', 'state = "on"\nroom = 1', "assertion 1: lamp_is: room is not known"),
        ('name = "attic"', 'name = "hall"', "assertion 2: there is a 'hall' already"),
        ('loses = ["attic"]', 'loses = ["cellar"]', "damaged answers lose cellar"),
    ],
)
def test_an_assertion_that_is_not_sound_is_told_with_file_and_number(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(UsageProblem, match=said):
        list(house(tmp_path, TASK.replace(old, new, 1)).cases())
