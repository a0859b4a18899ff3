"""What is done for a cell, by what the store holds of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_modelbench.packs.model import Case, Damaged, Pack
from pytest_modelbench.packs.source import BenchmarkCase, Source
from pytest_modelbench.plan import Action, Inputs, Plan, make_plan
from pytest_modelbench.records import (
    AttemptRecord,
    Candidate,
    Cell,
    Check,
    Command,
    FaultRecord,
    Identity,
    Limits,
    Outcome,
    Stage,
    Verdict,
)
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.reader import read
from pytest_modelbench.store.writer import RunInfo, Writer

TODAY = Identity(task="task", check="check", candidate="candidate")


def case(name: str, root: Path = Path("cases/p"), damaged: tuple[str, ...] = ()) -> Case:
    return Case(
        pack="p",
        id=name,
        folder=root / name,
        manifest=root / name / "case.toml",
        title=name,
        prompt="do it",
        limits=Limits(),
        seed=None,
        hidden=root / name / "hidden",
        reference=Path("reference_solutions") / name,
        damaged=tuple(Damaged(n, root, (f"test_{n}",)) for n in damaged),
    )


def record(cell: Cell, number: int, **changes: object) -> AttemptRecord:
    data: dict[str, object] = {
        "id": f"attempt{number:04}",
        "run": "run1",
        "pack": cell.pack,
        "case": cell.case,
        "candidate": cell.candidate,
        "repeat": cell.repeat,
        "identity": TODAY,
        "outcome": Outcome.PASSED,
        "verdict": Verdict(passed=True, reward=1.0),
        "started": f"2026-01-01T00:00:{number % 60:02}.000Z",
        "seconds": 1.0,
        "harvest": {"a.py": "1"},
    }
    return AttemptRecord.model_validate(data | changes)


def unsolved(*lost: str) -> dict[str, object]:
    checks = tuple(Check(name=name, passed=False) for name in lost)
    return {
        "outcome": Outcome.UNSOLVED,
        "verdict": Verdict(passed=False, reward=0.0, checks=checks, reason="wrong"),
    }


def fault(kind: str, stage: Stage) -> dict[str, object]:
    return {
        "outcome": Outcome.FAULT,
        "verdict": None,
        "fault": FaultRecord(kind=kind, stage=stage),
    }


def stored(tmp_path: Path, records: Iterable[AttemptRecord]) -> Index:
    with Writer(tmp_path, RunInfo(run="run1", started="2026-01-01T00:00:00.000Z")) as writer:
        for one in records:
            writer.append(one)
    return read(tmp_path)


def sound(name: str) -> list[AttemptRecord]:
    """A certificate of a case without damaged variants."""
    attempts = []
    for n in (1, 2, 3):
        attempts.append(record(Cell("p", name, "reference", n), 100 + n + 10 * ord(name[-1])))
        attempts.append(
            record(Cell("p", name, "seed", n), 500 + n + 10 * ord(name[-1]), **unsolved("t"))
        )
    return attempts


def inputs(
    index: Index, *cases: Case, models: tuple[str, ...] = ("m",), **changes: object
) -> Inputs:
    pack = Pack(
        name="p", folder=Path("p"), manifest=Path("p/pack.toml"), protocol="agent", cases=cases
    )
    made = Inputs(
        packs=[pack],
        cases={"p": cases},
        candidates=[Candidate(name=name, model=f"openai/{name}") for name in models],
        repeats=1,
        index=index,
        identify=lambda case, candidate: TODAY,
        built_in=lambda name: Candidate(name=name, agent=name.partition("+")[0]),
        has_evidence=lambda attempt: attempt.harvest is not None,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def only(plan: Plan) -> tuple[Action, str]:
    (planned,) = plan.grid
    return planned.action, planned.why


CELL = Cell("p", "a", "m", 1)


class Echo:
    """A source of cases, as far as a plan asks for one."""

    version = rules_version = "1"

    def cases(self) -> list[BenchmarkCase]:
        return []

    def reference(self, case: BenchmarkCase, variant: str = "") -> object:
        return None


def test_cell_without_attempts_runs(tmp_path: Path) -> None:
    assert only(make_plan(inputs(Index(), case("a")))) == (Action.RUN, "no attempt yet")


def test_an_agent_program_that_cannot_try_a_case_is_refused_before_anything_runs(
    tmp_path: Path,
) -> None:
    command = Command(argv=["/opt/x", "{task}"], programs=[f"{tmp_path}:/opt", "/no/such/place"])
    program = Candidate(name="m", agent="command", command=command)
    at = stored(tmp_path, [])
    plan = make_plan(inputs(at, case("a"), candidates=[program]))
    assert only(plan) == (Action.REFUSE, "/no/such/place in programs is not there")
    assert plan.certifying == (), "nobody is there to be scored by the case"
    there = program.model_copy(update={"command": Command(argv=command.argv, programs=["/"])})
    assert only(make_plan(inputs(at, case("a"), candidates=[there])))[0] is Action.RUN
    of_benchmark = replace(case("a"), source=Source("table", Echo()))
    action, why = only(make_plan(inputs(at, of_benchmark, candidates=[there])))
    assert (action, "and a benchmark has none" in why) == (Action.REFUSE, True)
    stays = stored(tmp_path, [record(CELL, 1)])
    assert only(make_plan(inputs(stays, case("a"), candidates=[program])))[0] is Action.REPLAY


def test_stored_verdict_is_replayed(tmp_path: Path) -> None:
    plan = make_plan(inputs(stored(tmp_path, [record(CELL, 1)]), case("a")))
    assert only(plan) == (Action.REPLAY, "verdict stored")
    assert plan.grid[0].stored == "attempt0001"


@pytest.mark.parametrize(
    ("changes", "action", "why"),
    [
        (
            fault("server-error", Stage.WORK),
            Action.RUN,
            "its attempts ended in faults, the last in server-error",
        ),
        (fault("grader", Stage.GRADE), Action.REGRADE, "grading ended in a fault (grader)"),
        (
            fault("grader", Stage.GRADE) | {"harvest": None},
            Action.RUN,
            "grading ended in a fault (grader) and the evidence is gone",
        ),
        (
            {"identity": TODAY.model_copy(update={"check": "old"})},
            Action.REGRADE,
            "the check changed",
        ),
        (
            {"identity": TODAY.model_copy(update={"check": "old"}), "harvest": None},
            Action.OLD,
            "the check changed and the evidence is gone: --modelbench-rerun-stale runs it",
        ),
        (
            {"identity": TODAY.model_copy(update={"task": "old"})},
            Action.RUN,
            "the task changed",
        ),
        (
            {"identity": TODAY.model_copy(update={"candidate": "old", "task": "old"})},
            Action.RUN,
            "the task and the candidate changed",
        ),
    ],
)
def test_action_follows_from_what_is_stored(
    tmp_path: Path, changes: dict[str, object], action: Action, why: str
) -> None:
    plan = make_plan(inputs(stored(tmp_path, [record(CELL, 1, **changes)]), case("a")))
    assert only(plan) == (action, why)


def test_stale_cell_runs_when_asked_to(tmp_path: Path) -> None:
    old = record(CELL, 1, identity=TODAY.model_copy(update={"check": "old"}), harvest=None)
    plan = make_plan(inputs(stored(tmp_path, [old]), case("a"), rerun_stale=True))
    assert plan.grid[0].action is Action.RUN


def test_fresh_runs_every_cell_in_a_series_of_its_own(tmp_path: Path) -> None:
    plan = make_plan(inputs(stored(tmp_path, [record(CELL, 1)]), case("a"), fresh_series="run2"))
    assert (plan.grid[0].action, plan.grid[0].series) == (Action.RUN, "run2")


def test_faults_only_selects_faulted_cells_and_no_other(tmp_path: Path) -> None:
    index = stored(
        tmp_path,
        [
            record(CELL, 1),
            record(Cell("p", "b", "m", 1), 2, **fault("server-error", Stage.WORK)),
        ],
    )
    plan = make_plan(inputs(index, case("a"), case("b"), case("c"), faults_only=True))
    assert [p.cell.case for p in plan.grid] == ["b"]


def test_missing_certificate_attempts_are_planned_before_the_cells(tmp_path: Path) -> None:
    plan = make_plan(inputs(Index(), case("a", damaged=("half",))))
    assert [p.cell.id for p in plan.certifying] == [
        "a:reference:1",
        "a:reference:2",
        "a:reference:3",
        "a:seed:1",
        "a:seed:2",
        "a:seed:3",
        "a:reference+half:1",
    ]
    assert plan.certificates["p", "a"].ok is None


def test_sound_case_needs_no_certificate_attempts(tmp_path: Path) -> None:
    plan = make_plan(inputs(stored(tmp_path, sound("a")), case("a")))
    assert plan.certifying == ()
    assert plan.certificates["p", "a"].ok is True


def test_built_in_candidates_need_no_certificate(tmp_path: Path) -> None:
    built_in = [Candidate(name=n, agent=n) for n in ("reference", "seed")]
    plan = make_plan(inputs(Index(), case("a"), candidates=built_in))
    assert plan.certifying == ()
    assert [p.cell.candidate for p in plan.grid] == ["reference", "seed"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (("reference", 2, unsolved("test_x")), "the reference fails: test_x"),
        (("seed", 1, {}), "the untouched seed passes"),
    ],
)
def test_broken_case_is_not_certified(
    tmp_path: Path, changed: tuple[str, int, dict[str, object]], why: str
) -> None:
    candidate, repeat, changes = changed
    attempts = [one for one in sound("a") if one.cell != Cell("p", "a", candidate, repeat)]
    attempts.append(record(Cell("p", "a", candidate, repeat), 900, **changes))
    plan = make_plan(inputs(stored(tmp_path, attempts), case("a")))
    certificate = plan.certificates["p", "a"]
    assert (certificate.ok, certificate.why) == (False, why)
    assert plan.certifying == ()


def test_damaged_variant_that_loses_other_checks_breaks_the_certificate(tmp_path: Path) -> None:
    cell = Cell("p", "a", "reference+half", 1)
    attempts = [*sound("a"), record(cell, 900, **unsolved("test_other"))]
    plan = make_plan(inputs(stored(tmp_path, attempts), case("a", damaged=("half",))))
    assert plan.certificates["p", "a"].why == (
        "damaged variant half should lose test_half and loses test_other"
    )


def test_plan_survives_its_way_to_a_worker(tmp_path: Path) -> None:
    plan = make_plan(inputs(stored(tmp_path, [record(CELL, 1)]), case("a"), case("b")))
    there = Plan.from_json(plan.to_json())
    assert [p.cell for p in there] == [p.cell for p in plan]
    assert [p.action for p in there] == [p.action for p in plan]
    run = next(p for p in there.grid if p.action is Action.RUN)
    assert run.identity == TODAY


def test_long_cells_are_paired_with_short_ones(tmp_path: Path) -> None:
    times = {"a": 10.0, "b": 40.0, "c": 1.0, "d": 20.0}
    attempts = [
        record(Cell("p", name, "m", 1), n, seconds=seconds)
        for n, (name, seconds) in enumerate(times.items())
    ]
    index = stored(tmp_path, attempts)
    plan = make_plan(inputs(index, *map(case, times), fresh_series="run2"))
    assert [cell.case for cell in plan.dealing] == ["b", "c", "d", "a"]
    # Items stand in an order that no duration changes: --sw finds its place again.
    assert [p.cell.case for p in plan.grid] == ["a", "b", "c", "d"]


def test_candidates_are_interleaved_where_no_time_is_known(tmp_path: Path) -> None:
    plan = make_plan(inputs(Index(), case("a"), case("b"), models=("x", "y")))
    assert [cell.id for cell in plan.dealing] == ["a:x:1", "a:y:1", "b:x:1", "b:y:1"]
