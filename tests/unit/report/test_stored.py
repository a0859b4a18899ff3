from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import pytest

from pytest_modelbench.records import CheckRecord, Identity
from pytest_modelbench.report import stored
from pytest_modelbench.report.data import as_data
from pytest_modelbench.report.markdown import markdown
from pytest_modelbench.report.stored import report_all
from pytest_modelbench.report.tally import tally
from pytest_modelbench.report.terminal import render
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.reader import read


def test_one_card_a_note_and_pack(results: Any) -> None:
    results.store({"a": {"x": "p", "y": "u"}}, run="run-1", note="monday")
    results.store({"b": {"x": "p", "y": "p"}}, run="run-2", note="friday")

    report = report_all(results.root)

    assert [(card.note, card.grid.candidates) for card in report.cards] == [
        ("friday", ("b",)),
        ("monday", ("a",)),
    ]
    assert [card.rows[0].passes for card in report.cards] == [2, 1]
    assert all(card.complete for card in report.cards)
    assert (report.damages, report.duplicates) == ((), 0)


def test_a_run_counts_what_it_replayed_of_another_note(results: Any) -> None:
    """As its own report did: the grid is what the run declared, and a cell has one verdict."""
    results.store({"a": {"x": "p", "y": "-"}}, run="run-1", note="monday")
    results.store({"a": {"x": "-", "y": "p"}, "b": {"x": "u", "y": "p"}}, run="run-2", note="two")

    monday, two = report_all(results.root).cards

    assert [row.candidate for row in monday.rows] == ["a"]
    assert (monday.complete, two.complete) == (True, True)
    assert {row.candidate: row.by_case for row in two.rows} == {
        "a": {"x": (1, 1), "y": (1, 1)},
        "b": {"x": (0, 1), "y": (1, 1)},
    }
    assert [(pair.cases, pair.a_more, pair.b_more) for pair in two.pairs] == [(2, 1, 0)]
    assert "notes    a: verdicts by note: 'monday' 1, 'two' 1" in render(two)
    assert as_data(two)["candidates"][1]["notes"] == {"two": 2}
    assert "- a: verdicts by note: 'monday' 1, 'two' 1." in markdown(two)


def test_what_completes_a_stored_grid_is_said(results: Any) -> None:
    results.store({"a": {"x": "ppp"}, "b": {"x": "pup"}, "c": {"x": "p--"}}, note="two slots")
    results.store({"rules": {"x": "p"}}, run="run-2", note="two slots")

    deep, shallow = report_all(results.root).cards
    text = " ".join(" ".join(render(deep, 200)).split())

    assert "same arguments" not in text
    assert (
        "Run them: pytest --models c --modelbench-repeats 3 --modelbench-note 'two slots' with the "
        "folder of executor complete a, b: modelbench report executor --models a,b apart rules has "
        "1 case x 1 repeat; to compare: modelbench report executor --models a,rules"
    ) in text
    assert not any(line.startswith("complete") for line in render(shallow))
    told = markdown(deep)
    assert "- Complete: a, b: modelbench report executor --models a,b." in told
    (whole,) = report_all(results.root, candidates={"a", "b"}).cards
    assert (whole.complete, whole.verdicts, len(whole.pairs)) == (True, 6, 1)


def test_to_try_one_case_more_often_leaves_a_scorecard_complete(results: Any) -> None:
    results.store({"a": {"x": "p", "y": "u", "z": "p"}})
    results.store({"a": {"y": "uu"}}, run="run-2")

    (card,) = report_all(results.root).cards

    assert (card.grid.cases, card.grid.repeats, card.complete) == (("x", "y", "z"), 1, True)
    assert card.rows[0].by_case["y"] == (0, 1)


