"""A task of the ledger met by a candidate through the gateway, certificates and all."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

ROOT = Path(__file__).parents[2]
KEPT = ("office-supplies", "sent-twice")

SCRIPT = """
[[cases.office-supplies.steps]]
calls = [{ name = "read_document", arguments = { document = "D-1" } }]
[[cases.office-supplies.steps]]
calls = [{ name = "post_entry", arguments = { date = "2026-01-04", text = "x", lines = [] } }]
[[cases.office-supplies.steps]]
calls = [{ name = "post_entry", arguments = { date = "2026-03-04", text = "Binders", document = \
"KB-2291", partner = "V-104", lines = [{ account = "4930", debit = 84 }, \
{ account = "1570", debit = "15.96" }, { account = "1600", credit = "99.96" }] } }]
[[cases.office-supplies.steps]]
calls = [{ name = "close_request", arguments = { outcome = "done", reason = "posted" } }]
[[cases.sent-twice.steps]]
content = "It is a duplicate, so I refuse it."
"""


@pytest.mark.slow
def test_what_is_done_counts_and_not_what_is_said(project: Project) -> None:
    folder = project.path / "cases" / "ledger"
    shutil.copytree(ROOT / "cases" / "ledger", folder)
    for task in (folder / "tasks").iterdir():
        if task.stem not in KEPT:
            task.unlink()
    project.write("scripts/clerk.toml", SCRIPT)
    project.candidate("clerk", agent="scripted", script="scripts/clerk.toml")
    ran = project.run("--models", "clerk")
    assert ran.exit == 0, ran.out
    # Reference and doing nothing, twice, five damaged answers and two.
    assert "11 certified" in ran.out
    assert {cell.case: passed for cell, passed in project.verdicts("clerk").items()} == {
        "office-supplies": [True],
        "sent-twice": [False],
    }
    (bought,) = [one for one in project.tries("clerk") if one.case == "office-supplies"]
    assert bought.counts["failed_calls"] == 1
    (twice,) = [one for one in project.tries("clerk") if one.case == "sent-twice"]
    assert twice.verdict is not None
    assert [(c.name, c.passed) for c in twice.verdict.checks] == [
        ("closed-as", False),
        ("nothing-posted", True),
    ]
    assert twice.verdict.reward == 0.0


@pytest.mark.slow
def test_a_mistake_in_a_task_stops_everything_before_it_starts(project: Project) -> None:
    folder = project.path / "cases" / "ledger"
    shutil.copytree(ROOT / "cases" / "ledger", folder)
    task = folder / "tasks" / "sums-wrong.toml"
    task.write_text(task.read_text().replace('"ledger_request"', '"ledger_requests"'))
    ran = project.run("--models", "reference")
    assert ran.exit == 4
    assert "sums-wrong.toml: assertion 1: the assertion type 'ledger_requests'" in ran.out
