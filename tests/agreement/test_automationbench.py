"""AutomationBench: published results of tasks score as their assertions say, by our sums."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.benchmarks.automationbench.office import OFFICE
from pytest_modelbench.benchmarks.jsonworlds.scoring import Finding, score, summed

DATA = Path(os.environ.get("MODELBENCH_DATA") or Path(__file__).parents[1] / "data")
DATA /= "automationbench"

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""(model, task) → why our score of it is not the published one."""


def lines(path: Path) -> list[dict[str, Any]]:  # Any: an outside record, judged by what it says
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


ROWS = lines(DATA / "run_scores.jsonl")
TASKS = [task for path in DATA.glob("*task*.json") for task in [json.loads(path.read_text())]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['task']}")
def test_score_is_the_published_one(row: dict[str, Any]) -> None:
    if (row["model"], row["task"]) in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[row["model"], row["task"]])
    found = summed([Finding(a["type"], a["passed"], a["excluded"]) for a in row["assertions"]])
    assert found.reward == pytest.approx(row["score"], abs=1e-9)
    assert found.done is row["passed"]
    assert (found.counted, found.passed) == (row["assertions_total"], row["assertions_passed"])


def test_rows_are_there() -> None:
    assert ROWS, f"{DATA} has no published score"


@pytest.mark.parametrize("task", TASKS, ids=lambda task: str(task["task"]))
def test_doing_nothing_earns_nothing_in_a_real_task(task: dict[str, Any]) -> None:
    world = task["info"]["initial_state"]
    found = score(task["info"]["assertions"], world, world, OFFICE.check)
    assert found.reward == 0.0
    assert not found.done
    # What is forbidden has not happened, and earns nothing for that.
    for finding in found.findings:
        assert finding.excluded is ("_not_" in finding.type and "body_not" not in finding.type)
