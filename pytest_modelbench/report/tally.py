"""Count what is stored of one candidate on one pack, by case and version.

This is the one pass over a report's results: it keeps counts, not tries, so that a hundred
thousand results take the memory of their cases.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any, TypeVar

from pytest_modelbench.report.counts import (
    COUNTS,
    NOT_RUN,
    OTHER_CHECK,
    OTHER_TASK,
    OTHER_TRIES,
    SUMS,
    CaseTally,
    Counted,
    Sum,
    Tally,
)
from pytest_modelbench.report.grid import Grid
from pytest_modelbench.store.entry import Detail, Digests, Entry, HasDigests
from pytest_modelbench.store.index import Index, Kind, Standing, Tries, standing_among
from pytest_modelbench.words import Cell, Outcome, Role, Trust

_Item = TypeVar("_Item", bound=Hashable)


def tally(index: Index, pack: str, candidate: str, grid: Grid | None = None) -> Tally:
    """Count what is stored of a candidate; ``index`` was read with details.

    What is stored beyond a declared grid, such as a certificate's attempts, is no part of it. A
    cell has one verdict, whatever the note of the run that measured it. Every version that is
    stored is counted, each apart.
    """
    found = Tally(candidate)
    wanted = None if grid is None else set(grid.cases)
    adder = _Adder(_own_tests(index, pack, candidate))
    for case, tries in index.cases(pack, candidate):
        if grid is not None and wanted is not None:
            if case not in wanted:
                continue
            tries = [entry for entry in tries if entry.repeat <= grid.repeats]
            if not tries:
                continue
        gathered: dict[Digests, _Gathered] = {}
        if index.is_plain(tries):
            # What the general way comes to, for a whole case at once: nearly all are like this.
            plain = gathered[version_of(tries[0].cell, tries[0].identity)] = _Gathered()
            plain.add_all(tries)
            _count_elsewhere(found, tries, None)
        else:
            for cell_tries in index.split(tries):
                _gather(cell_tries, found, gathered)
        for version, one in gathered.items():
            found.add(case, adder.case(version, one))
    return found


def _gather(stored: Tries, found: Tally, gathered: dict[Digests, _Gathered]) -> None:
    """Take up one cell, at each version that it is stored at."""
    cell, tries, superseded, fresh_starts = stored
    found.superseded += superseded
    found.fresh_starts = max(found.fresh_starts, fresh_starts)
    counted: set[str] = set()
    for version in {version_of(cell, entry.identity) for entry in tries}:
        standing = standing_among(tries, cell, version)
        gathered.setdefault(version, _Gathered()).add(cell, standing)
        if standing.kind is Kind.VERDICT and standing.attempt is not None:
            counted.add(standing.attempt.id)
    _count_elsewhere(found, tries, counted)


def version_of(cell: Cell, identity: HasDigests) -> Digests:
    """Return the version of a cell: the reference is no part of it where it changes nothing."""
    if type(identity) is Digests and (cell.certifies or not identity.reference):
        return identity
    reference = identity.reference if cell.certifies else ""
    return Digests(identity.task, identity.check, identity.candidate, reference)


class _Gathered:
    """The repeats of one case at one version, kept until all of them can be added up at once."""

    def __init__(self) -> None:
        self.started = ""
        self.graded: list[Entry] = []
        self.worked: list[Entry] = []
        self.faults: list[str] = []
        self.by_repeat: dict[int, bool | None] = {}
        self.waiting: dict[int, str] = {}

    def add(self, cell: Cell, standing: Standing) -> None:
        kind, entry, attempt, _ = standing
        if entry is not None and entry.started > self.started:
            self.started = entry.started
        if kind is Kind.VERDICT and entry is not None and attempt is not None:
            self.graded.append(entry)
            self.worked.append(attempt)
            self.by_repeat[cell.repeat] = entry.passed
        elif standing.is_fault and entry is not None:
            self.faults.append(entry.reason)
            self.by_repeat[cell.repeat] = None
        else:
            self.waiting[cell.repeat] = _WAITING[kind]

    def add_all(self, tries: Sequence[Entry]) -> None:
        """Take up tries each of which is all of its cell."""
        self.started = max([entry.started for entry in tries])
        self.graded = self.worked = [entry for entry in tries if entry.stage is None]
        self.by_repeat = {entry.repeat: entry.outcome is _PASSED for entry in self.graded}
        if len(self.graded) < len(tries):
            faulted = [entry for entry in tries if entry.stage is not None]
            self.faults = [entry.reason for entry in faulted]
            self.by_repeat.update((entry.repeat, None) for entry in faulted)


_PASSED = Outcome.PASSED

_WAITING: Mapping[Kind, str] = {
    Kind.OTHER_CHECK: OTHER_CHECK,
    Kind.OTHER_TASK: OTHER_TASK,
    Kind.NONE: NOT_RUN,
}


class _Adder:
    """Add up the repeats of a case; all at once, since this is most of a report's work.

    What is equal in many cases is kept once.
    """

    def __init__(self, own: Mapping[str, Sequence[tuple[str, str]]]) -> None:
        self._own = own
        self._kept: dict[Any, Any] = {}  # Any: each key is its own value
        self._marks: dict[Any, Any] = {}  # Any: as above; apart, since 1 equals True

    def case(self, version: Digests, found: _Gathered) -> CaseTally:
        """Return the counts of one case at one version."""
        graded = found.graded
        case = CaseTally(version, found.started, waiting=found.waiting or _NOTHING)
        marked = self._marks.setdefault
        marks = tuple([marked(mark, mark) for mark in found.by_repeat.items()])
        case.by_repeat = marked(marks, marks)
        if found.faults:
            case.faults = self._counted(found.faults)
        if not graded:
            return case
        case.verdicts = len(graded)
        if any([entry.reward != (entry.outcome is _PASSED) for entry in graded]):
            case.rewards = tuple([entry.reward or 0.0 for entry in graded])
        lost = [entry.reason or "wrong" for entry in graded if entry.outcome is not _PASSED]
        case.passes = len(graded) - len(lost)
        notes = [entry.origin.note for entry in found.worked]
        only = notes.count(notes[0]) == len(notes)
        case.notes = self._shared(((notes[0], len(notes)),)) if only else self._counted(notes)
        details = [entry.detail for entry in graded if entry.detail is not None]
        if lost:
            case.reasons = self._counted(lost)
            case.failing = self._counted([check for d in details for check in d.failing])
        levels = {detail.trust for detail in details}
        if levels != _TRUSTED:
            case.trust = Trust.least(Trust(level) for level in levels)
        if any([detail.measures for detail in details]):
            case.measures = _by_name(details)
        self._add_work(case, found.worked)
        if self._own:
            tests = [test for entry in found.worked for test in self._own.get(entry.id, ())]
            case.own = self._counted(tests)
        return case

    def _add_work(self, case: CaseTally, attempts: Sequence[Entry]) -> None:
        seconds = [
            entry.seconds
            if entry.detail is None or entry.detail.working is None
            else entry.detail.working
            for entry in attempts
        ]
        case.seconds, case.summed_seconds = median(seconds), sum(seconds)
        details = [entry.detail for entry in attempts if entry.detail is not None]
        used = [detail.spent for detail in details if detail.spent is not None]
        if used:
            columns = list(zip(*used, strict=True))
            case.counts = self._shared(tuple([sum(column) for column in columns[_COUNTED]]))
            # A sum over some of the calls is not the attempt's: its tokens and price are unknown.
            metered = [spent for spent in used if not spent.unmetered]
            if len(metered) < len(used):
                columns = list(zip(*metered, strict=True))
            known = [[v for v in column if v is not None] for column in columns[_SUMMED]]
            if known:
                case.totals = tuple([sum(values) if values else None for values in known])
                case.known = self._shared(tuple([len(values) for values in known]))
        acted = [item for d in details for item in d.counts.items() if item[1]]
        if acted:
            case.misbehaved = self._counted([name for name, _ in acted])
            totals = dict.fromkeys([name for name, _ in acted], 0)
            for name, value in acted:
                totals[name] += value
            case.behaviour = self._pairs(totals)
        case.boxes = self._shared(frozenset([detail.box for detail in details]))
        case.served = self._shared(frozenset([detail.served_model for detail in details]))
        case.scripted = any([detail.scripted for detail in details])

    def _counted(self, items: Sequence[_Item]) -> Counted[_Item]:
        found: dict[_Item, int] = {}
        for item in items:
            found[item] = found.get(item, 0) + 1
        return self._pairs(found)

    def _pairs(self, counts: Mapping[_Item, int]) -> Counted[_Item]:
        return self._shared(tuple([self._shared(pair) for pair in counts.items()]))

    def _shared(self, value: _Item) -> _Item:
        found: _Item = self._kept.setdefault(value, value)
        return found


def _by_name(details: Sequence[Detail]) -> Mapping[str, tuple[float, ...]]:
    found: dict[str, tuple[float, ...]] = {}
    for detail in details:
        for name, value in (detail.measures or {}).items():
            found[name] = (*found.get(name, ()), float(value))
    return found


def _own_tests(index: Index, pack: str, candidate: str) -> dict[str, list[tuple[str, str]]]:
    """Return what users' own tests found, by attempt: (test, why it failed).

    Of a test that was changed only what its newest source found counts.
    """
    checks = [c for c in index.checks() if (c.pack, c.candidate) == (pack, candidate)]
    newest: dict[str, tuple[str, str]] = {}
    for check in checks:
        newest[check.name] = max(newest.get(check.name, ("", "")), (check.started, check.source))
    found: dict[str, list[tuple[str, str]]] = {}
    for check in checks:
        if check.source == newest[check.name][1]:
            why = "" if check.passed else check.reason or FAILED
            found.setdefault(check.attempt, []).append((check.name, why))
    return found


FAILED = "failed"
"""Why a user's own test did not pass, where it says nothing."""

