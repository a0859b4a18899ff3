"""Replies, and the server behaviours of the field reports by their number."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def behaviour(data: Path) -> Callable[[str], dict[str, Any]]:
    """A function from a number such as R18 to the response of that behaviour."""

    def read(number: str) -> dict[str, Any]:
        (file,) = (data / "field-reports" / "responses").glob(f"{number}-*.json")
        response: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["response"]
        return response

    return read


@pytest.fixture(scope="session")
def gone() -> Callable[[int], bool]:
    """A function that waits for the end of a process, which need not be a child of ours."""

    def wait(pid: int) -> bool:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            return bool(select.select([handle], [], [], 60.0)[0])
        finally:
            os.close(handle)

    return wait


@pytest.fixture
def reply() -> Callable[..., dict[str, Any]]:
    """A function that makes a whole, good response with a text or with tool calls in it."""

    def make(
        text: str | None = "42", *, calls: list[dict[str, Any]] | None = None, **more: Any
    ) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 2}
        return {
            "headers": {"content-type": "application/json"},
            "json": {"model": "m", "choices": [choice], "usage": usage, **more},
        }

    return make
