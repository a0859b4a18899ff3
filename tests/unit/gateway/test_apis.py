"""The real client libraries of OpenAI and Anthropic at the gateway's socket, whole and streamed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from pytest_modelbench.gateway.client import GatewayClient, Session
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.records import Candidate, Limits

openai = pytest.importorskip("openai")

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 9,
    "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens_details": {"reasoning_tokens": 4},
}
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}


def said(
    text: str | None = "It is mild.", *, finish: str = "stop", **message: Any
) -> dict[str, Any]:
    """A good response of the server."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": finish,
    }
    body = {"model": "m", "choices": [choice], "usage": USAGE}
    return {"headers": {"content-type": "application/json"}, "json": body}


CALLS = said(None, finish="tool_calls", tool_calls=[CALL], reasoning_content="Which city?")


@dataclass
class Place:
    """A gateway with one server behind it."""

    process: GatewayProcess
    server: Any  # Any: of a class in the tests' own conftest
    session: Session | None = None
    clients: list[Any] = field(default_factory=list)

    def open(self, *responses: Any, name: str = "local", **limits: Any) -> Session:
        self.server.responses = responses
        self.server.seen.clear()
        address = self.process.address
        client = GatewayClient(address.socket_path, address.secret)
        self.session = client.grant("a1", name, limits=Limits(**limits))
        return self.session

    def http(self) -> httpx.Client:
        path = self.process.address.socket_path
        client = httpx.Client(transport=httpx.HTTPTransport(uds=path))
        self.clients.append(client)
        return client

    def openai(self) -> Any:
        assert self.session is not None
        return openai.OpenAI(
            api_key=self.session.token,
            base_url="http://gateway/v1",
            http_client=self.http(),
            max_retries=0,
        )

    def anthropic(self) -> Any:
        anthropic = pytest.importorskip("anthropic")
        assert self.session is not None
        # Its newer versions are built on httpx2, and take no client of httpx.
        kinds = anthropic.DefaultHttpxClient.__mro__
        origin = next(kind.__module__ for kind in kinds if kind.__name__ == "Client")
        library = sys.modules[origin.partition(".")[0]]
        transport = library.HTTPTransport(uds=self.process.address.socket_path)
        self.clients.append(library.Client(transport=transport))
        return anthropic.Anthropic(
            api_key=self.session.token,
            base_url="http://gateway",
            http_client=self.clients[-1],
            max_retries=0,
        )

    def sent(self, number: int = 0) -> Any:
        return self.server.seen[number].body


@pytest.fixture(scope="module")
def running(server_class: type[Any]) -> Iterator[Place]:
    server = server_class([])
    plain = Candidate(name="local", model="openai/m", api_base=server.url)
    windowed = plain.model_copy(update={"name": "windowed", "facts": {"max_input_tokens": 4096}})
    capped = plain.model_copy(update={"name": "capped", "params": {"max_tokens": 50}})
    process = GatewayProcess.start([plain, windowed, capped], retries=1)
    yield Place(process, server)
    process.close()
    server.close()


@pytest.fixture
def place(running: Place) -> Iterator[Place]:
    yield running
    while running.clients:
        running.clients.pop().close()
    if running.session is not None and running.session.ended is None:
        running.session.close()


# -- a tool call and its result, by each API -------------------------------------------------------

Talk = Callable[[Place, bool], tuple[str, dict[str, Any], dict[str, int]]]
"""Make one call and return the tool's name, its arguments, and the usage."""


