"""What a reply of a model's server is, whatever server sent it and in whichever way it failed.

One pure function does it, on what crossed the wire, so a reply is understood alike whether it came
whole or streamed, spoken directly or through litellm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from pydantic import Field, JsonValue

from pytest_modelbench.gateway import sse, texttools
from pytest_modelbench.gateway.failures import Failure, ReplyOutcome, read_failure, status_inside
from pytest_modelbench.gateway.textcalls import FORMATS, find_calls, holds_call
from pytest_modelbench.gateway.texttools import Schemas
from pytest_modelbench.gateway.toolcalls import (
    ToolCall,
    clean,
    read_call,
    read_calls,
    readable_arguments,
)
from pytest_modelbench.gateway.usage import UNKNOWN, CallUsage, read_usage
from pytest_modelbench.parsing import parse
from pytest_modelbench.records import Record

__all__ = ["Exchange", "Reply", "ReplyOutcome", "ToolCall", "classify", "refusal"]

_LENGTH_MARKS = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
_FILTER_MARKS = frozenset({"content_filter", "safety", "prohibited_content", "blocklist", "spii"})


@dataclass(frozen=True)
class Exchange:
    """What one request brought back. Header names are in lower case; ``body`` as it came.

    ``error`` is a short word where the connection failed (``connection-refused``,
    ``connection-reset``, ``body-cut``, ``no-response``, ``timeout``…). ``requests`` is how many
    requests reached the server: 0 where the connection was never made. ``raw`` is what the server
    sent where ``body`` is a translation of it.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    error: str = ""
    error_text: str = ""
    requests: int = 1
    raw: bytes | None = None


class Reply(Record):
    """One reply, classified. ``finish`` is the server's own end mark as sent, None when none came.

    ``answer`` never holds thinking; that is in ``reasoning``. ``carry`` are fields of the message
    that the provider wants back with the history.
    """

    outcome: ReplyOutcome
    reason: str = ""
    answer: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    finish: str | None = None
    truncated: bool = False
    usage: CallUsage = UNKNOWN
    wait_at_least_s: float | None = None
    served_model: str = ""
    status: int | None = None
    quote: str = ""
    retry: bool = False
    carry: dict[str, JsonValue] = Field(default_factory=dict)
    held_seconds: float = Field(default=0.0, description="of this call: queue, waits, lost tries")

    @property
    def faulty(self) -> bool:
        """Tell whether there is no reply to go by."""
        return self.outcome in (ReplyOutcome.TRANSIENT, ReplyOutcome.PERMANENT)

    def message(self) -> dict[str, JsonValue]:
        """Return the assistant's message to append to the history: any server can read it."""
        message: dict[str, JsonValue] = {"role": "assistant", "content": self.answer}
        if self.tool_calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": readable_arguments(call.raw)},
                }
                for call in self.tool_calls
            ]
        elif self.answer is None:
            message["content"] = ""
        return message | self.carry


def classify(
    exchange: Exchange,
    tools: Collection[str] = (),
    *,
    now: float,
    text_parser: str = "",
    schemas: Schemas | None = None,
    reasoning_beside: bool = False,
) -> Reply:
    """Say what an exchange is. ``tools`` are the names that were on offer.

    ``schemas`` are those of the tools where they were told in words (``texttools``).

    ``now`` is the time since the epoch, for waits that are given as dates. ``text_parser`` is one
    of ``textcalls.FORMATS`` where the candidate's settings ask for calls to be read from text.
    """
    status, text = exchange.status, exchange.body.decode("utf-8", "replace")
    if status is None:
        return _lost(exchange)
    if not 200 <= status < 300:
        body = _json(text)
        return _failed(read_failure(status, exchange.headers, body, text, now=now), exchange)
    if _streamed(exchange, text):
        whole = sse.assemble(exchange.body)
        if whole.error is not None:
            return _error_inside(_cleaned(whole.error, text), exchange, now)
        if not whole.complete:
            return _lost(exchange, "stream-not-json" if whole.broken else "stream-cut")
        body = _cleaned(whole.body, text)
        return _read(body, exchange, tools, text_parser, schemas, reasoning_beside)
    if exchange.error:
        return _lost(exchange)
    body = _json(text)
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict):
        return _lost(exchange, "body-not-json", text)
    if body.get("error") or (body.get("object") == "error" and "choices" not in body):
        return _error_inside(body, exchange, now)
    return _read(body, exchange, tools, text_parser, schemas, reasoning_beside)


