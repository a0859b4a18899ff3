"""What can be done with sheets, a calendar and customer relations."""

from __future__ import annotations

import json

from pydantic import JsonValue

from pytest_modelbench.benchmarks.automationbench.reading import (
    fresh_id,
    holding,
    listed,
    the_record,
)
from pytest_modelbench.benchmarks.jsonworlds.acting import (
    RECORD,
    TEXT,
    TEXTS,
    Arguments,
    acting,
    described,
)
from pytest_modelbench.benchmarks.jsonworlds.state import Record, State, collection, records_in
from pytest_modelbench.benchmarks.tools import Tool, ToolRefused

SHEET = {"spreadsheet_id": TEXT, "worksheet_id": described(TEXT, "its id or title")}
CELLS = described(RECORD, "column → value")
ROW: dict[str, JsonValue] = {"type": ["integer", "string"], "description": "the row_id"}


def google_sheets(state: State) -> list[Tool]:
    """Return the actions of sheets."""

    def books() -> list[Record]:
        return records_in(state, "google_sheets", "spreadsheets")

    def find_book(arguments: Arguments) -> str:
        found = holding(books(), str(arguments.get("title", "")))
        return listed([{key: one.get(key) for key in ("id", "title")} for one in found])

    def book(arguments: Arguments) -> str:
        one = the_record(books(), "spreadsheet", arguments["spreadsheet_id"])
        sheets = [
            {"id": sheet.get("id"), "title": sheet.get("title")} for sheet in _sheets(state, one)
        ]
        return json.dumps({"id": one.get("id"), "title": one.get("title"), "worksheets": sheets})

    def find_sheet(arguments: Arguments) -> str:
        one = the_record(books(), "spreadsheet", arguments["spreadsheet_id"])
        wanted = str(arguments["title"]).casefold()
        found = [s for s in _sheets(state, one) if wanted in str(s.get("title")).casefold()]
        return listed([{"id": s.get("id"), "title": s.get("title")} for s in found])

    def rows(arguments: Arguments) -> str:
        found = holding(_records(_rows(state, arguments)), str(arguments.get("query", "")))
        return listed([{"row_id": one.get("row_id"), "cells": one.get("cells")} for one in found])

    def add(arguments: Arguments) -> str:
        place = _rows(state, arguments)
        used = [int(str(one.get("row_id"))) for one in _records(place) if _is_whole(one)]
        row: Record = {"row_id": 1 + max(used, default=0), "cells": arguments["cells"]}
        place.append(row)
        return f"Row {row['row_id']} is there."

    def update(arguments: Arguments) -> str:
        found = _records(_rows(state, arguments))
        row = the_record(found, "row", arguments["row_id"], "row_id")
        cells, new = row.get("cells"), arguments["cells"]
        if isinstance(new, dict):
            row["cells"] = {**(cells if isinstance(cells, dict) else {}), **new}
        return f"Row {row['row_id']}: {json.dumps(row['cells'], ensure_ascii=False)}"

    def delete(arguments: Arguments) -> str:
        place = _rows(state, arguments)
        place.remove(the_record(_records(place), "row", arguments["row_id"], "row_id"))
        return f"Row {arguments['row_id']} is gone."

    return [
        acting("google_sheets_find_spreadsheet", "Find spreadsheets by title.", find_book, None,
               {"title": TEXT}),
        acting("google_sheets_get_spreadsheet_by_id", "Return a spreadsheet and its worksheets.",
               book, {"spreadsheet_id": TEXT}),
        acting("google_sheets_find_worksheet", "Find a worksheet by title.", find_sheet,
               {"spreadsheet_id": TEXT, "title": TEXT}),
        acting("google_sheets_get_many_rows", "Read rows, all or those that hold a text.", rows,
               SHEET, {"query": TEXT}),
        acting("google_sheets_add_row", "Add a row.", add, {**SHEET, "cells": CELLS}),
        acting("google_sheets_update_row", "Change cells of a row; others stay.", update,
               {**SHEET, "row_id": ROW, "cells": CELLS}),
        acting("google_sheets_delete_row", "Remove a row.", delete, {**SHEET, "row_id": ROW}),
    ]  # fmt: skip


