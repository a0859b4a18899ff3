from __future__ import annotations

import contextlib
import gzip
import json
import os
import secrets
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.candidates.command import flaw_of_command
from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.errors import Fault, UsageProblem
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.handover import open_door
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.packs.model import Case
from pytest_modelbench.protocols.agent import AgentProtocol
from pytest_modelbench.protocols.programs import program_version
from pytest_modelbench.protocols.protocol import Harvested, Services
from pytest_modelbench.records import Candidate, Command, Limits, Role, Verdict
from pytest_modelbench.worlds.box import INTERPRETER
from pytest_modelbench.worlds.container import DOCKER
from pytest_modelbench.worlds.levels import (
    BUBBLEWRAP,
    LANDLOCK,
    PORTABLE,
    choose,
    probe,
    probe_named,
)

RIGHT = "def add(a, b):\n    return a + b\n"
LONGER = (3, 12, 60)
"""Seconds until a program is ended, one after the other until it has come to what is tested."""


def said(text: str | None = "Done.", **message: Any) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 100, "completion_tokens": 9}
    return {"json": {"model": "m", "choices": [choice], "usage": usage}}


def writes(path: str = "calc.py", content: str = RIGHT) -> dict[str, Any]:
    given = json.dumps({"path": path, "content": content})
    call = {"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": given}}
    return said(None, tool_calls=[call])


@dataclass(frozen=True)
class Running:
    """A gateway with a server behind it."""

    process: GatewayProcess
    server: Any  # Any: of a class in the tests' own conftest
    candidate: Candidate

    @property
    def client(self) -> GatewayClient:
        address = self.process.address
        return GatewayClient(address.socket_path, address.secret)


@pytest.fixture(scope="module")
def backed(server_class: type[Any]) -> Iterator[Running]:
    server = server_class([])
    candidate = Candidate(
        name="local", model="openai/m", api_base=server.url, price={"input": 1.0, "output": 2.0}
    )
    process = GatewayProcess.start([candidate], retries=2)
    yield Running(process, server, candidate)
    process.close()
    server.close()


@pytest.fixture(scope="session", params=[BUBBLEWRAP, LANDLOCK, PORTABLE, DOCKER])
def leveled(request: pytest.FixtureRequest, services: Services) -> Services:
    """Services with a box of each level."""
    known = (probe_named(DOCKER), *probe())
    level = next(level for level in known if level.name == request.param)
    if not level.available:
        pytest.skip(f"{level.name}: {level.why_not}")
    return replace(services, box=choose(level.name))


@dataclass(frozen=True)
class Done:
    """What one attempt of a program came to."""

    harvested: Harvested
    verdict: Verdict
    journal: Journal

    @property
    def program(self) -> dict[str, Any]:
        entry: dict[str, Any] = read_transcript(self.journal.transcript)[-1]
        return entry


Try = Callable[..., Done]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """A folder with the stub program, which the user of a box can read."""
    place = tmp_path_factory.mktemp("programs")
    shutil.copytree(data / "programs", place / "bin")
    for name in ("FR37-cli-rate-limited.json", "FR04-cli-result.json"):
        shutil.copy(data / "field-reports" / "files" / name, place / "bin" / name)
    for path in (place / "bin", *(place / "bin").iterdir()):
        path.chmod(0o755)
    return place / "bin"


def stub(folder: Path, *argv: str, **more: Any) -> Command:
    fields: dict[str, Any] = {
        "argv": [INTERPRETER, "/opt/stub/stub.py", *argv],
        "programs": [f"{folder}:/opt/stub"],
        "environment": {"STUB_BASE_URL": "{base_url}", "STUB_KEY": "{token}"},
    }
    return Command(**{**fields, **more})


