"""The ways in which programs speak to the gateway: one request, read and answered in its own form.

Whatever the way, a request becomes the messages, tools and parameters of OpenAI's chat API, which
every upstream takes, and a reply is said in the form that the program knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from pytest_modelbench.gateway.calls import Asked
from pytest_modelbench.gateway.replies import Reply
from pytest_modelbench.gateway.upstream import Asking


class BadRequest(Exception):
    """What is wrong with a request, in words for its program."""


@dataclass(frozen=True)
class Speaker:
    """Who a reply is said to, and what is behind it.

    ``name`` stands for the model in every reply. ``keeps`` names the extensions of the chat API
    that the upstream understands: ``anthropic`` (cache marks, thinking blocks), ``effort``.
    """

    name: str
    reply_id: str
    keeps: frozenset[str] = frozenset()


class Spoken(Protocol):
    """One request of a program, in one of the dialects."""

    @property
    def asked(self) -> Asked: ...

    def whole(self, speaker: Speaker, reply: Reply) -> dict[str, JsonValue]:
        """Return the body that says what a reply says."""
        ...

    def events(self, speaker: Speaker, reply: Reply) -> Iterable[bytes]:
        """Yield the same as the stream that a program which asked for one expects."""
        ...


class Dialect(Protocol):
    """One API: how its requests are read, and the form of its errors."""

    @property
    def name(self) -> str: ...

    def read(
        self, body: dict[str, JsonValue], speaker: Speaker, native: Asking | None = None
    ) -> Spoken:
        """Read a request; raise BadRequest.

        ``native`` is the request as it was made, where it is passed on as that: then nothing in it
        is refused for having no form in chat.
        """
        ...

    def error(self, status: int, reply: Reply) -> dict[str, JsonValue]:
        """Return the body of an error: 401 ends a program, 400 says that its context is full."""
        ...


def event(name: str, data: Mapping[str, JsonValue]) -> bytes:
    """Return a named server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def overrun(reply: Reply) -> tuple[int | None, int | None]:
    """Return (tokens asked for, window) of a context overrun as its server's words tell them."""
    numbers = [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]{2,}", reply.quote)]
    if len(numbers) < 2:
        return None, None
    window = min(numbers)
    return max(numbers), window


def objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    """Return the objects of a list, what is none left out."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: JsonValue) -> str:
    """Return the text of a content: a string, or the text parts of a list."""
    if isinstance(value, str):
        return value
    return "\n".join(
        str(part["text"]) for part in objects(value) if isinstance(part.get("text"), str)
    )
