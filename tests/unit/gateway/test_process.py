"""The gateway's process: how it starts, what it survives, and that it never outlives its run."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import JsonValue

from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.process import PREFIX, GatewayProcess, _locked_folder, sweep
from pytest_modelbench.records import Candidate

if TYPE_CHECKING:
    from tests.conftest import ModelServer, Running

    Servers = Callable[..., ModelServer]
    Gateways = Callable[..., Running]
    Behaviours = Callable[[str], dict[str, Any]]

USER: list[JsonValue] = [{"role": "user", "content": "Hello"}]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def scripted(tmp_path: Path) -> Candidate:
    """A candidate whose script answers everything."""
    script = tmp_path / "script.toml"
    script.write_text('[[default.steps]]\ncontent = "hi"\n')
    return Candidate(name="s", agent="scripted", script=str(script))


def kill(running: Running) -> None:
    """Kill a gateway, and wait for the next one to be started: no pid is hit twice."""
    killed = running.process.pid
    os.kill(killed, signal.SIGKILL)
    while running.process.pid == killed:
        time.sleep(0.005)  # its watchdog is another thread


def test_scripted_candidates_load_neither_litellm_nor_httpx(scripted: Candidate) -> None:
    program = """
import asyncio, sys
from pytest_modelbench.gateway.calls import Asked
from pytest_modelbench.gateway.wire import GatewayConfig, GrantRequest
from pytest_modelbench.gateway.server import Gateway
from pytest_modelbench.records import Candidate
candidate = Candidate.model_validate_json(sys.argv[1])
gateway = Gateway(GatewayConfig(candidates=(candidate,), secret="s" * 16, folder=sys.argv[2]))
gateway.application()
account = gateway.ledger.open(GrantRequest(attempt="a", candidate="s"))
asked = Asked([{"role": "user", "content": "x"}], [], {})
print(asyncio.run(gateway.calls.answer(account, asked)).reply.answer)
print(sorted({"litellm", "httpx", "openai", "scipy", "pytest"} & set(sys.modules)))
"""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            program,
            scripted.model_dump_json(),
            str(Path(scripted.script).parent),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.stdout, done.stderr) == ("hi\n[]\n", "")


def test_client_loads_the_standard_library_and_records_only() -> None:
    program = (
        "import sys, pytest_modelbench.gateway.client, pytest_modelbench.gateway.process\n"
        "print(sorted({'litellm', 'httpx', 'aiohttp', 'asyncio', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout == "[]\n"


def test_secret_is_in_no_argument_variable_or_name(
    gateway: Gateways, scripted: Candidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = gateway(scripted)
    running.client.status()
    secret = running.process.address.secret.encode()
    proc = Path("/proc") / str(running.process.pid)
    assert secret not in (proc / "cmdline").read_bytes()
    assert secret not in (proc / "environ").read_bytes()
    folder = Path(running.process.address.socket_path).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    running.client.grant("a", "s").chat(USER)
    assert not any(secret in file.read_bytes() for file in folder.iterdir() if file.is_file())


def test_killed_gateway_is_started_again_and_knows_its_grants(
    gateway: Gateways, scripted: Candidate, gone: Callable[[int], bool]
) -> None:
    running = gateway(scripted)
    session = running.client.grant("a", "s")
    session.chat(USER)
    first = running.process.pid
    os.kill(first, signal.SIGKILL)
    assert gone(first)
    # Nobody waits for the new one to be ready: the socket kept listening.
    assert session.chat(USER).answer == "hi"
    assert running.client.status()["pid"] != first
    assert running.process.restarts == 1
    assert session.close().usage.requests == 2


def test_call_in_flight_at_a_kill_is_a_fault_and_debited_by_nobody(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    server = model_server(behaviour("R01"), gated=True)
    running = gateway(Candidate(name="m", model="openai/acme-coder-9b", api_base=server.url))
    session = running.client.grant("a", "m")
    caught: list[Fault] = []

    def call() -> None:
        with pytest.raises(Fault) as fault:
            session.chat(USER)
        caught.append(fault.value)

    thread = threading.Thread(target=call)
    thread.start()
    server.wait_for(1)
    os.kill(running.process.pid, signal.SIGKILL)
    thread.join(60)
    assert [(fault.kind, fault.permanent) for fault in caught] == [("gateway", False)]
    assert server.gate is not None
    server.gate.set()
    assert session.chat(USER).answer == "42"
    assert session.close().usage.input == 31


@pytest.mark.slow
def test_kills_at_random_lose_no_answer_and_count_none_twice(
    model_server: Servers, gateway: Gateways, behaviour: Behaviours
) -> None:
    """What a worker was answered is debited; what is debited was served, once."""
    server = model_server(behaviour("R01"))
    running = gateway(Candidate(name="m", model="openai/acme-coder-9b", api_base=server.url))
    answered = [0, 0, 0]
    sessions = [running.client.grant(f"a{n}", "m") for n in range(3)]

    def work(number: int) -> None:
        while answered[number] < 40:
            try:
                sessions[number].chat(USER)
                answered[number] += 1
            except Fault as fault:
                if fault.kind != "gateway":
                    raise

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for served in (20, 50, 80):
        server.wait_for(served)
        kill(running)
    for thread in threads:
        thread.join(120)
    assert answered == [40, 40, 40]
    usages = [session.close().usage for session in sessions]
    for usage in usages:
        # A request whose answer a kill cut off was sent, and what it used is unknown.
        assert usage.input == 31 * (usage.calls - usage.unmetered)
        assert usage.calls - usage.unmetered >= 40
    assert sum(usage.calls - usage.unmetered for usage in usages) <= len(server.seen)


def test_stop_outlives_a_kill(
    gateway: Gateways, scripted: Candidate, gone: Callable[[int], bool]
) -> None:
    running = gateway(scripted)
    running.client.stop("s", "budget")
    pid = running.process.pid
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)
    with pytest.raises(Fault, match="budget"):
        running.client.grant("a", "s")


def test_interrupt_leaves_the_gateway_alone(gateway: Gateways, scripted: Candidate) -> None:
    running = gateway(scripted)
    pid = running.client.status()["pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGINT)
    assert os.getsid(pid) == pid, "a session of its own: the terminal's interrupt is not for it"
    assert running.client.grant("a", "s").chat(USER).answer == "hi"
    assert running.client.status()["pid"] == pid


@pytest.fixture
def place() -> Iterator[Path]:
    """A TMPDIR that no other gateway's start sweeps, whose path is short enough for a socket."""
    made = Path(tempfile.mkdtemp(prefix="mbt-", dir="/tmp"))
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_gateway_ends_with_its_controller_and_the_next_start_sweeps(
    scripted: Candidate, place: Path, how: signal.Signals, gone: Callable[[int], bool]
) -> None:
    program = """
import sys
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.records import Candidate
process = GatewayProcess.start([Candidate.model_validate_json(sys.argv[1])])
address = process.address
print(GatewayClient(address.socket_path, address.secret).status()["pid"], flush=True)
sys.stdin.read()
"""
    controller = subprocess.Popen(
        [sys.executable, "-c", program, scripted.model_dump_json()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(place), "PYTHONPATH": str(ROOT)},
    )
    with controller:
        assert controller.stdout is not None
        pid = int(controller.stdout.readline())
        (folder,) = place.iterdir()
        assert sweep(place) == [], "a living run keeps its folder"
        controller.send_signal(how)
        controller.wait()
        assert gone(pid)
    assert folder.exists()
    assert sweep(place) == [folder]
    assert not folder.exists()


