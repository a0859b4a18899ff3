"""Models that LiteLLM speaks for: raw body, usage and end mark are the server's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import JsonValue

from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.records import Candidate

if TYPE_CHECKING:
    from tests.conftest import ModelServer, Running

    Servers = Callable[..., ModelServer]
    Gateways = Callable[..., Running]

pytestmark = pytest.mark.slow  # importing LiteLLM takes seconds

USER: list[JsonValue] = [{"role": "user", "content": "What is 17 + 25?"}]
TOOLS: list[JsonValue] = [
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
]
JSON_TYPE = {"headers": {"content-type": "application/json"}}

ANTHROPIC = JSON_TYPE | {
    "json": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "acme-9-20250101",
        "content": [{"type": "text", "text": "42"}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 90,
            "cache_creation_input_tokens": 5,
            "output_tokens": 3,
        },
    }
}
TOOL_USE = JSON_TYPE | {
    "json": {
        **ANTHROPIC["json"],
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 17}}],
        "stop_reason": "tool_use",
    }
}
GEMINI = JSON_TYPE | {
    "json": {
        "candidates": [
            {"content": {"parts": [{"text": "42"}], "role": "model"}, "finishReason": "STOP"}
        ],
        "usageMetadata": {
            "promptTokenCount": 100,
            "cachedContentTokenCount": 90,
            "candidatesTokenCount": 2,
            "thoughtsTokenCount": 7,
            "totalTokenCount": 109,
        },
        "modelVersion": "gemini-2.5-flash",
    }
}
DEEPSEEK = JSON_TYPE | {
    "json": {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "deepseek-chat",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "42", "reasoning_content": "17+25"},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 50,
            "prompt_cache_hit_tokens": 40,
            "prompt_cache_miss_tokens": 10,
            "completion_tokens": 2,
        },
    }
}


def anthropic_error(status: int, kind: str, message: str, **headers: str) -> dict[str, Any]:
    return {
        "status": status,
        "headers": {"content-type": "application/json", **headers},
        "json": {"type": "error", "error": {"type": kind, "message": message}},
    }


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for each provider, and none that leads outside."""
    monkeypatch.setenv("A_KEY", "sk-test-0123456789")
    monkeypatch.setenv("MOONSHOT_API_KEY", "sk-of-the-real-service")


def test_each_shape_is_read_from_the_raw_body(
    model_server: Servers, gateway: Gateways, keys: None
) -> None:
    def candidate(name: str, model: str, server: ModelServer) -> Candidate:
        base = server.url.removesuffix("/v1")
        key = "" if name == "sdk" else "A_KEY"
        return Candidate(name=name, model=model, api_base=base, api_key_env=key)

    servers = {
        "anthropic": model_server(ANTHROPIC, TOOL_USE),
        "gemini": model_server(GEMINI),
        "deepseek": model_server(DEEPSEEK),
        # Goes by OpenAI's own client and not by one that is handed in.
        "sdk": model_server(DEEPSEEK | {"json": {**DEEPSEEK["json"], "model": "kimi-k2"}}),
    }
    running = gateway(
        candidate("anthropic", "anthropic/acme-9", servers["anthropic"]),
        candidate("gemini", "gemini/gemini-2.5-flash", servers["gemini"]),
        candidate("deepseek", "deepseek/deepseek-chat", servers["deepseek"]),
        candidate("sdk", "moonshot/kimi-k2", servers["sdk"]),
    )
    expected = {
        "anthropic": ("end_turn", "acme-9-20250101", 105, 90, 5, 3, None),
        "gemini": ("STOP", "gemini-2.5-flash", 100, 90, None, 9, 7),
        "deepseek": ("stop", "deepseek-chat", 50, 40, None, 2, None),
        "sdk": ("stop", "kimi-k2", 50, 40, None, 2, None),
    }
    for name, right in expected.items():
        session = running.client.grant("a", name)
        reply = session.chat(USER)
        usage = reply.usage
        assert (reply.answer, reply.reason) == ("42", ""), name
        assert (
            reply.finish,
            reply.served_model,
            usage.input,
            usage.cached,
            usage.cache_written,
            usage.output,
            usage.reasoning,
        ) == right, name
        assert len(servers[name].seen) == 1
        sent = str(servers[name].seen[0].headers) + servers[name].seen[0].path
        assert ("sk-test-0123456789" in sent) == (name != "sdk")
        assert "real-service" not in sent, "a key goes to a declared address only when named"
        if name == "anthropic":
            (call,) = session.chat(USER, TOOLS).tool_calls
            assert (call.id, call.arguments) == ("toolu_1", {"a": 17})
        end = session.close()
        native = read_transcript(end.transcript)[1]["body"]
        assert str(native).startswith('{"')
        assert {"anthropic": "end_turn", "gemini": "usageMetadata"}.get(name, "choices") in str(
            native
        )
        assert end.usage.requests == len(servers[name].seen)
        assert reply.held_seconds >= 0


def test_errors_are_the_servers_own_and_no_request_is_hidden(
    model_server: Servers, gateway: Gateways, keys: None, behaviour: Callable[[str], Any]
) -> None:
    limited = anthropic_error(429, "rate_limit_error", "Slow down.", **{"retry-after": "0.2"})
    errors = {
        "retried": (model_server(limited, ANTHROPIC), ""),
        "poor": (
            model_server(
                anthropic_error(
                    400, "invalid_request_error", "Your credit balance is too low to access this."
                )
            ),
            "quota-exhausted",
        ),
        "long": (
            model_server(
                anthropic_error(
                    400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000"
                )
            ),
            "context-exceeded",
        ),
        "broken": (model_server(behaviour("R23")), "server-error"),
        "page": (model_server(behaviour("R24")), "bad-gateway"),
        "cut": (model_server(behaviour("R29")), "body-not-json"),
        "silent": (model_server({"delivery": {"kind": "no-response"}}), "no-response"),
        "reset": (model_server(behaviour("R26")), "connection-reset"),
    }
    running = gateway(
        *(
            Candidate(
                name=name,
                model="anthropic/acme-9",
                api_base=server.url.removesuffix("/v1"),
                api_key_env="A_KEY",
            )
            for name, (server, _) in errors.items()
        ),
        retries=1,
    )
    for name, (server, reason) in errors.items():
        session = running.client.grant("a", name)
        try:
            got = session.chat(USER).reason
        except Fault as fault:
            got = fault.kind
        assert got == reason, name
        tries = 1 if reason in ("quota-exhausted", "context-exceeded") else 2
        assert len(server.seen) == tries, name
        assert session.close().usage.requests == tries, name
    assert errors["retried"][0].seen[1].at - errors["retried"][0].seen[0].at >= 0.2


def test_unknown_provider_is_refused_before_any_request(gateway: Gateways) -> None:
    client = gateway(Candidate(name="m", model="no-such-provider/x")).client
    with pytest.raises(Fault, match="names no provider that LiteLLM knows") as caught:
        client.grant("a", "m").chat(USER)
    assert (caught.value.kind, caught.value.permanent) == ("unknown-model", True)
