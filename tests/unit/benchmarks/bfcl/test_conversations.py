"""Conversations of BFCL: turn after turn, on apps that calls change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from pytest_modelbench.benchmarks.bfcl.conversation import (
    Apps,
    Conversation,
    judge_conversation,
    parse_call,
)
from pytest_modelbench.benchmarks.bfcl.conversations import (
    MORE_FUNCTIONS,
    NEXT_TURN,
    SCORE,
    STEPS,
    BfclConversations,
)
from pytest_modelbench.benchmarks.loops import Loop
from pytest_modelbench.candidates.tuning import Tuning
from pytest_modelbench.errors import PackProblem
from pytest_modelbench.gateway.replies import Reply, ReplyOutcome, ToolCall
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.protocols.benchmark import play
from pytest_modelbench.records import Candidate, Limits, Verdict

DATA = Path(__file__).parents[3] / "data" / "bfcl"


@pytest.fixture(scope="module")
def talks() -> BfclConversations:
    return BfclConversations(DATA, {"data": "cases"})


@pytest.fixture(scope="module")
def cases(talks: BfclConversations) -> dict[str, BenchmarkCase]:
    return {case.id: case for case in talks.cases()}


def judged(talks: BfclConversations, case: BenchmarkCase, candidate: str) -> Verdict:
    world = talks.setup(case.public, DATA)
    agent = Candidate(name=candidate, agent=candidate.partition("+")[0])
    met = play(talks, case, agent, talks.tools(world))
    left = json.loads(json.dumps(talks.harvest(world, met)))
    return talks.verify(case.private, talks.observe(case, left))


def test_every_case_is_sound(talks: BfclConversations, cases: dict[str, BenchmarkCase]) -> None:
    assert Counter(str(case.public["category"]) for case in cases.values()) == {
        "multi_turn_base": 10,
        "multi_turn_miss_func": 5,
        "multi_turn_miss_param": 5,
    }
    for case in cases.values():
        assert judged(talks, case, "reference").passed, case.id
        nothing = judged(talks, case, "seed")
        assert (nothing.passed, nothing.reason) == (False, "no-answer")
        silent = judged(talks, case, "reference+silent-turn")
        assert {c.name for c in silent.checks if not c.passed} == {"conversation"}, case.id
    assert talks.scores(list(cases.values()), dict.fromkeys(cases, 1.0)) == {
        SCORE: 1.0,
        "base": 1.0,
        "miss_func": 1.0,
        "miss_param": 1.0,
    }


def says(text: str) -> Reply:
    return Reply(outcome=ReplyOutcome.ANSWER, answer=text)


def calls(*texts: str) -> Reply:
    made = [parse_call(text) for text in texts]
    listed = tuple(
        ToolCall(id=f"c{at}", name=name, arguments=given, raw=json.dumps(given))
        for at, (name, given) in enumerate(made)
    )
    return Reply(outcome=ReplyOutcome.TOOL_CALLS, tool_calls=listed)


class Played:
    """A model that gives replies from a list, the last for ever, and keeps what it was sent."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.replies = list(replies)
        self.messages: list[list[Any]] = []
        self.offered: list[set[str]] = []

    def chat(
        self,
        messages: Sequence[JsonValue],
        tools: Sequence[JsonValue] | None = None,
        params: Mapping[str, JsonValue] | None = None,
        *,
        working_left: float | None = None,
        wall_left: float | None = None,
    ) -> Reply:
        self.messages.append(list(messages))
        self.offered.append({tool["function"]["name"] for tool in tools or []})  # type: ignore[index,call-overload,misc]  # JSON
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def met(
    talks: BfclConversations, case: BenchmarkCase, replies: Sequence[Reply]
) -> tuple[Played, Verdict, Any]:
    world = talks.setup(case.public, DATA)
    model = Played(replies)
    said = list(talks.messages(case, {}))
    loop = Loop(said, talks.tools(world), model, Limits(), Tuning(), Counter(), world=world)
    ended = talks.drive(loop)
    return model, talks.verify(case.private, talks.harvest(world, ended)), ended


