"""What is stored, and what of it counts.

A cell has *tries* (lines) in *series*. A fresh start begins a new series for the cells that it
names; a cell's current series is the newest one, and lines of older ones are superseded. Within
the current series, and at one identity:

- the first verdict counts, and a verdict beats a fault;
- a *grade* is the verdict or the grade fault of one attempt at one check identity. A regrade line
  replaces a grade: the newest verdict among an attempt's regrades at a check identity, else its own
  verdict, else the newest fault;
- a fault at stage ``work`` left no harvest, so its cell runs again; one at stage ``grade`` did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.parsing import parse
from pytest_modelbench.store.entry import Digests, Entry, HasDigests
from pytest_modelbench.words import REFERENCE, Cell

if TYPE_CHECKING:
    from pytest_modelbench.records import AttemptRecord, CheckRecord


class Kind(StrEnum):
    """How a cell stands at an identity."""

    VERDICT = "verdict"
    """It has a verdict: replay it."""
    FAULT_WORK = "fault-work"
    """All its attempts failed before the harvest: run it again."""
    FAULT_GRADE = "fault-grade"
    """Its harvest is kept and its grading failed: grade it again."""
    OTHER_CHECK = "other-check"
    """Its harvest is kept and was judged by another check: grade it again."""
    OTHER_TASK = "other-task"
    """It has results of another task, candidate or reference only: run it."""
    NONE = "none"
    """Nothing is stored in its current series: run it."""


class Standing(NamedTuple):
    """How a cell stands.

    ``entry`` is the line that says so. ``attempt`` is the one whose harvest it is about and whose
    cost it is: the same line, save for a regrade. ``changed`` names the parts of the identity that
    differ from the newest result: ``task``, ``check``, ``candidate``, ``reference``.
    """

    kind: Kind
    entry: Entry | None = None
    attempt: Entry | None = None
    changed: tuple[str, ...] = ()

    @property
    def is_fault(self) -> bool:
        """Tell whether the newest word on the cell is a fault."""
        return self.kind in (Kind.FAULT_WORK, Kind.FAULT_GRADE)


class Tries(NamedTuple):
    """What is stored of one cell: the tries of its current series, oldest first."""

    cell: Cell
    current: Sequence[Entry]
    superseded: int
    """Attempts of older series."""
    fresh_starts: int


@dataclass(frozen=True)
class RunHeader:
    """The header line of one file: one run, one pack, one candidate."""

    path: Path
    run: str
    started: str
    pack: str
    candidate: str
    note: str
    cases: tuple[str, ...]
    candidates: tuple[str, ...]
    repeats: int
    facts: Mapping[str, object]
    versions: Mapping[str, str]
    fresh: Mapping[str, tuple[int, ...]]
    draw: Mapping[str, object] = field(default_factory=dict)
    """How the cases of the grid were chosen; empty: all of the pack's."""
    gates: tuple[str, ...] = ()
    """Rules that were declared when the run began."""


@dataclass(frozen=True)
class Damage:
    """A line that cannot be used. ``torn``: cut off, as a killed writer leaves it."""

    path: Path
    line: int
    torn: bool
    what: str

    def __str__(self) -> str:
        kind = "cut off" if self.torn else "damaged"
        return f"{self.path}:{self.line}: the line is {kind} ({self.what}); its try does not count"


