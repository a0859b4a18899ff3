"""Agent programs as they are released, in a box without network, against a model of prepared words.

Each is installed once into a cache of the user; where that does not work, its tests are skipped.
"""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.packs.model import Case
from pytest_modelbench.protocols.agent import AgentProtocol
from pytest_modelbench.protocols.programs import program_version
from pytest_modelbench.protocols.protocol import Services
from pytest_modelbench.records import Candidate, Limits, Role
from pytest_modelbench.worlds.box import INTERPRETER
from pytest_modelbench.worlds.environment import cache_folder
from pytest_modelbench.worlds.levels import BUBBLEWRAP, PORTABLE, choose, probe

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RIGHT = "def add(a, b):\n    return a + b\n"
RECIPES = Path(__file__).parents[3] / "docs" / "agent-programs.md"
INSTALL_SECONDS = 900


def install(package: str) -> Path:
    """Return a virtual environment with a program, made where it is not there yet."""
    if sys.version_info >= (3, 13) and package.startswith("aider"):
        pytest.skip(f"{package} is not for Python {platform.python_version()}")
    folder = cache_folder("agents") / package
    with FileLock(f"{folder}.lock"):
        if not (folder / "complete").exists():
            python = folder / "bin" / "python"
            steps = [
                [INTERPRETER, "-I", "-m", "venv", "--without-pip", str(folder)],
                [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", package],
                ["chmod", "-R", "a+rX", str(folder)],
            ]
            for step in steps:
                done = subprocess.run(
                    step, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
                )
                if done.returncode:
                    pytest.skip(f"{package} cannot be installed: {done.stderr.strip()[-300:]}")
            (folder / "complete").touch()
    return folder


def install_from_npm(name: str) -> Path:
    """Return the folder of a program's binary; they are large, so only when asked for."""
    package, inside = FROM_NPM[name]
    folder = cache_folder("agents") / f"npm-{name}"
    with FileLock(f"{folder}.lock"):
        if not (folder / inside).is_dir():
            if os.environ.get("MODELBENCH_AGENTS") != "all":
                pytest.skip(f"{package} is not installed; MODELBENCH_AGENTS=all installs it")
            steps = [
                ["npm", "install", "--no-fund", "--no-audit", "--prefix", str(folder), package],
                ["chmod", "-R", "a+rX", str(folder)],
            ]
            for step in steps:
                try:
                    done = subprocess.run(
                        step, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
                    )
                except OSError as error:
                    pytest.skip(f"{package} cannot be installed: {error}")
                if done.returncode:
                    pytest.skip(f"{package} cannot be installed: {done.stderr.strip()[-300:]}")
    return folder / inside


def recipe(name: str, folder: Path) -> Candidate:
    """Return the candidate that the documentation gives for a program, installed in a folder."""
    text = RECIPES.read_text(encoding="utf-8")
    (block,) = (
        block
        for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
        if f"[candidates.{name}]" in block
    )
    place = cache_folder("agents") / f"{name}-registry"
    place.mkdir(exist_ok=True)
    (place / "modelbench.toml").write_text(
        block.replace(f"/opt/{name}", str(folder)), encoding="utf-8"
    )
    (candidate,) = Registry.read(place).resolve([name])
    return candidate


def said(text: str | None, *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    listed = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(given)},
        }
        for number, (name, given) in enumerate(calls)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if listed:
        message["tool_calls"] = listed
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 50}
    return {
        "headers": {"content-type": "application/json"},
        "json": {"id": "x", "object": "chat.completion", "created": 1, "model": "qwen-1.5b"}
        | {"choices": [choice], "usage": usage},
    }


SCRIPTS = {
    "codex": (
        said("I repair it.", ("exec_command", {"cmd": "sed -i 's/a - b/a + b/' calc.py"})),
        said("Done."),
    ),
    "claude": (
        said("I repair it.", ("Bash", {"command": "sed -i 's/a - b/a + b/' calc.py"})),
        said("Done."),
    ),
    "mini": (
        said("I repair it.", ("bash", {"command": "sed -i 's/a - b/a + b/' calc.py"})),
        said("Done.", ("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"})),
    ),
    "aider": (said(f"The sign is wrong.\n\ncalc.py\n```\n{RIGHT}```\n"),),
}
PACKAGES = {"mini": "mini-swe-agent==2.4.6", "aider": "aider-chat==0.86.2"}
VERSIONS = {"mini": "2.4.6", "aider": "0.86.2", "codex": "0.171.0", "claude": "2.1.332"}
FROM_NPM = {
    "codex": (
        "@openai/codex@0.171.0",
        "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl",
    ),
    "claude": (
        "@anthropic-ai/claude-code@2.1.332",
        "node_modules/@anthropic-ai/claude-code-linux-x64",
    ),
}
TELLS = {"claude": {"date"}, "codex": {"date"}}
"""What a program says of its own accord, and no empty home keeps it from."""


