"""A worker's side of the doors: hand a listener to the gateway. Standard library only."""

from __future__ import annotations

import socket
from pathlib import Path

from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.wire import DOORS

SECONDS = 30.0


def open_door(client: GatewayClient, token: str, listener: socket.socket) -> None:
    """Let the gateway accept the connections of a listener for the attempt of a token.

    The listener stays open here, too. Fault where the gateway does not take it.
    """
    place = str(Path(client._socket_path).with_name(DOORS))
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as out:
            out.settimeout(SECONDS)
            out.connect(place)
            socket.send_fds(out, [f"{token}\n".encode()], [listener.fileno()])
            answer = out.recv(4096).decode("ascii", "replace").strip()
    except OSError as error:
        raise Fault("gateway", f"the gateway took no listener ({error})") from error
    if answer != "ok":
        raise Fault("gateway", f"the gateway took no listener ({answer or 'it said nothing'})")


def gateway_pid(client: GatewayClient) -> int:
    """Return the process that serves now; another one after it was started again."""
    pid = client.status()["pid"]
    return pid if isinstance(pid, int) else 0
