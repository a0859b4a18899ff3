"""OpenAI's responses API, as programs speak it to the gateway. It keeps no state between calls."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from pytest_modelbench.gateway.calls import Asked
from pytest_modelbench.gateway.chat import Chat
from pytest_modelbench.gateway.dialect import BadRequest, Speaker, event, objects, text_of
from pytest_modelbench.gateway.replies import Reply
from pytest_modelbench.gateway.toolcalls import ToolCall
from pytest_modelbench.gateway.upstream import Asking

_KEPT = ("temperature", "top_p", "parallel_tool_calls")
_SEPARATOR = "__"


@dataclass(frozen=True)
class _Named:
    """How the program knows a tool that the model sees under one flat name."""

    name: str
    namespace: str = ""
    free: bool = False


@dataclass(frozen=True)
class ResponsesRequest:
    """One request of the responses API; ``tools`` leads back from flat names."""

    asked: Asked
    tools: Mapping[str, _Named] = field(default_factory=dict)

    def whole(self, speaker: Speaker, reply: Reply) -> dict[str, JsonValue]:
        """Return the response that says what a reply says."""
        output: list[JsonValue] = [*self._items(speaker, reply)]
        return self._envelope(
            speaker, reply, output, "incomplete" if reply.truncated else "completed"
        )

    def events(self, speaker: Speaker, reply: Reply) -> Iterable[bytes]:
        """Yield the same as a stream: each text and each call whole in one delta."""
        number = 0

        def said(kind: str, **data: JsonValue) -> bytes:
            nonlocal number
            number += 1
            return event(kind, {"type": kind, "sequence_number": number - 1, **data})

        begun = self._envelope(speaker, reply, [], "in_progress") | {"usage": None}
        yield said("response.created", response=begun)
        yield said("response.in_progress", response=begun)
        for index, item in enumerate(self._items(speaker, reply)):
            at: dict[str, JsonValue] = {"output_index": index, "item_id": item["id"]}
            yield said("response.output_item.added", output_index=index, item=_begun(item))
            for kind, data in _filling(item):
                yield said(kind, **at, **data)
            yield said("response.output_item.done", output_index=index, item=item)
        whole = self.whole(speaker, reply)
        yield said(f"response.{whole['status']}", response=whole)

    def _envelope(
        self, speaker: Speaker, reply: Reply, output: list[JsonValue], status: str
    ) -> dict[str, JsonValue]:
        cut: JsonValue = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            "id": f"resp_{speaker.reply_id}",
            "object": "response",
            "created_at": int(time.time()),
            "status": status,
            "error": None,
            "incomplete_details": cut,
            "instructions": None,
            "metadata": {},
            "model": speaker.name,
            "output": output,
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": _usage(reply),
        }

    def _items(self, speaker: Speaker, reply: Reply) -> Iterable[dict[str, JsonValue]]:
        if reply.reasoning:
            thought: JsonValue = {"type": "summary_text", "text": reply.reasoning}
            yield {"type": "reasoning", "id": f"rs_{speaker.reply_id}", "summary": [thought]}
        if reply.answer:
            text: JsonValue = {"type": "output_text", "text": reply.answer, "annotations": []}
            yield {
                "type": "message",
                "id": f"msg_{speaker.reply_id}",
                "status": "completed",
                "role": "assistant",
                "content": [text],
            }
        for number, call in enumerate(reply.tool_calls):
            yield self._call(call, f"fc_{speaker.reply_id}_{number}")

    def _call(self, call: ToolCall, identity: str) -> dict[str, JsonValue]:
        known = self.tools.get(call.name, _Named(call.name))
        common: dict[str, JsonValue] = {"id": identity, "call_id": call.id, "status": "completed"}
        if known.free:
            given = (call.arguments or {}).get("input")
            text = given if isinstance(given, str) else call.raw
            return {"type": "custom_tool_call", **common, "name": known.name, "input": text}
        item = {
            "type": "function_call",
            **common,
            "name": known.name,
            "arguments": call.raw or "{}",
        }
        return item | ({"namespace": known.namespace} if known.namespace else {})


class Responses:
    """``/v1/responses``."""

    name = "responses"
    error = staticmethod(Chat().error)

    def read(
        self, body: dict[str, JsonValue], speaker: Speaker, native: Asking | None = None
    ) -> ResponsesRequest:
        """Read a request into the chat API's form."""
        if body.get("previous_response_id"):
            raise BadRequest("previous_response_id: nothing is kept between calls; send the input")
        given = body.get("input")
        items = objects([{"role": "user", "content": given}] if isinstance(given, str) else given)
        if not items:
            raise BadRequest("input: a text or a list of items is needed")
        tools, named = _tools(body.get("tools"))
        params = {name: body[name] for name in _KEPT if body.get(name) is not None}
        if isinstance(body.get("max_output_tokens"), int):
            params["max_tokens"] = body["max_output_tokens"]
        if not tools:
            params.pop("parallel_tool_calls", None)
        else:
            params |= _choice(body.get("tool_choice"))
        params |= _format(body.get("text"))
        effort = body.get("reasoning")
        if "effort" in speaker.keeps and isinstance(effort, dict) and effort.get("effort"):
            params["reasoning_effort"] = effort["effort"]
        asked = Asked(
            messages=_History(body.get("instructions"), native is not None).read(items),
            tools=tools,
            params=params,
            stream=body.get("stream") is True,
            wire=self.name,
            by_program=True,
            native=native,
        )
        return ResponsesRequest(asked, named)