class Index:
    """All that is stored, by cell."""

    def __init__(self) -> None:
        self.headers: list[RunHeader] = []
        self.damages: list[Damage] = []
        self.sizes: dict[Path, int] = {}
        """How much of each file was read, in bytes."""
        self.duplicates = 0
        """Lines that stood elsewhere already, and count once."""
        self._ids: dict[str, Entry] = {}
        self._checks: dict[tuple[str, str, str], CheckRecord] = {}
        self._tries: dict[tuple[str, str], dict[str, list[Entry]]] = {}
        self._declared: dict[Cell, list[tuple[str, str]]] = {}
        self._standings: dict[Cell, tuple[HasDigests, Standing]] = {}

    def __len__(self) -> int:
        """Return the number of tries."""
        return len(self._ids)

    def add(self, entry: Entry) -> bool:
        """Take up a try; return False for one whose id is known."""
        if entry.id in self._ids:
            self.duplicates += 1
            return False
        self._ids[entry.id] = entry
        if self._standings:
            self._standings.clear()
        tried = entry.origin.pack, entry.origin.candidate
        cases = self._tries.get(tried)
        if cases is None:
            cases = self._tries[tried] = {}
        tries = cases.get(entry.case)
        if tries is None:
            cases[entry.case] = [entry]
        else:
            tries.append(entry)
        return True

    def add_header(self, header: RunHeader) -> None:
        """Take up a run's header and the series that it declares."""
        self.headers.append(header)
        self._standings.clear()
        for case, repeats in header.fresh.items():
            for repeat in repeats:
                cell = Cell(header.pack, case, header.candidate, repeat)
                declared = self._declared.setdefault(cell, [])
                if (header.started, header.run) not in declared:
                    declared.append((header.started, header.run))

    def add_check(self, check: CheckRecord) -> None:
        """Take up what a user's own test found; of the same test and attempt, the first counts."""
        self._checks.setdefault((check.attempt, check.name, check.source), check)

    def check(self, attempt_id: str, name: str, source: str) -> CheckRecord | None:
        """Return what a user's test, as its source is now, found of an attempt."""
        return self._checks.get((attempt_id, name, source))

    def checks(self) -> Iterator[CheckRecord]:
        """Yield what users' own tests found, of every attempt and every source."""
        return iter(self._checks.values())

    def entries(self) -> Iterator[Entry]:
        """Yield every try, superseded ones among them."""
        return iter(self._ids.values())

    def packs(self) -> list[str]:
        """Return the packs that have a try, sorted."""
        return sorted({pack for pack, _ in self._tries})

    def candidates(self, pack: str) -> list[str]:
        """Return the candidates (and what certifies) that have a try in a pack, sorted."""
        return sorted(candidate for p, candidate in self._tries if p == pack)

    def cells(self, pack: str, candidate: str) -> list[Cell]:
        """Return the cells of a candidate that have a try, sorted."""
        cases = self._tries.get((pack, candidate), {})
        return sorted({entry.cell for tries in cases.values() for entry in tries})

    def find(self, attempt_id: str) -> Entry | None:
        """Return the try of an id."""
        return self._ids.get(attempt_id)

    def history(self, cell: Cell) -> list[Entry]:
        """Return the tries of a cell, oldest first, of all series."""
        tries = self._tries.get((cell.pack, cell.candidate), _NO_CASE).get(cell.case, ())
        repeat = cell.repeat
        found = [entry for entry in tries if entry.repeat == repeat]
        if len(found) > 1:
            found.sort(key=_moment)
        return found

    def series(self, cell: Cell) -> str:
        """Return the cell's current series; a record of it is to carry this name."""
        return self._series(cell, self.history(cell))

    def current(self, cell: Cell) -> list[Entry]:
        """Return the tries of the cell's current series, oldest first."""
        history = self.history(cell)
        if len(history) == 1 and not self._declared:
            return history  # of whatever series it is, there is no newer one
        series = self._series(cell, history)
        return [entry for entry in history if entry.series == series]

    def superseded(self, cell: Cell) -> int:
        """Return how many attempts of the cell belong to older series (regrades not counted)."""
        history = self.history(cell)
        series = self._series(cell, history)
        return sum(entry.series != series and not entry.grades for entry in history)

    def fresh_starts(self, cell: Cell) -> int:
        """Return how often the cell was started afresh."""
        return len(self._declared.get(cell, ()))

    def standing(self, cell: Cell, identity: HasDigests) -> Standing:
        """Return how the cell stands at an identity, by the rules at the top of this module."""
        known = self._standings.get(cell)
        if known is None or known[0] is not identity:
            known = identity, standing_among(self.current(cell), cell, identity)
            self._standings[cell] = known
        return known[1]

    def is_faulted(self, cell: Cell) -> bool:
        """Tell whether the newest attempt of the cell is a fault that no verdict beats.

        Of whatever identity: this is what ``--lf`` asks, before anything is known of today's.
        """
        tries = self.current(cell)
        return bool(tries) and standing_among(tries, cell, tries[-1].identity).is_fault

    def cases(self, pack: str, candidate: str) -> Iterator[tuple[str, Sequence[Entry]]]:
        """Yield the tries of each case of a candidate, all series and repeats of it."""
        yield from sorted(self._tries.get((pack, candidate), {}).items())

    def is_plain(self, tries: Sequence[Entry]) -> bool:
        """Tell whether each of a case's tries is all that is stored of its cell.

        And all are of one identity: then each stands for what it is.
        """
        first = tries[0]
        identity, origin = first.identity, first.origin
        return (
            not self._declared
            and not first.series
            and len({entry.repeat for entry in tries}) == len(tries)
            and all(
                [
                    entry.identity is identity
                    and not entry.grades
                    and (entry.origin is origin or not entry.series)
                    for entry in tries
                ]
            )
        )

    def split(self, tries: Sequence[Entry]) -> Iterator[Tries]:
        """Split the tries of one case by cell, in the order of repeats."""
        by_repeat: dict[int, list[Entry]] = {}
        for entry in tries:
            by_repeat.setdefault(entry.repeat, []).append(entry)
        for _, history in sorted(by_repeat.items()):
            history.sort(key=_moment)
            cell = history[0].cell
            series = self._series(cell, history)
            yield Tries(
                cell,
                [entry for entry in history if entry.series == series],
                sum(entry.series != series and not entry.grades for entry in history),
                self.fresh_starts(cell),
            )

    def record(self, entry: Entry) -> AttemptRecord:
        """Read the whole record of a try from its file."""
        from pytest_modelbench.records import AttemptRecord

        try:
            with entry.path.open("rb") as file:
                file.seek(entry.offset)
                record = AttemptRecord.model_validate(parse(file.readline()))
        except (OSError, ValueError) as error:
            raise StoreProblem(
                f"the record {entry.id} can no longer be read: {error}",
                path=entry.path,
                remedy="the file changed after it was read: start again",
            ) from error
        if record.id != entry.id:
            raise StoreProblem(
                f"the record {entry.id} is no longer at byte {entry.offset}",
                path=entry.path,
                remedy="the file changed after it was read: start again",
            )
        return record

    def _series(self, cell: Cell, history: Sequence[Entry]) -> str:
        if not self._declared and not any(entry.series for entry in history):
            return ""
        begun = dict.fromkeys(("",), "")
        for entry in history:  # a header may be damaged; then the first of its tries declares it
            if entry.series:
                begun.setdefault(entry.series, entry.started)
        for started, series in self._declared.get(cell, ()):
            begun[series] = started
        return max(begun, key=lambda series: (begun[series], series))


