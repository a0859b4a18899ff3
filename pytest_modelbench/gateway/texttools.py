"""The text tool protocol: tools told in words and called in words, where a server takes no tools.

A reply is read to be run, so that is run which it opens with, and nothing that it only goes on to
imagine. The order in which its text is read:

1. What follows the first predicted result is dropped.
2. Blocks of JSON (``<tool_call>``, or a fence of that name): of these the first run that white
   space alone separates. Equal calls in it are one call; of writes to one path the last counts.
3. Else ``<invoke>`` markup: the first block of it, and in it the tools that were offered.
4. Else a reply that is nothing but one JSON object, in a fence perhaps, with the keys ``name``, of
   a tool that was offered, and ``input``.
5. Else it is text.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from pytest_modelbench.gateway.textcalls import TextCall
from pytest_modelbench.parsing import parse, parse_at

TEXT = "text"
"""The name of this protocol in ``tuning.tool_parser``."""

TEXT_VERSION = "1"
"""Part of a candidate's identity that speaks it: raised when tools are told or read otherwise."""

_SPOKEN = """\
You act by writing tool calls into your reply. A call is a block of this form:

<tool_call>
{"name": "NAME", "input": {"PARAMETER": "VALUE"}}
</tool_call>

Say first what you have to say, then write one block or several, one right after the other, and end
your reply there. What they came to is in the next message; never write a result yourself. A reply
without a block is your answer.

These are the tools, each with the JSON schema of its input:"""


@dataclass(frozen=True)
class Read:
    """What a reply holds: its calls, and the text before them (all of it where there is none)."""

    text: str
    calls: tuple[TextCall, ...] = ()


Schemas = Mapping[str, Mapping[str, JsonValue]]
"""The tools that were offered: name → the schema of its parameters."""


def schemas_of(tools: Sequence[JsonValue]) -> Schemas:
    """Return the parameters' schemas of tools in the form of OpenAI's API, by name."""
    found: dict[str, Mapping[str, JsonValue]] = {}
    for tool in tools:
        function = _object(_object(tool).get("function"))
        if isinstance(function.get("name"), str):
            found[str(function["name"])] = _object(function.get("parameters"))
    return found


def told(messages: Sequence[JsonValue], tools: Sequence[JsonValue]) -> list[JsonValue]:
    """Return a conversation with its tools, calls and results told in words.

    Neighbours of one role become one message: many chat templates take no others.
    """
    lines = [_SPOKEN]
    for tool in tools:
        function = _object(_object(tool).get("function"))
        schema = json.dumps(function.get("parameters") or {})
        lines.append(f"- {function.get('name')}: {function.get('description', '')}\n  {schema}")
    spoken: list[tuple[str, str]] = [("system", "\n".join(lines))]
    names: dict[str, str] = {}
    for raw in messages:
        message = _object(raw)
        role, text = str(message.get("role")), _text(message.get("content"))
        if role == "tool":
            name = names.get(str(message.get("tool_call_id")), "")
            role, text = "user", f'<tool_result name="{name}">\n{text}\n</tool_result>'
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = _object(_object(call).get("function"))
            names[str(_object(call).get("id"))] = str(function.get("name"))
            text = f"{text}\n{_block(function)}".strip()
        if role == "system" and len(spoken) == 1:
            spoken[0] = ("system", f"{text}\n\n{spoken[0][1]}")
        elif role == spoken[-1][0]:
            spoken[-1] = (role, f"{spoken[-1][1]}\n\n{text}")
        else:
            spoken.append((role, text))
    return [{"role": role, "content": text} for role, text in spoken]


def read(text: str, tools: Schemas) -> Read:
    """Read a reply, in the order that the module tells."""
    blocks, end = _blocks(text)
    text = text[:end]
    run = _first_run(text, blocks)
    if run:
        start = run[0].start
        calls = [call for block in run for call in block.calls]
        return Read(text[:start].rstrip(), tuple(_once(calls, tools)))
    invoked = _invoked(text, tools)
    if invoked is not None:
        return invoked
    sole = _sole(text, tools)
    return Read("", (sole,)) if sole is not None else Read(text)


