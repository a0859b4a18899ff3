"""Whole programs: run a command on the candidate's files in a box of its own."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_modelbench.checks.boxed import START_SECONDS
from pytest_modelbench.checks.failures import GraderBroken
from pytest_modelbench.worlds.box import INTERPRETER, Box, BoxSpec, ending

__tracebackhide__ = True  # what failed is the line of the check; pytest reads this

OUTPUT_BYTES = 2**20
"""What is kept of each stream; the rest is read and dropped."""

_ASK_SECONDS = 0.02  # only where the kernel cannot tell us that a process ended

# Gives the program its own stderr: a box joins the two streams, or throws one away. The sign of
# life comes first: what fails before it is ours, and what fails after it is the program's.
_SIGN = b"+"
_APART = (
    "import os,sys\n"
    "n=int(sys.argv[1]);os.dup2(n,2);os.close(n);os.write(2,b'+')\n"
    "try: os.execvp(sys.argv[2],sys.argv[2:])\n"
    "except OSError as e: os.write(2,f'{sys.argv[2]}: {e}\\n'.encode());os._exit(127)\n"
)


@dataclass(frozen=True)
class Result:
    """How a program ended. ``status`` is minus the signal that ended it, None at its deadline.

    ``stdout`` and ``stderr`` are UTF-8 text where bytes that are none stay as lone surrogates;
    ``files`` are the regular files that the program left in its folder.
    """

    status: int | None
    stdout: str
    stderr: str
    timed_out: bool
    seconds: float
    files: Mapping[str, bytes] = field(default_factory=dict)
    late: float = 0.0
    """Seconds that the box took to start; not the program's."""

    @property
    def stdout_bytes(self) -> bytes:
        """Return what the program wrote, up to the cap."""
        return self.stdout.encode("utf-8", "surrogateescape")

    @property
    def stderr_bytes(self) -> bytes:
        """Return what the program wrote to its error stream, up to the cap."""
        return self.stderr.encode("utf-8", "surrogateescape")


def run_program(
    box: Box, spec: BoxSpec, argv: Sequence[str], stdin: bytes, seconds: float
) -> Result:
    """Run a program to its end or ``seconds`` after its start; nothing of it is alive then."""
    reader, writer = os.pipe()
    begin = time.monotonic()
    try:
        try:
            process = box.start(
                [INTERPRETER, "-I", "-S", "-c", _APART, str(writer), *argv],
                spec,
                pass_fds=(writer,),
            )
        except (OSError, ValueError) as error:
            raise GraderBroken(f"the box cannot start a program: {error}") from error
        finally:
            os.close(writer)
        try:
            streams, late, timed_out = _attend(process, reader, stdin, seconds)
            ended, ended_by = (None, None) if timed_out else ending(process.wait())
        finally:
            box.stop(process)
    finally:
        os.close(reader)
    if not streams[1].startswith(_SIGN):
        raise GraderBroken(f"the box did not start {INTERPRETER} within {START_SECONDS:g} s")
    stdout, stderr = (bytes(stream).decode("utf-8", "surrogateescape") for stream in streams)
    status = ended if ended_by is None else -ended_by
    took = time.monotonic() - begin - late
    return Result(status, stdout, stderr[1:], timed_out, took, late=late)


def _attend(
    process: subprocess.Popen[bytes], stderr: int, stdin: bytes, seconds: float
) -> tuple[tuple[bytearray, bytearray], float, bool]:
    """Feed a program and read it until it ends, not until its streams do: a child may hold them.

    Return both streams, the seconds until the sign of life, and whether time was up.
    """
    if process.stdin is None or process.stdout is None:
        raise GraderBroken("the box gave a process without pipes")
    to, stdout = process.stdin.fileno(), process.stdout.fileno()
    streams = {stdout: bytearray(), stderr: bytearray()}
    left = memoryview(stdin)
    begin = time.monotonic()
    late = 0.0
    deadline = begin + START_SECONDS
    timed_out = False
    with contextlib.ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for fd in (to, stdout, stderr):
            os.set_blocking(fd, False)
        selector.register(to, selectors.EVENT_WRITE)
        for fd in (stdout, stderr):
            selector.register(fd, selectors.EVENT_READ)
        patience = _ASK_SECONDS
        if hasattr(os, "pidfd_open"):
            ended = os.pidfd_open(process.pid)
            stack.callback(os.close, ended)
            selector.register(ended, selectors.EVENT_READ)
            patience = float("inf")
        while process.poll() is None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                timed_out = True
                break
            for key, _ in selector.select(min(remaining, patience)):
                if key.fd == to:
                    left = _feed(to, left)
                    if not left:
                        selector.unregister(to)
                        process.stdin.close()
                elif key.fd in streams and not _take(key.fd, streams[key.fd]):
                    selector.unregister(key.fd)
            if not late and streams[stderr]:
                late = time.monotonic() - begin
                deadline = begin + late + seconds
    for fd, stream in streams.items():
        for _ in range(64):  # what was written before the end is still in the pipes: 64 kB each
            if not _take(fd, stream, when_empty=False):
                break
    return (streams[stdout], streams[stderr]), late, timed_out


def _feed(fd: int, left: memoryview) -> memoryview:
    try:
        return left[os.write(fd, left) :]
    except BlockingIOError:
        return left
    except OSError:
        return left[:0]


def _take(fd: int, stream: bytearray, *, when_empty: bool = True) -> bool:
    try:
        piece = os.read(fd, 2**16)
    except BlockingIOError:
        return when_empty
    stream += piece[: max(0, OUTPUT_BYTES - len(stream))]
    return bool(piece)