def refusal(
    outcome: ReplyOutcome, reason: str, quote: str = "", status: int | None = None
) -> Reply:
    """Return the reply that the gateway itself gives in place of a server's."""
    return Reply(outcome=outcome, reason=reason, quote=quote, status=status)


def _read(
    body: dict[str, JsonValue],
    exchange: Exchange,
    tools: Collection[str],
    text_parser: str,
    schemas: Schemas | None,
    reasoning_beside: bool,
) -> Reply:
    """Read a chat completion that came to its end."""
    model = body.get("model") or body.get("modelVersion")
    usage = read_usage(body, reasoning_beside=reasoning_beside)
    common = Reply(
        outcome=ReplyOutcome.ANSWER,
        usage=usage,
        served_model=model if isinstance(model, str) else "",
        status=exchange.status,
    )
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return common.model_copy(
            update={"outcome": ReplyOutcome.TRANSIENT, "reason": "no-choices", "retry": True}
        )
    if isinstance(choices, list) and len(choices) > 1:
        # Servers count the output of one of the choices only, or of all: it cannot be told.
        usage = usage.model_copy(update={"output": None, "reasoning": None})
    if choice.get("error"):
        return _error_inside(choice, exchange, 0.0)
    mark = choice.get("finish_reason")
    finish = mark if isinstance(mark, str) and mark else None
    answer, reasoning = _texts(message)
    truncated = finish is not None and finish.lower() in _LENGTH_MARKS
    calls = tuple(read_calls(message.get("tool_calls"), tools, truncated))
    if not calls and text_parser in FORMATS and answer:
        calls = tuple(
            read_call(None, c.name, c.raw, tools, truncated) for c in find_calls(answer, tools)
        )
        answer = None if calls else answer
    if not calls and schemas is not None and answer:
        found = texttools.read(answer, schemas)
        calls = tuple(read_call(None, c.name, c.raw, tools, truncated) for c in found.calls)
        answer = found.text
    if calls and answer is not None and not answer.strip():
        answer = None
    if usage.output == 0 and (answer or reasoning or calls):
        usage = usage.model_copy(update={"output": None})
    outcome, reason = _judge(message, finish, answer, reasoning, calls, tools)
    refused = message.get("refusal")
    blocks = message.get("thinking_blocks")
    return common.model_copy(
        update={
            "outcome": outcome,
            "reason": reason,
            "answer": answer,
            "reasoning": reasoning,
            "tool_calls": calls,
            "finish": finish,
            "truncated": truncated,
            "usage": usage,
            "quote": refused[:240] if isinstance(refused, str) else "",
            "carry": {"thinking_blocks": blocks} if blocks else {},
        }
    )


def _judge(
    message: Mapping[str, JsonValue],
    finish: str | None,
    answer: str | None,
    reasoning: str | None,
    calls: tuple[ToolCall, ...],
    tools: Collection[str],
) -> tuple[ReplyOutcome, str]:
    if finish is not None and finish.lower() in _FILTER_MARKS:
        return ReplyOutcome.RESULT_FAIL, "content-filter"
    if calls:
        return ReplyOutcome.TOOL_CALLS, ""
    if answer is not None and answer.strip():
        if holds_call(answer, tools):
            return ReplyOutcome.RESULT_FAIL, "tool-call-as-text"
        return ReplyOutcome.ANSWER, ""
    if message.get("refusal") or finish == "refusal":
        return ReplyOutcome.RESULT_FAIL, "refusal"
    if reasoning:
        if holds_call(reasoning, tools):
            return ReplyOutcome.RESULT_FAIL, "tool-call-as-text"
        return ReplyOutcome.RESULT_FAIL, "no-answer-after-reasoning"
    return ReplyOutcome.RESULT_FAIL, "empty-answer"


