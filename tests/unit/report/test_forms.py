"""Markdown and data: every figure of a scorecard, in tables and unrounded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_modelbench.report.data import as_data
from pytest_modelbench.report.markdown import markdown

OUTCOMES = {
    "a": {"x": "ppu", "y": "pfu", "z": "uuu"},
    "b|<c>": {"x": "ppp", "y": "pu-", "z": "uuu"},
}


def tables(text: str) -> dict[str, list[list[str]]]:
    """Return the rows of the table below each heading, heads first, rule left out."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|") and not line.startswith("|-"):
            cells = line.replace("\\|", "\0").strip("|").split("|")
            found.setdefault(heading, []).append([cell.strip() for cell in cells])
    return found


def test_markdown_has_every_table(results: Any) -> None:
    text = markdown(results.card(OUTCOMES))
    found = tables(text)

    assert "**Interim**, no scorecard: 18 cells, 16 verdicts, 1 fault;" in text
    assert [row[:3] for row in found["Frontier"][1:]] == [
        ["b\0&lt;c&gt;", "9", "4/8"],
        ["a", "9", "3/8"],
    ]
    assert found["Cases"] == [
        ["case", "b\0&lt;c&gt;", "a"],
        ["x", "3/3", "2/3"],
        ["y", "1/2", "1/2"],
        ["z (none)", "0/3", "0/3"],
    ]
    assert found["Faults and missing cells"][1:] == [
        ["b\0&lt;c&gt;", "not run", "1"],
        ["a", "fault: server-error", "1"],
    ]
    assert ["a", "check test\\_it: AssertionError", "5"] in found["Where answers fail"]
    assert all(len({len(row) for row in rows}) == 1 for rows in found.values())
    assert text.endswith("\n")


def test_markdown_without_anything_stored(results: Any) -> None:
    text = markdown(results.count({"a": {"x": "-"}}))

    assert "1 cell, 0 verdicts, 0 faults" in text
    assert ["a", "not run", "1"] in tables(text)["Faults and missing cells"]


def test_data_is_unrounded_and_names_its_methods(results: Any) -> None:
    data = json.loads(json.dumps(as_data(results.card(OUTCOMES)), allow_nan=False))

    assert (data["status"], data["cells"], data["verdicts"], data["faults"]) == (
        "interim",
        18,
        16,
        1,
    )
    a = next(row for row in data["candidates"] if row["name"] == "a")
    assert a["rate"] == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert a["interval"]["method"] == "95% Wilson"
    assert a["by_case"]["y"] == {"passed": 1, "verdicts": 2}
    assert a["list_usd"] == {"sum": pytest.approx(0.08), "known": 8, "of": 8}
    assert a["tokens"]["cached"] == {"sum": None, "known": 0, "of": 8}
    assert a["failing_checks"] == [{"check": "test_it", "reason": "AssertionError", "count": 5}]
    (pair,) = data["pairs"]["compared"]
    assert (pair["cases"], pair["left_out"]) == (2, 1)
    assert pair["method"] == "exact sign-flip"
    assert pair["both"] is None
    assert data["pairs"]["adjusted_by"] == "Holm"