@pytest.fixture
def tried(case: Case, backed: Running) -> Try:
    """Work, observe and verify; the server gives the responses. None of them: no model."""

    def attempt(services: Services, command: Command, *responses: Any, **limits: Any) -> Done:
        backed.server.responses = responses
        backed.server.seen.clear()
        update: dict[str, Any] = {"agent": "command", "command": command}
        if not responses:
            update |= {"model": "", "api_base": ""}
        candidate = backed.candidate.model_copy(update=update)
        assert flaw_of_command(candidate) is None
        given = replace(services, gateway=backed.client)
        one = replace(case, limits=Limits(**({"seconds": 240} | limits)))
        protocol, journal = AgentProtocol(), Journal()
        harvested = protocol.work(one, candidate, 1, "a1", given, journal)
        observation = protocol.observe(one, harvested, given)
        return Done(harvested, protocol.verify(one, harvested, observation), journal)

    return attempt


@pytest.mark.parametrize("wire", ["chat", "messages", "responses"])
def test_a_program_in_a_box_without_network_reaches_its_model(
    leveled: Services, tried: Try, folder: Path, backed: Running, wire: str
) -> None:
    done = tried(leveled, stub(folder, wire, "{task}"), writes(), said())
    assert done.verdict.passed
    assert (done.harvested.end, done.journal.counts["turns"]) == ("", 2)
    usage = done.journal.usage[Role.CANDIDATE]
    assert (usage.requests, usage.input, usage.output) == (2, 200, 18)
    assert usage.list_usd == pytest.approx(200e-6 + 18 * 2e-6)
    first = backed.server.seen[0].body["messages"]
    assert first == [{"role": "user", "content": "Repair add in calc.py."}]
    kinds = [entry["kind"] for entry in read_transcript(done.journal.transcript)]
    assert kinds == ["request", "reply", "request", "reply", "program"]
    assert done.program["how"].startswith("exit status 0 after")


@pytest.mark.parametrize("way", ["file", "stdin", "own-file"])
def test_the_task_comes_as_the_template_says(
    leveled: Services, tried: Try, folder: Path, backed: Running, way: str
) -> None:
    command = {
        "file": stub(folder, "chat", "@{task_file}"),
        "stdin": stub(folder, "chat", "-", stdin="Please: {task}"),
        "own-file": stub(
            folder,
            "chat",
            "@{home}/.config/x/task.txt",
            files={".config/x/task.txt": "To {model}: {task} {x}"},
        ),
    }[way]
    tried(leveled, command, said())
    task = "Repair add in calc.py."
    wanted = {"file": task, "stdin": f"Please: {task}", "own-file": f"To local: {task} {{x}}"}
    assert backed.server.seen[0].body["messages"][0]["content"] == wanted[way]


# -- what counts of its end ------------------------------------------------------------------------

BROKEN = {"status": 500, "json": {"error": {"message": "boom"}}}
QUOTA = {"status": 429, "json": {"error": {"code": "insufficient_quota", "message": "no money"}}}


@pytest.mark.parametrize("status", ["0", "3"])
def test_an_exit_status_proves_nothing(
    services: Services, tried: Try, folder: Path, status: str
) -> None:
    worked = tried(services, stub(folder, "chat", "{task}", "--exit", status), writes(), said())
    assert worked.verdict.passed
    idle = tried(services, stub(folder, "chat", "{task}", "--exit", status), said())
    assert not idle.verdict.passed
    assert idle.verdict.reason == ("wrong" if status == "0" else "program-error")


@pytest.mark.parametrize("model", [True, False], ids=["with a model", "without one"])
def test_an_error_flag_outweighs_a_good_exit_status(
    services: Services, tried: Try, folder: Path, model: bool
) -> None:
    """FR37: a rate limit, told with the subtype success and exit status 0."""
    file = "/opt/stub/FR37-cli-rate-limited.json"
    command = stub(folder, "chat", "{task}", "--no-calls", "--print", file)
    with pytest.raises(Fault) as caught:
        tried(services, command, *([said()] if model else []))
    assert caught.value.kind == "program"
    assert "the rate limit of this model is reached" in caught.value.text
    assert not caught.value.permanent


