from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.records import (
    AttemptRecord,
    Cell,
    Check,
    Outcome,
    Role,
    Trust,
    Usage,
    Verdict,
)
from pytest_modelbench.store.entry import Spent
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.looks import LOOKS, Looks
from pytest_modelbench.store.reader import is_all, read, read_headers

Store = Callable[..., Path]
MakeRecord = Callable[..., AttemptRecord]


@pytest.fixture
def six(store: Store, make_record: MakeRecord) -> tuple[Path, Path]:
    """Return the results folder and the file of a run with six tries."""
    root = store(*(make_record(repeat=n) for n in range(1, 7)))
    (path,) = root.glob("*/*/*.jsonl")
    return root, path


def repeats(root: Path) -> set[int]:
    return {entry.repeat for entry in read(root).entries()}


def test_an_entry_says_what_the_record_says(store: Store, make_record: MakeRecord) -> None:
    record = make_record(
        "unsolved",
        candidate="openai/qwen:7b",
        note="at home",
        verdict=Verdict(
            passed=False,
            reward=0.25,
            reason="wrong",
            trust=Trust.EVIDENT,
            checks=(Check(name="a", passed=True), Check(name="b", passed=False, reason="boom")),
        ),
        usage={Role.CANDIDATE: Usage(calls=2, input=10, list_usd=0.5)},
        counts={"turns": 3},
        box="bubblewrap",
        scripted=True,
        working=1.25,
        served_model="qwen-7b",
    )
    root = store(record)

    (entry,) = read(root, details=True).entries()

    assert entry.cell == Cell("executor", "fix-bug", "openai/qwen:7b", 1)
    assert (entry.outcome, entry.passed, entry.reward) == (Outcome.UNSOLVED, False, 0.25)
    assert (entry.reason, entry.stage, entry.note) == ("wrong", None, "at home")
    assert entry.seconds == 1.5
    detail = entry.detail
    assert detail is not None
    assert detail.failing == (("b", "boom"),)
    assert (detail.spent, detail.others) == (Spent(input=10, list_usd=0.5), ())
    assert detail.counts == {"turns": 3}
    assert (detail.trust, detail.box, detail.scripted) == ("evident", "bubblewrap", True)
    assert (detail.working, detail.served_model) == (1.25, "qwen-7b")
    assert read(root).record(entry) == record
    assert next(read(root).entries()).detail is None


def test_a_torn_last_line_costs_that_try_and_is_said(six: tuple[Path, Path]) -> None:
    root, path = six
    path.write_bytes(path.read_bytes()[:-60])

    index = read(root)

    assert {entry.repeat for entry in index.entries()} == {1, 2, 3, 4, 5}
    (damage,) = index.damages
    assert (damage.path, damage.line, damage.torn) == (path, 7, True)
    assert str(damage).startswith(f"{path}:7: the line is cut off")


def test_a_torn_line_and_blank_ones_cost_that_try(six: tuple[Path, Path]) -> None:
    root, path = six
    path.write_bytes(path.read_bytes()[:-60] + b"\n\n")

    index = read(root)

    assert {entry.repeat for entry in index.entries()} == {1, 2, 3, 4, 5}
    assert [(d.line, d.torn) for d in index.damages] == [(7, True)]


def test_a_whole_last_line_without_newline_counts(six: tuple[Path, Path]) -> None:
    root, path = six
    path.write_bytes(path.read_bytes()[:-1])

    assert repeats(root) == {1, 2, 3, 4, 5, 6}
    assert read(root).damages == []


