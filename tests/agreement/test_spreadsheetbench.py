"""SpreadsheetBench: a workbook passes where upstream's evaluator lets it pass."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.benchmarks.spreadsheetbench.positions import (
    PositionProblem,
    difference,
    read_as_upstream,
    read_strictly,
)
from pytest_modelbench.benchmarks.spreadsheetbench.values import compare

pytest.importorskip("openpyxl", reason="workbooks need openpyxl: pytest-modelbench[spreadsheet]")

DATA = Path(os.environ.get("MODELBENCH_DATA") or Path(__file__).parents[1] / "data")
DATA /= "spreadsheetbench"

EXCEPTIONS: dict[tuple[str, int, str], str] = {}
"""(task, case, kind) → why our verdict on it is not upstream's."""


def lines(path: Path) -> list[dict[str, Any]]:  # Any: an outside record, judged by what it says
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


ROWS = lines(DATA / "verdicts.jsonl")
POSITIONS = lines(DATA / "answer_positions.jsonl")
TASKS = {
    str(task["id"]): task
    for task in (json.loads((DATA / "dataset.json").read_text("utf-8")) if ROWS else [])
}


def output_of(row: dict[str, Any]) -> Path:
    name = row["output"]
    if name is None:
        return DATA / "outputs" / "missing.xlsx"
    return DATA / ("spreadsheet" if "/" in name else "outputs") / name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['id']}-{row['case']}-{row['kind']}")
def test_verdict_is_upstreams(row: dict[str, Any]) -> None:
    key = (str(row["id"]), row["case"], row["kind"])
    if key in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[key])
    task_id, case = key[0], row["case"]
    answer = DATA / "spreadsheet" / task_id / f"{case}_{task_id}_answer.xlsx"
    try:
        areas = read_as_upstream(TASKS[task_id]["answer_position"])
    except PositionProblem:
        assert row["upstream"]["pass"] is False
        return
    found = compare(answer, output_of(row), areas)
    assert found.passed is row["upstream"]["pass"], found.wrong


@pytest.mark.parametrize(
    "position", [row["answer_position"] for row in POSITIONS], ids=[str(r["id"]) for r in POSITIONS]
)
def test_a_position_is_read_alike_or_the_difference_is_said(position: str) -> None:
    try:
        upstream = read_as_upstream(position)
        strict = read_strictly(position)
    except PositionProblem:
        assert difference(position)
    else:
        assert (difference(position) == "") is (upstream == strict)


def test_rows_are_there() -> None:
    assert ROWS, f"{DATA} has no verdict"
