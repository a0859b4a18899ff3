"""Count what is stored of one candidate on one pack, by note, case and version.

This is the one pass over a report's results: it keeps counts, not tries, so that a hundred
thousand results take the memory of their cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pytest_modelbench.records import Cell, Role, Trust
from pytest_modelbench.store.index import (
    Digests,
    Entry,
    HasDigests,
    Index,
    Kind,
    Standing,
    Tries,
    standing_among,
)


@dataclass(slots=True)
class Sum:
    """A sum over those of ``of`` attempts that know the quantity; unknown is never 0."""

    total: float = 0.0
    known: int = 0
    of: int = 0

    def add(self, value: float | None) -> None:
        """Add what one attempt knows, or that it knows nothing."""
        self.of += 1
        if value is not None:
            self.total += value
            self.known += 1


SUMS = ("list_usd", "billed_usd", "input", "cached", "output", "reasoning")
"""Fields of ``records.Usage`` that may be unknown and are summed over the candidate's calls."""

_Item = TypeVar("_Item")

NOT_RUN = "not run"
OTHER_CHECK = "judged by another version of the check"
OTHER_TASK = "run on another version only"

COUNTS = ("requests", "retries", "waits", "wait_seconds")


@dataclass(slots=True)
class CaseTally:
    """What is stored of one case at one version, over the repeats."""

    started: str = ""
    """Of the newest try: the newest version of a case is today's where nothing better is known."""
    passes: int = 0
    verdicts: int = 0
    rewards: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    sums: dict[str, Sum] = field(default_factory=dict)
    """Of ``SUMS``; one that no attempt knows is not there."""
    counts: dict[str, int] = field(default_factory=dict)
    """Of ``COUNTS``, in the path to the model."""
    behaviour: dict[str, int] = field(default_factory=dict)
    """Turns and misbehaviour of the agent."""
    misbehaved: dict[str, int] = field(default_factory=dict)
    """How many attempts showed each of them."""
    faults: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    failing: dict[tuple[str, str], int] = field(default_factory=dict)
    trust: Trust = Trust.TRUSTED
    boxes: set[str] = field(default_factory=set)
    served: set[str] = field(default_factory=set)
    scripted: bool = False
    by_repeat: dict[int, bool | None] = field(default_factory=dict)
    """Passed or not; None for a fault."""
    waiting: dict[int, str] = field(default_factory=dict)
    """Why a repeat that is stored has neither at this version."""

    @property
    def outcomes(self) -> list[bool]:
        """Return passed or not of each verdict, in the order of ``rewards``."""
        return [passed for passed in self.by_repeat.values() if passed is not None]


@dataclass(slots=True)
class Tally:
    """What is stored of one candidate on one pack. ``elsewhere``: judge, driver, other tries."""

    candidate: str
    cases: dict[str, dict[Digests, CaseTally]] = field(default_factory=dict)
    superseded: int = 0
    fresh_starts: int = 0
    elsewhere: dict[str, Sum] = field(default_factory=dict)
    first_started: str = ""
    last_started: str = ""


def tally(
    index: Index,
    pack: str,
    candidate: str,
    *,
    cases: Iterable[str] | None = None,
    repeats: int | None = None,
    by_note: bool = False,
) -> dict[str, Tally]:
    """Count by note, or all under ``""``; ``index`` was read with details.

    ``cases`` and ``repeats`` narrow to a declared grid. Every version that is stored is counted,
    each apart.
    """
    tallies: dict[str, Tally] = {}
    wanted = None if cases is None else set(cases)
    for case, tries in index.cases(pack, candidate):
        if wanted is not None and case not in wanted:
            continue
        if repeats is not None:
            tries = [entry for entry in tries if entry.repeat <= repeats]
        if not tries:
            continue
        gathered: dict[tuple[str, Digests], _Gathered] = {}
        if index.is_plain(tries):
            # What the general way comes to, for a whole case at once: nearly all are like this.
            note = tries[0].note if by_note else ""
            found = tallies.setdefault(note, Tally(candidate))
            plain = gathered[note, version_of(tries[0].cell, tries[0].identity)] = _Gathered()
            plain.add_all(tries)
            _count_elsewhere(found, tries, {entry.id for entry in plain.graded})
        else:
            for cell_tries in index.split(tries):
                _gather(cell_tries, candidate, by_note, tallies, gathered)
        for (note, version), one in gathered.items():
            tallies[note].cases.setdefault(case, {})[version] = one.counted()
    return tallies


