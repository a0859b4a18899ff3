"""How a model meets a case: one answer, or a loop of calls that ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from pydantic import JsonValue

from pytest_modelbench.benchmarks.loops import Call, Loop, Met, one_answer, tool_loop
from pytest_modelbench.benchmarks.tools import Tool, ToolRefused
from pytest_modelbench.candidates.tuning import Tuning
from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.replies import Reply, ReplyOutcome, ToolCall
from pytest_modelbench.records import Limits


def says(text: str) -> Reply:
    return Reply(outcome=ReplyOutcome.ANSWER, answer=text)


def calls(*made: tuple[str, dict[str, JsonValue] | None]) -> Reply:
    listed = tuple(
        ToolCall(id=f"c{at}", name=name, arguments=arguments, raw=str(arguments))
        for at, (name, arguments) in enumerate(made)
    )
    return Reply(outcome=ReplyOutcome.TOOL_CALLS, tool_calls=listed)


def fails(reason: str) -> Reply:
    return Reply(outcome=ReplyOutcome.RESULT_FAIL, reason=reason, quote="so it says")


class Played:
    """A model that gives replies from a list, and keeps what it was sent."""

    def __init__(self, *replies: Reply | Fault) -> None:
        self.replies = list(replies)
        self.sent: list[list[JsonValue]] = []

    def chat(
        self,
        messages: Sequence[JsonValue],
        tools: Sequence[JsonValue] | None = None,
        params: Mapping[str, JsonValue] | None = None,
        *,
        working_left: float | None = None,
        wall_left: float | None = None,
    ) -> Reply:
        self.sent.append(list(messages))
        reply = self.replies.pop(0)
        if isinstance(reply, Fault):
            raise reply
        return reply


def loop_of(model: Played, **limits: int) -> tuple[Loop, list[str], Counter[str]]:
    done: list[str] = []

    def write(arguments: Mapping[str, JsonValue]) -> str:
        if arguments["text"] == "no":
            raise ToolRefused("not that")
        done.append(str(arguments["text"]))
        return "written"

    schema: dict[str, JsonValue] = {"type": "object", "required": ["text"]}
    tools = [
        Tool("write", "Write.", schema, write),
        Tool("finish", "Finish.", {"type": "object"}, lambda arguments: "bye", ends=True),
    ]
    counts: Counter[str] = Counter()
    first: list[JsonValue] = [{"role": "user", "content": "Go."}]
    return Loop(first, tools, model, Limits(**limits), Tuning(), counts), done, counts


def test_one_answer_asks_once_and_does_its_calls() -> None:
    model = Played(calls(("write", {"text": "a"}), ("nope", {})))
    loop, done, counts = loop_of(model)
    met = one_answer(loop)
    assert met == Met(True, None, (Call("write", {"text": "a"}), Call("nope", {})))
    assert (done, len(model.sent), counts["invented_tools"]) == (["a"], 1, 1)


def test_a_loop_ends_with_a_reply_without_a_call() -> None:
    model = Played(calls(("write", {"text": "a"})), says("Done."))
    loop, done, counts = loop_of(model)
    met = tool_loop(loop)
    assert (met.text, met.end, done, counts["turns"]) == ("Done.", "", ["a"], 2)
    assert model.sent[1][-1] == {"role": "tool", "tool_call_id": "c0", "content": "written"}


def test_what_comes_behind_the_last_word_is_not_done() -> None:
    loop, done, _ = loop_of(Played(calls(("finish", {}), ("write", {"text": "late"}))))
    assert tool_loop(loop).end == ""
    assert done == []


def test_a_model_is_told_what_is_wrong_with_its_calls() -> None:
    model = Played(
        calls(("write", {"text": "no"}), ("write", {}), ("write", None), ("nope", {})), says("Oh.")
    )
    loop, done, counts = loop_of(model)
    tool_loop(loop)
    told = [str(one["content"]) for one in model.sent[1][-4:] if isinstance(one, dict)]
    assert told[0] == "Error: not that"
    assert told[1] == "Error: the argument 'text' is missing. Nothing was done."
    assert "cannot be read" in told[2]
    assert "no tool named 'nope'" in told[3]
    assert done == []
    assert (counts["failed_calls"], counts["unreadable_arguments"]) == (2, 1)


@pytest.mark.parametrize(
    ("replies", "limits", "end"),
    [
        ([calls(("write", {"text": str(at)})) for at in range(3)], {"turns": 3}, "step-limit"),
        ([calls(("write", {"text": "a"}))] * 9, {}, "step-limit"),
        ([calls(("write", {"text": "a"})), fails("context-exceeded")], {}, "context-exceeded"),
    ],
)
def test_ends_that_are_no_faults(replies: list[Reply], limits: dict[str, int], end: str) -> None:
    loop, done, _ = loop_of(Played(*replies), **limits)
    met = tool_loop(loop)
    assert (met.end, met.replied) == (end, True)
    assert done


def test_an_empty_reply_is_an_answer_and_a_failed_one_is_none() -> None:
    loop, _, _ = loop_of(Played(fails("empty-answer")))
    assert one_answer(loop) == Met(True)
    loop, _, _ = loop_of(Played(fails("token-limit")))
    assert one_answer(loop) == Met(False, None, (), "token-limit", "so it says")


def test_a_fault_is_nobodys_answer() -> None:
    loop, _, _ = loop_of(Played(calls(("write", {"text": "a"})), Fault("server-error", "x")))
    with pytest.raises(Fault):
        tool_loop(loop)


def test_a_tool_that_breaks_is_no_failure_of_the_model() -> None:
    loop, _, _ = loop_of(Played(calls(("write", {"text": 1}))))
    loop.tools = [Tool("write", "", {}, lambda arguments: str(1 / 0))]
    with pytest.raises(ZeroDivisionError):
        one_answer(loop)
