"""Tool calls that a model made, and what can be wrong with them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from pydantic import Field, JsonValue

from pytest_modelbench.parsing import parse
from pytest_modelbench.records import Record

NOT_JSON = "arguments-not-json"
CUT = "arguments-cut"
UNKNOWN_TOOL = "unknown-tool"


class ToolCall(Record):
    """One call that the model made.

    ``arguments`` is None when they could not be read as a JSON object; ``raw`` is what came, and
    ``problem`` is ``arguments-not-json``, ``arguments-cut`` or ``unknown-tool``. ``id`` is None
    only where the server gave none and the gateway has not made one yet.
    """

    id: str | None
    name: str
    arguments: dict[str, JsonValue] | None
    raw: str = ""
    problem: str | None = None
    problem_text: str = Field(default="", description="what is wrong and where, for the model")


def read_calls(listed: JsonValue, tools: Collection[str], truncated: bool) -> list[ToolCall]:
    """Read the ``tool_calls`` of a message; an id that comes a second time is none."""
    found: list[ToolCall] = []
    seen: set[str] = set()
    for item in listed if isinstance(listed, list) else []:
        if not isinstance(item, dict):
            continue
        function = item.get("function")
        function = function if isinstance(function, dict) else item
        name, identity = function.get("name"), item.get("id")
        own = identity if isinstance(identity, str) and identity and identity not in seen else None
        if own is not None:
            seen.add(own)
        raw = function.get("arguments")
        found.append(
            read_call(
                own,
                str(clean(name)) if isinstance(name, str) else "",
                raw if isinstance(raw, str) else "" if raw is None else json.dumps(raw),
                tools,
                truncated,
            )
        )
    return found


def read_call(
    identity: str | None, name: str, raw: str, tools: Collection[str], truncated: bool
) -> ToolCall:
    """Read one call. ``truncated``: the reply was cut off by the token limit."""
    arguments, text = _arguments(raw)
    problem = None
    if arguments is None:
        problem = CUT if truncated else NOT_JSON
    elif name not in tools:
        problem = UNKNOWN_TOOL
        text = f"there is no tool {name!r}; on offer: {', '.join(sorted(tools)) or 'none'}"
    return ToolCall(
        id=identity,
        name=name,
        arguments=arguments,
        raw=_clean_text(raw),
        problem=problem,
        problem_text=text,
    )


def readable_arguments(raw: JsonValue) -> str:
    """Return arguments as a server can read them: a JSON object in a string.

    Unreadable ones go back inside an object, so that the model still sees what it wrote.
    """
    if isinstance(raw, dict):
        return json.dumps(clean(raw))
    text = raw if isinstance(raw, str) else ""
    value, problem = _arguments(text)
    if problem:
        return json.dumps({"unreadable_arguments": clean(text)})
    return json.dumps(value)


def clean(value: JsonValue) -> JsonValue:
    """Join halves of surrogate pairs, and replace single ones by U+FFFD, however deep.

    No UTF-8 can hold them.
    """
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, dict):
        return {_clean_text(key): clean(item) for key, item in value.items()}
    return value


_SURROGATES = re.compile("[\ud800-\udfff]")


def _clean_text(text: str) -> str:
    if _SURROGATES.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _arguments(raw: str) -> tuple[dict[str, JsonValue] | None, str]:
    """Read arguments; return them, or None and what is wrong with them. No arguments are ``{}``."""
    if not raw.strip():
        return {}, ""
    try:
        value = parse(raw, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        near = raw[max(0, error.pos - 20) : error.pos + 20]
        return None, (
            f"the arguments are not JSON: {error.msg} at line {error.lineno} column {error.colno}"
            f" (near {clean(near)!r})"
        )
    except ValueError as error:
        return None, f"the arguments are not JSON: {error}"
    if not isinstance(value, dict):
        return None, f"the arguments are JSON, but not an object: {type(value).__name__}"
    cleaned = clean(value)
    return (cleaned if isinstance(cleaned, dict) else {}), ""


def _no_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is no JSON value")
