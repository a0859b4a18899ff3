"""Scorecards of results in the form that a run stores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.records import (
    AttemptRecord,
    Check,
    FaultRecord,
    Identity,
    Outcome,
    Role,
    Stage,
    Usage,
    Verdict,
)
from pytest_modelbench.report.grid import Grid, Options
from pytest_modelbench.report.scorecard import Scorecard, scorecard
from pytest_modelbench.store.layout import results_file
from pytest_modelbench.store.reader import read
from pytest_modelbench.store.writer import Grid as RunGrid
from pytest_modelbench.store.writer import RunInfo

Outcomes = Mapping[str, Mapping[str, str]]
"""candidate → case → a letter a repeat: p passed, u unsolved, f fault, g grade fault, - not run."""

_NUMBERS = itertools.count()


def make_record(candidate: str, case: str, repeat: int, letter: str, **given: Any) -> AttemptRecord:
    """Return the record of one letter."""
    number = next(_NUMBERS)
    fields: dict[str, Any] = {
        "id": f"try-{number}",
        "run": "run-1",
        "pack": "executor",
        "case": case,
        "candidate": candidate,
        "repeat": repeat,
        "identity": Identity(task="t1", check="c1", candidate="m1"),
        "started": f"2026-01-09T{number // 3600 % 24:02}:{number // 60 % 60:02}:"
        f"{number % 60:02}.{number // 86400 % 1000:03}Z",
        "seconds": 2.0,
    }
    if letter in "fg":
        stage = Stage.WORK if letter == "f" else Stage.GRADE
        fields["outcome"] = Outcome.FAULT
        fields["fault"] = FaultRecord(
            kind="grader" if stage is Stage.GRADE else "server-error", stage=stage
        )
    else:
        passed = letter == "p"
        fields["outcome"] = Outcome.PASSED if passed else Outcome.UNSOLVED
        fields["verdict"] = Verdict(
            passed=passed,
            reward=float(passed),
            reason="" if passed else "wrong",
            checks=(
                Check(name="test_it", passed=passed, reason="" if passed else "AssertionError"),
            ),
        )
        fields["usage"] = {
            Role.CANDIDATE: Usage(requests=2, calls=2, input=1000, output=100, list_usd=0.01)
        }
    return AttemptRecord(**(fields | given))


class Results:
    """A results folder of one test."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def store(
        self, outcomes: Outcomes, *, run: str = "run-1", note: str = "", **given: Any
    ) -> Results:
        """Store one run of these outcomes, and the grid that they declare."""
        cases = tuple(dict.fromkeys(case for row in outcomes.values() for case in row))
        repeats = max((len(s) for row in outcomes.values() for s in row.values()), default=1)
        info = RunInfo(
            run=run,
            started="2026-01-09T00:00:00.000Z",
            note=note,
            grid=RunGrid(cases={"executor": cases}, candidates=tuple(outcomes), repeats=repeats),
        )
        for candidate, row in outcomes.items():
            self._write(
                info,
                candidate,
                [
                    make_record(candidate, case, repeat, letter, run=run, note=note, **given)
                    for case, letters in row.items()
                    for repeat, letter in enumerate(letters, 1)
                    if letter != "-"
                ],
            )
        return self

    def append(self, *records: AttemptRecord) -> Results:
        """Store records of a run that declared no grid."""
        info = RunInfo(run="run-0", started="2026-01-08T00:00:00.000Z")
        for candidate in dict.fromkeys(record.candidate for record in records):
            mine = [record for record in records if record.candidate == candidate]
            self._write(info, candidate, mine)
        return self

    def _write(self, info: RunInfo, candidate: str, records: list[AttemptRecord]) -> None:
        """Write a file as the writer does, without a sync for each line: this is about reading."""
        path = results_file(self.root, "executor", candidate, info.started, info.run)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [] if path.exists() else [info.header("executor", candidate)]
        lines += [record.to_line() for record in records]
        with path.open("a", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in lines)

    def card(self, outcomes: Outcomes, **options: Any) -> Scorecard:
        """Store outcomes, and return the scorecard of the grid that they declare."""
        self.store(outcomes)
        return self.count(outcomes, **options)

    def count(self, outcomes: Outcomes, identify: Any = None, **options: Any) -> Scorecard:
        """Return the scorecard of what is stored, on the grid that the outcomes declare."""
        cases = tuple(dict.fromkeys(case for row in outcomes.values() for case in row))
        repeats = max((len(s) for row in outcomes.values() for s in row.values()), default=1)
        grid = Grid("executor", cases, tuple(outcomes), repeats)
        return scorecard(read(self.root, details=True), grid, identify, Options(**options))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Return an empty results folder."""
    return Results(tmp_path / "results")


@pytest.fixture
def record() -> Callable[..., AttemptRecord]:
    """Return the maker of records."""
    return make_record
