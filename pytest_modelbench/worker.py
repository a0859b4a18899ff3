"""A process that runs items: it does as its controller ordered, and asks for nothing else."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from _pytest.runner import runtestprotocol  # the loop of phases, which has no public name

from pytest_modelbench import outcomes
from pytest_modelbench.board import Board, Tries
from pytest_modelbench.collection import (
    Selection,
    cell_of,
    folders_key,
    lent_key,
    plan_key,
    take_tags,
)
from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.fixtures import Attempt, Unsolved, again_key, attempt_key, worker_key
from pytest_modelbench.heartbeat import step_of
from pytest_modelbench.lastfailed import remember_faulted
from pytest_modelbench.orders import Orders
from pytest_modelbench.packs.model import Case
from pytest_modelbench.plan import Action, Planned
from pytest_modelbench.records import (
    REFERENCE,
    AttemptRecord,
    Candidate,
    Cell,
    CheckRecord,
    Outcome,
)
from pytest_modelbench.settings import new_run_id, utc_now
from pytest_modelbench.sharing import SharedAttempts
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.lock import WorkerLock
from pytest_modelbench.store.pause import collector_paused
from pytest_modelbench.store.reader import read
from pytest_modelbench.store.writer import Writer
from pytest_modelbench.usertests import is_own, name_of, source_of
from pytest_modelbench.waits import Wait, wait_line

if TYPE_CHECKING:
    from pytest_modelbench.workplace import Workplace


check_key: pytest.StashKey[CheckRecord] = pytest.StashKey()
"""What a user's test, unchanged since, found of the stored attempt: it is not run again."""


HELD_SECONDS = 5.0
"""How long a cell waits for a usage window before it lets the next one go first."""


class Again(Exception):
    """This try ended in a fault, and the cell is to be tried again."""


class FaultRaised(Exception):
    """The attempt ended in a fault that is reported."""

    def __init__(self, record: AttemptRecord) -> None:
        self.record = record
        fault = record.fault
        super().__init__(f"{fault.kind}: {fault.text}" if fault else record.id)


def join(config: pytest.Config, payload: str) -> None:
    """Set a process of xdist up as a worker."""
    with collector_paused(keep=True):
        orders = Orders.from_payload(payload)
    config.args[:] = orders.args
    config.stash[plan_key] = orders.plan
    config.stash[folders_key] = dict(orders.folders)
    config.stash[lent_key] = frozenset(orders.settings.lent)
    take_tags(config, orders.tags)
    remember_faulted(config, orders.folders, orders.faulted)
    config.pluginmanager.register(Selection(config, orders.plan), "modelbench-selection")
    config.pluginmanager.register(Worker(config, orders), "modelbench-worker")


