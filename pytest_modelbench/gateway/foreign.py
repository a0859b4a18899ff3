"""Replies of Anthropic's messages API and OpenAI's responses API, read as chat completions.

One function understands every reply (``replies.classify``); these give it what such a server sent,
whole or streamed, with usage, end mark and model name as they came. What is unknown is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from pydantic import JsonValue

from pytest_modelbench.gateway import sse
from pytest_modelbench.gateway.replies import Exchange
from pytest_modelbench.parsing import parse

Object = dict[str, JsonValue]


def as_chat(exchange: Exchange, wire: str) -> Exchange:
    """Return an exchange of ``messages`` or ``responses`` with a chat completion for its body.

    ``raw`` keeps what was sent. Where that is no reply, or not the end of one, it is left as it is:
    what is wrong with it is told from it as from any server's.
    """
    if exchange.status is None or not 200 <= exchange.status < 300:
        return exchange
    streamed, whole = _WIRES[wire]
    body = _parsed(exchange.body.decode("utf-8", "replace"))
    if body is None:
        body = streamed(_pieces(exchange.body))
    elif exchange.error:
        return exchange
    if body is None:
        return exchange
    read = body if body.get("error") else whole(body)
    return replace(exchange, error="", body=json.dumps(read).encode(), raw=exchange.body)


def _message(pieces: Iterable[Object]) -> Object | None:
    """Put the events of a streamed message together; None where its end did not come."""
    message: Object = {}
    blocks: dict[JsonValue, Object] = {}
    usage: Object = {}
    ended = False
    for piece in pieces:
        kind, index = piece.get("type"), str(piece.get("index"))
        if kind == "error":
            return {"error": piece.get("error") or piece}
        if kind == "message_start":
            message = _object(piece.get("message"))
            usage = {**_object(message.get("usage"))}
        elif kind == "content_block_start":
            blocks[index] = {**_object(piece.get("content_block"))}
        elif kind == "content_block_delta":
            _fill(blocks.setdefault(index, {}), _object(piece.get("delta")))
        elif kind == "message_delta":
            message |= {k: v for k, v in _object(piece.get("delta")).items() if v is not None}
            # Its counts are of the whole message, and the last word on it.
            usage |= {k: v for k, v in _object(piece.get("usage")).items() if v is not None}
        ended = ended or kind == "message_stop" or bool(message.get("stop_reason"))
    return {**message, "content": list(blocks.values()), "usage": usage} if ended else None


def _fill(block: Object, delta: Object) -> None:
    for name, kind in (("text", "text"), ("thinking", "thinking"), ("partial_json", "tool_use")):
        piece = delta.get(name)
        if isinstance(piece, str):
            block.setdefault("type", kind)
            before = block.get(name)
            block[name] = (before if isinstance(before, str) else "") + piece


def _of_message(message: Object) -> Object:
    blocks = _objects(message.get("content"))
    calls: list[JsonValue] = []
    for block in blocks:
        if block.get("type") == "tool_use":
            given = block.get("partial_json") or json.dumps(block.get("input") or {})
            calls.append(_call(block.get("id"), block.get("name"), given))
    return _chat(
        message.get("model"),
        _joined(block.get("text") for block in blocks if block.get("type") == "text"),
        _joined(block.get("thinking") for block in blocks if block.get("type") == "thinking"),
        calls,
        message.get("stop_reason"),
        message.get("usage"),
    )


def _response(pieces: Iterable[Object]) -> Object | None:
    """Return the whole response that a stream of one ends with; None where its end did not come."""
    done: list[JsonValue] = []
    for piece in pieces:
        kind, response = piece.get("type"), _object(piece.get("response"))
        if kind == "error":
            return {"error": piece.get("error") or piece}
        if kind == "response.output_item.done":
            done.append(piece.get("item"))
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            return {**response, "output": response.get("output") or done}
    return None


def _of_response(response: Object) -> Object:
    texts, refusals, thoughts = list[JsonValue](), list[JsonValue](), list[JsonValue]()
    calls: list[JsonValue] = []
    for item in _objects(response.get("output")):
        match item.get("type"):
            case "message":
                for part in _objects(item.get("content")):
                    texts.append(part.get("text"))
                    refusals.append(part.get("refusal"))
            case "reasoning":
                parts = _objects(item.get("summary")) + _objects(item.get("content"))
                thoughts += [part.get("text") for part in parts]
            case "function_call" | "custom_tool_call" as kind:
                name = "__".join(str(item[key]) for key in ("namespace", "name") if item.get(key))
                free = kind == "custom_tool_call"
                given = json.dumps({"input": item.get("input")}) if free else item.get("arguments")
                calls.append(_call(item.get("call_id"), name, given))
    why = _object(response.get("incomplete_details")).get("reason")
    chat = _chat(
        response.get("model"),
        _joined(texts),
        _joined(thoughts),
        calls,
        why or response.get("status"),
        response.get("usage"),
    )
    refused = _joined(refusals)
    if refused:
        _object(_objects(chat["choices"])[0]["message"])["refusal"] = refused
    return chat


_WIRES: Mapping[
    str, tuple[Callable[[Iterable[Object]], Object | None], Callable[[Object], Object]]
] = {"messages": (_message, _of_message), "responses": (_response, _of_response)}


def _chat(
    model: JsonValue,
    answer: str | None,
    thinking: str | None,
    calls: list[JsonValue],
    mark: JsonValue,
    usage: JsonValue,
) -> Object:
    message: Object = {"role": "assistant", "content": answer}
    if thinking is not None:
        message["reasoning_content"] = thinking
    if calls:
        message["tool_calls"] = calls
    choice: JsonValue = {"index": 0, "message": message, "finish_reason": mark}
    return {"model": model, "choices": [choice], "usage": usage}


def _call(identity: JsonValue, name: JsonValue, arguments: JsonValue) -> JsonValue:
    function: JsonValue = {"name": name, "arguments": arguments}
    return {"id": identity, "type": "function", "function": function}


def _pieces(raw: bytes) -> Iterable[Object]:
    for name, data in sse.events(raw):
        piece = _parsed(data)
        if piece is not None:
            yield {"type": name, **piece}


def _parsed(text: str) -> Object | None:
    try:
        value = parse(text.removeprefix("\ufeff"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _joined(texts: Iterable[JsonValue]) -> str | None:
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if found else None


def _object(value: JsonValue) -> Object:
    return value if isinstance(value, dict) else {}


def _objects(value: JsonValue) -> list[Object]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
