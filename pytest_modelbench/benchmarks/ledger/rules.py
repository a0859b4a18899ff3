"""What can be asserted of how the books end."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from pytest_modelbench.benchmarks.jsonworlds.assertions import (
    AssertionProblem,
    AssertionTypes,
    records,
    texts,
)
from pytest_modelbench.benchmarks.jsonworlds.scoring import Assertion, World
from pytest_modelbench.benchmarks.ledger.books import ASSISTANT, lines_of

LEDGER = AssertionTypes()

OUTCOMES = ("done", "refused", "held")
REASONS = {
    "done": ("posted",),
    "refused": ("duplicate", "already-reversed", "private", "forbidden"),
    "held": (
        "approval-missing",
        "amount-differs",
        "document-missing",
        "document-wrong",
        "partner-unclear",
        "bank-details",
    ),
}

_SIDES = {"D": "debit", "C": "credit"}


def _posted(world: World) -> list[Mapping[str, object]]:
    """Return the entries of the attempt that stand on their own, reversals left out."""
    return [
        one
        for one in records(world, "ledger", "entries")
        if one.get("by") == ASSISTANT and one.get("reverses") is None
    ]


def wanted_lines(assertion: Assertion) -> tuple[tuple[str, str, str], ...]:
    """Return the lines of an assertion, each written as ``4930 D 84.00``."""
    found = []
    for text in texts(assertion["lines"]):
        parts = text.split()
        if len(parts) != 3 or parts[1] not in _SIDES:
            raise AssertionProblem(f"{text!r} is no line; write ACCOUNT D or C AMOUNT")
        found.append((parts[0], _SIDES[parts[1]], f"{Decimal(parts[2]):.2f}"))
    return tuple(sorted(found))


@LEDGER.register(
    "ledger_posted", required=("lines",), optional=("date", "document", "partner", "prior_period")
)
def _entry(world: World, assertion: Assertion) -> bool:
    """Hold where an entry has these lines, those of an account and a side taken together."""
    lines = wanted_lines(assertion)
    return any(
        lines_of(one) == lines
        and assertion.get("date") in (None, one.get("date"))
        and assertion.get("partner") in (None, one.get("partner"))
        and _same_number(assertion.get("document"), one.get("document"))
        and assertion.get("prior_period") in (None, one.get("prior_period", False))
        for one in _posted(world)
    )


def _same_number(wanted: object, found: object) -> bool:
    """Tell whether a document's number is the wanted one, capitals, spaces and signs aside."""
    return wanted is None or _plain(wanted) == _plain(found)


def _plain(value: object) -> str:
    return "".join(sign for sign in str(value or "") if sign.isalnum()).casefold()


@LEDGER.register("ledger_posted_count", required=("count",))
def _count(world: World, assertion: Assertion) -> bool:
    return len(_posted(world)) == assertion["count"]


@LEDGER.register("ledger_reversed_count", required=("count",))
def _reversed_count(world: World, assertion: Assertion) -> bool:
    """Hold where the attempt reversed so many entries."""
    entries = records(world, "ledger", "entries")
    made = [one for one in entries if one.get("by") == ASSISTANT and one.get("reverses")]
    return len(made) == assertion["count"]


@LEDGER.register("ledger_reversed", required=("entry",), optional=("date",))
def _reversed(world: World, assertion: Assertion) -> bool:
    return any(
        one.get("reverses") == assertion["entry"]
        and assertion.get("date") in (None, one.get("date"))
        for one in records(world, "ledger", "entries")
    )


@LEDGER.register("ledger_balance", required=("account", "amount"))
def _balance(world: World, assertion: Assertion) -> bool:
    """Hold where debit less credit of an account is an amount."""
    total = Decimal(0)
    for entry in records(world, "ledger", "entries"):
        for account, side, amount in lines_of(entry):
            if account == assertion["account"]:
                total += Decimal(amount) if side == "debit" else -Decimal(amount)
    return total == Decimal(str(assertion["amount"]))


@LEDGER.register("ledger_request", required=("outcome", "reason"))
def _request(world: World, assertion: Assertion) -> bool:
    """Hold where the request was closed so, and once."""
    found = records(world, "ledger", "requests")
    return [(one.get("outcome"), one.get("reason")) for one in found] == [
        (assertion["outcome"], assertion["reason"])
    ]


@LEDGER.register("ledger_period", required=("period", "status"))
def _period(world: World, assertion: Assertion) -> bool:
    return any(
        (one.get("id"), one.get("status")) == (assertion["period"], assertion["status"])
        for one in records(world, "ledger", "periods")
    )


@LEDGER.register("ledger_partner", required=("partner", "field", "value"))
def _partner(world: World, assertion: Assertion) -> bool:
    return any(
        one.get("id") == assertion["partner"]
        and one.get(str(assertion["field"])) == assertion["value"]
        for one in records(world, "ledger", "partners")
    )


LEDGER.oppose("ledger_not_posted", of="ledger_posted")
LEDGER.oppose("ledger_not_reversed", of="ledger_reversed")
