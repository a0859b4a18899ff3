"""What tests of several parts need: a server that behaves as it is told, and a running gateway."""

from __future__ import annotations

import base64
import contextlib
import email.utils
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.records import Candidate, Server

# Examples are bounded in number; a busy machine is no reason for one of them to fail, nor for the
# making of them. Each run tries the same ones, so that what turns red is the change; `make explore`
# tries others. What a fixture made for a test is good for all of its examples.
settings.register_profile(
    "all",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("suite", settings.get_profile("all"), derandomize=True, database=None)
settings.register_profile("explore", settings.get_profile("all"), max_examples=2000)
settings.load_profile(os.environ.get("MODELBENCH_EXAMPLES", "suite"))

Response = Mapping[str, Any]
"""What is sent: ``status``, ``headers``, a body as ``json``, ``text``, ``base64`` or ``sse``, and
how it is delivered, in the words of tests/data/field-reports/README.md."""


@dataclass(frozen=True)
class Seen:
    """One request that the server got."""

    at: float
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class ModelServer:
    """An HTTP server on the loopback address: each POST gets the next response, the last always."""

    responses: Sequence[Response | Callable[[Any], Response]]
    seen: list[Seen] = field(default_factory=list)
    gate: threading.Event | None = None
    port: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", self.port), backlog=256)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.in_flight = self.most_in_flight = 0
        self.arrived = threading.Condition(self._lock)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        if self.gate is not None:
            self.gate.set()
        with contextlib.suppress(OSError):
            # Closing alone would leave it listening for as long as accept() waits.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def wait_for(self, requests: int, seconds: float = 60.0) -> None:
        """Wait until so many requests have come."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.seen) >= requests, seconds)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = _read(connection)
                if request is None:
                    return
                with self._lock:
                    index = min(len(self.seen), len(self.responses) - 1)
                    self.seen.append(request)
                    self.in_flight += 1
                    self.most_in_flight = max(self.most_in_flight, self.in_flight)
                    self.arrived.notify_all()
                try:
                    if self.gate is not None:
                        self.gate.wait(120)
                    response = self.responses[index]
                    if callable(response):
                        response = response(request.body)
                finally:
                    with self._lock:
                        self.in_flight -= 1
                _send(connection, response)
            except OSError:
                pass  # the client went away


def _read(connection: socket.socket) -> Seen | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    while len(rest) < int(headers.get("content-length", 0)):
        more = connection.recv(65536)
        if not more:
            return None
        rest += more
    body = json.loads(rest) if rest else None
    return Seen(time.monotonic(), first.split(" ")[1], headers, body)


def _body(response: Response) -> bytes:
    if "json" in response:
        return json.dumps(response["json"]).encode()
    if "base64" in response:
        return base64.b64decode(response["base64"])
    if "sse" in response:
        pieces = (
            p if isinstance(p, str) else f"data: {json.dumps(p)}\n\n" for p in response["sse"]
        )
        return "".join(pieces).encode()
    return str(response.get("text", "")).encode()


def _send(connection: socket.socket, response: Response) -> None:
    delivery = response.get("delivery", {"kind": "whole"})
    kind = delivery["kind"]
    if kind == "no-response":
        return
    body = _body(response)
    lines = [f"HTTP/1.1 {response.get('status', 200)} X", "connection: close"]
    for name, value in response.get("headers", {}).items():
        if value.startswith("{http-date+"):
            ahead = int(value.removeprefix("{http-date+").removesuffix("}"))
            value = email.utils.formatdate(time.time() + ahead, usegmt=True)
        lines.append(f"{name}: {value}")
    chunked = "sse" in response
    lines.append("transfer-encoding: chunked" if chunked else f"content-length: {len(body)}")
    connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def out(piece: bytes) -> None:
        if piece:
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)

    if kind == "whole":
        out(body)
    elif kind == "drip":
        for start in range(0, len(body), delivery["bytes"]):
            out(body[start : start + delivery["bytes"]])
            time.sleep(delivery["every_s"])
    else:
        out(body[: delivery["after_bytes"]])
        if kind == "reset":
            # What was sent must arrive before the reset, which would throw it away.
            connection.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                connection.recv(1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif kind == "stall":
            connection.settimeout(60)
            connection.recv(1)
        return
    if chunked:
        connection.sendall(b"0\r\n\r\n")


@pytest.fixture(scope="session")
def server_class() -> type[ModelServer]:
    """The class of servers, for fixtures of a wider scope: they close what they make."""
    return ModelServer


@pytest.fixture
def model_server() -> Iterator[Callable[..., ModelServer]]:
    """A factory of servers that give the responses they are made with, one after the other."""
    made: list[ModelServer] = []

    def make(
        *responses: Response | Callable[[Any], Response], gated: bool = False, port: int = 0
    ) -> ModelServer:
        server = ModelServer(responses, gate=threading.Event() if gated else None, port=port)
        made.append(server)
        return server

    yield make
    for server in made:
        server.close()


@pytest.fixture
def quiet_port() -> Iterator[int]:
    """A port of the loopback address at which nobody listens, kept from all other programs.

    A server that is told this port can listen there while the test lasts.
    """
    with socket.socket() as kept:
        # Bound so, and not listening: the kernel gives the port to nobody who asks for any, and
        # refuses connections, and a server that sets the same option may take it by its number.
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        port: int = kept.getsockname()[1]
        yield port


@dataclass(frozen=True)
class Running:
    """A gateway that runs, and a client of it."""

    process: GatewayProcess
    client: GatewayClient


@pytest.fixture
def gateway() -> Iterator[Callable[..., Running]]:
    """A factory of running gateways for some candidates."""
    made: list[GatewayProcess] = []

    def make(*candidates: Candidate, servers: Sequence[Server] = (), **limits: Any) -> Running:
        process = GatewayProcess.start(candidates, servers, **limits)
        made.append(process)
        address = process.address
        return Running(process, GatewayClient(address.socket_path, address.secret))

    yield make
    for process in made:
        process.close()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of test data: MODELBENCH_DATA, or tests/data."""
    return Path(os.environ.get("MODELBENCH_DATA", Path(__file__).parent / "data"))
