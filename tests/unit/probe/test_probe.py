"""Probes of a real server whose ways are known."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.cli import main
from pytest_modelbench.probe.asking import NO_SUCH_MODEL
from pytest_modelbench.probe.finding import Probe, State
from pytest_modelbench.probe.matrix import render
from pytest_modelbench.probe.probing import newest, probe
from pytest_modelbench.records import Candidate

WINDOW = 8192


def reply(text: str | None, usage: Any, calls: list[Any] | None = None, model: str = "m") -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"json": {"model": model, "choices": [choice], "usage": usage}}


class Ways:
    """How a server behaves; each attribute is one thing that servers differ in."""

    def __init__(self, **ways: Any) -> None:
        self.refuses_names = True
        self.window: int | None = WINDOW
        self.truncates = False
        self.parses_calls = True
        self.schema = True
        self.stream_usage = True
        self.cached = True
        self.seeds = True
        self.model = "m"
        vars(self).update(ways)
        self.seen_prompts: set[str] = set()

    def __call__(self, body: dict[str, Any]) -> Any:
        if body["model"] == NO_SUCH_MODEL and self.refuses_names:
            missing = {"message": "The model does not exist", "code": "model_not_found"}
            return {"status": 404, "json": {"error": missing}}
        prompt = str(body["messages"][-1]["content"])
        tokens = len(prompt.split()) + 5
        if self.window is not None and tokens > self.window and not self.truncates:
            error: dict[str, Any] = {
                "message": "the request exceeds the available context size",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": tokens,
                "n_ctx": self.window,
            }
            return {"status": 400, "json": {"error": error}}
        usage: dict[str, Any] = {
            "prompt_tokens": min(tokens, self.window or tokens),
            "completion_tokens": min(4, body.get("max_tokens", 4)),
        }
        if self.cached:
            again = prompt in self.seen_prompts
            usage["prompt_tokens_details"] = {"cached_tokens": tokens - 1 if again else 0}
        self.seen_prompts.add(prompt)
        if body.get("stream"):
            return self.stream(usage)
        return self.answer(body, prompt, usage)

    def answer(self, body: dict[str, Any], prompt: str, usage: Any) -> Any:
        if body["messages"][-1]["role"] == "tool":
            return reply("It is 17 degrees.", usage, model=self.model)
        if body.get("tools"):
            cities = ["Oslo", "Rome"] if "Rome" in prompt else ["Oslo"]
            given = [{"name": "get_weather", "arguments": {"city": city}} for city in cities]
            if not self.parses_calls:
                text = f"<tool_call>\n{json.dumps(given[0])}\n</tool_call>"
                return reply(text, usage, model=self.model)
            calls = [
                {
                    "id": f"c{number}",
                    "function": {**one, "arguments": json.dumps(one["arguments"])},
                }
                for number, one in enumerate(given)
            ]
            return reply(None, usage, calls, self.model)
        if "response_format" in body:
            text = '{"city": "Oslo", "people": 700000}' if self.schema else "Oslo is a city."
            return reply(text, usage, model=self.model)
        if "animal" in prompt:
            seed = body.get("seed") if self.seeds else None
            return reply(f"Animal {random.Random(seed).random()}", usage, model=self.model)
        return reply("yes", usage, model=self.model)

    def stream(self, usage: Any) -> Any:
        delta = {"index": 0, "delta": {"content": "yes"}, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        chunks: list[Any] = [{"model": self.model, "choices": [one]} for one in (delta, end)]
        if self.stream_usage:
            chunks.append({"model": self.model, "choices": [], "usage": usage})
        return {
            "headers": {"content-type": "text/event-stream"},
            "sse": [*chunks, "data: [DONE]\n\n"],
        }


Found = Callable[..., Probe]


@pytest.fixture
def found(model_server: Any) -> Found:
    """A function that probes a server of some ways."""

    def run(note: str = "", tuning: dict[str, Any] | None = None, **ways: Any) -> Probe:
        server = model_server(Ways(**ways))
        candidate = Candidate(
            name="local", model="openai/m", api_base=server.url, tuning=tuning or {}
        )
        return probe(candidate, note=note, widths=(1, 2), call_seconds=240)

    return run


def states(found: Probe) -> dict[str, str]:
    return {one.name: one.state.value for one in found.findings}


def test_a_server_that_can_everything(found: Found) -> None:
    seen = found(tuning={"context_tokens": WINDOW})
    assert set(states(seen).values()) == {"yes"}
    assert len(seen.findings) == 13
    assert seen.facts["context_tokens"] == WINDOW
    assert seen.facts["served_model"] == "m"
    rates = seen.facts["tokens_per_second"]
    assert isinstance(rates, dict)
    assert set(rates) == {"1", "2"}
    # How much two at once bring is the machine's to say.
    assert {one.name for one in seen.findings if one.remedy} <= {"speed"}


def test_what_a_server_lacks_is_found_with_its_remedy(found: Found) -> None:
    seen = found(
        refuses_names=False,
        parses_calls=False,
        schema=False,
        stream_usage=False,
        cached=False,
        seeds=False,
        tuning={"context_tokens": 2 * WINDOW},
    )
    assert states(seen) == {
        "alive": "yes",
        "served model": "yes",
        "refuses a wrong name": "no",
        "context window": "no",
        "tool calls": "no",
        "tool calls, required": "no",
        "tool calls, parallel": "no",
        "tool results": "yes",
        "JSON schema": "no",
        "streaming": "partly",
        "cached tokens": "no",
        "seeds": "no",
        "speed": "yes",
    }
    remedies = {one.name: one.remedy for one in seen.findings}
    assert "--tool-call-parser" in remedies["tool calls"]
    assert f"context_tokens = {WINDOW}" in remedies["context window"]
    shown = " ".join(" ".join(render(seen)).split())
    assert "calls come back as text" in shown
    assert shown.count("--tool-call-parser") == 1


def test_a_server_that_cuts_prompts_is_found_out(found: Found) -> None:
    (window,) = (one for one in found(truncates=True).findings if one.name == "context window")
    assert window.state is State.NO
    assert f"to {WINDOW} tokens without a word" in window.text


def test_another_model_than_the_one_asked_for_is_found_out(found: Found) -> None:
    named = {one.name: one for one in found(model="other").findings}["served model"]
    assert (named.state, "other answered" in named.text) == (State.NO, True)
    assert 'served_as = "other"' in named.remedy


def test_a_dead_server_is_asked_one_thing(quiet_port: int) -> None:
    dead = f"http://127.0.0.1:{quiet_port}/v1"
    seen = probe(Candidate(name="local", model="openai/m", api_base=dead), call_seconds=60)
    assert not seen.alive
    (only,) = seen.findings
    assert "connection-refused" in only.text
    assert "start the server" in only.remedy


def test_the_command_keeps_what_it_found(
    model_server: Any,
    quiet_port: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = model_server(Ways(model="\x1b[31mred"), port=quiet_port)
    (tmp_path / "modelbench.toml").write_text(
        f'[candidates.local]\nmodel = "openai/m"\napi_base = "{server.url}"\n'
    )
    monkeypatch.chdir(tmp_path)
    assert main(["probe", "local", "--note", "here", "--in-flight", "1"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    kept = newest("local", tmp_path / "results")
    assert kept is not None
    assert (kept.note, kept.alive, kept.candidate) == ("here", True, "local")
    server.close()
    assert main(["probe", "local", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["facts"]["alive"] == "no"
    assert main(["probe", "reference"]) == 4
    assert "no server that could be asked" in capsys.readouterr().err


@pytest.mark.slow
def test_evaluate_probes_runs_and_compares_with_all(
    model_server: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    server = model_server(Ways())
    (tmp_path / "modelbench.toml").write_text(
        f'[candidates.one]\nmodel = "openai/m"\napi_base = "{server.url}"\n'
        f'[candidates.two]\nmodel = "openai/m"\napi_base = "{server.url}"\n'
        "limits = { turns = 2 }\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["new-pack", "small"]) == 0
    for name in ("one", "two"):
        assert main(["evaluate", name, "--note", f"{name}, served so"]) == 0
        shown = capfd.readouterr().out
        assert "context window         yes      8192 tokens" in shown
        server.responses[0].seen_prompts.clear()
    # The second run measured one candidate, and the table after it has both.
    table = shown.rpartition("modelbench: small")[2]
    assert "one" in table
    assert "two" in table
    assert len(list((tmp_path / "results" / "small").glob("one/*.jsonl"))) == 1