# -- blocks of JSON ------------------------------------------------------------------------------

_OPEN = re.compile(
    r"(?P<tag><tool_call>)|(?P<fence>```tool_(?:call|code)[ \t]*\n)|(?P<other>```)"
    r"|(?P<result><(?:tool_result|tool_response|tool_output|function_results?|observation)\b"
    r"|^\s*Observation:)",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True)
class _Block:
    start: int
    end: int
    calls: tuple[tuple[str, JsonValue], ...]
    """Name and input; the input is the block's text where that is no JSON."""


def _blocks(text: str) -> tuple[list[_Block], int]:
    """Return the blocks of calls, and where the first predicted result begins."""
    found: list[_Block] = []
    at = 0
    while (opened := _OPEN.search(text, at)) is not None:
        if opened["result"]:
            return found, opened.start()
        close = "</tool_call>" if opened["tag"] else "```"
        if opened["other"]:
            end = text.find(close, opened.end())
            at = len(text) if end < 0 else end + len(close)
            continue
        calls, after = _content(text, opened.end(), close)
        if calls:
            found.append(_Block(opened.start(), after, calls))
        at = max(after, opened.end())
    return found, len(text)


def _content(text: str, at: int, close: str) -> tuple[tuple[tuple[str, JsonValue], ...], int]:
    """Return the calls in a block that begins at a place, and where it ends.

    The JSON itself says how far it goes: the closing mark may stand in one of its strings.
    """
    start = at + len(text[at:]) - len(text[at:].lstrip())
    try:
        value, after = parse_at(text, start)
    except ValueError:
        end = text.find(close, at)
        body = text[at:] if end < 0 else text[at:end]
        after = len(text) if end < 0 else end + len(close)
        name = re.search(r'"name"\s*:\s*"([^"]+)"', body)
        return (((name[1], body.strip()),) if name else (), after)
    closing = re.compile(rf"\s*{re.escape(close)}").match(text, after)
    calls = [_call(one) for one in (value if isinstance(value, list) else [value])]
    kept = tuple(call for call in calls if call is not None)
    return kept if len(kept) == len(calls) else (), closing.end() if closing else after


