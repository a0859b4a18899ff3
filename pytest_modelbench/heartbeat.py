"""Say what a run will do, how far it is, and what it found; a line when there is news."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, TextIO

import pytest

from pytest_modelbench.bench import Bench
from pytest_modelbench.outcomes import facts
from pytest_modelbench.plan import Action, Planned
from pytest_modelbench.records import Cell, Outcome, Role
from pytest_modelbench.report.numbers import plural

STEP = 0.05
"""A line for each twentieth of the cells to run."""
FIRST_SECONDS = 10.0
"""The first line at the latest after this long, so that a run of long cells is seen to work."""
QUIET_SECONDS = 30.0
"""A later line at the latest after this long without one; later in a long run."""
QUIET_SHARE = 1 / 60
"""Of the time since the run began: no more lines than one in this share for quiet alone."""
LOOK_SECONDS = 1.0
"""How often a thread looks at the clock."""
LEAST_SECONDS = 10.0
"""Never two lines within this time."""


def header(bench: Bench) -> list[str]:
    """Return the lines above the run: for each pack the grid and what is to be done of it."""
    lines = []
    for pack in bench.packs:
        grid = [p for p in bench.plan.grid if p.cell.pack == pack.name]
        if not grid and bench.settings.last_failed:
            continue  # nothing of it is faulted; of no pack: `NothingFaulted` says so
        certifying = sum(p.cell.pack == pack.name for p in bench.plan.certifying)
        cases = len({p.cell.case for p in grid})
        candidates = len({p.cell.candidate for p in grid})
        lines.append(
            f"modelbench: {pack.name}: {plural(cases, 'case')} x {plural(candidates, 'candidate')} "
            f"x {plural(bench.settings.repeats, 'repeat')} = {plural(len(grid), 'cell')}; "
            f"{_todo(grid, certifying)}"
        )
        if bench.settings.draw:
            lines.append(f"modelbench: {pack.name}: {bench.settings.draw}")
    return lines


class NothingFaulted:
    """Say above a run why ``--lf`` selects no cell."""

    def pytest_report_header(self) -> list[str]:
        """Return the line."""
        return ["modelbench: no cell ended in a fault, so --lf selects none"]

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[object]) -> None:
        """Keep pytest from saying of no tests at all that it does not deselect them."""
        plugin = config.pluginmanager.get_plugin("lfplugin")
        if plugin is not None and not items:
            plugin.active = False


def _todo(grid: Collection[Planned], certifying: int) -> str:
    words = {
        Action.REPLAY: "replayed",
        Action.REGRADE: "to grade again",
        Action.OLD: "old",
        Action.RUN: "to run",
        Action.REFUSE: "that cannot run",
    }
    counts = Counter(p.action for p in grid)
    parts = [f"{counts[action]} {word}" for action, word in words.items() if counts[action]]
    if certifying:
        parts.append(f"{certifying} to certify with")
    return ", ".join(parts) or "nothing to do"


def plan_lines(bench: Bench, selected: Collection[Cell]) -> list[str]:
    """Return the plan of the selected cells, grouped by what happens and why; nothing is run."""
    groups: dict[tuple[str, Action, str, str], list[Cell]] = defaultdict(list)
    certifying = {p.cell for p in bench.plan.certifying}
    for planned in (*bench.plan, *bench.plan.aside):
        if planned.cell in selected:
            role = " to certify with" if planned.cell in certifying else ""
            groups[planned.cell.pack, planned.action, role, planned.why].append(planned.cell)
    lines = ["", "plan (nothing is run and no request is made)"]
    for (pack, action, role, why), cells in groups.items():
        lines.append(f"{pack}: {action} {len(cells)}{role}: {why}")
        lines += [f"    {cell.id}" for cell in cells]
    lines += _estimate(bench, selected)
    return lines


def _estimate(bench: Bench, selected: Collection[Cell]) -> list[str]:
    """Return what the cells to run may cost and take, by stored attempts of their candidates."""
    seconds: dict[str, list[float]] = defaultdict(list)
    dollars: dict[str, list[float]] = defaultdict(list)
    for entry in bench.index.entries():
        if entry.is_fault or entry.grades:
            continue
        seconds[entry.candidate].append(entry.seconds)
        spent = entry.detail.spent if entry.detail is not None else None
        if spent is not None and spent.list_usd is not None:
            dollars[entry.candidate].append(spent.list_usd)
    todo = Counter(
        p.cell.candidate
        for p in (*bench.plan.grid, *bench.plan.aside)
        if p.cell in selected and p.action is Action.RUN and not p.cell.certifies
    )
    lines = []
    for name, count in todo.items():
        known = seconds[name]
        taken = f"about {_clock(_mean(known) * count)} in all" if known else "time unknown"
        cost = f"about ${_mean(dollars[name]) * count:.4f}" if dollars[name] else "cost unknown"
        lines.append(
            f"{name}: {plural(count, 'cell')} to run, {taken}, {cost} (by stored attempts)"
        )
    return [*lines, *_judging(bench, selected), *_unasked(bench, todo)]


def _unasked(bench: Bench, names: Collection[str]) -> list[str]:
    """Return which models of some candidates no request could be made to, and why."""
    from pytest_modelbench.gateway.upstream import target_of

    asked = [one for one in bench.candidates if one.name in names and one.model and not one.script]
    problems = {one.name: problem[1] for one in asked if (problem := target_of(one).problem)}
    return [f"{name}: cannot be asked: {why}" for name, why in problems.items()]


def _judging(bench: Bench, selected: Collection[Cell]) -> list[str]:
    """Return who judges how many cells, and what that may cost by what it did before."""
    judges = {
        (case.pack, case.id): case.check.judge
        for pack in (*bench.packs, *bench.lent)
        for case in pack.cases
        if case.check.judge
    }
    todo = Counter(
        judges[planned.cell.pack, planned.cell.case]
        for planned in (*bench.plan, *bench.plan.aside)
        if planned.action in (Action.RUN, Action.REGRADE)
        and planned.cell in selected
        and (planned.cell.pack, planned.cell.case) in judges
    )
    known: dict[str, list[float]] = defaultdict(list)
    for entry in bench.index.entries() if todo else ():
        judge = judges.get((entry.pack, entry.case))
        if judge is None or entry.detail is None:
            continue
        for role, spent in entry.detail.others:
            if role == Role.JUDGE and spent.list_usd is not None:
                known[judge].append(spent.list_usd)
    return [
        f"{name}: judges {plural(count, 'cell')}, "
        + (f"about ${_mean(known[name]) * count:.4f}" if known[name] else "cost unknown")
        + " (by stored attempts)"
        for name, count in todo.items()
    ]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


class Heartbeat:
    """A plugin that counts a run's cells and says from time to time how far it is.

    Rates are left out on purpose: watching cost and faults is harmless, watching rates invites
    stopping when they please. ``write`` prints a line; ``step`` is the share of cells between two
    lines, 0 for none; a larger one makes the lines for quiet rarer, too. A thread of its own looks
    at the clock while all cells are long.
    """

    def __init__(
        self,
        cells: Collection[str],
        write: Callable[[str], None],
        *,
        step: float = STEP,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cells = set(cells)
        self._write = write
        self._step = step
        self._clock = clock
        self._total = len(self._cells)
        self._verdicts = 0
        self._faults = 0
        self._dollars = 0.0
        self._unpriced = 0
        self._running: dict[str, float] = {}
        self._open = Counter(map(_candidate_of, self._cells))
        self._took: dict[str, list[float]] = defaultdict(list)
        self._kinds: set[tuple[str, str]] = set()
        self._start = self._last = clock()
        self._last_done = 0
        self._waits: Callable[[], str] = lambda: ""
        self._failing: Callable[[], Mapping[str, tuple[str, str]]] = dict
        self._failed: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def watch(self) -> None:
        """Look at the clock from a thread until ``stop``."""

        def look() -> None:
            while not self._ended.wait(LOOK_SECONDS):
                self.look()

        if self._step and self._total:
            threading.Thread(target=look, name="modelbench-heartbeat", daemon=True).start()

    def tell_waits(
        self,
        waits: Callable[[], str],
        failing: Callable[[], Mapping[str, tuple[str, str]]],
    ) -> None:
        """Take what says which candidates wait, "" for none, and whose calls fail: word, text."""
        self._waits = waits
        self._failing = failing

    def look(self) -> None:
        """Say at once whose call is made again, for each reason once, and a line if it is due."""
        for name, (reason, text) in self._failing().items():
            if (name, reason) not in self._failed and not self._ended.is_set():
                self._failed.add((name, reason))
                self._write(f"modelbench {self._elapsed()}  {name}: {reason}, tried again: {text}")
        self.tick()

    def stop(self) -> None:
        """Say nothing more."""
        self._ended.set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a worker has begun a cell."""
        if nodeid in self._cells:
            with self._lock:
                self._running[nodeid] = self._clock()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note that no worker is at the cell any more; it may be dealt again."""
        with self._lock:
            began = self._running.pop(nodeid, None)
            if began is not None:
                self._took[_candidate_of(nodeid)].append(self._clock() - began)
        self.tick()

    def pytest_runtest_logreport(self, report: object) -> None:
        """Take up how a cell ended; the first fault of a kind is said at once."""
        found, nodeid = facts(report), getattr(report, "nodeid", "")
        if found is None or nodeid not in self._cells:
            return
        fault = found["outcome"] == Outcome.FAULT.value
        with self._lock:
            self._faults += fault
            self._verdicts += not fault
            self._open[_candidate_of(nodeid)] -= 1
            usd = found["list_usd"]
            self._dollars += usd or 0.0
            self._unpriced += usd is None
        kind = (found["cell"][2], found["fault"])
        if fault and self._step and kind not in self._kinds:
            self._kinds.add(kind)
            self._write(f"modelbench {self._elapsed()}  {kind[0]}: a fault, {kind[1]}")

    def tick(self) -> None:
        """Print a line if one is due: a step further, or quiet for long, never in a rush."""
        with self._lock:
            done, now = self._verdicts + self._faults, self._clock()
            if self._ended.is_set() or not self._step or done >= self._total:
                return
            due = done - self._last_done >= self._step * self._total
            due = due or now - self._last >= self._quiet(now)
            if not due or now - self._last < LEAST_SECONDS:
                return
            self._last, self._last_done = now, done
            line = self.line()
        self._write(line)

    def _quiet(self, now: float) -> float:
        """Return how many seconds may pass without a line."""
        rarer = self._step / STEP
        if self._last == self._start:
            return FIRST_SECONDS * rarer
        return max(QUIET_SECONDS * rarer, (now - self._start) * QUIET_SHARE)

    def line(self) -> str:
        """Return the line of this moment."""
        done = self._verdicts + self._faults
        parts = [f"{self._verdicts}/{self._total} verdicts", plural(self._faults, "fault")]
        if self._running:
            parts.append(f"{len(self._running)} running")
        if self._dollars:
            unknown = (
                f" and {plural(self._unpriced, 'cell')} of unknown cost" if self._unpriced else ""
            )
            parts.append(f"${self._dollars:.2f}{unknown}")
        if waits := self._waits():
            parts.append(waits)
        parts += [f"{name}: {reason}" for name, (reason, _) in self._failing().items()]
        if max(20, self._total / 10) <= done < 0.9 * self._total and (left := self._left()):
            parts.append(f"{_clock(left)} left")
        elif self._running:
            oldest = min(self._running, key=lambda nodeid: self._running[nodeid])
            cell = oldest.partition("[")[2].rstrip("]")
            parts.append(f"oldest {_clock(self._clock() - self._running[oldest])} {cell}")
        return f"modelbench {self._elapsed()}  " + "  ".join(parts)

    def _left(self) -> float:
        """Return about how many seconds are left; 0.0 while nobody knows a candidate's pace.

        Each open cell takes what its candidate's took so far, as many at a time as so far.
        """
        took = {name: sum(found) / len(found) for name, found in self._took.items()}
        todo = {name: count for name, count in self._open.items() if count > 0}
        if not todo.keys() <= took.keys():
            return 0.0
        spent = sum(map(sum, self._took.values()))
        work = sum(count * took[name] for name, count in todo.items())
        return work / spent * (self._clock() - self._start) if spent else 0.0

    def _elapsed(self) -> str:
        return _clock(self._clock() - self._start)


def _candidate_of(nodeid: str) -> str:
    """Return the candidate of a cell's item: ``…[CASE:CANDIDATE:REPEAT]``."""
    return nodeid.rsplit(":", 2)[-2] if nodeid.count(":") > 1 else ""


