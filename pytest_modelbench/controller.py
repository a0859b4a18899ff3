"""The one process that decides: dealing, replays, certificates, exit status, summary."""

from __future__ import annotations

import gc
import importlib.metadata
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pluggy
import pytest

from pytest_modelbench import outcomes
from pytest_modelbench.attempt import crash
from pytest_modelbench.bench import Bench, claim_bench, measures, node_id, node_path
from pytest_modelbench.board import Board
from pytest_modelbench.certification import Certification
from pytest_modelbench.collection import Selection, cell_of, folders_key, lent_key, plan_key
from pytest_modelbench.draws import recorded
from pytest_modelbench.errors import StoreProblem, UsageProblem
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.gateway.process import sweep as sweep_gateways
from pytest_modelbench.gating import Gating, read_gating
from pytest_modelbench.heartbeat import Heartbeat, NothingFaulted, header, plan_lines, step_of
from pytest_modelbench.plan import Action, Planned
from pytest_modelbench.records import Cell, Outcome
from pytest_modelbench.scheduling import (
    CellScheduling,
    Dealer,
    Turn,
    deal_order,
    place_in_turns,
)
from pytest_modelbench.settings import new_run_id, utc_now
from pytest_modelbench.store.layout import LOGS, moment_of
from pytest_modelbench.store.lock import RunLock
from pytest_modelbench.store.reader import read
from pytest_modelbench.store.writer import Grid, RunInfo, Writer, facts
from pytest_modelbench.summary import Summary
from pytest_modelbench.usertests import cell_in, is_own, key_of
from pytest_modelbench.waits import Waits, used_before
from pytest_modelbench.worker import Orders, Worker, remember_faulted
from pytest_modelbench.worlds.environment import environment, is_built
from pytest_modelbench.worlds.levels import choose
from pytest_modelbench.worlds.runs import close_run, open_run, runs_root, runs_roots, sweep

controller_key: pytest.StashKey[Controller] = pytest.StashKey()


def take_charge(config: pytest.Config) -> None:
    """Read everything, plan, and register what this run needs; UsageError for bad input."""
    _refuse_what_cannot_work(config)
    run, started = new_run_id(), utc_now()
    lock: RunLock | None = None
    try:
        bench, lock = claim_bench(config, run, started, say=partial(_say, config))
        gating = read_gating(config, bench) if bench is not None else Gating()
    except (UsageProblem, StoreProblem) as problem:
        if lock is not None:
            lock.release()
        raise pytest.UsageError(str(problem)) from problem
    if bench is None:
        if config.getoption("lf", False):
            config.pluginmanager.register(NothingFaulted(), "modelbench-nothing-faulted")
        return
    config.args[:] = bench.args
    config.stash[plan_key] = bench.plan
    controller = Controller(config, bench, lock, gating)
    remember_faulted(config, controller.folders, controller.faulted)
    config.stash[folders_key] = controller.folders
    config.stash[lent_key] = frozenset(bench.settings.lent)
    config.stash[controller_key] = controller
    config.pluginmanager.register(controller, "modelbench-controller")
    config.pluginmanager.register(Selection(bench.plan), "modelbench-selection")
    gc.freeze()  # the plan stays until the end: no search for garbage need look at it again


def _refuse_what_cannot_work(config: pytest.Config) -> None:
    if config.getoption("reruns", 0):
        raise pytest.UsageError(
            "--reruns would run a candidate again until it passes; faults have "
            "--modelbench-fault-retries, and --modelbench-repeats measures chance"
        )
    dist = config.getoption("dist", "no")
    if dist not in ("no", "load", "worksteal"):
        raise pytest.UsageError(
            f"--dist {dist} cannot deal cells: use --dist load (the default of -n) or worksteal"
        )