@pytest.mark.parametrize(
    ("response", "kind", "permanent"),
    [(BROKEN, "server-error", False), (QUOTA, "quota-exhausted", True)],
)
def test_what_the_gateway_answered_outweighs_the_program(
    services: Services,
    tried: Try,
    folder: Path,
    backed: Running,
    gateway: Any,
    case: Case,
    response: Any,
    kind: str,
    permanent: bool,
) -> None:
    # A gateway of its own: a permanent fault stops its candidate for good.
    running = gateway(backed.candidate, retries=0)
    backed.server.responses, command = [response], stub(folder, "chat", "{task}", "--exit", "0")
    backed.server.seen.clear()
    candidate = backed.candidate.model_copy(update={"agent": "command", "command": command})
    with pytest.raises(Fault) as caught:
        AgentProtocol().work(
            case, candidate, 1, "a1", replace(services, gateway=running.client), Journal()
        )
    assert (caught.value.kind, caught.value.permanent) == (kind, permanent)
    assert len(backed.server.seen) == 1


def test_a_program_that_asks_its_model_nothing_is_a_fault(
    services: Services, tried: Try, folder: Path
) -> None:
    with pytest.raises(Fault, match="it made no model call: exit status 0") as caught:
        tried(services, stub(folder, "chat", "{task}", "--no-calls"), said())
    assert not caught.value.permanent
    with pytest.raises(Fault, match=r"exit status 127: .*no-such-program") as caught:
        tried(services, Command(argv=["/no-such-program", "{task}"]), said())
    assert caught.value.permanent


def test_a_program_without_a_model_is_judged_by_its_work(
    services: Services, tried: Try, folder: Path
) -> None:
    script = "printf 'def add(a, b):\\n    return a + b\\n' > calc.py # {task}"
    done = tried(services, Command(argv=["sh", "-c", script]))
    assert done.verdict.passed
    assert not done.journal.usage


def test_calls_that_the_server_leaves_in_the_text_are_counted(
    services: Services, tried: Try, folder: Path
) -> None:
    """FR12, with a program in the agent's place."""
    text = '<tool_call>{"name": "write_file", "arguments": {"path": "x"}}</tool_call>'
    done = tried(services, stub(folder, "chat", "{task}"), said(text))
    assert (done.journal.counts["turns"], done.journal.counts["tool_calls_as_text"]) == (1, 1)


def test_its_turns_end_at_the_gateway(
    services: Services, tried: Try, folder: Path, backed: Running
) -> None:
    done = tried(services, stub(folder, "chat", "{task}"), writes("notes.txt", "x"), turns=3)
    assert (done.harvested.end, done.verdict.reason) == ("step-limit", "step-limit")
    assert len(backed.server.seen) == 3


def test_its_time_ends_it(leveled: Services, tried: Try, folder: Path) -> None:
    command = stub(folder, "chat", "{task}", "--hang")
    for seconds in LONGER:
        done = tried(leveled, command, writes(), said(), seconds=seconds)
        assert done.harvested.end == "time-limit"
        if "hanging" in done.program["output"]:
            break
    # The tree is judged as it stands.
    assert done.verdict.passed
    assert "hanging" in done.program["output"]
    how = str(done.program["how"])
    assert how.startswith("ended at its time limit after ")
    assert seconds <= float(how.split()[-2]) < seconds + 30


def test_nothing_of_a_program_works_on_after_its_time(leveled: Services, tried: Try) -> None:
    """FR28: a session of its own, with the program's output open, repairs the file afterwards."""
    mark = f"3{secrets.randbelow(10**9):09d}"
    late = f"(setsid sh -c 'sleep 150; sed -i s/-/+/ calc.py; sleep {mark}' &); echo hangs"
    command = Command(argv=["sh", "-c", f"{late}; sleep {mark}  # {{task}}"])
    for seconds in LONGER:
        begin = time.monotonic()
        done = tried(leveled, command, seconds=seconds)
        assert done.harvested.end == "time-limit"
        if "hangs" in done.program["output"]:
            break
    assert "hangs" in done.program["output"]
    assert b"a - b" in done.harvested.harvest.files["calc.py"]
    assert not done.verdict.passed
    assert done.verdict.reason == "time-limit"
    alive = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            alive += [entry] if mark.encode() in entry.read_bytes() else []
    assert alive == []
    assert time.monotonic() - begin < seconds + 60, "it waits for nobody who holds the pipe"