def chat(place: Place, stream: bool) -> tuple[str, dict[str, Any], dict[str, int]]:
    client = place.openai()
    asked: dict[str, Any] = {
        "model": "whatever",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
        ],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}],
        "tool_choice": "required",
    }
    if not stream:
        whole = client.chat.completions.create(**asked)
        assert whole.model == "local"
        (call,) = whole.choices[0].message.tool_calls
        assert whole.choices[0].finish_reason == "tool_calls"
        usage = whole.usage
        name, given = call.function.name, call.function.arguments
    else:
        with client.chat.completions.stream(
            **asked, stream_options={"include_usage": True}
        ) as events:
            whole = events.get_final_completion()
        (call,) = whole.choices[0].message.tool_calls
        usage, name, given = whole.usage, call.function.name, call.function.arguments
    counts = {
        "input": usage.prompt_tokens,
        "cached": usage.prompt_tokens_details.cached_tokens,
        "output": usage.completion_tokens,
    }
    return name, json.loads(given), counts


def responses(place: Place, stream: bool) -> tuple[str, dict[str, Any], dict[str, int]]:
    client = place.openai()
    asked: dict[str, Any] = {
        "model": "whatever",
        "instructions": "Be brief.",
        "input": "Weather?",
        "tools": [{"type": "function", "name": "weather", "parameters": PARAMETERS}],
        "tool_choice": "required",
    }
    if stream:
        with client.responses.stream(**asked) as events:
            kinds = [event.type for event in events]
            whole = events.get_final_response()
        assert kinds[0] == "response.created"
        assert kinds[-1] == "response.completed"
    else:
        whole = client.responses.create(**asked)
    thought, call = whole.output
    assert thought.summary[0].text == "Which city?"
    assert (call.type, call.call_id) == ("function_call", "c1")
    usage = whole.usage
    counts = {
        "input": usage.input_tokens,
        "cached": usage.input_tokens_details.cached_tokens,
        "output": usage.output_tokens,
    }
    return call.name, json.loads(call.arguments), counts


def messages(place: Place, stream: bool) -> tuple[str, dict[str, Any], dict[str, int]]:
    client = place.anthropic()
    asked: dict[str, Any] = {
        "model": "claude-whatever",
        "max_tokens": 900,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Weather?"}]}],
        "tools": [{"name": "weather", "input_schema": PARAMETERS}],
        "tool_choice": {"type": "any"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    if stream:
        with client.messages.stream(**asked) as events:
            whole = events.get_final_message()
    else:
        whole = client.messages.create(**asked)
    thought, call = whole.content
    assert (thought.type, thought.thinking) == ("thinking", "Which city?")
    assert (call.type, call.id, whole.stop_reason) == ("tool_use", "c1", "tool_use")
    usage = whole.usage
    counts = {
        "input": usage.input_tokens + usage.cache_read_input_tokens,
        "cached": usage.cache_read_input_tokens,
        "output": usage.output_tokens,
    }
    return call.name, call.input, counts


@pytest.mark.parametrize("talk", [chat, responses, messages])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_any_model_is_behind_any_api(place: Place, talk: Talk, stream: bool) -> None:
    session = place.open(CALLS)
    name, given, counts = talk(place, stream)
    assert (name, given) == ("weather", {"city": "Oslo"})
    assert counts == {"input": 100, "cached": 60, "output": 9}
    sent = place.sent()
    # The model is pinned, and the server is asked in its own words.
    assert sent["model"] == "m"
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
    ]
    assert sent["tools"][0]["function"]["parameters"] == PARAMETERS
    assert sent["tool_choice"] == "required"
    ended = session.close()
    request, reply = read_transcript(ended.transcript)
    assert request["wire"] == talk.__name__
    assert request["messages"] == sent["messages"]
    assert reply["reply"]["reasoning"] == "Which city?"  # type: ignore[index,call-overload] # JSON
    assert (ended.usage.calls, ended.usage.input, ended.usage.cached) == (1, 100, 60)


# -- the results of tools go back ------------------------------------------------------------------

HISTORY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "mild"},
    {"role": "user", "content": "And?"},
]


