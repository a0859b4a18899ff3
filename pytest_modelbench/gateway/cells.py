"""Which cells may begin now: budgets, usage windows, a server that fails, a server's turn."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from aiohttp import web
from pydantic import JsonValue, TypeAdapter, ValidationError

from pytest_modelbench.gateway.admission import Admission
from pytest_modelbench.gateway.ledger import Account, Debit, Ledger
from pytest_modelbench.gateway.servers import NOT_READY, NotReady, ServerTurns
from pytest_modelbench.gateway.windows import (
    Hold,
    Reading,
    UsageWindows,
    Used,
    readings_of_headers,
)
from pytest_modelbench.gateway.wire import Entry, GatewayConfig, Stop
from pytest_modelbench.records import Candidate, Role

FAULTS_IN_A_ROW = 5
"""Faults of one candidate, on different cells, after which its cells begin one at a time."""

BUDGET = "budget"
STOPPED = "candidate-stopped"
LONGEST_NAP = 3600.0
_READINGS = TypeAdapter(list[Reading])


class Refused(Exception):
    """A cell that is not to begin in this run."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        super().__init__(entry.text)


class Windows:
    """The usage windows of every candidate: its own, its server's, its provider's.

    What a provider tells holds for every candidate of the same address: the newest word counts.
    """

    def __init__(self, config: GatewayConfig) -> None:
        def windows(what: object) -> UsageWindows:
            declared = getattr(what, "windows", ())
            return UsageWindows(
                declared,
                threshold=config.usage_pause_threshold,
                allowance=config.usage_allowance,
            )

        self._own = {c.name: windows(c) for c in config.candidates}
        self._servers = {server.name: windows(server) for server in config.servers}
        self._server_of = {c.name: c.server for c in config.candidates}
        providers = {_provider(c): windows(None) for c in config.candidates}
        self._told = {c.name: providers[_provider(c)] for c in config.candidates}
        for used in sorted(config.used, key=lambda used: used.at):
            self._add(used, own=False)

    def debited(self, candidate: str, debit: Debit) -> None:
        """Count what this run used."""
        used = Used(
            candidate=candidate,
            server=self._server_of[candidate],
            at=debit.at,
            requests=debit.requests,
            tokens=debit.tokens,
            usd=debit.spent_usd or 0.0,
        )
        self._add(used, own=True)

    def _add(self, used: Used, *, own: bool) -> None:
        of = (self._own.get(used.candidate), self._servers.get(used.server))
        for one in of:
            if one is not None:
                one.add(used, own=own)

    def read(self, candidate: str, readings: tuple[Reading, ...]) -> None:
        """Take up what a provider says."""
        self._told[candidate].read(readings, time.time())

    def hold(self, candidate: str) -> Hold | None:
        """Return what keeps a candidate's new cells out, None for nothing."""
        now = time.time()
        server = self._servers.get(self._server_of[candidate])
        every = (self._own[candidate], server, self._told[candidate])
        found = (one.hold(now) for one in every if one is not None)
        return max(
            (hold for hold in found if hold is not None), key=lambda h: h.until, default=None
        )