def test_a_model_meets_turn_after_turn_and_a_function_comes_late(
    talks: BfclConversations, cases: dict[str, BenchmarkCase]
) -> None:
    case = cases["multi_turn_miss_func_65"]
    gold: Any = case.private.data["gold"]
    replies = [calls(*gold[0]), says("Done."), says("I cannot."), calls(gold[2][0])]
    replies += [calls(gold[2][1]), says("Done.")]
    model, verdict, _ = met(talks, case, replies)
    assert verdict.passed, verdict
    assert ["retweet" in offered for offered in model.offered] == [False] * 3 + [True] * 3
    assert all(NEXT_TURN not in offered for offered in model.offered)
    assert model.messages[3][-1] == {"role": "user", "content": MORE_FUNCTIONS}
    results = [one["content"] for one in model.messages[1] if one["role"] == "tool"]
    assert json.loads(results[0]) == {"gallon": pytest.approx(15 * 0.264172)}
    assert json.loads(results[-1])["engineState"] == "running"


def test_what_is_wrong_has_upstreams_name(
    talks: BfclConversations, cases: dict[str, BenchmarkCase]
) -> None:
    case = cases["multi_turn_miss_func_65"]
    gold: Any = case.private.data["gold"]
    _, silent, _ = met(talks, case, [says("No.")])
    assert silent.checks[1].reason == "multi_turn:empty_turn_model_response"
    _, half, _ = met(talks, case, [calls(*gold[0][:-1]), says("Done.")])
    assert half.checks[1].reason == "multi_turn:instance_state_mismatch"
    model, cut, ended = met(talks, case, [calls("check_tire_pressure()")])
    assert (ended.end, len(model.messages)) == ("step-limit", STEPS)
    assert cut.checks[1].reason == "multi_turn:force_terminated"


def test_a_function_is_called_once_a_turn(
    talks: BfclConversations, cases: dict[str, BenchmarkCase]
) -> None:
    case = cases["multi_turn_base_70"]
    gold: Any = case.private.data["gold"]
    turns = iter(gold)
    heard: list[int] = []

    def solver(messages: Sequence[JsonValue], tools: Sequence[JsonValue], act: Any) -> str:
        heard.append(len(messages))
        for text in next(turns):
            act(*parse_call(text))
        return "Done."

    world = talks.setup(case.public, DATA)
    said = list(talks.messages(case, {}))
    tools = talks.tools(world)
    loop = Loop(said, tools, None, Limits(), Tuning(), Counter(), solver=solver, world=world)
    left = talks.harvest(world, talks.drive(loop))
    assert talks.verify(case.private, left).passed
    assert heard == [1, 3]
    assert [len(turn) for turn in world.made] == [len(turn) for turn in gold]


def test_results_of_earlier_turns_count() -> None:
    talk = Conversation(["MathAPI"], {}, [["add(a=1, b=2)"], ["add(a=1, b=2)", "add(a=2, b=2)"]])
    early = [[["add(a=1, b=2)", "add(b=2, a=2)"]], [["add(a=0, b=0)"]]]
    assert judge_conversation(talk, early).error == ""
    once = [[["add(a=1, b=2)"]], [["add(a=0, b=0)"]]]
    assert judge_conversation(talk, once).error == "multi_turn:execution_response_mismatch"


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("add(2, b=3)", '{"result": 5}'),
        ("add(a=1/4, b=-1)", '{"result": -0.75}'),
        ("add(a=1)", "Error during execution: "),
        ("unknown(1)", "Error during execution: name 'unknown' is not defined"),
        ("add.__globals__", "Error during execution: "),
        ("__import__('os').getcwd()", "Error during execution: "),
        ("add(a=open('x'), b=1)", "Error during execution: "),
        ("not a call", "Error during execution: "),
    ],
)
def test_a_call_is_read_and_never_evaluated(call: str, result: str) -> None:
    assert Apps(["MathAPI"], {}).call(call).startswith(result)


