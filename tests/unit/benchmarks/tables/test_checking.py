"""Fields that a function of the pack's own compares."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_modelbench.benchmarks.tables.checking import read_checks
from pytest_modelbench.benchmarks.tables.comparing import parse_rule
from pytest_modelbench.benchmarks.tables.provider import Table
from pytest_modelbench.cli import main
from pytest_modelbench.errors import PackProblem, PackProblems
from pytest_modelbench.packs.reading import read_pack

PAGE = (Path(__file__).parents[4] / "docs" / "cases-from-a-table.md").read_text("utf-8")
(CHECK,) = re.findall(r"^# cases/tickets/check\.py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TABLE = "key,text,category\n1,a bill,billing\n2,a card,payment\n3,a lamp,other\n"


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the page's pack, with its check and the table beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tickets.csv").write_text(TABLE)
    folder = tmp_path / "cases" / "tickets"
    folder.mkdir(parents=True)
    (folder / "check.py").write_text(CHECK)
    return folder


def imported() -> int:
    wanted = ["--id", "key", "--input", "text", "--expected", "category=check"]
    return main(["import", "tickets.csv", *wanted])


def test_the_pages_check_compares(pack: Path) -> None:
    assert imported() == 0
    (case, *_) = (found := read_pack(pack, pack)).cases
    assert len(found.cases) == 3
    assert case.source is not None
    assert case.given is not None
    table = case.source.benchmark
    assert isinstance(table, Table)
    rewards = {}
    for answer in ("billing", "payment", "other"):
        verdict = table.verify(case.given.private, {"answer": {"category": answer}})
        rewards[answer] = (verdict.passed, verdict.reward)
    assert rewards == {"billing": (True, 1.0), "payment": (False, 0.5), "other": (False, 0.0)}


def test_its_code_is_part_of_the_check(pack: Path) -> None:
    imported()

    def version() -> str:
        case = read_pack(pack, pack).cases[0]
        assert case.source is not None
        return case.source.benchmark.rules_version

    before = version()
    assert version() == before
    (pack / "check.py").write_text(CHECK.replace("0.5", "0.25"))
    assert version() != before


def test_what_is_not_there_is_told(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pack / "check.py").unlink()
    assert imported() == 4
    assert "check.py: is not there; write def category(gold, answer)" in capsys.readouterr().err
    (pack / "check.py").write_text("def other(gold, answer): return True\n")
    assert imported() == 4
    assert "has no function 'category'" in capsys.readouterr().err
    (pack / "check.py").write_text(CHECK)
    imported()
    (pack / "check.py").write_text("1 / 0\n")
    with pytest.raises((PackProblem, PackProblems), match="ZeroDivisionError"):
        read_pack(pack, pack)


@pytest.mark.parametrize("result", ["2", "None", "'yes'", "-0.1", "float('nan')"])
def test_a_result_that_is_no_share_is_a_fault(pack: Path, result: str) -> None:
    (pack / "check.py").write_text(f"def category(gold, answer): return {result}\n")
    rule = parse_rule("check", "category", read_checks(pack))
    said = r"check.py: category\('gold', 'answer'\) returned .*; return True, False or a share"
    with pytest.raises(PackProblem, match=said):
        rule.share("gold", "answer")


def test_what_a_check_raises_ends_an_import_with_its_place(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pack / "check.py").write_text("def category(gold, answer):\n    return 1 / 0\n")
    assert imported() == 4
    said = "check.py:2: category('billing', 'billing') raised ZeroDivisionError: division by zero"
    assert f"{said}; mend it" in capsys.readouterr().err
    assert not (pack / "cases.jsonl").exists()


def test_a_check_that_takes_everything_makes_no_case(pack: Path) -> None:
    """Its damaged answer would pass: certification says so of every row."""
    (pack / "check.py").write_text("def category(gold, answer): return True\n")
    assert imported() == 1
    assert "outcome-not-gradable" in (pack / "certification.jsonl").read_text()
