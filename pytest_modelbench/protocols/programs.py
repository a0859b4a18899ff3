"""Agent programs at work: started in a box, watched to their end, and judged by what is known.

A program's own word counts last. What the gateway answered outweighs an error flag in its output,
and that outweighs its exit status, which proves nothing: programs end with 0 after a rate limit,
and with 1 after good work.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import secrets
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.candidates.command import (
    STDIN_FILE,
    TASK_FILE,
    Started,
    Told,
    fill,
    places_of,
    read_told,
)
from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.candidates.loop import HELD_SHARE, Work
from pytest_modelbench.candidates.tuning import Tuning
from pytest_modelbench.errors import Fault, UsageProblem
from pytest_modelbench.gateway.client import GatewayClient, Session
from pytest_modelbench.gateway.wire import Ended
from pytest_modelbench.packs.model import Case
from pytest_modelbench.protocols.doorway import Doorway
from pytest_modelbench.protocols.judging import attempt_grant
from pytest_modelbench.protocols.protocol import Services
from pytest_modelbench.records import Candidate, Command, Limits, Role, Usage
from pytest_modelbench.worlds import box as boxes
from pytest_modelbench.worlds.box import Box, BoxSpec, Mount
from pytest_modelbench.worlds.levels import choose
from pytest_modelbench.worlds.ownership import give
from pytest_modelbench.worlds.supervision import CappedOutput
from pytest_modelbench.worlds.world import World

LONGEST_SECONDS = 3600.0
"""For a program whose case and candidate declare no limit on time: some wait for ever."""

PULSE_SECONDS = 1.0
OUTPUT_BYTES = 2**20
VERSION_SECONDS = 120.0
DETAIL_CHARS = 500


def work_by_program(
    case: Case,
    candidate: Candidate,
    repeat: int,
    attempt_id: str,
    services: Services,
    world: World,
    spec: BoxSpec,
    journal: Journal,
) -> Work:
    """Let an agent program work on a case in its world; the journal has what it used.

    Fault where its model could not be reached, or it never asked it anything.
    """
    command = candidate.command
    assert command is not None, "a candidate whose agent is a command has one"
    limits = case.limits.within(candidate.limits)
    if version := program_version(candidate):
        journal.versions["program"] = version
    program = _Program(command, candidate, case, limits, services.box, world, spec)
    if not candidate.calls_model:
        ran = program.run()
        journal.transcript = program.entry(ran, "")
        return without_model(read_told(command, ran.status, ran.output, ran.result), ran)
    if services.gateway is None:
        raise Fault("gateway", f"candidate {candidate.name} calls a model and no gateway runs")
    journal.grant = attempt_grant(case, services, limits)
    session = services.gateway.grant(
        attempt_id, candidate.name, Role.CANDIDATE, case.id, repeat, limits, journal.grant
    )
    try:
        ran = program.run(services.gateway, session)
    except BaseException:
        with suppress(Fault):  # the first trouble is the one to tell
            _close(session, journal)
        raise
    told = read_told(command, ran.status, ran.output, ran.result)
    ended = _close(session, journal, told.cost_usd)
    if told.windows:
        services.gateway.read_windows(candidate.name, told.windows)
    journal.transcript += program.entry(ran, session.token)
    journal.counts["turns"] = ended.usage.calls
    if as_text := ended.reasons.get("tool-call-as-text"):
        journal.counts["tool_calls_as_text"] = as_text
    return with_model(told, ran, ended)


@dataclass(frozen=True)
class Ran:
    """How a program ended: ``status`` is None after a time-out, and where it is not known."""

    status: int | None
    output: str
    result: str
    timed_out: bool
    seconds: float
    held: float
    argv: tuple[str, ...]


def with_model(told: Told, ran: Ran, ended: Ended) -> Work:
    """Say how the work of a program ended that has a model behind it; Fault for no work at all."""
    final = ended.final
    if final is not None and final.faulty:
        permanent = final.outcome == "fault-permanent"
        raise Fault(final.reason, final.quote, status=final.status, permanent=permanent)
    if ran.timed_out:
        spent = f"{ran.seconds - ran.held:.1f} s of work, {ran.seconds:.1f} s in all"
        if ran.held >= HELD_SHARE * ran.seconds and not ended.usage.calls:
            raise Fault("wall-limit", f"{spent}; it was spent waiting for the model's server")
        return Work("time-limit", spent)
    if "other-model" in ended.reasons:
        return Work("other-model", "a reply came from another model than the one asked for")
    if not ended.usage.calls and final is None:
        text = f"it made no model call: {_last_words(told, ran)}"
        raise Fault("program", text, permanent=ran.status in NOT_STARTED)
    if final is not None:
        return Work(final.reason, final.quote[:DETAIL_CHARS])
    if ended.ended == "context-exceeded":
        return Work(ended.ended, _last_words(told, ran))
    return Work("program-error", _last_words(told, ran)) if told.failed else Work()


def without_model(told: Told, ran: Ran) -> Work:
    """Say how the work of a program ended that has no model of this run behind it."""
    if ran.timed_out:
        return Work("time-limit", f"{ran.seconds:.1f} s")
    if told.failed:
        raise Fault("program", _last_words(told, ran), permanent=ran.status in NOT_STARTED)
    return Work()


NOT_STARTED = (126, 127)
"""A shell's statuses of what is no program, or is not there: another try finds it no more."""


