"""The small rules: retries, scripts, the history that goes back, and which model is the same."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pytest_modelbench.errors import RegistryProblem
from pytest_modelbench.gateway.failures import retry_after
from pytest_modelbench.gateway.history import repair
from pytest_modelbench.gateway.models import same_model
from pytest_modelbench.gateway.replies import Reply, ReplyOutcome, classify
from pytest_modelbench.gateway.retries import Retries
from pytest_modelbench.gateway.script import read_script
from pytest_modelbench.gateway.scripted import Scripted
from pytest_modelbench.gateway.upstream import Call, target_of
from pytest_modelbench.records import Candidate


def fault(reason: str = "server-error", asked: float | None = None, retry: bool = True) -> Reply:
    return Reply(outcome=ReplyOutcome.TRANSIENT, reason=reason, wait_at_least_s=asked, retry=retry)


@given(
    asked=st.lists(st.none() | st.floats(0, 40), min_size=1, max_size=12),
    retries=st.integers(0, 6),
    max_wait=st.floats(0, 100),
    seed=st.integers(),
)
def test_retries_are_bounded_and_never_sooner_than_asked(
    asked: list[float | None], retries: int, max_wait: float, seed: int
) -> None:
    bound = Retries(retries, max_wait, random.Random(seed))
    waits: list[float] = []
    for seconds in asked:
        wait = bound.next_wait(fault(asked=seconds))
        if wait is None:
            assert bound.why_not
            break
        assert wait >= (seconds or 0.0)
        waits.append(wait)
    assert len(waits) <= retries
    assert sum(waits) <= max_wait


def test_waits_grow_and_are_scattered() -> None:
    first, second = (Retries(4, 300, random.Random(seed)) for seed in (1, 2))
    one = [first.next_wait(fault()) for _ in range(4)]
    other = [second.next_wait(fault()) for _ in range(4)]
    assert one != other
    assert all(a is not None and b is not None and a < b for a, b in pairwise(one))


def test_loading_has_no_count_of_tries_but_the_bound_of_waiting() -> None:
    bound = Retries(1, 60, random.Random(0))
    polls = 0
    while bound.next_wait(fault("loading")) is not None:
        polls += 1
    assert polls > 5
    assert bound.waited <= 60


def test_what_cannot_help_is_not_tried() -> None:
    assert Retries(4, 300).next_wait(fault(retry=False)) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 60.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_both_forms_of_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=40.0) == seconds


SCRIPT = """
[[default.steps]]
content = "I do not know."

[[cases."fix-bug".steps]]
calls = [{ name = "read_file", arguments = { path = "calc.py" } }]

[[cases."fix-bug".steps]]
content = "Done."
usage = { prompt_tokens = 7, completion_tokens = 3 }
error = { status = 503, message = "busy", times = 2 }

[[cases."fix-bug".variants]]
repeats = [2]
steps = [{ content = "I give up." }]

