"""The process that decides: what a run reads, starts and keeps, its status, its summary."""

from __future__ import annotations

import gc
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_modelbench.bench import Bench, claim_bench, measures
from pytest_modelbench.board import Board
from pytest_modelbench.certification import Certification
from pytest_modelbench.collection import Selection, folders_key, lent_key, plan_key, take_tags
from pytest_modelbench.dealing import Dealing
from pytest_modelbench.draws import recorded
from pytest_modelbench.errors import StoreProblem, UsageProblem
from pytest_modelbench.gating import Gating, read_gating
from pytest_modelbench.heartbeat import NothingFaulted, header, step_of, write_line
from pytest_modelbench.intake import Intake
from pytest_modelbench.interrupts import Interrupts
from pytest_modelbench.lastfailed import remember_faulted
from pytest_modelbench.orders import Orders
from pytest_modelbench.outcomes import UNSOLVED, own_lines
from pytest_modelbench.plan import TODO, Action
from pytest_modelbench.project import overlooked, place_lines
from pytest_modelbench.roster import Roster
from pytest_modelbench.settings import new_run_id, utc_now
from pytest_modelbench.store.layout import LOGS, moment_of
from pytest_modelbench.store.lock import RunLock
from pytest_modelbench.store.pause import collector_paused
from pytest_modelbench.store.writer import Grid, RunInfo, Writer, facts
from pytest_modelbench.summary import Summary, require_writable
from pytest_modelbench.waits import Waits, used_before
from pytest_modelbench.worker import Worker
from pytest_modelbench.worlds.runs import close_run, open_run, runs_root, runs_roots, sweep

if TYPE_CHECKING:
    from pytest_modelbench.gateway.process import GatewayProcess

controller_key: pytest.StashKey[Controller] = pytest.StashKey()


def take_charge(config: pytest.Config) -> None:
    """Read everything, plan, and register what this run needs; UsageError for bad input."""
    _refuse_what_cannot_work(config)
    run, started = new_run_id(), utc_now()
    lock: RunLock | None = None
    try:
        with collector_paused(keep=True):
            bench, lock = claim_bench(config, run, started, say=partial(_say, config))
        gating = read_gating(config, bench) if bench is not None else Gating()
    except (UsageProblem, StoreProblem) as problem:
        if lock is not None:
            lock.release()
        raise pytest.UsageError(str(problem)) from problem
    if config.getoption("lf", False) and (bench is None or not bench.plan.grid):
        config.pluginmanager.register(NothingFaulted(), "modelbench-nothing-faulted")
    if bench is None:
        return
    config.args[:] = bench.args
    # To workers, too: by their arguments they would find another once the results folder is there.
    config.option.rootdir = str(config.rootpath)
    config.stash[plan_key] = bench.plan
    controller = Controller(config, bench, lock, gating)
    remember_faulted(config, controller.folders, controller.faulted)
    config.stash[folders_key] = controller.folders
    config.stash[lent_key] = frozenset(bench.settings.lent)
    take_tags(config, bench.tags)
    config.stash[controller_key] = controller
    config.pluginmanager.register(controller, "modelbench-controller")
    for name, part in controller.parts.items():
        config.pluginmanager.register(part, name)
    config.pluginmanager.register(Selection(config, bench.plan), "modelbench-selection")
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
    if measures(config):
        require_writable(config)


