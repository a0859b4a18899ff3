"""Who may call now: one place for all workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from pytest_modelbench.gateway.wire import Stop
from pytest_modelbench.records import Candidate, Server

FAULTS_IN_A_ROW = 5
"""Transient faults of one candidate, on different attempts, after which it calls one at a time."""


class Stopped(Exception):
    """Raised to a call that was waiting when its candidate was stopped."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        super().__init__(stop.reason)


@dataclass
class _State:
    server: asyncio.Semaphore | None
    stop: Stop | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    not_before: float = 0.0
    single: asyncio.Lock = field(default_factory=asyncio.Lock)
    faulty: dict[str, None] = field(default_factory=dict)


class Admission:
    """Stops, pauses and slots of all candidates. Lives in the gateway's event loop."""

    def __init__(self, candidates: Iterable[Candidate], servers: Iterable[Server]) -> None:
        slots = {
            server.name: asyncio.Semaphore(server.concurrency)
            for server in servers
            if server.concurrency is not None
        }
        self._states = {c.name: _State(slots.get(c.server)) for c in candidates}

    def stop_of(self, candidate: str) -> Stop | None:
        """Return why a candidate is stopped, None while it is not."""
        return self._states[candidate].stop

    @property
    def stops(self) -> dict[str, Stop]:
        """Return the candidates that are stopped, and why."""
        return {name: state.stop for name, state in self._states.items() if state.stop is not None}

    def stop(self, candidate: str, stop: Stop) -> bool:
        """Call a candidate no more; calls in flight end. The first reason stays.

        Returns whether the candidate was not stopped before.
        """
        state = self._states[candidate]
        if state.stop is not None:
            return False
        state.stop = stop
        state.stopped.set()
        return True

    def pause(self, candidate: str, seconds: float) -> None:
        """Hold every call of a candidate for some seconds: its server told one of them to wait."""
        state = self._states[candidate]
        state.not_before = max(state.not_before, asyncio.get_running_loop().time() + seconds)

    def ended(self, candidate: str, attempt: str, *, faulty: bool) -> None:
        """Note how a call ended. A reply of any kind shows that the server is there again."""
        state = self._states[candidate]
        if faulty:
            state.faulty[attempt] = None
        else:
            state.faulty.clear()

    def narrow(self, candidate: str) -> bool:
        """Tell whether a candidate calls one at a time, for its server answers nobody."""
        return len(self._states[candidate].faulty) >= FAULTS_IN_A_ROW

    @asynccontextmanager
    async def slot(self, candidate: str) -> AsyncIterator[None]:
        """Wait for a turn and hold it; raise Stopped when the candidate is stopped meanwhile."""
        state = self._states[candidate]
        while True:
            # A pause is waited for outside the slot, which other candidates of the server need.
            await self.sleep(candidate, 0.0)
            async with AsyncExitStack() as held:
                if self.narrow(candidate):
                    await held.enter_async_context(state.single)
                if state.server is not None:
                    await held.enter_async_context(state.server)
                if state.stop is not None:
                    raise Stopped(state.stop)
                if state.not_before > asyncio.get_running_loop().time():
                    continue
                yield
                return

    async def sleep(self, candidate: str, seconds: float) -> None:
        """Wait some seconds and any pause; raise Stopped as soon as the candidate is stopped."""
        state = self._states[candidate]
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while state.stop is None:
            left = max(until, state.not_before) - loop.time()
            if left <= 0:
                return
            try:
                async with asyncio.timeout(left):
                    await state.stopped.wait()
            except TimeoutError:
                continue
        raise Stopped(state.stop)
