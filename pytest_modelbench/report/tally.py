"""Count what is stored of one candidate on one pack, by note, case and version.

This is the one pass over a report's results: it keeps counts, not tries, so that a hundred
thousand results take the memory of their cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pytest_modelbench.records import Cell, Identity, Role, Trust
from pytest_modelbench.store.index import (
    Detail,
    Digests,
    Entry,
    HasDigests,
    Index,
    Kind,
    Standing,
)

Identify = Callable[[str, str], Identity | None]
"""Today's identity of a case (by id) for a candidate (by name); None where it is not known."""


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

NOT_RUN = "not run"

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
    counts: Counter[str] = field(default_factory=Counter)
    """Of ``COUNTS``, in the path to the model."""
    behaviour: Counter[str] = field(default_factory=Counter)
    """Turns and misbehaviour of the agent."""
    misbehaved: Counter[str] = field(default_factory=Counter)
    """How many attempts showed each of them."""
    faults: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failing: Counter[tuple[str, str]] = field(default_factory=Counter)
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
    identify: Identify | None = None,
    by_note: bool = False,
) -> dict[str, Tally]:
    """Count by note, or all under ``""``; ``index`` was read with details.

    ``cases`` and ``repeats`` narrow to a declared grid.
    """
    tallies: dict[str, Tally] = {}
    wanted = None if cases is None else set(cases)
    for cell in index.cells(pack, candidate):
        if (wanted is not None and cell.case not in wanted) or (
            repeats is not None and cell.repeat > repeats
        ):
            continue
        tries = index.current(cell)
        today = identify(cell.case, candidate) if identify else None
        versions = {version_of(cell, entry.identity) for entry in tries}
        if today is not None:
            versions.add(version_of(cell, today))
        note = tries[-1].note if by_note and tries else ""
        found = tallies.get(note)
        if found is None:
            found = tallies[note] = Tally(candidate)
        found.superseded += index.superseded(cell)
        found.fresh_starts = max(found.fresh_starts, index.fresh_starts(cell))
        counted: set[str] = set()
        for version in versions:
            standing = index.standing(cell, version)
            per_case = found.cases.setdefault(cell.case, {})
            case = per_case.get(version)
            if case is None:
                case = per_case[version] = CaseTally()
            _count(case, cell, standing)
            if standing.kind is Kind.VERDICT and standing.attempt is not None:
                counted.add(standing.attempt.id)
        _count_elsewhere(found, tries, counted)
    return tallies


def version_of(cell: Cell, identity: HasDigests) -> Digests:
    """Return the version of a cell: the reference is no part of it where it changes nothing."""
    reference = identity.reference if cell.certifies else ""
    return Digests(identity.task, identity.check, identity.candidate, reference)


_WAITING: Mapping[Kind, str] = {
    Kind.OTHER_CHECK: "judged by another version of the check",
    Kind.OTHER_TASK: "run on another version only",
    Kind.NONE: NOT_RUN,
}


def _count(case: CaseTally, cell: Cell, standing: Standing) -> None:
    entry, attempt = standing.entry, standing.attempt
    if entry is not None and standing.kind is not Kind.OTHER_TASK:
        case.started = max(case.started, entry.started)
    if standing.is_fault and entry is not None:
        case.faults[entry.reason] += 1
        case.by_repeat[cell.repeat] = None
        return
    if standing.kind is not Kind.VERDICT or entry is None or attempt is None:
        case.waiting[cell.repeat] = _WAITING[standing.kind]
        return
    case.verdicts += 1
    case.by_repeat[cell.repeat] = entry.passed
    if entry.passed:
        case.passes += 1
    else:
        case.reasons[entry.reason or "wrong"] += 1
    case.rewards.append(entry.reward or 0.0)
    if entry.detail is not None and attempt.detail is not None:
        _count_work(case, attempt, attempt.detail)
        _count_grade(case, entry.detail)


def _count_work(case: CaseTally, attempt: Entry, detail: Detail) -> None:
    case.seconds.append(attempt.seconds if detail.working is None else detail.working)
    used = detail.usage.get(Role.CANDIDATE)
    if used is not None:
        # A sum over some of the calls is not the attempt's: its tokens and price are unknown.
        whole = not used.get("unmetered")
        for name in SUMS if whole else ():
            value = used.get(name)
            if value is not None:
                found = case.sums.get(name)
                if found is None:
                    found = case.sums[name] = Sum()
                found.add(value)
        for name in COUNTS:
            value = used.get(name)
            if value:
                case.counts[name] += value
    for name, value in detail.counts.items():
        if value:
            case.behaviour[name] += value
            case.misbehaved[name] += 1
    if detail.box:
        case.boxes.add(detail.box)
    if detail.served_model:
        case.served.add(detail.served_model)
    case.scripted = case.scripted or detail.scripted


def _count_grade(case: CaseTally, detail: Detail) -> None:
    for check in detail.failing:
        case.failing[check] += 1
    if detail.trust != case.trust:
        case.trust = Trust.least((case.trust, Trust(detail.trust)))


def _count_elsewhere(found: Tally, tries: Iterable[Entry], counted: set[str]) -> None:
    """Sum what was spent beside the counted attempts: by judge and driver, and in other tries."""
    for entry in tries:
        if not found.first_started or entry.started < found.first_started:
            found.first_started = entry.started
        if entry.started > found.last_started:
            found.last_started = entry.started
        if entry.detail is None:
            continue
        for role, used in entry.detail.usage.items():
            if role == Role.CANDIDATE:
                if entry.id in counted:
                    continue
                where = "other tries"
            else:
                where = role
            found.elsewhere.setdefault(where, Sum()).add(used.get("list_usd"))
