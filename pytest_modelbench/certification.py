"""Certificates that a run has to complete before their cases can be scored."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_modelbench.board import Board
from pytest_modelbench.plan import Plan, judge_certificate
from pytest_modelbench.records import Cell

Result = tuple[bool | None, Sequence[str]]
"""Passed (None: a fault), and the names of the checks that were lost, or what the fault was."""


class Certification:
    """Collect the attempts of open certificates; with the last of a case, decide about it."""

    def __init__(self, plan: Plan, board: Board) -> None:
        self._board = board
        self._damaged = plan.damaged
        self._pending: dict[tuple[str, str], dict[Cell, Result | None]] = {}
        for cell in (*(planned.cell for planned in plan.certifying), *plan.awaited):
            self._pending.setdefault((cell.pack, cell.case), {})[cell] = None
        for (pack, case), certificate in plan.certificates.items():
            if certificate.ok is False:
                board.uncertified[f"{pack}/{case}"] = certificate.why
            elif certificate.ok is None:
                for cell, known in certificate.known.items():
                    self._pending[pack, case].setdefault(cell, known)

    def is_open(self, key: tuple[str, str]) -> bool:
        """Tell whether a case's (pack, case) certificate still lacks an attempt."""
        return key in self._pending

    def note(self, cell: Cell, result: Result) -> bool:
        """Take up an attempt; return True when it decided about its case."""
        key = (cell.pack, cell.case)
        pending = self._pending.get(key)
        if pending is None or cell not in pending:
            return False
        pending[cell] = result
        complete = {c: r for c, r in pending.items() if r is not None}
        if len(complete) < len(pending):
            return False
        del self._pending[key]
        judged = judge_certificate(complete, self._damaged)
        if not judged.ok:
            self._board.uncertified[f"{cell.pack}/{cell.case}"] = judged.why
        return True
