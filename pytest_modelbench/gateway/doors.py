"""Doors: listening sockets of other network namespaces, through which boxed programs come in.

A box has no network, and most programs speak to nothing but a TCP port. So a launcher in the box
listens on its loopback address and hands the *listener* out to its worker, which hands it on to the
gateway here; the connections that the program then makes are accepted without a process between
that it could kill. A door admits one attempt: its token is the only one that counts there, and it
is closed with its grant. The worker keeps the listener and hands it over again to a gateway that
was started again.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

MOST_BYTES = 4096
HELLO_SECONDS = 30.0

Opens = Callable[[str, socket.socket], Awaitable[str]]
"""Takes a token and a listener; returns '' or why the listener is not taken."""


class Doors:
    """The socket on which listeners are handed over, one message each: the token."""

    def __init__(self, place: Path, opens: Opens) -> None:
        self._opens = opens
        self._tasks: set[asyncio.Task[None]] = set()
        place.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(place))
        place.chmod(0o600)
        self._socket.listen(256)
        self._socket.setblocking(False)
        self._keep(asyncio.get_running_loop().create_task(self._accept()))

    async def close(self) -> None:
        """Take no more listeners."""
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._socket.close()

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(self._socket)
            connection.setblocking(False)
            self._keep(loop.create_task(self._take(connection)))

    async def _take(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(HELLO_SECONDS):
                token, listener = await _receive(connection)
                why = "no listener came with it"
                if listener is not None:
                    why = _unfit(listener) or await self._opens(token, listener)
                    if why:
                        listener.close()
                answer = f"no: {why}\n" if why else "ok\n"
                await asyncio.get_running_loop().sock_sendall(connection, answer.encode())


async def _receive(connection: socket.socket) -> tuple[str, socket.socket | None]:
    """Return the line that was sent, and the socket that came with it."""
    loop = asyncio.get_running_loop()
    line = b""
    listener: socket.socket | None = None
    while b"\n" not in line and len(line) < MOST_BYTES:
        ready = asyncio.Event()
        loop.add_reader(connection, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(connection)
        try:
            more, extra, _, _ = connection.recvmsg(
                MOST_BYTES, socket.CMSG_SPACE(4 * array.array("i").itemsize)
            )
        except BlockingIOError:
            continue
        for level, kind, data in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                listener = _only(data, listener)
        if not more:
            break
        line += more
    return line.partition(b"\n")[0].decode("ascii", "replace"), listener


def _only(data: bytes, have: socket.socket | None) -> socket.socket | None:
    """Return the first socket that was handed over; others are closed."""
    descriptors = array.array("i")
    descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    for descriptor in descriptors:
        handed = socket.socket(fileno=descriptor)
        if have is None:
            have = handed
        else:
            handed.close()
    return have


def _unfit(listener: socket.socket) -> str:
    """Return why a socket is no door, '' where it is one."""
    try:
        listening = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        return "what was handed over is no socket"
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        return "the socket is not of TCP"
    if listener.type != socket.SOCK_STREAM or not listening:
        return "the socket does not listen"
    if listener.getsockname()[0] not in ("127.0.0.1", "::1"):
        return "the socket does not listen on the loopback address"
    return ""