def test_damage_in_the_middle_is_said_and_the_others_count(six: tuple[Path, Path]) -> None:
    root, path = six
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"outcome":"', b'"outcome":\0\0\0"')
    path.write_bytes(b"".join(lines))

    index = read(root)

    assert {entry.repeat for entry in index.entries()} == {1, 3, 4, 5, 6}
    (damage,) = index.damages
    assert (damage.line, damage.torn) == (3, False)
    assert f"{path}:3: the line is damaged" in str(damage)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"outcome": "won"}, "outcome: Input should be"),
        ({"seconds": "long"}, "seconds: Input should be a valid number"),
        ({"repeat": None}, "repeat: Input should be a valid integer"),
        ({"identity": {"task": "t"}}, "identity.check: Field required"),
        ({"verdict": None}, "no 'reward' in it"),
        ({"verdict": {"passed": False, "reward": 0}}, "contradict"),
        ({"verdict": {"passed": True, "reward": 7}}, "verdict.reward: "),
        ({"kind": "wish"}, "kind: String should match"),
        ({"usage": []}, "usage: Input should be a valid dict"),
        ({"usage": {"candidate": {"input": -1}}}, "usage.candidate.input: "),
        ({"usage": {"candidate": {"output": "some"}}}, "usage.candidate.output: "),
        ({"counts": {"turns": [2]}}, "counts.turns: "),
        ({"working": -1.0}, "working: "),
        ({"candidate": 3}, "candidate: "),
        ({"box": 3}, "box: "),
        ({"evidence": ["x"]}, "evidence: "),
        ({"verdict": {"passed": True, "reward": 1, "trust": "x"}}, "verdict.trust: "),
        ({"verdict": {"passed": True, "reward": 1, "measures": {"a": "b"}}}, "measures.a: "),
    ],
)
def test_json_that_is_no_result_is_damage_with_the_field(
    six: tuple[Path, Path], change: dict[str, object], said: str
) -> None:
    root, path = six
    lines = path.read_text(encoding="ascii").splitlines()
    lines[3] = json.dumps(json.loads(lines[3]) | change)
    path.write_text("\n".join(lines), encoding="ascii")

    index = read(root, details=True)

    assert {entry.repeat for entry in index.entries()} == {1, 2, 4, 5, 6}
    (damage,) = index.damages
    assert damage.line == 4
    assert said in damage.what


@pytest.mark.parametrize(
    "change",
    [
        {"grid": {"cases": [["x"]], "candidates": [], "repeats": 1}},
        {"grid": {"cases": [], "candidates": [], "repeats": "many"}},
        {"note": 5},
        {"started": None},
        {"run": 1},
        {"pack": ["executor"]},
        {"fresh": {"fix-bug": 5}},
    ],
)
def test_a_header_of_another_shape_is_damage_and_its_tries_count(
    six: tuple[Path, Path], change: dict[str, object]
) -> None:
    root, path = six
    head, *lines = path.read_text(encoding="ascii").splitlines()
    path.write_text("\n".join([json.dumps(json.loads(head) | change), *lines]), encoding="ascii")

    index = read(root)

    assert len(index) == 6
    assert [damage.line for damage in index.damages] == [1]
    (header,) = read_headers(root)
    assert (header.run, header.cases, header.repeats) == ("run-1", ("fix-bug",), 6)


@pytest.mark.parametrize(
    "line",
    ["[]", "3", "null", "{}", '{"schema": 1}', '"text"', "[" * 100_000, "[" * 900 + "]" * 900],
)
def test_json_of_another_shape_is_damage(six: tuple[Path, Path], line: str) -> None:
    root, path = six
    path.write_text(path.read_text(encoding="ascii") + line + "\n", encoding="ascii")

    index = read(root)

    assert len(index) == 6
    assert [damage.line for damage in index.damages] == [8]


def test_an_unknown_schema_version_is_refused_by_name(six: tuple[Path, Path]) -> None:
    root, path = six
    text = path.read_text(encoding="ascii")
    path.write_text(text.replace('"schema":1', '"schema":2'), encoding="ascii")

    with pytest.raises(StoreProblem, match=r"jsonl:1: schema version 2 is not known.*; upgrade"):
        read(root)


