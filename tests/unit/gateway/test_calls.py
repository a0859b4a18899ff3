"""Calls through a running gateway to a real server: retries, waits, stops, limits, accounts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import JsonValue

from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.replies import ReplyOutcome
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.records import Candidate, Limits, Role, Server

if TYPE_CHECKING:
    from tests.conftest import ModelServer, Running

    Servers = Callable[..., ModelServer]
    Gateways = Callable[..., Running]
    Behaviours = Callable[[str], dict[str, Any]]
    Replies = Callable[..., dict[str, Any]]

USER: list[JsonValue] = [{"role": "user", "content": "What is 17 + 25?"}]
TOOLS: list[JsonValue] = [
    {"type": "function", "function": {"name": n}} for n in ("read_file", "write_file", "run")
]


def candidate(at: ModelServer, name: str = "m", /, **more: Any) -> Candidate:
    return Candidate(name=name, **{"model": "openai/acme-coder-9b", "api_base": at.url, **more})


def test_growing_retry_after_is_honoured_and_kept_apart(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """FR05: three requests, each wait at least as long as asked, then an ordinary answer."""
    limited = behaviour("R18")
    first = {**limited, "headers": {**limited["headers"], "retry-after": "0.3"}}
    second = {**limited, "headers": {**limited["headers"], "retry-after": "0.6"}}
    server = model_server(first, second, behaviour("R01"))
    session = gateway(candidate(server)).client.grant("a", "m")
    reply = session.chat(USER)
    assert reply.answer == "42"
    assert len(server.seen) == 3
    one, two, three = (request.at for request in server.seen)
    assert two - one >= 0.3
    assert three - two >= 0.6
    end = session.close()
    assert (end.usage.requests, end.usage.retries, end.usage.waits) == (3, 2, 2)
    assert 0.9 <= end.usage.wait_seconds <= three - one
    assert end.held_seconds >= end.usage.wait_seconds
    assert session.held_seconds == pytest.approx(end.held_seconds, abs=1e-3)


def test_date_form_of_retry_after_is_honoured(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    limited = behaviour("R18")
    dated = {**limited, "headers": {**limited["headers"], "retry-after": "{http-date+2}"}}
    server = model_server(dated, behaviour("R01"))
    session = gateway(candidate(server)).client.grant("a", "m")
    session.chat(USER)
    # A date has whole seconds, so that "in two seconds" may be in little more than one.
    assert server.seen[1].at - server.seen[0].at >= 1.0


def test_longer_wait_than_allowed_is_a_fault_at_once(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    limited = behaviour("R18")
    server = model_server({**limited, "headers": {"retry-after": "900"}})
    session = gateway(candidate(server), max_wait=5).client.grant("a", "m")
    with pytest.raises(Fault, match=r"asks for 900 s.*max_wait is 5 s") as caught:
        session.chat(USER)
    assert (caught.value.kind, caught.value.permanent) == ("rate-limited", False)
    assert len(server.seen) == 1


def test_waits_do_not_count_against_working_time(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """FR15: a limit of working time shorter than the wait is not reached by it."""
    limited = {**behaviour("R18"), "headers": {"retry-after": "2"}}
    server = model_server(behaviour("R01"), limited, behaviour("R01"))
    session = gateway(candidate(server)).client.grant("a", "m")
    session.chat(USER)  # what a gateway does once is done, and takes no working time below
    assert session.chat(USER, working_left=1.9).outcome == ReplyOutcome.ANSWER
    assert session.held_seconds >= 2


def test_working_time_that_ends_in_a_call_is_a_failed_result(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    stalled = {**behaviour("R01"), "delivery": {"kind": "stall", "after_bytes": 9}}
    server = model_server(behaviour("R01"), stalled)
    session = gateway(candidate(server)).client.grant("a", "m")
    session.chat(USER)
    reply = session.chat(USER, working_left=0.8)
    assert (reply.outcome, reply.reason) == (ReplyOutcome.RESULT_FAIL, "time-limit")
    assert len(server.seen) == 2


def test_wall_time_that_ends_in_a_wait_is_a_fault(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    server = model_server({**behaviour("R18"), "headers": {"retry-after": "30"}})
    session = gateway(candidate(server)).client.grant("a", "m")
    with pytest.raises(Fault) as caught:
        session.chat(USER, wall_left=0.3)
    assert caught.value.kind == "wall-limit"


def test_stalled_reply_ends_at_an_overall_deadline(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    dripping = {**behaviour("R01"), "delivery": {"kind": "drip", "bytes": 1, "every_s": 0.05}}
    server = model_server(behaviour("R01"), dripping, behaviour("R01"))
    session = gateway(candidate(server), call_seconds=1.5).client.grant("a", "m")
    session.chat(USER)
    assert session.chat(USER).answer == "42"
    assert session.close().usage.requests == 3


def test_bad_gateway_ends_in_a_verdict_within_the_bound(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """FR07: four pages, then an answer; and the page for ever."""
    page = {**behaviour("R24"), "headers": {"content-type": "text/html", "retry-after-ms": "1"}}
    mended = model_server(page, page, page, page, behaviour("R01"))
    broken = model_server(page)
    running = gateway(candidate(mended, "mended"), candidate(broken, "broken"))
    assert running.client.grant("a", "mended").chat(USER).answer == "42"
    assert len(mended.seen) == 5
    with pytest.raises(Fault, match=r"502 Bad Gateway proxy \(after 5 tries\)") as caught:
        running.client.grant("b", "broken").chat(USER)
    assert (caught.value.kind, caught.value.status) == ("bad-gateway", 502)
    assert len(broken.seen) == 5


def test_loading_server_is_waited_for_past_the_count_of_tries(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    loading = {**behaviour("R25"), "headers": {"retry-after-ms": "10"}}
    server = model_server(*[loading] * 4, behaviour("R01"))
    session = gateway(candidate(server), retries=1).client.grant("a", "m")
    assert session.chat(USER).answer == "42"


def test_whose_call_is_made_again_is_told_until_one_succeeds(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """A server that is being started is seen to be one."""
    gate = threading.Event()
    good = behaviour("R01")

    def second(_: object) -> dict[str, Any]:
        gate.wait(20)
        return good

    broken = {**behaviour("R25"), "headers": {"retry-after-ms": "1"}}
    server = model_server(broken, second)
    client = gateway(candidate(server)).client
    assert client.status()["failing"] == {}
    answers: list[str | None] = []
    caller = threading.Thread(
        target=lambda: answers.append(client.grant("a", "m").chat(USER).answer)
    )
    caller.start()
    server.wait_for(2)
    failing = client.status()["failing"]
    gate.set()
    caller.join()
    assert failing == {"m": {"reason": "loading", "text": "Loading model"}}
    assert answers == ["42"]
    assert client.status()["failing"] == {}


def test_cut_stream_is_tried_again_and_kept_in_the_transcript(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """FR08: the partial text would pass; it is never the answer."""
    server = model_server(behaviour("R28"), behaviour("R27"))
    session = gateway(candidate(server, params={"stream": True})).client.grant("a", "m")
    assert session.chat(USER).answer == "42"
    assert server.seen[0].body["stream_options"] == {"include_usage": True}
    entries = read_transcript(session.close().transcript)
    assert [e["kind"] for e in entries] == ["request", "reply", "reply"]
    assert "because" in str(entries[1]["body"])
    assert entries[1]["reply"]["reason"] == "stream-cut"  # type: ignore[index,call-overload]  # JSON


def test_context_overrun_is_a_failed_result_without_a_retry(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """FR09: that call fails, others of the candidate go on."""
    server = model_server(behaviour("R20"), behaviour("R21"), behaviour("R01"))
    client = gateway(candidate(server)).client
    for _ in range(2):
        session = client.grant("a", "m")
        assert session.chat(USER).reason == "context-exceeded"
        session.close()
        assert session.ended is not None
        assert session.ended.ended == "context-exceeded"
    assert client.grant("c", "m").chat(USER).answer == "42"
    assert len(server.seen) == 3


def test_quota_stops_that_candidate_everywhere_and_no_other(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """FR06: eight callers, twenty cells; after the first such reply nobody asks again."""
    broke, well = model_server(behaviour("R19")), model_server(behaviour("R01"))
    client = gateway(candidate(broke, "broke"), candidate(well, "well")).client

    def cell(number: int) -> tuple[str, bool]:
        name = ("broke", "well")[number % 2]
        try:
            client.grant(f"a{number}", name).chat(USER)
        except Fault as fault:
            return fault.kind, fault.permanent and "quota" in fault.text
        return name, False

    with ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(cell, range(40)))
    assert ended.count(("well", False)) == 20
    kinds = [kind for kind, permanent in ended if permanent]
    assert len(kinds) == 20
    assert set(kinds) == {"quota-exhausted", "candidate-stopped"}
    assert len(broke.seen) <= 8
    assert len(well.seen) == 20
    stopped = client.status()["stopped"]
    assert stopped == {
        "broke": {
            "reason": "quota-exhausted",
            "text": "The account has used up its quota; see plan and billing.",
            "status": 429,
        }
    }


def test_candidate_is_stopped_by_the_controller(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    server = model_server(behaviour("R01"))
    client = gateway(candidate(server)).client
    session = client.grant("a", "m")
    client.stop("m", "budget", "$5 of $5 used")
    for call in (lambda: session.chat(USER), lambda: client.grant("b", "m")):
        with pytest.raises(Fault, match=r"budget, \$5 of \$5 used") as caught:
            call()
        assert (caught.value.kind, caught.value.permanent) == ("candidate-stopped", True)
    assert server.seen == []


def test_unreadable_arguments_go_back_in_a_form_that_a_server_can_read(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """FR10: the server refuses any history with unreadable arguments; it sees none."""

    def strict(body: Any) -> dict[str, Any]:
        for message in body["messages"]:
            for call in message.get("tool_calls") or []:
                json.loads(call["function"]["arguments"])
        return behaviour("R01")

    server = model_server(behaviour("R04"), strict)
    session = gateway(candidate(server)).client.grant("a", "m")
    reply = session.chat(USER, TOOLS)
    (call,) = reply.tool_calls
    assert (call.arguments, call.problem) == (None, "arguments-not-json")
    assert "line 1 column" in call.problem_text
    result: JsonValue = {"role": "tool", "tool_call_id": call.id, "content": call.problem_text}
    # Even from a program that sends back what it got.
    raw: JsonValue = {"name": call.name, "arguments": call.raw}
    echoed: JsonValue = {"role": "assistant", "tool_calls": [{"id": call.id, "function": raw}]}
    for message in (reply.message(), echoed):
        assert session.chat([*USER, message, result], TOOLS).answer == "42"
    sent = server.seen[1].body["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert "print(" in json.loads(sent)["unreadable_arguments"]


def test_call_without_an_id_is_sent_back_under_one(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    server = model_server(behaviour("R05"), behaviour("R01"))
    session = gateway(candidate(server)).client.grant("a", "m")
    reply = session.chat(USER, TOOLS)
    result: JsonValue = {"role": "tool", "tool_call_id": reply.tool_calls[0].id, "content": "…"}
    session.chat([*USER, reply.message(), result], TOOLS)
    assistant, tool = server.seen[1].body["messages"][1:]
    assert assistant["tool_calls"][0]["id"] == tool["tool_call_id"] != ""
    assert assistant["tool_calls"][0]["function"]["arguments"] == '{"path": "calc.py"}'


def test_invented_tool_is_named_with_those_on_offer(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """FR11."""
    session = gateway(candidate(model_server(behaviour("R06")))).client.grant("a", "m")
    (call,) = session.chat(USER, TOOLS).tool_calls
    assert call.problem == "unknown-tool"
    assert (
        call.problem_text == "there is no tool 'apply_patch'; on offer: read_file, run, write_file"
    )


def test_calls_left_in_text_are_counted_and_read_where_asked_for(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """FR12."""
    server = model_server(behaviour("R10"))
    running = gateway(
        candidate(server, "plain"),
        candidate(server, "parsed", tuning={"tool_parser": "hermes"}),
    )
    plain = running.client.grant("a", "plain")
    assert plain.chat(USER, TOOLS).reason == "tool-call-as-text"
    plain.chat(USER, TOOLS)
    plain.close()
    assert plain.ended is not None
    assert plain.ended.reasons == {"tool-call-as-text": 2}
    (call,) = running.client.grant("b", "parsed").chat(USER, TOOLS).tool_calls
    assert (call.name, call.arguments) == ("read_file", {"path": "calc.py"})


def test_a_server_that_takes_no_tools_is_told_them_in_words(
    model_server: Servers, gateway: Gateways
) -> None:
    said = 'I look.\n<tool_call>\n{"name": "read_file", "input": {"path": "a"}}\n</tool_call>'
    choice = {"message": {"role": "assistant", "content": f"{said}\nIt says hello."}}
    server = model_server({"json": {"model": "m", "choices": [choice]}})
    client = gateway(candidate(server, tuning={"tool_parser": "text"})).client
    session = client.grant("a", "m")
    reply = session.chat(USER, TOOLS, {"tool_choice": "auto"})
    (call,) = reply.tool_calls
    assert (call.name, call.arguments, reply.answer) == ("read_file", {"path": "a"}, "I look.")
    result = {"role": "tool", "tool_call_id": str(call.id), "content": "hello"}
    session.chat([*USER, reply.message(), dict(result)], TOOLS)
    for seen in server.seen:
        assert not {"tools", "tool_choice"} & set(seen.body)
    system, *_, assistant, told = server.seen[1].body["messages"]
    assert "- read_file: " in system["content"]
    assert assistant["content"] == said
    assert told["content"] == '<tool_result name="read_file">\nhello\n</tool_result>'


def test_thinking_is_in_the_transcript_and_not_in_the_answer(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """FR13."""
    server = model_server(behaviour("R09"), behaviour("R08"))
    session = gateway(candidate(server)).client.grant("a", "m")
    tagged, beside = session.chat(USER), session.chat(USER)
    assert (tagged.answer, beside.answer) == ("42", None)
    assert beside.reason == "no-answer-after-reasoning"
    entries = read_transcript(session.close().transcript)
    thoughts = [e["reply"]["reasoning"] for e in entries if e["kind"] == "reply"]  # type: ignore[index,call-overload]  # JSON
    assert thoughts == [tagged.reasoning, beside.reasoning]


def test_unknown_price_and_usage_are_unknown(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours, data: Any
) -> None:
    """FR01, FR02, FR03: no price, no usage, and cached input charged once."""
    prices = json.loads((data / "field-reports/files/FR02-prices.json").read_text())
    declared = {
        "input": prices["cand-a"]["input_per_mtok"],
        "cached": prices["cand-a"]["cached_input_per_mtok"],
        "output": prices["cand-a"]["output_per_mtok"],
    }
    running = gateway(
        candidate(model_server(behaviour("R01")), "unpriced"),
        candidate(model_server(behaviour("R15")), "cached", price=declared),
        candidate(model_server(behaviour("R01"), behaviour("R14")), "mixed", price=declared),
        candidate(
            model_server(behaviour("R30") | {"delivery": {"kind": "whole"}}),
            "stream",
            price=declared,
            params={"stream": True},
        ),
    )

    def spend(name: str, calls: int) -> Any:
        session = running.client.grant("a", name)
        for _ in range(calls):
            session.chat(USER)
        return session.close().usage

    unpriced = spend("unpriced", 1)
    assert (unpriced.input, unpriced.output, unpriced.list_usd) == (31, 2, None)
    cached = spend("cached", 1)
    assert cached.list_usd == pytest.approx(prices["right_list_cost_usd"], abs=1e-12)
    assert (cached.cached, cached.reasoning, cached.price) == (9000, 320, "declared")
    mixed = spend("mixed", 2)
    assert (mixed.input, mixed.calls, mixed.unmetered) == (31, 2, 1)
    assert mixed.list_usd is None
    stream = spend("stream", 1)
    assert (stream.input, stream.output, stream.list_usd) == (None, None, None)


def test_roles_have_accounts_of_their_own(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    client = gateway(candidate(model_server(behaviour("R01")))).client
    mine, judge = client.grant("a", "m"), client.grant("a", "m", role=Role.JUDGE)
    judge.chat(USER)
    judge.chat(USER)
    assert (mine.close().usage.requests, judge.close().usage.requests) == (0, 2)


def test_limits_on_tokens_and_cost_hold_at_the_gateway(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    server = model_server(behaviour("R01"))
    client = gateway(candidate(server, price={"input": 1000, "output": 1000})).client
    tokens = client.grant("a", "m", limits=Limits(tokens=40))
    assert tokens.chat(USER).outcome == ReplyOutcome.ANSWER
    assert tokens.chat(USER).outcome == ReplyOutcome.ANSWER
    assert tokens.chat(USER).reason == "token-limit"
    money = client.grant("b", "m", limits=Limits(usd=0.03))
    assert money.chat(USER).outcome == ReplyOutcome.ANSWER
    assert money.chat(USER).reason == "usd-limit"
    assert len(server.seen) == 3


def test_concurrency_of_a_server_holds_and_the_queue_is_held_time(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    server = model_server(behaviour("R01"), gated=True)
    running = gateway(
        candidate(server, "one", server="gpu"),
        candidate(server, "two", server="gpu"),
        servers=[Server(name="gpu", concurrency=2)],
    )
    held: list[float] = []

    def call(number: int) -> None:
        session = running.client.grant(f"a{number}", ("one", "two")[number % 2])
        session.chat(USER)
        held.append(session.held_seconds)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    server.wait_for(2)
    assert server.gate is not None
    server.gate.set()
    for thread in threads:
        thread.join()
    assert server.most_in_flight <= 2
    assert len(server.seen) == 6
    assert sum(seconds > 0.0005 for seconds in held) >= 1


def test_model_is_pinned_and_the_candidates_parameters_come_first(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    server = model_server(behaviour("R01"))
    declared = {"temperature": 0.5, "seed": 7, "extra_body": {"cache_prompt": False}, "timeout": 30}
    client = gateway(candidate(server, params=declared)).client
    session = client.grant("a", "m", repeat=3)
    session.chat(USER, params={"model": "gpt-4o", "temperature": 1.0, "max_tokens": 9, "n": 5})
    body = server.seen[0].body
    assert body["model"] == "acme-coder-9b"
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.5, 9, 10)
    assert body["cache_prompt"] is False
    assert not {"n", "timeout", "extra_body", "modelbench"} & set(body)


def test_reply_by_another_model_never_counts(
    model_server: Servers, gateway: Gateways, reply: Replies
) -> None:
    server = model_server(reply(model="acme-mini"))
    running = gateway(
        candidate(server, "strict"), candidate(server, "told", facts={"served_as": "acme-mini"})
    )
    session = running.client.grant("a", "strict")
    got = session.chat(USER)
    assert (got.outcome, got.reason) == (ReplyOutcome.RESULT_FAIL, "other-model")
    assert "served by 'acme-mini'" in got.quote
    assert session.close().served_model == "acme-mini"
    assert running.client.grant("b", "told").chat(USER).answer == "42"


def test_key_reaches_the_server_and_no_transcript(
    model_server: Servers,
    gateway: Gateways,
    behaviour: Behaviours,
    reply: Replies,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-acme-0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    server = model_server(reply("your key is sk-acme-0123456789"))
    unkeyed = model_server(behaviour("R01"))
    running = gateway(
        candidate(server, "keyed", api_key_env="ACME_API_KEY"),
        candidate(unkeyed, "unkeyed"),
        candidate(server, "unset", api_key_env="NO_SUCH_KEY"),
    )
    session = running.client.grant("a", "keyed")
    session.chat([*USER, {"role": "user", "content": "sk-acme-0123456789"}])
    assert server.seen[0].headers["authorization"] == "Bearer sk-acme-0123456789"
    text = str(read_transcript(session.close().transcript))
    assert "0123456789" not in text
    assert "[ACME_API_KEY]" in text
    running.client.grant("b", "unkeyed").chat(USER)
    assert "authorization" not in unkeyed.seen[0].headers
    with pytest.raises(Fault, match="NO_SUCH_KEY is not set") as caught:
        running.client.grant("c", "unset").chat(USER)
    assert caught.value.permanent


def test_server_that_is_down_is_a_fault_and_no_request(gateway: Gateways, quiet_port: int) -> None:
    down = Candidate(name="m", model="openai/m", api_base=f"http://127.0.0.1:{quiet_port}/v1")
    session = gateway(down, retries=1).client.grant("a", "m")
    with pytest.raises(Fault) as caught:
        session.chat(USER)
    assert (caught.value.kind, caught.value.permanent) == ("connection-refused", False)
    said = f"127.0.0.1:{quiet_port} takes no connections; start the server (api_base of m)"
    assert caught.value.text == f"{said} (after 2 tries)"
    usage = session.close().usage
    assert (usage.requests, usage.calls, usage.waits) == (0, 0, 1)


def test_transcript_holds_each_message_once(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    session = gateway(candidate(model_server(behaviour("R02")))).client.grant("a", "m")
    history: list[Any] = list(USER)
    for turn in range(3):
        reply = session.chat(history, TOOLS)
        history += [reply.message(), {"role": "tool", "tool_call_id": "x", "content": f"r{turn}"}]
    entries = [e for e in read_transcript(session.close().transcript) if e["kind"] == "request"]
    assert [e["kept"] for e in entries] == [0, 1, 3]
    told = [message for e in entries for message in e["messages"]]  # type: ignore[union-attr]  # JSON
    assert len(told) == 5


def test_half_of_a_surrogate_pair_survives_both_ways(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """FR20: as a reply, as a tool result, as a prompt."""
    server = model_server(behaviour("R32"))
    session = gateway(candidate(server)).client.grant("a", "m")
    said: JsonValue = {"role": "user", "content": "half \ud83d of it"}
    name: JsonValue = {"name": "read_file", "arguments": "{}"}
    call: JsonValue = {"id": "c1", "type": "function", "function": name}
    called: JsonValue = {"role": "assistant", "content": None, "tool_calls": [call]}
    result: JsonValue = {"role": "tool", "tool_call_id": "c1", "content": "a \udc00 b"}
    got = session.chat([said, called, result], TOOLS)
    assert got.answer == "42 \ufffd"
    sent = server.seen[0].body["messages"]
    assert (sent[0]["content"], sent[2]["content"]) == ("half \ufffd of it", "a \ufffd b")
    request, reply = read_transcript(session.close().transcript)
    json.dumps([request, reply], ensure_ascii=False).encode()  # it can be exported as UTF-8
    assert "\\ud83d" in str(reply["body"]), "what the server sent reads back as it was"


def test_worker_that_goes_away_frees_its_slot(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    import socket

    server = model_server(behaviour("R01"), gated=True)
    running = gateway(candidate(server, server="g"), servers=[Server(name="g", concurrency=1)])
    gone, stays = running.client.grant("a", "m"), running.client.grant("b", "m")
    body = json.dumps({"messages": USER}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {gone.token}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(running.process.address.socket_path)
        raw.sendall(head.encode() + body)
        server.wait_for(1)
    assert server.gate is not None
    waiting = threading.Thread(target=stays.chat, args=(USER,))
    waiting.start()
    server.wait_for(2)  # while the first is still unanswered
    server.gate.set()
    waiting.join()
    assert gone.close().usage.requests == 1


def test_wrong_token_and_wrong_secret_open_nothing(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    from pytest_modelbench.gateway.client import GatewayClient, Session

    running = gateway(candidate(model_server(behaviour("R01"))))
    path = running.process.address.socket_path
    with pytest.raises(Fault, match="secret of the session"):
        GatewayClient(path, "guess").grant("a", "m")
    with pytest.raises(Fault, match="no open grant"):
        Session(path, "mb-guess", running.client).chat(USER)
    session = running.client.grant("a", "m")
    with pytest.raises(Fault, match="secret of the session"):
        GatewayClient(path, session.token).status()
    session.close()
    with pytest.raises(Fault, match="no open grant"):
        session.chat(USER)
    with pytest.raises(Fault, match="no candidate 'x' in this run; there are: m"):
        running.client.grant("a", "x")