@functools.cache
def _version(argv: tuple[str, ...], programs: tuple[str, ...], name: str) -> str:
    box = choose("auto")
    spec = _roomy(BoxSpec(mounts=_mounts(programs), workdir=boxes.TEMPORARY))
    done = box.run(argv, spec, seconds=VERSION_SECONDS)
    text = done.output.decode("utf-8", "replace").strip()
    if done.status != 0 or not text:
        raise UsageProblem(
            f"the version command of candidate {name} does not work in a box "
            f"(status {done.status}): {' '.join(text.split())[-300:] or 'it printed nothing'}; "
            "command.programs lists the folders of the host that it needs"
        )
    return text.splitlines()[-1].strip()[:200]


def program_version(candidate: Candidate) -> str:
    """Return what an agent program says its version is; asked once a process, in a box.

    '' where no version command is declared; UsageProblem where it does not work.
    """
    command = candidate.command
    if command is None or not command.version:
        return ""
    return _version(tuple(command.version), tuple(command.programs), candidate.name)


class _Program:
    """One program in one world."""

    def __init__(
        self,
        command: Command,
        candidate: Candidate,
        case: Case,
        limits: Limits,
        box: Box,
        world: World,
        spec: BoxSpec,
    ) -> None:
        self._command = command
        self._candidate = candidate
        self._case = case
        self._limits = limits
        self._box = box
        self._world = world
        # A level without a root of its own shows the host's paths, in files as well.
        self._mounts = box.own_root
        self._home = boxes.HOME if self._mounts else str(world.home)
        self._spec = _roomy(replace(spec, mounts=(*spec.mounts, *_mounts(command.programs))))

    def run(self, client: GatewayClient | None = None, session: Session | None = None) -> Ran:
        """Run the program to its end or its limit; nothing of it is alive afterwards."""
        if client is None or session is None:
            return self._run(None, "", "")
        with Doorway(client, session, self._world.folder, own_network=self._mounts) as door:
            ran = self._run(door, f"http://127.0.0.1:{door.port}", session.token, session)
            if door.problem:
                raise Fault("gateway", f"the program's way to it did not open: {door.problem}")
        return ran

    def entry(self, ran: Ran, token: str) -> bytes:
        """Return the program's own entry of the transcript: compressed, without its token."""

        def clean(text: str) -> str:
            return text.replace(token, "[token]") if token else text

        how = "ended at its time limit" if ran.timed_out else f"exit status {ran.status}"
        entry: dict[str, JsonValue] = {
            "at": round(time.time(), 3),
            "kind": "program",
            "argv": [clean(word) for word in ran.argv],
            "version": program_version(self._candidate),
            "output": clean(ran.output),
            "result": clean(ran.result),
            "how": f"{how} after {ran.seconds:.1f} s",
        }
        return gzip.compress(json.dumps(entry).encode() + b"\n", mtime=0)

    def _run(
        self, door: Doorway | None, base_url: str, token: str, session: Session | None = None
    ) -> Ran:
        started = fill(self._command, self._values(base_url, token))
        self._write(started)
        mark = secrets.token_hex(8)
        stdin = f"{self._home}/{STDIN_FILE}" if started.has_stdin else "/dev/null"
        script = f'"$@" <"$0" 2>&1; printf "\\n{mark}%d\\n" "$?"'
        argv = ["/bin/sh", "-c", script, stdin, *started.argv]
        spec = replace(self._spec, environment={**self._spec.environment, **started.environment})
        if door is not None:
            spec = replace(spec, mounts=(*spec.mounts, *door.mounts), connect=door.port)
            argv = door.command(argv)
        clock = _Clock(self._limits, session, door)
        process = self._box.start(argv, spec)
        try:
            output, timed_out = _watch(process, clock.left)
        finally:
            self._box.stop(process)
        text, status = _split(output, mark)
        return Ran(
            None if timed_out else status,
            text,
            self._result(),
            timed_out,
            clock.seconds,
            clock.held,
            started.argv,
        )

    def _values(self, base_url: str, token: str) -> Mapping[str, str]:
        values = {
            "task": self._case.prompt,
            "task_file": f"{self._home}/{TASK_FILE}",
            "base_url": base_url,
            "token": token,
            "model": self._candidate.name,
            "home": self._home,
            "work": boxes.WORK if self._mounts else str(self._world.tree),
        }
        window = Tuning.of(self._candidate).window(self._candidate)
        known = {"window": window, "turns": self._limits.turns}
        values |= {name: str(number) for name, number in known.items() if number is not None}
        texts = json.dumps(self._command.model_dump(mode="json"))
        for name in known:
            if name not in values and f"{{{name}}}" in texts:
                raise UsageProblem(
                    f"the command of candidate {self._candidate.name} asks for {{{name}}}, which "
                    "is not known: declare tuning.context_tokens or limits.turns"
                )
        return values

    def _write(self, started: Started) -> None:
        """Write the files of the program's home, which nothing but we has written to so far."""
        for name, text in started.files.items():
            path = self._world.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        give(self._world.home, self._box.owner)

    def _result(self) -> str:
        """Read the declared result file as the program itself could: a link leads nowhere else."""
        if not self._command.result_file:
            return ""
        path = f"{boxes.HOME}/{self._command.result_file}"
        done = self._box.run(["cat", path], self._spec, seconds=30.0, output_bytes=4 * OUTPUT_BYTES)
        return done.output.decode("utf-8", "replace") if done.status == 0 else ""


