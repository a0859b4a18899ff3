from __future__ import annotations

import json
from typing import Any

from pydantic import JsonValue

from pytest_modelbench.candidates.conversation import Conversation


def reply(*calls: tuple[str, str, dict[str, JsonValue]]) -> dict[str, JsonValue]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": identity,
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for identity, name, arguments in calls
        ],
    }


def conversation(budget: int | None) -> Conversation:
    talk = Conversation(budget)
    talk.say("system", "s" * 100)
    talk.say("user", "u" * 100)
    for turn in ("a", "b", "c"):
        talk.reply(reply((turn, "write_file", {"path": turn, "content": turn * 1000})))
        talk.result(turn, turn * 2000)
    return talk


def contents(talk: Conversation) -> list[int]:
    return [len(str(message["content"])) for message in talk.messages if message["role"] == "tool"]


def written(talk: Conversation) -> list[str]:
    calls = [call for one in plain(talk) for call in one.get("tool_calls", ())]
    return [json.loads(call["function"]["arguments"])["content"] for call in calls]


def plain(talk: Conversation) -> list[dict[str, Any]]:  # Any: JSON
    found: list[dict[str, Any]] = json.loads(json.dumps(talk.messages))
    return found


def test_without_a_window_nothing_is_trimmed() -> None:
    talk = conversation(None)
    assert talk.trim() == 0
    assert contents(talk) == [2000, 2000, 2000]


def test_the_oldest_output_goes_first_and_no_more_than_is_needed() -> None:
    whole = conversation(None).size()
    talk = conversation(whole - 1000)
    assert talk.trim() == 1
    assert contents(talk) == [173, 2000, 2000]
    assert talk.size() <= whole - 1000
    assert talk.messages[3]["content"] == (
        "a" * 120 + "\n[1880 characters of old output removed to save room]"
    )
    assert talk.trim() == 0


def test_old_calls_are_shortened_after_all_old_outputs_and_stay_readable() -> None:
    talk = conversation(5500)
    assert talk.trim() == 3
    assert contents(talk) == [173, 173, 2000]
    assert talk.size() <= 5500
    assert [len(content) for content in written(talk)] == [171, 1000, 1000]


def test_the_newest_reply_and_its_results_stay_whole_whatever_the_window() -> None:
    talk = conversation(10)
    assert talk.trim() == 4
    assert contents(talk) == [173, 173, 2000]
    assert talk.messages[0]["content"] == "s" * 100
    assert len(str(talk.messages[-2]["tool_calls"])) > 1000


def test_an_invented_tool_stands_in_the_history_under_a_name_that_servers_accept() -> None:
    talk = Conversation()
    talk.reply(reply(("1", "apply patch!", {}), ("2", "", {})))
    (message,) = plain(talk)
    names = [call["function"]["name"] for call in message["tool_calls"]]
    assert names == ["apply_patch_", "unknown"]