def test_waits_of_the_gateway_are_no_time_of_the_program(
    services: Services, tried: Try, folder: Path
) -> None:
    """FR15, with a program in the agent's place."""
    busy = {"status": 429, "headers": {"retry-after": "6"}, "json": {"error": {"message": "slow"}}}
    done = tried(services, stub(folder, "chat", "{task}"), busy, writes(), said(), seconds=5.9)
    assert done.verdict.passed
    assert done.harvested.end == ""
    assert done.journal.held >= 6


def test_a_cost_that_it_reports_stands_beside_ours(
    services: Services, tried: Try, folder: Path
) -> None:
    """FR04: what the program says it cost never takes the place of the list price."""
    command = stub(
        folder,
        "chat",
        "{task}",
        "--print",
        "/opt/stub/FR04-cli-result.json",
        cost="json:total_cost_usd",
    )
    usage = tried(services, command, said()).journal.usage[Role.CANDIDATE]
    assert usage.reported_usd == 3.67
    assert usage.list_usd == pytest.approx(118e-6)
    assert usage.billed_usd is None


def test_the_windows_that_it_tells_of_hold_new_cells(
    services: Services, tried: Try, folder: Path, backed: Running
) -> None:
    """What a program's output says of its provider's usage windows reaches the admission."""
    backed.client.begin("local", patience=60).close()
    events = [
        {
            "type": "rate_limit_event",
            "rate_limit_info": {
                "status": status,
                "resetsAt": time.time() + 1,
                "rateLimitType": "five_hour",
                "utilization": share,
            },
        }
        for status, share in (("allowed", 0.41), ("allowed_warning", 0.93))
    ]
    lines = [json.dumps(event) for event in [*events, {"type": "result", "is_error": False}]]
    (folder / "events.jsonl").write_text("\n".join(lines))
    (folder / "events.jsonl").chmod(0o644)
    command = stub(folder, "chat", "{task}", "--print", "/opt/stub/events.jsonl")
    assert tried(services, command, writes(), said()).verdict.passed
    with pytest.raises(Fault, match="93% of the provider's window five_hour is used") as caught:
        backed.client.begin("local", patience=0.1)
    assert caught.value.kind == "held"


def test_a_result_file_tells_what_the_exit_status_does_not(services: Services, tried: Try) -> None:
    script = 'echo \'{"info": {"exit_status": "LimitsExceeded"}}\' > "$HOME/out.json" # {task}'
    command = Command(
        argv=["sh", "-c", script],
        result="json:info.exit_status",
        success=["Submitted"],
        result_file="out.json",
    )
    with pytest.raises(Fault, match="exit_status is LimitsExceeded"):
        tried(services, command)
    right = command.model_copy(update={"success": ["LimitsExceeded"]})
    assert tried(services, right).harvested.end == ""


def test_a_result_file_that_is_a_link_leads_nowhere(services: Services, tried: Try) -> None:
    if not services.box.level.startswith(BUBBLEWRAP):
        pytest.skip(f"{services.box.level}: the program reads what the user can read anyway")
    script = 'ln -s /proc/1/environ "$HOME/r" # {task}'
    command = Command(argv=["sh", "-c", script], result_file="r")
    assert tried(services, command).program["result"] == ""


# -- its surroundings ------------------------------------------------------------------------------


