"""The way from a program in a box to the gateway: a port on its loopback address.

Where a box has a network namespace of its own, a launcher in it listens and hands the listener out
to this worker, which hands it on. Where it has none, this worker listens. Either way the gateway
accepts the connections itself, and nothing stands between that a program could end or replace.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.client import GatewayClient, Session
from pytest_modelbench.gateway.handover import gateway_pid, open_door
from pytest_modelbench.worlds.box import INTERPRETER, Mount
from pytest_modelbench.worlds.doors import listen_at

PORT = 8080
"""In a network namespace where nothing else listens."""

_LAUNCHER = "/opt/modelbench/launcher.py"
_DOOR = "/opt/modelbench/door"


class Doorway:
    """The door of one attempt. ``own_network``: its box has a network namespace of its own.

    ``mounts`` and ``command`` are what the box needs for it; ``port`` is the program's way out.
    """

    def __init__(
        self, client: GatewayClient, session: Session, folder: Path, *, own_network: bool
    ) -> None:
        self._client = client
        self._token = session.token
        self._own_network = own_network
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._waiting: socket.socket | None = None
        self._pid = gateway_pid(client)
        self.problem = ""
        self.mounts: tuple[Mount, ...] = ()
        if own_network:
            self.port = PORT
            place = folder / "door"
            self._waiting = listen_at(folder, place.name)
            self.mounts = (
                Mount(Path(__file__).with_name("launcher.py"), _LAUNCHER),
                Mount(place, _DOOR, writable=True),
            )
            self._thread = threading.Thread(target=self._await_listener, daemon=True)
            self._thread.start()
        else:
            self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
            self.port = self._listener.getsockname()[1]
            open_door(client, self._token, self._listener)

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command to start in the box; it opens the door and becomes ``argv``."""
        if not self._own_network:
            return [*argv]
        return [INTERPRETER, "-I", "-S", _LAUNCHER, str(self.port), _DOOR, *argv]

    def keep(self) -> None:
        """Hand the listener over again where the gateway was started again meanwhile.

        Connections that a program makes between wait at the listener.
        """
        with contextlib.suppress(Fault):
            pid = gateway_pid(self._client)
            with self._lock:
                if pid != self._pid and self._listener is not None:
                    open_door(self._client, self._token, self._listener)
                    self._pid = pid

    def close(self) -> None:
        """Let go of the listener, which would keep the box's network alive."""
        if self._waiting is not None:
            with contextlib.suppress(OSError):
                self._waiting.shutdown(socket.SHUT_RDWR)
            self._thread.join()
            self._waiting.close()
        if self._listener is not None:
            self._listener.close()

    def __enter__(self) -> Doorway:
        """Return the door."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def _await_listener(self) -> None:
        """Take the one listener that the launcher sends; the program itself can send no second."""
        assert self._waiting is not None
        try:
            connection, _ = self._waiting.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):
            connection.settimeout(30.0)
            _, descriptors, _, _ = socket.recv_fds(connection, 4096, 4)
            for extra in descriptors[1:]:
                os.close(extra)
            try:
                if not descriptors:
                    raise Fault("box", "no listener came out of the box")
                listener = socket.socket(fileno=descriptors[0])
                with self._lock:
                    self._listener = listener
                open_door(self._client, self._token, listener)
                connection.sendall(b"ok\n")
            except Fault as fault:
                self.problem = fault.text
                connection.sendall(f"no: {fault.text}\n".encode())
