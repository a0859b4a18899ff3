"""What was said in one grant: every request and every reply, with times, as JSON lines."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.gateway.wire import Redactor


class Transcripts:
    """The transcripts of all open grants, in files so that memory stays flat.

    A request is written as the messages that are new since the one before: ``kept`` of the earlier
    ones come first. No key's value gets in.
    """

    def __init__(self, folder: Path, redact: Redactor) -> None:
        self._folder = folder
        self._redact = redact
        self._last: dict[str, list[bytes]] = {}

    def request(
        self, token: str, step: int, messages: Sequence[JsonValue], rest: dict[str, JsonValue]
    ) -> None:
        """Write down what is asked: the new messages, and the parameters."""
        digests = [hashlib.blake2b(_json(m).encode(), digest_size=12).digest() for m in messages]
        before = self._last.get(token, [])
        kept = 0
        while kept < min(len(before), len(digests)) and before[kept] == digests[kept]:
            kept += 1
        self._last[token] = digests
        new: dict[str, JsonValue] = {"kept": kept, "messages": list(messages[kept:])}
        self._append(token, {"kind": "request", "step": step, **new, **rest})

    def reply(self, token: str, step: int, tries: int, entry: dict[str, JsonValue]) -> None:
        """Write down what came back to one try of a step."""
        self._append(token, {"kind": "reply", "step": step, "try": tries, **entry})

    def take(self, token: str) -> bytes:
        """Return the whole transcript, compressed, and forget it; no bytes where there is none."""
        self._last.pop(token, None)
        path = self._path(token)
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return b""
        path.unlink()
        return gzip.compress(raw, mtime=0)

    def _append(self, token: str, entry: dict[str, JsonValue]) -> None:
        line = self._redact(_json({"at": round(time.time(), 3), **entry}))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self._path(token), flags, 0o600)
        try:
            os.write(file, line.encode() + b"\n")
        finally:
            os.close(file)

    def _path(self, token: str) -> Path:
        return self._folder / f"{hashlib.sha256(token.encode()).hexdigest()[:24]}.jsonl"


def read_transcript(raw: bytes) -> list[dict[str, JsonValue]]:
    """Return the entries of a transcript as ``take`` gave it."""
    return [json.loads(line) for line in gzip.decompress(raw).splitlines()] if raw else []


def _json(value: JsonValue) -> str:
    return json.dumps(value, separators=(",", ":"))