def test_a_candidate_that_was_to_do_less_leaves_the_scorecard_of_others_complete(
    results: Any, record: Any
) -> None:
    results.store({"a": {"x": "pup", "y": "ppp"}, "b": {"x": "uuu", "y": "ppu"}})
    results.store({"c": {"x": "p", "y": "u"}}, run="run-2")
    results.store({"d": {"x": "p"}}, run="run-3")
    results.store({"reference": {"x": "p", "y": "p"}}, run="run-4")
    results.append(*(record("reference", case, n, "p", note="") for case in "xy" for n in (2, 3)))

    cards = report_all(results.root).cards

    assert [
        (card.grid.candidates, card.grid.cases, card.grid.repeats, card.complete, len(card.pairs))
        for card in cards
    ] == [
        (("a", "b"), ("x", "y"), 3, True, 1),
        (("c", "reference"), ("x", "y"), 1, True, 0),
        (("d",), ("x",), 1, True, 0),
    ]
    assert cards[0].rows[0].by_case == {"x": (2, 3), "y": (3, 3)}
    # Who names candidates, or what to compare with, wants one grid: of what all of them have.
    (card,) = report_all(results.root, candidates={"a", "c"}).cards
    assert (card.cells, card.verdicts, card.complete) == (4, 4, True)
    assert {row.candidate: row.by_case for row in card.rows} == {
        "a": {"x": (1, 1), "y": (1, 1)},
        "c": {"x": (1, 1), "y": (0, 1)},
    }
    told = " ".join(" ".join(render(card)).split())
    assert "apart a has 2 cases x 3 repeats, of which what all have counts" in told
    (card,) = report_all(results.root, candidates={"a", "d"}).cards
    assert (card.grid.cases, card.grid.repeats, card.complete) == (("x",), 1, True)
    compared, *others = report_all(results.root, baseline="a").cards
    assert (set(compared.grid.candidates), len(compared.pairs)) == ({"a", "b", "c"}, 2)
    assert [card.grid.candidates for card in others] == [("d",), ("reference",)]


def test_what_certifies_is_in_no_card_unless_it_was_asked_for(results: Any, record: Any) -> None:
    results.store({"a": {"x": "p"}})
    results.append(record("reference", "x", 1, "p"), record("reference+broken", "x", 1, "u"))

    (card,) = report_all(results.root).cards

    assert card.grid.candidates == ("a",)


def test_a_certificate_is_more_attempts_than_a_run_asked_for(results: Any, record: Any) -> None:
    """Whichever came first: three attempts certify, and a grid of one repeat counts one."""
    outcomes = {"reference": {"x": "p"}, "a": {"x": "u"}}
    results.store(outcomes)
    results.append(*(record("reference", "x", n, "pup"[n - 1], note="") for n in (2, 3)))

    (card,) = report_all(results.root).cards

    assert card.grid.repeats == 1
    assert {row.candidate: row.by_case["x"] for row in card.rows} == {
        "reference": (1, 1),
        "a": (0, 1),
    }
    assert card.complete
    assert {row.candidate: row.by_case for row in results.count(outcomes).rows} == {
        row.candidate: row.by_case for row in card.rows
    }


def test_a_run_whose_header_is_damaged_declares_what_it_holds(results: Any) -> None:
    results.store({"a": {"x": "p"}})
    results.store({"b": {"x": "pup"}}, run="run-2")
    (path,) = (results.root / "executor" / "b").glob("*.jsonl")
    path.write_bytes(b"{" + path.read_bytes())

    report = report_all(results.root)

    assert [(card.grid.candidates, card.grid.repeats) for card in report.cards] == [
        (("a",), 1),
        (("b",), 3),
    ]
    assert [card.rows[0].by_case["x"] for card in report.cards] == [(1, 1), (2, 3)]
    assert len(report.damages) == 1


def test_the_newest_version_of_a_reference_is_its_own(results: Any, record: Any) -> None:
    """Where no project tells what is current: a later try by seed has no reference to tell."""
    named = {
        name: Identity(task="t1", check="c1", candidate=name) for name in ("reference", "seed")
    }
    named["reference"] = named["reference"].model_copy(update={"reference": "r1"})
    results.store({"reference": {"x": "-"}, "seed": {"x": "-"}})
    results.append(record("reference", "x", 1, "p", identity=named["reference"]))
    results.append(record("seed", "x", 1, "u", identity=named["seed"]))

    (card,) = report_all(results.root).cards

    assert card.old == ()
    assert {row.candidate: row.by_case["x"] for row in card.rows} == {
        "reference": (1, 1),
        "seed": (0, 1),
    }


def test_times_are_of_the_candidates_of_the_grid(results: Any, record: Any) -> None:
    results.append(record("reference", "x", 1, "p", started="2020-01-01T00:00:00.000Z"))
    results.store({"a": {"x": "p"}})

    (card,) = report_all(results.root).cards

    assert card.first_started > "2026"


def test_a_narrowed_report_reads_only_what_it_is_about(results: Any) -> None:
    results.store({"a": {"x": "p"}, "b": {"x": "u"}})
    results.store({"c": {"x": "p"}}, run="run-2")
    (results.root / "executor" / "c" / "junk.jsonl").write_text("junk", encoding="ascii")

    (card,) = report_all(results.root, candidates={"a", "b"}).cards
    whole = report_all(results.root)

    assert card.grid.candidates == ("a", "b")
    assert [str(damage).partition(":")[0][-10:] for damage in whole.damages] == ["junk.jsonl"]
    assert report_all(results.root, packs={"none"}).cards == ()


