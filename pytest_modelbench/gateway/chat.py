"""OpenAI's chat API, as programs and our own workers speak it to the gateway."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from pytest_modelbench.gateway import sse
from pytest_modelbench.gateway.calls import Asked
from pytest_modelbench.gateway.dialect import BadRequest, Speaker
from pytest_modelbench.gateway.replies import Reply
from pytest_modelbench.gateway.toolcalls import readable_arguments
from pytest_modelbench.gateway.upstream import Asking


@dataclass(frozen=True)
class ChatRequest:
    """One request of the chat API."""

    asked: Asked

    def whole(self, speaker: Speaker, reply: Reply) -> dict[str, JsonValue]:
        """Return the body that says what a reply says, and the reply itself."""
        finish = "tool_calls" if reply.tool_calls else "length" if reply.truncated else "stop"
        if reply.reason == "content-filter":
            finish = "content_filter"
        return {
            "id": f"chatcmpl-{speaker.reply_id}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": speaker.name,
            "choices": [{"index": 0, "message": _message(reply), "finish_reason": finish}],
            "usage": _usage(reply),
            "modelbench": reply.model_dump(mode="json"),
        }

    def events(self, speaker: Speaker, reply: Reply) -> Iterable[bytes]:
        """Yield the same as a stream."""
        return sse.chunks(self.whole(speaker, reply))


class Chat:
    """``/v1/chat/completions``."""

    name = "chat"

    def read(
        self, body: dict[str, JsonValue], speaker: Speaker, native: Asking | None = None
    ) -> ChatRequest:
        """Read a request. The model is pinned by the grant, whatever it names."""
        messages = body.pop("messages", None)
        if not isinstance(messages, list):
            raise BadRequest("the request needs a list of messages")
        ours = body.pop("modelbench", None)
        left = ours if isinstance(ours, dict) else {}
        tools = body.pop("tools", None)
        stream = body.pop("stream", None) is True
        # A stream's options are the gateway's own business.
        for name in ("model", "stream_options", "n"):
            body.pop(name, None)
        return ChatRequest(
            Asked(
                messages=messages,
                tools=tools if isinstance(tools, list) else [],
                params=body,
                stream=stream,
                working_left=_seconds(left.get("working_left")),
                wall_left=_seconds(left.get("wall_left")),
                wire=self.name,
                by_program=not isinstance(ours, dict),
                native=native,
            )
        )

    def error(self, status: int, reply: Reply) -> dict[str, JsonValue]:
        """Return an error in OpenAI's form, and the reply itself."""
        code = "context_length_exceeded" if reply.reason == "context-exceeded" else reply.reason
        error: JsonValue = {
            "message": f"{reply.reason}: {reply.quote}",
            "type": "invalid_request_error" if status == 400 else "modelbench",
            "param": None,
            "code": code,
            "modelbench": reply.model_dump(mode="json"),
        }
        return {"error": error}


def _message(reply: Reply) -> dict[str, JsonValue]:
    message: dict[str, JsonValue] = {"role": "assistant", "content": reply.answer}
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    # A program tells its model what is wrong with arguments; it needs to see them.
                    "arguments": call.raw
                    if call.arguments is None
                    else readable_arguments(call.raw),
                },
            }
            for call in reply.tool_calls
        ]
    return message


def _usage(reply: Reply) -> JsonValue:
    usage = reply.usage
    if usage.input is None or usage.output is None:
        return None
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached or 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
    }


def _seconds(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
