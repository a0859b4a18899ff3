"""What a grid came to, as data: every figure of a report, and not one word of its text.

Only cells at today's identity and in the current series count. A case that is not certified is in
no denominator. Faults and cells that were not run are in no rate: they are counted, and the rate
is bounded as if they had all failed and all passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_modelbench.report.counts import OTHER_CHECK, OTHER_TASK, CaseTally, Tally
from pytest_modelbench.report.frontier import FrontierPoint, cost_frontier
from pytest_modelbench.report.grid import DEFAULTS, Grid, Options
from pytest_modelbench.report.pairs import Pair, compare
from pytest_modelbench.report.rows import Row, estimated, make_row
from pytest_modelbench.report.tally import tally, version_of
from pytest_modelbench.stats import Stage, look_alpha, rank_intervals
from pytest_modelbench.store.entry import Digests, HasDigests
from pytest_modelbench.store.index import Index
from pytest_modelbench.words import BUILT_IN, Cell

Identify = Callable[[str, str], HasDigests | None]
"""Today's identity of a case (by id) for a candidate (by name); None where it is not known."""


@dataclass(frozen=True)
class Old:
    """Verdicts of an older version of a case, that do not count; ``changed`` says what did.

    ``replaced``: each cell of the case has a verdict at today's version.
    """

    candidate: str
    case: str
    verdicts: int
    passes: int
    changed: tuple[str, ...]
    replaced: bool


@dataclass(frozen=True)
class Scorecard:
    """A grid and what it came to. ``complete`` is what makes it a scorecard and not interim."""

    grid: Grid
    note: str
    interval: str
    alpha: float
    level: float
    baseline: str | None
    uncertified: Mapping[str, str]
    rows: tuple[Row, ...]
    pairs: tuple[Pair, ...]
    old: tuple[Old, ...]
    first_started: str
    last_started: str
    last_ended: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    """A digest of the task and the check of each case that counts, where they are known."""
    guesses: Mapping[str, float] = field(default_factory=dict)
    """What guessing would get, by the way to guess."""
    stored: bool = False
    """Whether it is of stored runs, several perhaps, and not of one that has just ended."""
    others: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Cases and repeats that stored runs asked for, of each candidate for which that is not what
    the grid has: it may be in it or not."""
    partial: bool = False
    """Whether it is of a run that selected some cells of the grid: it compares nothing."""

    @property
    def cases(self) -> tuple[str, ...]:
        """Return the cases that count."""
        return tuple(case for case in self.grid.cases if case not in self.uncertified)

    @property
    def cells(self) -> int:
        """Return the number of cells that count."""
        return sum(row.cells for row in self.rows)

    @property
    def verdicts(self) -> int:
        """Return how many of them have a verdict."""
        return sum(row.verdicts for row in self.rows)

    @property
    def faults(self) -> int:
        """Return how many of them ended in a fault."""
        return sum(sum(row.faults.values()) for row in self.rows)

    @property
    def complete(self) -> bool:
        """Tell whether every cell of the declared grid has a verdict."""
        return self.cells > 0 and self.verdicts == self.cells

    @property
    def frontier(self) -> tuple[FrontierPoint, ...]:
        """Return the measured candidates that no other beats in both price and rate."""
        rows = [row for row in self.rows if row.candidate not in BUILT_IN]
        return cost_frontier(rows, self.pairs)

    @property
    def solved_by_all(self) -> tuple[str, ...]:
        """Return the cases that every candidate passed every time."""
        return self._cases_where(lambda passed, judged: judged > 0 and passed == judged)

    @property
    def solved_by_none(self) -> tuple[str, ...]:
        """Return the cases that no candidate passed once."""
        return self._cases_where(lambda passed, judged: judged > 0 and passed == 0)

    def _cases_where(self, holds: Callable[[int, int], bool]) -> tuple[str, ...]:
        rows = [row for row in self.rows if row.candidate not in BUILT_IN]
        return tuple(
            case for case in self.cases if rows and all(holds(*row.by_case[case]) for row in rows)
        )


def scorecard(
    index: Index,
    grid: Grid,
    identify: Identify | None = None,
    options: Options = DEFAULTS,
) -> Scorecard:
    """Count a declared grid. ``index`` was read with details.

    Where ``identify`` is missing or knows nothing of a case, the newest version stored is today's.
    """
    tallies = []
    for candidate in grid.candidates:
        tallies.append(tally(index, grid.pack, candidate, grid))
    return from_tallies(tallies, grid, identify, options)


def from_tallies(
    tallies: Sequence[Tally],
    grid: Grid,
    identify: Identify | None = None,
    options: Options = DEFAULTS,
    note: str = "",
) -> Scorecard:
    """Make a scorecard of counts, one tally a candidate of the grid in any order.

    The tallies are used up: the counts of each are let go as its row is made.
    """
    by_name = {one.candidate: one for one in tallies}
    timed = [one for one in tallies if one.candidate in grid.candidates]
    today = _Today(tallies, grid, identify)
    cases = [case for case in grid.cases if case not in options.uncertified]
    rows = []
    old: list[Old] = []
    for name in grid.candidates:
        one = by_name.get(name) or Tally(name)
        current = {}
        for case in grid.cases:
            version = today.version(case, name)
            versions = one.cases.get(case, ())
            current[case] = _counted(versions, version)
            done = (current[case] or CaseTally()).verdicts == grid.repeats
            old += _old(name, case, versions, version, replaced=done)
        rows.append(make_row(one, {case: current[case] for case in cases}, grid, options))
        one.cases.clear()
    rows = [estimated(row, grid, options) for row in rows]
    complete = all(row.verdicts == row.cells for row in rows) and bool(cases)
    stage = Stage.EXTENDED if options.resized else Stage.DECLARED
    level = look_alpha(stage if complete else Stage.INTERIM, options.looks, options.alpha)
    rows.sort(key=lambda row: (row.rate is None, -(row.rate or 0.0), row.candidate))
    compared = {row.candidate: row.by_case for row in rows if row.candidate not in BUILT_IN}
    pairs = compare(
        compared if options.compare else {},
        grid.repeats,
        alpha=options.alpha,
        level=level,
        baseline=options.baseline,
        midp=options.midp,
        rewards={
            row.candidate: {case: one.rewards for case, one in row.figures.items()}
            for row in rows
            if row.candidate in compared
        }
        if options.compare and any(row.scored for row in rows)
        else None,
    )
    return Scorecard(
        grid=grid,
        note=note,
        interval=options.interval,
        alpha=options.alpha,
        level=level,
        baseline=options.baseline if options.baseline in compared else None,
        uncertified={c: why for c, why in options.uncertified.items() if c in grid.cases},
        rows=_ranked(rows, pairs) if options.compare else tuple(rows),
        pairs=pairs,
        old=tuple(old),
        first_started=min((t.first_started for t in timed if t.first_started), default=""),
        last_started=max((t.last_started for t in timed), default=""),
        guesses=options.guesses,
        partial=not options.compare,
        last_ended=max((t.last_ended for t in timed), default=""),
        versions={
            case: version_digest(version.task, version.check)
            for case in cases
            if (
                version := next(
                    filter(None, (today.version(case, n) for n in grid.candidates)), None
                )
            )
        },
    )


def version_digest(task: str, check: str) -> str:
    """Return one short digest for what a case asks and how it is judged."""
    import hashlib

    return hashlib.sha256(f"{task} {check}".encode()).hexdigest()[:16]


class _Today:
    """Which version of each case and candidate is today's."""

    def __init__(self, tallies: Iterable[Tally], grid: Grid, identify: Identify | None) -> None:
        self._grid = grid
        self._identify = identify
        self._case: dict[str, tuple[str, str, str]] = {}
        self._candidate: dict[str, tuple[str, str]] = {}
        self._reference: dict[tuple[str, str], tuple[str, str]] = {}
        for one in tallies:
            for case, versions in one.cases.items():
                for counted in versions:
                    version = counted.version
                    newest = (counted.started, version.task, version.check)
                    self._case[case] = max(self._case.get(case, newest), newest)
                    mine = (counted.started, version.candidate)
                    self._candidate[one.candidate] = max(
                        self._candidate.get(one.candidate, mine), mine
                    )
                    if version.reference:  # of the reference and its variants only
                        key, last = (case, one.candidate), (counted.started, version.reference)
                        self._reference[key] = max(self._reference.get(key, last), last)

    def version(self, case: str, candidate: str) -> Digests | None:
        identity = self._identify(case, candidate) if self._identify else None
        if identity is not None:
            return version_of(Cell(self._grid.pack, case, candidate, 1), identity)
        if case not in self._case or candidate not in self._candidate:
            return None
        _, task, check = self._case[case]
        _, digest = self._candidate[candidate]
        _, reference = self._reference.get((case, candidate), ("", ""))
        return Digests(task, check, digest, reference)


