"""Function candidates at work: a process in a box that is given the task and the tools.

The function is the candidate, so what it raises is no fault: it gave no answer. Only where it
cannot be imported has nothing been measured, and that is a fault.
"""

from __future__ import annotations

import gzip
import json
import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.candidates.clock import Clock, End
from pytest_modelbench.candidates.function import source_of
from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.errors import Fault
from pytest_modelbench.parsing import parse
from pytest_modelbench.records import Candidate, Limits
from pytest_modelbench.worlds.box import INTERPRETER, Box, BoxSpec, Mount

PLACE = "/function"
VARIABLE = "MODELBENCH_FUNCTION"
"""Where a box has the function's package, and the variable that tells it."""

CHILD = Path(__file__).with_name("function_child.py")
LONGEST_SECONDS = 3600.0
"""For a function whose case and candidate declare no limit on time."""

START_SECONDS = 60.0
MESSAGE_BYTES = 8 * 2**20
DETAIL_CHARS = 500

Act = Callable[[str, dict[str, JsonValue]], tuple[str, bool]]
"""Do one call of a tool: its text, and whether it worked. `End` raised in it ends the work."""


@dataclass
class FunctionCandidate:
    """The function of a candidate in one attempt; `solve` may be asked more than once."""

    candidate: Candidate
    limits: Limits
    box: Box
    spec: BoxSpec
    journal: Journal
    clock: Clock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = Clock(self.limits)
        self._source = source_of(self.candidate)
        top = self._source.top
        place = f"{PLACE}/{top.name}"
        self.spec = replace(
            self.spec,
            mounts=(*self.spec.mounts, Mount(top, place)),
            # A level without mounts puts the host's own path in the place of a mount's.
            environment={**self.spec.environment, VARIABLE: place},
        )
        self.journal.counts.update(turns=0)
        self._printed = ""
        self._answer: str | None = None
        self._kept = 0
        self._entries: list[JsonValue] = []

    def solve(
        self, prompt: str, messages: Sequence[JsonValue], tools: Sequence[JsonValue], act: Act
    ) -> str | None:
        """Return what the function returns, once it has made its calls; the journal has them all.

        End where it raised, ended its process or ran into a limit; Fault where it is not there.
        """
        self._entry("request", kept=0, messages=[*messages], tools=[*tools])
        self._kept = len(messages)
        task: JsonValue = {
            "prompt": prompt,
            "messages": [*messages],
            "options": self.candidate.options,
        }
        asked: dict[str, JsonValue] = {
            "place": VARIABLE,
            "module": self._source.module,
            "name": self._source.name,
            "task": task,
            "tools": [*tools],
        }
        # Byte code is neither written nor read: what was digested is what runs.
        options = ["-I", "-S", "-B", "-X", f"pycache_prefix={PLACE}/none"]
        argv = [INTERPRETER, *options, "-c", CHILD.read_text(encoding="utf-8")]
        process = self.box.start(argv, self.spec)
        self._printed, self._answer = "", None
        how = "returned"
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            pipe = _Pipe(process.stdin.fileno(), process.stdout.fileno())
            return self._converse(pipe, asked, act)
        except End as end:
            how = f"{end.reason or 'ended'} {end.detail}".strip()
            raise
        finally:
            self.box.stop(process)
            self._entry(
                "program",
                argv=[self.candidate.function],
                version="function",
                output=self._printed,
                returned=self._answer,
                how=how,
            )
            self.journal.transcript = gzip.compress(
                b"".join(json.dumps(one).encode() + b"\n" for one in self._entries), mtime=0
            )

    def _converse(self, pipe: _Pipe, asked: Mapping[str, JsonValue], act: Act) -> str | None:
        pipe.say(asked, START_SECONDS)
        try:
            first = pipe.hear(START_SECONDS)
        except _Silent as silent:
            raise Fault("function", f"its process did not start: {silent}") from None
        if first.get("loaded") is not True:
            what = str(first.get("unloadable", "its process spoke out of turn"))
            text = f"{self.candidate.function} cannot be imported in the box: {what}"
            raise Fault("function", text, permanent=True)
        self.clock = Clock(self.limits)  # the start of a box is nothing of the function's
        while True:
            try:
                told = pipe.hear(min(self.clock.left, LONGEST_SECONDS))
            except _Silent as silent:
                raise End(silent.end, str(silent)) from None
            if isinstance(told.get("call"), str):
                text, worked = self._act(str(told["call"]), told.get("arguments"), act)
                pipe.say({"text": text, "worked": worked}, START_SECONDS)
                continue
            raised, answer = told.get("raised"), told.get("answer")
            self._printed = str(told.get("printed", ""))
            if isinstance(raised, str):
                raise End("function-raised", raised[:DETAIL_CHARS])
            self._answer = answer if isinstance(answer, str) else None
            return self._answer

    def _act(self, name: str, arguments: JsonValue, act: Act) -> tuple[str, bool]:
        turns = self.journal.counts["turns"]
        if self.limits.turns is not None and turns >= self.limits.turns:
            raise End("step-limit", f"{turns} calls")
        self.clock.check()
        self.journal.counts["turns"] += 1
        given = arguments if isinstance(arguments, dict) else {}
        call: JsonValue = {"id": f"c{turns + 1}", "name": name, "raw": json.dumps(given)}
        self._entry("reply", reply={"tool_calls": [call]})
        text, worked = act(name, given)
        result: JsonValue = {"role": "tool", "tool_call_id": f"c{turns + 1}", "content": text}
        self._entry("request", kept=self._kept, messages=[result])
        self._kept += 1
        return text, worked

    def _entry(self, kind: str, **facts: JsonValue) -> None:
        at = round(time.time(), 3)
        step = self.journal.counts["turns"] + (kind == "request")
        self._entries.append({"at": at, "kind": kind, "step": step, **facts})


