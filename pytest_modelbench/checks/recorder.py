"""The pytest plugin of one grading: it gives checks the ``solution`` and writes down what happens.

Loaded in the trusted process only. Each event goes to ``emit`` when it happens, so that a grading
that is ended at its deadline keeps the rows that it had.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from pathlib import Path

import pytest

from pytest_modelbench.checks.blame import blame
from pytest_modelbench.checks.solution import Grading, Solution
from pytest_modelbench.records import Trust

Event = Mapping[str, object]

MAX_TEXT = 8_000
"""Characters of one row's text, and sixteen times as many of all rows'."""


class Recorder:
    """Record one session of pytest; ``grading`` is None where checks are only collected."""

    def __init__(
        self, hidden: Path, grading: Grading | None, emit: Callable[[Event], None]
    ) -> None:
        self._hidden = hidden
        self._grading = grading
        self._emit = emit
        self._text_left = 16 * MAX_TEXT
        self._solution: Solution | None = None
        self._reported = False
        self.fault = False

    @pytest.fixture
    def solution(self, request: pytest.FixtureRequest) -> Solution:
        """Give a check the candidate's work: ``load``, ``run``, ``files``, ``raises``, ``map``."""
        if self._grading is None:
            raise RuntimeError("no check runs while checks are collected")
        self._solution = Solution(self._grading, request.node.name)
        self._grading.current = self._solution
        return self._solution

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Tell of a hidden file that cannot be collected, or that skips itself."""
        report = yield
        if not report.passed:
            call: pytest.CallInfo[object] | None = getattr(report, "call", None)
            error = None if call is None or call.excinfo is None else call.excinfo.value
            if error is not None and error.__cause__ is not None:
                error = error.__cause__  # of pytest's own "ImportError while importing"
            what = "is skipped" if report.skipped else f"cannot be collected: {_said(error)}"
            self._fault(f"{self._place(error) or collector.path}: the hidden check {what}")
        return report

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Name the checks, before any of the candidate's code has run."""
        places: dict[str, str] = {}
        for item in session.items:
            path, line, _ = item.reportinfo()
            place = f"{path}:{(line or 0) + 1}"
            if item.name in places:
                self._fault(
                    f"two checks are named {item.name}: {places[item.name]} and {place}; "
                    "rename one, a check's name is unique within its case"
                )
            places[item.name] = place
        if not places and not self.fault:
            self._fault(f"no check in {self._hidden}; a check is a function test_… in test_….py")
        if self.fault:
            session.shouldstop = "the hidden checks are broken"
        self._emit({"expected": list(places)})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write a row for each check, and for a setup or teardown that did not pass."""
        report = yield
        outcome: str = report.outcome
        solution = self._solution
        reason = ""
        if hasattr(report, "wasxfail"):
            outcome = "xpassed" if report.passed else "xfailed"
            reason = outcome
        elif report.skipped:
            reason = "skipped"
        elif call.excinfo is not None:
            found = blame(call.excinfo.value, solution is not None and solution.touched)
            if found.ours:
                place = self._place(call.excinfo.value) or str(item.path)
                self._fault(f"{place}: check {item.name}: {_said(call.excinfo.value)}")
                item.session.shouldstop = "the hidden checks are broken"
                return report
            reason = found.reason
        if solution is not None and solution.broken and report.passed and not self._reported:
            # The check went on after what no check can take back, for instance its worker's end.
            outcome, reason = "failed", solution.broken
        if report.when == "call" or outcome != "passed":
            self._reported = self._reported or outcome != "passed"
            self._row(item.name, outcome, report, reason)
        if report.when == "teardown":
            self._forget()
        return report

    def _row(self, name: str, outcome: str, report: pytest.TestReport, reason: str) -> None:
        text = report.longreprtext[: min(MAX_TEXT, self._text_left)]
        self._text_left -= len(text)
        solution = self._solution
        trust = Trust.TRUSTED
        if solution is not None and solution.judged:
            trust = Trust.JUDGED
        elif solution is not None and solution.evident:
            trust = Trust.EVIDENT
        self._emit(
            {
                "row": {
                    "name": name,
                    "outcome": outcome,
                    "phase": report.when,
                    "reason": reason,
                    "text": text,
                    "seconds": round(report.duration, 6),
                    "trust": trust,
                }
            }
        )

    def _forget(self) -> None:
        self._solution = None
        self._reported = False
        if self._grading is not None:
            self._grading.current = None
            self._grading.forget_types()

    def _fault(self, text: str) -> None:
        self.fault = True
        self._emit({"fault": text[:MAX_TEXT]})

    def _place(self, error: BaseException | None) -> str:
        """Return ``file:line`` of the innermost frame in a hidden file."""
        if isinstance(error, SyntaxError) and error.filename:
            return f"{error.filename}:{error.lineno}"
        place = ""
        trace = None if error is None else error.__traceback__
        while trace is not None:
            path = trace.tb_frame.f_code.co_filename
            if Path(path).is_relative_to(self._hidden):
                place = f"{path}:{trace.tb_lineno}"
            trace = trace.tb_next
        return place


def _said(error: BaseException | None) -> str:
    if isinstance(error, pytest.FixtureLookupError):  # its own text is a tuple of objects
        return f"there is no fixture {error.argname!r}; a check has solution, and pytest's own"
    return "no reason is known" if error is None else f"{type(error).__name__}: {error}"
