"""Attempts in a real world and box, by the real loop, gateway and grader."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.candidates.builtin import damaged_reference
from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.candidates.loop import COUNTED
from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.errors import Fault, UsageProblem
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.packs.model import Case
from pytest_modelbench.protocols.agent import AgentProtocol
from pytest_modelbench.protocols.protocol import Harvested, Services, protocol_named
from pytest_modelbench.records import Candidate, Check, Role, Verdict

REFERENCE, SEED = Registry().resolve(["reference", "seed"])


def said(**message: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"json": {"model": "m", "choices": [choice], "usage": usage}}


def call(name: str, /, **arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return said(content=None, tool_calls=[{"id": "c1", "type": "function", "function": function}])


FIX = call("edit_file", path="calc.py", old="a - b", new="a + b")
FINISH = call("finish")


def test_the_reference_passes_the_seed_does_not_and_a_variant_loses_its_check(
    attempt: Callable[..., Any],
) -> None:
    passed = attempt(REFERENCE)
    assert passed.verdict.passed
    assert passed.harvested.harvest.files["notes.txt"] == b"keep\n"
    assert (passed.harvested.counts, passed.harvested.usage) == ({}, {})
    unsolved = attempt(SEED).verdict
    assert (unsolved.passed, unsolved.reason, unsolved.reward) == (False, "wrong", 0.0)
    damaged = attempt(damaged_reference("doubles"))
    assert damaged.harvested.harvest.files["calc.py"].endswith(b"a + b + b\n")
    assert [check.name for check in damaged.verdict.checks if not check.passed] == ["test_add"]


def test_a_model_works_through_the_gateway_and_passes(
    attempt: Callable[..., Any], running: Any, services: Services
) -> None:
    ended = attempt(
        running.seeded,
        call("read_file", path="calc.py"),
        call("run_command", command="python -c 'import calc; print(calc.add(2, 3))'; pwd"),
        FIX,
        FINISH,
        repeat=3,
    )
    assert ended.verdict == Verdict(
        passed=True,
        reward=1.0,
        checks=(Check(name="test_add", passed=True), Check(name="test_kept", passed=True)),
    )
    assert ended.harvested.counts == {**dict.fromkeys(COUNTED, 0), "turns": 4}
    usage = ended.harvested.usage[Role.CANDIDATE]
    assert (usage.requests, usage.input, usage.output) == (4, 400, 40)
    assert ended.harvested.served_model == "m"
    assert [seen.body["seed"] for seen in running.server.seen] == [13] * 4
    told = running.server.seen[2].body["messages"][-1]["content"].splitlines()
    assert (told[0], told[-1]) == ("-1", "[exit status 0]")
    if services.box.level == "bubblewrap":
        assert told[1] == "/work"
    kinds = [entry["kind"] for entry in read_transcript(ended.harvested.transcript)]
    assert kinds == ["request", "reply"] * 4


def test_home_and_temporary_files_last_from_one_command_to_the_next(
    attempt: Callable[..., Any], running: Any
) -> None:
    attempt(
        running.plain,
        call("run_command", command="echo kept > /tmp/out.txt; echo too > ~/x"),
        call("run_command", command="cat /tmp/out.txt ~/x"),
        FINISH,
    )
    assert running.server.seen[2].body["messages"][-1]["content"] == "kept\ntoo\n[exit status 0]"


def test_a_planted_link_is_not_followed_and_the_model_is_told(
    attempt: Callable[..., Any],
    running: Any,
    tmp_path: Path,
) -> None:
    (tmp_path / "secret").write_text("s")
    ended = attempt(
        running.plain,
        call("run_command", command=f"ln -s {tmp_path} out"),
        call("read_file", path="out/secret"),
        call("write_file", path="out/new", content="x"),
        FINISH,
    )
    told = [seen.body["messages"][-1]["content"] for seen in running.server.seen[2:]]
    assert all("symbolic link" in text for text in told)
    assert not (tmp_path / "new").exists()
    assert ended.harvested.counts["failed_calls"] == 2
    assert "out/secret" not in ended.harvested.harvest.files


def test_one_call_for_ever_is_a_verdict_of_the_tree_as_it_stands(
    attempt: Callable[..., Any], running: Any
) -> None:
    """FR14."""
    read = call("read_file", path="calc.py")
    ended = attempt(running.plain, read)
    assert (ended.verdict.passed, ended.verdict.reason) == (False, "step-limit")
    assert ended.harvested.detail.startswith("the same call 5 times")
    assert [check.passed for check in ended.verdict.checks] == [False, True]
    ended = attempt(running.plain, FIX, read)
    assert (ended.verdict.passed, ended.verdict.reason) == (True, "")
    assert ended.harvested.end == "step-limit"


@pytest.mark.parametrize(
    ("replies", "end"),
    [
        ([FIX, call("escalate", reason="I am not sure")], "escalated"),
        ([FIX, {"json": {**FINISH["json"], "model": "another"}}], "other-model"),
    ],
)
def test_a_right_tree_does_not_pass_after_some_ends(
    attempt: Callable[..., Any],
    running: Any,
    replies: list[dict[str, Any]],
    end: str,
) -> None:
    ended = attempt(running.plain, *replies)
    assert (ended.verdict.passed, ended.verdict.reward, ended.verdict.reason) == (False, 0.0, end)
    assert all(check.passed for check in ended.verdict.checks)


def test_too_long_for_the_context_is_a_result_at_once(
    attempt: Callable[..., Any], running: Any
) -> None:
    """FR09."""
    error = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    ended = attempt(running.plain, {"status": 400, "json": error})
    assert (ended.verdict.passed, ended.verdict.reason) == (False, "context-exceeded")
    assert len(running.server.seen) == 1


def test_thinking_is_in_the_transcript_under_its_own_key(
    attempt: Callable[..., Any], running: Any
) -> None:
    """FR13."""
    thought = said(content="<think>42 it is</think>I am done.")
    ended = attempt(running.plain, thought, FINISH)
    (reply, _) = [
        entry["reply"]
        for entry in read_transcript(ended.harvested.transcript)
        if entry["kind"] == "reply"
    ]
    assert isinstance(reply, dict)
    assert (reply["answer"], reply["reasoning"]) == ("I am done.", "42 it is")
    assert "42 it is" not in json.dumps(running.server.seen[1].body)


def test_a_fault_leaves_no_world_and_tells_what_was_used(
    services: Services,
    case: Case,
    running: Any,
) -> None:
    running.play(FIX, {"status": 500, "json": {"error": {"message": "broken"}}})
    given = replace(services, gateway=running.client)
    journal = Journal()
    before = set(services.run.iterdir())
    with pytest.raises(Fault, match="server-error"):
        AgentProtocol().work(case, running.plain, 1, "a1", given, journal)
    assert set(services.run.iterdir()) == before
    assert journal.counts["turns"] == 1
    assert journal.usage[Role.CANDIDATE].requests == 2
    assert len(read_transcript(journal.transcript)) == 4


def test_no_process_of_the_candidate_outlives_its_command(
    attempt: Callable[..., Any], running: Any
) -> None:
    """FR28: what was left behind would repair the file once the verdict is there."""
    late = "(setsid sh -c 'sleep 1; sed -i s/-/+/ calc.py' &) ; echo started"
    ended = attempt(
        running.plain,
        call("run_command", command=late),
        call("run_command", command="sleep 2"),
        FINISH,
    )
    assert ended.verdict.reason == "wrong"
    assert b"a - b" in ended.harvested.harvest.files["calc.py"]


def test_a_case_without_hidden_checks_cannot_be_graded(services: Services, case: Case) -> None:
    harvested = AgentProtocol().work(case, SEED, 1, "a1", services)
    with pytest.raises(Fault, match="no hidden checks") as caught:
        AgentProtocol().observe(replace(case, hidden=None), harvested, services)
    assert caught.value.stage == "grade"


def test_a_model_without_a_gateway_is_a_fault(services: Services, case: Case) -> None:
    with pytest.raises(Fault, match="no gateway runs"):
        AgentProtocol().work(case, Candidate(name="x", model="openai/m"), 1, "a1", services)


def test_a_regrade_needs_the_harvest_and_the_end_alone(services: Services, case: Case) -> None:
    protocol = AgentProtocol()
    harvest = protocol.work(case, REFERENCE, 1, "a1", services).harvest
    for end, passed in (("", True), ("time-limit", True), ("escalated", False)):
        harvested = Harvested(harvest, end)
        observation = protocol.observe(case, harvested, services)
        assert protocol.verify(case, harvested, observation).passed is passed


def test_an_unknown_protocol_is_refused() -> None:
    assert protocol_named("agent").name == "agent"
    with pytest.raises(UsageProblem, match="there are: agent"):
        protocol_named("agents")
