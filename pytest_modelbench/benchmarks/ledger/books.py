"""The books: records of accounts, partners, periods, entries, documents; what is allowed of them.

Amounts are texts with two decimals, as ``"1190.00"``. What the books refuse, they refuse anybody;
what the company's policy forbids, they let happen, and it is seen at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation

from pydantic import JsonValue

from pytest_modelbench.benchmarks.jsonworlds.state import Record, State, collection, records_in
from pytest_modelbench.benchmarks.tools import ToolRefused

ASSISTANT = "assistant"
"""Who posted what was posted in an attempt."""


class Books:
    """A view of a world's books; it changes them in place."""

    def __init__(self, state: State) -> None:
        self._state = state

    def collection(self, name: str) -> list[JsonValue]:
        """Return the list of a collection."""
        return collection(self._state, "ledger", name)

    def records(self, name: str) -> list[Record]:
        """Return the records of a collection."""
        return records_in(self._state, "ledger", name)

    def record(self, name: str, what: str, wanted: JsonValue) -> Record:
        """Return the record of an id; ToolRefused, with what it is called, where there is none."""
        found = next((one for one in self.records(name) if one.get("id") == wanted), None)
        if found is None:
            raise ToolRefused(f"there is no {what} {wanted!r}")
        return found

    def post(self, entry: Mapping[str, JsonValue]) -> str:
        """Post an entry and return its id; ToolRefused where it is not sound."""
        lines = [self._line(one) for one in _list(entry.get("lines"))]
        if len(lines) < 2:
            raise ToolRefused("an entry has two lines at least")
        difference = sum((_signed(one) for one in lines), Decimal(0))
        if difference:
            raise ToolRefused(f"the entry does not balance: debit less credit is {difference}")
        self._open(day_of(entry["date"]))
        if entry.get("partner") is not None:
            self.record("partners", "partner", entry["partner"])
        number = 1 + max((_number(one.get("id")) for one in self.records("entries")), default=0)
        posted: Record = {
            "id": f"E-{number:04}",
            **{key: value for key, value in entry.items() if key != "lines"},
            "lines": [*lines],
            "by": ASSISTANT,
        }
        self.collection("entries").append(posted)
        return str(posted["id"])

    def reverse(self, wanted: JsonValue, on: JsonValue, text: JsonValue) -> str:
        """Post the mirror of an entry and return its id; an entry is reversed once."""
        entry = self.record("entries", "entry", wanted)
        if entry.get("reversed_by") is not None:
            raise ToolRefused(f"{wanted} is reversed already, by {entry['reversed_by']}")
        if entry.get("reverses") is not None:
            raise ToolRefused(f"{wanted} is itself a reversal, of {entry['reverses']}")
        mirrored: list[JsonValue] = [
            {
                "account": line["account"],
                **{_OTHER[side]: line[side] for side in _OTHER if side in line},
            }
            for line in _list(entry.get("lines"))
            if isinstance(line, dict)
        ]
        mirror: Record = {key: entry[key] for key in _KEPT if key in entry}
        mirror |= {"date": on, "text": text, "lines": mirrored, "reverses": wanted}
        posted = self.post(mirror)
        entry["reversed_by"] = posted
        return posted

    def balance(self, account: str, until: str = "") -> Decimal:
        """Return debit less credit of an account, up to a day and with it."""
        total = Decimal(0)
        for entry in self.records("entries"):
            if not until or str(entry.get("date")) <= until:
                for line in _list(entry.get("lines")):
                    if isinstance(line, dict) and line.get("account") == account:
                        total += _signed(line)
        return total

    def _line(self, raw: JsonValue) -> Record:
        line = raw if isinstance(raw, dict) else {}
        account = self.record("accounts", "account", line.get("account"))
        sides = [side for side in _OTHER if line.get(side) is not None]
        if len(sides) != 1:
            raise ToolRefused(f"a line of account {account['id']} has either a debit or a credit")
        return {"account": account["id"], sides[0]: money(line[sides[0]])}

    def _open(self, day: date) -> None:
        period = f"{day.year:04}-{day.month:02}"
        found = next((one for one in self.records("periods") if one.get("id") == period), None)
        if found is None:
            raise ToolRefused(f"there is no period {period}")
        if found.get("status") != "open":
            raise ToolRefused(f"the period {period} is {found.get('status')}")


_KEPT: tuple[str, ...] = ("document", "partner")
_OTHER = {"debit": "credit", "credit": "debit"}


def money(value: JsonValue) -> str:
    """Return an amount above 0 as text with two decimals; ToolRefused for what is none."""
    try:
        amount = Decimal(str(value))
        exact = amount.quantize(Decimal("0.01"))
    except InvalidOperation:
        raise ToolRefused(f"{str(value)[:40]!r} is no amount; write it as 1190.00") from None
    if exact != amount or not exact > 0:
        raise ToolRefused(f"{str(value)[:40]!r} is no amount above 0 with two decimals at most")
    return f"{exact:f}"


def day_of(value: JsonValue) -> date:
    """Return the day of a text like 2026-03-12; ToolRefused for what is none."""
    text = str(value)
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise ToolRefused(f"{text[:40]!r} is no date; write it as 2026-03-12")


def lines_of(entry: Mapping[str, object]) -> tuple[tuple[str, str, str], ...]:
    """Return (account, side, amount) of an entry's lines, those of one account and side as one."""
    sums: dict[tuple[str, str], Decimal] = {}
    lines = entry.get("lines")
    for line in lines if isinstance(lines, list) else ():
        for side in _OTHER:
            if isinstance(line, Mapping) and line.get(side) is not None:
                key = (str(line.get("account")), side)
                sums[key] = sums.get(key, Decimal(0)) + Decimal(str(line[side]))
    return tuple(sorted((account, side, f"{total:.2f}") for (account, side), total in sums.items()))


def told(entry: Mapping[str, JsonValue]) -> str:
    """Return an entry as a model reads it."""
    about = [f"{key}: {entry[key]}" for key in _TOLD if entry.get(key) not in (None, False)]
    lines = [
        f"  {account} {side} {amount}"
        for account, side, amount in (
            (line.get("account"), side, line[side])
            for line in _list(entry.get("lines"))
            if isinstance(line, dict)
            for side in _OTHER
            if side in line
        )
    ]
    return "\n".join(["; ".join(about), *lines])


_TOLD = (
    "id",
    "date",
    "text",
    "document",
    "partner",
    "prior_period",
    "by",
    "reverses",
    "reversed_by",
)


def holding(records: Iterable[Record], text: str) -> list[Record]:
    """Return records that hold a text in any field, capitals, spaces and signs aside."""
    wanted = _plain(text)
    return [one for one in records if any(wanted in _plain(str(v)) for v in _leaves(one))]


def _leaves(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value]


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def _signed(line: Mapping[str, JsonValue]) -> Decimal:
    return Decimal(str(line.get("debit", 0))) - Decimal(str(line.get("credit", 0)))


def _number(name: JsonValue) -> int:
    found = re.search(r"\d+$", str(name))
    return int(found.group()) if found else 0


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()
