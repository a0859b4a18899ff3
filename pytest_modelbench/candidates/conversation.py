"""The messages of one attempt, kept within the model's context window."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from pydantic import JsonValue

from pytest_modelbench.candidates import prompts
from pytest_modelbench.parsing import parse

Message = dict[str, JsonValue]
KEPT = 120
"""Characters of an old output or of an old long argument that stay when it is trimmed."""


@dataclass
class Conversation:
    """Messages in the chat interface's form; every one of them is JSON that a server can read.

    ``budget`` is in characters, the tools' schemas among them; None: no limit is known.
    """

    budget: int | None = None
    overhead: int = 0
    messages: list[Message] = field(default_factory=list)

    def say(self, role: str, text: str) -> None:
        """Add a message of the system or the user."""
        self.messages.append({"role": role, "content": text})

    def reply(self, message: Message) -> None:
        """Add the model's own message, its invented tools under names that servers accept."""
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            message = message | {"tool_calls": [_sendable(call) for call in calls]}
        self.messages.append(message)

    def result(self, call_id: str, text: str) -> None:
        """Add what a call came to."""
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": text})

    def trim(self) -> int:
        """Shorten until the budget holds, and return how many messages were shortened.

        Outputs go first, the oldest before the others, then the long arguments of old calls. What
        followed the model's newest reply stays whole. A conversation that is still too long is
        sent as it is: the server's word on it is the model's result.
        """
        replies = (n for n, one in enumerate(self.messages) if one["role"] == "assistant")
        newest = max(replies, default=0)
        trimmed = 0
        for shorten in (_short_output, _short_calls):
            for index in range(newest):
                if self.budget is None or self.size() <= self.budget:
                    return trimmed
                short = shorten(self.messages[index])
                if short is not None:
                    self.messages[index] = short
                    trimmed += 1
        return trimmed

    def size(self) -> int:
        """Return the length of what would be sent, in characters."""
        return self.overhead + sum(_length(message) for message in self.messages)


def _length(value: JsonValue) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + _length(inner) for key, inner in value.items())
    if isinstance(value, list):
        return sum(_length(inner) for inner in value)
    return 4


def _short_output(message: Message) -> Message | None:
    content = message["content"]
    if message["role"] != "tool" or not isinstance(content, str) or len(content) <= 2 * KEPT:
        return None
    return message | {"content": content[:KEPT] + "\n" + prompts.trimmed(len(content) - KEPT)}


def _short_calls(message: Message) -> Message | None:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return None
    short = [_short_call(call) for call in calls]
    return message | {"tool_calls": short} if short != calls else None


def _short_call(call: JsonValue) -> JsonValue:
    function = call["function"] if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        return call
    arguments: dict[str, JsonValue] = parse(str(function["arguments"]))
    kept = {
        key: value[:KEPT] + prompts.trimmed(len(value) - KEPT)
        if isinstance(value, str) and len(value) > 2 * KEPT
        else value
        for key, value in arguments.items()
    }
    if kept == arguments:
        return call
    return call | {"function": function | {"arguments": json.dumps(kept)}}


def _sendable(call: JsonValue) -> JsonValue:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        return call
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(function["name"]))[:64] or "unknown"
    return call | {"function": function | {"name": name}}
