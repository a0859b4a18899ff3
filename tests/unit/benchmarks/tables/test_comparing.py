"""Fields of an answer are right by the rule of their column."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_modelbench.benchmarks.tables.comparing import (
    RuleProblem,
    parse_rule,
    read_date,
    read_number,
)


@pytest.mark.parametrize(
    ("rule", "gold", "answer", "share"),
    [
        ("exact", "4930", "4930", 1),
        ("exact", "0420", "420", 0),
        ("exact", "0420", 420, 1),
        ("exact", "4930", 4930.0, 1),
        ("exact", "1", True, 0),
        ("exact", "Won't  fix ", "Won't fix", 1),
        ("exact", "a", "A", 0),
        ("exact", "a", None, 0),
        ("exact", "a", ["a"], 0),
        ("ci", "Straße", "STRASSE", 1),
        ("number", "1.234,56", "1,234.56", 1),
        ("number", "1234.56", 1234.564, 1),
        ("number", "1234.56", 1234.57, 0),
        ("number", "CHF 1'000.-", "x", 0),
        ("number", "€ 1.50", "1,5", 1),
        ("number", "-3", "−3", 1),
        ("number:1", "10", "10.9", 1),
        ("number", "1,234", "1234", 1),
        ("number", "1", True, 0),
        ("set", "red; Blue", ["blue", "RED"], 1),
        ("set", "red,blue", "blue | red", 1),
        ("set", "red,blue", "red", 0),
        ("date", "2026-01-09", "9.1.2026", 1),
        ("date", "09.01.2026", "2026-01-09T10:00:00Z", 1),
        ("date", "2026-01-09", "01/09/2026", 0),
        ("ordinal:low<mid<high", "low", "Mid", 0.5),
        ("ordinal:low<mid<high", "high", "low", 0),
        ("ordinal:low<mid<high", "mid", "MID", 1),
        ("ordinal:low<mid<high", "mid", "huge", 0),
    ],
)
def test_shares(rule: str, gold: str, answer: object, share: float) -> None:
    if rule == "number" and read_number(gold) is None:
        assert not parse_rule(rule).gradable(gold)
    else:
        assert parse_rule(rule).share(gold, answer) == share


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.234,56", "1234.56"),
        ("1,234.56", "1234.56"),
        ("1'234.50", "1234.50"),
        ("1.234", "1.234"),
        ("1,234", "1234"),
        ("1,23", "1.23"),
        ("1.234.567", "1234567"),
        ("$ 12", "12"),
        ("12 EUR", "12"),
        ("1e3", "1000"),
        (".5", "0.5"),
    ],
)
def test_numbers(text: str, number: str) -> None:
    assert read_number(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "x", "1-2", ".", "1.2.3,4,5", "NaN", "Infinity", "12 apples"])
def test_what_is_no_number(text: str) -> None:
    assert read_number(text) is None


def test_dates() -> None:
    assert read_date("2024-02-29") == datetime.date(2024, 2, 29)
    assert read_date("29.02.2023") is None
    assert read_date("yesterday") is None


@pytest.mark.parametrize(
    "text", ["fuzzy", "exact:1", "number:x", "number:-1", "ordinal:one", "ordinal:a<a"]
)
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(RuleProblem):
        parse_rule(text)


@example(gold="1E100", answer=None)
@example(gold="-7", answer=None)
@given(
    gold=st.text(max_size=30),
    answer=st.one_of(st.text(), st.floats(), st.lists(st.text()), st.none()),
)
def test_no_answer_breaks_a_rule_and_a_damaged_gold_is_wrong(gold: str, answer: object) -> None:
    for text in ("exact", "ci", "number", "set", "date", "ordinal:a<b"):
        rule = parse_rule(text)
        if rule.gradable(gold):
            assert 0 <= rule.share(gold, answer) <= 1
            assert rule.right(gold, gold)
            assert not rule.right(gold, rule.wrong(gold))
