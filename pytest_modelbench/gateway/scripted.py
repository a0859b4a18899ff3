"""A model that plays a script: its replies go the way of every other reply."""

from __future__ import annotations

import asyncio
import json

from pydantic import JsonValue

from pytest_modelbench.gateway.replies import Exchange
from pytest_modelbench.gateway.script import Script, Step
from pytest_modelbench.gateway.upstream import Call


class Scripted:
    """The upstream of a scripted candidate. Keeps no state: a request says how far it has come."""

    def __init__(self, script: Script, path: str, broken: str) -> None:
        self.problem = ("script", broken) if broken else None
        self.asks_for = ""
        self.reasoning_beside = False
        self._script = script
        self._path = path

    async def prepare(self) -> None:
        """Do nothing: a script is read when the gateway starts."""

    async def send(self, call: Call) -> Exchange:
        """Answer with the step that comes next in the history."""
        position = sum(
            1 for m in call.messages if isinstance(m, dict) and m.get("role") == "assistant"
        )
        step = self._script.step(call.case, call.repeat, position)
        if step is None:
            return _error(
                400,
                f"{self._path}: no step {position + 1} for case {call.case!r}, repeat "
                f"{call.repeat}; add one under [[cases.{json.dumps(call.case)}.steps]]",
            )
        if step.delay_s:
            try:
                async with asyncio.timeout(call.seconds):
                    await asyncio.sleep(step.delay_s)
            except TimeoutError:
                return Exchange(error="timeout", error_text=f"no reply in {call.seconds:g} s")
        failing = step.error
        if failing is not None and (failing.times is None or call.tries < failing.times):
            return _error(
                failing.status,
                failing.message or f"scripted error {failing.status}",
                failing.code,
                failing.headers,
            )
        return Exchange(status=200, body=json.dumps(_body(step, position)).encode())

    async def close(self) -> None:
        """Do nothing."""


def _body(step: Step, position: int) -> dict[str, JsonValue]:
    message: dict[str, JsonValue] = {"role": "assistant", "content": step.content}
    if step.reasoning is not None:
        message["reasoning_content"] = step.reasoning
    if step.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{position + 1}_{index}",
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.arguments
                    if isinstance(call.arguments, str)
                    else json.dumps(call.arguments),
                },
            }
            for index, call in enumerate(step.calls, 1)
        ]
    finish = step.finish or ("tool_calls" if step.calls else "stop")
    choice: JsonValue = {"index": 0, "message": message, "finish_reason": finish}
    body: dict[str, JsonValue] = {"object": "chat.completion", "choices": [choice]}
    if step.usage is not None:
        body["usage"] = step.usage
    return body


def _error(
    status: int, message: str, code: str = "", headers: dict[str, str] | None = None
) -> Exchange:
    error: dict[str, JsonValue] = {"message": message, "code": code or status}
    return Exchange(
        status=status,
        headers={name.lower(): value for name, value in (headers or {}).items()},
        body=json.dumps({"error": error}).encode(),
    )