def standing_among(tries: Sequence[Entry], cell: Cell, identity: HasDigests) -> Standing:
    """Return how a cell stands at an identity by the tries of its current series, oldest first."""
    if not tries:
        return Standing(Kind.NONE)
    if len(tries) == 1 and tries[0].stage is None and not tries[0].grades:
        # What all that follows comes to for nearly every cell: its one attempt has its verdict.
        only = tries[0]
        if only.identity.check == identity.check and _same_work(cell, only.identity, identity):
            return Standing(Kind.VERDICT, only, only)
    work = [e for e in tries if not e.grades and _same_work(cell, e.identity, identity)]
    if not work:
        return Standing(
            Kind.OTHER_TASK, tries[-1], changed=_changed(cell, tries[-1].identity, identity)
        )
    harvests = [entry for entry in work if entry.has_harvest]
    if not harvests:
        return Standing(Kind.FAULT_WORK, work[-1], work[-1])
    grades = [(attempt, _grade(attempt, tries, identity.check)) for attempt in harvests]
    for attempt, grade in grades:
        if grade is not None and not grade.is_fault:
            return Standing(Kind.VERDICT, grade, attempt)
    attempt, grade = grades[0]
    if grade is not None:
        return Standing(Kind.FAULT_GRADE, grade, attempt)
    if attempt.is_fault:
        return Standing(Kind.FAULT_GRADE, attempt, attempt, changed=("check",))
    return Standing(Kind.OTHER_CHECK, attempt, attempt, changed=("check",))


_NO_CASE: Mapping[str, list[Entry]] = {}


def _moment(entry: Entry) -> tuple[str, str]:
    return entry.started, entry.id


def _same_work(cell: Cell, stored: Digests, wanted: HasDigests) -> bool:
    same = stored.task == wanted.task and stored.candidate == wanted.candidate
    return same and (not _is_of_reference(cell) or stored.reference == wanted.reference)


def _is_of_reference(cell: Cell) -> bool:
    """Tell whether the reference is what the cell runs; for others it changes nothing."""
    return cell.candidate == REFERENCE or cell.variant is not None


def _changed(cell: Cell, stored: Digests, wanted: HasDigests) -> tuple[str, ...]:
    parts = ["task", "check", "candidate"] + ["reference"] * _is_of_reference(cell)
    return tuple(part for part in parts if getattr(stored, part) != getattr(wanted, part))


def _grade(attempt: Entry, tries: Iterable[Entry], check: str) -> Entry | None:
    """Return what stands as the attempt's grade by one check; None where there is none."""
    regrades = [e for e in tries if e.grades == attempt.id and e.identity.check == check]
    own = [attempt] if attempt.identity.check == check else []
    verdicts = [entry for entry in own + regrades if not entry.is_fault]
    return max(verdicts or own + regrades, key=_moment, default=None)
