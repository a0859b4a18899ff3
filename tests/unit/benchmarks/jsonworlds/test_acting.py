"""What of a call's arguments does not fit its schema is told, and nothing is done."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from pytest_modelbench.benchmarks.jsonworlds.acting import (
    FLAG,
    TEXT,
    TEXTS,
    WHOLE,
    acting,
    described,
    misfit,
    one_of,
)
from pytest_modelbench.benchmarks.tools import ToolRefused, run_tool

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "count": described(WHOLE, "how many"),
        "sure": FLAG,
        "tags": TEXTS,
        "kind": one_of("a", "b"),
        "amount": {"type": ["string", "number"]},
        "inner": {"type": "object", "properties": {"x": WHOLE}, "required": ["x"]},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "n", "count": 1, "sure": True, "tags": ["t"], "kind": "a"}, ""),
        ({"name": "n", "amount": 1.5, "inner": {"x": 1, "y": 2}}, ""),
        ({}, "name is missing"),
        ({"name": 1}, "name must be of type string"),
        ({"name": None}, "name must be of type string"),
        ({"name": "n", "count": True}, "count must be of type integer"),
        ({"name": "n", "sure": 1}, "sure must be of type boolean"),
        ({"name": "n", "tags": ["t", 2]}, "tags[1] must be of type string"),
        ({"name": "n", "kind": "c"}, "kind must be one of a, b"),
        ({"name": "n", "amount": []}, "amount must be of type string or number"),
        ({"name": "n", "inner": {"x": "1"}}, "inner.x must be of type integer"),
        ({"name": "n", "inner": {}}, "inner.x is missing"),
        ({"name": "n", "other": 1}, "there is no other; there are: name, count"),
    ],
)
def test_what_does_not_fit(arguments: dict[str, JsonValue], said: str) -> None:
    found = misfit(SCHEMA, arguments)
    assert said in found
    assert bool(found) is bool(said)


def test_a_tool_does_nothing_with_what_does_not_fit() -> None:
    done: list[Mapping[str, JsonValue]] = []

    def run(arguments: Mapping[str, JsonValue]) -> str:
        done.append(arguments)
        return "done"

    tool = acting("t", "A tool.", run, {"name": TEXT}, {"count": WHOLE})
    assert run_tool(tool, {"name": "n", "count": "2"})[1] is False
    with pytest.raises(ToolRefused, match="there is no more; there are: name, count"):
        tool.run({"name": "n", "more": 1})
    assert done == []
    assert run_tool(tool, {"name": "n", "count": 2}) == ("done", True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON)
@settings(max_examples=50)
def test_any_value_is_judged(value: JsonValue) -> None:
    assert isinstance(misfit(SCHEMA, value), str)