def _call(value: JsonValue) -> tuple[str, JsonValue] | None:
    """Return name and input of an object that is a call; its input may lie flat beside the name."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    rest = {key: one for key, one in value.items() if key not in ("name", "id", "type")}
    for key in ("input", "arguments", "parameters"):
        if set(rest) == {key} and isinstance(rest[key], dict | str):
            return str(value["name"]), rest[key]
    return str(value["name"]), rest


def _first_run(text: str, blocks: Sequence[_Block]) -> list[_Block]:
    run: list[_Block] = []
    for block in blocks:
        if run and text[run[-1].end : block.start].strip():
            break
        run.append(block)
    return run


def _once(calls: Sequence[tuple[str, JsonValue]], tools: Schemas) -> Iterator[TextCall]:
    """Yield calls, equal ones once, and of the writes to one path the last."""
    typed = [
        TextCall(name, given if isinstance(given, str) else json.dumps(_typed(given, tools, name)))
        for name, given in calls
    ]
    seen: set[TextCall] = set()
    for at, call in enumerate(typed):
        path = _written(call, tools)
        later = any(path is not None and _written(one, tools) == path for one in typed[at + 1 :])
        if call not in seen and not later:
            yield call
        seen.add(call)


def _written(call: TextCall, tools: Schemas) -> tuple[str, str] | None:
    """Return tool and path of a call that writes a whole file, None for any other."""
    required = tools.get(call.name, {}).get("required")
    if not isinstance(required, list) or not {"path", "content"} <= set(map(str, required)):
        return None
    try:
        given = parse(call.raw)
    except ValueError:
        return None
    path = given.get("path") if isinstance(given, dict) else None
    return (call.name, path) if isinstance(path, str) else None


# -- markup, and a bare object -------------------------------------------------------------------

_CALLS = re.compile(r"<function_calls>(.*?)(?:</function_calls>|\Z)", re.DOTALL)
_INVOKE = re.compile(r'<invoke\s+name="([^"]*)"\s*>(.*?)(?:</invoke>|\Z)', re.DOTALL)
_PARAMETER = re.compile(
    r'<parameter\s+name="([^"]*)"[^>]*>(.*?)</parameter>',
    re.DOTALL,
)
_FENCED = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n[ \t]*```\Z", re.DOTALL)


def _invoked(text: str, tools: Schemas) -> Read | None:
    """Return the calls of the first block of markup; None where it has none that was offered."""
    whole = _CALLS.search(text)
    within, at = (whole[1], whole.start()) if whole else (text, 0)
    made: list[tuple[str, JsonValue]] = []
    begins, ended = -1, -1
    for found in _INVOKE.finditer(within):
        if ended >= 0 and within[ended : found.start()].strip():
            break
        begins = found.start() if begins < 0 else begins
        ended = found.end()
        name = html.unescape(found[1])
        if name in tools:
            values = {html.unescape(key): value for key, value in _PARAMETER.findall(found[2])}
            made.append((name, {key: _unwrapped(value) for key, value in values.items()}))
    if not made:
        return None
    start = at if whole else begins
    return Read(text[:start].rstrip(), tuple(_once(made, tools)))


def _unwrapped(value: str) -> str:
    """Return a parameter without the line breaks that set it apart from its tags."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == "\n" else value


def _sole(text: str, tools: Schemas) -> TextCall | None:
    fenced = _FENCED.match(text.strip())
    try:
        value = parse(fenced[1] if fenced else text)
    except ValueError:
        return None
    if not isinstance(value, dict) or set(value) != {"name", "input"}:
        return None
    name, given = value["name"], value["input"]
    if not isinstance(name, str) or name not in tools or not isinstance(given, dict):
        return None
    return TextCall(name, json.dumps(_typed(given, tools, name)))


# -- types ---------------------------------------------------------------------------------------


def _typed(given: JsonValue, tools: Schemas, name: str) -> JsonValue:
    """Return arguments with texts made into what the tool's schema says that they are."""
    if not isinstance(given, dict):
        return given
    properties = _object(tools.get(name, {}).get("properties"))
    return {key: _value(one, _object(properties.get(key))) for key, one in given.items()}


LONGEST_NUMBER = 300
"""Characters. Python turns no text of thousands of digits into a number."""

_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"


def _value(value: JsonValue, schema: Mapping[str, JsonValue]) -> JsonValue:
    if not isinstance(value, str):
        return value
    declared = schema.get("type")
    kinds = declared if isinstance(declared, list) else [declared]
    plain = value.strip()
    if len(plain) <= LONGEST_NUMBER:
        whole = re.fullmatch(r"[+-]?\d+", plain)
        if whole and not {"integer", "number"}.isdisjoint(map(str, kinds)):
            return int(plain)
        if "number" in kinds and re.fullmatch(_NUMBER, plain) and math.isfinite(float(plain)):
            return float(plain)
    if "boolean" in kinds and plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    if "string" not in kinds and plain[:1] in ("{", "["):
        try:
            parsed: JsonValue = parse(plain)
        except ValueError:
            return value
        return parsed
    return value


def _block(function: Mapping[str, JsonValue]) -> str:
    """Return a call of the history as the protocol writes it."""
    raw = function.get("arguments")
    try:
        given = parse(raw) if isinstance(raw, str) else raw
    except ValueError:
        given = raw
    call = json.dumps({"name": function.get("name"), "input": given}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"


def _text(content: JsonValue) -> str:
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else _object(part).get("text") for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _object(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}
