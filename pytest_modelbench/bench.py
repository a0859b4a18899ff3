"""What a run is about: settings, packs, candidates, store and plan, read before anything runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.collection import MANIFEST
from pytest_modelbench.draws import drawn_cases, read_draw
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.packs.model import Case, Pack
from pytest_modelbench.packs.reading import read_packs
from pytest_modelbench.packs.sampling import Draw
from pytest_modelbench.plan import Action, Inputs, Plan, make_plan
from pytest_modelbench.plugin import CASES_INI, MODELS_INI, root_of
from pytest_modelbench.records import Candidate, Cell, Identity
from pytest_modelbench.report.numbers import plural
from pytest_modelbench.selection import Selected, read_arguments
from pytest_modelbench.settings import REFERENCES, RESULTS, Settings
from pytest_modelbench.store.evidence import Evidence
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.lock import RunLock
from pytest_modelbench.store.reader import is_all, read
from pytest_modelbench.store.unfinished import Unfinished
from pytest_modelbench.today import built_in, identifier, judges_of


@dataclass(frozen=True)
class Bench:
    """What a run is about, as read from files before anything runs.

    ``lent`` are packs of the project that the command line does not name; users' own tests, which
    it does, may ask for their cells.
    """

    settings: Settings
    packs: tuple[Pack, ...]
    lent: tuple[Pack, ...]
    registry: Registry
    candidates: tuple[Candidate, ...]
    index: Index
    identify: Callable[[Case, Candidate], Identity]
    """Identity as of today of any case and candidate, also where the plan has no cell of them."""
    plan: Plan
    args: tuple[str, ...]
    partial: bool
    draw: Draw

    @property
    def judges(self) -> tuple[Candidate, ...]:
        """Return the candidates that judge cells of this run that are to be run or graded."""
        packs = (*self.packs, *self.lent)
        cases = [case for pack in packs for case in pack.cases if case.check.judge]
        if not cases:
            return ()
        todo = {
            (planned.cell.pack, planned.cell.case)
            for planned in (*self.plan, *self.plan.aside)
            if planned.action in (Action.RUN, Action.REGRADE)
        }
        return judges_of((case for case in cases if (case.pack, case.id) in todo), self.registry)

    @property
    def tags(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Return the tags of cases that have some, by pack and case id."""
        return {
            pack.name: {case.id: case.tags for case in pack.cases if case.tags}
            for pack in (*self.packs, *self.lent)
        }

    @property
    def called(self) -> tuple[Candidate, ...]:
        """Return whom the gateway has to know: the candidates, and the judges beside them."""
        names = {candidate.name for candidate in self.candidates}
        return (*self.candidates, *(one for one in self.judges if one.name not in names))


def claim_bench(
    config: pytest.Config, run: str, started: str, say: Callable[[str], None]
) -> tuple[Bench | None, RunLock | None]:
    """Read everything and, for a run that measures, take the results folder.

    What another run stored while this one read and waited is read again once nobody else can
    write: a plan that is older than the lock would run finished cells twice.
    """
    bench = read_bench(config, run, started)
    if bench is None or not measures(config):
        return bench, None
    results = Path(bench.settings.results)
    lock = RunLock.take(results, run, started, say=say)
    try:
        if (adopted := Unfinished(results).adopt()) > 0:
            say(f"found the work of {plural(adopted, 'attempt')} that ended before its verdict")
        if not is_all(bench.index, results, [p.name for p in (*bench.packs, *bench.lent)]):
            bench = read_bench(config, run, started)
    except BaseException:
        lock.release()
        raise
    if bench is None:
        lock.release()
        return None, None
    return bench, lock


def measures(config: pytest.Config) -> bool:
    """Tell whether this run is to try cells, not only to list them."""
    option = config.option
    lists = option.collectonly or option.showfixtures or option.show_fixtures_per_test
    return not (lists or option.setupplan or option.help or config.getoption("modelbench_plan"))


