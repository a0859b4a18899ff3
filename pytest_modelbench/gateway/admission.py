"""Which calls may go now: one place for all workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from pytest_modelbench.gateway.limits import DeclaredLimit, LearnedLimit, Limit
from pytest_modelbench.gateway.wire import Stop
from pytest_modelbench.records import Candidate, Server


class Stopped(Exception):
    """Raised to a call that was waiting when its candidate was stopped."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        super().__init__(stop.reason)


class TooLong(Exception):
    """Raised to a call that a limit would hold for longer than it is to wait."""


@dataclass
class Busy:
    """How long a server was at work, however many calls at a time, and what it put out."""

    in_flight: int = 0
    since: float = 0.0
    seconds: float = 0.0
    output: int = 0

    def begin(self, now: float) -> None:
        """Note the begin of a request."""
        if self.in_flight == 0:
            self.since = now
        self.in_flight += 1

    def end(self, now: float) -> None:
        """Note its end."""
        self.in_flight -= 1
        if self.in_flight == 0:
            self.seconds += now - self.since

    def speed(self, now: float) -> float | None:
        """Return output tokens a second of work so far, None before there are any."""
        seconds = self.seconds + (now - self.since if self.in_flight else 0.0)
        return self.output / seconds if self.output and seconds > 0 else None


@dataclass
class _State:
    server: asyncio.Semaphore | None
    limits: tuple[Limit, ...]
    learned: LearnedLimit
    busy: Busy | None
    stop: Stop | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    not_before: float = 0.0
    order: asyncio.Lock = field(default_factory=asyncio.Lock)


class Slot:
    """The place of a call that goes now; ``settle`` it with the tokens that it used."""

    def __init__(self, state: _State, tokens: int, now: float) -> None:
        self._state = state
        self._taken = [(limit, limit.take(now, tokens)) for limit in state.limits]

    def settle(self, tokens: int | None, output: int | None) -> None:
        """Correct what was estimated; None: the server did not say, and the estimate stays."""
        if tokens is not None:
            for limit, taken in self._taken:
                limit.settle(taken, tokens)
        if self._state.busy is not None:
            self._state.busy.output += output or 0


class Admission:
    """Stops, pauses, limits and slots of all candidates. Lives in the gateway's event loop.

    ``max_wait`` is the longest that a limit may hold a call, in seconds. ``on_stop`` is called when
    a candidate is stopped, ``on_headers`` with the headers of each reply.
    """

    def __init__(
        self,
        candidates: Iterable[Candidate],
        servers: Iterable[Server],
        *,
        max_wait: float = float("inf"),
        on_stop: Callable[[], None] = lambda: None,
        on_headers: Callable[[str, Mapping[str, str]], None] = lambda candidate, headers: None,
    ) -> None:
        declared = {server.name: server for server in servers}
        slots = {
            server.name: asyncio.Semaphore(server.concurrency)
            for server in declared.values()
            if server.concurrency is not None
        }
        shared = {name: limits for name, s in declared.items() if (limits := _declared(s))}
        busy = {name: Busy() for name, s in declared.items() if s.usd_per_hour is not None}
        # What headers say is said of a model at an address, whatever candidates are called.
        learned: dict[tuple[str, str], LearnedLimit] = {}
        self._states = {}
        for one in candidates:
            own = learned.setdefault((one.model, one.api_base), LearnedLimit())
            every: list[Limit] = [*_declared(one), *shared.get(one.server, ()), own]
            self._states[one.name] = _State(
                slots.get(one.server), tuple(every), own, busy.get(one.server)
            )
        self._max_wait = max_wait
        self._on_stop = on_stop
        self._on_headers = on_headers

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
        self._on_stop()
        return True

    def pause(self, candidate: str, seconds: float) -> None:
        """Hold every call of a candidate for some seconds: its server told one of them to wait."""
        state = self._states[candidate]
        state.not_before = max(state.not_before, _now() + seconds)

    def learn(self, candidate: str, headers: Mapping[str, str]) -> None:
        """Take up what a reply's headers say of its server's limits."""
        self._states[candidate].learned.read(headers, now=_now(), wall=time.time())
        self._on_headers(candidate, headers)

    def counts_tokens(self, candidate: str) -> bool:
        """Tell whether anything limits the tokens of a candidate's calls."""
        return any(limit.counts_tokens for limit in self._states[candidate].limits)

    def speed(self, candidate: str) -> float | None:
        """Return the output tokens a second of a candidate's server; None where not measured."""
        busy = self._states[candidate].busy
        return None if busy is None else busy.speed(_now())

    @asynccontextmanager
    async def slot(self, candidate: str, tokens: int = 1) -> AsyncIterator[Slot]:
        """Wait for a turn of a call of about so many tokens, and hold it.

        Raises:
            Stopped: the candidate was stopped meanwhile.
            TooLong: a limit asks for a longer wait than ``max_wait``.
        """
        state = self._states[candidate]
        async with AsyncExitStack() as held:
            while True:
                # Waited for outside the server's slot, which other candidates need; one call of a
                # candidate after the other, so that the one that came first goes first.
                async with state.order:
                    await self._clear(candidate, tokens)
                    await _enter(held, state.server)
                    if state.stop is not None:
                        raise Stopped(state.stop)
                    if not self._wait(state, tokens):
                        slot = Slot(state, tokens, _now())
                        break
                await held.aclose()
            if state.busy is not None:
                state.busy.begin(_now())
                held.callback(lambda busy: busy.end(_now()), state.busy)
            yield slot

    async def _clear(self, candidate: str, tokens: int) -> None:
        """Wait for pauses and limits to be over."""
        state, began = self._states[candidate], _now()
        while (wait := self._wait(state, tokens)) > 0:
            limited = max(limit.wait(_now(), tokens) for limit in state.limits)
            if _now() - began + limited > self._max_wait:
                raise TooLong(f"a limit on requests or tokens a minute asks for {limited:.0f} s")
            await self.sleep(candidate, wait)
        await self.sleep(candidate, 0.0)

    @staticmethod
    def _wait(state: _State, tokens: int) -> float:
        now = _now()
        return max(state.not_before - now, *(limit.wait(now, tokens) for limit in state.limits))

    async def sleep(self, candidate: str, seconds: float) -> None:
        """Wait some seconds and any pause; raise Stopped as soon as the candidate is stopped."""
        state = self._states[candidate]
        until = _now() + seconds
        while state.stop is None:
            left = max(until, state.not_before) - _now()
            if left <= 0:
                return
            try:
                async with asyncio.timeout(left):
                    await state.stopped.wait()
            except TimeoutError:
                continue
        raise Stopped(state.stop)


async def _enter(held: AsyncExitStack, server: asyncio.Semaphore | None) -> None:
    if server is not None:
        await held.enter_async_context(server)


def _declared(what: Candidate | Server) -> tuple[DeclaredLimit, ...]:
    if what.requests_per_minute is None and what.tokens_per_minute is None:
        return ()
    return (DeclaredLimit(what.requests_per_minute, what.tokens_per_minute),)


def _now() -> float:
    return asyncio.get_running_loop().time()
