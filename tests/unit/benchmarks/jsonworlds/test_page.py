"""The examples of docs/benchmarks/json-worlds.md are sound."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pytest_modelbench.benchmarks.jsonworlds.provider import JsonWorlds
from pytest_modelbench.packs.reading import read_pack
from pytest_modelbench.protocols.benchmark import play
from pytest_modelbench.records import Candidate

PAGE = Path(__file__).parents[4] / "docs" / "benchmarks" / "json-worlds.md"
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S))

TASK = """
prompt = "Hall on."
[[assert]]
type = "lamp_is"
id = "hall"
state = "on"
[[assert]]
type = "lamp_is_not"
id = "attic"
state = "on"
[[reference]]
tool = "switch"
id = "hall"
to = "on"
"""


def test_the_class_is_a_benchmark(tmp_path: Path) -> None:
    folder = tmp_path / "cases" / "house"
    (folder / "tasks").mkdir(parents=True)
    (folder / "house.py").write_text(BLOCKS["python"], "utf-8")
    (folder / "pack.toml").write_text('[pack]\ntitle = "H"\n[benchmark]\nuse = "house.py:House"\n')
    (folder / "world.json").write_text(
        '{"house": {"lamps": [{"id": "hall", "is": "off"}, {"id": "attic", "is": "off"}]}}'
    )
    (folder / "tasks" / "hall.toml").write_text(TASK)
    (case,) = read_pack(folder, tmp_path / "references").cases
    assert case.source is not None
    assert case.given is not None
    benchmark = case.source.benchmark
    assert isinstance(benchmark, JsonWorlds)
    world = benchmark.setup(case.given.public, tmp_path)
    candidate = Candidate(name="reference", agent="reference")
    met = play(benchmark, case.given, candidate, benchmark.tools(world))
    assert benchmark.verify(case.given.private, benchmark.harvest(world, met)).passed


def test_the_task_is_one_as_the_reader_takes_it() -> None:
    task = tomllib.loads(BLOCKS["toml"])
    assert set(task) == {"title", "tags", "prompt", "world", "assert", "reference", "damaged"}
    assert task["damaged"]["day-it-came"]["change"] == {"2": {"date": "2026-03-05"}}
