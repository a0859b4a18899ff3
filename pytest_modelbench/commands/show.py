"""``modelbench show ATTEMPT``: one stored attempt, with all that was said in it."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.commands import damages
from pytest_modelbench.errors import StoreProblem, UsageProblem
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.records import AttemptRecord, CheckRecord
from pytest_modelbench.report.attempt import render_attempt
from pytest_modelbench.report.masking import Masking
from pytest_modelbench.settings import CASES, REFERENCES, RESULTS, in_project
from pytest_modelbench.store.entry import Entry
from pytest_modelbench.store.evidence import Evidence
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.reader import read

SHORTEST_PREFIX = 4


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "show", help="print one attempt: prompts, thinking, calls, results, cost, verdict"
    )
    parser.add_argument(
        "attempt",
        metavar="ATTEMPT",
        help="the beginning of its id, or its cell: [PACK/]CASE:CANDIDATE:REPEAT",
    )
    parser.add_argument("--results", type=Path, default=in_project(RESULTS), metavar="DIR")
    parser.add_argument("--full", action="store_true", help="shorten nothing")
    parser.add_argument("--json", action="store_true", help="record and transcript as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print an attempt; exit status 0."""
    index = read(options.results)
    damages.tell(index.damages)
    record = index.record(find(index, options.attempt, options.results))
    evidence = Evidence(options.results)
    entries, missing = transcript_of(record, index, evidence)
    observation = observation_of(record, evidence)
    said = said_by_checks(observation)
    judged = observation.data if observation is not None else None
    own = own_tests(index, record)
    if options.json:
        print(json.dumps(as_json(record, entries, said, judged, own), indent=2))
        return 0
    utf8 = "utf" in (sys.stdout.encoding or "").lower()
    width = shutil.get_terminal_size().columns
    lines = render_attempt(
        record,
        entries,
        width=width,
        utf8=utf8,
        full=options.full,
        missing=missing,
        said=said,
        judged=judged,
        wanted=wanted(record) if judged is not None else None,
        own=own,
    )
    print("\n".join(lines))
    return 0


def find(index: Index, name: str, results: Path) -> Entry:
    """Return the attempt that a name means, of an index of results; of a cell, the newest.

    A name is the beginning of an id, ``CASE:CANDIDATE:REPEAT`` (``PACK/`` before it where packs
    share it), or a pytest node id. UsageProblem where it means none, or several.
    """
    bracket = re.search(r"\[(.+)\]\s*$", name)
    pack = Path(name.partition("::")[0]).parent.name if bracket and "::" in name else ""
    cell_id = bracket[1] if bracket else name
    cells = {
        entry.cell: entry
        for entry in sorted(index.entries(), key=lambda one: (one.started, one.id))
        if entry.cell.id == cell_id or f"{entry.pack}/{entry.cell.id}" == cell_id
        if not pack or entry.pack == pack
    }
    if len(cells) == 1:
        return next(iter(cells.values()))
    if cells:
        listed = ", ".join(sorted(f"{cell.pack}/{cell.id}" for cell in cells))
        raise UsageProblem(f"{name} is a cell of several packs; name one: {listed}")
    found = [entry for entry in index.entries() if entry.id.startswith(name)]
    if len(found) == 1 and (len(name) >= SHORTEST_PREFIX or found[0].id == name):
        return found[0]
    if len(found) > 1:
        listed = ", ".join(sorted(entry.id for entry in found)[:10])
        raise UsageProblem(f"{name} begins {len(found)} attempts: {listed}")
    raise UsageProblem(
        f"{results.resolve()}: no stored attempt is {name!r}; give the first {SHORTEST_PREFIX} "
        "or more characters of an id, or a cell such as fix-bug:local-coder:1"
    )


def own_tests(index: Index, record: AttemptRecord) -> list[CheckRecord]:
    """Return what users' own tests found of an attempt; of a test that was changed, the newest."""
    found = sorted(
        (check for check in index.checks() if check.attempt == record.id),
        key=lambda check: check.started,
    )
    return list({check.name: check for check in found}.values())


def transcript_of(
    record: AttemptRecord, index: Index, evidence: Evidence
) -> tuple[list[dict[str, JsonValue]], str]:
    """Return the transcript of an attempt, or of the one that it grades; and why it is missing."""
    judged, missing = _entries(record, "judge", evidence)
    judge = [{**entry, "role": "judge"} for entry in judged]
    work = record
    if record.grades:
        graded = index.find(record.grades)
        if graded is None:
            gone = f"the attempt {record.grades} that this one grades is not stored here"
            return judge, gone
        work = index.record(graded)
    entries, gone = _entries(work, "transcript", evidence)
    return [*entries, *judge], gone or missing


def observation_of(record: AttemptRecord, evidence: Evidence) -> Observation | None:
    """Return what the checks saw; None where that is not here."""
    name = record.evidence.get("observation")
    if name is None:
        return None
    try:
        return Observation.model_validate_json(evidence.get(name))
    except (StoreProblem, ValueError):
        return None


def said_by_checks(observation: Observation | None) -> dict[str, str]:
    """Return what each check that did not hold said, by name."""
    said: dict[str, list[str]] = {}
    for row in observation.rows if observation is not None else ():
        if row.text and row.outcome != "passed":
            said.setdefault(row.name, []).append(row.text)
    return {check: "\n".join(texts) for check, texts in said.items()}


def wanted(record: AttemptRecord) -> JsonValue:
    """Return what the reference of a benchmark's case gives, as its pack is today; None if unknown.

    None for a verdict that is a pass, too: nobody asks what else would have been right.
    """
    from pytest_modelbench.benchmarks.benchmark import Answer
    from pytest_modelbench.packs.reading import find_packs, read_pack

    if record.verdict is None or record.verdict.passed or not in_project(CASES).is_dir():
        return None
    for folder in find_packs([in_project(CASES)]):
        if folder.name != record.pack:
            continue
        try:
            pack = read_pack(folder, in_project(REFERENCES))
        except UsageProblem:
            return None
        case = next((case for case in pack.cases if case.id == record.case), None)
        if case is None or case.given is None or case.source is None:
            return None
        try:
            answer = case.source.benchmark.reference(case.given)
        except Exception:  # whatever code of others raises: the attempt is what was asked for
            return None
        if isinstance(answer, Answer):
            calls: JsonValue = [{name: dict(arguments)} for name, arguments in answer.calls]
            return (
                {"calls": calls} if answer.text is None else {"calls": calls, "text": answer.text}
            )
    return None


def _entries(
    record: AttemptRecord, what: str, evidence: Evidence
) -> tuple[list[dict[str, JsonValue]], str]:
    name = record.evidence.get(what)
    if name is None:
        return [], ""
    try:
        return read_transcript(evidence.get(name)), ""
    except StoreProblem as problem:
        return [], str(problem)


def as_json(
    record: AttemptRecord,
    entries: list[dict[str, JsonValue]],
    said: Mapping[str, str],
    judged: JsonValue,
    own: Sequence[CheckRecord],
) -> dict[str, JsonValue]:
    """Return record, transcript, what checks said or saw, users' own tests; keys are masked."""
    masking = Masking()
    data: dict[str, JsonValue] = {
        "record": masking.value(record.model_dump(mode="json", by_alias=True)),
        "transcript": [masking.value(dict(entry)) for entry in entries],
        "checks_said": masking.value(dict(said)),
        "judged": masking.value(judged),
        "own_tests": [masking.value(one.model_dump(mode="json", by_alias=True)) for one in own],
    }
    return {**data, "masked": masking.count}
