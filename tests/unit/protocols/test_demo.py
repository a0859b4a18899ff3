"""The scripted candidates of the demo on the executor pack: what a reader of the demo will see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.packs.model import Pack
from pytest_modelbench.packs.reading import read_pack
from pytest_modelbench.protocols.agent import AgentProtocol
from pytest_modelbench.protocols.protocol import Services
from pytest_modelbench.worlds.environment import environment

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CANDIDATES = Registry.read(ROOT).resolve(["careful-script", "hasty-script"])
PASSED = ""


@pytest.fixture(scope="module")
def pack() -> Pack:
    found = read_pack(ROOT / "cases/executor", ROOT / "reference_solutions")
    try:
        environment(found.environment)
    except UsageProblem as problem:
        pytest.skip(f"the pack's environment cannot be built: {problem}")
    return found


@pytest.fixture(scope="module")
def with_gateway(services: Services) -> Iterator[Services]:
    process = GatewayProcess.start(CANDIDATES)
    client = GatewayClient(process.address.socket_path, process.address.secret)
    yield replace(services, gateway=client)
    process.close()


@pytest.mark.parametrize(
    ("case", "careful", "hasty"),
    [
        ("write-function", PASSED, "wrong"),
        ("fix-bug", PASSED, PASSED),
        ("multi-file", PASSED, "escalated"),
        ("long-output", "wrong", "step-limit"),
    ],
)
def test_the_scripts_end_as_they_are_meant_to(
    pack: Pack, with_gateway: Services, case: str, careful: str, hasty: str
) -> None:
    protocol = AgentProtocol()
    for candidate, reason in zip(CANDIDATES, (careful, hasty), strict=True):
        task = pack.case(case)
        harvested = protocol.work(task, candidate, 1, f"{case}-{candidate.name}", with_gateway)
        observation = protocol.observe(task, harvested, with_gateway)
        verdict = protocol.verify(task, harvested, observation)
        assert (verdict.reason, verdict.passed) == (reason, reason == PASSED)