def google_calendar(state: State) -> list[Tool]:
    """Return the actions of a calendar."""

    def events() -> list[Record]:
        return records_in(state, "google_calendar", "events")

    def find(arguments: Arguments) -> str:
        return listed(holding(events(), str(arguments.get("query", ""))))

    def create(arguments: Arguments) -> str:
        one: Record = {"id": fresh_id("event", events()), **arguments}
        collection(state, "google_calendar", "events").append(one)
        return f"Made as {one['id']}."

    def update(arguments: Arguments) -> str:
        one = the_record(events(), "event", arguments["event_id"])
        one.update({key: value for key, value in arguments.items() if key != "event_id"})
        return json.dumps(one, ensure_ascii=False)

    def delete(arguments: Arguments) -> str:
        one = the_record(events(), "event", arguments["event_id"])
        collection(state, "google_calendar", "events").remove(one)
        return f"{arguments['event_id']} is gone."

    times = {"start": described(TEXT, "as 2026-02-05T09:00:00Z"), "end": TEXT}
    more = {"attendees": TEXTS, "description": TEXT, "location": TEXT}
    return [
        acting("google_calendar_find_event", "Find events by a text in them.", find, None,
               {"query": described(TEXT, "empty for all")}),
        acting("google_calendar_create_event", "Make an event.", create,
               {"summary": TEXT, **times}, {"calendar_id": TEXT, **more}),
        acting("google_calendar_update_event", "Change an event.", update, {"event_id": TEXT},
               {"summary": TEXT, **times, **more}),
        acting("google_calendar_delete_event", "Remove an event.", delete, {"event_id": TEXT}),
    ]  # fmt: skip


def salesforce(state: State) -> list[Tool]:
    """Return the actions of customer relations: records of any kind by the name of their list."""

    def kind(arguments: Arguments) -> str:
        name = str(arguments["collection"])
        if name == "meta" or not name.isidentifier():
            raise ToolRefused(f"{name!r} is no collection")
        return name

    def find(arguments: Arguments) -> str:
        found = records_in(state, "salesforce", kind(arguments))
        return listed(holding(found, str(arguments.get("query", ""))))

    def create(arguments: Arguments) -> str:
        name, fields = kind(arguments), arguments["fields"]
        new = fresh_id(name, records_in(state, "salesforce", name))
        record: Record = {**(fields if isinstance(fields, dict) else {}), "id": new}
        collection(state, "salesforce", name).append(record)
        return f"Made as {new}."

    def update(arguments: Arguments) -> str:
        found = records_in(state, "salesforce", kind(arguments))
        record = the_record(found, "record", arguments["record_id"])
        fields = arguments["fields"]
        changes = fields if isinstance(fields, dict) else {}
        record.update({key: value for key, value in changes.items() if key != "id"})
        return json.dumps(record, ensure_ascii=False)

    which = {"collection": described(TEXT, "contacts, leads, opportunities, cases, tasks, notes …")}
    fields = {"fields": described(RECORD, "field → value")}
    return [
        acting("salesforce_find_records", "Find records by a text in them.", find, which,
               {"query": described(TEXT, "empty for all")}),
        acting("salesforce_create_record", "Make a record.", create, {**which, **fields}),
        acting("salesforce_update_record", "Change fields of a record.", update,
               {**which, "record_id": TEXT, **fields}),
    ]  # fmt: skip


def _sheets(state: State, book: Record) -> list[Record]:
    """Return the worksheets of a spreadsheet, within it or beside it."""
    inner = book.get("worksheets")
    beside = records_in(state, "google_sheets", "worksheets")
    return [
        *_records(inner if isinstance(inner, list) else []),
        *(one for one in beside if one.get("spreadsheet_id") == book.get("id")),
    ]


def _rows(state: State, arguments: Arguments) -> list[JsonValue]:
    """Return the rows of a worksheet, to be changed in place."""
    books = records_in(state, "google_sheets", "spreadsheets")
    book = the_record(books, "spreadsheet", arguments["spreadsheet_id"])
    wanted = arguments["worksheet_id"]
    for sheet in _sheets(state, book):
        if wanted in (sheet.get("id"), sheet.get("title")):
            rows = sheet.setdefault("rows", [])
            return rows if isinstance(rows, list) else []
    raise ToolRefused(f"there is no worksheet {wanted!r} in {arguments['spreadsheet_id']}")


def _records(values: list[JsonValue]) -> list[Record]:
    return [one for one in values if isinstance(one, dict)]


def _is_whole(row: Record) -> bool:
    return str(row.get("row_id")).isdecimal()
