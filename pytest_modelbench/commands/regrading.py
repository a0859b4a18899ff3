"""``modelbench regrade``: judge stored harvests again by today's checks; no candidate is called."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from pytest_modelbench.attempt import Task, attempt
from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.checks.grader import Grader
from pytest_modelbench.commands import damages
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.packs.model import Case
from pytest_modelbench.packs.reading import find_packs, read_packs
from pytest_modelbench.protocols.protocol import Services
from pytest_modelbench.records import AttemptRecord, Candidate, Identity, Outcome, Role
from pytest_modelbench.report.escape import escape
from pytest_modelbench.report.numbers import dollars
from pytest_modelbench.settings import (
    CASES,
    REFERENCES,
    RESULTS,
    in_project,
    new_run_id,
    project_root,
    utc_now,
)
from pytest_modelbench.store.entry import Entry
from pytest_modelbench.store.evidence import Evidence
from pytest_modelbench.store.index import Index, Kind
from pytest_modelbench.store.layout import require_stored
from pytest_modelbench.store.lock import RunLock
from pytest_modelbench.store.reader import read
from pytest_modelbench.store.writer import RunInfo, Writer
from pytest_modelbench.today import candidate_of, identifier, judges_of
from pytest_modelbench.worlds.environment import cache_folder, environment
from pytest_modelbench.worlds.levels import choose
from pytest_modelbench.worlds.names import known
from pytest_modelbench.worlds.runs import close_run, open_run, runs_root, runs_roots, sweep


@dataclass(frozen=True)
class Chosen:
    """A stored attempt that is to be judged again. ``before`` is the line that counts today."""

    record: AttemptRecord
    before: AttemptRecord
    case: Case
    candidate: Candidate
    identity: Identity


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "regrade", help="judge stored work again by today's checks; no candidate is called"
    )
    parser.add_argument("packs", nargs="*", metavar="PACK", help="names of packs (default: all)")
    parser.add_argument(
        "--models", default="", metavar="NAME[,NAME...]", help="default: all stored"
    )
    parser.add_argument(
        "--stale", action="store_true", help="only what another check, or a fault, judged"
    )
    parser.add_argument("--plan", action="store_true", help="say what would be judged, and stop")
    parser.add_argument("--isolation", default="auto", metavar="LEVEL")
    parser.add_argument("--results", type=Path, default=in_project(RESULTS), metavar="DIR")
    parser.add_argument("--cases", type=Path, default=in_project(CASES), metavar="DIR")
    parser.add_argument("--references", type=Path, default=in_project(REFERENCES), metavar="DIR")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Judge, print old and new, store; exit status 1 when a grading ended in a fault."""
    if not options.results.is_dir():
        raise UsageProblem(f"{options.results} is no folder of results; --results names another")
    known(options.isolation)
    models = [name for name in options.models.split(",") if name]
    require_stored(options.results, options.packs, models)
    registry = Registry.read(project_root())
    if options.plan:
        _choose(options, models, _read(options), registry)
        return 0
    box = choose(options.isolation)
    first, started = new_run_id(), utc_now()
    # Read only when nobody else can write: what is judged is what counts.
    with RunLock.take(options.results, first, started, say=print), ExitStack() as stack:
        chosen = _choose(options, models, _read(options), registry)
        if not chosen:
            return 0
        for line in [line for root in runs_roots() for line in sweep(root)]:
            print(f"left by an earlier run: {escape(line)}")
        stack.callback(close_run, runs_root(), first)
        folder = stack.enter_context(open_run(runs_root(), first))
        grader = Grader(box, scratch=folder)
        stack.callback(grader.close)
        judges = {one.name: one for one in judges_of((c.case for c in chosen), registry)}
        gateway = None
        if judges:
            process = stack.enter_context(
                GatewayProcess.start(
                    tuple(judges.values()),
                    tuple(registry.servers.values()),
                    **registry.patience.model_dump(),
                    root=project_root(),
                )
            )
            gateway = GatewayClient(process.address.socket_path, process.address.secret)
        services = Services(
            box, grader, gateway, folder, cache_folder("seeds"), environment, judges
        )
        evidence = Evidence(options.results)
        writers: dict[str, Writer] = {}
        seen: Counter[str] = Counter()
        for one in chosen:
            note = one.record.note
            if note not in writers:
                info = RunInfo(
                    run=new_run_id() if writers else first,
                    started=started,
                    note=note,
                    versions={"pytest-modelbench": metadata.version("pytest-modelbench")},
                )
                writers[note] = stack.enter_context(Writer(options.results, info))
            new = attempt(_task(one, writers[note].run.run), services, evidence)
            writers[note].append(new)
            told, what = compare(one.before, new)
            seen[what] += 1
            if what != "same":
                print(escape(f"{one.record.pack}/{one.record.cell.id}: {told}"))
    print("; ".join(f"{what}: {count}" for what, count in sorted(seen.items())))
    return 1 if seen["fault"] else 0