SCENARIO: dict[str, Any] = {
    "root": {
        "home": {
            "type": "directory",
            "contents": {
                "a.txt": {"type": "file", "content": "b\na\n"},
                ".x": {"type": "file", "content": ""},
                "docs": {"type": "directory", "contents": {}},
            },
        }
    }
}


@pytest.mark.parametrize(
    ("done", "result"),
    [
        (["pwd()"], {"current_working_directory": "/home"}),
        (["ls()"], {"current_directory_content": ["a.txt", "docs"]}),
        (["ls(a=True)"], {"current_directory_content": ["a.txt", ".x", "docs"]}),
        (["cd(folder='docs')", "pwd()"], {"current_working_directory": "/home/docs"}),
        (
            ["mv(source='a.txt', destination='docs')", "find(name='a')"],
            {"matches": ["./docs/a.txt"]},
        ),
        (
            ["cp(source='a.txt', destination='b.txt')", "sort(file_name='b.txt')"],
            {"sorted_content": "a\nb"},
        ),
        (["du()"], {"disk_usage": "4 bytes"}),
        (["du(human_readable=True)"], {"disk_usage": "4.00 B"}),
        (["tail(file_name='a.txt', lines=1)"], {"last_lines": "a"}),
        (["wc(file_name='a.txt', mode='w')"], {"count": 2, "type": "words"}),
        (["grep(file_name='a.txt', pattern='b')"], {"matching_lines": ["b"]}),
        (["echo(content='c', file_name='a.txt')", "cat(file_name='a.txt')"], {"file_content": "c"}),
        (["touch(file_name='n')", "diff(file_name1='n', file_name2='a.txt')"], {"diff_lines": ""}),
        (["mkdir(dir_name='d')", "rmdir(dir_name='d')"], {"result": "'d' removed"}),
    ],
)
def test_files(done: list[str], result: dict[str, Any]) -> None:
    apps = Apps(["GorillaFileSystem"], {"GorillaFileSystem": SCENARIO})
    assert json.loads([apps.call(call) for call in done][-1]) == result


@pytest.mark.parametrize(
    "done",
    [
        ["cd(folder='..')"],
        ["cd(folder='docs/x')"],
        ["cat(file_name='docs')"],
        ["mkdir(dir_name='a/b')"],
        ["touch(file_name='a.txt')"],
        ["echo(content='c', file_name='none')"],
        ["mv(source='docs', destination='a.txt')"],
        ["mkdir(dir_name='docs/in')"],
        ["rmdir(dir_name='a.txt')"],
    ],
)
def test_files_refuse(done: list[str]) -> None:
    apps = Apps(["GorillaFileSystem"], {"GorillaFileSystem": SCENARIO})
    before = json.dumps(apps.apps["GorillaFileSystem"].state)
    assert '"error"' in [apps.call(call) for call in done][-1]
    assert json.dumps(apps.apps["GorillaFileSystem"].state) == before


def test_draws_are_the_scenarios(talks: BfclConversations) -> None:
    first, second = (Apps(["TravelAPI", "TradingBot", "MessageAPI"], {}) for _ in range(2))
    for apps in (first, second):
        apps.call("trading_login(username='u', password='p')")
        apps.call("message_login(user_id='USR001')")
    for call in (
        "fund_account(amount=5)",
        "send_message(receiver_id='USR002', message='hi')",
        "authenticate_travel(client_id='c', client_secret='s', refresh_token='r', "
        "grant_type='g', user_first_name='A', user_last_name='B')",
    ):
        assert first.call(call) == second.call(call)
    assert first.same(second)
    assert not first.same(Apps(["TravelAPI", "TradingBot", "MessageAPI"], {}))


def test_data_without_the_functions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackProblem, match=r"no multi_turn_func_doc/gorilla_file_system\.json"):
        BfclConversations(tmp_path, {"data": "."})