class Worker:
    """Run cells one after another, in one thread that lives as long as this process's session."""

    def __init__(self, config: pytest.Config, orders: Orders) -> None:
        self.config = config
        self.orders = orders
        self.settings = orders.settings
        self._planned = {p.cell: p for p in (*orders.plan.aside, *orders.plan)}
        self._certifying = {planned.cell for planned in orders.plan.certifying}
        self._board = Board(Path(orders.folder))
        self._tries = Tries(Path(orders.folder))
        self._shared = SharedAttempts(Path(orders.folder))
        self._asked_often: frozenset[Cell] = frozenset()
        self._unstored: StoreProblem | None = None
        self._refusal: BaseException | None = None
        self._next: pytest.Item | None = None
        self._talks = step_of(config.get_verbosity()) > 0
        self._lock: WorkerLock | None = None
        config.stash[worker_key] = self

    @cached_property
    def _writer(self) -> Writer:
        return Writer(Path(self.settings.results), self.orders.run_info)

    @cached_property
    def _index(self) -> Index:
        return read(Path(self.settings.results), packs=list(self.orders.folders.values()))

    @cached_property
    def _workplace(self) -> Workplace:
        from pytest_modelbench.workplace import Workplace

        return Workplace(
            self.settings,
            self.orders.folders,
            {candidate.name: candidate for candidate in self.orders.candidates},
            self.orders.gateway,
            self.orders.run_info,
        )

    # -- the life of a worker --------------------------------------------------------------------

    def pytest_sessionstart(self) -> None:
        """Share the results folder, so that no other run begins while this process works."""
        self._lock = WorkerLock.share(Path(self.settings.results), self.settings.run)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Search for no garbage among ten thousand items, which stay until the end."""
        with collector_paused(keep=True):
            return (yield)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note which cells are asked for by users' tests, so by more than one item perhaps."""
        own = (cell_of(item) for item in session.items if is_own(item))
        self._asked_often = frozenset(cell for cell in own if cell is not None)

    def pytest_unconfigure(self) -> None:
        """End what was started for cells, and let go of the results folder."""
        if "_workplace" in self.__dict__:
            self._workplace.close()
        if "_writer" in self.__dict__:
            self._writer.close()
        if self._lock is not None:
            self._lock.release()

    # -- one item --------------------------------------------------------------------------------

    # First, since a cell's reports are held back until it is known whether it is tried again.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a cell; report nothing of a try that is to be repeated.

        Where more items follow, the cell goes to the end of the queue: xdist's controller sees an
        item that ended without a report, this process's own loop gets it appended. Where none
        follows, this is the end of the queue, and it is tried again at once; so is a certificate's
        cell, since others wait for it.
        """
        cell = cell_of(item)
        if cell is None:
            return None
        self._next = nextitem
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        while True:
            item.stash[again_key] = False
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            if not item.stash[again_key]:
                break
            if nextitem is not None and cell not in self._certifying:
                if not hasattr(self.config, "workerinput"):
                    item.session.items.append(item)
                item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
                return True
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def attempt(self, cell: Cell) -> Attempt:
        """Return the cell's attempt, which ended in a verdict and is stored.

        All items that ask for one cell get one attempt, or the fault of its last try.

        Raises:
            Again: the try is to be repeated later.
            FaultRaised: the last try ended in a fault.
            StoreProblem: the result could not be stored.
        """
        try:
            record = self._attempt(self._planned[cell])
        except StoreProblem as problem:
            self._unstored = problem
            raise
        if record.outcome is Outcome.FAULT:
            raise FaultRaised(record)
        return Attempt(record, self._workplace)

    def _attempt(self, planned: Planned) -> AttemptRecord:
        cell = planned.cell
        if planned.action in (Action.OLD, Action.REFUSE):
            self._refuse(planned.why)
        if planned.action is Action.REPLAY:
            return self._stored(planned)
        if cell not in self._asked_often:
            return self._try(planned)
        with self._shared.hold(cell):
            record = self._shared.get(cell)
            if record is None:
                record = self._try(planned)
                self._shared.put(record)
        return record

    def _try(self, planned: Planned) -> AttemptRecord:
        """Try a cell once; return its verdict, or the fault that no further try follows."""
        from pytest_modelbench.gateway.client import HELD

        cell = planned.cell
        self._board.read()
        if self._board.ending:
            self._refuse("the run was stopped")
        if why := self._board.refusal(cell):
            self._refuse(why)
        number = self._tries.next(cell)
        record = self._workplace.attempt(
            planned, number, self._patience(cell), partial(self._waits, cell)
        )
        if record.outcome is not Outcome.FAULT:
            self._store(record)
            return record
        if os.getppid() == 1 or not _alive(self.orders.controller):
            return record  # the run was killed: this says nothing about the candidate
        if record.fault is not None and record.fault.kind == "candidate-stopped":
            self._refuse(f"{cell.candidate} was stopped: {record.fault.text}")
        if record.fault is not None and record.fault.kind == HELD:
            self._tries.take_back(cell)
            raise Again
        if record.fault is not None and record.fault.kind == "budget":
            self._refuse(f"not run: {record.fault.text}")
        self._store(record)
        permanent = record.fault is not None and record.fault.permanent
        if number <= self.settings.fault_retries and not permanent:
            raise Again
        return record

    def _patience(self, cell: Cell) -> float | None:
        """Return how long a cell waits for a usage window, None for as long as it takes.

        Where a cell of another candidate is bound behind it, that one shall not wait with it.
        """
        behind = cell_of(self._next) if self._next is not None else None
        alone = self._next is None or (behind is not None and behind.candidate == cell.candidate)
        return None if alone else HELD_SECONDS

    def _waits(self, cell: Cell, why: str, until: float) -> None:
        """Say what a cell waits for, where no controller elsewhere does it.

        Said from here, since what a thread prints while a test runs is captured with its output.
        """
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        capture = self.config.pluginmanager.get_plugin("capturemanager")
        if reporter is None or hasattr(self.config, "workerinput") or not self._talks:
            return
        with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
            reporter.write_line(wait_line(cell.candidate, Wait(why, until)))

    def _store(self, record: AttemptRecord) -> None:
        self._writer.append(record)
        self._workplace.stored(record)

    def _refuse(self, why: str) -> NoReturn:
        """Skip the item: its cell does not start, or has no verdict that counts."""
        self._refusal = pytest.skip.Exception(why)
        raise self._refusal

    def case(self, cell: Cell) -> Case:
        """Return the case of a cell."""
        return self._workplace.case(cell)

    def candidate(self, cell: Cell) -> Candidate:
        """Return the candidate of a cell."""
        return self._workplace.candidate(cell)

    def _stored(self, planned: Planned) -> AttemptRecord:
        entry = self._index.find(planned.stored)
        if entry is None:
            raise RuntimeError(f"attempt {planned.stored} is planned and not in the store")
        return self._index.record(entry)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give a cell's reports their meaning: result, fault, certificate, or nothing yet."""
        report = yield
        cell = cell_of(item)
        if cell is None:
            return report
        error = call.excinfo.value if call.excinfo is not None else None
        if isinstance(error, Again):
            item.stash[again_key] = True
        elif isinstance(error, FaultRaised):
            report.longrepr = str(error)
            outcomes.attach(report, outcomes.facts_of(error.record), item)
        elif isinstance(error, StoreProblem):
            report.longrepr = str(error)
            if error is self._unstored:
                item.session.shouldstop = f"results cannot be stored: {error}"
        elif error is not None and error is self._refusal:
            outcomes.refuse(report)
        elif is_own(item):
            self._judge_own(item, report, call)
        elif call.when == "call" and (error is None or isinstance(error, Unsolved)):
            self._judge(item, report, cell)
        return report

    # First, so that no plugin runs a test whose outcome is known.
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Leave out the body of a user's test that judged this stored attempt before."""
        cell, attempt = cell_of(pyfuncitem), pyfuncitem.stash.get(attempt_key, None)
        if cell is None or attempt is None or not is_own(pyfuncitem):
            return None
        if self._planned[cell].action is not Action.REPLAY:
            return None
        name, source = name_of(pyfuncitem, cell), source_of(pyfuncitem)
        found = self._index.check(attempt.id, name, source)
        if found is not None:
            pyfuncitem.stash[check_key] = found
        return found is not None or None

    def _judge_own(
        self, item: pytest.Item, report: pytest.TestReport, call: pytest.CallInfo[None]
    ) -> None:
        """Say what a user's own test of an attempt found, and store it.

        Only a pass and an AssertionError say something about the candidate; any other exception is
        the test's own trouble and stays an ordinary failure.
        """
        cell, record = cell_of(item), item.stash.get(attempt_key, None)
        error = call.excinfo.value if call.excinfo is not None else None
        if cell is None or record is None or call.when != "call" or report.skipped:
            return
        if error is not None and not isinstance(error, AssertionError):
            return
        found = item.stash.get(check_key, None)
        replayed = found is not None
        if found is None:
            found = CheckRecord(
                id=new_run_id() + new_run_id(),
                run=self.settings.run,
                **cell._asdict(),
                attempt=record.id,
                name=name_of(item, cell),
                source=source_of(item),
                passed=error is None,
                reason=_first_line(error),
                started=utc_now(),
                seconds=round(call.duration, 3),
            )
            try:
                self._writer.append(found)
            except StoreProblem as problem:
                report.outcome, report.longrepr = "failed", str(problem)
                item.session.shouldstop = f"results cannot be stored: {problem}"
                return
        report.duration = found.seconds
        if cell.candidate == REFERENCE and not found.passed:
            report.outcome = "failed"
            report.longrepr = report.longrepr or f"the reference does not pass: {found.reason}"
        elif not found.passed and self.settings.fail_unsolved:
            report.outcome = "failed"
            report.longrepr = report.longrepr or f"unsolved: {found.reason}"
        else:
            report.outcome, report.longrepr = "passed", None
        outcomes.attach(
            report,
            outcomes.check_facts(
                record, passed=found.passed, reason=found.reason, replayed=replayed
            ),
            item,
        )

    def _judge(self, item: pytest.Item, report: pytest.TestReport, cell: Cell) -> None:
        """Say what a verdict is to this run: a result, a certificate's part, or a failure."""
        record = item.stash.get(attempt_key, None)
        if record is None:
            report.outcome, report.longrepr = (
                "failed",
                "the fixture modelbench_attempt was replaced",
            )
            return
        certifies = cell in self._certifying
        found = outcomes.facts_of(record, certifies=certifies)
        wrong = outcomes.wrong_for_certificate(cell, found, self.orders.plan.damaged.get(cell))
        if wrong:
            report.outcome, report.longrepr = "failed", wrong
        elif report.failed and (cell.certifies or not self.settings.fail_unsolved):
            report.outcome, report.longrepr = "passed", None
        elif report.failed:
            report.longrepr = outcomes.unsolved_words(cell, found)
        outcomes.attach(report, found, item)


def _first_line(error: BaseException | None) -> str:
    text = "" if error is None else str(error).strip().partition("\n")[0]
    return text[:200].encode("utf-8", "replace").decode("utf-8")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
