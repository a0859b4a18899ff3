"""Which cells may begin: faults in a row, budgets, windows, limits a minute, through a gateway."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import JsonValue

from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.client import Begun, GatewayClient
from pytest_modelbench.gateway.windows import Reading, Used
from pytest_modelbench.records import Candidate, Limits, Role, Server, UsageWindow

if TYPE_CHECKING:
    from tests.conftest import ModelServer, Running

    Servers = Callable[..., ModelServer]
    Gateways = Callable[..., Running]
    Behaviours = Callable[[str], dict[str, Any]]
    Waits = Callable[[GatewayClient, str], "Waiting"]

USER: list[JsonValue] = [{"role": "user", "content": "What is 17 + 25?"}]
PRICE = {"input": 1e6, "output": 1e6}  # a dollar a token


def candidate(at: ModelServer, name: str = "m", /, **more: Any) -> Candidate:
    return Candidate(name=name, **{"model": "openai/acme-coder-9b", "api_base": at.url, **more})


def answer(tokens: int = 10) -> dict[str, Any]:
    message = {"role": "assistant", "content": "42"}
    return {
        "json": {
            "model": "acme-coder-9b",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": tokens - 2, "completion_tokens": 2},
        }
    }


class Waiting:
    """A cell that asks to begin, in a thread."""

    def __init__(self, client: GatewayClient, name: str) -> None:
        self.begun: Begun | None = None
        self.fault: Fault | None = None
        self._thread = threading.Thread(target=self._begin, args=(client, name), daemon=True)
        self._thread.start()

    def _begin(self, client: GatewayClient, name: str) -> None:
        try:
            self.begun = client.begin(name)
        except Fault as fault:
            self.fault = fault

    def has_begun(self, seconds: float = 60.0) -> bool:
        self._thread.join(seconds)
        assert self.fault is None, self.fault
        return self.begun is not None


@pytest.fixture
def waiting() -> Iterator[Callable[[GatewayClient, str], Waiting]]:
    """A maker of cells that ask to begin; what has begun ends with the test."""
    made: list[Waiting] = []

    def make(client: GatewayClient, name: str) -> Waiting:
        made.append(Waiting(client, name))
        return made[-1]

    yield make
    for one in made:
        if one.begun is not None:
            one.begun.close()


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)  # what another process does is seen only by looking


def _is_another(running: Running, pid: int) -> bool:
    return running.process.pid != pid


def test_faults_in_a_row_let_cells_begin_one_at_a_time_until_one_ends(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours, waiting: Waits
) -> None:
    server = model_server(*[behaviour("R23")] * 6, behaviour("R01"))
    client = gateway(candidate(server), retries=0).client
    for number in range(5):
        with (
            client.begin("m"),
            pytest.raises(Fault, match="Internal server error"),
            client.grant(f"a{number}", "m", case_id=f"c{number}") as session,
        ):
            session.chat(USER)
    cells = [waiting(client, "m") for _ in range(3)]
    until(lambda: any(cell.begun for cell in cells))
    until(lambda: "one cell at a time" in json.dumps(client.status()["waiting"]))
    first = next(cell for cell in cells if cell.begun)
    assert sum(cell.begun is not None for cell in cells) == 1
    # One more fault changes nothing but which cell is in.
    with pytest.raises(Fault), client.grant("b", "m", case_id="b") as session:
        session.chat(USER)
    assert first.begun is not None
    first.begun.close()
    until(lambda: sum(cell.begun is not None for cell in cells) == 2)
    with client.grant("c", "m", case_id="c") as session:
        session.chat(USER)
    assert all(cell.has_begun() for cell in cells)


def test_faults_of_one_cell_are_one(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    client = gateway(candidate(model_server(behaviour("R23"))), retries=0).client
    for number in range(6):
        with pytest.raises(Fault), client.grant(f"a{number}", "m", case_id="same") as session:
            session.chat(USER)
    with client.begin("m"), client.begin("m"):
        pass


def test_cell_whose_worker_dies_has_ended(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours, waiting: Waits
) -> None:
    client = gateway(candidate(model_server(behaviour("R23"))), retries=0).client
    for number in range(5):
        with pytest.raises(Fault), client.grant(f"a{number}", "m") as session:
            session.chat(USER)
    began, ready = os.pipe()
    child = os.fork()
    if child == 0:
        held = client.begin("m")
        os.write(ready, b".")
        signal.pause()
        held.close()
    assert os.read(began, 1) == b"."
    other = waiting(client, "m")
    until(lambda: client.status()["waiting"])
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert other.has_begun()


@pytest.mark.parametrize(
    ("of_run", "of_candidate", "words"),
    [
        ({"budget_usd": 15.0}, {}, r"budget of this run, \$15, is spent \(\$20\.0000\)"),
        ({"budget_tokens": 15}, {}, r"budget of this run, 15 tokens, is spent \(20\)"),
        ({}, {"budget_usd": 15.0}, r"budget of m, \$15, is spent"),
        ({}, {"budget_tokens": 15}, r"budget of m, 15 tokens, is spent"),
    ],
)
def test_spent_budget_lets_nothing_begin_and_what_has_begun_end(
    model_server: Servers,
    gateway: Gateways,
    of_run: dict[str, Any],
    of_candidate: dict[str, Any],
    words: str,
) -> None:
    server = model_server(answer())
    running = gateway(
        candidate(server, price=PRICE, **of_candidate), candidate(server, "other"), **of_run
    )
    client = running.client
    first, second = client.begin("m"), client.begin("m")
    one, two = client.grant("a", "m"), client.grant("b", "m", role=Role.JUDGE)
    one.chat(USER)
    two.chat(USER)
    first.close()
    for _ in range(2):
        with pytest.raises(Fault, match=words) as caught:
            client.begin("m")
        assert (caught.value.kind, caught.value.permanent) == ("budget", True)
        # It is kept in the journal, so a restart gives nobody a new budget.
        killed = running.process.pid
        os.kill(killed, signal.SIGKILL)
        until(partial(_is_another, running, killed))
    assert two.chat(USER).answer == "42", "what has begun ends"
    second.close()
    if of_candidate:
        client.begin("other").close()


def test_window_of_seconds_holds_new_cells_until_its_reset(
    model_server: Servers, gateway: Gateways, waiting: Waits
) -> None:
    server = model_server(answer())
    window = UsageWindow(hours=8 / 3600, tokens=25)
    client = gateway(candidate(server, windows=(window,)), candidate(server, "free")).client
    session = client.grant("a", "m")
    client.grant("b", "free").chat(USER)  # what a gateway does once takes nothing of the window
    began = time.time()
    session.chat(USER)
    client.begin("m").close()
    session.chat(USER)
    held = waiting(client, "m")
    until(lambda: client.status()["waiting"])
    shown = client.status()["waiting"]
    assert isinstance(shown, dict)
    told = shown["m"]
    assert isinstance(told, dict)
    assert "80% of its window" in str(told["why"])
    assert session.chat(USER).answer == "42", "a cell that has begun goes on"
    with pytest.raises(Fault, match="of its window of 8 s") as caught:
        client.begin("m", patience=0.05)
    assert caught.value.kind == "held"
    client.begin("free").close()
    assert not held.has_begun(0.2)
    assert held.has_begun()
    assert time.time() - began >= 8
    assert held.begun is not None
    held.begun.close()
    assert client.status()["waiting"] == {}


def test_what_older_runs_used_counts_and_a_servers_window_holds_all_its_candidates(
    model_server: Servers, gateway: Gateways, waiting: Waits
) -> None:
    server = model_server(answer())
    shared = Server(name="s", windows=(UsageWindow(hours=1, requests=10),))
    now = time.time()
    client = gateway(
        candidate(server, server="s"),
        candidate(server, "other", server="s"),
        servers=[shared],
        used=[Used(candidate="other", server="s", at=now, requests=8)],
    ).client
    held = waiting(client, "m")
    until(lambda: client.status()["waiting"])
    shown = client.status()["waiting"]
    assert isinstance(shown, dict)
    told = shown["m"]
    assert isinstance(told, dict)
    assert told["until"] == pytest.approx(now + 3600, abs=1)
    assert held.begun is None
    client.stop("m", "enough")  # wakes what waits
    until(lambda: held.fault is not None)


def test_windows_read_from_headers_and_told_by_programs_hold(
    model_server: Servers, gateway: Gateways, waiting: Waits
) -> None:
    reset = int(time.time()) + 3600
    headers = {
        "x-codex-primary-used-percent": "81",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(reset),
    }
    server, other = model_server({**answer(), "headers": headers}), model_server(answer())
    client = gateway(candidate(server), candidate(other, "o")).client
    client.grant("a", "m").chat(USER)
    held = waiting(client, "m")
    until(lambda: client.status()["waiting"])
    shown = client.status()["waiting"]
    assert isinstance(shown, dict)
    told = shown["m"]
    assert isinstance(told, dict)
    assert told["until"] == pytest.approx(reset + 60, abs=1)
    client.begin("o").close()
    client.read_windows("m", [Reading(name="primary", share=0.1, reset=reset)])
    client.stop("m", "enough")  # wakes what waits
    until(lambda: held.fault is not None)
    assert held.fault is not None
    assert held.fault.kind == "candidate-stopped"


def test_cell_that_waits_outlives_a_killed_gateway(
    model_server: Servers, gateway: Gateways, waiting: Waits
) -> None:
    server = model_server(answer())
    window = UsageWindow(hours=4 / 3600, requests=1)
    running = gateway(candidate(server, windows=(window,)), candidate(server, "free"))
    running.client.grant("b", "free").chat(USER)  # it is up, and has done what it does once
    began = time.time()
    running.client.grant("a", "m").chat(USER)
    held = waiting(running.client, "m")
    until(lambda: running.client.status()["waiting"])
    os.kill(running.process.pid, signal.SIGKILL)
    assert held.has_begun()
    assert time.time() - began >= 4, "the new gateway knows what was used"


def test_requests_a_minute_hold_over_candidates_of_one_server(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """A minute is too long for a test: what would wait longer than max_wait is a fault."""
    server = model_server(answer())
    client = gateway(
        candidate(server, server="s"),
        candidate(server, "other", server="s"),
        servers=[Server(name="s", requests_per_minute=3)],
        max_wait=1,
        retries=0,
    ).client
    sessions = [client.grant(f"a{n}", "m" if n % 2 else "other") for n in range(8)]

    def call(number: int) -> str:
        try:
            return sessions[number].chat(USER).answer or ""
        except Fault as fault:
            return f"permanent {fault.kind}" if fault.permanent else fault.kind

    with ThreadPoolExecutor(8) as pool:
        replies = sorted(pool.map(call, range(8)))
    assert replies == ["42"] * 3 + ["rate-limited"] * 5
    assert len(server.seen) == 3
    with pytest.raises(Fault, match=r"a minute asks for \d+ s, and max_wait is 1 s"):
        sessions[0].chat(USER)


def test_limits_that_a_server_tells_are_kept_before_it_refuses(
    model_server: Servers, gateway: Gateways
) -> None:
    headers = {
        "x-ratelimit-limit-requests": "2",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "4s",
    }
    server = model_server({**answer(), "headers": headers}, answer())
    session = gateway(candidate(server)).client.grant("a", "m")
    session.chat(USER)
    session.chat(USER)
    one, two = (seen.at for seen in server.seen)
    assert two - one >= 1.9, "two in four seconds: the next is there after two"
    end = session.close()
    assert end.held_seconds > 0
    assert end.usage.retries == 0


def test_parts_of_an_attempts_grant_and_what_goes_back(
    model_server: Servers, gateway: Gateways
) -> None:
    client = gateway(candidate(model_server(answer()), price=PRICE)).client
    whole = Limits(tokens=50)
    judge = client.grant("a", "m", role=Role.JUDGE, limits=Limits(tokens=30), pool=whole)
    mine = client.grant("a", "m", pool=whole)
    assert mine.chat(USER).answer == "42"
    assert mine.chat(USER).answer == "42"
    assert mine.chat(USER).reason == "token-limit", "30 of 50 are set aside for the judge"
    judge.chat(USER)
    assert judge.close().usage.list_usd == 10.0
    assert mine.chat(USER).answer == "42", "20 of them have come back"
    assert mine.chat(USER).answer == "42"
    assert mine.chat(USER).reason == "token-limit"
    assert mine.close().usage.list_usd == 40.0, "the judge's 10 are no cost of the candidate"
    late = client.grant("a", "m", role=Role.JUDGE, pool=whole)
    with pytest.raises(Fault, match="judge") as caught:
        late.chat(USER)
    assert (caught.value.kind, caught.value.permanent) == ("token-limit", False)


def test_cost_on_ones_own_server_is_derived_and_apart(
    model_server: Servers, gateway: Gateways
) -> None:
    server = model_server(answer(), gated=True)
    running = gateway(
        candidate(server, server="gpu"), servers=[Server(name="gpu", usd_per_hour=3600.0)]
    )
    session = running.client.grant("a", "m")
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(session.chat, USER)
        server.wait_for(1)
        time.sleep(0.3)  # the server is at work
        assert server.gate is not None
        server.gate.set()
        call.result()
    took = time.monotonic() - began
    usage = session.close().usage
    assert usage.derived_usd is not None
    assert 0.3 <= usage.derived_usd <= took, "a dollar a second of work"
    assert (usage.list_usd, usage.billed_usd) == (None, None)