_THINKING = re.compile(
    r"\A\s*<(think|thinking|thought|reasoning)>(.*?)(?:</\1>|\Z)(.*)\Z", re.DOTALL
)
_TAIL = re.compile(r"\A((?:(?!<think>).)*?)</think>(.*)\Z", re.DOTALL)


def _texts(message: Mapping[str, JsonValue]) -> tuple[str | None, str | None]:
    """Return answer and thinking, wherever this server puts them."""
    answer, thoughts = _content(message.get("content"))
    for key in ("reasoning_content", "reasoning", "thinking"):
        beside = message.get(key)
        if isinstance(beside, str) and beside.strip():
            thoughts.append(beside)
            break
    if answer is not None:
        # Some templates write the opening tag themselves, so only the closing one arrives.
        found = _THINKING.match(answer)
        tail = None if found else _TAIL.match(answer)
        if found:
            thoughts.append(found.group(2))
            answer = found.group(3).lstrip()
        elif tail:
            thoughts.append(tail.group(1))
            answer = tail.group(2).lstrip()
        if (found or tail) and not answer:
            answer = None
    reasoning = "\n".join(thought.strip() for thought in thoughts if thought.strip())
    return (
        answer,
        reasoning or None,
    )


def _content(content: JsonValue) -> tuple[str | None, list[str]]:
    if isinstance(content, str):
        return content, []
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return None, []
    answer, thoughts = list[str](), list[str]()
    for part in content:
        if isinstance(part, str):
            answer.append(part)
        elif isinstance(part, dict):
            kind, text = part.get("type"), part.get("text")
            thinking = part.get("thinking") or part.get("reasoning")
            if kind in ("thinking", "reasoning", "redacted_thinking") or thinking:
                inner, _ = _content(thinking if thinking is not None else text)
                thoughts.append(inner or "")
            elif isinstance(text, str):
                answer.append(text)
    return "".join(answer) if answer else None, ["".join(thoughts)] if thoughts else []


def _error_inside(body: dict[str, JsonValue], exchange: Exchange, now: float) -> Reply:
    failure = read_failure(
        status_inside(body), exchange.headers, body, json.dumps(body), now=now, relayed=True
    )
    return _failed(failure, exchange)


def _failed(failure: Failure, exchange: Exchange) -> Reply:
    return Reply(
        outcome=failure.outcome,
        reason=failure.reason,
        quote=failure.quote,
        retry=failure.retry,
        wait_at_least_s=failure.wait,
        status=exchange.status,
    )


def _lost(exchange: Exchange, reason: str = "", text: str = "") -> Reply:
    """Return the fault of a reply that did not arrive, or not whole."""
    words = exchange.error_text or text
    return Reply(
        outcome=ReplyOutcome.TRANSIENT,
        reason=exchange.error or reason or "no-response",
        quote=str(clean(" ".join(words.split())[:240])),
        status=exchange.status,
        retry=True,
    )


def _streamed(exchange: Exchange, text: str) -> bool:
    """Tell by the body itself: some servers stream unasked, some do not stream when asked."""
    start = text.lstrip("\ufeff \r\n\t")[:6]
    if start.startswith(("{", "[", "<")):
        return False
    stream = "text/event-stream" in exchange.headers.get("content-type", "")
    return stream or start.startswith(("data:", "event:", ":"))


def _json(text: str) -> JsonValue:
    try:
        value: JsonValue = parse(text.removeprefix("\ufeff"))
        return _cleaned(value, text)
    except ValueError:
        return None


def _cleaned(value: _Json, text: str) -> _Json:
    """Clean what was read from a text that may spell halves of surrogate pairs."""
    # clean() returns what it is given: a dict for a dict.
    return cast(_Json, clean(value)) if "\\ud" in text.lower() else value


_Json = TypeVar("_Json", bound=JsonValue)