def _gather(
    stored: Tries,
    candidate: str,
    by_note: bool,
    tallies: dict[str, Tally],
    gathered: dict[tuple[str, Digests], _Gathered],
) -> None:
    """Take up one cell, at each version that it is stored at."""
    cell, tries, superseded, fresh_starts = stored
    note = tries[-1].note if by_note and tries else ""
    found = tallies.setdefault(note, Tally(candidate))
    found.superseded += superseded
    found.fresh_starts = max(found.fresh_starts, fresh_starts)
    counted: set[str] = set()
    for version in {version_of(cell, entry.identity) for entry in tries}:
        standing = standing_among(tries, cell, version)
        gathered.setdefault((note, version), _Gathered()).add(cell, standing)
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
        self.case = CaseTally()
        self.graded: list[Entry] = []
        self.worked: list[Entry] = []

    def add(self, cell: Cell, standing: Standing) -> None:
        kind, entry, attempt, _ = standing
        case = self.case
        if entry is not None and entry.started > case.started:
            case.started = entry.started
        if kind is Kind.VERDICT and entry is not None and attempt is not None:
            self.graded.append(entry)
            self.worked.append(attempt)
            case.by_repeat[cell.repeat] = entry.passed
        elif standing.is_fault and entry is not None:
            case.faults[entry.reason] = case.faults.get(entry.reason, 0) + 1
            case.by_repeat[cell.repeat] = None
        else:
            case.waiting[cell.repeat] = _WAITING[kind]

    def add_all(self, tries: Sequence[Entry]) -> None:
        """Take up tries each of which is all of its cell."""
        case = self.case
        case.started = max([entry.started for entry in tries])
        self.graded = self.worked = [entry for entry in tries if entry.stage is None]
        case.by_repeat = {entry.repeat: entry.passed for entry in self.graded}
        for entry in tries:
            if entry.stage is not None:
                case.faults[entry.reason] = case.faults.get(entry.reason, 0) + 1
                case.by_repeat[entry.repeat] = None

    def counted(self) -> CaseTally:
        case = self.case
        case.verdicts = len(self.graded)
        case.passes = sum(entry.passed for entry in self.graded)
        case.rewards = [entry.reward or 0.0 for entry in self.graded]
        case.reasons = _tallied(e.reason or "wrong" for e in self.graded if not e.passed)
        details = [entry.detail for entry in self.graded if entry.detail is not None]
        case.failing = _tallied(check for detail in details for check in detail.failing)
        levels = {detail.trust for detail in details}
        if levels != {Trust.TRUSTED}:
            case.trust = Trust.least(Trust(level) for level in levels)
        _count_work(case, self.worked)
        return case


_WAITING: Mapping[Kind, str] = {
    Kind.OTHER_CHECK: OTHER_CHECK,
    Kind.OTHER_TASK: OTHER_TASK,
    Kind.NONE: NOT_RUN,
}


def _tallied(items: Iterable[_Item]) -> dict[_Item, int]:
    found: dict[_Item, int] = {}
    for item in items:
        found[item] = found.get(item, 0) + 1
    return found


def _count_work(case: CaseTally, attempts: Sequence[Entry]) -> None:
    """Add up what the attempts used; all at once, since this is most of a report's work."""
    details = [entry.detail for entry in attempts if entry.detail is not None]
    case.seconds = [
        entry.seconds
        if entry.detail is None or entry.detail.working is None
        else entry.detail.working
        for entry in attempts
    ]
    used = [usage for d in details if (usage := d.usage.get(Role.CANDIDATE)) is not None]
    # A sum over some of the calls is not the attempt's: its tokens and price are unknown.
    metered = [usage for usage in used if not usage.get("unmetered")]
    for name in SUMS:
        values = [value for usage in metered if (value := usage.get(name)) is not None]
        if values:
            case.sums[name] = Sum(sum(values), len(values), len(attempts))
    for name in COUNTS:
        total = sum([usage.get(name, 0) for usage in used])
        if total:
            case.counts[name] = total
    for detail in details:
        for name, value in detail.counts.items():
            if value:
                case.behaviour[name] = case.behaviour.get(name, 0) + value
                case.misbehaved[name] = case.misbehaved.get(name, 0) + 1
    case.boxes = {detail.box for detail in details} - {""}
    case.served = {detail.served_model for detail in details} - {""}
    case.scripted = any([detail.scripted for detail in details])


def _count_elsewhere(found: Tally, tries: Sequence[Entry], counted: set[str]) -> None:
    """Sum what was spent beside the counted attempts: by judge and driver, and in other tries."""
    if not tries:
        return
    earliest = min([entry.started for entry in tries])
    found.first_started = min(found.first_started or earliest, earliest)
    found.last_started = max(found.last_started, max([entry.started for entry in tries]))
    for entry in tries:
        if entry.detail is None:
            continue
        is_counted = entry.id in counted
        if is_counted and len(entry.detail.usage) == 1:
            continue
        for role, used in entry.detail.usage.items():
            if role == Role.CANDIDATE and is_counted:
                continue
            where = "other tries" if role == Role.CANDIDATE else role
            found.elsewhere.setdefault(where, Sum()).add(used.get("list_usd"))
