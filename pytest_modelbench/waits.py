"""What candidates wait for, whose calls fail, and what candidates used before this run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from pytest_modelbench.bench import Bench
from pytest_modelbench.errors import Fault
from pytest_modelbench.records import Role
from pytest_modelbench.store.reader import read

if TYPE_CHECKING:
    from pytest_modelbench.gateway.windows import Used

LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Wait:
    """Why a candidate waits; ``until`` in seconds since the epoch, 0.0 where nobody knows."""

    why: str
    until: float

    def left(self, now: float) -> str:
        """Return how long it will take, in words."""
        if self.until <= now:
            return ""
        seconds = int(self.until - now)
        hours, minutes = divmod(seconds // 60, 60)
        if seconds < 60:
            return f"{seconds} s"
        return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class Waits:
    """Looks at the gateway from a thread; says at once when a candidate begins to wait.

    ``status`` asks the gateway, ``write`` prints a line.
    """

    def __init__(
        self, status: Callable[[], Mapping[str, JsonValue]], write: Callable[[str], None]
    ) -> None:
        self._status = status
        self._write = write
        self._waits: dict[str, Wait] = {}
        self._failing: dict[str, tuple[str, str]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="modelbench-waits", daemon=True)

    def watch(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def held(self, candidate: str) -> bool:
        """Tell whether a candidate waits now for something whose end is known."""
        wait = self._waits.get(candidate)
        return wait is not None and wait.until > time.time()

    def words(self) -> str:
        """Return who waits and how much longer, for the heartbeat's line; "" for nobody."""
        now = time.time()
        return ", ".join(
            f"{name} waits" + (f" {left} more" if (left := wait.left(now)) else "")
            for name, wait in self._waits.items()
        )

    def failing(self) -> Mapping[str, tuple[str, str]]:
        """Return whose newest request came to nothing and is made again: reason, and words."""
        return self._failing

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            try:
                status = self._status()
            except Fault:
                continue  # it is being started again
            self._failing = _failing(status)
            found = _waits(status)
            for name, wait in found.items():
                if name not in self._waits:
                    self._write(wait_line(name, wait))
            self._waits = found


def used_before(bench: Bench, now: float) -> tuple[Used, ...]:
    """Return what stored attempts used within the longest declared window, for the gateway."""
    from pytest_modelbench.gateway.windows import Used

    registry = bench.registry
    declared = [w for server in registry.servers.values() for w in server.windows]
    declared += [w for candidate in bench.called for w in candidate.windows]
    if not declared:
        return ()
    since = now - max(window.hours for window in declared) * 3600
    index = read(Path(bench.settings.results), details=True)
    cases = (case for pack in (*bench.packs, *bench.lent) for case in pack.cases)
    judges = {(case.pack, case.id): case.check.judge for case in cases if case.check.judge}
    found = []
    for entry in index.entries():
        at = datetime.fromisoformat(entry.started).timestamp()
        if at < since or entry.detail is None:
            continue
        for role, spent in entry.detail.by_role():
            name = judges.get((entry.pack, entry.case)) if role == Role.JUDGE else entry.candidate
            if name is None:
                continue  # whoever judged it then, nobody does now
            candidate = registry.candidates.get(name)
            found.append(
                Used(
                    candidate=name,
                    server=candidate.server if candidate is not None else "",
                    at=at,
                    requests=spent.requests,
                    tokens=(spent.input or 0) + (spent.output or 0),
                    usd=(spent.list_usd or 0.0) if spent.billed_usd is None else spent.billed_usd,
                )
            )
    return tuple(found)


def _waits(status: Mapping[str, JsonValue]) -> dict[str, Wait]:
    waiting = status.get("waiting")
    found = {}
    for name, told in (waiting if isinstance(waiting, dict) else {}).items():
        if isinstance(told, dict):
            until = told.get("until")
            moment = float(until) if isinstance(until, (int, float)) else 0.0
            found[name] = Wait(str(told.get("why")), moment)
    return found


def _failing(status: Mapping[str, JsonValue]) -> dict[str, tuple[str, str]]:
    failing = status.get("failing")
    return {
        name: (str(told.get("reason")), str(told.get("text")))
        for name, told in (failing if isinstance(failing, dict) else {}).items()
        if isinstance(told, dict)
    }


def wait_line(candidate: str, wait: Wait) -> str:
    """Return the line that says that a candidate begins to wait."""
    line = f"modelbench {candidate} waits: {wait.why}"
    if not wait.until:
        return line
    moment = datetime.fromtimestamp(wait.until).astimezone()
    return f"{line}; new cells begin at {moment:%H:%M:%S}"