_SUMMED = slice(0, len(SUMS))
_COUNTED = slice(len(SUMS), len(SUMS) + len(COUNTS))
"""Where they stand in a ``Spent``."""

_TRUSTED = {str(Trust.TRUSTED)}
_NOTHING: Mapping[int, str] = {}


def _count_elsewhere(found: Tally, tries: Sequence[Entry], counted: set[str] | None) -> None:
    """Sum what was spent beside the counted attempts: by judge and driver, and in other tries.

    ``counted`` None: every try with a verdict is.
    """
    _time([entry for entry in tries if not entry.grades], found)
    for entry in tries:
        if entry.detail is None:
            continue
        is_counted = entry.stage is None if counted is None else entry.id in counted
        if is_counted and not entry.detail.others:
            continue  # nearly all are so
        for role, spent in entry.detail.by_role():
            if role == Role.CANDIDATE and is_counted:
                continue
            if not spent.requests and spent.list_usd is None:
                continue  # nothing was sent: there is no price to know
            where = OTHER_TRIES if role == Role.CANDIDATE else role
            found.elsewhere.setdefault(where, Sum()).add(spent.list_usd)


def _time(attempts: Sequence[Entry], found: Tally) -> None:
    """Take up when the first of some attempts began and the last ended; a regrade is none."""
    if not attempts:
        return
    starts = [entry.started for entry in attempts]
    found.first_started = min(found.first_started or starts[0], *starts)
    latest = max(starts)
    found.last_started = max(found.last_started, latest)
    if _later(latest, max([entry.seconds for entry in attempts])) > found.last_ended:
        ends = [_later(entry.started, entry.seconds) for entry in attempts]
        found.last_ended = max(found.last_ended, *ends)


def _later(moment: str, seconds: float) -> str:
    """Return a record's time some seconds on; the time itself where it is none."""
    try:
        found = datetime.fromisoformat(moment) + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return moment
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")
