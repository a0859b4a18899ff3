"""The ledger against what a server says that it served, whatever dies in between."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import JsonValue

from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.ledger import Debit
from pytest_modelbench.records import Candidate, Usage

if TYPE_CHECKING:
    from tests.conftest import ModelServer, Running

    Servers = Callable[..., ModelServer]
    Gateways = Callable[..., Running]

USER: list[JsonValue] = [{"role": "user", "content": "Hello"}]
FIRST = 1000


class Till:
    """A model server's own account: each reply has a number, told as its count of input tokens."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._lock = threading.Lock()
        self.served: list[int] = []
        self.refused = 0

    def __call__(self, body: Any) -> dict[str, Any]:
        with self._lock:
            if self._dice.random() < 0.25:
                self.refused += 1
                return {"status": 503, "json": {"error": {"message": "busy"}}}
            number = FIRST + len(self.served)
            self.served.append(number)
        message = {"role": "assistant", "content": "42"}
        return {
            "json": {
                "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": number, "completion_tokens": 1},
            }
        }


WORKER = """
import sys
from pytest_modelbench.gateway.client import GatewayClient
session = GatewayClient(sys.argv[1], sys.argv[2]).grant(sys.argv[3], "m")
while True:
    session.chat([{"role": "user", "content": "Hello"}])
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_debited_is_what_the_server_served_and_nothing_twice(
    model_server: Servers, gateway: Gateways, seed: int
) -> None:
    """Calls, retries, deaths of workers and of the gateway, and new tries, in any order.

    A reply that nobody lived to read is debited as a request of unknown usage: so the numbers that
    are debited are those that were served less the unknown ones, and no request is missing.
    """
    dice = random.Random(seed)
    till = Till(dice)
    server = model_server(till)
    candidate = Candidate(name="m", model="openai/m", api_base=server.url)
    running = gateway(candidate, retries=2, max_wait=30)
    address = running.process.address
    running.client.status()  # it is up, and so is its journal
    ended: list[Usage] = []

    def attempt(number: int) -> None:
        """Work as a worker does; what was lost is begun again, with a grant of its own."""
        for _ in range(6):
            try:
                with running.client.begin("m"):
                    session = running.client.grant(f"a{number}", "m")
                    for _ in range(3):
                        session.chat(USER)
                    ended.append(session.close().usage)
                    return
            except Fault as fault:
                if fault.kind not in ("gateway", "unavailable"):
                    raise

    def worker(number: int) -> None:
        """Work in a process, which is killed once something has been asked for."""
        argv = [sys.executable, "-c", WORKER, address.socket_path, address.secret, f"w{number}"]
        process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        asked: int | None = None
        while process.poll() is None:  # else the gateway died under it
            if asked is None and f"w{number}" in _journal(address.socket_path):
                asked = len(server.seen)
            if asked is not None and len(server.seen) > asked:
                break
            time.sleep(0.005)  # what another process does is seen only by looking
        process.kill()
        process.wait()

    def killer() -> None:
        for served in (5, 14):
            server.wait_for(served)
            killed = running.process.pid
            os.kill(killed, signal.SIGKILL)
            while running.process.pid == killed:
                time.sleep(0.005)  # its watchdog is another thread

    jobs = [(attempt, n) for n in range(10)] + [(worker, n) for n in range(2)]
    dice.shuffle(jobs)
    with ThreadPoolExecutor(8) as pool:
        kills = pool.submit(killer)
        for done in [*(pool.submit(job, number) for job, number in jobs), kills]:
            done.result(240)
    # Whatever is still under way is lost with this one, and the next one knows of it.
    before = running.process.pid
    os.kill(before, signal.SIGKILL)
    while running.client.status()["pid"] == before:
        pass
    while server.in_flight:
        time.sleep(0.005)

    lines = [json.loads(line) for line in _journal(address.socket_path).splitlines() if line]
    debits = [(x["debit"], Debit.model_validate(x["what"])) for x in lines if "debit" in x]
    keys = [(token, debit.step, debit.tries) for token, debit in debits]
    assert len(keys) == len(set(keys)), "no request is debited twice"
    metered = [d.usage.input for _, d in debits if d.usage.input is not None]
    lost = sum(d.lost for _, d in debits)
    assert len(metered) == len(set(metered)), "no reply is debited twice"
    assert set(metered) <= set(till.served), "nothing is debited that was not served"
    missing = set(till.served) - set(metered)
    assert len(missing) <= lost, "what was served and is not debited is debited as unknown"
    requests = sum(d.requests for _, d in debits)
    assert len(server.seen) <= requests <= len(server.seen) + lost
    assert running.client.status()["spent"] == {
        "usd": 0.0,
        "tokens": sum(metered) + len(metered),
        "unpriced": len(metered) + lost,
    }
    assert len(ended) == 10
    assert all(u.requests == u.calls + u.retries == 3 + u.retries for u in ended)
    assert running.process.restarts >= 3


def _journal(socket_path: str) -> str:
    text = (Path(socket_path).parent / "journal.jsonl").read_text()
    return text[: text.rindex("\n") + 1] if "\n" in text else ""