def test_results_of_tools_by_the_messages_api(place: Place) -> None:
    place.open(said())
    use = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "mild"}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": ""}
    whole = place.anthropic().messages.create(
        model="x",
        max_tokens=900,
        system="Be brief.",
        messages=[
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": [thought, {"type": "text", "text": "I look."}, use]},
            {"role": "user", "content": [{"type": "text", "text": "And?"}, result]},
        ],
        stop_sequences=["END"],
    )
    assert [(block.type, block.text) for block in whole.content] == [("text", "It is mild.")]
    assert whole.stop_reason == "end_turn"
    assert place.sent()["messages"] == HISTORY
    assert place.sent()["stop"] == ["END"]


def test_results_of_tools_by_the_responses_api(place: Place) -> None:
    place.open(said())
    items: list[dict[str, Any]] = [
        {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "reasoning", "summary": [], "id": "rs_1"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "weather",
            "arguments": '{"city": "Oslo"}',
        },
        {"type": "function_call_output", "call_id": "c1", "output": "mild"},
        {"role": "user", "content": "And?"},
    ]
    whole = place.openai().responses.create(model="x", input=items, max_output_tokens=77)
    assert whole.output_text == "It is mild."
    assert place.sent()["messages"] == HISTORY
    assert place.sent()["max_tokens"] == 77


def test_tools_of_namespaces_and_free_ones_come_back_as_they_were_offered(place: Place) -> None:
    calls = [
        {"id": "c1", "function": {"name": "mcp__world__secret", "arguments": "{}"}},
        {"id": "c2", "function": {"name": "patch", "arguments": '{"input": "*** Begin"}'}},
    ]
    place.open(said(None, tool_calls=calls))
    space = {
        "type": "namespace",
        "name": "mcp__world",
        "tools": [{"type": "function", "name": "secret"}],
    }
    tools = [space, {"type": "custom", "name": "patch"}, {"type": "web_search"}]
    headers = {"authorization": f"Bearer {place.session.token}"}  # type: ignore[union-attr] # open
    with place.http() as client:
        body = {"input": "go", "tools": tools}
        output = client.post("http://g/v1/responses", json=body, headers=headers).json()["output"]
    assert [tool["function"]["name"] for tool in place.sent()["tools"]] == [
        "mcp__world__secret",
        "patch",
    ]
    assert (output[0]["name"], output[0]["namespace"]) == ("secret", "mcp__world")
    assert (output[1]["type"], output[1]["input"]) == ("custom_tool_call", "*** Begin")


def test_a_schema_for_the_answer_is_passed_on(place: Place) -> None:
    place.open(said("{}"))
    wanted = {"type": "json_schema", "name": "answer", "schema": PARAMETERS, "strict": True}
    place.openai().responses.create(model="x", input="go", text={"format": wanted})
    sent = place.sent()["response_format"]
    assert sent["json_schema"] == {"name": "answer", "schema": PARAMETERS, "strict": True}


def test_models_name_the_candidate_and_its_window(place: Place) -> None:
    place.open(said(), name="windowed")
    (model,) = place.openai().models.list()
    assert (model.id, model.max_model_len) == ("windowed", 4096)
    assert place.openai().models.retrieve("windowed").id == "windowed"
    (other,) = place.anthropic().models.list()
    assert other.id == "windowed"


# -- ends ------------------------------------------------------------------------------------------

