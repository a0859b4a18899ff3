"""The one verb: try a cell once. A task and the worker's services in, a record out."""

from __future__ import annotations

import base64
import secrets
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pytest_modelbench.candidates.flags import find_flags
from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.errors import INTERRUPTED, Fault, StoreProblem
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.packs.model import Case
from pytest_modelbench.protocols.protocol import Harvested, Services, protocol_named
from pytest_modelbench.records import (
    AttemptRecord,
    Candidate,
    Cell,
    FaultRecord,
    Flag,
    Identity,
    Outcome,
    Stage,
)
from pytest_modelbench.settings import utc_now
from pytest_modelbench.store.evidence import Evidence
from pytest_modelbench.store.writer import RunInfo
from pytest_modelbench.worlds.disk import room_problem
from pytest_modelbench.worlds.harvest import Harvest, from_manifest

LINE_BYTES = 4096
"""A harvest up to this size is kept in the record's line, a larger one as evidence beside it."""
FAULT_CHARS = 2000
UNGRADED = "the process ended between the candidate's work and its verdict"
MANIFEST = "manifest"


@dataclass(frozen=True)
class Task:
    """One try of one cell.

    ``regrades`` is the stored attempt whose harvest is graded again; the candidate is not called.
    """

    cell: Cell
    case: Case
    candidate: Candidate
    identity: Identity
    run: str
    tries: int = 1
    series: str = ""
    note: str = ""
    regrades: AttemptRecord | None = None


@dataclass
class _Course:
    """How far an attempt has come, kept outside of it so that a fault finds it."""

    journal: Journal = field(default_factory=Journal)
    stage: Stage = Stage.WORK
    evidence: dict[str, str] = field(default_factory=dict)
    harvest: dict[str, str] | None = None
    flags: tuple[Flag, ...] = ()
    end: str = ""
    detail: str = ""


def attempt(
    task: Task,
    services: Services,
    evidence: Evidence,
    on_work_kept: Callable[[AttemptRecord], None] = lambda record: None,
) -> AttemptRecord:
    """Try a cell: let the candidate work (or take its stored harvest), observe, verify.

    What happens in the attempt is never raised: a fault, and any unknown exception, is a record;
    KeyboardInterrupt alone is raised, under whatever name it arrives.
    ``on_work_kept`` is given, between work and grading, the record that the attempt has if it never
    gets further. StoreProblem when its evidence cannot be kept.
    """
    started, clock = utc_now(), time.monotonic()
    attempt_id = secrets.token_hex(8)
    course = _Course(Journal(attempt=attempt_id, repeat=task.cell.repeat))

    def record(ended: Mapping[str, object]) -> AttemptRecord:
        return _record(task, attempt_id, started, time.monotonic() - clock, course, services, ended)

    def work_is_kept() -> None:
        on_work_kept(record(_faulted(Fault(INTERRUPTED, UNGRADED), Stage.GRADE)))

    ended: dict[str, object]
    try:
        ended = _run(task, attempt_id, services, evidence, course, work_is_kept)
    except StoreProblem:
        raise
    except Exception as error:
        if _is_of_an_interrupt(error):
            raise KeyboardInterrupt from error
        ended = _faulted(_fault_of(error), course.stage)
    return record(ended)


