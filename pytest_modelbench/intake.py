"""What comes back from workers: outcomes of cells, and workers that died."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench import outcomes
from pytest_modelbench.board import Board
from pytest_modelbench.certification import Certification
from pytest_modelbench.records import Cell, Outcome
from pytest_modelbench.roster import Roster
from pytest_modelbench.settings import Settings
from pytest_modelbench.store.reader import read
from pytest_modelbench.store.writer import RunInfo, Writer

_FAULT, _PASSED = Outcome.FAULT.value, Outcome.PASSED.value


class Intake:
    """Take up each report: certificates, stopped candidates, missing verdicts, crashes.

    ``writer`` gives what appends to this run's results, None before it measures.
    """

    def __init__(
        self,
        settings: Settings,
        roster: Roster,
        board: Board,
        certification: Certification,
        writer: Callable[[], Writer | None],
        run_info: Callable[[], RunInfo],
        *,
        verbose: bool,
    ) -> None:
        self._settings = settings
        self._roster = roster
        self._board = board
        self._certification = certification
        self._writer = writer
        self._run_info = run_info
        self._verbose = verbose

    # First, so that certificates and stops are decided before anything more is dealt.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take up the outcome of a cell."""
        self._roster.reported.add(report.nodeid)
        found = outcomes.facts(report)
        cell = self._roster.nodeids.get(report.nodeid)
        if cell is None and found is not None:
            cell = Cell(*found["cell"])  # a user's own test, whose verdict is not the cell's
            if found["outcome"] != _FAULT:
                return
        if cell is None and outcomes.is_refused(report):
            cell = self._roster.cell(report.nodeid)
        if cell is None:
            return
        if report.skipped and found is None:
            self._roster.without_verdict.setdefault(cell, _reason_of_skip(report))
        if found is None:
            if report.failed:
                self._certify(cell, None)
            return
        if found["permanent"]:
            self._board.stopped.setdefault(cell.candidate, found["fault"])
            self._board.write()
        if found["outcome"] == _FAULT:
            text = found["fault_text"].strip().partition("\n")[0]
            self._certify(cell, None, [f"{found['fault']}: {text}"])
        elif report.when == "call":
            self._certify(cell, found["outcome"] == _PASSED, found["lost"])

    def _certify(self, cell: Cell, passed: bool | None, lost: Sequence[str] = ()) -> None:
        if self._certification.note(cell, (passed, lost)):
            self._board.write()

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(
        self,
        crashitem: str,
        report: pytest.TestReport,
        sched: object,
    ) -> None:
        """Store a fault for the cell at which a worker died, unless its verdict is stored."""
        cell, writer = self._roster.cell(crashitem), self._writer()
        if cell is None or writer is None:
            return
        planned = self._roster.planned[cell]
        newest = read(Path(self._settings.results), packs=[cell.pack])
        mine = [e for e in newest.history(cell) if e.run == self._settings.run]
        if mine and not mine[-1].is_fault:
            if crashitem not in self._roster.nodeids:
                return  # a user's own test ended the process, after the cell's attempt
            record = newest.record(mine[-1])
            report.outcome = "passed"
            report.longrepr = None
            report.when = "call"
        else:
            from pytest_modelbench.attempt import crash

            record = crash(
                cell,
                planned.identity,
                self._run_info(),
                series=planned.series,
                tries=len(mine) + 1,
            )
            writer.append(record)
        outcomes.attach(report, outcomes.facts_of(record))

    # First: no other plugin has a word for a cell, and ten thousand may be replayed.
    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> Any:  # Any: as pytest's hook
        """Give verdicts, faults and certificates letters and words of their own."""
        return outcomes.teststatus(report, verbose=self._verbose)


def _reason_of_skip(report: pytest.TestReport) -> str:
    longrepr = report.longrepr
    return str(longrepr[2]).removeprefix("Skipped: ") if isinstance(longrepr, tuple) else ""
