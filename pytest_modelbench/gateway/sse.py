"""Event streams: read their pieces, and put a streamed reply together as if it had come whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from pytest_modelbench.parsing import parse

DONE = "[DONE]"


@dataclass
class Assembled:
    """A streamed reply put together: the body it would have been, and whether it came to its end.

    ``error`` is the body of an error that the server sent inside the stream. ``broken`` quotes the
    first piece that could not be read.
    """

    body: dict[str, JsonValue]
    complete: bool
    error: dict[str, JsonValue] | None = None
    broken: str = ""


def events(raw: bytes) -> Iterator[tuple[str, str]]:
    """Yield ``(event, data)`` of each event in a stream's bytes; a last one cut short, too."""
    name, lines = "", list[str]()
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            if lines:
                yield name, "\n".join(lines)
            name, lines = "", []
        elif line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif line.startswith("event:"):
            name = line[6:].strip()
    if lines:
        yield name, "\n".join(lines)


def assemble(raw: bytes) -> Assembled:
    """Put the chat completion chunks of a stream together.

    Complete means that a finish mark or the end marker was seen; servers leave out the one or the
    other. The body has the shape of a chat completion that was not streamed.
    """
    merged = _Merged()
    for name, data in events(raw):
        if data.strip() == DONE:
            merged.done = True
            continue
        try:
            piece = parse(data)
        except ValueError:
            merged.broken = merged.broken or data[:200]
            continue
        if not isinstance(piece, dict):
            merged.broken = merged.broken or data[:200]
        elif piece.get("error") or (name == "error" and not piece.get("choices")):
            merged.error = merged.error or piece
        else:
            merged.add(piece)
    return Assembled(
        body=merged.body(),
        complete=merged.done or any(c.finish is not None for c in merged.choices.values()),
        error=merged.error,
        broken=merged.broken,
    )


@dataclass
class _Call:
    id: str | None = None
    name: str = ""
    text: str = ""
    value: dict[str, JsonValue] | None = None
    extra: dict[str, JsonValue] = field(default_factory=dict)

    def body(self) -> dict[str, JsonValue]:
        arguments: JsonValue = self.text if self.value is None else self.value
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": arguments},
        }


@dataclass
class _Choice:
    parts: list[JsonValue] = field(default_factory=list)
    plain: bool = True
    texts: dict[str, str] = field(default_factory=dict)
    calls: list[_Call] = field(default_factory=list)
    slots: dict[int, _Call] = field(default_factory=dict)
    finish: str | None = None

    def add(self, choice: dict[str, JsonValue]) -> None:
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self.finish = finish
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice.get("message")
        if not isinstance(delta, dict):
            return
        self._content(delta.get("content"))
        for key in ("reasoning_content", "reasoning", "thinking", "refusal"):
            text = delta.get(key)
            if isinstance(text, str):
                self.texts[key] = self.texts.get(key, "") + text
        calls = delta.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else []):
            if isinstance(call, dict):
                self._call(place, call)

    def _content(self, content: JsonValue) -> None:
        if isinstance(content, str):
            self.parts.append({"type": "text", "text": content})
        elif isinstance(content, list):
            self.plain = False
            self.parts.extend(content)

    def _call(self, place: int, delta: dict[str, JsonValue]) -> None:
        function = delta.get("function")
        function = function if isinstance(function, dict) else {}
        identity, name = delta.get("id"), function.get("name")
        index = delta.get("index")
        slot = index if isinstance(index, int) else place
        call = self.slots.get(slot)
        begins = isinstance(name, str) and name
        if (
            call is None
            # Some servers give every call the same index, or none: a name with another id, or a
            # name after arguments without any index, begins a new call.
            or (begins and isinstance(identity, str) and identity and identity != call.id)
            or (begins and not isinstance(index, int) and (call.text or call.value is not None))
        ):
            call = self.slots[slot] = _Call()
            self.calls.append(call)
        if isinstance(identity, str) and identity:
            call.id = identity
        if isinstance(name, str) and not call.name:
            call.name = name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            call.value = {**(call.value or {}), **arguments}
        elif isinstance(arguments, str):
            call.text += arguments

    def body(self, index: int) -> dict[str, JsonValue]:
        content: JsonValue = None
        if self.parts and self.plain:
            content = "".join(str(p["text"]) for p in self.parts if isinstance(p, dict))
        elif self.parts:
            content = self.parts
        calls: list[JsonValue] = [call.body() for call in self.calls]
        message: dict[str, JsonValue] = {"role": "assistant", "content": content}
        message.update(self.texts)
        if calls:
            message["tool_calls"] = calls
        return {"index": index, "message": message, "finish_reason": self.finish}


@dataclass
class _Merged:
    choices: dict[int, _Choice] = field(default_factory=dict)
    top: dict[str, JsonValue] = field(default_factory=dict)
    done: bool = False
    error: dict[str, JsonValue] | None = None
    broken: str = ""

    def add(self, piece: dict[str, JsonValue]) -> None:
        for key, value in piece.items():
            if key != "choices" and value not in (None, "", {}):
                self.top[key] = value
        choices = piece.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict):
                index = choice.get("index")
                self.choices.setdefault(index if isinstance(index, int) else 0, _Choice()).add(
                    choice
                )

    def body(self) -> dict[str, JsonValue]:
        listed: list[JsonValue] = [c.body(i) for i, c in sorted(self.choices.items())]
        return {**self.top, "object": "chat.completion", "choices": listed}


def chunks(body: dict[str, JsonValue]) -> Iterable[bytes]:
    """Turn a whole chat completion into the stream that a client which asked for one expects."""
    head = {"id": body.get("id"), "object": "chat.completion.chunk", "created": body.get("created")}
    head["model"] = body.get("model")

    def event(choices: list[JsonValue], **more: JsonValue) -> bytes:
        return b"data: " + json.dumps({**head, "choices": choices, **more}).encode() + b"\n\n"

    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if not isinstance(choice, dict):
            continue
        message = choice.get("message")
        delta: dict[str, JsonValue] = dict(message) if isinstance(message, dict) else {}
        calls = delta.pop("tool_calls", None)
        yield event([{"index": 0, "delta": delta, "finish_reason": None}])
        for index, call in enumerate(calls if isinstance(calls, list) else []):
            if isinstance(call, dict):
                piece: JsonValue = {"tool_calls": [{"index": index, **call}]}
                yield event([{"index": 0, "delta": piece, "finish_reason": None}])
        yield event([{"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}])
    yield event([], usage=body.get("usage"), modelbench=body.get("modelbench"))
    yield b"data: [DONE]\n\n"