class Controller:
    """One run, as its controlling process sees it."""

    def __init__(
        self, config: pytest.Config, bench: Bench, lock: RunLock | None, gating: Gating
    ) -> None:
        self.config = config
        self.bench = bench
        self.gating = gating
        self.summary: Summary | None = None
        self.settings = bench.settings
        self.folder = runs_root() / self.settings.run
        self._open = ExitStack()
        self.board = Board(self.folder)
        self.gateway: GatewayProcess | None = None
        self.lock = lock
        self.writer: Writer | None = None
        self.planned = {p.cell: p for p in (*bench.plan.aside, *bench.plan)}
        certifying = {p.cell for p in bench.plan.certifying}
        every = (*bench.packs, *bench.lent)
        manifests = {p.name: node_path(config.rootpath, p.manifest) for p in every}
        self.nodeids = {node_id(manifests[p.cell.pack], p.cell): p.cell for p in bench.plan}
        self.own = {key_of(cell): cell for cell in self.planned}
        self.folders = {str(pack.folder): pack.name for pack in every}
        self.faulted = tuple(
            nodeid
            for nodeid, cell in self.nodeids.items()
            if self.settings.last_failed and cell not in certifying
        )
        self.without_verdict: dict[Cell, str] = {}
        self.attempts: dict[Cell, outcomes.Facts] = {}
        self.certification = Certification(bench.plan, self.board)
        self._reported: set[str] = set()
        self._selected: set[Cell] = set()
        self._measuring = False
        self._beat: Heartbeat | None = None
        self._waits: Waits | None = None
        self._old_sigterm: Any = None  # Any: as signal.signal returns it

    # -- start and end ---------------------------------------------------------------------------

    def pytest_report_header(self) -> list[str]:
        """Say what the grid is and how much of it is there."""
        return header(self.bench)

    # First, so that what workers need stands before xdist starts them.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Sweep what dead runs left, start the gateway; the results folder is this run's."""
        for damage in self.bench.index.damages:
            self._say(str(damage))
        if not measures(self.config):
            return
        results = Path(self.settings.results)
        try:
            choose(self.settings.isolation)
            self._prepare_environments()
        except (UsageProblem, StoreProblem) as problem:
            raise pytest.UsageError(str(problem)) from problem
        self._measuring = True
        self._catch_sigterm()
        sweep_gateways()
        for line in [line for root in runs_roots() for line in sweep(root)]:
            self._say(f"left by an earlier run: {line}")
        self._open.enter_context(open_run(runs_root(), self.settings.run))
        self.board.write()
        self.writer = Writer(results, self.run_info())
        if self.settings.fresh:
            for pack, candidate in {(p.cell.pack, p.cell.candidate) for p in self.bench.plan.grid}:
                self.writer.declare(pack, candidate)
        self._start_gateway()
        if not self.config.pluginmanager.hasplugin("dsession"):
            worker = Worker(self.config, self.orders())
            self.config.pluginmanager.register(worker, "modelbench-worker")

    def _prepare_environments(self) -> None:
        """Build what packs need once, before any cell can wait for it or fail by it."""
        busy = {p.cell.pack for p in self.bench.plan if p.action in (Action.RUN, Action.REGRADE)}
        specs = {
            case.environment: pack.name
            for pack in self.bench.packs
            if pack.name in busy
            for case in pack.cases
        }
        for spec, name in specs.items():
            if not is_built(spec):
                self._say(f"builds the environment of {name}: {', '.join(spec.packages)}")
            environment(spec)

    def run_info(self) -> RunInfo:
        """Return what the head of each results file of this run says."""
        plan = self.bench.plan
        return RunInfo(
            run=self.settings.run,
            started=self.settings.started,
            note=self.settings.note,
            grid=Grid(
                cases={
                    pack.name: tuple(
                        dict.fromkeys(p.cell.case for p in plan.grid if p.cell.pack == pack.name)
                    )
                    for pack in self.bench.packs
                },
                candidates=self.settings.models,
                repeats=self.settings.repeats,
            ),
            candidates={c.name: facts(c) for c in self.bench.candidates},
            versions=versions(),
            draw=recorded(self.bench.draw),
            gates=self.gating.texts,
            fresh=tuple(p.cell for p in plan.grid) if self.settings.fresh else (),
        )

    def _start_gateway(self) -> None:
        plan = self.bench.plan
        called = {p.cell.candidate for p in (*plan.grid, *plan.aside) if p.action is Action.RUN}
        if not any(c.calls_model and c.name in called for c in self.bench.candidates):
            return
        results, started = Path(self.settings.results), self.settings.started
        self.gateway = GatewayProcess.start(
            self.bench.candidates,
            tuple(self.bench.registry.servers.values()),
            **self.bench.registry.patience.model_dump(),
            budget_usd=self.settings.budget_usd,
            budget_tokens=self.settings.budget_tokens,
            used=used_before(self.bench, time.time()),
            root=Path(self.settings.root),
            log=results / LOGS / f"{moment_of(started)}-{self.settings.run}",
        )
        address = self.gateway.address
        client = GatewayClient(address.socket_path, address.secret)
        elsewhere = self.config.pluginmanager.hasplugin("dsession")
        talks = elsewhere and step_of(self.config.get_verbosity())  # otherwise the worker says it
        write = self._write_line if talks else lambda line: None
        self._waits = Waits(client.status, write)
        self._waits.watch()

    def orders(self) -> Orders:
        """Return what a worker is told."""
        return Orders(
            settings=self.settings,
            plan=self.bench.plan,
            args=tuple(self.config.args),
            folders=self.folders,
            candidates=self.bench.candidates,
            run_info=self.run_info(),
            folder=str(self.folder),
            gateway=self.gateway.address if self.gateway is not None else None,
            faulted=self.faulted,
            controller=os.getpid(),
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:  # Any: xdist's WorkerController
        """Hand settings and plan to a worker, and to one that replaces it."""
        node.workerinput["modelbench"] = self.orders().to_payload()

    def pytest_unconfigure(self) -> None:
        """Leave nothing behind: gateway, folder, lock, handler."""
        if self._beat is not None:
            self._beat.stop()
        if self._waits is not None:
            self._waits.stop()
        if self.gateway is not None:
            self.gateway.close()
        if self.writer is not None:
            self.writer.close()
        self._open.close()
        if self._measuring:
            close_run(runs_root(), self.settings.run)
        if self.lock is not None:
            self.lock.release()
        if self._old_sigterm is not None:
            signal.signal(signal.SIGTERM, self._old_sigterm)
            self._old_sigterm = None

    def _catch_sigterm(self) -> None:
        """Make SIGTERM stop a run as Ctrl-C does, with summary and without orphans."""
        if threading.current_thread() is not threading.main_thread():
            return

        def interrupt(number: int, frame: object) -> None:
            raise KeyboardInterrupt(f"signal {signal.Signals(number).name}")

        self._old_sigterm = signal.signal(signal.SIGTERM, interrupt)

    def _say(self, line: str) -> None:
        _say(self.config, line)

    def _write_line(self, line: str) -> None:
        _write_line(self.config, line)

    # -- dealing ---------------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> Any:
        """Deal items in the plan's order; Any: structurally xdist's Scheduling."""
        from xdist.workermanage import parse_tx_spec_config

        return CellScheduling(
            len(parse_tx_spec_config(config)),
            make_dealer=self._dealer,
            reported=lambda nodeid: nodeid in self._reported,
            on_refused=self._refuse,
            on_start=self._replay_all,
        )

    def _dealer(self, collection: Sequence[str]) -> Dealer:
        cells = {i: self.nodeids[n] for i, n in enumerate(collection) if n in self.nodeids}
        own = {
            i: cell
            for i, n in enumerate(collection)
            if n not in self.nodeids and (cell := self._cell(n)) is not None
            # What is stored already needs no turn and waits for nothing.
            if self.planned[cell].action in (Action.RUN, Action.REGRADE)
        }
        cells |= own
        turns = self.turns()
        return Dealer(
            deal_order(len(collection), cells, self.bench.plan, turns, own),
            cells,
            turns=turns,
            open_certificates=self.certification.is_open,
            refuse=self.board.refusal,
            held=lambda cell: self._waits is not None and self._waits.held(cell.candidate),
        )

    def _cell(self, nodeid: str) -> Cell | None:
        """Return the cell of an item, a user's own test among them; None for a plain test."""
        return self.nodeids.get(nodeid) or cell_in(nodeid, self.own)

    def turns(self) -> dict[str, Turn]:
        """Return which server each candidate needs, with its room and its group."""
        registry = self.bench.registry
        groups = {
            name: (server, "+".join(names))
            for server, models in registry.taking_turns(self.bench.candidates).items()
            for names in models
            for name in names
        }
        turns = {}
        for candidate in self.bench.candidates:
            server = registry.server_of(candidate) if candidate.calls_model else ""
            declared = registry.servers.get(server)
            turns[candidate.name] = Turn(
                server=server,
                room=declared.concurrency if declared is not None else None,
                group=groups.get(candidate.name, ("", ""))[1],
            )
        return turns

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> object:
        """Without xdist: report what is stored, then let pytest run the rest."""
        if self.config.getoption("modelbench_plan"):
            self._print_plan(session)
            return True
        if session.config.pluginmanager.hasplugin("dsession") or self.config.option.collectonly:
            return None
        options = self.config.option
        if session.testsfailed and not options.continue_on_collection_errors:
            return None  # pytest says how many errors there are, and runs nothing
        self._replay_all([item.nodeid for item in session.items])
        if session.shouldfail:  # by -x or --maxfail
            raise session.Failed(session.shouldfail)
        # What is red among the stored would be taken for errors during collection.
        options.continue_on_collection_errors = True
        session.items[:] = [
            item
            for item in session.items
            if (cell := cell_of(item)) is None
            or is_own(item)
            or self.planned[cell].action in (Action.RUN, Action.REGRADE)
        ]
        # Stable: nothing else moves, and a server changes its model as seldom as it can.
        later = place_in_turns(self.turns())
        session.items.sort(key=lambda item: later(cell_of(item)))
        return None

    def _print_plan(self, session: pytest.Session) -> None:
        cells = {cell for item in session.items if (cell := cell_of(item)) is not None}
        for line in plan_lines(self.bench, cells):
            self._write_line(line)

    def _replay_all(self, collection: Sequence[str]) -> None:
        """Report every stored cell among the selected ones; called once, before any item."""
        self._selected = {cell for n in collection if (cell := self._cell(n)) is not None}
        for nodeid in collection:
            cell = self.nodeids.get(nodeid)
            if cell is not None and self.planned[cell].action in (Action.REPLAY, Action.OLD):
                self._replay(nodeid, self.planned[cell])
        todo = [
            nodeid
            for nodeid in collection
            if (cell := self.nodeids.get(nodeid)) is not None
            and self.planned[cell].action in (Action.RUN, Action.REGRADE)
        ]
        session = self.config.pluginmanager.get_plugin("session")
        if isinstance(session, pytest.Session) and todo and not self._verbose:
            # Percent are of what has a letter.
            session.testscollected -= len(self._selected & self._passed_over())
        self._beat = Heartbeat(todo, self._write_line, step=step_of(self.config.get_verbosity()))
        self.config.pluginmanager.register(self._beat, "modelbench-heartbeat")
        if self._waits is not None:
            self._beat.tell_waits(self._waits.words)
        self._beat.watch()

    def _passed_over(self) -> set[Cell]:
        """Return the cells whose stored verdict is reported without a letter."""
        replayed = {cell for cell, p in self.planned.items() if p.action is Action.REPLAY}
        return replayed - self.without_verdict.keys()

    def _replay(self, nodeid: str, planned: Planned) -> None:
        entry = self.bench.index.find(planned.stored)
        if entry is None:
            raise RuntimeError(f"attempt {planned.stored} is planned and not in the index")
        if why := self.board.refusal(planned.cell) or planned.why * (planned.action is Action.OLD):
            self._refuse(nodeid, why)
            return
        record = self.bench.index.record(entry) if planned.cell.certifies else None
        report = outcomes.replay_report(
            nodeid, entry, record, fail_unsolved=self.settings.fail_unsolved
        )
        self._send(report)

    def _refuse(self, nodeid: str, why: str) -> None:
        """Report a selected cell that will not run as skipped, with the reason."""
        cell = self._cell(nodeid)
        if cell is not None:
            self.without_verdict[cell] = why
        path = nodeid.partition("::")[0]
        self._send(
            outcomes.synthetic_report(nodeid, "skipped", longrepr=(path, 0, f"Skipped: {why}"))
        )

    @cached_property
    def _tell_junit(self) -> pluggy.HookCaller | None:
        """Return the hook that gives a report to JUnit alone; None without JUnit.

        It takes an item's properties when its teardown is reported, which nobody else waits for.
        """
        plugins = self.config.pluginmanager.get_plugins()
        others = [p for p in plugins if type(p).__module__ != "_pytest.junitxml"]
        if len(others) == len(plugins):
            return None
        name = "pytest_runtest_logreport"
        return self.config.pluginmanager.subset_hook_caller(name, others)

    @cached_property
    def _verbose(self) -> bool:
        return self.config.get_verbosity() > 0

    def _send(self, report: pytest.TestReport) -> None:
        """Report a cell that no worker ran; where nothing is printed, nothing begins or ends."""
        hook = self.config.hook
        shown = self._verbose or not report.passed
        if shown:
            hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
        hook.pytest_runtest_logreport(report=report)
        if self._tell_junit is not None:
            self._tell_junit(report=outcomes.teardown_of(report))
        if shown:
            hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)

    # -- what comes back -------------------------------------------------------------------------

    # First, so that certificates and stops are decided before anything more is dealt.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take up the outcome of a cell: certificates, stopped candidates, missing verdicts."""
        self._reported.add(report.nodeid)
        found = outcomes.facts(report)
        cell = self.nodeids.get(report.nodeid)
        if cell is None and found is not None:
            cell = Cell(*found["cell"])  # a user's own test, whose verdict is not the cell's
            if found["outcome"] != Outcome.FAULT.value:
                return
        if cell is None and outcomes.is_refused(report):
            cell = self._cell(report.nodeid)
        if cell is None:
            return
        if report.skipped and found is None:
            self.without_verdict.setdefault(cell, _reason_of_skip(report))
        if found is None:
            if report.failed:
                self._certify(cell, None)
            return
        self.attempts[cell] = found
        if found["permanent"]:
            self.board.stopped.setdefault(cell.candidate, found["fault"])
            self.board.write()
        if found["outcome"] == Outcome.FAULT.value:
            text = found["fault_text"].strip().partition("\n")[0]
            self._certify(cell, None, [f"{found['fault']}: {text}"])
        elif report.when == "call":
            self._certify(cell, found["outcome"] == Outcome.PASSED.value, found["lost"])

    def _certify(self, cell: Cell, passed: bool | None, lost: Sequence[str] = ()) -> None:
        if self.certification.note(cell, (passed, lost)) and self._measuring:
            self.board.write()

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(
        self,
        crashitem: str,
        report: pytest.TestReport,
        sched: object,
    ) -> None:
        """Store a fault for the cell at which a worker died, unless its verdict is stored."""
        cell = self._cell(crashitem)
        if cell is None or self.writer is None:
            return
        planned = self.planned[cell]
        newest = read(Path(self.settings.results), packs=[cell.pack])
        mine = [e for e in newest.history(cell) if e.run == self.settings.run]
        if mine and not mine[-1].is_fault:
            if crashitem not in self.nodeids:
                return  # a user's own test ended the process, after the cell's attempt
            record = newest.record(mine[-1])
            report.outcome = "passed"
            report.longrepr = None
            report.when = "call"
        else:
            record = crash(
                cell, planned.identity, self.run_info(), series=planned.series, tries=len(mine) + 1
            )
            self.writer.append(record)
        outcomes.attach(report, outcomes.facts_of(record))

    def pytest_report_teststatus(self, report: pytest.TestReport) -> Any:  # Any: as pytest's hook
        """Give verdicts, faults and certificates letters and words of their own."""
        return outcomes.teststatus(report, verbose=self._verbose)

    def pytest_keyboard_interrupt(self) -> None:
        """Let no worker begin what it holds already; called for -x and --maxfail too."""
        if self._measuring:
            self.board.ending = True
            self.board.write()

    # First, so that the summary, JUnit's file and xdist's end see the status.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn OK into 1 where a selected cell has no verdict or a case is broken."""
        if not measures(self.config):
            if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.bench.plan.grid:
                session.exitstatus = pytest.ExitCode.OK
            return
        broken = self.without_verdict or any(map(self.board.refusal, self._selected))
        if session.exitstatus == pytest.ExitCode.OK and broken:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._measuring:
            self._await_workers()
            self._conclude(session)

    def _await_workers(self) -> None:
        """Let workers of a run that was stopped end now, so that what they ended well is counted.

        This is what xdist does a moment later, when JUnit's file may be written already.
        """
        nodes = getattr(self.config.pluginmanager.get_plugin("dsession"), "nodemanager", None)
        if self.board.ending and nodes is not None:
            nodes.teardown_nodes()

    def _conclude(self, session: pytest.Session) -> None:
        """Count, judge the gates, and keep what is about to be shown; pytest's own status wins."""
        status: int
        try:
            self.summary = Summary.of(
                self.bench, self.gating, self.board.uncertified, self.without_verdict
            )
            status = self.summary.gate_status
            self.summary.keep(self.config)
        except (StoreProblem, OSError) as problem:
            self._say(f"the report is not complete: {problem}")
            status = pytest.ExitCode.TESTS_FAILED
        if session.exitstatus == pytest.ExitCode.OK and status:
            session.exitstatus = status
        if self.summary is None:
            return
        for plugin in self.config.pluginmanager.get_plugins():
            # What record_testsuite_property calls, which is for fixtures only.
            if (add := getattr(plugin, "add_global_property", None)) is not None:
                for name, value in self.summary.properties():
                    add(name, value)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:  # Any: pytest's is private
        """Print the report, built from the store alone."""
        if self.summary is None:
            return
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        width = terminalreporter._tw.fullwidth
        for line in self.summary.lines(width, utf8="utf" in encoding.lower()):
            terminalreporter.write_line(line)


def _say(config: pytest.Config, line: str) -> None:
    _write_line(config, f"modelbench {line}")


def _write_line(config: pytest.Config, line: str) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        if reporter._tw.width_of_current_line > 0:  # letters of results stand there
            reporter._tw.line()
        reporter.write_line(line)


def _reason_of_skip(report: pytest.TestReport) -> str:
    longrepr = report.longrepr
    return str(longrepr[2]).removeprefix("Skipped: ") if isinstance(longrepr, tuple) else ""


def versions() -> dict[str, str]:
    """Return the versions that a run records."""
    found = {"python": platform.python_version()}
    for name in ("pytest-modelbench", "litellm", "pytest"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
