"""A judge is asked from the trusted side; what is no score is its fault, never a verdict (FR39)."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_modelbench.checks.grader import Grader
from pytest_modelbench.checks.judge import TRIES, Seat, Unreadable, read_score
from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.checks.verify import verify
from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.client import GatewayClient, SessionEnd
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.gateway.replies import Exchange, Reply, classify
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.records import Candidate, Limits, Role, Trust

if TYPE_CHECKING:
    from tests.conftest import ModelServer

DATA = Path(os.environ.get("MODELBENCH_DATA", Path(__file__).parents[2] / "data"))
REPLIES: list[dict[str, Any]] = json.loads(
    (DATA / "field-reports" / "files" / "FR39-judge-replies.json").read_text(encoding="utf-8")
)
RIGHT: dict[str, float | str] = {
    "a score of 1": 1.0,
    "a score of 0": 0.0,
    "a judge fault: cut off": "cut off",
    "a judge fault: no score": "no score",
    "a judge fault: outside the scale 0..1": "outside the scale 0..1",
    "a judge fault: not a number": "not a number",
    "a judge fault: empty": "empty",
}


def said(text: str | None, finish: str = "stop") -> dict[str, Any]:
    """Return a response of the judge's server."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    body = {"model": "m", "choices": [choice], "usage": usage}
    return {"headers": {"content-type": "application/json"}, "json": body}


def reply(text: str | None, finish: str = "stop") -> Reply:
    body = json.dumps(said(text, finish)["json"]).encode()
    return classify(Exchange(200, {}, body), now=0.0)


def test_every_reply_of_the_field_report_is_here() -> None:
    assert {one["right"] for one in REPLIES} == set(RIGHT)


@pytest.mark.parametrize("one", REPLIES, ids=lambda one: str(one["right"]))
def test_a_reply_is_a_score_or_says_why_not(one: dict[str, Any]) -> None:
    wanted = RIGHT[one["right"]]
    given = reply(one["reply"], one.get("finish", "stop"))
    if isinstance(wanted, float):
        assert read_score(given, 0, 1)[0] == wanted
    else:
        with pytest.raises(Unreadable, match=re.escape(str(wanted))):
            read_score(given, 0, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"score": true}', "not a number"),
        ('{"score": "1"}', "not a number"),
        ('{"score": -Infinity}', "not a number"),
        ('{"score": null}', "not a number"),
        ('{"why": "good"}', "no score"),
        ("[1]", "no score"),
        ('{"score": -0.01}', "outside the scale 0..1"),
        ('I say {"score": 1}', "no score"),
        ('{"score": 1} {"score": 0}', "no score"),
    ],
)
def test_what_is_no_score(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=re.escape(why)):
        read_score(reply(text), 0, 1)


def test_a_refusal_is_no_score() -> None:
    with pytest.raises(Unreadable, match="content-filter"):
        read_score(reply('{"score": 1}', "content_filter"), 0, 1)


def test_another_scale() -> None:
    assert read_score(reply('{"score": 7, "why": "so"}'), 0, 10) == (7.0, "so")


# -- in a grading ----------------------------------------------------------------------------------

CHECKS = """
    def test_judged(solution):
        found = solution.judge("Is this right? " + solution.text("calc.py"))
        assert found.score >= 0.5, found.why

    def test_plain(solution):
        assert "calc" not in solution.text("calc.py")
"""


@dataclass
class Bench:
    """A grader, and a judge's server behind a gateway."""

    server: ModelServer
    client: GatewayClient
    grader: Grader
    folder: Path
    ends: list[SessionEnd] = field(default_factory=list)

    def grade(
        self, *responses: Any, checks: str = CHECKS, limits: Limits | None = None
    ) -> Observation:
        self.server.responses = responses
        self.server.seen.clear()
        for name, text in (("hidden/test_hidden.py", checks), ("harvest/calc.py", "x = 1\n")):
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text))
        session = self.client.grant("a1", "judge", Role.JUDGE, "case", 1, limits)
        seat = Seat(socket=self.client.socket_path, token=session.token, name="judge")
        try:
            return self.grader.observe(
                self.folder / "hidden", self.folder / "harvest", None, 60, 1, seat
            )
        finally:
            self.ends.append(session.close())


