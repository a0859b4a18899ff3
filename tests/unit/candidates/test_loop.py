"""The loop against replies as servers send them, each read by the gateway's own classifier."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest
from pydantic import JsonValue

from pytest_modelbench.candidates.loop import COUNTED, Work, work
from pytest_modelbench.candidates.tools import NAMES, Workbench
from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.history import repair, tool_names
from pytest_modelbench.gateway.replies import Exchange, Reply, ReplyOutcome, classify, refusal
from pytest_modelbench.records import Candidate, Limits


@dataclass
class Server:
    """Plays replies in turn, the last one for ever, and keeps what it was asked."""

    replies: Sequence[Reply | dict[str, Any]]  # Any: JSON
    asked: list[list[dict[str, Any]]] = field(default_factory=list)
    params: list[Mapping[str, JsonValue] | None] = field(default_factory=list)
    left: list[tuple[float | None, float | None]] = field(default_factory=list)

    def chat(
        self,
        messages: Sequence[JsonValue],
        tools: Sequence[JsonValue] | None = None,
        params: Mapping[str, JsonValue] | None = None,
        *,
        working_left: float | None = None,
        wall_left: float | None = None,
    ) -> Reply:
        # A strict server: what cannot be read as JSON is refused.
        sent = json.loads(json.dumps(repair(messages), allow_nan=False))
        for message in sent:
            for call in message.get("tool_calls", ()):
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
        self.asked.append(sent)
        self.params.append(params)
        self.left.append((working_left, wall_left))
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if isinstance(reply, Reply):
            return reply
        body = {"model": "m", "choices": [{"message": reply, "finish_reason": "stop"}]}
        exchange = Exchange(status=200, body=json.dumps(body).encode())
        return classify(exchange, tool_names(tools or ()), now=time.time())


def call(name: str, /, **arguments: JsonValue) -> dict[str, Any]:
    return raw(name, json.dumps(arguments))


def raw(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"content": None, "tool_calls": [{"id": f"id-{name}", "function": function}]}


FINISH = call("finish", summary="done")
FIX = call("edit_file", path="calc.py", old="a - b", new="a + b")


class Play(Protocol):
    def __call__(
        self,
        *replies: Reply | dict[str, Any],
        limits: Limits = ...,
        tuning: dict[str, JsonValue] = ...,
    ) -> tuple[Work, Counter[str], Server]: ...


@pytest.fixture
def play(bench: Workbench) -> Play:
    def played(
        *replies: Reply | dict[str, Any],
        limits: Limits = Limits(),
        tuning: dict[str, JsonValue] | None = None,
    ) -> tuple[Work, Counter[str], Server]:
        server, counts = Server(replies), Counter[str]()
        candidate = Candidate(name="c", model="openai/m", tuning=tuning or {})
        done = work("Repair calc.py.", candidate, limits, server, bench, counts)
        return done, counts, server

    return played


def test_the_work_is_done_by_calls_until_finish(play: Play, bench: Workbench) -> None:
    done, counts, server = play(call("read_file", path="calc.py"), FIX, FINISH)
    assert done == Work("", "done")
    assert b"a + b" in bench.read("calc.py")
    assert counts == {**dict.fromkeys(COUNTED, 0), "turns": 3}
    roles = [message["role"] for message in server.asked[2]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert server.asked[2][1]["content"] == "Repair calc.py."
    assert server.asked[2][3]["tool_call_id"] == "id-read_file"
    assert server.asked[2][3]["content"].startswith("def add(a, b):")


def test_several_calls_of_one_reply_are_done_in_order(play: Play, bench: Workbench) -> None:
    both = {
        "tool_calls": FIX["tool_calls"] + call("write_file", path="b", content="x")["tool_calls"]
    }
    _, _, server = play(both, FINISH)
    assert [message["tool_call_id"] for message in server.asked[1][3:]] == [
        "id-edit_file",
        "id-write_file",
    ]
    assert bench.read("b") == b"x"


def test_a_finish_beside_a_call_that_failed_is_too_early(play: Play) -> None:
    bad, good = call("read_file", path="none"), call("list_files")
    both = {"tool_calls": [*bad["tool_calls"], *good["tool_calls"], *FINISH["tool_calls"]]}
    done, counts, server = play(both, FINISH)
    assert (done.end, counts["turns"]) == ("", 2)
    assert server.asked[1][-1]["tool_call_id"] == "id-finish"
    assert "not finished" in server.asked[1][-1]["content"]
    both = {"tool_calls": [*good["tool_calls"], *FINISH["tool_calls"]]}
    assert play(both)[1]["turns"] == 1


def test_unreadable_arguments_are_told_and_the_history_stays_readable(play: Play) -> None:
    """FR10."""
    broken = raw("write_file", '{"path": "calc.py", "content": "print("hi")\\n"}')
    done, counts, server = play(broken, FINISH)
    assert done.end == ""
    assert counts["unreadable_arguments"] == 1
    assert counts["turns"] == 2
    told = server.asked[1][-1]
    assert told["tool_call_id"] == "id-write_file"
    assert "not JSON" in told["content"]
    assert "line 1 column 40" in told["content"]


def test_an_invented_tool_is_answered_with_those_on_offer(play: Play) -> None:
    """FR11."""
    done, counts, server = play(call("apply_patch", patch="*** calc.py"), FIX, FINISH)
    assert done.end == ""
    assert counts["invented_tools"] == 1
    told = server.asked[1][-1]["content"]
    assert "'apply_patch'" in told
    assert all(name in told for name in NAMES)


def test_a_call_left_in_the_text_is_named_and_not_run(play: Play, bench: Workbench) -> None:
    """FR12."""
    asked = json.dumps({"name": "write_file", "arguments": {"path": "x", "content": ""}})
    done, counts, server = play({"content": f"<tool_call>\n{asked}\n</tool_call>"})
    assert done.end == "tool-call-as-text"
    assert counts["tool_calls_as_text"] == 3
    assert "as text" in server.asked[1][-1]["content"]
    assert "x" not in bench.list(".", limit=9)[0]


def test_one_valid_call_for_ever_ends_with_a_verdict_to_come(play: Play) -> None:
    """FR14."""
    forever = call("read_file", path="calc.py")
    done, counts, _ = play(forever, limits=Limits(turns=20))
    assert (done.end, counts["turns"]) == ("step-limit", 6)
    assert done.detail.startswith('the same call 5 times: ["read_file", {"path": "calc.py"}]')
    done, counts, server = play(forever, limits=Limits(turns=4))
    assert (done.end, counts["turns"]) == ("step-limit", 4)
    assert done.detail.startswith("the same call 4 times")
    assert "same call" not in server.asked[1][-1]["content"]
    assert "same call as the one before" in server.asked[2][-1]["content"]


def test_the_same_call_with_another_between_is_no_repetition(play: Play) -> None:
    one, other = call("read_file", path="calc.py"), call("list_files")
    done, _, _ = play(*[one, other] * 10, FINISH)
    assert done.end == ""


def test_the_thinking_is_never_sent_back(play: Play) -> None:
    """FR13."""
    thought = {"content": "<think>42 it is</think>", "tool_calls": FIX["tool_calls"]}
    _, _, server = play(thought, FINISH)
    assert "42 it is" not in json.dumps(server.asked[1])


def test_waiting_in_the_gateway_is_not_the_candidates_time(play: Play) -> None:
    """FR15."""
    held = refusal(ReplyOutcome.ANSWER, "").model_copy(update={"answer": "x", "held_seconds": 5.0})
    done, _, server = play(held, FINISH, limits=Limits(seconds=4))
    assert done.end == ""
    assert server.left[1][0] is not None
    assert server.left[1][0] > 3.9


def test_text_without_a_call_is_asked_to_go_on(play: Play, bench: Workbench) -> None:
    done, counts, server = play({"content": "I would add."}, FIX, FINISH)
    assert done.end == ""
    assert counts["prose_turns"] == 1
    assert server.asked[1][-2:] == [
        {"role": "assistant", "content": "I would add."},
        {"role": "user", "content": server.asked[1][-1]["content"]},
    ]
    assert "no tool call" in server.asked[1][-1]["content"]
    assert b"a + b" in bench.read("calc.py")


@pytest.mark.parametrize(
    ("replies", "end", "turns"),
    [
        ([{"content": "I would add."}], "no-answer", 3),
        ([FIX, {"content": "I have added."}], "", 4),
        ([{"content": ""}], "empty-answer", 1),
        ([FIX, {"content": ""}], "", 2),
        ([{"content": None, "reasoning_content": "hm"}], "no-answer-after-reasoning", 3),
        ([call("escalate", reason="no idea")], "escalated", 1),
        (
            [refusal(ReplyOutcome.RESULT_FAIL, "context-exceeded", "8192 tokens")],
            "context-exceeded",
            1,
        ),
        ([refusal(ReplyOutcome.RESULT_FAIL, "token-limit")], "token-limit", 1),
        (
            [call("none"), raw("list_files", "{"), call("read_file", path="no")] * 9,
            "failure-limit",
            10,
        ),
    ],
)
def test_how_the_work_ends(
    play: Play, replies: list[Reply | dict[str, Any]], end: str, turns: int
) -> None:
    done, counts, _ = play(*replies)
    assert (done.end, counts["turns"]) == (end, turns)


def test_escalation_keeps_what_the_model_said(play: Play) -> None:
    assert play(call("escalate", reason="no idea"))[0].detail == "no idea"


def test_an_answer_by_another_model_ends_the_work_before_its_calls_are_done(
    play: Play, bench: Workbench
) -> None:
    exchange = Exchange(
        status=200, body=json.dumps({"model": "other", "choices": [{"message": FIX}]}).encode()
    )
    reply = classify(exchange, NAMES, now=0.0).model_copy(
        update={"outcome": ReplyOutcome.RESULT_FAIL, "reason": "other-model"}
    )
    done, _, _ = play(reply)
    assert done.end == "other-model"
    assert b"a - b" in bench.read("calc.py")


def test_a_success_begins_the_count_of_failures_anew(play: Play) -> None:
    bad = [call("read_file", path="no"), call("read_file", path="none")]
    done, counts, _ = play(*[*bad * 4, call("list_files")] * 3, FINISH)
    assert done.end == ""
    assert counts["failed_calls"] == 24


def test_a_command_that_fails_is_counted_apart(play: Play) -> None:
    _, counts, server = play(call("run_command", command="exit 3"), FINISH)
    assert counts["failed_commands"] == 1
    assert counts["failed_calls"] == 0
    assert server.asked[1][-1]["content"] == "(no output)\n[exit status 3]"


def test_tool_choice_is_sent_only_where_it_is_declared(play: Play) -> None:
    assert play(FINISH)[2].params == [None]
    assert play(FINISH, tuning={"tool_choice": "required"})[2].params == [
        {"tool_choice": "required"}
    ]


def test_working_time_ends_the_work_and_a_command_has_what_is_left(play: Play) -> None:
    begun = time.monotonic()
    done, _, _ = play(call("run_command", command="sleep 200"), limits=Limits(seconds=0.3))
    assert done.end == "time-limit"
    assert time.monotonic() - begun < 100


def test_wall_time_that_the_gateway_used_up_is_a_fault(play: Play) -> None:
    reply = classify(
        Exchange(status=200, body=json.dumps({"choices": [{"message": FIX}]}).encode()),
        NAMES,
        now=0.0,
    )
    wait = reply.model_copy(update={"held_seconds": 0.2})
    slow = call("run_command", command="sleep 0.3")
    with pytest.raises(Fault, match="wall-limit"):
        play(wait, slow, limits=Limits(wall_seconds=0.3))
    done, _, _ = play(slow, limits=Limits(wall_seconds=0.3))
    assert done.end == "time-limit"


def test_a_small_window_trims_the_oldest_output_and_counts_it(play: Play, bench: Workbench) -> None:
    bench.write("big.txt", b"x" * 9000)
    tuning: dict[str, JsonValue] = {"context_tokens": 2500, "answer_tokens": 500}
    reads = [call("read_file", path="big.txt"), call("list_files")] * 4
    _, counts, server = play(*reads, FINISH, tuning=tuning)
    assert counts["context_trims"] >= 2
    assert all(len(json.dumps(asked)) < 7000 for asked in server.asked)
    outputs = [one["content"] for one in server.asked[-1] if one["role"] == "tool"]
    assert "old output removed" in outputs[0]
    # One result has a quarter of the window: 2500 tokens of 3 characters, by 4.
    assert len(server.asked[1][-1]["content"]) < 1875 + 120


def test_a_fault_goes_through_and_what_was_is_counted(bench: Workbench) -> None:
    class Down(Server):
        def chat(self, *args: Any, **kwargs: Any) -> Reply:  # Any: as the parent's
            if self.asked:
                raise Fault("server-error", "500")
            return super().chat(*args, **kwargs)

    counts = Counter[str]()
    with pytest.raises(Fault, match="server-error"):
        work("x", Candidate(name="c"), Limits(), Down([FIX]), bench, counts)
    assert counts["turns"] == 1