@dataclass(frozen=True)
class Place:
    """One program, its gateway, and the server behind it."""

    name: str
    candidate: Candidate
    process: GatewayProcess
    server: Any  # Any: of a class in the tests' own conftest

    @property
    def client(self) -> GatewayClient:
        address = self.process.address
        return GatewayClient(address.socket_path, address.secret)


@pytest.fixture(scope="module", params=["mini", "aider", "codex", "claude"])
def place(request: pytest.FixtureRequest, server_class: type[Any]) -> Iterator[Place]:
    known = request.param in PACKAGES
    folder = install(PACKAGES[request.param]) if known else install_from_npm(request.param)
    server = server_class([])
    candidate = recipe(request.param, folder).model_copy(update={"api_base": server.url})
    process = GatewayProcess.start([candidate], retries=0)
    yield Place(request.param, candidate, process, server)
    process.close()
    server.close()


@pytest.fixture(params=[BUBBLEWRAP, PORTABLE])
def leveled(request: pytest.FixtureRequest, services: Services) -> Services:
    """Services with a box of each level."""
    level = next(level for level in probe() if level.name == request.param)
    if not level.available:
        pytest.skip(f"{level.name}: {level.why_not}")
    return replace(services, box=choose(level.name))


Try = Callable[..., tuple[Any, Journal]]


def attempt(place: Place, services: Services, case: Case, *responses: Any) -> tuple[Any, Journal]:
    place.server.responses = responses
    place.server.seen.clear()
    given = replace(services, gateway=place.client)
    one = replace(case, limits=Limits(turns=10, seconds=300))
    protocol, journal = AgentProtocol(), Journal()
    try:
        harvested = protocol.work(one, place.candidate, 1, "a1", given, journal)
    except Fault as fault:
        output = read_transcript(journal.transcript)[-1].get("output", "")
        pytest.fail(f"{fault}\n{output}")
    observation = protocol.observe(one, harvested, given)
    return protocol.verify(one, harvested, observation), journal


def test_a_released_program_solves_a_case(place: Place, leveled: Services, case: Case) -> None:
    verdict, journal = attempt(place, leveled, case, *SCRIPTS[place.name])
    program = read_transcript(journal.transcript)[-1]
    assert verdict.passed, program["output"]
    usage = journal.usage[Role.CANDIDATE]
    calls = len(SCRIPTS[place.name])
    # Neither more calls than turns (a title, a commit message), nor any try again.
    assert (usage.calls, usage.requests, len(place.server.seen)) == (calls, calls, calls)
    assert usage.input == 1000 * calls
    assert VERSIONS[place.name] in str(program["version"])


def test_a_program_ends_at_the_end_of_its_attempt(
    place: Place, services: Services, case: Case
) -> None:
    """Defaults of these programs try again for minutes; what they get here ends them at once."""
    broken = {"status": 500, "json": {"error": {"message": "boom"}}}
    place.server.responses = [broken]
    place.server.seen.clear()
    given = replace(services, gateway=place.client)
    with pytest.raises(Fault) as caught:
        AgentProtocol().work(case, place.candidate, 1, "a1", given, Journal())
    assert caught.value.kind == "server-error"
    assert len(place.server.seen) == 1


def test_what_a_program_adds_to_the_prompt_tells_nothing_of_the_host(
    place: Place, services: Services, case: Case
) -> None:
    if not services.box.level.startswith(BUBBLEWRAP):
        pytest.skip(f"{services.box.level}: host name and files of the host are in reach")
    attempt(place, services, case, *SCRIPTS[place.name])
    sent = "\n".join(json.dumps(seen.body) for seen in place.server.seen)
    assert "Repair add in calc.py." in sent
    hidden = {
        "host name": socket.gethostname(),
        "account": os.environ.get("USER") or "root@",
        "home": f"{Path.home()}/",
        "working folder": str(Path.cwd()),
        "e-mail": "@" + "localhost",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "year": datetime.now(UTC).strftime("%B %Y"),
        "reference": "reference_solutions",
    }
    told = {what for what, text in hidden.items() if len(text) > 3 and text in sent}
    assert told <= TELLS.get(place.name, set())


def test_the_version_is_asked_of_the_program(place: Place) -> None:
    assert VERSIONS[place.name] in program_version(place.candidate)
