"""What a run is about: settings, packs, candidates, store and plan, read before anything runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from pytest_modelbench.attempt import has_evidence
from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.identity import candidate_digest
from pytest_modelbench.packs.identities import CaseIdentity, identity_of
from pytest_modelbench.packs.model import Case, Pack
from pytest_modelbench.packs.reading import read_packs
from pytest_modelbench.plan import Inputs, Plan, make_plan
from pytest_modelbench.plugin import MODELS_INI
from pytest_modelbench.protocols.protocol import protocol_named
from pytest_modelbench.records import REFERENCE, Candidate, Cell, Identity
from pytest_modelbench.selection import Selected, read_arguments
from pytest_modelbench.settings import REFERENCES, RESULTS, Settings, new_run_id, utc_now
from pytest_modelbench.store.evidence import Evidence
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.reader import read


@dataclass(frozen=True)
class Bench:
    """What a run is about, as read from files before anything runs."""

    settings: Settings
    packs: tuple[Pack, ...]
    registry: Registry
    candidates: tuple[Candidate, ...]
    index: Index
    plan: Plan
    args: tuple[str, ...]
    partial: bool


def read_bench(config: pytest.Config) -> Bench | None:
    """Resolve the settings, read packs, candidates and store, and make the plan.

    None where the run turns out to have no candidates and names no pack.
    """
    root = config.rootpath
    models_named = bool(config.getoption("models"))
    last_failed = bool(config.getoption("lf", False))
    planning = bool(config.getoption("modelbench_plan"))
    selected = read_arguments(config, models_named=models_named or last_failed or planning)
    results = Path(config.getoption("modelbench_results") or RESULTS)
    results = results if results.is_absolute() else config.invocation_params.dir / results
    if not config.getoption("modelbench_results"):
        results = root / RESULTS
    references = root / REFERENCES
    registry = Registry.read(root)
    packs = read_packs(selected.packs, references)
    for pack in packs:
        for case_id in selected.cases.get(pack.folder, ()):
            _require_case(pack, case_id)
    index = read(results, packs=[pack.name for pack in packs])
    candidates = _candidates(config, registry, selected, index, packs, last_failed=last_failed)
    if not candidates:
        if selected.named and not last_failed:
            raise pytest.UsageError(
                f"{selected.named[0].name} is a pack, and no candidate is named to try it: "
                f"--models NAME[,NAME...]; known: {', '.join(registry.known)}, "
                "or a LiteLLM model name such as openai/gpt-5"
            )
        return None
    repeats = config.getoption("modelbench_repeats") or 0
    if not repeats and last_failed:
        repeats = max((e.repeat for e in index.entries() if index.is_faulted(e.cell)), default=1)
    run, started = new_run_id(), utc_now()
    settings = Settings(
        root=str(root),
        references=str(references),
        results=str(results),
        models=tuple(c.name for c in candidates),
        run=run,
        started=started,
        packs=tuple(str(pack.folder) for pack in packs),
        selected=tuple((str(f), tuple(sorted(ids))) for f, ids in selected.cases.items()),
        repeats=max(repeats, selected.repeats, 1),
        note=config.getoption("modelbench_note"),
        fresh=config.getoption("modelbench_fresh"),
        rerun_stale=config.getoption("modelbench_rerun_stale"),
        fault_retries=config.getoption("modelbench_fault_retries"),
        isolation=config.getoption("modelbench_isolation"),
        fail_unsolved=config.getoption("modelbench_fail_unsolved"),
        last_failed=last_failed,
        models_named=models_named,
    )
    plan = make_plan(plan_inputs(settings, packs, candidates, index))
    narrowed = config.getoption("keyword") or config.getoption("markexpr") or last_failed
    return Bench(
        settings=settings,
        packs=packs,
        registry=registry,
        candidates=candidates,
        index=index,
        plan=plan,
        args=tuple(selected.args),
        partial=bool(narrowed or selected.partial),
    )


def _require_case(pack: Pack, case_id: str) -> None:
    """Raise UsageError, with the ids that there are, for a case that a pack does not have."""
    ids = [case.id for case in pack.cases]
    if case_id not in ids:
        raise pytest.UsageError(
            f"{pack.manifest}: no case {case_id!r}; the pack has {', '.join(ids)}"
        )


def _candidates(
    config: pytest.Config,
    registry: Registry,
    selected: Selected,
    index: Index,
    packs: Sequence[Pack],
    *,
    last_failed: bool,
) -> tuple[Candidate, ...]:
    names: list[str] = list(config.getoption("models"))
    if not names and last_failed:
        return _faulted_candidates(registry, index, packs)
    if not names:
        names = [name for name in selected.candidates if "+" not in name]
    if not names:
        names = [name for word in config.getini(MODELS_INI) for name in word.split(",") if name]
    return registry.resolve(names)


def _faulted_candidates(
    registry: Registry, index: Index, packs: Sequence[Pack]
) -> tuple[Candidate, ...]:
    """Return the candidates of faulted cells that the project still knows."""
    names = {
        cell.candidate
        for pack in packs
        for name in index.candidates(pack.name)
        for cell in index.cells(pack.name, name)
        if cell.variant is None and index.is_faulted(cell)
    }
    return registry.resolve(sorted(names))


def plan_inputs(
    settings: Settings, packs: Sequence[Pack], candidates: Sequence[Candidate], index: Index
) -> Inputs:
    """Return what a plan is made from: cases selected, today's identities, evidence at hand."""
    evidence = Evidence(Path(settings.results))

    @cache
    def of_case(case: Case) -> CaseIdentity:
        protocol = protocol_named(case.protocol)
        return identity_of(case, protocol=protocol.version, grader=protocol.grader_version)

    @cache
    def of_candidate(name: str) -> str:
        found = next((c for c in candidates if c.name == name), None) or built_in(name)
        return candidate_digest(found, protocol_named("agent").agent_version)

    def identify(case: Case, candidate: Candidate) -> Identity:
        digests = of_case(case)
        of_reference = candidate.agent == REFERENCE
        return Identity(
            task=digests.task,
            check=digests.check,
            candidate=of_candidate(candidate.name),
            reference=digests.reference if of_reference else "",
        )

    return Inputs(
        packs=packs,
        cases={pack.name: selected_cases(settings, pack) for pack in packs},
        candidates=candidates,
        repeats=settings.repeats,
        index=index,
        identify=identify,
        built_in=built_in,
        has_evidence=lambda record: has_evidence(record, evidence),
        fresh_series=settings.run if settings.fresh else "",
        rerun_stale=settings.rerun_stale,
        faults_only=settings.last_failed,
    )


def selected_cases(settings: Settings, pack: Pack) -> tuple[Case, ...]:
    """Return the cases of a pack that the command line leaves."""
    ids = settings.cases_of(pack.folder)
    return tuple(case for case in pack.cases if not ids or case.id in ids)


def built_in(name: str) -> Candidate:
    """Return the built-in candidate of a certificate's cell: reference, seed, reference+VARIANT."""
    return Candidate(name=name, agent=name.partition("+")[0])


def node_path(root: Path, path: Path) -> str:
    """Return a path as node ids have it: relative to the root folder."""
    return Path(os.path.relpath(path, root)).as_posix()


def node_id(manifest: str, cell: Cell) -> str:
    """Return the pytest node id of a cell; ``manifest`` is relative to the root folder."""
    return f"{manifest}::test_case[{cell.id}]"
