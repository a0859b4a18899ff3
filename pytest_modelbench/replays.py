"""Reports of cells that no worker runs: stored verdicts, and cells that do not start."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pytest

from pytest_modelbench import outcomes
from pytest_modelbench.board import Board
from pytest_modelbench.plan import Action, Planned
from pytest_modelbench.roster import Roster
from pytest_modelbench.store.index import Index


class Replays:
    """Report to pytest what is stored, as if it had just been run."""

    def __init__(
        self,
        config: pytest.Config,
        roster: Roster,
        index: Index,
        board: Board,
        *,
        fail_unsolved: bool,
    ) -> None:
        self._hook = config.hook
        self._plugins = config.pluginmanager
        self._roster = roster
        self._index = index
        self._board = board
        self._fail_unsolved = fail_unsolved
        self._verbose = config.get_verbosity() > 0

    def report(self, nodeids: Sequence[str]) -> None:
        """Report the stored ones of some items; old ones as skipped, with the reason.

        Up to the failure at which the run is to end, by ``-x`` or ``--maxfail``.
        """
        session = self._plugins.get_plugin("session")
        for nodeid, planned in self._roster.of_pack(nodeids):
            if getattr(session, "shouldfail", False):
                return
            if planned.action in (Action.OLD, Action.REFUSE):
                self.refuse(nodeid, self._board.refusal(planned.cell) or planned.why)
            elif planned.action is Action.REPLAY:
                if why := self._board.refusal(planned.cell):
                    self.refuse(nodeid, why)
                else:
                    self._replay(nodeid, planned)

    def refuse(self, nodeid: str, why: str) -> None:
        """Report a selected cell that will not run as skipped."""
        cell = self._roster.cell(nodeid)
        if cell is not None:
            self._roster.without_verdict[cell] = why
        path = nodeid.partition("::")[0]
        self._send(
            outcomes.synthetic_report(nodeid, "skipped", longrepr=(path, 0, f"Skipped: {why}"))
        )

    def _replay(self, nodeid: str, planned: Planned) -> None:
        entry = self._index.find(planned.stored)
        if entry is None:
            raise RuntimeError(f"attempt {planned.stored} is planned and not in the index")
        record = self._index.record(entry) if planned.cell.certifies else None
        self._send(outcomes.replay_report(nodeid, entry, record, fail_unsolved=self._fail_unsolved))

    def _send(self, report: pytest.TestReport) -> None:
        """Give pytest the one report; where nothing is printed, nothing begins or ends."""
        shown = self._verbose or not report.passed
        if shown:
            self._hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
        self._hook.pytest_runtest_logreport(report=report)
        if self._junit is not None:
            # It would take them from the report of a teardown, and there was none.
            testcase = self._junit.node_reporter(report)
            for name, value in report.user_properties:
                testcase.add_property(name, str(value))
        if shown:
            self._hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)

    @cached_property
    def _junit(self) -> Any:  # Any: pytest's plugin has no public type
        """Return the plugin that writes JUnit's file; None where none is asked for."""
        return next((p for p in self._plugins.get_plugins() if hasattr(p, "node_reporter")), None)
