"""Servers that are started and stopped around turns: real processes, by real commands."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import JsonValue

from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.words import filled, unknown_words
from pytest_modelbench.records import Candidate, Server

if TYPE_CHECKING:
    from tests.conftest import ModelServer, Running

    Servers = Callable[..., ModelServer]
    Gateways = Callable[..., Running]

USER: list[JsonValue] = [{"role": "user", "content": "Hello"}]

# A model server of a few lines: it serves one model, and notes when it begins and ends.
PROGRAM = """
import http.server, json, os, signal, sys
port, model, log = int(sys.argv[1]), sys.argv[2], sys.argv[3]
def note(word):
    with open(log, "a") as file:
        file.write(f"{word} {model} {os.getpid()}\\n")
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        self.answer({"data": [{"id": model}]})
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": model}
        self.answer({"model": model, "choices": [{"index": 0, "message": message}]})
def end(*_):
    note("ends")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
note("serves")
print("loading", model, flush=True)
server.serve_forever()
"""


@pytest.fixture
def gpu(tmp_path: Path, quiet_port: int) -> Gpu:
    """One place where one model at a time can be served."""
    return Gpu(tmp_path, quiet_port)


class Gpu:
    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.log = folder / "events"
        (folder / "serve.py").write_text(PROGRAM)

    def start(self, more: str = "") -> str:
        return f"{sys.executable} serve.py {{port}} {{model}} {self.log} {more}"

    def candidate(self, name: str) -> Candidate:
        return Candidate(
            name=name,
            model=f"openai/{name}",
            api_base=f"http://127.0.0.1:{self.port}/v1",
            server="gpu",
        )

    def events(self) -> list[str]:
        """What servers have noted, without their pids."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [" ".join(line.split()[:2]) for line in lines]

    def pids(self) -> list[int]:
        return [int(line.split()[2]) for line in self.log.read_text().splitlines()]

    def gateway(self, make: Gateways, *names: str, **server: Any) -> Running:
        keys = {"start": self.start(), **server}
        return make(
            *map(self.candidate, names),
            servers=[Server(name="gpu", **keys)],
            root=self.folder,
            log=self.folder / "results/.logs/run",
            retries=0,
        )


def test_models_are_served_one_after_the_other_and_the_last_is_stopped(
    gateway: Gateways, gpu: Gpu, gone: Callable[[int], bool]
) -> None:
    running = gpu.gateway(
        gateway, "a", "b", stop=f"echo stops {{model}} 0 >> {gpu.log}", concurrency=4
    )
    for name in ("a", "b"):
        cells = [running.client.begin(name) for _ in range(3)]
        assert running.client.grant(f"x{name}", name).chat(USER).answer == name
        for cell in cells:
            cell.close()
    assert gpu.events() == ["serves a", "stops a", "ends a", "serves b"]
    running.process.close()
    assert gpu.events()[4:] == ["stops b", "ends b"]
    assert all(gone(pid) for pid in gpu.pids() if pid)
    printed = (gpu.folder / "results/.logs/run/gpu.log").read_text()
    assert "loading a" in printed
    assert f"serve.py {gpu.port} b" in printed


def test_cell_of_another_model_waits_for_the_last_of_this_one(gateway: Gateways, gpu: Gpu) -> None:
    running = gpu.gateway(gateway, "a", "b")
    first = running.client.begin("a")
    begun = threading.Event()

    def begin() -> None:
        with running.client.begin("b"):
            begun.set()

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    second = running.client.begin("a")
    first.close()
    assert not begun.wait(0.3)
    assert running.client.grant("x", "a").chat(USER).answer == "a"
    second.close()
    assert begun.wait(60)
    thread.join()


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ({"start": "echo no such GPU; exit 3"}, r"ended with status 3.*no such GPU"),
        ({"start": "sleep 60", "ready_seconds": 0.5}, r"within 0\.5 s"),
        ({"ready": "echo still loading; exit 1", "ready_seconds": 2.5}, r"within 2\.5 s.*loading"),
    ],
)
def test_server_that_does_not_become_ready_is_a_fault_of_its_candidate_only(
    gateway: Gateways, gpu: Gpu, server: dict[str, Any], words: str, model_server: Servers
) -> None:
    at = model_server({"json": {"choices": [{"index": 0, "message": {"content": "42"}}]}})
    keys = {"start": gpu.start(), **server}
    running = gateway(
        gpu.candidate("a"),
        Candidate(name="other", model="openai/o", api_base=at.url),
        servers=[Server(name="gpu", **keys)],
        root=gpu.folder,
        log=gpu.folder / "results/.logs/run",
    )
    with pytest.raises(Fault, match=words) as caught:
        running.client.begin("a")
    assert (caught.value.kind, caught.value.permanent) == ("server-not-ready", True)
    assert ".logs/run/gpu.log below the results folder" in caught.value.text
    with pytest.raises(Fault, match="server-not-ready") as later:
        running.client.begin("a")
    assert later.value.kind == "candidate-stopped"
    running.client.begin("other").close()


def test_ready_command_decides(gateway: Gateways, gpu: Gpu) -> None:
    flag = gpu.folder / "flag"
    running = gpu.gateway(gateway, "a", ready=f"test -e {flag} && echo ready {{model}}")
    begun = threading.Event()

    def begin() -> None:
        with running.client.begin("a"):
            begun.set()

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    while gpu.events() != ["serves a"]:
        time.sleep(0.01)  # what another process does is seen only by looking
    assert not begun.wait(0.3)
    flag.touch()
    assert begun.wait(60)
    thread.join()


@pytest.mark.parametrize("how", ["gateway", "daemon"])
def test_nothing_of_a_command_outlives_its_gateway(
    gateway: Gateways, gpu: Gpu, how: str, gone: Callable[[int], bool]
) -> None:
    start = gpu.start()
    if how == "daemon":  # it leaves its group, its session and its parent
        start = f"setsid {start} & exit 0"
    running = gpu.gateway(gateway, "a", start=start)
    running.client.begin("a").close()
    (pid,) = gpu.pids()
    if how == "gateway":
        os.kill(running.process.pid, signal.SIGKILL)
    else:
        running.process.close()
    assert gone(pid)


def test_server_is_started_again_after_its_own_death_and_its_gateways(
    gateway: Gateways, gpu: Gpu, gone: Callable[[int], bool]
) -> None:
    running = gpu.gateway(gateway, "a")
    running.client.begin("a").close()
    os.kill(gpu.pids()[0], signal.SIGKILL)
    assert gone(gpu.pids()[0])
    while len(gpu.pids()) < 2:
        running.client.begin("a").close()
    os.kill(running.process.pid, signal.SIGKILL)
    assert gone(gpu.pids()[1])
    with running.client.begin("a"):
        assert running.client.grant("x", "a").chat(USER).answer == "a"
    assert [e for e in gpu.events() if e.startswith("serves")] == ["serves a"] * 3


def test_words_of_a_candidate_are_filled_in_for_the_shell() -> None:
    candidate = Candidate(
        name="q",
        model="openai/org/q-7b",
        api_base="http://127.0.0.1:8081/v1",
        facts={"file": "/models/q 7b.gguf", "max_input_tokens": 4096},
    )
    command = "serve -m {file} -c {max_input_tokens} --port {port} {model} ${HOME} {{x}} ${v}"
    assert filled(command, candidate) == (
        "serve -m '/models/q 7b.gguf' -c 4096 --port 8081 org/q-7b ${HOME} {x} ${v}"
    )
    assert unknown_words(command, candidate) == []
    assert unknown_words("serve {weights}", candidate) == ["weights"]
