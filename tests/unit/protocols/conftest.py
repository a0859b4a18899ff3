"""A small case, and the services of a worker: this machine's box and a real grader."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.checks.grader import Grader
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.packs.model import Case, Damaged
from pytest_modelbench.protocols.agent import AgentProtocol
from pytest_modelbench.protocols.protocol import Harvested, Services
from pytest_modelbench.records import Candidate, Limits, Verdict
from pytest_modelbench.worlds.environment import environment
from pytest_modelbench.worlds.levels import choose
from pytest_modelbench.worlds.runs import close_run, open_run, runs_root

HIDDEN = """
def test_add(solution):
    assert solution.load("calc").add(2, 3) == 5

def test_kept(solution):
    assert "notes.txt" in solution.files
"""


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    box = choose("auto")
    grader = Grader(box)
    # Of this process alone: tests look at what lies in the run's folder.
    name = f"test-{secrets.token_hex(8)}"
    with open_run(runs_root(), name) as run:
        yield Services(box, grader, None, run, tmp_path_factory.mktemp("cache"), environment)
    grader.close()
    close_run(runs_root(), name)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    def lay(folder: str, files: dict[str, str]) -> Path:
        (tmp_path / folder).mkdir()
        for name, text in files.items():
            (tmp_path / folder / name).write_text(text)
        return tmp_path / folder

    right = "def add(a, b):\n    return a + b\n"
    return Case(
        pack="small",
        id="calc",
        folder=tmp_path,
        manifest=tmp_path / "case.toml",
        title="calc",
        prompt="Repair add in calc.py.",
        limits=Limits(turns=20, seconds=240),
        seed=lay("seed", {"calc.py": right.replace("+", "-"), "notes.txt": "keep\n"}),
        hidden=lay("hidden", {"test_calc.py": HIDDEN}),
        reference=lay("reference", {"calc.py": right}),
        damaged=(Damaged("doubles", lay("damaged", {"calc.py": right.replace("+", "+ b +")}), ()),),
    )


@dataclass(frozen=True)
class Served:
    """A model server and a gateway that knows it under two candidates."""

    server: Any  # Any: of a class in the tests' own conftest
    client: GatewayClient
    plain: Candidate
    seeded: Candidate

    def play(self, *responses: Any) -> None:
        """Begin anew with some responses, the last of them for ever."""
        self.server.responses = responses
        self.server.seen.clear()


@pytest.fixture(scope="session")
def running(server_class: type[Any]) -> Iterator[Served]:
    server = server_class([])
    plain = Candidate(name="local", model="openai/m", api_base=server.url)
    seeded = plain.model_copy(update={"name": "seeded", "params": {"seed": 10}})
    gateway = GatewayProcess.start([plain, seeded], retries=0)
    address = gateway.address
    yield Served(server, GatewayClient(address.socket_path, address.secret), plain, seeded)
    gateway.close()
    server.close()


@dataclass(frozen=True)
class Ended:
    """What one attempt came to."""

    harvested: Harvested
    verdict: Verdict
    journal: Journal


class Attempt(Protocol):
    def __call__(self, candidate: Candidate, *responses: Any, repeat: int = 1) -> Ended: ...


@pytest.fixture
def attempt(services: Services, case: Case, running: Served) -> Attempt:
    """Work, observe and verify, as an attempt does; the model's server gives the responses."""

    def tried(candidate: Candidate, *responses: Any, repeat: int = 1) -> Ended:
        running.play(*responses)
        protocol, journal = AgentProtocol(), Journal()
        given = replace(services, gateway=running.client)
        harvested = protocol.work(case, candidate, repeat, "a1", given, journal)
        observation = protocol.observe(case, harvested, given)
        return Ended(harvested, protocol.verify(case, harvested, observation), journal)

    return tried