def _is_of_an_interrupt(error: BaseException | None) -> bool:
    """Tell whether Ctrl-C is behind an error: Python turns one into a RuntimeError now and then.

    It does so where a class is made, as it is when a module is imported. A stop is nobody's fault.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _fault_of(error: Exception) -> Fault:
    if isinstance(error, Fault):
        return error
    text = "".join(traceback.format_exception(error))[-FAULT_CHARS:]
    return Fault(f"unexpected-{type(error).__name__}", text)


def _record(
    task: Task,
    attempt_id: str,
    started: str,
    seconds: float,
    course: _Course,
    services: Services,
    ended: Mapping[str, object],
) -> AttemptRecord:
    journal = course.journal
    return AttemptRecord.model_validate(
        {
            "id": attempt_id,
            "kind": "attempt" if task.regrades is None else "regrade",
            "grades": task.regrades.id if task.regrades is not None else "",
            "run": task.run,
            "series": task.series,
            **task.cell._asdict(),
            "try": task.tries,
            "identity": task.identity,
            "started": started,
            "seconds": round(seconds, 3),
            "working": round(max(0.0, seconds - journal.held), 3),
            "usage": journal.usage,
            "counts": dict(journal.counts),
            "flags": course.flags,
            "box": services.box.level,
            "served_model": journal.served_model,
            "scripted": bool(task.candidate.script),
            "note": task.note,
            "evidence": course.evidence,
            "harvest": course.harvest,
            "versions": journal.versions,
            "end": course.end,
            "detail": course.detail,
            **ended,
        }
    )


def _run(
    task: Task,
    attempt_id: str,
    services: Services,
    evidence: Evidence,
    course: _Course,
    work_is_kept: Callable[[], None],
) -> dict[str, object]:
    """Go the way of a cell; return how it ended, in a verdict."""
    protocol = protocol_named(task.case.protocol)
    if task.regrades is None:
        try:
            harvested = protocol.work(
                task.case, task.candidate, task.cell.repeat, attempt_id, services, course.journal
            )
        finally:
            if course.journal.transcript:
                course.evidence["transcript"] = evidence.put(course.journal.transcript)
                course.flags, counted = find_flags(
                    read_transcript(course.journal.transcript), _given(task.case)
                )
                course.journal.counts.update(counted)
        _keep(harvested, evidence, course)
        course.end, course.detail = harvested.end, harvested.detail
        work_is_kept()
    else:
        course.stage = Stage.GRADE
        harvested = stored_work(task.regrades, evidence)
    course.end, course.detail = harvested.end, harvested.detail
    course.stage = Stage.GRADE
    try:
        observation = protocol.observe(task.case, harvested, services, course.journal)
    finally:
        if course.journal.judged:
            course.evidence["judge"] = evidence.put(course.journal.judged)
    course.evidence["observation"] = evidence.put(observation.model_dump_json().encode())
    verdict = protocol.verify(task.case, harvested, observation)
    if not verdict.passed and (problem := room_problem(services.run)):
        raise Fault("disk", problem)  # nobody knows what a check or the candidate's code missed
    outcome = Outcome.PASSED if verdict.passed else Outcome.UNSOLVED
    return {"outcome": outcome, "verdict": verdict}


def _given(case: Case) -> Iterator[str]:
    """Yield the texts of a task that name its files: the prompt, and the paths of the seed."""
    yield case.prompt
    if case.seed is not None:
        yield from (path.relative_to(case.seed).as_posix() for path in case.seed.rglob("*"))


def _faulted(fault: Fault, stage: Stage) -> dict[str, object]:
    record = FaultRecord(
        kind=fault.kind,
        stage=stage,
        text=fault.text[:FAULT_CHARS],
        status=fault.status,
        permanent=fault.permanent,
    )
    return {"outcome": Outcome.FAULT, "fault": record}


def _keep(harvested: Harvested, evidence: Evidence, course: _Course) -> None:
    """Keep what the candidate left, before anything judges it."""
    harvest = harvested.harvest
    manifest = harvest.manifest
    if len(manifest) + sum(map(len, harvest.blobs.values())) <= LINE_BYTES:
        course.harvest = {MANIFEST: manifest} | {
            name: base64.b64encode(data).decode("ascii") for name, data in harvest.blobs.items()
        }
    else:
        for data in harvest.blobs.values():
            evidence.put(data)
        course.evidence["harvest"] = evidence.put(manifest.encode())


def crash(
    cell: Cell, identity: Identity, run: RunInfo, *, series: str, tries: int
) -> AttemptRecord:
    """Return the record of a try whose process died: nobody else is left to write it."""
    text = "the worker process died while it was at this cell"
    return AttemptRecord.model_validate(
        {
            "id": secrets.token_hex(8),
            "run": run.run,
            "series": series,
            **cell._asdict(),
            "try": tries,
            "identity": identity,
            "started": utc_now(),
            "seconds": 0.0,
            "note": run.note,
            **_faulted(Fault("worker-crash", text), Stage.WORK),
        }
    )


def not_begun(task: Task, fault: Fault) -> AttemptRecord:
    """Return the record of a try that was not let begin: the candidate was not called."""
    return AttemptRecord.model_validate(
        {
            "id": secrets.token_hex(8),
            "run": task.run,
            "series": task.series,
            **task.cell._asdict(),
            "try": task.tries,
            "identity": task.identity,
            "started": utc_now(),
            "seconds": 0.0,
            "note": task.note,
            **_faulted(fault, Stage.WORK),
        }
    )


def stored_harvest(record: AttemptRecord, evidence: Evidence) -> Harvest:
    """Return the files that an attempt left; StoreProblem where they are no longer here."""
    if record.harvest is not None:
        kept: Mapping[str, str] = record.harvest
        return from_manifest(kept[MANIFEST], lambda name: base64.b64decode(kept[name]))
    manifest = evidence.get(record.evidence["harvest"]).decode()
    return from_manifest(manifest, lambda name: evidence.get(f"sha256:{name}"))


def stored_work(record: AttemptRecord, evidence: Evidence) -> Harvested:
    """Return what observing and verifying may know of a stored attempt."""
    return Harvested(stored_harvest(record, evidence), end=record.end, detail=record.detail)
