from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_modelbench.records import AttemptRecord, Cell, Identity
from pytest_modelbench.store.entry import Digests
from pytest_modelbench.store.index import Index, Kind
from pytest_modelbench.store.reader import read
from pytest_modelbench.store.writer import RunInfo

Store = Callable[..., Path]
MakeRecord = Callable[..., AttemptRecord]

CELL = Cell("executor", "fix-bug", "local-coder", 1)
TODAY = Digests("t1", "c1", "m1")


def standing(index: Index, identity: Digests = TODAY) -> tuple[str, str | None, str | None]:
    found = index.standing(CELL, identity)
    entry = found.entry.id if found.entry else None
    return found.kind.value, entry, found.attempt.id if found.attempt else None


def test_a_cell_without_tries_stands_nowhere(store: Store, make_record: MakeRecord) -> None:
    index = read(store(make_record(repeat=2)))

    assert index.standing(CELL, TODAY).kind is Kind.NONE
    assert not index.is_faulted(CELL)
    assert index.history(CELL) == []


def test_the_first_verdict_counts(store: Store, make_record: MakeRecord) -> None:
    index = read(store(make_record("unsolved", id="first"), make_record("passed", id="second")))

    assert standing(index) == ("verdict", "first", "first")


def test_a_verdict_beats_a_fault_on_either_side(store: Store, make_record: MakeRecord) -> None:
    records = make_record("fault"), make_record("unsolved", id="it"), make_record("fault")
    index = read(store(*records))

    assert standing(index) == ("verdict", "it", "it")
    assert not index.is_faulted(CELL)


def test_faults_alone_leave_the_newest(store: Store, make_record: MakeRecord) -> None:
    index = read(store(make_record("fault", id="a"), make_record("fault", id="b")))

    assert standing(index) == ("fault-work", "b", "b")
    assert index.is_faulted(CELL)


def test_a_grade_fault_keeps_its_harvest(store: Store, make_record: MakeRecord) -> None:
    records = make_record("fault"), make_record("fault-grade", id="a"), make_record("fault")
    index = read(store(*records))

    assert standing(index) == ("fault-grade", "a", "a")


def test_a_regrade_gives_a_grade_fault_its_verdict(store: Store, make_record: MakeRecord) -> None:
    index = read(
        store(
            make_record("fault-grade", id="a"),
            make_record("fault-grade", id="r1", kind="regrade", grades="a"),
            make_record("passed", id="r2", kind="regrade", grades="a"),
            make_record("fault-grade", id="r3", kind="regrade", grades="a"),
        )
    )

    assert standing(index) == ("verdict", "r2", "a")


def test_a_grade_that_failed_again_is_still_a_fault(store: Store, make_record: MakeRecord) -> None:
    index = read(
        store(
            make_record("fault-grade", id="a"),
            make_record("fault-grade", id="r", kind="regrade", grades="a"),
        )
    )

    assert standing(index) == ("fault-grade", "r", "a")
    assert index.is_faulted(CELL)


def test_a_changed_check_asks_for_another_grade(store: Store, make_record: MakeRecord) -> None:
    root = store(make_record("unsolved", id="a", check="c0"))

    assert standing(read(root)) == ("other-check", "a", "a")
    assert read(root).standing(CELL, TODAY).changed == ("check",)

    store(make_record("passed", id="r", kind="regrade", grades="a", check="c1"))
    assert standing(read(root)) == ("verdict", "r", "a")
    assert standing(read(root), Digests("t1", "c0", "m1")) == ("verdict", "a", "a")


def test_the_newest_regrade_at_a_check_wins(store: Store, make_record: MakeRecord) -> None:
    index = read(
        store(
            make_record("unsolved", id="a"),
            make_record("unsolved", id="r1", kind="regrade", grades="a"),
            make_record("passed", id="r2", kind="regrade", grades="a"),
        )
    )

    assert standing(index) == ("verdict", "r2", "a")


def test_the_first_attempt_is_the_one_that_is_regraded(
    store: Store, make_record: MakeRecord
) -> None:
    index = read(store(make_record(id="a", check="c0"), make_record(id="b", check="c0")))

    assert standing(index) == ("other-check", "a", "a")


@pytest.mark.parametrize(
    ("stored", "changed"),
    [
        ({"task": "t0"}, ("task",)),
        ({"agent": "m0"}, ("candidate",)),
        ({"task": "t0", "agent": "m0", "check": "c0"}, ("task", "check", "candidate")),
    ],
)
def test_a_changed_task_or_candidate_asks_for_another_run(
    store: Store, make_record: MakeRecord, stored: dict[str, str], changed: tuple[str, ...]
) -> None:
    index = read(store(make_record(**stored)))

    found = index.standing(CELL, TODAY)
    assert (found.kind, found.changed) == (Kind.OTHER_TASK, changed)


