"""When two cells count as equal, and what is said of two workbooks."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from pytest_modelbench.benchmarks.spreadsheetbench.positions import read_as_upstream
from pytest_modelbench.benchmarks.spreadsheetbench.values import compare, same

openpyxl = pytest.importorskip("openpyxl", reason="workbooks need openpyxl")

NOON = datetime.datetime(2024, 3, 1, 12)


@pytest.mark.parametrize(
    ("wanted", "found", "equal"),
    [
        (None, "", True),
        (1, 1.004, True),
        (1, 1.006, False),
        (1, True, True),
        (0, None, False),
        ("1.50", 1.5, True),
        ("1e3", 1000, True),
        ("nan", "nan", False),
        ("a", "A", False),
        ("a", "a ", False),
        (datetime.datetime(2024, 3, 1), datetime.datetime(2024, 3, 1, 11), True),
        (datetime.datetime(2024, 3, 1), 45352, True),
        (NOON, datetime.datetime(2024, 3, 3), False),
        (datetime.time(9, 30, 15), datetime.time(9, 30, 59), True),
        (datetime.time(9, 30), "09:30", True),
        (datetime.date(2024, 3, 1), 45352, False),
    ],
)
def test_same(wanted: object, found: object, equal: bool) -> None:
    assert same(wanted, found) is equal


def book(path: Path, cells: dict[str, object], sheet: str = "Data") -> Path:
    made = openpyxl.Workbook()
    made.active.title = sheet
    for place, value in cells.items():
        made.active[place] = value
    made.save(path)
    return path


def test_workbooks(tmp_path: Path) -> None:
    answer = book(tmp_path / "a.xlsx", {"A1": 1, "B2": "x"})
    areas = read_as_upstream("A1:B2")
    outside = book(tmp_path / "o.xlsx", {"A1": 1, "B2": "x", "C9": "more"})
    assert compare(answer, outside, areas).passed
    wrong = compare(answer, book(tmp_path / "w.xlsx", {"A1": 1, "B2": "y"}), areas)
    assert (wrong.passed, wrong.wrong) == (False, "'Data', row 2, column 2: 'y' is not 'x'")
    formula = book(tmp_path / "f.xlsx", {"A1": "=1", "B2": "x"})
    assert not compare(answer, formula, areas).passed  # nobody has calculated it
    renamed = book(tmp_path / "r.xlsx", {"A1": 1, "B2": "x"}, "Other")
    assert compare(answer, renamed, areas).wrong == "there is no sheet 'Data'"
    assert compare(answer, tmp_path / "none.xlsx", areas).wrong == "there is no output"
    (tmp_path / "text.xlsx").write_text("no workbook")
    assert "cannot be opened" in compare(answer, tmp_path / "text.xlsx", areas).wrong
    assert compare(answer, renamed, read_as_upstream("BD2:308")).wrong
    with pytest.raises(FileNotFoundError):
        compare(tmp_path / "none.xlsx", answer, areas)
