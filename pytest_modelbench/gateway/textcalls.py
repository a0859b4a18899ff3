"""Tool calls that a server without a tool parser left in the text of its reply."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass

from pydantic import JsonValue

from pytest_modelbench.parsing import parse


@dataclass(frozen=True)
class TextCall:
    """One call found in text. ``raw`` is what the arguments were read from."""

    name: str
    raw: str


FORMATS = ("hermes", "json")
"""What ``tuning.tool_parser`` of a candidate may name: tags with JSON in them, or bare JSON."""

_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_FENCED = re.compile(r"\A\s*```(?:json|tool_call|tool_code)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_MARKS = re.compile(
    r"<\|python_tag\|>|\[TOOL_CALLS\]|<function=[\w.-]+>|<\|tool_calls_section_begin\|>"
    r"|<\uff5ctool\u2581calls\u2581begin\uff5c>|<\|tool_call_start\|>|<function_calls>"
)


def find_calls(text: str, tools: Collection[str]) -> tuple[TextCall, ...]:
    """Return the calls that a text holds, in order; none where no tool was offered.

    A tag counts whatever it names. A bare or fenced JSON object counts only when it is all of the
    text and names a tool on offer, since an answer may well be JSON.
    """
    if not tools:
        return ()
    tagged = [call for found in _TAGGED.findall(text) for call in _read(found)]
    if tagged:
        return tuple(tagged)
    fenced = _FENCED.match(text)
    bare = _read(fenced.group(1) if fenced else text.strip())
    return tuple(bare) if bare and all(call.name in tools for call in bare) else ()


def holds_call(text: str, tools: Collection[str]) -> bool:
    """Tell whether a text holds a call in any notation that is known, readable here or not."""
    if not tools:
        return False
    return bool(
        find_calls(text, tools) or _MARKS.search(text) or re.search(r"<tool_call>\s*[{<\w]", text)
    )


def _read(text: str) -> list[TextCall]:
    try:
        value = parse(text)
    except ValueError:
        return []
    found: list[TextCall] = []
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            return []
        key = "arguments" if "arguments" in item else "parameters"
        if key not in item:
            return []
        arguments: JsonValue = item[key]
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
        found.append(TextCall(item["name"], raw))
    return found
