"""Servers that are started and stopped around the turn of each of their models."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_modelbench.gateway.commands import Command, last_words
from pytest_modelbench.gateway.wire import Stop
from pytest_modelbench.gateway.words import filled
from pytest_modelbench.records import Candidate, Server

NOT_READY = "server-not-ready"
COMMAND_SECONDS = 60.0
"""Longest that one ``ready`` or ``stop`` may take."""
FIRST_POLL, LONGEST_POLL = 0.05, 2.0

Group = tuple[str, str]
"""Model and address: the candidates of one group are served by one start of the server."""


def group_of(candidate: Candidate) -> Group:
    """Return the group of a candidate: what its server has to serve for it."""
    return candidate.model, candidate.api_base


def has_commands(server: Server) -> bool:
    """Tell whether something is run around the turns of a server."""
    return bool(server.start or server.stop or server.ready)


class NotReady(Exception):
    """The server of a candidate did not become ready; no cell of it can run."""


@dataclass
class _Place:
    """One server: the group that it serves, the cells at it, and what failed."""

    server: Server
    log: Path
    group: Group | None = None
    active: int = 0
    changing: asyncio.Task[None] | None = None
    failed: dict[Group, str] = field(default_factory=dict)
    running: Command | None = None
    served: Candidate | None = None


class ServerTurns:
    """Lets cells in while their model is served, and changes models while no cell is in.

    Which cell asks when is the dealer's business: it deals no cell of another group before the last
    of this one has ended. So a server is changed when a cell of another group asks.
    ``on_failed`` is told of a server that cannot serve a group, with the names of its candidates.
    """

    def __init__(
        self,
        candidates: Iterable[Candidate],
        servers: Iterable[Server],
        *,
        log: str,
        root: str,
        on_failed: Callable[[str, Stop], None],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._candidates = [c for c in candidates if c.calls_model]
        folder = Path(log) if log else Path(os.devnull).parent
        self._places = {
            s.name: _Place(s, folder / f"{s.name}.log" if log else Path(os.devnull))
            for s in servers
            if has_commands(s)
        }
        self._root = root
        self._environ = os.environ if environ is None else environ
        self._on_failed = on_failed
        self._changed = asyncio.Event()

    def concerns(self, candidate: Candidate) -> bool:
        """Tell whether a candidate's cells have to wait for a server of ours."""
        return candidate.server in self._places

    def waits(self, candidate: Candidate) -> str:
        """Return what a candidate's cells wait for here, in words; "" for nothing."""
        place = self._places.get(candidate.server)
        changing = place is not None and place.changing is not None
        return f"server {candidate.server} starts" if changing else ""

    async def enter(self, candidate: Candidate) -> None:
        """Wait until a candidate's model is served, and keep it so until ``leave``.

        Raises:
            NotReady: it is not served and will not be in this run.
        """
        place, wanted = self._places[candidate.server], group_of(candidate)
        while True:
            if wanted in place.failed:
                raise NotReady(place.failed[wanted])
            if place.running is not None and place.running.status not in (None, 0):
                place.group = None  # it has died, and is started again
            if place.changing is None and place.group == wanted:
                place.active += 1
                return
            if place.changing is None and place.active == 0:
                # A task of its own: the cell that asked may go away, and the server stays asked.
                place.changing = asyncio.create_task(self._change(place, candidate))
            await self._changed.wait()

    def leave(self, candidate: Candidate) -> None:
        """Note that a cell has ended."""
        self._places[candidate.server].active -= 1
        self._notify()

    async def close(self) -> None:
        """Stop every server, whatever it does."""
        await asyncio.gather(*(self._close(place) for place in self._places.values()))

    async def _close(self, place: _Place) -> None:
        if place.changing is not None:
            place.changing.cancel()
            await asyncio.gather(place.changing, return_exceptions=True)
        await self._stop(place)

    async def _change(self, place: _Place, candidate: Candidate) -> None:
        wanted = group_of(candidate)
        try:
            await self._stop(place)
            # Named before it is ready: an end in between has to stop it as well.
            place.served = candidate
            why = await self._start(place, candidate)
            if why:
                await self._stop(place)
                self._fail(place, wanted, why)
            else:
                place.group = wanted
        except OSError as error:
            self._fail(place, wanted, f"its commands cannot be run: {error}")
        finally:
            place.changing = None
            self._notify()

    def _fail(self, place: _Place, wanted: Group, why: str) -> None:
        name = place.server.name
        text = f"server {name} is not ready for {wanted[0]}: {why}"
        if place.log.name != Path(os.devnull).name:
            words = last_words(place.log)
            text += f"; its last words: {words}" if words else ""
            where = Path(*place.log.parts[-3:])
            text += f"; all of them are in {where} below the results folder"
        place.failed[wanted] = text
        for one in self._candidates:
            if one.server == name and group_of(one) == wanted:
                self._on_failed(one.name, Stop(reason=NOT_READY, text=text))

    async def _start(self, place: _Place, candidate: Candidate) -> str:
        """Start a server and wait until it is ready; return why it is not, "" when it is."""
        server = place.server
        if server.start:
            place.running = await self._run(place, server.start, candidate, once=False)
        poll = FIRST_POLL
        try:
            async with asyncio.timeout(server.ready_seconds):
                while not await self._is_ready(place, candidate):
                    running = place.running
                    if running is not None and running.status not in (None, 0):
                        return f"its start command ended with status {running.status}"
                    await asyncio.sleep(poll)
                    poll = min(2 * poll, LONGEST_POLL)
        except TimeoutError:
            return f"it did not become so within {server.ready_seconds:g} s"
        running = place.running
        if running is not None and running.status not in (None, 0):
            return f"its start command ended with status {running.status}, yet something answers"
        return ""

    async def _is_ready(self, place: _Place, candidate: Candidate) -> bool:
        if not place.server.ready:
            return await _answers(candidate.api_base)
        check = await self._run(place, place.server.ready, candidate, once=True)
        try:
            return await check.finish(COMMAND_SECONDS) == 0
        except asyncio.CancelledError:
            await check.end()
            raise

    async def _stop(self, place: _Place) -> None:
        """End what serves now: by the server's own command, then by signals."""
        served, place.served, place.group = place.served, None, None
        if served is not None and place.server.stop:
            command = await self._run(place, place.server.stop, served, once=True)
            await command.finish(COMMAND_SECONDS)
        if place.running is not None:
            await place.running.end()
            place.running = None

    async def _run(
        self, place: _Place, command: str, candidate: Candidate, *, once: bool
    ) -> Command:
        return await Command.start(
            filled(command, candidate),
            place.log,
            once=once,
            root=self._root,
            environ=self._environ,
        )

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


async def _answers(api_base: str) -> bool:
    """Tell whether a server lists its models, or refuses to in its own words."""
    if not api_base:
        return True
    import aiohttp

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
            session.get(f"{api_base.rstrip('/')}/models") as response,
        ):
            return response.status < 500
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False
