"""Looks: what counts as one, and at which level it decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.stats import Stage
from pytest_modelbench.store.looks import LOOKS, Looks, Reading, Showing, append_look

TEN = tuple(f"c{n}" for n in range(10))
TWENTY = tuple(f"c{n}" for n in range(20))


def showing(
    cases: tuple[str, ...] = TEN,
    candidates: tuple[str, ...] = ("a", "b"),
    *,
    known: int | None = None,
    split: str = "",
    repeats: int = 1,
    series: str = "",
) -> Showing:
    """Verdicts of the first ``known`` cases, all of them by default."""
    verdicts = {
        f"{candidate}/{case}/{repeat}{series}": candidate
        for candidate in candidates
        for case in cases[:known]
        for repeat in range(repeats)
    }
    cells = len(cases) * len(candidates) * repeats
    return Showing("p", cases, candidates, repeats, cells, verdicts, split)


class Shown:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs = 0

    def __call__(self, shown: Showing) -> Reading:
        self.runs += 1
        reading = Looks.read(self.root).reading(shown)
        append_look(
            self.root, f"run-{self.runs}", f"2026-01-01T00:00:{self.runs:02}Z", shown, reading
        )
        return reading


@pytest.fixture
def show(tmp_path: Path) -> Shown:
    return Shown(tmp_path)


def test_an_interim_look_and_the_last_one_at_the_declared_size(show: Shown) -> None:
    first = show(showing(known=5))
    assert (first.number, first.stage, first.level) == (1, Stage.INTERIM, 0.001)
    last = show(showing())
    assert (last.number, last.stage, last.level) == (2, Stage.DECLARED, 0.05)
    assert len(last.new) == 10


def test_a_replay_is_no_look_and_decides_what_it_decided(show: Shown) -> None:
    show(showing())
    show(showing(TWENTY))
    again = show(showing(TWENTY))
    assert (again.number, again.level, again.new) == (2, 0.025, ())
    smaller = show(showing())
    assert (smaller.number, smaller.stage, smaller.level) == (1, Stage.DECLARED, 0.05)
    assert len(Looks.read(show.root).looks) == 2


def test_a_grid_that_was_extended_after_it_was_shown_decides_at_alpha_over_looks(
    show: Shown,
) -> None:
    show(showing(known=5))
    show(showing())
    third = show(showing(TWENTY))
    assert (third.number, third.stage) == (3, Stage.EXTENDED)
    assert third.level == pytest.approx(0.05 / 3)
    assert show(showing(TWENTY, repeats=2)).level == pytest.approx(0.05 / 4)


def test_more_repeats_after_a_look_extend_the_grid(show: Shown) -> None:
    show(showing())
    more = showing(repeats=2)
    assert show(more).stage is Stage.EXTENDED


def test_a_look_at_dev_is_no_look_at_the_whole_pack(show: Shown) -> None:
    """It is there to be tuned on and decides nothing: the declared size has not changed."""
    show(showing(TEN[:4], split="dev"))
    whole = show(showing())
    assert (whole.number, whole.stage, whole.level) == (1, Stage.DECLARED, 0.05)
    tuned = show(showing(TEN[:5], split="dev"))
    assert tuned.stage is Stage.EXTENDED  # dev itself was resized
    held_out = show(showing(TEN[4:], split="eval"))
    assert held_out.stage is Stage.EXTENDED  # of the whole pack, which was shown


def test_one_candidate_alone_is_no_look_at_a_comparison(show: Shown) -> None:
    show(showing(TEN, ("a",)))
    both = show(showing(TWENTY))
    assert (both.number, both.stage) == (1, Stage.DECLARED)
    with_a_third = show(showing(TWENTY, ("a", "b", "c")))
    assert (with_a_third.number, with_a_third.stage) == (2, Stage.DECLARED)


def test_other_cases_and_fresh_results_are_other_looks(show: Shown) -> None:
    show(showing(TEN))
    assert show(showing(tuple(f"d{n}" for n in range(20)))).number == 1
    assert show(showing(TWENTY, series="-fresh")).number == 1


def test_nothing_to_show_is_no_look(show: Shown) -> None:
    empty = show(showing(known=0))
    assert (empty.new, empty.stage) == ((), Stage.INTERIM)
    assert not (show.root / LOOKS).exists()


def test_readings_of_eval_are_counted(show: Shown) -> None:
    assert [
        show(showing(TEN, (f"try-{n}", "base"), split="eval")).eval_readings for n in range(5)
    ] == [1, 2, 3, 4, 5]
    due = show(showing(TEN, ("try-4", "base"), split="eval"))
    assert (due.eval_readings, due.fresh_sample_due) == (5, True)  # a replay reads nothing new
    fresh = show(showing(tuple(f"f{n}" for n in range(10)), split="eval"))
    assert (fresh.eval_readings, fresh.fresh_sample_due) == (1, False)
    assert show(showing(TEN, ("x",), split="dev")).eval_readings == 0


def test_a_torn_line_costs_itself_only(show: Shown) -> None:
    show(showing(known=5))
    path = show.root / LOOKS
    path.write_bytes(path.read_bytes()[:-20])
    show(showing())
    looks = Looks.read(show.root)
    assert [look.number for look in looks.looks] == [1]
    assert len(looks.damages) == 1
    assert f"{path}:1" in looks.damages[0]


def test_a_later_schema_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / LOOKS).write_text('{"schema":9,"kind":"look"}\n', encoding="utf-8")
    with pytest.raises(StoreProblem, match="schema version 9 is not known"):
        Looks.read(tmp_path)


def test_looks_merged_by_union_count_once(show: Shown) -> None:
    show(showing(known=5))
    path = show.root / LOOKS
    path.write_bytes(path.read_bytes() * 2)
    assert len(Looks.read(show.root).looks) == 1