class _Clock:
    """How long a program may still work: what the gateway holds is no time of its own."""

    def __init__(self, limits: Limits, session: Session | None, door: Doorway | None) -> None:
        self._limits = limits
        self._session = session
        self._door = door
        self._began = time.monotonic()
        self._pulse = self._began
        self.held = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def left(self) -> float:
        """Return the seconds that are left; now and then ask the gateway what it held."""
        if time.monotonic() - self._pulse >= PULSE_SECONDS:
            self._beat()
        working, wall = self._limits.seconds, self._limits.wall_seconds
        until_wall = (LONGEST_SECONDS if wall is None else wall) - self.seconds
        if working is None:
            return until_wall
        if working + self.held <= self.seconds and self._beat():
            # A call is under way: what it was held for is known when it ends, and the gateway
            # bounds what is work of it.
            return min(until_wall, PULSE_SECONDS / 10)
        return min(until_wall, working + self.held - self.seconds)

    def _beat(self) -> int:
        """Ask the gateway what it held so far; return how many calls are under way."""
        self._pulse = time.monotonic()
        if self._door is not None:
            self._door.keep()
        if self._session is None:
            return 0
        try:
            state = self._session.state()
        except Fault:  # it may be starting again
            return 0
        self.held = state.held_seconds
        return state.in_flight


def _watch(process: subprocess.Popen[bytes], left: Callable[[], float]) -> tuple[bytes, bool]:
    """Take a program's output until it ends or its time is up; return that, and which it was."""
    output = CappedOutput(OUTPUT_BYTES)
    if process.stdin is not None:
        process.stdin.close()
    out = process.stdout
    assert out is not None
    os.set_blocking(out.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(out, selectors.EVENT_READ)
        open_ = True
        while True:
            remaining = left()
            if remaining <= 0:
                return output.value(), True
            ended = process.poll() is not None
            if open_ and selector.select(0 if ended else min(remaining, PULSE_SECONDS / 10)):
                chunk = out.read(2**16)
                if chunk:
                    output.add(chunk)
                    continue
                selector.unregister(out)
                open_ = False
            elif not open_ and not ended:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(remaining, PULSE_SECONDS / 10))
            if ended:
                return output.value(), False


def _split(output: bytes, mark: str) -> tuple[str, int | None]:
    """Part what a program printed from the line that tells its status."""
    text = output.decode("utf-8", "replace")
    before, sign, after = text.rpartition(f"\n{mark}")
    number = after.partition("\n")[0]
    return (before, int(number)) if sign and number.isdigit() else (text, None)


def _roomy(spec: BoxSpec) -> BoxSpec:
    """Return a spec with room for programs: their engines reserve far more memory than they use."""
    return replace(spec, memory_bytes=None, processes=1024, open_files=8192)


def _mounts(programs: Sequence[str]) -> tuple[Mount, ...]:
    return tuple(Mount(Path(source), target) for source, target in map(places_of, programs))


def _last_words(told: Told, ran: Ran) -> str:
    """Return what a program says of its failure, else the end of its output."""
    tail = " ".join(ran.output.split())[-DETAIL_CHARS:]
    status = "" if ran.status is None else f"exit status {ran.status}"
    words = [told.text or status, tail if told.text in ("", status) else ""]
    return ": ".join(word for word in words if word) or "it printed nothing"


def _close(session: Session, journal: Journal, reported: float | None = None) -> Ended:
    closed = session.close()
    usage: Usage = closed.usage
    if reported is not None:
        usage = usage.model_copy(update={"reported_usd": reported})
    journal.usage[Role.CANDIDATE] = usage
    journal.held = closed.held_seconds
    journal.served_model = closed.served_model
    journal.transcript = closed.transcript
    assert session.ended is not None
    return session.ended
