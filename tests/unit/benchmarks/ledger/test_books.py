"""What the books allow, what they refuse, and what is asserted of their end."""

from __future__ import annotations

import copy
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.benchmarks.jsonworlds.assertions import AssertionProblem
from pytest_modelbench.benchmarks.ledger.books import Books, money
from pytest_modelbench.benchmarks.ledger.provider import Ledger
from pytest_modelbench.benchmarks.ledger.rules import LEDGER
from pytest_modelbench.benchmarks.tools import ToolRefused, run_tool

PACK = Path(__file__).parents[4] / "cases" / "ledger"
WORLD = json.loads((PACK / "world.json").read_text(encoding="utf-8"))
SUPPLIES: dict[str, Any] = {
    "date": "2026-03-04",
    "text": "Binders",
    "document": "KB-1",
    "partner": "V-104",
    "lines": [
        {"account": "4930", "debit": "60.00"},
        {"account": "4930", "debit": 24},
        {"account": "1570", "debit": "15.96"},
        {"account": "1600", "credit": "99.96"},
    ],
}


@pytest.fixture
def world() -> dict[str, Any]:  # Any: plain data, which the asserts judge
    return copy.deepcopy(WORLD)


def call(world: dict[str, Any], tool: str, **arguments: Any) -> str:
    (found,) = [one for one in Ledger(PACK, {}).acts(world) if one.name == tool]
    return run_tool(found, arguments)[0]


def holds(world: dict[str, Any], kind: str, **said: object) -> bool:
    return LEDGER.check(world, {"type": kind, **said})


def test_a_posted_entry_is_found_whatever_its_lines_are_split_into(world: dict[str, Any]) -> None:
    assert call(world, "post_entry", **SUPPLIES) == "Posted as E-0121."
    lines = ["1600 C 99.96", "4930 D 84", "1570 D 15.96"]
    assert holds(world, "ledger_posted", lines=lines)
    assert holds(world, "ledger_posted", lines=lines, date="2026-03-04", document="kb 1")
    assert holds(world, "ledger_posted", lines=lines, partner="V-104", prior_period=False)
    assert not holds(world, "ledger_posted", lines=lines, prior_period=True)
    assert not holds(world, "ledger_posted", lines=lines, date="2026-03-05")
    assert not holds(world, "ledger_posted", lines=lines, document="KB-2")
    assert not holds(world, "ledger_posted", lines=lines, partner="V-101")
    assert not holds(world, "ledger_posted", lines=["4930 D 84.01", "1600 C 84.01"])
    assert holds(world, "ledger_not_posted", lines=["4930 D 84.01", "1600 C 84.01"])
    assert holds(world, "ledger_posted_count", count=1)
    assert holds(world, "ledger_balance", account="1570", amount="1654.90")


def test_what_was_there_before_was_not_posted_by_the_attempt(world: dict[str, Any]) -> None:
    lines = ["3400 D 1000.00", "1570 D 190.00", "1600 C 1190.00"]
    assert not holds(world, "ledger_posted", lines=lines, document="PN-30588")
    assert holds(world, "ledger_posted_count", count=0)
    assert holds(world, "ledger_reversed_count", count=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"date": "2026-01-31"}, "the period 2026-01 is closed"),
        ({"date": "2026-07-01"}, "there is no period 2026-07"),
        ({"date": "4.3.2026"}, "is no date"),
        ({"date": "2026-02-30"}, "is no date"),
        ({"partner": "V-999"}, "there is no partner 'V-999'"),
        ({"lines": SUPPLIES["lines"][:3]}, "does not balance: debit less credit is 99.96"),
        ({"lines": []}, "two lines at least"),
        ({"lines": [{"account": "4931", "debit": "1"}]}, "there is no account '4931'"),
        ({"lines": [{"account": "4930"}]}, "either a debit or a credit"),
        ({"lines": [{"account": "4930", "debit": 1, "credit": 1}]}, "either a debit or a credit"),
        ({"lines": [{"account": "4930", "debit": "-1"}]}, "is no amount above 0"),
        ({"lines": [{"account": "4930", "debit": "1.005"}]}, "two decimals at most"),
        ({"lines": [{"account": "4930", "debit": True}]}, "must be of type string or number"),
        ({"lines": "4930"}, "lines must be of type array"),
        ({"amount": 3}, "there is no amount; there are: date"),
    ],
)
def test_the_books_refuse_and_stay_as_they_were(
    world: dict[str, Any], change: dict[str, Any], said: str
) -> None:
    assert said in call(world, "post_entry", **{**SUPPLIES, **change})
    assert world == WORLD


