"""Say what a run will do, how far it is, and what it found; a line when there is news."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from pytest_modelbench.bench import Bench
from pytest_modelbench.plan import Action, Planned
from pytest_modelbench.records import Cell

STEP = 0.05
"""A line for each twentieth of the cells to run."""
QUIET_SECONDS = 60.0
"""A line at the latest after this long without one."""
LEAST_SECONDS = 10.0
"""Never two lines within this time."""


def header(bench: Bench) -> list[str]:
    """Return the lines above the run: for each pack the grid and what is to be done of it."""
    lines = []
    for pack in bench.packs:
        grid = [p for p in bench.plan.grid if p.cell.pack == pack.name]
        certifying = sum(p.cell.pack == pack.name for p in bench.plan.certifying)
        cases = len({p.cell.case for p in grid})
        candidates = len({p.cell.candidate for p in grid})
        lines.append(
            f"modelbench: {pack.name}: {cases} cases x {candidates} candidates x "
            f"{bench.settings.repeats} repeats = {len(grid)} cells; {_todo(grid, certifying)}"
        )
    if not bench.plan.grid and bench.settings.last_failed:
        lines = ["modelbench: no cell ended in a fault, so --lf selects none"]
    return lines


def _todo(grid: Collection[Planned], certifying: int) -> str:
    words = {
        Action.REPLAY: "replayed",
        Action.REGRADE: "to grade again",
        Action.OLD: "old",
        Action.RUN: "to run",
    }
    counts = Counter(p.action for p in grid)
    parts = [f"{counts[action]} {word}" for action, word in words.items() if counts[action]]
    if certifying:
        parts.append(f"{certifying} to certify with")
    return ", ".join(parts) or "nothing to do"


def plan_lines(bench: Bench, selected: Collection[Cell]) -> list[str]:
    """Return the plan of the selected cells, grouped by what happens and why; nothing is run."""
    groups: dict[tuple[str, Action, str], list[Cell]] = defaultdict(list)
    for planned in bench.plan:
        if planned.cell in selected:
            groups[planned.cell.pack, planned.action, planned.why].append(planned.cell)
    lines = ["", "plan (nothing is run and no request is made)"]
    certifying = {p.cell for p in bench.plan.certifying}
    for (pack, action, why), cells in groups.items():
        role = " to certify with" if cells[0] in certifying else ""
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
        usd = list_usd(entry.detail.usage) if entry.detail is not None else None
        if usd is not None:
            dollars[entry.candidate].append(usd)
    todo = Counter(
        p.cell.candidate
        for p in bench.plan.grid
        if p.cell in selected and p.action is Action.RUN and not p.cell.certifies
    )
    lines = []
    for name, count in todo.items():
        known = seconds[name]
        time_part = f"about {_mean(known) * count / 60:.1f} min in all" if known else "time unknown"
        cost = f"about ${_mean(dollars[name]) * count:.4f}" if dollars[name] else "cost unknown"
        lines.append(f"{name}: {count} cells to run, {time_part}, {cost} (by stored attempts)")
    return lines


def list_usd(usage: Mapping[str, Mapping[str, float | None]]) -> float | None:
    """Return the candidate's list cost of one stored attempt; None where it is unknown."""
    return usage.get("candidate", {}).get("list_usd")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


@dataclass
class Heartbeat:
    """Count a run's cells and say from time to time how far it is.

    Rates are left out on purpose: watching cost and faults is harmless, watching rates invites
    stopping when they please. ``write`` prints a line; ``step`` is the share of cells between two
    lines, 0 for none.
    """

    total: int
    write: Callable[[str], None]
    step: float = STEP
    clock: Callable[[], float] = time.monotonic
    verdicts: int = 0
    faults: int = 0
    dollars: float = 0.0
    _running: dict[str, float] = field(default_factory=dict)
    _kinds: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._start = self._last = self.clock()
        self._last_done = 0

    def began(self, name: str) -> None:
        """Note that a cell has begun."""
        self._running[name] = self.clock()

    def ended(self, name: str, *, verdict: bool, usd: float) -> None:
        """Note that a cell has ended, and say so when a line is due."""
        self._running.pop(name, None)
        self.verdicts += verdict
        self.faults += not verdict
        self.dollars += usd
        self.tick()

    def fault(self, candidate: str, kind: str) -> None:
        """Say the first fault of a kind of a candidate at once."""
        if self.step and (candidate, kind) not in self._kinds:
            self._kinds.add((candidate, kind))
            self.write(f"modelbench {self._elapsed()}  {candidate}: first fault of kind {kind}")

    def tick(self) -> None:
        """Print a line if one is due: a step further, or quiet for long, never in a rush."""
        done, now = self.verdicts + self.faults, self.clock()
        if not self.step or not self.total or done >= self.total:
            return
        quiet = max(QUIET_SECONDS, (now - self._start) / 20)
        due = done - self._last_done >= self.step * self.total or now - self._last >= quiet
        if due and now - self._last >= LEAST_SECONDS:
            self._last, self._last_done = now, done
            self.write(self.line())

    def line(self) -> str:
        """Return the line of this moment."""
        done = self.verdicts + self.faults
        parts = [f"{done}/{self.total} cells", f"{self.faults} faults"]
        if self._running:
            parts.append(f"{len(self._running)} running")
        if self.dollars:
            parts.append(f"${self.dollars:.2f}")
        if done >= max(20, self.total / 10) and done < 0.9 * self.total:
            left = (self.clock() - self._start) / done * (self.total - done)
            parts.append(f"{_clock(left)} left")
        elif self._running:
            oldest = min(self._running, key=lambda name: self._running[name])
            parts.append(f"oldest {_clock(self.clock() - self._running[oldest])} {oldest}")
        return f"modelbench {self._elapsed()}  " + "  ".join(parts)

    def _elapsed(self) -> str:
        return _clock(self.clock() - self._start)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