class _History:
    """Turns items into messages: calls join the assistant's message that they belong to.

    BadRequest for an item that has no form there, unless ``all_`` may pass.
    """

    def __init__(self, instructions: JsonValue, all_: bool = False) -> None:
        self._all = all_
        self.messages: list[JsonValue] = []
        self._system = [instructions] if isinstance(instructions, str) and instructions else []
        self._open: dict[str, JsonValue] | None = None

    def read(self, items: Iterable[dict[str, JsonValue]]) -> list[JsonValue]:
        for item in items:
            match item.get("type", "message"):
                case "message":
                    self._said(str(item.get("role")), item.get("content"))
                case "function_call" | "custom_tool_call":
                    self._called(item)
                case "function_call_output" | "custom_tool_call_output":
                    self._end_open()
                    result = text_of(item.get("output"))
                    self.messages.append(
                        {"role": "tool", "tool_call_id": item.get("call_id"), "content": result}
                    )
                case "reasoning" | "item_reference" | "compaction":
                    pass  # thinking is the model's own; other servers cannot read it
                case kind if not self._all:
                    raise BadRequest(f"an input item of type {kind!r} cannot be passed on")
        self._end_open()
        # One message at the top: many chat templates take no second one.
        top: list[JsonValue] = (
            [{"role": "system", "content": "\n\n".join(self._system)}] if self._system else []
        )
        return [*top, *self.messages]

    def _said(self, role: str, content: JsonValue) -> None:
        if role in ("system", "developer"):
            if not self.messages and self._open is None:
                self._system.append(text_of(content))
                return
            role = "system"
        self._end_open()
        if role == "assistant":
            self._open = {"role": role, "content": text_of(content)}
        else:
            self.messages.append({"role": role, "content": _content(content)})

    def _called(self, item: dict[str, JsonValue]) -> None:
        if self._open is None:
            self._open = {"role": "assistant", "content": None}
        name = str(item.get("name"))
        if item.get("namespace"):
            name = f"{item['namespace']}{_SEPARATOR}{name}"
        free = item.get("type") == "custom_tool_call"
        arguments = json.dumps({"input": item.get("input")}) if free else item.get("arguments")
        function: JsonValue = {"name": name, "arguments": arguments}
        call: JsonValue = {"id": item.get("call_id"), "type": "function", "function": function}
        calls = self._open.setdefault("tool_calls", [])
        if isinstance(calls, list):
            calls.append(call)

    def _end_open(self) -> None:
        if self._open is not None:
            self.messages.append(self._open)
            self._open = None


