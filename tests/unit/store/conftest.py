"""Records as a run makes them, with only what a test is about said."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.records import (
    AttemptRecord,
    Check,
    FaultRecord,
    Identity,
    Outcome,
    Stage,
    Verdict,
)
from pytest_modelbench.store.writer import RunInfo, Writer

MakeRecord = Callable[..., AttemptRecord]


@pytest.fixture
def make_record() -> MakeRecord:
    """Return a maker of records; each has an id of its own and starts a second after the last."""
    numbers = itertools.count()

    def make(outcome: str = "passed", *, check: str = "c1", task: str = "t1", **given: Any) -> Any:
        number = next(numbers)
        stage = {"fault": Stage.WORK, "fault-grade": Stage.GRADE}.get(outcome)
        kind = Outcome.FAULT if stage else Outcome(outcome)
        passed = kind is Outcome.PASSED
        fields: dict[str, Any] = {
            "id": f"try-{number}",
            "run": "run-1",
            "pack": "executor",
            "case": "fix-bug",
            "candidate": "local-coder",
            "repeat": 1,
            "identity": Identity(task=task, check=check, candidate=given.pop("agent", "m1")),
            "outcome": kind,
            "started": f"2026-01-09T09:{number // 60 % 60:02}:{number % 60:02}.000Z",
            "seconds": 1.5,
        }
        if stage:
            fields["fault"] = FaultRecord(kind="server-error", stage=stage, text="500")
        else:
            fields["verdict"] = Verdict(
                passed=passed,
                reward=float(passed),
                checks=(Check(name="test_it", passed=passed),),
                reason="" if passed else "wrong",
            )
        return AttemptRecord(**(fields | given))

    return make


@pytest.fixture
def run() -> RunInfo:
    """Return the header of a run."""
    return RunInfo(run="run-1", started="2026-01-09T09:00:00.000Z", note="at home")


@pytest.fixture
def store(tmp_path: Path, run: RunInfo) -> Callable[..., Path]:
    """Return a function that stores records as one run; it returns the results folder."""

    def write(*records: AttemptRecord, run: RunInfo = run, root: Path | None = None) -> Path:
        folder = root or tmp_path / "results"
        with Writer(folder, run) as writer:
            for record in records:
                writer.append(record)
        return folder

    return write