class _Silent(Exception):
    """Nothing more comes from the function: ``end`` is the reason of the attempt's end."""

    def __init__(self, end: str, text: str) -> None:
        super().__init__(text)
        self.end = end


@dataclass
class _Pipe:
    """Lines of JSON to a process that may be hostile, and from it, each within some seconds."""

    to: int
    source: int
    _read: bytes = b""

    def __post_init__(self) -> None:
        os.set_blocking(self.to, False)
        os.set_blocking(self.source, False)

    def say(self, message: Mapping[str, JsonValue], seconds: float) -> None:
        """Send a message; what an ended process does not take is seen by `hear`."""
        rest = memoryview(json.dumps(message).encode("ascii") + b"\n")
        deadline = time.monotonic() + seconds
        while rest:
            try:
                rest = rest[os.write(self.to, rest) :]
            except BlockingIOError:
                if not _ready(self.to, select.POLLOUT, deadline):
                    return
            except OSError:
                return

    def hear(self, seconds: float) -> Mapping[str, JsonValue]:
        """Return the next message; _Silent where none comes."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._read:
            if len(self._read) > MESSAGE_BYTES:
                raise _Silent("function-ended", f"it sent more than {MESSAGE_BYTES} bytes at once")
            try:
                piece = os.read(self.source, 2**20)
            except BlockingIOError:
                if not _ready(self.source, select.POLLIN, deadline):
                    raise _Silent("time-limit", f"nothing came for {seconds:.1f} s") from None
                continue
            if not piece:
                raise _Silent("function-ended", "the function's process ended")
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        try:
            message = parse(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise _Silent("function-ended", "what its process sent is no message")
        return message


def _ready(fd: int, event: int, deadline: float) -> bool:
    left = deadline - time.monotonic()
    poll = select.poll()
    poll.register(fd, event)
    return left > 0 and bool(poll.poll(left * 1000))
