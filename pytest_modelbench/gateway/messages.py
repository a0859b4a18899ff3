"""Anthropic's messages API, as programs speak it to the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from pytest_modelbench.gateway.calls import Asked
from pytest_modelbench.gateway.dialect import BadRequest, Speaker, event, objects, overrun, text_of
from pytest_modelbench.gateway.replies import Reply
from pytest_modelbench.gateway.upstream import Asking

_KEPT = ("temperature", "top_p", "max_tokens")
_CHOICES: dict[JsonValue, str] = {"auto": "auto", "any": "required", "none": "none"}
_STATUS_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}


@dataclass(frozen=True)
class MessagesRequest:
    """One request of the messages API; ``thinks``: the program asked to see the thinking."""

    asked: Asked
    thinks: bool = False

    def whole(self, speaker: Speaker, reply: Reply) -> dict[str, JsonValue]:
        """Return the message that says what a reply says."""
        return {
            "id": f"msg_{speaker.reply_id}",
            "type": "message",
            "role": "assistant",
            "model": speaker.name,
            "content": list(self._blocks(reply)),
            "stop_reason": _stop_reason(reply),
            "stop_sequence": None,
            "usage": _usage(reply),
        }

    def events(self, speaker: Speaker, reply: Reply) -> Iterable[bytes]:
        """Yield the same as a stream: each block whole in one delta."""
        whole = self.whole(speaker, reply)
        usage = _usage(reply)
        begun = {
            **whole,
            "content": [],
            "stop_reason": None,
            "usage": {**usage, "output_tokens": 0},
        }
        yield event("message_start", {"type": "message_start", "message": begun})
        for index, block in enumerate(self._blocks(reply)):
            empty, deltas = _taken_apart(block)
            start: dict[str, JsonValue] = {"type": "content_block_start", "index": index}
            yield event("content_block_start", {**start, "content_block": empty})
            for delta in deltas:
                piece: dict[str, JsonValue] = {"type": "content_block_delta", "index": index}
                yield event("content_block_delta", {**piece, "delta": delta})
            yield event("content_block_stop", {"type": "content_block_stop", "index": index})
        end: JsonValue = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield event("message_delta", {"type": "message_delta", "delta": end, "usage": usage})
        yield event("message_stop", {"type": "message_stop"})

    def _blocks(self, reply: Reply) -> Iterable[dict[str, JsonValue]]:
        native = objects(reply.carry.get("thinking_blocks"))
        if self.thinks and native:
            yield from native
        elif self.thinks and reply.reasoning:
            yield {"type": "thinking", "thinking": reply.reasoning, "signature": ""}
        if reply.answer:
            yield {"type": "text", "text": reply.answer}
        for call in reply.tool_calls:
            # Arguments are an object here: unreadable ones go inside one, for the model to see.
            given: JsonValue = (
                call.arguments if call.arguments is not None else {"unreadable_arguments": call.raw}
            )
            yield {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


class Messages:
    """``/v1/messages``."""

    name = "messages"

    def read(
        self, body: dict[str, JsonValue], speaker: Speaker, native: Asking | None = None
    ) -> MessagesRequest:
        """Read a request into the chat API's form."""
        kept = "anthropic" in speaker.keeps
        if not isinstance(body.get("messages"), list):
            raise BadRequest("messages: Field required")
        messages: list[JsonValue] = []
        system = body.get("system")
        if system:
            content = system if kept and isinstance(system, list) else text_of(system)
            messages.append({"role": "system", "content": content})
        for message in objects(body["messages"]):
            role = message.get("role")
            if role == "assistant":
                messages.append(_assistant(message.get("content"), kept))
            elif role in ("user", "system"):
                messages += _user(str(role), message.get("content"), kept, native is not None)
            else:
                raise BadRequest(f"messages: role {role!r} is not known")
        params = {name: body[name] for name in _KEPT if body.get(name) is not None}
        if body.get("stop_sequences"):
            params["stop"] = body["stop_sequences"]
        if kept and isinstance(body.get("thinking"), dict):
            params["thinking"] = body["thinking"]
        tools = [
            _tool(tool, kept)
            for tool in objects(body.get("tools"))
            if native or "input_schema" in tool
        ]
        if tools:
            params |= _choice(body.get("tool_choice"))
        thinking = body.get("thinking")
        thinks = isinstance(thinking, dict) and thinking.get("type") != "disabled"
        asked = Asked(
            messages=messages,
            tools=[*tools],
            params=params,
            stream=body.get("stream") is True,
            wire=self.name,
            by_program=True,
            native=native,
        )
        return MessagesRequest(asked, thinks)

    def error(self, status: int, reply: Reply) -> dict[str, JsonValue]:
        """Return an error in Anthropic's form."""
        text = f"{reply.reason}: {reply.quote}"
        if reply.reason == "context-exceeded":
            # Programs know these words, and shorten their history at them.
            tokens, window = overrun(reply)
            known = f"{tokens} tokens > {window} maximum" if tokens else reply.quote
            text = f"prompt is too long: {known}"
        kind = _STATUS_TYPES.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": text}}


