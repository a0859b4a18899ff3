"""A line of results carries the digest of what it says."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.records import AttemptRecord, Identity, Outcome, Verdict, seal_holds, sealed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def record() -> AttemptRecord:
    return AttemptRecord(
        id="a1",
        run="r",
        pack="p",
        case="c",
        candidate="m",
        repeat=1,
        identity=Identity(task="t", check="k", candidate="m"),
        outcome=Outcome.UNSOLVED,
        verdict=Verdict(passed=False, reward=0.0, reason="wrong"),
        started="2026-01-09T09:00:00.000Z",
        seconds=1.25,
        detail="half a pair: \ud800",
    )


def test_a_line_that_was_not_touched_holds() -> None:
    line = record().to_line()
    assert seal_holds(json.loads(line)) is True
    assert AttemptRecord.model_validate(json.loads(line)) == record()


def test_an_edited_line_is_found() -> None:
    line = record().to_line().replace('"unsolved"', '"passed"').replace("false", "true")
    assert AttemptRecord.model_validate(json.loads(line)).outcome is Outcome.PASSED
    assert seal_holds(json.loads(line)) is False


def test_a_line_of_before_has_no_seal() -> None:
    data = json.loads(record().to_line())
    del data["digest"]
    assert seal_holds(data) is None
    assert AttemptRecord.model_validate(data) == record()


@given(st.dictionaries(st.text().filter(lambda name: name != "digest"), JSON, min_size=1))
def test_any_line_holds_after_a_way_through_a_file(data: dict) -> None:
    assert seal_holds(json.loads(sealed(data).encode("ascii").decode())) is True
