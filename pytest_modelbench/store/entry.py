"""One stored try, light enough for a hundred thousand of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from pytest_modelbench.words import Cell, Outcome, Role, Stage


class Digests(NamedTuple):
    """The four parts of an identity, as light as they can be."""

    task: str
    check: str
    candidate: str
    reference: str = ""


class HasDigests(Protocol):
    """An identity: ``records.Identity`` or ``Digests``."""

    @property
    def task(self) -> str: ...
    @property
    def check(self) -> str: ...
    @property
    def candidate(self) -> str: ...
    @property
    def reference(self) -> str: ...


class Origin(NamedTuple):
    """What nearly all lines of a file have in common."""

    path: Path
    run: str
    series: str
    note: str
    pack: str
    candidate: str


class Spent(NamedTuple):
    """What one role of a try used, by the names of ``records.Usage``. None: unknown, never 0."""

    list_usd: float | None = None
    billed_usd: float | None = None
    derived_usd: float | None = None
    reported_usd: float | None = None
    input: int | None = None
    cached: int | None = None
    output: int | None = None
    reasoning: int | None = None
    requests: int = 0
    retries: int = 0
    waits: int = 0
    wait_seconds: float = 0.0
    unmetered: int = 0


class Detail(NamedTuple):
    """What a report counts of one try."""

    spent: Spent | None
    """The candidate's own; None where it asked no model."""
    others: tuple[tuple[str, Spent], ...]
    """That of the other roles: judge and driver."""
    counts: Mapping[str, int]
    failing: tuple[tuple[str, str], ...]
    """(check, reason) of each check that did not hold."""
    trust: str
    box: str
    scripted: bool
    working: float | None
    served_model: str
    work: int | None = None
    """Equal for attempts that left the same files (or said the same, where none are kept)."""
    measures: Mapping[str, float] | None = None
    """Figures of the verdict that nothing is decided by; None for none."""

    def by_role(self) -> Iterator[tuple[str, Spent]]:
        """Yield each role that asked a model, and what it used."""
        if self.spent is not None:
            yield Role.CANDIDATE, self.spent
        yield from self.others


class Entry(NamedTuple):
    """One stored try. Where ``grades`` is an id, a regrade of that attempt."""

    origin: Origin
    offset: int
    """Byte at which the line begins in ``path``."""
    id: str
    grades: str
    case: str
    repeat: int
    identity: Digests
    outcome: Outcome
    reward: float | None
    reason: str
    """Of a verdict: why it is not a pass. Of a fault: its kind."""
    stage: Stage | None
    started: str
    seconds: float
    detail: Detail | None = None

    @property
    def path(self) -> Path:
        """Return the file that it stands in."""
        return self.origin.path

    @property
    def run(self) -> str:
        """Return the run that made it."""
        return self.origin.run

    @property
    def series(self) -> str:
        """Return its series; empty before a fresh start named one."""
        return self.origin.series

    @property
    def note(self) -> str:
        """Return the note of its run."""
        return self.origin.note

    @property
    def pack(self) -> str:
        """Return the pack of its case."""
        return self.origin.pack

    @property
    def candidate(self) -> str:
        """Return who was tried."""
        return self.origin.candidate

    @property
    def cell(self) -> Cell:
        """Return the cell that was tried."""
        return Cell(self.pack, self.case, self.candidate, self.repeat)

    @property
    def is_fault(self) -> bool:
        """Tell whether the try ended without a verdict."""
        return self.outcome is Outcome.FAULT

    @property
    def passed(self) -> bool:
        """Tell whether every check held."""
        return self.outcome is Outcome.PASSED

    @property
    def has_harvest(self) -> bool:
        """Tell whether the work was done, so that it can be graded (again) from what was kept."""
        return self.stage is not Stage.WORK