def test_what_a_program_tells_of_its_own_accord_says_nothing_of_the_host(
    services: Services, tried: Try, folder: Path, backed: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not services.box.level.startswith(BUBBLEWRAP):
        pytest.skip(f"{services.box.level}: host name and files of the host are in reach")
    monkeypatch.setenv("ACME_API_KEY", "sk-very-secret-0123456789")
    tried(services, stub(folder, "chat", "{task}", "--tell"), said())
    prompt = backed.server.seen[0].body["messages"][0]["content"]
    told = json.loads(prompt.partition("\n")[2])
    assert (told["user"], told["home"], told["folder"], told["host"]) == (
        "candidate",
        "/home/candidate",
        "/work",
        "box",
    )
    assert told["files"] == [".task.md"]
    assert "ACME_API_KEY" not in told["variables"]
    assert len(told["passwd"].splitlines()) == 2
    assert socket.gethostname() not in prompt
    assert os.environ.get("HOME", "/root") not in prompt


def test_its_key_is_in_no_transcript(services: Services, tried: Try, folder: Path) -> None:
    script = f'echo "key: $STUB_KEY"; {INTERPRETER} /opt/stub/stub.py chat "$1"'
    command = stub(folder, argv=["sh", "-c", script, "sh", "{task}"])
    done = tried(services, command, said())
    assert "key: [token]" in done.program["output"]
    assert b"mb-" not in gzip.decompress(done.journal.transcript)


def test_a_door_admits_its_own_attempt_and_opens_once(backed: Running) -> None:
    mine = backed.client.grant("a1", "local")
    other = backed.client.grant("a2", "local")
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def status(token: str) -> int:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            head = f"GET /v1/models HTTP/1.0\r\nauthorization: Bearer {token}\r\n\r\n"
            connection.sendall(head.encode())
            return int(connection.recv(4096).split()[1])

    with listener, mine, other:
        open_door(backed.client, mine.token, listener)
        assert status(mine.token) == 200
        assert status(other.token) == 401
        assert status(backed.process.address.secret) == 401
        with pytest.raises(Fault, match="has its door already"):
            open_door(backed.client, mine.token, listener)
        with pytest.raises(Fault, match="no open grant"):
            open_door(backed.client, "mb-nobody", listener)
        with socket.socket() as idle, pytest.raises(Fault, match="does not listen"):
            open_door(backed.client, other.token, idle)
        with (
            socket.create_server(("0.0.0.0", 0)) as wide,
            pytest.raises(Fault, match="not listen on the loopback"),
        ):
            open_door(backed.client, other.token, wide)
        mine.close()
        other.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_gateway_that_is_started_again_lets_the_program_go_on(
    leveled: Services, tried: Try, folder: Path, backed: Running
) -> None:
    killed = threading.Event()

    def kill_once(body: Any) -> dict[str, Any]:
        if not killed.is_set():
            killed.set()
            os.kill(backed.process.pid, signal.SIGKILL)
        return writes()

    done = tried(leveled, stub(folder, "chat", "{task}"), kill_once, writes(), said())
    assert killed.is_set()
    assert done.verdict.passed
    assert backed.process.restarts >= 1


def test_the_version_is_kept_with_the_attempt(services: Services, tried: Try, folder: Path) -> None:
    version = ["sh", "-c", "echo stub 1.2.3"]
    done = tried(services, stub(folder, "chat", "{task}", version=version), writes(), said())
    assert done.journal.versions == {"program": "stub 1.2.3"}


def test_the_version_is_what_the_program_prints(folder: Path) -> None:
    command = Command(argv=["x", "{task}"], version=["sh", "-c", "echo noise; echo stub 1.2.3"])
    candidate = Candidate(name="c", agent="command", command=command)
    assert program_version(candidate) == "stub 1.2.3"
    bad = candidate.model_copy(
        update={"command": command.model_copy(update={"version": ["/nowhere/x", "--version"]})}
    )
    with pytest.raises(UsageProblem, match=r"candidate c does not work in a box \(status 127\)"):
        program_version(bad)


def test_a_call_that_is_under_way_when_time_is_up_ends_with_it(
    services: Services, tried: Try, folder: Path, backed: Running
) -> None:
    stalled = {"json": {}, "delivery": {"kind": "stall", "after_bytes": 1}}
    for seconds in LONGER:
        done = tried(services, stub(folder, "chat", "{task}"), stalled, seconds=seconds)
        assert done.harvested.end == "time-limit"
        if backed.server.seen:
            break
    assert len(backed.server.seen) == 1
    how = done.program["how"]
    assert seconds - 0.1 <= float(how.rpartition("after ")[2].split()[0]) < seconds + 30
