"""The protocol that hosts benchmarks: what is kept, what is judged again, what is no pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.errors import Fault
from pytest_modelbench.packs.model import Case
from pytest_modelbench.packs.reading import read_pack
from pytest_modelbench.protocols.benchmark import HARVEST, BenchmarkProtocol
from pytest_modelbench.protocols.protocol import Harvested, Services, protocol_named
from pytest_modelbench.records import Trust
from pytest_modelbench.worlds.harvest import FILE_MODE, Harvest

CODE = """
from pytest_modelbench.benchmarks.benchmark import Benchmark, BenchmarkCase, Private, verdict
from pytest_modelbench.records import Trust

class Echo(Benchmark):
    def cases(self):
        yield BenchmarkCase("one", "Say x.", Private({"text": "x"}))

    def setup(self, public, folder):
        return None

    def harvest(self, world, met):
        return met.text

    def observe(self, case, harvest):
        return {"same": harvest == case.private.data["text"]}

    def verify(self, private, observation):
        return verdict({"same": observation["same"]}, trust=Trust.JUDGED)
"""


@pytest.fixture
def case(tmp_path: Path) -> Case:
    folder = tmp_path / "echo"
    folder.mkdir()
    (folder / "echo.py").write_text(CODE)
    (folder / "pack.toml").write_text('[benchmark]\nuse = "echo.py:Echo"\n')
    return read_pack(folder, tmp_path / "references").cases[0]


def left(text: bytes, end: str = "") -> Harvested:
    return Harvested(Harvest({HARVEST: text}, {HARVEST: FILE_MODE}), end=end)


def judged(case: Case, harvested: Harvested) -> tuple[bool, str]:
    protocol = BenchmarkProtocol()
    services = cast(Services, SimpleNamespace(box=None))  # nothing is run
    seen = protocol.observe(case, harvested, services)
    kept = Observation.model_validate_json(seen.model_dump_json())
    verdict = protocol.verify(case, harvested, kept)
    assert verdict == protocol.verify(case, harvested, seen)
    return verdict.passed, verdict.reason


def test_it_is_a_protocol_by_name() -> None:
    assert protocol_named("benchmark") == BenchmarkProtocol()


def test_a_verdict_comes_of_what_was_kept(case: Case) -> None:
    assert judged(case, left(b'"x"')) == (True, "")
    assert judged(case, left(b'"y"')) == (False, "wrong")


def test_how_the_work_ended_is_the_reason_of_what_did_not_pass(case: Case) -> None:
    assert judged(case, left(b"null", "context-exceeded")) == (False, "context-exceeded")
    assert judged(case, left(b'"x"', "step-limit")) == (True, "")
    assert judged(case, left(b'"x"', "other-model")) == (False, "other-model")


def test_a_pack_may_ask_for_more_trust(case: Case) -> None:
    strict = replace(case, check=replace(case.check, least_trust=Trust.TRUSTED))
    assert judged(strict, left(b'"x"')) == (False, "too-little-trust")


def test_a_harvest_of_something_else_is_a_fault_of_grading(case: Case) -> None:
    with pytest.raises(Fault) as caught:
        judged(case, Harvested(Harvest({}, {})))
    assert (caught.value.kind, caught.value.stage) == ("grader", "grade")