[cases.endless]
loop = true
steps = [{ content = "one" }, { content = "again" }]
"""


def play(path: Path, case: str, repeat: int = 1, position: int = 0, tries: int = 0) -> Reply:
    messages: list[JsonValue] = [{"role": "user", "content": "x"}]
    messages += [{"role": "assistant", "content": "y"}] * position
    call = Call(messages, [], {}, False, 5.0, case, repeat, tries)
    exchange = asyncio.run(Scripted(read_script(path), str(path), "").send(call))
    return classify(exchange, ["read_file"], now=0.0)


def test_script_plays_by_case_repeat_and_position(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text(SCRIPT)
    assert play(path, "other").answer == "I do not know."
    (call,) = play(path, "fix-bug").tool_calls
    assert (call.id, call.name, call.arguments) == ("call_1_1", "read_file", {"path": "calc.py"})
    assert play(path, "fix-bug", position=1).reason == "unavailable"
    assert play(path, "fix-bug", position=1, tries=1).retry
    done = play(path, "fix-bug", position=1, tries=2)
    assert (done.answer, done.usage.input) == ("Done.", 7)
    assert play(path, "fix-bug", repeat=2).answer == "I give up."
    assert [play(path, "endless", position=n).answer for n in (0, 1, 9)] == [
        "one",
        "again",
        "again",
    ]
    past = play(path, "fix-bug", position=2)
    assert (past.outcome, past.retry) == (ReplyOutcome.TRANSIENT, False)
    assert "no step 3 for case 'fix-bug', repeat 1" in past.quote


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[[default.steps]]\ncontent = 'a\n", 2, "not TOML"),
        ("[[default.steps]]\ncontent = 'a'\n\n[[default.steps]]\ncontnt = 'b'\n", 5, "contnt"),
        ("[[cases.a.steps]]\ncontent = 1\n", 2, "content"),
        ("\n[cases.a]\nsteps = []\n", 2, "has no steps"),
        ("", None, "empty"),
    ],
)
def test_unsound_script_is_refused_with_file_and_line(
    tmp_path: Path, text: str, line: int | None, words: str
) -> None:
    path = tmp_path / "script.toml"
    path.write_text(text)
    with pytest.raises(RegistryProblem, match=words) as caught:
        read_script(path)
    assert (caught.value.path, caught.value.line) == (path, line)


def test_missing_script_is_refused_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(RegistryProblem, match=r"none\.toml: the script cannot be read"):
        read_script(tmp_path / "none.toml")


def test_history_gives_calls_and_their_results_the_same_ids() -> None:
    call: dict[str, Any] = {"function": {"name": "f", "arguments": {"a": 1}}}
    history: list[JsonValue] = [
        {"role": "assistant", "content": None, "tool_calls": [call, call]},
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
        {"role": "assistant", "content": "x", "tool_calls": []},
    ]
    assistant, one, two, last = repair(history)
    assert isinstance(assistant, dict)
    assert isinstance(one, dict)
    assert isinstance(two, dict)
    calls: Any = assistant["tool_calls"]
    assert [calls[0]["id"], calls[1]["id"]] == [one["tool_call_id"], two["tool_call_id"]]
    assert calls[0]["id"] != calls[1]["id"]
    assert calls[0]["type"] == "function"
    assert calls[0]["function"]["arguments"] == '{"a": 1}'
    assert last == {"role": "assistant", "content": "x"}, "some servers refuse an empty list"


def test_readable_history_is_untouched() -> None:
    history: list[JsonValue] = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
        {"role": "assistant", "content": "a", "thinking_blocks": [{"signature": "s"}]},
    ]
    assert repair(history) == history


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4-0613", "gpt-4-1106", False),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("Qwen/Qwen2.5-7B", "qwen2.5-7b", True),
        ("qwen", "/models/qwen.gguf", True),
        ("qwen2.5:latest", "qwen2.5", True),
        ("acme", "", True),
        ("", "anything", True),
    ],
)
def test_same_model(asked: str, served: str, same: bool) -> None:
    reply = Reply(outcome=ReplyOutcome.ANSWER, served_model=served)
    assert same_model(asked, reply, Candidate(name="m")) is same


def test_declared_names_are_the_same_model() -> None:
    reply = Reply(outcome=ReplyOutcome.ANSWER, served_model="internal-7")
    told: list[dict[str, JsonValue]] = [
        {"served_as": "internal-7"},
        {"served_as": ["x", "internal-7"]},
        {"base_model": "internal-7"},
    ]
    for facts in told:
        assert same_model("public", reply, Candidate(name="m", facts=facts))
    assert not same_model("public", reply, Candidate(name="m", facts={"served_as": "internal-8"}))


@pytest.mark.parametrize(
    ("model", "base", "direct", "asked", "url"),
    [
        ("openai/gpt-4o", "", True, "gpt-4o", "https://api.openai.com/v1"),
        ("gpt-4o-mini", "", True, "gpt-4o-mini", "https://api.openai.com/v1"),
        ("openai/x", "http://gpu:8000/v1/", True, "x", "http://gpu:8000/v1"),
        ("hosted_vllm/Qwen/Q", "http://gpu/v1", True, "Qwen/Q", "http://gpu/v1"),
        ("lm_studio/q", "http://gpu/v1", True, "q", "http://gpu/v1"),
        ("acme/coder", "http://gpu/v1", True, "acme/coder", "http://gpu/v1"),
        ("coder", "http://gpu/v1", True, "coder", "http://gpu/v1"),
        ("anthropic/claude-x", "", False, "anthropic/claude-x", ""),
        ("claude-sonnet-4-5", "", False, "claude-sonnet-4-5", ""),
        ("gemini/gemini-2.5-pro", "", False, "gemini/gemini-2.5-pro", ""),
    ],
)
def test_targets(model: str, base: str, direct: bool, asked: str, url: str) -> None:
    target = target_of(Candidate(name="m", model=model, api_base=base), {"OPENAI_API_KEY": "k"})
    assert (target.direct, target.model, target.api_base) == (direct, asked, url)
    assert target.problem is None
    assert target.key == ("k" if url == "https://api.openai.com/v1" else None)
    said = "the key of the variable OPENAI_API_KEY was sent" if target.key else "no key was sent"
    assert target.key_in_words.startswith(said) is direct


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model": "openai/x", "api_base": "gpu:8000"}, "does not begin with http"),
        ({"model": "hosted_vllm/x"}, "needs an api_base"),
        ({"model": ""}, "declares no model"),
        ({"model": "openai/x"}, "OPENAI_API_KEY is not set"),
        ({"model": "nonsense"}, "names no provider"),
    ],
)
def test_targets_that_cannot_be(fields: dict[str, Any], words: str) -> None:
    problem = target_of(Candidate(name="m", **fields), {}).problem
    assert problem is not None
    assert words in problem[1]
