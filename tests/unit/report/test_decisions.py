"""What is said beside a scorecard: look, split, fresh starts, repeats that left the same work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_modelbench.records import Cell, Role, Usage
from pytest_modelbench.report.decisions import (
    Shown,
    markdown_remarks,
    reading_data,
    remark_lines,
    remarks,
)
from pytest_modelbench.report.sameness import same_work
from pytest_modelbench.store.looks import Reading
from pytest_modelbench.store.reader import work_of

PAIR = {"a": {"x": "p", "y": "p"}, "b": {"x": "p", "y": "u"}}


def reading(number: int = 1, **changes: Any) -> Reading:
    fields: dict[str, Any] = {"resized": False, "complete": True, "new": ("id",)}
    return Reading(number=number, **(fields | changes))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (reading(), "1; the grid is complete; a pair is decided at p < 0.05"),
        (
            reading(3, complete=False),
            "3; interim: the grid is not complete; a pair is decided at p < 0.001",
        ),
        (
            reading(2, resized=True, new=()),
            "2 again, nothing new is shown; the grid is complete; its declared size changed after "
            "a look; a pair is decided at p < 0.025",
        ),
    ],
)
def test_a_look_says_which_it_is_and_what_decides(results: Any, given: Reading, said: str) -> None:
    assert remarks(results.card(PAIR), Shown(given)) == {"look": said}


def test_eval_says_when_a_fresh_sample_is_due(results: Any) -> None:
    card = results.card(PAIR)
    fourth = remarks(card, Shown(reading(split="eval", eval_readings=4)))["split"]
    assert fourth == "eval, reading 4 of 5 of these cases"
    fifth = remarks(card, Shown(reading(split="eval", eval_readings=5)))["split"]
    assert "a fresh sample is due" in fifth


def test_a_partial_run_says_what_it_has_not(results: Any) -> None:
    card = results.card(PAIR)
    assert list(remarks(card, Shown(None))) == ["partial"]
    assert reading_data(Shown(None))["look"] is None


def test_only_most_cases_alike_are_noted(results: Any) -> None:
    card = results.card(PAIR)
    shown = Shown(reading(), draw="split dev", alike={"a": (5, 10), "b": (6, 10)})
    said = remarks(card, shown)
    assert said["alike"].startswith("all repeats left the same work: b in 6 of 10 cases;")
    assert said["drawn"] == "split dev: 2 cases"
    lines = remark_lines(card, shown, 60)
    assert all(len(line) <= 60 for line in lines)
    assert json.dumps(reading_data(shown), allow_nan=False)
    assert "\n\n- look: 1; " in markdown_remarks(card, shown)


def test_a_cost_that_a_program_reports_is_doubted_aloud(results: Any) -> None:
    card = results.card(PAIR)
    shown = Shown(reading(), reported={"a": (0.0288712, 3.67), "b": (1.0, 1.5)})
    said = remarks(card, shown)["reported"]
    assert said.startswith("WARNING: a: it reports $3.67, 127 times more than the $0.0289 ")
    assert " b: " not in said
    assert any("WARNING" in line for line in remark_lines(card, shown))


def test_unread_tool_calls_are_told_with_what_to_look_at(results: Any, record: Any) -> None:
    """FR12."""
    counts = {"turns": 3, "tool_calls_as_text": 3}
    results.append(
        *(record("weak", case, 1, "u", counts=counts) for case in "xy"),
        record("well", "x", 1, "p", counts={"turns": 4}),
    )
    card = results.count({"weak": {"x": "-", "y": "-"}, "well": {"x": "-", "y": "-"}})
    assert remarks(card, Shown(reading()))["tools"] == (
        "WARNING: weak: 6 of 6 replies held an unread tool call: look at the server's tool parser"
    )


def test_a_model_without_a_price_is_named_once_with_the_setting(results: Any, record: Any) -> None:
    """FR01."""
    unpriced = {Role.CANDIDATE: Usage(calls=1, input=10, output=1)}
    results.append(
        *(
            record("own", case, 1, "p", usage=unpriced, served_model="acme-coder-9b")
            for case in "xy"
        ),
        record("paid", "x", 1, "p"),
        record("silent", "x", 1, "p", usage={Role.CANDIDATE: Usage(calls=1, unmetered=1)}),
    )
    grid = {name: {"x": "-", "y": "-"} for name in ("own", "paid", "silent")}
    said = remarks(results.count(grid), Shown(reading()))["price"]
    assert said.count("acme-coder-9b") == 1
    assert said == (
        "no list price is known of own (acme-coder-9b): give one by price or list_price_of in "
        "[candidates.NAME]"
    )


def test_same_work_is_told_by_the_harvest_of_all_repeats() -> None:
    def attempts(case: str, *kept: dict[str, Any]) -> list[tuple[Cell, int | None]]:
        return [
            (
                Cell("executor", case, "a", repeat),
                work_of(one.get("harvest"), one.get("evidence", {})),
            )
            for repeat, one in enumerate(kept, 1)
        ]

    same = {"harvest": {"x.py": "1"}}
    blob = {"evidence": {"harvest": "sha256:1"}}
    found = [
        *attempts("inline", same, dict(same)),
        *attempts("differs", same, {"harvest": {"x.py": "2"}}),
        *attempts("blobs", blob, dict(blob)),
        *attempts("answers", *[{"evidence": {"transcript": f"sha256:{n}"}} for n in (1, 2)]),
        *attempts("one-only", same),
        *attempts("unknown", {}, {}),
    ]
    assert same_work(found, 2) == {"a": (2, 4)}