QUOTA = {
    "status": 429,
    "json": {"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}},
}
BROKEN = {"status": 500, "json": {"error": {"message": "boom"}}}


def call(place: Place, wire: str, stream: bool = False) -> None:
    if wire == "chat":
        asked: list[Any] = [{"role": "user", "content": "go"}]
        place.openai().chat.completions.create(model="x", messages=asked, stream=stream)
    elif wire == "responses":
        place.openai().responses.create(model="x", input="go", stream=stream)
    else:
        place.anthropic().messages.create(
            model="x", max_tokens=9, messages=[{"role": "user", "content": "go"}], stream=stream
        )


WIRES = pytest.mark.parametrize("wire", ["chat", "responses", "messages"])


def failure(place: Place, wire: str, stream: bool = False) -> Any:
    anthropic = pytest.importorskip("anthropic")
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as caught:
        call(place, wire, stream)
    return caught.value


@WIRES
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_fault_ends_the_program_and_is_not_tried_again(
    place: Place, wire: str, stream: bool
) -> None:
    place.open(BROKEN)
    error = failure(place, wire, stream)
    assert error.status_code == 401
    assert "boom" in str(error)
    # Two requests: the gateway's own retry. A program that tries again reaches no server.
    assert len(place.server.seen) == 2
    assert failure(place, wire, stream).status_code == 401
    assert len(place.server.seen) == 2


@WIRES
def test_limits_hold_and_end_the_program(place: Place, wire: str) -> None:
    place.open(said(), turns=2)
    call(place, wire)
    call(place, wire)
    error = failure(place, wire)
    assert (error.status_code, "step-limit" in str(error)) == (401, True)
    assert len(place.server.seen) == 2
    place.session.close()  # type: ignore[union-attr] # it is open
    place.open(said(), tokens=100)
    call(place, wire)
    error = failure(place, wire)
    assert (error.status_code, "token-limit" in str(error)) == (401, True)


@WIRES
def test_a_full_context_is_said_in_the_words_of_each_api(place: Place, wire: str) -> None:
    text = "This model's maximum context length is 4096 tokens, however you requested 5000 tokens"
    full = {"status": 400, "json": {"error": {"message": text, "code": "context_length_exceeded"}}}
    place.open(full, said())
    error = failure(place, wire)
    assert error.status_code == 400
    if wire == "messages":
        told = error.body["error"]
        assert told["type"] == "invalid_request_error"
        assert told["message"] == "prompt is too long: 5000 tokens > 4096 maximum"
    else:
        assert error.code == "context_length_exceeded"
    # No end of the attempt: a program may shorten its history and go on.
    call(place, wire)


@WIRES
def test_a_wrong_key_is_refused(place: Place, wire: str) -> None:
    session = place.open(said())
    token, session.token = session.token, "mb-wrong"
    try:
        error = failure(place, wire)
    finally:
        session.token = token
    assert error.status_code == 401
    assert not place.server.seen


@pytest.mark.parametrize(
    ("name", "asked", "sent"),
    [
        ("local", None, 8192),
        ("local", 900, 900),
        ("windowed", 32000, 2048),
        ("windowed", None, 2048),
        ("capped", 32000, 50),
    ],
)
def test_no_reply_is_longer_than_the_ceiling(
    place: Place, name: str, asked: int | None, sent: int
) -> None:
    place.open(said(), name=name)
    bound = {} if asked is None else {"max_output_tokens": asked}
    place.openai().responses.create(model="x", input="go", **bound)
    assert place.sent()["max_tokens"] == sent


def test_the_loop_of_our_own_is_bounded_by_its_own_rules(place: Place) -> None:
    session = place.open(said(), turns=1)
    session.chat([{"role": "user", "content": "go"}])
    session.chat([{"role": "user", "content": "go"}])
    assert "max_tokens" not in place.sent()


def test_a_request_that_cannot_be_read_says_why(place: Place) -> None:
    session = place.open(said())
    key = {"x-api-key": session.token}
    with place.http() as client:
        for path, body, words in [
            ("chat/completions", b"{", "not JSON"),
            ("messages", b"{}", "messages: Field required"),
            ("responses", b'{"input": []}', "input: a text or a list"),
            ("responses", b'{"input": "x", "previous_response_id": "r"}', "nothing is kept"),
            ("responses", b'{"input": [{"type": "odd"}]}', "'odd'"),
            (
                "messages",
                b'{"messages": [{"role": "user", "content": [{"type": "pdf"}]}]}',
                "'pdf'",
            ),
        ]:
            answer = client.post(f"http://g/v1/{path}", content=body, headers=key)
            assert answer.status_code == 400
            assert words in answer.json()["error"]["message"]
    assert not place.server.seen
