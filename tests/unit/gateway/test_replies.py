"""What a reply is: the cases beyond the field reports, and that nothing a server sends is fatal."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.gateway import sse
from pytest_modelbench.gateway.replies import Exchange, Reply, ReplyOutcome, classify
from pytest_modelbench.gateway.toolcalls import clean

NOW = 1_700_000_000.0


def whole(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> Exchange:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return Exchange(200, {}, json.dumps({"choices": [choice], **more}).encode())


def error(at: int, message: str = "", /, **more: Any) -> Reply:
    body = {"error": {"message": message, **more}}
    return classify(Exchange(at, {}, json.dumps(body).encode()), now=NOW)


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000.",
        "the request exceeds the available context size, try increasing it",
        "prompt is too long: 208310 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
        "Please reduce the length of the messages or completion.",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512",
        "Input is too long for requested model.",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "Requested tokens (9214) exceed context window of 8192",
        "prompt tokens (9000) must be less than max_model_len (8192)",
    ],
)
def test_context_overrun_is_known_by_any_servers_words(words: str) -> None:
    for status in (400, 413, 500):
        got = error(status, words)
        assert (got.outcome, got.reason) == (ReplyOutcome.RESULT_FAIL, "context-exceeded"), status


@pytest.mark.parametrize(
    ("status", "fields", "outcome", "reason"),
    [
        (429, {"message": "Too many tokens, please wait before trying again."},
         "fault-transient", "rate-limited"),
        (429, {"message": "Request too large: tokens per minute (TPM): limit 6000, context length"},
         "fault-transient", "rate-limited"),
        (400, {"message": "Your credit balance is too low to access the API."},
         "fault-permanent", "quota-exhausted"),
        (402, {"message": "Insufficient Balance"}, "fault-permanent", "quota-exhausted"),
        (400, {"message": "API key not valid", "code": "invalid_api_key"},
         "fault-permanent", "unauthorised"),
        (403, {"message": "not allowed in your country"}, "fault-permanent", "forbidden"),
        (403, {"message": "Your input requires moderation"}, "result-fail", "content-filter"),
        (404, {"message": "The model `acme` does not exist"}, "fault-permanent", "unknown-model"),
        (404, {"message": "File Not Found"}, "fault-permanent", "not-found"),
        (400, {"message": "Failed to apply chat_template: roles must alternate"},
         "fault-permanent", "template-refused"),
        (422, {"message": "temperature must be below 2"}, "fault-transient", "bad-request"),
        (529, {"message": "Overloaded", "type": "overloaded_error"},
         "fault-transient", "overloaded"),
        (504, {"message": "upstream"}, "fault-transient", "gateway-timeout"),
        (503, {"message": "no healthy upstream"}, "fault-transient", "unavailable"),
        (400, {"message": "filtered", "code": "content_filter"}, "result-fail", "content-filter"),
    ],
)  # fmt: skip
def test_errors_are_told_apart(
    status: int, fields: dict[str, Any], outcome: str, reason: str
) -> None:
    got = error(status, fields.pop("message"), **fields)
    assert (got.outcome.value, got.reason) == (outcome, reason)


def test_quota_words_with_a_time_to_wait_are_a_rate_limit() -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
    words = "You exceeded your current quota, please check your plan and billing details."
    limited = error(429, words, status="RESOURCE_EXHAUSTED", details=[detail])
    assert (limited.reason, limited.wait_at_least_s) == ("rate-limited", 34.0)
    assert error(429, words, status="RESOURCE_EXHAUSTED").reason == "quota-exhausted"


def test_bad_request_is_not_asked_again() -> None:
    assert not error(400, "unknown parameter").retry
    assert error(500).retry


def test_key_in_a_refusal_is_not_quoted() -> None:
    got = error(401, "Incorrect API key provided: sk-proj-ab12cd34. Find yours at …")
    assert "ab12" not in got.quote
    assert got.quote.startswith("Incorrect API key provided: [key]")


def test_error_in_the_middle_of_a_stream_is_that_error() -> None:
    text = 'data: {"choices":[{"index":0,"delta":{"content":"4"}}]}\n\n'
    text += 'data: {"error":{"code":502,"message":"Provider disconnected"}}\n\n'
    got = classify(Exchange(200, {"content-type": "text/event-stream"}, text.encode()), now=NOW)
    assert (got.outcome, got.reason) == (ReplyOutcome.TRANSIENT, "upstream-error")


def test_stream_that_breaks_after_its_end_mark_is_whole() -> None:
    text = 'data: {"choices":[{"index":0,"delta":{"content":"42"},"finish_reason":"stop"}]}\n\n'
    broken = Exchange(200, {"content-type": "text/event-stream"}, text.encode(), "body-cut")
    assert classify(broken, now=NOW).answer == "42"


def test_whole_reply_to_a_stream_request_and_stream_unasked() -> None:
    body = whole({"content": "42"}).body
    lying = Exchange(200, {"content-type": "text/event-stream"}, body)
    assert classify(lying, now=NOW).answer == "42"
    stream = b'data: {"choices":[{"delta":{"content":"42"},"finish_reason":"stop"}]}\n\n'
    plain = Exchange(200, {"content-type": "application/json"}, stream)
    assert classify(plain, now=NOW).answer == "42"


@pytest.mark.parametrize(
    ("content", "answer", "reasoning"),
    [
        ("<think>a</think>\n42", "42", "a"),
        ("a\n</think>\n\n42", "42", "a"),
        ("<thinking>a</thinking>42", "42", "a"),
        ("<think>never closed", None, "never closed"),
        ("Use the <think> tag: <think>x</think>", "Use the <think> tag: <think>x</think>", None),
        ("<think></think>42", "42", None),
    ],
)
def test_thinking_in_tags_is_apart(content: str, answer: str | None, reasoning: str | None) -> None:
    got = classify(whole({"content": content}), now=NOW)
    assert (got.answer, got.reasoning) == (answer, reasoning)


def test_refusal_is_named() -> None:
    got = classify(whole({"content": None, "refusal": "I will not."}), now=NOW)
    assert (got.outcome, got.reason) == (ReplyOutcome.RESULT_FAIL, "refusal")
    assert got.quote == "I will not."


@pytest.mark.parametrize(
    ("arguments", "finish", "read", "problem"),
    [
        ('{"a": 1}', "tool_calls", {"a": 1}, None),
        ("", "tool_calls", {}, None),
        (None, "tool_calls", {}, None),
        ('{"a": "cut o', "length", None, "arguments-cut"),
        ('{"a": "cut o', "tool_calls", None, "arguments-not-json"),
        ("[1]", "tool_calls", None, "arguments-not-json"),
        ('"{}"', "tool_calls", None, "arguments-not-json"),
        ('{"a": NaN}', "tool_calls", None, "arguments-not-json"),
        ("[" * 100_000, "tool_calls", None, "arguments-not-json"),
    ],
)
def test_arguments(arguments: str | None, finish: str, read: Any, problem: str | None) -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    got = classify(whole({"content": None, "tool_calls": [call]}, finish), ["f"], now=NOW)
    assert (got.tool_calls[0].arguments, got.tool_calls[0].problem) == (read, problem)
    for made in got.message()["tool_calls"]:  # type: ignore[union-attr]  # JSON
        json.loads(made["function"]["arguments"])  # type: ignore[call-overload,index,arg-type]  # JSON


def test_second_use_of_an_id_is_none() -> None:
    call = {"id": "same", "function": {"name": "f", "arguments": "{}"}}
    got = classify(whole({"content": None, "tool_calls": [call, call]}), ["f"], now=NOW)
    assert [c.id for c in got.tool_calls] == ["same", None]


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
        '```json\n{"name": "f", "arguments": {"a": 1}}\n```',
        '{"name": "f", "parameters": {}}',
        '<|python_tag|>{"name": "f"}',
        '[TOOL_CALLS][{"name": "f", "arguments": {}}]',
        "<function=f>{}</function>",
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
    ],
)
def test_call_left_in_text_is_named_where_tools_were_on_offer(text: str) -> None:
    assert classify(whole({"content": text}), ["f"], now=NOW).reason == "tool-call-as-text"
    assert classify(whole({"content": text}), now=NOW).outcome == ReplyOutcome.ANSWER


def test_json_answer_is_no_call() -> None:
    for text in ('{"name": "Ann", "arguments": "strong"}', '{"name": "f"}', '{"total": 3}'):
        assert classify(whole({"content": text}), ["f"], now=NOW).outcome == ReplyOutcome.ANSWER


def test_more_than_one_choice_leaves_the_output_unknown() -> None:
    choice = {"index": 0, "message": {"content": "42"}, "finish_reason": "stop"}
    body = {"choices": [choice, {**choice, "index": 1}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2}}  # fmt: skip
    usage = classify(Exchange(200, {}, json.dumps(body).encode()), now=NOW).usage
    assert (usage.input, usage.output) == (9, None)


@pytest.mark.parametrize("count", ["1e999", "1e300", "9" * 400, "-3", "NaN", '"9"', "1.5"])
def test_a_count_that_can_be_none_is_unknown(count: str) -> None:
    message = '{"message": {"content": "42"}, "finish_reason": "stop"}'
    told = f'{{"prompt_tokens": {count}, "completion_tokens": 2, "cost": {count}}}'
    body = f'{{"choices": [{message}], "usage": {told}}}'

    usage = classify(Exchange(200, {}, body.encode()), now=NOW).usage

    assert (usage.input, usage.output) == (None, 2)
    assert usage.billed_usd in (None, 1e300, 1.5)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "message", "delta", "content", "tool_calls", "function", "name", "error",
             "arguments", "usage", "prompt_tokens", "finish_reason", "id", "index", "code", "type",
             "text", "thinking", "reasoning_content", "prompt_tokens_details", "model", "details"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


def test_halves_of_surrogate_pairs_are_joined_or_replaced_wherever_they_are() -> None:
    deltas: list[Any] = [{"content": "a \ud83d"}, {"content": "\ude00 b \udc00"}]
    raw = b"".join(
        b"data: " + json.dumps({"choices": [{"delta": d}], "model": "\ud800"}).encode() + b"\n\n"
        for d in deltas
    )
    got = classify(Exchange(200, {}, raw + b"data: [DONE]\n\n"), now=NOW)
    assert (got.answer, got.served_model) == ("a \U0001f600 b \ufffd", "\ufffd")
    failed = Exchange(200, {}, b'data: {"error": {"message": "\\ud800"}}\n\n')
    assert classify(failed, now=NOW).quote == "\ufffd"
    call = {"id": "\ud800", "function": {"name": "f", "arguments": '{"a": "\\ud800"}'}}
    one = classify(whole({"content": None, "tool_calls": [call]}, "\ud800"), ["f"], now=NOW)
    assert one.tool_calls[0].arguments == {"a": "\ufffd"}
    for reply in (got, one):
        assert Reply.model_validate_json(reply.model_dump_json()) == reply


@given(
    body=JSONS,
    status=st.none() | st.integers(100, 599),
    stream=st.booleans(),
    tools=st.sampled_from([(), ("f",)]),
)
def test_whatever_a_server_sends_is_classified(
    body: Any, status: int | None, stream: bool, tools: tuple[str, ...]
) -> None:
    raw = json.dumps(body).encode()
    for text in (raw, b"data: " + raw + b"\n\ndata: [DONE]\n\n" if stream else raw[:-1]):
        got = classify(Exchange(status, {}, text), tools, now=time.time())
        assert Reply.model_validate_json(got.model_dump_json()) == got
        assert got.faulty or got.outcome != ReplyOutcome.ANSWER or got.answer
        json.dumps(got.message())


@given(st.binary(max_size=300), st.sampled_from([None, 200, 400, 502]))
def test_whatever_bytes_come_are_classified(raw: bytes, status: int | None) -> None:
    assert classify(Exchange(status, {}, raw), now=NOW).outcome in ReplyOutcome


@given(st.text(st.characters(), max_size=30))
def test_cleaned_text_is_utf8_and_whole_text_is_untouched(text: str) -> None:
    cleaned = clean({"a": [text]})
    json.dumps(cleaned, ensure_ascii=False).encode()
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert cleaned == {"a": [text]}


@given(
    answer=st.none() | st.text(max_size=20),
    calls=st.lists(st.tuples(st.text(min_size=1, max_size=5), st.text(max_size=20)), max_size=3),
    finish=st.sampled_from(["stop", "length", "tool_calls"]),
)
def test_stream_for_a_program_says_what_the_whole_reply_says(
    answer: str | None, calls: list[tuple[str, str]], finish: str
) -> None:
    message: dict[str, Any] = {"role": "assistant", "content": answer}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": text}}
            for i, (name, text) in enumerate(calls)
        ]
    body: dict[str, Any] = {
        "id": "x",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    }
    again = sse.assemble(b"".join(sse.chunks(body)))
    assert again.complete
    assert again.body["choices"] == body["choices"]
    assert again.body["usage"] == body["usage"]


def test_calls_of_a_stream_without_indexes_or_with_equal_ones_stay_apart() -> None:
    for index in ({}, {"index": 0}):
        deltas = [
            {**index, "id": f"c{n}", "function": {"name": "f", "arguments": f'{{"n": {n}}}'}}
            for n in (1, 2)
        ]
        raw = b"".join(
            b"data: " + json.dumps({"choices": [{"delta": {"tool_calls": [d]}}]}).encode() + b"\n\n"
            for d in deltas
        )
        got = classify(Exchange(200, {}, raw + b"data: [DONE]\n\n"), ["f"], now=NOW)
        assert [call.arguments for call in got.tool_calls] == [{"n": 1}, {"n": 2}]
