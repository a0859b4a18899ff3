"""``modelbench audit``: repeat stored verdicts from their evidence, and find what was edited."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from pytest_modelbench.attempt import stored_work
from pytest_modelbench.checks.observation import GRADER_VERSION, Observation
from pytest_modelbench.errors import StoreProblem, UsageProblem
from pytest_modelbench.packs.model import Case
from pytest_modelbench.packs.reading import find_packs, read_pack
from pytest_modelbench.parsing import parse
from pytest_modelbench.protocols.protocol import protocol_named
from pytest_modelbench.records import AttemptRecord, Identity, Outcome, seal_holds
from pytest_modelbench.report.escape import escape
from pytest_modelbench.settings import CASES, REFERENCES, RESULTS, in_project, project_root
from pytest_modelbench.store.evidence import Evidence
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.layout import open_results, require_stored, results_files
from pytest_modelbench.store.reader import read
from pytest_modelbench.today import identities

Today = Callable[[str, str, str], Identity | None]
"""Today's identity by pack, case and candidate; None for what is no longer there."""


@dataclass(frozen=True)
class Finding:
    """Something that cannot be as an untouched store would have it."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


@dataclass
class Audit:
    """What was looked at, what was found, and what could not be looked at, by reason."""

    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "audit", help="repeat every verdict from its evidence; find what was edited or harmed"
    )
    parser.add_argument("packs", nargs="*", metavar="PACK", help="names of packs (default: all)")
    parser.add_argument("--results", type=Path, default=in_project(RESULTS), metavar="DIR")
    parser.add_argument("--cases", type=Path, default=in_project(CASES), metavar="DIR")
    parser.add_argument("--references", type=Path, default=in_project(REFERENCES), metavar="DIR")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what an audit found; exit status 1 when that is anything."""
    if not options.results.is_dir():
        raise UsageProblem(f"{options.results} is no folder of results; --results names another")
    require_stored(options.results, options.packs)
    cases = read_cases(options.cases, options.references)
    today = identities(project_root(), [str(options.cases.absolute())])
    found = audit(options.results, cases, today, options.packs)
    for finding in found.findings:
        print(escape(str(finding)))
    said = [f"{count} {what}" for what, count in found.counts.items()]
    print(f"{', '.join(said) or 'nothing is stored'}; findings: {len(found.findings)}")
    for what, count in sorted(found.notes.items()):
        print(f"  {count} {escape(what)}")
    return 1 if found.findings else 0


def read_cases(folder: Path, references: Path) -> dict[tuple[str, str], Case]:
    """Return the cases of the packs below a folder that are sound today, by pack and id."""
    cases: dict[tuple[str, str], Case] = {}
    for place in find_packs([folder]) if folder.is_dir() else []:
        try:
            pack = read_pack(place, references)
        except UsageProblem:
            continue  # its results can be audited still, save for what needs the case
        cases.update({(pack.name, case.id): case for case in pack.cases})
    return cases


def audit(
    root: Path,
    cases: Mapping[tuple[str, str], Case],
    today: Today,
    packs: list[str] | None = None,
) -> Audit:
    """Look at every line below a folder of results, and at the evidence that it names."""
    index = read(root, packs or None)
    auditor = _Auditor(Evidence(root), cases, today, index)
    for path in results_files(root, packs or None):
        auditor.file(path)
    for damage in index.damages:
        auditor.found.findings.append(Finding(damage.path, damage.line, damage.what))
    for entry in index.entries():
        if entry.grades and index.find(entry.grades) is None:
            auditor.found.notes["regrades whose attempt is in no file here"] += 1
    return auditor.found


