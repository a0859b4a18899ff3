"""The attempt's grant: a candidate's part, a judge's, and what the one leaves for the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.client import GatewayClient, Session
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.packs.model import Case, CheckSpec
from pytest_modelbench.protocols.judging import attempt_grant, seated
from pytest_modelbench.protocols.protocol import Services
from pytest_modelbench.records import Candidate, Limits, Role

USAGE = {"prompt_tokens": 90, "completion_tokens": 10}
REPLY = {
    "json": {
        "model": "m",
        "choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
        "usage": USAGE,
    }
}


@pytest.fixture(scope="module")
def known(server_class: type[Any]) -> Iterator[tuple[GatewayClient, dict[str, Candidate]]]:
    server = server_class([REPLY])
    worker = Candidate(name="worker", model="openai/m", api_base=server.url)
    judge = worker.model_copy(update={"name": "wise", "limits": Limits(tokens=150)})
    with GatewayProcess.start([worker, judge]) as process:
        client = GatewayClient(process.address.socket_path, process.address.secret)
        yield client, {"worker": worker, "wise": judge}
    server.close()


@pytest.fixture
def given(services: Services, known: tuple[GatewayClient, dict[str, Candidate]]) -> Services:
    client, candidates = known
    return replace(services, gateway=client, candidates=candidates)


@pytest.fixture
def judged(case: Case) -> Case:
    return replace(case, check=CheckSpec(judge="wise"))


def asks(services: Services, token: str) -> int:
    """Return how often a grant may ask before it is refused."""
    assert services.gateway is not None
    session = Session(services.gateway.socket_path, token, services.gateway)
    for count in range(20):
        try:
            if session.chat([{"role": "user", "content": "?"}]).reason:
                return count
        except Fault:
            return count
    return 20


def test_a_case_without_a_judge_has_no_grant_but_the_candidates(
    given: Services, case: Case
) -> None:
    assert attempt_grant(case, given, Limits(tokens=10)) is None
    with seated(case, given, Journal()) as seat:
        assert seat is None


def test_what_a_candidate_leaves_is_there_for_the_judge(given: Services, judged: Case) -> None:
    work = Limits(tokens=250)
    journal = Journal(attempt="one", grant=attempt_grant(judged, given, work))
    assert journal.grant == Limits(tokens=400)
    assert given.gateway is not None
    session = given.gateway.grant("one", "worker", limits=work, pool=journal.grant)
    assert asks(given, session.token) == 3, "its own part bounds it: 100 tokens a call"
    session.close()
    with seated(judged, given, journal) as seat:
        assert seat is not None
        assert asks(given, seat.token) == 1, "300 of 400 were used"
    assert journal.usage[Role.JUDGE].input == 90
    thrifty = Journal(attempt="two", grant=journal.grant)
    given.gateway.grant("two", "worker", limits=work, pool=journal.grant).close()
    with seated(judged, given, thrifty) as seat:
        assert seat is not None
        assert asks(given, seat.token) == 4


def test_a_candidate_without_a_bound_leaves_the_judge_its_own(
    given: Services, judged: Case
) -> None:
    """Also in a regrade, where no candidate is called."""
    for journal in (
        Journal(attempt="three", grant=attempt_grant(judged, given, Limits())),
        Journal(attempt="four"),
    ):
        with seated(judged, given, journal) as seat:
            assert seat is not None
            assert asks(given, seat.token) == 2
        assert journal.judged


def test_a_judge_that_was_stopped_is_a_fault_of_the_judge(given: Services, judged: Case) -> None:
    assert given.gateway is not None
    given.gateway.stop("wise", "unauthorised", "wrong key")
    with (
        pytest.raises(Fault, match=r"the judge wise cannot be asked: .*unauthorised") as caught,
        seated(judged, given, Journal(attempt="five")),
    ):
        pass
    assert (caught.value.kind, caught.value.stage) == ("judge", "grade")
    assert not caught.value.permanent, "it stops no candidate"