def read_bench(config: pytest.Config, run: str, started: str) -> Bench | None:
    """Resolve the settings, read packs, candidates and store, and make the plan of a run.

    None where the run turns out to have no candidates and names no pack.
    """
    root = root_of(config)
    models_named = bool(config.getoption("models"))
    last_failed = bool(config.getoption("lf", False))
    selected = read_arguments(config)
    results = Path(config.getoption("modelbench_results") or RESULTS)
    results = results if results.is_absolute() else config.invocation_params.dir / results
    if not config.getoption("modelbench_results"):
        results = root / RESULTS
    _refuse_among_packs(results)
    references = root / REFERENCES
    registry = Registry.read(root)
    every = read_packs([*selected.packs, *selected.lent], references)
    packs = tuple(pack for pack in every if pack.folder in selected.packs)
    lent = tuple(pack for pack in every if pack.folder in selected.lent)
    for pack in packs:
        for case_id in selected.cases.get(pack.folder, ()):
            _require_case(pack, case_id)
    # With details: a plan estimates costs by them, and a run that only replays reports from them.
    index = read(results, packs=[pack.name for pack in every], details=True)
    candidates = _candidates(config, registry, selected, index, packs, last_failed=last_failed)
    if not candidates:
        if selected.named and not last_failed:
            raise pytest.UsageError(
                f"{selected.named[0].name} is a pack, and no candidate is named to try it: "
                f"--models NAME[,NAME...]; known: {', '.join(registry.known)}, "
                "or a LiteLLM model name such as openai/gpt-5"
            )
        return None
    if not every:
        if not models_named:
            return None
        raise pytest.UsageError(
            "--models names candidates, and there is no pack to try them on: neither an argument "
            f"nor a folder of {CASES_INI} holds a pack.toml; `modelbench new-pack NAME` writes one"
        )
    repeats = config.getoption("modelbench_repeats") or 0
    if not repeats and last_failed:
        repeats = max((e.repeat for e in index.entries() if index.is_faulted(e.cell)), default=1)
    draw = read_draw(config)
    drawn = drawn_cases(draw, every, index)
    for pack in packs:
        _require_drawn(pack, selected.cases.get(pack.folder, ()), draw, drawn)
    baseline = config.getoption("modelbench_baseline")
    if baseline and not last_failed and baseline not in [c.name for c in candidates]:
        raise pytest.UsageError(
            f"--modelbench-baseline {baseline}: it is not in this run, which tries "
            f"{', '.join(c.name for c in candidates)}; add it to --models"
        )
    settings = Settings(
        root=str(root),
        references=str(references),
        results=str(results),
        models=tuple(c.name for c in candidates),
        run=run,
        started=started,
        packs=tuple(str(pack.folder) for pack in packs),
        lent=tuple(pack.name for pack in lent),
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
        interval=config.getoption("modelbench_interval"),
        midp=config.getoption("modelbench_midp"),
        baseline=baseline,
        budget_usd=config.getoption("modelbench_budget"),
        budget_tokens=config.getoption("modelbench_budget_tokens"),
        split=draw.split,
        draw=draw.in_words(),
        drawn=drawn,
    )
    inputs = plan_inputs(settings, every, candidates, index, registry)
    plan = make_plan(inputs)
    narrowing = ("keyword", "markexpr", "deselect")
    narrowed = any(map(config.getoption, narrowing)) or last_failed
    return Bench(
        settings=settings,
        packs=packs,
        lent=lent,
        registry=registry,
        candidates=candidates,
        index=index,
        identify=inputs.identify,
        plan=plan,
        args=(*selected.args, *(str(pack.folder) for pack in lent)),
        partial=bool(narrowed or selected.partial),
        draw=draw,
    )


def _refuse_among_packs(results: Path) -> None:
    """Raise UsageProblem for a folder in which results would become parts of a pack."""
    folder = results.absolute()
    above = [one for one in (folder, *folder.parents) if (one / MANIFEST).is_file()]
    below = [path.parent for path in sorted(folder.glob(f"*/{MANIFEST}"))]
    if packs := above + below:
        raise UsageProblem(
            f"results cannot be kept in {results}, for {packs[0]} is a pack: a folder in it is a "
            "case; name another folder with --modelbench-results"
        )


def _require_case(pack: Pack, case_id: str) -> None:
    """Raise UsageError, with the ids that there are, for a case that a pack does not have."""
    ids = [case.id for case in pack.cases]
    if case_id not in ids:
        raise pytest.UsageError(
            f"{pack.manifest}: no case {case_id!r}; the pack has {', '.join(ids)}"
        )


def _require_drawn(
    pack: Pack, named: Iterable[str], draw: Draw, drawn: Sequence[tuple[str, tuple[str, ...]]]
) -> None:
    """Raise UsageError for a case that is named and that the draw leaves out."""
    ids = dict(drawn).get(str(pack.folder))
    for case_id in named:
        if ids is not None and case_id not in ids:
            raise pytest.UsageError(
                f"{pack.name}: the case {case_id!r} is named and not among the "
                f"{len(ids)} that are drawn ({draw.in_words()})"
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
    settings: Settings,
    packs: Sequence[Pack],
    candidates: Sequence[Candidate],
    index: Index,
    registry: Registry,
) -> Inputs:
    """Return what a plan is made from: cases selected, today's identities, evidence at hand."""
    evidence = Evidence(Path(settings.results))

    return Inputs(
        packs=packs,
        cases={pack.name: selected_cases(settings, pack) for pack in packs},
        candidates=candidates,
        repeats=settings.repeats,
        index=index,
        identify=identifier(registry),
        built_in=built_in,
        has_evidence=evidence.has_harvest,
        fresh_series=settings.run if settings.fresh else "",
        rerun_stale=settings.rerun_stale,
        faults_only=settings.last_failed,
        lent=settings.lent,
    )


def selected_cases(settings: Settings, pack: Pack) -> tuple[Case, ...]:
    """Return the cases of a pack that the command line, a split and a sample leave."""
    ids = settings.cases_of(pack.folder)
    drawn = dict(settings.drawn).get(str(pack.folder))
    return tuple(
        case
        for case in pack.cases
        if (not ids or case.id in ids) and (drawn is None or case.id in drawn)
    )


def node_path(root: Path, path: Path) -> str:
    """Return a path as node ids have it: relative to the root folder."""
    return Path(os.path.relpath(path, root)).as_posix()


def node_id(manifest: str, cell: Cell) -> str:
    """Return the pytest node id of a cell; ``manifest`` is relative to the root folder."""
    return f"{manifest}::test_case[{cell.id}]"