def test_a_copied_line_counts_once(six: tuple[Path, Path]) -> None:
    root, path = six
    copy = path.with_name("20300101T000000Z-copy.jsonl")
    copy.write_bytes(path.read_bytes())

    index = read(root)

    assert (len(index), index.duplicates, index.damages) == (6, 6, [])


def test_tries_in_the_folder_of_another_candidate_are_told_and_count_nowhere(
    six: tuple[Path, Path],
) -> None:
    root, path = six
    pack, candidate = path.parts[-3:-1]
    elsewhere = path.parent.with_name("another")
    path.parent.rename(elsewhere)

    index = read(root)

    assert len(index) == 0
    (damage,) = index.damages
    assert (damage.path, damage.line) == (elsewhere / path.name, 2)
    assert f"belong into the folder {pack}/{candidate}" in damage.what


def test_one_id_over_two_different_tries_is_said(six: tuple[Path, Path]) -> None:
    root, path = six
    line = json.loads(path.read_text(encoding="ascii").splitlines()[1])
    forged = json.dumps(line | {"note": "better"})
    path.with_name("20300101T000000Z-forged.jsonl").write_text(forged, encoding="ascii")

    index = read(root)

    assert len(index) == 6
    (damage,) = index.damages
    assert "with other content" in damage.what
    assert {entry.note for entry in index.entries()} == {""}


def test_reading_changes_nothing(six: tuple[Path, Path]) -> None:
    root, path = six
    path.write_bytes(path.read_bytes()[:-60])

    def state() -> dict[Path, tuple[int, bytes]]:
        files = [file for file in root.rglob("*") if file.is_file()]
        return {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}

    before = state()
    index = read(root, details=True)
    for entry in index.entries():
        index.record(entry)

    assert state() == before


def test_what_cannot_be_read_is_refused_by_name_and_waits_for_nobody(
    six: tuple[Path, Path], tmp_path: Path
) -> None:
    root, path = six
    other = path.with_name("20300101T000000Z-other.jsonl")
    for make in (other.mkdir, partial(os.mkfifo, other), partial(other.symlink_to, "nowhere")):
        make()
        for reads in (read, read_headers, is_all_of_nothing):
            with pytest.raises(
                StoreProblem, match=r"other.jsonl: results cannot be read: .*no file"
            ):
                reads(root)
        other.rmdir() if other.is_dir() else other.unlink()
    (root / LOOKS).mkdir()
    with pytest.raises(StoreProblem, match=r"looks.jsonl: results cannot be read: it is no file"):
        Looks.read(root)


def is_all_of_nothing(root: Path) -> bool:
    return is_all(Index(), root)


def test_windows_line_ends_are_read(six: tuple[Path, Path]) -> None:
    root, path = six
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    index = read(root)

    assert (len(index), index.damages) == (6, [])
    assert {index.record(entry).repeat for entry in index.entries()} == {1, 2, 3, 4, 5, 6}


def test_a_record_whose_file_changed_is_not_taken_for_another(six: tuple[Path, Path]) -> None:
    root, path = six
    index = read(root)
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))

    with pytest.raises(StoreProblem, match="file changed after it was read"):
        index.record(next(index.entries()))


def test_nothing_stored_is_an_empty_index(tmp_path: Path) -> None:
    index = read(tmp_path / "results")

    assert (len(index), index.packs(), index.damages) == (0, [], [])


def test_packs_and_candidates_narrow_what_is_read(store: Store, make_record: MakeRecord) -> None:
    root = store(
        make_record(pack="one", candidate="a"),
        make_record(pack="one", candidate="b"),
        make_record(pack="two", candidate="a"),
    )

    assert read(root).packs() == ["one", "two"]
    assert read(root, {"one"}).candidates("one") == ["a", "b"]
    assert [e.cell[:3] for e in read(root, {"two"}, {"a"}).entries()] == [("two", "fix-bug", "a")]
