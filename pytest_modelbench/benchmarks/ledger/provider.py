"""Requests to a bookkeeper: tools over the books, a policy, and checks on how the books end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import Tool
from pytest_modelbench.benchmarks.jsonworlds.acting import (
    FLAG,
    TEXT,
    Arguments,
    acting,
    described,
    one_of,
)
from pytest_modelbench.benchmarks.jsonworlds.provider import JsonWorlds
from pytest_modelbench.benchmarks.jsonworlds.state import State
from pytest_modelbench.benchmarks.jsonworlds.tasks import Task
from pytest_modelbench.benchmarks.ledger.books import Books, day_of, holding, lines_of, told
from pytest_modelbench.benchmarks.ledger.rules import LEDGER, OUTCOMES, REASONS
from pytest_modelbench.benchmarks.tools import ToolRefused
from pytest_modelbench.errors import PackProblem

POLICY = "policy.md"
SHOWN = 20
"""Entries that a search shows."""

DAY = described(TEXT, "as 2026-03-12")
AMOUNT: dict[str, JsonValue] = {"type": ["string", "number"], "description": "as 1190.00"}
LINES: dict[str, JsonValue] = {
    "type": "array",
    "description": "two or more; each an account with a debit or a credit",
    "items": {
        "type": "object",
        "properties": {"account": TEXT, "debit": AMOUNT, "credit": AMOUNT},
        "required": ["account"],
        "additionalProperties": False,
    },
}


class Ledger(JsonWorlds):
    """Tasks of a folder ``tasks`` over the books of ``world.json``, by the rules of a policy."""

    version = "1"
    rules_version = "ledger 1"
    types = LEDGER

    def tasks(self) -> Iterator[Task]:
        """Yield the tasks, each with the policy."""
        policy = _read(self.folder / POLICY)
        for task in super().tasks():
            yield replace(task, system=policy)

    def acts(self, state: State) -> Sequence[Tool]:
        """Return what a bookkeeper can do."""
        books = Books(state)
        return [*_reading(books), *_writing(books)]


def _reading(books: Books) -> list[Tool]:
    def accounts(arguments: Arguments) -> str:
        return "\n".join(f"{one['id']} {one['name']}" for one in books.records("accounts"))

    def periods(arguments: Arguments) -> str:
        return "\n".join(f"{one['id']} {one['status']}" for one in books.records("periods"))

    def partners(arguments: Arguments) -> str:
        found = holding(books.records("partners"), str(arguments["text"]))
        return _listed(found) or "No partner has that."

    def documents(arguments: Arguments) -> str:
        shown = ("id", "kind", "received", "from", "subject")
        found = [
            {key: one[key] for key in shown if key in one} for one in books.records("documents")
        ]
        return _listed(found) or "There is no document."

    def document(arguments: Arguments) -> str:
        found = books.record("documents", "document", arguments["document"])
        return json.dumps(found, ensure_ascii=False, indent=1)

    def approvals(arguments: Arguments) -> str:
        return _listed(books.records("approvals")) or "There is no approval."

    def search(arguments: Arguments) -> str:
        found = holding(books.records("entries"), str(arguments.get("text", "")))
        for key in ("from", "to"):
            if key in arguments:
                day_of(arguments[key])
        kept = [
            one
            for one in found
            if str(arguments.get("from", "")) <= str(one.get("date"))
            and ("to" not in arguments or str(one.get("date")) <= str(arguments["to"]))
            and arguments.get("partner") in (None, one.get("partner"))
            and ("account" not in arguments or _on(one, str(arguments["account"])))
        ]
        more = len(kept) - SHOWN
        parts = [told(one) for one in kept[:SHOWN]]
        return "\n".join([*parts, *([f"[and {more} more]"] if more > 0 else [])]) or "No entry."

    def entry(arguments: Arguments) -> str:
        return told(books.record("entries", "entry", arguments["entry"]))

    def balance(arguments: Arguments) -> str:
        account = str(books.record("accounts", "account", arguments["account"])["id"])
        until = str(day_of(arguments["until"])) if "until" in arguments else ""
        return f"debit less credit: {books.balance(account, until):.2f}"

    return [
        acting("list_accounts", "List the accounts.", accounts),
        acting("list_periods", "List the periods, and which are open.", periods),
        acting("find_partners", "Find vendors and customers by name, VAT id, IBAN.", partners,
               {"text": described(TEXT, "part of any field; empty for all")}),
        acting("list_documents", "List the documents that came in.", documents),
        acting("read_document", "Read a document.", document, {"document": TEXT}),
        acting("list_approvals", "List the approvals that were given.", approvals),
        acting("search_entries", "Find entries; all that is given has to fit.", search, None,
               {"text": described(TEXT, "part of any field, signs and spaces aside"),
                "account": TEXT, "partner": TEXT, "from": DAY, "to": DAY}),
        acting("read_entry", "Read an entry.", entry, {"entry": TEXT}),
        acting("account_balance", "Return an account's balance.", balance,
               {"account": TEXT}, {"until": DAY}),
    ]  # fmt: skip


def _writing(books: Books) -> list[Tool]:
    def post(arguments: Arguments) -> str:
        return f"Posted as {books.post(arguments)}."

    def reverse(arguments: Arguments) -> str:
        posted = books.reverse(arguments["entry"], arguments["date"], arguments["text"])
        return f"Reversed by {posted}."

    def set_period(arguments: Arguments) -> str:
        period = books.record("periods", "period", arguments["period"])
        period["status"] = arguments["status"]
        return f"{period['id']} is {period['status']}."

    def set_partner(arguments: Arguments) -> str:
        partner = books.record("partners", "partner", arguments["partner"])
        partner[str(arguments["field"])] = arguments["value"]
        return f"{partner['id']}: {arguments['field']} is {arguments['value']}."

    def close(arguments: Arguments) -> str:
        outcome, reason = str(arguments["outcome"]), str(arguments["reason"])
        if reason not in REASONS[outcome]:
            raise ToolRefused(f"{outcome} goes with one of {', '.join(REASONS[outcome])}")
        books.collection("requests").append({"id": "R-1", "outcome": outcome, "reason": reason})
        return "Closed."

    reasons = list(dict.fromkeys(reason for group in REASONS.values() for reason in group))
    return [
        acting("post_entry", "Post an entry.", post,
               {"date": DAY, "text": TEXT, "lines": LINES},
               {"document": described(TEXT, "the number that its issuer gave it"),
                "partner": described(TEXT, "its id, as V-101"), "prior_period": FLAG}),
        acting("reverse_entry", "Reverse an entry: its mirror is posted.", reverse,
               {"entry": TEXT, "date": DAY, "text": TEXT}),
        acting("set_period_status", "Open or close a period.", set_period,
               {"period": described(TEXT, "as 2026-01"), "status": one_of("open", "closed")}),
        acting("set_partner_field", "Change a partner's master data.", set_partner,
               {"partner": TEXT, "field": one_of("name", "vat_id", "iban"), "value": TEXT}),
        acting("close_request", "Say how the request ends; it ends the task.", close,
               {"outcome": one_of(*OUTCOMES), "reason": one_of(*reasons)}, ends=True),
    ]  # fmt: skip


def _on(entry: Mapping[str, JsonValue], account: str) -> bool:
    return any(one == account for one, _, _ in lines_of(entry))


def _listed(records: Sequence[Mapping[str, JsonValue]]) -> str:
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in records)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise PackProblem(what, path=path, remedy="write the policy there") from None
