"""BFCL: our verdict on an answer is upstream's, and so is the name of what is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.benchmarks.bfcl.conversation import Conversation, judge_conversation
from pytest_modelbench.benchmarks.bfcl.rules import judge

DATA = Path(os.environ.get("MODELBENCH_DATA") or Path(__file__).parents[1] / "data") / "bfcl"

EXCEPTIONS: dict[str, str] = {}
"""Id of a case → why our verdict on it is not upstream's."""

NOT_PORTED = ("memory", "web_search")
"""Beginnings of categories that are not here."""


def lines(path: Path) -> list[dict[str, Any]]:  # Any: an outside record, judged by what it says
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


CASES = {case["id"]: case for path in DATA.glob("cases/*.jsonl") for case in lines(path)}
ROWS = lines(DATA / "verdicts.jsonl")
HERE = [row for row in ROWS if not row["category"].startswith(NOT_PORTED)]
SINGLE = [row for row in HERE if not row["category"].startswith("multi_turn")]
TALKS = [row for row in HERE if row["category"].startswith("multi_turn")]


@pytest.mark.parametrize("row", SINGLE, ids=lambda row: f"{row['id']}-{row['kind']}")
def test_verdict_is_upstreams(row: dict[str, Any]) -> None:
    if row["id"] in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[row["id"]])
    case = CASES[row["id"]]
    ruling = judge(row["category"], case["function"], row["answer"], case.get("ground_truth") or [])
    upstream = row["upstream"]
    assert (ruling.valid, ruling.error or None) == (upstream["valid"], upstream["error_type"])


def test_rows_are_there() -> None:
    assert SINGLE, f"{DATA} has no verdict of a single turn"


@pytest.mark.parametrize("row", TALKS, ids=lambda row: f"{row['id']}-{row['kind']}")
def test_verdict_on_a_conversation_is_upstreams(row: dict[str, Any]) -> None:
    if row["id"] in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[row["id"]])
    case = CASES[row["id"]]
    conversation = Conversation(
        case["involved_classes"], case["initial_config"], case["ground_truth"]
    )
    ruling = judge_conversation(conversation, row["answer"])
    upstream = row["upstream"]
    assert (ruling.valid, ruling.error or None) == (upstream["valid"], upstream["error_type"])


def test_conversations_are_there() -> None:
    assert TALKS, f"{DATA} has no verdict on a conversation"


@pytest.mark.skipif(len(HERE) == len(ROWS), reason="all rows are of what is here")
def test_what_is_not_ported() -> None:
    pytest.skip(f"{len(ROWS) - len(HERE)} rows are of {', '.join(NOT_PORTED)}, which are not here")