def _assistant(content: JsonValue, kept: bool) -> dict[str, JsonValue]:
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    texts: list[str] = []
    calls: list[JsonValue] = []
    thoughts: list[JsonValue] = []
    for block in objects(content):
        kind = block.get("type")
        if kind == "text":
            texts.append(str(block.get("text", "")))
        elif kind == "tool_use":
            function: JsonValue = {
                "name": block.get("name"),
                "arguments": json.dumps(block.get("input") or {}),
            }
            calls.append({"id": block.get("id"), "type": "function", "function": function})
        elif kind in ("thinking", "redacted_thinking"):
            thoughts.append(block)
    message: dict[str, JsonValue] = {"role": "assistant", "content": "\n".join(texts) or None}
    if calls:
        message["tool_calls"] = calls
    elif not texts:
        message["content"] = ""
    if kept and thoughts:
        message["thinking_blocks"] = thoughts
    return message


def _user(role: str, content: JsonValue, kept: bool, all_: bool) -> list[JsonValue]:
    """Return the chat messages of one turn: results of tools first, then what was said.

    BadRequest for a block that has no form there, unless ``all_`` may pass.
    """
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    results: list[JsonValue] = []
    parts: list[JsonValue] = []
    for block in objects(content):
        kind = block.get("type")
        if kind == "text":
            marked = kept and "cache_control" in block
            mark = {"cache_control": block["cache_control"]} if marked else {}
            parts.append({"type": "text", "text": block.get("text", ""), **mark})
        elif kind == "tool_result":
            inner = block.get("content")
            parts += [_image(one) for one in objects(inner) if one.get("type") == "image"]
            result = text_of(inner)
            results.append(
                {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": result}
            )
        elif kind == "image":
            parts.append(_image(block))
        elif all_:
            parts.append(block)
        else:
            raise BadRequest(f"a content block of type {kind!r} cannot be passed to this model")
    if not parts:
        return results
    plain = all(isinstance(part, dict) and part.keys() == {"type", "text"} for part in parts)
    said: JsonValue = "\n".join(str(p["text"]) for p in objects(parts)) if plain else parts
    return [*results, {"role": role, "content": said}]


def _image(block: dict[str, JsonValue]) -> JsonValue:
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
    return {"type": "image_url", "image_url": {"url": url}}


def _tool(tool: dict[str, JsonValue], kept: bool) -> dict[str, JsonValue]:
    function: dict[str, JsonValue] = {
        "name": tool.get("name"),
        "description": tool.get("description") or "",
        "parameters": tool.get("input_schema"),
    }
    marked = kept and "cache_control" in tool
    mark = {"cache_control": tool["cache_control"]} if marked else {}
    return {"type": "function", "function": function, **mark}


def _choice(choice: JsonValue) -> dict[str, JsonValue]:
    if not isinstance(choice, dict):
        return {}
    kind = choice.get("type")
    params: dict[str, JsonValue] = {}
    if kind == "tool":
        params["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    elif kind in _CHOICES and kind != "auto":
        params["tool_choice"] = _CHOICES[kind]
    if choice.get("disable_parallel_tool_use") is True:
        params["parallel_tool_calls"] = False
    return params


def _stop_reason(reply: Reply) -> str:
    if reply.tool_calls:
        return "tool_use"
    if reply.reason in ("content-filter", "refusal"):
        return "refusal"
    return "max_tokens" if reply.truncated else "end_turn"


def _usage(reply: Reply) -> dict[str, JsonValue]:
    """Return the counts; this API has no way to say that they are unknown but 0.

    The ledger does not take them from here.
    """
    usage = reply.usage
    cached, written = usage.cached or 0, usage.cache_written or 0
    return {
        "input_tokens": max(0, (usage.input or 0) - cached - written),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": usage.output or 0,
    }


def _taken_apart(block: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], list[JsonValue]]:
    """Return a block as it begins, and the deltas that fill it."""
    match block.get("type"):
        case "text":
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "tool_use":
            given = json.dumps(block["input"])
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": given}]
        case "thinking":
            thought: JsonValue = {"type": "thinking_delta", "thinking": block["thinking"]}
            signature: JsonValue = {
                "type": "signature_delta",
                "signature": block.get("signature") or "",
            }
            return {"type": "thinking", "thinking": "", "signature": ""}, [thought, signature]
        case _:
            return block, []
