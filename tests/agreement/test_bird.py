"""BIRD: legal SELECTs score as upstream's graders score them; what is forbidden is refused."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.benchmarks.bird.database import Answer, Status, query
from pytest_modelbench.benchmarks.bird.scores import execution_match, soft_f1

DATA = Path(os.environ.get("MODELBENCH_DATA") or Path(__file__).parents[1] / "data") / "bird"

EXCEPTIONS: dict[tuple[int, str], str] = {}
"""(question, kind) → why our score of it is not upstream's."""

FORBIDDEN = "forbidden:"
ENDLESS_SECONDS = 1.0


def rows() -> list[dict[str, Any]]:  # Any: an outside record, judged by what it says
    path = DATA / "verdicts.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


ROWS = rows() if (DATA / "verdicts.jsonl").exists() else []
LEGAL = [row for row in ROWS if not row["kind"].startswith(FORBIDDEN)]
REFUSED = [row for row in ROWS if row["kind"].startswith(FORBIDDEN)]


def ids(row: dict[str, Any]) -> str:
    return f"{row['question_id']}-{row['kind'].replace(':', '-')}"


@functools.cache
def questions() -> dict[int, dict[str, Any]]:
    found = json.loads((DATA / "questions.json").read_text("utf-8"))
    return {question["question_id"]: question for question in found}


def database(question_id: int) -> Path:
    return DATA / f"{questions()[question_id]['db_id']}.sqlite"


@functools.cache
def gold(question_id: int) -> Answer:
    answer = query(database(question_id), questions()[question_id]["SQL"])
    assert answer.status is Status.ROWS, answer.message
    return answer


@pytest.mark.parametrize("row", LEGAL, ids=ids)
def test_score_is_upstreams(row: dict[str, Any]) -> None:
    question_id = row["question_id"]
    if (question_id, row["kind"]) in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[question_id, row["kind"]])
    answer = query(database(question_id), row["sql"])
    wanted = gold(question_id).rows
    ran = answer.status is Status.ROWS
    scores = (
        int(ran and execution_match(answer.rows, wanted)),
        soft_f1(answer.rows, wanted) if ran else 0.0,
    )
    assert scores[0] == row["upstream"]["ex"], answer.message
    assert scores[1] == pytest.approx(row["upstream"]["soft_f1"], abs=1e-6)


@pytest.mark.parametrize("row", REFUSED, ids=ids)
def test_forbidden_is_refused(row: dict[str, Any]) -> None:
    before = database(row["question_id"]).read_bytes()
    answer = query(database(row["question_id"]), row["sql"], seconds=ENDLESS_SECONDS)
    # An endless SELECT is a SELECT: time ends it, and what would write never starts.
    endless = "RECURSIVE" in row["sql"].upper()
    assert answer.status is (Status.TIMEOUT if endless else Status.FORBIDDEN), answer.message
    assert answer.rows == ()
    assert database(row["question_id"]).read_bytes() == before


def test_rows_are_there() -> None:
    assert LEGAL, f"{DATA} has no verdict on a legal SELECT"
    assert REFUSED, f"{DATA} has no statement that is to be refused"
