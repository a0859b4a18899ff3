"""JSON that somebody else wrote is a value that can be walked, or a ValueError."""

from __future__ import annotations

import json

import pytest

from pytest_modelbench.parsing import DEEPEST, amount, parse, parse_at


@pytest.mark.parametrize("depth", [DEEPEST + 1, 900, 100_000])
@pytest.mark.parametrize("kind", [str, str.encode])
def test_what_is_nested_too_deeply_is_no_recursion_error(depth: int, kind: type) -> None:
    with pytest.raises(ValueError, match="nested deeper than 100 levels"):
        parse(kind("[" * depth + "]" * depth))
    with pytest.raises(ValueError, match="nested deeper than 100 levels"):
        parse_at('{"a":' * depth + "1" + "}" * depth, 0)


def test_what_people_write_is_read_as_the_standard_parser_reads_it() -> None:
    deep = "[" * DEEPEST + "]" * DEEPEST
    wide = json.dumps([{"a": [1, "[[["]}] * 500)

    assert parse(deep) == json.loads(deep)
    assert parse(wide.encode()) == json.loads(wide)
    assert parse_at("x" + wide + "y", 1) == (json.loads(wide), len(wide) + 1)
    with pytest.raises(json.JSONDecodeError, match="line 1 column 5"):
        parse('{"a"')


def test_an_amount_is_a_finite_number_that_counts() -> None:
    sound = [0, 0.5, 3]
    odd = [-1, float("nan"), float("inf"), 10**400, True, "3", None, [1]]

    assert [amount(value) for value in sound] == [0.0, 0.5, 3.0]
    assert [amount(value) for value in odd] == [None] * len(odd)