def test_a_reversal_is_the_mirror_and_happens_once(world: dict[str, Any]) -> None:
    before = Books(world).balance("3400")
    said = call(world, "reverse_entry", entry="E-0117", date="2026-02-26", text="wrong")
    assert said == "Reversed by E-0121."
    assert Books(world).balance("3400") == before - Decimal("1000.00")
    assert holds(world, "ledger_reversed", entry="E-0117", date="2026-02-26")
    assert not holds(world, "ledger_reversed", entry="E-0117", date="2026-02-27")
    assert holds(world, "ledger_not_reversed", entry="E-0116")
    assert holds(world, "ledger_reversed_count", count=1)
    assert holds(world, "ledger_posted_count", count=0)
    again = {"date": "2026-03-01", "text": "again"}
    assert "reversed already" in call(world, "reverse_entry", entry="E-0117", **again)
    assert "is itself a reversal" in call(world, "reverse_entry", entry="E-0121", **again)
    assert "there is no entry" in call(world, "reverse_entry", entry="E-0999", **again)


def test_master_data_periods_and_the_end_are_told_apart(world: dict[str, Any]) -> None:
    assert holds(world, "ledger_period", period="2026-01", status="closed")
    call(world, "set_period_status", period="2026-01", status="open")
    assert not holds(world, "ledger_period", period="2026-01", status="closed")
    call(world, "set_partner_field", partner="V-101", field="iban", value="X")
    assert holds(world, "ledger_partner", partner="V-101", field="iban", value="X")
    assert "refused goes with one of" in call(
        world, "close_request", outcome="refused", reason="posted"
    )
    assert call(world, "close_request", outcome="held", reason="bank-details") == "Closed."
    assert holds(world, "ledger_request", outcome="held", reason="bank-details")
    call(world, "close_request", outcome="done", reason="posted")
    assert not holds(world, "ledger_request", outcome="held", reason="bank-details")
    assert not holds(world, "ledger_request", outcome="done", reason="posted")


def test_searching(world: dict[str, Any]) -> None:
    assert call(world, "search_entries", text="kb 2247").startswith("id: E-0108; date: 2026-02-05")
    found = call(world, "search_entries", **{"account": "1570", "from": "2026-03-01"})
    assert found.startswith("id: E-0119")
    assert "E-0120" not in found
    assert call(world, "search_entries", text="nothing of this") == "No entry."
    assert "is no date" in call(world, "search_entries", to="soon")
    assert "[and " not in call(world, "search_entries")
    assert call(world, "account_balance", account="1400", until="2026-02-12").endswith("1785.00")
    assert "V-102" in call(world, "find_partners", text="DE811000028")


@pytest.mark.parametrize("amount", ["0", "-1", "x", "NaN", "Infinity", "1e40", "1.005", None])
def test_what_is_no_amount(amount: str | None) -> None:
    with pytest.raises(ToolRefused, match="no amount"):
        money(amount)


def test_a_line_that_cannot_be_read_is_a_mistake_of_the_task() -> None:
    with pytest.raises(AssertionProblem, match="'4930 X 1' is no line"):
        LEDGER.check(WORLD, {"type": "ledger_posted", "lines": ["4930 X 1"]})