def _content(content: JsonValue) -> JsonValue:
    parts = objects(content)
    if not any(part.get("type") == "input_image" for part in parts):
        return text_of(content)
    return [
        {"type": "image_url", "image_url": {"url": part.get("image_url")}}
        if part.get("type") == "input_image"
        else {"type": "text", "text": part.get("text", "")}
        for part in parts
    ]


def _tools(listed: JsonValue) -> tuple[list[JsonValue], dict[str, _Named]]:
    """Return the functions among the tools, those of namespaces under flat names.

    What the maker's own servers do (search, images) is not on offer here.
    """
    tools: list[JsonValue] = []
    named: dict[str, _Named] = {}

    def add(tool: dict[str, JsonValue], space: str) -> None:
        name, free = str(tool.get("name")), tool.get("type") == "custom"
        flat = f"{space}{_SEPARATOR}{name}" if space else name
        named[flat] = _Named(name, space, free)
        parameters = _FREE if free else tool.get("parameters") or _NONE
        function: dict[str, JsonValue] = {
            "name": flat,
            "description": tool.get("description") or "",
            "parameters": parameters,
        }
        if isinstance(tool.get("strict"), bool) and not free:
            function["strict"] = tool["strict"]
        tools.append({"type": "function", "function": function})

    for tool in objects(listed):
        if tool.get("type") in ("function", "custom"):
            add(tool, "")
        elif tool.get("type") == "namespace":
            for inner in objects(tool.get("tools")):
                if inner.get("type") in ("function", "custom"):
                    add(inner, str(tool.get("name")))
    return tools, named


_NONE: JsonValue = {"type": "object", "properties": {}}
_FREE: JsonValue = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


def _choice(choice: JsonValue) -> dict[str, JsonValue]:
    if isinstance(choice, str):
        return {"tool_choice": choice} if choice in ("required", "none") else {}
    if isinstance(choice, dict) and choice.get("name"):
        return {"tool_choice": {"type": "function", "function": {"name": choice["name"]}}}
    return {}


def _format(text: JsonValue) -> dict[str, JsonValue]:
    wanted = text.get("format") if isinstance(text, dict) else None
    if not isinstance(wanted, dict) or wanted.get("type") in (None, "text"):
        return {}
    if wanted["type"] != "json_schema":
        return {"response_format": {"type": wanted["type"]}}
    schema = {key: value for key, value in wanted.items() if key != "type"}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _usage(reply: Reply) -> JsonValue:
    usage = reply.usage
    if usage.input is None or usage.output is None:
        return None
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached or 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.input + usage.output,
    }


def _begun(item: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return an item as it stands before anything of it has come."""
    empty: dict[str, JsonValue] = {"status": "in_progress"}
    match item["type"]:
        case "message":
            return item | empty | {"content": []}
        case "function_call":
            return item | empty | {"arguments": ""}
        case "custom_tool_call":
            return item | empty | {"input": ""}
        case _:
            return item | {"summary": []}


def _filling(item: dict[str, JsonValue]) -> Iterable[tuple[str, dict[str, JsonValue]]]:
    """Yield the events that fill an item."""
    match item["type"]:
        case "message":
            (part,) = objects(item["content"])
            text = part["text"]
            at: dict[str, JsonValue] = {"content_index": 0}
            yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
            yield "response.output_text.delta", {**at, "delta": text, "logprobs": []}
            yield "response.output_text.done", {**at, "text": text, "logprobs": []}
            yield "response.content_part.done", {**at, "part": part}
        case "function_call":
            name, given = item["name"], item["arguments"]
            yield "response.function_call_arguments.delta", {"delta": given}
            yield "response.function_call_arguments.done", {"arguments": given, "name": name}
        case "custom_tool_call":
            yield "response.custom_tool_call_input.delta", {"delta": item["input"]}
            yield "response.custom_tool_call_input.done", {"input": item["input"]}
        case _:
            (part,) = objects(item["summary"])
            at = {"summary_index": 0}
            yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
            yield "response.reasoning_summary_text.delta", {**at, "delta": part["text"]}
            yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
            yield "response.reasoning_summary_part.done", {**at, "part": part}
