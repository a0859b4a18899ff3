"""The history that goes back to a server: whatever is in it, the server can read it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from pytest_modelbench.gateway.toolcalls import clean, readable_arguments


def repair(messages: Sequence[JsonValue]) -> list[JsonValue]:
    """Return the messages with every tool call readable, and with no half of a surrogate pair.

    Unreadable arguments go into an object of their own; an object becomes a string; a call without
    an id gets one, and the tool results that follow it get the same, in order.
    """
    repaired: list[JsonValue] = []
    missing: list[str] = []
    for place, message in enumerate(messages):
        message = clean(message)
        if isinstance(message, dict) and message.get("role") == "assistant":
            message, missing = _assistant(message, place)
        elif (
            isinstance(message, dict)
            and message.get("role") == "tool"
            and missing
            and not message.get("tool_call_id")
        ):
            message = {**message, "tool_call_id": missing.pop(0)}
        repaired.append(message)
    return repaired


def tool_names(tools: Sequence[JsonValue]) -> tuple[str, ...]:
    """Return the names of the functions among the tools on offer."""
    names: list[str] = []
    for tool in tools:
        function = tool.get("function") if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str):
            names.append(name)
    return tuple(names)


def _assistant(message: dict[str, JsonValue], place: int) -> tuple[dict[str, JsonValue], list[str]]:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message, []
    if not calls:
        return {key: value for key, value in message.items() if key != "tool_calls"}, []
    missing: list[str] = []
    repaired: list[JsonValue] = []
    for index, call in enumerate(calls):
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        identity = call.get("id")
        if not isinstance(identity, str) or not identity:
            identity = f"call{place:04d}{index % 10}"
            missing.append(identity)
        function = {**function, "arguments": readable_arguments(function.get("arguments"))}
        repaired.append({**call, "id": identity, "type": "function", "function": function})
    return {**message, "tool_calls": repaired}, missing
