"""Supervision: feed a process, keep the head and tail of what it says, and end it in time."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from pytest_modelbench.errors import Fault

END_SECONDS = 20.0
"""How long a killed process may take to be gone before that is a fault."""

_CHUNK = 2**16
_ASK_SECONDS = 0.5
_POLL_SECONDS = 0.02  # only where the kernel cannot tell us that a process ended


@dataclass(frozen=True)
class Watched:
    """What was seen of a process until its end. ``code`` is that of ``Popen.returncode``."""

    code: int
    output: bytes
    total: int
    timed_out: bool
    seconds: float
    over: str = ""
    """Why it was killed before its time."""


class CappedOutput:
    """Keep the first and the last bytes of a stream; memory stays below ``limit`` and a chunk."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._head = bytearray()
        self._head_limit = limit - limit // 2
        self._tail: deque[bytes] = deque()
        self._tail_size = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(chunk)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail.append(chunk)
            self._tail_size += len(chunk)
            while self._tail and self._tail_size - len(self._tail[0]) >= self._limit // 2:
                self._tail_size -= len(self._tail.popleft())

    def value(self) -> bytes:
        """Return all of the stream, or its head and tail with a line between that says so."""
        tail = b"".join(self._tail)
        if self.total <= self._limit:
            return bytes(self._head) + tail
        tail = tail[len(tail) - self._limit // 2 :] if self._limit > 1 else b""
        left_out = self.total - len(self._head) - len(tail)
        return bytes(self._head) + b"\n[... %d bytes left out ...]\n" % left_out + tail


def watch(
    process: subprocess.Popen[bytes],
    *,
    stdin: bytes,
    seconds: float,
    output_bytes: int,
    end: Callable[[], None],
    over: Callable[[], str] = lambda: "",
) -> Watched:
    """See a process to its end or its deadline, then call ``end``, then take what is left.

    ``end`` leaves nothing of the process alive, the process itself included. The process counts as
    ended when it exits, not at the end of its output: a survivor may hold the pipe (FR28). ``over``
    is asked now and then whether it may go on; a text ends it as the deadline does.
    """
    begin = time.monotonic()
    output = CappedOutput(output_bytes)
    with _Ends(process) as ends, selectors.DefaultSelector() as selector:
        out = process.stdout
        assert out is not None
        os.set_blocking(out.fileno(), False)
        selector.register(out, selectors.EVENT_READ, "output")
        if ends.fd is not None:
            selector.register(ends.fd, selectors.EVENT_READ, "ended")
        left = memoryview(stdin)
        why = ""
        asked = begin
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE, "input")
        while True:
            remaining = begin + seconds - time.monotonic()
            timed_out = remaining <= 0
            if timed_out or ends.seen():
                break
            patience = min(remaining, ends.patience, _ASK_SECONDS)
            events = {key.data for key, _ in selector.select(patience)}
            if time.monotonic() - asked >= _ASK_SECONDS:
                asked = time.monotonic()
                if why := over():
                    break
            if "input" in events and process.stdin is not None:
                left = _feed(process.stdin.fileno(), left)
                if not left:
                    selector.unregister(process.stdin)
                    _close(process.stdin)
            if "output" in events and not _take(out.fileno(), output):
                selector.unregister(out)
            if "ended" in events:
                break
    end()
    code = process.wait(END_SECONDS)
    # Nothing is left that could write, except where a survivor escaped: then a bounded look.
    for _ in range(64):
        if not _take(out.fileno(), output, when_empty=False):
            break
    close_pipes(process)
    seconds = time.monotonic() - begin
    if why:
        output.add(f"\n[killed: {why}]\n".encode())
    return Watched(code, output.value(), output.total, timed_out, seconds, why)


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close our ends of the pipes of a process that has ended."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            _close(stream)


def wait_gone(process: subprocess.Popen[bytes]) -> None:
    """Wait for a killed process; raise a fault when the kernel does not let go of it."""
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        raise Fault(
            "box", f"process {process.pid} was killed and is still there after {END_SECONDS:.0f} s"
        ) from None


class _Ends:
    """Tell when a process ended: by a descriptor on Linux, by asking now and then elsewhere."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.fd: int | None = None
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self.fd = os.pidfd_open(process.pid)
        self.patience = 3600.0 if self.fd is not None else _POLL_SECONDS

    def seen(self) -> bool:
        return self.fd is None and self._process.poll() is not None

    def __enter__(self) -> _Ends:
        return self

    def __exit__(self, *_: object) -> None:
        if self.fd is not None:
            os.close(self.fd)


def _take(fd: int, output: CappedOutput, *, when_empty: bool = True) -> bool:
    """Read once; False at the end of the stream, ``when_empty`` when there is nothing now."""
    try:
        chunk = os.read(fd, _CHUNK)
    except BlockingIOError:
        return when_empty
    output.add(chunk)
    return bool(chunk)


def _feed(fd: int, left: memoryview) -> memoryview:
    """Write once; return what is left, nothing when the reader is gone."""
    try:
        return left[os.write(fd, left[:_CHUNK]) :]
    except BlockingIOError:
        return left
    except (BrokenPipeError, ConnectionResetError):
        return left[:0]


def _close(stream: IO[bytes]) -> None:
    with contextlib.suppress(OSError):
        stream.close()
