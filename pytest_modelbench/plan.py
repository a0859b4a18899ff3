"""The grid, what is to be done for each of its cells, and why."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from pytest_modelbench.candidates.command import missing_programs
from pytest_modelbench.packs.model import Case, Pack
from pytest_modelbench.records import REFERENCE, SEED, AttemptRecord, Candidate, Cell, Identity
from pytest_modelbench.store.entry import Entry
from pytest_modelbench.store.index import Index, Kind

CERTIFYING_REPEATS = 3
"""How often reference and seed are tried where a check runs code: flaky checks show here."""


class Action(StrEnum):
    """What happens to a cell in this run."""

    REPLAY = "replay"
    RUN = "run"
    REGRADE = "regrade"
    OLD = "old"
    REFUSE = "refuse"


TODO = (Action.RUN, Action.REGRADE)
"""What a worker has to do something for."""


class Planned(NamedTuple):
    """One cell of the plan. ``stored`` is the id of the attempt to replay or to grade again."""

    cell: Cell
    action: Action
    why: str
    identity: Identity
    stored: str = ""
    series: str = ""
    faulted: bool = False


@dataclass(frozen=True)
class Certificate:
    """Whether a case is proven sound.

    ``ok`` is None while attempts of it are missing; ``known`` then has those that are there, as
    (passed, checks lost).
    """

    ok: bool | None
    why: str = ""
    known: Mapping[Cell, tuple[bool | None, Sequence[str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Every cell of the grid and, before them, the certificate cells that are missing.

    ``certifying`` are dealt before the first cell of their case and are no part of the grid. Nor is
    ``aside``: cells that only users' own tests look at, of packs that the command line does not
    name, and with ``--lf`` those that have a verdict. ``grid`` and ``aside`` stand in the order of
    the grid, so that items of two runs do; ``dealing`` are their cells in the order of dealing.
    ``awaited`` are cells of the grid that a certificate lacks, too.
    """

    certifying: tuple[Planned, ...]
    grid: tuple[Planned, ...]
    aside: tuple[Planned, ...] = ()
    certificates: Mapping[tuple[str, str], Certificate] = field(default_factory=dict)
    damaged: Mapping[Cell, tuple[str, ...]] = field(default_factory=dict)
    dealing: tuple[Cell, ...] = ()
    awaited: tuple[Cell, ...] = ()

    def __iter__(self) -> Iterator[Planned]:
        yield from self.certifying
        yield from self.grid

    def to_json(self) -> str:
        """Return the form that travels to workers: what is replayed carries no identity."""
        damaged = [[*cell, loses] for cell, loses in self.damaged.items()]
        parts = (self.certifying, self.grid, self.aside)
        rows = [*([_row(p) for p in part] for part in parts), damaged, self.awaited]
        return json.dumps(rows, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read ``to_json``'s form back; certificates and dealing stay with the controller."""
        certifying, grid, aside, damaged, awaited = json.loads(text)
        return cls(
            tuple(map(_planned, certifying)),
            tuple(map(_planned, grid)),
            tuple(map(_planned, aside)),
            damaged={Cell(*cell): tuple(loses) for *cell, loses in damaged},
            awaited=tuple(Cell(*cell) for cell in awaited),
        )


def _row(p: Planned) -> list[object]:
    identity = (
        []
        if p.action is Action.REPLAY
        else [p.identity.task, p.identity.check, p.identity.candidate, p.identity.reference]
    )
    return [*p.cell, p.action.value, p.why, identity, p.stored, p.series, p.faulted]


def _planned(row: list) -> Planned:  # type: ignore[type-arg]  # JSON made by _row
    pack, case, candidate, repeat, action, why, identity, stored, series, faulted = row
    task, check, of_candidate, reference = identity or ("", "", "", "")
    return Planned(
        Cell(pack, case, candidate, repeat),
        Action(action),
        why,
        Identity(task=task, check=check, candidate=of_candidate, reference=reference),
        stored,
        series,
        faulted,
    )


@dataclass(frozen=True)
class Inputs:
    """What a plan is made from. ``identify`` gives today's identity of a case for a candidate."""

    packs: Sequence[Pack]
    cases: Mapping[str, Sequence[Case]]
    candidates: Sequence[Candidate]
    repeats: int
    index: Index
    identify: Callable[[Case, Candidate], Identity]
    built_in: Callable[[str], Candidate]
    has_evidence: Callable[[AttemptRecord], bool]
    fresh_series: str = ""
    rerun_stale: bool = False
    faults_only: bool = False
    lent: Collection[str] = ()
    """Packs that only users' own tests ask for."""


def make_plan(inputs: Inputs) -> Plan:
    """Decide for each cell of the grid: replay, regrade, run, or keep as old; and certify."""
    grid: list[Planned] = []
    aside: list[Planned] = []
    certificates: dict[tuple[str, str], Certificate] = {}
    certifying: list[Planned] = []
    awaited: list[Cell] = []
    damaged: dict[Cell, tuple[str, ...]] = {}
    for pack in inputs.packs:
        for case in inputs.cases[pack.name]:
            for variant in case.damaged:
                damaged[Cell(pack.name, case.id, f"{REFERENCE}+{variant.name}", 1)] = variant.loses
    # What is of a case and a candidate, once for all repeats.
    columns = [
        (
            case,
            candidate,
            inputs.identify(case, candidate),
            case.unprovable if candidate.agent == REFERENCE else "",
        )
        for pack in inputs.packs
        for case in inputs.cases[pack.name]
        for candidate in inputs.candidates
    ]
    for repeat in range(1, inputs.repeats + 1):
        for case, candidate, identity, refusal in columns:
            cell = Cell(case.pack, case.id, candidate.name, repeat)
            if refusal:
                planned = Planned(cell, Action.REFUSE, refusal, identity)
            else:
                planned = plan_cell(cell, identity, inputs)
            if planned.action is Action.RUN and (why := _unable(case, candidate)):
                planned = planned._replace(action=Action.REFUSE, why=why)
            if inputs.faults_only and not inputs.index.is_faulted(cell):
                if planned.action is Action.REPLAY:
                    aside.append(planned)
            elif case.pack in inputs.lent:
                aside.append(planned)
            else:
                grid.append(planned)
    in_grid = {p.cell for p in grid}
    scored = {
        (p.cell.pack, p.cell.case)
        for p in (*grid, *aside)
        if (p.action is Action.REFUSE) is p.cell.certifies
        and not (inputs.faults_only and p.action is Action.REPLAY)
    }
    of_certificates = replace(inputs, fresh_series="", rerun_stale=True, faults_only=False)
    # To try both is to ask whether cases are sound: their variants are tried once, too.
    asked = {REFERENCE, SEED} <= {candidate.agent for candidate in inputs.candidates}
    tried = {(p.cell.pack, p.cell.case) for p in grid} if asked else set()
    for pack in inputs.packs:
        for case in inputs.cases[pack.name]:
            key = (pack.name, case.id)
            if key not in scored and not (key in tried and case.damaged and not case.unprovable):
                continue
            certificate, missing = _certify(case, of_certificates)
            if key not in scored:
                missing = [p for p in missing if p.cell in in_grid or p.cell.variant is not None]
                if not missing and certificate.ok is None:
                    continue  # nothing of what is there speaks against it
            certificates[pack.name, case.id] = certificate
            certifying += [p for p in missing if p.cell not in in_grid]
            awaited += [p.cell for p in missing if p.cell in in_grid]
    return Plan(
        tuple(certifying),
        tuple(grid),
        tuple(aside),
        certificates,
        damaged,
        tuple(_dealing([*grid, *aside], inputs.index)),
        tuple(awaited),
    )


def _unable(case: Case, candidate: Candidate) -> str:
    """Return why a candidate cannot try a case, as its declaration tells; '' where it can."""
    if candidate.command is None:
        return ""
    if case.source is not None:
        return "an agent program works in a tree of files, and a benchmark has none"
    missing = missing_programs(candidate.command)
    return f"{', '.join(missing)} in programs is not there" if missing else ""


def plan_cell(cell: Cell, identity: Identity, inputs: Inputs) -> Planned:
    """Decide for one cell, by what is stored of it at today's identity."""
    if inputs.fresh_series:
        return Planned(cell, Action.RUN, "afresh, as asked", identity, series=inputs.fresh_series)
    standing = inputs.index.standing(cell, identity)
    entry, attempt = standing.entry, standing.attempt
    if entry is not None and standing.kind is Kind.VERDICT:
        return Planned(cell, Action.REPLAY, "verdict stored", identity, stored=entry.id)

    def planned(action: Action, why: str, *, of: Entry | None = None) -> Planned:
        return Planned(
            cell,
            action,
            why,
            identity,
            stored=of.id if of is not None else "",
            series=inputs.index.series(cell) if action in TODO else "",
            faulted=standing.is_fault,
        )

    if entry is None or standing.kind is Kind.NONE:
        return planned(Action.RUN, "no attempt yet")
    if standing.kind is Kind.FAULT_WORK:
        return planned(Action.RUN, f"its attempts ended in faults, the last in {entry.reason}")
    if standing.kind is Kind.OTHER_TASK:
        changed = " and ".join(f"the {part}" for part in standing.changed)
        return planned(Action.RUN, f"{changed} changed")
    graded = standing.kind is Kind.FAULT_GRADE
    why = f"grading ended in a fault ({entry.reason})" if graded else "the check changed"
    if attempt is not None and inputs.has_evidence(inputs.index.record(attempt)):
        return planned(Action.REGRADE, why, of=attempt)
    if graded or inputs.rerun_stale or cell.certifies:  # a built-in candidate costs nothing
        return planned(Action.RUN, f"{why} and the evidence is gone")
    return planned(
        Action.OLD, f"{why} and the evidence is gone: --modelbench-rerun-stale runs it", of=entry
    )


def certificate_cells(case: Case) -> tuple[Cell, ...]:
    """Return the attempts that certify a case: reference, seed, and each damaged variant."""
    repeats = CERTIFYING_REPEATS if case.check.mode in ("separate", "in-process") else 1
    return (
        *(Cell(case.pack, case.id, REFERENCE, n) for n in range(1, repeats + 1)),
        *(Cell(case.pack, case.id, SEED, n) for n in range(1, repeats + 1)),
        *(Cell(case.pack, case.id, f"{REFERENCE}+{d.name}", 1) for d in case.damaged),
    )


def judge_certificate(
    outcomes: Mapping[Cell, tuple[bool | None, Sequence[str]]],
    damaged: Mapping[Cell, Sequence[str]],
) -> Certificate:
    """Decide from the attempts of a certificate: (passed or None for a fault, checks lost) a cell.

    Of a fault, the second part says what it was.

    The first reason found is given, reference before seed before variants.
    """
    order = {REFERENCE: 0, SEED: 1}
    for cell in sorted(outcomes, key=lambda c: (order.get(c.candidate, 2), c.candidate, c.repeat)):
        passed, lost = outcomes[cell]
        if passed is None:
            why = "".join(f": {text}" for text in lost)
            return Certificate(False, f"its {_name(cell)} attempt ended in a fault{why}")
        if cell.candidate == REFERENCE and not passed:
            detail = ", ".join(lost) or "no check passed"
            return Certificate(False, f"the reference fails: {detail}")
        if cell.candidate == SEED and passed:
            return Certificate(False, "the untouched seed passes")
        if cell.variant is not None:
            expected = set(damaged.get(cell, ()))
            if set(lost) != expected:
                return Certificate(
                    False,
                    f"damaged variant {cell.variant} should lose {_list(expected)} "
                    f"and loses {_list(lost)}",
                )
    return Certificate(True)


def _name(cell: Cell) -> str:
    return f"damaged variant {cell.variant}" if cell.variant else cell.candidate


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _certify(case: Case, inputs: Inputs) -> tuple[Certificate, list[Planned]]:
    """Return a case's certificate as the store has it, and what is missing of it."""
    if case.unprovable:
        return Certificate(False, case.unprovable), []
    known: dict[Cell, tuple[bool | None, Sequence[str]]] = {}
    missing: list[Planned] = []
    damaged = {}
    for cell in certificate_cells(case):
        if cell.variant is not None:
            damaged[cell] = next(d.loses for d in case.damaged if d.name == cell.variant)
        identity = inputs.identify(case, inputs.built_in(cell.candidate))
        planned = plan_cell(cell, identity, inputs)
        if planned.action is Action.REPLAY:
            known[cell] = _known(cell, planned.stored, inputs.index)
        else:
            missing.append(planned)
    judged = judge_certificate(known, damaged)
    if judged.ok is False:
        return judged, []
    if missing:
        return Certificate(None, known=known), missing
    return judged, []


def _known(cell: Cell, attempt_id: str, index: Index) -> tuple[bool, Sequence[str]]:
    """Return a stored verdict and the checks it lost, which are read only where they say more."""
    entry = index.find(attempt_id)
    as_usual = (
        cell.variant is None and entry is not None and entry.passed == (cell.candidate == REFERENCE)
    )
    if entry is not None and as_usual:
        return entry.passed, ()
    verdict = _stored(attempt_id, index).verdict
    if verdict is None:
        return False, ()
    return verdict.passed, [check.name for check in verdict.checks if not check.passed]


def _stored(attempt_id: str, index: Index) -> AttemptRecord:
    entry = index.find(attempt_id)
    if entry is None:
        raise RuntimeError(f"attempt {attempt_id} is planned and not in the index")
    return index.record(entry)


def _dealing(grid: list[Planned], index: Index) -> list[Cell]:
    """Return the cells to run in the order of dealing: long ones paired with short ones.

    By their stored durations: a worker holds two items, so the longest is bound to the shortest,
    and so on. Without any, the order of the grid stands: candidates interleaved, case by case.
    """
    todo = [p for p in grid if p.action in TODO]
    if not todo:
        return []
    by_case: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    by_candidate: dict[str, list[float]] = defaultdict(list)
    for entry in index.entries():
        if not entry.is_fault and not entry.grades:
            by_case[entry.pack, entry.case, entry.candidate].append(entry.seconds)
            by_candidate[entry.candidate].append(entry.seconds)
    candidate_median = {name: statistics.median(values) for name, values in by_candidate.items()}
    if not any(p.cell.candidate in candidate_median for p in todo):
        return [p.cell for p in todo]
    fallback = statistics.median(candidate_median.values())

    def expected(p: Planned) -> float:
        own = by_case.get((p.cell.pack, p.cell.case, p.cell.candidate))
        return statistics.median(own) if own else candidate_median.get(p.cell.candidate, fallback)

    longest_first = sorted(todo, key=expected, reverse=True)
    half = (len(longest_first) + 1) // 2
    long, short = longest_first[:half], longest_first[half:][::-1]
    return [p.cell for i, p in enumerate(long) for p in (p, *short[i : i + 1])]
