"""The gateway process: an HTTP server on the listening socket that the controller hands over.

Programs speak OpenAI's and Anthropic's APIs to it with the token of their grant as the key; workers
open and close grants with the secret of the session. Reads its configuration from the first line of
its standard input, and ends when that comes to its end.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from aiohttp import web
from pydantic import JsonValue, ValidationError

from pytest_modelbench.gateway.admission import Admission
from pytest_modelbench.gateway.apis import Apis, Handler, as_json, bearer, refused
from pytest_modelbench.gateway.calls import Calls, stopped
from pytest_modelbench.gateway.cells import Cells
from pytest_modelbench.gateway.chat import Chat
from pytest_modelbench.gateway.doors import Doors
from pytest_modelbench.gateway.ledger import Account, Ledger
from pytest_modelbench.gateway.prices import price_of
from pytest_modelbench.gateway.servers import ServerTurns
from pytest_modelbench.gateway.transcript import Transcripts
from pytest_modelbench.gateway.upstream import Upstreams, keys_of, needs_litellm
from pytest_modelbench.gateway.wire import (
    DOORS,
    SERVED,
    GatewayConfig,
    GrantRequest,
    Redactor,
    Stop,
    end_seconds,
)
from pytest_modelbench.privacy import close_to_others

END_SECONDS = 1.0
GRANT_HEADER = "x-modelbench-grant"


class Gateway:
    """Everything of one gateway process, and the handlers of its endpoints."""

    def __init__(self, config: GatewayConfig) -> None:
        folder = Path(config.folder)
        keys = {n: v for c in config.candidates if c.calls_model for n, v in keys_of(c).items()}
        redact = Redactor(keys)
        self.config = config
        self.upstreams = Upstreams()
        self.admission = Admission(
            config.candidates,
            config.servers,
            max_wait=config.max_wait,
            on_stop=lambda: self.cells.notify(),
            on_headers=lambda name, headers: self.cells.heard(name, headers),
        )
        prices = {c.name: price_of(c) for c in config.candidates if c.calls_model}
        self.ledger = Ledger(folder / "journal.jsonl", config.secret, prices)
        self.turns = ServerTurns(
            config.candidates,
            config.servers,
            log=config.log,
            root=config.root,
            on_failed=lambda name, stop: self.cells.stop(name, stop),
        )
        self.cells = Cells(config, self.admission, self.ledger, self.turns)
        self.transcripts = Transcripts(folder, redact)
        self.calls = Calls(
            config, self.upstreams, self.admission, self.ledger, self.transcripts, redact
        )
        self.apis = Apis(config, self.admission, self.ledger, self.calls)
        for name, stop in self.ledger.stops.items():
            if config.candidate(name) is not None:
                self.admission.stop(name, stop)

    def application(self) -> web.Application:
        """Return the application that serves this gateway."""
        app = self.apis.application()
        app.router.add_post("/control/grants", self._control(self._open))
        app.router.add_get("/control/grants/{token}", self._control(self._state))
        app.router.add_delete("/control/grants/{token}", self._control(self._close))
        app.router.add_post("/control/cells", self._control(self.cells.enter))
        app.router.add_post("/control/windows", self._control(self.cells.reading))
        app.router.add_get("/control/status", self._control(self._status))
        app.router.add_post("/control/stop", self._control(self._stop))
        return app

    async def close(self) -> None:
        """Let go of connections and of the journal."""
        await self.apis.close()
        await self.upstreams.close()
        await self.turns.close()
        self.ledger.shut()

    def _control(self, handler: Handler) -> Handler:
        async def guarded(request: web.Request) -> web.StreamResponse:
            if not hmac.compare_digest(bearer(request).encode(), self.config.secret.encode()):
                return refused(401, "this endpoint needs the secret of the session", "unauthorised")
            return await handler(request)

        return guarded

    async def _open(self, request: web.Request) -> web.StreamResponse:
        try:
            grant = GrantRequest.model_validate_json(await request.read())
        except ValidationError as error:
            return refused(400, f"not a grant: {error}", "bad-request")
        candidate = self.config.candidate(grant.candidate)
        if candidate is None:
            known = ", ".join(c.name for c in self.config.candidates)
            text = f"no candidate {grant.candidate!r} in this run; there are: {known or 'none'}"
            return refused(404, text, "unknown-candidate")
        stop = self.admission.stop_of(candidate.name)
        if stop is not None:
            return as_json(Chat().error(409, stopped(stop)), 409)
        return as_json({"token": self.ledger.open(grant).token})

    async def _state(self, request: web.Request) -> web.StreamResponse:
        account = self.ledger.account(request.match_info["token"])
        if account is None:
            return refused(404, "this token is of no open grant", "unknown-grant")
        report = account.report().model_copy(update={"in_flight": self.apis.in_flight(account)})
        return as_json(report.model_dump(mode="json"))

    async def _close(self, request: web.Request) -> web.StreamResponse:
        account = self.ledger.account(request.match_info["token"])
        if account is None:
            return refused(404, "this token is of no open grant", "unknown-grant")
        final = await self.apis.forget(account)
        self.cells.ended(account)
        ended = self.ledger.close(account, self._usd_per_token(account))
        ended = ended.model_copy(update={"final": final})
        headers = {GRANT_HEADER: json.dumps(ended.model_dump(mode="json"))}
        return web.Response(
            body=self.transcripts.take(account.token),
            headers=headers,
            content_type="application/octet-stream",
        )

    def _usd_per_token(self, account: Account) -> float | None:
        """Return what an output token costs on a candidate's own server, at the speed measured."""
        candidate = self.config.candidate(account.grant.candidate)
        server = next(
            (s for s in self.config.servers if candidate and s.name == candidate.server), None
        )
        speed = self.admission.speed(account.grant.candidate)
        if server is None or server.usd_per_hour is None or speed is None:
            return None
        return server.usd_per_hour / 3600 / speed

    async def _status(self, request: web.Request) -> web.StreamResponse:
        stops: JsonValue = {n: s.model_dump() for n, s in self.admission.stops.items()}
        failing: JsonValue = {
            name: {"reason": reason, "text": text}
            for name, (reason, text) in self.calls.failing.items()
        }
        told: dict[str, JsonValue] = {"pid": os.getpid(), "stopped": stops, "failing": failing}
        return as_json(told | self.cells.status())

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        candidate = body.get("candidate") if isinstance(body, dict) else None
        if not isinstance(candidate, str) or self.config.candidate(candidate) is None:
            return refused(404, f"no candidate {candidate!r} in this run", "unknown-candidate")
        stop = Stop(reason=str(body.get("reason") or "stopped"), text=str(body.get("text") or ""))
        if self.admission.stop(candidate, stop):
            self.ledger.note_stop(candidate, stop)
        return as_json({})


