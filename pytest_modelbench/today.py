"""Today's identities: what a case and a candidate of a project are, as they stand on the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from pytest_modelbench.candidates.command import identity_of_command
from pytest_modelbench.candidates.function import FUNCTION_VERSION, identity_of_function
from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.candidates.tuning import Tuning
from pytest_modelbench.checks.observation import JUDGE_VERSION
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.gateway.texttools import TEXT, TEXT_VERSION
from pytest_modelbench.identity import candidate_digest
from pytest_modelbench.packs.identities import CaseIdentity, identity_of
from pytest_modelbench.packs.model import Case
from pytest_modelbench.packs.reading import find_packs, read_pack
from pytest_modelbench.protocols.versions import versions_of
from pytest_modelbench.records import REFERENCE, Candidate, Cell, Identity
from pytest_modelbench.settings import CASES, REFERENCES


def judges_of(cases: Iterable[Case], registry: Registry) -> tuple[Candidate, ...]:
    """Return the candidates that judge some cases; UsageProblem for one that cannot."""
    found: dict[str, Candidate] = {}
    for case in cases:
        name = case.check.judge
        if not name or name in found:
            continue
        try:
            (judge,) = registry.resolve([name])
        except UsageProblem as problem:
            raise UsageProblem(f"the judge of pack {case.pack}: {problem}") from problem
        server = registry.servers.get(judge.server)
        if not judge.calls_model or judge.agent not in ("loop", "scripted"):
            raise UsageProblem(
                f"{name} judges pack {case.pack}, and is no model: name a candidate with the agent "
                "loop in [check] judge"
            )
        if server is not None and server.start:
            raise UsageProblem(
                f"{name} judges pack {case.pack}, and its server {server.name} is started for one "
                "model after the other: a judge needs a server that is there all the time"
            )
        found[name] = judge
    return tuple(found.values())


def identifier(registry: Registry | None = None) -> Callable[[Case, Candidate], Identity]:
    """Return a function that identifies a case for a candidate; it reads each of them once.

    ``registry`` knows the judges of cases that have one.
    """
    known = Registry() if registry is None else registry

    of_cases: dict[tuple[str, str], CaseIdentity] = {}

    def of_case(case: Case) -> CaseIdentity:
        key = (case.pack, case.id)
        if key not in of_cases:
            of_cases[key] = read_case(case)
        return of_cases[key]

    def read_case(case: Case) -> CaseIdentity:
        versions = versions_of(case.protocol)
        judge = tuple(
            text
            for one in judges_of([case], known)
            for text in (JUDGE_VERSION, candidate_digest(one, ""))
        )
        return identity_of(case, protocol=versions.protocol, grader=versions.grader, judge=judge)

    digests: dict[tuple[str, str], str] = {}
    identities: dict[tuple[str, str, str], Identity] = {}

    def identify(case: Case, candidate: Candidate) -> Identity:
        of_cell = (case.pack, case.id, candidate.name)
        if of_cell not in identities:
            identities[of_cell] = identity(case, candidate)
        return identities[of_cell]

    def identity(case: Case, candidate: Candidate) -> Identity:
        key = (case.protocol, candidate.name)
        if key not in digests:
            version = versions_of(case.protocol).agent
            program = None
            if candidate.command is not None:
                from pytest_modelbench.protocols.programs import program_version

                version = program_version(candidate)
                program = identity_of_command(candidate.command)
            elif candidate.function:
                version = f"{FUNCTION_VERSION}/{version}"
                program = identity_of_function(candidate)
            elif candidate.tuning.get("tool_parser") == TEXT:
                version = f"{version}/text-{TEXT_VERSION}"
            digests[key] = candidate_digest(candidate, version, program, _told(candidate))
        found = of_case(case)
        return Identity(
            task=found.task,
            check=found.check,
            candidate=digests[key],
            reference=found.reference if candidate.agent == REFERENCE else "",
        )

    return identify


def _told(candidate: Candidate) -> int | None:
    """Return the context window that a fact tells, where the tuning names none."""
    tuning = Tuning.of(candidate)
    return tuning.window(candidate) if tuning.context_tokens is None else None


@lru_cache(maxsize=256)
def built_in(name: str) -> Candidate:
    """Return the built-in candidate of a certificate's cell: reference, seed, reference+VARIANT."""
    return Candidate(name=name, agent=name.partition("+")[0])


def candidate_of(registry: Registry, name: str) -> Candidate | None:
    """Return whose results stand under a name, damaged variants among them; None if unknown."""
    if not built_in(name).calls_model:
        return built_in(name)
    try:
        (resolved,) = registry.resolve([name])
    except UsageProblem:
        return None
    return resolved


def identities(
    root: Path, folders: Sequence[str] = (CASES,)
) -> Callable[[str, str, str], Identity | None]:
    """Return today's identity by pack, case id and candidate; None for what is no longer there."""
    cases: dict[tuple[str, str], Case] = {}
    for folder in find_packs([root / name for name in folders if (root / name).is_dir()]):
        try:
            pack = read_pack(folder, root / REFERENCES)
        except UsageProblem:
            continue  # a report on what is stored does not need a pack to be sound today
        cases.update({(pack.name, case.id): case for case in pack.cases})
    registry = Registry.read(root)
    identify = identifier(registry)

    def today(pack: str, case_id: str, candidate: str) -> Identity | None:
        case = cases.get((pack, case_id))
        named = candidate_of(registry, candidate)
        if case is None or named is None:
            return None
        variant = Cell(pack, case_id, candidate, 1).variant
        if variant is not None and variant not in [damaged.name for damaged in case.damaged]:
            return None
        return identify(case, named)

    return today