class Cells:
    """The cells that have begun, and those that wait. Lives in the gateway's event loop.

    A worker asks before a cell begins and holds the connection until the cell has ended, so a cell
    whose worker dies has ended too.
    """

    def __init__(
        self, config: GatewayConfig, admission: Admission, ledger: Ledger, turns: ServerTurns
    ) -> None:
        self._config = config
        self._admission = admission
        self._ledger = ledger
        self._turns = turns
        self._windows = Windows(config)
        self._active: Counter[str] = Counter()
        self._faulted: dict[str, dict[str, None]] = {c.name: {} for c in config.candidates}
        self._waiting: dict[str, Hold] = {}
        self._changed = asyncio.Event()
        known = {c.name for c in config.candidates}
        for candidate, debit in ledger.debits():
            if candidate in known:
                self._windows.debited(candidate, debit)
        ledger.on_debit = self._debited

    def _debited(self, candidate: str, debit: Debit) -> None:
        self._windows.debited(candidate, debit)

    def heard(self, candidate: str, headers: Mapping[str, str]) -> None:
        """Take up the headers of a reply."""
        if readings := readings_of_headers(headers, time.time()):
            self._windows.read(candidate, readings)

    def notify(self) -> None:
        """Have all that wait look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def ended(self, account: Account) -> None:
        """Note how the path to the model was when an attempt's grant was closed.

        Faults in a row, on different cells, narrow a candidate until one cell ends without.
        """
        grant = account.grant
        if grant.role is not Role.CANDIDATE:
            return
        faulted = self._faulted[grant.candidate]
        if account.faulty:
            faulted[f"{grant.case}:{grant.repeat}" if grant.case else grant.attempt] = None
        elif account.calls:
            faulted.clear()
            self.notify()

    def narrow(self, candidate: str) -> bool:
        """Tell whether a candidate's cells begin one at a time, for its server answers nobody."""
        return len(self._faulted[candidate]) >= FAULTS_IN_A_ROW

    def status(self) -> dict[str, JsonValue]:
        """Return what waits, why and until when, and what was spent."""
        spent = self._ledger.spent_in_all
        return {
            "waiting": {
                name: {"why": hold.why, "until": hold.until} for name, hold in self._waiting.items()
            },
            "spent": {"usd": spent.usd, "tokens": spent.tokens, "unpriced": spent.unpriced},
        }

    async def enter(self, request: web.Request) -> web.StreamResponse:
        """Serve a worker that is about to begin a cell, until the cell has ended."""
        name = request.query.get("candidate", "")
        candidate = self._config.candidate(name)
        response = web.StreamResponse(headers={"content-type": "application/jsonl"})
        await response.prepare(request)
        if candidate is None:
            # The worker goes on, and is told so where it asks for a grant.
            await _say(response, Entry())
            return response
        try:
            async with self._begun(candidate, response):
                await _say(response, Entry())
                await asyncio.Event().wait()  # ended by the worker, which lets go
        except Refused as refused:
            await _say(response, refused.entry)
        return response

    async def reading(self, request: web.Request) -> web.StreamResponse:
        """Take up a reading of usage windows that an agent program gave."""
        name = request.query.get("candidate", "")
        try:
            readings = tuple(_READINGS.validate_json(await request.read()))
        except ValidationError as error:
            return web.json_response({"error": str(error)}, status=400)
        if self._config.candidate(name) is not None:
            self._windows.read(name, readings)
        return web.json_response({})

    @asynccontextmanager
    async def _begun(
        self, candidate: Candidate, response: web.StreamResponse
    ) -> AsyncIterator[None]:
        """Wait until a cell may begin; raise Refused where it may not in this run."""
        name, said, entered = candidate.name, "", False
        try:
            while True:
                self._refuse(name)
                hold = self._hold(candidate)
                if hold is None and (entered or not self._turns.concerns(candidate)):
                    break
                if hold is None:
                    waits = self._turns.waits(candidate)
                    if waits:
                        self._waiting[name] = Hold(waits, 0.0)
                    entered = await self._enter(candidate)
                    continue
                if entered:
                    # A server's turn is not held while something else is waited for.
                    self._turns.leave(candidate)
                    entered = False
                self._waiting[name] = hold
                if hold.why != said:
                    said = hold.why
                    await _say(response, Entry(waits=hold.why, until=hold.until))
                    continue  # what is waited for may be there by now
                await self._nap(hold.until - time.time() if hold.until else LONGEST_NAP)
            self._waiting.pop(name, None)
            self._active[name] += 1
            try:
                yield
            finally:
                self._active[name] -= 1
        finally:
            if entered:
                self._turns.leave(candidate)
            if not self._active[name]:
                self._waiting.pop(name, None)
            self.notify()

    def _refuse(self, name: str) -> None:
        stop = self._admission.stop_of(name)
        if stop is not None:
            text = stop.reason + (f", {stop.text}" if stop.text else "")
            raise Refused(Entry(refused=STOPPED, text=text, permanent=True))
        if why := self._spent(name):
            raise Refused(Entry(refused=BUDGET, text=why, permanent=True))

    def _spent(self, name: str) -> str:
        """Return which budget is spent, in words; "" where none is."""
        candidate, own = self._config.candidate(name), self._ledger.spent.get(name)
        bounds = [("this run", self._config, self._ledger.spent_in_all)]
        held = [(who, what.budget_usd, what.budget_tokens, spent) for who, what, spent in bounds]
        if candidate is not None and own is not None:
            held.append((name, candidate.budget_usd, candidate.budget_tokens, own))
        for who, usd, tokens, spent in held:
            if usd is not None and spent.usd >= usd:
                return f"the budget of {who}, ${usd:g}, is spent (${spent.usd:.4f})"
            if tokens is not None and spent.tokens >= tokens:
                return f"the budget of {who}, {tokens} tokens, is spent ({spent.tokens})"
        return ""

    def _hold(self, candidate: Candidate) -> Hold | None:
        name = candidate.name
        if self.narrow(name) and self._active[name]:
            return Hold("its server fails: one cell at a time until one ends without a fault", 0.0)
        return self._windows.hold(name)

    async def _enter(self, candidate: Candidate) -> bool:
        try:
            await self._turns.enter(candidate)
        except NotReady as error:
            # A fault of the cells that waited; those that come later find the candidate stopped.
            entry = Entry(refused=NOT_READY, text=str(error), permanent=True)
            raise Refused(entry) from None
        return True

    async def _nap(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(min(max(seconds, 0.01), LONGEST_NAP)):
                await self._changed.wait()

    def stop(self, candidate: str, stop: Stop) -> None:
        """Stop a candidate whose server cannot serve it."""
        if self._admission.stop(candidate, stop):
            self._ledger.note_stop(candidate, stop)


def _provider(candidate: Candidate) -> tuple[str, str]:
    """Return whose windows a candidate's replies tell of: a provider's, at an address."""
    return candidate.model.partition("/")[0], candidate.api_base


async def _say(response: web.StreamResponse, entry: Entry) -> None:
    await response.write(entry.model_dump_json(exclude_defaults=True).encode() + b"\n")
