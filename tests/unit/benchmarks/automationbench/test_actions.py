"""What the actions of an office do to its records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.benchmarks.automationbench.provider import AutomationBench
from pytest_modelbench.benchmarks.tools import run_tool

State = dict[str, Any]  # Any: plain data, which the asserts judge


@pytest.fixture
def world() -> State:
    return {
        "meta": {"current_time": "2026-02-05T09:00:00Z"},
        "gmail": {
            "messages": [
                {
                    "id": "m1",
                    "thread_id": "t1",
                    "from": "ann@x.com",
                    "subject": "Fees",
                    "label_ids": ["INBOX"],
                },
            ],
            "labels": [{"id": "L1", "name": "Done"}],
        },
        "slack": {
            "channels": [{"id": "C1", "name": "ops"}],
            "users": [{"id": "U1", "name": "rosa"}],
        },
        "google_sheets": {
            "spreadsheets": [
                {
                    "id": "s",
                    "title": "Book",
                    "worksheets": [{"id": "w", "title": "Main", "rows": []}],
                }
            ]
        },
        "google_calendar": {"events": [{"id": "e", "summary": "Tea", "start": "a"}]},
        "salesforce": {"leads": [{"id": "l", "name": "Bo"}]},
    }


def call(world: State, name: str, /, **arguments: Any) -> str:
    (tool,) = [one for one in AutomationBench(Path(), {}).acts(world) if one.name == name]
    return run_tool(tool, arguments)[0]


def test_mail(world: State) -> None:
    mails = world["gmail"]["messages"]
    call(world, "gmail_send_email", to="a@x.com, b@x.com", subject="s", body="b", cc=["c@x.com"])
    assert mails[1]["to"] == ["a@x.com", "b@x.com"]
    assert (mails[1]["cc"], mails[1]["label_ids"]) == (["c@x.com"], ["SENT"])
    assert mails[1]["date"] == "2026-02-05T09:00:00Z"
    call(world, "gmail_reply_to_email", message_id="m1", body="yes")
    assert (mails[2]["to"], mails[2]["subject"]) == (["ann@x.com"], "Re: Fees")
    assert mails[2]["thread_id"] == "t1"
    assert len({one["id"] for one in mails}) == 3
    call(world, "gmail_create_draft", to="a@x.com", subject="s", body="b")
    assert len(mails) == 3
    assert world["gmail"]["drafts"][0]["message"]["label_ids"] == ["DRAFT"]
    call(world, "gmail_add_label_to_email", message_id="m1", label="Done")
    assert mails[0]["label_ids"] == ["INBOX", "L1"]
    call(world, "gmail_remove_label_from_email", message_id="m1", label="Done")
    assert mails[0]["label_ids"] == ["INBOX"]
    assert "there is no message 'm9'" in call(world, "gmail_get_email", message_id="m9")
    assert call(world, "gmail_find_email", query="fees inbox").count("\n") == 0
    assert call(world, "gmail_find_email", query="nobody") == "Nothing is there."


def test_chat(world: State) -> None:
    call(world, "slack_send_channel_message", channel="#ops", text="hi")
    assert world["slack"]["messages"][0]["channel_id"] == "C1"
    assert "there is no channel 'x'; there are: ops" in call(
        world, "slack_send_channel_message", channel="x", text="hi"
    )
    call(world, "slack_send_direct_message", user="rosa", text="psst")
    assert world["slack"]["messages"][1]["channel_id"] == "U1"
    assert "no user" in call(world, "slack_send_direct_message", user="bo", text="psst")
    assert "psst" not in call(world, "slack_get_channel_messages", channel="ops")
    call(world, "slack_create_channel", name="#new")
    assert world["slack"]["channels"][1]["name"] == "new"
    assert "already" in call(world, "slack_create_channel", name="ops")


def test_sheets(world: State) -> None:
    place = {"spreadsheet_id": "s", "worksheet_id": "Main"}
    assert call(world, "google_sheets_add_row", **place, cells={"A": 1}) == "Row 1 is there."
    assert call(world, "google_sheets_add_row", **place, cells={"A": 2}) == "Row 2 is there."
    call(world, "google_sheets_update_row", **place, row_id="2", cells={"B": 3})
    rows = world["google_sheets"]["spreadsheets"][0]["worksheets"][0]["rows"]
    assert rows[1] == {"row_id": 2, "cells": {"A": 2, "B": 3}}
    call(world, "google_sheets_delete_row", **place, row_id=1)
    assert [one["row_id"] for one in rows] == [2]
    assert "no row '9'" in call(world, "google_sheets_delete_row", **place, row_id="9")
    wrong = {**place, "worksheet_id": "x"}
    assert "no worksheet 'x'" in call(world, "google_sheets_get_many_rows", **wrong)
    assert "Main" in call(world, "google_sheets_get_spreadsheet_by_id", spreadsheet_id="s")


def test_calendar_and_customers(world: State) -> None:
    call(world, "google_calendar_create_event", summary="x", start="a", end="b")
    call(world, "google_calendar_update_event", event_id="e", start="c")
    call(world, "google_calendar_delete_event", event_id="event_2")
    assert world["google_calendar"]["events"] == [{"id": "e", "summary": "Tea", "start": "c"}]
    fields = {"name": "Al", "id": "forged"}
    call(world, "salesforce_create_record", collection="leads", fields=fields)
    assert world["salesforce"]["leads"][1] == {"name": "Al", "id": "leads_2"}
    place = {"collection": "leads", "record_id": "l"}
    call(world, "salesforce_update_record", **place, fields={"id": "x", "status": "won"})
    assert world["salesforce"]["leads"][0] == {"id": "l", "name": "Bo", "status": "won"}
    assert "is no collection" in call(world, "salesforce_find_records", collection="a b")
