"""The trusted end of one boxed worker: start it, ask it, check every answer, end it."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from pytest_modelbench.checks import wire
from pytest_modelbench.checks.failures import (
    BadAnswer,
    CandidateError,
    GraderBroken,
    Raised,
    Stale,
    TimedOut,
    TooMuch,
    WorkerEnded,
    raised,
)
from pytest_modelbench.errors import Fault
from pytest_modelbench.worlds.box import Box, BoxSpec

__tracebackhide__ = True  # what failed is the line of the check; pytest reads this

START_SECONDS = 60.0
"""For the box and a bare interpreter, on a machine that has much else to do."""
MAX_RECEIVED = 256 * 2**20
"""Bytes that all answers of one worker may have together."""

# Reads the worker's text from the pipe: nothing of ours is mounted, listed or written in the box.
BOOT = (
    "import os\n"
    "def read(n):\n"
    "    b = b''\n"
    "    while len(b) < n: b += os.read(0, n - len(b)) or os._exit(3)\n"
    "    return b\n"
    "exec(compile(read(int(read(8), 16)), 'worker', 'exec'))\n"
)
_TEXT = Path(__file__).with_name("worker.py").read_bytes()


class BoxedWorker:
    """One boxed interpreter that holds the candidate's modules. Not for more than one thread."""

    def __init__(
        self,
        box: Box,
        spec: BoxSpec,
        python: str,
        environment: str | None,
        make_handle: Callable[[BoxedWorker, int, str], object],
        note_type: Callable[[object, str], None],
    ) -> None:
        self._box = box
        self._python = python
        self._handles: dict[int, object] = {}
        self._make_handle = make_handle
        self._note_type = note_type
        self._asked = 0
        self._received = 0
        self.ended = ""
        """Why no more can be asked; empty while it lives."""
        try:
            self._process: subprocess.Popen[bytes] = box.start(
                [python, "-I", "-S", "-c", BOOT, *([environment] if environment else [])], spec
            )
        except (OSError, Fault) as error:
            raise GraderBroken(f"the box cannot start a worker: {error}") from error
        if self._process.stdin is None or self._process.stdout is None:
            raise GraderBroken("the box gave a process without pipes")
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)

    def ask(self, seconds: float, verb: str, *arguments: object) -> object:
        """Return the worker's answer to one request.

        Raises ``Raised`` for an exception of the candidate's, another ``CandidateError`` when
        there is no honest answer (the worker is ended then), ``GraderBroken`` for what is ours.
        """
        if self.ended:
            raise Stale(f"its worker has ended ({self.ended}); load the module again")
        try:
            payload = wire.frame(wire.encode((self._asked + 1, verb, *arguments), self._number_of))
        except wire.Unsendable as error:
            raise GraderBroken(str(error)) from None
        except wire.Oversized as error:
            raise TooMuch(f"an argument is {error}") from None
        self._asked += 1
        try:
            if self._readable(0):
                raise self._odd_end("spoke without being asked")
            deadline = time.monotonic() + seconds
            self._send(payload, deadline)
            answer = self._answer(deadline, seconds)
        except CandidateError as error:
            self.stop(error.reason)
            raise
        return self._value(answer)

    def alive(self) -> bool:
        """Tell whether it may be asked: it has not ended, nor said anything on its own."""
        return not self.ended and not self._readable(0)

    def stop(self, why: str = "stopped") -> None:
        """End the worker and all that it started; may be called again."""
        if not self.ended:
            self.ended = why
            self._handles.clear()
            self._box.stop(self._process)
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def start(self) -> None:
        """Wait for the first sign of life: until then nothing of the candidate's has run."""
        deadline = time.monotonic() + START_SECONDS
        try:
            self._send(b"%08x" % len(_TEXT) + _TEXT, deadline)
            hello = self._receive(deadline, START_SECONDS)
        except CandidateError as error:
            self.stop(error.reason)
            raise GraderBroken(f"{self._python} did not start in the box: {error.reason}") from None
        if hello != wire.encode(0, _no_handles):
            self.stop("no worker")
            raise GraderBroken(f"{self._python} did not start in the box: it said {hello[:80]!r}")

    def _number_of(self, value: object) -> int | None:
        # The type itself, because a handle refuses to be compared and answers for no class.
        number = getattr(type(value), "modelbench_number", None)
        if number is None:
            if isinstance(value, Raised):
                return self._number_of(value.exception)
            return None
        asked, found = number(value)
        if asked.worker is not self:
            raise Stale(f"its worker has ended ({asked.ended}); load the module again")
        return int(found)

    def _value(self, answer: tuple[object, ...]) -> object:
        match answer:
            case ("ok", value):
                return value
            case ("refused", str(why)):
                raise TooMuch(f"the value that the candidate's code gave cannot cross: {why[:200]}")
            case (
                "raised",
                str(base),
                str(name),
                str(text),
                tuple() | None as given,
                list(places),
                exception,
            ):
                where = tuple(place for place in places if isinstance(place, str))
                raise raised(base, name, text, given, where, exception)
        self.stop(BadAnswer.reason)
        raise BadAnswer("the box gave an answer of an unknown form")

    def _answer(self, deadline: float, seconds: float) -> tuple[object, ...]:
        data = self._receive(deadline, seconds)
        try:
            answer = wire.decode(data, self._handle, self._note_type)
        except wire.Malformed as error:
            raise BadAnswer(f"what the box answered is not a message: {error}") from None
        if not isinstance(answer, tuple) or not answer or answer[0] != self._asked:
            raise BadAnswer("the box answered another request than the one that was made")
        if type(answer[0]) is not int:
            raise BadAnswer("the box gave an answer of an unknown form")
        return answer[1:]

    def _handle(self, number: int, type_name: str) -> object:
        handle = self._handles.get(number)
        if handle is None:
            handle = self._handles[number] = self._make_handle(self, number, type_name)
        return handle

    def _receive(self, deadline: float, seconds: float) -> bytes:
        try:
            length = wire.frame_length(self._read(4, deadline, seconds))
        except wire.Malformed as error:
            raise BadAnswer(f"what the box answered is not a message: {error}") from None
        self._received += length
        if self._received > MAX_RECEIVED:
            raise TooMuch(f"more than {MAX_RECEIVED} bytes of answers in one grading")
        return self._read(length, deadline, seconds)

    def _read(self, count: int, deadline: float, seconds: float) -> bytes:
        pieces: list[bytes] = []
        while count:
            try:
                piece = os.read(self._from, min(count, 2**20))
            except BlockingIOError:
                self._wait(select.POLLIN, self._from, deadline, seconds)
                continue
            except OSError:
                piece = b""
            if not piece:
                raise self._odd_end("ended")
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def _send(self, data: bytes, deadline: float) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._to, rest) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, self._to, deadline, 0)
            except OSError:
                raise self._odd_end("ended") from None

    def _wait(self, event: int, fd: int, deadline: float, seconds: float) -> None:
        left = deadline - time.monotonic()
        poll = select.poll()
        poll.register(fd, event)
        if left <= 0 or not poll.poll(left * 1000):
            raise TimedOut(f"no answer from the candidate's code within {seconds:g} s")

    def _readable(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def _odd_end(self, what: str) -> CandidateError:
        """Name what a worker did that it should not: its end is also readable, as end of file."""
        if what == "ended" or self._at_end():
            return WorkerEnded("the candidate's code ended its process")
        return BadAnswer(f"the box {what}")

    def _at_end(self) -> bool:
        try:
            return not os.read(self._from, 1)
        except OSError:
            return True


def _no_handles(value: object) -> int | None:
    return None