def test_identities_and_certificates_are_by_pack(results: Any) -> None:
    results.store({"a": {"x": "p", "y": "u"}})

    def identify(pack: str, case: str, candidate: str) -> Identity | None:
        assert pack == "executor"
        return Identity(task="t9", check="c1", candidate="m1") if case == "x" else None

    (card,) = report_all(
        results.root, identify=identify, uncertified={"executor": {"y": "the seed passes"}}
    ).cards

    assert (card.cells, card.verdicts) == (1, 0)
    assert {(old.case, old.changed) for old in card.old} == {("x", ("task",))}
    assert card.uncertified == {"y": "the seed passes"}


def test_no_results_is_an_empty_report(results: Any) -> None:
    assert report_all(results.root).cards == ()


def test_plain_cases_count_as_the_general_way_counts_them(
    results: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is counted a case at a time, for speed, is what the rules come to cell by cell."""
    outcomes = {"a": {"x": "pufg", "y": "pp-u"}, "b": {"x": "ffff", "y": "uuup"}}
    results.store(outcomes, note="n")
    quick = report_all(results.root)

    monkeypatch.setattr(Index, "is_plain", lambda index, tries: False)

    assert report_all(results.root) == quick


def test_several_processes_count_what_one_does(
    results: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.store({"a": {"x": "pu", "y": "pf"}, "b": {"x": "uu", "y": "-p"}})
    (results.root / "executor" / "b" / "junk.jsonl").write_text("junk", encoding="ascii")
    alone = report_all(results.root)

    monkeypatch.setattr(stored, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # pytest's own hold none of its locks

    assert report_all(results.root) == alone
    assert len(alone.damages) == 1


def test_users_own_tests_are_counted_for_the_attempts_that_count(results: Any, record: Any) -> None:
    results.append(*(record("a", "x", n, "p", id=f"own-{n}") for n in range(1, 5)))
    path = next(results.root.rglob("*.jsonl"))
    found = [("own-1", "s1", True, ""), ("own-2", "s1", False, "assert 1 == 2")]
    found += [("own-1", "s2", False, "too long"), ("own-2", "s2", True, "")]
    found += [("own-3", "s2", False, ""), ("another", "s2", True, "")]
    with path.open("a") as file:
        for number, (attempt, source, passed, reason) in enumerate(found):
            check = CheckRecord(
                id=f"check-{number}",
                run="run-0",
                pack="executor",
                case="x",
                candidate="a",
                repeat=1,
                attempt=attempt,
                name="tests/test_own.py::test_short",
                source=source,
                passed=passed,
                reason=reason,
                started=f"2026-01-09T10:00:0{number}.000Z",
                seconds=0.1,
            )
            file.write(check.to_line() + "\n")
    card = results.count({"a": {"x": "pppp"}})

    assert card.rows[0].own_tests == {"tests/test_own.py::test_short": (1, 3)}
    assert "tests    a: tests/test_own.py::test_short 1/3" in render(card)
    assert as_data(card)["candidates"][0]["own_tests"] == {
        "tests/test_own.py::test_short": {
            "passed": 1,
            "of": 3,
            "reasons": {"too long": 1, "failed": 1},
        }
    }
    told = markdown(card).split("### Own tests")[1]
    assert "| 1/3      | too long 1, failed 1 |" in told or "failed 1, too long 1" in told


def test_counts_survive_the_way_between_processes(results: Any) -> None:
    results.store({"a": {"x": "pufp", "y": "gu"}})
    tallied = tally(read(results.root, details=True), "executor", "a")

    assert pickle.loads(pickle.dumps(tallied)) == tallied
    (x,) = tallied.cases["x"]
    assert (x.passes, x.verdicts, x.faults) == (2, 3, (("server-error", 1),))
    assert x.by_repeat == ((1, True), (2, False), (4, True), (3, None))


def test_a_report_needs_no_library_before_it_counts() -> None:
    """Memory: what pydantic, numpy and scipy take is more than what is counted."""
    code = (
        "import sys\n"
        "from pytest_modelbench.report.stored import report_all\n"
        "from pytest_modelbench.report.terminal import render\n"
        "heavy = {'pydantic', 'numpy', 'scipy', 'hashlib'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