class _Auditor:
    def __init__(
        self,
        evidence: Evidence,
        cases: Mapping[tuple[str, str], Case],
        today: Today,
        index: Index,
    ) -> None:
        self.found = Audit()
        self._evidence = evidence
        self._cases = cases
        self._today = today
        self._index = index
        self._good: set[str] = set()

    def file(self, path: Path) -> None:
        with open_results(path) as file:
            for number, line in enumerate(file, 1):
                try:
                    raw = parse(line)
                except ValueError:
                    continue  # the reader tells of it, torn or damaged
                if isinstance(raw, dict) and raw.get("kind") in ("attempt", "regrade", "check"):
                    for what in self._line(raw):
                        self.found.findings.append(Finding(path, number, what))

    def _line(self, raw: dict[str, JsonValue]) -> Iterator[str]:
        """Yield what is wrong with one line."""
        self.found.counts[_KINDS[str(raw["kind"])]] += 1
        holds = seal_holds(raw)
        if holds is None:
            self.found.notes["lines are not sealed: an older version wrote them"] += 1
        elif not holds:
            yield "the line was changed after it was written: it is not what its digest says"
        if raw["kind"] == "check":
            return
        try:
            record = AttemptRecord.model_validate(raw)
        except ValidationError:
            return  # the reader tells of it
        yield from self._record(record)

    def _record(self, record: AttemptRecord) -> Iterator[str]:
        here = True
        for kind, name in record.evidence.items():
            problem = self._blob(name)
            if problem is None:
                here = False
                self.found.notes[f"pieces of evidence ({kind}) are not on this machine"] += 1
            elif problem:
                yield f"{kind}: {problem}"
                here = False
        try:
            if self._evidence.has_harvest(record):
                stored_work(record, self._evidence)
        except (ValueError, KeyError) as error:
            yield f"the harvest is not what its manifest says: {error}"
        except StoreProblem as problem:
            if "is not here" in str(problem):
                self.found.notes["harvests are not whole on this machine"] += 1
            else:
                yield f"harvest: {problem}"
        self._against_today(record)
        if record.outcome is Outcome.FAULT or not here:
            return
        yield from self._verdict(record)

    def _verdict(self, record: AttemptRecord) -> Iterator[str]:
        """Repeat the way from the observation to the verdict."""
        name = record.evidence.get("observation")
        if name is None:
            yield "a verdict without an observation: nothing gives it"
            return
        try:
            observation = Observation.model_validate_json(self._evidence.get(name))
        except ValidationError as error:
            yield f"the observation cannot be read: {error.errors()[0]['msg']}"
            return
        case = self._cases.get((record.pack, record.case))
        if case is None:
            self.found.notes["verdicts are of cases that are no longer here: not repeated"] += 1
            return
        if observation.grader != GRADER_VERSION:
            self.found.notes["verdicts are of another version of the grader: not repeated"] += 1
            return
        try:
            work = stored_work(self._worked(record), self._evidence)
        except (StoreProblem, ValueError, KeyError):
            self.found.notes["verdicts have no harvest here: not repeated"] += 1
            return
        verdict = protocol_named(case.protocol).verify(case, work, observation)
        self.found.counts["verdicts repeated"] += 1
        if verdict != record.verdict:
            stored = record.verdict
            yield (
                f"the verdict is not what its evidence gives: stored {_told(stored)}, "
                f"from the evidence {_told(verdict)}"
            )

    def _worked(self, record: AttemptRecord) -> AttemptRecord:
        """Return the line that holds the harvest: of a regrade, the attempt that it judges."""
        entry = self._index.find(record.grades) if record.grades else None
        return record if entry is None else self._index.record(entry)

    def _blob(self, name: str) -> str | None:
        """Return what is wrong with a blob, '' for nothing, None where it is not here."""
        if name in self._good:
            return ""
        if not self._evidence.has(name):
            return None
        try:
            self._evidence.get(name)
        except StoreProblem as problem:
            return str(problem)
        self._good.add(name)
        self.found.counts["pieces of evidence"] += 1
        return ""

    def _against_today(self, record: AttemptRecord) -> None:
        """Note which results are of another task, check, candidate or reference than today's."""
        now = self._today(record.pack, record.case, record.candidate)
        if now is None:
            self.found.notes[
                f"results are of {record.pack}/{record.case} by candidates, or of "
                "cases, that are no longer here"
            ] += 1
            return
        stored: Mapping[str, Any] = record.identity.model_dump()
        parts = ["task", "check", "candidate"] + ["reference"] * bool(now.reference)
        for part in parts:
            if stored[part] != getattr(now, part):
                self.found.notes[
                    f"results of {record.pack}/{record.case} are of another {part} than today's"
                ] += 1


_KINDS = {"attempt": "attempts", "regrade": "regrades", "check": "checks of users' tests"}


def _told(verdict: object) -> str:
    passed = getattr(verdict, "passed", None)
    if passed is None:
        return "none"
    failing = [c.name for c in getattr(verdict, "checks", ()) if not c.passed]
    trust, reward = getattr(verdict, "trust", ""), getattr(verdict, "reward", 0.0)
    lost = f", lost {', '.join(failing)}" if failing else ""
    return f"{'passed' if passed else 'not passed'} ({trust}, reward {reward:g}{lost})"
