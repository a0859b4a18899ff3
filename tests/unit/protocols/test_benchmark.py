"""The protocol that hosts benchmarks: what is kept, what is judged again, what is no pass."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from pytest_modelbench.benchmarks.benchmark import Benchmark
from pytest_modelbench.candidates.builtin import damaged_reference
from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.errors import Fault
from pytest_modelbench.packs.identities import identity_of
from pytest_modelbench.packs.model import Case
from pytest_modelbench.packs.reading import read_pack
from pytest_modelbench.protocols.benchmark import HARVEST, BenchmarkProtocol, play
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


@pytest.mark.parametrize(
    ("variant", "what"), [("", "a reference"), ("bad", "the damaged answer 'bad'")]
)
def test_a_reference_that_is_not_there_is_a_fault_in_one_line(
    case: Case, variant: str, what: str
) -> None:
    assert case.source is not None
    assert case.given is not None
    assert isinstance(case.source.benchmark, Benchmark)
    with pytest.raises(Fault) as fault:
        play(case.source.benchmark, case.given, damaged_reference(variant), ())
    assert fault.value.text == f"case one has not got {what}"
    assert (fault.value.kind, fault.value.permanent) == ("no-reference", True)


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


SCORED = CODE.replace(
    'return {"same": harvest == case.private.data["text"]}',
    'return {"share": float(harvest)}',
).replace(
    'return verdict({"same": observation["same"]}, trust=Trust.JUDGED)',
    """share = observation["share"]
        return verdict({"all": share == 1, "some": share > 0}, reward=share)""",
)


@pytest.mark.parametrize(
    ("threshold", "share", "expected"),
    [
        ("", "0.9", (False, "wrong")),
        ("threshold = 0.8", "0.8", (True, "")),
        ("threshold = 0.3", "0.30000000000000004", (True, "")),
        ("threshold = 0.3", "0.29999999999999993", (True, "")),
        ("threshold = 0.8", "0.79", (False, "wrong")),
        ("threshold = 0.8", "0", (False, "wrong")),
    ],
)
def test_a_threshold_turns_a_reward_into_a_pass(
    tmp_path: Path, threshold: str, share: str, expected: tuple[bool, str]
) -> None:
    case = scored(tmp_path, threshold)
    assert judged(case, left(json.dumps(share).encode())) == expected


def test_work_that_never_passes_does_not_pass_by_a_threshold(tmp_path: Path) -> None:
    case = scored(tmp_path, "threshold = 0.5")
    assert judged(case, left(b'"1"', end="other-model")) == (False, "other-model")


def test_only_a_threshold_changes_what_judges(tmp_path: Path) -> None:
    digests = [
        identity_of(scored(tmp_path, text), protocol=1, grader="1")
        for text in ("", "threshold = 0.8", "threshold = 0.9")
    ]
    assert len({one.task for one in digests}) == 1
    assert len({one.check for one in digests}) == 3


def scored(tmp_path: Path, check: str) -> Case:
    folder = tmp_path / "scored"
    folder.mkdir(exist_ok=True)
    (folder / "echo.py").write_text(SCORED)
    (folder / "pack.toml").write_text(f'[benchmark]\nuse = "echo.py:Echo"\n[check]\n{check}\n')
    return read_pack(folder, tmp_path / "references").cases[0]
