"""Every server behaviour of the field reports is what the reports say it is.

Through the real gateway process, over HTTP, from a real server; each as it stands, and each that
came whole also as the stream that the same server would have sent.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_modelbench.gateway import sse
from pytest_modelbench.gateway.address import Address
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.records import Candidate

if TYPE_CHECKING:
    from tests.conftest import ModelServer

DATA = Path(os.environ.get("MODELBENCH_DATA", Path(__file__).parents[1] / "data"))
FILES = sorted((DATA / "field-reports" / "responses").glob("R*.json"))
MODEL = "acme-coder-9b"


@dataclass(frozen=True)
class Behaviour:
    """One behaviour as it is served, and what is to be made of it."""

    id: str
    request: dict[str, Any]
    response: dict[str, Any]
    expect: dict[str, Any]


def read_behaviours() -> list[Behaviour]:
    found: list[Behaviour] = []
    for file in FILES:
        one = json.loads(file.read_text(encoding="utf-8"))
        whole = Behaviour(one["id"], one["request"], one["response"], one["expect"])
        found.append(whole)
        stream = streamed(whole)
        if stream is not None:
            found.append(stream)
    return found


def streamed(whole: Behaviour) -> Behaviour | None:
    """Return the behaviour as a stream; None where it is one, or where it has no body to stream."""
    response = whole.response
    if "sse" in response:
        return None
    request = {**whole.request, "stream": True}
    if response["status"] != 200:
        # Errors come whole, whatever was asked for.
        return Behaviour(f"{whole.id}-streamed", request, response, whole.expect)
    try:
        body = response.get("json") or json.loads(response["text"])
    except ValueError:
        return None
    made = {
        **response,
        "headers": {"content-type": "text/event-stream"},
        "sse": list(pieces(body)),
    }
    made.pop("json", None)
    made.pop("text", None)
    return Behaviour(f"{whole.id}-streamed", request, made, whole.expect)


def pieces(body: dict[str, Any]) -> Iterator[Any]:
    """Yield the pieces of a stream that says what a whole body says."""
    if "error" in body:
        yield body
        return
    head = {**body, "object": "chat.completion.chunk"}
    usage = head.pop("usage", None)

    def piece(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    for choice in body["choices"]:
        message = choice["message"]
        yield piece({"role": "assistant"})
        for key in ("reasoning_content", "content"):
            text = message.get(key)
            if isinstance(text, str):
                for start in range(0, max(len(text), 1), 7):
                    yield piece({key: text[start : start + 7]})
            elif text is not None:
                for part in text:
                    yield piece({key: [part]})
        for index, call in enumerate(message.get("tool_calls") or []):
            arguments = call["function"]["arguments"]
            if not isinstance(arguments, str):
                yield piece({"tool_calls": [{"index": index, **call}]})
                continue
            begun = {**call, "function": {**call["function"], "arguments": ""}}
            yield piece({"tool_calls": [{"index": index, **begun}]})
            for start in range(0, len(arguments), 9):
                part = {"arguments": arguments[start : start + 9]}
                yield piece({"tool_calls": [{"index": index, "function": part}]})
        yield piece({}, choice["finish_reason"])
    if usage is not None:
        yield {**head, "choices": [], "usage": usage}
    yield "data: [DONE]\n\n"


BEHAVIOURS = read_behaviours()


@pytest.fixture(scope="module")
def running(
    server_class: type[ModelServer],
) -> Iterator[tuple[Address, dict[str, ModelServer]]]:
    """One gateway for all behaviours: a candidate and a server for each of them."""
    servers = {one.id: server_class([one.response]) for one in BEHAVIOURS}
    candidates = [
        Candidate(name=name, model=f"openai/{MODEL}", api_base=server.url)
        for name, server in servers.items()
    ]
    with GatewayProcess.start(candidates, retries=0, max_wait=0) as process:
        yield process.address, servers
    for server in servers.values():
        server.close()


def ask(address: Address, behaviour: Behaviour) -> tuple[int, dict[str, Any]]:
    """Ask as a program does, over HTTP; return the status and the reply as the gateway has it."""
    client = GatewayClient(address.socket_path, address.secret)
    session = client.grant(f"attempt-{behaviour.id}", behaviour.id)
    connection = http.client.HTTPConnection("gateway", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(address.socket_path)
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in behaviour.request["tools"]
    ]
    asked = {
        "model": "whatever-the-program-thinks",
        "messages": [{"role": "user", "content": behaviour.request["prompt"]}],
        "max_tokens": behaviour.request["max_tokens"],
        "stream": behaviour.request["stream"],
    } | ({"tools": tools} if tools else {})
    headers = {"authorization": f"Bearer {session.token}"}
    connection.request("POST", "/v1/chat/completions", json.dumps(asked), headers)
    response = connection.getresponse()
    raw = response.read()
    connection.close()
    if response.status != 200:
        return response.status, json.loads(raw)["error"]["modelbench"]
    if not behaviour.request["stream"]:
        return 200, json.loads(raw)["modelbench"]
    last = [json.loads(text) for _, text in sse.events(raw) if text != sse.DONE][-1]
    return 200, last["modelbench"]


def test_there_are_32_behaviours_to_agree_with() -> None:
    assert len(FILES) == 32


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(one, id=one.id, marks=[pytest.mark.slow] if one.id == "R30" else [])
        for one in BEHAVIOURS
    ],
)
def test_behaviour_gives_what_is_expected(
    behaviour: Behaviour, running: tuple[Address, dict[str, ModelServer]]
) -> None:
    address, servers = running
    expect = behaviour.expect
    status, got = ask(address, behaviour)
    usage = got["usage"]
    assert got["outcome"] == expect["outcome"], got
    assert got["reason"] == (expect["reason"] or "")
    assert got["answer"] in [expect["answer"], *expect.get("other_answers_accepted", [])]
    assert got["reasoning"] == expect["reasoning"]
    assert got["finish"] == expect["finish"]
    assert got["truncated"] == expect["truncated"]
    assert {
        "input": usage["input"],
        "cached_input": usage["cached"],
        "cache_write_input": usage["cache_written"],
        "output": usage["output"],
        "reasoning_output": usage["reasoning"],
    } == expect["usage"]
    assert got["wait_at_least_s"] == expect.get("wait_at_least_s")
    calls = got["tool_calls"]
    for call, right in zip(calls, expect["tool_calls"], strict=True):
        assert call["name"] == right["name"]
        assert call["arguments"] == right["arguments"]
        assert call["problem"] == right["problem"]
        if right["id"] is None:
            assert re.fullmatch(r"[A-Za-z0-9]{9}", call["id"])
        else:
            assert call["id"] == right["id"]
    # 401 and a plain 400 are what every program stops at; others make it try again on its own.
    faulty, overrun = expect["outcome"].startswith("fault"), expect["reason"] == "context-exceeded"
    assert status == (401 if faulty else 400 if overrun else 200)
    seen = servers[behaviour.id].seen
    assert [one.body["model"] for one in seen] == [MODEL], "one request, for the pinned model"
    assert seen[0].body.get("stream", False) == behaviour.request["stream"]