def _read(options: argparse.Namespace) -> Index:
    index = read(options.results, options.packs or None)
    damages.tell(index.damages)
    return index


def compare(before: AttemptRecord, new: AttemptRecord) -> tuple[str, str]:
    """Return old and new in words, and in one word: ``same``, ``changed`` or ``fault``."""
    old, now = _said(before), _said(new)
    if new.outcome is Outcome.FAULT:
        return f"{old} -> {now}", "fault"
    return (now, "same") if old == now else (f"{old} -> {now}", "changed")


def _said(record: AttemptRecord) -> str:
    if record.fault is not None:
        return f"fault {record.fault.kind}"
    verdict = record.verdict
    lost = [check.name for check in verdict.checks if not check.passed] if verdict else []
    return record.outcome.value + (f" [{', '.join(lost)}]" if lost else "")


def _task(one: Chosen, run: str) -> Task:
    record = one.record
    return Task(
        cell=record.cell,
        case=one.case,
        candidate=one.candidate,
        identity=one.identity,
        run=run,
        series=record.series,
        note=record.note,
        regrades=record,
    )


def _choose(
    options: argparse.Namespace, models: Sequence[str], index: Index, registry: Registry
) -> list[Chosen]:
    """Return what is to be judged, and say how much that is and what is left out."""
    packs = read_packs(find_packs([options.cases]), options.references)
    cases = {(pack.name, case.id): case for pack in packs for case in pack.cases}
    chosen, left = choose_attempts(
        index,
        cases,
        registry,
        Evidence(options.results),
        models=models,
        stale=options.stale,
    )
    asks = [one for one in chosen if one.case.check.judge]
    if asks:
        names = ", ".join(sorted({one.case.check.judge for one in asks}))
        judged = f"no candidate is called, and the judge {names} for {len(asks)}, {_cost_of(asks)}"
    else:
        judged = "no candidate and no judge is called"
    print(f"{len(chosen)} to judge again; {judged}")
    for why, count in sorted(left.items()):
        print(f"  {count} left out: {why}")
    return chosen


def choose_attempts(
    index: Index,
    cases: Mapping[tuple[str, str], Case],
    registry: Registry,
    evidence: Evidence,
    *,
    models: Sequence[str] = (),
    stale: bool = False,
) -> tuple[list[Chosen], Counter[str]]:
    """Return the attempt that counts of each cell that has its harvest, and why others are not.

    Only work on today's task by today's candidate is judged: today's check may not fit another.
    """
    chosen: list[Chosen] = []
    left: Counter[str] = Counter()
    identify = identifier(registry)
    for pack in index.packs():
        for name in index.candidates(pack):
            if models and name not in models:
                continue
            candidate = candidate_of(registry, name)
            for cell in index.cells(pack, name):
                case = cases.get((pack, cell.case))
                if case is None or candidate is None:
                    left["the case or the candidate is no longer here"] += 1
                    continue
                identity = identify(case, candidate)
                standing = index.standing(cell, identity)
                if why := _why_not(standing.kind, standing.attempt, stale):
                    left[why] += 1
                    continue
                assert standing.entry is not None
                assert standing.attempt is not None
                record = index.record(standing.attempt)
                if not evidence.has_harvest(record):
                    left["its harvest is not on this machine"] += 1
                    continue
                before = index.record(standing.entry)
                chosen.append(Chosen(record, before, case, candidate, identity))
    return chosen, left


def _cost_of(asks: Sequence[Chosen]) -> str:
    """Return what a judge may cost, by what it did when it was asked before, in words."""
    used = [one.before.usage.get(Role.JUDGE) or one.record.usage.get(Role.JUDGE) for one in asks]
    known = [usage.list_usd for usage in used if usage is not None and usage.list_usd is not None]
    if not known:
        return "at a cost that is not known"
    return f"at about {dollars(sum(known) / len(known) * len(asks))}"


def _why_not(kind: Kind, attempt: Entry | None, stale: bool) -> str:
    if kind is Kind.OTHER_TASK:
        return "it is of another task or candidate than today's"
    if kind in (Kind.FAULT_WORK, Kind.NONE) or attempt is None:
        return "its work ended in a fault, so that nothing can be judged"
    if stale and kind is Kind.VERDICT:
        return "today's check has judged it"
    return ""