class Controller:
    """One run, as its controlling process sees it."""

    def __init__(
        self, config: pytest.Config, bench: Bench, lock: RunLock | None, gating: Gating
    ) -> None:
        self.config = config
        self.bench = bench
        self.gating = gating
        self.summary: Summary | None = None
        self._lacking = ""
        self.settings = bench.settings
        self.folder = runs_root() / self.settings.run
        self._open = ExitStack()
        self.board = Board(self.folder)
        self.gateway: GatewayProcess | None = None
        self.lock = lock
        self.writer: Writer | None = None
        certifying = {p.cell for p in bench.plan.certifying}
        self.folders = {str(p.folder): p.name for p in (*bench.packs, *bench.lent)}
        self.roster = Roster(bench, config.rootpath)
        self.faulted = tuple(
            nodeid
            for nodeid, cell in self.roster.nodeids.items()
            if self.settings.last_failed and cell not in certifying
        )
        certification = Certification(bench.plan, self.board)
        self.parts = {
            "modelbench-dealing": Dealing(
                config, bench, self.roster, self.board, certification, lambda: self._waits
            ),
            "modelbench-intake": Intake(
                self.settings,
                self.roster,
                self.board,
                certification,
                writer=lambda: self.writer,
                run_info=self.run_info,
                verbose=config.get_verbosity() > 0,
            ),
        }
        self._measuring = False
        self._waits: Waits | None = None
        self._interrupts = Interrupts()

    # -- start and end ---------------------------------------------------------------------------

    def pytest_report_header(self) -> list[str]:
        """Say what the grid is and how much of it is there."""
        return [*place_lines(self.config, self.settings), *header(self.bench)]

    # First, so that what workers need stands before xdist starts them.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Sweep what dead runs left, start the gateway; the results folder is this run's."""
        for damage in self.bench.index.damages:
            self._say(str(damage))
        for line in overlooked(self.config, self.settings):
            self._say(line)
        if not measures(self.config):
            return
        for line in [line for root in runs_roots() for line in sweep(root)]:
            self._say(f"left by an earlier run: {line}")
        results = Path(self.settings.results)
        if any(map(self.roster.is_todo, self.roster.planned)):
            try:
                self._prepare()
            except (UsageProblem, StoreProblem) as problem:
                raise pytest.UsageError(str(problem)) from problem
        self._measuring = True
        self._interrupts.catch()
        self.config.add_cleanup(self._interrupts.release)  # after every plugin's last hook
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

    def _prepare(self) -> None:
        """Have a box, and what packs need, before any cell can wait for it or fail by it."""
        from pytest_modelbench.gateway.process import sweep as sweep_gateways
        from pytest_modelbench.worlds.disk import room_problem
        from pytest_modelbench.worlds.environment import environment, is_built
        from pytest_modelbench.worlds.levels import choose

        sweep_gateways()
        if problem := room_problem(runs_root()):
            raise UsageProblem(problem)
        choose(self.settings.isolation)
        busy = {p.cell.pack for p in self.bench.plan if p.action in TODO}
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
        asked = any(c.calls_model and c.name in called for c in self.bench.candidates)
        if not asked and not self.bench.judges:
            return
        from pytest_modelbench.gateway.client import GatewayClient
        from pytest_modelbench.gateway.process import GatewayProcess

        results, started = Path(self.settings.results), self.settings.started
        self.gateway = GatewayProcess.start(
            self.bench.called,
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
        write = partial(write_line, self.config) if talks else lambda line: None
        self._waits = Waits(client.status, write)
        self._waits.watch()

    def orders(self) -> Orders:
        """Return what a worker is told."""
        return Orders(
            settings=self.settings,
            plan=self.bench.plan,
            args=tuple(self.config.args),
            folders=self.folders,
            tags=self.bench.tags,
            candidates=self.bench.called,
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

    def _say(self, line: str) -> None:
        _say(self.config, line)

    def pytest_keyboard_interrupt(self) -> None:
        """Let no worker begin what it holds already; called for -x and --maxfail too."""
        if self._measuring:
            self.board.ending = True
            self.board.write()

    # Outermost: no moment between pytest's loop and its end is without somebody who listens.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Let a signal that comes when all has run not cost the report."""
        try:
            return (yield)
        finally:
            if self._measuring:
                self._interrupts.hold(session)

    # First, so that the summary, JUnit's file and xdist's end see the status.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn OK into 1 where a selected cell has no verdict or a case is broken."""
        if not measures(self.config):
            if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.bench.plan.grid:
                session.exitstatus = pytest.ExitCode.OK
            return
        tried = {f"{cell.pack}/{cell.case}" for cell in self.roster.selected}
        unsound = not tried.isdisjoint(self.board.uncertified)
        refused = any(map(self.board.refusal, self.roster.selected))
        broken = unsound or refused or bool(self.roster.without_verdict)
        if session.exitstatus == pytest.ExitCode.OK and broken:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._measuring:
            self._interrupts.hold(session)  # not yet where collection ended the run
            self._interrupts.settle()
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
                self.bench,
                self.gating,
                self.board.uncertified,
                self.roster.without_verdict,
                chosen={cell.pack for cell in self.roster.selected},
            )
            status = self.summary.gate_status
            self.summary.keep(self.config)
        except (StoreProblem, OSError) as problem:
            self._lacking = f"the report is not complete: {problem}"
            if self.config.getoption("no_summary", False):
                self._say(self._lacking)  # nothing else is said at the end
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
        """Print why users' own tests were not passed, and the report, from the store alone."""
        if lines := own_lines(terminalreporter.stats.get(UNSOLVED, ())):
            terminalreporter.section("modelbench: tests of your own, not passed")
        for line in lines:
            terminalreporter.write_line(line)
        if (number := self._interrupts.noted) is not None:
            self._say(f"{number.name} came when the run was ending: nothing is missing for it")
        if self.summary is not None:
            self._print_report(terminalreporter)
        if self._lacking:
            self._say(self._lacking)

    def _print_report(self, terminalreporter: Any) -> None:  # Any: pytest's is private
        assert self.summary is not None
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        width = terminalreporter._tw.fullwidth
        for line in self.summary.lines(width, utf8="utf" in encoding.lower()):
            terminalreporter.write_line(line)


def _say(config: pytest.Config, line: str) -> None:
    write_line(config, f"modelbench {line}")


def versions() -> dict[str, str]:
    """Return the versions that a run records."""
    found = {"python": platform.python_version()}
    for name in ("pytest-modelbench", "litellm", "pytest"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
