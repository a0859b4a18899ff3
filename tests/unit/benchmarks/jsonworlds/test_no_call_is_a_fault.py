"""Whatever a model calls a tool with, it is done or refused: nothing else is ever raised."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pydantic import JsonValue

from pytest_modelbench.benchmarks.jsonworlds.provider import JsonWorlds
from pytest_modelbench.benchmarks.tools import Tool, run_tool
from pytest_modelbench.packs.reading import find_packs, read_packs

ROOT = Path(__file__).parents[4]
PACKS = [
    pack
    for pack in read_packs(find_packs([ROOT / "cases"]), ROOT / "reference_solutions")
    if any(c.source is not None and isinstance(c.source.benchmark, JsonWorlds) for c in pack.cases)
]
JUNK: list[JsonValue] = [
    None, True, 0, -1, 10**30, 1.5, float("nan"), "", " ", "x", "2026-03-12", "2026-13-40", "1.005",
    "\ud800", "é" * 300, [], [[]], ["a"], {}, {"a": {"b": [1]}}, [{"account": "1200", "debit": 1}],
]  # fmt: skip


def values(state: JsonValue) -> list[JsonValue]:
    """Return all leaves of a world: ids and texts that tools may be called with."""
    if isinstance(state, dict):
        return [leaf for one in state.values() for leaf in values(one)]
    if isinstance(state, list):
        return [leaf for one in state for leaf in values(one)]
    return [state]


def drawn(tool: Tool, pool: list[JsonValue], dice: random.Random) -> dict[str, JsonValue]:
    properties = tool.parameters["properties"]
    assert isinstance(properties, dict)
    names = [name for name in properties if dice.random() < 0.8]
    return {name: dice.choice(dice.choice((pool, JUNK))) for name in names}


@pytest.mark.parametrize("pack", PACKS, ids=[pack.name for pack in PACKS])
def test_calls_of_any_kind(pack: object) -> None:
    (found,) = [one for one in PACKS if one is pack]
    dice = random.Random(7)
    case = found.cases[0]
    assert case.source is not None
    assert case.given is not None
    benchmark = case.source.benchmark
    assert isinstance(benchmark, JsonWorlds)
    world = benchmark.setup(case.given.public, Path())
    pool = values(dict(case.given.public))
    tools = benchmark.tools(world)
    worked = 0
    for _ in range(1500):
        tool = dice.choice(tools)
        text, fine = run_tool(tool, drawn(tool, pool, dice))
        assert isinstance(text, str)
        worked += fine
    assert worked > 20
    json.dumps(world.state)
    benchmark.verify(case.given.private, {"changed": world.state, "text": None})