def step_of(verbose: int) -> float:
    """Return the step between lines for pytest's verbosity: ``-q`` wants few, ``-qq`` none."""
    return {-1: 5 * STEP}.get(verbose, STEP if verbose >= 0 else 0.0)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def write_line(config: pytest.Config, line: str) -> None:
    """Print a line of its own, whatever letters of results stand on the current one."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        if reporter._tw.width_of_current_line > 0:
            reporter._tw.line()
        reporter.write_line(line)


class Teller:
    """Print lines from any thread, past the capture of what a test prints.

    Make it where pytest captures nothing. While a cell works in this process, standard output is
    its test's, and a line would be kept with it.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        self._writer: Any = reporter._tw if reporter is not None else None  # Any: private
        self._out: TextIO | None = None
        if self._writer is None:
            return
        with suppress(AttributeError, OSError, ValueError):  # there is no file behind it
            file = self._writer._file
            self._out = os.fdopen(
                os.dup(file.fileno()), "w", encoding=file.encoding, errors="backslashreplace"
            )

    def __call__(self, line: str) -> None:
        """Print a line."""
        writer = self._writer
        if writer is None or self._out is None or self._out.closed:
            write_line(self._config, line)
            return
        kept, writer._file = writer._file, self._out
        try:
            write_line(self._config, line)
        finally:
            writer._file = kept

    def close(self) -> None:
        """Let go of the terminal."""
        if self._out is not None:
            self._out.close()