def test_a_changed_reference_matters_to_the_reference_only(
    store: Store, make_record: MakeRecord
) -> None:
    def identity(reference: str) -> Identity:
        return Identity(task="t1", check="c1", candidate="m1", reference=reference)

    root = store(
        make_record(identity=identity("old")),
        make_record(identity=identity("old"), candidate="reference"),
        make_record(identity=identity("old"), candidate="reference+broken"),
    )
    index = read(root)

    assert index.standing(CELL, identity("new")).kind is Kind.VERDICT
    for candidate in ("reference", "reference+broken"):
        found = index.standing(CELL._replace(candidate=candidate), identity("new"))
        assert (found.kind, found.changed) == (Kind.OTHER_TASK, ("reference",))


def test_a_fresh_start_supersedes_at_once(store: Store, make_record: MakeRecord) -> None:
    root = store(make_record("passed", id="old"), make_record("passed", id="other", repeat=2))
    fresh = RunInfo(run="run-2", started="2026-02-01T00:00:00.000Z", fresh=(CELL,))
    store(make_record("passed", repeat=3, run="run-2"), run=fresh)  # killed before the cell ended

    index = read(root)

    assert index.standing(CELL, TODAY).kind is Kind.NONE
    assert index.series(CELL) == "run-2"
    assert (index.superseded(CELL), index.fresh_starts(CELL)) == (1, 1)
    other = CELL._replace(repeat=2)
    assert index.standing(other, TODAY).kind is Kind.VERDICT
    assert (index.series(other), index.superseded(other), index.fresh_starts(other)) == ("", 0, 0)

    store(make_record("unsolved", id="new", series="run-2", run="run-2"), run=fresh)
    assert standing(read(root)) == ("verdict", "new", "new")


def test_of_two_fresh_starts_the_newest_counts(store: Store, make_record: MakeRecord) -> None:
    for month, run in ((3, "run-3"), (2, "run-2")):
        info = RunInfo(run=run, started=f"2026-0{month}-01T00:00:00.000Z", fresh=(CELL,))
        root = store(make_record(id=run, series=run, run=run), run=info)

    assert standing(read(root)) == ("verdict", "run-3", "run-3")
    assert read(root).fresh_starts(CELL) == 2


def test_a_series_whose_header_is_lost_still_supersedes(
    store: Store, make_record: MakeRecord
) -> None:
    index = read(store(make_record(id="old"), make_record(id="new", series="run-9")))

    assert standing(index) == ("verdict", "new", "new")


def test_is_faulted_asks_the_newest_try_of_whatever_identity(
    store: Store, make_record: MakeRecord
) -> None:
    index = read(store(make_record("passed", task="t0"), make_record("fault", task="t9")))

    assert index.is_faulted(CELL)


def test_history_is_of_one_cell_oldest_first(store: Store, make_record: MakeRecord) -> None:
    late, early = make_record(id="late"), make_record(id="early", started="2020-01-01T00:00:00Z")
    index = read(store(late, early, make_record(repeat=2), make_record(case="add")))

    assert [entry.id for entry in index.history(CELL)] == ["early", "late"]
    assert index.cells("executor", "local-coder") == [
        Cell("executor", "add", "local-coder", 1),
        CELL,
        CELL._replace(repeat=2),
    ]


@settings(max_examples=60)
@given(data=st.data())
def test_the_order_of_lines_and_files_changes_nothing(
    data: st.DataObject,
    store: Store,
    make_record: MakeRecord,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    outcomes = ["passed", "unsolved", "fault", "fault-grade"]
    records = [
        make_record(outcome, check=check)
        for outcome, check in data.draw(
            st.lists(
                st.tuples(st.sampled_from(outcomes), st.sampled_from(["c0", "c1"])), max_size=5
            )
        )
    ]
    done = [record for record in records if not (record.fault and record.fault.stage == "work")]
    if done:
        records += [
            make_record(outcome, check=check, kind="regrade", grades=graded.id)
            for outcome, check, graded in data.draw(
                st.lists(
                    st.tuples(
                        st.sampled_from(["passed", "unsolved", "fault-grade"]),
                        st.sampled_from(["c0", "c1"]),
                        st.sampled_from(done),
                    ),
                    max_size=4,
                )
            )
        ]
    folder = tmp_path_factory.mktemp("order")
    straight = read(store(*records, root=folder / "straight"))
    for part in data.draw(st.permutations(records)):
        info = RunInfo(
            run=data.draw(st.sampled_from(["run-1", "run-2"])), started="2026-01-01T00:00:00.000Z"
        )
        store(part, part, run=info, root=folder / "mixed")

    mixed = read(folder / "mixed")

    assert standing(mixed) == standing(straight)
    assert mixed.is_faulted(CELL) == straight.is_faulted(CELL)
    assert mixed.duplicates == len(records)
