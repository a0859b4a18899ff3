from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.checks.observation import Observation, Row
from pytest_modelbench.checks.verify import verify
from pytest_modelbench.records import Trust

GOOD = Observation(
    expected=("test_a", "test_b[1]"),
    rows=(
        Row(name="test_a", outcome="passed", phase="call"),
        Row(name="test_b[1]", outcome="passed", phase="call", trust=Trust.EVIDENT),
    ),
    ended=True,
    exit=0,
    seconds=0.1,
)


def passed(name: str) -> Row:
    """Return the row of a check that passed."""
    return Row(name=name, outcome="passed", phase="call")


def test_all_reported_passed_once_is_a_pass() -> None:
    verdict = verify(GOOD)
    assert verdict.passed
    assert verdict.reward == 1
    assert verdict.reason == ""
    assert [check.name for check in verdict.checks] == ["test_a", "test_b[1]"]
    assert verdict.trust is Trust.EVIDENT
    assert [check.trust for check in verdict.checks] == [Trust.TRUSTED, Trust.EVIDENT]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"expected": ()}, "wrong"),
        ({"expected": (), "rows": ()}, "no-evidence"),
        ({"rows": ()}, "wrong"),
        ({"rows": GOOD.rows[:1]}, "wrong"),
        ({"rows": (*GOOD.rows, passed("test_a"))}, "wrong"),
        ({"rows": (*GOOD.rows, passed("test_c"))}, "wrong"),
        ({"rows": (*GOOD.rows, Row(name="test_a", outcome="failed", phase="teardown"))}, "wrong"),
        ({"rows": (GOOD.rows[0], Row(name="test_b[1]", outcome="passed", phase="setup"))}, "wrong"),
        ({"expected": (*GOOD.expected, "test_a")}, "no-evidence"),
        ({"ended": False}, "no-evidence"),
        ({"exit": 1}, "no-evidence"),
        ({"exit": None}, "no-evidence"),
        ({"timed_out": True}, "grading-time"),
        ({"kind": "other"}, "no-evidence"),
        ({"grader": "0"}, "no-evidence"),
        ({"seconds": -1.0}, "no-evidence"),
        ({"seconds": float("nan")}, "no-evidence"),
        *(
            ({"rows": (GOOD.rows[0], Row(name="test_b[1]", outcome=word, phase="call"))}, "wrong")
            for word in ("failed", "skipped", "xfailed", "xpassed", "", "PASSED")
        ),
    ],
)
def test_missing_doubled_or_odd_evidence_is_no_pass(change: dict[str, Any], reason: str) -> None:
    verdict = verify(GOOD.model_copy(update=change))
    assert not verdict.passed
    assert verdict.reward == 0
    assert verdict.reason == reason


def test_a_check_says_why_in_a_short_word() -> None:
    rows = (
        Row(name="test_a", outcome="failed", phase="call", reason="ValueError", text="secret 42"),
        Row(name="test_b[1]", outcome="failed", phase="call", reason="expected 42\nnot 41"),
    )
    checks = verify(GOOD.model_copy(update={"rows": rows, "exit": 1})).checks
    assert [check.reason for check in checks] == ["ValueError", "failed"]
    assert [check.reason for check in verify(GOOD.model_copy(update={"rows": ()})).checks] == [
        "not reported",
        "not reported",
    ]
    late = GOOD.model_copy(update={"rows": GOOD.rows[:1], "timed_out": True})
    assert [check.reason for check in verify(late).checks] == ["", "timed out"]


names = st.sampled_from(["test_a", "test_b[1]", "test_c"])
rows = st.builds(
    Row,
    name=names,
    outcome=st.sampled_from(["passed", "failed", "skipped"]),
    phase=st.sampled_from(["setup", "call", "teardown"]),
)


@given(st.lists(rows, max_size=4), st.lists(names, max_size=3), st.booleans(), st.integers(-1, 2))
def test_a_pass_means_each_expected_name_once_and_nothing_else(
    found: list[Row], expected: list[str], ended: bool, code: int
) -> None:
    seen = Observation(expected=tuple(expected), rows=tuple(found), ended=ended, exit=code)
    good = sorted(row.name for row in found if (row.outcome, row.phase) == ("passed", "call"))
    wanted = len(good) == len(found) > 0 and good == sorted(set(expected)) == sorted(expected)
    assert verify(seen).passed == (wanted and ended and code == 0)


def test_an_observation_is_kept_as_json() -> None:
    assert Observation.model_validate_json(GOOD.model_dump_json()) == GOOD