@pytest.fixture(scope="module")
def judged(server_class: type[Any]) -> Iterator[tuple[Any, GatewayClient]]:
    server = server_class([])
    candidate = Candidate(
        name="judge", model="openai/m", api_base=server.url, price={"input": 1.0, "output": 2.0}
    )
    process = GatewayProcess.start([candidate], retries=1)
    yield server, GatewayClient(process.address.socket_path, process.address.secret)
    process.close()
    server.close()


@pytest.fixture
def bench(judged: tuple[Any, GatewayClient], grader: Grader, tmp_path: Path) -> Bench:
    return Bench(*judged, grader, tmp_path)


def test_a_score_decides_and_the_check_is_judged(bench: Bench) -> None:
    for score, passed in ((1, True), (0.4, False)):
        seen = bench.grade(said(json.dumps({"score": score, "why": "so"})))
        verdict = verify(seen)
        assert (verdict.passed, verdict.trust) == (passed, Trust.JUDGED)
        assert {check.name: check.trust for check in verdict.checks} == {
            "test_judged": Trust.JUDGED,
            "test_plain": Trust.TRUSTED,
        }
        (judgement,) = seen.judged
        assert (judgement.check, judgement.score, judgement.asked) == ("test_judged", score, 1)
    told, asked = bench.server.seen[0].body["messages"]
    assert '"score": a number from 0 to 1' in told["content"]
    assert asked["content"] == "Is this right? x = 1\n"
    usage = bench.ends[-1].usage
    assert (usage.calls, usage.input) == (1, 100)
    assert usage.list_usd == pytest.approx(120e-6)
    request, answer = read_transcript(bench.ends[-1].transcript)
    assert request["messages"] == bench.server.seen[0].body["messages"]
    assert answer["reply"]["answer"] == '{"score": 0.4, "why": "so"}'  # type: ignore[index,call-overload] # JSON


def test_a_reply_that_cannot_be_read_is_asked_for_again(bench: Bench) -> None:
    seen = bench.grade(said("Fine, I think."), said('{"score": 1, "why": "so"}'))
    assert verify(seen).passed
    assert seen.judged[0].asked == 2
    *_, before, again = bench.server.seen[1].body["messages"]
    assert before["content"] == "Fine, I think."
    assert "no score" in again["content"]


def test_no_score_in_the_end_is_a_fault_of_the_judge_and_its_spend_is_there(bench: Bench) -> None:
    """FR39: never a verdict, retried within its own bound, and what it cost is known."""
    with pytest.raises(Fault, match="the judge judge gave no score: no score, 3 times") as caught:
        bench.grade(said("Fine, I think."))
    assert (caught.value.kind, caught.value.stage) == ("judge", "grade")
    assert len(bench.server.seen) == TRIES
    assert bench.ends[-1].usage.calls == TRIES
    assert bench.ends[-1].usage.list_usd == pytest.approx(TRIES * 120e-6)


def test_a_check_that_catches_everything_makes_no_verdict_of_a_fault(bench: Bench) -> None:
    checks = """
        def test_judged(solution):
            try:
                solution.judge("?")
            except BaseException:
                pass
    """
    with pytest.raises(Fault, match="gave no score") as caught:
        bench.grade(said(""), checks=checks)
    assert caught.value.kind == "judge"


def test_a_server_that_fails_is_a_fault_of_the_judge(bench: Bench) -> None:
    broken = {"status": 500, "json": {"error": {"message": "boom"}}}
    with pytest.raises(Fault, match="server-error: status 500: boom") as caught:
        bench.grade(broken)
    assert caught.value.kind == "judge"
    assert len(bench.server.seen) == 2, "the gateway's own retry, and no other"


def test_its_grant_bounds_it(bench: Bench) -> None:
    checks = """
        def test_many(solution):
            for number in range(10):
                solution.judge(str(number))
    """
    good = said('{"score": 1}')
    with pytest.raises(Fault, match="token-limit: judge: 220 tokens used of 150") as caught:
        bench.grade(good, checks=checks, limits=Limits(tokens=150))
    assert caught.value.kind == "judge"
    assert len(bench.server.seen) == 2


def test_without_a_judge_the_check_is_broken(
    grade: Callable[..., Observation], bench: Bench
) -> None:
    with pytest.raises(Fault, match="no judge is declared: write judge = ") as caught:
        grade(CHECKS, "x = 1\n")
    assert caught.value.kind == "grader"