def test_close_leaves_nothing(scripted: Candidate, gone: Callable[[int], bool]) -> None:
    process = GatewayProcess.start([scripted])
    pid, folder = process.pid, Path(process.address.socket_path).parent
    process.close()
    assert gone(pid)
    assert not folder.exists()


def test_sweep_leaves_what_is_alive_or_not_ours(tmp_path: Path) -> None:
    for name in (f"{PREFIX}dead", f"{PREFIX}alive", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lock").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    with (tmp_path / f"{PREFIX}alive" / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert sweep(tmp_path) == [tmp_path / f"{PREFIX}dead"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        f"{PREFIX}alive",
        f"{PREFIX}link",
        "other",
    ]


def test_a_folder_that_is_being_made_is_swept_by_no_other_start(tmp_path: Path) -> None:
    done = threading.Event()

    def sweep_for_ever() -> None:
        while not done.is_set():
            sweep(tmp_path)

    other = threading.Thread(target=sweep_for_ever)
    other.start()
    try:
        for _ in range(200):
            folder, lock = _locked_folder(tmp_path)
            (folder / "s").touch()
            os.close(lock)
    finally:
        done.set()
        other.join()


def test_gateway_that_cannot_live_is_given_up_with_its_last_words(
    scripted: Candidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pytest_modelbench.gateway.process._PROGRAM", "raise SystemExit('no aiohttp here')"
    )
    # A machine on which a start takes longer than that.
    monkeypatch.setattr("pytest_modelbench.gateway.process.QUICK_SECONDS", 0.0)
    process = GatewayProcess.start([scripted])
    try:
        process._watchdog.join(120)
        with pytest.raises(Fault, match=r"died 5 times at its start: .*no aiohttp here"):
            process.check()
        from pytest_modelbench.gateway.client import GatewayClient

        client = GatewayClient(process.address.socket_path, process.address.secret)
        with pytest.raises(Fault, match=r"died 5 times at its start: .*no aiohttp here"):
            client.grant("a", "s")
        with pytest.raises(Fault, match=r"died 5 times at its start: .*no aiohttp here"):
            client.begin("s")
    finally:
        process.close()
