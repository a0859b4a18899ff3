"""A program and a server that speak the same API: what each says reaches the other unchanged."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from pytest_modelbench.gateway.client import Session
from pytest_modelbench.gateway.foreign import as_chat
from pytest_modelbench.gateway.replies import Exchange, classify
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.records import Candidate, Limits

if TYPE_CHECKING:
    from tests.conftest import ModelServer, Running

    Servers = Callable[..., ModelServer]
    Gateways = Callable[..., Running]

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}
JSON_TYPE = {"content-type": "application/json"}


def named(*events: dict[str, Any], ends: str = "\n") -> str:
    """Return a stream of named events, with a comment and a ping between as real servers send."""
    texts = [f"event: {e['type']}{ends}data: {json.dumps(e)}{ends}{ends}" for e in events]
    return (
        f": open{ends}{ends}"
        + texts[0]
        + f"event: ping{ends}data: {{}}{ends}{ends}".join(["", "".join(texts[1:])])
    )


MESSAGE_EVENTS: tuple[dict[str, Any], ...] = (
    {
        "type": "message_start",
        "message": {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "model": "acme-9-20250101",
            "content": [],
            "stop_reason": None,
            "usage": {
                "input_tokens": 10,
                "cache_read_input_tokens": 90,
                "cache_creation_input_tokens": 5,
                "cache_creation": {"ephemeral_5m_input_tokens": 5},
                "output_tokens": 1,
                "service_tier": "standard",
            },
            "container": None,
        },
    },
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "thinking", "thinking": "", "signature": ""},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "Which "},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "city?"},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "signature_delta", "signature": "EqQBCkYIBxgC"},
    },
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "redacted_thinking", "data": "EmwKAhgB"},
    },
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "text_delta", "text": "I look."},
    },
    {"type": "content_block_stop", "index": 2},
    {
        "type": "content_block_start",
        "index": 3,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 3,
        "delta": {"type": "input_json_delta", "partial_json": '{"ci'},
    },
    {
        "type": "content_block_delta",
        "index": 3,
        "delta": {"type": "input_json_delta", "partial_json": 'ty": "Oslo"}'},
    },
    {"type": "content_block_stop", "index": 3},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 33},
        "context_management": {"applied_edits": []},
    },
    {"type": "message_stop"},
)
TOOL = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}
ASKED: dict[str, Any] = {
    "model": "claude-whatever",
    "max_tokens": 900,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
                {"type": "text", "text": "Where?"},
            ],
        },
        # A block that has no form in chat is passed on, and not refused.
        {"role": "user", "content": [{"type": "document", "source": {"type": "text"}}]},
    ],
    "tools": [TOOL, {"type": "web_search_20250305", "name": "web_search"}],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "context_management": {"edits": []},
    "metadata": {"user_id": "u"},
}


def anthropic_candidate(server: ModelServer, **more: Any) -> Candidate:
    base = server.url.removesuffix("/v1")
    return Candidate(
        name="sonnet", model="anthropic/acme-9", api_base=base, api_key_env="A_KEY", **more
    )


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sk-test-0123456789")


def post(
    running: Running, session: Session, path: str, body: object, **headers: str
) -> httpx.Response:
    transport = httpx.HTTPTransport(uds=running.process.address.socket_path)
    with httpx.Client(transport=transport) as client:
        named = {"x-api-key": session.token, **headers}
        return client.post(f"http://gateway/v1/{path}", json=body, headers=named)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_stream_of_messages_is_passed_as_it_came(
    model_server: Servers, gateway: Gateways, ends: str
) -> None:
    odd = {"type": "content_block_sparkle", "index": 9, "glitter": [1, 2]}
    text = named(*MESSAGE_EVENTS[:3], odd, *MESSAGE_EVENTS[3:], ends=ends)
    server = model_server({"headers": EVENT_STREAM, "text": text})
    price = {"input": 1.0, "output": 10.0, "cached": 0.1, "cache_written": 2.0}
    running = gateway(anthropic_candidate(server, price=price, params={"temperature": 0.5}))
    session = running.client.grant("a", "sonnet")
    answer = post(
        running,
        session,
        "messages?beta=true",
        {**ASKED, "stream": True},
        **{"anthropic-beta": "context-management-2025-06-27", "x-odd": "no"},
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"] == EVENT_STREAM["content-type"]
    assert answer.text == text
    (seen,) = server.seen
    # The request is the program's own: the model is pinned, the candidate's parameters are laid on.
    assert seen.body == {**ASKED, "stream": True, "model": "acme-9", "temperature": 0.5}
    assert seen.path == "/v1/messages"
    assert seen.headers["x-api-key"] == "sk-test-0123456789"
    assert seen.headers["anthropic-beta"] == "context-management-2025-06-27"
    assert seen.headers["anthropic-version"] == "2023-06-01"
    assert "x-odd" not in seen.headers
    ended = session.close()
    usage = ended.usage
    assert (usage.calls, usage.input, usage.cached, usage.cache_written) == (1, 105, 90, 5)
    assert (usage.output, usage.unmetered, ended.served_model) == (33, 0, "acme-9-20250101")
    assert usage.list_usd == pytest.approx((10 + 9 + 10 + 330) / 1e6)
    request, reply = read_transcript(ended.transcript)
    assert request["messages"] == ASKED["messages"]
    assert request["params"]["context_management"] == {"edits": []}  # type: ignore[index,call-overload] # JSON
    assert reply["body"] == text
    read: Any = reply["reply"]
    assert (read["answer"], read["reasoning"]) == ("I look.", "Which city?")
    (call,) = read["tool_calls"]
    assert (call["id"], call["arguments"]) == ("toolu_1", {"city": "Oslo"})
    assert "problem" not in call
    assert read["finish"] == "tool_use"


@pytest.mark.slow
def test_the_library_reads_the_stream_with_its_signatures(
    model_server: Servers, gateway: Gateways
) -> None:
    anthropic = pytest.importorskip("anthropic")
    server = model_server({"headers": EVENT_STREAM, "text": named(*MESSAGE_EVENTS)})
    running = gateway(anthropic_candidate(server))
    session = running.client.grant("a", "sonnet")
    kinds = anthropic.DefaultHttpxClient.__mro__
    origin = next(kind.__module__ for kind in kinds if kind.__name__ == "Client")
    library = sys.modules[origin.partition(".")[0]]
    transport = library.HTTPTransport(uds=running.process.address.socket_path)
    with library.Client(transport=transport) as http:
        client = anthropic.Anthropic(
            api_key=session.token, base_url="http://gateway", http_client=http, max_retries=0
        )
        with client.messages.stream(
            model="x", max_tokens=900, messages=[{"role": "user", "content": "Weather?"}]
        ) as events:
            whole = events.get_final_message()
    thought, hidden, said, call = whole.content
    assert (thought.thinking, thought.signature) == ("Which city?", "EqQBCkYIBxgC")
    assert (hidden.data, said.text, call.input) == ("EmwKAhgB", "I look.", {"city": "Oslo"})
    assert (whole.model, whole.usage.cache_read_input_tokens) == ("acme-9-20250101", 90)
    assert session.close().usage.calls == 1


def test_a_whole_message_is_passed_as_it_came(model_server: Servers, gateway: Gateways) -> None:
    body = {
        **MESSAGE_EVENTS[0]["message"],
        "content": [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            {"type": "text", "text": "42", "citations": [{"type": "web_search_result_location"}]},
        ],
        "stop_reason": "end_turn",
    }
    server = model_server({"headers": JSON_TYPE, "json": body})
    running = gateway(anthropic_candidate(server))
    session = running.client.grant("a", "sonnet")
    answer = post(running, session, "messages", ASKED)
    assert answer.json() == body
    assert "stream" not in server.seen[0].body
    assert session.close().usage.output == 1


@pytest.mark.slow
def test_a_broken_stream_is_tried_again_and_no_half_is_passed(
    model_server: Servers, gateway: Gateways
) -> None:
    whole = named(*MESSAGE_EVENTS)
    cut = named(*MESSAGE_EVENTS[:10])
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    server = model_server(
        {"headers": EVENT_STREAM, "text": cut},
        {"headers": EVENT_STREAM, "text": named(*MESSAGE_EVENTS[:10], busy)},
        {"status": 529, "headers": JSON_TYPE, "json": busy},
        {"headers": EVENT_STREAM, "text": whole},
    )
    running = gateway(anthropic_candidate(server), retries=3)
    session = running.client.grant("a", "sonnet")
    assert post(running, session, "messages", {**ASKED, "stream": True}).text == whole
    ended = session.close()
    assert (ended.usage.requests, ended.usage.calls, len(server.seen)) == (4, 1, 4)
    replies = [e for e in read_transcript(ended.transcript) if e["kind"] == "reply"]
    reasons = [e["reply"].get("reason", "") for e in replies]  # type: ignore[union-attr] # JSON
    assert reasons == ["stream-cut", "upstream-error", "overloaded", ""]
    assert replies[0]["body"] == cut, "what came is kept"


def test_ceilings_and_ends_hold_for_requests_that_are_passed(
    model_server: Servers, gateway: Gateways
) -> None:
    good = {"headers": EVENT_STREAM, "text": named(*MESSAGE_EVENTS)}
    other = json.loads(json.dumps(MESSAGE_EVENTS[0]))
    other["message"]["model"] = "cheaper-1"
    full = {
        "status": 400,
        "headers": JSON_TYPE,
        "json": {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 208310 tokens > 200000 maximum",
            },
        },
    }
    server = model_server(
        good, full, {"headers": EVENT_STREAM, "text": named(other, *MESSAGE_EVENTS[1:])}, good
    )
    running = gateway(anthropic_candidate(server, facts={"max_input_tokens": 1000}))
    session = running.client.grant("a", "sonnet", limits=Limits(turns=3))
    stream = {**ASKED, "stream": True}
    assert post(running, session, "messages", stream).status_code == 200
    assert server.seen[0].body["max_tokens"] == 500, "half of the window"
    refused = post(running, session, "messages", stream)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == (
        "prompt is too long: 208310 tokens > 200000 maximum"
    )
    assert post(running, session, "messages", stream).status_code == 200
    over = post(running, session, "messages", stream)
    assert (over.status_code, "step-limit" in over.text) == (401, True)
    session.close()
    assert session.ended is not None
    assert session.ended.reasons == {"context-exceeded": 1, "other-model": 1}
    assert len(server.seen) == 3


# -- responses -------------------------------------------------------------------------------------

OUTPUT: list[dict[str, Any]] = [
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Which city?"}],
        "encrypted_content": "gAAAAA",
    },
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "weather",
        "arguments": '{"city": "Oslo"}',
        "status": "completed",
    },
    {"type": "sparkle_call", "id": "sp_1"},
]
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "acme-9-2025-01-01",
    "output": OUTPUT,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 109,
    },
}
RESPONSE_EVENTS = (
    {
        "type": "response.created",
        "sequence_number": 0,
        "response": {**RESPONSE, "status": "in_progress", "output": [], "usage": None},
    },
    {"type": "response.sparkle.delta", "sequence_number": 1, "delta": "*"},
    {
        "type": "response.output_item.done",
        "sequence_number": 2,
        "output_index": 0,
        "item": OUTPUT[0],
    },
    {"type": "response.completed", "sequence_number": 3, "response": RESPONSE},
)
RESPONSES_ASKED = {
    "model": "whatever",
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": "Weather?"},
        {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "gAAA"},
        {"type": "local_shell_call_output", "call_id": "c0", "output": "x"},
    ],
    "tools": [{"type": "function", "name": "weather", "parameters": {}}, {"type": "web_search"}],
    "reasoning": {"summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "store": False,
    "max_output_tokens": 9000,
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_responses_are_passed_as_they_came(
    model_server: Servers, gateway: Gateways, stream: bool
) -> None:
    sent = named(*RESPONSE_EVENTS) if stream else json.dumps(RESPONSE, indent=1)
    server = model_server({"headers": EVENT_STREAM if stream else JSON_TYPE, "text": sent})
    running = gateway(
        Candidate(
            name="own",
            model="openai/acme-9",
            api_base=server.url,
            speaks=["responses"],
            params={"reasoning_effort": "low", "seed": 1, "extra_body": {"top_k": 5}},
        )
    )
    session = running.client.grant("a", "own")
    asked = {**RESPONSES_ASKED, "stream": stream}
    assert post(running, session, "responses", asked).text == sent
    (seen,) = server.seen
    assert seen.path == "/v1/responses"
    assert seen.body == {
        **asked,
        "model": "acme-9",
        # A ceiling on a server of one's own; effort as declared; this API has no seeds.
        "max_output_tokens": 8192,
        "reasoning": {"summary": "auto", "effort": "low"},
        "top_k": 5,
    }
    ended = session.close()
    usage = ended.usage
    assert (usage.input, usage.cached, usage.output, usage.reasoning) == (100, 60, 9, 4)
    read: Any = read_transcript(ended.transcript)[1]["reply"]
    assert (read["answer"], read["reasoning"]) == ("I look.", "Which city?")
    assert read["tool_calls"][0]["id"] == "call_1"


@pytest.mark.slow
def test_the_openai_library_reads_a_passed_stream(model_server: Servers, gateway: Gateways) -> None:
    openai = pytest.importorskip("openai")
    items = OUTPUT[:3]
    events = [
        {"type": "response.output_item.added", "output_index": i, "item": item}
        for i, item in enumerate(items)
    ]
    final = {**RESPONSE, "output": items}
    text = named(RESPONSE_EVENTS[0], *events, {"type": "response.completed", "response": final})
    server = model_server({"headers": EVENT_STREAM, "text": text})
    candidate = Candidate(
        name="own", model="openai/acme-9", api_base=server.url, speaks=["responses"]
    )
    running = gateway(candidate)
    session = running.client.grant("a", "own")
    transport = httpx.HTTPTransport(uds=running.process.address.socket_path)
    with httpx.Client(transport=transport) as http:
        client = openai.OpenAI(
            api_key=session.token, base_url="http://g/v1", http_client=http, max_retries=0
        )
        with client.responses.stream(model="x", input="Weather?") as stream:
            kinds = [event.type for event in stream]
            whole = stream.get_final_response()
    assert kinds[-1] == "response.completed"
    assert whole.output[0].encrypted_content == "gAAAAA"
    assert (whole.model, whole.output_text) == ("acme-9-2025-01-01", "I look.")


def test_a_chat_server_is_asked_in_chat_unless_it_says_what_it_speaks(
    model_server: Servers, gateway: Gateways, reply: Callable[..., dict[str, Any]]
) -> None:
    server = model_server(reply())
    running = gateway(Candidate(name="m", model="openai/m", api_base=server.url))
    session = running.client.grant("a", "m")
    answer = post(running, session, "responses", {"input": "go", "stream": False})
    assert answer.json()["output"][0]["content"][0]["text"] == "42"
    assert server.seen[0].path == "/v1/chat/completions"


# -- what such replies are -------------------------------------------------------------------------


def read(wire: str, text: str, **headers: str) -> Any:
    exchange = Exchange(200, headers or EVENT_STREAM, text.encode())
    return classify(as_chat(exchange, wire), ["weather"], now=0.0)


@pytest.mark.parametrize(
    ("wire", "events", "outcome", "reason"),
    [
        ("messages", MESSAGE_EVENTS[:-2], "fault-transient", "stream-cut"),
        ("messages", MESSAGE_EVENTS[:-1], "tool_calls", ""),
        ("responses", RESPONSE_EVENTS[:-1], "fault-transient", "stream-cut"),
        (
            "responses",
            [{"type": "error", "code": "rate_limit_exceeded", "message": "Slow down"}],
            "fault-transient",
            "rate-limited",
        ),
        (
            "responses",
            [
                {
                    "type": "response.failed",
                    "response": {"error": {"code": "insufficient_quota", "message": "Pay"}},
                }
            ],
            "fault-permanent",
            "quota-exhausted",
        ),
        (
            "responses",
            [
                {
                    "type": "response.incomplete",
                    "response": {
                        "status": "incomplete",
                        "incomplete_details": {"reason": "content_filter"},
                        "output": [],
                    },
                }
            ],
            "result-fail",
            "content-filter",
        ),
        (
            "messages",
            [{"type": "message_delta", "delta": {"stop_reason": "refusal"}}],
            "result-fail",
            "refusal",
        ),
    ],
)
def test_ends_of_streams(wire: str, events: Any, outcome: str, reason: str) -> None:
    found = read(wire, named(*events))
    assert (found.outcome, found.reason) == (outcome, reason)


def test_a_reply_cut_off_by_the_token_limit_is_known_as_that() -> None:
    parts: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "4"}},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {}},
    ]
    found = read("messages", named(MESSAGE_EVENTS[0], *parts))
    assert (found.answer, found.truncated, found.finish) == ("4", True, "max_tokens")
    assert found.usage.input == 105
    half = {**RESPONSE, "status": "incomplete", "output": OUTPUT[1:2]}
    half["incomplete_details"] = {"reason": "max_output_tokens"}
    found = read("responses", json.dumps(half), **JSON_TYPE)
    assert (found.answer, found.truncated) == ("I look.", True)


def test_what_is_no_reply_of_that_api_is_no_answer() -> None:
    assert read("messages", "<html>busy</html>", **JSON_TYPE).reason == "body-not-json"
    assert read("messages", '{"error": {"message": "no"}}', **JSON_TYPE).reason == "upstream-error"
    usage_unknown = read("messages", json.dumps({"content": [{"type": "text", "text": "x"}]}))
    assert (usage_unknown.answer, usage_unknown.usage.metered) == ("x", False)