def _counted(versions: Sequence[CaseTally], today: Digests | None) -> CaseTally | None:
    """Return the counts at today's version, or those of none with the reason for each repeat."""
    if today is None:
        return None
    for counted in versions:
        if counted.version == today:
            return counted
    waiting: dict[int, str] = {}
    for counted in versions:
        same_work = counted.version._replace(check=today.check) == today
        for repeat in (*counted.repeats, *counted.waiting):
            if same_work or repeat not in waiting:
                waiting[repeat] = OTHER_CHECK if same_work else OTHER_TASK
    return CaseTally(waiting=waiting)


def _old(
    name: str,
    case: str,
    versions: Sequence[CaseTally],
    today: Digests | None,
    *,
    replaced: bool,
) -> Iterable[Old]:
    for counted in versions:
        version = counted.version
        if version == today or not counted.verdicts:
            continue
        parts = ("task", "check", "candidate", "reference")
        changed = tuple(
            part for part in parts if today and getattr(version, part) != getattr(today, part)
        )
        yield Old(name, case, counted.verdicts, counted.passes, changed, replaced)


def _ranked(rows: Sequence[Row], pairs: Sequence[Pair]) -> tuple[Row, ...]:
    """Give each candidate the ranks that the decided pairs leave open; all pairs are needed."""
    names = [row.candidate for row in rows if row.candidate not in BUILT_IN]
    if len(pairs) != len(names) * (len(names) - 1) // 2:
        return tuple(rows)
    better = [
        (pair.better, pair.b if pair.better == pair.a else pair.a) for pair in pairs if pair.better
    ]
    ranks = dict(zip(names, rank_intervals(names, better), strict=True))
    return tuple(replace(row, rank=ranks.get(row.candidate)) for row in rows)