def main(listener: int) -> None:
    """Serve on an inherited listening socket until standard input ends."""
    close_to_others()  # it has every key in its environment
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = sys.stdin.buffer.readline()
    if not line:
        return
    config = GatewayConfig.model_validate_json(line)
    asyncio.run(_serve(config, socket.socket(fileno=listener)))


async def _serve(config: GatewayConfig, listener: socket.socket) -> None:
    listener.setblocking(False)
    gateway = Gateway(config)
    runner = web.AppRunner(
        gateway.application(), access_log=None, handler_cancellation=True, shutdown_timeout=0.5
    )
    await runner.setup()
    await web.SockSite(runner, listener, backlog=1024).start()
    (Path(config.folder) / SERVED).touch()
    doors = Doors(Path(config.folder) / DOORS, gateway.apis.open_door)
    if any(needs_litellm(c) for c in config.candidates if c.calls_model):
        from pytest_modelbench.gateway.translated import import_in_background

        import_in_background()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    seconds = END_SECONDS + end_seconds(config.servers)
    threading.Thread(target=_await_end, args=(loop, ended, seconds), daemon=True).start()
    await ended.wait()
    await doors.close()
    await runner.cleanup()
    await gateway.close()
    if "litellm" in sys.modules:
        # Its own threads and exit handlers take seconds, and there is nothing left to save.
        os._exit(0)


def _await_end(loop: asyncio.AbstractEventLoop, ended: asyncio.Event, seconds: float) -> None:
    """Wait for the controller's end, however it went; nothing may keep this process after it."""
    while sys.stdin.buffer.read(4096):
        pass
    loop.call_soon_threadsafe(ended.set)
    time.sleep(seconds)
    os._exit(0)
